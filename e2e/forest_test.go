package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forest writes a registry of so many packages f0, f1, … that depend on each other: f0 on nearly all of them, through several versions of some, around
// circles, with optional packages that are not there or for another system, peers and programs. f0, f1 and f2 are bundles.
func forest(t testing.TB, size int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range size {
		for v, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
			dependencies, optional, peers := map[string]string{}, map[string]string{}, map[string]string{}
			for _, child := range []int{2*i + 1, 2*i + 2} {
				if child < size {
					dependencies[fmt.Sprintf("f%d", child)] = "^1.0.0"
				}
			}
			if i%5 == 3 {
				dependencies[fmt.Sprintf("f%d", (i+7)%size)] = "^2.0.0"
			}
			if i%9 == 8 {
				dependencies[fmt.Sprintf("f%d", i/3)] = fmt.Sprintf("~1.%d.0", v%2)
			}
			if i%7 == 2 {
				optional["f-not-there"], optional["f-elsewhere"] = "^1.0.0", "^1.0.0"
			}
			if i%6 == 4 {
				peers["f1"] = "*"
			}
			manifest := map[string]any{
				"name": fmt.Sprintf("f%d", i), "version": version,
				"dependencies": dependencies, "optionalDependencies": optional, "peerDependencies": peers,
			}
			if i%3 == 1 {
				manifest["bin"] = "bin/run.js"
			}
			if i < 3 {
				manifest["dsh"] = map[string]any{"bundle": map[string]any{"patch": "rows.yml"}}
			}
			plant(t, dir, manifest, map[string]string{
				"rows.yml":     fmt.Sprintf("- insert: [{id: row-%d, name: f%d}]\n", i, i),
				"bin/run.js":   "#!/usr/bin/env node\n",
				"index.js":     fmt.Sprintf("module.exports = 'f%d %s'\n%s", i, version, strings.Repeat("// leaves\n", 50*i)),
				"lib/a.js":     "// a\n",
				"lib/deep/b.c": strings.Repeat("int b;\n", 30),
			})
		}
	}
	plant(t, dir, map[string]any{"name": "f-elsewhere", "version": "1.0.0", "os": []string{"plan9"}}, nil)
	return dir
}

// plant writes one version of a package to the directory of a registry.
func plant(t testing.TB, dir string, manifest map[string]any, files map[string]string) {
	t.Helper()
	text, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var archive strings.Builder
	fmt.Fprintf(&archive, "-- package.json --\n%s\n", text)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&archive, "-- %s --\n%s", name, files[name])
	}
	base := fmt.Sprintf("%s_%s.txtar", strings.ReplaceAll(manifest["name"].(string), "/", "+"), manifest["version"])
	if err := os.WriteFile(filepath.Join(dir, base), []byte(archive.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// in is a plugin command for a profile.
func in(profile string, args ...string) []string {
	return append([]string{"plugin", "--profile", profile}, args...)
}
