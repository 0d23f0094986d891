package jsexpr

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

const (
	// maxBytes and maxDepth bound the time and the stack that a text may cost:
	// the parser takes time for each name at each level of brackets. Real
	// expressions have less than 2 KiB and 10 levels.
	maxBytes = 16 << 10
	maxDepth = 100
)

// Expression is what a `!!js` text reads.
type Expression struct {
	// Env is the names of the environment variables it reads, sorted. A name
	// that is computed is not known.
	Env []string
	// Services is the names it looks up in its context, sorted: bare names that
	// are no JavaScript or Node.js globals, members of ctx, and what ctx.get is
	// asked for.
	Services []string
	// Asked is those of Services that it only asks for, with ctx.get, which has
	// an answer also where there is no such service.
	Asked []string
	// Globals is the JavaScript and Node.js globals it names, sorted.
	Globals []string
	// Process is the members of process that it reads, sorted.
	Process []string
	// Statement says that it is not one expression but statements: `a; b`, or
	// `{a: 1}`, which JavaScript takes for a block. It still runs, with the
	// value of the last statement that has one.
	Statement bool
	// ReadsTree says that it reads ctx.loader.entries, so that its value depends
	// on the order in which rows are made.
	ReadsTree bool
}

// SyntaxError is a text that JavaScript refuses. Line and Column count from 1
// in the text, Column in characters.
type SyntaxError struct {
	Line, Column int
	Problem      string // never shows names, numbers or texts of the expression
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("reading a !!js expression: line %d, column %d: %s", e.Line, e.Column, e.Problem)
}

// Parse reads an expression as eval would in a function that is not strict.
// The error is a *SyntaxError. Of what eval refuses, a few oddities pass, such
// as `new a?.b` and a regular expression that repeats nothing; of what it takes, a few are
// refused, such as a variable named await.
func Parse(text string) (*Expression, error) {
	p, err := read(text)
	if err != nil {
		return nil, err
	}
	r := readsOf(p.ast)
	return &Expression{
		Env:       slices.Sorted(maps.Keys(r.env)),
		Services:  slices.Sorted(maps.Keys(r.services)),
		Asked:     r.onlyAsked(),
		Globals:   slices.Sorted(maps.Keys(r.globals)),
		Process:   slices.Sorted(maps.Keys(r.process)),
		Statement: !p.isExpression(text),
		ReadsTree: r.tree,
	}, nil
}

// program is a text that parses. The nodes of ast hold slices of buf.
type program struct {
	ast  *js.AST
	list []js.IStmt // the statements, without comments
	buf  []byte
}

func read(text string) (*program, error) {
	if !utf8.ValidString(text) {
		return nil, &SyntaxError{1, 1, "it is no UTF-8"}
	}
	if len(text) > maxBytes {
		return nil, &SyntaxError{1, 1, fmt.Sprintf("it is longer than %d bytes", maxBytes)}
	}
	if at := tooDeep(text); at >= 0 {
		line, column := position(text, at)
		return nil, &SyntaxError{line, column, fmt.Sprintf("brackets are nested more than %d levels deep", maxDepth)}
	}
	p := &program{buf: append(make([]byte, 0, len(text)+1), text...)}
	var err error
	if p.ast, err = parseScript(p.buf); err != nil {
		return nil, syntaxError(text, err)
	}
	for _, stmt := range p.ast.List {
		if _, comment := stmt.(*js.Comment); !comment {
			p.list = append(p.list, stmt)
		}
	}
	if len(p.list) == 0 {
		return nil, &SyntaxError{1, 1, "there is no expression"}
	}
	if b := broken(p.ast); b != nil {
		line, column := 1, 1
		if at := strings.Index(text, b.word); at >= 0 {
			line, column = position(text, at)
		}
		return nil, &SyntaxError{line, column, b.problem}
	}
	if p.dangling(text) {
		line, column := position(text, len(text))
		return nil, &SyntaxError{line, column, "unexpected end"}
	}
	if at := besides(text); at >= 0 {
		line, column := position(text, at)
		return nil, &SyntaxError{line, column, "a comma or an operator is missing before " + token(text[at:])}
	}
	return p, nil
}

// isExpression says whether the text, which is p, is one expression. What
// parses both by itself and in parentheses is one, unless it begins as a
// statement does.
func (p *program) isExpression(text string) bool {
	if len(p.list) != 1 {
		return false
	}
	switch p.list[0].(type) {
	case *js.ExprStmt, *js.DirectivePrologueStmt:
	default:
		return false
	}
	_, err := parseScript([]byte("(" + text + "\n)"))
	return err == nil
}

