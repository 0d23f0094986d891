package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
)

// Each commit that changes a small file saves the state, and what it found where
// that was not saved; nothing else does.
func TestTxSaves(t *testing.T) {
	home := newHome(t)
	file := placeIn(home).Dir + "/package.json"
	steps := []struct {
		name  string
		edit  string // by hand before
		do    func(tx *Tx) error
		saved int
		list  []string // commands and manifests, the oldest first
	}{
		{"packages only", "", func(tx *Tx) error { return tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2")) }, 0, nil},
		{"a derived file", "", func(tx *Tx) error { return tx.WriteFile("cordis.yml", []byte("x"), 0o644) }, 0, nil},
		{"nothing", "", func(tx *Tx) error { return tx.WriteFile("package.json", []byte(`{"old":1}`), 0o644) }, 0, nil},
		{"the first", "", write("1"), 2, []string{`:{"old":1}`, "test:1"}},
		{"the same", "", write("1"), 0, []string{`:{"old":1}`, "test:1"}},
		{"the second", "", write("2"), 3, []string{`:{"old":1}`, "test:1", "test:2"}},
		{"packages after an edit", "hand", func(tx *Tx) error { return tx.Remove("node_modules/a") }, 0, []string{`:{"old":1}`, "test:1", "test:2"}},
		{"a file after an edit", "hand", write("3"), 5, []string{`:{"old":1}`, "test:1", "test:2", ":hand", "test:3"}},
		{"back to an older state", "", write("2"), 6, []string{`:{"old":1}`, "test:1", "test:2", ":hand", "test:3", "test:2"}},
	}
	for _, step := range steps {
		if step.edit != "" {
			put(t, file, step.edit, 0o600)
		}
		tx := begin(t, home, nil)
		must(t, step.do(tx), tx.Commit())
		list, err := placeIn(home).History().List()
		must(t, err)
		var got []string
		for _, g := range list {
			manifest, _ := g.File("package.json")
			got = append([]string{g.Command + ":" + string(manifest)}, got...)
		}
		if diff := cmp.Diff(step.list, got); diff != "" || tx.Saved() != step.saved {
			t.Errorf("%s: saved as %d: %s", step.name, tx.Saved(), diff)
		}
	}
}

func write(manifest string) func(tx *Tx) error {
	return func(tx *Tx) error { return tx.WriteFile("package.json", []byte(manifest), 0o644) }
}

// What a link leads to outside is changed by way of the link and saved beside it,
// for all links that lead there. A rollback leaves it alone, and says so.
func TestTxSavesWhatLinksLeadTo(t *testing.T) {
	home := newHome(t)
	place, outside := placeIn(home), filepath.Join(home, "dotfiles", "web.json")
	moveAndLink(t, place.Dir+"/package.json", outside)
	link(t, outside, place.Dir+"/again")
	before, err := Snapshot(place)
	must(t, err)
	tx := begin(t, home, nil)
	must(t, write("new")(tx), tx.Commit())
	g, err := place.History().Load(tx.Saved())
	must(t, err)
	if data, _ := g.File("package.json"); string(data) != "new" {
		t.Errorf("saved is %q", data)
	}
	now, err := Snapshot(place)
	must(t, err)
	if !Same(g, now) {
		t.Error(cmp.Diff(g, now, public))
	}
	all := content(t, home)
	tx = begin(t, home, nil)
	must(t, tx.Restore(before), tx.Commit())
	if diff := cmp.Diff(all, content(t, home)); diff != "" {
		t.Error(diff)
	}
	after, left, err := place.Restored(before)
	must(t, err)
	if diff := cmp.Diff([]LeftAlone{{"again", outside}, {"package.json", outside}}, left); diff != "" || !Same(now, after) {
		t.Error(diff, cmp.Diff(now, after, public))
	}
	if _, left, err := place.Restored(g); len(left) > 0 || err != nil {
		t.Error(left, err)
	}
}

// A rollback writes into no file outside, whatever became of the link: it makes
// it lead where it did.
func TestRestoreLinks(t *testing.T) {
	for name, turn := range map[string]func(t *testing.T, path string){
		"leads elsewhere":   func(t *testing.T, path string) { link(t, "../../two", path) },
		"is gone":           func(t *testing.T, path string) {},
		"is a file":         func(t *testing.T, path string) { put(t, path, "mine", 0o644) },
		"is a folder":       func(t *testing.T, path string) { put(t, path+"/a", "mine", 0o644) },
		"leads to a folder": func(t *testing.T, path string) { link(t, "../../three", path) },
	} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			place := placeIn(home)
			put(t, home+"/one", "of one", 0o600)
			put(t, home+"/two", "of two", 0o600)
			put(t, home+"/three/four", "of three", 0o600)
			link(t, "../../one", place.Dir+"/.env")
			before, err := Snapshot(place)
			must(t, err)
			put(t, home+"/one", "later", 0o600)
			must(t, os.Remove(place.Dir+"/.env"))
			turn(t, place.Dir+"/.env")
			tx := begin(t, home, nil)
			must(t, tx.Restore(before), tx.Commit())
			got := content(t, home)
			for path, want := range map[string]string{
				"one": "-rw------- later", "two": "-rw------- of two", "three/four": "-rw------- of three", "profiles/web/.env": "-> ../../one",
			} {
				if got[path] != want {
					t.Errorf("%s is %s", path, got[path])
				}
			}
		})
	}
}

