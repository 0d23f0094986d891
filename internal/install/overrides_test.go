package install

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/workspace"
)

func mustOverrides(t testing.TB, values map[string]string) Overrides {
	t.Helper()
	o, err := newOverrides(values)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestReadOverrides(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, workspace string
		want                map[string]string
	}{
		"none": {`{}`, "", nil},
		"npm": {
			`{"overrides": {"a": "1", "b@^2": "2.1.0", "c": ""}}`, "",
			map[string]string{"a": "1", "b@^2": "2.1.0"},
		},
		"npm nested": {
			`{"overrides": {"a": {".": "1", "b": "2", "c": {".": "*", "d@3": "4"}}, "e@^5": {"f": "6"}}}`, "",
			map[string]string{"a": "1", "a>>b": "2", "a>>c>>d@3": "4", "e@^5": "^5", "e@^5>>f": "6"},
		},
		"references": {
			`{"dependencies": {"a": "^1.2.0"}, "devDependencies": {"b": "npm:x@3"}, "overrides": {"a": "$a", "c": {"b": "$b"}}}`, "",
			map[string]string{"a": "^1.2.0", "c>>b": "npm:x@3"},
		},
		"resolutions": {
			`{"resolutions": {"a": "1", "**/b": "2", "c/d": "3", "@s/c/@s/d": "4", "e/**/f": "5", "g/h/i": "6", "j>k": "7", "l@npm:^1": "8"}}`, "",
			map[string]string{"a": "1", "b": "2", "c>d": "3", "@s/c>@s/d": "4", "e>>f": "5", "g>>h>>i": "6", "j>k": "7", "l@npm:^1": "8"},
		},
		"pnpm": {
			`{"pnpm": {"overrides": {"a@1>b@>=2 <3": "2.5.0", "c": "-", "d": "npm:e@^1", "f": "file:../f"}}}`, "",
			map[string]string{"a@1>b@>=2 <3": "2.5.0", "c": "-", "d": "npm:e@^1", "f": "file:../f"},
		},
		"the profile's own package manager counts": {
			`{"overrides": {"a": "1", "b": "1", "c": "1", "d": "1"}, "resolutions": {"b": "2", "c": "2", "d": "2"}, "pnpm": {"overrides": {"c": "3", "d": "3"}}}`,
			"overrides:\n  d: '4'\n",
			map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"},
		},
		"of another type": {`{"pnpm": true, "overrides": null}`, "overrides:\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := profile.ParseManifest("package.json", []byte(c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			root, err := workspace.Root([]byte(c.workspace))
			if err != nil {
				t.Fatal(err)
			}
			o, err := readOverrides(m, root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, o.values); diff != "" {
				t.Error(diff)
			}
			if text, err := json.Marshal(o); err != nil || len(c.want) > 0 && !strings.Contains(string(text), ":") {
				t.Errorf("as JSON: %s, %v", text, err)
			}
		})
	}
}

