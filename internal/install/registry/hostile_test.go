package registry

import (
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

const endless = 1 << 40

// repeated is a text many times over.
type repeated struct {
	text string
	left int
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.text[r.at:])
	if r.at += n; r.at == len(r.text) {
		r.at = 0
		r.left--
	}
	return n, nil
}

func many(begin, text string, n int, end string) io.Reader {
	if n == endless {
		text = strings.Repeat(text, 1+1<<15/len(text))
	}
	return io.MultiReader(strings.NewReader(begin), &repeated{text: text, left: n}, strings.NewReader(end))
}

// What a hostile registry sends ends soon and takes little memory.
func TestHostileDocuments(t *testing.T) {
	for name, tt := range map[string]struct {
		body  func() io.Reader
		zip   bool
		want  string // of the error, "" for none
		class fault.Class
	}{
		"a million versions": {func() io.Reader {
			return many(`{"versions":{`, `"1.0.0":{},`, 1_000_000, `"1.0.0":{}}}`)
		}, false, "it lists more than 100000 versions", fault.Network},
		"a million versions, packed": {func() io.Reader {
			return many(`{"versions":{`, `"1.0.0":{},`, 1_000_000, `"1.0.0":{}}}`)
		}, true, "it lists more than 100000 versions", fault.Network},
		"a hundred thousand versions of one name": {func() io.Reader {
			return many(`{"versions":{`, `"1.0.0":{},`, 99_999, `"1.0.0":{}}}`)
		}, false, "", 0},
		"a hundred thousand tags": {func() io.Reader {
			return many(`{"versions":{"1.0.0":{}},"dist-tags":{`, `"a":"1.0.0",`, 100_000, `"b":"1.0.0"}}`)
		}, false, "it lists more than 100000 versions", fault.Network},
		"a million times":    {func() io.Reader { return many(`{"time":{`, `"a":"2026-01-10T00:00:00.000Z",`, 1_000_000, `"b":""}}`) }, false, "it lists more than 100000 versions", fault.Network},
		"endless brackets":   {func() io.Reader { return many(`{"a":`, `[`, endless, ``) }, false, "its answer is longer than 67108864 bytes", fault.Network},
		"deep in a manifest": {func() io.Reader { return many(`{"versions":{"1.0.0":{"a":`, `{"a":[`, endless, ``) }, false, "a part of it is longer than 8388608 bytes", fault.Network},
		"deep and whole": {func() io.Reader {
			return io.MultiReader(many(`{"versions":{"1.0.0":{"dependencies":`, `[`, 1_000_000, ``), many(``, `]`, 1_000_000, `}}}`))
		}, false, "", 0},
		"an endless text":            {func() io.Reader { return many(`{"readme":"`, `\"`, endless, ``) }, true, "its answer is longer than 67108864 bytes", fault.Network},
		"an endless key":             {func() io.Reader { return many(`{"`, `a`, endless, ``) }, false, "a part of it is longer than 8388608 bytes", fault.Network},
		"endless blanks":             {func() io.Reader { return many(``, ` `, endless, ``) }, false, "a part of it is longer than 8388608 bytes", fault.Network},
		"endless blanks at the end":  {func() io.Reader { return many(`{}`, "\n", endless, ``) }, true, "a part of it is longer than 8388608 bytes", fault.Network},
		"an endless manifest":        {func() io.Reader { return many(`{"versions":{"1.0.0":{`, `"a":1,`, endless, ``) }, false, "a part of it is longer than 8388608 bytes", fault.Network},
		"endless different versions": {func() io.Reader { return &counting{begin: `{"versions":{`} }, false, "it lists more than 100000 versions", fault.Network},
		"another package":            {func() io.Reader { return strings.NewReader(`{"name":"y","versions":{"1.0.0":{}}}`) }, false, `its answer is for something else: it is about the package "y"`, fault.Network},
		"another package at the end": {func() io.Reader { return strings.NewReader(`{"versions":{"1.0.0":{}},"name":"y"}`) }, false, `its answer is for something else: it is about the package "y"`, fault.Network},
		"no name at all":             {func() io.Reader { return strings.NewReader(`{"versions":{"1.0.0":{}},"name":7}`) }, false, "", 0},
		"a cut surrogate":            {func() io.Reader { return strings.NewReader(`{"versions":{"1.0.0":{"deprecated":"\ud83d`) }, false, "the JSON ends too early", fault.Network},
		"a web page":                 {func() io.Reader { return strings.NewReader(`<html>{"versions":{}}`) }, false, `its answer is "text/html" and no package document`, fault.Network},
	} {
		t.Run(name, func(t *testing.T) {
			client, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				var to io.Writer = w
				w.Header().Set("Content-Type", "application/json")
				if name == "a web page" {
					w.Header().Set("Content-Type", "text/html")
				}
				if tt.zip {
					w.Header().Set("Content-Encoding", "gzip")
					z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
					defer z.Close()
					to = z
				}
				_, _ = io.CopyBuffer(struct{ io.Writer }{to}, tt.body(), make([]byte, 1<<16))
			})
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			p, err := client.Packument(t.Context(), "x")
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil && tt.want == "" {
				_, err = Pick(p, "*", PickOptions{})
			}
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.want) || fault.ClassOf(err) != tt.class) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			// All that was ever taken for it, given back or not.
			if taken := (after.TotalAlloc - before.TotalAlloc) >> 20; taken > 128 {
				t.Errorf("took %d MiB", taken)
			}
		})
	}
}

