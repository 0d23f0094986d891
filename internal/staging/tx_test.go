package staging

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
)

// begin is Begin of a transaction that the test's end takes back.
func begin(t *testing.T, home string, fsys FS) *Tx {
	t.Helper()
	tx, err := Begin(t.Context(), placeIn(home), Options{FS: fsys, Command: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	})
	return tx
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func newHome(t testing.TB) string {
	home := t.TempDir()
	fullProfile(t, home)
	return home
}

func TestTxCommit(t *testing.T) {
	home := newHome(t)
	old := content(t, home)
	tx := begin(t, home, nil)
	must(t, mixed(t, tx), tx.Commit(), tx.Rollback())
	if err := tx.Commit(); err == nil {
		t.Error("a second commit gives no error")
	}
	if err := tx.WriteFile("late", nil, 0o644); err == nil {
		t.Error("a write after the commit gives no error")
	}

	want := maps.Clone(old)
	for _, gone := range []string{"b/", "b/package.json", "@s/", "@s/only"} {
		delete(want, "profiles/web/node_modules/"+gone)
	}
	maps.Copy(want, map[string]string{
		"profiles/web/package.json":                     `-rw------- {"new":2}`,
		"profiles/web/dsh-lock.yaml":                    "-rw-r--r-- new: 2\n",
		"profiles/web/node_modules/a/package.json":      "-rw-r--r-- a2",
		"profiles/web/node_modules/a/dist/":             "",
		"profiles/web/node_modules/a/dist/main.js":      "-rwxr-xr-x a2",
		"profiles/web/node_modules/@new/":               "",
		"profiles/web/node_modules/@new/c/":             "",
		"profiles/web/node_modules/@new/c/package.json": "-rw-r--r-- c2",
		"profiles/web/node_modules/@new/c/dist/":        "",
		"profiles/web/node_modules/@new/c/dist/main.js": "-rwxr-xr-x c2",
		"profiles/web/node_modules/linked":              "-> ../elsewhere",

		"state/web/generations/":         "",
		"state/web/generations/1.tar.gz": `-rw------- found {cordis.patch.yml -rw-r--r-- []\n} {dsh-lock.yaml -rw-r--r-- old: 1\n} {package.json -rw------- {"old":1}}`,
		"state/web/generations/2.tar.gz": `-rw------- {cordis.patch.yml -rw-r--r-- []\n} {dsh-lock.yaml -rw-r--r-- new: 2\n} {package.json -rw------- {"new":2}}`,
	})
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

// What is written from somewhere takes the place of a link, and does not go
// through it; what fails on the way is no change.
func TestTxWriteFrom(t *testing.T) {
	home := newHome(t)
	dir := placeIn(home).Dir
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("theirs"), 0o644), os.Symlink(outside, filepath.Join(dir, "large.tgz")))
	write := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, writeErr := io.WriteString(w, text)
			return errors.Join(writeErr, err)
		}
	}
	tx := begin(t, home, nil)
	cause := errors.New("half of it")
	if err := tx.WriteFrom("sub/half", 0o644, write("ha", cause)); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	must(t, tx.WriteFrom("large.tgz", 0o644, write("ours", nil)), tx.Commit())
	info, err := os.Lstat(filepath.Join(dir, "large.tgz"))
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, "large.tgz"))
	must(t, err)
	theirs, err := os.ReadFile(outside)
	must(t, err)
	if !info.Mode().IsRegular() || string(text) != "ours" || string(theirs) != "theirs" {
		t.Errorf("%v %q, and %q outside", info.Mode(), text, theirs)
	}
	if _, err := os.Lstat(filepath.Join(dir, "sub/half")); err == nil {
		t.Error("what failed was written")
	}
}

func TestTxRollback(t *testing.T) {
	home := newHome(t)
	old := content(t, home)
	tx := begin(t, home, nil)
	must(t, mixed(t, tx), tx.Rollback(), tx.Rollback())
	if diff := cmp.Diff(old, content(t, home)); diff != "" {
		t.Error(diff)
	}
	// The lock is free again.
	must(t, begin(t, home, nil).Rollback())
}

func TestTxWithoutChange(t *testing.T) {
	home := newHome(t)
	before, err := os.Lstat(home + "/profiles/web/package.json")
	must(t, err)
	tx := begin(t, home, hooked{OS, func(op, path string) error {
		if filepath.Base(path) == "journal" && op != "Open" && op != "Lstat" {
			t.Errorf("%s of the journal", op)
		}
		return nil
	}})
	must(t, tx.WriteFile("package.json", []byte(`{"old":1}`), 0o644), tx.Remove("no/such/thing"), tx.Commit())
	after, err := os.Lstat(home + "/profiles/web/package.json")
	must(t, err)
	if !os.SameFile(before, after) {
		t.Error("the file was replaced by its own content")
	}
}

