package compose

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// seedTexts gives a fuzz target the texts of the fixtures.
func seedTexts(f *testing.F) {
	f.Helper()
	jsonLines(f, "yaml.jsonl", func(_ int, c yamlCase) { f.Add([]byte(c.YAML)) })
	for _, b := range readRealBundles(f).Bundles {
		f.Add([]byte(b.Patch))
	}
	for _, text := range []string{
		"- &a {id: a, group: true, config: []}\n- *a\n- {id: a, insert: [*a]}\n",
		"- insert: [&g {id: g, group: true, config: []}]\n- {id: g, insert: [*g]}\n",
		"- a:\n    - b\n    -\n- c\n",
		"- \"\\ud83d\\ude00\"\n\t\n- {a:[1], b:}\n",
		"- id: a\n  config: !!js a ? b : c\n",
		"%YAML 1.2\n---\n- id: a\n...\n",
		"- |+\n  x\n\n- >2-\n    y\n",
		"- insert: [&r {id: a, name: p, config: {k: !path x, l: [../y, ~/z]}}, {id: g, group: true, config: [*r]}]\n- {id: a, config: {k: .}}\n",
		"- insert:\n    - {id: a, name: ./x.js}\n    - {id: b, name: ../x.js}\n",
	} {
		f.Add([]byte(text))
	}
}

func FuzzParse(f *testing.F) {
	seedTexts(f)
	rules := everywhere(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		patches, err := ParsePatches(Source{File: "f", Dir: "/d", Kind: PatchLayer, Root: "/d"}, text)
		if err != nil {
			if syntax, ok := errors.AsType[*SyntaxError](err); ok && syntax.Problem == "" {
				t.Error("an error without words")
			}
			return
		}
		layers := []Layer{{Label: "one", Patches: patches[:len(patches)/2]}, {Label: "two", Patches: patches[len(patches)/2:]}}
		before := layerTexts(layers)
		below := Apply(layers[:1], rules).Dump()
		tree := Apply(layers, rules)
		// A layer without patches is the identity.
		same := Apply([]Layer{{Label: "none"}, layers[0], {Label: "none"}, layers[1], {Label: "none"}}, rules)
		dump := tree.Dump()
		if !bytes.Equal(dump, same.Dump()) {
			t.Errorf("layers without patches change\n%s", dump)
		}
		if diff := cmp.Diff(string(below), string(Apply(layers[:1], rules).Dump())); diff != "" {
			t.Errorf("without the last layer (-before +after):\n%s", diff)
		}
		if diff := cmp.Diff(before, layerTexts(layers)); diff != "" {
			t.Errorf("layers changed (-before +after):\n%s", diff)
		}
		if left := tree.RelativePaths(rules); len(left) > 0 {
			t.Errorf("paths that are not absolute: %v", left)
		}
		dumpReadsBack(t, tree, dump)
	})
}

// dumpReadsBack checks that a dump is the rows of the tree.
func dumpReadsBack(t *testing.T, tree *Tree, dump []byte) {
	if len(tree.Rows) == 0 || len(dump) > 1<<20 {
		return
	}
	for _, row := range tree.Rows {
		if endsInSpace(row.value) {
			return // which the end of a run takes away, as in the reference
		}
	}
	doc, err := decode(dump)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "nested deeper") {
			t.Errorf("%s\ncannot be read: %v", dump, err)
		}
		return
	}
	if rows := rowsOf(tree); !Equal(rows, doc.value) {
		t.Errorf("%s\nis read as\n%s", dump, encode(doc.value))
	}
}

// endsInSpace says whether the last text in v ends with what JavaScript takes
// for white space.
func endsInSpace(v Value) bool {
	text := ""
	switch v := v.(type) {
	case string:
		text = v
	case Expr:
		text = v.Text
	case *List:
		return len(v.Items) > 0 && endsInSpace(v.Items[len(v.Items)-1])
	case *Map:
		last := false
		for _, v := range v.All() {
			last = endsInSpace(v)
		}
		return last
	}
	return strings.TrimRightFunc(text, isJSSpace) != text
}

func FuzzDumpReadsBack(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := decode(text)
		if err != nil {
			return
		}
		// In a list, as rows are: a root that is the text `...` would end the document.
		value := &List{Items: []Value{doc.value}}
		dump := encode(value)
		again, err := decode(dump)
		if err != nil {
			t.Fatalf("%s\ncannot be read: %v", dump, err)
		}
		if !Equal(value, again.value) {
			t.Fatalf("%s\nis read as\n%s", dump, encode(again.value))
		}
	})
}

// FuzzDiagnose looks for causes also where there are none.
func FuzzDiagnose(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		p := diagnose(text, errors.New("yaml: line 1: x"))
		if p.text == "" || p.line < 1 || p.line > bytes.Count(text, []byte("\n"))+bytes.Count(text, []byte("\r"))+1 || p.column > len(text)+1 {
			t.Errorf("%+v", p)
		}
		end := 0
		for _, tok := range lex(text).tokens {
			if tok.start < end || tok.end <= tok.start || tok.end > len(text) {
				t.Fatalf("token %+v behind %d", tok, end)
			}
			end = tok.end
		}
		if p := unreadable(text); (p == nil) != (utf8.Valid(text) && p == nil) {
			t.Errorf("%q is taken for readable", text)
		}
	})
}
