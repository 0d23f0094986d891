package webserver

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/fault"
)

// running is a server that listens, and a client that follows no redirects.
type running struct {
	*server
	client *http.Client
	mu     sync.Mutex
	log    []string
}

func run(t *testing.T) *running {
	t.Helper()
	listener, err := listen(t.Context(), Config{Host: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	r.server = newServer(netip.MustParseAddrPort(listener.Addr().String()), "the-token", func(format string, args ...any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.log = append(r.log, fmt.Sprintf(format, args...))
	})
	var served sync.WaitGroup
	served.Go(func() { r.http.Serve(listener) })
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.stop(context.Background())
		served.Wait()
	})
	return r
}

// ask sends a request; headers are "Name: value".
func (r *running) ask(t *testing.T, method, path string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if name == "Host" {
			req.Host = value
		} else {
			req.Header.Add(name, value)
		}
	}
	resp, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

const bearer = "Authorization: Bearer the-token"

func answer200(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) })
}

func TestRoutes(t *testing.T) {
	r := run(t)
	if resp, _ := r.ask(t, "GET", "/nothing", bearer); resp.StatusCode != 404 {
		t.Errorf("an empty seat answers %d", resp.StatusCode)
	}
	removers := map[string]func(){}
	for _, pattern := range []string{"/x", "/x/", "/x/y/", "/x/y/z"} {
		remove, err := r.Handle(pattern, answer200(pattern))
		if err != nil {
			t.Fatal(err)
		}
		removers[pattern] = remove
	}
	removeSeat, err := r.RegisterFallback(answer200("seat"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.RegisterFallback(answer200("other")); err == nil || err.Error() != "webserver: fallback already registered" {
		t.Errorf("a second fallback: %v", err)
	}
	if _, err := r.Handle("/x", answer200("other")); err == nil || !strings.Contains(err.Error(), "/x already registered") {
		t.Errorf("a second route: %v", err)
	}
	for _, pattern := range []string{"", "x", "/x?y", "/x#y"} {
		if _, err := r.Handle(pattern, answer200("other")); err == nil {
			t.Errorf("route %q is taken", pattern)
		}
	}
	expect := func(path, want string) {
		t.Helper()
		if resp, got := r.ask(t, "GET", path, bearer); got != want && fmt.Sprint(resp.StatusCode) != want {
			t.Errorf("%s: got %d %q, want %s", path, resp.StatusCode, got, want)
		}
	}
	expect("/x", "/x")
	expect("/x/", "/x/")
	expect("/x/a/b", "/x/")
	expect("/x/y", "/x/")
	expect("/x/y/", "/x/y/")
	expect("/x/y/z", "/x/y/z")
	expect("/x/y/z/", "/x/y/")
	expect("/xx", "seat")
	expect("/", "seat")
	removers["/x/y/z"]()
	expect("/x/y/z", "/x/y/")
	if _, err := r.Handle("/x/y/z", answer200("again")); err != nil {
		t.Fatal(err)
	}
	removers["/x/y/z"]() // of what is not there any more
	expect("/x/y/z", "again")
	removeSeat()
	expect("/", "404")
	if _, err := r.RegisterFallback(answer200("next")); err != nil {
		t.Error(err)
	}
	removeSeat()
	expect("/", "next")
}

func TestIndexTapsRunInOrder(t *testing.T) {
	r := run(t)
	add := func(text string) func() { return r.TapIndex(func(html string) string { return html + text }) }
	add("a")
	removeB := add("b")
	add("c")
	if got := r.RenderIndex("<"); got != "<abc" {
		t.Errorf("got %s", got)
	}
	removeB()
	removeB()
	if got := r.RenderIndex("<"); got != "<ac" {
		t.Errorf("got %s", got)
	}
}

// TestWhoIsLetIn asks with all that tells a request of the user from those of
// others.
func TestWhoIsLetIn(t *testing.T) {
	r := run(t)
	r.RegisterFallback(answer200("page"))
	r.Handle("/data/", answer200("data"))
	key := r.guard.key()
	r.TrustHosts([]string{"Named.example", "ported.example:8443"})
	port := fmt.Sprint(r.guard.address.Port())
	cookie := "Cookie: " + r.guard.cookieName() + "=" + r.guard.cookieValue()
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		want         int
	}{
		"bearer":                           {"GET", "/", []string{bearer}, 200},
		"bearer in any case":               {"GET", "/", []string{"Authorization: bEARER the-token"}, 200},
		"cookie":                           {"GET", "/", []string{cookie}, 200},
		"a second cookie of the name":      {"GET", "/", []string{"Cookie: " + r.guard.cookieName() + "=old; " + strings.TrimPrefix(cookie, "Cookie: ")}, 200},
		"data, bearer":                     {"POST", "/data/", []string{bearer}, 200},
		"data, the key":                    {"POST", "/data/", []string{"Authorization: Bearer " + key}, 200},
		"data, the key in the address":     {"GET", "/data/?key=" + key, []string{cookie}, 200},
		"data, a wrong key in the address": {"GET", "/data/?key=" + key[1:], []string{cookie}, 401},
		"data, no key in the address":      {"GET", "/data/?key=", []string{cookie}, 401},
		"a change with the key in a form":  {"POST", "/data/?key=" + key, []string{cookie}, 401},
		"data, the cookie of all ports":    {"GET", "/data/x", []string{cookie}, 401},
		"a change with the cookie":         {"POST", "/data/", []string{cookie, "X-Dsh: 1"}, 401},
		"the cookie's value as the key":    {"GET", "/data/", []string{"Authorization: Bearer " + r.guard.cookieValue()}, 401},
		"the key as a cookie":              {"GET", "/", []string{"Cookie: " + r.guard.cookieName() + "=" + key}, 401},
		"nothing":                          {"GET", "/", nil, 401},
		"nothing, deep":                    {"GET", "/api/profile/state", nil, 401},
		"a wrong bearer":                   {"GET", "/", []string{"Authorization: Bearer the-tokem"}, 401},
		"a wrong bearer and a cookie":      {"GET", "/", []string{"Authorization: Bearer x", cookie}, 401},
		"an empty bearer":                  {"GET", "/", []string{"Authorization: Bearer "}, 401},
		"basic":                            {"GET", "/", []string{"Authorization: Basic the-token"}, 401},
		"the token as a cookie":            {"GET", "/", []string{"Cookie: " + r.guard.cookieName() + "=the-token"}, 401},
		"a cookie of another port":         {"GET", "/", []string{"Cookie: dsh-1=" + r.guard.cookieValue()}, 401},
		"the token in the address":         {"GET", "/?token=the-token", nil, 303},
		"a wrong token in the address":     {"GET", "/?token=x", nil, 401},
		"a wrong token, and a cookie":      {"GET", "/?token=x", []string{cookie}, 401},
		"an empty token":                   {"GET", "/?token=", nil, 401},
		"the token at another path":        {"GET", "/api?token=the-token", nil, 401},
		"the token in a form":              {"POST", "/?token=the-token", nil, 401},
		"localhost":                        {"GET", "/", []string{bearer, "Host: LOCALHOST:" + port}, 200},
		"the other loopback address":       {"GET", "/", []string{bearer, "Host: [::1]:" + port}, 200},
		"another loopback port":            {"GET", "/", []string{bearer, "Host: 127.0.0.1:1"}, 403},
		"no port":                          {"GET", "/", []string{bearer, "Host: 127.0.0.1"}, 403},
		"a name that was rebound":          {"GET", "/", []string{bearer, "Host: evil.example:" + port}, 403},
		"a name that was rebound, token":   {"GET", "/?token=the-token", []string{"Host: evil.example:" + port}, 403},
		"localhost as a part":              {"GET", "/", []string{bearer, "Host: localhost.evil.example:" + port}, 403},
		"a user in the host":               {"GET", "/", []string{bearer, "Host: 127.0.0.1:" + port + "@evil.example"}, 403},
		"trusted with any port":            {"GET", "/", []string{bearer, "Host: named.example:1234"}, 200},
		"trusted without a port":           {"GET", "/", []string{bearer, "Host: NAMED.example"}, 200},
		"trusted with its port":            {"GET", "/", []string{bearer, "Host: ported.example:8443"}, 200},
		"trusted with another port":        {"GET", "/", []string{bearer, "Host: ported.example:8444"}, 403},
		"trusted, the port missing":        {"GET", "/", []string{bearer, "Host: ported.example"}, 403},
		"a name below a trusted one":       {"GET", "/", []string{bearer, "Host: x.named.example"}, 403},
		"own origin":                       {"POST", "/", []string{bearer, "Origin: " + r.Address()}, 200},
		"own origin by another name":       {"POST", "/", []string{bearer, "Origin: http://localhost:" + port}, 200},
		"a trusted origin over TLS":        {"POST", "/", []string{bearer, "Origin: https://named.example"}, 200},
		"another origin":                   {"POST", "/", []string{bearer, "Origin: http://evil.example"}, 403},
		"another port of this machine":     {"POST", "/", []string{bearer, "Origin: http://127.0.0.1:1"}, 403},
		"no origin to speak of":            {"POST", "/", []string{bearer, "Origin: null"}, 403},
		"an origin of a file":              {"GET", "/", []string{bearer, "Origin: file://127.0.0.1:" + port}, 403},
		"an empty origin":                  {"GET", "/", []string{bearer, "Origin: "}, 403},
		"two origins":                      {"POST", "/", []string{bearer, "Origin: " + r.Address(), "Origin: http://evil.example"}, 403},
		"same origin":                      {"GET", "/", []string{bearer, "Sec-Fetch-Site: same-origin"}, 200},
		"typed":                            {"GET", "/", []string{bearer, "Sec-Fetch-Site: none"}, 200},
		"another site":                     {"GET", "/", []string{cookie, "Sec-Fetch-Site: cross-site"}, 403},
		"another server of this machine":   {"GET", "/", []string{cookie, "Sec-Fetch-Site: same-site"}, 403},
		"another site that has the token":  {"GET", "/?token=the-token", []string{"Sec-Fetch-Site: cross-site"}, 403},
		"a preflight":                      {"OPTIONS", "/", []string{"Origin: http://evil.example", "Access-Control-Request-Method: POST"}, 403},
		"a preflight without any headers":  {"OPTIONS", "/", nil, 401},
		"what came through an honest head": {"HEAD", "/", []string{bearer}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			resp, text := r.ask(t, c.method, c.path, c.headers...)
			if resp.StatusCode != c.want {
				t.Errorf("got %d %s", resp.StatusCode, text)
			}
			for header := range resp.Header {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("other sites are told %s", header)
				}
			}
			for header, want := range map[string]string{
				"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
				"Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
			} {
				if got := resp.Header.Get(header); got != want {
					t.Errorf("%s is %q", header, got)
				}
			}
			if strings.Contains(text, "the-token") || strings.Contains(fmt.Sprint(resp.Header), "the-token") {
				t.Errorf("the token is shown: %v %s", resp.Header, text)
			}
		})
	}
}

