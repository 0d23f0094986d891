package manifest

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
)

// Declared is what a package.json says is in its package, at one place of it.
type Declared struct {
	Field string // main, exports, bin, dsh.bundle.patch or files
	// Files are slash-separated, clean and as declared, sorted: conditions of an
	// export choose among several, everything else names one.
	Files []string
}

// Declares lists what a package.json says is in its package: what others load, its
// programs, its layers, and the topmost folders that it says are published. Types
// are left aside, for nothing that runs needs them, and so is "main" beside
// "exports", for Node.js does not look at it then.
func Declares(text []byte) []Declared {
	m := object(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	var list []Declared
	add := func(field string, files ...string) {
		clean := make([]string, len(files))
		for i, file := range files {
			clean[i] = path.Clean(strings.TrimSpace(file))
		}
		slices.Sort(clean)
		one := Declared{field, slices.Compact(clean)}
		known := func(d Declared) bool { return d.Field == field && slices.Equal(d.Files, one.Files) }
		if len(files) > 0 && !slices.ContainsFunc(list, known) {
			list = append(list, one)
		}
	}
	if exports := value(m["exports"]); exports != nil {
		for _, files := range exported(exports) {
			add("exports", files...)
		}
	} else if main, _ := value(m["main"]).(string); main != "" {
		add("main", main)
	}
	bin := value(m["bin"])
	programs, several := bin.(map[string]any)
	if !several {
		programs = map[string]any{"": bin}
	}
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		if file, _ := programs[name].(string); file != "" {
			add("bin", file)
		}
	}
	for _, file := range texts(value(object(object(m["dsh"])["bundle"])["patch"]), nil) {
		add("dsh.bundle.patch", file)
	}
	files, _ := value(m["files"]).([]any)
	for _, each := range files {
		name, _ := each.(string)
		top, _, _ := strings.Cut(strings.Trim(strings.TrimPrefix(name, "./"), "/"), "/")
		if top != "" && !strings.HasPrefix(top, "!") && !strings.Contains(top, "*") {
			add("files", top)
		}
	}
	return list
}

// There reports whether one of the declared files is in the package, of whose files
// and folders has tells. What leads out of the package is refused elsewhere and
// counts as there; of a pattern the folder in front of it is looked for. Node.js
// takes endings and an index.js from whoever leaves them out of "main".
func (d Declared) There(file string, has func(name string) bool) bool {
	name := LookedFor(file)
	if name == "." || name == ".." || strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") || has(name) {
		return true
	}
	if d.Field != "main" {
		return false
	}
	return has("index.js") || slices.ContainsFunc([]string{".js", ".json", ".node", "/index.js", "/index.json", "/index.node"}, func(end string) bool {
		return has(name + end)
	})
}

// LookedFor is the file or folder that has to be there for a declared file.
func LookedFor(file string) string {
	if before, _, pattern := strings.Cut(file, "*"); pattern {
		return path.Dir(before + "x")
	}
	return file
}

// exported is the files that each subpath of "exports" may lead to. What leads
// nowhere on purpose (null), or to types alone, is left out.
func exported(exports any) [][]string {
	entries, isMap := exports.(map[string]any)
	for key := range entries {
		isMap = isMap && strings.HasPrefix(key, ".")
	}
	if !isMap {
		return [][]string{texts(exports, nil)}
	}
	var list [][]string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		list = append(list, texts(entries[key], nil))
	}
	return list
}

// texts appends the strings in a value, but for empty ones and those that speak of
// types.
func texts(v any, list []string) []string {
	switch v := v.(type) {
	case string:
		if v != "" {
			list = append(list, v)
		}
	case []any:
		for _, each := range v {
			list = texts(each, list)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key != "types" && key != "typings" && !strings.HasPrefix(key, "types@") {
				list = texts(v[key], list)
			}
		}
	}
	return list
}

// object is the members of a JSON object, none of what is no object.
func object(raw json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return nil
	}
	return members
}

// value is a value of JSON; nil for one that is missing, or null.
func value(raw json.RawMessage) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}
