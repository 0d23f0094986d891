package action

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install"
	"dsh/internal/profile"
)

func profileName(t *testing.T, text string) profile.Name {
	t.Helper()
	name, err := profile.ParseName(text)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRelocated(t *testing.T) {
	profiles := filepath.Join(t.TempDir(), "pro files")
	from, to := filepath.Join(profiles, "from"), filepath.Join(profiles, "to")
	slash := filepath.ToSlash(from)
	for _, test := range []struct{ spec, want string }{
		{"link:./own", ""},
		{"link:own", ""},
		{"file:own.tgz", ""},
		{"./own", ""},
		{"link:../beside", ""},
		{"file:../../../elsewhere", ""},
		{"link:" + filepath.ToSlash(profiles) + "/from-here", ""},
		{"^1.0.0", ""},
		{"latest", ""},
		{"npm:other@1", ""},
		{"https://example.com/from/x.tgz", ""},
		{"link:../from/own", "link:./own"},
		{"link:../from", "link:./."},
		{"file:../from/a/../b.tgz", "file:./b.tgz"},
		{"link:" + slash + "/own", "link:./own"},
		{"file:" + slash + "/a b/c", "file:./a b/c"},
		{slash + "/own", "link:./own"},
	} {
		got, ok := relocated(profile.Dependency{Name: "x", Spec: test.spec}, site{dir: from}, to)
		if ok != (test.want != "") || got != test.want {
			t.Errorf("%s: %q, %v, want %q", test.spec, got, ok, test.want)
			continue
		}
		// Wherever it led, it leads to the same thing now: the copy of what was
		// inside, or what it was.
		was, err := install.ParseDependency("x", test.spec, from)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			got = test.spec
		}
		now, err := install.ParseDependency("x", got, to)
		if err != nil {
			t.Fatal(err)
		}
		place := was.Place
		if inside, err := filepath.Rel(from, was.Place); was.Place != "" && err == nil && filepath.IsLocal(inside) {
			place = filepath.Join(to, inside)
		}
		if now.Kind != was.Kind || now.Place != place {
			t.Errorf("%s became %s: kind %v at %s, want %v at %s", test.spec, got, now.Kind, now.Place, was.Kind, place)
		}
	}
}

