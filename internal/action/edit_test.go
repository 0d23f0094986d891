package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/stack"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// editWorld is a home with a fresh profile and the options to edit its file.
func editWorld(t *testing.T, text string) (Env, EditOptions, string) {
	t.Helper()
	env, name := world(t)
	if _, err := replace(env, name, false); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(env.Home.ProfileDir(name), "cordis.patch.yml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return env, EditOptions{Name: name, Layer: compose.ProfileLayer}, file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Whoever changes the home's files, the states before and after have a time: a
// history gives up first what is old.
func TestStatesOfTheHomeHaveATime(t *testing.T) {
	env, opts, _ := editWorld(t, patch)
	opts.Layer = compose.HomeLayer
	put(t, env.Home.PatchPath(), patch)
	if _, err := Switch(context.Background(), env, SwitchOptions{EditOptions: opts, On: true}, "hmr"); err != nil {
		t.Fatal(err)
	}
	if _, err := RollbackHome(context.Background(), env, RollbackOptions{Back: 1}); err != nil {
		t.Fatal(err)
	}
	saved, err := staging.OpenHistory(env.Home.HistoryDir()).List()
	if err != nil || len(saved) != 3 {
		t.Fatalf("%d states, %v", len(saved), err)
	}
	for _, g := range saved {
		if g.Saved.Year() < 2000 {
			t.Errorf("state %d is of %s", g.ID, g.Saved)
		}
	}
}

// TestEditSeesWhatAnEditorWrites lets somebody who takes no lock write the file
// while it is being edited.
func TestEditSeesWhatAnEditorWrites(t *testing.T) {
	for _, layer := range []compose.Kind{compose.ProfileLayer, compose.HomeLayer} {
		env, opts, file := editWorld(t, patch)
		if opts.Layer = layer; layer == compose.HomeLayer {
			file = env.Home.PatchPath()
		}
		const theirs = "- id: llm\n  disabled: true\n"
		_, err := runEdit(context.Background(), env, opts, func(e *edit, text []byte) ([]byte, error) {
			if err := os.WriteFile(file, []byte(theirs), 0o644); err != nil {
				t.Fatal(err)
			}
			return []byte("- id: ours\n"), nil
		})
		if _, ok := errors.AsType[*staging.ChangedError](err); !ok {
			t.Errorf("%s: got %v", layer, err)
		}
		if diff := cmp.Diff(theirs, read(t, file)); diff != "" {
			t.Errorf("%s: %s", layer, diff)
		}
	}
}

// TestEditsAtOnceAreAllMade runs edits of one file side by side.
func TestEditsAtOnceAreAllMade(t *testing.T) {
	for _, layer := range []compose.Kind{compose.ProfileLayer, compose.HomeLayer} {
		env, opts, _ := editWorld(t, "[]\n")
		opts.Layer = layer
		var edits sync.WaitGroup
		for i := range 6 {
			edits.Go(func() {
				if _, err := Set(context.Background(), env, opts, fmt.Sprintf("hmr.key%d", i), fmt.Sprint(i)); err != nil {
					t.Errorf("%s: %v", layer, err)
				}
			})
		}
		edits.Wait()
		c, err := Look(context.Background(), env, Layers{Name: opts.Name})
		if err != nil {
			t.Fatal(err)
		}
		config, _ := c.Tree.FindText("hmr").Get("config")
		for i := range 6 {
			if v, _ := at(config, []string{fmt.Sprintf("key%d", i)}); v != float64(i) {
				t.Errorf("%s: key%d is %v", layer, i, v)
			}
		}
	}
}

// TestGrantKeepsWhatWasTrusted changes a file of a project while dsh edits its
// patch: the trust goes on for what the file held before.
func TestGrantKeepsWhatWasTrusted(t *testing.T) {
	ctx := context.Background()
	env, opts, _ := editWorld(t, "[]\n")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	project := trust.Project{Dir: dir, Patch: projectPatch(dir)}
	if err := os.Mkdir(filepath.Dir(project.Patch), 0o755); err != nil {
		t.Fatal(err)
	}
	plugin, added := filepath.Join(dir, "plugin.js"), filepath.Join(dir, "added.js")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(plugin, "old")
	write(added, "new")
	e := &edit{env: env, opts: opts, src: compose.Source{File: project.Patch, Dir: filepath.Dir(project.Patch), Kind: compose.ProjectLayer}}
	store := trust.Open(env.trustFile())
	text := []byte("- insert: [{id: a, name: ../plugin.js}, {id: b, name: ../added.js}]\n")
	contents, err := trust.Read([]string{plugin})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.grant(ctx, store, project, text, contents); err != nil {
		t.Fatal(err)
	}
	patches, err := e.parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		text string // of the plugin when the patch is edited, and later
		want trust.State
	}{{"old", trust.Trusted}, {"theirs", trust.Changed}} {
		write(plugin, c.text)
		if err := e.grant(ctx, store, project, text, contents); err != nil {
			t.Fatal(err)
		}
		if got, _, err := stack.TrustOf(store, project, text, patches); err != nil || got != c.want {
			t.Errorf("with %s: %v, %v", c.text, got, err)
		}
	}
}

func TestUnwritable(t *testing.T) {
	env, _ := world(t)
	inside := &fs.PathError{Op: "open", Path: filepath.Join(env.Home.Dir(), "state", "x", ".dsh-tmp-1"), Err: fs.ErrPermission}
	err := env.unwritable(fmt.Errorf("writing the identity: %w", inside))
	want := "the home of dsh, " + env.Home.Dir() + ", cannot be written: permission denied"
	if err.Error() != want || fault.ClassOf(err) != fault.Environment || fault.Hint(err) == "" || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v, class %v", err, fault.ClassOf(err))
	}
	if other := errors.New("another"); env.unwritable(other) != other {
		t.Error("another error was changed")
	}
}

