package staging

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// readBoth reads the two files that commits of these tests change together.
func readBoth(home string) (pair string, err error) {
	a, err := os.ReadFile(placeIn(home).Dir + "/package.json")
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(placeIn(home).Dir + "/dsh-lock.yaml")
	return string(a) + "|" + string(b), err
}

func commitBoth(t testing.TB, home, content string) {
	t.Helper()
	tx, err := Begin(t.Context(), placeIn(home), Options{})
	must(t, err, write(content)(tx), tx.WriteFile("dsh-lock.yaml", []byte(content), 0o644), tx.Commit())
}

// A commit between the two halves of a reading has it done again.
func TestReadAgain(t *testing.T) {
	for _, commits := range []int{0, 1, 2} {
		home := newHome(t)
		commitBoth(t, home, "0")
		var got []string
		warnings, err := Read(t.Context(), placeIn(home), func(v View) error {
			a, err := os.ReadFile(v.Path(placeIn(home).Dir + "/package.json"))
			must(t, err)
			if len(got) < commits {
				commitBoth(t, home, fmt.Sprint(len(got)+1))
			}
			b, err := os.ReadFile(v.Path(placeIn(home).Dir + "/dsh-lock.yaml"))
			got = append(got, string(a)+"|"+string(b))
			return err
		})
		if err != nil || len(warnings) > 0 {
			t.Error(err, warnings)
		}
		want := []string{"0|1", "1|2", "2|2"}[:commits+1]
		want[commits] = fmt.Sprintf("%d|%d", commits, commits)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d commits: %s", commits, diff)
		}
	}
}

// Somebody who changes the profile each time it is read has to wait in the end.
func TestReadUnderLock(t *testing.T) {
	home := newHome(t)
	var wg sync.WaitGroup
	reads := 0
	_, err := Read(t.Context(), placeIn(home), func(View) error {
		reads++
		if lock, err := TryAcquire(placeIn(home).State+"/lock", "other"); err != nil {
			wg.Go(func() { commitBoth(t, home, "while it is read") })
			return nil
		} else {
			must(t, lock.Release())
		}
		commitBoth(t, home, fmt.Sprint(reads))
		return nil
	})
	must(t, err)
	wg.Wait()
	if reads != 4 {
		t.Errorf("read %d times", reads)
	}
}

// An error of a reading that saw half a change is not the reader's.
func TestReadForgetsErrors(t *testing.T) {
	home := newHome(t)
	reads := 0
	_, err := Read(t.Context(), placeIn(home), func(View) error {
		if reads++; reads == 1 {
			commitBoth(t, home, "new")
			return errors.New("half")
		}
		return nil
	})
	if err != nil || reads != 2 {
		t.Errorf("read %d times: %v", reads, err)
	}
	broken := errors.New("broken")
	if _, err := Read(t.Context(), placeIn(home), func(View) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestReadFinishes(t *testing.T) {
	home := interrupted(t)
	var got string
	warnings, err := Read(t.Context(), placeIn(home), func(v View) (err error) {
		if v.Redirects() {
			t.Error("the view leads elsewhere")
		}
		got, err = readBoth(home)
		return err
	})
	if want := `{"new":2}|new: 2` + "\n"; err != nil || len(warnings) > 0 || got != want {
		t.Errorf("got %q, warnings %q, error %v", got, warnings, err)
	}
	// What lies about may be much, and is left to the next change.
	left, err := Leftovers(placeIn(home))
	if err != nil || len(left) != 1 {
		t.Errorf("left is %q, error %v", left, err)
	}
	must(t, begin(t, home, nil).Rollback())
	noStage(t, home)
}

func TestReadOfNothing(t *testing.T) {
	home := t.TempDir()
	_, err := Read(t.Context(), placeIn(home), func(v View) error {
		_, err := readBoth(home)
		return err
	})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if got := tree(t, home); len(got) > 0 {
		t.Error(got)
	}
}

// readOnly is an FS that changes nothing.
func readOnly(fsys FS) FS {
	return hooked{fsys, func(op, path string) error {
		if slices.Contains([]string{"Lstat", "ReadDir", "Readlink", "RealPath", "Open", "Close", "Identity"}, op) {
			return nil
		}
		return fmt.Errorf("%s: %w", op, syscall.EROFS)
	}}
}

// In a home that cannot be written, readers see the new state whenever the journal
// was complete, wherever the process died, and else the old one.
func TestReadWhereNothingCanBeWritten(t *testing.T) {
	paths := []string{
		"package.json", "dsh-lock.yaml", "cordis.patch.yml", "cordis.yml", "node_modules/a/package.json", "node_modules/a/dist/main.js",
		"node_modules/b/package.json", "node_modules/@new/c/package.json", "node_modules/@s/only", "agent-plugins/old/main.js", "run.sh", "was-file",
	}
	// what is each path is, read through the view.
	read := func(t *testing.T, v View, home string) map[string]string {
		got := map[string]string{}
		for _, path := range paths {
			at := v.Path(filepath.Join(placeIn(home).Dir, path))
			if data, err := os.ReadFile(at); err == nil {
				got[path] = string(data)
			} else if target, err := os.Readlink(at); err == nil {
				got[path] = "-> " + target
			}
		}
		return got
	}
	for _, sc := range scenarios {
		if !sc.whole && !strings.HasPrefix(sc.name, "restore") || strings.HasPrefix(sc.name, "move") {
			continue
		}
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			home := sc.fresh(t)
			old := read(t, View{}, home)
			s := &strike{after: 1 << 30}
			if _, err, _ := s.try(t, sc, home); err != nil {
				t.Fatal(err)
			}
			new := read(t, View{}, home)
			redirected := 0
			for at := s.begun; at < s.calls; at++ {
				home := sc.fresh(t)
				strike := &strike{mode: "dies", after: at}
				strike.try(t, sc, home)
				j, err := disk{OS}.readJournal(placeIn(home).State)
				must(t, err)
				before := tree(t, home)
				var got map[string]string
				warnings, err := disk{readOnly(OS)}.read(t.Context(), placeIn(home), func(v View) error {
					if v.Redirects() {
						redirected++
					}
					got = read(t, v, home)
					return nil
				})
				want := old
				if j != nil && j.Complete || (j == nil || !j.Complete) && !cmp.Equal(got, old) {
					want = new // once the journal is not complete any more it is over
				}
				if diff := cmp.Diff(want, got); diff != "" || err != nil {
					t.Errorf("dies at %d, %s: error %v: %s", at, strike.struck, err, diff)
				}
				if complete := j != nil && j.Complete; complete != (len(warnings) > 0) {
					t.Errorf("dies at %d, %s: the warnings are %q", at, strike.struck, warnings)
				}
				if diff := cmp.Diff(before, tree(t, home)); diff != "" {
					t.Error(diff)
				}
			}
			if redirected == 0 {
				t.Error("nothing was read elsewhere")
			}
		})
	}
}

