package jsexpr

import (
	"bytes"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tdewolff/parse/v2/js"
)

const (
	mask = "***"
	// shortest is the length of the shortest text that may be a secret, in
	// characters.
	shortest = 8
	// marked stands in the text where something is masked; UTF-8 never has it.
	marked = 0xFF
)

// MaskStrings is the text of an expression with the content of string and
// template literals replaced by *** where it could be a secret: where it has 8
// or more characters and is neither the name of an environment variable that
// is read nor a web address without user, query and fragment. Keys of objects
// stay. In a text that does not parse, all from the first quote on is replaced.
func MaskStrings(text string) string {
	p, err := read(text)
	if err != nil {
		if quote := strings.IndexAny(text, "'\"`"); quote >= 0 {
			return text[:quote+1] + mask
		}
		return text
	}
	// The parser tells no places, but its nodes share their bytes with the text.
	js.Walk(masker{env: readsOf(p.ast).env}, p.ast)
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i
		for end < len(text) && p.buf[end] == marked {
			end++
		}
		if end > i {
			b.WriteString(mask)
			i = end
			continue
		}
		b.WriteByte(text[i])
		i++
	}
	return b.String()
}

// masker marks what is to be masked.
type masker struct {
	env map[string]bool
}

// Enter is called for each node of the program.
func (m masker) Enter(n js.INode) js.IVisitor {
	switch n := n.(type) {
	case *js.LiteralExpr:
		if n.TokenType == js.StringToken {
			m.whole(inner(n.Data))
		}
	case *js.DirectivePrologueStmt:
		return nil
	case *js.TemplateExpr:
		if len(n.List) == 0 {
			m.whole(inner(n.Tail))
		} else {
			mark(inner(n.Tail))
		}
	case *js.TemplatePart:
		mark(inner(n.Value))
	case *js.PropertyName:
		if n.Computed == nil {
			return nil
		}
	case *js.MethodDecl:
		js.Walk(m, n.Name.Computed) // which the walk leaves out
	case *js.Field:
		js.Walk(m, n.Name.Computed)
	}
	return m
}

// Exit is called when all below a node has been seen.
func (m masker) Exit(js.INode) {}

// whole marks the content of a literal that is a text by itself.
func (m masker) whole(content []byte) {
	if !m.env[string(content)] && !harmlessURL(string(content)) {
		mark(content)
	}
}

func mark(content []byte) {
	if utf8.RuneCount(content) >= shortest && !bytes.Equal(content, []byte(mask)) {
		for i := range content {
			content[i] = marked
		}
	}
}

func harmlessURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) && u.Host != "" &&
		u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
