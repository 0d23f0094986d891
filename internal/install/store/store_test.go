package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

type entry struct {
	name, body string
	mode       int64
	kind       byte // 0 is a regular file
	link       string
}

func tgz(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Typeflag: e.kind, Linkname: e.link}
		if e.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.body))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == 0 {
			if _, err := tw.Write([]byte(e.body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// file is how an entry lists a file with a content.
func file(path, content string, executable bool) File {
	return File{Path: path, Size: int64(len(content)), Executable: executable, Hash: sha256.Sum256([]byte(content))}
}

func sumOf(archive []byte) Integrity { return Integrity{sha512.Sum512(archive)} }

func add(t testing.TB, s *Store, archive []byte, want Integrity) (Entry, error) {
	t.Helper()
	return s.AddTarball(context.Background(), bytes.NewReader(archive), want)
}

// nothingLeft closes the store and fails when a failed addition left anything.
func nothingLeft(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	err := filepath.WalkDir(s.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != s.Dir() && d.Name() != useName {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAddTarball(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	archive := tgz(t,
		entry{name: "package/package.json", body: `{"name":"x","bin":{"x":"./bin/x.js"}}`},
		entry{name: "package/lib/", kind: tar.TypeDir, mode: 0o755},
		entry{name: "package/lib/deep/a.js", body: "a"},
		entry{name: "package/run.sh", body: "#!/bin/sh\n", mode: 0o777},
		entry{name: "package/bin/x.js", body: "x"},
		entry{name: "./package/./b.js", body: "b", mode: 0o4777},
	)
	e, err := add(t, s, archive, sumOf(archive))
	if err != nil {
		t.Fatal(err)
	}
	want := []File{
		file("b.js", "b", true), file("bin/x.js", "x", true), file("lib/deep/a.js", "a", false),
		file("package.json", `{"name":"x","bin":{"x":"./bin/x.js"}}`, false), file("run.sh", "#!/bin/sh\n", true),
	}
	if diff := cmp.Diff(want, e.Files()); diff != "" {
		t.Error(diff)
	}
	again, ok := s.Get(sumOf(archive))
	if !ok {
		t.Fatal("the entry cannot be read back")
	}
	if diff := cmp.Diff(want, again.Files()); diff != "" {
		t.Error(diff)
	}
	if again.Has("nothing") || !again.Has("lib/deep/a.js") {
		t.Error("Has is wrong")
	}

	dst := filepath.Join(t.TempDir(), "x")
	if err := again.Link(dst, Auto, nil); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dst, "lib", "deep", "a.js"))
	if err != nil || string(data) != "a" {
		t.Errorf("linked file: %q, %v", data, err)
	}
	info, err := os.Stat(filepath.Join(dst, "run.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode(); mode&0o222 != 0 || mode&fs.ModeSetuid != 0 {
		t.Errorf("a linked file has mode %v", mode)
	}

	// The same content again is the same entry.
	if _, err := add(t, s, archive, Integrity{}); err != nil {
		t.Error(err)
	}
}

func TestTheFirstPathElementGoes(t *testing.T) {
	s := Open(t.TempDir())
	archive := tgz(t, entry{name: "any name/index.js", body: "x"}, entry{name: "stray", body: "y"})
	e, err := add(t, s, archive, Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]File{file("index.js", "x", false)}, e.Files()); diff != "" {
		t.Error(diff)
	}
}

func TestRepeatedFile(t *testing.T) {
	long := strings.Repeat("0123456789abcdef", 10_000)
	for _, body := range []string{"", "x", long, long[:32<<10], long[:64<<10], long[:32<<10+1]} {
		same := tgz(t, entry{name: "package/a", body: body}, entry{name: "package/a", body: body}, entry{name: "package/b", body: "b"})
		e, err := add(t, Open(t.TempDir()), same, Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]File{file("a", body, false), file("b", "b", false)}, e.Files()); diff != "" {
			t.Error(diff)
		}
		for _, other := range []string{body + "x", strings.TrimSuffix(body, body[:min(1, len(body))]) + "y", "y" + body[min(1, len(body)):]} {
			differs := tgz(t, entry{name: "package/a", body: body}, entry{name: "package/a", body: other})
			if _, err := add(t, Open(t.TempDir()), differs, Integrity{}); fault.ClassOf(err) != fault.Policy {
				t.Errorf("%d bytes and %d other ones: %v", len(body), len(other), err)
			}
		}
	}
}

// Nothing of a large archive is held in memory, nor what stands in it twice.
func TestRepeatedFileInMemory(t *testing.T) {
	body := strings.Repeat("a", maxInMemory/3+1)
	archive := tgz(t, entry{name: "package/a", body: body}, entry{name: "package/a", body: body}, entry{name: "package/a", body: body[1:] + "b"})
	s := Open(filepath.Join(t.TempDir(), "store"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := add(t, s, archive, Integrity{})
	runtime.ReadMemStats(&after)
	if fault.ClassOf(err) != fault.Policy {
		t.Errorf("got %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 2<<20 {
		t.Errorf("%d bytes of memory", used)
	}
	nothingLeft(t, s)
}

func TestRefusedArchives(t *testing.T) {
	for name, c := range map[string]struct {
		archive []byte
		want    string
		class   fault.Class
	}{
		"parent":         {tgz(t, entry{name: "package/../../x", body: "x"}), "leaves the package's folder", fault.Policy},
		"absolute":       {tgz(t, entry{name: "/etc/x", body: "x"}), "is an absolute path", fault.Policy},
		"backslash":      {tgz(t, entry{name: `package/..\x`, body: "x"}), "has a backslash", fault.Policy},
		"control":        {tgz(t, entry{name: "package/a\nb", body: "x"}), "control character", fault.Policy},
		"symlink":        {tgz(t, entry{name: "package/l", kind: tar.TypeSymlink, link: "/etc/passwd"}), "is a link", fault.Policy},
		"hard link":      {tgz(t, entry{name: "package/l", kind: tar.TypeLink, link: "package/a"}), "is a link", fault.Policy},
		"device":         {tgz(t, entry{name: "package/d", kind: tar.TypeChar}), "neither a file nor a directory", fault.Policy},
		"fifo":           {tgz(t, entry{name: "package/f", kind: tar.TypeFifo}), "neither a file nor a directory", fault.Policy},
		"case collision": {tgz(t, entry{name: "package/a", body: "x"}, entry{name: "package/A", body: "x"}), "differs from", fault.Policy},
		"repeated":       {tgz(t, entry{name: "package/a", body: "x"}, entry{name: "package/a", body: "y"}), "twice with different contents", fault.Policy},
		"no gzip":        {[]byte("<html>not found</html>"), "not a gzip file", fault.Package},
		"cut off":        {tgz(t, entry{name: "package/a", body: strings.Repeat("abc", 9999)})[:60], "read archive", fault.Package},
		"empty":          {nil, "not a gzip file", fault.Package},
	} {
		t.Run(name, func(t *testing.T) {
			s := Open(filepath.Join(t.TempDir(), "store"))
			_, err := add(t, s, c.archive, Integrity{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			if got := fault.ClassOf(err); got != c.class {
				t.Errorf("class %v, want %v", got, c.class)
			}
			nothingLeft(t, s)
		})
	}
}

func TestMismatch(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	archive := tgz(t, entry{name: "package/a", body: "x"})
	want := sumOf([]byte("something else"))
	for name, content := range map[string][]byte{
		"whole": archive, "broken": archive[:20], "with more behind it": append(bytes.Clone(archive), "more"...),
	} {
		s := Open(s.Dir())
		_, err := add(t, s, content, want)
		mismatch, ok := errors.AsType[*MismatchError](err)
		if !ok {
			t.Fatalf("%s: got %v", name, err)
		}
		if mismatch.Got != sumOf(content) {
			t.Errorf("%s: the error names another hash", name)
		}
		nothingLeft(t, s)
	}
}

func TestCancelled(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := s.AddTarball(ctx, bytes.NewReader(tgz(t, entry{name: "package/a", body: "x"})), Integrity{})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, s)
}

func TestBrokenIndexCountsAsAbsent(t *testing.T) {
	s := Open(t.TempDir())
	archive := tgz(t, entry{name: "package/a", body: "x"})
	e, err := add(t, s, archive, Integrity{})
	if err != nil {
		t.Fatal(err)
	}
	index := filepath.Join(e.dir, indexName)
	for _, text := range []string{"", "dsh-index 9\n", "dsh-index 1\n- 1 ../a\n", indexHeader + "\n- 1 a"} {
		if err := os.Chmod(index, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(index, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get(e.Integrity); ok {
			t.Errorf("index %q counts as whole", text)
		}
		if _, err := add(t, s, archive, e.Integrity); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.Get(e.Integrity); !ok {
			t.Errorf("index %q was not replaced", text)
		}
	}
}

func TestAddFolder(t *testing.T) {
	write := func(t *testing.T, dir string, files map[string]string) {
		t.Helper()
		for name, body := range files {
			file := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := Open(filepath.Join(t.TempDir(), "store"))
	one, two, three := t.TempDir(), t.TempDir(), t.TempDir()
	write(t, one, map[string]string{"package.json": "{}", "lib/a.js": "a", ".git/config": "x", "lib/node_modules/y/z": "z"})
	write(t, two, map[string]string{"lib/a.js": "a", "package.json": "{}"})
	write(t, three, map[string]string{"lib/a.js": "{}", "package.json": "a"})
	hashes := map[string]Integrity{}
	for name, dir := range map[string]string{"one": one, "two": two, "three": three} {
		e, err := s.AddFolder(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"lib/a.js", "package.json"}, []string{e.Files()[0].Path, e.Files()[1].Path}); diff != "" {
			t.Error(diff)
		}
		hashes[name] = e.Integrity
	}
	if hashes["one"] != hashes["two"] || hashes["one"] == hashes["three"] {
		t.Error("hashes do not follow content")
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(three, "link")); err == nil {
		if _, err := s.AddFolder(context.Background(), three); fault.ClassOf(err) != fault.Policy {
			t.Errorf("a link in a folder: %v", err)
		}
	}
}

func TestParseIntegrity(t *testing.T) {
	id := sumOf([]byte("x"))
	for _, text := range []string{id.String(), "sha1-abc " + id.String(), id.String() + "?opt", "  " + id.String() + "\n"} {
		got, err := ParseIntegrity(text)
		if err != nil || got != id {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "sha512-", "sha512-abc", "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=", "sha512-" + strings.Repeat("A", 200)} {
		if _, err := ParseIntegrity(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(tgz(f, entry{name: "package/package.json", body: `{"bin":"x"}`}, entry{name: "package/x", body: "x"}))
	f.Add(tgz(f, entry{name: "../x", body: "x"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		s := Open(filepath.Join(dir, "store"))
		e, err := add(t, s, archive, Integrity{})
		if err != nil {
			nothingLeft(t, s)
			return
		}
		for _, file := range e.Files() {
			info, err := os.Lstat(e.path(file.Path))
			if err != nil || !info.Mode().IsRegular() || info.Size() != file.Size {
				t.Errorf("%s: %v %v", file.Path, info, err)
			}
		}
	})
}