// A link to a file inside stays a link, and the file is what changes.
func TestTxSavesLinksInside(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	moveAndLink(t, place.Dir+"/package.json", place.Dir+"/config/web.json")
	tx := begin(t, home, nil)
	must(t, write("new")(tx), tx.Commit())
	g, err := place.History().Load(tx.Saved())
	must(t, err)
	now, err := Snapshot(place)
	must(t, err)
	if diff := cmp.Diff(now.Files, g.Files); diff != "" {
		t.Error(diff)
	}
	if data, _ := g.File("config/web.json"); string(data) != "new" {
		t.Errorf("saved is %q", data)
	}
	before, err := place.History().Load(1)
	must(t, err)
	tx = begin(t, home, nil)
	must(t, tx.Restore(before), tx.Commit())
	if data, err := os.ReadFile(place.Dir + "/package.json"); err != nil || string(data) != `{"old":1}` {
		t.Errorf("restored is %q, error %v", data, err)
	}
}

// A damaged generation is told of, and keeps nobody from anything.
func TestTxWithDamagedHistory(t *testing.T) {
	home := newHome(t)
	put(t, placeIn(home).State+"/generations/7.tar.gz", "damaged", 0o600)
	tx := begin(t, home, nil)
	must(t, write("new")(tx), tx.Commit())
	if tx.Saved() != 9 || len(tx.Warnings()) != 1 || !strings.Contains(tx.Warnings()[0], "7.tar.gz is damaged") {
		t.Errorf("saved as %d, warnings %q", tx.Saved(), tx.Warnings())
	}
}

