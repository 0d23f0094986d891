// Package bundles is the in-box bundles: one folder for each, as an npm package
// would hold it, and the JSON Schemas of the configuration of the plugins in
// their rows.
//
// It is not the code of those plugins, and nothing here is published: each
// package.json has the version 0.0.0-embedded, which stands for "the version of
// this program" and which no range of a real package means.
package bundles

import (
	"embed"
	"encoding/json"
	"io/fs"
	"strings"
	"sync"
)

//go:embed */package.json */cordis.patch.yml schemas/*.json
var files embed.FS

// scope is the npm scope of all in-box bundles; their folders are named
// without it.
const scope = "@deepseek-ai/"

// Names is the package names of the in-box bundles, sorted.
func Names() []string {
	manifests, err := fs.Glob(files, "*/package.json")
	if err != nil {
		panic("bundles: " + err.Error()) // cannot happen: the pattern is well-formed
	}
	names := make([]string, len(manifests))
	for i, manifest := range manifests {
		names[i] = scope + strings.TrimSuffix(manifest, "/package.json")
	}
	return names
}

// Open is the package of an in-box bundle and the name of its folder.
func Open(name string) (pkg fs.FS, folder string, ok bool) {
	folder, scoped := strings.CutPrefix(name, scope)
	if !scoped || strings.Contains(folder, "/") {
		return nil, "", false
	}
	if _, err := fs.Stat(files, folder+"/package.json"); err != nil {
		return nil, "", false
	}
	pkg, err := fs.Sub(files, folder)
	return pkg, folder, err == nil
}

// Schema is the JSON Schema (2020-12) of a plugin's config, by the plugin's
// name as rows spell it. A plugin without one takes no configuration, or is not
// of this program. Values with "format": "path" are paths of the file system.
func Schema(plugin string) (schema []byte, ok bool) {
	file, ok := index()[plugin]
	if !ok {
		return nil, false
	}
	schema, err := files.ReadFile("schemas/" + file)
	return schema, err == nil
}

// index is the files of the schemas by the names of their plugins.
var index = sync.OnceValue(func() (index map[string]string) {
	text, err := files.ReadFile("schemas/index.json")
	if err == nil {
		err = json.Unmarshal(text, &index)
	}
	if err != nil {
		panic("bundles: " + err.Error()) // cannot happen: a test reads it
	}
	return index
})
