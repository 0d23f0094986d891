package registry

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/fault"
)

const packumentJSON = `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"version":"1.0.0"}}}`

// serve starts a registry and a client of it that does not try twice.
func serve(t *testing.T, handler http.HandlerFunc, npmrc ...string) (*Client, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	text := strings.Join(append([]string{"fetch-retries=0", "registry=" + server.URL}, npmrc...), "\n")
	return newClient(t, mustLoad(t, nil, strings.ReplaceAll(text, "HOST", server.Listener.Addr().String())), Options{}), server
}

func TestPackument(t *testing.T) {
	var seen *http.Request
	client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		fmt.Fprint(z, packumentJSON)
		z.Close()
	}, "//HOST/:_authToken=token")
	for name, path := range map[string]string{"is-number": "/is-number", "@scope/name": "/@scope%2fname", "odd~1": "/odd~1"} {
		p, err := client.Packument(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != name || p.Registry != server.URL+"/" || p.Tags["latest"] != "1.0.0" {
			t.Errorf("packument: %+v", p)
		}
		if seen.RequestURI != path {
			t.Errorf("%s: asked for %s, want %s", name, seen.RequestURI, path)
		}
	}
	for header, want := range map[string]string{
		"Accept":          "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*",
		"Accept-Encoding": "gzip",
		"Authorization":   "Bearer token",
		"User-Agent":      "dsh",
	} {
		if got := seen.Header.Get(header); got != want {
			t.Errorf("%s: %q, want %q", header, got, want)
		}
	}
	seen = nil
	for _, name := range []string{"", ".", "..", "../x", "a/b", "@a", "@a/", "@a/b/c", "@a/..", "a?b", "a%2f", "-/all", ".hidden"} {
		_, err := client.Packument(t.Context(), name)
		if _, ok := errors.AsType[*NotFoundError](err); !ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	if seen != nil {
		t.Errorf("a name that is none was asked for: %s", seen.RequestURI)
	}
}

func TestPackumentErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		handler http.HandlerFunc
		npmrc   string
		want    string
		class   fault.Class
		hint    string
	}{
		"not found": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "",
			`package "x" not found in the registry http://HOST/`, fault.Package, "",
		},
		"no token": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "",
			`get the versions of x: http://HOST/x answered HTTP 401: it wants a token`, fault.Package,
			"put a token that may read it into ~/.npmrc: //HOST/:_authToken=<token>",
		},
		"wrong token": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, "//HOST/:_authToken=secret",
			`get the versions of x: http://HOST/x answered HTTP 403: it does not accept the token`, fault.Package,
			"put a token that may read it into ~/.npmrc: //HOST/:_authToken=<token>",
		},
		"token in an unset variable": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }, "//HOST/:_authToken=${NPM_TOKEN}",
			`get the versions of x: http://HOST/x answered HTTP 401: it wants a token`, fault.Package,
			"set the environment variable NPM_TOKEN, which //HOST/:_authToken in .npmrc refers to",
		},
		"server error": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, "",
			`get the versions of x from HOST: it answered HTTP 503`, fault.Network, "",
		},
		"odd status": {
			func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418) }, "",
			`get the versions of x from HOST: it answered HTTP 418`, fault.Network, "",
		},
		"a web page": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				fmt.Fprint(w, "<html>please log in</html>")
			}, "",
			`get the versions of x from HOST: its answer is "text/html" and no package document`, fault.Network, "",
		},
		"broken JSON": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, packumentJSON[:20])
			}, "",
			`get the versions of x from HOST: its answer is no package document: the JSON ends too early`, fault.Network, "",
		},
		"truncated": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				fmt.Fprint(w, packumentJSON)
			}, "",
			`get the versions of x from HOST: the connection ended early`, fault.Network, "",
		},
		"truncated gzip": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				fmt.Fprint(z, packumentJSON)
				z.Flush()
			}, "",
			`get the versions of x from HOST: the connection ended early`, fault.Network, "",
		},
		"endless": {
			func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				fmt.Fprint(z, `{"readme":"`)
				for zeros := []byte(strings.Repeat("0", 1<<16)); r.Context().Err() == nil; {
					_, _ = z.Write(zeros)
					_ = z.Flush()
					w.(http.Flusher).Flush()
				}
			}, "",
			`get the versions of x from HOST: its answer is longer than 1048576 bytes`, fault.Network, "",
		},
		"announced too long": {
			func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "1048577") }, "",
			`get the versions of x from HOST: its answer is longer than 1048576 bytes`, fault.Network, "",
		},
		"redirects for ever": {
			func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }, "",
			`get the versions of x from HOST: it redirects more than 10 times`, fault.Network, "",
		},
		"silence": {
			func(w http.ResponseWriter, r *http.Request) {
				fmt.Fprint(w, packumentJSON[:10])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}, "fetch-timeout=50",
			`get the versions of x from HOST: no data for 0.05 s`, fault.Network, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := serve(t, tt.handler, tt.npmrc)
			client.maxDocument = 1 << 20
			_, err := client.Packument(t.Context(), "x")
			if err == nil {
				t.Fatal("no error")
			}
			host := server.Listener.Addr().String()
			if got := strings.ReplaceAll(err.Error(), host, "HOST"); got != tt.want {
				t.Errorf("error %q, want %q", got, tt.want)
			}
			if got := fault.ClassOf(err); got != tt.class {
				t.Errorf("class %v, want %v", got, tt.class)
			}
			if got := strings.ReplaceAll(fault.Hint(err), host, "HOST"); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
			if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, "secret") {
				t.Errorf("the token shows: %s", text)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := listener.Addr().String()
	listener.Close()
	client := newClient(t, mustLoad(t, nil, "fetch-retries=0\nregistry=http://me:secret@"+host), Options{})
	_, err = client.Packument(t.Context(), "x")
	if want := "get the versions of x from " + host + ": connection refused"; err == nil || err.Error() != want || fault.ClassOf(err) != fault.Network {
		t.Errorf("%v, want %s", err, want)
	}
	for _, tt := range []struct {
		err   error
		want  string
		final bool
	}{
		{&net.DNSError{Name: "h", IsNotFound: true}, "no such host", true},
		{&net.DNSError{Name: "h", IsTimeout: true}, "looking up the host took too long", false},
		{&net.OpError{Op: "dial", Err: context.DeadlineExceeded}, "connecting took too long", false},
		{&stallError{time.Minute}, "no data for 60 s", false},
	} {
		if text, final := Cause(fmt.Errorf("wrapped: %w", tt.err)); text != tt.want || final != tt.final {
			t.Errorf("%v: %q, %v", tt.err, text, final)
		}
	}
}