// counting lists versions without end, each another one.
type counting struct {
	begin string
	n     int
	rest  string
}

func (c *counting) Read(p []byte) (int, error) {
	if c.rest == "" {
		c.rest = fmt.Sprintf(`%s"%d.0.0":{"dependencies":{"a":"%d"}}`, c.begin, c.n, c.n)
		c.n++
		c.begin = ","
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Many large documents at once wait for each other and all come.
func TestManyLargeDocuments(t *testing.T) {
	client, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(struct{ io.Writer }{w}, many(`{"versions":{"2.0.0":{"deprecated":"`, strings.Repeat("x", 1000), 2000, `"},`+strings.Repeat(`"1.0.0":{},`, 30_000)+`"1.0.0":{}}}`))
	})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			p, err := client.Packument(t.Context(), fmt.Sprint("x", i))
			if err != nil || len(p.Versions()) != 2 {
				t.Errorf("%v", err)
			}
		})
	}
	group.Wait()
	// Who gives up while it waits hinders nobody.
	client.seats.last <- struct{}{}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := client.Packument(ctx, "y"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a document that waits for a seat: %v", err)
	}
	<-client.seats.last
	if _, err := client.Packument(t.Context(), "y"); err != nil {
		t.Error(err)
	}
	if len(client.seats.large) != 0 || len(client.seats.last) != 0 {
		t.Error("a seat is still taken")
	}
}

func TestHugeHeaders(t *testing.T) {
	client, server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 300 {
			w.Header().Set(fmt.Sprint("X-", i), strings.Repeat("x", 1<<16))
		}
		fmt.Fprint(w, packumentJSON)
	})
	_, err := client.Packument(t.Context(), "x")
	if fault.ClassOf(err) != fault.Network || !strings.HasPrefix(err.Error(), "get the versions of x from "+server.Listener.Addr().String()) {
		t.Errorf("%v", err)
	}
}

