package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"dsh/internal/fault"
)

// noise cannot be compressed.
func noise(size int) string {
	rnd := rand.New(rand.NewPCG(1, uint64(size)))
	text := make([]byte, size)
	for i := range text {
		text[i] = byte(rnd.Uint32())
	}
	return string(text)
}

// plainReader hides how long a reader is.
type plainReader struct{ io.Reader }

// Archives of every size of buffer, and larger ones, come out the same, whether
// their size is known or not.
func TestArchiveSizes(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	for _, size := range []int{0, 1, packedSizes[0] - 1000, packedSizes[0], packedSizes[1] + 1, packedSizes[2] + 1, maxPacked + 1} {
		body := noise(size)
		archive := tgz(t, entry{name: "package/a", body: body}, entry{name: "package/b/c", body: fmt.Sprint(size)})
		for name, r := range map[string]io.Reader{"known": bytes.NewReader(archive), "unknown": plainReader{bytes.NewReader(archive)}, "in halves": iotest.HalfReader(bytes.NewReader(archive))} {
			e, err := s.AddTarball(t.Context(), r, sumOf(archive))
			if err != nil {
				t.Fatalf("%d bytes, %s: %v", size, name, err)
			}
			if files := e.Files(); len(files) != 2 || files[0] != file("a", body, false) {
				t.Errorf("%d bytes, %s: %d files", size, name, len(files))
			}
			if err := s.Drop(e.Integrity); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Archives that come slowly, all at once, and together need more memory than
// there is, do not wait for each other for ever, and give all of it back.
func TestArchivesShareMemory(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	var group, reading sync.WaitGroup
	const count = 24
	reading.Add(count)
	for i := range count {
		archive := tgz(t, entry{name: "package/a", body: noise(packedSizes[2] + i)})
		group.Go(func() {
			first, rest := archive[:packedSizes[1]], archive[packedSizes[1]:]
			met := sync.OnceFunc(func() { reading.Done(); reading.Wait() })
			r := io.MultiReader(bytes.NewReader(first), readerFunc(func(p []byte) (int, error) { met(); return 0, io.EOF }), bytes.NewReader(rest))
			if _, err := s.AddTarball(context.Background(), r, sumOf(archive)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if !packedBudget.TryAcquire(packedTotal) || !packedBeyond.TryAcquire(1) {
		t.Fatal("memory was not given back")
	}
	packedBudget.Release(packedTotal)
	packedBeyond.Release(1)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// An archive that breaks off leaves nothing, and its memory is given back.
func TestArchiveBreaksOff(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	archive := tgz(t, entry{name: "package/a", body: noise(packedSizes[0])})
	broken := errors.New("broken")
	_, err := s.AddTarball(t.Context(), io.MultiReader(bytes.NewReader(archive[:1000]), iotest.ErrReader(broken)), sumOf(archive))
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, s)
	if !packedBudget.TryAcquire(packedTotal) {
		t.Fatal("memory was not given back")
	}
	packedBudget.Release(packedTotal)
}

// inOneGo is whether an archive is inflated from memory to memory.
func inOneGo(t *testing.T, archive []byte) bool {
	var u unpacker
	defer u.free()
	_, ok := u.gunzip(t.Context(), archive)
	return ok
}

// Whatever is in front of and behind the compressed data, the files are the same.
func TestGzipForms(t *testing.T) {
	plain := tgz(t, entry{name: "package/a", body: "a"}, entry{name: "package/b", body: "b"})
	zr, err := gzip.NewReader(bytes.NewReader(plain))
	if err != nil {
		t.Fatal(err)
	}
	tarball, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	zip := func(header gzip.Header, parts ...[]byte) []byte {
		var buf bytes.Buffer
		for _, part := range parts {
			zw := gzip.NewWriter(&buf)
			zw.Header = header
			_, err := zw.Write(part)
			if err := errors.Join(err, zw.Close()); err != nil {
				t.Fatal(err)
			}
		}
		return buf.Bytes()
	}
	for name, c := range map[string]struct {
		archive []byte
		fast    bool
	}{
		"plain":         {plain, true},
		"name":          {zip(gzip.Header{Name: "x.tar"}, tarball), true},
		"all":           {zip(gzip.Header{Name: "x.tar", Comment: "c", Extra: []byte("extra")}, tarball), true},
		"two members":   {zip(gzip.Header{}, tarball[:700], tarball[700:]), false},
		"more after it": {append(bytes.Clone(plain), "more"...), false},
	} {
		s := Open(filepath.Join(t.TempDir(), "store"))
		if ok := inOneGo(t, c.archive); ok != c.fast {
			t.Errorf("%s: in one go: %t", name, ok)
		}
		e, err := add(t, s, c.archive, sumOf(c.archive))
		if err != nil || len(e.Files()) != 2 {
			t.Errorf("%s: %v, %v", name, e.Files(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range plain {
		if inOneGo(t, plain[:i]) {
			t.Errorf("the first %d bytes are an archive", i)
		}
	}
	wrong := bytes.Clone(plain)
	wrong[len(wrong)-8] ^= 1
	if inOneGo(t, wrong) {
		t.Error("a wrong checksum was not noticed")
	}
}

// A file cannot be a directory, whichever comes first and however large the
// archive is.
func TestFileAndDirectory(t *testing.T) {
	for _, size := range []int{1, maxInMemory} {
		big := entry{name: "package/z", body: noise(size)}
		for name, archive := range map[string][]byte{
			"the file first":            tgz(t, entry{name: "package/a", body: "x"}, entry{name: "package/a/b", body: "x"}, big),
			"the directory first":       tgz(t, entry{name: "package/a/b/c", body: "x"}, entry{name: "package/a", body: "x"}, big),
			"the file in other letters": tgz(t, entry{name: "package/A", body: "x"}, entry{name: "package/a/b", body: "x"}, big),
		} {
			s := Open(filepath.Join(t.TempDir(), "store"))
			if _, err := add(t, s, archive, Integrity{}); fault.ClassOf(err) != fault.Policy {
				t.Errorf("%s: %v", name, err)
			}
			nothingLeft(t, s)
		}
		// Directories in different letters are two, or one, as the system has it.
		s := Open(filepath.Join(t.TempDir(), "store"))
		e, err := add(t, s, tgz(t, entry{name: "package/Lib/a", body: "x"}, entry{name: "package/lib/b", body: "y"}, big), Integrity{})
		if err != nil || e.Check() != nil {
			t.Errorf("%v, %v", err, e.Check())
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Names are bounded, whatever few bytes they come in.
func TestManyNames(t *testing.T) {
	deep := strings.Repeat("a/", 480)
	var entries []entry
	for i := range 500 {
		entries = append(entries, entry{name: fmt.Sprintf("p/%03d/%sx", i, deep)})
	}
	s := Open(filepath.Join(t.TempDir(), "store"))
	if _, err := add(t, s, tgz(t, entries...), Integrity{}); fault.ClassOf(err) != fault.Policy {
		t.Error(err)
	}
	nothingLeft(t, s)
}

// All memory for large archives is given back, also when one is refused.
func TestLargeArchives(t *testing.T) {
	s := Open(filepath.Join(t.TempDir(), "store"))
	defer s.Close()
	good := tgz(t, entry{name: "package/a", body: string(make([]byte, maxOwn+1))})
	bad := tgz(t, entry{name: "package/../../a", body: string(make([]byte, maxOwn+1))})
	var group sync.WaitGroup
	for range 3 * maxLarge {
		group.Go(func() {
			if _, err := s.AddTarball(context.Background(), bytes.NewReader(good), sumOf(good)); err != nil {
				t.Error(err)
			}
			if _, err := s.AddTarball(context.Background(), bytes.NewReader(bad), Integrity{}); fault.ClassOf(err) != fault.Policy {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(large) != maxLarge {
		t.Errorf("memory for %d large archives is left of %d", len(large), maxLarge)
	}
}

// Who sends on and on after the archive, or instead of it, is not listened to.
func TestEndlessArchive(t *testing.T) {
	archive := tgz(t, entry{name: "package/a", body: "a"})
	for name, begin := range map[string][]byte{"after the archive": archive, "from the beginning": nil} {
		s := Open(filepath.Join(t.TempDir(), "store"))
		read := 0
		endless := readerFunc(func(p []byte) (int, error) {
			clear(p)
			read += len(p)
			return len(p), nil
		})
		_, err := s.AddTarball(t.Context(), io.MultiReader(bytes.NewReader(begin), endless), sumOf(archive))
		if fault.ClassOf(err) != fault.Package {
			t.Errorf("%s: %v", name, err)
		}
		if read > maxPacked+maxRest+1<<20 {
			t.Errorf("%s: %d bytes were read", name, read)
		}
		nothingLeft(t, s)
	}
}