func TestTokenOfAddressBecomesCookie(t *testing.T) {
	r := run(t)
	r.RegisterFallback(answer200("page"))
	resp, _ := r.ask(t, "GET", strings.TrimPrefix(r.OpenURL(), r.Address()), "Sec-Fetch-Site: none")
	cookies := resp.Cookies()
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/#key="+r.guard.key() || len(cookies) != 1 {
		t.Fatalf("got %d %v", resp.StatusCode, resp.Header)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Name != fmt.Sprintf("dsh-%d", r.guard.address.Port()) {
		t.Errorf("got %v", c)
	}
	if _, text := r.ask(t, "GET", "/", "Cookie: "+c.Name+"="+c.Value); text != "page" {
		t.Errorf("got %s", text)
	}
}

func TestOnceURLIsGoodForOneUse(t *testing.T) {
	r := run(t)
	now := time.Now()
	r.guard.now = func() time.Time { return now }
	once := func() string { return strings.TrimPrefix(r.OnceURL(), r.Address()) }
	status := func(path string) int { resp, _ := r.ask(t, "GET", path); return resp.StatusCode }
	first, second, late := once(), once(), once()
	if first == second {
		t.Error("two are the same")
	}
	if got := status(first); got != 303 {
		t.Errorf("the first use: %d", got)
	}
	if got := status(first); got != 401 {
		t.Errorf("the second use: %d", got)
	}
	if got := status(second); got != 303 {
		t.Errorf("another one: %d", got)
	}
	now = now.Add(onceLife + 1)
	if got := status(late); got != 401 {
		t.Errorf("too late: %d", got)
	}
	once()
	if len(r.guard.once) != 1 {
		t.Errorf("%d are kept", len(r.guard.once))
	}
}

