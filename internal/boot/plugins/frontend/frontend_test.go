package frontend

import (
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"dsh/internal/boot/page"
)

var script = "export const long = " + strings.Repeat("'the same again', ", 100)

func builtIn() *embedded {
	return &embedded{render: tap, files: fstest.MapFS{
		"index.html":  {Data: []byte("<title>page</title>")},
		"app.js":      {Data: []byte(script)},
		"icons/x.svg": {Data: []byte("<svg/>")},
		"data.bin":    {Data: []byte("\x00")},
	}}
}

func tap(html string) string { return html + "<!--tapped-->" }

func ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = target
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// onDisk is the same page in a folder, with links.
func onDisk(t *testing.T) *folder {
	t.Helper()
	outside := filepath.Join(t.TempDir(), "secret.txt")
	dir := t.TempDir()
	for name, text := range map[string]string{
		outside:                               "secret",
		filepath.Join(dir, "main.html"):       "<title>page</title>",
		filepath.Join(dir, "app.js"):          script,
		filepath.Join(dir, "icons", "x.svg"):  "<svg/>",
		filepath.Join(dir, "data.bin"):        "\x00",
		filepath.Join(dir, "icons", "in.txt"): "inside",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"out.txt": outside, "in.txt": "icons/in.txt", "out": filepath.Dir(outside)} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := openFolder(filepath.Join(dir, "main.html"), tap)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.root.Close() })
	return f
}

func TestBothPages(t *testing.T) {
	disk := onDisk(t)
	for name, h := range map[string]http.Handler{"built in": builtIn(), "on disk": disk} {
		for _, c := range []struct {
			method, path string
			want         int
			contentType  string
			text         string
		}{
			{"GET", "/", 200, "text/html; charset=utf-8", "<title>page</title><!--tapped-->"},
			{"HEAD", "/", 200, "text/html; charset=utf-8", ""},
			{"GET", "/app.js", 200, "text/javascript; charset=utf-8", script},
			{"GET", "/icons/x.svg", 200, "image/svg+xml", "<svg/>"},
			{"GET", "/data.bin", 200, "application/octet-stream", "\x00"},
			{"POST", "/", 405, "", ""},
			{"DELETE", "/app.js", 405, "", ""},
			{"OPTIONS", "/", 405, "", ""},
			{"GET", "/nothing.js", 404, "", ""},
			{"GET", "/icons", 404, "", ""},
			{"GET", "/icons/", 404, "", ""},
			{"GET", "//app.js", 404, "", ""},
			{"GET", "/./app.js", 404, "", ""},
			{"GET", "/app.js/", 404, "", ""},
			{"GET", "/C:/app.js", 404, "", ""},
			{"GET", "/app.js\x00", 404, "", ""},
			{"GET", "/../app.js", 403, "", ""},
			{"GET", "/icons/../app.js", 403, "", ""},
			{"GET", "/..", 403, "", ""},
			{"GET", `/icons\..\..\secret.txt`, 403, "", ""},
			{"GET", "/..app.js", 404, "", ""},
		} {
			w := ask(h, c.method, c.path)
			if w.Code != c.want {
				t.Errorf("%s: %s %q: %d %s", name, c.method, c.path, w.Code, w.Body)
				continue
			}
			if w.Code == 200 && (w.Header().Get("Content-Type") != c.contentType || w.Body.String() != c.text || w.Header().Get("Cache-Control") != "no-cache") {
				t.Errorf("%s: %s %q: %v %s", name, c.method, c.path, w.Header(), w.Body)
			}
			if w.Code == 405 && w.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s: %s %q: %v", name, c.method, c.path, w.Header())
			}
		}
	}
}

func TestLinksOfAFolderStayInIt(t *testing.T) {
	f := onDisk(t)
	for path, want := range map[string]int{"/in.txt": 200, "/out.txt": 403, "/main.html": 200} {
		if w := ask(f, "GET", path); w.Code != want || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := ask(f, "GET", "/out/secret.txt"); w.Code == 200 {
		t.Errorf("got %s", w.Body)
	}
	if w := ask(f, "GET", "/main.html"); !strings.Contains(w.Body.String(), "tapped") {
		t.Errorf("the index by its name: %s", w.Body)
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	for _, index := range []string{filepath.Join(dir, "index.html"), dir} {
		if _, err := openFolder(index, tap); err == nil || !strings.Contains(err.Error(), "distIndex "+index) {
			t.Errorf("got %v", err)
		}
	}
}

func TestCompressionAndCaches(t *testing.T) {
	e := builtIn()
	plain := ask(e, "GET", "/app.js")
	zipped := ask(e, "GET", "/app.js", "Accept-Encoding: br, gzip;q=0.5")
	if zipped.Header().Get("Content-Encoding") != "gzip" || zipped.Header().Get("Vary") != "Accept-Encoding" || zipped.Body.Len() >= plain.Body.Len() {
		t.Fatalf("got %v", zipped.Header())
	}
	unzip, err := gzip.NewReader(zipped.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(unzip); err != nil || string(text) != script {
		t.Errorf("got %v %s", err, text)
	}
	for _, header := range []string{"gzip;q=0", "gzip; q=0.0", "identity", "x-gzip", "gzip;q=nonsense"} {
		if w := ask(e, "GET", "/app.js", "Accept-Encoding: "+header); w.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", header, w.Header())
		}
	}
	tag := plain.Header().Get("ETag")
	for _, sent := range []string{tag, "W/" + tag, `"other", ` + tag} {
		if w := ask(e, "GET", "/app.js", "If-None-Match: "+sent); w.Code != 304 || w.Body.Len() != 0 {
			t.Errorf("%s: %d", sent, w.Code)
		}
	}
	if w := ask(e, "GET", "/app.js", `If-None-Match: "other"`); w.Code != 200 {
		t.Errorf("got %d", w.Code)
	}
	// The index is another one when its taps are.
	before := ask(e, "GET", "/").Header().Get("ETag")
	e.render = func(html string) string { return html }
	if after := ask(e, "GET", "/").Header().Get("ETag"); after == before || after == "" {
		t.Errorf("the tag stays %s", after)
	}
}

// TestBuiltInPage asks for all that the page of this program has.
func TestBuiltInPage(t *testing.T) {
	e := &embedded{files: page.Files, render: func(html string) string { return html }}
	w := ask(e, "GET", "/")
	if w.Code != 200 || !strings.Contains(w.Body.String(), "<html") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	err := fstest.TestFS(page.Files, index)
	if err != nil {
		t.Error(err)
	}
}

// FuzzWanted looks for a path that leads out of the folder.
func FuzzWanted(f *testing.F) {
	for _, path := range []string{"/", "/app.js", "/../x", "/a/../../x", "/.\\..\\x", "//x", "/a\x00", "/C:/x", "/..x", "/a/./b"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		w := httptest.NewRecorder()
		name, ok := wanted(w, r)
		if ok && (!fs.ValidPath(name) || strings.Contains("/"+name+"/", "/../") || strings.ContainsAny(name, "\\:\x00")) {
			t.Errorf("%q asks for %q", path, name)
		}
		if !ok && w.Code != 403 && w.Code != 404 {
			t.Errorf("%q is answered with %d", path, w.Code)
		}
	})
}
