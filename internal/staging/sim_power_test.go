package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/cryptotest"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// A simScenario is a scenario on a simulated disk.
type simScenario struct {
	name  string
	whole bool // lose power also while the next process recovers
	setup func(t testing.TB, d *simDisk)
	run   func(t testing.TB, fsys FS, d *simDisk) error
}

func simPlace() Place {
	place := placeIn(simRoot)
	place.Derived = []string{"node_modules", "cordis.yml"}
	return place
}

// otherPlace is of the name that a profile gets.
func otherPlace() Place {
	place := simPlace()
	place.Dir, place.State = filepath.Join(simRoot, "profiles", "other"), filepath.Join(simRoot, "state", "other")
	return place
}

func inProfile(path string) string { return filepath.Join(simPlace().Dir, path) }

// simProfile is a profile as installs leave it.
func simProfile(t testing.TB, d *simDisk) {
	d.put(t, inProfile("package.json"), `{"old":1}`, 0o600)
	d.put(t, inProfile("dsh-lock.yaml"), "old: 1\n", 0o644)
	d.put(t, inProfile("cordis.patch.yml"), "[]\n", 0o644)
	d.put(t, inProfile("cordis.yml"), "[]\n", 0o644)
	d.put(t, inProfile("notes/own.txt"), "mine", 0o640)
	if err := d.Chmod(inProfile("notes"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.put(t, inProfile("node_modules/a/package.json"), "a1", 0o644)
	d.put(t, inProfile("node_modules/b/package.json"), "b1", 0o644)
	d.symlink(t, "only", inProfile("node_modules/@s/only"))
	d.symlink(t, "../../src/linked", inProfile("node_modules/linked"))
	d.mkdirs(t, filepath.Join(simRoot, "profiles", "web.staging-0123456789ab"))
}

// withHistory is a profile that was changed before.
func withHistory(t testing.TB, d *simDisk) {
	simProfile(t, d)
	simCommit(t, d, func(tx *Tx) error { return tx.WriteFile("package.json", []byte(`{"old":2}`), 0o600) })
	simCommit(t, d, func(tx *Tx) error {
		return errors.Join(tx.WriteFile("package.json", []byte(`{"old":3}`), 0o600), tx.WriteFile("added/later.txt", []byte("3"), 0o600), tx.Remove("notes/own.txt"))
	})
}

func simCommit(t testing.TB, d *simDisk, fill func(tx *Tx) error) {
	t.Helper()
	tx, err := Begin(t.Context(), simPlace(), Options{FS: d, Command: "dsh"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(fill(tx), tx.Commit()); err != nil {
		t.Fatal(err)
	}
}

// simTx makes a run of a function that fills a transaction.
func simTx(fill func(t testing.TB, d *simDisk, tx *Tx) error) func(testing.TB, FS, *simDisk) error {
	return func(t testing.TB, fsys FS, d *simDisk) error {
		tx, err := Begin(t.Context(), simPlace(), Options{FS: fsys, Command: "dsh"})
		if err != nil {
			return err
		}
		if err := fill(t, d, tx); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	}
}

func simPackage(t testing.TB, d *simDisk, tx *Tx, name, version string) string {
	dir := filepath.Join(tx.Stage(), name)
	d.put(t, filepath.Join(dir, "package.json"), version, 0o644)
	d.put(t, filepath.Join(dir, "dist", "main.js"), version, 0o755)
	return dir
}

func simFill(stage string, fsys FS) error {
	return errors.Join(
		disk{fsys}.writeFile(filepath.Join(stage, "package.json"), []byte(`{"fresh":1}`), 0o644),
		disk{fsys}.writeFile(filepath.Join(stage, "cordis.patch.yml"), []byte("[]\n"), 0o644))
}

func simReplace(t testing.TB, fsys FS, _ *simDisk) error {
	_, err := ReplaceDir(t.Context(), simPlace(), func(stage string) error { return simFill(stage, fsys) }, Options{FS: fsys, Command: "dsh"})
	return err
}

func simInit(t testing.TB, fsys FS, d *simDisk) error {
	tx, err := Begin(t.Context(), simPlace(), Options{FS: fsys, Command: "dsh", Init: func(dir string) error {
		return errors.Join(simFill(dir, fsys), disk{fsys}.writeFile(filepath.Join(dir, "notes.txt"), []byte("1"), 0o600))
	}})
	if err != nil {
		return err
	}
	return errors.Join(
		tx.WriteFile("dsh-lock.yaml", []byte("first\n"), 0o644),
		tx.WriteFile("agent-plugins/x/y", []byte("first\n"), 0o644),
		tx.Replace("node_modules/a", simPackage(t, d, tx, "a", "a2")),
		tx.Remove("notes.txt"),
		tx.Commit())
}

// simRestore makes a run that goes back to the generation so many before the
// newest.
func simRestore(back int) func(t testing.TB, fsys FS, d *simDisk) error {
	return simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		list, err := historyOf(disk{d}, simPlace().State).List()
		if err != nil {
			return err
		}
		return tx.Restore(&list[back])
	})
}

func simMove(t testing.TB, fsys FS, _ *simDisk) error {
	return MoveDir(t.Context(), simPlace(), otherPlace(), Options{FS: fsys, Command: "dsh"})
}

func simRemoveIn(t testing.TB, fsys FS, _ *simDisk) error {
	_, err := RemoveDir(t.Context(), simPlace(), Options{FS: fsys, Command: "dsh"})
	return err
}

func simRemove(t testing.TB, d *simDisk) {
	t.Helper()
	if err := simRemoveIn(t, d, d); err != nil {
		t.Fatal(err)
	}
}

// linkedDir is where a profile is that is a link.
var linkedDir = filepath.Join(simRoot, "dotfiles", "web")

// linkedProfile is a profile with a history that is a link.
func linkedProfile(t testing.TB, d *simDisk) {
	withHistory(t, d)
	d.mkdirs(t, filepath.Dir(linkedDir))
	if err := d.Rename(simPlace().Dir, linkedDir); err != nil {
		t.Fatal(err)
	}
	d.symlink(t, filepath.Join("..", "dotfiles", "web"), simPlace().Dir)
}

func noProfile(testing.TB, *simDisk) {}

var simScenarios = []simScenario{
	{"replace a file", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644)
	})},
	{"create a file in a new directory", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.WriteFile("agent-plugins/x/package.json", []byte("new"), 0o644)
	})},
	{"remove a file", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.Remove("cordis.patch.yml")
	})},
	{"remove a directory of files", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.Remove("notes")
	})},
	{"replace a directory of files", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.Replace("notes", simPackage(t, d, tx, "n", "n2"))
	})},
	{"create a directory of files", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return tx.Replace("agent-plugins/x", simPackage(t, d, tx, "x", "x2"))
	})},
	{"replace all packages", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		simPackage(t, d, tx, "node_modules/c", "c2")
		return errors.Join(
			tx.Replace("node_modules", filepath.Join(tx.Stage(), "node_modules")),
			tx.WriteFile("dsh-lock.yaml", []byte("new: 2\n"), 0o644))
	})},
	{"remove all packages", false, simProfile, simTx(func(t testing.TB, d *simDisk, tx *Tx) error {
		return errors.Join(tx.Remove("node_modules"), tx.WriteFile("dsh-lock.yaml", []byte("new: 2\n"), 0o644))
	})},
	{"mixed", true, simProfile, simTx(simMixed)},
	{"mixed, after others", true, withHistory, simTx(simMixed)},
	{"a file that a link leads to", false, func(t testing.TB, d *simDisk) {
		simProfile(t, d)
		outside := filepath.Join(simRoot, "dotfiles", "web.json")
		d.put(t, outside, `{"old":1}`, 0o600)
		d.put(t, inProfile("package.json"), "", 0o600)
		if err := d.Remove(inProfile("package.json")); err != nil {
			t.Fatal(err)
		}
		d.symlink(t, outside, inProfile("package.json"))
	}, simTx(simMixed)},
	{"replace the profile", true, simProfile, simReplace},
	{"replace the profile, after others", false, withHistory, simReplace},
	{"replace a profile not worth keeping", false, simProfile, func(t testing.TB, fsys FS, d *simDisk) error {
		_, err := ReplaceDir(t.Context(), simPlace(), func(stage string) error { return simFill(stage, fsys) },
			Options{FS: fsys, Decide: func() (bool, error) { return true, nil }})
		return err
	}},
	{"make the profile by replacing nothing", false, noProfile, simReplace},
	{"make the profile", true, noProfile, simInit},
	{"make the profile again", false, func(t testing.TB, d *simDisk) {
		withHistory(t, d)
		simRemove(t, d)
	}, simInit},
	{"go back one change", true, withHistory, simRestore(1)},
	{"go back two changes", false, withHistory, simRestore(2)},
	{"go back after an edit by hand", false, func(t testing.TB, d *simDisk) {
		withHistory(t, d)
		d.put(t, inProfile("package.json"), "edited", 0o644)
		d.put(t, inProfile("by-hand.txt"), "mine", 0o600)
	}, simRestore(0)},
	{"remove the profile", true, simProfile, simRemoveIn},
	{"remove the profile, after others", false, withHistory, simRemoveIn},
	{"change a profile that is a link", false, linkedProfile, simTx(simMixed)},
	{"replace a profile that is a link", false, linkedProfile, simReplace},
	{"remove a profile that is a link", false, linkedProfile, simRemoveIn},
	{"move a profile that is a link", false, linkedProfile, simMove},
	{"move the profile", true, func(t testing.TB, d *simDisk) {
		withHistory(t, d)
		if err := simReplace(t, d, d); err != nil {
			t.Fatal(err)
		}
	}, simMove},
	{"move the profile to a name that another one had", false, func(t testing.TB, d *simDisk) {
		withHistory(t, d)
		if err := simMove(t, d, d); err != nil {
			t.Fatal(err)
		}
		if _, err := RemoveDir(t.Context(), otherPlace(), Options{FS: d}); err != nil {
			t.Fatal(err)
		}
		withHistory(t, d)
	}, simMove},
}

