package download

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// content is longer than what counts as progress, and repeats nothing.
var content = func() []byte {
	b := make([]byte, 300<<10)
	sum := sha256.Sum256([]byte("content"))
	for i := 0; i < len(b); i += len(sum) {
		copy(b[i:], sum[:])
		sum = sha256.Sum256(sum[:])
	}
	return b
}()

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// fetched downloads with a few retries, and checks that after an error nothing is
// left.
func fetched(t *testing.T, opts Options, address string) ([]byte, error) {
	t.Helper()
	opts.Temp = t.TempDir()
	if opts.Client == nil {
		opts.Client = &http.Client{Transport: &http.Transport{DisableCompression: true}}
	}
	file, err := Get(t.Context(), opts, address)
	if err != nil {
		if left, readErr := os.ReadDir(opts.Temp); readErr != nil || len(left) > 0 {
			t.Errorf("after an error this is left: %v, %v", left, readErr)
		}
		return nil, err
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data, nil
}

// watching notes whether requests come through go-getter.
type watching struct{ through, around atomic.Int64 }

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

func TestFilesComeThroughGoGetter(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("content")) })
	w := &watching{}
	data, err := fetched(t, Options{Client: &http.Client{Transport: w}}, address+"/x.tgz")
	if err != nil || string(data) != "content" {
		t.Errorf("got %q, %v", data, err)
	}
	if w.through.Load() != 1 || w.around.Load() != 0 {
		t.Errorf("%d requests came through go-getter, %d did not; one was expected", w.through.Load(), w.around.Load())
	}
}

// Nothing that go-getter reads into addresses and answers means anything.
func TestAddressesAreOnlyAddresses(t *testing.T) {
	elsewhere := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("elsewhere")) })
	var asked []string
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.RequestURI)
		w.Header().Set("X-Terraform-Get", elsewhere)
		w.Write([]byte(`<meta name="terraform-get" content="` + elsewhere + `">`))
	})
	for _, path := range []string{
		"/x.tar.gz?v=1", "/x.tgz?archive=zip", "/x?checksum=sha256:00", "/x?filename=../../x", "/a//b", "/a/..//x.zip?ref=a::b", "/",
		"/a%2f..%2fb?x=%20y",
	} {
		asked = nil
		data, err := fetched(t, Options{}, address+path)
		if err != nil || !strings.HasPrefix(string(data), "<meta") || len(asked) != 1 || asked[0] != "GET "+path {
			t.Errorf("%s: asked %q, got %q, %v", path, asked, data, err)
		}
	}
	if data, err := fetched(t, Options{}, address+"/x#fragment"); err != nil || len(data) == 0 || asked[len(asked)-1] != "GET /x" {
		t.Errorf("asked %q: %v", asked, err)
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	for address, class := range map[string]fault.Class{
		"file:///etc/passwd":            fault.Package,
		"/etc/passwd":                   fault.Package,
		"git::https://h.test/x.tgz":     fault.Package,
		"ftp://h.test/x.tgz":            fault.Package,
		"https://":                      fault.Package,
		"http://h.test:port/?s=hush":    fault.Other,
		"s3::ftp://h.test/x?s=hush":     fault.Package,
		"s3::file:///etc/passwd?s=hush": fault.Package,
	} {
		_, err := fetched(t, Options{}, address)
		if fault.ClassOf(err) != class || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v (class %v)", address, err, fault.ClassOf(err))
		}
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status   int
		location string
		class    fault.Class
		want     string
	}{
		"not found":      {404, "", fault.Package, "there is nothing at this address (HTTP 404)"},
		"gone":           {410, "", fault.Package, "there is nothing at this address"},
		"forbidden":      {403, "", fault.Package, "does not let you have it"},
		"server error":   {503, "", fault.Network, "answered HTTP 503"},
		"no content":     {204, "", fault.Network, "answered HTTP 204"},
		"a part unasked": {206, "", fault.Network, "answered HTTP 206"},
		"to a file":      {302, "file:///etc/passwd", fault.Policy, "neither http nor https"},
		"to git":         {302, "git::https://h.test/x", fault.Policy, "neither http nor https"},
		"to nowhere":     {302, "", fault.Network, "HTTP 302"},
		"in a circle":    {302, "/x.tgz", fault.Network, "redirects more than 10 times"},
	} {
		t.Run(name, func(t *testing.T) {
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if c.location != "" {
					w.Header().Set("Location", c.location)
				}
				w.WriteHeader(c.status)
			})
			shown := address + "/x.tgz"
			address = strings.Replace(address, "://", "://someone:hush@", 1) + "/x.tgz?token=hush"
			_, err := fetched(t, Options{Retries: 1}, address)
			if fault.ClassOf(err) != c.class || !strings.HasPrefix(err.Error(), "download "+shown+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hush") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}

// dropping serves content, breaks every answer off after so many bytes, and
// remembers what it was asked for.
type dropping struct {
	after   int
	chunked bool
	header  http.Header // of the first answer
	// part changes the answer for a part. Nil gives it as it is asked for.
	part func(w http.ResponseWriter, start int) bool

	mu    sync.Mutex
	asked []string // Range of each request
}

func (d *dropping) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	d.asked = append(d.asked, r.Header.Get("Range"))
	d.mu.Unlock()
	for name, values := range d.header {
		w.Header()[name] = values
	}
	start := 0
	if header := r.Header.Get("Range"); header != "" {
		if r.Header.Get("If-Range") == "" {
			panic("a part was asked for without a condition")
		}
		fmt.Sscanf(header, "bytes=%d-", &start)
		if d.part != nil && d.part(w, start) {
			return
		}
		if w.Header().Get("Content-Range") == "" {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
		}
		d.send(w, 206, start)
		return
	}
	d.send(w, 200, start)
}

func (d *dropping) send(w http.ResponseWriter, status, start int) {
	end := min(start+d.after, len(content))
	if !d.chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(content)-start))
	}
	w.WriteHeader(status)
	w.Write(content[start:end])
	w.(http.Flusher).Flush()
	if end < len(content) {
		panic(http.ErrAbortHandler)
	}
}

