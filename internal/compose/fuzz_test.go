package compose

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"
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
	} {
		f.Add([]byte(text))
	}
}

func FuzzParse(f *testing.F) {
	seedTexts(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		patches, err := ParsePatches(Source{File: "f", Dir: "/d"}, text)
		if err != nil {
			if syntax, ok := errors.AsType[*SyntaxError](err); ok && syntax.Problem == "" {
				t.Error("an error without words")
			}
			return
		}
		layers := []Layer{{Label: "one", Patches: patches}}
		tree := Apply(layers, nil)
		// A layer without patches is the identity.
		same := Apply([]Layer{{Label: "none"}, layers[0], {Label: "none"}}, nil)
		if dump := tree.Dump(); !bytes.Equal(dump, same.Dump()) {
			t.Errorf("layers without patches change\n%s", dump)
		}
		for row := range tree.All() {
			_, _ = row.ID(), row.Name()
		}
	})
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