// A token goes to the address that it is for, and along no redirect.
func TestRedirectDropsToken(t *testing.T) {
	var got sync.Map
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store("other"+r.URL.Path, r.Header.Get("Authorization"))
		fmt.Fprint(w, packumentJSON)
	}))
	defer other.Close()
	client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got.Store("registry"+r.URL.Path, r.Header.Get("Authorization"))
		switch r.URL.Path {
		case "/npm/away":
			http.Redirect(w, r, other.URL+"/npm/away", http.StatusFound)
		case "/npm/outside":
			http.Redirect(w, r, "/elsewhere/outside", http.StatusFound)
		default:
			fmt.Fprint(w, packumentJSON)
		}
	}, "registry=http://HOST/npm/", "//HOST/npm/:_authToken=token")
	for _, name := range []string{"away", "outside"} {
		if _, err := client.Packument(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := client.HTTP().Get(server.URL + "/npm/archive")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	body, _, err := client.OpenTarball(t.Context(), Dist{Tarball: other.URL + "/x.tgz"})
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	for path, want := range map[string]string{
		"registry/npm/away": "Bearer token", "registry/npm/outside": "Bearer token", "registry/npm/archive": "Bearer token",
		"other/npm/away": "", "registry/elsewhere/outside": "", "other/x.tgz": "",
	} {
		if sent, ok := got.Load(path); sent != want {
			t.Errorf("%s: asked %v with %q, want %q", path, ok, sent, want)
		}
	}
}

// transport answers without a network, so that tests own the clock.
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

func answer(status int, body io.Reader, headers ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(body), ContentLength: -1, Request: &http.Request{}}
}

