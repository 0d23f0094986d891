package profile

import (
	"path/filepath"
	"runtime"
	"testing"

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