func simMixed(t testing.TB, d *simDisk, tx *Tx) error {
	a := simPackage(t, d, tx, "a", "a2")
	c := simPackage(t, d, tx, "c", "c2")
	link := filepath.Join(tx.Stage(), "l")
	d.symlink(t, "../elsewhere", link)
	return errors.Join(
		tx.Expect("dsh-lock.yaml", []byte("old: 1\n")),
		tx.WriteFile("package.json", []byte(`{"new":2}`), 0o644),
		tx.WriteFile("dsh-lock.yaml", []byte("new: 2\n"), 0o644),
		tx.WriteFile("fresh.txt", []byte("new"), 0o644),
		tx.Replace("node_modules/a", a),
		tx.Replace("node_modules/@new/c", c),
		tx.Replace("node_modules/linked", link),
		tx.Remove("cordis.patch.yml"),
		tx.Remove("node_modules/@s/only"),
		tx.Remove("node_modules/b"))
}

func (sc simScenario) fresh(t testing.TB, options simOptions) *simDisk {
	d := newSimDisk(options)
	d.mkdirs(t, filepath.Join(simRoot, "profiles"))
	sc.setup(t, d)
	d.flush()
	if options.image {
		d.each(d.root, func(n *simNode) { n.image = n.id })
	}
	return d
}

