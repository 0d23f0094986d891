package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/profile"
)

// versions lists what is installed, "place@version".
func versionsOf(lock *Lock) []string {
	list := []string{}
	for _, at := range sortedKeys(lock.Nodes) {
		list = append(list, strings.ReplaceAll(strings.ReplaceAll(at, "/node_modules/", " > "), "node_modules/", "")+"@"+lock.Nodes[at].Version)
	}
	return list
}

func TestTakeResolves(t *testing.T) {
	shelf := shelf{
		"a@1.0.0": {"c@^1"}, "a@1.1.0": {"c@^1"}, "b@1.0.0": {"c@^1", "?d@*"}, "c@1.0.0": nil, "c@1.1.0": nil, "c@1.2.0": nil, "d@1.0.0": nil,
	}
	older := shelfWithout(shelf, "a@1.1.0", "c@1.1.0", "c@1.2.0", "d@1.0.0")
	for name, c := range map[string]struct {
		has, gives, wishes []Wish // of this profile before, of the other one, of this one now
		names              []string
		want               []string
	}{
		"at the other's versions": {nil, wish("a@^1"), wish("a@^1"), []string{"a"}, []string{"a@1.0.0", "c@1.0.0"}},
		"what stands stays, and what is taken is the other's": {
			wish("c@^1.1.0"), wish("a@^1"), wish("a@^1", "c@^1.1.0"), []string{"a"}, []string{"a@1.0.0", "a > c@1.0.0", "c@1.2.0"},
		},
		"taken over what stands": {wish("a@^1"), wish("a@^1"), wish("a@^1"), []string{"a"}, []string{"a@1.0.0", "c@1.0.0"}},
		"a range that was edited since": {
			nil, wish("a@^1"), wish("a@^1.1.0"), []string{"a"}, []string{"a@1.1.0", "c@1.0.0"},
		},
		"what could not be had is not asked for": {nil, wish("b@^1"), wish("b@^1"), []string{"b"}, []string{"b@1.0.0", "c@1.0.0"}},
	} {
		t.Run(name, func(t *testing.T) {
			lockWith := func(s finder, wishes []Wish) *Lock {
				root, err := resolveShelf(t, s, nil, wishes)
				if err != nil {
					t.Fatal(err)
				}
				return lockOf(root, wishes)
			}
			var has *Lock
			if c.has != nil {
				has = lockWith(shelf, c.has)
			}
			r := &resolver{
				find: shelf, dir: "/p", locked: has, fresh: func(string) bool { return false },
				taken: &taken{c.names, lockWith(older, c.gives)},
			}
			root, err := r.resolve(t.Context(), c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, versionsOf(lockOf(root, c.wishes))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// shelfWithout is a shelf as it was before some releases.
func shelfWithout(s shelf, keys ...string) shelf {
	older := shelf{}
	for key, needs := range s {
		older[key] = needs
	}
	for _, key := range keys {
		delete(older, key)
	}
	return older
}

// Take brings over what the other profile has, also content that has changed
// since, and makes bundles layers in the order that is asked for.
func TestTake(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("a")
	w.newProfile("b")
	w.write("copied/package.json", `{"name": "copied", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}`)
	w.write("copied/p.yml", "[]\n")
	w.write("linked/package.json", `{"name": "linked", "version": "1.0.0", "dsh": {"bundle": {"patch": "p.yml"}}}`)
	w.write("linked/p.yml", "[]\n")
	w.add("a", "is-odd@3.0.0", "./linked", "file:./copied")
	w.write("copied/p.yml", "[] # edited\n")
	w.offline = true
	deps := []Taken{
		{Name: "linked", Spec: "link:../../linked", Kind: ""},
		{Name: "copied", Spec: "file:../../copied", Kind: profile.Dependencies},
		{Name: "is-odd", Spec: "3.0.0", Kind: profile.DevDependencies},
	}
	w.run("b", func(j *Job) (*Result, error) { return j.Take(t.Context(), deps, w.lock("a")) })

	m := w.manifest("b")
	if diff := cmp.Diff([]string{"linked", "copied"}, m.Bundles()); diff != "" {
		t.Errorf("layers: %s", diff)
	}
	if spec, kind, _ := m.Dependency("is-odd"); spec != "3.0.0" || kind != profile.DevDependencies {
		t.Errorf("is-odd: %q in %s", spec, kind)
	}
	if diff := cmp.Diff([]string{"copied@1.0.0", "is-number@6.0.0", "is-odd@3.0.0", "linked@1.0.0"}, versionsOf(w.lock("b"))); diff != "" {
		t.Error(diff)
	}
	text, err := os.ReadFile(filepath.Join(w.ground("b").place.Dir, "node_modules", "copied", "p.yml"))
	w.must(err)
	if string(text) != "[]\n" {
		t.Errorf("the copied folder is not as the other profile has it: %q", text)
	}
	// What was taken is what an install keeps.
	before := w.lock("b").Bytes()
	w.run("b", func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{Frozen: true}) })
	if diff := cmp.Diff(string(before), string(w.lock("b").Bytes())); diff != "" {
		t.Error(diff)
	}

	w.remove("linked")
	for name, c := range map[string]struct {
		deps []Taken
		want string
	}{
		"twice":             {[]Taken{deps[2], deps[2]}, "is-odd is named twice"},
		"a link to nothing": {deps[:1], "linked links to "},
		"offline":           {[]Taken{{Name: "left", Spec: "^1.0.0", Kind: ""}}, "--offline"},
	} {
		before := w.ground("b").listing(t)
		_, err := w.try("b", func(j *Job) (*Result, error) { return j.Take(t.Context(), c.deps, nil) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, w.ground("b").listing(t)); diff != "" {
			t.Errorf("%s: it changed something:\n%s", name, diff)
		}
	}
}
