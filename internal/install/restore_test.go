package install

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// restore makes node_modules what an earlier manifest and lockfile say.
func restore(t *testing.T, m *profile.Manifest, lock *Lock) func(*Job) (*Result, error) {
	return func(j *Job) (*Result, error) { return j.Restore(t.Context(), m, lock) }
}

// everything installs a package of every kind of source.
func (w *workshop) everything(name string) {
	w.t.Helper()
	w.newProfile(name)
	w.write("copied/package.json", `{"name": "copied", "version": "1.0.0", "bin": "cli.js"}`)
	w.write("copied/cli.js", "#!/usr/bin/env node\n// first\n")
	w.write("linked/package.json", `{"name": "linked", "version": "1.0.0"}`)
	w.must(os.WriteFile(filepath.Join(w.home, "packed.tgz"), tarball(w.t, map[string]string{"package.json": `{"name": "packed", "version": "1.0.0"}`}), 0o644))
	w.add(name, "is-odd@3.0.0", "@acme/bundled", "@acme/bins", "left@1.0.0", "./linked", "file:./copied", "./packed.tgz", "hosted@"+w.registry.URL()+"/files/left_1.0.0.tgz")
}

// Everything comes back from the store, offline, also what has changed or gone
// since where it came from.
func TestRestore(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	manifest, lock, before := w.manifest("x"), w.lock("x"), w.ground("x").listing(t)

	w.write("copied/cli.js", "// second\n")
	w.remove("packed.tgz")
	w.run("x", func(j *Job) (*Result, error) {
		return j.Remove(t.Context(), []string{"is-odd", "linked", "@acme/bundled", "hosted", "packed"})
	})
	w.add("x", "left@2.0.0")
	w.run("x", func(j *Job) (*Result, error) { return j.Update(t.Context(), []string{"copied"}, false) })

	w.offline = true
	small := map[string]string{}
	for _, name := range []string{"package.json", LockName} {
		text, err := os.ReadFile(filepath.Join(w.ground("x").place.Dir, name))
		w.must(err)
		small[name] = string(text)
	}
	result := w.run("x", restore(t, manifest, lock))
	after := w.ground("x").listing(t)
	for name, text := range small {
		if after[name] != text {
			t.Errorf("%s was written", name)
		}
		after[name] = before[name] // the caller's
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("node_modules (-before +after):\n%s", diff)
	}
	var got []string
	for _, c := range result.Changes {
		got = append(got, fmt.Sprintf("%s %s %s%s", c.Name, c.Action, c.Version, c.Layer))
	}
	want := []string{
		"@acme/bundled added 1.0.0", "copied updated 1.0.0", "hosted added 1.0.0", "is-odd added 3.0.0",
		"left updated 1.0.0", "linked added 1.0.0", "packed added 1.0.0",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("warnings: %q", result.Warnings)
	}
}

func TestRestoreOfTheSame(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	w.offline = true
	before := w.identities("x")
	result := w.run("x", restore(t, w.manifest("x"), w.lock("x")))
	if diff := cmp.Diff(before, w.identities("x")); diff != "" {
		t.Errorf("something was laid out again:\n%s", diff)
	}
	if diff := cmp.Diff(TreeChange{}, result.Tree); diff != "" || len(result.Changes) > 0 {
		t.Errorf("changes: %v %v", diff, result.Changes)
	}
}

// identities tells what is laid out again from what stays.
func (w *workshop) identities(name string) map[string]string {
	w.t.Helper()
	dir := w.ground(name).place.Dir
	list := map[string]string{}
	for at := range w.ground(name).listing(w.t) {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at)))
		w.must(err)
		list[at] = fmt.Sprint(info.ModTime().UnixNano(), info.Mode())
	}
	return list
}

// What another package manager laid out is replaced whole.
func TestRestoreOverForeignModules(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	want := w.ground("x").listing(t)
	w.remove("profiles/x/node_modules")
	w.write("profiles/x/node_modules/.modules.yaml", "")
	w.write("profiles/x/node_modules/left/index.js", "// pnpm's")
	result := w.run("x", restore(t, w.manifest("x"), w.lock("x")))
	if diff := cmp.Diff(want, w.ground("x").listing(t)); diff != "" {
		t.Error(diff)
	}
	if result.Tree.Replaced != "pnpm" {
		t.Errorf("replaced: %q", result.Tree.Replaced)
	}
}

