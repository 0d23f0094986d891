package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
)

func TestProgramsOfAFolder(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	for bin, want := range map[string][]File{
		`{"x": "./bin/x.js", "..": "a.js"}`:   {file("a.js", "a", false), file("bin/x.js", "x", true)},
		`"bin/../a.js"`:                       {file("a.js", "a", true), file("bin/x.js", "x", false)},
		`["bin\\x.js"]`:                       {file("a.js", "a", false), file("bin/x.js", "x", true)},
		`{}, "Bin": "a.js"`:                   {file("a.js", "a", false), file("bin/x.js", "x", false)},
		`{"x": "../../a.js", "y": "nothing"}`: {file("a.js", "a", true), file("bin/x.js", "x", false)},
	} {
		dir := t.TempDir()
		err := errors.Join(
			os.Mkdir(filepath.Join(dir, "bin"), 0o755),
			os.WriteFile(filepath.Join(dir, "bin", "x.js"), []byte("x"), 0o644),
			os.WriteFile(filepath.Join(dir, "a.js"), []byte("a"), 0o644),
			os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "n", "bin": `+bin+`}`), 0o644),
		)
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.AddFolder(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, e.Files()[:2]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", bin, diff)
		}
		for _, f := range e.Files() {
			info, err := os.Stat(e.path(f.Path))
			if err != nil || (runtime.GOOS != "windows" && (info.Mode()&0o111 != 0) != f.Executable) {
				t.Errorf("%s: %s is %v, %v", bin, f.Path, info.Mode(), err)
			}
		}
	}
}

// The hash is of what stands in the folder, however the store keeps it.
func TestHashOfAFolder(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "a.js"), []byte("a"), 0o644),
		os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name": "n", "bin": "a.js"}`), 0o644),
	)
	if err != nil {
		t.Fatal(err)
	}
	e, err := Open(filepath.Join(t.TempDir(), "store")).AddFolder(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "sha512-qpFiJIpBomnSJZE537EJhS02upAQe78dAbt0DufqjberNqzqRZr3Rit6wM2GGEMdTSaQJ7ps4EHADXOmDL36vA=="
	if e.Integrity.String() != want {
		t.Errorf("the hash became %s", e.Integrity)
	}
}

func TestFolderAroundTheStore(t *testing.T) {
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "package.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(project, link); err != nil {
		link = project // a system where links need rights
	}
	for _, made := range []bool{false, true} {
		for dir, storeDir := range map[string]string{
			project:                                 filepath.Join(project, ".dsh", "store"),
			link:                                    filepath.Join(project, ".dsh", "store"),
			filepath.Join(project, "."):             filepath.Join(link, ".dsh", "store"),
			filepath.Join(project, ".dsh", "store"): filepath.Join(project, ".dsh", "store"),
		} {
			if made || strings.HasSuffix(dir, "store") {
				if err := os.MkdirAll(storeDir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Open(storeDir).AddFolder(context.Background(), dir)
			if fault.ClassOf(err) != fault.Policy || !strings.Contains(err.Error(), "contains the package store") {
				t.Errorf("%s around %s: %v", dir, storeDir, err)
			}
			if _, err := os.Lstat(storeDir); !made && err == nil && !strings.HasSuffix(dir, "store") {
				t.Errorf("%s was made", storeDir)
			}
			if err := os.RemoveAll(filepath.Join(project, ".dsh")); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A folder beside the store is none around it, nor is one of a longer name.
	if _, err := Open(project+".store").AddFolder(context.Background(), project); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(project + ".store"); err != nil {
		t.Error(err)
	}
}

func TestHugeFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} { // neither is too large by itself
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size := int64(1)
		if name == "b" {
			size = unpack.Default.Unpacked
		}
		if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	s := Open(filepath.Join(t.TempDir(), "store"))
	_, err := s.AddFolder(context.Background(), dir)
	if fault.ClassOf(err) != fault.Policy || !strings.Contains(err.Error(), "unpacks to more than 512 MiB") {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, s)
}
