package compose

import (
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// seen is what a target says, without the row.
type seen struct {
	ID, RowKey string
	Path       []string
	Found      bool
}

func TestParseTarget(t *testing.T) {
	tree := Apply(parseLayers(t, `
- insert:
    - {id: web}
    - {id: web.admin}
    - {id: 'dsh:scope'}
    - {id: dsh}
    - {id: '@scope/x.js'}
    - {id: a b}
    - {id: 'it''s'}
    - {id: '"'}
    - {id: 7}
    - {id: 1.5}
    - {id: 'k=v'}
`), nil)
	for _, c := range []struct {
		text string
		want seen
	}{
		{"web", seen{"web", "", nil, true}},
		{"web.port", seen{"web", "", []string{"port"}, true}},
		{"web.a.b.0.c", seen{"web", "", []string{"a", "b", "0", "c"}, true}},
		{"web:disabled", seen{"web", "disabled", nil, true}},
		{"web:anything", seen{"web", "anything", nil, true}},
		{"web.admin", seen{"web.admin", "", nil, true}},
		{"web.admin.port", seen{"web.admin", "", []string{"port"}, true}},
		{"web.administrator", seen{"web", "", []string{"administrator"}, true}},
		{`web."admin".port`, seen{"web", "", []string{"admin", "port"}, true}},
		{`"web".admin.port`, seen{"web", "", []string{"admin", "port"}, true}},
		{`'web.admin':disabled`, seen{"web.admin", "disabled", nil, true}},
		{"dsh:scope", seen{"dsh:scope", "", nil, true}},
		{"dsh:scope.allow.0.target", seen{"dsh:scope", "", []string{"allow", "0", "target"}, true}},
		{"dsh:scope:disabled", seen{"dsh:scope", "disabled", nil, true}},
		{`"dsh":scope`, seen{"dsh", "scope", nil, true}},
		{"dsh:group", seen{"dsh", "group", nil, true}},
		{"@scope/x.js.port", seen{"@scope/x.js", "", []string{"port"}, true}},
		{"a b.c d", seen{"a b", "", []string{"c d"}, true}},
		{"it's.x", seen{"it's", "", []string{"x"}, true}},
		{"'it''s'.x", seen{"it's", "", []string{"x"}, true}},
		{`'"'.x`, seen{`"`, "", []string{"x"}, true}},
		{`"\"".x`, seen{`"`, "", []string{"x"}, true}},
		{"7.x", seen{"7", "", []string{"x"}, true}},
		{"1.5.x", seen{"1.5", "", []string{"x"}, true}},
		{"1.x", seen{"1", "", []string{"x"}, false}},
		{"k=v.x", seen{"k=v", "", []string{"x"}, true}},
		{"web.a:b", seen{"web", "", []string{"a:b"}, true}},
		{`web."a.b=c:d e".'f.g'`, seen{"web", "", []string{"a.b=c:d e", "f.g"}, true}},
		{`web."a\u002eb\n"`, seen{"web", "", []string{"a.b\n"}, true}},
		{`web.""`, seen{"web", "", []string{""}, true}},
		{`web.don't`, seen{"web", "", []string{"don't"}, true}},
		// Rows that are not there.
		{"wbe", seen{"wbe", "", nil, false}},
		{"wbe.port.x", seen{"wbe", "", []string{"port", "x"}, false}},
		{"wbe:disabled", seen{"wbe", "disabled", nil, false}},
		{"cordis:thing.port", seen{"cordis:thing", "", []string{"port"}, false}},
		{"@scope/y.port", seen{"@scope/y", "", []string{"port"}, false}},
		{"@my.scope/y.port", seen{"@my.scope/y", "", []string{"port"}, false}},
		{"@scope.port", seen{"@scope", "", []string{"port"}, false}},
		{`"@scope/y.js".port`, seen{"@scope/y.js", "", []string{"port"}, false}},
	} {
		got, err := ParseTarget(c.text, tree.FindText)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff(c.want, seen{got.ID, got.RowKey, got.Path, got.Row != nil}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestTargetErrors(t *testing.T) {
	for _, c := range []struct{ text, want, hint string }{
		{"", `reading "": column 1: the id of a row is missing`, "write ROW, ROW.KEY or ROW:KEY"},
		{".port", `reading ".port": column 1: the id of a row is missing`, "write ROW, ROW.KEY or ROW:KEY"},
		{`"".port`, `reading "\"\".port": column 1: the id of a row is missing`, "write ROW, ROW.KEY or ROW:KEY"},
		{"web.", `reading "web.": column 5: a key is missing`, `write the empty key as ""`},
		{"web..port", `reading "web..port": column 5: a key is missing`, `write the empty key as ""`},
		{"web:", `reading "web:": column 5: a key is missing`, `write the empty key as ""`},
		{"web:config.port", `reading "web:config.port": column 11: nothing can stand behind the key of a row`, "write a path in the config behind a dot: ROW.KEY.KEY"},
		{`web."a.b`, `reading "web.\"a.b": column 5: a quote is not closed`, howToQuote},
		{`web.'a.b''`, `reading "web.'a.b''": column 5: a quote is not closed`, howToQuote},
		{`web."a"b`, `reading "web.\"a\"b": column 8: something stands directly behind a quoted part`, howToQuote},
		{`web."a"=b`, `reading "web.\"a\"=b": column 8: something stands directly behind a quoted part`, howToQuote},
		{`web."a":b`, `reading "web.\"a\":b": column 8: something stands directly behind a quoted part`, howToQuote},
		{`web."a"."b":c`, `reading "web.\"a\".\"b\":c": column 12: something stands directly behind a quoted part`, howToQuote},
		{`web:"a"=b`, `reading "web:\"a\"=b": column 8: something stands directly behind a quoted part`, howToQuote},
		{`"web"=b`, `reading "\"web\"=b": column 6: something stands directly behind a quoted part`, howToQuote},
		{`'web'"b"`, `reading "'web'\"b\"": column 6: something stands directly behind a quoted part`, howToQuote},
		{`web."\x"`, `reading "web.\"\\x\"": column 5: what is in double quotes is no text of JSON`, `write " as \" and \ as \\, or use single quotes`},
	} {
		_, err := ParseTarget(c.text, func(id string) *Map {
			if id == "web" {
				return newMap(nil)
			}
			return nil
		})
		target, ok := errors.AsType[*TargetError](err)
		if !ok {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if diff := cmp.Diff([2]string{c.want, c.hint}, [2]string{target.Error(), target.Hint()}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestCutAssignment(t *testing.T) {
	for _, c := range []struct{ text, target, value, err string }{
		{"web.port=3080", "web.port", "3080", ""},
		{"web.port=", "web.port", "", ""},
		{"web.url=http://x/?a=b", "web.url", "http://x/?a=b", ""},
		{`web."a=b"=c`, `web."a=b"`, "c", ""},
		{`'k=v'.x="y=z"`, `'k=v'.x`, `"y=z"`, ""},
		{`web:"a=b"=c`, `web:"a=b"`, "c", ""},
		{`web.it's=1`, `web.it's`, "1", ""},
		{"web:disabled=true", "web:disabled", "true", ""},
		{"web.a = b", "web.a ", " b", ""},
		{"web.port", "", "", `reading "web.port": column 9: no = stands behind the target`},
		{"=1", "", "", `reading "=1": column 1: no target stands before the =`},
		{"", "", "", `reading "": column 1: no = stands behind the target`},
		{`web."a=b`, "", "", `reading "web.\"a=b": column 5: a quote is not closed`},
	} {
		target, value, err := CutAssignment(c.text)
		problem := ""
		if err != nil {
			problem = err.Error()
		}
		if diff := cmp.Diff([3]string{c.target, c.value, c.err}, [3]string{target, value, problem}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestTargetReadsBack(t *testing.T) {
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"web", "a.b", "dsh:scope", "@scope/x", "@a.b/c.d", "it's", `say "x"`, "k=v", " ", "0", "é", "\n", `\`, "'", `"`}),
		rapid.StringN(1, 8, -1),
	)
	rapid.Check(t, func(t *rapid.T) {
		row := newMap(nil)
		want := Target{ID: word.Draw(t, "id"), Row: row}
		if rapid.Bool().Draw(t, "row key") {
			want.RowKey = word.Draw(t, "key")
		} else {
			want.Path = append(want.Path, rapid.SliceOfN(rapid.OneOf(word, rapid.Just("")), 0, 4).Draw(t, "path")...)
		}
		got, err := ParseTarget(want.String(), func(id string) *Map {
			if id == want.ID {
				return row
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.Row != row || got.ID != want.ID || got.RowKey != want.RowKey || !cmp.Equal(got.Path, want.Path) {
			t.Fatalf("%q is read as %+v", want, got)
		}
		if target, value, err := CutAssignment(want.String() + "=x=y"); err != nil || target != want.String() || value != "x=y" {
			t.Fatalf("cut into %q and %q, %v", target, value, err)
		}
	})
}

func FuzzParseTarget(f *testing.F) {
	for _, text := range []string{"web.port", `"a.b".'c''d':x`, "@scope/x.y", "dsh:scope.allow.0", "..", `"\ud800"`, "a:disabled"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _, _ = CutAssignment(text)
		if !utf8.ValidString(text) {
			return // no id or key of a layer is like that
		}
		for _, known := range []string{"", "a", "a.b", "dsh:scope"} {
			row := newMap(nil)
			find := func(id string) *Map {
				if id == known {
					return row
				}
				return nil
			}
			target, err := ParseTarget(text, find)
			if err != nil {
				if e, ok := errors.AsType[*TargetError](err); !ok || e.Column < 1 || e.Column > len(text)+1 {
					t.Errorf("%#v", err)
				}
				continue
			}
			if (target.Row != nil) != (target.ID == known) {
				t.Errorf("%q finds %+v among %q", text, target, known)
			}
			again, err := ParseTarget(target.String(), find)
			if err != nil || target.Row != nil && (again.Row != row || again.String() != target.String()) {
				t.Errorf("%q is %+v, and %q is %+v, %v", text, target, target, again, err)
			}
		}
	})
}
