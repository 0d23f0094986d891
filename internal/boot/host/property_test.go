package host_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
)

// A random tree has rows of these services, and groups that isolate them.
var randomServices = []string{"a", "b", "c", "d", "e"}

// given, where it is not nil, are the services that have a provider: they get no
// other.
func drawRow(t *rapid.T, id string, depth int, given map[string]bool) string {
	if depth < 2 && rapid.IntRange(0, 6).Draw(t, "group") == 0 {
		var inner strings.Builder
		for i := range rapid.IntRange(0, 4).Draw(t, "rows") {
			inner.WriteString(drawRow(t, fmt.Sprint("r", i), depth+1, given) + ", ")
		}
		isolate := rapid.SampledFrom([]string{"", "isolate: {a: true}, ", "isolate: {b: label}, ", "inject: [c], ", "disabled: true, ", "disabled: true, group: true, "}).Draw(t, "key")
		return fmt.Sprintf("{id: %s, name: 'cordis:group', %sconfig: [%s]}", id, isolate, inner.String())
	}
	var words []string
	for range rapid.IntRange(0, 3).Draw(t, "services") {
		kind := rapid.SampledFrom([]string{"need", "need", "want", "give", "give", "may"}).Draw(t, "kind")
		service := rapid.SampledFrom(randomServices).Draw(t, "service")
		word := kind + ":" + service
		if slices.Contains(words, word) {
			continue
		}
		if kind == "give" || kind == "may" {
			if given[service] {
				continue
			}
			if given != nil {
				given[service] = true
			}
		}
		words = append(words, word)
	}
	words = append(words,
		fmt.Sprintf("slow:%dms", rapid.IntRange(0, 3).Draw(t, "slow")), fmt.Sprintf("slowstop:%dms", rapid.IntRange(0, 3).Draw(t, "slowstop")),
		rapid.SampledFrom([]string{"", "", "", "", "", "fail", "panic", "badstop"}).Draw(t, "word"))
	disabled := rapid.IntRange(0, 9).Draw(t, "disabled") == 0
	return fmt.Sprintf("{id: %s, name: 'p %s', disabled: %t, config: %d}", id, strings.Join(words, " "), disabled, rapid.IntRange(0, 1).Draw(t, "config"))
}

func drawTree(t *rapid.T, given map[string]bool) string {
	var b strings.Builder
	for i := range rapid.IntRange(0, 10).Draw(t, "rows") {
		b.WriteString("- " + drawRow(t, fmt.Sprint("r", i), 0, given) + "\n")
	}
	if b.Len() == 0 {
		return "- {id: only, name: p}"
	}
	return b.String()
}

// TestLaws does random things to random trees: no row runs twice at once, or
// without what it needs, all settles, a settled tree could go no further, and
// nothing runs when the host has stopped.
func TestLaws(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type do struct {
			kind  string
			tree  string
			row   string
			after time.Duration
		}
		doings := []do{{kind: "apply", tree: drawTree(rt, nil)}}
		for range rapid.IntRange(0, 6).Draw(rt, "doings") {
			d := do{
				kind:  rapid.SampledFrom([]string{"apply", "fail", "restart", "stop"}).Draw(rt, "do"),
				row:   fmt.Sprint("r", rapid.IntRange(0, 9).Draw(rt, "row")),
				after: time.Duration(rapid.IntRange(0, 6).Draw(rt, "after")) * time.Millisecond,
			}
			if d.kind == "apply" {
				d.tree = drawTree(rt, nil)
			}
			doings = append(doings, d)
		}
		var broken []string
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			h := host.New(w.options())
			ctx := context.Background()
			for _, d := range doings {
				time.Sleep(d.after)
				switch d.kind {
				case "apply":
					go func() { _ = h.Apply(ctx, rows(t, d.tree)) }()
				case "fail":
					if r := w.row(d.row); r != nil {
						r.Fail(errors.New("asked to"))
					}
				case "restart":
					go func() { _ = h.Restart(ctx, d.row) }()
				case "stop":
					go func() { _ = h.Stop(ctx) }()
				}
			}
			begin := time.Now()
			time.Sleep(time.Second) // for all that was begun
			_ = h.Settled(ctx)
			if took := time.Since(begin); took != time.Second {
				broken = append(broken, fmt.Sprintf("it settles only after %s", took))
			}
			broken = append(broken, w.unsettled(h)...)
			_ = h.Stop(ctx)
			synctest.Wait()
			for path, active := range w.active {
				if active != 0 {
					broken = append(broken, path+" runs still")
				}
			}
			broken = append(broken, w.over...)
		})
		for _, law := range broken {
			rt.Error(law)
		}
	})
}

