package compose

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBracketsAsReference reads texts that yaml.v3 by itself refuses, or takes
// for others than js-yaml does. brackets.jsonl holds what js-yaml 4.3.2 says.
func TestBracketsAsReference(t *testing.T) {
	// These only js-yaml reads. None can be part of a layer that works, or else
	// they are too rare to be worth the trouble.
	refused := map[string]bool{
		"- &a: 1": true, "[&a? 1, *a?]": true, "- é: &é_ 1": true, "- {x: &b?}": true, "- [&b?]": true,
		"[:]": true, "[: ]": true, "[:,a]": true, "[a, ? ]": true, "%FOO bar\n---\n- a": true,
	}
	jsonLines(t, "brackets.jsonl", func(line int, c struct{ YAML, JSON, Error string }) {
		doc, err := decode([]byte(c.YAML))
		switch {
		case c.Error != "" || refused[c.YAML]:
			p, ok := errors.AsType[*problem](err)
			if !ok {
				t.Errorf("brackets.jsonl:%d: %q is read as %s, want: %s", line, c.YAML, Show(doc.value), c.Error)
			} else if p.line == 0 {
				t.Errorf("brackets.jsonl:%d: %q: no line in: %v", line, c.YAML, err)
			}
		case err != nil:
			t.Errorf("brackets.jsonl:%d: %q: %v", line, c.YAML, err)
		default:
			if diff := cmp.Diff(c.JSON, Show(doc.value)); diff != "" {
				t.Errorf("brackets.jsonl:%d: %q (-want +got):\n%s", line, c.YAML, diff)
			}
		}
	})
}

func TestShow(t *testing.T) {
	m := newMap([]pair{{"a", "x\ny"}, {"b", Expr{"1"}}, {"c", &List{Items: []Value{nil, 1.5, true}}}})
	if diff := cmp.Diff(`{"a":"x\ny","b":{"__jsExpr":"1"},"c":[null,1.5,true]}`, Show(m)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	long := &List{}
	for range 100_000 {
		long.Items = append(long.Items, "ten bytes")
	}
	if n := len(Show(long)); n < maxShown || n > maxShown+100 {
		t.Errorf("%d bytes of a long list are shown", n)
	}
}

// TestCursor looks places up in and out of order.
func TestCursor(t *testing.T) {
	c := cursor{text: []byte("aé b\r\n\nc\rd\n")}
	for _, p := range []struct {
		line, column int
		want         string
	}{
		{1, 3, " b\r\n\nc\rd\n"}, {1, 4, "b\r\n\nc\rd\n"}, {3, 1, "c\rd\n"}, {4, 1, "d\n"}, {1, 2, "é b\r\n\nc\rd\n"}, {4, 9, ""}, {2, 5, ""},
	} {
		if got := string(c.at(p.line, p.column)); got != p.want {
			t.Errorf("line %d, column %d: %q, want %q", p.line, p.column, got, p.want)
		}
	}
}

// TestManyAnchors takes no time that grows with the square of the text.
func TestManyAnchors(t *testing.T) {
	text := "- &a x\n- [" + strings.Repeat("*a, &b y, ", 50_000) + "]\n"
	if _, err := decode([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