// Whoever reads while others commit sees one state at a time.
func TestReadRace(t *testing.T) {
	home := newHome(t)
	commitBoth(t, home, "0")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var wg sync.WaitGroup
	for writer := range 2 {
		wg.Go(func() {
			for i := range 15 {
				commitBoth(t, home, fmt.Sprint(writer, "-", i))
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 30 {
				var got string
				warnings, err := Read(ctx, placeIn(home), func(View) (err error) {
					got, err = readBoth(home)
					return err
				})
				a, b, _ := strings.Cut(got, "|")
				if err != nil || a != b && len(warnings) == 0 {
					t.Errorf("read %q, warnings %q, error %v", got, warnings, err)
				}
			}
		})
	}
	wg.Wait()
}

// booted is an FS of a machine that was started for the nth time.
type booted struct {
	FS
	boot string
}

func (b booted) BootID() string { return b.boot }

func TestUnclean(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	commit := func(boot string) {
		t.Helper()
		tx, err := Begin(t.Context(), place, Options{FS: booted{OS, boot}})
		must(t, err, tx.Replace("node_modules/a", stagePackage(t, tx, "a", boot)), tx.Commit())
	}
	expect := func(what, boot string, want bool) {
		t.Helper()
		if got := (disk{booted{OS, boot}}).isUnclean(place); got != want {
			t.Errorf("%s: unclean is %t", what, got)
		}
	}
	mark := func(boot string) { t.Helper(); must(t, disk{booted{OS, boot}}.markClean(place)) }
	expect("without a change", "1", false)
	commit("1")
	expect("in the same boot", "1", false)
	mark("1")
	expect("in the next boot", "2", true)
	expect("where nobody knows", "", false)
	commit("2")
	expect("after one more change", "2", true)
	mark("2")
	expect("when checked", "2", false)
	expect("when checked, one boot later", "3", false)
	commit("3")
	expect("after a change since", "3", false)
	expect("in the boot after that", "4", true)
	mark("4")

	// What a dead process of an earlier boot left is not clean when it is finished.
	dead := killed(t, home, func(t testing.TB, fsys FS, home string) ([]string, error) {
		return inTx(mixed)(t, booted{fsys, "5"}, home)
	}, func(op, path string) bool { return op == "Rename" && strings.HasSuffix(path, "dsh-lock.yaml") })
	if !dead {
		t.Fatal("it lived")
	}
	must(t, disk{booted{OS, "6"}}.recoverPlace(t.Context(), place))
	expect("after a recovery", "6", true)
	mark("6")
	expect("when checked", "6", false)
	if BootID() == "" {
		t.Skip("this system does not tell its boots apart")
	}
	commitBoth(t, home, "x")
	if Unclean(place) {
		t.Error("unclean in this boot")
	}
	must(t, MarkClean(place))
}

// What is left of changes is named where it stands: beside the directory, also of
// a profile that is a link.
func TestLeftovers(t *testing.T) {
	for _, linked := range []bool{false, true} {
		home := newHome(t)
		place, beside := placeIn(home), filepath.Join(home, "profiles")
		if linked {
			beside = filepath.Join(home, "dotfiles")
			moveAndLink(t, place.Dir, filepath.Join(beside, "web"))
		}
		for _, dir := range []string{".web.staging-0123456789ab", ".web.backup-0123456789ab", ".web.staging-mine", ".other.staging-0123456789ab"} {
			mkdir(t, filepath.Join(beside, dir))
		}
		put(t, filepath.Join(place.State, copyMark+"ba9876543210", "package.json"), "{}", 0o600)
		var want []string
		for _, name := range []string{".web.backup-0123456789ab", ".web.staging-0123456789ab"} {
			want = append(want, filepath.Join(beside, name))
		}
		got, err := Leftovers(place)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("linked %v: %v %s", linked, err, diff)
		}
		for _, want := range []bool{false, true} {
			if got, err := Unfinished(place); err != nil || got != want {
				t.Errorf("unfinished is %v, %v", got, err)
			}
			put(t, filepath.Join(place.State, "journal"), "{}", 0o600)
		}
	}
}
