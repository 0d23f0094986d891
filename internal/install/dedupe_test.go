package install

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func dedupe(t testing.TB, s finder, locked *Lock, wishes []Wish) *node {
	t.Helper()
	r := &resolver{find: s, dir: "/p", locked: locked, dedupe: true, fresh: func(string) bool { return false }}
	root, err := r.resolve(context.Background(), wishes)
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func TestDedupe(t *testing.T) {
	// y came when there was a newer q, and x keeps its own.
	s := shelf{"x@1.0.0": {"q@^1"}, "y@1.0.0": {"q@^1"}, "z@1.0.0": {"q@~1.0"}, "q@1.0.0": nil, "q@2.0.0": nil}
	wishes := wish("q@^2", "x@*", "z@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	s["q@1.5.0"] = nil
	wishes = wish("q@^2", "x@*", "y@*", "z@*")
	if root, err = resolveShelf(t, s, lockOf(root, wishes), wishes); err != nil {
		t.Fatal(err)
	}
	s["q@1.9.0"] = nil // nothing newer is taken
	wishes = wish("x@*", "y@*", "z@*")
	lock := lockOf(root, wishes)
	if root, err = resolveShelf(t, s, lock, wishes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"q@1.0.0", "x@1.0.0", "y > q@1.5.0", "y@1.0.0", "z@1.0.0"}, places(root, wishes)); diff != "" {
		t.Fatal(diff)
	}
	shared := dedupe(t, s, lock, wishes)
	if diff := cmp.Diff([]string{"q@1.0.0", "x@1.0.0", "y@1.0.0", "z@1.0.0"}, places(shared, wishes)); diff != "" {
		t.Error(diff)
	}
	again, err := resolveShelf(t, s, lockOf(shared, wishes), wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(places(shared, wishes), places(again, wishes)); diff != "" {
		t.Errorf("an install undoes it: %s", diff)
	}
}

// TestDedupeMakesNoTreeLarger lets random profiles grow old, and dedupes them:
// no tree grows, each dependency is met by a version that it allows, and nothing
// comes that was not there.
func TestDedupeMakesNoTreeLarger(t *testing.T) {
	smaller := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		s, wishes := randomShelf(rnd)
		root, err := resolveShelf(t, s, nil, wishes)
		if err != nil {
			t.Fatal(err)
		}
		for key, deps := range s {
			name, version, _ := splitName(key)
			s[name+"@"+strings.Replace(version, ".0.0", ".1.0", 1)] = deps
		}
		lock := lockOf(root, wishes)
		for p := range 8 {
			if rnd.IntN(3) == 0 {
				wishes = wish(append(specsOf(wishes, p), "p"+string(rune('0'+p))+"@^"+string(rune('1'+rnd.IntN(3))))...)
				if root, err = resolveShelf(t, s, lock, wishes); err != nil {
					t.Fatal(err)
				}
				lock = lockOf(root, wishes)
			}
		}
		had := map[string]bool{}
		walk(root, func(n *node) { had[n.pkg.describe()] = true })
		before := root.made.nodes
		after := dedupe(t, s, lock, wishes)
		if after.made.nodes > before {
			t.Errorf("seed %d: %d packages became %d", seed, before, after.made.nodes)
		}
		if after.made.nodes < before {
			smaller++
		}
		walk(after, func(n *node) {
			if !had[n.pkg.describe()] {
				t.Errorf("seed %d: %s was not there", seed, n.pkg.describe())
			}
			for _, e := range n.edges {
				if e.to != nil && !satisfies(e.to.pkg.Version, e.wanted) {
					t.Errorf("seed %d: %s gets %s", seed, e.asks(), e.to.pkg.describe())
				}
			}
		})
	}
	if smaller < 5 {
		t.Errorf("only %d trees became smaller: the profiles are too simple", smaller)
	}
}

// specsOf is the wishes but for that for one package.
func specsOf(wishes []Wish, but int) []string {
	var specs []string
	for _, w := range wishes {
		if w.Name != "p"+string(rune('0'+but)) {
			specs = append(specs, w.Name+"@"+w.Wanted)
		}
	}
	return specs
}
