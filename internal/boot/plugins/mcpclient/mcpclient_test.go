package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/mcp"
)

// fake is a server that tests steer.
type fake struct {
	mu       sync.Mutex
	broken   error // why it cannot be connected
	unlisted error // why it cannot list
	names    []string
	tries    int
	times    []time.Duration // of the tries, since the first
	began    time.Time
	current  *connection
	options  mcp.Options
	stops    int
	gate     chan struct{} // listing waits for it, whatever its context says
}

type connection struct {
	server *fake
	done   chan struct{}
	once   sync.Once
}

func (f *fake) connect(_ context.Context, _ mcp.Server, o mcp.Options) (session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.tries == 0 {
		f.began = time.Now()
	}
	f.tries++
	f.times = append(f.times, time.Since(f.began))
	if f.broken != nil {
		return nil, f.broken
	}
	f.options, f.current = o, &connection{server: f, done: make(chan struct{})}
	return f.current, nil
}

func (c *connection) Tools(context.Context) (list []mcp.Tool, err error) {
	c.server.mu.Lock()
	gate := c.server.gate
	c.server.mu.Unlock()
	if gate != nil {
		<-gate
	}
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	for _, name := range c.server.names {
		list = append(list, mcp.Tool{Name: name})
	}
	return list, c.server.unlisted
}

func (c *connection) Call(ctx context.Context, tool string, _ json.RawMessage) (*mcp.Result, error) {
	if tool == "slow" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &mcp.Result{Content: []json.RawMessage{json.RawMessage(`"` + tool + `"`)}}, nil
}

func (c *connection) Done() <-chan struct{} { return c.done }
func (c *connection) Lost() error           { return errors.New("it is gone") }
func (c *connection) Stop(context.Context) error {
	c.once.Do(func() { close(c.done) })
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	c.server.stops++
	return nil
}

// set changes the server.
func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// lose loses the connection.
func (f *fake) lose() {
	f.mu.Lock()
	c := f.current
	f.mu.Unlock()
	c.once.Do(func() { close(c.done) })
}

func (f *fake) tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

// world is a host with rows of these configs, by their ids.
type world struct {
	t        *testing.T
	host     *host.Host
	registry *tools.Registry
	warnings []string // of the user
}

func run(t *testing.T, f *fake, configs map[string]string) *world {
	t.Helper()
	w := &world{t: t}
	plugins := map[string]host.Plugin{
		Name: newPlugin(f.connect),
		tools.Name: {Provides: []string{tools.Service}, Start: func(_ context.Context, r *host.Row) error {
			w.registry = tools.New()
			r.Provide(tools.Service, w.registry)
			return nil
		}},
	}
	warn := slot.WarnFunc(func(line string) {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.warnings = append(w.warnings, line)
	})
	w.host = host.New(host.Options{Slots: map[string]any{slot.Warn: warn, slot.Profile: &slot.ProfileContext{Name: "mine", Cwd: "/", Version: "9.8.7"}}, Registry: func(name string) (host.Plugin, bool) { p, ok := plugins[name]; return p, ok }})
	text := "- insert:\n    - {id: tools, name: '" + tools.Name + "'}\n"
	ids := []string{}
	for id := range configs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		text += fmt.Sprintf("    - {id: %s, name: '%s', config: {serverName: %s, transport: stdio, command: x%s}}\n", id, Name, id, configs[id])
	}
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: t.TempDir()}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	if err := w.host.Apply(t.Context(), tree.Rows); err != nil {
		t.Fatal(err)
	}
	if err := w.host.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return w
}

func (w *world) end() {
	if err := w.host.Stop(context.Background()); err != nil {
		w.t.Errorf("stop: %v", err)
	}
	if left := w.registry.List(); len(left) > 0 {
		w.t.Errorf("tools are left: %v", left)
	}
	if left := w.registry.Servers(); len(left) > 0 {
		w.t.Errorf("servers are left: %v", left)
	}
}

