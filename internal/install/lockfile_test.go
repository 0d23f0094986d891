package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install/store"
)

func someIntegrity(t testing.TB, letter string) store.Integrity {
	t.Helper()
	id, err := store.ParseIntegrity("sha512-" + strings.Repeat(letter, 86) + "==")
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// fullLock uses every field that a lockfile has.
func fullLock(t testing.TB) *Lock {
	return &Lock{
		Overrides: map[string]string{"is-odd": "3.0.1", "@acme/hello>>left@^1": "npm:right@2", "a>b": "-"}, AutoPeers: true, Omitted: []string{"@deepseek-ai/dsh-tools", "cordis"},
		Wanted:  map[string]string{"@acme/hello": "^1.0.0", "odd": "npm:is-odd@3.0.1", "loose": ">=1 <2 || 3.x", "any": "*", "local": "link:../p"},
		Sources: map[string]Written{"local": {From: `https://h.test/p.zip//a "b"`, Integrity: someIntegrity(t, "w")}, "any": {From: "file:/p.tar.xz", Integrity: someIntegrity(t, "Q")}},
		Nodes: map[string]Located{
			"node_modules/@acme/hello": {Package: &Package{
				Name: "@acme/hello", Version: "1.1.0", Integrity: someIntegrity(t, "w"),
				Dependencies: map[string]string{"is-odd": "~3.0", "tagged": "next"}, Optional: map[string]string{"maybe": "1"},
				Peers: map[string]string{"left": "^2"}, OptionalPeers: []string{"left"}, Bundled: []string{"inside"},
				OS: []string{"linux", "!win32"}, CPU: []string{"x64"}, Libc: []string{"glibc"}, Bin: map[string]string{"hello": "./bin/hello.js"},
			}, Optional: true},
			"node_modules/@acme/hello/node_modules/is-odd": {Package: &Package{
				Name: "is-odd", Version: "3.0.1", Integrity: someIntegrity(t, "Q"), Origin: Origin{Registry, "https://mirror.test/is-odd.tgz"},
			}},
			"node_modules/odd":   {Package: &Package{Name: "is-odd", Version: "3.0.1-rc.1+build", Integrity: someIntegrity(t, "g"), Origin: Origin{URL, "https://a.test/x y.tgz"}}},
			"node_modules/local": {Package: &Package{Name: "other", Version: "0.0.0", Origin: Origin{Link, "../p"}}},
		},
	}
}

func TestLockRoundTrip(t *testing.T) {
	want := fullLock(t)
	text := want.Bytes()
	got, err := ParseLock("dsh-lock.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b store.Integrity) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(string(text), string(got.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestLockText(t *testing.T) {
	lock := &Lock{
		Wanted: map[string]string{"is-number": "^7.0.0", "@acme/x": "latest"},
		Nodes: map[string]Located{
			"node_modules/is-number": {Package: &Package{Name: "is-number", Version: "7.0.0", Integrity: someIntegrity(t, "w")}},
		},
	}
	want := `# Written by dsh: the exact content of node_modules. Commit it with package.json.
lockfileVersion: "1"
dependencies:
  "@acme/x": latest
  is-number: ^7.0.0
packages:
  node_modules/is-number:
    version: 7.0.0
    integrity: ` + someIntegrity(t, "w").String() + "\n"
	if diff := cmp.Diff(want, string(lock.Bytes())); diff != "" {
		t.Error(diff)
	}
}

func TestLockErrors(t *testing.T) {
	entry := "lockfileVersion: \"1\"\npackages:\n  node_modules/a:\n    version: 1.0.0\n"
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", `lockfileVersion is ""`},
		"newer":              {"lockfileVersion: \"2\"\n", `lockfileVersion is "2"`},
		"no integrity":       {entry, `line 3: "node_modules/a" has no integrity`},
		"weak integrity":     {entry + "    integrity: sha1-aaaa\n", "line 5: integrity"},
		"unknown key":        {entry + "    colour: red\n", `line 5: unknown key "colour"`},
		"escaping path":      {"lockfileVersion: \"1\"\npackages:\n  node_modules/../x:\n    version: 1.0.0\n", "line 3:"},
		"foreign path":       {"lockfileVersion: \"1\"\npackages:\n  etc/x:\n    version: 1.0.0\n", "is no place in node_modules"},
		"bad indentation":    {"lockfileVersion: \"1\"\n   x: y\n", "line 2: unexpected indentation"},
		"open quote":         {"lockfileVersion: \"1\n", "not closed"},
		"value and below":    {"lockfileVersion: \"1\"\n  x: abc\n", `line 2: "lockfileVersion" cannot hold entries`},
		"twice":              {entry + "    integrity: " + someIntegrity(t, "w").String() + "\n  node_modules/a:\n    version: 1.0.0\n", "stands here twice"},
		"a dependency twice": {"lockfileVersion: \"1\"\ndependencies:\n  a: ^1\n  a: ^2\n", `line 4: "a" stands here twice`},
		"no list":            {entry + "    os: linux\n", `line 5: "os" must be a list`},
		"open list":          {entry + "    os: [linux\n", `line 5:`},
		"no value":           {entry + "    version:\n", `line 5: "version" has no value`},
		"a value in between": {"lockfileVersion: \"1\"\ndependencies: x\n", `line 2: "dependencies" holds entries`},
		"optional: false":    {entry + "    optional: \"false\"\n", `line 5: "optional" is true or left out`},
		"too deep":           {entry + "    dependencies:\n      a: b\n        c: d\n", "line 7: unexpected indentation"},
		"conflict markers":   {"<<<<<<< HEAD\n", "line 1:"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseLock("dsh-lock.yaml", []byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

func FuzzParseLock(f *testing.F) {
	f.Add(string(fullLock(f).Bytes()))
	f.Add("lockfileVersion: \"1\"\ndependencies:\n  a: [x, \"y\"]\n")
	f.Fuzz(func(t *testing.T, text string) {
		lock, err := ParseLock("dsh-lock.yaml", []byte(text))
		if err != nil {
			return
		}
		// What was read is written in one form, and reading that changes nothing.
		once := lock.Bytes()
		again, err := ParseLock("dsh-lock.yaml", once)
		if err != nil {
			t.Fatalf("%v\n%s", err, once)
		}
		if diff := cmp.Diff(string(once), string(again.Bytes())); diff != "" {
			t.Error(diff)
		}
	})
}

// largeLock is a lockfile of 1,300 packages.
func largeLock(tb testing.TB) *Lock {
	lock := fullLock(tb)
	for i := range 1300 {
		pkg := &Package{Name: fmt.Sprintf("package-%d", i), Version: "1.2.3", Integrity: someIntegrity(tb, "w")}
		if i%3 > 0 {
			pkg.Dependencies = map[string]string{}
			for d := range i % 7 {
				pkg.Dependencies[fmt.Sprintf("package-%d", (i*7+d*13)%1300)] = "^1.0.0 || >=2"
			}
		}
		switch i % 10 {
		case 0:
			pkg.Peers = map[string]string{"package-1": "^1.0.0"}
		case 1:
			pkg.Bin = map[string]string{pkg.Name: "bin/cli.js"}
		case 2:
			pkg.OS, pkg.CPU = []string{"linux"}, []string{"x64"}
		}
		at := "node_modules/" + pkg.Name
		if i%4 == 0 {
			at = fmt.Sprintf("node_modules/package-%d/%s", (i+1)%1300, at)
		}
		lock.Nodes[at] = Located{Package: pkg, Optional: i%10 == 2}
	}
	return lock
}

func BenchmarkLock(b *testing.B) {
	lock := largeLock(b)
	text := lock.Bytes()
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := ParseLock("dsh-lock.yaml", text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("format", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if len(lock.Bytes()) != len(text) {
				b.Fatal("it has another length now")
			}
		}
	})
}