// simState is what of a disk is compared.
type simState struct {
	durable map[string]string // what must be whole
	derived map[string]string // what may be damaged, when it is said
	files   map[string]string // of the profile by its first name, as whoever opens them finds them
}

func simStateOf(d *simDisk) simState {
	s := simState{map[string]string{}, map[string]string{}, map[string]string{}}
	all := d.tree(simRoot)
	for path, content := range all {
		if content, there := d.open(filepath.Join(simRoot, filepath.FromSlash(path))); there && strings.HasPrefix(path, "profiles/web/") {
			s.files[path] = content
		}
		parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
		own := "" // what dsh keeps of a profile for itself
		if parts[0] == "state" && len(parts) > 2 {
			own = parts[2]
		}
		switch {
		case len(parts) == 1, parts[0] == "state" && len(parts) == 2, slices.Contains([]string{"lock", "identity", "commits", "checked"}, own):
		case parts[0] != "state" && len(parts) > 2 && slices.Contains(simPlace().Derived, parts[2]):
			s.derived[path] = content
		case strings.HasPrefix(own, replacedMark) && len(parts) > 3 && slices.Contains(simPlace().Derived, parts[3]):
			// It is made again where it is needed.
		case strings.Contains(parts[1], stagingMark) && parts[1][0] == '.' && all[parts[0]+"/"+parts[1]+"/lock"] == "":
			// Of a staging directory whose lock was lost nobody knows whose it is.
		default:
			s.durable[path] = content
		}
	}
	return s
}

