package stack

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/trust"
)

// projectWorld is a home with one profile, and a project that is the working
// directory.
func projectWorld(t *testing.T, patch string) (opts Options, dir string, store *trust.Store) {
	t.Helper()
	opts = world(t, `[]`, map[string]string{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, ".dsh", "cordis.patch.yml"), patch)
	store = trust.Open(opts.Home.Path("trust.json"))
	opts.Project = &Project{Dir: dir, Trust: store}
	return opts, dir, store
}

func writeFile(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// grant trusts the project as it is.
func grant(t *testing.T, store *trust.Store, dir string) {
	t.Helper()
	p := trust.Project{Dir: dir, Patch: filepath.Join(dir, ".dsh", "cordis.patch.yml")}
	_, files, seal, err := ReadProject(p, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Grant(context.Background(), trust.Record{Dir: dir, Seal: seal, Files: files, Since: time.Unix(1, 0)}); err != nil {
		t.Fatal(err)
	}
}

func TestProjectLayerNeedsTrust(t *testing.T) {
	opts, dir, store := projectWorld(t, "- insert: [{id: mine, name: ./plugin.js}]\n")
	plugin := filepath.Join(dir, ".dsh", "plugin.js")
	writeFile(t, plugin, "one")
	state := func(want State, changed bool) {
		t.Helper()
		s, err := Open(opts)
		if err != nil {
			t.Fatal(err)
		}
		e := s.Entries[len(s.Entries)-1]
		if e.Kind != compose.ProjectLayer || e.State != want {
			t.Fatalf("the last entry is %+v", e)
		}
		if want == Untrusted && e.Err.(*UntrustedError).Changed != changed {
			t.Errorf("changed is %v", !changed)
		}
		if applied := e.Layer >= 0; applied != (want == Applied) {
			t.Errorf("layer %d", e.Layer)
		}
	}
	state(Untrusted, false)
	grant(t, store, dir)
	state(Applied, false)

	writeFile(t, plugin, "two")
	state(Untrusted, true)
	writeFile(t, plugin, "one")
	state(Applied, false)

	patch := filepath.Join(dir, ".dsh", "cordis.patch.yml")
	writeFile(t, patch, "- insert: [{id: mine, name: ./plugin.js}, {id: other, name: ./other.js}]\n")
	state(Untrusted, true)
	writeFile(t, patch, "- not closed: [\n")
	state(Untrusted, true)
}

func TestAnUnknownProjectIsNotLookedInto(t *testing.T) {
	// A name that can be read by nobody would be an error if it were.
	opts, _, _ := projectWorld(t, "- insert: [{id: mine, name: /proc/self/mem}]\n")
	s, err := Open(opts)
	if err != nil || s.Entries[0].State != Untrusted {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestNamedFiles(t *testing.T) {
	patches, err := compose.ParsePatches(compose.Source{File: "f", Dir: "/p/.dsh", Kind: compose.ProjectLayer}, []byte(`
- insert:
    - {id: a, name: ./a.js}
    - {id: b, name: '@scope/pkg'}
    - {id: g, name: cordis:group, group: true, config: [{id: c, name: ../c.js}]}
    - {id: i, name: cordis:include, config: {path: more.yml}}
- id: group
  config: [{id: d, name: ./literal.js}, {id: e, name: /abs/e.js}, {id: f, name: 'file:///f%20f.js'}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got := NamedFiles(trust.Project{Dir: "/p", Patch: "/p/.dsh/cordis.patch.yml"}, patches)
	want := []string{
		"/abs/e.js", "/f f.js", "/p/.dsh/a.js", "/p/.dsh/literal.js", "/p/.dsh/more.yml", "/p/c.js", "/p/literal.js", "/p/more.yml",
	}
	if filepath.Separator == '/' { // the names above are those of Unix
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
	if !slices.IsSorted(got) {
		t.Error("not sorted")
	}
}

func TestTrustCoversWhateverIsLoaded(t *testing.T) {
	for name, patch := range map[string]string{
		"a file URL in capitals":                "- insert: [{id: a, name: 'FILE://DIR/.dsh/e.js'}]",
		"a file URL behind a space":             "- insert: [{id: a, name: ' file://DIR/.dsh/e.js'}]",
		"a file URL with a tab in it":           "- insert: [{id: a, name: \"fi\\tle://DIR/.dsh/e.js\"}]",
		"a file URL of this machine":            "- insert: [{id: a, name: 'file://localhost/DIR/.dsh/e.js'}]",
		"an include":                            "- insert: [{id: a, name: cordis:include, config: {path: e.js}}]",
		"the path of an include in an override": "- id: inc\n  config: {path: DIR/.dsh/e.js}",
		"a row of an included file":             "- insert: [{id: a, name: cordis:include, config: {path: ./rows.yml}}]",
		"a row in a replaced group":             "- id: g\n  config: [{id: a, name: ./e.js}]",
		"a row in the patches of an include":    "- insert: [{id: a, name: cordis:include, config: {path: gone.yml, patches: [{insert: [{name: ./e.js}]}]}}]",
	} {
		t.Run(name, func(t *testing.T) {
			opts, dir, store := projectWorld(t, "[]\n")
			patch := strings.ReplaceAll(patch, "DIR", filepath.ToSlash(dir))
			writeFile(t, filepath.Join(dir, ".dsh", "cordis.patch.yml"), patch+"\n")
			writeFile(t, filepath.Join(dir, ".dsh", "rows.yml"), "- {id: e, name: ./e.js}\n")
			program := filepath.Join(dir, ".dsh", "e.js")
			writeFile(t, program, "one")
			grant(t, store, dir)
			for text, want := range map[string]State{"one": Applied, "two": Untrusted} {
				writeFile(t, program, text)
				s, err := Open(opts)
				if err != nil || s.Entries[0].State != want {
					t.Errorf("with %q: %+v, %v", text, s, err)
				}
			}
		})
	}
}

func TestProjectsThatCannotBeRead(t *testing.T) {
	opts, dir, store := projectWorld(t, "[]\n")
	grant(t, store, dir)
	patch := filepath.Join(dir, ".dsh", "cordis.patch.yml")
	if err := os.Remove(patch); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(patch, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := Open(opts)
	if err != nil || s.Entries[0].State != Untrusted {
		t.Errorf("a directory: %+v, %v", s, err)
	}
	if err := os.RemoveAll(filepath.Join(dir, ".dsh")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(".dsh", filepath.Join(dir, ".dsh")); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(opts); err != nil || s.Entries[0].State != Untrusted {
		t.Errorf("a loop: %+v, %v", s, err)
	}
}

func TestOrderOfAllLayers(t *testing.T) {
	opts, dir, store := projectWorld(t, "[]\n")
	writeFile(t, opts.Profile.PatchPath(), "[]\n")
	writeFile(t, opts.Home.PatchPath(), "[]\n")
	opts.Overlays = []Overlay{{Label: "<stdin>", Dir: dir, Text: []byte("[]\n")}}
	grant(t, store, dir)
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, l := range s.Layers {
		kinds = append(kinds, l.Kind.String())
	}
	if diff := cmp.Diff([]string{"profile", "home", "project", "patch"}, kinds); diff != "" {
		t.Error(diff)
	}
}

func TestLenient(t *testing.T) {
	opts := world(t, `[]`, map[string]string{"cordis.patch.yml": "- a: [\n", "profiles/x/cordis.patch.yml": ""})
	if _, err := Open(opts); err == nil {
		t.Error("a broken layer is no error")
	}
	opts.Lenient = true
	s, err := Open(opts)
	if err != nil || len(s.Entries) != 2 || s.Entries[0].State != Broken || s.Entries[1].State != Broken {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestPathsThatLeaveABundle(t *testing.T) {
	files := map[string]string{}
	bundleFiles(files, "out", "- insert: [{id: a, name: ../other/a.js}]\n")
	bundleFiles(files, "in", "- insert: [{id: a, name: ./lib/../a.js}]\n")
	s, err := Open(world(t, `["out","in"]`, files))
	if err != nil {
		t.Fatal(err)
	}
	if skipped := s.Skipped(); len(skipped) != 1 || skipped[0].Name != "out" {
		t.Errorf("skipped %v", skipped)
	}
}
