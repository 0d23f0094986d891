package staging

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// split is an FS on which the state of the profiles is on a filesystem of its
// own.
type split struct {
	FS
	state string
}

func (s split) Rename(oldpath, newpath string) error {
	if strings.HasPrefix(oldpath, s.state) != strings.HasPrefix(newpath, s.state) {
		return &os.LinkError{Op: "rename", Old: oldpath, New: newpath, Err: syscall.EXDEV}
	}
	return s.FS.Rename(oldpath, newpath)
}

func splitIn(home string, fsys FS) FS { return split{fsys, filepath.Join(home, "state")} }

// replaceElsewhere replaces a profile whose state is on another filesystem.
var replaceElsewhere = scenario{"replace the profile, the state elsewhere", true, fullProfile,
	func(t testing.TB, fsys FS, home string) ([]string, error) {
		return replaceProfile(t, splitIn(home, fsys), home)
	}}

// Whenever a process dies, and the one that goes on as well, the replaced
// profile is kept once and whole.
func TestDeathWithStateElsewhere(t *testing.T) {
	sc := replaceElsewhere
	old, new, first, calls := sc.outcomes(t)
	recovery := scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
		return nil, disk{splitIn(home, fsys)}.recoverPlace(t.Context(), placeIn(home))
	}}
	for _, at := range deadly(calls, first) {
		for second := at % 7; ; second += 7 {
			home := sc.fresh(t)
			s := &strike{mode: "dies halfway", after: at}
			s.try(t, sc, home)
			r := &strike{mode: "dies halfway", after: second}
			_, err, dead := r.try(t, recovery, home)
			what := fmt.Sprintf("dies at %d, %s, then at %d, %s", at, s.struck, second, r.struck)
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if dead {
				if _, err, _ := (&strike{after: 1 << 30}).try(t, recovery, home); err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			oldOrNew(t, what, old, new, content(t, home))
			if !dead {
				break
			}
		}
	}
}

// Each call fails once, or from there on; the next process puts it right.
func TestFailureWithStateElsewhere(t *testing.T) {
	sc := replaceElsewhere
	old, new, first, calls := sc.outcomes(t)
	for at := first; at < len(calls); at++ {
		for _, mode := range []string{"EACCES", lasting} {
			home := sc.fresh(t)
			s := &strike{mode: mode, after: at}
			warnings, err, _ := s.try(t, sc, home)
			what := fmt.Sprintf("%s at %d, %s: error %v, warnings %q", mode, at, s.struck, err, warnings)
			if rerr := (disk{splitIn(home, (&strike{after: 1 << 30}).fs())}).recoverPlace(t.Context(), placeIn(home)); rerr != nil {
				t.Errorf("%s: recovery: %v", what, rerr)
			}
			got := content(t, home)
			oldOrNew(t, what, old, new, got)
			if err == nil && !cmp.Equal(got, new) {
				t.Errorf("%s, but there is the old state", what)
			}
		}
	}
}

// A profile of which a part cannot be removed, or that cannot even be renamed,
// is copied once, however many commands follow, and older ones still go.
func TestKeepStuckSource(t *testing.T) {
	stuck := map[string]struct {
		at   func(op, path string) bool
		kept string // what the first replacement says
	}{
		"removing": {func(op, path string) bool { return op == "RemoveAll" && strings.Contains(path, copiedMark) }, replacedMark + "4"},
		"renaming": {func(op, path string) bool { return op == "Rename" && strings.Contains(path, copiedMark) }, copyMark},
	}
	for name, test := range stuck {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			place := placeIn(home)
			for _, n := range []string{"1", "2", "3"} {
				put(t, filepath.Join(place.State, replacedMark+n, "package.json"), n, 0o600)
			}
			fsys := hooked{splitIn(home, OS), func(op, path string) error {
				if test.at(op, path) {
					if op == "RemoveAll" {
						removeHalf(path)
					}
					return syscall.EBUSY
				}
				return nil
			}}
			r, err := replaceWith(t, home, fsys, "ours")
			if err != nil || !strings.HasPrefix(r.Kept, filepath.Join(place.State, test.kept)) || len(r.Warnings) != 1 {
				t.Errorf("%+v, error %v", r, err)
			}
			if got := tree(t, r.Kept)["package.json"]; got != `-rw------- {"old":1}` {
				t.Errorf("kept is %q", got)
			}
			for range 3 {
				must(t, disk{fsys}.recoverPlace(t.Context(), place))
			}
			must(t, disk{splitIn(home, OS)}.recoverPlace(t.Context(), place))
			noStage(t, home)
			got := content(t, home)
			for _, n := range []string{"2", "3", "4"} {
				want := "-rw------- " + n
				if n == "4" {
					want = `-rw------- {"old":1}`
				}
				if path := "state/web/replaced-" + n + "/package.json"; got[path] != want {
					t.Errorf("%s is %q", path, got[path])
				}
			}
			for path := range got {
				if strings.Contains(path, copyMark) || strings.Contains(path, replacedMark+"1/") || strings.Contains(path, replacedMark+"5") {
					t.Errorf("%s is there", path)
				}
			}
		})
	}
}
