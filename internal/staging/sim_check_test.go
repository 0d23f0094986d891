package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// simRoot is where the homes of simulated disks are.
var simRoot = filepath.FromSlash("/sim")

func init() {
	if runtime.GOOS == "windows" {
		simRoot = `C:\sim`
	}
}

// simCalls are the calls by which two filesystems are compared.
var simCalls = map[string]func(f FS, a, b string) (string, error){
	"create": func(f FS, a, b string) (string, error) {
		file, err := f.Create(a, 0o644)
		if err != nil {
			return "", err
		}
		_, err = io.WriteString(file, filepath.Base(b))
		return "", errors.Join(err, file.Close())
	},
	"read": func(f FS, a, _ string) (string, error) {
		data, err := disk{f}.readFile(a)
		return string(data), err
	},
	"look": func(f FS, a, _ string) (string, error) {
		info, err := f.Lstat(a)
		if err != nil {
			return "", err
		}
		size := info.Size()
		if !info.Mode().IsRegular() {
			size = 0 // differs by filesystem
		}
		return fmt.Sprint(info.Name(), info.Mode(), size), nil
	},
	"list": func(f FS, a, _ string) (string, error) {
		entries, err := f.ReadDir(a)
		var names string
		for _, e := range entries {
			names += fmt.Sprint(e.Name(), e.Type(), " ")
		}
		return names, err
	},
	"same": func(f FS, a, b string) (string, error) {
		first, err := f.Identity(a)
		second, err2 := f.Identity(b)
		return fmt.Sprint(first == second), errors.Join(err, err2)
	},
	"mkdir":     func(f FS, a, _ string) (string, error) { return "", f.Mkdir(a, 0o755) },
	"symlink":   func(f FS, a, b string) (string, error) { return "", f.Symlink(filepath.Base(b), a) },
	"readlink":  func(f FS, a, _ string) (string, error) { return f.Readlink(a) },
	"link":      func(f FS, a, b string) (string, error) { return "", f.Link(a, b) },
	"chmod":     func(f FS, a, _ string) (string, error) { return "", f.Chmod(a, 0o700) },
	"rename":    func(f FS, a, b string) (string, error) { return "", f.Rename(a, b) },
	"renameNew": func(f FS, a, b string) (string, error) { return "", f.RenameNew(a, b) },
	"exchange":  func(f FS, a, b string) (string, error) { return "", f.Exchange(a, b) },
	"remove":    func(f FS, a, _ string) (string, error) { return "", f.Remove(a) },
	"removeAll": func(f FS, a, _ string) (string, error) { return "", f.RemoveAll(a) },
	"syncDir":   func(f FS, a, _ string) (string, error) { return "", f.SyncDir(a) },
}

// A proof on a disk that does not do as real ones do proves nothing.
func TestSimDiskDoesAsTheRealOne(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the simulated disk does as Linux's do")
	}
	names := []string{"a", "b", "c", "a/x", "a/y", "b/x", "a/x/z"}
	twoPaths := []string{"link", "rename", "renameNew", "exchange"}
	calls := make([]string, 0, len(simCalls))
	for name := range simCalls {
		calls = append(calls, name)
	}
	slices.Sort(calls)
	base := t.TempDir()
	if OS.Exchange(base, base) != nil {
		calls = slices.DeleteFunc(calls, func(name string) bool { return name == "exchange" })
	}
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		sim := newSimDisk(simOptions{})
		if err := (disk{sim}).mkdirAll(dir); err != nil {
			t.Fatal(err)
		}
		step := func(t *rapid.T) {
			name := rapid.SampledFrom(calls).Draw(t, "call")
			a := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "a"))
			b := filepath.Join(dir, rapid.SampledFrom(names).Draw(t, "b"))
			want, err := simCalls[name](OS, a, b)
			got, simErr := simCalls[name](sim, a, b)
			// Which of two faults is told of first does not matter.
			sameFault := slices.Contains(twoPaths, name) ||
				errors.Is(err, fs.ErrNotExist) == errors.Is(simErr, fs.ErrNotExist) && errors.Is(err, fs.ErrExist) == errors.Is(simErr, fs.ErrExist)
			if (err == nil) != (simErr == nil) || !sameFault {
				t.Fatalf("%s %s %s: real %v, simulated %v", name, a, b, err, simErr)
			}
			if err == nil && got != want {
				t.Fatalf("%s %s %s: real %q, simulated %q", name, a, b, want, got)
			}
		}
		t.Repeat(map[string]func(*rapid.T){"step": step})
	})
}