// outcomes are the states before and after the scenario.
func (sc simScenario) outcomes(t *testing.T, options simOptions) (before, after simState) {
	t.Helper()
	d := sc.fresh(t, options)
	before = simStateOf(d)
	if err := sc.run(t, d, d); err != nil {
		t.Fatal(err)
	}
	after = simStateOf(d)
	if maps.Equal(before.durable, after.durable) {
		t.Fatal("the scenario changes nothing that has to last")
	}
	return before, after
}

// changes are the calls after which a disk is not as it was.
var changes = []string{
	"Create", "Write", "Sync", "Mkdir", "Symlink", "Link", "Chmod", "Rename", "RenameNew", "Exchange", "Remove", "RemoveAll", "SyncDir", "TryLock", "TryRLock",
}

// atEachChange calls do before each call that changes the disk, and once in the
// middle of those that are several.
func atEachChange(d *simDisk, do func(call string)) FS {
	last := ""
	d.during = func() { do("halfway " + last) }
	return hooked{d, func(op, path string) error {
		last = op + " " + filepath.Base(path)
		if slices.Contains(changes, op) {
			do("before " + last)
		}
		return nil
	}}
}

// simCheck is one scenario with its states.
type simCheck struct {
	*testing.T
	old, new   simState
	recoveries int
}

// recovered lets the next process recover, and checks what it finds then. It
// says whether that is the new state.
func (c *simCheck) recovered(what string, d *simDisk) (isNew bool) {
	c.Helper()
	c.recover(what, d, d)
	return c.whole(what, d)
}

// recover lets the next processes recover, which may begin with either name of a
// profile that was moved.
func (c *simCheck) recover(what string, d *simDisk, fsys FS) {
	c.Helper()
	places := []Place{simPlace(), otherPlace()}
	if c.recoveries++; c.recoveries%2 == 0 {
		slices.Reverse(places)
	}
	for _, place := range places {
		if err := (disk{fsys}).recoverPlace(c.Context(), place); err != nil {
			c.Errorf("%s: recovery: %v", what, err)
		}
	}
}

// whole checks that the disk has the old state or the new one, generations
// included, and that what may be damaged is known to be. It says whether it is
// the new one.
func (c *simCheck) whole(what string, d *simDisk) (isNew bool) {
	c.Helper()
	got := simStateOf(d)
	want := c.old
	if isNew = maps.Equal(got.durable, c.new.durable); isNew {
		want = c.new
	} else if !maps.Equal(got.durable, c.old.durable) {
		c.Errorf("%s: neither old nor new\nagainst old: %s\nagainst new: %s", what, cmp.Diff(c.old.durable, got.durable), cmp.Diff(c.new.durable, got.durable))
		return false
	}
	if !maps.Equal(got.derived, want.derived) && (d.boot == 1 || !(disk{d}).isUnclean(simPlace()) && !(disk{d}).isUnclean(otherPlace())) {
		c.Errorf("%s: nobody is told that packages are damaged: %s", what, cmp.Diff(want.derived, got.derived))
	}
	return isNew
}

// The power goes before each call that changes anything, and once more at the
// end. Then the next process recovers, and the power goes again.
func TestPowerLossAtEveryCall(t *testing.T) {
	for _, sc := range simScenarios {
		t.Run(sc.name, func(t *testing.T) {
			// In which all generations are of one time.
			synctest.Test(t, func(t *testing.T) { sc.losePower(t, simOptions{}) })
		})
	}
}

