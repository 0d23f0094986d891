package patchedit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// value reads a value as it would stand in a layer.
func value(t testing.TB, yaml string) compose.Value {
	t.Helper()
	v, err := compose.ParseValue(compose.Source{}, []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// at is a path whose steps are separated by spaces.
func at(path string) Path { return strings.Fields(path) }

const template = `# Your own patch layer.
# Replace the [] below by your list.
[]
`

func TestSet(t *testing.T) {
	tests := []struct {
		name, text, at, value, want string
	}{
		{"a scalar", "- id: a\n  config:\n    port: 1\n", "0 config port", "8080", "- id: a\n  config:\n    port: 8080\n"},
		{"a scalar with a comment", "- port: 1   # the port\n", "0 port", "2", "- port: 2   # the port\n"},
		{"a comment with tabs", "- port: 1\t#\tthe port\n", "0 port", "2", "- port: 2\t#\tthe port\n"},
		{"an equal value written otherwise", "- {port: 0x10, name: \"x\"} # c\n", "0", "{port: 16, name: x}", "- {port: 0x10, name: \"x\"} # c\n"},
		{"a scoped name", "- id: a\n", "0 name", "'@scope/x'", "- id: a\n  name: '@scope/x'\n"},
		{"a scoped name as a key", "- config:\n    a: 1\n", "0 config @scope/x", "1", "- config:\n    a: 1\n    '@scope/x': 1\n"},
		{"an expression", "- port: 1\n", "0 port", "!!js ctx.port ?? 1", "- port: !!js ctx.port ?? 1\n"},
		{"an expression that needs quotes", "- port: 1\n", "0 port", "!!js 'a ? 1 : 2'", "- port: !!js 'a ? 1 : 2'\n"},
		{"in the place of an expression", "- port: !!js a ?? 1 # c\n", "0 port", "2", "- port: 2 # c\n"},
		{"a new key", "- id: a\n# about b\n- id: b\n", "0 disabled", "true", "- id: a\n  disabled: true\n# about b\n- id: b\n"},
		{"a new key before comments that follow", "- id: a\n  config: 1 # c\n\n  # d\n\n- id: b\n", "0 disabled", "true", "- id: a\n  config: 1 # c\n  disabled: true\n\n  # d\n\n- id: b\n"},
		{"a new key at the end without a line break", "- id: a", "0 disabled", "true", "- id: a\n  disabled: true"},
		{"a new key in a file of Windows", "- id: a\r\n  config:\r\n    a: 1\r\n", "0 config b", "{c: [1]}", "- id: a\r\n  config:\r\n    a: 1\r\n    b:\r\n      c:\r\n        - 1\r\n"},
		{"behind a text of several lines", "- a: |+\n    x\n\n- b: 1\n", "0 c", "2", "- a: |+\n    x\n\n  c: 2\n- b: 1\n"},
		{"behind a folded plain text", "- a: one\n    two\n", "0 c", "2", "- a: one\n    two\n  c: 2\n"},
		{"behind an empty value", "- a:\n- b:\n", "0 c", "2", "- a:\n  c: 2\n- b:\n"},
		{"an empty value", "- config: # c\n  b: 1\n", "0 config", "5", "- config: 5 # c\n  b: 1\n"},
		{"a mapping for an empty value", "- config: # c\n  b: 1\n", "0 config", "{a: 1}", "- config: # c\n    a: 1\n  b: 1\n"},
		{"a mapping for a scalar", "- config: 1 # c\n  b: 1\n", "0 config", "{a: 1}", "- config: # c\n    a: 1\n  b: 1\n"},
		{"a scalar for a mapping", "- config: # c\n    # d\n    a: 1 # e\n    # f\n    b: 1 # g\n  x: 1\n", "0 config", "5",
			"- config: 5 # c\n    # d\n    # e\n    # f\n    # g\n  x: 1\n"},
		{"another mapping", "- config:\n    # d\n    a: 1\n", "0 config", "{b: 1}", "- config:\n    # d\n    b: 1\n"},
		{"a mapping with one change", "- config:\n    # a\n    a: 1 # x\n    # b\n    b: [1]\n\n    c: 2\n", "0 config", "{a: 2, c: 2, d: {e: 1}}",
			"- config:\n    # a\n    a: 2 # x\n    # b\n\n    c: 2\n    d:\n      e: 1\n"},
		{"a mapping in another order", "- config:\n    # a\n    a: 1\n    b: 2\n", "0 config", "{b: 2, a: 1}", "- config:\n    # a\n    b: 2\n    a: 1\n"},
		{"a text of several lines", "- a: 1 # c\n  b: 2\n", "0 a", "\"x\\ny\\n\"", "- a: | # c\n    x\n    y\n  b: 2\n"},
		{"a text of several lines that begins with a space", "- a: 1\n", "0 a", "\" x\\ny\"", "- a: |2-\n     x\n    y\n"},
		{"a text of several lines, steps of four", "- id: a\n  config:\n      a: 1\n", "0 config a", "\" x\\ny\"", "- id: a\n  config:\n      a: |4-\n           x\n          y\n"},
		{"a text that keeps its last lines", "- a: 1\n\n- b: 2\n", "0 a", "\"x\\n\\n\"", "- a: \"x\\n\\n\"\n\n- b: 2\n"},
		{"a text that would swallow a comment", "- a: 1\n      # deep\n  b: 2\n", "0 a", "\"x\\ny\\n\"", "- a: \"x\\ny\\n\"\n      # deep\n  b: 2\n"},
		{"in the place of a literal", "- a: |- # c\n    x\n    # no comment\n\n  b: 2\n", "0 a", "1", "- a: 1 # c\n\n  b: 2\n"},
		{"in the place of a quoted text", "- a: \"x\n    y\" # c\n  b: 2\n", "0 a", "1", "- a: 1 # c\n  b: 2\n"},
		{"steps of four", "- id: a\n  config:\n      x:\n          y: 1\n", "0 config z", "{k: [1, {l: 2}]}", "- id: a\n  config:\n      x:\n          y: 1\n      z:\n          k:\n              - 1\n              - l: 2\n"},
		{"dashes below their key", "- insert:\n  - id: a\n    inject:\n    - x\n", "0 insert 0 config", "{l: [1]}", "- insert:\n  - id: a\n    inject:\n    - x\n    config:\n      l:\n      - 1\n"},
		{"wide dashes", "-   id: a\n    config:\n        x: 1\n", "1", "{id: b, config: {z: 1}}", "-   id: a\n    config:\n        x: 1\n-   id: b\n    config:\n        z: 1\n"},
		{"a new item", "- insert:\n    - id: a\n    # end\n- id: b\n", "0 insert 1", "{id: c, name: d}", "- insert:\n    - id: a\n    - id: c\n      name: d\n    # end\n- id: b\n"},
		{"an item in an item", "- a:\n  - - 1\n    - 2\n", "0 a 0 2", "3", "- a:\n  - - 1\n    - 2\n    - 3\n"},
		{"an empty item", "- l:\n  -\n  - a: 1\n", "0 l 0", "{b: 1}", "- l:\n  - b: 1\n  - a: 1\n"},
		{"an item with a comment inside", "- l:\n  - a: 1 # x\n    b: 2\n", "0 l 0", "[1]", "- l:\n  - - 1 # x\n"},
		{"an item with more comments inside", "- l:\n  - a: 1\n    # y\n    b: 2\n", "0 l 0", "[1]", "- l:\n  -\n    # y\n    - 1\n"},
		{"a list with fewer items", "- l:\n  - a # 1\n  - b # 2\n  - c # 3\n", "0 l", "[a, c]", "- l:\n  - a # 1\n  # 2\n  - c # 3\n"},
		{"a list with more items", "- l: [a, b]\n", "0 l", "[a, b, c]", "- l: [a, b, c]\n"},
		{"an empty list gets an item", "- l: [] # none\n", "0 l 0", "a", "- l: # none\n    - a\n"},
		{"an empty mapping gets a key", "- id: a\n  config: {}\n", "0 config port", "1", "- id: a\n  config:\n    port: 1\n"},
		{"an empty mapping in brackets gets a key", "- {id: a, config: {}}\n", "0 config port", "1", "- {id: a, config: {port: 1}}\n"},
		{"an empty mapping becomes a scalar", "- config:\n    a: 1\n    # b\n", "0 config", "{}", "- config: {}\n    # b\n"},
		{"in brackets", "- {a: 1, b: [x, y] } # c\n", "0 b 1", "'@z'", "- {a: 1, b: [x, \"@z\"] } # c\n"},
		{"a new key in brackets", "- {a: 1, b: [x, y] } # c\n", "0 c", "{d: 1}", "- {a: 1, b: [x, y], c: {d: 1} } # c\n"},
		{"a new key behind a comma", "- {a: 1, }\n", "0 c", "2", "- {a: 1, c: 2 }\n"},
		{"a new key in lines in brackets", "- {\n    a: 1, # x\n    b: 2 # y\n  }\n", "0 c", "3", "- {\n    a: 1, # x\n    b: 2, # y\n    c: 3\n  }\n"},
		{"a new key in lines behind a comma", "- {\n    a: 1, # x\n  }\n", "0 c", "3", "- {\n    a: 1, # x\n    c: 3\n  }\n"},
		{"an empty value in brackets", "- {a: , b, c:}\n", "0 a", "1", "- {a: 1 , b, c:}\n"},
		{"no value in brackets", "- {a: , b, c:}\n", "0 b", "1", "- {a: , b: 1, c:}\n"},
		{"nothing behind the colon in brackets", "- {a: , b, c:}\n", "0 c", "1", "- {a: , b, c: 1}\n"},
		{"JSON", `[{"a":1,"b":{"c":[1]}}]`, "0 b c 0", "x", `[{"a":1,"b":{"c":[x]}}]`},
		{"JSON without spaces", `[{"a":1}]`, "0 a", "x", `[{"a":x}]`},
		{"comments in brackets", "- l: [a, { # b\n    c: 1 }, d]\n", "0 l 1", "2", "- l: [a, 2 # b\n  , d]\n"},
		{"a pair in a list", "- l: [a: 1]\n", "0 l 0 a", "2", "- l: [a: 2]\n"},
		{"a key behind a question mark", "- ? a\n  : b # c\n", "0 a", "2", "- ? a\n  : 2 # c\n"},
		{"a key of several lines", "- ? |-\n    a\n    b\n  : 1\n  x: 1\n", "0 x", "2", "- ? |-\n    a\n    b\n  : 1\n  x: 2\n"},
		{"a key that is a number", "- 1: a\n  true: b\n", "0 true", "c", "- 1: a\n  true: c\n"},
		{"a key that is a number, added", "- a: 1\n", "0 5", "c", "- a: 1\n  '5': c\n"},
		{"an anchor that nobody names", "- config: &c # x\n    a: 1\n", "0 config a", "2", "- config: &c # x\n    a: 2\n"},
		{"in the place of an alias", "- a: &x 1\n  b: *x # c\n", "0 b", "2", "- a: &x 1\n  b: 2 # c\n"},
		{"beside an anchor", "- a: &x 1\n  b: *x # c\n", "0 c", "2", "- a: &x 1\n  b: *x # c\n  c: 2\n"},
		{"a tag that says nothing", "- a: !!str 1\n", "0 a", "'2'", "- a: '2'\n"},
		{"a path", "- a: !path x\n", "0 a", "/d/y", "- a: /d/y\n"},
		{"an equal path", "- a: !path x\n", "0 a", "/d/x", "- a: !path x\n"},
		{"markers and a directive", "\ufeff%YAML 1.2\n# c\n---\n- a: 1\n...\n# d\n", "0 a", "2", "\ufeff%YAML 1.2\n# c\n---\n- a: 2\n...\n# d\n"},
		{"the template", template, "0", "{id: a, disabled: true}", strings.Replace(template, "[]\n", "- id: a\n  disabled: true\n", 1)},
		{"the whole patch", "- id: a\n  # c\n  disabled: true\n", "0", "{id: a, disabled: false}", "- id: a\n  # c\n  disabled: false\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			v := value(t, test.value)
			got, err := Set(testSource, []byte(test.text), at(test.at), v)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("from\n%s%s", test.text, diff)
			}
			again, err := Set(testSource, got, at(test.at), v)
			if diff := cmp.Diff(string(got), string(again)); diff != "" || err != nil {
				t.Errorf("the second time: %v\n%s", err, diff)
			}
		})
	}
}

