package boot

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/stack"
)

// layerOf is a layer of a text.
func layerOf(t *testing.T, label string, kind compose.Kind, dir, text string) compose.Layer {
	t.Helper()
	patches, err := compose.ParsePatches(compose.Source{File: label, Dir: dir, Kind: kind, UserHome: "/user"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return compose.Layer{Label: label, Kind: kind, Patches: patches}
}

// TestRestated composes layers as they are, and with one of them written out as a
// patch file that lies elsewhere: the trees are the same.
func TestRestated(t *testing.T) {
	const base = `
- insert:
    - {id: web, name: some-web, config: {port: 1}}
    - id: box
      name: cordis:group
      group: true
      config:
        - {id: inner, name: b}
`
	tests := []struct{ name, own, skipped string }{
		{name: "a row", own: "- insert: [{id: new, name: a, config: {x: [1, {y: null}], text: \"a: b # c\"}}]\n"},
		{name: "an override", own: "- id: web\n  config: {port: 2}\n"},
		{name: "several keys", own: "- id: web\n  disabled: true\n  config: !!js process.env.PORT\n  inject: [a, b]\n"},
		{name: "a name that is a check", own: "- id: web\n  name: some-web\n  config: {}\n"},
		{name: "a row in a group", own: "- id: box\n  insert: [{id: more, name: c}]\n"},
		{name: "a row that a later patch changes", own: "- insert: [{id: new, name: a}]\n- id: new\n  config: {x: 1}\n"},
		{name: "a group that a later patch fills", own: "- insert: [{id: g, name: 'cordis:group', group: true, config: []}]\n- id: g\n  insert: [{id: h, name: b}]\n"},
		{name: "a row twice", own: "- id: web\n  config: {port: 2}\n- id: web\n  config: {port: 3}\n"},
		{name: "paths", own: "- insert: [{id: new, name: ./plugin.js, config: {dir: !path here, home: !path ~/there, root: !path /etc}}]\n"},
		{name: "a path in an override", own: "- id: web\n  config: {dir: !path ../up}\n"},
		{name: "no row", own: "- id: nobody\n  config: {}\n- id: web\n  config: {port: 4}\n", skipped: "nobody"},
		{name: "another plugin", own: "- id: web\n  name: other\n  config: {}\n", skipped: "web"},
		{name: "aliases", own: "- insert: [{id: new, name: a, config: &c {x: 1}}]\n- id: web\n  config: {a: &d [1], b: *d}\n"},
		{name: "text of many lines", own: "- id: web\n  config:\n    text: |\n      one\n        two\n\n      three\n"},
		{name: "nothing", own: "[]\n"},
	}
	rules := func(string) *compose.PathRule { return nil }
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			below := layerOf(t, "base", compose.BundleLayer, "/base", base)
			above := layerOf(t, "--set", compose.SetLayer, "/work", "- id: inner\n  config: {on: top}\n")
			own := layerOf(t, "own", compose.ProjectLayer, "/project/.dsh", test.own)
			composed := &action.Composed{Stack: &stack.Stack{Layers: []compose.Layer{below, own, above}}, Rules: rules}
			text, skipped := restated(composed, 1)
			if got := strings.Join(skipped, "\n"); (test.skipped == "") != (got == "") || !strings.Contains(got, test.skipped) {
				t.Errorf("skipped: %q", got)
			}
			other := compose.Layer{Label: "own", Kind: compose.PatchLayer}
			if text != nil {
				other = layerOf(t, "own", compose.PatchLayer, "/home/state", string(text))
			}
			want := compose.Apply([]compose.Layer{below, own, above}, rules).Dump()
			got := compose.Apply([]compose.Layer{below, other, above}, rules).Dump()
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("written out:\n%s\n(-as it is +written out)\n%s", text, diff)
			}
			if strings.Contains(string(text), "!path") {
				t.Errorf("only dsh knows this:\n%s", text)
			}
		})
	}
}

// TestSweepHandOvers leaves what launchers need that still run.
func TestSweepHandOvers(t *testing.T) {
	state := t.TempDir()
	own, parent := strconv.Itoa(os.Getpid()), strconv.Itoa(os.Getppid())
	old := time.Now().Add(-time.Hour)
	for name, at := range map[string]time.Time{
		"handover-999999999-a-1.yml":      time.Now(),
		"handover-" + own + "-a-1.yml":    time.Now(),
		"handover-" + own + "-b-1.yml":    old,
		"handover-" + parent + "-a-1.yml": old,
		"handover-x.yml":                  old, "journal": old,
	} {
		file := filepath.Join(state, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	sweepHandOvers(state)
	entries, err := os.ReadDir(state)
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, e := range entries {
		left[e.Name()] = true
	}
	want := map[string]bool{"handover-" + own + "-a-1.yml": true, "handover-" + parent + "-a-1.yml": true, "handover-x.yml": true, "journal": true}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("(-want +left)\n%s", diff)
	}
}
