package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
)

// putFiles writes files below a directory.
func putFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// selfish makes the profile name, which is installed, chosen, and depends on what
// lies in it, as written in every way.
func selfish(t *testing.T, env Env, name profile.Name) {
	t.Helper()
	dir := env.Home.ProfileDir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := profile.Write(dir, name, profile.BaseTemplate()); err != nil {
		t.Fatal(err)
	}
	putFiles(t, dir, map[string]string{
		"package.json": `{
	"name": "dsh-profile-` + name.String() + `",
	"dependencies": {
		"absolute": "link:` + filepath.ToSlash(dir) + `/absolute",
		"by-name": "link:../` + name.String() + `/by-name",
		"inside": "link:./inside",
		"copied": "file:` + filepath.ToSlash(dir) + `/copied"
	},
	"dsh": {"profile": {"bundles": []}}
}
`,
		"absolute/package.json": `{"name": "absolute", "version": "1.0.0"}`,
		"by-name/package.json":  `{"name": "by-name", "version": "1.0.0"}`,
		"inside/package.json":   `{"name": "inside", "version": "1.0.0"}`,
		"copied/package.json":   `{"name": "copied", "version": "1.0.0"}`,
	})
	if _, err := Install(t.Context(), env, PluginOptions{Name: name, Offline: true}, install.InstallOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := profile.Choose(env.Home, name); err != nil {
		t.Fatal(err)
	}
}

// checkWhole fails where a profile of [selfish] is not chosen, or depends on
// anything but what is in it.
func checkWhole(t *testing.T, env Env, name profile.Name) {
	t.Helper()
	if chosen, _, err := profile.Chosen(env.Home); chosen != name {
		t.Errorf("%s is chosen, and not %s: %v", chosen, name, err)
	}
	dir, err := realDir(env.Home.ProfileDir(name))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"absolute", "by-name", "inside"} {
		to, err := filepath.EvalSymlinks(filepath.Join(dir, "node_modules", link))
		if err != nil || to != filepath.Join(dir, link) {
			t.Errorf("node_modules/%s leads to %s, %v", link, to, err)
		}
	}
	opts := PluginOptions{Name: name, Offline: true}
	done, err := Install(t.Context(), env, opts, install.InstallOptions{Frozen: true})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(install.TreeChange{}, done.Tree); diff != "" || len(done.Changes) > 0 {
		t.Errorf("an install finds work to do: %v\n%s", done.Changes, diff)
	}
	if dir != env.Home.ProfileDir(name) {
		return // what repair says of a profile that is a link is no matter of names
	}
	found, err := Diagnose(t.Context(), env, RepairOptions{PluginOptions: opts})
	if err != nil || found.Left > 0 {
		t.Errorf("it is damaged: %+v, %v", found, err)
	}
}

// TestRenameThatEndsAnywhere stops a rename after each of its steps. By the name
// that it has then, the profile is whole, and still the one that was chosen.
func TestRenameThatEndsAnywhere(t *testing.T) {
	env, from := world(t)
	to := profileName(t, "to")
	selfish(t, env, from)
	was, is, err := env.renamedSites(from, to)
	if err != nil {
		t.Fatal(err)
	}
	done := &Renamed{}
	opts := PluginOptions{Offline: true}

	opts.Name = from
	if err := env.settle(t.Context(), opts, was, site{name: from, dir: is.dir, link: is.link}, done); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, env, from)
	if err := profile.ChooseMoving(env.Home, from, to); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, env, from)
	if err := env.move(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	if os.PathSeparator == '/' { // elsewhere links cannot be relative, and come last
		checkWhole(t, env, to)
	}
	if err := profile.Choose(env.Home, to); err != nil {
		t.Fatal(err)
	}
	opts.Name = to
	if err := env.settle(t.Context(), opts, was, is, done); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, env, to)
	if len(done.Warnings) > 0 {
		t.Errorf("warnings: %q", done.Warnings)
	}
}

func TestRenameProfile(t *testing.T) {
	env, from := world(t)
	selfish(t, env, from)
	to, next := profileName(t, "to"), profileName(t, "next")
	done, err := RenameProfile(t.Context(), env, PluginOptions{Name: to, Offline: true}, from)
	if err != nil {
		t.Fatal(err)
	}
	want := &Renamed{From: "demo", Profile: "to", Dir: env.Home.ProfileDir(to), Chosen: true, References: []Reference{}, Notes: []string{}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	checkWhole(t, env, to)
	p, err := profile.Read(env.Home, to)
	if err != nil || p.Manifest.PackageName() != "dsh-profile-to" {
		t.Errorf("the package is called %v, %v", p, err)
	}

	// One that has gone, as another process renames it.
	_, err = RenameProfile(t.Context(), env, PluginOptions{Name: next}, from)
	if err == nil || err.Error() != `profile "demo" does not exist` {
		t.Errorf("renamed a second time: %v", err)
	}

	// Nothing is half: what cannot be read cannot be renamed.
	for _, file := range []string{"dsh-lock.yaml", "package.json"} {
		before, err := os.ReadFile(filepath.Join(env.Home.ProfileDir(to), file))
		if err != nil {
			t.Fatal(err)
		}
		putFiles(t, env.Home.ProfileDir(to), map[string]string{file: "oops"})
		if _, err := RenameProfile(t.Context(), env, PluginOptions{Name: next}, to); err == nil || !strings.HasPrefix(fault.Hint(err), "dsh profile repair to") {
			t.Errorf("with a broken %s: %v, hint %q", file, err, fault.Hint(err))
		}
		putFiles(t, env.Home.ProfileDir(to), map[string]string{file: string(before)})
		checkWhole(t, env, to)
	}
	if exists(env.Home.StateDir(next)) {
		t.Error("there is a state of what was never made")
	}
}

// TestRenameLinked renames a profile that is a link: nothing of what is in it
// moves.
func TestRenameLinked(t *testing.T) {
	env, from := world(t)
	to := profileName(t, "to")
	real := filepath.Join(t.TempDir(), "demo")
	putFiles(t, real, map[string]string{"beside": ""})
	if err := os.MkdirAll(env.Home.ProfilesDir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, env.Home.ProfileDir(from)); err != nil {
		t.Skip(err)
	}
	selfish(t, env, from)
	if _, err := RenameProfile(t.Context(), env, PluginOptions{Name: to, Offline: true}, from); err != nil {
		t.Fatal(err)
	}
	checkWhole(t, env, to)
	if !exists(filepath.Join(real, "package.json")) || exists(env.Home.ProfileDir(from)) {
		t.Error("the wrong thing was moved")
	}
}