func TestDelete(t *testing.T) {
	tests := []struct {
		name, text, at, want string
	}{
		{"a key", "- id: a\n  # about b\n  b: 1 # x\n  c: 2\n", "0 b", "- id: a\n  c: 2\n"},
		{"a key and the comments above it", "- id: a\n  # one\n\n  # two\n  # three\n  b: 1\n", "0 b", "- id: a\n  # one\n\n"},
		{"comments that are indented otherwise", "- id: a\n  config:\n    x: 1\n    # deep\n  b: 1\n  c: 1\n", "0 b", "- id: a\n  config:\n    x: 1\n    # deep\n  c: 1\n"},
		{"a comment on the line above", "- id: a # one\n  b: 1\n", "0 b", "- id: a # one\n"},
		{"a block", "- id: a\n  config:\n    # y\n    x: |\n      z\n\n  c: 1\n", "0 config", "- id: a\n\n  c: 1\n"},
		{"the first key", "- id: a\n  b: 1\n", "0 id", "- b: 1\n"},
		{"the first key before a comment", "- id: a # x\n  # about b\n  b: 1\n", "0 id", "-\n  # about b\n  b: 1\n"},
		{"the only key", "- config:\n    # about a\n    a: 1\n    # end\n  x: 1\n", "0 config a", "- config: {}\n    # end\n  x: 1\n"},
		{"the only key with a comment on the line", "- config: &c # x\n    a: 1\n", "0 config a", "- config: &c {} # x\n"},
		{"the only key of a patch", "- a: 1\n- b: 1\n", "0 a", "- {}\n- b: 1\n"},
		{"the only item below its key", "- insert:\n  - id: a\n  x: 1\n", "0 insert 0", "- insert: []\n  x: 1\n"},
		{"an item", "- a: 1\n# about b\n- b: 1\n- c: 1\n", "1", "- a: 1\n- c: 1\n"},
		{"the last item without a line break", "- a: 1\n- b: 1", "1", "- a: 1"},
		{"the first of items in an item", "- l:\n  - - 1\n    - 2\n", "0 l 0 0", "- l:\n  - - 2\n"},
		{"the only patch", "# head\n\n# about a\n- id: a\n# end\n", "0", "# head\n\n[]\n# end\n"},
		{"the only patch below the head of the file", "# head\n- id: a\n", "0", "# head\n[]\n"},
		{"the first patch below the head of the file", "# head\n- id: a\n- id: b\n", "0", "# head\n- id: b\n"},
		{"the first patch below a modeline", "---\n# yaml-language-server: $schema=x\n# head\n- id: a\n- id: b\n", "0", "---\n# yaml-language-server: $schema=x\n# head\n- id: b\n"},
		{"in a file of Windows", "- id: a\r\n  b: 1\r\n  c: 1\r\n", "0 b", "- id: a\r\n  c: 1\r\n"},
		{"the first in brackets", "- {a: 1, b: 2}\n", "0 a", "- {b: 2}\n"},
		{"the last in brackets", "- { a: 1, b: 2 }\n", "0 b", "- { a: 1 }\n"},
		{"the only one in brackets", "- {a: 1, b: [ 2 ]}\n", "0 b 0", "- {a: 1, b: []}\n"},
		{"one in brackets before a comma", "- l: [a, b, ]\n", "0 l 1", "- l: [a, ]\n"},
		{"lines in brackets", "- l: [\n    a, # x\n    # about b\n    b, # y\n    c\n  ]\n", "0 l 1", "- l: [\n    a, # x\n    c\n  ]\n"},
		{"the last line in brackets", "- l: [\n    a, # x\n    b # y\n  ]\n", "0 l 1", "- l: [\n    a # x\n  ]\n"},
		{"the only line in brackets", "- l: [ # x\n    a\n  ]\n", "0 l 0", "- l: [ # x\n  ]\n"},
		{"a pair in a list", "- l: [a: 1, b]\n", "0 l 0 a", "- l: [{}, b]\n"},
		{"an alias", "- a: &x 1\n  b: *x\n", "0 b", "- a: &x 1\n"},
		{"nothing there", "- a: 1\n", "0 b", "- a: 1\n"},
		{"nothing there, and no parent", "- a: 1\n", "3 b 4", "- a: 1\n"},
		{"the only key below a note", "- config:\n    # copied from the layers below: a\n    # about a\n    a: 1\n", "0 config a", "- config: {}\n"},
		{"the first key below a note", "- config:\n    # copied from the layers below: a\n    a: 1\n    b: 1\n", "0 config a", "- config:\n    # copied from the layers below: a\n    b: 1\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Delete(testSource, []byte(test.text), at(test.at))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("from\n%s%s", test.text, diff)
			}
		})
	}
}

