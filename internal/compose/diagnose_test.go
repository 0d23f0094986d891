package compose

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		problem      string
		remedy       string
	}{
		{"tab", "- id: hmr\n  config:\n\troot: []\n", 3, 1, "a tab indents the line", "indent with spaces"},
		{"tab behind spaces", "- id: hmr\n  config:\n  \troot: []\n", 3, 3, "a tab indents the line", "indent with spaces"},
		{"tab behind a dash", "- a\n-\tid: x\n  name: y\n", 2, 2, "a tab indents the line", "indent with spaces"},
		{"scope", "- insert:\n    - id: x\n      name: @scope/x # mine\n", 3, 13,
			"nothing may begin with @ without quotes", "quote it: '@scope/x'"},
		{"scope as an item", "- insert: [{id: a, inject: [@a/b, c]}]\n", 1, 29,
			"nothing may begin with @ without quotes", "quote it: '@a/b'"},
		{"scope as a key", "- id: a\n  config:\n    @a/b: 1\n", 3, 5,
			"nothing may begin with @ without quotes", "quote it: '@a/b'"},
		{"backtick", "- id: llm\n  config:\n    model: `x`\n", 3, 12,
			"nothing may begin with ` without quotes", "quote it: '`x`'"},
		{"percent", "- id: a\n  config: %d items\n", 2, 11,
			"nothing may begin with % without quotes", "quote it: '%d items'"},
		{"leftover list", "# mine\n[]\n- id: hmr\n", 2, 1,
			"the list ends with this [], but line 3 goes on", "delete the []: it is the whole list"},
		{"list before a list", "[{id: a}]\n- id: hmr\n", 2, 1,
			"this stands behind the list that begins in line 1", "put everything in one list"},
		{"list behind a list", "- id: hmr\n[]\n", 2, 1,
			"a list in brackets follows the entries of a list", "delete it: the list has entries already"},
		{"second document", "- id: hmr\n  disabled: true\n---\n- id: llm\n", 3, 1,
			"a second document begins", "delete the --- line: all patches are one list"},
		{"second document behind dots", "- id: hmr\n...\n- id: llm\n", 3, 1,
			"this stands behind the end of the document in line 2", "put everything in one list"},
		{"expression", "- id: hmr\n  disabled: !!js a ? b : c\n", 2, 13,
			"`: ` in an expression that is not quoted makes it a key", "quote the expression: !!js 'a ? b : c'"},
		{"expression with a quote", "- id: a\n  config: {}\n  disabled: !!js x === 'y' ? 1 : 2\n", 3, 13,
			"`: ` in an expression that is not quoted makes it a key", "quote the expression: !!js 'x === ''y'' ? 1 : 2'"},
		{"expression as an item", "- id: a\n  config:\n    - !!js a ? b : c\n", 3, 7,
			"`: ` in an expression that is not quoted makes it a key", "quote the expression: !!js 'a ? b : c'"},
		{"expression in braces", "- {id: hmr, disabled: !!js a ? b : c}\n", 1, 23,
			"`: ` in an expression that is not quoted makes it a key", "quote the expression: !!js 'a ? b : c'"},
		{"colon in a value in braces", "- {id: hmr, name: a: b, x: 1}\n", 1, 19,
			"`: ` in a value that is not quoted makes it a key", "quote it: 'a: b'"},
		{"colon in a value", "- id: a\n  name: b: c\n", 2, 9,
			"`: ` in a value that is not quoted makes it a key", "quote it: 'b: c'"},
		{"unclosed double quote", "- id: hmr\n  config:\n    root: \"unclosed\n    other: 1\n", 3, 11,
			"the quote is never closed", `close it with "`},
		{"unclosed single quote", "- id: hmr\n  config:\n    root: 'it''s\n    other: 1\n", 3, 11,
			"the quote is never closed", "close it with '"},
		{"quote closed by a later one", "- id: hmr\n  name: \"a\n  config: \"b\"\n", 2, 9,
			"the quote is not closed where it should be", `close it with " in its line`},
		{"text behind a quote", "- id: a\n  name: 'it's'\n", 2, 13,
			"text follows the closing quote", "quote the whole value; a quote inside is written ''"},
		{"text behind a double quote", "- id: a\n  name: \"a\" b\n", 2, 13,
			"text follows the closing quote", `quote the whole value; a quote inside is written \"`},
		{"escape", "- id: a\n  config: \"C:\\dir\"\n", 2, 14,
			`\d is no escape`, `write \\ for a backslash, or put the text in single quotes`},
		{"half a surrogate pair", "- id: a\n  config: \"\\ud83d\"\n", 2, 12,
			`\ud83d is half of a character`, "write the character itself"},
		{"unclosed bracket", "- id: hmr\n  config:\n    root: [1, 2\n- id: llm\n  disabled: true\n", 3, 11,
			"[ is never closed", "close it with ]"},
		{"unclosed brace", "- id: hmr\n  config: {a: [1]\n", 2, 11, "{ is never closed", "close it with }"},
		{"wrong bracket", "- id: a\n  config: {x: [}\n", 2, 16,
			"} closes nothing while the [ in line 2, column 15 is open", "write ] before it"},
		{"stray bracket", "- id: a\n  config: ]\n", 2, 11,
			"] closes nothing", "delete it, or quote the value it belongs to"},
		{"unknown anchor", "- id: hmr\n  config: *base\n", 2, 11,
			"alias *base names no anchor above", "quote it if the * belongs to the value: '*base'"},
		{"star", "- id: hmr\n  config: *.js files\n", 2, 11,
			"alias *.js names no anchor above", "quote it if the * belongs to the value: '*.js files'"},
		{"ampersand", "- id: hmr\n  config: &é 1\n", 2, 11,
			"an anchor is named with letters, digits, - and _", "quote it if the & belongs to the value: '&é 1'"},
		{"comparison", "- id: a\n  version: >=1.0 <2\n", 2, 12,
			"a value that begins with > without quotes is the head of a block of text", "quote it: '>=1.0 <2'"},
		{"shallow key", "- id: hmr\n  disabled: true\n config: 1\n", 3, 2,
			"the indentation fits no line above", "indent it by 2 spaces, as line 1"},
		{"shallow key in a list", "- insert:\n    - id: a\n      name: a\n     config: 1\n", 4, 6,
			"the indentation fits no line above", "indent it by 6 spaces, as line 2"},
		{"shallow dash", "- insert:\n    - id: a\n   - id: b\n", 3, 4,
			"the indentation fits no line above", "indent it by 4 spaces, as line 2"},
		{"deep key", "- id: hmr\n   config: 1\n", 2, 4,
			"the line is indented deeper than the one above, which has its value already", "indent it by 2 spaces, as line 1"},
		{"missing dash", "- id: hmr\n  disabled: true\nid: llm\ndisabled: true\n", 3, 1,
			"the line is no entry of the list that line 1 began", "begin it with `- `, or indent it deeper than the dash in line 1"},
		{"dash without a space", "- id: hmr\n-id: llm\n", 2, 1,
			"the dash of an entry stands before a space", "write a space behind the dash"},
		{"entry among keys", "- id: a\n  config:\n    x: 1\n    - y\n", 4, 5,
			"an entry of a list stands among keys", "indent it less, as the list it belongs to"},
		{"key without a colon", "- id: a\n  disabled\n  name: x\n", 2, 3,
			"a key without `: `", "write `: ` and a value behind the key"},
		{"colon without a space", "- id: a\n  name:x\n  disabled: true\n", 2, 3,
			"a key without `: `", "write a space behind the colon: name: x"},
		{"colon of the first key without a space", "- id:hmr\n  disabled: true\n", 1, 3,
			"a key without `: `", "write a space behind the colon: id: hmr"},
		{"control character", "- id: a\n  name: \"\x07\"\n", 2, 10,
			"the character U+0007 cannot stand in YAML", `delete it, or write it as an escape: "\a"`},
		{"latin-1", "- id: caf\xe9\n", 1, 10, "the byte 0xe9 is not UTF-8", "save the file as UTF-8"},
		{"utf-16", "\xff\xfe-\x00", 1, 1, "the file is UTF-16", "save the file as UTF-8"},
		{"two commas", "- a: 1\n- b: 2\n- c: 3\n- {a: 1,, c: 2}\n", 4, 9,
			"a comma stands behind no value", "delete it"},
		{"two commas in line 1", "- {a: 1,, c: 2}\n", 1, 9, "a comma stands behind no value", "delete it"},
		{"comma at first", "- id: a\n  config: [, 1]\n", 2, 12, "a comma stands behind no value", "delete it"},
		{"alias with an anchor", "- &x a\n- {a: &x *x}\n", 2, 10,
			"an alias has an anchor or tag", "delete what stands before it"},
		{"two anchors", "- &a &b c\n", 1, 6, "a value has two anchors", "delete one of them"},
		{"directive", "# mine\n%FOO bar\n- id: a\n", 2, 1,
			"a line that begins with % is a directive, but no --- follows", "delete the line"},
		{"directive alone", "%FOO bar", 1, 1,
			"a line that begins with % is a directive, but no --- follows", "delete the line"},
		{"unknown directive", "%FOO bar\n---\n- id: a\n", 1, 0, "found unknown directive name", ""},
		{"undefined tag handle", "- a\n- !x!y z\n", 2, 0, "found undefined tag handle", ""},
		{"undefined tag handle in line 1", "- !x!y z\n", 1, 0, "found undefined tag handle", ""},
		{"no comma", "- id: a\n  config: {x: [1] y: 2}\n", 2, 19,
			"no comma stands between two values", "write a comma before it"},
		{"no comma between lines", "- id: a\n  config: ['x'\n    'y']\n", 3, 5,
			"no comma stands between two values", "write a comma before it"},
		{"bracket in a value", "- {id: a, name: b[0]}\n", 1, 18,
			"no comma stands between two values", "write a comma before it, or quote the whole value"},
		{"two colons", "- {id: : a}\n", 1, 8,
			"a second colon stands behind a key", "delete it, or quote the value it belongs to"},
		{"dash in brackets", "- id: a\n  config: [x, - y]\n", 2, 15,
			"no value in brackets begins with a - by itself", "delete it, or quote the value: '- y'"},
		{"dash alone in brackets", "- {b: [-1, -]}\n", 1, 12, "a - by itself is no value", "quote it: '-'"},
		{"question mark alone in brackets", "- {b: [\u2028, ?]}\n", 1, 11, "a ? by itself is no value", "quote it: '?'"},
		{"question mark in a message", "- {a?b: x: y?}\n", 1, 9,
			"`: ` in a value that is not quoted makes it a key", "quote it: 'x: y?'"},
		{"anchor before a colon", "- a\n- &a: 1\n", 2, 3,
			"the anchor &a: is not named with letters, digits, - and _ alone",
			"write a space behind the name, or quote what the & belongs to"},
		{"alias before a colon", "- &a b\n- *a: 1\n", 2, 3,
			"alias *a: names no anchor above", "quote it if the * belongs to the value: '*a:'"},
		{"duplicate key", "- id: hmr\n  disabled: true\n  disabled: false\n", 3, 3,
			`duplicated mapping key "disabled"`, "keep one of the two"},
		{"unknown tag", "- id: hmr\n  config: !env HOME\n", 2, 11,
			"unknown tag !env", "quote the value if the ! belongs to it"},
		{"unknown tag of YAML", "- id: hmr\n  config: !!binary aGk=\n", 2, 11,
			"unknown tag !!binary", "delete the tag; the only one beside YAML's own is `!!js`"},
		{"empty expression", "- id: hmr\n  disabled: !!js\n", 2, 13,
			"`!!js` without an expression", "write the expression behind `!!js`, or delete the tag"},
		{"expression as a list", "- id: hmr\n  config: !!js [a]\n", 2, 11,
			"`!!js` takes one scalar", "write the expression as one quoted text: !!js '…'"},
		{"wrong type", "- id: hmr\n  config: !!int x\n", 2, 11, `"x" cannot be !!int`, ""},
		{"mapping as a key", "- id: hmr\n  config:\n    {a: 1}: 2\n", 3, 5,
			"a mapping cannot be a key", "use a text as the key"},
		{"alias of itself", "- id: hmr\n  config: &a [*a]\n", 2, 15,
			"alias *a stands inside the value that it names", "write the value out"},
		{"too deep", "- " + strings.Repeat("[", 120) + strings.Repeat("]", 120) + "\n", 1, 102,
			"nested deeper than 100 levels", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParsePatches(Source{File: "/x/p.yml", Dir: "/x"}, []byte(c.text))
			got, ok := errors.AsType[*SyntaxError](err)
			if !ok {
				t.Fatalf("error is %v", err)
			}
			want := &SyntaxError{"/x/p.yml", BundleLayer, c.line, c.column, c.problem, c.remedy}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if fault.ClassOf(err) != fault.Composition || fault.Hint(err) != c.remedy {
				t.Errorf("class %v, hint %q", fault.ClassOf(err), fault.Hint(err))
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		kind             Kind
		text, want, hint string
	}{
		{BundleLayer, "- id: a\n  b: [\n", "failed to parse patches /x/p.yml:2:6: [ is never closed", "close it with ]"},
		{PatchLayer, "- id: a\n  b: [\n", "failed to parse overlay /x/p.yml:2:6: [ is never closed", "close it with ]"},
		{BundleLayer, "", "patches /x/p.yml must be a top-level YAML array of loader patch entries", "an empty layer is written []"},
		{PatchLayer, "# only\n", "overlay /x/p.yml must be a top-level YAML array of loader patch entries", "an empty layer is written []"},
		{PatchLayer, "# mine\nid: a\n", "overlay /x/p.yml:2:1 must be a top-level YAML array of loader patch entries",
			"begin every patch with `- ` at the start of a line; an empty layer is written []"},
		{BundleLayer, "- id: a\n- b\n", "patches entry 2 in /x/p.yml:2:3 must be a mapping (a loader patch entry)",
			"write `- id: …` with the keys to override, or `- insert:` with rows"},
		{PatchLayer, "- ~\n", "overlay entry 1 in /x/p.yml:1:3 must be a mapping (a loader patch entry)",
			"write `- id: …` with the keys to override, or `- insert:` with rows"},
		{BundleLayer, "- insert: {id: a}\n", "patches entry 1 in /x/p.yml:1:3 must insert a list of rows",
			"write each row as an entry of its own: - insert: [{id: …, name: …}]"},
		{BundleLayer, "- insert: [null]\n", "patches entry 1 in /x/p.yml:1:3 must insert a list of rows",
			"write each row as an entry of its own: - insert: [{id: …, name: …}]"},
	} {
		_, err := ParsePatches(Source{File: "/x/p.yml", Dir: "/x", Kind: c.kind}, []byte(c.text))
		if err == nil {
			t.Errorf("%q is read", c.text)
			continue
		}
		if diff := cmp.Diff([]string{c.want, c.hint}, []string{err.Error(), fault.Hint(err)}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.text, diff)
		}
		if fault.ClassOf(err) != fault.Composition {
			t.Errorf("%q: class %v", c.text, fault.ClassOf(err))
		}
	}
}