func TestUncopied(t *testing.T) {
	config, err := compose.ParseValue(compose.Source{}, []byte("{a: {b: {x: 1, y: 2}, c: 3}, d: [1, 2], e: 5}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		copied [][]string
		path   []string
		want   [][]string
	}{
		"the key":           {[][]string{{"a"}, {"e"}}, []string{"e"}, [][]string{{"a"}}},
		"another":           {[][]string{{"a"}}, []string{"e"}, [][]string{{"a"}}},
		"above":             {[][]string{{"a", "b"}, {"a", "c"}, {"e"}}, []string{"a"}, [][]string{{"e"}}},
		"inside":            {[][]string{{"a"}}, []string{"a", "b", "x"}, [][]string{{"a", "c"}, {"a", "b", "y"}}},
		"an item":           {[][]string{{"d"}}, []string{"d", "0"}, [][]string{{"d", "1"}}},
		"a new key inside":  {[][]string{{"a", "b"}}, []string{"a", "b", "z"}, [][]string{{"a", "b", "x"}, {"a", "b", "y"}}},
		"a name in another": {[][]string{{"ab"}}, []string{"a"}, [][]string{{"ab"}}},
	} {
		if diff := cmp.Diff(c.want, uncopied(c.copied, c.path, config)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLastRow(t *testing.T) {
	rows, err := compose.ParseValue(compose.Source{}, []byte(`
- {id: a}
- {id: g, group: true, config: [{id: a}, {id: h, group: true, config: [{id: 1}]}]}
- {id: n, config: [{id: a}, {id: hidden}]}
- text
`))
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[compose.Value][]string{
		"a": {"0", "insert", "1", "config", "0"}, "g": {"0", "insert", "1"}, "h": {"0", "insert", "1", "config", "1"},
		1.0: {"0", "insert", "1", "config", "1", "config", "0"}, "1": nil, "hidden": nil, "n": {"0", "insert", "2"},
	} {
		if diff := cmp.Diff(want, []string(rowWalk{id, map[*compose.List]bool{}}.last(rows, []string{"0", "insert"}))); diff != "" {
			t.Errorf("%v: %s", id, diff)
		}
	}
}

// TestEditsCanBeTakenBack switches rows of a shipped profile off and on, and
// sets and unsets keys of them and items of their lists, in files of several
// shapes.
func TestEditsCanBeTakenBack(t *testing.T) {
	ctx := context.Background()
	for _, text := range []string{
		"# mine\n[]\n",
		"- id: other\n  disabled: true # why\n",
		"# head\n\n- id: other\n  disabled: true\n\n- insert:\n    - {id: mine, name: my-plugin}\n\n# tail\n",
		"-   id: other\r\n    inject: [a]\r\n",
	} {
		env, opts, file := editWorld(t, text)
		type edit struct {
			name     string
			do, back func() (*Edit, error)
		}
		var edits []edit
		for _, id := range []string{"hmr", "scope", "webserver"} {
			edits = append(edits, edit{"disable " + id,
				func() (*Edit, error) { return Switch(ctx, env, SwitchOptions{EditOptions: opts}, id) },
				func() (*Edit, error) { return Switch(ctx, env, SwitchOptions{EditOptions: opts, On: true}, id) }})
		}
		for _, place := range []string{
			"hmr.new.key", "hmr.new.0", "scope.new.key", "scope.new.0", "scope.deny", "scope.deny.0", "scope.deny.2", "scope.deny.1.access",
			"scope.allow.0.access", "webserver.port", "webserver.new",
		} {
			edits = append(edits, edit{"set " + place,
				func() (*Edit, error) { return Set(ctx, env, opts, place, "[1, a]") },
				func() (*Edit, error) { return Unset(ctx, env, opts, place) }})
		}
		for _, e := range edits {
			if _, err := e.do(); err != nil {
				t.Fatalf("%s: %v", e.name, err)
			}
			once := read(t, file)
			if done, err := e.do(); err != nil || done.Changed {
				t.Errorf("%s twice: %+v, %v", e.name, done, err)
			}
			if once == text {
				t.Errorf("%s wrote nothing", e.name)
			}
			if _, err := e.back(); err != nil {
				t.Fatalf("%s back: %v", e.name, err)
			}
			if diff := cmp.Diff(text, read(t, file)); diff != "" {
				t.Fatalf("%s and back, over\n%s\n%s", e.name, once, diff)
			}
		}
	}
}
