package install

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/npmrange"
)

// shelf is a registry in memory: "name@version" -> dependencies, written
// "name@range" with a "?" in front of optional ones and "peer " in front of
// peers, and "bundles name" for what the archive brings along.
type shelf map[string][]string

func (s shelf) find(_ context.Context, spec Spec) (*Package, error) {
	if spec.Kind != Registry {
		return &Package{Name: spec.Name, Version: "1.0.0", Origin: Origin{spec.Kind, spec.Place}}, nil
	}
	if version, ok := strings.CutPrefix(spec.Wanted, "tag-"); ok {
		spec.Wanted = version
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
		if name, ok := strings.CutPrefix(d, "bundles "); ok {
			pkg.Bundled = append(pkg.Bundled, name)
			continue
		}
		d, optional := strings.CutPrefix(d, "?")
		d, peer := strings.CutPrefix(d, "peer ")
		name, wanted, _ := splitName(d)
		if peer {
			if pkg.Peers == nil {
				pkg.Peers = map[string]string{}
			}
			pkg.Peers[name] = wanted
		} else if optional {
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

func resolveShelf(t testing.TB, s finder, locked *Lock, wishes []Wish) (*node, error) {
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
		from := ""
		if n.Origin.Kind != Registry && n.Origin.Kind != Link {
			from = " from " + n.Origin.Place
		}
		list = append(list, fmt.Sprintf("%s%s@%s%s", mark, path, n.Version, from))
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
		"the same version from an address is another package": {
			shelf{"x@1.0.0": {"a@^1", "b@^3"}, "a@1.0.0": {"b@^1"}, "b@1.0.0": {"a@https://h/a.tgz"}, "a@3.0.0": nil, "b@3.0.0": nil},
			wish("a@^3", "b@^3", "x@*"), []string{
				"a@3.0.0", "b@3.0.0", "x > a > a@1.0.0 from https://h/a.tgz", "x > a > b@1.0.0", "x > a@1.0.0", "x@1.0.0",
			},
		},
		"what an archive brings along is no help for others": {
			shelf{"n@1.0.0": {"b@^1", "c@^1", "bundles b"}, "c@1.0.0": {"b@^2"}, "c@2.0.0": nil, "b@2.0.0": nil},
			wish("n@*", "c@^2"), []string{"c@2.0.0", "n > c > b@2.0.0", "n > c@1.0.0", "n@1.0.0"},
		},
		"what an archive brings along hides what stands above": {
			shelf{"n@1.0.0": {"b@^1", "c@^1", "bundles b"}, "c@1.0.0": {"b@^2"}, "c@2.0.0": nil, "b@2.0.0": nil},
			wish("n@*", "c@^2", "b@^2"), []string{"b@2.0.0", "c@2.0.0", "n > c > b@2.0.0", "n > c@1.0.0", "n@1.0.0"},
		},
		"what an archive brings along is no concern of who stands beside it": {
			shelf{"n@1.0.0": {"b@^1", "c@^1", "bundles b"}, "c@1.0.0": {"b@^2"}, "b@2.0.0": nil},
			wish("n@*"), []string{"b@2.0.0", "c@1.0.0", "n@1.0.0"},
		},
		"a package stands beside its peer": {
			shelf{"x@1.0.0": {"a@^1", "p@^1"}, "a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("p@^2", "x@*"), []string{"p@2.0.0", "x > a@1.0.0", "x > p@1.0.0", "x@1.0.0"},
		},
		"a package that stands without the peer is copied": {
			shelf{"x@1.0.0": {"a@^1", "p@^1"}, "a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@*", "p@^2", "x@*"), []string{"a@1.0.0", "p@2.0.0", "x > a@1.0.0", "x > p@1.0.0", "x@1.0.0"},
		},
		"a peer that both find does not nest": {
			shelf{"x@1.0.0": {"a@^1", "p@^2"}, "a@1.0.0": {"peer p@^2"}, "p@2.0.0": nil},
			wish("p@^2", "x@*"), []string{"a@1.0.0", "p@2.0.0", "x@1.0.0"},
		},
		"a peer that does not fit does not nest": {
			shelf{"x@1.0.0": {"a@^1", "p@^1"}, "a@1.0.0": {"peer p@^2"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("p@^2", "x@*"), []string{"a@1.0.0", "p@2.0.0", "x > p@1.0.0", "x@1.0.0"},
		},
		"the host as a peer does not nest": {
			shelf{"x@1.0.0": {"a@^1", "@deepseek-ai/h@^1"}, "a@1.0.0": {"peer @deepseek-ai/h@^1"}, "@deepseek-ai/h@1.0.0": nil, "@deepseek-ai/h@2.0.0": nil},
			wish("@deepseek-ai/h@^2", "x@*"), []string{"@deepseek-ai/h@2.0.0", "a@1.0.0", "x > @deepseek-ai/h@1.0.0", "x@1.0.0"},
		},
		"nothing comes between a package and its peer": {
			// y's p@2 must not go into a, which is the peer's user.
			shelf{"a@1.0.0": {"peer p@^1", "y@*"}, "y@1.0.0": {"p@^2"}, "y@2.0.0": nil, "p@1.0.0": nil, "p@2.0.0": nil, "z@1.0.0": nil},
			wish("a@*", "p@^1", "y@^1"), []string{"a@1.0.0", "p@1.0.0", "y > p@2.0.0", "y@1.0.0"},
		},
		"nothing comes between a nested package and its peer": {
			shelf{"x@1.0.0": {"a@^1"}, "a@2.0.0": nil, "a@1.0.0": {"peer p@^1", "y@^1"}, "y@1.0.0": {"p@^2"}, "y@2.0.0": nil, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@^2", "p@^1", "x@*", "y@^2"), []string{"a@2.0.0", "p@1.0.0", "x > a@1.0.0", "x > y > p@2.0.0", "x > y@1.0.0", "x@1.0.0", "y@2.0.0"},
		},
		"peers of each other": {
			shelf{"x@1.0.0": {"a@^1", "b@^1"}, "a@1.0.0": {"peer b@*"}, "b@1.0.0": {"peer a@*"}},
			wish("x@*"), []string{"a@1.0.0", "b@1.0.0", "x@1.0.0"},
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

func TestOptionalDependencyWithoutAToken(t *testing.T) {
	s := locked{shelf{"a@1.0.0": {"?secret@*"}}, "secret"}
	r := &resolver{find: s, dir: "/p", fresh: func(string) bool { return false }}
	_, err := r.resolve(context.Background(), wish("a@*"))
	if _, ok := errors.AsType[*registry.AuthError](err); !ok {
		t.Errorf("a package that needs a token was left out silently: %v", err)
	}
}

// edited is a shelf beside which a folder stands in some version.
type edited struct {
	shelf
	version string // "" where the folder is gone
}

func (s edited) find(ctx context.Context, spec Spec) (*Package, error) {
	switch {
	case spec.Kind != Link:
		return s.shelf.find(ctx, spec)
	case s.version == "":
		return nil, fault.Errorf(fault.Package, "there is no such folder")
	}
	return &Package{Name: "l", Version: s.version, Origin: Origin{Link, "../l"}}, nil
}

func TestLinkedFoldersAreReadAgain(t *testing.T) {
	var lock *Lock
	wishes := []Wish{{Name: "l", Wanted: "link:../l"}}
	for _, c := range []struct{ version, want string }{{"1.0.0", "1.0.0"}, {"2.0.0", "2.0.0"}, {"", "2.0.0"}} {
		root, err := resolveShelf(t, edited{shelf{}, c.version}, lock, wishes)
		if err != nil {
			t.Fatal(err)
		}
		if got := root.children["l"].pkg.Version; got != c.want {
			t.Errorf("the folder says %s, the tree %s", c.version, got)
		}
		lock = lockOf(root, wishes)
	}
}

// elderly is a shelf of which one package is for old releases of Node.js.
type elderly struct {
	shelf
	name string
}

func (s elderly) find(ctx context.Context, spec Spec) (*Package, error) {
	pkg, err := s.shelf.find(ctx, spec)
	if err == nil && pkg.Name == s.name {
		pkg.Node = "<12"
	}
	return pkg, err
}

func TestOptionalDependencyForAnotherNode(t *testing.T) {
	s := elderly{shelf{"a@1.0.0": {"?o@*"}, "o@1.0.0": {"p@*"}, "p@1.0.0": nil, "b@1.0.0": {"o@*"}}, "o"}
	for _, c := range []struct {
		wishes []Wish
		want   []string
	}{
		{wish("a@*"), []string{"a@1.0.0"}},
		{wish("a@*", "b@*"), []string{"a@1.0.0", "b@1.0.0", "o@1.0.0", "p@1.0.0"}}, // b needs it all the same
	} {
		root, err := resolveShelf(t, s, nil, c.wishes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, places(root, c.wishes)); diff != "" {
			t.Error(diff)
		}
	}
}

// locked is a shelf with one package that needs a token.
type locked struct {
	shelf
	name string
}

func (l locked) find(ctx context.Context, spec Spec) (*Package, error) {
	if spec.Target == l.name {
		return nil, &registry.AuthError{Doing: "get " + l.name, Status: 401}
	}
	return l.shelf.find(ctx, spec)
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

func TestLockedVersionsStayWhenTheirParentMoves(t *testing.T) {
	s := shelf{"a@1.0.0": {"p@^1"}, "p@1.0.0": {"q@^1"}, "p@2.0.0": nil, "q@1.0.0": nil, "q@2.0.0": nil}
	wishes := wish("a@^1", "p@^2", "q@^2")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	s["q@1.5.0"] = nil
	fewer := wish("a@^1", "q@^2")
	after, err := resolveShelf(t, s, lockOf(root, wishes), fewer)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "p > q@1.0.0", "p@1.0.0", "q@2.0.0"}, places(after, fewer)); diff != "" {
		t.Error(diff)
	}
}

func TestLockedVersionDoesNotGiveWayToWhatFits(t *testing.T) {
	// x got q@1.0.0 before q@1.5.0 was there; without q@2 on top of the
	// profile there is room for one of them, and each still has its own.
	s := shelf{"x@1.0.0": {"q@^1"}, "y@1.0.0": {"q@^1"}, "q@1.0.0": nil, "q@2.0.0": nil}
	wishes := wish("q@^2", "x@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	s["q@1.5.0"] = nil
	more := wish("q@^2", "x@*", "y@*")
	if root, err = resolveShelf(t, s, lockOf(root, wishes), more); err != nil {
		t.Fatal(err)
	}
	wishes = wish("x@*", "y@*")
	if root, err = resolveShelf(t, s, lockOf(root, more), wishes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"q@1.0.0", "x@1.0.0", "y > q@1.5.0", "y@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
}

func TestLockedVersionFollowsItsSuccessor(t *testing.T) {
	// Only the manifest's new wish moves q; a copy of the old one for x, whose
	// range the new one meets, would be one too many.
	s := shelf{"x@1.0.0": {"q@^1"}, "q@1.0.0": nil}
	wishes := wish("x@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	s["q@1.5.0"] = nil
	more := wish("q@^1.5", "x@*")
	if root, err = resolveShelf(t, s, lockOf(root, wishes), more); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"q@1.5.0", "x@1.0.0"}, places(root, more)); diff != "" {
		t.Error(diff)
	}
}

func TestTagInTheManifest(t *testing.T) {
	s := shelf{"f@1.0.0": nil, "f@2.0.0": nil}
	wishes := wish("f@^1")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	tagged := wish("f@tag-2")
	if root, err = resolveShelf(t, s, lockOf(root, wishes), tagged); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"f@2.0.0"}, places(root, tagged)); diff != "" {
		t.Errorf("a tag that was written by hand: %s", diff)
	}
	s["f@2.1.0"] = nil
	if root, err = resolveShelf(t, s, lockOf(root, tagged), tagged); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"f@2.0.0"}, places(root, tagged)); diff != "" {
		t.Errorf("a tag that stands in the lockfile: %s", diff)
	}
}

func TestAccepts(t *testing.T) {
	for _, c := range []struct {
		wanted, version string
		want            bool
	}{
		{"*", "1.0.0-rc.1", true},
		{"", "1.0.0-rc.1", true},
		{" * ", "1.0.0-rc.1", true},
		{"x", "1.0.0-rc.1", true},
		{"X", "1.0.0-rc.1", true},
		{"latest", "1.0.0-rc.1", true},
		{">=0.0.0", "1.0.0-rc.1", false},
		{"1.x", "1.0.0-rc.1", false},
		{"^1.0.0-rc.0", "1.0.0-rc.1", true},
		{"^1", "1.2.3", true},
		{"^2", "1.2.3", false},
	} {
		v, err := npmrange.ParseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if got := accepts(c.wanted, v); got != c.want {
			t.Errorf("%q and %s: got %v", c.wanted, c.version, got)
		}
	}
}

// onlyPrerelease is a registry whose latest f is a prerelease.
type onlyPrerelease struct{ shelf }

func (s onlyPrerelease) find(ctx context.Context, spec Spec) (*Package, error) {
	if spec.Target == "f" {
		return &Package{Name: "f", Version: "1.0.0-rc.1"}, nil
	}
	return s.shelf.find(ctx, spec)
}

func TestAnyVersionKeepsAPrerelease(t *testing.T) {
	s := onlyPrerelease{shelf{"a@1.0.0": {"f@*"}, "b@1.0.0": {"f@"}, "c@1.0.0": {"peer f@*"}}}
	wishes := wish("a@*", "b@*", "c@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOf(root, wishes)
	if diff := cmp.Diff([]string{"a@1.0.0", "b@1.0.0", "c@1.0.0", "f@1.0.0-rc.1"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
	if problems := newPeerProblems(nil, lock); len(problems) != 0 {
		t.Errorf("got %q", problems)
	}
	if spec, _ := ParseDependency("f", "*", "/p"); lock.newest(spec) == nil {
		t.Error("the lockfile has no f for *")
	}
	// The registry need not be asked again.
	if _, err := resolveShelf(t, shelf{}, lock, wishes); err != nil {
		t.Error(err)
	}
}

func TestPeerThatIsBroughtAlong(t *testing.T) {
	s := shelf{"n@1.0.0": {"p@*", "a@*", "bundles p"}, "a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil}
	wishes := wish("n@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"n > a@1.0.0", "n@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
	if problems := newPeerProblems(nil, lockOf(root, wishes)); len(problems) != 0 {
		t.Errorf("got %q", problems)
	}
}

// tangle is packages of which every version needs exact versions of all.
func tangle(packages int) shelf {
	s := shelf{}
	for v := 1; v <= 2; v++ {
		for p := range packages {
			var deps []string
			for d := range packages {
				deps = append(deps, fmt.Sprintf("p%d@%d.0.0", d, v%2+1))
			}
			s[fmt.Sprintf("p%d@%d.0.0", p, v)] = deps
		}
	}
	return s
}

func TestTreesAreBounded(t *testing.T) {
	_, err := resolveShelf(t, tangle(5), nil, wish("p0@1.0.0"))
	conflict, ok := errors.AsType[*ConflictError](err)
	if !ok || fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "more than 50000 packages") || len(conflict.Chain) < 2 {
		t.Errorf("got %v", err)
	}
}

// cancelling cancels what it is used in after so many answers.
type cancelling struct {
	shelf
	left   *atomic.Int64
	cancel func()
}

func (c cancelling) find(ctx context.Context, spec Spec) (*Package, error) {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.shelf.find(ctx, spec)
}

func TestResolvingCanBeCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var left atomic.Int64
	left.Store(7)
	r := &resolver{find: cancelling{tangle(5), &left, cancel}, dir: "/p", fresh: func(string) bool { return false }}
	if _, err := r.resolve(ctx, wish("p0@1.0.0")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if r.nodes > 1000 {
		t.Errorf("%d packages were placed after the cancelling", r.nodes)
	}
}

// randomShelf is 8 packages in 3 versions with dependencies of every kind.
// Peers have higher numbers than who asks for them, so that none is a peer of
// its own peers.
func randomShelf(rnd *rand.Rand) (shelf, []Wish) {
	const names = 8
	s := shelf{}
	for p := range names {
		for v := range 3 {
			var deps []string
			for range rnd.IntN(4) {
				optional := ""
				if rnd.IntN(5) == 0 {
					optional = "?"
				}
				d, of := rnd.IntN(names), rnd.IntN(3)+1
				if optional != "" && rnd.IntN(2) == 0 {
					of = 9 // not to be had
				}
				deps = append(deps, fmt.Sprintf("%sp%d@^%d", optional, d, of))
				if rnd.IntN(8) == 0 {
					deps = append(deps, fmt.Sprintf("bundles p%d", d))
				}
			}
			if p+1 < names && rnd.IntN(3) == 0 {
				deps = append(deps, fmt.Sprintf("peer p%d@^%d", p+1+rnd.IntN(names-p-1), rnd.IntN(3)+1))
			}
			s[fmt.Sprintf("p%d@%d.0.0", p, v+1)] = deps
		}
	}
	var specs []string
	for p := range names {
		if rnd.IntN(2) == 0 {
			specs = append(specs, fmt.Sprintf("p%d@^%d", p, rnd.IntN(3)+1))
		}
	}
	return s, wish(specs...)
}

// walk calls f for every package that is laid out below n.
func walk(n *node, f func(n *node)) {
	for _, child := range n.children {
		if !child.bundled {
			f(child)
			walk(child, f)
		}
	}
}

// TestEveryDependencyIsFound builds random registries and checks each tree
// the way Node.js would walk it: every dependency of every package resolves
// to a version that satisfies its range, every peer that a package's asker
// depends on is found by the package too, and with its own lockfile the same
// tree comes out.
func TestEveryDependencyIsFound(t *testing.T) {
	peersSeen, nested := 0, 0
	for seed := range uint64(600) {
		s, wishes := randomShelf(rand.New(rand.NewPCG(seed, 1)))
		root, err := resolveShelf(t, s, nil, wishes)
		if err != nil {
			t.Fatal(err)
		}
		walk(root, func(n *node) {
			if n.same != nil {
				return
			}
			for name, wanted := range n.pkg.Dependencies {
				if _, optional := n.pkg.Optional[name]; optional || slices.Contains(n.pkg.Bundled, name) {
					continue
				}
				found := n.lookUp(name)
				if found == nil || found.bundled || !satisfies(found.pkg.Version, wanted) {
					t.Errorf("seed %d: %s finds %v for %s@%s", seed, n.path(), found, name, wanted)
				}
			}
			for _, e := range n.edges {
				if e.to == nil || e.to.same != nil {
					continue
				}
				if found := n.lookUp(e.name); found != e.to {
					t.Errorf("seed %d: %s finds %s as %s, not %s", seed, n.path(), found.path(), e.name, e.to.path())
				}
				for _, p := range root.made.needs(e.to.pkg, nil).peers {
					peer, wanted := p.name, p.wanted
					mine, its := n.lookUp(peer), e.to.lookUp(peer)
					if n.pkg.Dependencies[peer] == "" || mine == nil || !satisfies(mine.pkg.Version, wanted) {
						continue
					}
					peersSeen++
					if e.to.parent != root {
						nested++
					}
					if its == nil || !satisfies(its.pkg.Version, wanted) {
						t.Errorf("seed %d: %s finds its peer %s@%s, which %s at %s does not", seed, n.path(), peer, wanted, e.name, e.to.path())
					}
				}
			}
		})
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
	if peersSeen < 50 || nested < 10 {
		t.Errorf("only %d peers, %d of them of nested packages: the registries are too simple", peersSeen, nested)
	}
}

// TestPeersAreInstalledInRandomRegistries installs peers in random registries:
// every dependency and every own range is met, fewer peers are amiss in many
// trees, and with its own lockfile the same tree comes out.
func TestPeersAreInstalledInRandomRegistries(t *testing.T) {
	first, better := 0, 0
	for seed := range uint64(600) {
		s, wishes := randomShelf(rand.New(rand.NewPCG(seed, 5)))
		without, err := resolveShelf(t, s, nil, wishes)
		if err != nil {
			t.Fatal(err)
		}
		settings := Settings{AutoPeers: true}
		root, err := resolveWith(t, s, nil, settings, wishes)
		if err != nil {
			t.Fatal(err)
		}
		first += len(root.made.first)
		walk(root, func(n *node) {
			for name, wanted := range n.pkg.Dependencies {
				if _, optional := n.pkg.Optional[name]; n.same != nil || optional || slices.Contains(n.pkg.Bundled, name) {
					continue
				}
				if found := n.lookUp(name); found == nil || !found.bundled && !satisfies(found.pkg.Version, wanted) {
					t.Errorf("seed %d: %s finds %v for %s@%s", seed, n.path(), found, name, wanted)
				}
			}
		})
		for _, w := range wishes {
			if !satisfies(root.children[w.Name].pkg.Version, w.Wanted) {
				t.Errorf("seed %d: the profile does not get its %s@%s", seed, w.Name, w.Wanted)
			}
		}
		lock := lockOf(root, wishes)
		if len(peerProblems(lock)) < len(peerProblems(lockOf(without, wishes))) {
			better++
		}
		again, err := resolveWith(t, s, lock, settings, wishes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(lock.Bytes()), string(lockOf(again, wishes).Bytes())); diff != "" {
			t.Errorf("seed %d: with its own lockfile the tree changes\n%s", seed, diff)
		}
	}
	if first < 20 || better < 50 {
		t.Errorf("only %d peers come first, and %d trees are better: the registries are too simple", first, better)
	}
}

// TestRemovingChangesNoOtherVersion takes a dependency out of random profiles
// for whose packages newer versions came out: every package keeps, for each
// dependency, a version that it had.
func TestRemovingChangesNoOtherVersion(t *testing.T) {
	for seed := range uint64(400) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		s, wishes := randomShelf(rnd)
		if len(wishes) == 0 {
			continue
		}
		root, err := resolveShelf(t, s, nil, wishes)
		if err != nil {
			t.Fatal(err)
		}
		had := map[string]bool{} // "asker > name@version"
		note := func(n *node, f func(string)) {
			asker := ""
			if n.pkg != nil {
				asker = n.pkg.describe()
			}
			for _, e := range n.edges {
				if e.to != nil {
					f(asker + " > " + e.to.pkg.describe())
				} else if e.optional {
					f(asker + " > no " + e.name)
				}
			}
		}
		before := func(edge string) { had[edge] = true }
		note(root, before)
		walk(root, func(n *node) { note(n, before) })
		for key, deps := range s {
			name, version, _ := splitName(key)
			s[name+"@"+strings.Replace(version, ".0.0", ".1.0", 1)] = deps
		}
		lock := lockOf(root, wishes)
		// Another round of the same on what comes out, until nothing is left.
		for len(wishes) > 0 {
			i := rnd.IntN(len(wishes))
			wishes = slices.Delete(slices.Clone(wishes), i, i+1)
			if root, err = resolveShelf(t, s, lock, wishes); err != nil {
				t.Fatal(err)
			}
			after := func(edge string) {
				if !had[edge] {
					t.Errorf("seed %d: without %d of the wishes there is %s", seed, i, edge)
				}
			}
			note(root, after)
			walk(root, func(n *node) { note(n, after) })
			lock = lockOf(root, wishes)
		}
	}
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

// remembering is a registry whose answers are all in memory once they were
// given.
type remembering struct {
	shelf
	mu      *sync.RWMutex
	answers map[Spec]*Package
}

func (m remembering) find(ctx context.Context, spec Spec) (*Package, error) {
	m.mu.RLock()
	pkg := m.answers[spec]
	m.mu.RUnlock()
	if pkg != nil {
		return pkg, nil
	}
	pkg, err := m.shelf.find(ctx, spec)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.answers[spec] = pkg
	}
	return pkg, err
}

// application is a registry and a profile as large applications have them: some
// 1,300 packages, most of them small, some asked for by many and in two major
// versions, with peers here and there.
func application() (shelf, []Wish) {
	rnd := rand.New(rand.NewPCG(7, 7))
	const names = 640
	s := shelf{}
	for p := range names {
		for major := 1; major <= 2; major++ {
			var deps []string
			for range rnd.IntN(6) {
				// What many depend on has a high number.
				d := p + 1 + int(float64(names)*rnd.Float64()*rnd.Float64())
				if d >= names {
					d = names - 1 - rnd.IntN(60)
				}
				wanted := []string{"^1.0.0", "^1.0.0", "^1.1.0", "~1.1.0", "^2.0.0", ">=1", "*", "1.x || 2.x"}[rnd.IntN(8)]
				if d != p {
					deps = append(deps, fmt.Sprintf("package-%d@%s", d, wanted))
				}
			}
			if rnd.IntN(12) == 0 && p+1 < names {
				deps = append(deps, fmt.Sprintf("peer package-%d@*", p+1+rnd.IntN(names-p-1)))
			}
			for minor := range 2 {
				s[fmt.Sprintf("package-%d@%d.%d.0", p, major, minor)] = deps
			}
		}
	}
	var specs []string
	for p := range 90 {
		specs = append(specs, fmt.Sprintf("package-%d@^1.0.0", p))
	}
	return s, wish(specs...)
}

func BenchmarkResolve(b *testing.B) {
	s, wishes := application()
	warm := remembering{s, &sync.RWMutex{}, map[Spec]*Package{}}
	root, err := resolveShelf(b, warm, nil, wishes)
	if err != nil {
		b.Fatal(err)
	}
	locked := lockOf(root, wishes)
	for _, c := range []struct {
		name   string
		locked *Lock
	}{{"fresh", nil}, {"locked", locked}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := resolveShelf(b, warm, c.locked, wishes); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(locked.Nodes)), "packages")
		})
	}
}

// TestPlatformSkips leaves out what only packages for another machine need, and
// keeps what somebody else needs as well.
func TestPlatformSkips(t *testing.T) {
	s := shelf{
		"a@1.0.0": {"?elsewhere@1", "both@1"}, "elsewhere@1.0.0": {"both@1", "only@1", "b@1"}, "both@1.0.0": nil,
		"only@1.0.0": {"deep@1"}, "deep@1.0.0": {"only@1", "both@2"}, "both@2.0.0": nil, "b@1.0.0": {"peer deep@1"},
	}
	for _, c := range []struct {
		wishes []Wish
		limit  string // the package for another machine
		want   []string
	}{
		{wish("a@1"), "", []string{}},
		{wish("a@1"), "both", []string{"node_modules/both"}},
		{wish("a@1"), "elsewhere", []string{"node_modules/b", "node_modules/deep", "node_modules/deep/node_modules/both", "node_modules/elsewhere", "node_modules/only"}},
		{wish("a@1", "deep@1"), "elsewhere", []string{"node_modules/b", "node_modules/elsewhere"}},
		{wish("a@1", "b@1"), "elsewhere", []string{"node_modules/elsewhere"}},
	} {
		root, err := resolveShelf(t, s, nil, c.wishes)
		if err != nil {
			t.Fatal(err)
		}
		lock := lockOf(root, c.wishes)
		if n, ok := lock.at("node_modules/" + c.limit); ok {
			n.OS = []string{"no-such-os"}
		}
		if diff := cmp.Diff(c.want, append([]string{}, sortedKeys(platformSkips(lock))...)); diff != "" {
			t.Errorf("%v with %s for another machine (-want +got):\n%s", c.wishes, c.limit, diff)
		}
	}
}