// However a document is cut into pieces, and in whatever order its members
// come, the same is read.
func TestPieces(t *testing.T) {
	const versions = `"versions":{"1.0.0":{"dependencies":{"a":"^1"},"dist":{"integrity":"sha512-x","tarball":"https://registry.npmjs.org/n/-/n-1.0.0.tgz"}},"2.0.0-rc.1":{"engines":{"node":">=1"}},"1.2.0":{"deprecated":"\"no\""}}`
	const tags = `"dist-tags":{"latest":"1.0.0","next":"2.0.0-rc.1"}`
	const times = `"time":{"modified":"2026-01-11T00:00:00.000Z","1.0.0":"2026-01-10T00:00:00.000Z","1.2.0":"2026-01-12T00:00:00.000+01:00"}`
	const readme = `"readme":"{\"versions\":{}} \\", "other":[1,{"a":null}], "n":-1.5e3`
	var want string
	for _, order := range [][]string{{versions, tags, times, readme}, {readme, times, tags, versions}, {tags, versions, readme, times}} {
		text := " {" + strings.Join(order, " , ") + "}\n"
		for size := 1; size < len(text); size++ {
			src := source{r: &piecewise{text, size}, left: 1 << 20, buf: make([]byte, 16)}
			data, err := compacted(document{name: "n", registry: DefaultRegistry}, &src)
			if err != nil {
				t.Fatal(err)
			}
			p, err := openPackument("n", DefaultRegistry, data)
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprint(p.Versions(), p.Tags)
			for _, v := range p.Versions() {
				m, err := p.Manifest(v)
				if err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprintf("\n%+v", *m)
			}
			if want == "" {
				want = got
			}
			if got != want {
				t.Fatalf("in pieces of %d:\n%s\nwant\n%s", size, got, want)
			}
		}
	}
	if !strings.Contains(want, `Deprecated:"no"`) || !strings.Contains(want, "2026-01-11 23:00:00") {
		t.Error(want)
	}
}

type piecewise struct {
	rest string
	size int
}

func (p *piecewise) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), p.size)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// A server without HTTP/2 gets at most maxsockets connections, however much is
// asked at once, and archives that nobody reads do not keep documents waiting.
func TestConnections(t *testing.T) {
	for name, tt := range map[string]struct {
		http2 bool
		npmrc string
		most  int
	}{
		"HTTP/1.1":                  {false, "", maxConnections},
		"HTTP/1.1, few":             {false, "maxsockets=5", 5},
		"HTTP/1.1, one for either":  {false, "maxsockets=2", 2},
		"HTTP/2":                    {true, "", maxConnections}, // it takes four, and more only where several connect in one moment
		"HTTP/2, one for each kind": {true, "maxsockets=2", 2},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			open, most := map[net.Conn]bool{}, 0
			protocols := map[string]bool{}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				protocols[r.Proto] = true
				mu.Unlock()
				if strings.HasSuffix(r.URL.Path, ".tgz") {
					w.Header().Set("Content-Length", "1000000")
					_, _ = w.Write(make([]byte, 1_000_000))
					return
				}
				fmt.Fprint(w, packumentJSON)
			}))
			server.EnableHTTP2 = tt.http2
			server.Config.ConnState = func(c net.Conn, state http.ConnState) {
				mu.Lock()
				defer mu.Unlock()
				if state == http.StateNew {
					open[c] = true
				} else if state == http.StateClosed {
					delete(open, c)
				}
				most = max(most, len(open))
			}
			server.StartTLS()
			defer server.Close()
			client := newClient(t, mustLoad(t, nil, "strict-ssl=false\nfetch-retries=0\nregistry="+server.URL+"\n"+tt.npmrc), Options{})
			var archives []io.ReadCloser
			for range tt.most / 2 {
				body, _, err := client.OpenTarball(t.Context(), Dist{Tarball: server.URL + "/x.tgz"})
				if err != nil {
					t.Fatal(err)
				}
				archives = append(archives, body)
			}
			var group sync.WaitGroup
			for i := range 300 {
				group.Go(func() {
					if _, err := client.Packument(t.Context(), fmt.Sprint("x", i)); err != nil {
						t.Error(err)
					}
				})
			}
			group.Wait()
			for _, body := range archives {
				if n, err := io.Copy(io.Discard, body); n != 1_000_000 || err != nil {
					t.Errorf("%d bytes, %v", n, err)
				}
				body.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			if most > tt.most || protocols["HTTP/2.0"] != tt.http2 || len(protocols) != 1 {
				t.Errorf("%d connections by %v, want at most %d", most, protocols, tt.most)
			}
		})
	}
}

