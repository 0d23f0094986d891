package compose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// parseLayers makes layers L1, L2, … of texts.
func parseLayers(t testing.TB, texts ...string) []Layer {
	t.Helper()
	var layers []Layer
	for i, text := range texts {
		patches, err := ParsePatches(Source{File: "layer", Dir: "/b"}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, Layer{Label: "L" + string(rune('1'+i)), Patches: patches})
	}
	return layers
}

func TestApplyCorners(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers []string
		dump   string // lines
		warns  string // lines
	}{
		{"nothing", nil, "", ""},
		{"an empty layer", []string{"[]"}, "", ""},
		{
			"ids differ by type",
			[]string{"- insert: [{id: 1}, {id: '1'}]", "- {id: 1, a: x}\n- {id: '1', b: y}"},
			"# == L1, patched by L2\n- id: 1\n  a: x\n- id: '1'\n  b: 'y'", "",
		},
		{
			"an id that is false is none",
			[]string{"- insert: [{id: 0}, {id: ''}, {id: false}]\n- {id: 0, x: 1}\n- {id: '', x: 1}\n- {x: 1}\n- {id: 0, insert: [{id: a}]}"},
			"# == L1\n- id: 0\n- id: ''\n- id: false\n- id: a",
			"[L1] patch: id is required for non-insert patches\n[L1] patch: id is required for non-insert patches\n[L1] patch: id is required for non-insert patches",
		},
		{
			"an empty list inserts, null overrides",
			[]string{"- insert: []\n- {id: a, insert: []}\n- {id: a, insert: null}"},
			"", "[L1] patch insert: entry \"a\" not found\n[L1] patch: entry \"a\" not found",
		},
		{
			"a text inserts its characters",
			[]string{"- insert: aé"}, "# == L1\n- a\n- é", "",
		},
		{
			"the last of two rows with one id is patched",
			[]string{"- insert: [{id: a}, {id: a}]", "- {id: a, x: 1}"},
			"# == L1\n- id: a\n# == L1, patched by L2\n- id: a\n  x: 1", "",
		},
		{
			"a name is an assertion",
			[]string{"- insert: [{id: a, name: p}, {id: b}]\n- {id: a, name: q, x: 1}\n- {id: b, name: q}\n- {id: a, name: p, x: 2}\n- {id: a, name: '', y: 3}"},
			"# == L1\n- id: a\n  name: p\n  x: 2\n  'y': 3\n- id: b",
			"[L1] patch: name mismatch for \"a\" (expected \"p\", got \"q\"), skipping\n[L1] patch: name mismatch for \"b\" (expected undefined, got \"q\"), skipping",
		},
		{
			"what is no group takes no rows",
			[]string{"- insert: [{id: g, name: 'cordis:group', config: []}]\n- {id: g, insert: [{id: x}]}"},
			"# == L1\n- id: g\n  name: cordis:group\n  config: []", "[L1] patch insert: entry \"g\" is not a group",
		},
		{
			"a group without a list gets one",
			[]string{"- insert: [{id: g, group: true, config: {a: 1}}]", "- {id: g, insert: []}", "- {id: g, insert: []}"},
			"# == L1, patched by L2\n- id: g\n  group: true\n  config: []", "",
		},
		{
			"rows that an override brings are not found, those it removes are, without effect",
			[]string{
				"- insert: [{id: g, group: true, config: [{id: old}]}]",
				"- {id: g, config: [{id: new}]}",
				"- {id: old, x: 1}\n- {id: new, x: 1}",
			},
			"# == L1, patched by L2\n- id: g\n  group: true\n  config:\n    - id: new", "[L3] patch: entry \"new\" not found",
		},
		{
			"rows of a group that becomes one later are not found",
			[]string{"- insert: [{id: g, config: [{id: a}]}]\n- {id: g, group: true}\n- {id: a, x: 1}"},
			"# == L1\n- id: g\n  config:\n    - id: a\n  group: true", "[L1] patch: entry \"a\" not found",
		},
		{
			"an override with what is there already changes nothing",
			[]string{"- insert: [{id: a, x: .nan, y: {b: 1}}]", "- {id: a, x: null}\n- {id: a, y: {b: 1}}"},
			"# == L1\n- id: a\n  x: null\n  'y':\n    b: 1", "",
		},
		{
			"the order of keys is a change",
			[]string{"- insert: [{id: a, y: {b: 1, c: 2}}]", "- {id: a, y: {c: 2, b: 1}}"},
			"# == L1, patched by L2\n- id: a\n  'y':\n    c: 2\n    b: 1", "",
		},
		{
			"a change that the same layer takes back is none",
			[]string{"- insert: [{id: a, x: 1}]", "- {id: a, x: 2}\n- {id: a, x: 1}"},
			"# == L1\n- id: a\n  x: 1", "",
		},
		{
			"a list is compared with what it was before the layer",
			[]string{
				"- insert: [{id: g, group: true, config: [{id: a, x: 1}]}]",
				"- {id: a, x: 2}\n- {id: g, config: [{id: a, x: 1}]}",
			},
			"# == L1\n- id: g\n  group: true\n  config:\n    - id: a\n      x: 1", "",
		},
		{
			"and not with what the layer made of it",
			[]string{
				"- insert: [{id: g, group: true, config: [{id: a, x: 1}]}]",
				"- {id: a, x: 2}\n- {id: g, insert: [{id: b}]}\n- {id: g, config: [{id: a, x: 2}, {id: b}]}",
			},
			"# == L1, patched by L2\n- id: g\n  group: true\n  config:\n    - id: a\n      x: 2\n    - id: b", "",
		},
		{
			"a change deep in a group shows at its top",
			[]string{
				"- insert: [{id: g, group: true, config: [{id: h, group: true, config: [{id: a}]}]}, {id: z}]",
				"- {id: h, insert: [{id: b}]}", "- {id: b, x: 1}",
			},
			"# == L1, patched by L2, L3\n- id: g\n  group: true\n  config:\n    - id: h\n      group: true\n      config:\n        - id: a\n        - id: b\n          x: 1\n# == L1\n- id: z", "",
		},
		{
			"aliases are one row in several places",
			[]string{"- insert: [&a {id: a}, *a, {id: o, config: {in: *a}}, {id: z}]", "- {id: a, x: 1}"},
			"# == L1, patched by L2\n- id: a\n  x: 1\n- id: a\n  x: 1\n- id: o\n  config:\n    in:\n      id: a\n      x: 1\n# == L1\n- id: z", "",
		},
		{
			"a row that contains itself is left out",
			[]string{"- insert: [&g {id: g, group: true, config: []}, {id: a}]\n- {id: g, insert: [*g]}"},
			"# == L1\n- id: a", "[L1] entry \"g\" left out: written out with all of its aliases it is too large",
		},
		{
			"so is one that a repeated patch puts into itself",
			[]string{"- insert: [{id: g, group: true}]\n- &p {id: g, insert: [{id: g, group: true}]}\n- *p\n- *p"},
			"", "[L1] entry \"g\" left out: written out with all of its aliases it is too large",
		},
		{
			"a list goes on behind an empty entry, as in js-yaml",
			[]string{"- insert:\n    - id: a\n      config:\n        - x\n        -\n- insert: [{id: b}]\n- insert: [{id: c}]"},
			"# == L1\n- id: a\n  config:\n    - x\n    - null\n    - insert:\n        - id: b\n- id: c", "",
		},
		{
			"names that are paths become URLs, in groups as well, and nowhere else",
			[]string{"- insert: [{id: a, name: ./x y.js}, {id: g, name: 'cordis:group', config: [{name: ../n}, {name: /r#}]}, {name: 'n/./x', config: {name: ./z}}]\n- {id: a, name: ./x y.js}"},
			"# == L1\n- id: a\n  name: file:///b/x%20y.js\n- id: g\n  name: cordis:group\n  config:\n    - name: file:///n\n    - name: file:///r%23\n- name: n/./x\n  config:\n    name: ./z",
			"[L1] patch: name mismatch for \"a\" (expected \"file:///b/x%20y.js\", got \"./x y.js\"), skipping",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := Apply(parseLayers(t, c.layers...), nil)
			if diff := cmp.Diff(c.dump+"\n", string(tree.Dump())); diff != "" {
				t.Errorf("dump (-want +got):\n%s", diff)
			}
			var warns []string
			for _, w := range tree.Warnings {
				warns = append(warns, w.String())
			}
			if diff := cmp.Diff(c.warns, strings.Join(warns, "\n")); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

// Every layer doubles what the one before brought: written out the tree would
// have 2^40 rows.
func TestAliasBomb(t *testing.T) {
	text := "- insert: [&r0 {id: r0}"
	for i := range 40 {
		text += ", &r" + itoa(i+1) + " {id: r" + itoa(i+1) + ", group: true, config: []}"
	}
	text += "]\n"
	for i := range 40 {
		text += "- {id: r" + itoa(i+1) + ", insert: [*r" + itoa(i) + ", *r" + itoa(i) + "]}\n"
	}
	tree := Apply(parseLayers(t, text, "- {id: r0, x: 1}"), nil)
	if len(tree.Rows) == 0 || len(tree.Warnings) == 0 || len(tree.Dump()) > 2*maxTree {
		t.Errorf("%d rows, %d warnings", len(tree.Rows), len(tree.Warnings))
	}

	text = "- a0: &a0 " + strings.Repeat("x", 1000) + "\n"
	for i := range 40 {
		text += "  a" + itoa(i+1) + ": &a" + itoa(i+1) + " [*a" + itoa(i) + ", *a" + itoa(i) + "]\n"
	}
	if _, err := ParsePatches(Source{File: "f", Dir: "/"}, []byte(text)); err == nil ||
		!strings.Contains(err.Error(), "aliases stand for more than 16 MiB") {
		t.Errorf("error is %v", err)
	}
}

func itoa(i int) string { return string(appendNumber(nil, float64(i))) }

func TestFileURL(t *testing.T) {
	for _, c := range []struct{ dir, name, want string }{
		{"/d", "./x", "file:///d/x"},
		{"/d/e", "../x", "file:///d/x"},
		{"/d", "../../../x", "file:///x"},
		{"/d", "./a/", "file:///d/a/"},
		{"/d", "/a//b/../c/.", "file:///a/c"},
		{"/a b", "./é #?%.js", "file:///a%20b/%C3%A9%20%23%3F%25.js"},
		{"/d", "/!\"#$%&'()*+,-.:;<=>?@[\\]^_`{|}~\t\x7f", "file:///!%22%23$%25&'()*+,-.:;%3C=%3E%3F@%5B%5C%5D%5E_%60%7B%7C%7D%7E%09%7F"},
		{"/d", "./a\\b", "file:///d/a%5Cb"},
		{"/d", `C:\a b\c#d`, "file:///C:/a%20b/c%23d"},
		{"/d", "c:/x/../y", "file:///c:/y"},
		{"/d", `\\server\share\f x`, "file://server/share/f%20x"},
		{"/d", `\\?\C:\x\y`, "file:///C:/x/y"},
		{`C:\d`, "./x", "file:///C:/d/x"},
		{`C:\d\e`, `..\x`, "file:///C:/d/x"},
		{`C:\d`, "/x", "file:///C:/x"},
		{`\\s\h\d`, "./x", "file://s/h/d/x"},
		{`\\s\h\d`, "/x", "file://s/h/x"},
		{"/d", "plain", ""},
		{"/d", "@s/p", ""},
		{"/d", ".hidden", ""},
		{"/d", "cordis:group", ""},
		{"/d", "file:///x", ""},
		{"/d", "C:x", ""},
		{"/d", "", ""},
	} {
		got, ok := fileURL(c.dir, c.name)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("fileURL(%q, %q) = %q, %v; want %q", c.dir, c.name, got, ok, c.want)
		}
	}
}

func TestMapOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "10", "9", "0", "01", "4294967294", "4294967295", "-1", "c", "d", "e", "f", "g", "7", "h", "i", "j", "k"}), 0, 40).Draw(t, "keys")
		m := &Map{}
		var want []string
		for i, key := range keys {
			m.Set(key, float64(i))
			if i == 0 || !slices.Contains(want, key) {
				want = append(want, key)
			}
		}
		pairs := make([]pair, 0, len(want))
		for _, key := range want {
			pairs = append(pairs, pair{key: key})
		}
		whole := newMap(pairs)
		var got, atOnce []string
		for key, v := range m.All() {
			got = append(got, key)
			if again, ok := m.Get(key); !ok || again != v {
				t.Fatalf("Get(%q) = %v, %v", key, again, ok)
			}
		}
		for key := range whole.All() {
			atOnce = append(atOnce, key)
		}
		if diff := cmp.Diff(atOnce, got); diff != "" || m.Len() != len(want) {
			t.Fatalf("keys set one by one (-at once +got):\n%s", diff)
		}
		for i := 1; i < len(got); i++ {
			if compareKeys(got[i-1], got[i]) > 0 {
				t.Fatalf("order %v", got)
			}
		}
	})
}

