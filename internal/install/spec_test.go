package install

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSpec(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Setenv("USERPROFILE", `C:\home`)
	} else {
		t.Setenv("HOME", "/home")
	}
	const cwd = "/work/here"
	at := func(p string) string { return filepath.FromSlash(p) }
	registry := func(name, target, wanted string) Spec {
		return Spec{Name: name, Kind: Registry, Target: target, Wanted: wanted}
	}
	for text, want := range map[string]Spec{
		"is-odd":                         registry("is-odd", "is-odd", ""),
		"is-odd@":                        registry("is-odd", "is-odd", ""),
		"is-odd@3.0.1":                   registry("is-odd", "is-odd", "3.0.1"),
		"is-odd@>=2 <4 || 5.x":           registry("is-odd", "is-odd", ">=2 <4 || 5.x"),
		"is-odd@next":                    registry("is-odd", "is-odd", "next"),
		"@acme/x":                        registry("@acme/x", "@acme/x", ""),
		"@acme/x@^1":                     registry("@acme/x", "@acme/x", "^1"),
		"a@npm:is-odd@3":                 registry("a", "is-odd", "3"),
		"a@npm:@acme/x":                  registry("a", "@acme/x", ""),
		"@me/a@npm:@acme/x@next":         registry("@me/a", "@acme/x", "next"),
		"npm:is-odd@3":                   registry("is-odd", "is-odd", "3"),
		"Old_Name.js":                    registry("Old_Name.js", "Old_Name.js", ""),
		"./p":                            {Kind: Link, Place: at("/work/here/p")},
		"../p/":                          {Kind: Link, Place: at("/work/p")},
		".":                              {Kind: Link, Place: at("/work/here")},
		"..":                             {Kind: Link, Place: at("/work")},
		"/abs/p":                         {Kind: Link, Place: at("/abs/p")},
		"~/p":                            {Kind: Link, Place: at("/home/p")},
		"link:../p":                      {Kind: Link, Place: at("/work/p")},
		"link:p":                         {Kind: Link, Place: at("/work/here/p")},
		"link:../p.tgz":                  {Kind: Link, Place: at("/work/p.tgz")},
		"file:../p":                      {Kind: Folder, Place: at("/work/p")},
		"file:p":                         {Kind: Folder, Place: at("/work/here/p")},
		"file:///abs/p":                  {Kind: Folder, Place: at("/abs/p")},
		"../p.tgz":                       {Kind: Archive, Place: at("/work/p.tgz")},
		"file:p.tar.gz":                  {Kind: Archive, Place: at("/work/here/p.tar.gz")},
		"foo@../p":                       {Name: "foo", Kind: Link, Place: at("/work/p")},
		"foo@file:../p":                  {Name: "foo", Kind: Folder, Place: at("/work/p")},
		"@me/foo@link:/abs/p":            {Name: "@me/foo", Kind: Link, Place: at("/abs/p")},
		"https://h.test/x-1.0.0.tgz":     {Kind: URL, Place: "https://h.test/x-1.0.0.tgz"},
		"x@https://h.test/archive?v=1":   {Name: "x", Kind: URL, Place: "https://h.test/archive?v=1"},
		"x@http://127.0.0.1:99/x.tgz":    {Name: "x", Kind: URL, Place: "http://127.0.0.1:99/x.tgz"},
		"https://github.com/o/r/x/y.tgz": {Kind: URL, Place: "https://github.com/o/r/x/y.tgz"},
	} {
		t.Run(text, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(want.Place, `\`) {
				want.Place, _ = filepath.Abs(want.Place)
			}
			want.Text = text
			got, err := ParseSpec(text, cwd)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseSpecErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "is not a package name",
		"@":                          "is not a package name",
		"@acme":                      "is not a package name",
		".hidden":                    "is not a package name",
		"node_modules":               "is not a package name",
		"a b":                        "is not a package name",
		"a@npm:":                     "no package name behind npm:",
		"a@npm:../x":                 "no package name behind npm:",
		"github:o/r":                 "git packages cannot be installed",
		"o/r":                        "git packages cannot be installed",
		"o/r#main":                   "git packages cannot be installed",
		"git+https://h.test/o/r.git": "git packages cannot be installed",
		"https://github.com/o/r":     "git packages cannot be installed",
		"https://h.test/o/r.git":     "git packages cannot be installed",
		"git@h.test:o/r.git":         `has an unknown kind "h.test:"`, // cannot be installed",
		"x@github:o/r":               "git packages cannot be installed",
		"x@workspace:*":              "inside its author's workspace",
		"x@catalog:":                 "inside its author's workspace",
		"ftp://h.test/x.tgz":         `unknown kind "ftp:"`,
		"https:///x.tgz":             "not a valid address",
		"@a/../../x":                 "is not a package name",
		"x/../../y@1":                "is not a package name",
		strings.Repeat("a", 300):     "is not a package name",
	} {
		t.Run(text, func(t *testing.T) {
			spec, err := ParseSpec(text, "/cwd")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v, %v, want %q in the error", spec, err, want)
			}
		})
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"a@npm:b@1", "@a/b@^1", "file:../x", "https://h/x", "o/r", "x@link:.", "npm:x"} {
		f.Add(s)
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
		case spec.Kind != Registry && spec.Kind != URL && !filepath.IsAbs(spec.Place):
			t.Errorf("%q: relative place %q", text, spec.Place)
		}
	})
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