// Nothing that stands in the profile has to be readable.
func TestRestoreOverBrokenFiles(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	manifest, lock, want := w.manifest("x"), w.lock("x"), w.ground("x").listing(t)
	w.write("profiles/x/package.json", "{")
	w.write("profiles/x/"+LockName, "\t")
	w.write("profiles/x/node_modules/"+treeMarker, "\x00\x00")
	w.run("x", restore(t, manifest, lock))
	got := w.ground("x").listing(t)
	want["package.json"], want[LockName] = "{", "\t"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreOfALinkToNothing(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	manifest, lock, want := w.manifest("x"), w.lock("x"), w.ground("x").listing(t)
	w.run("x", func(j *Job) (*Result, error) { return j.Remove(t.Context(), []string{"linked"}) })
	w.remove("linked")
	result := w.run("x", restore(t, manifest, lock))
	link := "node_modules/linked"
	if got := w.ground("x").listing(t); got[link] != want[link] {
		t.Errorf("the link is %q, and was %q", got[link], want[link])
	}
	text := "linked links to " + filepath.Join(w.home, "linked") + ", and there is no such folder"
	if diff := cmp.Diff([]string{text}, result.Warnings); diff != "" {
		t.Error(diff)
	}
}

// What the store has lost is fetched again and held against the lockfile.
func TestRestoreWithoutAStore(t *testing.T) {
	w := newWorkshop(t)
	w.everything("x")
	manifest, lock, want := w.manifest("x"), w.lock("x"), w.ground("x").listing(t)
	refused := func(part string) {
		t.Helper()
		before := w.ground("x").listing(t)
		_, err := w.try("x", restore(t, manifest, lock))
		if err == nil || !strings.Contains(err.Error()+"\n"+fault.Hint(err), part) {
			t.Errorf("without %q: %v, hint %q", part, err, fault.Hint(err))
		}
		if diff := cmp.Diff(before, w.ground("x").listing(t)); diff != "" {
			t.Errorf("it changed something:\n%s", diff)
		}
	}
	gone := func() {
		t.Helper()
		w.remove("store")
		w.remove("profiles/x/node_modules")
	}

	gone()
	w.run("x", restore(t, manifest, lock))
	if diff := cmp.Diff(want, w.ground("x").listing(t)); diff != "" {
		t.Errorf("from the network:\n%s", diff)
	}

	gone()
	w.offline = true
	refused("@acme/bins@1.0.0, @acme/bundled@1.0.0, is-number@6.0.0, is-odd@3.0.0, left@1.0.0")
	w.offline = false

	gone()
	first, err := os.ReadFile(filepath.Join(w.home, "copied", "cli.js"))
	w.must(err)
	w.write("copied/cli.js", "// second\n")
	refused("content does not match its integrity")
	refused("put " + filepath.Join(w.home, "copied") + " back as it was, or take it as it is now: dsh plugin --profile x update copied")
	w.write("copied/cli.js", string(first))
	packed, err := os.ReadFile(filepath.Join(w.home, "packed.tgz"))
	w.must(err)
	gone()
	w.remove("packed.tgz")
	refused("packed.tgz: there is no such file")
	refused("put " + filepath.Join(w.home, "packed.tgz") + " back as it was")
	w.write("packed.tgz", "no archive")
	refused("content does not match its integrity")
	w.write("packed.tgz", string(packed))
	w.run("x", restore(t, manifest, lock))
	if diff := cmp.Diff(want, w.ground("x").listing(t)); diff != "" {
		t.Errorf("put back as it was:\n%s", diff)
	}
}

// A manifest that had no lockfile is resolved, and what stands is preferred to
// what is newest.
func TestRestoreWithoutALockfile(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	w.add("x", "left@1.0.0")
	file := filepath.Join(w.ground("x").place.Dir, "package.json")
	manifest, err := profile.ParseManifest(file, []byte(`{"dependencies": {"left": "^1.0.0", "is-odd": "3.0.0"}}`))
	w.must(err)
	lockText, err := os.ReadFile(filepath.Join(w.ground("x").place.Dir, LockName))
	w.must(err)
	result := w.run("x", restore(t, manifest, nil))
	got := []string{}
	for _, listed := range List(w.ground("x").place.Dir, manifest) {
		got = append(got, listed.Name+"@"+listed.Version)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"is-odd@3.0.0", "left@1.0.0"}, got); diff != "" {
		t.Error(diff)
	}
	after, err := os.ReadFile(filepath.Join(w.ground("x").place.Dir, LockName))
	w.must(err)
	if string(after) != string(lockText) {
		t.Error("the lockfile was written")
	}
	if len(result.Changes) != 1 || result.Changes[0].Name != "is-odd" {
		t.Errorf("changes: %v", result.Changes)
	}
}

func TestRestoreOnAnotherPlatform(t *testing.T) {
	w := newWorkshop(t)
	w.newProfile("x")
	other := "win32"
	if runtime.GOOS == "windows" {
		other = "linux"
	}
	lock := &Lock{Wanted: map[string]string{"n": "1.0.0"}, Nodes: map[string]Located{
		"node_modules/n": {Package: &Package{Name: "n", Version: "1.0.0", OS: []string{other}}},
	}}
	_, err := w.try("x", restore(t, w.manifest("x"), lock))
	if err == nil || fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "n@1.0.0 does not run on this machine") {
		t.Errorf("a package for another system: %v", err)
	}
}