// TestSameRowsAsEnabled holds what the host mounts against what the tree says of
// itself, which is asked before a start.
func TestSameRowsAsEnabled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var draw func(id string, depth int) string
		draw = func(id string, depth int) string {
			keys := "id: " + id
			for _, choice := range [][]string{
				{"", ", disabled: true", ", disabled: false", ", disabled: !!js yes", ", disabled: !!js no", ", disabled: !!js none"},
				{"", ", group: true", ", group: false"},
			} {
				keys += rapid.SampledFrom(choice).Draw(t, "key")
			}
			if depth == 3 || rapid.Bool().Draw(t, "leaf") {
				return "{" + keys + ", name: p}"
			}
			name := rapid.SampledFrom([]string{"p", "'cordis:group'"}).Draw(t, "name")
			var inner strings.Builder
			for i := range rapid.IntRange(0, 3).Draw(t, "rows") {
				inner.WriteString(draw(fmt.Sprint(id, "-", i), depth+1) + ", ")
			}
			return fmt.Sprintf("{%s, name: %s, config: [%s]}", keys, name, inner.String())
		}
		var text strings.Builder
		for i := range rapid.IntRange(1, 4).Draw(t, "rows") {
			text.WriteString("- " + draw(fmt.Sprint("r", i), 0) + "\n")
		}
		list := rows(t, text.String())
		var want, got []string
		tree := compose.Tree{Rows: list}
		for row := range tree.Enabled(func(_ compose.Row, e compose.Expr) bool { return e.Text == "yes" }) {
			want = append(want, row.ID().(string))
		}
		h := host.New(host.Options{Evaluator: answers{"yes": true, "no": false, "none": host.Undefined{}}, Registry: newWorld().plugin})
		if err := h.Apply(context.Background(), list); err != nil {
			t.Fatal(err)
		}
		for _, row := range h.Rows() {
			if row.State != host.Off {
				got = append(got, row.ID)
			}
		}
		if err := h.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the host mounts %v, and enabled are %v of\n%s", got, want, text.String())
		}
	})
}

// answers evaluates the expressions that it has.
type answers map[string]compose.Value

func (a answers) Evaluate(_ context.Context, text string, _ host.Scope) (compose.Value, error) {
	return a[text], nil
}

// unsettled says what of a settled host is not as it should be.
func (w *world) unsettled(h *host.Host) (broken []string) {
	for _, row := range h.Rows() {
		running := w.row(row.Path) != nil || strings.HasPrefix(row.Name, "cordis:")
		switch {
		case row.State == host.Starting || row.State == host.Stopping:
			broken = append(broken, row.Path+" moves: "+row.State.String())
		case (row.State == host.Active) != running && !strings.HasPrefix(row.Name, "cordis:"):
			broken = append(broken, fmt.Sprintf("%s is %s, running: %t", row.Path, row.State, running))
		case row.State == host.Waiting && (len(row.Missing) == 0 || row.Why == ""):
			broken = append(broken, row.Path+" waits for nothing")
		case (row.State == host.Failed) != (row.Err != nil):
			broken = append(broken, fmt.Sprintf("%s is %s with error %v", row.Path, row.State, row.Err))
		}
	}
	return broken
}

// BenchmarkRows starts and stops a thousand rows in ten layers of services.
func BenchmarkRows(b *testing.B) {
	var tree strings.Builder
	for i := range 1000 {
		need := ""
		if i >= 100 {
			need = fmt.Sprintf("need:s%d want:s%d", i-100, i-97)
		}
		fmt.Fprintf(&tree, "- {id: r%d, name: 'give:s%d %s'}\n", i, i, need)
	}
	list := rows(b, tree.String())
	slices.Reverse(list)
	for b.Loop() {
		w := newWorld()
		o := w.options()
		h := host.New(o)
		if err := h.Apply(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		if err := h.Settled(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, row := range h.Rows() {
			if row.State != host.Active {
				b.Fatal(row.Path, row.State, row.Why, row.Err)
			}
		}
		if err := h.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkApplyOne changes one row of a thousand.
func BenchmarkApplyOne(b *testing.B) {
	trees := [2]string{}
	for i := range 1000 {
		for j := range trees {
			config := 0
			if i == 500 {
				config = j
			}
			trees[j] += fmt.Sprintf("- {id: r%d, name: 'give:s%d', config: %d}\n", i, i, config)
		}
	}
	w := newWorld()
	o := w.options()
	o.Event = nil
	h := host.New(o)
	i := 0
	first, second := rows(b, trees[0]), rows(b, trees[1])
	if err := h.Apply(b.Context(), first); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		i++
		list := first
		if i%2 == 1 {
			list = second
		}
		if err := h.Apply(b.Context(), list); err != nil {
			b.Fatal(err)
		}
	}
	if err := h.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// TestSameStoryOfRandomTrees starts and stops random trees twice, with rows
// that take another time: the sorted events are the same.
func TestSameStoryOfRandomTrees(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		trees := []string{drawTree(rt, map[string]bool{}), drawTree(rt, map[string]bool{})}
		times := rapid.SliceOfN(rapid.IntRange(0, 50), 31, 31).Draw(rt, "times")
		var stories [2]string
		for i := range stories {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.delay = func(path string) time.Duration {
					sum := 0
					for _, c := range path {
						sum = sum*7 + int(c)
					}
					return time.Duration(i*times[sum%len(times)]) * time.Millisecond
				}
				h := host.New(w.options())
				for _, tree := range trees {
					if err := h.Apply(t.Context(), rows(t, tree)); err != nil {
						stories[i] += err.Error() + "\n"
					}
					_ = h.Settled(t.Context())
					stories[i] += w.story() + states(h)
				}
				_ = h.Stop(t.Context())
				stories[i] += w.story()
			})
			// The stacks of panics have addresses.
			stories[i] = regexp.MustCompile(`goroutine \d+.*|\+?0x[0-9a-f]+|in goroutine.*`).ReplaceAllString(stories[i], "")
		}
		if diff := cmp.Diff(stories[0], stories[1]); diff != "" {
			rt.Errorf("%s\n%s", strings.Join(trees, "\n"), diff)
		}
	})
}