func TestTxLastWordCounts(t *testing.T) {
	home := newHome(t)
	tx := begin(t, home, nil)
	must(t,
		tx.Remove("package.json"),
		tx.WriteFile("./package.json", []byte("one"), 0o644),
		tx.WriteFile("x/../package.json", []byte("two"), 0o644),
		tx.WriteFile("dsh-lock.yaml", []byte("x"), 0o644),
		tx.Remove("dsh-lock.yaml"),
		tx.Commit())
	got := content(t, home)
	if got["profiles/web/package.json"] != "-rw------- two" || got["profiles/web/dsh-lock.yaml"] != "" {
		t.Error(got)
	}
}

func TestTxExpect(t *testing.T) {
	tests := map[string]struct {
		rel  string
		edit func(t *testing.T, profile string)
	}{
		"other content": {"package.json", func(t *testing.T, p string) { put(t, p+"/package.json", "edited", 0o600) }},
		"removed":       {"package.json", func(t *testing.T, p string) { must(t, os.Remove(p+"/package.json")) }},
		"made":          {"cordis.yml", func(t *testing.T, p string) { put(t, p+"/cordis.yml", "", 0o600) }},
		"only watched":  {"dsh-lock.yaml", func(t *testing.T, p string) { put(t, p+"/dsh-lock.yaml", "edited", 0o600) }},
		"a new file over": {"cordis.patch.yml", func(t *testing.T, p string) {
			put(t, p+"/x", "edited", 0o600)
			must(t, os.Rename(p+"/x", p+"/cordis.patch.yml"))
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			profile := filepath.Join(home, "profiles", "web")
			tx := begin(t, home, nil)
			for _, rel := range []string{"package.json", "dsh-lock.yaml", "cordis.patch.yml", "cordis.yml"} {
				data, err := os.ReadFile(filepath.Join(profile, rel))
				if err != nil {
					data = nil
				}
				must(t, tx.Expect(rel, data))
			}
			must(t, tx.WriteFile("package.json", []byte("new"), 0o644), tx.WriteFile("cordis.patch.yml", []byte("new"), 0o644),
				tx.WriteFile("cordis.yml", []byte("new"), 0o644), tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2")))
			test.edit(t, profile)
			edited := content(t, profile)

			err := tx.Commit()
			changed, ok := errors.AsType[*ChangedError](err)
			if !ok || changed.Path != filepath.Join(profile, test.rel) || fault.ClassOf(err) != fault.Environment || fault.Hint(err) == "" {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(edited, content(t, profile)); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Lstat(tx.Stage()); err == nil {
				t.Error("the staging directory is still there")
			}
		})
	}
}

// The user saves a file while the journal is written, after the comparison.
func TestTxEditAtTheLastMoment(t *testing.T) {
	home := newHome(t)
	file := filepath.Join(home, "profiles", "web", "package.json")
	var edited map[string]string
	tx := begin(t, home, hooked{OS, func(op, path string) error {
		if op == "Rename" && filepath.Base(path) == "journal" {
			put(t, file, "edited", 0o600)
			edited = tree(t, filepath.Dir(file))
		}
		return nil
	}})
	must(t, tx.WriteFile("package.json", []byte("new"), 0o644), tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2")))
	if changed, ok := errors.AsType[*ChangedError](tx.Commit()); !ok || changed.Path != file {
		t.Errorf("the error is %v", changed)
	}
	if diff := cmp.Diff(edited, tree(t, filepath.Dir(file))); diff != "" {
		t.Error(diff)
	}
}

func TestTxRefuses(t *testing.T) {
	home := newHome(t)
	link(t, "../../..", home+"/profiles/web/node_modules/out")
	link(t, "../..", home+"/profiles/web/up.json")
	before := content(t, home)
	outside := filepath.Join(home, "outside")
	tests := map[string]struct {
		do    func(tx *Tx) error
		class fault.Class
	}{
		"up":                 {func(tx *Tx) error { return tx.WriteFile("../x", nil, 0o644) }, fault.Policy},
		"up in the middle":   {func(tx *Tx) error { return tx.Remove("a/../../x") }, fault.Policy},
		"absolute":           {func(tx *Tx) error { return tx.Remove(outside) }, fault.Policy},
		"the profile itself": {func(tx *Tx) error { return tx.Remove("node_modules/..") }, fault.Policy},
		"nothing":            {func(tx *Tx) error { return tx.Expect("", nil) }, fault.Policy},
		"through a link":     {func(tx *Tx) error { return errors.Join(tx.Remove("node_modules/out/profiles"), tx.Commit()) }, fault.Policy},
		"a file as parent":   {func(tx *Tx) error { return errors.Join(tx.WriteFile("package.json/x", nil, 0o644), tx.Commit()) }, fault.Other},
		"bytes for a folder": {func(tx *Tx) error { return errors.Join(tx.WriteFile("node_modules", nil, 0o644), tx.Commit()) }, fault.Other},
		"a link to a folder": {func(tx *Tx) error { return errors.Join(tx.WriteFile("up.json", nil, 0o644), tx.Commit()) }, fault.Other},
		"one in the other": {func(tx *Tx) error {
			return errors.Join(tx.Remove("node_modules"), tx.WriteFile("node_modules/a/package.json", nil, 0o644), tx.Commit())
		}, fault.Other},
		"staged elsewhere":     {func(tx *Tx) error { return tx.Replace("x", home) }, fault.Other},
		"staged beside":        {func(tx *Tx) error { return tx.Replace("x", filepath.Join(tx.Stage(), "..", "old")) }, fault.Other},
		"the stage itself":     {func(tx *Tx) error { return tx.Replace("x", tx.Stage()) }, fault.Other},
		"staged and not there": {func(tx *Tx) error { return tx.Replace("x", filepath.Join(tx.Stage(), "x")) }, fault.Other},
		"staged and gone": {func(tx *Tx) error {
			staged := stageFile(t, tx, "f", "x")
			return errors.Join(tx.Replace("x", staged), os.Remove(staged), tx.Commit())
		}, fault.Other},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			tx := begin(t, home, nil)
			if err := test.do(tx); err == nil || fault.ClassOf(err) != test.class {
				t.Errorf("got class %v, want %v: %v", fault.ClassOf(err), test.class, err)
			}
			must(t, tx.Rollback())
			if diff := cmp.Diff(before, content(t, home)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBeginRefuses(t *testing.T) {
	home := t.TempDir()
	put(t, home+"/profiles/file", "", 0o644)
	link(t, "loop", home+"/profiles/loop")
	link(t, "nothing", home+"/profiles/dangling")
	for _, name := range []string{"missing", "file", "loop", "dangling"} {
		place := Place{Dir: filepath.Join(home, "profiles", name), State: filepath.Join(home, "state", name)}
		_, err := Begin(t.Context(), place, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "opening profile directory") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := TryAcquire(filepath.Join(place.State, "lock"), ""); err != nil {
			t.Errorf("%s: the lock was kept: %v", name, err)
		}
	}
}

// When a rename fails, what was done is undone and the error says so.
func TestTxUndoSaysSo(t *testing.T) {
	home := newHome(t)
	old := content(t, home)
	tx := begin(t, home, hooked{OS, func(op, path string) error {
		if op == "Rename" && strings.HasSuffix(path, "web/dsh-lock.yaml") {
			return syscall.EACCES
		}
		return nil
	}})
	must(t, mixed(t, tx))
	err := tx.Commit()
	if err == nil || !strings.Contains(err.Error(), "everything was put back") || !errors.Is(err, syscall.EACCES) || fault.ClassOf(err) != fault.Environment {
		t.Errorf("the error is %v", err)
	}
	if diff := cmp.Diff(old, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

// No reader ever finds a small file missing.
func TestTxFilesAreNeverAbsent(t *testing.T) {
	home := newHome(t)
	file := filepath.Join(home, "profiles", "web", "package.json")
	tx := begin(t, home, hooked{OS, func(op, path string) error {
		if _, err := os.Lstat(file); err != nil {
			t.Errorf("before %s of %s: %v", op, path, err)
		}
		return nil
	}})
	must(t, mixed(t, tx), tx.Commit())
}

func TestTxWithoutHardLinks(t *testing.T) {
	for name, fail := range map[string]bool{"commits": false, "takes back": true} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			old := content(t, home)
			tx := begin(t, home, hooked{OS, func(op, path string) error {
				switch {
				case op == "Link":
					return syscall.EPERM
				case fail && op == "SyncDir" && filepath.Base(path) == "web" && strings.Contains(path, "profiles"):
					fail = false // once
					return syscall.EIO
				}
				return nil
			}})
			must(t, mixed(t, tx))
			failing := fail
			if err := tx.Commit(); (err != nil) != failing {
				t.Error(err)
			}
			got := content(t, home)
			if failing {
				if diff := cmp.Diff(old, got); diff != "" {
					t.Error(diff)
				}
			} else if got["profiles/web/package.json"] != `-rw------- {"new":2}` {
				t.Error(got)
			}
		})
	}
}

func TestTxOddNames(t *testing.T) {
	for _, name := range append(oddNames, strings.Repeat("n", 230), strings.Repeat("漢", 80)) {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			place := Place{Dir: filepath.Join(home, "profiles", name), State: filepath.Join(home, "state", name), Derived: []string{"node_modules"}}
			put(t, place.Dir+"/package.json", "old", 0o644)
			run := func(fsys FS) error {
				tx, err := Begin(t.Context(), place, Options{FS: fsys})
				if err != nil {
					return err
				}
				return errors.Join(
					tx.WriteFile("package.json", []byte("new"), 0o644),
					tx.Replace("node_modules/"+name, stagePackage(t, tx, name, "1")),
					tx.Commit())
			}
			must(t, run(OS))
			// A second one dies in the middle, and is found by the third.
			put(t, place.Dir+"/package.json", "old", 0o644)
			dead := killed(t, home, func(_ testing.TB, fsys FS, _ string) ([]string, error) { return nil, run(fsys) },
				func(op, path string) bool { return op == "Rename" && path == filepath.Join(place.Dir, "package.json") })
			if !dead {
				t.Fatal("it lived")
			}
			must(t, Recover(t.Context(), place), run(OS))
			_, err := ReplaceDir(t.Context(), place, func(stage string) error {
				return WriteFile(filepath.Join(stage, "package.json"), []byte("fresh"), 0o644)
			}, Options{})
			must(t, err)
			got := content(t, home)
			for path := range got {
				if strings.Contains(path, "/generations/") {
					delete(got, path)
				}
			}
			want := map[string]string{"profiles/" + name + "/": "", "profiles/" + name + "/package.json": "-rw-r--r-- fresh",
				"state/" + name + "/replaced-1/": "", "state/" + name + "/replaced-1/package.json": "-rw-r--r-- new"}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}

			// Back, to another name, away, and there again.
			g, err := place.History().Load(2)
			must(t, err)
			tx, err := Begin(t.Context(), place, Options{})
			must(t, err, tx.Restore(g), tx.Commit())
			to := Place{Dir: place.Dir + "2", State: place.State + "2", Derived: place.Derived}
			must(t, MoveDir(t.Context(), place, to, Options{}))
			_, err = RemoveDir(t.Context(), to, Options{})
			must(t, err)
			tx, err = Begin(t.Context(), to, Options{Init: fill})
			must(t, err, tx.Restore(g), tx.Commit())
			_, err = Read(t.Context(), to, func(v View) error {
				data, err := os.ReadFile(v.Path(filepath.Join(to.Dir, "package.json")))
				if string(data) != "new" {
					t.Errorf("read %q", data)
				}
				return err
			})
			must(t, err)
		})
	}
}

func TestBeginWaitsAndNames(t *testing.T) {
	home := newHome(t)
	first := begin(t, home, nil)
	var holders []Holder
	second, err := Begin(t.Context(), placeIn(home), Options{Command: "second", Waiting: func(h Holder) {
		holders = append(holders, h)
		must(t, first.Rollback())
	}})
	must(t, err, second.Rollback())
	if len(holders) != 1 || holders[0].Command != "test" || time.Since(holders[0].Since) > time.Minute {
		t.Errorf("waited for %v", holders)
	}
}

// fill is an Init that makes a manifest.
func fill(dir string) error {
	return WriteFile(filepath.Join(dir, "package.json"), []byte("made"), 0o644)
}

func TestBeginInit(t *testing.T) {
	home := t.TempDir()
	place := placeIn(home)
	tx, err := Begin(t.Context(), place, Options{Command: "test", Init: fill})
	must(t, err)
	if !tx.Creating() || tx.Dir() == place.Dir || tree(t, tx.Dir())["package.json"] != "-rw-r--r-- made" {
		t.Errorf("it is made in %s: %t", tx.Dir(), tx.Creating())
	}
	if _, err := os.Lstat(place.Dir); err == nil {
		t.Error("the profile is there before the commit")
	}
	must(t,
		tx.WriteFile("package.json", []byte("one"), 0o644),
		tx.WriteFile("package.json", []byte("two"), 0o644),
		tx.WriteFile("gone", []byte("x"), 0o644), tx.Remove("gone"),
		tx.Replace("node_modules/a", stagePackage(t, tx, "a", "a2")),
		tx.Commit())
	want := map[string]string{
		"profiles/web/": "", "profiles/web/package.json": "-rw-r--r-- two", "profiles/web/node_modules/": "",
		"profiles/web/node_modules/a/": "", "profiles/web/node_modules/a/package.json": "-rw-r--r-- a2",
		"profiles/web/node_modules/a/dist/": "", "profiles/web/node_modules/a/dist/main.js": "-rwxr-xr-x a2",
		"state/web/generations/": "", "state/web/generations/1.tar.gz": "-rw------- {package.json -rw-r--r-- two}",
	}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
	if tx.Saved() != 1 || len(tx.Warnings()) > 0 {
		t.Errorf("generation %d, warnings %q", tx.Saved(), tx.Warnings())
	}
	// Now it is there, and nobody makes it again.
	tx, err = Begin(t.Context(), place, Options{Init: func(string) error { return errors.New("called") }})
	must(t, err)
	if tx.Creating() || tx.Dir() != place.Dir {
		t.Errorf("it is made again in %s", tx.Dir())
	}
	must(t, tx.Rollback())
}

func TestBeginInitLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	for name, run := range map[string]func(place Place) error{
		"init fails": func(place Place) error {
			_, err := Begin(t.Context(), place, Options{Init: func(dir string) error { return errors.Join(fill(dir), broken) }})
			return err
		},
		"rollback": func(place Place) error {
			tx, err := Begin(t.Context(), place, Options{Init: fill})
			must(t, err, tx.WriteFile("x", nil, 0o644), tx.Rollback())
			return broken
		},
		"expected otherwise": func(place Place) error {
			tx, err := Begin(t.Context(), place, Options{Init: fill})
			must(t, err, tx.WriteFile("x", nil, 0o644), tx.Expect("package.json", []byte("else")))
			_, changed := errors.AsType[*ChangedError](tx.Commit())
			if !changed {
				t.Error("it is as expected")
			}
			return broken
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			if err := run(placeIn(home)); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(map[string]string{}, content(t, home)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Somebody who does not know the lock makes the profile meanwhile: theirs stays.
func TestBeginInitRace(t *testing.T) {
	home := t.TempDir()
	place := placeIn(home)
	tx, err := Begin(t.Context(), place, Options{Init: fill})
	must(t, err)
	winner(t, place.Dir, "")
	if _, lost := errors.AsType[*LostRace](tx.Commit()); !lost {
		t.Error("the race is won")
	}
	want := map[string]string{"profiles/web/": "", "profiles/web/package.json": "-rw-r--r-- winner"}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	id := func(name string) string {
		got, err := OS.Identity(filepath.Join(dir, name))
		must(t, err)
		return got
	}
	mkdir(t, dir+"/a")
	first := id("a")
	if again := id("a"); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	must(t, os.Rename(dir+"/a", dir+"/b"))
	if moved := id("b"); moved != first {
		t.Errorf("%s, then %s when renamed", first, moved)
	}
	must(t, os.Remove(dir+"/b"))
	mkdir(t, dir+"/b") // gets the same inode number on many systems
	if anew := id("b"); anew == first {
		t.Errorf("made anew it has the same identity %s", anew)
	}
	if _, err := OS.Identity(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

// Where something holds what is replaced the change is made all the same, and the
// next command removes what is left.
func TestTxLeftovers(t *testing.T) {
	for _, held := range []string{"old", "files", "lock", "journal", "commits"} {
		home := newHome(t)
		want := newHome(t)
		must(t, inTxOK(t, want, mixed))
		tx := begin(t, home, hooked{OS, func(op, path string) error {
			removed := op == "Remove" || op == "RemoveAll" || op == "Rename" && held == "commits"
			if removed && filepath.Base(path) == held {
				return syscall.EBUSY
			}
			return nil
		}})
		must(t, mixed(t, tx), tx.Commit())
		if len(tx.Warnings()) != 1 || !strings.Contains(tx.Warnings()[0], "busy") {
			t.Errorf("%s: the warnings are %q", held, tx.Warnings())
		}
		must(t, Recover(t.Context(), placeIn(home)))
		noStage(t, home)
		if diff := cmp.Diff(content(t, want), content(t, home)); diff != "" {
			t.Errorf("%s: %s", held, diff)
		}
	}
}

func inTxOK(t *testing.T, home string, fill func(testing.TB, *Tx) error) error {
	_, err := inTx(fill)(t, OS, home)
	return err
}