// dangling says whether the last statement of the text, which is p, lacks its
// body, as in `if (a)`, which the parser lets pass: it would take one.
func (p *program) dangling(text string) bool {
	switch p.list[len(p.list)-1].(type) {
	case *js.LabelledStmt, *js.IfStmt, *js.ForStmt, *js.ForInStmt, *js.ForOfStmt, *js.WhileStmt, *js.WithStmt:
		ast, err := parseScript([]byte(text + "\n{}"))
		return err == nil && len(ast.List) == len(p.ast.List)
	}
	return false
}

// parseScript parses what buf holds. The parser refuses numbers as 0755, which
// eval takes, so their first digit is changed in buf.
func parseScript(buf []byte) (ast *js.AST, err error) {
	defer func() {
		// The parser is not ours, and the text may be anybody's.
		if r := recover(); r != nil {
			ast, err = nil, errors.New("it cannot be read")
		}
	}()
	for range 20 {
		input := parse.NewInputBytes(buf)
		ast, err = js.Parse(input, js.Options{})
		var e *parse.Error
		if err == nil || !errors.As(err, &e) || !strings.HasPrefix(e.Message, "legacy octal") {
			return ast, err
		}
		at := offset(string(buf), e.Line, e.Column)
		if at > 0 && buf[at-1] == '0' {
			at-- // it may point behind the first digit
		}
		if at >= len(buf) || buf[at] != '0' {
			return nil, err
		}
		buf[at] = '1'
	}
	return nil, err
}

// tooDeep is where brackets are nested too deep, or -1. Those in texts and
// comments count as well.
func tooDeep(text string) int {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(', '[', '{':
			if depth++; depth > maxDepth {
				return i
			}
		case ')', ']', '}':
			depth = max(0, depth-1)
		}
	}
	return -1
}

// syntaxError puts the parser's error into our words.
func syntaxError(text string, err error) *SyntaxError {
	var e *parse.Error
	if !errors.As(err, &e) {
		return &SyntaxError{1, 1, err.Error()}
	}
	at := offset(text, e.Line, e.Column)
	problem := e.Message
	switch {
	case strings.HasPrefix(problem, "expected "):
		want, _, _ := strings.Cut(problem, " instead of ")
		problem = strings.ReplaceAll(want, "Identifier", "a name") + " instead of " + token(text[at:])
	case strings.HasPrefix(problem, "unexpected EOF"):
		problem = "unexpected end"
	case strings.HasPrefix(problem, "unexpected identifier after number"):
	case strings.HasPrefix(problem, "unexpected "):
		problem = "unexpected " + token(text[at:])
	case strings.HasPrefix(problem, "identifier "):
		problem = "a name is declared twice"
	case strings.HasPrefix(problem, "unterminated string"):
		problem = "a text has no closing quote"
	case strings.HasPrefix(problem, "unterminated template"):
		problem = "a template has no closing `"
	}
	if hint := parenthesesHelp(text); hint != "" {
		problem += "; " + hint
	}
	return &SyntaxError{e.Line, e.Column, problem}
}

// parenthesesHelp is what to say about a text that is an expression, but that
// JavaScript takes for a statement because of how it begins.
func parenthesesHelp(text string) string {
	trimmed := strings.TrimSpace(text)
	for begin, what := range map[string]string{"{": "a block", "function": "a declaration", "async function": "a declaration", "class": "a declaration"} {
		if !strings.HasPrefix(trimmed, begin) {
			continue
		}
		if _, err := parseScript([]byte("(" + text + "\n)")); err == nil {
			return fmt.Sprintf("what begins with %s is %s here: put it in parentheses", begin, what)
		}
	}
	return ""
}

// token says what the rest of a text begins with, without showing what may be
// a secret.
func token(rest string) string {
	if rest == "" {
		return "end"
	}
	l := js.NewLexer(parse.NewInputString(rest))
	kind, data := l.Next()
	switch {
	case kind == js.StringToken || rest[0] == '\'' || rest[0] == '"':
		return "text in quotes"
	case kind == js.TemplateToken || kind == js.TemplateStartToken || rest[0] == '`':
		return "template"
	case js.IsNumeric(kind) || rest[0] >= '0' && rest[0] <= '9':
		return "number"
	case js.IsIdentifier(kind) || kind == js.PrivateIdentifierToken:
		return "name"
	case kind == js.ErrorToken:
		r, _ := utf8.DecodeRuneInString(rest)
		return fmt.Sprintf("character %q", r)
	case bytes.ContainsAny(data, "\n\r"):
		return "line break"
	default:
		return string(data)
	}
}

// position is the line and column of a byte of the text.
func position(text string, at int) (line, column int) {
	line, column, _ = parse.Position(strings.NewReader(text), at)
	return line, column
}

// offset is where in the text a line and column of the parser are.
func offset(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		next := strings.IndexAny(text[at:], "\n\r\u2028\u2029")
		if next < 0 {
			return len(text)
		}
		at += next
		if strings.HasPrefix(text[at:], "\r\n") {
			at++
		}
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	for ; column > 1 && at < len(text); column-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}
