//go:build unix

package program

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/pkgpath"
)

// pack makes a package with a program, and opens it.
func pack(t *testing.T, manifest, script string) installation.Package {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"package.json": manifest, "bin/run": script, "bin/data": "x"} {
		mode := os.FileMode(0o755)
		if name != "bin/run" {
			mode = 0o644
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/bin/sh", filepath.Join(dir, "bin", "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("run", filepath.Join(dir, "bin", "in")); err != nil {
		t.Fatal(err)
	}
	pkg, err := installation.OpenPackage(dir)
	if err != nil {
		t.Fatal(err)
	}
	return pkg
}

func TestOf(t *testing.T) {
	for _, test := range []struct {
		dsh   string
		path  string // below the package; "" for none
		class fault.Class
		err   string
	}{
		{dsh: `{"plugin": {"exec": "./bin/run"}}`, path: "bin/run"},
		{dsh: `{"plugin": {"exec": "./bin/../bin/run"}}`, path: "bin/run"},
		{dsh: `{"plugin": {"exec": "./bin/in"}}`, path: "bin/in"},
		{dsh: `{"bundle": {"patch": "x.yml"}}`},
		{dsh: `{"plugin": {}}`},
		{dsh: `"x"`},
		{dsh: `{"plugin": {"exec": ["./bin/run"]}}`, class: fault.Package, err: "must be a path"},
		{dsh: `{"plugin": {"exec": "bin/run"}}`, class: fault.Policy, err: "./"},
		{dsh: `{"plugin": {"exec": "/bin/sh"}}`, class: fault.Policy, err: "dsh.plugin.exec of tool"},
		{dsh: `{"plugin": {"exec": "./../run"}}`, class: fault.Policy, err: "dsh.plugin.exec of tool"},
		{dsh: `{"plugin": {"exec": "./bin\\run"}}`, class: fault.Policy, err: "dsh.plugin.exec of tool"},
		{dsh: `{"plugin": {"exec": "./bin/out"}}`, class: fault.Policy, err: "leads out of the package"},
		{dsh: `{"plugin": {"exec": "./bin/none"}}`, class: fault.Package, err: "not in the package"},
		{dsh: `{"plugin": {"exec": "./bin"}}`, class: fault.Package, err: "no file"},
		{dsh: `{"plugin": {"exec": "./bin/data"}}`, class: fault.Package, err: "not executable"},
	} {
		pkg := pack(t, `{"name": "tool", "dsh": `+test.dsh+`}`, "#!/bin/sh\n")
		p, ok, err := Of(pkg)
		if (err != nil) != (test.err != "") || err != nil && (!strings.Contains(err.Error(), test.err) || fault.ClassOf(err) != test.class) {
			t.Errorf("%s: got %v of %v", test.dsh, err, fault.ClassOf(err))
		}
		if ok != (test.path != "" || test.err != "") || err == nil && ok && p.Path != filepath.Join(pkg.Dir, test.path) {
			t.Errorf("%s: got %+v, %v", test.dsh, p, ok)
		}
	}
	_, _, err := Of(pack(t, `{"name": "tool", "dsh": {"plugin": {"exec": "run"}}}`, ""))
	if _, ok := errors.AsType[*pkgpath.MissingDotError](err); !ok {
		t.Errorf("got %v", err)
	}
}