func (w *world) names() (names []string) {
	for _, t := range w.registry.List() {
		names = append(names, t.Name)
	}
	return names
}

func (w *world) status(name string) tools.ServerStatus {
	w.t.Helper()
	s, ok := w.registry.Server(name)
	if !ok {
		w.t.Fatalf("there is no server %s", name)
	}
	return s.Status()
}

func (w *world) row(id string) host.Status {
	for _, s := range w.host.Rows() {
		if s.ID == id {
			return s
		}
	}
	return host.Status{}
}

func (w *world) want(names ...string) {
	w.t.Helper()
	if got := w.names(); !slices.Equal(got, names) {
		w.t.Errorf("tools are %q, want %q", got, names)
	}
}

func TestPublishesAndTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"b", "a"}}
		w := run(t, f, map[string]string{"one": ""})
		w.want("mcp__one__a", "mcp__one__b")
		if s := w.status("one"); s.State != tools.Connected || s.Row != "one" || len(s.Tools) != 2 {
			t.Errorf("status is %+v", s)
		}
		result, err := w.registry.Call(t.Context(), "mcp__one__a", nil)
		if err != nil || string(result.Content[0]) != `"a"` {
			t.Errorf("the call gave %v, %v", result, err)
		}
		w.end()
		if f.stops == 0 {
			t.Error("the connection was not stopped")
		}
	})
}

func TestBackoffWithinTheBudgetOfOneOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}}
		w := run(t, f, map[string]string{"one": ", reconnect: {initialDelayMs: 100, maxDelayMs: 1000, maxAttempts: 6}"})
		f.set(func(f *fake) { f.broken = errors.New("no route") })
		f.lose()
		time.Sleep(150 * time.Millisecond) // one attempt was made
		synctest.Wait()
		w.want("mcp__one__a") // the last good set stays
		if _, err := w.registry.Call(t.Context(), "mcp__one__a", nil); err == nil || !strings.Contains(err.Error(), "no route") {
			t.Errorf("a call during the outage gave %v", err)
		}
		if s := w.status("one"); s.State != tools.Connecting || !strings.Contains(s.Error, "no route") {
			t.Errorf("status is %+v", s)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []time.Duration{0, 100, 300, 700, 1500, 2500, 3500} // 100, 200, 400, 800, 1000, 1000
		for i := range want {
			want[i] *= time.Millisecond
		}
		if !slices.Equal(f.times, want) {
			t.Errorf("attempts were at %v, want %v", f.times, want)
		}
		w.want()
		if s := w.status("one"); s.State != tools.Down || w.row("one").State != host.Active {
			t.Errorf("status is %+v, row %v", s, w.row("one").State)
		}
		// A new start of the row tries again.
		f.set(func(f *fake) { f.broken = nil })
		if err := w.host.Restart(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		if err := w.host.Settled(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.want("mcp__one__a")
		w.end()
	})
}

func TestBudgetStartsAnewAfterALongLife(t *testing.T) {
	for name, c := range map[string]struct {
		life time.Duration
		down bool
	}{"short lives": {500 * time.Millisecond, true}, "long lives": {2 * time.Second, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{names: []string{"a"}}
				w := run(t, f, map[string]string{"one": ", reconnect: {initialDelayMs: 10, maxDelayMs: 1000, maxAttempts: 3}"})
				for range 5 {
					time.Sleep(c.life)
					f.lose()
					time.Sleep(300 * time.Millisecond)
					synctest.Wait()
				}
				if down := w.status("one").State == tools.Down; down != c.down {
					t.Errorf("state is %v after %d tries", w.status("one").State, f.tried())
				}
				w.end()
			})
		})
	}
}

func TestNoReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}}
		w := run(t, f, map[string]string{"one": ", reconnect: {enabled: false}"})
		f.lose()
		time.Sleep(time.Hour)
		synctest.Wait()
		w.want()
		if f.tried() != 1 || w.status("one").State != tools.Down {
			t.Errorf("%d tries, %v", f.tried(), w.status("one").State)
		}
		w.end()
	})
}

func TestStart(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		change func(*fake)
		state  host.State
	}{
		"cannot connect":        {"", func(f *fake) { f.broken = errors.New("no route") }, host.Active},
		"must connect":          {", failOnStartupError: true", func(f *fake) { f.broken = errors.New("no route") }, host.Failed},
		"cannot list":           {"", func(f *fake) { f.unlisted = errors.New("no list") }, host.Active},
		"must list":             {", failOnStartupError: true", func(f *fake) { f.unlisted = errors.New("no list") }, host.Failed},
		"unknown key":           {", colour: red", func(*fake) {}, host.Failed},
		"comes up a bit later":  {"", func(f *fake) { f.broken = errors.New("no route") }, host.Active},
		"two tools of one name": {", failOnStartupError: true", func(f *fake) { f.names = []string{"a", "a"} }, host.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{names: []string{"a"}}
				c.change(f)
				w := run(t, f, map[string]string{"one": c.config})
				if got := w.row("one"); got.State != c.state {
					t.Errorf("row is %v: %v", got.State, got.Err)
				}
				w.want()
				if strings.Contains(name, "later") {
					f.set(func(f *fake) { f.broken = nil })
					time.Sleep(time.Second)
					synctest.Wait()
					w.want("mcp__one__a")
				}
				w.end()
			})
		})
	}
}

func TestToolsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}}
		w := run(t, f, map[string]string{"one": ""})
		tell := func(change func(*fake)) {
			f.set(change)
			f.options.Changed()
			synctest.Wait()
		}
		tell(func(f *fake) { f.names = []string{"a", "b"} })
		w.want("mcp__one__a", "mcp__one__b")
		tell(func(f *fake) { f.unlisted = errors.New("no list") })
		w.want("mcp__one__a", "mcp__one__b")
		tell(func(f *fake) { f.unlisted, f.names = nil, []string{"c", "c"} })
		w.want("mcp__one__a", "mcp__one__b")
		tell(func(f *fake) { f.names = []string{"c"} })
		w.want("mcp__one__c")
		if w.status("one").State != tools.Connected {
			t.Error("a failed listing ended the connection")
		}
		w.end()
	})
}

func TestTakenNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}}
		w := run(t, f, map[string]string{"one": ""})
		if err := w.registry.Publish("other", []tools.Tool{{Name: "mcp__one__b"}}); err != nil {
			t.Fatal(err)
		}
		// One name of the new set is somebody else's: all of it is rolled back.
		f.set(func(f *fake) { f.names = []string{"a", "b", "c"} })
		f.options.Changed()
		synctest.Wait()
		w.want("mcp__one__a", "mcp__one__b")
		if err := w.registry.Publish("other", nil); err != nil {
			t.Fatal(err)
		}
		w.end()
	})
}

func TestServerNamesAreUnique(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}}
		w := run(t, f, map[string]string{"one": ""})
		if _, err := w.registry.AddServer("one", &client{}); err == nil || !strings.Contains(err.Error(), "row one") {
			t.Errorf("got %v", err)
		}
		w.end()
	})
}

func TestCallTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"slow"}}
		w := run(t, f, map[string]string{"one": ", toolCallTimeoutMs: 1500"})
		began := time.Now()
		_, err := w.registry.Call(t.Context(), "mcp__one__slow", nil)
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != 1500*time.Millisecond {
			t.Errorf("%v after %v", err, took)
		}
		w.end()
	})
}

// TestStopEndsAPendingReconnect stops while a wait of an hour runs.
func TestStopEndsAPendingReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{broken: errors.New("no route")}
		w := run(t, f, map[string]string{"one": ", reconnect: {initialDelayMs: 3600000, maxDelayMs: 3600000}"})
		began := time.Now()
		w.end()
		if took := time.Since(began); took > time.Second || f.tried() != 1 {
			t.Errorf("it took %v, with %d tries", took, f.tried())
		}
	})
}

