package compose

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func valueOf(t testing.TB, text string) Value {
	t.Helper()
	v, err := ParseValue(Source{File: "value", Dir: "/b", Kind: SetLayer}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func flow(v Value) string { return string(AppendFlow(nil, v)) }

func TestRestate(t *testing.T) {
	const drop = "(drop)"
	for _, c := range []struct {
		name, config, path, value, want, copied string
	}{
		{"a key of nothing", "", "port", "1", "{port: 1}", ""},
		{"a key of an empty mapping", "{}", "port", "1", "{port: 1}", ""},
		{"a key that is there", "{a: 1, port: 2, b: 3}", "port", "9", "{a: 1, port: 9, b: 3}", "a b"},
		{"a new key", "{a: 1}", "port", "9", "{a: 1, port: 9}", "a"},
		{"the whole config", "{a: 1}", "", "{b: 2}", "{b: 2}", ""},
		{"deep: what is beside the path is copied as one", "{a: {x: {y: 1}}, b: {c: 1, d: {e: 2, f: 3}, g: 4}}", "b.d.e", "9",
			"{a: {x: {y: 1}}, b: {c: 1, d: {e: 9, f: 3}, g: 4}}", "a b.c b.g b.d.f"},
		{"missing mappings are made", "{a: 1}", "b.c.d", "9", "{a: 1, b: {c: {d: 9}}}", "a"},
		{"null is as good as missing", "{a: null}", "a.b", "9", "{a: {b: 9}}", ""},
		{"a value that is a mapping", "{a: 1}", "b", "{c: [1, 2]}", "{a: 1, b: {c: [1, 2]}}", "a"},
		{"the same value", "{a: 1, b: 2}", "b", "2", "{a: 1, b: 2}", "a"},
		{"keys are quoted in paths", "{'a.b': {c: 1, d: 2}, '': 3}", `'a.b'.c`, "9", `{a.b: {c: 9, d: 2}, "": 3}`, `"" "a.b".d`},
		{"an item", "{l: [a, b, c]}", "l.1", "x", "{l: [a, x, c]}", "l.0 l.2"},
		{"in an item", "{l: [{t: a, u: 1}, {t: b}]}", "l.0.t", "x", "{l: [{t: x, u: 1}, {t: b}]}", "l.1 l.0.u"},
		{"the index behind the last item appends", "{l: [a]}", "l.1", "x", "{l: [a, x]}", "l.0"},
		{"and goes on", "{l: []}", "l.0.t", "x", "{l: [{t: x}]}", ""},
		{"a list is made for the key 0", "", "l.0.t", "x", "{l: [{t: x}]}", ""},
		{"but not of a mapping", "{l: {a: 1}}", "l.0", "x", `{l: {"0": x, a: 1}}`, "l.a"},
		{"a config that is a list", "[{id: a}, {id: b}]", "0.id", "x", "[{id: x}, {id: b}]", "1"},
		{"expressions stay", "{a: !!js x, b: 1}", "b", "!!js y", `{a: !!js "x", b: !!js "y"}`, "a"},

		{"drop a key", "{a: 1, b: 2}", "b", drop, "{a: 1}", "a"},
		{"drop the last key", "{b: 2}", "b", drop, "{}", ""},
		{"drop a deep key", "{a: 1, b: {c: 2, d: 3}}", "b.c", drop, "{a: 1, b: {d: 3}}", "a b.d"},
		{"drop what is not there", "{a: 1, b: {c: 2}}", "b.x", drop, "{a: 1, b: {c: 2}}", "a b.c"},
		{"drop below what is not there", "{a: 1}", "x.y.z", drop, "{a: 1}", "a"},
		{"drop below null", "{a: null}", "a.y", drop, "{a: null}", ""},
		{"drop from nothing", "", "a.y", drop, "null", ""},
		{"drop the config", "{a: 1}", "", drop, "null", ""},
		{"drop an item: those behind it move", "{l: [a, b, c, d], m: 1}", "l.1", drop, "{l: [a, c, d], m: 1}", "m l.0"},
		{"drop in an item", "{l: [{t: 1, u: 2}, 5]}", "l.0.t", drop, "{l: [{u: 2}, 5]}", "l.1 l.0.u"},
	} {
		config := valueOf(t, c.config)
		before := flow(config)
		var path []string
		if c.path != "" {
			target, err := ParseTarget("row."+c.path, func(id string) *Map {
				if id == "row" {
					return newMap(nil)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			path = target.Path
		}
		var v Value
		if c.value != drop {
			v = valueOf(t, c.value)
		}
		changed, copied, err := Restate(config, path, v, c.value == drop)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var paths []string
		for _, p := range copied {
			paths = append(paths, PathText(p))
		}
		if diff := cmp.Diff([2]string{c.want, c.copied}, [2]string{flow(changed), strings.Join(paths, " ")}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if after := flow(config); after != before {
			t.Errorf("%s: the config became %s", c.name, after)
		}
	}
}

// TestRestateSharesNothing changes the result everywhere.
func TestRestateSharesNothing(t *testing.T) {
	config, v := valueOf(t, "{a: &s {x: [1]}, b: *s, c: {d: {e: 1}}}"), valueOf(t, "{y: [2]}")
	changed, _, err := Restate(config, []string{"c", "f"}, v, false)
	if err != nil {
		t.Fatal(err)
	}
	var spoil func(Value)
	spoil = func(v Value) {
		switch v := v.(type) {
		case *Map:
			for _, item := range v.All() {
				spoil(item)
			}
			v.Set("spoilt", true)
		case *List:
			v.Items[0] = "spoilt"
		}
	}
	a, _ := changed.(*Map).Get("a")
	spoil(a)
	if diff := cmp.Diff(`{a: {x: [spoilt], spoilt: true}, b: {x: [1]}, c: {d: {e: 1}, f: {y: [2]}}}`, flow(changed)); diff != "" {
		t.Errorf("aliases are one value still (-want +got):\n%s", diff)
	}
	spoil(changed)
	if diff := cmp.Diff([2]string{`{a: {x: [1]}, b: {x: [1]}, c: {d: {e: 1}}}`, "{y: [2]}"}, [2]string{flow(config), flow(v)}); diff != "" {
		t.Errorf("the originals changed (-want +got):\n%s", diff)
	}
}

func TestRestateErrors(t *testing.T) {
	const config = "{n: 1, s: hunter2, b: true, e: !!js x, l: [a, {k: v}], one: [1]}"
	for _, c := range []struct {
		path string
		drop bool
		want string
	}{
		{"n.x", false, "finding n.x: n is a number"},
		{"s.x.y", false, "finding s.x.y: s is a text"},
		{"b.x", false, "finding b.x: b is true or false"},
		{"e.x", false, "finding e.x: e is an expression"},
		{"l.0.x", false, "finding l.0.x: l.0 is a text"},
		{"l.3", false, "finding l.3: l is a list of 2 items"},
		{"l.x", false, "finding l.x: l is a list of 2 items"},
		{"l.-1", false, "finding l.-1: l is a list of 2 items"},
		{"l.01", false, "finding l.01: l is a list of 2 items"},
		{"l.1.k.x", false, "finding l.1.k.x: l.1.k is a text"},
		{"one.2", false, "finding one.2: one is a list of 1 item"},
		{"s.x", true, "finding s.x: s is a text"},
		{"l.2", true, "finding l.2: l is a list of 2 items"},
	} {
		_, _, err := Restate(valueOf(t, config), strings.Split(c.path, "."), "v", c.drop)
		if place, ok := errors.AsType[*PlaceError](err); !ok || place.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.path, err, c.want)
		}
	}
	for _, config := range []Value{Expr{"x"}, "text"} {
		_, _, err := Restate(config, []string{"a"}, 1.0, false)
		if want := "finding a: the config is " + kindText(config); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// A row that holds itself: layers can make one, through aliases.
	tree := Apply(parseLayers(t, "- insert: [&g {id: g, group: true, config: []}]\n- {id: g, insert: [*g]}"), nil)
	row := tree.FindText("g")
	rows, _ := row.Get("config")
	if _, _, err := Restate(rows, []string{"0", "x"}, 1.0, false); err == nil || err.Error() != "finding 0.x: the config is too large to be written out" {
		t.Errorf("a config that holds itself: %v", err)
	}
}
