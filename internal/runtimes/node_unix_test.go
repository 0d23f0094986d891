//go:build unix

package runtimes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
)

func TestNodePrograms(t *testing.T) {
	dir := t.TempDir()
	script := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := script("a/node", `echo "v24.1.0$NODE_OPTIONS"`)
	script("b/other", "")
	getenv := func(name string) string {
		return map[string]string{"PATH": "/bin:/usr/bin", "NODE_OPTIONS": "--inspect"}[name]
	}
	if v, err := NodeVersion(t.Context(), good, getenv); err != nil || v.String() != "24.1.0" {
		t.Errorf("%v, %v", v, err)
	}
	for file, want := range map[string]string{
		script("c", "echo hello"):                      `its version is "hello"`,
		script("d", "echo no such library >&2; false"): "does not run: no such library",
		filepath.Join(dir, "gone"):                     "does not run",
	} {
		if _, err := NodeVersion(t.Context(), file, getenv); fault.ClassOf(err) != fault.MissingProgram || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", file, err)
		}
	}
	t.Chdir(dir)
	for path, want := range map[string]string{
		"":                                    "",
		filepath.Join(dir, "b"):               "",
		":" + filepath.Join(dir, "b") + "::a": "",
		filepath.Join(dir, "a") + ":/bin":     good,
	} {
		if got := NodeOnPath(path); got != want {
			t.Errorf("on %q: %q", path, got)
		}
	}
}
