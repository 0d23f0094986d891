package patchedit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"dsh/internal/compose"
)

// testSource is a layer in which every construct may stand.
var testSource = compose.Source{File: "cordis.patch.yml", Dir: "/d", Kind: compose.PatchLayer, UserHome: "/h"}

// bundle is a public bundle's patch file.
type bundle struct {
	Name  string `json:"name"`
	Patch string `json:"patch"`
}

func readBundles(t testing.TB) []bundle {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "real-bundles.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bundles []bundle
	if err := json.Unmarshal(data, &bundles); err != nil {
		t.Fatal(err)
	}
	return bundles
}

// readDialect is the texts of the dialect's fixtures.
func readDialect(t testing.TB) []string {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", "yaml.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var texts []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c struct {
			YAML string `json:"yaml"`
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, c.YAML)
	}
	return texts
}

// oddTexts are texts whose nodes are not where one would look for them.
var oddTexts = []string{
	"",
	"# nothing\n",
	"---\n...\n",
	"%YAML 1.2\n# c\n---\n- a\n...\n# behind\n",
	"\ufeff- a: 1\r\n  b: [x,\r\n   y]\r\n",
	"- a:\n    - b\n    -\n- c\n",
	"- a:\n  - b\n  -\n-\n",
	"- - - x\n    - y\n  - z\n",
	"- a: |+\n    x\n\n\n  b: >2-\n     y\n  c: |\n   z",
	"- |\n # no comment\n- >+\n\n\n- 'it''s\n  # here'\n- \"a\\\"\n  b\"\n",
	"- plain\n  of # comment\n- two\n  lines: 1\n",
	"- &a !!map\n  x: &b 1\n  y: *b\n- &c k: v\n  &d l: *a\n- !!str &e f\n- &g\n- &h\n  &i j: 1\n",
	"- ? a\n  : b\n  ? c\n  ? [d, e]\n  : - f\n    - g\n  h: 1\n",
	"- {a, b: , c: 1, ? d : e, \"f\":g, 'h': {i: [j: k, l]},}\n",
	"- [a, # c\n   b # d\n   , {\n c: 1 }\n  ]\n",
	"- {a:[1], b: x?, c: ::}\n",
	"- a: !!js x ? y\n  b: !!js >-\n    1 +\n    2\n",
	"- url: http://x:1/#y\n  t: a#b\n  d: --- # c\n",
	"-\ta: 1\n- b:\t2\t# c\n",
	"  - a\n  - b\n",
	"[]",
	"[ # c\n]\n",
	"- \n- \n",
	"-\n  - a\n-\n  b: 1\n",
	"- a:\n  b:\n  - 1\n  c:\n\n    d: 1\n",
}

func TestReaderSeesWhatComposeReads(t *testing.T) {
	texts := append(readDialect(t), oddTexts...)
	for _, b := range readBundles(t) {
		texts = append(texts, b.Patch)
	}
	for _, text := range texts {
		v, err := compose.ParseValue(testSource, []byte(text))
		if err != nil {
			continue
		}
		e := &editor{src: testSource, text: []byte(text)}
		if err := e.read(); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if err := e.agrees(e.doc.root, v); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// agrees says where the node is another value than v.
func (e *editor) agrees(n *node, v compose.Value) error {
	if n != nil && n.kind == aliasNode {
		return nil
	}
	switch v := v.(type) {
	case *compose.Map:
		if v.Len() == 0 && n != nil && n.kind == emptyNode {
			return nil
		}
		if n == nil || n.kind != mappingNode || len(n.entries) != v.Len() {
			return fmt.Errorf("no mapping of %d keys: %+v", v.Len(), n)
		}
		for key, value := range v.All() {
			i := e.member(n, key)
			if i == len(n.entries) {
				if e.isAliasKey(n) {
					continue
				}
				return fmt.Errorf("no key %q", key)
			}
			if err := e.agrees(n.entries[i].value, value); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
		}
	case *compose.List:
		if len(v.Items) == 0 && n != nil && n.kind == emptyNode {
			return nil
		}
		if n == nil || n.kind != sequenceNode || len(n.entries) != len(v.Items) {
			return fmt.Errorf("no list of %d items: %+v", len(v.Items), n)
		}
		for i, item := range v.Items {
			if err := e.agrees(n.entries[i].value, item); err != nil {
				return fmt.Errorf("%d: %w", i, err)
			}
		}
	case nil:
		if n == nil {
			return nil
		}
		return e.sameScalar(n, v)
	case compose.Expr:
		if n != nil && n.kind == mappingNode && len(n.entries) == 1 {
			return nil
		}
		return e.sameScalar(n, v)
	default:
		return e.sameScalar(n, v)
	}
	return nil
}

func (e *editor) isAliasKey(n *node) bool {
	for _, entry := range n.entries {
		if entry.key != nil && entry.key.kind == aliasNode {
			return true
		}
	}
	return false
}

// sameScalar reads the node alone.
func (e *editor) sameScalar(n *node, v compose.Value) error {
	if n == nil || n.kind != scalarNode && n.kind != emptyNode {
		return fmt.Errorf("no scalar: %+v", n)
	}
	text := e.text[n.start:n.end]
	if bytes.ContainsAny(text, "\r\n") {
		return nil // its lines mean nothing elsewhere
	}
	got, err := compose.ParseValue(e.src, append([]byte("- "), text...))
	if err != nil {
		got, err = compose.ParseValue(e.src, []byte("["+string(text)+"]"))
	}
	if list, ok := got.(*compose.List); ok && len(list.Items) == 1 {
		got = list.Items[0]
	}
	if err != nil || !compose.Equal(got, v) {
		return fmt.Errorf("%q is no %s", text, compose.Show(v))
	}
	return nil
}

func TestReaderNeverPanics(t *testing.T) {
	for _, text := range append(readDialect(t), oddTexts...) {
		for i := range text {
			read([]byte(text[:i]))
			read([]byte(text[i:]))
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range append(readDialect(f), oddTexts...) {
		f.Add([]byte(text))
	}
	for _, b := range readBundles(f) {
		f.Add([]byte(b.Patch))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		doc, err := read(text)
		if err != nil {
			return
		}
		checkPlaces(t, doc.root, 0, len(text), strconv.Quote(string(text)))
	})
}

// checkPlaces looks whether nodes stand inside of what holds them, in order.
func checkPlaces(t *testing.T, n *node, start, end int, text string) {
	t.Helper()
	if n == nil {
		return
	}
	if n.start < start || n.end > end || n.start > n.body || n.body > n.end {
		t.Fatalf("%s: a node from %d (content %d) to %d, between %d and %d", text, n.start, n.body, n.end, start, end)
	}
	at := n.start
	for _, e := range n.entries {
		if e.start < at || e.end < e.start || e.end > n.end {
			t.Fatalf("%s: an entry from %d to %d, behind %d", text, e.start, e.end, at)
		}
		checkPlaces(t, e.key, e.start, e.end, text)
		checkPlaces(t, e.value, e.start, e.end, text)
		at = e.end
	}
}
