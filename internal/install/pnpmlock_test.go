package install

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const someHash = "sha512-CQpnWPrDwmP1+SMHXZhtLtJv90yiyVfluGsX5iNCVkrhQtU3TQHsUWPG9wkdk9Lgd5yNpAg9jQEo90CBaXgWMA=="

// standing is what stands where in a foreign lockfile.
func standing(f *Foreign) []string {
	var list []string
	for _, at := range sortedKeys(f.Lock.Nodes) {
		n := f.Lock.Nodes[at]
		line := at + " " + n.describe()
		if n.Origin != (Origin{}) {
			line += " " + originKeys[n.Origin.Kind] + " " + n.Origin.Place
		}
		if n.Optional {
			line += " optional"
		}
		list = append(list, line)
	}
	return list
}

const pnpm9 = `lockfileVersion: '9.0'

settings:
  autoInstallPeers: false

importers:

  .:
    dependencies:
      a:
        specifier: ^1.0.0
        version: 1.0.0(peer@2.0.0)
      other:
        specifier: npm:b@2.0.0
        version: b@2.0.0
      local:
        specifier: file:../local
        version: file:../local
      linked:
        specifier: link:../linked
        version: link:../linked
      packed:
        specifier: file:../packed.tgz
        version: file:../packed.tgz
      far:
        specifier: https://example.com/far.tgz
        version: https://example.com/far.tgz
      near:
        specifier: https://registry.example.com/b/-/b-1.0.0.tgz
        version: b@1.0.0
    devDependencies:
      '@scope/x':
        specifier: 1.0.0
        version: 1.0.0

packages:

  '@scope/x@1.0.0':
    resolution: {integrity: HASH}
    cpu: [x64]
    os: [linux, darwin]

  a@1.0.0:
    resolution: {integrity: HASH}
    peerDependencies:
      peer: '*'

  b@1.0.0:
    resolution: {integrity: HASH}
    deprecated: |-
      two
      lines

  b@2.0.0:
    resolution: {integrity: HASH}

  far@https://example.com/far.tgz:
    resolution: {tarball: https://example.com/far.tgz, integrity: HASH}
    version: 3.0.0

  local@file:../local:
    resolution: {directory: ../local, type: directory}

  packed@file:../packed.tgz:
    resolution: {integrity: HASH, tarball: file:../packed.tgz}
    version: 4.0.0

  peer@2.0.0:
    resolution: {integrity: HASH}

snapshots:

  '@scope/x@1.0.0':
    optional: true

  a@1.0.0(peer@2.0.0):
    dependencies:
      b: 1.0.0
      peer: 2.0.0

  b@1.0.0: {}

  b@2.0.0:
    dependencies:
      b: 1.0.0

  far@https://example.com/far.tgz: {}

  local@file:../local:
    dependencies:
      b: 2.0.0

  packed@file:../packed.tgz: {}

  peer@2.0.0:
    dependencies:
      a: 1.0.0(peer@2.0.0)
`

const pnpm6 = `lockfileVersion: '6.0'

dependencies:
  a:
    specifier: ^1.0.0
    version: 1.0.0(@scope/peer@2.0.0)
  other:
    specifier: npm:b@2.0.0
    version: /b@2.0.0
  local:
    specifier: file:../local
    version: file:../local

packages:

  /@scope/peer@2.0.0:
    resolution: {integrity: HASH}
    dev: false

  /a@1.0.0(@scope/peer@2.0.0):
    resolution: {integrity: HASH}
    peerDependencies:
      '@scope/peer': '*'
    dependencies:
      '@scope/peer': 2.0.0
      b: 1.0.0
    dev: false

  /b@1.0.0:
    resolution: {integrity: HASH}
    requiresBuild: true
    dev: false
    optional: true

  /b@2.0.0:
    resolution: {integrity: HASH}
    dev: false

  file:../local:
    resolution: {directory: ../local, type: directory}
    name: local
    version: 1.2.3
    dev: false
`

func withHash(text string) []byte { return []byte(strings.ReplaceAll(text, "HASH", someHash)) }

func TestReadPNPMLock(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"version 9": {pnpm9, []string{
			"node_modules/@scope/x @scope/x@1.0.0 optional",
			"node_modules/a a@1.0.0",
			"node_modules/b b@1.0.0",
			"node_modules/far far@3.0.0 url https://example.com/far.tgz",
			"node_modules/linked linked@0.0.0 link ../linked",
			"node_modules/local local@0.0.0 folder ../local",
			"node_modules/local/node_modules/b b@2.0.0",
			"node_modules/local/node_modules/b/node_modules/b b@1.0.0",
			"node_modules/near b@1.0.0 url https://registry.example.com/b/-/b-1.0.0.tgz",
			"node_modules/other b@2.0.0",
			"node_modules/packed packed@4.0.0 archive ../packed.tgz",
			"node_modules/peer peer@2.0.0",
		}},
		"version 6": {pnpm6, []string{
			"node_modules/@scope/peer @scope/peer@2.0.0",
			"node_modules/a a@1.0.0",
			"node_modules/b b@1.0.0 optional",
			"node_modules/local local@1.2.3 folder ../local",
			"node_modules/other b@2.0.0",
		}},
	} {
		f, err := readPNPMLock(withHash(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, standing(f)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(f.Refused) > 0 {
			t.Errorf("%s: refused %q", name, f.Refused)
		}
	}
}

func TestReadPNPMLockWanted(t *testing.T) {
	f, err := readPNPMLock(withHash(pnpm9))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": "^1.0.0", "other": "npm:b@2.0.0", "local": "file:../local", "linked": "link:../linked", "packed": "file:../packed.tgz",
		"far": "https://example.com/far.tgz", "near": "https://registry.example.com/b/-/b-1.0.0.tgz", "@scope/x": "1.0.0",
	}
	if diff := cmp.Diff(want, f.Lock.Wanted); diff != "" {
		t.Error(diff)
	}
	if got := f.Lock.Nodes["node_modules/@scope/x"].OS; !slices.Equal(got, []string{"linux", "darwin"}) {
		t.Errorf("os %q", got)
	}
}

