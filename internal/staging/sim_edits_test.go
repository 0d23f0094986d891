package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
)

// editable are the files of simProfile that the user edits in these tests.
var editable = []string{"package.json", "dsh-lock.yaml", "cordis.patch.yml", filepath.Join("notes", "own.txt")}

// somewhere says whether what the user wrote to a file of the profile is in it, in
// one of its generations, or in a replaced profile that is kept.
func (d *simDisk) somewhere(t testing.TB, file, content string) bool {
	t.Helper()
	if now, _ := d.open(inProfile(file)); now == content {
		return true
	}
	if now, _ := d.open(filepath.Join(linkedDir, file)); now == content {
		return true // of a profile that was a link
	}
	for path, is := range d.tree(simRoot) {
		if strings.HasPrefix(path, "state/web/"+replacedMark) && strings.HasSuffix(path, filepath.ToSlash(file)) && strings.HasSuffix(is, " "+content) {
			return true
		}
	}
	list, err := historyOf(disk{d}, simPlace().State).List()
	if err != nil {
		t.Errorf("reading the history: %v", err)
	}
	return slices.ContainsFunc(list, func(g Generation) bool {
		saved, _ := g.File(filepath.ToSlash(file))
		return string(saved) == content
	})
}

// The user edits a file before each call of a change. Afterwards the edit is where
// it was made, or it can be found again.
func TestEditInEveryChange(t *testing.T) {
	for _, sc := range simScenarios {
		t.Run(sc.name, func(t *testing.T) {
			synctest.Test(t, sc.editWhileChanging)
		})
	}
}

func (sc simScenario) editWhileChanging(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	start := sc.fresh(t, simOptions{})
	for i, file := range editable {
		for at := i; ; at += len(editable) { // every call is met with one of the files
			d := start.death()
			d.noExchange = at/len(editable)%2 == 0
			content := fmt.Sprintf("edited %d", at)
			real, err := d.RealPath(inProfile(file))
			if errors.Is(err, fs.ErrNotExist) {
				real = inProfile(file) // the change makes it
			} else if err != nil {
				t.Fatal(err)
			}
			calls, edited, where := 0, false, ""
			fsys := hooked{d, func(op, path string) error {
				if calls++; calls != at+1 || op == "Close" && path == real || op == "Rename" && (path == real || filepath.Base(filepath.Dir(path)) == "files") {
					return nil // what is written between a look and a rename nobody can save
				}
				if _, there := d.open(inProfile(file)); !there {
					return nil
				}
				if _, err := d.Readlink(inProfile(file)); err == nil {
					return nil // the file is another profile's, or nobody's
				}
				d.edit(t, inProfile(file), content, at%3 == 0)
				edited, where = true, fmt.Sprintf("%s is edited before call %d, %s %s", file, at, op, filepath.Base(path))
				return nil
			}}
			err = sc.run(t, fsys, d)
			if calls <= at {
				break
			}
			if !edited {
				continue
			}
			if _, changed := errors.AsType[*ChangedError](err); err != nil && !changed {
				t.Errorf("%s: %v", where, err)
			}
			if !d.somewhere(t, file, content) && !d.moved(file, content) {
				t.Errorf("%s, error %v: the edit is nowhere", where, err)
			}
			for path := range d.tree(filepath.Join(simRoot, "profiles")) {
				if strings.HasPrefix(path, ".web.") {
					t.Errorf("%s, error %v: left behind: %s", where, err, path)
				}
			}
			if t.Failed() {
				return
			}
		}
	}
}

// moved says whether content is in a file of the profile by its other name.
func (d *simDisk) moved(file, content string) bool {
	is, _ := d.open(filepath.Join(otherPlace().Dir, file))
	return is == content
}

// The process dies before each call, and then the user edits two files. Whoever
// comes next loses neither.
func TestEditsInTwoFilesAfterDeath(t *testing.T) {
	for _, sc := range simScenarios {
		t.Run(sc.name, func(t *testing.T) {
			synctest.Test(t, sc.editAfterDeath)
		})
	}
}

func (sc simScenario) editAfterDeath(t *testing.T) {
	cryptotest.SetGlobalRandom(t, 1)
	for _, options := range []simOptions{{}, {noExchange: true, noLinks: true}} {
		d := sc.fresh(t, options)
		deaths := 0
		die := func(call string) {
			if deaths++; t.Failed() {
				return
			}
			for first := range editable {
				after := d.death()
				edits := map[string]string{}
				for n, file := range []string{editable[first], editable[(first+1)%len(editable)]} {
					info, err := after.Lstat(inProfile(file))
					if err != nil || !info.Mode().IsRegular() {
						continue
					}
					edits[file] = fmt.Sprintf("edited %d", n)
					after.edit(t, inProfile(file), edits[file], (deaths+n)%2 == 0)
				}
				if err := (disk{after}).recoverPlace(t.Context(), simPlace()); err != nil {
					t.Errorf("dead %s: recovery: %v", call, err)
				}
				for file, content := range edits {
					if !after.somewhere(t, file, content) {
						t.Errorf("dead %s, then %v is edited: what is written to %s is nowhere", call, edits, file)
					}
				}
			}
		}
		if err := sc.run(t, atEachChange(d, die), d); err != nil {
			t.Fatal(err)
		}
	}
}