func TestAppend(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"to nothing", "", "- id: x\n  config:\n    - 1\n"},
		{"to blank lines", "\n\n", "- id: x\n  config:\n    - 1\n\n"},
		{"to comments", "# a\n\n# b\n", "# a\n\n# b\n- id: x\n  config:\n    - 1\n"},
		{"to a comment without a line break", "# a", "# a\n- id: x\n  config:\n    - 1"},
		{"to an empty document", "---\n...\n", "---\n- id: x\n  config:\n    - 1\n...\n"},
		{"to a byte-order mark", "\ufeff# a\r\n", "\ufeff# a\r\n- id: x\r\n  config:\r\n    - 1\r\n"},
		{"to the template", template, "# Your own patch layer.\n# Replace the [] below by your list.\n- id: x\n  config:\n    - 1\n"},
		{"to the template of Windows", strings.ReplaceAll(template, "\n", "\r\n"), "# Your own patch layer.\r\n# Replace the [] below by your list.\r\n- id: x\r\n  config:\r\n    - 1\r\n"},
		{"to [] with comments around", "# a\n[ # b\n  # c\n] # d\n# e\n", "# a\n# b\n# c\n# d\n- id: x\n  config:\n    - 1\n# e\n"},
		{"to [] behind a marker", "--- [] # b\n", "---\n# b\n- id: x\n  config:\n    - 1\n"},
		{"to patches", "- a: 1\n# end\n", "- a: 1\n# end\n- id: x\n  config:\n    - 1\n"},
		{"to patches without a line break", "- a: 1", "- a: 1\n- id: x\n  config:\n    - 1"},
		{"to patches with blank lines between", "- a: 1\n\n- b: 1\n\n\n", "- a: 1\n\n- b: 1\n\n- id: x\n  config:\n    - 1\n\n\n"},
		{"to patches before a marker", "- a: |+\n    x\n\n...\n# c\n", "- a: |+\n    x\n\n- id: x\n  config:\n    - 1\n...\n# c\n"},
		{"to indented patches", "  - a: 1\n", "  - a: 1\n  - id: x\n    config:\n      - 1\n"},
		{"to patches in brackets", "[{a: 1}]\n", "[{a: 1}, {id: x, config: [1]}]\n"},
		{"to patches in lines in brackets", "[\n  {\"a\": 1} # c\n]\n", "[\n  {\"a\": 1}, # c\n  {id: x, config: [1]}\n]\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := Append(testSource, []byte(test.text), value(t, "{id: x, config: [1]}"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("from\n%s%s", test.text, diff)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const again = "write the value out in the place of its aliases, then run the command again"
	tests := []struct {
		name, text, at, want, hint string
	}{
		{"inside a value that aliases name", "- a: &x\n    b: 1\n- c: *x\n", "0 a b",
			"editing cordis.patch.yml:2: aliases name a of the patch, so the edit would change other places too", again},
		{"a value that aliases name", "- a: &x 1\n- c: *x\n", "0 a",
			"editing cordis.patch.yml:1: aliases name a of the patch, so the edit would change other places too", again},
		{"through an alias", "- a: &x\n    b: 1\n- c: *x\n", "1 c b",
			"editing cordis.patch.yml:2: c of the patch is an alias, so the edit would change other places too", again},
		{"a value with an anchor in it", "- a:\n    b: &x 1\n- c: *x\n", "0 a",
			"editing cordis.patch.yml:1: aliases name a value in a of the patch, so the edit would change other places too", again},
		{"a key with an anchor", "- a: {&x b: 1}\n- c: *x\n", "0 a",
			"editing cordis.patch.yml:1: aliases name a value in a of the patch, so the edit would change other places too", again},
		{"a pair in a list", "- l: [a: 1]\n", "0 l 0 b",
			"editing cordis.patch.yml:1: a pair in a list has no room for another key", "write l.0.b of the patch by hand:\n    b: 5"},
		{"a key without a value", "- ? a\n  ? b\n", "0 a",
			"editing cordis.patch.yml:1: a key behind a question mark has no value", "write a of the patch by hand:\n    a: 5"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Set(testSource, []byte(test.text), at(test.at), 5.0)
			refused, ok := errors.AsType[*UneditableError](err)
			if !ok {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff([]string{test.want, test.hint}, []string{refused.Error(), refused.Hint()}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestDeleteRefused deletes what aliases elsewhere name, at every depth.
func TestDeleteRefused(t *testing.T) {
	for _, test := range []struct{ name, text, at, what string }{
		{"a patch", "- id: a\n  disabled: &d true\n- id: o\n  disabled: *d\n", "0", "a value in the patch"},
		{"a named patch", "- &p {id: a}\n- insert: [*p]\n", "0", "the patch"},
		{"a key", "- id: a\n  disabled: &d true\n- id: o\n  disabled: *d\n", "0 disabled", "disabled of the patch"},
		{"a mapping", "- id: a\n  config: {x: [1, &d 2]}\n- id: o\n  inject: [*d]\n", "0 config", "a value in config of the patch"},
	} {
		_, err := Delete(testSource, []byte(test.text), at(test.at))
		refused, ok := errors.AsType[*UneditableError](err)
		if !ok || !refused.Shared || fault.ClassOf(err) != fault.Composition {
			t.Errorf("%s: got %v", test.name, err)
			continue
		}
		want := "editing cordis.patch.yml:1: aliases name " + test.what + ", so the edit would change other places too"
		if got, _, _ := strings.Cut(strings.Replace(refused.Error(), ":2:", ":1:", 1), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", test.name, got, want)
		}
	}
	// Where the aliases go as well, nothing is in the way.
	got, err := Delete(testSource, []byte("- id: a\n  config: {x: &d 1, y: *d}\n- id: o\n"), at("0"))
	if diff := cmp.Diff("- id: o\n", string(got)); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

// TestKeyNames holds what a key is taken for against what compose reads.
func TestKeyNames(t *testing.T) {
	for _, key := range []string{
		"a", "A1", "a-b_c", "a.b", "yes", "on", "True", "TRUE", "true", "false", "Null", "NULL", "null", "~", "e5", "1e5", "0x1", "inf", ".inf", "NaN",
		"_a", "-a", "a-", "é", `"a"`, "'a'", "1", "01", "a b", "<<",
	} {
		text := []byte("- {" + key + ": 0}\n")
		v := value(t, key+": 0")
		m, ok := v.(*compose.Map)
		if !ok {
			t.Fatalf("%s is no key", key)
		}
		e := &editor{text: text}
		if err := e.read(); err != nil {
			t.Fatal(err)
		}
		got, ok := e.keyName(e.doc.root.entries[0].value.entries[0].key)
		for want := range m.All() {
			if !ok || got != want {
				t.Errorf("%s: got %q, %v, want %q", key, got, ok, want)
			}
		}
	}
}

func BenchmarkMergeMany(b *testing.B) {
	const keys = 500
	old, now := strings.Builder{}, &compose.Map{}
	old.WriteString("- id: a\n  config:\n")
	for i := range keys {
		fmt.Fprintf(&old, "    key%d: %d\n", i, i)
		now.Set(fmt.Sprintf("key%d", i), float64(i+i%2))
	}
	for b.Loop() {
		if _, err := Set(testSource, []byte(old.String()), at("0 config"), now); err != nil {
			b.Fatal(err)
		}
	}
}
