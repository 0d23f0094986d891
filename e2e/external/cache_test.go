//go:build external

package external

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// exchange is one request for metadata and what came back.
type exchange struct {
	path, accept, encodings, etag string // of the request
	status                        int
	encoding                      string // of the answer
	kind                          string
	length                        int64 // -1: not said
}

// recorder stands before a registry and writes down what is asked of it.
type recorder struct {
	url string

	mu   sync.Mutex
	list []exchange
}

func record(t *testing.T, s server) *recorder {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{}
	proxy := &httputil.ReverseProxy{
		// The name that was asked for stays, for the registry puts it into the addresses of archives.
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(target); p.Out.Host = p.In.Host },
		Transport: &http.Transport{DisableCompression: true}, // what is asked for is passed on as it is
		ModifyResponse: func(resp *http.Response) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			q := resp.Request
			r.list = append(r.list, exchange{
				path: q.URL.Path, accept: q.Header.Get("Accept"), encodings: q.Header.Get("Accept-Encoding"), etag: q.Header.Get("If-None-Match"),
				status: resp.StatusCode, encoding: resp.Header.Get("Content-Encoding"), kind: resp.Header.Get("Content-Type"), length: resp.ContentLength,
			})
			return nil
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	r.url = front.URL
	return r
}

// take gives what was asked since the last time: the metadata, and how many archives.
func (r *recorder) take() (metadata []exchange, archives int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.list {
		if strings.Contains(e.path, "/-/") {
			archives++
		} else {
			metadata = append(metadata, e)
		}
	}
	r.list = nil
	return metadata, archives
}

// testCache looks at what is asked of a registry that has short documents, compression and ETags.
func testCache(t *testing.T, s server) {
	r := record(t, s)
	m := s.user(t, "registry="+r.url+"/\n")
	folder := filepath.Join(m.cwd, "late-news")
	publish := func(version string) {
		t.Helper()
		writeFile(t, filepath.Join(folder, "package.json"), `{"name": "late-news", "version": "`+version+`", "description": "`+strings.Repeat("long enough to be compressed ", 100)+`", "dependencies": {"is-odd": "^3.0.0"}}`)
		s.publish(t, [][]string{{folder}})
	}
	install := func(args ...string) ([]exchange, int) {
		t.Helper()
		for _, made := range []string{"node_modules", "dsh-lock.yaml"} {
			if err := os.RemoveAll(m.profile("p", made)); err != nil {
				t.Fatal(err)
			}
		}
		m.dsh(t, append([]string{"plugin", "--profile", "p", "install"}, args...)...)
		return r.take()
	}

	publish("1.0.0")
	m.dsh(t, "plugin", "--profile", "p", "add", "late-news@^1.0.0")
	metadata, archives := r.take()
	if len(metadata) < 3 || archives != 3 {
		t.Fatalf("an empty cache: %d requests for metadata and %d for archives: %+v", len(metadata), archives, metadata)
	}
	for _, e := range metadata {
		if !strings.HasPrefix(e.accept, "application/vnd.npm.install-v1+json") || !strings.Contains(e.encodings, "gzip") || e.etag != "" || e.status != http.StatusOK {
			t.Errorf("an empty cache: %+v", e)
		}
		if e.path == "/late-news" && (!strings.HasPrefix(e.kind, "application/vnd.npm.install-v1+json") || e.encoding == "") {
			t.Errorf("the registry did not answer with a short, compressed document: %+v", e)
		}
	}

	// Whatever the registry lets one keep without asking, these ask nothing.
	for _, flag := range []string{"--prefer-offline", "--offline"} {
		if metadata, archives := install(flag); len(metadata) != 0 || archives != 0 {
			t.Errorf("%s: %+v and %d archives", flag, metadata, archives)
		}
	}

	metadata, archives = install("--fresh")
	if len(metadata) < 3 || archives != 0 {
		t.Errorf("asking again: %d requests for metadata and %d for archives", len(metadata), archives)
	}
	for _, e := range metadata {
		if e.etag == "" || e.status != http.StatusNotModified {
			t.Errorf("asking again for what has not changed: %+v", e)
		}
	}

	publish("1.1.0")
	metadata, archives = install("--fresh")
	if archives != 1 {
		t.Errorf("after a new version %d archives were asked for", archives)
	}
	for _, e := range metadata {
		want := http.StatusNotModified
		if e.path == "/late-news" {
			want = http.StatusOK
		}
		if e.etag == "" || e.status != want {
			t.Errorf("after a new version of late-news: %+v, want %d", e, want)
		}
	}
	wantWords(t, m.dsh(t, "plugin", "--profile", "p", "list"), "late-news", "1.1.0")
}
