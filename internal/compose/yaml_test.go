package compose

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// jsonLines calls f with each line of a file in testdata.
func jsonLines[T any](t testing.TB, name string, f func(line int, item T)) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var item T
		if err := json.Unmarshal(lines.Bytes(), &item); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		f(n, item)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}

// encode is v as a document.
func encode(v Value) []byte {
	e := emitter{}
	e.node(v, 0, true)
	return append(e.out, '\n')
}

type yamlCase struct {
	Kind  string
	YAML  string
	Value json.RawMessage
	Dump  *string
	Error string
}

// fixtureValue reads the way that yaml.jsonl writes values down.
func fixtureValue(t *testing.T, raw json.RawMessage) Value {
	t.Helper()
	var v struct {
		Type    string
		Text    string
		Items   []json.RawMessage
		Entries [][2]json.RawMessage
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	switch v.Type {
	case "null", "undefined":
		return nil
	case "boolean":
		return v.Text == "true"
	case "number":
		switch v.Text {
		case "Infinity":
			return math.Inf(1)
		case "-Infinity":
			return math.Inf(-1)
		}
		f, err := strconv.ParseFloat(v.Text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case "string":
		return v.Text
	case "js":
		return Expr{v.Text}
	case "list":
		list := &List{}
		for _, item := range v.Items {
			list.Items = append(list.Items, fixtureValue(t, item))
		}
		return list
	case "map":
		m := &Map{}
		for _, entry := range v.Entries {
			var key string
			if err := json.Unmarshal(entry[0], &key); err != nil {
				t.Fatal(err)
			}
			m.Set(key, fixtureValue(t, entry[1]))
		}
		return m
	}
	t.Fatalf("unknown type %q", v.Type)
	return nil
}

// readsOtherwise names the classes of documents that are refused here, or read
// in another way than by js-yaml. Neither can be part of a layer that works.
func readsOtherwise(text string) string {
	for line := range strings.SplitSeq(text, "\n") {
		_, value, tagged := strings.Cut(line, "!!js ")
		if tagged && !strings.ContainsAny(value[:1], `"'|>`) && strings.Contains(value, ": ") {
			return "a !!js that is not one scalar"
		}
	}
	if len(text) > 1 && (text[0] == '|' || text[0] == '>') && text[1] >= '1' && text[1] <= '9' {
		return "a block indicator at the root"
	}
	return ""
}

func TestYAMLAsReference(t *testing.T) {
	otherwise := map[string]int{}
	jsonLines(t, "yaml.jsonl", func(line int, c yamlCase) {
		doc, err := decode([]byte(c.YAML))
		if c.Error != "" {
			if err == nil {
				t.Errorf("yaml.jsonl:%d: %q is read, the reference says: %s", line, c.YAML, c.Error)
			}
			return
		}
		want := fixtureValue(t, c.Value)
		if class := readsOtherwise(c.YAML); class != "" && (err != nil || !Equal(want, doc.value)) {
			otherwise[class]++
			return
		}
		if err != nil {
			t.Errorf("yaml.jsonl:%d: %q: %v", line, c.YAML, err)
			return
		}
		if !Equal(want, doc.value) {
			t.Errorf("yaml.jsonl:%d: %q:\nwant %s\n got %s", line, c.YAML, encode(want), encode(doc.value))
		}
		if c.Dump == nil {
			return
		}
		if diff := cmp.Diff(*c.Dump, string(encode(doc.value))); diff != "" {
			t.Errorf("yaml.jsonl:%d: %q: dump (-want +got):\n%s", line, c.YAML, diff)
		}
	})
	want := map[string]int{"a !!js that is not one scalar": 2, "a block indicator at the root": 1}
	if diff := cmp.Diff(want, otherwise); diff != "" {
		t.Errorf("documents that only the reference reads (-want +got):\n%s", diff)
	}
}
