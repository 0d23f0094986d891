package host_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
)

// rows is the rows of a YAML list.
func rows(t interface {
	Helper()
	Fatal(...any)
}, text string) []compose.Row {
	t.Helper()
	indented := "- insert:\n"
	for line := range strings.Lines(strings.TrimLeft(text, "\n")) {
		indented += "  " + line
	}
	patches, err := compose.ParsePatches(compose.Source{File: "test"}, []byte(indented+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, nil).Rows
}

// world has the plugins of a test, which are described by their names: words
// like need:a, want:b (optional), give:c, may:d (listed, not provided), slow:20ms,
// slowstop:20ms, and those of behave.
type world struct {
	mu      sync.Mutex
	active  map[string]int       // starts without an end, by path
	starts  map[string]int       // by path
	broken  map[string]bool      // paths that fail when they start
	running map[string]*host.Row // by path
	events  []host.Event
	seen    map[string]any // what a row saw: its services, config
	over    []string       // what went against the laws
	// delay is how long a row's start and stop take, besides what its name says.
	delay func(path string) time.Duration
}

func newWorld() *world {
	return &world{
		active: map[string]int{}, starts: map[string]int{}, broken: map[string]bool{}, running: map[string]*host.Row{},
		seen: map[string]any{}, delay: func(string) time.Duration { return 0 },
	}
}

func (w *world) options() host.Options {
	return host.Options{Registry: w.plugin, Event: w.event, Slots: map[string]any{"slot": "from dsh"}}
}

func (w *world) event(e host.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *world) plugin(name string) (host.Plugin, bool) {
	if strings.HasPrefix(name, "unknown") {
		return host.Plugin{}, false
	}
	var p host.Plugin
	var give []string
	var slow, slowStop time.Duration
	words := map[string]bool{}
	for word := range strings.FieldsSeq(name) {
		kind, value, _ := strings.Cut(word, ":")
		switch kind {
		case "need":
			p.Inject = append(p.Inject, host.Need{Service: value})
		case "want":
			p.Inject = append(p.Inject, host.Need{Service: value, Optional: true})
		case "give":
			give = append(give, value)
			p.Provides = append(p.Provides, value)
		case "may":
			p.Provides = append(p.Provides, value)
		case "slow":
			slow, _ = time.ParseDuration(value)
		case "slowstop":
			slowStop, _ = time.ParseDuration(value)
		default:
			words[word] = true
		}
	}
	needs := p.Inject
	p.Start = func(ctx context.Context, r *host.Row) error {
		w.begin(r, needs)
		if words["port"] { // of which there is one
			w.mu.Lock()
			holder := w.seen["port"]
			w.seen["port"] = r.Path()
			w.mu.Unlock()
			if holder != nil {
				return fmt.Errorf("the port is taken by %s", holder)
			}
			r.OnStop(func(context.Context) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				delete(w.seen, "port")
				return nil
			})
		}
		r.OnStop(func(ctx context.Context) error {
			time.Sleep(slowStop + w.delay(r.Path()))
			w.end(r)
			if words["badstop"] {
				return errors.New("bad stop")
			}
			return nil
		})
		for _, service := range give {
			r.Provide(service, r.Path())
		}
		if words["stuck"] {
			select {} // never returns; not for a synctest bubble that ends
		}
		select {
		case <-time.After(slow + w.delay(r.Path())):
		case <-ctx.Done():
			return ctx.Err()
		}
		if words["panic"] {
			panic("out of cheese")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if words["fail"] || w.broken[r.Path()] {
			return errors.New("does not start")
		}
		return nil
	}
	return p, true
}

func (w *world) begin(r *host.Row, needs []host.Need) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.starts[r.Path()]++
	w.active[r.Path()]++
	if w.active[r.Path()] > 1 {
		w.over = append(w.over, r.Path()+" runs twice")
	}
	w.running[r.Path()] = r
	for _, n := range needs {
		provider, ok := host.Service[string](r, n.Service)
		if !ok && !n.Optional {
			w.over = append(w.over, r.Path()+" runs without "+n.Service)
		}
		if ok && n.Service != "slot" && w.active[provider] != 1 {
			w.over = append(w.over, r.Path()+" runs with what "+provider+" provides, which does not run")
		}
		w.seen[r.Path()+" "+n.Service] = provider
	}
	w.seen[r.Path()+" config"] = compose.Show(r.Config())
}

func (w *world) end(r *host.Row) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active[r.Path()]--
	delete(w.running, r.Path())
}

// row is the instance of a path that runs.
func (w *world) row(path string) *host.Row {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.running[path]
}

func (w *world) startsOf(path string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.starts[path]
}

// story is the events since the last call, sorted.
func (w *world) story() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := slices.Clone(w.events)
	w.events = nil
	host.SortEvents(events)
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s %s", e.Path, e.State)
		switch {
		case e.Line != "":
			fmt.Fprintf(&b, " | %s", e.Line)
		case e.Err != nil:
			fmt.Fprintf(&b, ": %v", e.Err)
		case e.Missing != nil:
			fmt.Fprintf(&b, " for %s", strings.Join(e.Missing, ", "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// laws fails the test if a law was broken, or if something runs still.
func (w *world) laws(t testing.TB, stopped bool) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, law := range w.over {
		t.Error(law)
	}
	if !stopped {
		return
	}
	for _, path := range slices.Sorted(maps.Keys(w.active)) {
		if w.active[path] != 0 {
			t.Errorf("%s runs still", path)
		}
	}
}

func states(h *host.Host) string {
	var b strings.Builder
	for _, row := range h.Rows() {
		fmt.Fprintf(&b, "%s %s", row.Path, row.State)
		if row.Err != nil {
			fmt.Fprintf(&b, ": %v", row.Err)
		}
		if row.Why != "" {
			fmt.Fprintf(&b, ": %s", row.Why)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func text(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
