package compose

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// inDirectories gives every layer a directory of its own: /0, /1, …
func inDirectories(layers []Layer) []Layer {
	for i, layer := range layers {
		for _, patch := range layer.Patches {
			patch.Source.Dir = fmt.Sprintf("/%d", i)
		}
	}
	return layers
}

// somewhere says that all plugins have paths under the key k.
func somewhere(t testing.TB) PathRules {
	t.Helper()
	some, err := NewPathRule([]byte(`{"properties":{"k":{"format":"path","items":{"properties":{"k":{"format":"path"}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	return func(string) *PathRule { return some }
}

// everywhere says that plugins have paths everywhere, but rows without a name
// under the key k only.
func everywhere(t testing.TB) PathRules {
	t.Helper()
	some, any := somewhere(t), testRules(t)("any")
	return func(plugin string) *PathRule {
		if plugin == "" {
			return some(plugin)
		}
		return any
	}
}

// TestNoRelativePathIsLeft is the invariant of composing, for any layers.
func TestNoRelativePathIsLeft(t *testing.T) {
	rules := everywhere(t)
	rapid.Check(t, func(t *rapid.T) {
		layers := inDirectories(drawLayers(t, rapid.Bool().Draw(t, "aliases")))
		before := layerTexts(layers)
		tree := Apply(layers, rules)
		if left := tree.RelativePaths(rules); len(left) > 0 {
			t.Fatalf("%v in\n%s", left, tree.Dump())
		}
		if diff := cmp.Diff(before, layerTexts(layers)); diff != "" {
			t.Fatalf("layers changed (-before +after):\n%s", diff)
		}
		if again := Apply(layers, rules).Dump(); !bytes.Equal(again, tree.Dump()) {
			t.Fatalf("applied again:\n%s", cmp.Diff(string(tree.Dump()), string(again)))
		}
	})
}

// TestPathRulesKeepProvenance compares with composing without rules: where
// paths of the same text stay the same, the same layers changed the same rows.
func TestPathRulesKeepProvenance(t *testing.T) {
	rules := somewhere(t)
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t, false) // a row that aliases name is copied where it is in a config
		labels := func(tree *Tree) (all []string) {
			for _, row := range tree.Rows {
				all = append(all, string(row.appendLabel(nil)))
			}
			return all
		}
		plain, resolved := Apply(layers, nil), Apply(layers, rules)
		if diff := cmp.Diff(labels(plain), labels(resolved)); diff != "" {
			t.Fatalf("labels (-without +with rules):\n%s\n%s", diff, plain.Dump())
		}
		if diff := cmp.Diff(plain.Warnings, resolved.Warnings); diff != "" {
			t.Fatalf("warnings (-without +with rules):\n%s", diff)
		}
	})
}

// pathLayer writes a random layer whose texts say which layer they are of:
// `l2` is a text of layer 2. Aliases are in configs only.
type pathLayer struct {
	layerText
	n int
}

func (l *pathLayer) text() string { return fmt.Sprintf("l%d", l.n) }

func (l *pathLayer) part(depth int) string {
	if alias := l.alias(); alias != "" {
		return alias
	}
	switch {
	case depth == 0 || l.one(3):
		return l.text()
	case l.one(2):
		return l.list(l.part, depth-1)
	default:
		var keys []string
		for _, key := range []string{"file", "dir", "files", "allow", "target", "text"} {
			if l.one(3) {
				keys = append(keys, key+": "+l.part(depth-1))
			}
		}
		return l.anchor("{" + strings.Join(keys, ", ") + "}")
	}
}

func (l *pathLayer) patch() string {
	row := func() string {
		return "{id: " + l.pick("a", "b", "c") + ", name: " + l.pick("p", "q", "any") + ", config: " + l.part(3) + "}"
	}
	switch {
	case l.one(3):
		return "{insert: [" + row() + ", " + row() + "]}"
	case l.one(4):
		return "{insert: [{id: " + l.pick("g", "h") + ", name: 'cordis:group', group: true, config: [" + row() + ", " + row() + "]}]}"
	case l.one(5):
		return "{id: " + l.pick("a", "g", "h") + ", insert: [" + row() + "]}"
	default:
		return "{id: " + l.pick("a", "b", "c") + ", config: " + l.part(3) + ", other: " + l.part(1) + "}"
	}
}

// TestPathsStayWhereTheyWereWritten has every path name its layer: it must
// begin with the directory of that layer, and everything else must be as it
// was written, whatever aliases name it.
func TestPathsStayWhereTheyWereWritten(t *testing.T) {
	rules := testRules(t)
	rapid.Check(t, func(t *rapid.T) {
		var layers, writtenOut []Layer
		for n := range rapid.IntRange(1, 4).Draw(t, "layers") {
			l := pathLayer{layerText{t: t, aliases: true}, n}
			text := "["
			for range rapid.IntRange(1, 4).Draw(t, "patches") {
				text += l.patch() + ", "
			}
			src := Source{File: "f", Dir: fmt.Sprintf("/%d", n)}
			patches, err := ParsePatches(src, []byte(text+"]"))
			if err != nil {
				t.Fatal(err)
			}
			layers = append(layers, Layer{Label: "L", Patches: patches})
			var plain []Patch
			for _, patch := range patches {
				patch.Map = Clone(patch.Map).(*Map)
				plain = append(plain, patch)
			}
			writtenOut = append(writtenOut, Layer{Label: "L", Patches: plain})
		}
		tree := Apply(layers, rules)
		if diff := cmp.Diff(string(Apply(writtenOut, rules).Dump()), string(tree.Dump())); diff != "" {
			t.Fatalf("with aliases (-written out +not):\n%s", diff)
		}
		relative := Apply(layers, nil)
		for i, row := range tree.Rows {
			comparePaths(t, row.value, relative.Rows[i].value)
		}
		for row := range tree.All() {
			if len(row.Children()) > 0 {
				continue
			}
			for _, path := range texts(Paths(rules(row.Name()), row.Config())) {
				if n, ok := strings.CutPrefix(path[2:], "/l"); !ok || path != "/"+n+"/l"+n {
					t.Fatalf("path %s in\n%s", path, tree.Dump())
				}
			}
		}
		if left := tree.RelativePaths(rules); len(left) > 0 {
			t.Fatalf("%v in\n%s", left, tree.Dump())
		}
	})
}

// comparePaths fails unless absolute is relative with some of its texts behind
// the directories of their layers.
func comparePaths(t *rapid.T, absolute, relative Value) {
	t.Helper()
	switch r := relative.(type) {
	case string:
		a, _ := absolute.(string)
		if a != r && a != "/"+strings.TrimPrefix(r, "l")+"/"+r {
			t.Fatalf("%s became %s", r, a)
		}
	case *List:
		a, ok := absolute.(*List)
		if !ok || len(a.Items) != len(r.Items) {
			t.Fatalf("%s became %s", flow(relative), flow(absolute))
		}
		for i := range r.Items {
			comparePaths(t, a.Items[i], r.Items[i])
		}
	case *Map:
		a, ok := absolute.(*Map)
		if !ok || a.Len() != r.Len() {
			t.Fatalf("%s became %s", flow(relative), flow(absolute))
		}
		for key, v := range r.All() {
			below, _ := a.Get(key)
			comparePaths(t, below, v)
		}
	default:
		if !Equal(absolute, relative) {
			t.Fatalf("%s became %s", flow(relative), flow(absolute))
		}
	}
}

// TestRemovingTheLastLayer brings back what was there without it, and applying
// no patches changes nothing.
func TestRemovingTheLastLayer(t *testing.T) {
	for name, rules := range map[string]PathRules{"without rules": nil, "with rules": everywhere(t)} {
		t.Run(name, rapid.MakeCheck(func(t *rapid.T) {
			layers := inDirectories(drawLayers(t, rapid.Bool().Draw(t, "aliases")))
			if len(layers) == 0 {
				return
			}
			below := layers[:len(layers)-1]
			want := Apply(below, rules)
			wantDump, wantIDs := string(want.Dump()), want.IDs()
			all := Apply(layers, rules)
			allDump := string(all.Dump())
			again := Apply(below, rules)
			if diff := cmp.Diff([]string{wantDump, strings.Join(wantIDs, " ")}, []string{string(again.Dump()), strings.Join(again.IDs(), " ")}); diff != "" {
				t.Fatalf("without the last layer (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(want.Warnings, again.Warnings); diff != "" {
				t.Fatalf("warnings (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(wantDump, string(want.Dump())); diff != "" {
				t.Fatalf("the first tree changed:\n%s", diff)
			}
			empty := Layer{Label: "none"}
			if diff := cmp.Diff(allDump, string(Apply(append([]Layer{empty}, append(layers, empty)...), rules).Dump())); diff != "" {
				t.Fatalf("with layers without patches (-without +with):\n%s", diff)
			}
		}))
	}
}

// TestStepsTellWhatHappened replays what the steps say.
func TestStepsTellWhatHappened(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t, false)
		tree := Apply(layers, nil)
		steps, warnings := 0, 0
		for _, layer := range layers {
			steps += len(layer.Patches)
		}
		if len(tree.Steps) != steps {
			t.Fatalf("%d steps for %d patches", len(tree.Steps), steps)
		}
		now := map[*Map]map[string]Value{}
		for _, step := range tree.Steps {
			if &layers[step.Layer].Patches[step.Patch.Entry] != step.Patch {
				t.Fatal("a step names another patch")
			}
			if step.Outcome.Applied() == (step.Skipped != "") {
				t.Fatalf("outcome %d with warning %q", step.Outcome, step.Skipped)
			}
			if step.Skipped != "" {
				if w := tree.Warnings[warnings]; w.Text != step.Skipped || w.Layer != layers[step.Layer].Label {
					t.Fatalf("the warning is %v, the step says %q", w, step.Skipped)
				}
				warnings++
			}
			if step.Outcome != Overrode && len(step.Changes) > 0 || step.Outcome != Inserted && len(step.Rows) > 0 {
				t.Fatalf("outcome %d with %d changes and %d rows", step.Outcome, len(step.Changes), len(step.Rows))
			}
			if step.Outcome == Inserted && step.Target != nil {
				delete(now[step.Target], "config") // what was no list has become one
			}
			for _, c := range step.Changes {
				if now[step.Target] == nil {
					now[step.Target] = map[string]Value{}
				}
				if old, ok := now[step.Target][c.Key]; ok && (!c.Had || !Equal(old, c.Old)) {
					t.Fatalf("%s was %s, the step says %s", c.Key, Show(old), Show(c.Old))
				}
				now[step.Target][c.Key] = c.New
			}
		}
		for row, keys := range now {
			for key, want := range keys {
				if got, _ := row.Get(key); !Equal(got, want) && key != "config" { // rows may be inserted into a config
					t.Fatalf("%s is %s, the steps say %s", key, Show(got), Show(want))
				}
			}
		}
	})
}
