package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"dsh/internal/agentplugin"
	"dsh/internal/install/store"
)

func TestNameServers(t *testing.T) {
	long := strings.Repeat("long", 10)
	one, two := &wrapping{name: "one"}, &wrapping{name: "two"}
	servers := map[*wrapping][]string{one: {"files", "a b", long}, two: {"files", "web", "kept"}}
	nameServers([]*wrapping{one, two}, servers, map[*wrapping]map[string]string{two: {"kept": "kept-0", "web": "not a name"}}, map[string]bool{"web": true})
	if one.servers["files"] != "files" || two.servers["kept"] != "kept-0" {
		t.Errorf("the first does not have its own name, or one that was chosen is lost: %v, %v", one.servers, two.servers)
	}
	all := slices.Concat(slices.Collect(maps.Values(one.servers)), slices.Collect(maps.Values(two.servers)))
	for i, name := range all {
		if !isNameOfServer(name) || slices.Contains(all[:i], name) || name == "web" {
			t.Errorf("%q is no name that nothing else has", name)
		}
	}
	again := []map[string]string{one.servers, two.servers}
	nameServers([]*wrapping{two, one}, servers, map[*wrapping]map[string]string{one: one.servers, two: two.servers}, map[string]bool{"web": true})
	if diff := cmp.Diff(again, []map[string]string{one.servers, two.servers}); diff != "" {
		t.Errorf("names do not stay (-before +after)\n%s", diff)
	}
}

// FuzzYAMLQuoted holds texts in layers against what a reader of YAML takes them for.
func FuzzYAMLQuoted(f *testing.F) {
	for _, text := range []string{"", "a: b # c", "\x00\t\r\n\x7f\u0085\u2028\ufeff\uffff", `"\`, "${X} 'y'", "😀"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		var got []string
		if err := yaml.Unmarshal([]byte("- "+yamlQuoted(text)+"\n"), &got); err != nil || len(got) != 1 || got[0] != text {
			t.Errorf("%q is written as %s and read as %q, %v", text, yamlQuoted(text), got, err)
		}
	})
}

// TestFolderSwapped adds a folder while a directory in it becomes a link to
// elsewhere and back, again and again: nothing from there comes into the store.
func TestFolderSwapped(t *testing.T) {
	base := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(base, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("p/plugin.json", `{"$schema": "`+agentplugin.V1_0_0.PluginSchema()+`", "name": "p"}`)
	write("p/skills/one/SKILL.md", "---\nname: one\ndescription: x\n---\n")
	write("out/one/SKILL.md", "---\nname: one\ndescription: secret\n---\n")
	skills, aside := filepath.Join(base, "p", "skills"), filepath.Join(base, "aside")
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(skills, aside)
			_ = os.Symlink(filepath.Join(base, "out"), skills)
			_ = os.Remove(skills)
			_ = os.Rename(aside, skills)
		}
	})
	packages := store.Open(t.TempDir())
	whole := 0
	for range 200 {
		entry, err := packages.AddFolder(t.Context(), filepath.Join(base, "p"))
		if err != nil {
			continue // it was seen to change
		}
		if entry.Has("skills/one/SKILL.md") {
			whole++
			if text, err := os.ReadFile(filepath.Join(entry.Dir(), "skills", "one", "SKILL.md")); err != nil || strings.Contains(string(text), "secret") {
				t.Fatalf("what is outside came in: %q, %v", text, err)
			}
		}
		if p, _, err := loadPlugin(filepath.Join(base, "p")); err == nil && len(p.Skills) > 0 && strings.Contains(p.Skills[0].Description, "secret") {
			t.Fatal("what is outside was read")
		}
	}
	close(stop)
	swapping.Wait()
	if err := packages.Close(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of 200 came in whole", whole)
}
