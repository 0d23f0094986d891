package frontend

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// embedded is the built-in page. Its files never change, so that each is read,
// hashed and compressed once, when it is first asked for.
type embedded struct {
	files  fs.FS
	render func(string) string

	mu     sync.Mutex
	assets map[string]asset
}

// asset is a file as it is sent.
type asset struct {
	plain   []byte
	gzipped []byte // nil where that is not shorter
	etag    string
}

func (e *embedded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := wanted(w, r)
	if !ok {
		return
	}
	a, ok := e.asset(name)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if name == index {
		a = asset{plain: []byte(e.render(string(a.plain)))}
	}
	w.Header().Set("Content-Type", contentType(name))
	// The browser keeps it and asks each time whether it is the same still.
	w.Header().Set("Cache-Control", "no-cache")
	serve(w, r, a)
}

// asset is the file of that name.
func (e *embedded) asset(name string) (asset, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if a, ok := e.assets[name]; ok {
		return a, true
	}
	text, err := fs.ReadFile(e.files, name)
	if err != nil {
		return asset{}, false
	}
	a := asset{plain: text, gzipped: compressed(text), etag: etag(text)}
	if e.assets == nil {
		e.assets = map[string]asset{}
	}
	e.assets[name] = a
	return a, true
}

func etag(text []byte) string {
	sum := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
}

// compressed is text as gzip, nil where that is not shorter.
func compressed(text []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // cannot happen: the level is one of theirs
	}
	z.Write(text)
	z.Close()
	if b.Len() >= len(text) {
		return nil
	}
	return b.Bytes()
}

// serve answers with an asset, or says that the browser has it.
func serve(w http.ResponseWriter, r *http.Request, a asset) {
	if a.etag == "" {
		a.etag = etag(a.plain)
	}
	w.Header().Set("ETag", a.etag)
	if len(a.gzipped) > 0 {
		w.Header().Set("Vary", "Accept-Encoding")
	}
	for tag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if strings.TrimPrefix(strings.TrimSpace(tag), "W/") == a.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	text := a.plain
	if len(a.gzipped) > 0 && acceptsGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		text = a.gzipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	if r.Method == http.MethodHead {
		w.WriteHeader(http.StatusOK)
		return
	}
	w.Write(text)
}

// acceptsGzip says whether the browser takes gzip; one that rules it out with
// q=0 does not.
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(coding, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, ok := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		value, err := strconv.ParseFloat(q, 64)
		return !ok || (err == nil && value > 0)
	}
	return false
}
