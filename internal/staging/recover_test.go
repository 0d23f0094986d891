package staging

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// interrupted is a home whose profile a process was changing when it died: the
// journal is complete and the first small file is still to be renamed.
func interrupted(t *testing.T) (home string) {
	t.Helper()
	home = newHome(t)
	dead := killed(t, home, inTx(mixed), func(op, path string) bool {
		return op == "Rename" && strings.HasSuffix(path, filepath.Join("web", "dsh-lock.yaml"))
	})
	if !dead {
		t.Fatal("it lived")
	}
	if _, err := os.Lstat(placeIn(home).State + "/journal"); err != nil {
		t.Fatal(err)
	}
	return home
}

// noStage fails if a staging or backup directory is left.
func noStage(t *testing.T, home string) {
	t.Helper()
	left, err := filepath.Glob(home + "/profiles/.web.*-????????????")
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestRecoverForward(t *testing.T) {
	home := interrupted(t)
	tx := begin(t, home, nil) // Begin recovers
	got := content(t, placeIn(home).Dir)
	if got["package.json"] != `-rw------- {"new":2}` || got["dsh-lock.yaml"] != "-rw-r--r-- new: 2\n" || got["node_modules/@s/"] != "" {
		t.Error(got)
	}
	if len(tx.Warnings()) > 0 {
		t.Error(tx.Warnings())
	}
	must(t, tx.Rollback())
	noStage(t, home)
}

// What the user wrote after the crash is newer than either state.
func TestRecoverKeepsEdits(t *testing.T) {
	for name, edit := range map[string]func(t *testing.T, file string){
		"in place": func(t *testing.T, file string) { put(t, file, "edited", 0o600) },
		"by rename": func(t *testing.T, file string) {
			put(t, file+"~", "edited", 0o600)
			must(t, os.Rename(file+"~", file))
		},
		"removed": func(t *testing.T, file string) { must(t, os.Remove(file)) },
	} {
		t.Run(name, func(t *testing.T) {
			home := interrupted(t)
			profile := placeIn(home).Dir
			edit(t, profile+"/package.json")
			edited := tree(t, profile)["package.json"]
			tx := begin(t, home, nil)
			if len(tx.Warnings()) != 1 || !strings.Contains(tx.Warnings()[0], "package.json was edited since") {
				t.Errorf("the warnings are %q", tx.Warnings())
			}
			must(t, tx.Rollback())
			noStage(t, home)

			fresh := newHome(t)
			want := tree(t, placeIn(fresh).Dir)
			if name != "removed" { // a file that went missing comes back
				want["package.json"] = edited
			}
			if diff := cmp.Diff(want, tree(t, profile)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRecoverStaleJournal(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, p Place){
		"made anew": func(t *testing.T, p Place) {
			must(t, os.RemoveAll(p.Dir))
			put(t, p.Dir+"/package.json", `{"old":1}`, 0o600)
		},
		"deleted": func(t *testing.T, p Place) { must(t, os.RemoveAll(p.Dir)) },
		"no staging directory": func(t *testing.T, p Place) {
			stages, err := filepath.Glob(filepath.Dir(p.Dir) + "/.web.staging-????????????")
			must(t, err, os.RemoveAll(stages[0]))
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := interrupted(t)
			place := placeIn(home)
			for _, n := range []string{"3", "4", "5", "6"} {
				put(t, place.State+"/journal.stale-"+n, "earlier", 0o600)
			}
			change(t, place)
			journal, err := os.ReadFile(place.State + "/journal")
			must(t, err)
			profile := func() map[string]string {
				got := tree(t, home)
				for path := range got {
					if !strings.HasPrefix(path, "profiles/web/") {
						delete(got, path)
					}
				}
				return got
			}
			before := profile()
			d := disk{OS}
			resolved, err := place.resolved(d)
			must(t, err)
			warnings, err := d.recover(resolved)
			if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "dsh profile repair web") {
				t.Errorf("warnings %q, error %v", warnings, err)
			}
			if diff := cmp.Diff(before, profile()); diff != "" {
				t.Error(diff)
			}
			state := tree(t, place.State)
			if state["journal"] != "" || state["journal.stale-7"] != "-rw------- "+string(journal) {
				t.Error(state)
			}
			if stale, err := filepath.Glob(place.State + "/journal.stale-[567]"); err != nil || len(stale) != 3 || state["journal.stale-3"]+state["journal.stale-4"] != "" {
				t.Errorf("the newest three are to stay: %v, error %v", state, err)
			}
			noStage(t, home)
		})
	}
}

// A journal that cannot be understood blocks, for its backups may be all there is.
func TestRecoverUnreadableJournal(t *testing.T) {
	for name, content := range map[string]string{
		"damaged": `{"version": 1, "ops": [`,
		"empty":   "",
		"newer":   `{"version": 4, "complete": true}`,
	} {
		t.Run(name, func(t *testing.T) {
			home := interrupted(t)
			put(t, placeIn(home).State+"/journal", content, 0o600)
			before := content2(t, home)
			_, err := Begin(t.Context(), placeIn(home), Options{})
			if fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), "journal") {
				t.Errorf("Begin: %v", err)
			}
			if err := Recover(t.Context(), placeIn(home)); fault.ClassOf(err) != fault.Environment {
				t.Errorf("Recover: %v", err)
			}
			if diff := cmp.Diff(before, content2(t, home)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// content2 is content less the locks, which anybody touches.
func content2(t *testing.T, home string) map[string]string {
	got := content(t, home)
	for path := range got {
		if filepath.Base(path) == "lock" {
			delete(got, path)
		}
	}
	return got
}

func TestRecoverTouchesNothingHealthy(t *testing.T) {
	home := newHome(t)
	before := tree(t, home)
	must(t, Recover(t.Context(), placeIn(home)))
	must(t, Recover(t.Context(), Place{Dir: home + "/profiles/none", State: home + "/state/none"}))
	if diff := cmp.Diff(before, tree(t, home)); diff != "" {
		t.Error(diff)
	}
}

func TestRecoverLeavesTheLiving(t *testing.T) {
	home := newHome(t)
	tx := begin(t, home, nil)
	staged := stagePackage(t, tx, "a", "a2")
	must(t, Recover(t.Context(), placeIn(home))) // the lock is held, nothing is to finish

	// As if somebody had removed the state directory meanwhile.
	must(t, os.RemoveAll(placeIn(home).State))
	other := Place{Dir: placeIn(home).Dir, State: filepath.Join(home, "state", "another")}
	must(t, Recover(t.Context(), other))
	must(t, tx.Replace("node_modules/a", staged), tx.Rollback())
	noStage(t, home)
}

func TestRecoverSweeps(t *testing.T) {
	home := newHome(t)
	place := placeIn(home)
	parent := filepath.Dir(place.Dir)
	want := content(t, home)

	mkdir(t, parent+"/.web.staging-aaaaaaaaaaaa")
	put(t, parent+"/.web.staging-bbbbbbbbbbbb/lock", "", 0o644)
	put(t, parent+"/.web.staging-bbbbbbbbbbbb/new/x/y", "", 0o644)
	put(t, parent+"/.web.backup-cccccccccccc/package.json", "kept", 0o644)
	put(t, parent+"/.web.backup-cccccccccccc/node_modules/x/y", "", 0o644)
	put(t, place.State+"/.dsh-tmp-dddddddddddd", "", 0o644)
	put(t, place.Dir+"/.dsh-tmp-eeeeeeeeeeee", "old", 0o644)
	old := time.Now().Add(-2 * staleTemp)
	must(t, os.Chtimes(place.Dir+"/.dsh-tmp-eeeeeeeeeeee", old, old))
	put(t, parent+"/.web.backup-copied-abcdefabcdef/half", "is in the state", 0o644)
	put(t, place.State+"/copied-abcdefabcdef/package.json", "copied", 0o644)

	// What is not ours, or young, stays.
	put(t, place.Dir+"/.dsh-tmp-ffffffffffff", "young", 0o644)
	put(t, place.Dir+"/.dsh-tmp-notes", "the user's", 0o644)
	put(t, place.Dir+"/.dsh-tmp-0123456789ab/file", "a directory", 0o644)
	link(t, "package.json", place.Dir+"/.dsh-tmp-ba9876543210")
	for _, path := range []string{".dsh-tmp-notes", ".dsh-tmp-0123456789ab"} {
		must(t, os.Chtimes(filepath.Join(place.Dir, path), old, old))
	}
	put(t, place.State+"/.dsh-tmp-mine", "the user's", 0o644)
	put(t, place.State+"/copied-by-hand/file", "the user's", 0o644)
	want["profiles/web/.dsh-tmp-notes"] = "-rw-r--r-- the user's"
	want["profiles/web/.dsh-tmp-0123456789ab/"] = ""
	want["profiles/web/.dsh-tmp-0123456789ab/file"] = "-rw-r--r-- a directory"
	want["profiles/web/.dsh-tmp-ba9876543210"] = "-> package.json"
	want["state/web/.dsh-tmp-mine"] = "-rw-r--r-- the user's"
	want["state/web/copied-by-hand/"] = ""
	want["state/web/copied-by-hand/file"] = "-rw-r--r-- the user's"
	put(t, parent+"/.web.staging-gggggggggggg/file", "not random", 0o644)
	put(t, parent+"/.web.staging-000000000000/file", "no lock", 0o644)
	put(t, parent+"/.web2.staging-111111111111/lock", "another profile", 0o644)
	want["profiles/web/.dsh-tmp-ffffffffffff"] = "-rw-r--r-- young"
	want["profiles/.web.staging-gggggggggggg/"] = ""
	want["profiles/.web.staging-gggggggggggg/file"] = "-rw-r--r-- not random"
	want["profiles/.web.staging-000000000000/"] = ""
	want["profiles/.web.staging-000000000000/file"] = "-rw-r--r-- no lock"
	want["profiles/.web2.staging-111111111111/"] = ""
	want["profiles/.web2.staging-111111111111/lock"] = "-rw-r--r-- another profile"
	want["state/web/replaced-1/"] = ""
	want["state/web/replaced-1/package.json"] = "-rw-r--r-- kept"
	want["state/web/replaced-2/"] = ""
	want["state/web/replaced-2/package.json"] = "-rw-r--r-- copied"

	must(t, Recover(t.Context(), place))
	if diff := cmp.Diff(want, content(t, home)); diff != "" {
		t.Error(diff)
	}
}

// A journal is found again when the whole home was moved.
func TestRecoverMovedHome(t *testing.T) {
	home := interrupted(t)
	moved := filepath.Join(t.TempDir(), "moved home")
	must(t, os.Rename(home, moved))
	must(t, Recover(t.Context(), placeIn(moved)))
	if got := tree(t, placeIn(moved).Dir)["package.json"]; got != `-rw------- {"new":2}` {
		t.Error(got)
	}
	noStage(t, moved)
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"version":1,"complete":true,"stage":".web.staging-0123456789ab","ops":[{"path":"a","staged":"new/a","backup":"old/0"}]}`))
	f.Add([]byte(`{"version":2,"complete":true,"stage":".web.staging-0123456789ab","next":"inode 1","boot":"b","ops":[{"path":".","staged":"new","new":"inode 1"}],"saves":[{"id":1,"pending":".dsh-tmp-0123456789ab"}]}`))
	f.Add([]byte(`{"version":1,"ops":[{}],"saves":[]}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		state := t.TempDir()
		put(t, state+"/journal", string(data), 0o600)
		j, err := disk{OS}.readJournal(state)
		if err != nil {
			return
		}
		// What was read is what would be written.
		again, err := json.Marshal(j)
		must(t, err)
		var back journal
		must(t, json.Unmarshal(again, &back))
		if diff := cmp.Diff(*j, back, cmp.AllowUnexported(op{}), cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}
