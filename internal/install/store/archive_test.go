package store

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
)

// saved is a file with an archive in it.
func saved(t *testing.T, archive []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "archive")
	if err := os.WriteFile(file, archive, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestAddArchive(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	archive := tgz(t,
		entry{name: "top/package.json", body: `{"scripts":{"postinstall":"x"}}`},
		entry{name: "top/lib/real.js", body: "r"},
		entry{name: "top/link.js", kind: tar.TypeSymlink, link: "lib/real.js"},
		entry{name: "top/dir", kind: tar.TypeSymlink, link: "./lib"},
	)
	file := saved(t, archive)
	e, err := s.AddArchive(context.Background(), file, unpack.Options{Links: true, Strip: true}, sumOf(archive))
	if err != nil {
		t.Fatal(err)
	}
	again, ok := s.Get(e.Integrity)
	if !ok {
		t.Fatal("it cannot be read back")
	}
	closure, err := s.ParseClosure(FormatClosure([]Entry{e}))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []Entry{e, again, closure[e.Integrity]} {
		var links []string
		for _, f := range e.Files() {
			if f.Link != "" {
				links = append(links, f.Path+" -> "+f.Link)
			}
		}
		if diff := cmp.Diff([]string{"dir -> ./lib", "link.js -> lib/real.js"}, links); diff != "" {
			t.Error(diff)
		}
		if !e.HasScripts() || e.HasPrepare() || !e.Has("link.js") || e.Check() != nil || !e.Sound() || e.Len() != 2 {
			t.Error("the entry is not what it should be")
		}
		dst := filepath.Join(t.TempDir(), "x")
		if err := e.Link(dst, Auto, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"link.js", "dir/real.js"} {
			if text, err := os.ReadFile(filepath.Join(dst, name)); err != nil || string(text) != "r" {
				t.Errorf("%s: %q %v", name, text, err)
			}
		}
		if same, err := e.Stands(dst, false); !same || err != nil {
			t.Errorf("stands: %t %v", same, err)
		}
		if err := errors.Join(os.Remove(filepath.Join(dst, "dir")), os.Symlink("elsewhere", filepath.Join(dst, "dir"))); err != nil {
			t.Fatal(err)
		}
		if same, err := e.Stands(dst, false); same || err != nil {
			t.Errorf("with another link it stands: %t %v", same, err)
		}
	}
	var all []string
	err = e.EachFile(context.Background(), func(m unpack.Member, r io.Reader) error {
		text, err := io.ReadAll(r)
		all = append(all, m.Name+" "+string(text[:1]))
		return err
	})
	if diff := cmp.Diff([]string{"dir/real.js r", "lib/real.js r", "link.js r", "package.json {"}, all); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if err := os.Remove(e.path("dir")); err != nil {
		t.Fatal(err)
	}
	if err := e.Check(); err == nil || e.Intact() {
		t.Error("a lost link is not noticed")
	}

	if _, err := s.AddArchive(context.Background(), file, unpack.Options{Strip: true, Links: true}, sumOf([]byte("x"))); err == nil {
		t.Error("another content is taken")
	}
	if _, err := s.AddArchive(context.Background(), file, unpack.Options{Strip: true}, Integrity{}); fault.ClassOf(err) != fault.Policy {
		t.Errorf("links that are not allowed: %v", err)
	}
	inside, err := Open(t.TempDir()).AddArchive(context.Background(), file, unpack.Options{Strip: true, Inside: "lib"}, Integrity{})
	if err == nil {
		t.Errorf("links outside of the folder that is asked for are let in: %v", inside.Files())
	}
	if _, err := Open(t.TempDir()).AddArchive(context.Background(), file, unpack.Options{Strip: true, Links: true, Inside: "nowhere"}, Integrity{}); fault.ClassOf(err) != fault.Package {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A tree has the hash of the same folder, in whatever order it comes.
func TestAddTree(t *testing.T) {
	files := map[string]string{"a.b": "1", "a/x": "2", "a-b": "3", "package.json": `{"scripts":{"prepare":"x"}}`}
	dir := t.TempDir()
	for name, body := range files {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(body), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	folder, err := Open(t.TempDir()).AddFolder(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	tree := func(links ...string) Entry {
		e, err := Open(t.TempDir()).AddTree(context.Background(), unpack.Limits{}, func(add func(unpack.Member, io.Reader) error) error {
			for _, link := range links {
				if err := add(unpack.Member{Name: "l", Type: unpack.Link, Link: link}, nil); err != nil {
					return err
				}
			}
			for name, body := range files { // in no order
				if err := add(unpack.Member{Name: name, Size: int64(len(body))}, strings.NewReader(body)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	if e := tree(); e.Integrity != folder.Integrity || !e.HasPrepare() || e.HasScripts() {
		t.Errorf("%s and %s", e.Integrity, folder.Integrity)
	}
	if one, two := tree("a/x"), tree("a.b"); one.Integrity == two.Integrity || one.Integrity == folder.Integrity {
		t.Error("links do not count")
	}
}

func TestAddBuilt(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "build", "bins"), 0o755),
		os.WriteFile(filepath.Join(dir, "build", "x.so.1.2"), []byte("elf"), 0o755),
		os.Symlink("x.so.1", filepath.Join(dir, "build", "x.so")),
		os.Symlink("x.so.1.2", filepath.Join(dir, "build", "x.so.1")),
		os.Symlink("/usr/bin/env", filepath.Join(dir, "build", "bins", "python")),
		os.Symlink("..", filepath.Join(dir, "build", "up")),
		os.Symlink("nowhere", filepath.Join(dir, "gone")),
	)
	if err != nil {
		t.Fatal(err)
	}
	id := sumOf([]byte("what it was built from"))
	s := Open(filepath.Join(t.TempDir(), "store"))
	e, err := s.AddBuilt(context.Background(), id, dir, unpack.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		{Path: "build/x.so", Link: "x.so.1.2"}, {Path: "build/x.so.1", Link: "x.so.1.2"},
		file("build/x.so.1.2", "elf", true),
	}
	if diff := cmp.Diff(want, e.Files()); diff != "" {
		t.Error(diff)
	}
	if got, ok := s.Get(id); !ok || got.Check() != nil {
		t.Error("it cannot be read back")
	}
}
