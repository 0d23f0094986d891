package install

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// shelf is a registry in memory: "name@version" -> dependencies, written
// "name@range" with a "?" in front of optional ones.
type shelf map[string][]string

func (s shelf) prefetch(context.Context, Spec) {}

func (s shelf) find(_ context.Context, spec Spec) (*Package, error) {
	if spec.Kind != Registry {
		return &Package{Name: "local", Version: "1.0.0", Origin: Origin{spec.Kind, spec.Place}}, nil
	}
	wanted, err := npmrange.ParseRangeLoose(spec.Wanted)
	if err != nil {
		return nil, err
	}
	var best *npmrange.Version
	for key := range s {
		name, version, _ := splitName(key)
		v, err := npmrange.ParseVersion(version)
		if err != nil {
			return nil, err
		}
		if name == spec.Target && wanted.Satisfies(v) && (best == nil || best.Less(v)) {
			best = &v
		}
	}
	if best == nil {
		return nil, fault.Errorf(fault.Package, "no version of %s satisfies %q", spec.Target, spec.Wanted)
	}
	pkg := &Package{Name: spec.Target, Version: best.String(), Dependencies: map[string]string{}, Optional: map[string]string{}}
	for _, d := range s[spec.Target+"@"+best.String()] {
		d, optional := strings.CutPrefix(d, "?")
		name, wanted, _ := splitName(d)
		if optional {
			pkg.Optional[name] = wanted
		} else {
			pkg.Dependencies[name] = wanted
		}
	}
	return pkg, nil
}

func wish(specs ...string) []Wish {
	var wishes []Wish
	for _, s := range specs {
		s, optional := strings.CutPrefix(s, "?")
		name, wanted, _ := splitName(s)
		wishes = append(wishes, Wish{Name: name, Wanted: wanted, Optional: optional})
	}
	slices.SortFunc(wishes, func(a, b Wish) int { return strings.Compare(a.Name, b.Name) })
	return wishes
}

func resolveShelf(t testing.TB, s shelf, locked *Lock, wishes []Wish) (*node, error) {
	t.Helper()
	r := &resolver{find: s, dir: "/p", locked: locked, fresh: func(string) bool { return false }}
	return r.resolve(context.Background(), wishes)
}

