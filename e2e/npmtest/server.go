package npmtest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Server is a running registry. Its methods may be called at any time, from any goroutine.
type Server struct {
	dir  string
	http *httptest.Server

	mu       sync.Mutex
	content  *catalogue
	requests map[string]int
	token    string
	etags    bool
	brought  []string
	spoiled  func(path string) bool
	fault    Fault
	public   string // a directory of plain files, "" for none
	keys     *keyring
	signs    bool
}

// New serves the archives of dir on a free port of 127.0.0.1 until Close is called.
// An archive that cannot be read, or that has an unknown directive, is an error.
func New(dir string) (*Server, error) {
	s, err := prepare(dir)
	if err != nil {
		return nil, err
	}
	s.http.Start()
	return s, nil
}

// NewTLS is New over https, with HTTP/2 for those who ask for it. Certificate is what its users have to trust.
func NewTLS(dir string) (*Server, error) {
	s, err := prepare(dir)
	if err != nil {
		return nil, err
	}
	s.http.EnableHTTP2 = true
	s.http.StartTLS()
	return s, nil
}

func prepare(dir string) (*Server, error) {
	keys, err := newKeyring()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, requests: map[string]int{}, keys: keys}
	if err := s.Reload(); err != nil {
		return nil, err
	}
	s.http = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that breaks off is part of the tests
	return s, nil
}

// Certificate is the certificate of a server that NewTLS made, in PEM.
func (s *Server) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.http.Certificate().Raw})
}

// URL is the address of the registry, without a slash at the end.
func (s *Server) URL() string { return s.http.URL }

// Close stops the server and closes its connections.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Reload reads the directory again: what was added to it is published.
func (s *Server) Reload() error {
	content, err := readCatalogue(s.dir)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content = content
	return nil
}

// Requests gives the number of requests since the start or the last ResetRequests, by path. In the paths %2f is written as a slash.
func (s *Server) Requests() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.requests)
}

// ResetRequests sets all counters to zero.
func (s *Server) ResetRequests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.requests)
}

// Authorizations gives the Authorization headers of all requests that had one.
func (s *Server) Authorizations() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.brought)
}

// RequireToken makes every request need the header "Authorization: Bearer TOKEN"; the empty string makes none need it.
func (s *Server) RequireToken(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// UseETags makes documents carry an ETag and answers 304 to a request that names it in If-None-Match.
func (s *Server) UseETags(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.etags = on
}

// Publish serves the files of a directory as they are, below /public/.
func (s *Server) Publish(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.public = dir
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.URL.Path]++
	if key := r.Header.Get("Authorization"); key != "" {
		s.brought = append(s.brought, key)
	}
	spoiled, fault := s.spoiled, s.fault
	s.mu.Unlock()
	if spoiled != nil && spoiled(r.URL.Path) {
		fault(w, r, http.HandlerFunc(s.answer))
		return
	}
	s.answer(w, r)
}

// answer is what a registry in order answers.
func (s *Server) answer(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	content, token, public, signs := s.content, s.token, s.public, s.signs
	s.mu.Unlock()
	if r.Method == http.MethodPost && authorized(w, r, token) && s.serveAdvisories(w, r) {
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
		return
	}
	if !authorized(w, r, token) {
		return
	}
	p := strings.TrimPrefix(r.URL.Path, "/")
	if id, ok := strings.CutPrefix(p, "osv/v1/vulns/"); ok {
		s.serveVulnerability(w, r, id)
		return
	}
	if p == "-/ping" {
		s.writeJSON(w, r, "application/json", map[string]any{})
		return
	}
	if p == "-/v1/search" {
		s.serveSearch(w, r, content)
		return
	}
	if p == "-/npm/v1/keys" && signs {
		document, err := s.keys.document()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		s.writeJSON(w, r, "application/json", document)
		return
	}
	if rest, ok := strings.CutPrefix(p, "redirect/"); ok {
		http.Redirect(w, r, "/"+rest, http.StatusFound)
		return
	}
	if strings.HasPrefix(p, "public/") && public != "" {
		http.StripPrefix("/public/", http.FileServer(http.Dir(public))).ServeHTTP(w, r)
		return
	}
	if rest, ok := strings.CutPrefix(p, "files/"); ok {
		if archive, ok := content.archives[strings.TrimSuffix(rest, ".tgz")]; ok && strings.HasSuffix(rest, ".tgz") {
			serveTarball(w, r, archive)
			return
		}
		http.NotFound(w, r)
		return
	}
	if rest, ok := strings.CutPrefix(p, "-/package/"); ok {
		name, tags := strings.CutSuffix(rest, "/dist-tags")
		if releases := content.packages[name]; tags && len(releases) > 0 && authorized(w, r, releaseToken(releases)) {
			s.writeJSON(w, r, "application/json", distTags(releases))
			return
		}
		http.NotFound(w, r)
		return
	}
	s.servePackage(w, r, content, p)
}

func (s *Server) servePackage(w http.ResponseWriter, r *http.Request, content *catalogue, p string) {
	name, rest := splitPackagePath(p)
	releases := content.packages[name]
	if len(releases) == 0 {
		http.Error(w, `{"error":"Not found"}`, http.StatusNotFound)
		return
	}
	if !authorized(w, r, releaseToken(releases)) {
		return
	}
	if file, ok := strings.CutPrefix(rest, "-/"); ok {
		for _, rel := range releases {
			if file == rel.fileName() {
				serveTarball(w, r, rel)
				return
			}
		}
		http.NotFound(w, r)
		return
	}
	for _, rel := range releases {
		if status := rel.directives.packumentStatus; status != 0 {
			http.Error(w, http.StatusText(status), status)
			return
		}
	}
	if rest == "" {
		if strings.Contains(r.Header.Get("Accept"), abbreviatedType) {
			s.writeJSON(w, r, abbreviatedType, s.abbreviated(releases))
		} else {
			s.writeJSON(w, r, "application/json", s.packument(releases))
		}
		return
	}
	version := rest
	if tagged, ok := distTags(releases)[rest]; ok {
		version = tagged
	}
	for _, rel := range releases {
		if rel.version == version {
			s.writeJSON(w, r, "application/json", s.versionDocument(rel))
			return
		}
	}
	http.Error(w, `"version not found: `+rest+`"`, http.StatusNotFound)
}