func TestReadOverridesErrors(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"overrides": ["a"]}`:                              "package.json: overrides: it must be an object",
		`{"overrides": {"a": 1}}`:                           `package.json: overrides: "a" must be a text or an object`,
		`{"overrides": {"a": "$b"}}`:                        `"a" is "$b", and the profile does not depend on b`,
		`{"overrides": {"../a": "1"}}`:                      `override "../a": "../a" is no package name`,
		`{"overrides": {"a@next": "1"}}`:                    `override "a@next": "next" is no version range`,
		`{"pnpm": {"overrides": {"a": {}}}}`:                `package.json: pnpm.overrides: "a" must be a text`,
		`{"resolutions": {"a": "git://h.test/x/y.git"}}`:    "without encryption",
		`{"pnpm": {"overrides": {"a": "catalog:default"}}}`: "only has a meaning inside its author's workspace",
		`{"pnpm": {"overrides": {"a>b>c": "1.0.0"}}}`:       "is no package name",
	} {
		m, err := profile.ParseManifest("package.json", []byte(manifest))
		if err != nil {
			t.Fatal(err)
		}
		root, _ := workspace.Root(nil)
		_, err = readOverrides(m, root)
		if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Package {
			t.Errorf("%s: got %v, want %q", manifest, err, want)
		}
	}
}

func TestOverrideMeets(t *testing.T) {
	for _, c := range []struct {
		rule, wanted string
		want         bool
	}{
		{"", "^1", true},
		{"2", "^2.10.0", true},
		{">2", "^4.0.0", true},
		{">2", "^2.0.0", false}, // >2 begins with 3.0.0
		{">2.0.0", "~2.0.0", true},
		{"^1", "^2", false},
		{"^1", "1 - 2", true},
		{"<1.5", "^1.5.0", false},
		{"<=1.5", "^1.5.3", true},
		{"^1.2.3-rc.1", "1.2.3-rc.2", true},
		{"1", "next", true}, // no range, so nothing excludes it
		{"1", "npm:x@^1.2", true},
		{"1", "npm:x@^2", false},
		{"*", "^9", true},
		{"^1 || ^3", "^2 || >=3.4", true},
		{">1.2.3", "<=1.2.3", false},
	} {
		if got := meets(c.rule, c.wanted); got != c.want {
			t.Errorf("%q for %q: got %v", c.rule, c.wanted, got)
		}
	}
}

// resolveWith resolves under settings.
func resolveWith(t testing.TB, s finder, locked *Lock, settings Settings, wishes []Wish) (*node, error) {
	t.Helper()
	r := &resolver{find: s, dir: "/p", locked: locked, settings: settings, fresh: func(string) bool { return false }}
	return r.resolve(context.Background(), wishes)
}

func TestOverrides(t *testing.T) {
	for name, c := range map[string]struct {
		shelf     shelf
		overrides map[string]string
		wishes    []Wish
		want      []string
	}{
		"for everybody": {
			shelf{"a@1.0.0": {"c@^1"}, "b@1.0.0": {"c@^2"}, "c@1.0.0": nil, "c@2.0.0": nil, "c@3.0.0": nil},
			map[string]string{"c": "3.0.0"},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b@1.0.0", "c@3.0.0"},
		},
		"for some ranges": {
			shelf{"a@1.0.0": {"c@^1"}, "b@1.0.0": {"c@^2"}, "c@1.0.0": nil, "c@2.0.0": nil, "c@3.0.0": nil},
			map[string]string{"c@1": "3.0.0"},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > c@2.0.0", "b@1.0.0", "c@3.0.0"},
		},
		"for one package": {
			shelf{"a@1.0.0": {"c@^1"}, "b@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@3.0.0": nil},
			map[string]string{"b>c": "3.0.0", "x>c": "9"},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > c@3.0.0", "b@1.0.0", "c@1.0.0"},
		},
		"for one version of a package": {
			shelf{"b@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@3.0.0": nil},
			map[string]string{"b@2>c": "3.0.0"},
			wish("b@*"), []string{"b@1.0.0", "c@1.0.0"},
		},
		"for all below a package": {
			shelf{"a@1.0.0": {"m@*"}, "b@1.0.0": {"m@*"}, "m@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@3.0.0": nil},
			map[string]string{"b>>c": "3.0.0"},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > c@3.0.0", "b > m@1.0.0", "b@1.0.0", "c@1.0.0", "m@1.0.0"},
		},
		"what a nested rule has nothing to say of is shared": {
			shelf{"a@1.0.0": {"r@*", "m@*"}, "b@1.0.0": {"r@*", "m@*"}, "r@1.0.0": {"s@*"}, "s@1.0.0": nil, "m@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@3.0.0": nil},
			map[string]string{"b>>c": "3.0.0"},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > c@3.0.0", "b > m@1.0.0", "b@1.0.0", "c@1.0.0", "m@1.0.0", "r@1.0.0", "s@1.0.0"},
		},
		"the innermost counts": {
			shelf{"a@1.0.0": {"b@*", "c@*"}, "b@1.0.0": {"c@*"}, "c@1.0.0": nil, "c@2.0.0": nil, "c@3.0.0": nil},
			map[string]string{"c": "1.0.0", "a>>c": "2.0.0", "a>>b>>c": "3.0.0"},
			wish("a@*"), []string{"a@1.0.0", "b > c@3.0.0", "b@1.0.0", "c@2.0.0"},
		},
		"the profile's own dependency": {
			shelf{"a@1.0.0": nil, "a@2.0.0": nil},
			map[string]string{"a": "1.0.0"},
			wish("a@^2"), []string{"a@1.0.0"},
		},
		"another package": {
			shelf{"a@1.0.0": {"c@^1"}, "fork@5.0.0": nil},
			map[string]string{"c": "npm:fork@5"},
			wish("a@*"), []string{"a@1.0.0", "c@5.0.0"},
		},
		"a folder": {
			shelf{"a@1.0.0": {"c@^1"}},
			map[string]string{"c": "file:../c"},
			wish("a@*"), []string{"a@1.0.0", "c@1.0.0 from /c"},
		},
		"none at all": {
			shelf{"a@1.0.0": {"c@^1", "d@*"}, "d@1.0.0": nil},
			map[string]string{"c": "-"},
			wish("a@*"), []string{"a@1.0.0", "d@1.0.0"},
		},
		"a peer": {
			shelf{"x@1.0.0": {"a@^1", "p@^1"}, "a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil, "p@2.0.0": nil},
			map[string]string{"p": "2.0.0"},
			wish("x@*"), []string{"a@1.0.0", "p@2.0.0", "x@1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Overrides: mustOverrides(t, c.overrides)}
			root, err := resolveWith(t, c.shelf, nil, settings, c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, places(root, c.wishes)); diff != "" {
				t.Error(diff)
			}
			lock := lockOf(root, c.wishes)
			if diff := cmp.Diff(c.overrides, lock.Overrides); diff != "" {
				t.Error(diff)
			}
			if err := lock.MadeFor(settings, nil); err != nil {
				t.Error(err)
			}
			if problems := newPeerProblems(nil, lock); len(problems) > 0 {
				t.Errorf("peers: %q", problems)
			}
			again, err := resolveWith(t, c.shelf, lock, settings, c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(places(root, c.wishes), places(again, c.wishes)); diff != "" {
				t.Errorf("with its own lockfile: %s", diff)
			}
		})
	}
}

func TestChangedOverridesAreResolvedAnew(t *testing.T) {
	s := shelf{"a@1.0.0": {"c@^1", "d@^1"}, "c@1.0.0": nil, "c@1.5.0": nil, "d@1.0.0": nil}
	wishes := wish("a@*")
	with := Settings{Overrides: mustOverrides(t, map[string]string{"c": "1.0.0"})}
	root, err := resolveWith(t, s, nil, with, wishes)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOf(root, wishes)
	s["d@1.5.0"] = nil
	if err := lock.MadeFor(Settings{}, nil); fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "overrides of c") {
		t.Errorf("got %v", err)
	}
	// 1.0.0 would still fit; but it was the override that wanted it.
	if root, err = resolveWith(t, s, lock, Settings{}, wishes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "c@1.5.0", "d@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
	if root, err = resolveWith(t, s, lockOf(root, wishes), with, wishes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "c@1.0.0", "d@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
}

func TestErrorNamesTheOverride(t *testing.T) {
	_, err := resolveWith(t, shelf{"a@1.0.0": {"b@^1"}, "b@1.0.0": nil}, nil, Settings{Overrides: mustOverrides(t, map[string]string{"b": "7"})}, wish("a@*"))
	if _, ok := errors.AsType[*ConflictError](err); !ok || !strings.Contains(err.Error(), "the profile → a@1.0.0 → b@^1 (which overrides make 7)") {
		t.Errorf("got %v", err)
	}
}

func FuzzOverrides(f *testing.F) {
	for _, s := range []string{"a", "a@1", "a>b", "a@1>b@>=2 <3", "@s/a>>@s/b@^1", "a@>1", "a>>b>c", "a > b"} {
		f.Add(s, "^1")
	}
	f.Fuzz(func(t *testing.T, selector, wanted string) {
		o, err := newOverrides(map[string]string{selector: "1.0.0"})
		if err != nil {
			return
		}
		names := o.differFrom(nil)
		if len(names) != 1 {
			t.Fatalf("%q is a rule for %v", selector, names)
		}
		for name := range names {
			if !ValidName(name) {
				t.Errorf("%q is a rule for %q", selector, name)
			}
			o.apply(nil, &Package{Name: "a", Version: "1.0.0"}, name, wanted)
		}
	})
}
