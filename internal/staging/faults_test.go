package staging

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A scenario is one way to change files. The tests below run it once for every
// call that it makes on the filesystem, and hurt it there.
type scenario struct {
	name  string
	whole bool // hurt it also in Begin, which is the same for all
	setup func(t testing.TB, home string)
	run   func(t testing.TB, fsys FS, home string) (warnings []string, err error)
}

// died is what a process that dies panics with.
type died struct{}

// strike is an FS that lets n calls pass and then does what its mode says.
type strike struct {
	mode  string
	after int // calls that go well

	mu     sync.Mutex
	calls  int
	ops    []string // the calls
	begun  int      // calls up to the last one of Begin
	dead   bool
	struck string // the call that was hurt
	locks  []func() error
}

// The modes. In "dies" and "dies halfway" every later call panics too, as the
// deferred functions of a real process would not have run.
var (
	deaths   = []string{"dies", "dies halfway"}
	failures = map[string]error{"EIO": syscall.EIO, "ENOSPC": syscall.ENOSPC, "EACCES": syscall.EACCES, "EBUSY": syscall.EBUSY, "EXDEV": syscall.EXDEV}
	lasting  = "fails from there on"
)

func (s *strike) fs() FS {
	return struckFS{hooked{OS, s.before}, s}
}

func (s *strike) before(op, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		panic(died{})
	}
	s.calls++
	s.ops = append(s.ops, op)
	if op == "Mkdir" && filepath.Base(path) == "old" && strings.Contains(filepath.Dir(path), stagingMark) {
		s.begun = s.calls
	}
	if s.calls <= s.after {
		return nil
	}
	first := s.calls == s.after+1
	if first {
		s.struck = op + " " + filepath.Base(path)
	}
	switch {
	case s.mode == lasting:
		return fmt.Errorf("%s: %w", op, syscall.EIO)
	case !first:
		return nil
	case strings.HasPrefix(s.mode, "dies"):
		if s.mode == "dies halfway" && op == "RemoveAll" {
			removeHalf(path)
		}
		s.dead = true
		panic(died{})
	}
	return fmt.Errorf("%s: %w", op, failures[s.mode])
}

// removeHalf removes the first thing of a tree, as far down as it goes.
func removeHalf(path string) {
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return
	}
	removeHalf(filepath.Join(path, entries[0].Name()))
	_ = os.Remove(filepath.Join(path, entries[0].Name()))
}

// struckFS adds to the hooks what a process's death does to locks, and spares
// the disk: no power is lost here.
type struckFS struct {
	hooked
	s *strike
}

func (f struckFS) SyncDir(path string) error { return f.before("SyncDir", path) }

func (f struckFS) Create(path string, perm fs.FileMode) (File, error) {
	file, err := f.hooked.Create(path, perm)
	if err != nil {
		return nil, err
	}
	return struckFile{file, path, f.s}, nil
}

type struckFile struct {
	File
	path string
	s    *strike
}

func (f struckFile) Sync() error { return f.s.before("Sync", f.path) }

func (f struckFS) TryLock(path string, record []byte) (func() error, error) {
	unlock, err := f.hooked.TryLock(path, record)
	if err != nil {
		return nil, err
	}
	once := sync.OnceValue(unlock)
	f.s.mu.Lock()
	f.s.locks = append(f.s.locks, once)
	f.s.mu.Unlock()
	return func() error {
		// The lock is gone in any case, as a failing close(2) closes too.
		hook := f.before("Unlock", path)
		return errors.Join(hook, once())
	}, nil
}

// try runs the scenario and says whether the process died.
func (s *strike) try(t testing.TB, sc scenario, home string) (warnings []string, err error, dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(died); !ok {
				panic(r)
			}
			dead = true
		}
		for _, unlock := range s.locks {
			if uerr := unlock(); uerr != nil {
				t.Error(uerr)
			}
		}
	}()
	warnings, err = sc.run(t, s.fs(), home)
	return warnings, err, false
}

// recoverFast is Recover without the wait for the disk.
func recoverFast(t testing.TB, home string) error {
	s := &strike{after: 1 << 30}
	return recoverAll(t, s.fs(), home)
}

// recoverAll is Recover of the profile, and of the one that it may have become.
func recoverAll(t testing.TB, fsys FS, home string) error {
	d := disk{inImage(fsys, home)}
	err := d.recoverPlace(t.Context(), placeIn(home))
	if _, lerr := os.Lstat(movedIn(home).State); lerr == nil {
		err = errors.Join(err, d.recoverPlace(t.Context(), movedIn(home)))
	}
	return err
}

