package profileapi

import (
	"context"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

// hosted is a host as rows see it.
type hosted struct {
	*host.Host
	events slot.Listeners[host.Event]
}

func (h *hosted) Subscribe(f func(host.Event)) (cancel func()) { return h.events.Add(f) }

// mount starts the row on a web server, both in a host.
func (w *world) mount() *hosted {
	w.Helper()
	h := &hosted{}
	h.Host = host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) {
			p, ok := map[string]host.Plugin{Name: Plugin, webserver.Name: webserver.Plugin, "look": {
				Inject: []host.Need{{Service: webserver.Service}},
				Start: func(_ context.Context, r *host.Row) error {
					server, _ := host.Service[webserver.Server](r, webserver.Service)
					r.Logf("%s", server.OpenURL())
					return nil
				},
			}}[name]
			return p, ok
		},
		Slots: map[string]any{slot.Host: slot.Rows(h), slot.Profile: w.api.profile, slot.Keeping: slot.NewKept()},
		Event: h.events.Tell,
	})
	patches, err := compose.ParsePatches(compose.Source{File: "test", Dir: w.TempDir()}, []byte(`- insert:
    - {id: server, name: '`+webserver.Name+`', config: {host: 127.0.0.1, port: 0}}
    - {id: look, name: look}
    - {id: api, name: '`+Name+`', config: {writable: true}}
`))
	must(w.T, err)
	tree := compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, func(string) *compose.PathRule { return nil })
	must(w.T, h.Apply(w.Context(), tree.Rows))
	must(w.T, h.Settled(w.Context()))
	w.Cleanup(func() { must(w.T, h.Stop(context.Background())) })
	return h
}

// address is the one that the web server said last, with the token.
func (h *hosted) address() string {
	lines := h.Log("look")
	return lines[len(lines)-1].Text
}

// TestRowsThatRestart lets the row restart itself, and the server below it, while
// a change of packages runs: who looks on finds the server where it was, with the
// token that it had, and how the change ended.
func TestRowsThatRestart(t *testing.T) {
	for _, path := range []string{"api", "server"} {
		t.Run(path, func(t *testing.T) {
			w := newWorld(t, true)
			h := w.mount()
			address := h.address()
			base, token, _ := strings.Cut(address, "/?token=")
			to, err := url.Parse(base)
			must(t, err)
			w.http.URL = "http://" + to.Host
			bearer := []string{"Authorization", "Bearer " + token}
			code, answer := w.ask(http.MethodPost, "plugins/add", `{"specs": ["@acme/hangs"]}`, bearer...)
			if code != http.StatusAccepted {
				t.Fatalf("adding: %d %v", code, answer)
			}
			since := func() (all string) {
				for _, row := range h.Rows() {
					all += row.State.String() + row.Since.String()
				}
				return all
			}
			before := since()
			if code, answer := w.ask(http.MethodPost, "rows/"+path+"/restart", "{}", bearer...); code != http.StatusAccepted {
				t.Fatalf("restart: %d %v", code, answer)
			}
			for end := time.Now().Add(30 * time.Second); since() == before; runtime.Gosched() {
				if time.Now().After(end) {
					t.Fatal("the row does not restart")
				}
			}
			must(t, h.Settled(t.Context()))
			if again := h.address(); again != address {
				t.Errorf("it was at %s, and is at %s", address, again)
			}
			_, state := w.ask(http.MethodGet, "state", "", bearer...)
			if at(state, "operation.id") != answer["operation"] || at(state, "operation.state") != cancelled {
				t.Errorf("of the operation %v it says %v", answer["operation"], state["operation"])
			}
			for _, line := range h.Log("api") {
				if strings.Contains(line.Text, "restart") {
					t.Errorf("it complains: %s", line.Text)
				}
			}
		})
	}
}

// TestRestartIsBounded asks for a restart that does not come to its end.
func TestRestartIsBounded(t *testing.T) {
	w := newWorld(t, true)
	tasks := make(chan func(context.Context) error, 1)
	w.api.background = func(f func(context.Context) error) { tasks <- f }
	w.post("rows/hello/restart", struct{}{}, http.StatusAccepted)
	task := <-tasks
	hung := &hangingRows{fakeRows: w.rows}
	w.api.rows = hung
	row, stop := context.WithCancel(t.Context())
	stop()
	if err := task(row); err != nil {
		t.Errorf("the row fails with the other one: %v", err)
	}
	if deadline, ok := hung.ctx.Deadline(); !ok || time.Until(deadline) > restartWait {
		t.Errorf("it waits until %v", deadline)
	}
}

// hangingRows restart until they are told not to.
type hangingRows struct {
	*fakeRows
	ctx context.Context
}

func (h *hangingRows) Restart(ctx context.Context, _ string) error {
	h.ctx = ctx
	<-ctx.Done()
	return ctx.Err()
}