func TestRetry(t *testing.T) {
	refused := func() (*http.Response, error) { return nil, &net.OpError{Op: "dial", Err: errors.New("connect: down")} }
	status := func(code int, headers ...string) func() (*http.Response, error) {
		return func() (*http.Response, error) { return answer(code, strings.NewReader("busy"), headers...), nil }
	}
	fine := status(200)
	for name, tt := range map[string]struct {
		answers  []func() (*http.Response, error)
		min, max time.Duration // time that passes
		ok       bool
	}{
		"works at once":         {[]func() (*http.Response, error){fine}, 0, 0, true},
		"works the third time":  {[]func() (*http.Response, error){refused, status(502), fine}, 750 * time.Millisecond, 1500 * time.Millisecond, true},
		"never works":           {[]func() (*http.Response, error){refused, refused, refused}, 750 * time.Millisecond, 1500 * time.Millisecond, false},
		"asks to wait":          {[]func() (*http.Response, error){status(429, "Retry-After", "7"), fine}, 7 * time.Second, 7 * time.Second, true},
		"asks to wait a day":    {[]func() (*http.Response, error){status(503, "Retry-After", "86400"), fine}, time.Minute, time.Minute, true},
		"asks nonsense":         {[]func() (*http.Response, error){status(429, "Retry-After", "-5"), fine}, 250 * time.Millisecond, 500 * time.Millisecond, true},
		"is not tried again":    {[]func() (*http.Response, error){status(400)}, 0, 0, false},
		"is forbidden, no more": {[]func() (*http.Response, error){status(403)}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				client := newClient(t, mustLoad(t, nil), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
					resp, err := tt.answers[asked]()
					asked++
					if resp != nil {
						resp.Request = r
						if resp.StatusCode == 200 {
							resp.Body = io.NopCloser(strings.NewReader(packumentJSON))
						}
					}
					return resp, err
				})})
				start := time.Now()
				_, err := client.Packument(t.Context(), "x")
				if (err == nil) != tt.ok || asked != len(tt.answers) {
					t.Errorf("asked %d times: %v", asked, err)
				}
				if took := time.Since(start); took < tt.min || took > tt.max {
					t.Errorf("took %v, want %v to %v", took, tt.min, tt.max)
				}
			})
		})
	}
	if got := retryAfter("Mon, 30 Nov 2026 12:00:10 GMT", time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)); got != 10*time.Second {
		t.Errorf("Retry-After with a date: %v", got)
	}
}

// slowly gives one byte at a time, with a pause before each.
type slowly struct {
	text  string
	pause time.Duration
	ctx   context.Context
}

func (s *slowly) Read(p []byte) (int, error) {
	if s.text == "" {
		return 0, io.EOF
	}
	select {
	case <-time.After(s.pause):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	p[0], s.text = s.text[0], s.text[1:]
	return 1, nil
}

// What moves may take its time, and what does not move ends.
func TestProgress(t *testing.T) {
	long := packumentJSON[:1] + `"readme":"` + strings.Repeat("x", 5500) + `",` + packumentJSON[1:]
	for _, tt := range []struct {
		pause time.Duration
		took  time.Duration
		want  string
	}{
		{100 * time.Millisecond, time.Duration(len(long)) * 100 * time.Millisecond, ""},
		{115 * time.Millisecond, 10 * time.Minute, "get the versions of x from registry.npmjs.org: its answer takes too long"},
		{5 * time.Second, 60 * time.Second, "get the versions of x from registry.npmjs.org: no data for 60 s"},
		{70 * time.Second, 60 * time.Second, "get the versions of x from registry.npmjs.org: no data for 60 s"},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, mustLoad(t, nil, "fetch-retries=0"), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
				resp := answer(200, &slowly{long, tt.pause, r.Context()})
				resp.Request = r
				return resp, nil
			})})
			start := time.Now()
			_, err := client.Packument(t.Context(), "x")
			if got := fmt.Sprint(err); err == nil && tt.want != "" || err != nil && got != tt.want {
				t.Errorf("pauses of %v: %v", tt.pause, err)
			}
			if took := time.Since(start); took != tt.took {
				t.Errorf("pauses of %v: took %v, want %v", tt.pause, took, tt.took)
			}
		})
	}
	// A server that takes the question and never answers.
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, mustLoad(t, nil, "fetch-retries=1"), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		start := time.Now()
		_, err := client.Packument(t.Context(), "x")
		if took := time.Since(start); err == nil || !strings.HasSuffix(err.Error(), "no data for 60 s") || took < 2*time.Minute || took > 2*time.Minute+time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, mustLoad(t, nil), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := client.Packument(ctx, "x")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestPackumentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, running, most atomic.Int32
		client := newClient(t, mustLoad(t, nil), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			resp := answer(200, strings.NewReader(packumentJSON))
			if strings.HasSuffix(r.URL.Path, "missing") {
				resp.StatusCode = 404
			}
			resp.Request = r
			return resp, nil
		})})
		var group sync.WaitGroup
		for i := range 600 {
			group.Go(func() {
				if _, err := client.Packument(t.Context(), fmt.Sprint("x", i%200)); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if asked.Load() != 200 || most.Load() != maxDocuments {
			t.Errorf("asked %d times, up to %d at once; want 200, %d", asked.Load(), most.Load(), maxDocuments)
		}
		for range 3 {
			_, err := client.Packument(t.Context(), "missing")
			if _, ok := errors.AsType[*NotFoundError](err); !ok {
				t.Error(err)
			}
			if _, err := client.Packument(t.Context(), "x1"); err != nil {
				t.Error(err)
			}
		}
		if asked.Load() != 201 {
			t.Errorf("asked %d times, want 201", asked.Load())
		}
	})
}

