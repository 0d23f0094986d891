// Package frontend takes the fallback seat of the web server and serves a page
// there: the built-in one, or another whose files are in a folder.
//
// It knows nothing of what is in a page.
package frontend

import (
	"context"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/fault"
)

// Name is the plugin's.
const Name = "@deepseek-ai/dsh-host-frontend-static"

// Config is the configuration of the row.
type Config struct {
	// DistIndex is the index file of a page, "" is the built-in page. Its folder
	// is served.
	DistIndex string `json:"distIndex"`
}

// New is the plugin with the files of the built-in page.
func New(builtIn fs.FS) host.Plugin {
	return host.Plugin{
		Inject: []host.Need{{Service: webserver.Service}},
		Start: func(_ context.Context, r *host.Row) error {
			var config Config
			if err := r.Decode(&config); err != nil {
				return err
			}
			server, _ := host.Service[webserver.Server](r, webserver.Service)
			page := http.Handler(&embedded{files: builtIn, render: server.RenderIndex})
			if config.DistIndex != "" {
				folder, err := openFolder(config.DistIndex, server.RenderIndex)
				if err != nil {
					return err
				}
				r.OnStop(func(context.Context) error { return folder.root.Close() })
				page = folder
			}
			remove, err := server.RegisterFallback(page)
			if err != nil {
				return err
			}
			r.OnStop(func(context.Context) error { remove(); return nil })
			return nil
		},
	}
}

// index is the path of the page itself.
const index = "index.html"

// wanted is the file that a request asks for, relative and clean: index for the
// root. What cannot be asked for is answered, and ok is false.
func wanted(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "this address can only be read", http.StatusMethodNotAllowed)
		return "", false
	}
	name = strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		return index, true
	}
	// A path that leaves the folder, in the notation of any system.
	for element := range strings.FieldsFuncSeq(name, func(c rune) bool { return c == '/' || c == '\\' }) {
		if element == ".." {
			http.Error(w, "this path leaves the folder of the page", http.StatusForbidden)
			return "", false
		}
	}
	if strings.ContainsAny(name, "\\:\x00") || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		http.NotFound(w, r)
		return "", false
	}
	return name, true
}

// contentType is by the name alone and the same on every system; nosniff makes
// browsers believe it.
func contentType(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".html", ".htm":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map", ".webmanifest":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	case ".gif":
		return "image/gif"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".wasm":
		return "application/wasm"
	case ".txt", ".md":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}

// folder is a page whose files are on disk, read anew for each request. Links
// in it may not lead out of it.
type folder struct {
	root   *os.Root
	index  string // name of the index file
	render func(string) string
}

func openFolder(indexFile string, render func(string) string) (*folder, error) {
	info, err := os.Stat(indexFile)
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Errorf(fault.Environment, "it is no file")
	}
	if err != nil {
		return nil, fmt.Errorf("distIndex %s: %w", indexFile, err)
	}
	root, err := os.OpenRoot(filepath.Dir(indexFile))
	if err != nil {
		return nil, fmt.Errorf("distIndex %s: %w", indexFile, err)
	}
	return &folder{root, filepath.Base(indexFile), render}, nil
}

func (f *folder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := wanted(w, r)
	if !ok {
		return
	}
	if name == index && r.URL.Path == "/" {
		name = f.index
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		f.refuse(w, r, name)
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Set("Cache-Control", "no-cache")
	if name == f.index {
		text, err := fs.ReadFile(f.root.FS(), name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		serve(w, r, asset{plain: []byte(f.render(string(text)))})
		return
	}
	http.ServeContent(w, r, name, info.ModTime(), file)
}

// refuse answers for a file that cannot be opened: it is not there, or it leads
// out of the folder.
func (f *folder) refuse(w http.ResponseWriter, r *http.Request, name string) {
	if _, err := f.root.Lstat(filepath.FromSlash(name)); err == nil {
		http.Error(w, "this path leaves the folder of the page", http.StatusForbidden)
		return
	}
	http.NotFound(w, r)
}