func (sc simScenario) losePower(t *testing.T, options simOptions) {
	cryptotest.SetGlobalRandom(t, 1)
	r := rand.New(rand.NewPCG(1, 1))
	check := &simCheck{T: t}
	check.old, check.new = sc.outcomes(t, options)
	d := sc.fresh(t, options)
	outcomes := map[bool]int{}
	lose := func(call string) {
		if t.Failed() {
			return // one finding is enough to look at
		}
		for n := range 5 {
			what := fmt.Sprintf("power lost %s, variant %d", call, n)
			outcomes[check.losePower(what, d, r, sc.whole && n == 0)]++
		}
	}
	if err := sc.run(t, atEachChange(d, lose), d); err != nil {
		t.Fatal(err)
	}
	d.during = func() {}
	for n := range 20 {
		if !check.losePower(fmt.Sprintf("power lost at the end, variant %d", n), d, r, false) && !t.Failed() {
			t.Errorf("the change was reported, and is lost with the power")
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("all losses of power led to one state: %v", outcomes)
	}
	here, err := historyOf(disk{d}, simPlace().State).List()
	there, err2 := historyOf(disk{d}, otherPlace().State).List()
	if err := errors.Join(err, err2); err != nil || len(here)+len(there) == 0 {
		t.Errorf("the history is of %d and %d generations, error %v", len(here), len(there), err)
	}
}

// losePower checks what is found after a loss of power.
func (c *simCheck) losePower(what string, d *simDisk, r *rand.Rand, again bool) (isNew bool) {
	c.Helper()
	found := d.powerLoss(r)
	if again {
		second := found.death()
		second.boot = found.boot
		lose := func(call string) { c.recovered(what+", then "+call, second.powerLoss(r)) }
		c.recover(what, second, atEachChange(second, lose))
	}
	isNew = c.recovered(what, found)
	// Whoever has seen a state must not see the other one later.
	if c.recovered(what+", then again after recovery", found.powerLoss(r)) != isNew {
		c.Errorf("%s: the recovery was lost with the power", what)
	}
	return isNew
}

// read reads the profile by its first name as somebody who may write nowhere, and
// says in which state it is.
func (c *simCheck) read(what string, d *simDisk) (state string) {
	c.Helper()
	fsys := hooked{d, func(op, path string) error {
		if slices.Contains(changes, op) {
			return &fs.PathError{Op: op, Path: path, Err: syscall.EROFS}
		}
		return nil
	}}
	old, new := c.old.files, c.new.files
	var got map[string]string
	_, err := disk{fsys}.read(c.Context(), simPlace(), func(v View) error {
		got = map[string]string{}
		for _, files := range []map[string]string{old, new} {
			for path := range files {
				if content, there := d.open(v.Path(filepath.Join(simRoot, filepath.FromSlash(path)))); there {
					got[path] = content
				}
			}
		}
		return nil
	})
	switch {
	case err != nil:
		c.Errorf("%s: reading: %v", what, err)
	case maps.Equal(got, new):
		return "new"
	case !maps.Equal(got, old):
		c.Errorf("%s: read is neither old nor new\nagainst old: %s\nagainst new: %s", what, cmp.Diff(old, got), cmp.Diff(new, got))
	}
	return "old"
}

// open is the content of the file that a path leads to, or where a link leads
// that leads to none.
func (d *simDisk) open(path string) (content string, there bool) {
	if data, err := (disk{d}).readFile(path); err == nil {
		return string(data), true
	}
	target, err := d.Readlink(path)
	return "-> " + target, err == nil
}

// The process dies at each call and no power is lost, on filesystems that lack
// something. Whoever reads then finds one whole state, also who may not write.
func TestDeathOnPoorDisks(t *testing.T) {
	for name, options := range map[string]simOptions{
		"nothing is lacking":                 {},
		"names that differ by case are same": {foldCase: true},
		"no hard links":                      {noLinks: true},
		"no exchange":                        {noExchange: true},
		"no rename that refuses to replace":  {noRenameNew: true},
		"nothing of all":                     {foldCase: true, noLinks: true, noExchange: true, noRenameNew: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, sc := range simScenarios {
				t.Run(sc.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { sc.die(t, options) })
				})
			}
		})
	}
}

func (sc simScenario) die(t *testing.T, options simOptions) {
	cryptotest.SetGlobalRandom(t, 1)
	check := &simCheck{T: t}
	check.old, check.new = sc.outcomes(t, options)
	d := sc.fresh(t, options)
	die := func(call string) {
		if t.Failed() {
			return
		}
		after := d.death()
		saw := check.read("dead "+call+", and nobody may write", after)
		check.recovered("dead "+call, after)
		if is := check.read("dead "+call+", and recovered", after); is != saw {
			t.Errorf("dead %s: who may not write reads the %s state, and who may the %s one", call, saw, is)
		}
	}
	if err := sc.run(t, atEachChange(d, die), d); err != nil {
		t.Fatal(err)
	}
}
