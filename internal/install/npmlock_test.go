package install

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const npm3 = `{"name": "dsh-profile-x", "lockfileVersion": 3, "requires": true, "packages": {
  "": {"name": "dsh-profile-x", "dependencies": {"a": "^1.0.0", "other": "npm:b@2.0.0", "local": "file:../local"}, "devDependencies": {"@scope/x": ""}},
  "../local": {"version": "1.0.0"},
  "node_modules/@scope/x": {"version": "1.0.0", "resolved": "https://registry.example.com/@scope/x/-/x-1.0.0.tgz", "integrity": "HASH", "dev": true, "os": ["linux"]},
  "node_modules/a": {"version": "1.0.0", "resolved": "https://registry.example.com/a/-/a-1.0.0.tgz", "integrity": "HASH", "dependencies": {"b": "^1.0.0"}, "bin": {"a": "a.js"}, "bundleDependencies": ["c"]},
  "node_modules/a/node_modules/b": {"version": "1.0.0", "resolved": "https://registry.example.com/b/-/b-1.0.0.tgz", "integrity": "HASH"},
  "node_modules/a/node_modules/c": {"version": "1.0.0", "inBundle": true},
  "node_modules/local": {"resolved": "../local", "link": true},
  "node_modules/other": {"name": "b", "version": "2.0.0", "resolved": "https://registry.example.com/b/-/b-2.0.0.tgz", "integrity": "sha1-x", "optional": true},
  "node_modules/far": {"version": "2.0.0", "resolved": "https://example.com/far.tgz", "integrity": "HASH"}
}}`

func TestReadNPMLock(t *testing.T) {
	f, err := readNPMLock(withHash(npm3))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"node_modules/@scope/x @scope/x@1.0.0",
		"node_modules/a a@1.0.0",
		"node_modules/a/node_modules/b b@1.0.0",
		"node_modules/far far@2.0.0 url https://example.com/far.tgz",
		"node_modules/local local@0.0.0 folder ../local",
		"node_modules/other b@2.0.0 optional",
	}
	if diff := cmp.Diff(want, standing(f)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "^1.0.0", "other": "npm:b@2.0.0", "local": "file:../local", "@scope/x": "*"}, f.Lock.Wanted); diff != "" {
		t.Error(diff)
	}
	a := f.Lock.Nodes["node_modules/a"]
	if diff := cmp.Diff(map[string]string{"b": "^1.0.0"}, a.Dependencies); diff != "" || a.Bin["a"] != "a.js" || a.Bundled[0] != "c" {
		t.Errorf("%s%v %v", diff, a.Bin, a.Bundled)
	}
	for at, want := range map[string]bool{"node_modules/a": false, "node_modules/other": true, "node_modules/local": true, "node_modules/far": true} {
		if f.undescribed[f.Lock.Nodes[at].Package] != want {
			t.Errorf("whether %s has to be asked for is %v", at, !want)
		}
	}
}

const npm1 = `{"name": "dsh-profile-x", "lockfileVersion": 1, "requires": true, "dependencies": {
  "@scope/x": {"version": "1.0.0", "resolved": "https://registry.example.com/@scope/x/-/x-1.0.0.tgz", "integrity": "HASH", "dev": true},
  "a": {"version": "1.0.0", "resolved": "https://registry.example.com/a/-/a-1.0.0.tgz", "integrity": "HASH", "requires": {"b": "^1.0.0"}, "dependencies": {
    "b": {"version": "1.0.0", "resolved": "https://registry.example.com/b/-/b-1.0.0.tgz", "integrity": "HASH"},
    "c": {"version": "1.0.0", "bundled": true}}},
  "local": {"version": "file:../local"},
  "packed": {"version": "file:../packed.tgz", "integrity": "HASH"},
  "other": {"version": "npm:b@2.0.0", "resolved": "https://registry.example.com/b/-/b-2.0.0.tgz", "integrity": "sha1-x", "optional": true},
  "far": {"version": "https://example.com/far.tgz", "integrity": "HASH"}
}}`

func TestReadOldNPMLock(t *testing.T) {
	f, err := readNPMLock(withHash(npm1))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"node_modules/@scope/x @scope/x@1.0.0",
		"node_modules/a a@1.0.0",
		"node_modules/a/node_modules/b b@1.0.0",
		"node_modules/far far@0.0.0 url https://example.com/far.tgz",
		"node_modules/local local@0.0.0 folder ../local",
		"node_modules/other b@2.0.0 optional",
		"node_modules/packed packed@0.0.0 archive ../packed.tgz",
	}
	if diff := cmp.Diff(want, standing(f)); diff != "" {
		t.Error(diff)
	}
	for at, n := range f.Lock.Nodes {
		if !f.undescribed[n.Package] {
			t.Errorf("what %s needs is not asked for", at)
		}
	}
	f, err = readNPMLock([]byte(`{"lockfileVersion": 1, "dependencies": {"g": {"version": "git+ssh://git@example.com/g.git#abc"}}}`))
	if err != nil || len(f.Refused) != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestReadNPMLockErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no JSON":    {"{", "unexpected end"},
		"new format": {`{"lockfileVersion": 4}`, "lockfileVersion is 4"},
		"old place":  {`{"lockfileVersion": 1, "dependencies": {"../x": {"version": "1.0.0"}}}`, "no place in node_modules"},
		"old alias":  {`{"lockfileVersion": 1, "dependencies": {"x": {"version": "npm:../y@1.0.0"}}}`, "no package name"},
		"no root":    {`{"lockfileVersion": 3, "packages": {}}`, `no entry ""`},
		"bad place":  {`{"lockfileVersion": 3, "packages": {"": {}, "node_modules/../x": {}}}`, "no place in node_modules"},
		"bad name":   {`{"lockfileVersion": 3, "packages": {"": {}, "node_modules/x": {"name": "../x"}}}`, "no package name"},
		"no object":  {`{"lockfileVersion": 3, "packages": {"": {}, "node_modules/x": 1}}`, "must hold a JSON object"},
	} {
		_, err := readNPMLock([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f, err := readNPMLock([]byte(`{"lockfileVersion": 2, "packages": {"": {}, "node_modules/g": {"version": "1.0.0", "resolved": "git+ssh://git@example.com/g.git#abc"}}}`))
	if err != nil || len(f.Refused) != 1 || !strings.Contains(f.Refused[0], "git repository") {
		t.Errorf("%+v, %v", f, err)
	}
}

func FuzzReadNPMLock(f *testing.F) {
	f.Add(withHash(npm3))
	f.Add(withHash(npm1))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := readNPMLock(text)
		if err != nil {
			return
		}
		for at := range read.Lock.Nodes {
			if !validPath(at) {
				t.Errorf("%q", at)
			}
		}
	})
}