// splitPackagePath splits "name/rest" and "@scope/name/rest".
func splitPackagePath(p string) (name, rest string) {
	parts := strings.SplitN(p, "/", 3)
	if strings.HasPrefix(p, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1], strings.Join(parts[2:], "/")
	}
	return parts[0], strings.Join(parts[1:], "/")
}

func (r *release) fileName() string { return path.Base(r.name) + "-" + r.version + ".tgz" }

// releaseToken is the token that any of the versions asks for.
func releaseToken(releases []*release) string {
	for _, r := range releases {
		if r.directives.token != "" {
			return r.directives.token
		}
	}
	return ""
}

// authorized answers 401 where a token is needed and the request does not carry it.
func authorized(w http.ResponseWriter, r *http.Request, token string) bool {
	if token == "" || r.Header.Get("Authorization") == "Bearer "+token {
		return true
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="npmtest"`)
	http.Error(w, `{"error":"authentication required"}`, http.StatusUnauthorized)
	return false
}

func serveTarball(w http.ResponseWriter, r *http.Request, rel *release) {
	d := rel.directives
	if !authorized(w, r, d.token) {
		return
	}
	if d.hang {
		<-r.Context().Done()
		return
	}
	if d.status != 0 && rel.statuses.take() {
		http.Error(w, http.StatusText(d.status), d.status)
		return
	}
	data := rel.build().data
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if d.dropAfter >= 0 && rel.drops.take() {
		_, _ = w.Write(data[:min(d.dropAfter, len(data))])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(data) // the client may have gone away
}

func (s *Server) writeJSON(w http.ResponseWriter, r *http.Request, contentType string, document any) {
	data, err := json.Marshal(document)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	s.mu.Lock()
	etags := s.etags
	s.mu.Unlock()
	w.Header().Set("Content-Type", contentType)
	if etags {
		sum := sha256.Sum256(data)
		tag := `"` + hex.EncodeToString(sum[:16]) + `"`
		w.Header().Set("ETag", tag)
		w.Header().Set("Vary", "Accept")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	_, _ = w.Write(data) // the client may have gone away
}

// abbreviatedType is the media type of the shorter document that installers ask for.
const abbreviatedType = "application/vnd.npm.install-v1+json"

// abbreviatedKeys are what the shorter document keeps of a manifest, as the registry's documentation lists them.
var abbreviatedKeys = []string{
	"name", "version", "dependencies", "optionalDependencies", "devDependencies", "bundleDependencies", "bundledDependencies",
	"peerDependencies", "peerDependenciesMeta", "acceptDependencies", "bin", "directories", "engines", "os", "cpu", "libc", "funding",
}

func (s *Server) packument(releases []*release) map[string]any {
	versions, times := map[string]any{}, map[string]string{}
	var last time.Time
	for _, r := range releases {
		versions[r.version] = s.versionDocument(r)
		at := r.directives.time
		times[r.version] = stamp(at)
		if last.Before(at) {
			last = at
		}
	}
	times["created"], times["modified"] = stamp(releases[0].directives.time), stamp(last)
	return map[string]any{
		"_id": releases[0].name, "name": releases[0].name, "dist-tags": distTags(releases), "versions": versions, "time": times,
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (s *Server) abbreviated(releases []*release) map[string]any {
	full := s.packument(releases)
	versions := map[string]any{}
	for _, r := range releases {
		document := map[string]any{"dist": s.dist(r)}
		for _, key := range abbreviatedKeys {
			if value, ok := r.manifest[key]; ok {
				document[key] = value
			}
		}
		if r.directives.deprecated != "" {
			document["deprecated"] = r.directives.deprecated
		}
		if r.hasInstallScript() {
			document["hasInstallScript"] = true
		}
		versions[r.version] = document
	}
	return map[string]any{
		"name": full["name"], "dist-tags": full["dist-tags"], "versions": versions, "modified": full["time"].(map[string]string)["modified"],
	}
}

func (s *Server) versionDocument(r *release) map[string]any {
	document := map[string]any{"_id": r.name + "@" + r.version, "dist": s.dist(r)}
	for key, value := range r.manifest {
		document[key] = value
	}
	if r.directives.deprecated != "" {
		document["deprecated"] = r.directives.deprecated
	}
	if r.hasInstallScript() {
		document["hasInstallScript"] = true
	}
	return document
}

func (r *release) hasInstallScript() bool {
	var scripts map[string]string
	if json.Unmarshal(r.manifest["scripts"], &scripts) != nil {
		return false
	}
	return scripts["preinstall"] != "" || scripts["install"] != "" || scripts["postinstall"] != ""
}

func (s *Server) dist(r *release) map[string]any {
	t := r.build()
	dist := map[string]any{"shasum": t.shasum, "tarball": s.URL() + "/" + r.name + "/-/" + r.fileName()}
	if !r.directives.shasumOnly {
		dist["integrity"] = t.integrity
	}
	s.mu.Lock()
	signs := s.signs
	s.mu.Unlock()
	if signatures, err := s.keys.signatures(r, t.integrity); signs && err == nil && signatures != nil {
		dist["signatures"] = signatures
	}
	return dist
}
