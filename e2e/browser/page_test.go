//go:build external

package browser

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dsh/internal/boot/page"
)

// policy is the one under which the page is served.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// views are all views of the page.
var views = []string{"overview", "tree", "layers", "check", "patch", "plugins", "skills", "servers", "history", "profiles"}

// fake serves the page with answers from testdata/api.
type fake struct {
	*httptest.Server

	mu      sync.Mutex
	answers map[string]func(body map[string]any) (int, any) // by method and path; what is not there is a file
	streams map[chan string]bool
	down    bool // nobody is answered
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{answers: map[string]func(map[string]any) (int, any){}, streams: map[chan string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/profile/", f.serve)
	mux.HandleFunc("GET /api/profile/events", f.events)
	mux.Handle("/", http.FileServerFS(page.Files))
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		down := f.down
		f.mu.Unlock()
		if down {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", "no-store")
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.CloseClientConnections(); f.Close() })
	return f
}

// drop breaks all connections, and every new one until it is called with false.
func (f *fake) drop(down bool) {
	f.mu.Lock()
	f.down = down
	f.mu.Unlock()
	if down {
		f.CloseClientConnections()
	}
}

// on answers a request with the function's status and document.
func (f *fake) on(request string, answer func(body map[string]any) (int, any)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[request] = answer
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/api/profile/")
	if layer := r.URL.Query().Get("layer"); layer != "" {
		name += "-" + layer
	}
	f.mu.Lock()
	answer := f.answers[r.Method+" "+name]
	f.mu.Unlock()
	status, document := http.StatusOK, any(nil)
	switch {
	case r.Method == http.MethodPost && r.Header.Get("X-Dsh") != "1":
		status, document = http.StatusForbidden, failure("the header X-Dsh is missing", "")
	case answer != nil:
		var body map[string]any
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				status, document = http.StatusBadRequest, failure(err.Error(), "")
				break
			}
		}
		status, document = answer(body)
	default:
		if strings.HasSuffix(name, "/log") {
			name = "log"
		}
		text, err := os.ReadFile(filepath.Join("testdata", "api", filepath.FromSlash(path.Clean("/"+name))+".json"))
		if err != nil {
			status, document = http.StatusNotFound, failure("there is no "+name, "")
			break
		}
		document = json.RawMessage(text)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(document)
}

func failure(message, hint string) any {
	return map[string]any{"error": map[string]string{"message": message, "hint": hint, "class": "usage"}}
}

func (f *fake) events(w http.ResponseWriter, r *http.Request) {
	stream := make(chan string, 16)
	f.mu.Lock()
	f.streams[stream] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.streams, stream)
		f.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "text/event-stream")
	var state struct{ Rows json.RawMessage }
	if text, err := os.ReadFile("testdata/api/state.json"); err == nil {
		json.Unmarshal(text, &state)
	}
	snapshot, _ := json.Marshal(map[string]any{"rows": state.Rows, "operation": nil, "reload": nil})
	fmt.Fprintf(w, "event: snapshot\ndata: %s\n\n", snapshot)
	w.(http.Flusher).Flush()
	for {
		select {
		case <-r.Context().Done():
			return
		case event := <-stream:
			fmt.Fprint(w, event)
			w.(http.Flusher).Flush()
		}
	}
}

// send sends an event to everybody who listens.
func (f *fake) send(event string, data any) {
	text, _ := json.Marshal(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	for stream := range f.streams {
		stream <- fmt.Sprintf("event: %s\ndata: %s\n\n", event, text)
	}
}

// TestViews looks at each view at both widths in both schemes: it is there, it is accessible, nothing is wider than the screen.
func TestViews(t *testing.T) {
	f := newFake(t)
	f.on("POST patch/check", func(map[string]any) (int, any) {
		return 200, map[string]any{"findings": []any{}, "blocks": false, "changes": map[string]any{"added": []any{}, "removed": []any{}, "changed": []any{}}}
	})
	for _, w := range []width{desktop, phone} {
		for _, s := range []scheme{light, dark} {
			t.Run(w.name+"-"+string(s), func(t *testing.T) {
				b := newTab(t)
				b.look(w, s)
				b.open(f.URL)
				for _, view := range views {
					b.shows(view)
					b.until("!document.querySelector('#main').innerText.includes('Loading')")
					if view == "tree" {
						b.click(`[data-key="/dsh-base/34"]`)
						b.sees("deepseek-v4-pro")
					}
					b.accessible(view)
					if over := js[int](b, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
						b.Errorf("%s is %d pixels wider than the screen", view, over)
					}
					js[any](b, "scrollTo(0, 0)")
					b.keep(view)
				}
			})
		}
	}
}

// TestFilesOfThePage asks for all files that the page has, as the browser does.
func TestFilesOfThePage(t *testing.T) {
	f := newFake(t)
	err := fs.WalkDir(page.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		response, err := http.Get(f.URL + "/" + name)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, response.Status)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
