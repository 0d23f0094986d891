package inspect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/installation"
)

func TestLacking(t *testing.T) {
	for _, test := range []struct{ manifest, files, want string }{
		{`{}`, "", ""},
		{`{"main": "lib/index.js"}`, "src/index.ts", "main lib/index.js"},
		{`{"main": "./lib"}`, "lib/index.js", ""},
		{`{"main": "lib/index"}`, "lib/index.js", ""},
		{`{"main": "lib/index.js"}`, "index.js", ""}, // Node.js goes on to that
		{`{"main": "lib/index.js", "exports": "./dist/a.js"}`, "lib/index.js", "exports dist/a.js"},
		{`{"exports": {"import": "./dist/a.mjs", "require": "./dist/a.cjs", "types": "./dist/a.d.ts"}}`, "dist/a.cjs", ""},
		{`{"exports": {".": {"types": "./t.d.ts", "default": "./lib/a.js"}, "./b": "./lib/b.js", "./package.json": "./package.json", "./internal": null}}`, "lib/a.js", "exports lib/b.js"},
		{`{"exports": {"./*": "./lib/*.js"}}`, "", "exports lib/*.js"},
		{`{"exports": {"./*": "./lib/*.js"}}`, "lib/a.js", ""},
		{`{"exports": {"./*": "./*.js"}}`, "", ""},
		{`{"bin": "cli.js"}`, "", "bin cli.js"},
		{`{"bin": {"b": "b.js", "a": "bin/a.js"}}`, "b.js", "bin bin/a.js"},
		{`{"dsh": {"bundle": {"patch": ["p.yml", "./q.yml"]}}}`, "p.yml", "dsh.bundle.patch q.yml"},
		{`{"main": 7, "exports": [], "bin": 7}`, "", ""},
		{`{"main": "../../etc/passwd"}`, "", ""},
		{`[]`, "", ""},
	} {
		dir := t.TempDir()
		for file := range strings.FieldsSeq("package.json " + test.files) {
			path := filepath.Join(dir, filepath.FromSlash(file))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		for _, l := range Lacking(installation.Package{Dir: dir, Manifest: []byte(test.manifest)}) {
			got = append(got, l.Field+" "+l.File)
		}
		if strings.Join(got, ", ") != test.want {
			t.Errorf("%s with %q: %q, want %q", test.manifest, test.files, got, test.want)
		}
	}
}
