package staging

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openDirs makes two directories and opens them. What is learned of their
// filesystem in a test is forgotten after it.
func openDirs(t *testing.T) (src, dst *Dir) {
	t.Helper()
	learned.Clear()
	t.Cleanup(learned.Clear)
	open := func(name string) *Dir {
		path := filepath.Join(t.TempDir(), name)
		must(t, os.Mkdir(path, 0o755))
		d, err := OpenDir(path)
		must(t, err)
		t.Cleanup(func() { must(t, d.Close()) })
		return d
	}
	return open("src"), open("dst")
}

func TestDir(t *testing.T) {
	d, _ := openDirs(t)
	must(t, d.Mkdir("a"), d.Mkdir("a/b"), d.Mkdir("a"), d.WriteFile("a/b/f", []byte("content"), 0o444), d.WriteFile("run", nil, 0o555))
	w, err := d.Create("a/g", 0o644)
	must(t, err)
	_, err = w.Write([]byte("more"))
	must(t, err, w.Close(), d.Chmod("a/g", 0o555))
	want := map[string]string{
		"a/": "", "a/b/": "", "a/b/f": "-r--r--r-- content", "a/g": "-r-xr-xr-x more", "run": "-r-xr-xr-x ",
	}
	if diff := cmp.Diff(want, tree(t, d.path)); diff != "" {
		t.Error(diff)
	}
	r, err := d.Open("a/g")
	must(t, err)
	text, err := io.ReadAll(r)
	must(t, err, r.Close())
	if string(text) != "more" {
		t.Errorf("read %q", text)
	}
	_, createErr := d.Create("run", 0o644)
	_, openErr := d.Open("none")
	for name, c := range map[string]struct{ got, want error }{
		"write over a file":   {d.WriteFile("run", []byte("x"), 0o644), fs.ErrExist},
		"create over a file":  {createErr, fs.ErrExist},
		"write below nothing": {d.WriteFile("x/y", nil, 0o644), fs.ErrNotExist},
		"mkdir below nothing": {d.Mkdir("x/y"), fs.ErrNotExist},
		"open nothing":        {openErr, fs.ErrNotExist},
		"permissions of none": {d.Chmod("none", 0o644), fs.ErrNotExist},
		"copy nothing":        {d.CopyTo("none", d, "x", 0o644), fs.ErrNotExist},
		"copy over a file":    {d.CopyTo("run", d, "a/g", 0o644), fs.ErrExist},
		"link over a file":    {d.LinkTo("run", d, "a/g", 0o644), fs.ErrExist},
		"link nothing":        {d.LinkTo("none", d, "x", 0o644), fs.ErrNotExist},
		"link below nothing":  {d.LinkTo("run", d, "x/y", 0o644), fs.ErrNotExist},
		"open no directory":   {second(OpenDir(filepath.Join(d.path, "none"))), fs.ErrNotExist},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v", name, c.got)
		}
	}
	if diff := cmp.Diff(want, tree(t, d.path)); diff != "" {
		t.Error(diff)
	}
	if _, err := OpenDir(filepath.Join(d.path, "run")); err == nil {
		t.Error("a file is open as a directory")
	}
}

func second(_ *Dir, err error) error { return err }

// fakeShare puts another call in the place of the one that shares blocks.
func fakeShare(t *testing.T, f func(out, in *os.File) error) {
	t.Helper()
	real := shareBlocks
	shareBlocks = f
	t.Cleanup(func() { shareBlocks = real })
}

func TestLinkTo(t *testing.T) {
	unsupported := error(syscall.EOPNOTSUPP)
	for name, c := range map[string]struct {
		share func(out, in *os.File) error
		want  string // of the second file
		same  bool
	}{
		"blocks can be shared": {func(out, in *os.File) error { _, err := io.Copy(out, in); return err }, "-rwxr-xr-x content", false},
		"they cannot":          {func(out, in *os.File) error { return errors.Join(unsupported, errors.ErrUnsupported) }, "-r-xr-xr-x content", true},
	} {
		t.Run(name, func(t *testing.T) {
			src, dst := openDirs(t)
			calls := 0
			fakeShare(t, func(out, in *os.File) error { calls++; return c.share(out, in) })
			must(t, src.WriteFile("f", []byte("content"), 0o555))
			for _, to := range []string{"one", "two"} {
				must(t, src.LinkTo("f", dst, to, 0o755))
				if got := tree(t, dst.path)[to]; got != c.want {
					t.Errorf("%s is %q", to, got)
				}
				a, err := os.Stat(src.below("f"))
				must(t, err)
				b, err := os.Stat(dst.below(to))
				must(t, err)
				if os.SameFile(a, b) != c.same {
					t.Errorf("%s is the same file: %t", to, !c.same)
				}
			}
			if want := map[bool]int{true: 1, false: 2}[c.same]; calls != want {
				t.Errorf("asked for blocks %d times", calls)
			}
		})
	}
}

// A failure to share blocks is no refusal: it is told, and asked again.
func TestLinkToFails(t *testing.T) {
	src, dst := openDirs(t)
	fakeShare(t, func(out, in *os.File) error { return syscall.ENOSPC })
	must(t, src.WriteFile("f", []byte("content"), 0o444))
	for _, to := range []string{"one", "two"} {
		if err := src.LinkTo("f", dst, to, 0o644); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("a full disk: %v", err)
		}
	}
}

// To another filesystem files are copied, with permissions of their own.
func TestLinkToAnotherFilesystem(t *testing.T) {
	src, dst := openDirs(t)
	p := between(src, dst)
	p.noClone.Store(true)
	p.noLink.Store(true) // as an answer EXDEV leaves it
	must(t, src.WriteFile("f", []byte("content"), 0o444), src.LinkTo("f", dst, "g", 0o644))
	put(t, dst.path+"/g", "changed", 0o644)
	got := []string{tree(t, src.path)["f"], tree(t, dst.path)["g"]}
	if diff := cmp.Diff([]string{"-r--r--r-- content", "-rw-r--r-- changed"}, got); diff != "" {
		t.Error(diff)
	}
	for err, never := range map[error]bool{syscall.EXDEV: true, syscall.ENOTSUP: true, syscall.EMLINK: false, syscall.EPERM: false, syscall.ENOENT: false} {
		if neverLinks(err) != never {
			t.Errorf("after %v no file is linked any more: %t", err, !never)
		}
	}
}

func TestRealLinkAcrossFilesystems(t *testing.T) {
	src, _ := openDirs(t)
	shared, err := os.MkdirTemp("/dev/shm", "dsh-test-")
	if err != nil {
		t.Logf("no second filesystem here: %v", err)
		return
	}
	t.Cleanup(func() { must(t, os.RemoveAll(shared)) })
	dst, err := OpenDir(shared)
	must(t, err)
	defer dst.Close()
	must(t, src.WriteFile("f", []byte("content"), 0o444), src.LinkTo("f", dst, "f", 0o644))
	text, err := os.ReadFile(filepath.Join(shared, "f"))
	if err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
}
