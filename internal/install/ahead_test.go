package install

import (
	"bytes"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slow is a registry that keeps back its answers and lets them go in an order of
// chance: with each question it lets some go, and when nothing is asked for a
// moment, one more.
type slow struct {
	shelf
	mu      sync.Mutex
	rnd     *rand.Rand
	waiting []chan struct{}
}

func (s *slow) find(ctx context.Context, spec Spec) (*Package, error) {
	turn := make(chan struct{})
	s.mu.Lock()
	s.waiting = append(s.waiting, turn)
	for range s.rnd.IntN(3) {
		s.letGo()
	}
	s.mu.Unlock()
	for waits := true; waits; {
		select {
		case <-turn:
			waits = false
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Microsecond):
			s.mu.Lock()
			s.letGo()
			s.mu.Unlock()
		}
	}
	return s.shelf.find(ctx, spec)
}

func (s *slow) letGo() {
	if len(s.waiting) > 0 {
		i := s.rnd.IntN(len(s.waiting))
		close(s.waiting[i])
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
}

// TestOrderOfAnswersDoesNotMatter resolves the same profiles while answers come
// in 200 orders: the lockfile is the same to the byte, and what was placed too.
func TestOrderOfAnswersDoesNotMatter(t *testing.T) {
	settings := Settings{
		AutoPeers: true, Hosts: OmitHosts,
		Overrides: mustOverrides(t, map[string]string{"p5": "1.0.0", "p2>>p6": "2.0.0", "p3>p7": "-"}),
	}
	resolve := func(seed uint64, s finder, wishes []Wish) (text []byte, placed []string, err error) {
		r := &resolver{
			find: s, dir: "/p", settings: settings, fresh: func(string) bool { return false },
			placed: func(at string, pkg *Package) { placed = append(placed, at+" "+pkg.describe()) },
		}
		root, err := r.resolve(context.Background(), wishes)
		if err != nil {
			return []byte(err.Error()), placed, err
		}
		return lockOf(root, wishes).Bytes(), placed, nil
	}
	for profile := range uint64(10) {
		s, wishes := randomShelf(rand.New(rand.NewPCG(profile, 3)))
		want, wantPlaced, wantErr := resolve(0, s, wishes)
		for order := range uint64(20) {
			got, placed, err := resolve(order, &slow{shelf: s, rnd: rand.New(rand.NewPCG(profile, order))}, wishes)
			if !bytes.Equal(want, got) || (err == nil) != (wantErr == nil) {
				t.Fatalf("profile %d, order %d: %v\n%s", profile, order, err, cmp.Diff(string(want), string(got)))
			}
			if diff := cmp.Diff(wantPlaced, placed); diff != "" {
				t.Fatalf("profile %d, order %d: %s", profile, order, diff)
			}
		}
	}
}

// counting notes what is asked, and by how many at once.
type counting struct {
	shelf
	mu    sync.Mutex
	asked map[Spec]int
}

func (c *counting) find(ctx context.Context, spec Spec) (*Package, error) {
	c.mu.Lock()
	c.asked[spec]++
	c.mu.Unlock()
	return c.shelf.find(ctx, spec)
}

func TestCrawl(t *testing.T) {
	s := shelf{
		"a@1.0.0": {"b@^1", "?c@*", "peer p@^1"}, "b@1.0.0": {"d@^1", "gone@*"}, "c@1.0.0": {"e@^2"}, "d@1.0.0": nil,
		"e@2.0.0": nil, "over@3.0.0": {"f@*"}, "f@1.0.0": nil, "p@1.0.0": {"q@*"}, "q@1.0.0": nil,
	}
	settings := Settings{AutoPeers: true, Overrides: mustOverrides(t, map[string]string{"d": "npm:over@3"})}
	c := &counting{shelf: s, asked: map[Spec]int{}}
	r := &resolver{find: c, dir: "/p", settings: settings, fresh: func(string) bool { return false }}
	r.crawl(t.Context(), wish("a@*"))
	var names []string
	for spec, times := range c.asked {
		if times != 1 {
			t.Errorf("%s was asked for %d times", spec.Target, times)
		}
		names = append(names, spec.Target)
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"a", "b", "c", "e", "f", "gone", "over", "p", "q"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestCrawlAsksForNothingThatIsLocked(t *testing.T) {
	s := shelf{"a@1.0.0": {"b@^1"}, "b@1.0.0": {"c@^1"}, "c@1.0.0": nil, "d@1.0.0": {"c@^1"}}
	wishes := wish("a@*")
	root, err := resolveShelf(t, s, nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	c := &counting{shelf: s, asked: map[Spec]int{}}
	if _, err := resolveShelf(t, c, lockOf(root, wishes), wish("a@*", "d@*")); err != nil {
		t.Fatal(err)
	}
	for spec := range c.asked {
		if spec.Target != "d" && spec.Target != "c" {
			t.Errorf("%s was asked for", spec.Target)
		}
	}
}
