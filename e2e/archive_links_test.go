package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Links inside of an archive's package are laid out, and come back when the
// packages are lost. One that leads out is refused.
func TestLinksInAnArchive(t *testing.T) {
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	write := func(name string, headers ...*tar.Header) string {
		var b bytes.Buffer
		zw := gzip.NewWriter(&b)
		tw := tar.NewWriter(zw)
		var err error
		for _, h := range headers {
			body := h.Uname // of files
			h.Uname, h.Mode, h.Size = "", 0o644, int64(len(body))
			err = errors.Join(err, tw.WriteHeader(h))
			_, writeErr := io.WriteString(tw, body)
			err = errors.Join(err, writeErr)
		}
		file := filepath.Join(t.TempDir(), name)
		if err := errors.Join(err, tw.Close(), zw.Close(), os.WriteFile(file, b.Bytes(), 0o644)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	manifest := func() *tar.Header {
		return &tar.Header{Name: "top/package.json", Uname: `{"name":"linked","version":"1.0.0","main":"main.js"}`}
	}
	file := write("linked.tgz", manifest(),
		&tar.Header{Name: "top/lib/real.js", Uname: "the real one"},
		&tar.Header{Name: "top/main.js", Typeflag: tar.TypeSymlink, Linkname: "lib/real.js"},
		&tar.Header{Name: "top/also", Typeflag: tar.TypeSymlink, Linkname: "./lib"},
	)
	u.must(t, "plugin", "--profile", "demo", "add", file)
	modules := filepath.Join(u.home, "profiles", "demo", "node_modules")
	stands := func(when string) {
		t.Helper()
		for _, name := range []string{"lib/real.js", "main.js", "also/real.js"} {
			if text, err := os.ReadFile(filepath.Join(modules, "linked", name)); err != nil || string(text) != "the real one" {
				t.Errorf("%s, %s: %q, %v", when, name, text, err)
			}
		}
	}
	stands("added")
	if err := errors.Join(os.RemoveAll(modules), os.Remove(file)); err != nil {
		t.Fatal(err)
	}
	u.must(t, "plugin", "--profile", "demo", "install", "--offline", "--frozen")
	stands("laid out again")
	u.must(t, "store", "verify")

	evil := write("evil.tgz", manifest(), &tar.Header{Name: "top/main.js", Typeflag: tar.TypeSymlink, Linkname: "../../../../package.json"})
	cmd := u.dsh("plugin", "--profile", "demo", "add", "evil@"+evil)
	out, _ := cmd.CombinedOutput() // the exit code tells
	if cmd.ProcessState.ExitCode() != 5 || !strings.Contains(string(out), `archive entry "top/main.js" is a link to "../../../../package.json", which leaves the package's folder`) {
		t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), out)
	}
	stands("after an evil one")
	u.noLitter(t, "an evil one")
}
