package registry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

func pageClient(t *testing.T, address, npmrc string, opts Options) *Client {
	t.Helper()
	config, err := LoadConfig(func(string) ([]byte, error) {
		return []byte("registry=" + address + "\n" + npmrc + "\nfetch-retries=1\nfetch-retry-mintimeout=1\nfetch-retry-maxtimeout=2\n"), nil
	}, func(string) string { return "" }, "npmrc")
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(config, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func TestPage(t *testing.T) {
	var tokens []string
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tokens = append(tokens, r.Header.Get("Authorization"))
		_, _ = w.Write([]byte("other"))
	}))
	defer other.Close()
	now := time.Date(2026, 9, 1, 12, 0, 0, 0, time.UTC)
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.Header().Set("Date", now.Format(http.TimeFormat))
		switch r.URL.Path {
		case "/tagged":
			w.Header().Set("ETag", `"one"`)
			if r.Header.Get("If-None-Match") == `"one"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		case "/dated":
			w.Header().Set("Last-Modified", now.Add(-time.Hour).Format(http.TimeFormat))
			if r.Header.Get("If-Modified-Since") != "" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		case "/young":
			w.Header().Set("Last-Modified", now.Format(http.TimeFormat))
		case "/away":
			http.Redirect(w, r, other.URL+"/x", http.StatusFound)
			return
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
			return
		case "/busy":
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		case "/cut":
			w.Header().Set("Content-Length", "100")
		}
		_, _ = w.Write([]byte("text"))
	}))
	defer server.Close()
	client := pageClient(t, server.URL, strings.TrimPrefix(server.URL, "http:")+"/:_authToken=SESAME", Options{})
	get := func(path string, have Page) (Page, error) {
		return client.Page(t.Context(), "get it", server.URL+path, have, 10)
	}
	for path, want := range map[string]Page{
		"/tagged": {ETag: `"one"`}, "/dated": {Modified: now.Add(-time.Hour).Format(http.TimeFormat)}, "/young": {}, "/plain": {},
	} {
		page, err := get(path, Page{})
		if err != nil || string(page.Text) != "text" || page.ETag != want.ETag || page.Modified != want.Modified || page.Unchanged {
			t.Errorf("%s: %+v, %v", path, page, err)
		}
		again, err := get(path, page)
		if still := want.ETag+want.Modified != ""; err != nil || again.Unchanged != still || still != (again.Text == nil) {
			t.Errorf("%s again: %+v, %v", path, again, err)
		}
	}
	if page, err := get("/away", Page{}); err != nil || string(page.Text) != "other" || len(tokens) != 1 || tokens[0] != "" {
		t.Errorf("elsewhere: %+v, %v, tokens %q", page, err, tokens)
	}
	for path, want := range map[string]string{
		"/gone": "there is nothing at " + server.URL + "/gone", "/busy": "HTTP 503", "/cut": "the connection ended early",
	} {
		asked = 0
		_, err := get(path, Page{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Network {
			t.Errorf("%s: %v", path, err)
		}
		if (asked == 1) != (path == "/gone") {
			t.Errorf("%s: asked %d times", path, asked)
		}
	}
	if _, err := client.Page(t.Context(), "get it", server.URL+"/plain", Page{}, 3); err == nil || !strings.Contains(err.Error(), "longer than 3 bytes") {
		t.Errorf("too long: %v", err)
	}
	offline := pageClient(t, server.URL, "", Options{Mode: Offline})
	if _, err := offline.Page(t.Context(), "get it", server.URL+"/plain", Page{}, 10); fault.ClassOf(err) != fault.Network {
		t.Errorf("offline: %v", err)
	}
}

func TestSearch(t *testing.T) {
	asked, answer, status := 0, "", 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		if r.URL.Path != "/-/v1/search" || r.URL.Query().Get("text") != "a b&c" || r.URL.Query().Get("size") != "2" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	client := pageClient(t, server.URL, "", Options{})
	answer = `{"objects": [
		{"package": {"name": "one", "version": "1.0.0", "description": "first", "keywords": ["k", 1], "links": {"repository": "git+https://github.com/o/r.git"}}},
		{"package": {"name": "../two", "version": "1.0.0"}},
		{"package": {"name": "three", "keywords": "plain", "deprecated": "do not"}},
		{"package": {"name": "four"}}], "total": 900}`
	hits, err := client.Search(t.Context(), "a b&c", 2)
	if err != nil || len(hits) != 2 || hits[0].Name != "one" || len(hits[0].Keywords) != 1 || hits[0].Repository == "" || hits[1].Name != "three" || !hits[1].Deprecated {
		t.Errorf("%+v, %v", hits, err)
	}
	for _, none := range []int{http.StatusNotFound, http.StatusNotImplemented, http.StatusMethodNotAllowed} {
		asked, status = 0, none
		_, err := client.Search(t.Context(), "a b&c", 2)
		if _, ok := errors.AsType[*NotOfferedError](err); !ok || asked != 1 {
			t.Errorf("HTTP %d: %v after %d questions", none, err, asked)
		}
	}
	status, answer = 0, `{"objects": "none"}`
	if _, err := client.Search(t.Context(), "a b&c", 2); fault.ClassOf(err) != fault.Network {
		t.Errorf("an answer that is none: %v", err)
	}
}
