package skill

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

// started runs the catalogue and rows that find skills, by their ids.
func started(t *testing.T, cwd string, configs map[string]string) (*host.Host, *Catalogue) {
	t.Helper()
	var catalogue *Catalogue
	plugins := map[string]host.Plugin{
		Name: Plugin, FilesystemName: FilesystemPlugin,
		"reader": {Inject: []host.Need{{Service: Service}}, Start: func(_ context.Context, r *host.Row) error {
			catalogue, _ = host.Service[*Catalogue](r, Service)
			return nil
		}},
	}
	h := host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) { p, ok := plugins[name]; return p, ok },
		Slots: map[string]any{
			slot.HomePath: slot.HomePathFunc(func(parts ...string) string { return filepath.Join(append([]string{cwd, "home"}, parts...)...) }),
			slot.Profile:  &slot.ProfileContext{Cwd: cwd},
		},
	})
	text := "- insert:\n    - {id: skill, name: '" + Name + "'}\n    - {id: reader, name: reader}\n"
	ids := []string{}
	for id := range configs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		text += fmt.Sprintf("    - {id: %s, name: '%s', config: %s}\n", id, FilesystemName, configs[id])
	}
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: cwd}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	if err := h.Apply(t.Context(), tree.Rows); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if catalogue != nil && len(catalogue.List()) > 0 {
			t.Errorf("skills are left: %v", catalogue.List())
		}
	})
	if err := h.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, catalogue
}

func write(t *testing.T, path, name, description string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\nname: "+name+"\ndescription: "+description+"\n---\nBody of "+name+".\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func names(c *Catalogue) (list []string) {
	for _, e := range c.List() {
		list = append(list, e.Name+" of "+e.Provider+": "+e.Description)
	}
	return list
}

// becomes waits for what the system tells of.
func becomes(t *testing.T, c *Catalogue, changed <-chan struct{}, want ...string) {
	t.Helper()
	for end := time.After(20 * time.Second); !slices.Equal(names(c), want); {
		select {
		case <-changed:
		case <-end:
			t.Fatalf("skills are %q, want %q", names(c), want)
		}
	}
}

func TestFollowsFolders(t *testing.T) {
	cwd := t.TempDir()
	own := filepath.Join(cwd, "own")
	write(t, filepath.Join(own, "one", "SKILL.md"), "one", "first")
	_, c := started(t, cwd, map[string]string{"files": fmt.Sprintf("{customSkillDirs: ['%s'], agentsHome: '%s', watchStabilityThresholdMs: 1}", own, filepath.Join(cwd, "agents"))})
	changed := make(chan struct{}, 100)
	defer c.Subscribe(func() { changed <- struct{}{} })()
	becomes(t, c, changed, "one of filesystem: first")
	write(t, filepath.Join(own, "one", "SKILL.md"), "one", "second")
	becomes(t, c, changed, "one of filesystem: second")
	// A folder that was not there at the start, two levels below one that was.
	write(t, filepath.Join(cwd, ".dsh", "skills", "two", "SKILL.md"), "two", "new")
	becomes(t, c, changed, "one of filesystem: second", "two of filesystem: new")
	// The project's hides the row's.
	write(t, filepath.Join(cwd, ".dsh", "skills", "one.md"), "one", "hiding")
	becomes(t, c, changed, "one of filesystem: hiding", "two of filesystem: new")
	if e, body, err := c.Load("one"); err != nil || body != "Body of one.\n" || e.Root.Rank != 100 {
		t.Errorf("loaded %+v %q, %v", e, body, err)
	}
	if err := os.RemoveAll(filepath.Join(cwd, ".dsh")); err != nil {
		t.Fatal(err)
	}
	becomes(t, c, changed, "one of filesystem: second")
	if _, _, err := c.Load("two"); err == nil {
		t.Error("a skill that is gone was loaded")
	}
}

func TestNamesOfProviders(t *testing.T) {
	cwd := t.TempDir()
	h, c := started(t, cwd, map[string]string{"a": "{watch: false}", "b": "{watch: false}"})
	var failed []string
	for _, row := range h.Rows() {
		if row.State == host.Failed {
			failed = append(failed, row.Err.Error())
		}
	}
	if len(failed) != 1 || !strings.Contains(failed[0], "the provider name filesystem is taken by row") {
		t.Errorf("failed are %q", failed)
	}
	if len(c.List()) != 0 {
		t.Errorf("found %v", c.List())
	}
}

func TestRankGoesBeforeProvider(t *testing.T) {
	cwd := t.TempDir()
	write(t, filepath.Join(cwd, "x", "one.md"), "one", "of a row")
	write(t, filepath.Join(cwd, ".agents", "skills", "one.md"), "one", "of the project")
	_, c := started(t, cwd, map[string]string{
		"a": fmt.Sprintf("{providerName: a, includeDefaultRoots: false, customSkillDirs: ['%s']}", filepath.Join(cwd, "x")),
		"b": "{providerName: b}",
	})
	if got := names(c); !slices.Equal(got, []string{"one of b: of the project"}) {
		t.Errorf("skills are %q", got)
	}
}