// TestWarnsOnceOfEachOutage warns at once of a server that does not come up, and of
// one that is lost when nobody tries it any more.
func TestWarnsOnceOfEachOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{names: []string{"a"}, broken: errors.New("no route")}
		w := run(t, f, map[string]string{"one": ", reconnect: {initialDelayMs: 100, maxDelayMs: 1000, maxAttempts: 3}"})
		told := func(want ...string) {
			t.Helper()
			time.Sleep(time.Minute)
			synctest.Wait()
			f.set(func(*fake) {
				if !slices.Equal(w.warnings, want) {
					t.Errorf("warnings are %q, want %q", w.warnings, want)
				}
			})
		}
		failed := "no route; dsh mcp check one --profile mine tells more"
		told(failed)
		f.set(func(f *fake) { f.broken = nil })
		if err := w.host.Restart(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		told(failed)
		f.lose() // and it comes back
		told(failed)
		f.set(func(f *fake) { f.broken = errors.New("no way") })
		f.lose()
		told(failed, "no way; dsh mcp check one --profile mine tells more")
		w.end()
	})
}

// TestNothingIsPublishedAfterTheEnd has a server that answers only when its row has
// given back all that it had.
func TestNothingIsPublishedAfterTheEnd(t *testing.T) {
	for name, ask := range map[string]func(*fake){
		"its tools changed": func(f *fake) { f.options.Changed() },
		"it came back":      (*fake).lose,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{names: []string{"a"}}
				w := run(t, f, map[string]string{"one": ", reconnect: {initialDelayMs: 10, maxDelayMs: 10}"})
				w.want("mcp__one__a")
				gate := make(chan struct{})
				f.set(func(f *fake) { f.gate = gate })
				ask(f)
				time.Sleep(time.Second)
				stopped := make(chan struct{})
				go func() { w.end(); close(stopped) }()
				synctest.Wait()
				w.want() // the row has given its tools back, and waits for the answer
				close(gate)
				<-stopped
				synctest.Wait()
				w.want()
			})
		})
	}
}

func TestPublicName(t *testing.T) {
	fits := regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	long := strings.Repeat("x", 100)
	for _, c := range []struct{ server, tool, want string }{
		{"git", "status", "mcp__git__status"},
		{"git", "read-file_2", "mcp__git__read-file_2"},
		{"git", "a.b", "mcp__git__a_b_"},
		{"git", "a/b", "mcp__git__a_b_"},
		{"git", "é", "mcp__git___"},
		{"git", "\xff", "mcp__git___"},
		{"git", "", "mcp__git__"},
		{"git", strings.Repeat("x", 54), "mcp__git__" + strings.Repeat("x", 54)},
		{"git", long, "mcp__git__xxx"},
	} {
		got := PublicName(c.server, c.tool)
		if !strings.HasPrefix(got, c.want) || !fits.MatchString(got) {
			t.Errorf("%q is %s, want %s…", c.tool, got, c.want)
		}
		changed := c.tool != "" && got != "mcp__"+c.server+"__"+c.tool
		if changed != regexp.MustCompile(`_[0-9a-f]{12}$`).MatchString(got) {
			t.Errorf("%q is %s: a changed name ends in a hash, and no other", c.tool, got)
		}
	}
	if PublicName("s", "a.b") == PublicName("s", "a/b") || PublicName("s", long+"1") == PublicName("s", long+"2") {
		t.Error("two tools have one name")
	}
}

func TestServersAreToldTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		w := run(t, f, map[string]string{"a": ""})
		defer w.end()
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.options.Version != "9.8.7" {
			t.Errorf("servers are told %q", f.options.Version)
		}
	})
}
