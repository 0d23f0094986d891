package e2e

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// bombs are archives that are small, and unpack to very much: to one file of 200
// MiB, or to 100,000 with long names.
func bombs(t *testing.T) map[string][]byte {
	t.Helper()
	tarOf := func(open func(io.Writer) (io.WriteCloser, error), size int) []byte {
		var b bytes.Buffer
		zw, err := open(&b)
		if err != nil {
			t.Fatal(err)
		}
		tw := tar.NewWriter(zw)
		head := &tar.Header{Name: "package/bomb", Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(size)}
		err = errors.Join(tw.WriteHeader(&tar.Header{Name: "package/package.json", Typeflag: tar.TypeReg, Mode: 0o644}), tw.WriteHeader(head))
		zeros := make([]byte, 1<<20)
		for range size / len(zeros) {
			_, writeErr := tw.Write(zeros)
			err = errors.Join(err, writeErr)
		}
		if err := errors.Join(err, tw.Close(), zw.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	zipOf := func(fill func(zw *zip.Writer) error) []byte {
		var b bytes.Buffer
		zw := zip.NewWriter(&b)
		if err := errors.Join(fill(zw), zw.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	return map[string][]byte{
		"bomb.tgz":     tarOf(func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, 200<<20),
		"bomb.tar.xz":  tarOf(func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) }, 40<<20),
		"bomb.tar.zst": tarOf(func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) }, 200<<20),
		"bomb.zip": zipOf(func(zw *zip.Writer) error {
			w, err := zw.Create("package/bomb")
			zeros := make([]byte, 1<<20)
			for range 200 {
				_, writeErr := w.Write(zeros)
				err = errors.Join(err, writeErr)
			}
			return err
		}),
		"names.zip": zipOf(func(zw *zip.Writer) error {
			var err error
			for i := range 100_000 {
				_, createErr := zw.Create(fmt.Sprintf("package/bomb-%d-%s", i, strings.Repeat("n", 150)))
				err = errors.Join(err, createErr)
			}
			return err
		}),
	}
}

// However much an archive unpacks to, no more memory is held than 64 MiB beyond
// the limit that the policy sets, and nothing comes of it.
func TestBombs(t *testing.T) {
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	u.must(t, "plugin", "--profile", "demo", "add", "left")
	const limit = 1 << 20
	if err := os.WriteFile(filepath.Join(u.home, "policy.yaml"), []byte("limits: { unpacked: 1MiB, entries: 1000 }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	before := u.profile(t, "demo")
	all := bombs(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, all[name], 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := u.dsh("plugin", "--profile", "demo", "add", "evil@"+file)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		peak, _ := runWatched(cmd) // the exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 5 || !strings.Contains(said.String(), `archive entry "package/bomb`) {
			t.Errorf("%s: exit code %d, %s", name, code, said.String())
		}
		t.Logf("%s: %d MiB", name, peak>>20)
		if peak > limit+64<<20 {
			t.Errorf("%s: %d MiB of memory", name, peak>>20)
		}
		if diff := cmp.Diff(before, u.profile(t, "demo")); diff != "" {
			t.Errorf("%s: the profile changed\n%s", name, diff)
		}
		u.noLitter(t, name)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != len(all) {
		t.Errorf("something was written beside the archives: %v, %v", list, err)
	}
}

// What the limits allow is not held in memory either: neither when it is added,
// nor when the archive that the profile keeps of it is made anew.
func TestLargeKeptArchive(t *testing.T) {
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	u.must(t, "plugin", "--profile", "demo", "add", "left")
	if err := os.WriteFile(filepath.Join(u.home, "policy.yaml"), []byte("limits: { unpacked: 512MiB, ratio: 2000 }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "large.zip")
	const size = 160 << 20
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	zw := zip.NewWriter(out)
	for name, content := range map[string]io.Reader{
		"large/package.json":     strings.NewReader(`{"name": "large", "version": "1.0.0", "dsh": {"bundle": {"patch": "cordis.patch.yml"}}}`),
		"large/cordis.patch.yml": strings.NewReader("- insert: [{id: large, name: large}]\n"),
		"large/data":             io.LimitReader(zeros{}, size),
	} {
		w, createErr := zw.Create(name)
		if createErr != nil {
			t.Fatal(createErr)
		}
		_, copyErr := io.Copy(w, content)
		err = errors.Join(err, copyErr)
	}
	if err := errors.Join(err, zw.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"plugin --profile demo add " + file, "plugin --profile demo install --force", "plugin --profile demo remove large", "profile rollback demo",
	} {
		cmd := u.dsh(strings.Fields(words)...)
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		peak, _ := runWatched(cmd) // the exit code tells
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Fatalf("%s: exit code %d, %s", words, code, said.String())
		}
		t.Logf("%s: %d MiB", words, peak>>20)
		if peak > size/2 {
			t.Errorf("%s: %d MiB of memory", words, peak>>20)
		}
	}
	if kept, err := filepath.Glob(filepath.Join(u.home, "profiles", "demo", "archives", "large-1.0.0-*.tgz")); err != nil || len(kept) != 1 {
		t.Errorf("%v is kept, %v", kept, err)
	}
}

// zeros is as many bytes as anybody reads.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
