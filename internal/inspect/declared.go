package inspect

import (
	"encoding/json"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/installation"
	"dsh/internal/stack"
)

// Lack is a file that a package.json declares and that is not in the package.
type Lack struct {
	Field string `json:"field"` // main, exports, bin or dsh.bundle.patch
	File  string `json:"file"`  // slash-separated, relative to the package
}

// Lacking are the files that a package declares to be there for those who use it
// and that are not: what "main", "exports" and "bin" lead to, and the patch files of
// a bundle. Of an export for which conditions choose between files, one is enough;
// of one with a pattern, the folder in front of it is looked for. Types are left
// aside, for nothing that runs needs them.
func Lacking(pkg installation.Package) []Lack {
	var manifest struct {
		Exports json.RawMessage
		Main    json.RawMessage
		Bin     json.RawMessage
	}
	if json.Unmarshal(pkg.Manifest, &manifest) != nil {
		return nil
	}
	var list []Lack
	add := func(field, file string) {
		one := Lack{field, strings.TrimPrefix(path.Clean(file), "./")}
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	if exports := jsonValue(manifest.Exports); exports != nil {
		for _, files := range exported(exports) {
			if !slices.ContainsFunc(files, func(file string) bool { return declaredThere(pkg.Dir, file) }) {
				add("exports", files[0])
			}
		}
	} else if main, _ := jsonValue(manifest.Main).(string); main != "" && filesMissing(pkg.Dir, append(withEndings(main), "index.js"), main) != "" {
		add("main", main)
	}
	switch bin := jsonValue(manifest.Bin).(type) {
	case string:
		if !declaredThere(pkg.Dir, bin) {
			add("bin", bin)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(bin)) {
			if file, ok := bin[name].(string); ok && file != "" && !declaredThere(pkg.Dir, file) {
				add("bin", file)
			}
		}
	}
	patches, _ := stack.PatchFiles(pkg.Manifest) // what is wrong with the declaration is told elsewhere
	for _, file := range patches {
		if !declaredThere(pkg.Dir, file) {
			add("dsh.bundle.patch", file)
		}
	}
	return list
}

// exported are the files that each subpath of "exports" may lead to. What leads
// nowhere on purpose (null) or to types alone is left out.
func exported(exports any) [][]string {
	entries, isMap := exports.(map[string]any)
	for key := range entries {
		isMap = isMap && strings.HasPrefix(key, ".")
	}
	if !isMap {
		entries = map[string]any{".": exports}
	}
	var list [][]string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if files := targets(entries[key], nil); len(files) > 0 && files[0] != "" {
			list = append(list, files)
		}
	}
	return list
}

// declaredThere reports whether a declared file is there, or might be: what leads
// out of the package is refused elsewhere, and a pattern stands for files of a
// folder.
func declaredThere(dir, file string) bool {
	clean := path.Clean(strings.TrimSpace(file))
	if before, _, pattern := strings.Cut(clean, "*"); pattern {
		clean = path.Dir(before + "x")
	}
	native := filepath.FromSlash(clean)
	return clean == "." || !filepath.IsLocal(native) || !absent(filepath.Join(dir, native))
}
