package gittest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Server serves repositories at /owner/name.git, and the same without .git.
type Server struct {
	*Repositories
	plain, secure *httptest.Server
	proxy         net.Listener
	ca            []byte
	backend       string
	done          chan struct{}

	mu       sync.Mutex
	behave   map[string]Behaviour
	sent     map[string]int64
	requests []string
	proxied  []string
}

// Behaviour is how a server treats one repository.
type Behaviour struct {
	User, Password string // that it is private to
	Old            bool   // it does not know the second version of the protocol, and gives named commits only
	Hangs          bool   // it takes requests and never answers
	Status         int    // it answers with nothing but that
	Redirect       string // address to which it leads, with what stands behind the repository's name
}

// New serves the repositories below a directory, over http and https.
func New(dir string) (*Server, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	if err != nil {
		return nil, err
	}
	s := &Server{
		Repositories: NewRepositories(dir), backend: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		behave: map[string]Behaviour{}, sent: map[string]int64{}, done: make(chan struct{}),
	}
	certificate, ca, err := certify()
	if err != nil {
		return nil, err
	}
	s.ca = ca
	s.plain = httptest.NewServer(s)
	s.secure = httptest.NewUnstartedServer(s)
	s.secure.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	s.secure.Config.ErrorLog = nil
	s.secure.StartTLS()
	if s.proxy, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		s.Close()
		return nil, err
	}
	go s.serveProxy()
	return s, nil
}

// Close ends the server.
func (s *Server) Close() {
	close(s.done)
	if s.proxy != nil {
		s.proxy.Close()
	}
	for _, server := range []*httptest.Server{s.plain, s.secure} {
		server.CloseClientConnections()
		server.Close()
	}
}

// URL is the address of the server over http, without a slash at its end.
func (s *Server) URL() string { return s.plain.URL }

// SecureURL is its address over https.
func (s *Server) SecureURL() string { return s.secure.URL }

// ProxyURL is the address of a proxy that leads every host to the server. Its
// certificates are for the well-known hosts too.
func (s *Server) ProxyURL() string { return "http://" + s.proxy.Addr().String() }

// CA is the certificate, in PEM form, of the authority that the server's is from.
func (s *Server) CA() []byte { return s.ca }

// Behave changes how the server treats a repository.
func (s *Server) Behave(name string, how Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behave[name] = how
}

// Sent is how many bytes of answers for a repository left the server.
func (s *Server) Sent(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent[name]
}

// Requests are the requests so far: method and path, and the authorization where
// there was one.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}

// Proxied are the hosts that the proxy was asked for.
func (s *Server) Proxied() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.proxied...)
}

// split cuts the path of a request into repository and the rest.
func (s *Server) split(path string) (name, rest string) {
	for _, mark := range []string{".git/", "/info/refs", "/git-upload-pack", "/HEAD"} {
		if i := strings.Index(path, mark); i >= 0 {
			return strings.Trim(path[:i], "/"), strings.TrimPrefix(path[i:], ".git")
		}
	}
	return strings.Trim(strings.TrimSuffix(path, ".git"), "/"), ""
}

func (s *Server) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	name, rest := s.split(req.URL.Path)
	s.mu.Lock()
	how := s.behave[name]
	line := req.Method + " " + req.URL.Path
	if authorization := req.Header.Get("Authorization"); authorization != "" {
		line += " " + authorization
	}
	s.requests = append(s.requests, line)
	s.mu.Unlock()
	switch {
	case how.Hangs:
		select {
		case <-req.Context().Done():
		case <-s.done:
		}
		return
	case how.Status != 0:
		http.Error(w, "no", how.Status)
		return
	case how.Redirect != "":
		http.Redirect(w, req, how.Redirect+rest+"?"+req.URL.RawQuery, http.StatusFound)
		return
	case how.User != "":
		if user, password, _ := req.BasicAuth(); user != how.User || password != how.Password {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
	}
	if how.Old {
		req.Header.Del("Git-Protocol")
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req.Body, req.ContentLength, req.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	req.URL.Path = "/" + name + ".git" + rest
	(&cgi.Handler{
		Path: s.backend, Dir: s.dir, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "HOME=" + s.dir},
	}).ServeHTTP(&counting{w, s, name}, req)
}

// counting counts what is sent.
type counting struct {
	http.ResponseWriter
	server *Server
	name   string
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.server.mu.Lock()
	c.server.sent[c.name] += int64(n)
	c.server.mu.Unlock()
	return n, err
}

// serveProxy answers CONNECT with a connection to the server over https.
func (s *Server) serveProxy() {
	proxy := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodConnect {
			http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
			return
		}
		s.mu.Lock()
		s.proxied = append(s.proxied, req.Host)
		s.mu.Unlock()
		there, err := net.Dial("tcp", s.secure.Listener.Addr().String())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer there.Close()
		w.WriteHeader(http.StatusOK)
		here, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer here.Close()
		ended := make(chan struct{}, 2)
		go func() { _, _ = io.Copy(there, here); ended <- struct{}{} }()
		go func() { _, _ = io.Copy(here, there); ended <- struct{}{} }()
		<-ended
	})
	_ = http.Serve(s.proxy, proxy)
}

// certify makes an authority, and a certificate of it for this machine and for the
// hosts that specs have short forms for.
func certify() (tls.Certificate, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "gittest"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "github.com", "gist.github.com", "codeload.github.com", "gitlab.com", "bitbucket.org", "git.example.test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, nil, err
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, ca, nil
}
