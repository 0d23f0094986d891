package boot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/profile"
)

// going is a run that goes on beside the test.
type going struct {
	t       *testing.T
	signals chan os.Signal
	ended   chan int
	dir     string // of the profile

	mu   sync.Mutex
	said []string
}

// goes starts a profile of the rows that the patch inserts.
func goes(t *testing.T, patch string) *going {
	t.Helper()
	req := request(t, "mine")
	g := &going{t: t, signals: make(chan os.Signal, 1), ended: make(chan int, 1), dir: req.Env.Home.ProfileDir(req.Layers.Name)}
	req.Signals = g.signals
	req.Prepare = func(context.Context) error {
		if _, err := profile.OpenOrCreateForReading(req.Env.Home, req.Layers.Name); err != nil {
			return err
		}
		g.write("package.json", "{}")
		g.write("cordis.patch.yml", patch)
		return nil
	}
	say := func(kind string) func(string) {
		return func(text string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.said = append(g.said, kind+text)
		}
	}
	go func() {
		code, err := Run(context.Background(), req, Log{Notice: say("notice: "), Warn: say("warning: "), News: say(""), Print: func(string, bool) {}})
		if err != nil {
			t.Error(err)
		}
		g.ended <- code
	}()
	g.says("mine runs with")
	return g
}

func (g *going) write(name, text string) {
	g.t.Helper()
	// At once, as editors do: there is no time in these tests for more writes.
	file := filepath.Join(g.dir, name)
	if err := errors.Join(os.WriteFile(file+".new", []byte(text), 0o644), os.Rename(file+".new", file)); err != nil {
		g.t.Error(err)
	}
}

// says waits until something was said.
func (g *going) says(text string) {
	g.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		g.mu.Lock()
		said := strings.Join(g.said, "\n")
		g.mu.Unlock()
		if strings.Contains(said, text) {
			return
		}
		if time.Now().After(deadline) {
			g.t.Fatalf("no %q in\n%s", text, said)
		}
	}
}

func TestRunReloadsAndEnds(t *testing.T) {
	const rows = "- insert: [{id: hmr, name: '@deepseek-ai/dsh-hmr', config: {root: [], debounce: 1}}, {id: scope, name: dsh:scope}]\n"
	g := goes(t, rows)
	g.write("cordis.patch.yml", rows+"- insert: [{id: settings, name: '@deepseek-ai/dsh-settings-file'}]\n")
	g.says("mine: applied the change of settings")
	g.write("cordis.patch.yml", rows+"- {id: scope, config: {allows: []}}\n")
	g.says("warning: the files of mine do not apply, and what runs stays as it is: ")
	// The row that follows the files is one that an edit can change.
	g.write("cordis.patch.yml", rows+"- {id: hmr, config: {root: [], debounce: 2}}\n")
	g.says("mine: applied the change of hmr, settings")
	for i := range 3 {
		g.write("cordis.patch.yml", rows+fmt.Sprintf("- {id: hmr, config: {root: [], debounce: %d}}\n- insert: [{id: s%[1]d, name: 'cordis:group', config: []}]\n", i+3))
		g.says(fmt.Sprintf("mine: applied the change of hmr, s%d", i+3))
	}
	g.signals <- syscall.SIGTERM
	if code := <-g.ended; code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, line := range g.said {
		if strings.Contains(line, "did not stop") {
			t.Error(line)
		}
	}
}

func TestRunEndsWhileARowIsSwitchedOff(t *testing.T) {
	const hmr = "- insert: [{id: scope, name: dsh:scope}, {id: hmr, name: '@deepseek-ai/dsh-hmr', config: {root: [], debounce: 0}}]\n"
	g := goes(t, hmr)
	g.write("cordis.patch.yml", hmr+"- {id: hmr, disabled: true}\n")
	g.says("mine: applied the change of hmr")
	g.signals <- os.Interrupt
	if code := <-g.ended; code != 130 {
		t.Errorf("exit code %d", code)
	}
}

// prepared is a run before its first row, of a profile with one program.
func prepared(t *testing.T) (r *run, warnings *[]string) {
	t.Helper()
	req := request(t, "mine")
	dir := req.Env.Home.ProfileDir(req.Layers.Name)
	req.Prepare = func(context.Context) error {
		_, err := profile.OpenOrCreateForReading(req.Env.Home, req.Layers.Name)
		return err
	}
	pkg := filepath.Join(dir, "node_modules", "prog")
	for file, text := range map[string]string{
		filepath.Join(dir, "package.json"):     "{}",
		filepath.Join(dir, "cordis.patch.yml"): "- insert: [{id: p, name: prog}, {id: scope, name: dsh:scope}]\n",
		filepath.Join(pkg, "package.json"):     `{"name": "prog", "version": "1.0.0", "dsh": {"plugin": {"exec": "./run"}}}`,
		filepath.Join(pkg, "run"):              "no script",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	quiet := func(string) {}
	warnings = new([]string)
	r = &run{req: req, log: Log{Notice: quiet, News: quiet, Warn: func(text string) { *warnings = append(*warnings, text) }}}
	r.ending = newEnding(nil, r.interruptIsOurs)
	if err := r.prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, warnings
}

// A program may fail at any time of a reload, and the profile ends with it.
func TestAProgramIsRequiredWhileTheFilesAreRead(t *testing.T) {
	r, _ := prepared(t)
	row := host.RowSpec{ID: "p", Name: "prog"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 20 {
			c, err := r.recompose(t.Context())
			if err == nil {
				err = c.Use(t.Context(), false)
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for asked := 0; ; asked++ {
		if !r.isRequired(row) {
			t.Fatalf("the program is not required, asked %d times", asked)
		}
		select {
		case <-done:
			return
		default:
		}
	}
}

// What is told of a row that failed is what happened, and not what it does
// meanwhile.
func TestARowThatFailedIsToldAsItWas(t *testing.T) {
	r, warnings := prepared(t)
	cause := errors.New("broke")
	r.settled.Store(true)
	r.event(host.Event{Path: "scope", Row: host.RowSpec{Path: "scope", ID: "scope", Name: "dsh:scope", Origin: "x"}, State: host.Failed, Err: cause})
	if len(*warnings) != 1 || (*warnings)[0] != "scope: dsh:scope (from x): broke" {
		t.Errorf("warned %q", *warnings)
	}
	r.event(host.Event{Path: "p", Row: host.RowSpec{Path: "p", ID: "p", Name: "prog", Origin: "x"}, State: host.Failed, Err: cause})
	if why, ended := r.ending.wait(t.Context(), nil); !ended || !errors.Is(why.err, cause) {
		t.Errorf("got %+v", why)
	}
}

// The host tells with every event which row it is of.
func TestEventsHaveTheirRow(t *testing.T) {
	r, _ := prepared(t)
	var events []host.Event
	h := host.New(host.Options{
		Registry: func(string) (host.Plugin, bool) {
			return host.Plugin{Start: func(context.Context, *host.Row) error { return errors.New("broke") }}, true
		},
		Event: func(e host.Event) { events = append(events, e) },
	})
	if err := errors.Join(h.Apply(t.Context(), r.current.Load().tree.Rows), h.Settled(t.Context())); err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, e := range events {
		if e.Row.Path != e.Path {
			t.Errorf("%s: the row is %+v", e.Path, e.Row)
		}
		if e.State == host.Failed {
			failed[e.Row.ID] = e.Row.Name
		}
	}
	if len(failed) != 2 || failed["p"] != "prog" || failed["scope"] != "dsh:scope" {
		t.Errorf("got %v", failed)
	}
	if err := h.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
