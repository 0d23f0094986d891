package inspect

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/installation"
)

// entryMissing says what a package lacks to be imported under a subpath, "" for
// nothing that is certain. It reads "exports" and "main" as Node.js does; where
// conditions choose between files, one that is there is enough.
func entryMissing(pkg installation.Package, subpath string) string {
	var manifest struct {
		Exports json.RawMessage
		Main    json.RawMessage
		Dsh     struct{ Plugin struct{ Exec string } }
	}
	if json.Unmarshal(pkg.Manifest, &manifest) != nil {
		return ""
	}
	if program := manifest.Dsh.Plugin.Exec; program != "" && subpath == "" {
		return filesMissing(pkg.Dir, []string{program}, program) // it is run and not imported
	}
	if exports := jsonValue(manifest.Exports); exports != nil {
		return exportMissing(pkg.Dir, exports, subpath)
	}
	main, _ := jsonValue(manifest.Main).(string)
	switch {
	case subpath != "":
		return filesMissing(pkg.Dir, withEndings(subpath), subpath)
	case main != "":
		// Node.js falls back to index.js where main leads nowhere.
		return filesMissing(pkg.Dir, append(withEndings(main), "index.js"), main)
	default:
		return filesMissing(pkg.Dir, []string{"index.js", "index.json", "index.node"}, "index.js")
	}
}

// withEndings are the files that require takes a name for.
func withEndings(name string) []string {
	candidates := []string{name}
	for _, ending := range []string{".js", ".json", ".node", "/index.js", "/index.json", "/index.node"} {
		candidates = append(candidates, strings.TrimSuffix(name, "/")+ending)
	}
	return candidates
}

// exportMissing is entryMissing for a package with "exports".
func exportMissing(dir string, exports any, subpath string) string {
	key := "."
	if subpath != "" {
		key = "./" + subpath
	}
	entries, isMap := exports.(map[string]any)
	bySubpath := isMap
	for k := range entries {
		bySubpath = bySubpath && strings.HasPrefix(k, ".")
	}
	if !bySubpath {
		entries = map[string]any{".": exports}
	}
	target, ok := entries[key]
	if !ok {
		for k := range entries {
			if strings.Contains(k, "*") || strings.HasSuffix(k, "/") {
				return "" // a pattern may mean it
			}
		}
		return fmt.Sprintf("does not export %q", key)
	}
	files := targets(target, nil)
	if files == nil {
		return fmt.Sprintf("does not export %q", key)
	}
	if slices.ContainsFunc(files, func(f string) bool { return strings.Contains(f, "*") }) {
		return ""
	}
	return filesMissing(dir, files, files[0])
}

// targets are all files that an entry of "exports" may lead to.
func targets(v any, files []string) []string {
	switch v := v.(type) {
	case string:
		files = append(files, v)
	case []any:
		for _, item := range v {
			files = targets(item, files)
		}
	case map[string]any:
		for condition, item := range v {
			if condition != "types" {
				files = targets(item, files)
			}
		}
	}
	slices.Sort(files)
	return files
}

// filesMissing says that shown is missing when none of the files is there.
func filesMissing(dir string, files []string, shown string) string {
	for _, file := range files {
		if !filepath.IsLocal(filepath.FromSlash(path.Clean(file))) || !absent(filepath.Join(dir, filepath.FromSlash(file))) {
			return ""
		}
	}
	return noFile(strings.TrimPrefix(shown, "./"))
}

func noFile(name string) string { return "has no file " + name }

// jsonValue is a value of JSON; nil for one that is missing, or null.
func jsonValue(raw json.RawMessage) any {
	var v any
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
