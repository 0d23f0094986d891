package action

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// shipped calls test with each shipped profile, none of which is on disk.
func shipped(t *testing.T, test func(t *testing.T, env Env, layers Layers)) {
	for _, template := range profile.Templates() {
		t.Run(template, func(t *testing.T) {
			env, _ := world(t)
			name, err := profile.ParseName(template)
			if err != nil {
				t.Fatal(err)
			}
			test(t, env, Layers{Name: name})
			if entries, err := os.ReadDir(env.Home.Dir()); err != nil || len(entries) > 0 {
				t.Errorf("looking left %v, %v", entries, err)
			}
		})
	}
}

// overlay is patches of standard input.
func overlay(text string) []stack.Overlay {
	return []stack.Overlay{{Label: "<stdin>", Dir: "/", Text: []byte(text)}}
}

func TestEveryValueHasAWriter(t *testing.T) {
	shipped(t, func(t *testing.T, env Env, layers Layers) {
		layers.Patches = overlay(`
- insert:
    - {id: g, name: g, group: true, config: [{id: in, name: in, config: {a: 1}}]}
- id: in
  config: {b: 2}
- id: g
  insert: [{id: late, name: late}]
`)
		c, err := look(context.Background(), env, layers, false)
		if err != nil {
			t.Fatal(err)
		}
		h := newHistory(c.Tree)
		for row := range c.Tree.All() {
			if where, ok := h.whereRow(row.Entry); !ok || where.Line == 0 {
				t.Errorf("row %v comes from nowhere", row.ID())
			}
			writes := h.writes(row.Entry)
			for key, v := range row.Entry.All() {
				w, ok := wrote(writes, key, len(writes))
				if !ok || !compose.Equal(w.value, v) {
					t.Errorf("the last write of %s of row %v was %v and is %v", key, row.ID(), w.value, v)
				}
				if where := h.where(w.step, w.path...); where.Line == 0 || where.File == "" {
					t.Errorf("%s of row %v was written at %+v", key, row.ID(), where)
				}
			}
		}
	})
}

func TestARowThatHoldsItself(t *testing.T) {
	env, _ := world(t)
	name, err := profile.ParseName("web")
	if err != nil {
		t.Fatal(err)
	}
	layers := Layers{Name: name, Patches: overlay(`
- x: &g {id: g, name: g, group: true, config: []}
- insert: [*g]
- id: g
  insert: [*g]
`)}
	if _, err := Explain(context.Background(), env, layers, "g", false); fault.ClassOf(err) != fault.Composition || !strings.Contains(err.Error(), "too large") {
		t.Errorf("explained: %v", err)
	}
	if _, err := DumpConfig(context.Background(), env, layers, "g", false); fault.ClassOf(err) != fault.Composition {
		t.Errorf("dumped: %v", err)
	}
	if _, err := ExplainRows(context.Background(), env, layers); err != nil {
		t.Error(err)
	}
	if _, err := ListLayers(context.Background(), env, layers); err != nil {
		t.Error(err)
	}
}

func TestDumpsAreThoseOfTheLauncher(t *testing.T) {
	shipped(t, func(t *testing.T, env Env, layers Layers) {
		open, err := DumpConfig(context.Background(), env, layers, "", true)
		if err != nil {
			t.Fatal(err)
		}
		hidden, err := DumpConfig(context.Background(), env, layers, "", false)
		if err != nil {
			t.Fatal(err)
		}
		// Nothing that is shipped is a secret.
		if diff := cmp.Diff(string(open.YAML), string(hidden.YAML)); diff != "" {
			t.Errorf("-launcher +config dump:\n%s", diff)
		}
	})
}

func TestLayersCountAllRows(t *testing.T) {
	shipped(t, func(t *testing.T, env Env, layers Layers) {
		layers.Sets = []string{"mine.x=1"}
		layers.Patches = overlay("- insert: [{id: mine, name: mine}, {id: g, name: g, group: true, config: [{id: in, name: in}]}]")
		list, err := ListLayers(context.Background(), env, layers)
		if err != nil {
			t.Fatal(err)
		}
		inserted := 0
		for i, l := range list.Layers {
			inserted += len(l.Inserts)
			if l.Number != i+1 {
				t.Errorf("layer %s has number %d", l.Label, l.Number)
			}
		}
		if inserted != list.Rows {
			t.Errorf("%d rows inserted, %d there", inserted, list.Rows)
		}
		last := list.Layers[len(list.Layers)-1]
		if diff := cmp.Diff([]string{"mine"}, last.Overrides); diff != "" || last.Kind != "set" {
			t.Errorf("--set: %+v", last)
		}
	})
}

func TestNoProfileDiffersFromItself(t *testing.T) {
	shipped(t, func(t *testing.T, env Env, layers Layers) {
		side := DiffSide{Name: layers.Name}
		d, err := Diff(context.Background(), env, side, side, false)
		if err != nil || d.Differ {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func TestParseDiffSide(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"web": "", ".": dir, "./x": filepath.Join(dir, "x"), "..": filepath.Dir(dir), "x/": filepath.Join(dir, "x"),
		filepath.Join(dir, "y"): filepath.Join(dir, "y"),
	} {
		side, err := ParseDiffSide(text, dir)
		if err != nil || side.Dir != want {
			t.Errorf("%s: %+v, %v", text, side, err)
		}
	}
	if _, err := ParseDiffSide("", dir); err == nil {
		t.Error("an empty name was read")
	}
}