var tagged = http.Header{"Etag": {`"1"`}}

func TestResumes(t *testing.T) {
	old := time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		d       *dropping
		retries int
		asked   int // requests
		parts   int // of them, for parts
	}{
		"at each 100 KiB": {&dropping{after: 100 << 10, header: tagged}, 1, 3, 2},
		// More often than there are retries, as it gets on.
		"at each 70 KiB":      {&dropping{after: 70 << 10, header: tagged}, 1, 5, 4},
		"chunked":             {&dropping{after: 100 << 10, header: tagged, chunked: true}, 1, 3, 2},
		"by its time":         {&dropping{after: 200 << 10, header: http.Header{"Last-Modified": {old}}}, 1, 2, 1},
		"a server with slips": {&dropping{after: 100 << 10, header: tagged, part: failOnce()}, 2, 4, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var received atomic.Int64
			data, err := fetched(t, Options{Retries: c.retries, Received: func(n int64) { received.Add(n) }}, serve(t, c.d.ServeHTTP)+"/x.tgz")
			if err != nil || !bytes.Equal(data, content) {
				t.Fatalf("%d of %d bytes, the same: %v; %v", len(data), len(content), bytes.Equal(data, content), err)
			}
			parts := 0
			for _, header := range c.d.asked {
				if header != "" {
					parts++
				}
			}
			if len(c.d.asked) != c.asked || parts != c.parts {
				t.Errorf("asked %q", c.d.asked)
			}
			if received.Load() != int64(len(content)) {
				t.Errorf("told of %d bytes, %d came", received.Load(), len(content))
			}
		})
	}
}

// failOnce answers the first request for a part with an error.
func failOnce() func(http.ResponseWriter, int) bool {
	failed := false
	return func(w http.ResponseWriter, _ int) bool {
		if failed {
			return false
		}
		failed = true
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
}

// Where a part is not of the same content, or the server gives none, all of it is
// fetched anew: never is a file made of two contents.
func TestBeginsAnew(t *testing.T) {
	now := time.Now().UTC().Format(http.TimeFormat)
	other := bytes.Repeat([]byte("other"), len(content)/5)
	answer := func(status int, header ...string) func(http.ResponseWriter, int) bool {
		return func(w http.ResponseWriter, start int) bool {
			for i := 0; i < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			w.Write(other[start:])
			return true
		}
	}
	span := func(start, end, total int) string { return fmt.Sprintf("bytes %d-%d/%d", start, end, total) }
	at, last := 100<<10, len(content)-1
	for name, d := range map[string]*dropping{
		"all in place of a part": {header: tagged, part: answer(200)},
		"no such part":           {header: tagged, part: answer(416)},
		"gone from there":        {header: tagged, part: answer(404)},
		"a part of another tag":  {header: tagged, part: answer(206, "Etag", `"2"`, "Content-Range", span(at, last, last+1))},
		"a part without its tag": {header: tagged, part: func(w http.ResponseWriter, n int) bool {
			w.Header().Del("Etag")
			return answer(206, "Content-Range", span(at, last, last+1))(w, n)
		}},
		"a part from elsewhere":         {header: tagged, part: answer(206, "Content-Range", span(at-1, last, last+1))},
		"a part of a larger file":       {header: tagged, part: answer(206, "Content-Range", span(at, last+5, last+6))},
		"a part that says nothing":      {header: tagged, part: answer(206)},
		"a part in other units":         {header: tagged, part: answer(206, "Content-Range", "items "+strconv.Itoa(at)+"-5/6")},
		"a part packed otherwise":       {header: tagged, part: answer(206, "Content-Encoding", "br", "Content-Range", span(at, last, last+1))},
		"nothing tells contents apart":  {},
		"a weak tag":                    {header: http.Header{"Etag": {`W/"1"`}}},
		"changed in the very same time": {header: http.Header{"Last-Modified": {now}, "Date": {now}}},
	} {
		t.Run(name, func(t *testing.T) {
			d.after = at
			first := true
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if first || r.Header.Get("Range") != "" {
					first = false
					d.ServeHTTP(w, r)
					return
				}
				w.Write(content)
			})
			data, err := fetched(t, Options{Retries: 1}, address+"/x.tgz")
			if err != nil || !bytes.Equal(data, content) {
				t.Errorf("%d bytes, as served: %v; %v", len(data), bytes.Equal(data, content), err)
			}
		})
	}
}

