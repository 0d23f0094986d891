package profileapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/e2e/npmtest"
	"dsh/internal/action"
	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
)

// patchText has an override, a row of its own, a secret, an expression, and a
// patch for a row that is not there.
const patchText = `- id: hello
  config:
    greeting: hi
    count: 2
- insert:
    - id: keeper
      name: '@acme/hello'
      config:
        apiKey: hunter2
        home: !!js dshHomePath('x')
- id: gone
  config: {}
`

// world is a profile that runs, as far as the interface can tell.
type world struct {
	*testing.T
	env      action.Env
	name     profile.Name
	registry *npmtest.Server
	rows     *fakeRows
	live     *fakeLive
	api      *api
	http     *httptest.Server
}

// fakeRows is a host with the rows of a table.
type fakeRows struct {
	mu        sync.Mutex
	rows      []host.Status
	log       []host.Line
	followers map[int]func(host.Event)
	restarted chan string
}

func (f *fakeRows) Rows() []host.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]host.Status{}, f.rows...)
}

func (f *fakeRows) Log(string) []host.Line { return f.log }

func (f *fakeRows) Restart(_ context.Context, path string) error {
	f.restarted <- path
	return errors.New("it does not come up")
}

func (f *fakeRows) Subscribe(g func(host.Event)) (cancel func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.followers)
	f.followers[n] = g
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.followers, n)
	}
}

// happen gives a row a new state, or a line.
func (f *fakeRows) happen(e host.Event) {
	f.mu.Lock()
	for i := range f.rows {
		if f.rows[i].Path == e.Path && e.Line == "" {
			f.rows[i].State, f.rows[i].Err = e.State, e.Err
		}
	}
	var told []func(host.Event)
	for _, g := range f.followers {
		told = append(told, g)
	}
	f.mu.Unlock()
	for _, g := range told {
		g(e)
	}
}

type fakeLive struct {
	mu   sync.Mutex
	last slot.Reload
	told func(slot.Reload)
}

func (f *fakeLive) Reload(context.Context) error { return nil }

func (f *fakeLive) Last() slot.Reload {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *fakeLive) Subscribe(g func(slot.Reload)) (cancel func()) {
	f.told = g
	return func() {}
}

func (f *fakeLive) reloaded(r slot.Reload) {
	f.mu.Lock()
	f.last = r
	f.mu.Unlock()
	f.told(r)
}

// someTime is when the rows of worlds began.
var someTime = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

// newWorld makes a home with a profile that has one package, and starts the
// row.
func newWorld(t *testing.T, writable bool) *world {
	t.Helper()
	home, err := profile.ResolveHome(t.TempDir(), os.Getenv)
	must(t, err)
	name, err := profile.ParseName("demo")
	must(t, err)
	w := &world{T: t, name: name}
	w.registry, err = npmtest.New(filepath.Join("..", "..", "..", "..", "e2e", "testdata", "registry"))
	must(t, err)
	t.Cleanup(w.registry.Close)
	w.env = action.Env{
		Home: home, Dir: home.Dir(), Installation: installation.Embedded(), Args: []string{"demo"},
		Getenv: func(key string) string { return map[string]string{"npm_config_userconfig": os.DevNull}[key] },
	}
	w.write("package.json", `{"name": "demo", "private": true, "dependencies": {"@acme/hello": "^1.0.0"}, "dsh": {"profile": {"bundles": ["@acme/hello"]}}}`)
	w.write("cordis.patch.yml", patchText)
	w.write(".npmrc", "registry="+w.registry.URL()+"/\n")
	_, err = action.Install(t.Context(), w.env, action.PluginOptions{Name: name}, install.InstallOptions{})
	must(t, err)

	row := func(path, plugin string, state host.State) host.Status {
		return host.Status{RowSpec: host.RowSpec{Path: path, ID: path, Name: plugin}, State: state, Since: someTime}
	}
	w.rows = &fakeRows{followers: map[int]func(host.Event){}, restarted: make(chan string, 1), rows: []host.Status{
		row("hello", "@acme/hello", host.Active), row("keeper", "@acme/hello", host.Waiting),
	}}
	w.rows.rows[0].Provides = []string{"greeter"}
	w.rows.rows[1].Missing, w.rows.rows[1].Why = []string{"vault"}, "nothing provides vault"
	w.rows.log = []host.Line{{Time: someTime, Text: "fetched http://user:hunter2@127.0.0.1/x"}}
	w.live = &fakeLive{}
	ready := make(chan struct{})
	close(ready)
	dir := home.ProfileDir(name)
	w.api = &api{
		writable: writable, rows: w.rows, live: w.live, ready: ready, end: t.Context(), hub: newHub(), logf: t.Logf, name: name, operations: new(operations), background: func(f func(context.Context) error) { go f(t.Context()) },
		turns: make(chan struct{}, maxTurns),
		profile: &slot.ProfileContext{
			Name: name.String(), Dir: dir, PatchPath: filepath.Join(dir, "cordis.patch.yml"), HomeDir: home.Dir(), Cwd: home.Dir(),
			Version: "0.1.0-dev", Env: w.env, Layers: action.Layers{Name: name},
		},
	}
	w.api.operations.follow(w.api.hub, w.api.logf)
	cancel := w.api.follow()
	t.Cleanup(cancel)
	t.Cleanup(func() { must(t, w.api.operations.halt(context.Background())) })
	w.http = httptest.NewServer(http.StripPrefix("/api/profile", w.api.handler()))
	t.Cleanup(w.http.Close)
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) path(file string) string { return filepath.Join(w.env.Home.ProfileDir(w.name), file) }