// What must survive a loss of power does, what may survive does sometimes, and
// nothing else ever does.
func TestSimDiskLosesWhatWasNotSynced(t *testing.T) {
	in := func(name string) string { return filepath.Join(simRoot, name) }
	write := func(d *simDisk, name, content string, sync bool) {
		f, err := d.Create(in(name), 0o644)
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err == nil && sync {
			err = f.Sync()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ok := func(errs ...error) {
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	type states []map[string]string
	file := func(content string) string { return "-rw-r--r-- " + content }
	for name, test := range map[string]struct {
		do  func(d *simDisk)
		may states
	}{
		"all is synced": {
			func(d *simDisk) { write(d, "new", "12", true); ok(d.SyncDir(simRoot)) },
			states{{"dir/": "", "old": file("old"), "new": file("12")}},
		},
		"the name is not": {
			func(d *simDisk) { write(d, "new", "12", true) },
			states{{"dir/": "", "old": file("old")}, {"dir/": "", "old": file("old"), "new": file("12")}},
		},
		"the content is not": {
			func(d *simDisk) { write(d, "new", "12", false); ok(d.SyncDir(simRoot)) },
			states{
				{"dir/": "", "old": file("old"), "new": file("")},
				{"dir/": "", "old": file("old"), "new": file("1")},
				{"dir/": "", "old": file("old"), "new": file("12")},
				{"dir/": "", "old": file("old"), "new": file("\x00\x00")},
			},
		},
		"a rename over a file": {
			func(d *simDisk) {
				write(d, "new", "12", true)
				ok(d.SyncDir(simRoot), d.Rename(in("new"), in("old")))
			},
			states{{"dir/": "", "old": file("old"), "new": file("12")}, {"dir/": "", "old": file("12")}},
		},
		"a rename of what is not synced": {
			func(d *simDisk) { write(d, "new", "1", false); ok(d.Rename(in("new"), in("old"))) },
			states{
				{"dir/": "", "old": file("old")},
				{"dir/": "", "old": file("old"), "new": file("")},
				{"dir/": "", "old": file("old"), "new": file("1")},
				{"dir/": "", "old": file("old"), "new": file("\x00")},
				{"dir/": "", "old": file("")},
				{"dir/": "", "old": file("1")},
				{"dir/": "", "old": file("\x00")},
			},
		},
		"a rename into a directory that is not synced": {
			func(d *simDisk) { ok(d.Mkdir(in("more"), 0o755), d.Rename(in("old"), in("more/old"))) },
			states{
				{"dir/": "", "old": file("old")},
				{"dir/": "", "more/": "", "old": file("old")},
				{"dir/": "", "more/": "", "more/old": file("old")},
			},
		},
		"a rename of which one directory is synced": {
			func(d *simDisk) { ok(d.Rename(in("old"), in("dir/old")), d.SyncDir(in("dir"))) },
			states{{"dir/": "", "dir/old": file("old")}},
		},
		"removals in any order": {
			func(d *simDisk) { ok(d.Remove(in("dir")), d.Remove(in("old"))) },
			states{{"dir/": "", "old": file("old")}, {"dir/": ""}, {"old": file("old")}, {}},
		},
		"a directory goes after what was in it": {
			func(d *simDisk) {
				ok(d.Rename(in("old"), in("dir/old")), d.SyncDir(simRoot))
				ok(d.Rename(in("dir/old"), in("old")), d.Remove(in("dir")))
			},
			states{{"dir/": "", "dir/old": file("old")}, {"dir/": "", "old": file("old")}, {"old": file("old")}},
		},
		"an exchange": {
			func(d *simDisk) { ok(d.Exchange(in("old"), in("dir"))) },
			states{{"dir/": "", "old": file("old")}, {"old/": "", "dir": file("old")}},
		},
		"permissions come with the name": {
			func(d *simDisk) {
				write(d, "new", "1", true)
				ok(d.SyncDir(simRoot), d.Chmod(in("new"), 0o600), d.Rename(in("new"), in("old")))
			},
			states{
				{"dir/": "", "old": file("old"), "new": file("1")},
				{"dir/": "", "old": file("old"), "new": "-rw------- 1"},
				{"dir/": "", "old": "-rw------- 1"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newSimDisk(simOptions{})
			d.put(t, in("old"), "old", 0o644)
			d.mkdirs(t, in("dir"))
			d.flush()
			test.do(d)
			r := rand.New(rand.NewPCG(1, 2))
			seen := map[int]bool{}
			for range 300 {
				got := d.powerLoss(r).tree(simRoot)
				i := slices.IndexFunc(test.may, func(may map[string]string) bool { return cmp.Equal(may, got) })
				if i < 0 {
					t.Fatalf("it cannot be %q", got)
				}
				seen[i] = true
			}
			if len(seen) != len(test.may) {
				t.Errorf("of %d outcomes only %v were seen", len(test.may), seen)
			}
		})
	}
}