// Who waits for another's question does not fail with it when that one is
// called off.
func TestPackumentAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		client := newClient(t, mustLoad(t, nil), Options{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			select {
			case <-time.After(10 * time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			resp := answer(200, strings.NewReader(packumentJSON))
			resp.Request = r
			return resp, nil
		})})
		first, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := client.Packument(first, "x"); !errors.Is(err, context.Canceled) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		for range 3 {
			group.Go(func() {
				if _, err := client.Packument(t.Context(), "x"); err != nil {
					t.Errorf("another: %v", err)
				}
			})
		}
		synctest.Wait()
		cancel()
		group.Wait()
		if asked.Load() != 2 {
			t.Errorf("asked %d times, want 2", asked.Load())
		}
	})
}

func TestVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		single http.HandlerFunc // answers /x/1.0.0
		asked  string
	}{
		"served alone": {func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"version":"1.0.0","deprecated":"single"}`)
		}, "/x/1.0.0"},
		"not served":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(405) }, "/x/1.0.0 /x"},
		"not there":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "/x/1.0.0 /x"},
		"another version": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"version":"2.0.0"}`) }, "/x/1.0.0 /x"},
		"no JSON":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) }, "/x/1.0.0 /x"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			client, server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path)
				if r.URL.Path == "/x/1.0.0" {
					tt.single(w, r)
					return
				}
				fmt.Fprint(w, packumentJSON)
			})
			for range 2 {
				m, err := client.Version(t.Context(), "x", version(t, "1.0.0"))
				if err != nil {
					t.Fatal(err)
				}
				if m.Name != "x" || m.Version != "1.0.0" || m.Dist.Tarball != server.URL+"/x/-/x-1.0.0.tgz" || m.Dist.Tarball != client.TarballURL("x", "1.0.0") {
					t.Errorf("manifest: %+v", m)
				}
			}
			if got := strings.Join(asked, " "); got != tt.asked {
				t.Errorf("asked for %s, want %s", got, tt.asked)
			}
		})
	}
	client, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/x" {
			w.WriteHeader(404)
			return
		}
		fmt.Fprint(w, packumentJSON)
	})
	_, err := client.Version(t.Context(), "x", version(t, "7.0.0"))
	if none, ok := errors.AsType[*NoMatchError](err); !ok || none.Wanted != "7.0.0" {
		t.Errorf("a version that is not there: %v", err)
	}
	_, err = client.Version(t.Context(), "y", version(t, "7.0.0"))
	if _, ok := errors.AsType[*NotFoundError](err); !ok {
		t.Errorf("a package that is not there: %v", err)
	}
}

func TestRefusesDowngrade(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the redirect was followed")
	}))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer secure.Close()
	client := newClient(t, mustLoad(t, nil, "strict-ssl=false\nregistry="+secure.URL), Options{})
	_, err := client.Packument(t.Context(), "x")
	if err == nil || !strings.HasSuffix(err.Error(), "it redirects from https to plain http") {
		t.Errorf("%v", err)
	}
}
