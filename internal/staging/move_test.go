package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMoveDir(t *testing.T) {
	home := t.TempDir()
	movable(t, home)
	want := map[string]string{}
	for path, is := range tree(t, placeIn(home).Dir) {
		want["profiles/web moved/"+path] = is
	}
	must(t, MoveDir(t.Context(), placeIn(home), movedIn(home), Options{}))
	const ours = `{cordis.patch.yml -rw-r--r-- []\n} {dsh-lock.yaml -rw-r--r-- old: 1\n} {package.json -rw------- {"old":1}}`
	for path, is := range map[string]string{
		"profiles/web moved/": "", "profiles/web.staging-0123456789ab/": "", "profiles/.web.staging-not-ours/": "",
		"state/web moved/generations/":            "",
		"state/web moved/generations/1.tar.gz":    "-rw------- {package.json -rw-r--r-- of another}",
		"state/web moved/generations/2.tar.gz":    "-rw------- " + ours,
		"state/web moved/generations/2.pin":       "-rw------- ",
		"state/web moved/replaced-1/":             "",
		"state/web moved/replaced-1/package.json": "-rw-r--r-- of another",
		"state/web moved/replaced-2/":             "",
		"state/web moved/replaced-2/package.json": "-rw-r--r-- replaced",
	} {
		want[path] = is
	}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
	// The state belongs to the directory: what dies in it is finished.
	place := movedIn(home)
	tx, err := Begin(t.Context(), place, Options{})
	must(t, err, write("new")(tx), tx.Commit())
	if tx.Saved() != 3 {
		t.Errorf("saved as %d", tx.Saved())
	}
	// And the old name is free.
	tx, err = Begin(t.Context(), placeIn(home), Options{Init: fill})
	must(t, err, tx.Commit())
	if tx.Saved() != 1 {
		t.Errorf("saved as %d", tx.Saved())
	}
}

func TestMoveDirRefuses(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, home string)
		want    error
	}{
		"a profile is there": {func(t *testing.T, home string) { put(t, movedIn(home).Dir+"/package.json", "theirs", 0o644) }, fs.ErrExist},
		"an empty directory": {func(t *testing.T, home string) { mkdir(t, movedIn(home).Dir) }, fs.ErrExist},
		"a dangling link":    {func(t *testing.T, home string) { link(t, "nowhere", movedIn(home).Dir) }, fs.ErrExist},
		"nothing to move":    {func(t *testing.T, home string) { must(t, os.RemoveAll(placeIn(home).Dir)) }, fs.ErrNotExist},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			movable(t, home)
			test.prepare(t, home)
			before := content(t, home)
			if err := MoveDir(t.Context(), placeIn(home), movedIn(home), Options{}); !errors.Is(err, test.want) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, content(t, home)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Somebody who does not know the locks makes a profile of the new name meanwhile.
func TestMoveDirRace(t *testing.T) {
	home := t.TempDir()
	movable(t, home)
	before := content(t, home)
	err := MoveDir(t.Context(), placeIn(home), movedIn(home), Options{FS: hooked{OS, func(op, path string) error {
		if op == "RenameNew" && path == movedIn(home).Dir {
			put(t, path+"/package.json", "winner", 0o644)
		}
		return nil
	}}})
	if !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	before["profiles/web moved/"], before["profiles/web moved/package.json"] = "", "-rw-r--r-- winner"
	if diff := cmp.Diff(before, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

// A profile that was removed by hand after the mover died keeps its history.
func TestMoveDirOfWhatIsGone(t *testing.T) {
	home := t.TempDir()
	movable(t, home)
	dead := killed(t, home, moveProfile, func(op, path string) bool { return op == "RenameNew" && path == movedIn(home).Dir })
	if !dead {
		t.Fatal("it lived")
	}
	must(t, os.RemoveAll(placeIn(home).Dir), recoverFast(t, home))
	for place, want := range map[string]int{placeIn(home).State: 1, movedIn(home).State: 1} {
		if list, err := OpenHistory(place + "/generations").List(); err != nil || len(list) != want {
			t.Errorf("%s has %d generations, error %v", place, len(list), err)
		}
	}
}

// Two that move in opposite directions wait for each other, and not for ever.
func TestMoveDirCrossing(t *testing.T) {
	home := t.TempDir()
	places := []Place{placeIn(home), movedIn(home)}
	for _, place := range places {
		put(t, place.Dir+"/package.json", filepath.Base(place.Dir), 0o644)
	}
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			if err := MoveDir(t.Context(), places[i], places[1-i], Options{}); !errors.Is(err, fs.ErrExist) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
}

func TestRemoveDir(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	r, err := RemoveDir(t.Context(), place, Options{Command: "test"})
	if err != nil || r.Warnings != nil || r.Kept != filepath.Join(place.State, "replaced-1") {
		t.Fatal(r, err)
	}
	want := map[string]string{
		"profiles/web.staging-0123456789ab/": "", "profiles/.web.staging-not-ours/": "",
		"state/web/generations/":                "",
		"state/web/generations/1.tar.gz":        `-rw------- found {cordis.patch.yml -rw-r--r-- []\n} {dsh-lock.yaml -rw-r--r-- old: 1\n} {package.json -rw------- {"old":1}}`,
		"state/web/replaced-1/":                 "",
		"state/web/replaced-1/cordis.patch.yml": "-rw-r--r-- []\n",
		"state/web/replaced-1/dsh-lock.yaml":    "-rw-r--r-- old: 1\n",
		"state/web/replaced-1/package.json":     `-rw------- {"old":1}`,
	}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
	if _, err := RemoveDir(t.Context(), place, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	// What is made anew can go back to what was there.
	tx, err := Begin(t.Context(), place, Options{Command: "test", Init: fill})
	must(t, err)
	g, err := place.History().Load(1)
	must(t, err, tx.Restore(g), tx.Commit())
	if tx.Saved() != 0 { // it is the newest already
		t.Errorf("saved as %d", tx.Saved())
	}
	if got := tree(t, place.Dir); got["package.json"] != `-rw------- {"old":1}` || got["dsh-lock.yaml"] == "" {
		t.Error(got)
	}
}

// Where names that differ by case are one name, a profile can get the other.
func TestMoveDirCase(t *testing.T) {
	disk := newSimDisk(simOptions{foldCase: true})
	from, to := placeIn(simRoot), placeIn(simRoot)
	to.Dir, to.State = filepath.Join(filepath.Dir(to.Dir), "Web"), filepath.Join(filepath.Dir(to.State), "Web")
	disk.put(t, from.Dir+"/package.json", "old", 0o644)
	must(t, MoveDir(t.Context(), from, to, Options{FS: disk}))
	tx, err := Begin(t.Context(), to, Options{FS: disk})
	must(t, err, write("new")(tx), tx.Commit())
	got := disk.tree(simRoot)
	if got["profiles/Web/package.json"] != "-rw-r--r-- new" || tx.Saved() != 2 {
		t.Errorf("saved as %d: %v", tx.Saved(), got)
	}
	if _, there := got["state/Web/"]; !there {
		t.Error(got)
	}
	if err := MoveDir(t.Context(), to, to, Options{FS: disk}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("to itself: %v", err)
	}
}

// Where there is nothing to move, no state is made for the new name.
func TestMoveDirLeavesNoState(t *testing.T) {
	home := newHome(t)
	place, moved := placeIn(home), movedIn(home)
	must(t, os.RemoveAll(place.Dir))
	if err := MoveDir(t.Context(), place, moved, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(moved.State); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the state of the new name: %v", err)
	}
}