func TestRestore(t *testing.T) {
	home := t.TempDir()
	restorable(t, home)
	place := placeIn(home)
	put(t, place.Dir+"/large", strings.Repeat("x", largestFile+1), 0o644)
	put(t, place.Dir+"/kept-elsewhere", "not touched", 0o644)
	put(t, place.Dir+"/agent-plugins/new/node_modules/x/y", "derived", 0o644)
	want := &Generation{TooLarge: []Skipped{{"kept-elsewhere", LargeFile}}, Files: []SavedFile{
		{"agent-plugins/old/main.js", 0o755, []byte("back")},
		{"cordis.patch.yml", 0o600, []byte("[]\n")},
		{"large", 0o644, []byte("not touched")},
		{"run.sh", 0o444, []byte("same")},
	}}
	tx := begin(t, home, nil)
	must(t, tx.Restore(want), tx.Commit())
	got, err := Snapshot(place)
	must(t, err)
	files := []SavedFile{want.Files[0], want.Files[1], saved("kept-elsewhere", "not touched"), want.Files[3]}
	if diff := cmp.Diff(files, got.Files); diff != "" {
		t.Error(diff)
	}
	all := content(t, home)
	for path, there := range map[string]bool{
		"agent-plugins/new/node_modules/x/y": true, "agent-plugins/new/deep/": false, "was-file/": false,
		"node_modules/a/package.json": true, "large": true,
	} {
		if _, is := all["profiles/web/"+path]; is != there {
			t.Errorf("%s is there: %t", path, is)
		}
	}
	// The way back is the same.
	before, err := place.History().Load(1)
	must(t, err)
	tx = begin(t, home, nil)
	must(t, tx.Restore(before), tx.Commit())
	again, err := Snapshot(place)
	must(t, err)
	if diff := cmp.Diff(before.Files, again.Files); diff != "" {
		t.Error(diff)
	}
}

