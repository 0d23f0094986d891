package e2e

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dsh/e2e/npmtest"
)

// origin is a plain web server that remembers what it was told.
type origin struct {
	*httptest.Server
	mu   sync.Mutex
	told []http.Header
}

func newOrigin(t *testing.T, start func(http.Handler) *httptest.Server, handler func(http.ResponseWriter, *http.Request)) *origin {
	t.Helper()
	o := &origin{}
	o.Server = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		o.told = append(o.told, r.Header.Clone())
		o.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(func() {
		o.CloseClientConnections()
		o.Close()
	})
	return o
}

func (o *origin) asked() []http.Header {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

// archiveOf is the archive of one of the registry's packages.
func archiveOf(t *testing.T, registry, name string) []byte {
	t.Helper()
	resp, err := http.Get(registry + "/files/" + name + ".tgz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", resp.Status, err)
	}
	return data
}

// A server may send its users elsewhere, and there nobody learns what was meant for it: neither a token, nor the user, the
// password and the query of the address. A transfer that breaks off there goes on by way of the first.
func TestRedirectsAcrossOrigins(t *testing.T) {
	packages, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(packages.Close)
	data := archiveOf(t, packages.URL(), "@acme+hello_1.0.0")
	there := newOrigin(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		if r.Header.Get("Range") == fmt.Sprintf("bytes=%d-", len(data)/2) && r.Header.Get("If-Range") == `"1"` {
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", len(data)/2, len(data)-1, len(data)))
			w.Header().Set("Content-Length", fmt.Sprint(len(data)-len(data)/2))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(data[len(data)/2:])
			return
		}
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	here := newOrigin(t, httptest.NewServer, func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: secret})
		http.Redirect(w, r, there.URL+"/hello.tgz", http.StatusFound)
	})
	u := user{filepath.Join(t.TempDir(), "home"), packages.URL()}
	host := strings.TrimPrefix(here.URL, "http://")
	npmrc := fmt.Sprintf("//%s/tokens/:_authToken=%s\nfetch-retry-mintimeout=1\n", host, secret)
	if err := os.WriteFile(filepath.Join(filepath.Dir(u.home), ".npmrc"), []byte(npmrc), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, address := range []string{
		"http://me:" + secret + "@" + host + "/x.tgz?sig=" + secret,
		here.URL + "/plain.tgz",
	} {
		name := fmt.Sprint("p", i)
		cmd := u.dsh("plugin", "--profile", name, "add", address)
		cmd.Env = append(cmd.Env, "npm_config_fetch_retries=2")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if strings.Contains(string(out), secret) {
			t.Errorf("the output tells the secret\n%s", out)
		}
		if _, err := os.Stat(filepath.Join(u.home, "profiles", name, "node_modules/@acme/hello/package.json")); err != nil {
			t.Error(err)
		}
	}
	if got := len(here.asked()); got != 4 {
		t.Errorf("the first server was asked %d times, want twice for each", got)
	}
	for i, h := range here.asked() {
		if (h.Get("Authorization") != "") != (i < 2) {
			t.Errorf("request %d brought %q", i, h.Get("Authorization"))
		}
	}
	for _, h := range there.asked() {
		if text := fmt.Sprint(h); strings.Contains(text, secret) || h.Get("Authorization") != "" || h.Get("Cookie") != "" || h.Get("Referer") != "" {
			t.Errorf("the other server was told %v", h)
		}
	}
}

// What was asked for over https does not come over plain http, whatever its server says.
func TestAddressGivesUpNoHTTPS(t *testing.T) {
	packages, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(packages.Close)
	packages.ResetRequests()
	here := newOrigin(t, httptest.NewTLSServer, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, packages.URL()+"/files/@acme+hello_1.0.0.tgz", http.StatusFound)
	})
	u := user{filepath.Join(t.TempDir(), "home"), packages.URL()}
	ca := filepath.Join(filepath.Dir(u.home), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: here.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := u.dsh("plugin", "--profile", "p", "add", here.URL+"/hello.tgz?sig="+secret)
	cmd.Env = append(cmd.Env, "npm_config_cafile="+ca)
	out, _ := cmd.CombinedOutput()
	address, err := url.Parse(here.URL)
	if err != nil {
		t.Fatal(err)
	}
	if want := "dsh: download https://" + address.Host + "/hello.tgz: it redirects from https to plain http\n"; cmd.ProcessState.ExitCode() != 4 || string(out) != want {
		t.Errorf("exit code %d\n%swant 4\n%s", cmd.ProcessState.ExitCode(), out, want)
	}
	if asked := packages.Requests(); len(asked) > 0 {
		t.Errorf("the other server was asked for %v", asked)
	}
}
