package staging

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
)

// replaceWith replaces the profile by one with this manifest.
func replaceWith(t testing.TB, home string, fsys FS, manifest string) (Replacement, error) {
	return ReplaceDir(t.Context(), placeIn(home), func(stage string) error {
		return WriteFile(filepath.Join(stage, "package.json"), []byte(manifest), 0o644)
	}, Options{FS: fsys, Command: "test"})
}

func TestReplaceDir(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	for i := 1; i <= 5; i++ {
		r, err := replaceWith(t, home, nil, strconv.Itoa(i))
		if want := (Replacement{Kept: filepath.Join(place.State, "replaced-"+strconv.Itoa(i))}); err != nil || !cmp.Equal(want, r) {
			t.Fatal(r, err)
		}
	}
	want := map[string]string{
		"profiles/web/": "", "profiles/web/package.json": "-rw-r--r-- 5",
		"profiles/web.staging-0123456789ab/": "", "profiles/.web.staging-not-ours/": "",
		"state/web/generations/":         "",
		"state/web/generations/1.tar.gz": "-rw------- found {cordis.patch.yml -rw-r--r-- []\\n} {dsh-lock.yaml -rw-r--r-- old: 1\\n} {package.json -rw------- {\"old\":1}}",
	}
	for i := 1; i <= 5; i++ {
		want["state/web/generations/"+strconv.Itoa(i+1)+".tar.gz"] = "-rw------- {package.json -rw-r--r-- " + strconv.Itoa(i) + "}"
	}
	for i := 3; i <= 5; i++ { // 1 was what the home began with
		want["state/web/replaced-"+strconv.Itoa(i)+"/"] = ""
		want["state/web/replaced-"+strconv.Itoa(i)+"/package.json"] = "-rw-r--r-- " + strconv.Itoa(i-1)
	}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
	// The state belongs to the new directory: a transaction in it can be resumed.
	tx := begin(t, home, nil)
	must(t, tx.WriteFile("package.json", []byte("6"), 0o644), tx.Commit())
}

