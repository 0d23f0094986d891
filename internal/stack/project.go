package stack

import (
	"errors"
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

// TrustOf says whether the user trusts a project with the patch that was read.
// What the patch names is read only where the same names were trusted before: it
// may name anything. contents is what was found there, nil where nothing was
// looked at.
func TrustOf(store *trust.Store, p trust.Project, text []byte, patches []compose.Patch) (state trust.State, contents trust.Contents, err error) {
	known, ok, err := store.Recorded(p)
	if err != nil || !ok {
		return trust.Unknown, nil, err
	}
	files := NamedFiles(p, patches)
	if !slices.Equal(files, known.Files) {
		return trust.Changed, nil, nil
	}
	contents, err = trust.Read(files)
	if err != nil || contents.Seal(text) != known.Seal { // what cannot be read is not what it was
		return trust.Changed, nil, nil
	}
	return trust.Trusted, contents, nil
}

// ReadProject reads the layer of a project, whether or not it is trusted, and
// the seal that trusting it as it is would need.
func ReadProject(p trust.Project, userHome string) (patches []compose.Patch, files []string, seal trust.Seal, err error) {
	text, err := readProjectPatch(p)
	if err != nil {
		return nil, nil, "", err
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

// maxPatch is how large a project's patch, or a file that it includes, may be.
const maxPatch = 16 << 20

// readProjectPatch reads the patch of a project. It comes with a repository, and
// may be a pipe or a device.
func readProjectPatch(p trust.Project) ([]byte, error) {
	text, err := readRegular(p.Patch)
	if err != nil {
		err = fault.WithClass(fault.Composition, fmt.Errorf("failed to read overlay %s: %w", p.Patch, cause(err)))
	}
	return text, err
}

func readRegular(file string) ([]byte, error) {
	info, err := os.Stat(file) // before it is opened: to open a pipe waits for its other end
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no file")
	}
	if info.Size() > maxPatch {
		return nil, fmt.Errorf("it is larger than %d MiB", maxPatch>>20)
	}
	return os.ReadFile(file)
}

// NamedFiles is the files that rows of a project's layer name by path, and so
// may run: the plugins of rows, the files of rows that include others, and what
// the rows in those name. Wherever in the layer a row may stand it is looked at,
// for a file too many costs a question, and one too few is code that nobody was
// asked about. They are sorted.
func NamedFiles(p trust.Project, patches []compose.Patch) []string {
	w := fileWalk{seen: map[compose.Value]bool{}, included: map[string]bool{}}
	dirs := []string{filepath.Dir(p.Patch), p.Dir}
	for _, patch := range patches {
		w.value(patch.Map, dirs)
	}
	slices.Sort(w.files)
	return slices.Compact(w.files)
}

type fileWalk struct {
	files    []string
	seen     map[compose.Value]bool // lists and mappings, which aliases may repeat
	included map[string]bool        // files that were read
}

// value looks for rows in v, in which a relative path may be meant from any of
// dirs.
func (w *fileWalk) value(v compose.Value, dirs []string) {
	switch v := v.(type) {
	case *compose.List:
		if !w.seen[v] {
			w.seen[v] = true
			for _, item := range v.Items {
				w.value(item, dirs)
			}
		}
	case *compose.Map:
		if v != nil && !w.seen[v] {
			w.seen[v] = true
			w.row(v, dirs)
			for _, item := range v.All() {
				w.value(item, dirs)
			}
		}
	}
}

func (w *fileWalk) row(row *compose.Map, dirs []string) {
	name, named := row.Get("name")
	plugin, _ := name.(string)
	w.files = append(w.files, pathsOf(plugin, dirs)...)
	// A patch without a name may be for a row that includes others.
	config, _ := row.Get("config")
	if config, ok := config.(*compose.Map); ok && (!named || plugin == compose.IncludePlugin) {
		path, _ := config.Get("path")
		if path, ok := path.(string); ok {
			w.include(path, dirs)
		}
	}
}

// maxIncluded is how many included files are looked into.
const maxIncluded = 1000

// include adds a file that rows are included from, and what these name.
func (w *fileWalk) include(path string, dirs []string) {
	files := pathsOf(path, dirs)
	if files == nil && path != "" { // a bare path is relative, too
		files = pathsOf("./"+path, dirs)
	}
	for _, file := range files {
		w.files = append(w.files, file)
		if w.included[file] || len(w.included) == maxIncluded {
			continue
		}
		w.included[file] = true
		text, err := readRegular(file)
		if err != nil {
			continue // it counts as what it is
		}
		dir := filepath.Dir(file)
		if rows, err := compose.ParseValue(compose.Source{File: file, Dir: dir, Kind: compose.ProjectLayer}, text); err == nil {
			w.value(rows, append([]string{dir}, dirs...))
		}
	}
}

// pathsOf is the paths that a row's name may stand for, none for the name of a
// package. Names are read as a URL is: case and white space do not hide one.
func pathsOf(name string, dirs []string) []string {
	name = strings.Map(func(c rune) rune {
		if c == '\t' || c == '\n' || c == '\r' {
			return -1
		}
		return c
	}, strings.TrimFunc(name, func(c rune) bool { return c <= ' ' }))
	if len(name) > 5 && strings.EqualFold(name[:5], "file:") {
		address := "file:" + name[5:]
		if file, ok := compose.FilePath(address); ok && filepath.IsAbs(file) {
			return []string{filepath.Clean(file)}
		}
		name = "./" + name[5:]
	}
	switch slashed := strings.ReplaceAll(name, `\`, "/"); {
	case filepath.IsAbs(name):
		return []string{filepath.Clean(name)}
	case strings.HasPrefix(slashed, "."), strings.HasPrefix(slashed, "/"), strings.HasPrefix(slashed, "~"), strings.Contains(slashed, "../"):
		var files []string
		for _, dir := range dirs {
			files = append(files, filepath.Join(dir, filepath.FromSlash(slashed)))
		}
		return files
	default:
		return nil
	}
}
