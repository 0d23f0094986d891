package staging

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// edit writes text into a file as some editors do, and as others do.
func edit(t testing.TB, path, text string, byRename bool) {
	t.Helper()
	if !byRename {
		must(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	must(t, os.WriteFile(path+".edited", []byte(text), 0o644), os.Rename(path+".edited", path))
}

// isKept says whether a text is in a file, a generation, or a profile that was
// replaced.
func isKept(t testing.TB, home, text string) bool {
	for _, is := range content(t, home) {
		if strings.Contains(is, text) {
			return true
		}
	}
	return false
}

func scenariosNamed(t *testing.T, names ...string) []scenario {
	t.Helper()
	list := slices.DeleteFunc(slices.Clone(scenarios), func(sc scenario) bool { return !slices.Contains(names, sc.name) })
	if len(list) != len(names) {
		t.Fatalf("%d of %q are there", len(list), names)
	}
	return list
}

// sees are the calls that see an edit, or put the file elsewhere. To edit before
// another one is to edit before the next of these.
var sees = []string{"Open", "Close", "ReadDir", "Link", "Rename", "RenameNew", "Exchange", "Remove", "RemoveAll"}

// Whenever somebody edits a file while a change runs, nothing of the edit is lost,
// but between the last look at it and the rename that follows; and there only if
// it puts another file in the place of the old one, or there are no hard links.
func TestEditAtEveryCall(t *testing.T) {
	files := []string{"package.json", "dsh-lock.yaml", "cordis.patch.yml"}
	for _, sc := range scenariosNamed(t, "mixed", "mixed, without exchange and links", "replace the profile",
		"replace a profile not worth keeping", "remove the profile", "restore a generation") {
		for _, byRename := range []bool{false, true} {
			t.Run(fmt.Sprint(sc.name, ", by rename ", byRename), func(t *testing.T) {
				t.Parallel()
				_, _, first, calls := sc.outcomes(t)
				lost := 0
				for at := first; at < len(calls); at++ {
					if !slices.Contains(sees, calls[at]) {
						continue
					}
					home := sc.fresh(t)
					path := filepath.Join(home, "profiles", "web", files[at%len(files)])
					made, n := "", 0
					s := &strike{after: 1 << 30}
					_, err, _ := s.try(t, scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
						return sc.run(t, hooked{fsys, func(op, on string) error {
							if n++; n > at && made == "" {
								if _, err := os.Lstat(filepath.Dir(path)); err == nil {
									edit(t, path, "by hand", byRename)
									made = op + " " + on
								}
							}
							return nil
						}}, home)
					}}, home)
					must(t, recoverFast(t, home))
					if made == "" || isKept(t, home, "by hand") {
						continue
					}
					lost++
					unseen := byRename || strings.HasSuffix(sc.name, "without exchange and links")
					if !unseen || made != "Rename "+path && made != "Close "+path {
						t.Errorf("edited at call %d, %s: the edit is nowhere, and the error is %v", at, strings.TrimPrefix(made, home), err)
					}
				}
				t.Logf("%d of %d edits were lost", lost, len(calls)-first)
			})
		}
	}
}

// The process dies, and the user edits what is in place already and what is not
// yet: neither edit is lost, whatever becomes of the change.
func TestEditsAfterDeath(t *testing.T) {
	for _, sc := range scenariosNamed(t, "mixed", "mixed, without exchange and links", "replace the profile") {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			_, _, first, calls := sc.outcomes(t)
			for _, at := range deadly(calls, first) {
				home := sc.fresh(t)
				s := &strike{mode: "dies", after: at}
				s.try(t, sc, home)
				dir := filepath.Join(home, "profiles", "web")
				if _, err := os.Lstat(dir); err != nil {
					continue
				}
				for _, name := range []string{"package.json", "dsh-lock.yaml"} {
					edit(t, filepath.Join(dir, name), "edited "+name, at%2 == 0)
				}
				must(t, recoverFast(t, home))
				for _, name := range []string{"package.json", "dsh-lock.yaml"} {
					if !isKept(t, home, "edited "+name) {
						t.Errorf("dies at %d, %s: the edit of %s is nowhere", at, s.struck, name)
					}
				}
			}
		})
	}
}

// The process dies, and the home goes on as a copy, in which no directory is the
// one that the journal speaks of. The small files are old or new all the same, and
// that the packages may be neither is known.
func TestDeathInCopiedHome(t *testing.T) {
	small := func(files map[string]string) map[string]string {
		files = maps.Clone(files)
		maps.DeleteFunc(files, func(path, _ string) bool { return strings.Contains(path, "node_modules") })
		return files
	}
	for _, sc := range scenariosNamed(t, "mixed", "mixed, without exchange and links", "replace the profile",
		"replace the profile, without exchange", "restore a generation", "make the profile in a transaction",
		"replace a file", "remove a file", "create a file") {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			old, new, first, calls := sc.outcomes(t)
			for _, at := range deadly(calls, first) {
				s := &strike{mode: "dies", after: at}
				home := sc.fresh(t)
				s.try(t, sc, home)
				what := fmt.Sprintf("dies at %d, %s", at, s.struck)
				other := filepath.Join(t.TempDir(), "home")
				if _, err := CopyTree(home, other); err != nil {
					t.Fatal(err)
				}
				must(t, recoverFast(t, other))
				got := content(t, other)
				if !cmp.Equal(old, got) && !cmp.Equal(new, got) && !Unclean(placeIn(other)) {
					t.Errorf("%s: nobody will look at the packages", what)
				}
				oldOrNew(t, what, small(old), small(new), small(got))
			}
		})
	}
}
