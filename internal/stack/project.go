package stack

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/trust"
)

// findProject looks for the layer of the project that the command runs in.
func findProject(opts Options) (source, bool, error) {
	if opts.Project == nil {
		return source{}, false, nil
	}
	p, ok, err := trust.FindProject(opts.Project.Dir, opts.UserHome, opts.Home.Dir())
	if err != nil || !ok {
		return source{}, false, err
	}
	return source{kind: compose.ProjectLayer, label: p.Patch, dir: filepath.Dir(p.Patch), project: &p}, true, nil
}

// checkTrust is nil when the user trusts a project with the patch that was
// read. What the patch names is looked at last: it may name anything.
func checkTrust(store *trust.Store, p trust.Project, text []byte, patches []compose.Patch) (*UntrustedError, error) {
	known, ok, err := store.Recorded(p)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &UntrustedError{Project: p}, nil
	}
	files := NamedFiles(p, patches)
	if !slices.Equal(files, known.Files) {
		return &UntrustedError{Project: p, Changed: true}, nil
	}
	seal, err := trust.SealOf(text, files)
	if err != nil || seal != known.Seal { // what cannot be read is not what it was
		return &UntrustedError{Project: p, Changed: true}, nil
	}
	return nil, nil
}

// ReadProject reads the layer of a project, whether or not it is trusted, and
// the seal that trusting it as it is would need.
func ReadProject(p trust.Project, userHome string) (patches []compose.Patch, files []string, seal trust.Seal, err error) {
	text, err := os.ReadFile(p.Patch)
	if err != nil {
		return nil, nil, "", fault.WithClass(fault.Composition, fmt.Errorf("failed to read overlay %s: %w", p.Patch, cause(err)))
	}
	patches, err = compose.ParsePatches(compose.Source{
		File: p.Patch, Dir: filepath.Dir(p.Patch), Kind: compose.ProjectLayer, UserHome: userHome,
	}, text)
	if err != nil {
		return nil, nil, "", err
	}
	files = NamedFiles(p, patches)
	seal, err = trust.SealOf(text, files)
	return patches, files, seal, err
}

// NamedFiles is the files that rows of a project's layer name by path, and so
// may run: the plugins of rows, and the files of rows that include others.
// Wherever in the layer a row may stand it is looked at, for a file too many
// costs a question, and one too few is code that nobody was asked about. They
// are sorted.
func NamedFiles(p trust.Project, patches []compose.Patch) []string {
	w := fileWalk{dirs: []string{filepath.Dir(p.Patch), p.Dir}, seen: map[compose.Value]bool{}}
	for _, patch := range patches {
		w.value(patch.Map)
	}
	slices.Sort(w.files)
	return slices.Compact(w.files)
}

type fileWalk struct {
	dirs  []string // that a relative path may be meant from
	files []string
	seen  map[compose.Value]bool // lists and mappings, which aliases may repeat
}

func (w *fileWalk) value(v compose.Value) {
	switch v := v.(type) {
	case *compose.List:
		if !w.seen[v] {
			w.seen[v] = true
			for _, item := range v.Items {
				w.value(item)
			}
		}
	case *compose.Map:
		if v != nil && !w.seen[v] {
			w.seen[v] = true
			w.row(v)
		}
	}
}

func (w *fileWalk) row(row *compose.Map) {
	name, _ := row.Get("name")
	config, _ := row.Get("config")
	switch name, _ := name.(string); {
	case name == "cordis:include":
		if config, ok := config.(*compose.Map); ok {
			path, _ := config.Get("path")
			if path, ok := path.(string); ok && path != "" {
				w.path(path)
			}
		}
	case strings.HasPrefix(name, "file:"), strings.HasPrefix(name, "."), strings.HasPrefix(name, "~"), filepath.IsAbs(name), strings.HasPrefix(name, "/"):
		w.path(name)
	}
	for _, item := range row.All() {
		w.value(item)
	}
}

func (w *fileWalk) path(name string) {
	if file, ok := compose.FilePath(name); ok {
		w.files = append(w.files, file)
		return
	}
	if filepath.IsAbs(name) {
		w.files = append(w.files, filepath.Clean(name))
		return
	}
	for _, dir := range w.dirs {
		w.files = append(w.files, filepath.Join(dir, filepath.FromSlash(name)))
	}
}