func TestRefusalsAreForPeopleAndPrograms(t *testing.T) {
	r := run(t)
	resp, text := r.ask(t, "GET", "/", "Accept: text/html,*/*;q=0.8")
	if resp.StatusCode != 401 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") || !strings.Contains(text, "the address that dsh printed") {
		t.Errorf("got %d %s", resp.StatusCode, text)
	}
	for _, unsafe := range []string{"<style", "<script", "style=", "onload"} {
		if strings.Contains(text, unsafe) {
			t.Errorf("the policy forbids %s: %s", unsafe, text)
		}
	}
	resp, text = r.ask(t, "GET", "/api")
	if resp.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, `"class":"policy"`) || resp.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("got %v %s", resp.Header, text)
	}
}

func TestPanicIsAnAnswer(t *testing.T) {
	r := run(t)
	r.Handle("/early", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Header().Set("Cache-Control", "max-age=3600")
		panic("early trouble")
	}))
	r.Handle("/late", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "half of")
		w.(http.Flusher).Flush()
		panic("late trouble")
	}))
	resp, text := r.ask(t, "GET", "/early", bearer)
	if resp.StatusCode != 400 || resp.Header.Get("Content-Type") != "application/json" || resp.Header.Get("Cache-Control") != "no-store" || strings.Contains(text, "trouble") {
		t.Errorf("got %d %v %s", resp.StatusCode, resp.Header, text)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", r.Address()+"/late", nil)
	req.Header.Set("Authorization", "Bearer the-token")
	late, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Body.Close()
	if text, err := io.ReadAll(late.Body); err == nil {
		t.Errorf("an answer that was cut off looks whole: %s", text)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	log := strings.Join(r.log, "\n")
	if !strings.Contains(log, "GET /early failed: early trouble") || !strings.Contains(log, "late trouble") || !strings.Contains(log, "webserver_test.go") {
		t.Errorf("the log: %s", log)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	r := run(t)
	read := make(chan error, 1)
	r.Handle("/in", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, err := io.Copy(io.Discard, q.Body)
		read <- err
	}))
	for size, fits := range map[int]bool{maxBody: true, maxBody + 1: false} {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", r.Address()+"/in", strings.NewReader(strings.Repeat("x", size)))
		req.Header.Set("Authorization", "Bearer the-token")
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
		}
		if err := <-read; (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// TestRawRequests sends what no HTTP client would.
func TestRawRequests(t *testing.T) {
	r := run(t)
	r.RegisterFallback(answer200("page"))
	host := "Host: " + r.guard.address.String() + "\r\n"
	auth := bearer + "\r\n"
	for name, c := range map[string]struct{ request, want string }{
		"no host":              {"GET / HTTP/1.0\r\n" + auth + "\r\n", "403"},
		"two hosts":            {"GET / HTTP/1.1\r\n" + host + "Host: evil.example\r\n" + auth + "\r\n", "400"},
		"another host as path": {"GET http://evil.example/ HTTP/1.1\r\n" + host + auth + "\r\n", "403"},
		"all of the server":    {"OPTIONS * HTTP/1.1\r\n" + host + "\r\n", "400"},
		"a tunnel":             {"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "403"},
		"two lengths":          {"POST / HTTP/1.1\r\n" + host + auth + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxy", "400"},
		"a large header":       {"GET / HTTP/1.1\r\n" + host + auth + "X: " + strings.Repeat("x", maxHeader+8192) + "\r\n\r\n", "431"},
		"an honest one":        {"GET / HTTP/1.1\r\n" + host + auth + "\r\n", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", r.guard.address.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			go io.WriteString(conn, c.request)
			status, err := bufio.NewReader(conn).ReadString('\n')
			if fields := strings.Fields(status); len(fields) < 2 || fields[1] != c.want {
				t.Errorf("got %q, %v", status, err)
			}
		})
	}
}

// TestStopEndsStreamsAndLetsAnswersEnd has a stream of events, which never
// ends, and an answer that takes its time.
func TestStopEndsStreamsAndLetsAnswersEnd(t *testing.T) {
	r := run(t)
	streamEnded := make(chan struct{})
	r.Handle("/events", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		http.NewResponseController(w).Flush()
		<-q.Context().Done()
		close(streamEnded)
	}))
	begun := make(chan struct{})
	r.Handle("/slow", http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		close(begun)
		<-streamEnded // the server is stopping
		if q.Context().Err() != nil {
			panic("cut off")
		}
		io.WriteString(w, "whole")
	}))
	req, _ := http.NewRequestWithContext(t.Context(), "GET", r.Address()+"/events", nil)
	req.Header.Set("Authorization", "Bearer the-token")
	stream, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if line, _ := bufio.NewReader(stream.Body).ReadString('\n'); line != "data: 1\n" {
		t.Fatalf("got %q", line)
	}
	slow := make(chan string, 1)
	go func() { _, text := r.ask(t, "GET", "/slow", bearer); slow <- text }()
	<-begun
	if err := r.stop(t.Context()); err != nil {
		t.Error(err)
	}
	if got := <-slow; got != "whole" {
		t.Errorf("the answer is %q", got)
	}
	if _, err := net.Dial("tcp", r.guard.address.String()); err == nil {
		t.Error("the port is still open")
	}
}

