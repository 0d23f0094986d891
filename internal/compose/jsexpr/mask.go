package jsexpr

import (
	"bytes"
	"strings"

	"github.com/tdewolff/parse/v2/js"
)

const (
	mask = "***"
	// markedText and markedNumber stand in the text where something is masked;
	// UTF-8 never has them.
	markedText   = 0xFF
	markedNumber = 0xFE
)

// MaskLiterals is the text of an expression, which stands for a secret, with
// its texts, templates and numbers replaced by ***. Names of environment
// variables that it reads and keys of objects stay. In a text that does not
// parse, all from the first quote on is replaced.
func MaskLiterals(text string) string {
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
		for end < len(text) && p.buf[end] == p.buf[i] && p.buf[i] >= markedNumber {
			end++
		}
		switch {
		case end == i:
			b.WriteByte(text[i])
			end++
		case p.buf[i] == markedNumber:
			b.WriteString("'" + mask + "'") // so that it still is an expression
		default:
			b.WriteString(mask)
		}
		i = end
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
		switch n.TokenType {
		case js.StringToken:
			m.whole(inner(n.Data))
		case js.DecimalToken, js.IntegerToken, js.BinaryToken, js.OctalToken, js.HexadecimalToken:
			mark(n.Data, markedNumber)
		}
	case *js.DirectivePrologueStmt:
		return nil
	case *js.TemplateExpr:
		if len(n.List) == 0 {
			m.whole(inner(n.Tail))
		} else {
			mark(inner(n.Tail), markedText)
		}
	case *js.TemplatePart:
		mark(inner(n.Value), markedText)
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
	if !m.env[string(content)] {
		mark(content, markedText)
	}
}

func mark(content []byte, with byte) {
	if !bytes.Equal(content, []byte(mask)) {
		for i := range content {
			content[i] = with
		}
	}
}