func TestRowAccessors(t *testing.T) {
	tree := Apply(parseLayers(t, "- insert:\n    - {id: g, group: true, disabled: !!js a, config: [{id: 1, name: p, disabled: yes}, {id: h, group: true, config: [{}]}]}\n    - text"), nil)
	var got []string
	for row := range tree.All() {
		off, when := row.Disabled()
		text := string(appendJSON(nil, row.ID(), 100)) + " " + row.Name() + " " + row.Origin
		if off {
			text += " off"
		}
		if when != nil {
			text += " if " + when.Text
		}
		got = append(got, text)
	}
	want := []string{`"g"  L1 if a`, "1 p L1 off", `"h"  L1`, "null  L1", "null  L1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if line, column := tree.Rows[0].Entry.Position(); line != 2 || column != 7 {
		t.Errorf("position %d:%d", line, column)
	}
}

func TestFilePathIsTheWayBack(t *testing.T) {
	for _, c := range []struct{ dir, name, file string }{
		{"/d", "./a b.js", "/d/a b.js"},
		{"/d", "/x/%41#?.js", "/x/%41#?.js"},
		{"/d", "../ü.js", "/ü.js"},
		{`C:\d`, `.\a b.js`, `C:\d\a b.js`},
		{`C:\d`, `D:/x.js`, `D:\x.js`},
		{`\\host\share\d`, `.\x.js`, `\\host\share\d\x.js`},
	} {
		address, ok := fileURL(c.dir, c.name)
		if !ok {
			t.Errorf("%s: %q is no path", c.dir, c.name)
		}
		if got, ok := FilePath(address); !ok || got != c.file {
			t.Errorf("%s: %q, %v; want %q", address, got, ok, c.file)
		}
	}
	for _, no := range []string{"", "x", "/x", "http://a/b", "file:x", "cordis:group", "%zz"} {
		if got, ok := FilePath(no); ok {
			t.Errorf("%q stands for %q", no, got)
		}
	}
}
