package profile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"dsh/internal/staging"

	"github.com/google/go-cmp/cmp"
)

func TestResolveHome(t *testing.T) {
	user := t.TempDir()
	work := t.TempDir()
	t.Chdir(work)
	work, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(user, "elsewhere")
	tests := []struct{ name, explicit, env, want string }{
		{"nothing given", "", "", filepath.Join(user, ".dsh")},
		{"blank counts as nothing", " ", "\t ", filepath.Join(user, ".dsh")},
		{"environment", "", elsewhere, elsewhere},
		{"explicit wins", elsewhere, filepath.Join(user, "other"), elsewhere},
		{"tilde alone", "", "~", user},
		{"tilde with a slash", "", "~/a/b", filepath.Join(user, "a", "b")},
		{"tilde with a backslash", `~\a`, "", filepath.Join(user, "a")},
		{"another user's is a plain name", "~bob", "", filepath.Join(work, "~bob")},
		{"relative", "", "x/../y", filepath.Join(work, "y")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			env := map[string]string{"DSH_HOME": test.env, "HOME": user, "USERPROFILE": user}
			home, err := ResolveHome(test.explicit, func(name string) string { return env[name] })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, home.Dir()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestHomePlaces(t *testing.T) {
	home := Home{filepath.FromSlash("/h")}
	name := Name{"my profile"}
	got := map[string]string{}
	for what, path := range map[string]string{
		"patch": home.PatchPath(), "profiles": home.ProfilesDir(), "profile": home.ProfileDir(name),
		"store": home.StoreDir(),
		"state": home.StateDir(name), "path": home.Path("a", "b"), "itself": home.Path(),
	} {
		got[what] = filepath.ToSlash(path)
	}
	want := map[string]string{
		"patch": "/h/cordis.patch.yml", "profiles": "/h/profiles", "profile": "/h/profiles/my profile",
		"store": "/h/store/v1",
		"state": "/h/state/my profile", "path": "/h/a/b", "itself": "/h",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Names that lead to one directory of the home have one state, and so one lock.
func TestPlaceOfLinks(t *testing.T) {
	dir := t.TempDir()
	home := Home{filepath.Join(dir, "home")}
	for _, made := range []string{"home/profiles/work", "elsewhere/own"} {
		if err := staging.MkdirAll(filepath.Join(dir, made)); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, path string) {
		if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
			t.Skip("this system gives us no links")
		}
	}
	link("home", "by-link")
	link("work", "home/profiles/main")
	link("../profiles/main", "home/profiles/third")
	link(filepath.Join(dir, "by-link", "profiles", "work"), "home/profiles/absolute")
	link("../../elsewhere/own", "home/profiles/outside")
	link("outside", "home/profiles/outside-too")
	link("gone", "home/profiles/dangling")
	link("circle", "home/profiles/circle")
	link("work/deeper", "home/profiles/below")
	for name, want := range map[string]string{
		"work": "work", "main": "work", "third": "work", "absolute": "work", "outside": "outside", "outside-too": "outside",
		"dangling": "gone", "circle": "circle", "below": "below", "none": "none",
	} {
		for _, h := range []Home{home, {filepath.Join(dir, "by-link")}} {
			if got := h.Place(Name{name}).State; got != h.StateDir(Name{want}) {
				t.Errorf("%s has the state %s, not of %s", name, got, want)
			}
		}
	}
	tx, err := staging.Begin(t.Context(), home.Place(Name{"work"}), staging.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = staging.Begin(t.Context(), home.Place(Name{"third"}), staging.Options{Wait: time.Millisecond})
	if _, held := errors.AsType[*staging.HeldError](err); !held {
		t.Errorf("the other name begins too: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
}

func TestAncestors(t *testing.T) {
	if runtime.GOOS == "windows" {
		testAncestors(t, `C:\a\node_modules\b`, []string{`C:\a\node_modules\b\node_modules`, `C:\a\node_modules`, `C:\node_modules`})
		return
	}
	testAncestors(t, "/", []string{"/node_modules"})
	testAncestors(t, "/a/b/", []string{"/a/b/node_modules", "/a/node_modules", "/node_modules"})
	testAncestors(t, "/a/node_modules/@s/b", []string{"/a/node_modules/@s/b/node_modules", "/a/node_modules/@s/node_modules", "/a/node_modules", "/node_modules"})
	testAncestors(t, "/a/node_modules", []string{"/a/node_modules", "/node_modules"})
	testAncestors(t, "/a/x.node_modules", []string{"/a/x.node_modules/node_modules", "/a/node_modules", "/node_modules"})
}

func testAncestors(t *testing.T, dir string, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, Ancestors(dir)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", dir, diff)
	}
}