// Tags, versions and manifests are the same in whatever order answers come.
func TestOrderOfAnswers(t *testing.T) {
	single := `{"name":"x","version":"1.2.0","dependencies":{"a":"1"},"scripts":{"install":"y","test":"z"},"dist":{"integrity":"sha512-` + strings.Repeat("A", 86) + `=="}}`
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		if strings.HasSuffix(r.URL.Path, "/1.2.0") {
			return 200, single, nil
		}
		return 200, `{"name":"x","dist-tags":{"latest":"1.2.0"},"versions":{"1.0.0":{},"1.2.0":` + single + `}}`, nil
	}}
	var want string
	for _, order := range [][]string{{"1.2.0", "^1", "latest"}, {"^1", "1.2.0", "latest"}, {"latest", "^1", "1.2.0"}} {
		err := get(t, f, Options{CacheDir: t.TempDir()}, func(c *Client) error {
			for _, wanted := range order {
				m, err := c.Find(t.Context(), "x", wanted, PickOptions{NodeVersion: npmrange.Release("24.0.0", 24, 0, 0)})
				if err != nil {
					return err
				}
				got := fmt.Sprintf("%+v", *m.Manifest)
				if want == "" {
					want = got
				}
				if got != want {
					return fmt.Errorf("%s of %v is %s, want %s", wanted, order, got, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if !strings.Contains(want, "Scripts:[install]") || !strings.Contains(want, "sha512-AAAA") {
		t.Error(want)
	}
}

// authority makes certificates.
func authority(t *testing.T) (ca *x509.Certificate, sign func(template *x509.Certificate) (cert, key string)) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return ca, func(template *x509.Certificate) (string, string) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		der, err := x509.CreateCertificate(rand.Reader, template, ca, own.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(own)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
			string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	}
}

// A client certificate goes to the host that it is for, and to no other.
func TestClientCertificates(t *testing.T) {
	ca, sign := authority(t)
	cert, key := sign(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "somebody"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var mu sync.Mutex
	var seen []string
	server := func(auth tls.ClientAuthType) *httptest.Server {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			name := "nobody"
			if len(r.TLS.PeerCertificates) > 0 {
				name = r.TLS.PeerCertificates[0].Subject.CommonName
			}
			mu.Lock()
			seen = append(seen, name)
			mu.Unlock()
			fmt.Fprint(w, packumentJSON)
		}))
		s.Config.ErrorLog = log.New(io.Discard, "", 0) // it complains about the refused handshakes
		s.TLS = &tls.Config{ClientAuth: auth, ClientCAs: x509.NewCertPool()}
		s.TLS.ClientCAs.AddCert(ca)
		s.StartTLS()
		t.Cleanup(s.Close)
		return s
	}
	strict, open := server(tls.RequireAndVerifyClientCert), server(tls.VerifyClientCertIfGiven)
	files := map[string]string{"/home/me/client.crt": cert, "/home/me/client.key": key}
	inline := func(text string) string { return `"` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
	for name, tt := range map[string]struct {
		npmrc string
		want  string // who is seen by the strict server and the open one, "" for a failure
	}{
		"none":           {"", ""},
		"of the host":    {"//STRICT/:certfile=client.crt\n//STRICT/:keyfile=/home/me/client.key", "somebody nobody"},
		"of a path":      {"//STRICT/npm/:certfile=~/client.crt\n//STRICT/npm/:keyfile=client.key", "somebody nobody"},
		"of another":     {"//OPEN/:certfile=client.crt\n//OPEN/:keyfile=client.key", ""},
		"in the text":    {"//STRICT/:cert=" + inline(cert) + "\n//STRICT/:key=" + inline(key), "somebody nobody"},
		"of registries":  {"cert=" + inline(cert) + "\nkey=" + inline(key), "somebody nobody"},
		"in two writing": {"//STRICT/:certfile=client.crt\n//STRICT/:key=" + inline(key), "somebody nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			replace := strings.NewReplacer("STRICT", strict.Listener.Addr().String(), "OPEN", open.Listener.Addr().String())
			files["/home/me/.npmrc"] = replace.Replace("strict-ssl=false\nfetch-retries=0\nregistry=https://STRICT/\n" + tt.npmrc)
			read := func(name string) ([]byte, error) {
				if text, ok := files[filepath.ToSlash(name)]; ok {
					return []byte(text), nil
				}
				return nil, fs.ErrNotExist
			}
			config, err := LoadConfig(read, func(name string) string { return map[string]string{"HOME": "/home/me"}[name] }, "/home/me/.npmrc")
			if err != nil {
				t.Fatal(err)
			}
			client := newClient(t, config, Options{})
			seen = nil
			if _, err := client.Packument(t.Context(), "x"); err != nil {
				if tt.want != "" {
					t.Error(err)
				}
				return
			}
			resp, err := client.HTTP().Get(open.URL)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := strings.Join(seen, " "); got != tt.want {
				t.Errorf("seen %q, want %q", got, tt.want)
			}
			if text := fmt.Sprintf("%+v", config); strings.Contains(text, "PRIVATE") {
				t.Error("printing the configuration shows the key")
			}
		})
	}
	for npmrc, want := range map[string]string{
		"//h/:certfile=/home/me/client.crt":                                    "/home/me/0/.npmrc: //h/:certfile has no //h/:keyfile beside it",
		"//h/:keyfile=/home/me/ca.pem":                                         "/home/me/0/.npmrc: //h/:keyfile has no //h/:certfile beside it",
		"//h/:keyfile=missing.key":                                             "read the //h/:keyfile that /home/me/0/.npmrc names: file does not exist",
		"//h/:certfile=/home/me/ca.pem\n//h/:keyfile=/home/me/ca.pem\nextra=1": "/home/me/0/.npmrc: //h/:certfile and //h/:keyfile are no certificate and its key: tls: failed to find any PEM data in certificate input",
	} {
		_, err := load(map[string]string{"test ca.pem": "nothing"}, npmrc)
		if npmrc == "//h/:certfile=/home/me/client.crt" {
			want = "read the //h/:certfile that /home/me/0/.npmrc names: file does not exist"
		}
		if err == nil || filepath.ToSlash(err.Error()) != want {
			t.Errorf("%q: %v, want %s", npmrc, err, want)
		}
	}
}

// npm's global file counts after the others.
func TestGlobalFile(t *testing.T) {
	files := map[string]string{
		"/opt/node/etc/npmrc": "registry=https://global.example/\nfetch-retries=7",
		"/else/npmrc":         "registry=https://else.example/",
	}
	for name, tt := range map[string]struct {
		env   map[string]string
		npmrc string
		want  string
	}{
		"none":               {nil, "", DefaultRegistry},
		"by PREFIX":          {map[string]string{"PREFIX": "/opt/node"}, "", "https://global.example/"},
		"by npm's prefix":    {map[string]string{"npm_config_prefix": "/opt/node", "PREFIX": "/usr"}, "", "https://global.example/"},
		"by the user's file": {nil, "prefix=/opt/node", "https://global.example/"},
		"by name":            {map[string]string{"npm_config_globalconfig": "/else/npmrc", "PREFIX": "/opt/node"}, "", "https://else.example/"},
		"counts least":       {map[string]string{"PREFIX": "/opt/node"}, "registry=https://user.example/", "https://user.example/"},
	} {
		read := func(name string) ([]byte, error) {
			if filepath.ToSlash(name) == "/home/me/.npmrc" {
				return []byte(tt.npmrc), nil
			}
			if text, ok := files[filepath.ToSlash(name)]; ok {
				return []byte(text), nil
			}
			return nil, fs.ErrNotExist
		}
		c, err := LoadConfig(read, func(name string) string { return tt.env[name] }, "/home/me/.npmrc")
		if err != nil {
			t.Fatal(err)
		}
		if c.Registry != tt.want {
			t.Errorf("%s: %s, want %s", name, c.Registry, tt.want)
		}
	}
}
