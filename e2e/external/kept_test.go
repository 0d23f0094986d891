//go:build external

package external

import (
	"archive/tar"
	"os"
	"path/filepath"
	"testing"
)

// TestPnpmAfterKeptArchive: pnpm installs what a profile keeps of an archive that it could not read itself.
func TestPnpmAfterKeptArchive(t *testing.T) {
	m := newMachine(t)
	file := filepath.Join(t.TempDir(), "repo.tar")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	tw := tar.NewWriter(out)
	for name, text := range map[string]string{
		"repo/package.json":        `{"name": "root", "private": true}`,
		"repo/plugin/package.json": `{"name": "@acme/kept", "version": "1.0.0", "dependencies": {"ms": "2.1.3"}}`,
		"repo/plugin/index.js":     `module.exports = require("ms")`,
	} {
		if err := tw.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	m.dsh(t, "plugin", "--profile", "x", "add", file+"//plugin")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	before := readFile(t, m.profile("x", "package.json"))
	if err := os.RemoveAll(m.profile("x", "node_modules")); err != nil {
		t.Fatal(err)
	}
	m.runPnpm(t, "x", "install")
	if after := readFile(t, m.profile("x", "package.json")); after != before {
		t.Errorf("pnpm made of the manifest\n%s", after)
	}
	for _, name := range []string{"@acme/kept/index.js", "ms/package.json"} {
		if _, err := os.Stat(m.profile("x", "node_modules", filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
	m.runPnpm(t, "x", "add", "is-number@7.0.0")
}
