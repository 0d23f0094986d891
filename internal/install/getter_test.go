package install

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"dsh/internal/fault"
)

// watching notes whether requests come through go-getter.
type watching struct {
	through atomic.Int64
	around  atomic.Int64
}

func (w *watching) RoundTrip(req *http.Request) (*http.Response, error) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "github.com/hashicorp/go-getter/v2.(*HttpGetter).GetFile") {
			w.through.Add(1)
			return http.DefaultTransport.RoundTrip(req)
		}
		if !more {
			w.around.Add(1)
			return http.DefaultTransport.RoundTrip(req)
		}
	}
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

func TestArchivesComeThroughGoGetter(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("content")) })
	w := &watching{}
	file, err := download(context.Background(), &http.Client{Transport: w}, address+"/x.tgz", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "content" {
		t.Errorf("got %q, %v", data, err)
	}
	if w.through.Load() != 1 || w.around.Load() != 0 {
		t.Errorf("%d requests came through go-getter, %d did not; one was expected", w.through.Load(), w.around.Load())
	}
}

func TestDownloadIgnoresWhatServersSuggest(t *testing.T) {
	secret := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("elsewhere")) })
	var query string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		w.Header().Set("X-Terraform-Get", secret)
		w.Header().Set("Content-Encoding", "x")
		w.Write([]byte(`<meta name="terraform-get" content="` + secret + `">`))
	})
	file, err := download(context.Background(), http.DefaultClient, address+"/x.tar.gz?v=1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "<meta") {
		t.Errorf("got %q, %v", data, err)
	}
	if query != "v=1" {
		t.Errorf("the server was asked with the query %q", query)
	}
}

func TestDownloadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		location string
		class    fault.Class
		want     string
	}{
		"not found":    {404, "", fault.Package, "there is nothing at this address (HTTP 404)"},
		"gone":         {410, "", fault.Package, "there is nothing at this address"},
		"forbidden":    {403, "", fault.Package, "does not let you have it"},
		"server error": {503, "", fault.Network, "answered HTTP 503"},
		"to a file":    {302, "file:///etc/passwd", fault.Network, ""},
		"in a circle":  {302, "/x.tgz", fault.Network, ""},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				w.WriteHeader(c.status)
			})
			address = strings.Replace(address, "://", "://someone:hush@", 1) + "/x.tgz"
			_, err := download(context.Background(), http.DefaultClient, address, t.TempDir())
			if fault.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (%v)", err, fault.ClassOf(err))
			}
			if err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

func TestDownloadIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	begun := make(chan struct{})
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte("first"))
		w.(http.Flusher).Flush()
		close(begun)
		<-r.Context().Done()
	})
	go func() {
		<-begun
		cancel()
	}()
	if _, err := download(ctx, http.DefaultClient, address+"/x.tgz", t.TempDir()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestPlainAddress(t *testing.T) {
	for address, plain := range map[string]bool{
		"https://h.test/x.tgz":                    true,
		"https://h.test/x.tgz?token=a&v=1":        true,
		"https://h.test/x.tgz?archive=zip":        false,
		"https://h.test/x.tgz?checksum=sha256:aa": false,
		"https://h.test/x.tgz?filename=../x":      false,
		"https://h.test/a//b":                     false,
		"git::https://h.test/x.tgz":               false,
		"https://h.test/file::x":                  false,
	} {
		if err := plainAddress(address); (err == nil) != plain {
			t.Errorf("%s: %v", address, err)
		}
	}
}