// movedIn is where the scenario puts the profile that moves it.
func movedIn(home string) Place {
	place := placeIn(home)
	place.Dir += " moved"
	place.State += " moved"
	return place
}

// killed runs something until the process dies at a call that at chooses.
func killed(t testing.TB, home string, run func(testing.TB, FS, string) ([]string, error), at func(op, path string) bool) bool {
	t.Helper()
	s := &strike{after: 1 << 30}
	_, _, dead := s.try(t, scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
		return run(t, hooked{fsys, func(op, path string) error {
			if at(op, path) {
				s.dead = true
				panic(died{})
			}
			return nil
		}}, home)
	}}, home)
	return dead
}

// content is everything under home but what only says whose a state is, how often
// it changed, and when. Of generations it is their files.
func content(t testing.TB, home string) map[string]string {
	got := tree(t, home)
	for path := range got {
		if dir, name := filepath.Split(path); filepath.Base(dir) == "generations" && strings.HasSuffix(name, generationExt) {
			got[path] = generationText(t, filepath.Join(home, path))
		}
	}
	maps.DeleteFunc(got, func(path, _ string) bool {
		parts := strings.Split(strings.TrimSuffix(path, "/"), "/")
		switch {
		case path == "profiles/", path == "state/":
			return true
		case parts[0] == "state" && len(parts) == 2:
			return strings.HasSuffix(path, "/")
		case parts[0] == "state" && len(parts) == 3:
			return slices.Contains([]string{"lock", "identity", "commits", "checked"}, parts[2])
		}
		return false
	})
	return got
}

// generationText is what is in a generation but for when it was saved.
func generationText(t testing.TB, file string) string {
	data, err := os.ReadFile(file)
	must(t, err)
	g, err := decodeGeneration(data)
	if err != nil {
		return "damaged: " + err.Error()
	}
	text := mode(t, file)
	if g.Command == "" {
		text += " found"
	}
	for _, f := range g.Files {
		text += strings.ReplaceAll(fmt.Sprintf(" {%s %s %s}", f.Path, f.Mode, f.Data), "\n", `\n`)
	}
	for _, f := range g.Outside {
		text += fmt.Sprintf(" outside {%s %s %s}", f.Path, f.Mode, f.Data)
	}
	if len(g.TooLarge) > 0 {
		text += fmt.Sprintf(" too large: %q", g.TooLarge)
	}
	return text
}

func placeIn(home string) Place {
	return Place{Dir: filepath.Join(home, "profiles", "web"), State: filepath.Join(home, "state", "web"), Derived: []string{"node_modules", "cordis.yml"}}
}

// fresh is a new home with what the scenario starts from.
func (sc scenario) fresh(t testing.TB) string {
	home := t.TempDir()
	mkdir(t, filepath.Join(home, "profiles"))
	sc.setup(t, home)
	return home
}

// silent says that the scenario has no way to warn.
func (sc scenario) silent() bool { return strings.HasPrefix(sc.name, "move ") }

// outcomes runs the scenario unhurt, and says what was before and is after, and
// the calls that are worth hurting: all, or those that only this scenario makes.
func (sc scenario) outcomes(t *testing.T) (before, after map[string]string, first int, calls []string) {
	home := sc.fresh(t)
	before = content(t, home)
	s := &strike{after: 1 << 30}
	warnings, err, _ := s.try(t, sc, home)
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	after = content(t, home)
	if cmp.Equal(before, after) {
		t.Fatal("the scenario changes nothing")
	}
	if err := recoverFast(t, home); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(after, content(t, home)); diff != "" {
		t.Fatal("recovery of a finished change changes it: ", diff)
	}
	if !sc.whole {
		first = s.begun
	}
	if image := imageOf(home); image != nil {
		first = image.refused
	}
	return before, after, first, s.ops
}

// deadly are the calls, from the first on, before which a death leaves something
// else than before the one that went before: that one changed something, or this
// one can be half done.
func deadly(calls []string, first int) []int {
	var list []int
	for at := first; at < len(calls); at++ {
		if at == first || alters(calls[at-1]) || calls[at] == "RemoveAll" {
			list = append(list, at)
		}
	}
	return list
}

