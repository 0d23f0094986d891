package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

func tree(t *testing.T, text string) *compose.Tree {
	t.Helper()
	patches, err := compose.ParsePatches(compose.Source{File: "test.yml"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, nil)
}

// engine is a composer and a host in memory.
type engine struct {
	tree    *compose.Tree
	used    *compose.Tree
	broken  error // of composing
	refused error // of applying
	applied []string
}

func (e *engine) compose(context.Context) (Composition, error) {
	tree := e.tree
	return Composition{Tree: tree, Use: func(_ context.Context, changed bool) error {
		if changed {
			var names []string
			for _, row := range tree.Rows {
				names = append(names, rowName(row))
			}
			e.applied = append(e.applied, strings.Join(names, " "))
			if e.refused != nil {
				return e.refused
			}
		}
		e.used = tree
		return nil
	}}, e.broken
}

func TestReload(t *testing.T) {
	const one = "- insert: [{id: a, name: x}, {id: b, name: y}]\n"
	const two = "- insert: [{id: a, name: x, config: {k: 1}}, {name: z}]\n"
	bad := errors.New("bad edit")
	var told []slot.Reload
	e := &engine{tree: tree(t, one)}
	l := New(e.tree, e.compose)
	cancel := l.Subscribe(func(r slot.Reload) { told = append(told, r) })
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()

	steps := []struct {
		name    string
		do      func()
		err     error
		count   int // of what is told until then
		changed []string
		applied int
	}{
		{"nothing changed", func() {}, nil, 0, nil, 0},
		{"a bad edit", func() { e.broken = bad }, bad, 1, nil, 0},
		{"taken back", func() { e.broken = nil }, nil, 2, nil, 0},
		{"an edit that does not start", func() { e.tree, e.refused = tree(t, two), bad }, bad, 3, nil, 1},
		{"a good edit", func() { e.refused = nil }, nil, 4, []string{"a", "z", "b"}, 2},
		{"nothing changed again", func() { e.tree = tree(t, two) }, nil, 4, []string{"a", "z", "b"}, 2},
		{"the first again", func() { e.tree = tree(t, one) }, nil, 5, []string{"a", "b", "z"}, 3},
	}
	for _, step := range steps {
		step.do()
		err := l.Reload(ctx)
		last := l.Last()
		if !errors.Is(err, step.err) || len(told) != step.count || last.Count != step.count || len(e.applied) != step.applied ||
			!slices.Equal(last.Changed, step.changed) || step.count > 0 && !errors.Is(last.Err, step.err) {
			t.Errorf("%s: got %v, %d told, last %+v, applied %q", step.name, err, len(told), last, e.applied)
		}
		// Also when no row differs: where rows come from may.
		if err == nil && (e.used != e.tree || l.Tree() != e.tree) {
			t.Errorf("%s: another composition runs", step.name)
		}
	}
	if got := e.applied[1:]; !slices.Equal(got, []string{"a z", "a b"}) {
		t.Errorf("applied %q", got)
	}

	cancel()
	e.broken = bad
	if err := l.Reload(ctx); !errors.Is(err, bad) || len(told) != 5 {
		t.Errorf("after the subscription: %v, %d told", err, len(told))
	}
	end()
	<-ended
	if err := l.Reload(context.Background()); err == nil {
		t.Error("a reload after the end is none")
	}
}

func TestReloadsThatWaitAreAnswered(t *testing.T) {
	e := &engine{tree: tree(t, "- insert: []\n")}
	l := New(e.tree, e.compose)
	answers := make(chan error)
	for range 5 {
		go func() { answers <- l.Reload(t.Context()) }()
	}
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); l.Run(ctx) }()
	for range 5 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	end()
	<-ended
}