func TestReplaceDirMakes(t *testing.T) {
	home := t.TempDir()
	r, err := replaceWith(t, home, nil, "made")
	if err != nil || r.Kept != "" || r.Warnings != nil {
		t.Error(r, err)
	}
	want := map[string]string{
		"profiles/web/": "", "profiles/web/package.json": "-rw-r--r-- made",
		"state/web/generations/": "", "state/web/generations/1.tar.gz": "-rw------- {package.json -rw-r--r-- made}",
	}
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

func TestReplaceDirBuildFails(t *testing.T) {
	home := newHome(t)
	before := content(t, home)
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, want := range []error{broken, context.Canceled} {
		_, err := ReplaceDir(ctx, placeIn(home), func(stage string) error {
			put(t, stage+"/half", "", 0o644)
			if want == broken {
				return broken
			}
			cancel()
			return nil
		}, Options{})
		if !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if diff := cmp.Diff(before, content(t, home)); diff != "" {
			t.Error(diff)
		}
	}
}

// winner puts another process's fresh profile at path, in place of what is
// there, which goes to aside.
func winner(t testing.TB, path, aside string) {
	if _, err := os.Lstat(path); err == nil {
		must(t, os.Rename(path, aside))
	}
	put(t, path+"/package.json", "winner", 0o644)
}

// What can go wrong between the two renames, each by a failing or late call.
func TestReplaceDirBetweenTheRenames(t *testing.T) {
	type outcome struct {
		Profile string // manifest in place afterwards
		Kept    string // manifest in <state>/replaced-1
		Lost    bool   // the error is a *LostRace
		Says    string // in the error
	}
	const oldManifest, newManifest = `{"old":1}`, "ours"
	tests := map[string]struct {
		absent bool // no profile to begin with
		hook   func(t *testing.T, home, op, path string) error
		want   outcome
	}{
		"moving aside is refused": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "Rename" && strings.Contains(path, backupMark) {
					return syscall.EACCES
				}
				return nil
			},
			want: outcome{Profile: oldManifest, Says: "permission denied"},
		},
		"it vanishes before it is moved aside": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "Rename" && strings.Contains(path, backupMark) {
					return os.RemoveAll(placeIn(home).Dir)
				}
				return nil
			},
			want: outcome{Profile: newManifest},
		},
		"moving in is refused": {
			hook: func(t *testing.T, home, op, path string) error {
				return failOnce(op == "RenameNew" && path == placeIn(home).Dir, home, "in", syscall.EBUSY)
			},
			want: outcome{Profile: oldManifest, Says: "busy"},
		},
		"moving in is refused where nothing was": {
			absent: true,
			hook: func(t *testing.T, home, op, path string) error {
				return failOnce(op == "RenameNew" && path == placeIn(home).Dir, home, "in", syscall.EBUSY)
			},
			want: outcome{Says: "busy"},
		},
		"moving in says no but did": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "RenameNew" && path == placeIn(home).Dir {
					stages, err := filepath.Glob(filepath.Dir(path) + "/.web.staging-????????????/new")
					must(t, err, os.Rename(stages[0], path))
				}
				return nil
			},
			want: outcome{Profile: newManifest, Kept: oldManifest},
		},
		"the directory cannot be synced": {
			hook: func(t *testing.T, home, op, path string) error {
				_, err := os.Lstat(placeIn(home).Dir + "/cordis.patch.yml") // only the old one has it
				_, gone := os.Lstat(placeIn(home).Dir)
				return failOnce(op == "SyncDir" && filepath.Base(path) == "profiles" && err != nil && gone == nil, home, "sync", syscall.EIO)
			},
			want: outcome{Profile: oldManifest, Says: "input/output"},
		},
		"a winner between the renames": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "RenameNew" && path == placeIn(home).Dir {
					winner(t, path, "")
				}
				return nil
			},
			want: outcome{Profile: "winner", Kept: oldManifest, Lost: true},
		},
		"a winner between the renames, and the error of another system": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "RenameNew" && path == placeIn(home).Dir {
					winner(t, path, "")
					return syscall.EPERM
				}
				return nil
			},
			want: outcome{Profile: "winner", Kept: oldManifest, Lost: true},
		},
		"a winner where nothing was": {
			absent: true,
			hook: func(t *testing.T, home, op, path string) error {
				if op == "RenameNew" && path == placeIn(home).Dir {
					winner(t, path, "")
				}
				return nil
			},
			want: outcome{Profile: "winner", Lost: true},
		},
		"a winner before the first rename": {
			hook: func(t *testing.T, home, op, path string) error {
				if op == "Rename" && strings.Contains(path, backupMark) {
					winner(t, placeIn(home).Dir, filepath.Join(home, "theirs-to-keep"))
				}
				return nil
			},
			want: outcome{Profile: "winner", Lost: true},
		},
		"a winner before the restore": {
			hook: func(t *testing.T, home, op, path string) error {
				if op != "RenameNew" || path != placeIn(home).Dir {
					return nil
				}
				if err := failOnce(true, home, "in", syscall.EBUSY); err != nil {
					return err
				}
				winner(t, path, "")
				return nil
			},
			want: outcome{Profile: "winner", Kept: oldManifest, Lost: true},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			if test.absent {
				must(t, os.RemoveAll(placeIn(home).Dir))
			}
			_, err := replaceWith(t, home, noExchange{hooked{OS, func(op, path string) error { return test.hook(t, home, op, path) }}}, newManifest)
			_, lost := errors.AsType[*LostRace](err)
			got := outcome{Lost: lost, Says: test.want.Says}
			if err != nil && !strings.Contains(err.Error(), test.want.Says) || err == nil && test.want.Says != "" {
				got.Says = "error: " + errorText(err)
			}
			if err != nil && !strings.HasPrefix(err.Error(), "replacing profile directory "+placeIn(home).Dir+": ") {
				t.Errorf("the error is %v", err)
			}
			if err == nil != (test.want.Says == "" && !test.want.Lost) {
				t.Errorf("the error is %v", err)
			}
			_ = os.Remove(home + "/failed-in")
			_ = os.Remove(home + "/failed-sync")
			all := content(t, home)
			got.Profile = strings.TrimPrefix(all["profiles/web/package.json"], "-rw-r--r-- ")
			got.Profile = strings.TrimPrefix(got.Profile, "-rw------- ")
			got.Kept = strings.TrimPrefix(all["state/web/replaced-1/package.json"], "-rw------- ")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Profile == oldManifest { // then all of it is back, its packages too
				fresh := newHome(t)
				if diff := cmp.Diff(content(t, fresh), all); diff != "" {
					t.Error(diff)
				}
			}
			noStage(t, home)
			if all["state/web/journal"] != "" {
				t.Error("the journal is still there")
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}

// failOnce fails where when holds for the first time in this home.
func failOnce(when bool, home, name string, err error) error {
	mark := filepath.Join(home, "failed-"+name)
	if !when {
		return nil
	}
	if _, lerr := os.Lstat(mark); lerr == nil {
		return nil
	}
	if werr := os.WriteFile(mark, nil, 0o644); werr != nil {
		return werr
	}
	return err
}

// Both renames fail, and the way back as well: nothing is lost, the error says
// where it is, and the next command goes on.
func TestReplaceDirRestoreFails(t *testing.T) {
	home := newHome(t)
	broken := true
	_, err := replaceWith(t, home, noExchange{hooked{OS, func(op, path string) error {
		if broken && op == "RenameNew" && path == placeIn(home).Dir {
			return syscall.EBUSY
		}
		return nil
	}}}, "ours")
	backups, _ := filepath.Glob(home + "/profiles/.web.backup-????????????")
	if len(backups) != 1 || err == nil || !strings.Contains(err.Error(), backups[0]) || fault.ClassOf(err) != fault.Environment {
		t.Fatalf("backups %q, error %v", backups, err)
	}
	if got := tree(t, backups[0])["package.json"]; got != `-rw------- {"old":1}` {
		t.Error(got)
	}
	must(t, Recover(t.Context(), placeIn(home)))
	got := content(t, home)
	if got["profiles/web/package.json"] != "-rw-r--r-- ours" || got["state/web/replaced-1/package.json"] != `-rw------- {"old":1}` {
		t.Error(got)
	}
	noStage(t, home)
}

// All saw the same profile before the first took the lock: one wins, the others
// notice after their wait.
func TestReplaceDirRace(t *testing.T) {
	for _, n := range []int{2, 10} {
		for _, exists := range []bool{true, false} {
			home := newHome(t)
			if !exists {
				must(t, os.RemoveAll(placeIn(home).Dir))
			}
			var barrier, done sync.WaitGroup
			barrier.Add(n)
			errs := make([]error, n)
			for i := range n {
				done.Go(func() {
					ready := sync.OnceFunc(barrier.Done)
					defer ready() // whoever fails before must not be waited for
					_, errs[i] = replaceWith(t, home, hooked{OS, func(op, path string) error {
						if op == "TryLock" {
							ready()
							barrier.Wait()
						}
						return nil
					}}, strconv.Itoa(i))
				})
			}
			done.Wait()
			won := -1
			for i, err := range errs {
				if _, lost := errors.AsType[*LostRace](err); lost {
					continue
				}
				if err != nil || won >= 0 {
					t.Errorf("%d of %d: %v, and %d won", i, n, err, won)
				}
				won = i
			}
			got := content(t, home)
			if got["profiles/web/package.json"] != "-rw-r--r-- "+strconv.Itoa(won) {
				t.Errorf("%d won: %v", won, got)
			}
			if _, kept := got["state/web/replaced-1/"]; kept != exists || got["state/web/replaced-2/"] != "" {
				t.Error(got)
			}
			noStage(t, home)
		}
	}
}

// Two that do not know of each other's lock, as when the state directory was
// removed meanwhile: they meet at the rename.
func TestReplaceDirRaceWithoutLock(t *testing.T) {
	home := newHome(t)
	places := []Place{placeIn(home), {Dir: placeIn(home).Dir, State: filepath.Join(home, "state", "other")}}
	var preparing sync.Mutex // each is ready at the rename before the other begins
	var barrier, done sync.WaitGroup
	barrier.Add(len(places))
	errs := make([]error, len(places))
	for i, place := range places {
		done.Go(func() {
			preparing.Lock()
			ready := sync.OnceFunc(func() { preparing.Unlock(); barrier.Done() })
			defer ready() // whoever fails before the rename must not be waited for
			_, errs[i] = ReplaceDir(t.Context(), place, func(stage string) error {
				return WriteFile(filepath.Join(stage, "package.json"), []byte(strconv.Itoa(i)), 0o644)
			}, Options{FS: hooked{OS, func(op, path string) error {
				if op == "Rename" && strings.Contains(path, backupMark) {
					ready()
					barrier.Wait()
				}
				return nil
			}}})
		})
	}
	done.Wait()
	won := -1
	for i, err := range errs {
		if err == nil {
			won = i // both may, one after the other
		} else if _, lost := errors.AsType[*LostRace](err); !lost {
			t.Error(err)
		}
	}
	if won < 0 {
		t.Fatal("nobody won")
	}
	got := strings.TrimPrefix(tree(t, placeIn(home).Dir)["package.json"], "-rw-r--r-- ")
	if i, err := strconv.Atoi(got); err != nil || errs[i] != nil {
		t.Errorf("in place is %q, errors %v", got, errs)
	}
	must(t, Recover(t.Context(), places[0]), Recover(t.Context(), places[1]))
	noStage(t, home)
}

func TestReplaceDirStateElsewhere(t *testing.T) {
	home := newHome(t)
	profile := placeIn(home).Dir
	put(t, profile+"/agent-plugins/x/run.sh", "x", 0o755)
	link(t, "agent-plugins/x", profile+"/x")
	must(t, os.Chmod(profile+"/agent-plugins", 0o750))
	want := tree(t, profile)
	for path := range want {
		if strings.HasPrefix(path, "node_modules") {
			delete(want, path)
		}
	}
	elsewhere := func(op, path string) error {
		if op == "Rename" && strings.HasPrefix(filepath.Base(path), replacedMark) && strings.HasPrefix(path, home) {
			return failOnce(true, home, "exdev", syscall.EXDEV)
		}
		return nil
	}
	r, err := replaceWith(t, home, hooked{OS, elsewhere}, "ours")
	if err != nil || r.Warnings != nil || r.Kept != filepath.Join(placeIn(home).State, "replaced-1") {
		t.Fatal(r, err)
	}
	if diff := cmp.Diff(want, tree(t, r.Kept)); diff != "" {
		t.Error(diff)
	}
	if got := mode(t, r.Kept+"/agent-plugins"); got != "drwxr-x---" {
		t.Error(got)
	}
	noStage(t, home)
}

// Clean-up that fails after the replacement is a warning, and done next time.
func TestReplaceDirLeftovers(t *testing.T) {
	tests := map[string]func(op, path string) bool{
		"packages in use":    func(op, path string) bool { return op == "RemoveAll" && filepath.Base(path) == "node_modules" },
		"state not writable": func(op, path string) bool { return op == "Rename" && filepath.Base(path) == "replaced-1" },
		"staging in use":     func(op, path string) bool { return op == "RemoveAll" && filepath.Base(path) == "old" },
		"journal in use":     func(op, path string) bool { return op == "Remove" && filepath.Base(path) == "journal" },
	}
	for name, at := range tests {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			r, err := replaceWith(t, home, hooked{OS, func(op, path string) error {
				if at(op, path) {
					return syscall.EBUSY
				}
				return nil
			}}, "ours")
			if err != nil || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "busy") {
				t.Errorf("%+v, error %v", r, err)
			}
			if r.Kept != "" {
				if got := tree(t, r.Kept)["package.json"]; got != `-rw------- {"old":1}` {
					t.Errorf("kept is %q", got)
				}
			}
			must(t, Recover(t.Context(), placeIn(home)))
			got := content(t, home)
			if got["profiles/web/package.json"] != "-rw-r--r-- ours" || got["state/web/replaced-1/package.json"] != `-rw------- {"old":1}` {
				t.Error(got)
			}
			noStage(t, home)
		})
	}
}

func TestReplaceDirRefuses(t *testing.T) {
	home := t.TempDir()
	put(t, placeIn(home).Dir, "a file", 0o644)
	if _, err := replaceWith(t, home, nil, "ours"); err == nil {
		t.Error("a file was replaced")
	}
	if diff := cmp.Diff(map[string]string{"profiles/web": "-rw-r--r-- a file"}, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

// What only the permissions of the directory protect stays protected.
func TestReplaceDirKeepsPermissions(t *testing.T) {
	home := newHome(t)
	must(t, os.Chmod(placeIn(home).Dir, 0o700))
	_, err := replaceWith(t, home, nil, "ours")
	must(t, err)
	if got := mode(t, placeIn(home).Dir); got != "drwx------" {
		t.Errorf("the new directory is %s", got)
	}
}

// Who waits for somebody else that removes the profile finds nothing to remove.
func TestRemoveDirOfWhatIsGone(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	first := begin(t, home, nil)
	gone := make(chan error)
	waits := make(chan struct{})
	go func() {
		_, err := RemoveDir(t.Context(), place, Options{Waiting: func(Holder) { close(waits) }})
		gone <- err
	}()
	<-waits
	must(t, os.RemoveAll(place.Dir), first.Rollback())
	if err := <-gone; !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