// places lists a tree as "a@1 a/b@2", optional packages with a "?".
func places(root *node, wishes []Wish) []string {
	var list []string
	for at, n := range lockOf(root, wishes).Nodes {
		mark := ""
		if n.Optional {
			mark = "?"
		}
		path := strings.ReplaceAll(strings.TrimPrefix(at, "node_modules/"), "/node_modules/", " > ")
		list = append(list, fmt.Sprintf("%s%s@%s", mark, path, n.Version))
	}
	slices.Sort(list)
	return list
}

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		shelf  shelf
		wishes []Wish
		want   []string
	}{
		"flat": {
			shelf{"a@1.0.0": {"b@^1"}, "b@1.0.0": {"c@*"}, "c@1.0.0": nil},
			wish("a@^1"), []string{"a@1.0.0", "b@1.0.0", "c@1.0.0"},
		},
		"a conflict nests": {
			shelf{"a@1.0.0": {"c@^1"}, "b@1.0.0": {"c@^2"}, "c@1.0.0": nil, "c@2.0.0": nil},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > c@2.0.0", "b@1.0.0", "c@1.0.0"},
		},
		"the profile's own dependency stands at the top": {
			shelf{"a@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@2.0.0": nil},
			wish("a@*", "c@^2"), []string{"a > c@1.0.0", "a@1.0.0", "c@2.0.0"},
		},
		"what nests is shared below": {
			shelf{"a@1.0.0": {"b@^1", "c@^1"}, "b@1.0.0": {"c@^1"}, "c@1.0.0": nil, "c@2.0.0": nil},
			wish("a@*", "c@^2"), []string{"a > c@1.0.0", "a@1.0.0", "b > c@1.0.0", "b@1.0.0", "c@2.0.0"},
		},
		"nothing is put in the way of what found more above": {
			// x finds d@1 at the top, so that y, which stands below x, cannot
			// have its d@2 put into x.
			shelf{"x@1.0.0": {"d@^1", "y@^2"}, "y@1.0.0": nil, "y@2.0.0": {"d@^2"}, "d@1.0.0": nil, "d@2.0.0": nil},
			wish("d@^1", "x@*", "y@^1"),
			[]string{"d@1.0.0", "x > y > d@2.0.0", "x > y@2.0.0", "x@1.0.0", "y@1.0.0"},
		},
		"a cycle": {
			shelf{"a@1.0.0": {"b@*"}, "b@1.0.0": {"a@*"}},
			wish("a@*"), []string{"a@1.0.0", "b@1.0.0"},
		},
		"a package that depends on itself": {
			shelf{"a@1.0.0": {"a@^1"}},
			wish("a@*"), []string{"a@1.0.0"},
		},
		"an older version of itself": {
			shelf{"a@2.0.0": {"a@^1"}, "a@1.0.0": nil},
			wish("a@^2"), []string{"a > a@1.0.0", "a@2.0.0"},
		},
		"versions that need each other in a circle end in a link": {
			shelf{
				"x@1.0.0": {"a@^1"}, "a@3.0.0": nil, "b@3.0.0": nil,
				"a@1.0.0": {"b@^2"}, "b@2.0.0": {"a@^2"}, "a@2.0.0": {"b@^1"}, "b@1.0.0": {"a@^1"},
			},
			wish("a@^3", "b@^3", "x@*"), []string{
				"a@3.0.0", "b@3.0.0", "x > a@1.0.0", "x > b > a@2.0.0", "x > b > b > a@1.0.0", "x > b > b > b@2.0.0", "x > b > b@1.0.0", "x > b@2.0.0", "x@1.0.0",
			},
		},
		"an alias is another name": {
			shelf{"a@1.0.0": nil, "a@2.0.0": nil, "b@1.0.0": {"old@npm:a@^1"}},
			wish("a@^2", "b@*"), []string{"a@2.0.0", "b@1.0.0", "old@1.0.0"},
		},
		"an optional dependency that cannot be had": {
			shelf{"a@1.0.0": {"?gone@*", "b@*"}, "b@1.0.0": nil},
			wish("a@*"), []string{"a@1.0.0", "b@1.0.0"},
		},
		"an optional package goes when a dependency of it cannot be had": {
			shelf{"a@1.0.0": {"?o@*"}, "o@1.0.0": {"p@*", "q@*"}, "p@1.0.0": {"gone@*"}, "q@1.0.0": nil},
			wish("a@*"), []string{"a@1.0.0"},
		},
		"optional marks": {
			shelf{"a@1.0.0": {"?o@*"}, "o@1.0.0": {"s@*", "p@*"}, "p@1.0.0": nil, "s@1.0.0": nil, "b@1.0.0": {"s@*"}},
			wish("a@*", "b@*"), []string{"?o@1.0.0", "?p@1.0.0", "a@1.0.0", "b@1.0.0", "s@1.0.0"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := resolveShelf(t, c.shelf, nil, c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, places(root, c.wishes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestResolveErrorNamesWhoAsks(t *testing.T) {
	_, err := resolveShelf(t, shelf{"a@1.0.0": {"b@*"}, "b@1.0.0": {"gone@^3"}}, nil, wish("a@*"))
	if err == nil || !strings.Contains(err.Error(), "a@1.0.0 → b@1.0.0 → gone@^3") {
		t.Errorf("got %v", err)
	}
	if fault.ClassOf(err) != fault.Package {
		t.Errorf("class %v", fault.ClassOf(err))
	}
}

func TestForeignPathsAreRefused(t *testing.T) {
	for _, wanted := range []string{"link:../x", "file:../x", "workspace:*"} {
		_, err := resolveShelf(t, shelf{"a@1.0.0": {"b@" + wanted}}, nil, wish("a@*"))
		if err == nil || !strings.Contains(err.Error(), "a@1.0.0") {
			t.Errorf("%s: got %v", wanted, err)
		}
	}
}

func TestLockedVersionsStay(t *testing.T) {
	s := shelf{"a@1.0.0": {"b@^1"}, "b@1.0.0": nil}
	wishes := wish("a@^1")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	locked := lockOf(root, wishes)
	s["a@1.1.0"] = []string{"b@^1"}
	s["b@1.1.0"] = nil
	s["c@1.0.0"] = []string{"b@^1.1"}

	root, err = resolveShelf(t, s, locked, wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "b@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
	// Only what the change needs moves.
	wishes = wish("a@^1", "c@*")
	root, err = resolveShelf(t, s, locked, wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "b@1.0.0", "c > b@1.1.0", "c@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
	// A range that the locked version does not satisfy lets go of it.
	wishes = wish("a@^1.1")
	root, err = resolveShelf(t, s, locked, wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.1.0", "b@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
}

// TestEveryDependencyIsFound builds random registries and checks each tree
// the way Node.js would walk it: every dependency of every package resolves
// to a version that satisfies its range, and twice the same tree comes out.
func TestEveryDependencyIsFound(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		s := shelf{}
		for p := range 8 {
			for v := range 3 {
				var deps []string
				for range rnd.IntN(4) {
					deps = append(deps, fmt.Sprintf("p%d@^%d", rnd.IntN(8), rnd.IntN(3)+1))
				}
				s[fmt.Sprintf("p%d@%d.0.0", p, v+1)] = deps
			}
		}
		var specs []string
		for p := range 8 {
			if rnd.IntN(2) == 0 {
				specs = append(specs, fmt.Sprintf("p%d@^%d", p, rnd.IntN(3)+1))
			}
		}
		wishes := wish(specs...)
		root, err := resolveShelf(t, s, nil, wishes)
		if err != nil {
			t.Fatal(err)
		}
		var walk func(n *node)
		walk = func(n *node) {
			if n.pkg != nil && n.same == nil {
				for name, wanted := range n.pkg.Dependencies {
					found := lookUp(n, name)
					if found == nil || !satisfies(found.pkg.Version, wanted) {
						t.Errorf("seed %d: %s finds %v for %s@%s", seed, n.path(), found, name, wanted)
					}
				}
			}
			for _, child := range n.children {
				walk(child)
			}
		}
		walk(root)
		for _, w := range wishes {
			if !satisfies(root.children[w.Name].pkg.Version, w.Wanted) {
				t.Errorf("seed %d: the profile does not get its %s@%s", seed, w.Name, w.Wanted)
			}
		}
		again, err := resolveShelf(t, s, lockOf(root, wishes), wishes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(places(root, wishes), places(again, wishes)); diff != "" {
			t.Errorf("seed %d: with its own lockfile the tree changes\n%s", seed, diff)
		}
	}
}

// lookUp finds a name as Node.js would from inside n.
func lookUp(n *node, name string) *node {
	for at := n; at != nil; at = at.parent {
		if found := at.children[name]; found != nil {
			return found
		}
	}
	return nil
}

func TestPeerProblems(t *testing.T) {
	lock := &Lock{Nodes: map[string]Located{
		"node_modules/a": {Package: &Package{
			Name: "a", Version: "1.0.0", OptionalPeers: []string{"maybe"},
			Peers: map[string]string{"@deepseek-ai/dsh-llm": "^9", "gone": "^1", "maybe": "^1", "b": "^1"},
		}},
		"node_modules/b": {Package: &Package{Name: "b", Version: "2.0.0", Peers: map[string]string{"gone": "*", "a": "^1"}}},
	}}
	want := []string{
		"the peer gone is not installed; asked for by a@1.0.0 (^1), b@2.0.0 (*)",
		"b@2.0.0 is not the peer that is asked for by a@1.0.0 (^1)",
	}
	if diff := cmp.Diff(want, newPeerProblems(nil, lock)); diff != "" {
		t.Error(diff)
	}
	if again := newPeerProblems(lock, lock); len(again) != 0 {
		t.Errorf("what was known is said again: %q", again)
	}
}

func TestPlatform(t *testing.T) {
	linux := Platform{"linux", "x64", "glibc"}
	for _, c := range []struct {
		os, cpu, libc []string
		want          bool
	}{
		{nil, nil, nil, true},
		{[]string{"linux"}, []string{"x64", "arm64"}, []string{"glibc"}, true},
		{[]string{"darwin"}, nil, nil, false},
		{[]string{"!win32"}, nil, nil, true},
		{[]string{"!linux"}, nil, nil, false},
		{[]string{"!win32", "darwin"}, nil, nil, false},
		{[]string{"any"}, nil, nil, true},
		{nil, []string{"arm64"}, nil, false},
		{nil, nil, []string{"musl"}, false},
	} {
		if got := linux.runs(&Package{OS: c.os, CPU: c.cpu, Libc: c.libc}); got != c.want {
			t.Errorf("%v: got %v", c, got)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	s := shelf{}
	var specs []string
	for i := range 400 {
		var deps []string
		for j := 1; j <= 4; j++ {
			deps = append(deps, fmt.Sprintf("p%d@^1", (i*7+j*13)%400))
		}
		s[fmt.Sprintf("p%d@1.0.0", i)] = deps
		if i%20 == 0 {
			specs = append(specs, fmt.Sprintf("p%d@^1", i))
		}
	}
	wishes := wish(specs...)
	root, err := resolveShelf(b, s, nil, wishes)
	if err != nil {
		b.Fatal(err)
	}
	locked := lockOf(root, wishes)
	for b.Loop() {
		if _, err := resolveShelf(b, s, locked, wishes); err != nil {
			b.Fatal(err)
		}
	}
}