func (w *world) write(file, text string) {
	w.Helper()
	must(w.T, os.MkdirAll(filepath.Dir(w.path(file)), 0o755))
	must(w.T, os.WriteFile(w.path(file), []byte(text), 0o644))
}

func (w *world) read(file string) string {
	w.Helper()
	text, err := os.ReadFile(w.path(file))
	must(w.T, err)
	return string(text)
}

// ask sends a request, and returns the status and the JSON of the answer.
func (w *world) ask(method, path, body string, header ...string) (int, map[string]any) {
	w.Helper()
	code, text := w.raw(method, path, body, header...)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		w.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	if strings.Contains(text, "hunter2") && path != "patch" {
		w.Errorf("%s %s shows a secret: %s", method, path, text)
	}
	return code, answer
}

func (w *world) raw(method, path, body string, header ...string) (int, string) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), method, w.http.URL+"/api/profile/"+path, strings.NewReader(body))
	must(w.T, err)
	if method == http.MethodPost {
		r.Header.Set("X-Dsh", "1")
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	must(w.T, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	must(w.T, err)
	if kind := answer.Header.Get("Content-Type"); kind != "application/json" {
		w.Errorf("%s %s: answered %q: %s", method, path, kind, text)
	}
	return answer.StatusCode, string(text)
}

// get reads what has to be there.
func (w *world) get(path string) map[string]any {
	w.Helper()
	code, answer := w.ask(http.MethodGet, path, "")
	if code != http.StatusOK {
		w.Fatalf("GET %s: %d %v", path, code, answer)
	}
	return answer
}

// post sends value, and wants the status.
func (w *world) post(path string, value any, want int) map[string]any {
	w.Helper()
	body, err := json.Marshal(value)
	must(w.T, err)
	code, answer := w.ask(http.MethodPost, path, string(body))
	if code != want {
		w.Fatalf("POST %s %s: %d %v, want %d", path, body, code, answer, want)
	}
	return answer
}

// run starts an operation, and waits for its end.
func (w *world) run(path string, value any) map[string]any {
	w.Helper()
	id := w.post(path, value, http.StatusAccepted)["operation"].(string)
	return w.wait(id)
}

func (w *world) wait(id string) map[string]any {
	w.Helper()
	op, err := w.api.operations.find(id)
	must(w.T, err)
	select {
	case <-op.ended:
	case <-time.After(time.Minute):
		w.Fatalf("operation %s does not end: %v", id, w.get("operations/"+id))
	}
	return w.get("operations/" + id)
}

// at is what is at keys, separated by dots, of an answer.
func at(v any, path string) any {
	for key := range strings.SplitSeq(path, ".") {
		switch there := v.(type) {
		case map[string]any:
			v = there[key]
		case []any:
			var n int
			if _, err := fmt.Sscan(key, &n); err != nil || n >= len(there) {
				return nil
			}
			v = there[n]
		default:
			return nil
		}
	}
	return v
}

// normal is an answer as JSON in which nothing depends on the machine.
func (w *world) normal(answer any) string {
	w.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	must(w.T, e.Encode(answer))
	text := strings.ReplaceAll(b.String(), w.env.Home.Dir(), "/home/you/.dsh")
	return strings.ReplaceAll(text, w.registry.URL(), "http://registry.example")
}