func TestReadPNPMLockRefuses(t *testing.T) {
	const none = "lockfileVersion: '9.0'\n"
	for name, c := range map[string]struct{ text, want string }{
		"overrides":    {none + "overrides:\n  b: 'github:x/y'\n  'b c': 1.0.0\n", `override "b c"`},
		"patches":      {none + "patchedDependencies:\n  b@1.0.0:\n    hash: x\n    path: p\n", "b@1.0.0 is patched"},
		"extensions":   {none + "packageExtensionsChecksum: x\n", "packageExtensions"},
		"hooks":        {none + "pnpmfileChecksum: x\n", ".pnpmfile.cjs"},
		"workspace":    {none + "importers:\n  .: {}\n  sub: {}\n", "the packages of sub"},
		"git":          {none + "importers:\n  .:\n    dependencies:\n      g: {specifier: 'git+https://example.com/g', version: 'git+https://example.com/g#abc'}\npackages:\n  g@git+https://example.com/g#abc:\n    resolution: {commit: abc, repo: https://example.com/g, type: git}\nsnapshots:\n  g@git+https://example.com/g#abc: {}\n", "git repository"},
		"git archives": {none + "importers:\n  .:\n    dependencies:\n      g: {specifier: 'github:o/g', version: 'https://codeload.github.com/o/g/tar.gz/abc'}\npackages:\n  g@https://codeload.github.com/o/g/tar.gz/abc:\n    resolution: {tarball: https://codeload.github.com/o/g/tar.gz/abc}\nsnapshots:\n  g@https://codeload.github.com/o/g/tar.gz/abc: {}\n", "git repository"},
	} {
		f, err := readPNPMLock([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if got := strings.Join(f.Refused, "\n"); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestReadPNPMLockOverrides(t *testing.T) {
	f, err := readPNPMLock([]byte("lockfileVersion: '9.0'\noverrides:\n  b: 1.0.0\n  a>b@2: '-'\n"))
	if err != nil || len(f.Refused) > 0 {
		t.Fatalf("%v, refused %q", err, f.Refused)
	}
	if diff := cmp.Diff(map[string]string{"b": "1.0.0", "a>b@2": "-"}, f.Lock.Overrides); diff != "" {
		t.Error(diff)
	}
}

func TestReadPNPMLockErrors(t *testing.T) {
	const direct = "lockfileVersion: '9.0'\nimporters:\n  .:\n    dependencies:\n      a: {specifier: 1.0.0, version: 1.0.0}\n"
	for name, c := range map[string]struct{ text, want string }{
		"old format":    {"lockfileVersion: 5.4\n", `lockfileVersion is "5.4"`},
		"new format":    {"lockfileVersion: '12.0'\n", `lockfileVersion is "12.0"`},
		"no format":     {"", `lockfileVersion is ""`},
		"no YAML":       {"a: [", "line 1"},
		"no package":    {direct, "it needs a@1.0.0"},
		"no snapshot":   {direct + "packages:\n  a@1.0.0: {resolution: {}}\n", "says nothing"},
		"no dependency": {direct + "packages:\n  a@1.0.0: {resolution: {}}\nsnapshots:\n  a@1.0.0: {dependencies: {b: 1.0.0}}\n", "it needs b@1.0.0"},
		"bad name":      {strings.Replace(direct, "a:", "../a:", 1), "no package name"},
	} {
		_, err := readPNPMLock([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Packages whose versions need each other in a circle would nest for ever.
func TestLayOutCircle(t *testing.T) {
	g := graph{}
	for key, needs := range map[string]map[string]string{
		"a1": {"b": "b1"}, "b1": {"a": "a2"}, "a2": {"b": "b2"}, "b2": {"a": "a1"},
	} {
		g[key] = graphNode{pkg: &Package{Name: key[:1], Version: key[1:]}, needs: needs}
	}
	nodes, err := g.layOut(map[string]string{"a": "a1"})
	if err != nil {
		t.Fatal(err)
	}
	lock := &Lock{Nodes: nodes}
	at := ""
	for i, want := range []string{"a@1", "b@1", "a@2", "b@2", "a@1", "b@1", "a@2", "b@2"} {
		up, n, ok := lock.lookUp(at, want[:1])
		if n.Package != nil && n.Origin.Kind == Link {
			up = n.Origin.Place
		}
		if at = up; !ok || n.describe() != want {
			t.Fatalf("step %d leads to %v, want %s; %v", i, n.Package, want, slices.Sorted(maps.Keys(nodes)))
		}
	}
}

func FuzzReadPNPMLock(f *testing.F) {
	f.Add(withHash(pnpm9))
	f.Add(withHash(pnpm6))
	f.Add([]byte("lockfileVersion: '9.0'\nimporters: {.: {dependencies: {a: &a {specifier: x, version: a@1(b@(c)))}}}}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		read, err := readPNPMLock(text)
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