func TestRelocate(t *testing.T) {
	m, err := profile.ParseManifest("package.json", []byte(`{
	"name": "dsh-profile-a",
	"dependencies": {"own": "link:../a/own", "is-odd": "^3.0.0"},
	"devDependencies": {"dev": "file:./dev"}
}
`))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := install.ParseLock("dsh-lock.yaml", (&install.Lock{Wanted: map[string]string{"own": "link:../a/own", "is-odd": "^3.0.0", "dev": "file:./dev"}}).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	a, b := site{name: profileName(t, "a"), dir: filepath.Join(dir, "a")}, site{name: profileName(t, "b"), dir: filepath.Join(dir, "b")}
	if changed, lockChanged := relocate(m, lock, a, b); !changed || !lockChanged {
		t.Errorf("changed %v, lockfile %v", changed, lockChanged)
	}
	want := `{
	"name": "dsh-profile-b",
	"dependencies": {"own": "link:./own", "is-odd": "^3.0.0"},
	"devDependencies": {"dev": "file:./dev"}
}
`
	if diff := cmp.Diff(want, string(m.Bytes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"own": "link:./own", "is-odd": "^3.0.0", "dev": "file:./dev"}, lock.Wanted); diff != "" {
		t.Errorf("lockfile (-want +got):\n%s", diff)
	}
	if changed, lockChanged := relocate(m, nil, a, b); changed || lockChanged {
		t.Error("a second time changed something")
	}
}

func TestRelocatePlaces(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "deep", "to")
	slash := filepath.ToSlash(from)
	nodes := map[string]install.Located{}
	places := map[string]string{"a": slash + "/own", "b": "own", "c": slash + "-beside/own", "d": "../from/own", "f": "../beside/x.tgz", "g": "../.."}
	for name, place := range places {
		nodes["node_modules/"+name] = install.Located{Package: &install.Package{Name: name, Origin: install.Origin{Kind: install.Link, Place: place}}}
	}
	nodes["node_modules/e"] = install.Located{Package: &install.Package{Name: "e", Origin: install.Origin{Kind: install.URL, Place: slash + "/own"}}}
	if !relocatePlaces(&install.Lock{Nodes: nodes}, site{dir: from}, to) {
		t.Error("nothing changed")
	}
	places["a"], places["d"], places["e"] = "own", "own", slash+"/own"
	places["f"], places["g"] = "../../beside/x.tgz", "../../.."
	for name, want := range places {
		if got := nodes["node_modules/"+name].Origin.Place; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if relocatePlaces(&install.Lock{Nodes: nodes}, site{dir: to}, to) || relocatePlaces(nil, site{dir: from}, to) {
		t.Error("a second time changed something")
	}
}

func TestReferences(t *testing.T) {
	home, err := profile.ResolveHome(t.TempDir(), os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join([]string{
		/* 1 */ `- {id: a, config: {x: "` + filepath.ToSlash(home.ProfileDir(profileName(t, "a.b"))) + `/x"}}`,
		/* 2 */ `- {id: a, config: {x: '~/.dsh/profiles/a.b'}}`,
		/* 3 */ `- name: ../a.b/plugin.js`,
		/* 4 */ `- name: ./a.b/plugin.js`,
		/* 5 */ `- name: ../a.bc/plugin.js`,
		/* 6 */ `- name: ../axb/plugin.js`,
		/* 7 */ `- "C:\\dsh\\profiles\\a.b\\x"`,
		/* 8 */ `  x: [../a.b, profiles/other]`,
		/* 9 */ `  x: myprofiles/a.b`,
		/* 10 */ `  dir: profiles/a.b`,
		/* 11 */ `  # was in profiles/a.b, once`,
	}, "\n")
	in := profileName(t, "in")
	for _, file := range []string{filepath.Join(home.ProfileDir(in), "cordis.patch.yml"), home.PatchPath()} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := func(file string, numbers ...int) (list []Reference) {
		for _, n := range numbers {
			list = append(list, Reference{file, n})
		}
		return list
	}
	own := filepath.Join(home.ProfileDir(in), "cordis.patch.yml")
	want := append(lines(own, 1, 2, 3, 7, 8, 10, 11), lines(home.PatchPath(), 1, 2, 7, 10, 11)...)
	if diff := cmp.Diff(want, references(home, profileName(t, "a.b"), []profile.Name{in, profileName(t, "absent")}, true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lines(own, 8), references(home, profileName(t, "other"), []profile.Name{in}, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLinksInside(t *testing.T) {
	link := func(place string) *install.Lock {
		return &install.Lock{Nodes: map[string]install.Located{"node_modules/x": {Package: &install.Package{Origin: install.Origin{Kind: install.Link, Place: place}}}}}
	}
	outside := "/elsewhere"
	if runtime.GOOS == "windows" {
		outside = "C:/elsewhere"
	}
	for place, want := range map[string]bool{"own": true, "own/deep": true, "..own": true, "../beside": false, "..": false, outside: false, "node_modules/y": true} {
		if got := linksInside(link(place)); got != want {
			t.Errorf("%s: %v", place, got)
		}
	}
	if linksInside(nil) {
		t.Error("without a lockfile")
	}
}

func TestParseStateSide(t *testing.T) {
	env, _ := world(t)
	odd := profileName(t, "odd@2")
	if err := os.MkdirAll(env.Home.ProfileDir(odd), 0o755); err != nil {
		t.Fatal(err)
	}
	a := profileName(t, "a")
	for text, want := range map[string]StateSide{"a": {Name: a}, "a@12": {a, 12}, "odd@2": {Name: odd}, "odd@2@3": {odd, 3}} {
		got, err := ParseStateSide(env, text)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
		if got.String() != text {
			t.Errorf("%s is called %s", text, got)
		}
	}
	for _, text := range []string{"", "a@", "a@0", "a@-1", "a@x", "@1", "a/b@1", "a@1/2"} {
		if got, err := ParseStateSide(env, text); err == nil {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestShowable(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "# nothing\n": true, "[]\n": true, "- {id: a, config: {x: 1}}\n": true,
		"- {id: a, config: {apiKey: x}}\n": false, "- insert: [{id: a, config: {env: {GITHUB_TOKEN: x}}}]\n": false, "- [\n": false,
	} {
		if err := showable([]byte(text)); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