func TestStopIsBounded(t *testing.T) {
	r := run(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	r.Handle("/for-ever", http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		close(begun)
		<-q.Context().Done()
		close(ended)
	}))
	go func() {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", r.Address()+"/for-ever", nil)
		req.Header.Set("Authorization", "Bearer the-token")
		if resp, err := r.client.Do(req); err == nil {
			resp.Body.Close()
		}
	}()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.stop(ctx); err == nil || !strings.Contains(err.Error(), "requests were cut off") {
		t.Errorf("got %v", err)
	}
	<-ended
}

func TestListen(t *testing.T) {
	for _, wildcard := range []string{"0.0.0.0", "::", "[::]", "*", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0", "::%1"} {
		listener, err := listen(t.Context(), Config{Host: wildcard})
		if err == nil {
			listener.Close()
			t.Errorf("%q: the server listens on %s", wildcard, listener.Addr())
		} else if fault.ClassOf(err) != fault.Policy || fault.Hint(err) == "" {
			t.Errorf("%q: %v", wildcard, err)
		}
	}
	// C libraries read some of these as 0.0.0.0.
	for _, none := range []string{"", "0", "0x0", "00.0", "000.0.0.0", " 0.0.0.0", "example.org", "127.1", "http://127.0.0.1", "127.0.0.1:80", "-"} {
		if ip, err := ParseHost(none); err == nil || !strings.Contains(err.Error(), "is no address") {
			t.Errorf("%q: %v %v", none, ip, err)
		}
	}
	for text, want := range map[string]string{"127.0.0.1": "127.0.0.1", "::1": "::1", "[::1]": "::1", "localhost": "127.0.0.1", "10.0.0.1": "10.0.0.1", "::ffff:10.0.0.1": "10.0.0.1"} {
		if ip, err := ParseHost(text); err != nil || ip.String() != want {
			t.Errorf("%q: %v %v", text, ip, err)
		}
	}
	for _, host := range []string{"localhost", "LocalHost", "127.0.0.1"} {
		listener, err := listen(t.Context(), Config{Host: host})
		if err != nil {
			t.Fatal(err)
		}
		if got := netip.MustParseAddrPort(listener.Addr().String()); got.Addr() != netip.MustParseAddr("127.0.0.1") || got.Port() == 0 {
			t.Errorf("%q listens on %s", host, got)
		}
		_, err = listen(t.Context(), Config{Host: host, Port: listener.Addr().(*net.TCPAddr).Port})
		if !taken(err) || fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), "another program has this port") {
			t.Errorf("a second server: %v", err)
		}
		listener.Close()
	}
	for _, port := range []int{-1, 65536} {
		if _, err := listen(t.Context(), Config{"127.0.0.1", port}); err == nil || !strings.Contains(err.Error(), "0 to 65535") {
			t.Errorf("port %d: %v", port, err)
		}
	}
}

func TestTokensAreLongAndDifferent(t *testing.T) {
	a, b := newToken(), newToken()
	if a == b || len(a) != 43 {
		t.Errorf("got %s and %s", a, b)
	}
}

// FuzzIsOurs looks for an authority by which a site with a name of its own
// would pass.
func FuzzIsOurs(f *testing.F) {
	for _, authority := range []string{"127.0.0.1:3080", "localhost:3080", "[::1]:3080", "named.example", "named.example:1", "ported.example:8443", "", ":3080", "a@127.0.0.1:3080", "[127.0.0.1]:3080"} {
		f.Add(authority)
	}
	g := &guard{address: netip.MustParseAddrPort("127.0.0.1:3080")}
	g.trust([]string{"named.example", "ported.example:8443"})
	f.Fuzz(func(t *testing.T, authority string) {
		if !g.isOurs(authority) {
			return
		}
		name, _, err := net.SplitHostPort(authority)
		if err != nil {
			name = authority
		}
		name = strings.ToLower(strings.Trim(name, "[]"))
		if ip, err := netip.ParseAddr(name); name != "localhost" && name != "named.example" && name != "ported.example" && (err != nil || !ip.IsLoopback()) {
			t.Errorf("%q is ours", authority)
		}
	})
}