// What a change leaves is judged by the same rules as what is found: at the limits
// the next command finds no edit that nobody made.
func TestTxSavesAtTheLimits(t *testing.T) {
	for name, test := range map[string]struct {
		fill func(t *testing.T, dir string)
		do   func(tx *Tx) error
	}{
		"the sum grows": {func(t *testing.T, dir string) {
			for i := range largestSum / largestFile {
				put(t, filepath.Join(dir, "d", strconv.Itoa(i)), strings.Repeat("x", largestFile-2048), 0o644)
			}
			put(t, filepath.Join(dir, "e"), strings.Repeat("x", 2048), 0o644)
		}, func(tx *Tx) error { return tx.WriteFile("dsh-lock.yaml", make([]byte, 100_000), 0o644) }},
		"the sum shrinks": {func(t *testing.T, dir string) {
			put(t, filepath.Join(dir, "e"), strings.Repeat("x", 100_000), 0o644)
			for i := range largestSum / largestFile {
				put(t, filepath.Join(dir, "d", strconv.Itoa(i)), strings.Repeat("x", largestFile-2048), 0o644)
			}
		}, func(tx *Tx) error { return tx.Remove("e") }},
		"the count grows": {func(t *testing.T, dir string) {
			for i := range largestCount {
				put(t, filepath.Join(dir, "d", strconv.Itoa(i)), "", 0o644)
			}
		}, func(tx *Tx) error { return tx.WriteFile("d/new", nil, 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			place := placeIn(home)
			test.fill(t, place.Dir)
			before, err := Snapshot(place)
			must(t, err)
			tx := begin(t, home, nil)
			must(t, test.do(tx), tx.Commit())
			g, err := place.History().Load(tx.Saved())
			must(t, err)
			now, err := Snapshot(place)
			must(t, err)
			if !Same(g, now) || !slices.Equal(g.TooLarge, now.TooLarge) {
				t.Errorf("saved without %v, found without %v", g.TooLarge, now.TooLarge)
			}
			if slices.Equal(before.TooLarge, now.TooLarge) {
				t.Errorf("it is not at the limit: %v", now.TooLarge)
			}
		})
	}
}

// Directories that a rollback makes are for the same people as they were.
func TestRestoreDirectories(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	put(t, place.Dir+"/keys/deep/token", "secret", 0o644)
	put(t, place.Dir+"/keys/plain/note", "x", 0o644)
	put(t, place.Dir+"/plain/note", "x", 0o644)
	must(t, os.Chmod(place.Dir, 0o750), os.Chmod(place.Dir+"/keys", 0o700), os.Chmod(place.Dir+"/keys/deep", 0o500))
	g, err := Snapshot(place)
	must(t, err)
	want := []SavedFile{{Path: ".", Mode: fs.ModeDir | 0o750}, {Path: "keys", Mode: fs.ModeDir | 0o700}, {Path: "keys/deep", Mode: fs.ModeDir | 0o500}}
	if diff := cmp.Diff(want, g.Dirs); diff != "" {
		t.Error(diff)
	}
	must(t, os.Chmod(place.Dir+"/keys/deep", 0o700), os.RemoveAll(place.Dir+"/keys"), os.RemoveAll(place.Dir+"/plain"))
	restored := func(tx *Tx, place Place) {
		t.Helper()
		must(t, tx.Restore(g), tx.Commit())
		for path, want := range map[string]fs.FileMode{"": 0o750, "keys": 0o700, "keys/deep": 0o700, "keys/plain": 0o755, "plain": 0o755} {
			if info, err := os.Stat(filepath.Join(place.Dir, path)); err != nil || info.Mode().Perm() != want {
				t.Errorf("%q: %v, %v", path, info, err)
			}
		}
		now, err := Snapshot(place)
		must(t, err)
		if diff := cmp.Diff(g.Files, now.Files); diff != "" {
			t.Error(diff)
		}
	}
	tx := begin(t, home, nil)
	restored(tx, place)
	other := newHome(t)
	gone := placeIn(other)
	must(t, os.RemoveAll(gone.Dir))
	tx, err = Begin(t.Context(), gone, Options{Init: func(string) error { return nil }})
	must(t, err)
	restored(tx, gone)
}

// What no generation keeps is not removed to make place for what one has.
func TestRestoreInTheWay(t *testing.T) {
	for _, path := range []string{"was-file/node_modules/x/y", "was-file/large", "was-file/deep/.git/HEAD"} {
		home := t.TempDir()
		restorable(t, home)
		size := 1
		if filepath.Base(path) == "large" {
			size = largestFile + 1
		}
		put(t, filepath.Join(placeIn(home).Dir, path), strings.Repeat("x", size), 0o644)
		before := content(t, home)
		tx := begin(t, home, nil)
		if err := restore(t, tx); err == nil || !strings.Contains(err.Error(), "is in the way") || fault.Hint(err) == "" {
			t.Errorf("%s: %v", path, err)
		}
		must(t, tx.Rollback())
		if diff := cmp.Diff(before, content(t, home)); diff != "" {
			t.Error(diff)
		}
	}
}

// Whatever somebody edits between what the transaction is told and its commit, or
// while the journal is written, stays, and nothing changes.
func TestTxKeepsEdits(t *testing.T) {
	edits := map[string]struct {
		path string
		edit func(t *testing.T, profile string)
	}{
		"the file that goes":     {"dsh-lock.yaml", func(t *testing.T, p string) { put(t, p+"/dsh-lock.yaml", "edited", 0o644) }},
		"the file that changes":  {"package.json", func(t *testing.T, p string) { put(t, p+"/package.json", "edited", 0o600) }},
		"the file that comes":    {"extra.yml", func(t *testing.T, p string) { put(t, p+"/extra.yml", "edited", 0o644) }},
		"a folder for the link":  {"link", func(t *testing.T, p string) { put(t, p+"/link/x", "edited", 0o644) }},
		"a link for a folder":    {"notes", func(t *testing.T, p string) { must(t, os.RemoveAll(p+"/notes")); link(t, "x", p+"/notes") }},
		"where the link leads":   {"turned", func(t *testing.T, p string) { must(t, os.Remove(p+"/turned")); link(t, "edited", p+"/turned") }},
		"a file for the package": {"", func(t *testing.T, p string) { put(t, p+"/node_modules/new/x", "edited", 0o644) }},
	}
	setup := func(t *testing.T) string {
		home := newHome(t)
		p := placeIn(home).Dir
		put(t, p+"/notes/today", "old", 0o644)
		link(t, "old", p+"/turned")
		return home
	}
	tell := func(t *testing.T, tx *Tx) {
		must(t,
			tx.Remove("dsh-lock.yaml"), write("new")(tx), tx.WriteFile("extra.yml", []byte("new"), 0o644),
			tx.Replace("link", stageLink(t, tx, "l", "new")), tx.Replace("notes", stagePackage(t, tx, "notes", "new")),
			tx.Remove("turned"), tx.Replace("node_modules/new", stagePackage(t, tx, "n", "new")))
	}
	for name, test := range edits {
		check := func(t *testing.T, home string, edited map[string]string, err error) {
			changed, ok := errors.AsType[*ChangedError](err)
			if test.path == "" {
				if err != nil {
					t.Errorf("packages are nobody's to edit: %v", err)
				}
				return
			}
			if !ok || changed.Path != filepath.Join(placeIn(home).Dir, test.path) {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(edited, content(t, home)); diff != "" {
				t.Error(diff)
			}
			noStage(t, home)
		}
		t.Run(name+", before the commit", func(t *testing.T) {
			home := setup(t)
			tx := begin(t, home, nil)
			tell(t, tx)
			test.edit(t, placeIn(home).Dir)
			edited := content(t, home)
			for path := range edited {
				if strings.Contains(path, stagingMark) && !strings.Contains(path, "not-ours") && !strings.Contains(path, "web.staging-0123456789ab") {
					delete(edited, path)
				}
			}
			check(t, home, edited, tx.Commit())
		})
		t.Run(name+", while the journal is written", func(t *testing.T) {
			home := setup(t)
			tx := begin(t, home, hooked{OS, func(op, path string) error {
				if op == "Rename" && filepath.Base(path) == "journal" {
					test.edit(t, placeIn(home).Dir)
				}
				return nil
			}})
			tell(t, tx)
			err := tx.Commit()
			copyHome := setup(t)
			test.edit(t, placeIn(copyHome).Dir)
			check(t, home, content(t, copyHome), err)
		})
		t.Run(name+", after the process died", func(t *testing.T) {
			home := setup(t)
			dead := killed(t, home, inTx(func(t2 testing.TB, tx *Tx) error { tell(t, tx); return nil }), func(op, path string) bool {
				return (op == "Rename" || op == "Exchange") && strings.Contains(path, "old"+string(filepath.Separator))
			})
			if !dead {
				t.Fatal("it lived")
			}
			test.edit(t, placeIn(home).Dir)
			tx := begin(t, home, nil)
			warnings := tx.Warnings()
			must(t, tx.Rollback())
			if test.path == "" {
				return
			}
			copyHome := setup(t)
			test.edit(t, placeIn(copyHome).Dir)
			if diff := cmp.Diff(content(t, copyHome), content(t, home)); diff != "" {
				t.Errorf("warnings %q: %s", warnings, diff)
			}
			if len(warnings) != 1 || !strings.Contains(warnings[0], test.path+" was edited since") {
				t.Errorf("the warnings are %q", warnings)
			}
		})
	}
}

// The same for files that a restored generation changes.
func TestRestoreKeepsEdits(t *testing.T) {
	for _, path := range []string{"package.json", "run.sh", "was-link", "agent-plugins/new/deep/main.js", "agent-plugins/old/main.js", "cordis.patch.yml"} {
		home := t.TempDir()
		restorable(t, home)
		tx := begin(t, home, nil)
		must(t, restore(t, tx))
		file := filepath.Join(placeIn(home).Dir, path)
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		put(t, file, "edited", 0o644)
		if changed, ok := errors.AsType[*ChangedError](tx.Commit()); !ok || changed.Path != file {
			t.Errorf("%s: %v", path, changed)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != "edited" {
			t.Errorf("%s is %q, error %v", path, got, err)
		}
	}
}

// No reader ever finds a directory missing that is replaced whole.
func TestExchangeIsNeverAbsent(t *testing.T) {
	check := func(t *testing.T, home string) FS {
		return hooked{OS, func(op, path string) error {
			for _, path := range []string{placeIn(home).Dir, placeIn(home).Dir + "/node_modules"} {
				if _, err := os.Lstat(path); err != nil {
					t.Errorf("before %s of %s: %v", op, path, err)
				}
			}
			return nil
		}}
	}
	if err := OS.Exchange(t.TempDir(), t.TempDir()); errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system cannot exchange")
	}
	home := newHome(t)
	tx := begin(t, home, check(t, home))
	stagePackage(t, tx, "node_modules/c", "c2")
	must(t, tx.Replace("node_modules", filepath.Join(tx.Stage(), "node_modules")), tx.Commit())
	if got := tree(t, placeIn(home).Dir)["node_modules/c/package.json"]; got != "-rw-r--r-- c2" {
		t.Error(got)
	}
	_, err := ReplaceDir(t.Context(), placeIn(home), func(stage string) error {
		return errors.Join(os.Mkdir(stage+"/node_modules", 0o755), fill(stage))
	}, Options{FS: check(t, home)})
	must(t, err)
}

// Between the exchange and its end somebody else, or a failure, comes in.
func TestExchangeRaces(t *testing.T) {
	t.Run("a winner before the exchange", func(t *testing.T) {
		home := newHome(t)
		_, err := replaceWith(t, home, hooked{OS, func(op, path string) error {
			if _, err := os.Lstat(home + "/theirs"); op == "Exchange" && err != nil {
				winner(t, placeIn(home).Dir, home+"/theirs")
			}
			return nil
		}}, "ours")
		if _, lost := errors.AsType[*LostRace](err); !lost {
			t.Errorf("the error is %v", err)
		}
		if got := tree(t, placeIn(home).Dir)["package.json"]; got != "-rw-r--r-- winner" {
			t.Error(got)
		}
		noStage(t, home)
	})
	t.Run("the old one cannot be moved on", func(t *testing.T) {
		home := newHome(t)
		before := content(t, home)
		_, err := replaceWith(t, home, hooked{OS, func(op, path string) error {
			if op == "Rename" && strings.Contains(path, backupMark) {
				return syscall.EACCES
			}
			return nil
		}}, "ours")
		if !errors.Is(err, syscall.EACCES) {
			t.Errorf("the error is %v", err)
		}
		if diff := cmp.Diff(before, content(t, home)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nor be put back", func(t *testing.T) {
		home := newHome(t)
		exchanges := 0
		_, err := replaceWith(t, home, hooked{OS, func(op, path string) error {
			if op == "Exchange" {
				exchanges++
			}
			if op == "Rename" && strings.Contains(path, backupMark) || exchanges > 1 && op == "Exchange" {
				return syscall.EACCES
			}
			return nil
		}}, "ours")
		stages, _ := filepath.Glob(home + "/profiles/.web.staging-????????????/new")
		if len(stages) != 1 || err == nil || !strings.Contains(err.Error(), stages[0]) {
			t.Fatalf("the error is %v, the old one in %q", err, stages)
		}
		must(t, Recover(t.Context(), placeIn(home)))
		got := content(t, home)
		if got["profiles/web/package.json"] != "-rw-r--r-- ours" || got["state/web/replaced-1/package.json"] != `-rw------- {"old":1}` {
			t.Error(got)
		}
		noStage(t, home)
	})
}

// Where names that differ by case are one name, a file that was given the other
// name is not lost when it is to have the first again.
func TestRestoreCase(t *testing.T) {
	disk := newSimDisk(simOptions{foldCase: true})
	place := placeIn(simRoot)
	disk.put(t, place.Dir+"/README", "edited", 0o644)
	disk.put(t, place.Dir+"/notes", "as it was", 0o644)
	tx, err := Begin(t.Context(), place, Options{FS: disk})
	must(t, err, tx.Restore(&Generation{Files: []SavedFile{saved("NOTES", "as it was"), saved("Readme", "back")}}), tx.Commit())
	want := map[string]string{"README": "-rw-r--r-- back", "notes": "-rw-r--r-- as it was"}
	if diff := cmp.Diff(want, disk.tree(place.Dir)); diff != "" {
		t.Error(diff)
	}
}