// A transfer of which nothing comes ends.
func TestGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		d     *dropping
		asked int
	}{
		"always at the same byte":      {&dropping{after: 200 << 10}, 3},
		"after every few bytes":        {&dropping{after: 100, header: tagged}, 3},
		"a part is always another one": {&dropping{after: 100, header: tagged, part: func(w http.ResponseWriter, _ int) bool { w.WriteHeader(200); return true }}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := fetched(t, Options{Retries: 2}, serve(t, c.d.ServeHTTP)+"/x.tgz")
			if fault.ClassOf(err) != fault.Network || !strings.HasSuffix(err.Error(), ": the connection ended early") {
				t.Errorf("got %v", err)
			}
			if len(c.d.asked) != c.asked {
				t.Errorf("asked %d times, want %d: %q", len(c.d.asked), c.asked, c.d.asked)
			}
		})
	}
}

// Silence alone ends a transfer, however long it takes; then it is taken up where
// it stood.
func TestSilence(t *testing.T) {
	npmrc := "fetch-timeout=100\nfetch-retry-mintimeout=1\nfetch-retries=1"
	config, err := registry.LoadConfig(func(string) ([]byte, error) { return []byte(npmrc), nil }, func(string) string { return "" }, ".npmrc")
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.New(config, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	opts := Options{Client: client.HTTP(), Retries: client.Retries(), Pause: client.Pause}
	silent := 0
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		start := 0
		w.Header().Set("ETag", `"1"`)
		if header := r.Header.Get("Range"); header != "" {
			fmt.Sscanf(header, "bytes=%d-", &start)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, len(content)-1, len(content)))
			w.WriteHeader(206)
		}
		silent++
		if silent > 2 {
			w.Write(content[start:])
			return
		}
		w.Write(content[start : start+100<<10])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	if data, err := fetched(t, opts, address+"/x.tgz"); err != nil || !bytes.Equal(data, content) || silent != 3 {
		t.Errorf("%d bytes in %d answers: %v", len(data), silent, err)
	}
	address = serve(t, func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, err := fetched(t, opts, address+"/x.tgz"); fault.ClassOf(err) != fault.Network || !strings.HasSuffix(err.Error(), ": no data for 0.1 s") {
		t.Errorf("got %v", err)
	}
}

// asked is what a server was told besides the path.
type asked struct{ authorization, cookie, referer string }

// The user and password of an address go to its origin, and to no other that a
// server names.
func TestSecretsStayWithTheirOrigin(t *testing.T) {
	var mu sync.Mutex
	told := map[string]asked{}
	note := func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		told[r.URL.Path] = asked{r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Header.Get("Referer")}
	}
	other := serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		fmt.Fprint(w, "content")
	})
	var here string
	here = serve(t, func(w http.ResponseWriter, r *http.Request) {
		note(r)
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "hush"})
		switch r.URL.Path {
		case "/relative":
			http.Redirect(w, r, "absolute", http.StatusFound)
		case "/absolute":
			http.Redirect(w, r, here+"/last", http.StatusMovedPermanently)
		case "/last":
			// Another port of the same host.
			http.Redirect(w, r, other+"/other?signed=1", http.StatusTemporaryRedirect)
		}
	})
	data, err := fetched(t, Options{}, strings.Replace(here, "://", "://me:hush@", 1)+"/relative?token=hush")
	if err != nil || string(data) != "content" {
		t.Fatalf("%q, %v", data, err)
	}
	basic := "Basic bWU6aHVzaA=="
	for path, want := range map[string]asked{
		"/relative": {basic, "", ""}, "/absolute": {basic, "", ""}, "/last": {basic, "", ""}, "/other": {},
	} {
		if told[path] != want {
			t.Errorf("%s was told %+v, want %+v", path, told[path], want)
		}
	}
}

