package jsexpr

import (
	"bytes"

	"github.com/tdewolff/parse/v2"
	"github.com/tdewolff/parse/v2/js"
)

// besides is where two operands stand side by side with nothing between them,
// `[1 2]` or `return a b`, which the parser lets pass; -1 if nowhere.
func besides(text string) int {
	buf := append(make([]byte, 0, len(text)+1), text...)
	ast, err := parseScript(buf)
	if err != nil {
		return -1
	}
	// A lexer cannot tell a regular expression from a division. The parser can,
	// and the nodes share their bytes with the text.
	js.Walk(quoter{}, ast)
	l := js.NewLexer(parse.NewInputBytes(buf))
	g := groups{{}}
	newLine := true
	for at := 0; ; {
		kind, data := l.Next()
		switch kind {
		case js.ErrorToken:
			return -1
		case js.LineTerminatorToken, js.CommentLineTerminatorToken:
			newLine = true
		case js.WhitespaceToken, js.CommentToken:
		default:
			if g.add(kind, string(data), newLine) {
				return at
			}
			newLine = false
		}
		at += len(data)
	}
}

// quoter makes texts in quotes of regular expressions.
type quoter struct{}

// Enter is called for each node of the program.
func (q quoter) Enter(n js.INode) js.IVisitor {
	switch n := n.(type) {
	case *js.LiteralExpr:
		if last := len(n.Data) - 1; n.TokenType == js.RegExpToken {
			for i := range n.Data {
				n.Data[i] = 'x'
			}
			n.Data[0], n.Data[last] = '\'', '\''
		}
	case *js.MethodDecl:
		js.Walk(q, n.Name.Computed) // which the walk leaves out
	case *js.Field:
		js.Walk(q, n.Name.Computed)
	}
	return q
}

// Exit is called when all below a node has been seen.
func (quoter) Exit(js.INode) {}

// group is what stands between two brackets, up to now.
type group struct {
	open, last js.TokenType
	word       string // last as written
	body       bool   // a function or a class begins in it
}

// groups is the open groups, innermost last; the first is the whole text.
type groups []group

// add takes the next token, and says whether something is missing before it.
func (s *groups) add(kind js.TokenType, word string, newLine bool) (missing bool) {
	top := &(*s)[len(*s)-1]
	if endsOperand(top.last) && startsOperand(kind) {
		if top.open == js.OpenBracketToken {
			body := kind == js.OpenBraceToken && top.body && (js.IsIdentifier(top.last) || top.last == js.CloseParenToken)
			missing = !body
		} else {
			missing = !newLine && !top.opensStatement(kind, word)
		}
	}
	top.body = top.body || kind == js.FunctionToken || kind == js.ClassToken
	top.last, top.word = kind, word
	switch kind {
	case js.OpenParenToken, js.OpenBracketToken, js.OpenBraceToken, js.TemplateStartToken:
		*s = append(*s, group{open: kind})
	case js.CloseParenToken, js.CloseBracketToken, js.CloseBraceToken, js.TemplateEndToken:
		if len(*s) > 1 {
			*s = (*s)[:len(*s)-1]
			(*s)[len(*s)-1].last = kind
		}
	case js.TemplateMiddleToken:
		top.last = js.TemplateStartToken
	}
	return missing
}

// opensStatement says whether, outside arrays, two tokens may stand side by
// side after all: behind a bracket, or because one is a word with a meaning.
func (g *group) opensStatement(kind js.TokenType, word string) bool {
	if kind == js.OpenBraceToken || g.last == js.CloseParenToken || g.last == js.CloseBraceToken || word == "of" {
		return true
	}
	switch g.word {
	case "get", "set", "static", "let", "of", "yield", "await":
		return true
	}
	return false
}

func endsOperand(kind js.TokenType) bool {
	switch kind {
	case js.StringToken, js.TemplateToken, js.TemplateEndToken, js.CloseParenToken, js.CloseBracketToken, js.CloseBraceToken,
		js.ThisToken, js.NullToken, js.TrueToken, js.FalseToken:
		return true
	}
	return js.IsNumeric(kind) || js.IsIdentifier(kind) && kind != js.AsyncToken
}

func startsOperand(kind js.TokenType) bool {
	switch kind {
	case js.StringToken, js.OpenBraceToken, js.EllipsisToken, js.ThisToken, js.NullToken, js.TrueToken, js.FalseToken, js.SuperToken,
		js.FunctionToken, js.ClassToken, js.ReturnToken, js.NewToken, js.TypeofToken, js.VoidToken, js.DeleteToken, js.NotToken, js.BitNotToken:
		return true
	}
	return js.IsNumeric(kind) || js.IsIdentifier(kind)
}

// badRegExp is what is wrong with a regular expression, or "". It knows the
// flags and the brackets.
func badRegExp(data []byte) string {
	end := bytes.LastIndexByte(data, '/')
	flags := data[end+1:]
	for i, flag := range flags {
		if !bytes.ContainsRune([]byte("dgimsuvy"), rune(flag)) || bytes.IndexByte(flags[:i], flag) >= 0 {
			return "a regular expression has flags that do not exist"
		}
	}
	depth, class := 0, false
	for i := 1; i < end; i++ {
		switch c := data[i]; {
		case c == '\\':
			i++
		case class:
			class = c != ']'
		case c == '[':
			class = true
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth < 0 {
				return "a regular expression closes a group that is not open"
			}
		}
	}
	if depth > 0 {
		return "a regular expression has a group without an end"
	}
	return ""
}