// alters says whether a call changes what others find on the disk.
func alters(op string) bool {
	switch op {
	case "Lstat", "ReadDir", "Readlink", "RealPath", "Open", "Close", "Sync", "SyncDir", "Identity", "IsMount":
		return false
	}
	return true
}

// consistent fails unless the newest generation is the profile as it is, or the
// profile is as it was found. A change of packages alone saves none.
func consistent(t testing.TB, what, home string, old, new, got map[string]string) {
	t.Helper()
	saves := slices.ContainsFunc(slices.Collect(maps.Keys(new)), func(path string) bool { return strings.HasSuffix(path, generationExt) })
	if !saves || cmp.Equal(got, old) {
		return
	}
	for _, place := range []Place{placeIn(home), movedIn(home)} {
		if _, err := os.Stat(place.Dir); err != nil {
			continue
		}
		list, err := place.History().List()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		now, err := Snapshot(place)
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		if saved := len(list) > 0 && SameFiles(list[0].Files, now.Files); !saved {
			t.Errorf("%s: the newest generation is not the profile", what)
		}
	}
}

func oldOrNew(t testing.TB, what string, old, new, got map[string]string) {
	t.Helper()
	if !cmp.Equal(got, old) && !cmp.Equal(got, new) {
		t.Errorf("%s: neither old nor new\nagainst old: %s\nagainst new: %s", what, cmp.Diff(old, got), cmp.Diff(new, got))
	}
}

// The process dies before each call; to die after one is to die before the
// next. Then the next process recovers.
func TestDeathAtEveryCall(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.dieAtEveryCall(t)
		})
	}
}

func (sc scenario) dieAtEveryCall(t *testing.T) {
	old, new, first, calls := sc.outcomes(t)
	news, deathsSeen, baked := 0, 0, false
	for i, at := range deadly(calls, first) {
		if sc.skips(i) {
			continue
		}
		for _, mode := range deaths {
			home := sc.fresh(t)
			s := &strike{mode: mode, after: at}
			if _, _, dead := s.try(t, sc, home); !dead {
				t.Fatalf("call %d: it lived", at)
			}
			deathsSeen++
			baked = imageOf(home) != nil // which begins behind the commit point
			if err := recoverFast(t, home); err != nil {
				t.Errorf("%s at %d, %s: %v", mode, at, s.struck, err)
			}
			got := content(t, home)
			oldOrNew(t, fmt.Sprintf("%s at %d, %s", mode, at, s.struck), old, new, got)
			consistent(t, fmt.Sprintf("%s at %d, %s", mode, at, s.struck), home, old, new, got)
			if cmp.Equal(got, new) {
				news++
			}
			if !strings.HasPrefix(s.struck, "RemoveAll ") {
				break // no other call can be half done
			}
		}
	}
	if news == 0 || news == deathsSeen && !baked {
		t.Errorf("%d of %d deaths led to the new state: is there a commit point?", news, deathsSeen)
	}
}

// everyPair is for a machine with nothing else to do.
var everyPair = flag.Bool("every-pair", false, "in TestDeathInRecovery let the first process die at every call, not at some")

// The process that recovers dies as well, at each of its calls.
func TestDeathInRecovery(t *testing.T) {
	for _, sc := range scenarios {
		if !sc.whole {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.dieInRecovery(t)
		})
	}
}

func (sc scenario) dieInRecovery(t *testing.T) {
	old, new, first, calls := sc.outcomes(t)
	step := 5 // no period of what a change does
	if first > 0 {
		step = 23 // a profile in an image, where each has more calls
	}
	if *everyPair {
		step = 1
	}
	recovery := scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
		return nil, recoverAll(t, fsys, home)
	}}
	for i, at := range deadly(calls, first) {
		if i%step != 0 {
			continue
		}
		die := func() (home string, s *strike) {
			home, s = sc.fresh(t), &strike{mode: "dies", after: at}
			s.try(t, sc, home)
			return home, s
		}
		home, s := die()
		r := &strike{after: 1 << 30}
		_, err, _ := r.try(t, recovery, home)
		must(t, err)
		oldOrNew(t, fmt.Sprintf("dies at %d, %s", at, s.struck), old, new, content(t, home))
		for _, second := range deadly(r.ops, 0) {
			home, s := die()
			r := &strike{mode: "dies halfway", after: second}
			_, _, dead := r.try(t, recovery, home)
			what := fmt.Sprintf("dies at %d, %s, then at %d, %s", at, s.struck, second, r.struck)
			if !dead {
				t.Errorf("%s: it lived", what)
			}
			if err := recoverFast(t, home); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			oldOrNew(t, what, old, new, content(t, home))
		}
	}
}