// A transaction that makes a profile has its files elsewhere, also folders of
// its own that it depends on.
func TestJobOfAProfileInTheMaking(t *testing.T) {
	manifest := `{
  "dependencies": {"copied": "file:./copied", "linked": "link:./linked", "left": "^1.0.0"},
  "dsh": {"profile": {"bundles": []}}
}
`
	w := newWorkshop(t)
	w.must(os.MkdirAll(filepath.Join(w.home, "profiles"), 0o755))
	dir := w.ground("x").place.Dir
	init := func(at string) error {
		for name, text := range map[string]string{
			"package.json": manifest, "copied/package.json": `{"name": "copied", "version": "1.0.0"}`,
			"linked/package.json": `{"name": "linked", "version": "1.0.0", "bin": "cli.js"}`, "linked/cli.js": "",
		} {
			file := filepath.Join(at, filepath.FromSlash(name))
			if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
				return err
			}
		}
		return nil
	}
	failed := errors.New("failed")
	_, err := w.making("x", init, func(j *Job) (*Result, error) {
		result, err := j.Install(t.Context(), InstallOptions{})
		return result, errors.Join(err, failed)
	})
	if !errors.Is(err, failed) || strings.Contains(err.Error(), "\n") {
		t.Errorf("an install that fails in the end: %v", err)
	}
	if _, err := os.Lstat(dir); err == nil {
		t.Error("a failure left a profile")
	}

	result, err := w.making("x", init, func(j *Job) (*Result, error) {
		result, err := j.Install(t.Context(), InstallOptions{})
		if _, statErr := os.Lstat(dir); statErr == nil {
			t.Error("the profile is there before the commit")
		}
		return result, err
	})
	w.must(err)
	if diff := cmp.Diff([]string{"copied@1.0.0", "left@1.2.0", "linked@1.0.0"}, versionsOf(w.lock("x"))); diff != "" {
		t.Error(diff)
	}
	if len(result.Warnings) > 0 {
		t.Errorf("warnings: %q", result.Warnings)
	}
	want := w.ground("x").listing(t)
	inside := "link to ../linked"
	if runtime.GOOS == "windows" {
		inside = "link to PROFILE/linked"
	}
	if got := want["node_modules/linked"]; got != inside {
		t.Errorf("the link: %q", got)
	}
	if _, ok := want["node_modules/.bin/linked"]; !ok && runtime.GOOS != "windows" {
		t.Error("the program of the linked folder is not there")
	}

	// As a copy of it is made.
	lock := w.lock("x")
	w.must(os.RemoveAll(dir))
	w.remove("store")
	result, err = w.making("x", init, func(j *Job) (*Result, error) {
		m, err := profile.ParseManifest(filepath.Join(dir, "package.json"), []byte(manifest))
		w.must(err)
		w.must(j.Tx.WriteFile(LockName, lock.Bytes(), 0o644))
		return j.Restore(t.Context(), m, lock)
	})
	w.must(err)
	if diff := cmp.Diff(want, w.ground("x").listing(t)); diff != "" || len(result.Warnings) > 0 {
		t.Errorf("restored: %s, warnings %q", diff, result.Warnings)
	}
}

// TestLinksOutliveAMove moves a profile with links to folders in it, and looks
// where they lead; an older dsh made them absolute, which is whole too.
func TestLinksOutliveAMove(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links are absolute there")
	}
	dir := filepath.Join(t.TempDir(), "profile")
	for at, place := range map[string]string{
		"node_modules/own": "own", "node_modules/@scope/own": "deep/own", "node_modules/a/node_modules/own": "own", "node_modules/up": "../profile/own", "node_modules/self": ".",
	} {
		file := filepath.Join(dir, filepath.FromSlash(at))
		target := linkTarget(dir, at, place)
		if got := filepath.Join(filepath.Dir(file), target); !filepath.IsAbs(target) && got != filepath.Join(dir, place) {
			t.Errorf("%s holds %s, which is %s", at, target, got)
		}
		if inside := filepath.IsLocal(place); inside == filepath.IsAbs(target) {
			t.Errorf("%s holds %s", at, target)
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		leads := nativePlace(dir, place)
		for text, want := range map[string]bool{target: true, leads: true, leads + "2": false, "../own2": false} {
			if err := errors.Join(os.RemoveAll(file), os.Symlink(text, file)); err != nil {
				t.Fatal(err)
			}
			if got := (item{link: target, leads: leads}).stands(dir, at); got != want {
				t.Errorf("%s holding %s stands: %v", at, text, got)
			}
		}
	}
}