func TestNoWayBackFromHTTPS(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "content") })
	server := httptest.NewTLSServer(http.RedirectHandler(plain+"/x?sig=hush", http.StatusFound))
	t.Cleanup(server.Close)
	_, err := fetched(t, Options{Client: server.Client(), Retries: 3}, server.URL+"/x")
	if fault.ClassOf(err) != fault.Network || err.Error() != "download "+server.URL+"/x: it redirects from https to plain http" {
		t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
	}
}

// A part is asked for at the address that was named, because the one it redirects
// to may hold for a moment only.
func TestResumesThroughRedirects(t *testing.T) {
	d := &dropping{after: 200 << 10, header: tagged}
	signed := 0
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x.tgz" {
			signed++
			http.Redirect(w, r, fmt.Sprintf("/signed?%d", signed), http.StatusFound)
			return
		}
		if r.URL.RawQuery != strconv.Itoa(signed) {
			t.Errorf("asked with signature %s, after %d", r.URL.RawQuery, signed)
		}
		d.ServeHTTP(w, r)
	})
	data, err := fetched(t, Options{Retries: 1}, address+"/x.tgz")
	if err != nil || !bytes.Equal(data, content) || signed != 2 {
		t.Errorf("%d bytes after %d redirects: %v", len(data), signed, err)
	}
}

func TestTooLarge(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "not announced": false} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			address := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if announced {
					w.Header().Set("Content-Length", strconv.Itoa(1<<40))
				}
				for r.Context().Err() == nil && sent.Load() < 64<<20 {
					n, _ := w.Write(content)
					sent.Add(int64(n))
				}
			})
			_, err := fetched(t, Options{MaxBytes: int64(len(content)) - 1, Retries: 3}, address+"/x.tgz")
			if fault.ClassOf(err) != fault.Policy || !strings.HasSuffix(err.Error(), ": the archive is larger than 307199 bytes") {
				t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
			}
			if sent.Load() >= 64<<20 {
				t.Errorf("%d bytes were read", sent.Load())
			}
		})
	}
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { w.Write(content) })
	if data, err := fetched(t, Options{MaxBytes: int64(len(content))}, address+"/x.tgz"); err != nil || len(data) != len(content) {
		t.Errorf("a file as large as the limit: %d bytes, %v", len(data), err)
	}
}

// What a server packs once more stays as it came: its bytes are what a lockfile
// pins, and no answer gets larger here than on its way.
func TestContentEncoding(t *testing.T) {
	var packed bytes.Buffer
	zw := gzip.NewWriter(&packed)
	zw.Write(content)
	zw.Close()
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("Accept-Encoding: %q", got)
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Write(packed.Bytes())
	})
	// Also with a client that would unpack what it had asked for itself.
	for _, client := range []*http.Client{nil, http.DefaultClient} {
		if data, err := fetched(t, Options{Client: client}, address+"/x.tgz"); err != nil || !bytes.Equal(data, packed.Bytes()) {
			t.Errorf("%d bytes, %v", len(data), err)
		}
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
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
	dir := t.TempDir()
	if _, err := Get(ctx, Options{Client: http.DefaultClient, Temp: dir, Retries: 5}, address+"/x.tgz"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// A pause between two attempts ends at once as well, and is as long as the server
// asked where that is known.
func TestPause(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "77")
		w.WriteHeader(429)
	})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Get(ctx, Options{Client: http.DefaultClient, Temp: t.TempDir(), Retries: 5, Pause: func(n int, asked time.Duration) time.Duration {
		if n != 0 || asked != 77*time.Second {
			t.Errorf("pause %d of %v", n, asked)
		}
		cancel()
		return time.Hour
	}}, address+"/x.tgz")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// What cannot be written is no fault of the network.
func TestDiskErrors(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "content") })
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Get(t.Context(), Options{Client: http.DefaultClient, Temp: file}, address+"/x.tgz")
	if err == nil || fault.ClassOf(err) == fault.Network {
		t.Errorf("got %v (class %v)", err, fault.ClassOf(err))
	}
}