// The last rename fails, and while that is taken back the process dies.
func TestDeathAfterFailure(t *testing.T) {
	for _, sc := range scenarios {
		last := map[string]string{
			"mixed":                       filepath.Join("web", "package.json"),
			"a file that a link leads to": filepath.Join("dotfiles", "web.json"),
			"replace the profile":         filepath.Join("profiles", "web"),
		}[sc.name]
		if last == "" {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			old, new, _, _ := sc.outcomes(t)
			for after := 0; ; after++ {
				home := sc.fresh(t)
				s := &strike{after: 1 << 30, mode: "dies halfway"}
				failed := 0
				_, err, dead := s.try(t, scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
					return sc.run(t, hooked{fsys, func(op, path string) error {
						if (strings.HasPrefix(op, "Rename") || op == "Exchange") && strings.HasSuffix(path, last) && failed == 0 {
							failed = s.calls
							s.after = s.calls + after
							return syscall.EIO
						}
						return nil
					}}, home)
				}}, home)
				if failed == 0 {
					t.Fatal("nothing failed")
				}
				what := fmt.Sprintf("%d calls after the failure, at %s", after, s.struck)
				if rerr := recoverFast(t, home); rerr != nil {
					t.Errorf("%s: %v", what, rerr)
				}
				got := content(t, home)
				oldOrNew(t, what, old, new, got)
				if !dead {
					if err == nil || !cmp.Equal(got, old) {
						t.Errorf("alive, with error %v: %s", err, cmp.Diff(old, got))
					}
					return
				}
			}
		})
	}
}

// Each call fails once. Without an error the change was made, with one it was
// not, and what lies about is warned of and removed by the next process.
func TestFailureAtEveryCall(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			sc.failAtEveryCall(t)
		})
	}
}

func (sc scenario) failAtEveryCall(t *testing.T) {
	old, new, first, calls := sc.outcomes(t)
	modes := slices.Sorted(maps.Keys(failures))
	for at := first; at < len(calls); at++ {
		if sc.skips(at) {
			continue
		}
		// No decision is made by these numbers, so one each will do.
		for _, mode := range []string{modes[at%len(modes)]} {
			home := sc.fresh(t)
			s := &strike{mode: mode, after: at}
			warnings, err, _ := s.try(t, sc, home)
			what := fmt.Sprintf("%s at %d, %s, gives error %v, warnings %q", mode, at, s.struck, err, warnings)
			got := content(t, home)
			switch {
			case err == nil && cmp.Equal(got, new):
			case err == nil && len(warnings) == 0 && !sc.silent():
				t.Errorf("%s and is incomplete: %s", what, cmp.Diff(new, got))
			case err != nil && !errors.Is(err, failures[mode]):
				t.Errorf("%s: the cause is lost", what)
			}
			if rerr := recoverFast(t, home); rerr != nil {
				t.Errorf("%s: recovery: %v", what, rerr)
			}
			got = content(t, home)
			oldOrNew(t, what, old, new, got)
			if err == nil && !cmp.Equal(got, new) {
				t.Errorf("%s, but there is the old state", what)
			}
			if err != nil && !cmp.Equal(got, old) {
				t.Errorf("%s, but there is the new state", what)
			}
		}
	}
}

// lastingStep is how many calls lie between two from which on all fail: one that
// fails alone is tested at every call.
const lastingStep = 3

// Every call fails from one on, as on a disk that dies; then it is repaired.
func TestLastingFailure(t *testing.T) {
	for _, sc := range scenarios {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			old, new, first, calls := sc.outcomes(t)
			for at := first; at < len(calls); at += lastingStep {
				home := sc.fresh(t)
				s := &strike{mode: lasting, after: at}
				warnings, err, _ := s.try(t, sc, home)
				what := fmt.Sprintf("fails from %d, %s, on: error %v, warnings %q", at, s.struck, err, warnings)
				if err == nil && len(warnings) == 0 && !sc.silent() {
					t.Errorf("%s: nobody is told", what)
				}
				if err := recoverFast(t, home); err != nil {
					t.Errorf("%s: recovery: %v", what, err)
				}
				got := content(t, home)
				oldOrNew(t, what, old, new, got)
				if err == nil && !cmp.Equal(got, new) {
					t.Errorf("%s, but there is the old state", what)
				}
			}
		})
	}
}
