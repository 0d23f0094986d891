package install

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// savedForm is what package.json gets for a spec, "kept" where that is an
// archive that the profile keeps.
func savedForm(spec Spec, old string) string {
	return saved(spec, &Package{Name: spec.Target, Version: "1.0.0"}, "/profile", old, false)
}

// TestSavedForms: what package.json gets is read there as the same source.
func TestSavedForms(t *testing.T) {
	atHome(t)
	for _, c := range specTable {
		spec, err := ParseSpec(c.text, "/cwd")
		if err != nil || c.saved == "kept" || runtime.GOOS == "windows" {
			continue
		}
		got := savedForm(spec, "")
		if c.saved != "" && got != c.saved {
			t.Errorf("%s is saved as %s, want %s", c.text, got, c.saved)
		}
		checkSaved(t, spec, got)
	}
}

// checkSaved holds the saved form of a spec against the spec.
func checkSaved(t *testing.T, spec Spec, saved string) {
	t.Helper()
	again, err := ParseDependency("x", saved, "/profile")
	if err != nil {
		t.Errorf("%q is saved as %q: %v", spec.Text, saved, err)
		return
	}
	if spec.Kind == Registry { // the range is another one
		spec.Wanted, again.Wanted, again.Target = "", "", spec.Target
	}
	if g := again.Git; g != nil && spec.Git != nil {
		g.Browsed = spec.Git.Browsed
	}
	spec.Name, spec.Text, again.Name, again.Text, again.Relative = "", "", "", "", false
	if diff := cmp.Diff(spec, again); diff != "" {
		t.Errorf("%q is read as another source: %s", saved, diff)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, c := range specTable {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := ParseSpec(text, "/cwd")
		if err != nil {
			return
		}
		switch {
		case spec.Kind == Registry && (!ValidName(spec.Name) || !ValidName(spec.Target)):
			t.Errorf("%q: names %q and %q", text, spec.Name, spec.Target)
		case spec.Name != "" && !ValidName(spec.Name):
			t.Errorf("%q: name %q", text, spec.Name)
		case (spec.Kind == Git) != (spec.Git != nil):
			t.Errorf("%q: %+v", text, spec)
		case spec.Kind != Registry && spec.Kind != URL && spec.Kind != Git && !filepath.IsAbs(spec.Place):
			t.Errorf("%q: relative place %q", text, spec.Place)
		}
		for _, folder := range []string{spec.Inside, pathOf(spec)} {
			if folder != "" && !filepath.IsLocal(folder) {
				t.Errorf("%q: folder %q", text, folder)
			}
		}
		again, err := ParseSpec(spec.String(), "/cwd")
		if diff := cmp.Diff(spec, again); err != nil || diff != "" {
			t.Errorf("%q prints as %q: %v %s", text, spec, err, diff)
		}
		if spec.Kind == Git || spec.Kind == Link || spec.Kind == URL && spec.Forced == "" && spec.Inside == "" {
			checkSaved(t, spec, savedForm(spec, ""))
		}
	})
}

func pathOf(spec Spec) string {
	if spec.Git == nil {
		return ""
	}
	return spec.Git.Path
}

func TestGitReadings(t *testing.T) {
	spec, err := ParseSpec("https://github.com/o/r/tree/feature/x/plugin", "/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, g := range spec.Git.Readings() {
		got = append(got, g.String())
	}
	want := []string{"github:o/r#feature&path:/x/plugin", "github:o/r#feature/x&path:/plugin", "github:o/r#feature/x/plugin"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if at := spec.Git.At("0123"); at != "git+https://github.com/o/r.git#0123&path:/x/plugin" {
		t.Errorf("at a commit it is %s", at)
	}
}

func TestSaved(t *testing.T) {
	for _, c := range []struct{ arg, version, old, want string }{
		// Recorded from pnpm 10.
		{"is-odd", "3.0.1", "", "^3.0.1"},
		{"is-odd@latest", "3.0.1", "", "^3.0.1"},
		{"is-odd@*", "3.0.1", "", "^3.0.1"},
		{"is-odd@3", "3.0.1", "", "^3.0.1"},
		{"is-odd@^3.0.0", "3.0.1", "", "^3.0.1"},
		{"is-odd@>=2 <4", "3.0.1", "", "^3.0.1"},
		{"is-odd@3.0.1", "3.0.1", "", "3.0.1"},
		{"is-odd@=3.0.1", "3.0.1", "", "^3.0.1"},
		{"is-odd@~3.0.0", "3.0.1", "", "~3.0.1"},
		{"is-odd@3.0", "3.0.1", "", "~3.0.1"},
		{"is-odd@3.x", "3.0.1", "", "~3.0.1"},
		{"is-odd@~6", "6.0.0", "", "~6.0.0"},
		{"x@next", "2.0.0-rc.1", "", "2.0.0-rc.1"},
		{"x@^2.0.0-rc.0", "2.0.0-rc.1", "", "2.0.0-rc.1"},
		{"a@npm:is-odd", "3.0.1", "", "npm:is-odd@^3.0.1"},
		{"a@npm:is-odd@3.0.1", "3.0.1", "", "npm:is-odd@3.0.1"},
		{"p@npm:@acme/pre@next", "2.0.0-rc.1", "", "npm:@acme/pre@2.0.0-rc.1"},
		{"npm:is-odd@3", "3.0.1", "", "^3.0.1"},
		{"is-number@7", "7.0.0", "6.0.0", "7.0.0"},
		{"is-number@6", "6.0.0", "^7.0.0", "^6.0.0"},
		{"https://h.test/x.tgz", "1.0.0", "", "https://h.test/x.tgz"},
		{"link:/abs/p", "1.0.0", "", "link:/abs/p"},
		{"/abs/p.tgz", "1.0.0", "", "file:/abs/p.tgz"},
		{"file:/abs/p", "1.0.0", "", "file:/abs/p"},
	} {
		t.Run(c.arg, func(t *testing.T) {
			spec, err := ParseSpec(c.arg, "/cwd")
			if err != nil {
				t.Fatal(err)
			}
			if got := saved(spec, &Package{Name: spec.Target, Version: c.version}, "/profile", c.old, false); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRelativeDependency(t *testing.T) {
	spec, err := ParseDependency("x", "link:../p", "/home/profiles/x")
	if err != nil {
		t.Fatal(err)
	}
	if got := originPlace(spec, "/home/profiles/x"); got != "../p" {
		t.Errorf("a relative path in a manifest became %q", got)
	}
	if got := saved(spec, &Package{}, "/home/profiles/x", "", false); got != "link:../p" {
		t.Errorf("it is saved as %q", got)
	}
}
