package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWriteFile(t *testing.T) {
	tests := map[string]struct {
		prepare func(t *testing.T, dir string)
		write   string
		want    map[string]string
	}{
		"a new file": {
			write: "f",
			want:  map[string]string{"f": "-rw-r----- new"},
		},
		"an existing file keeps its permissions": {
			prepare: func(t *testing.T, dir string) { put(t, dir+"/f", "old", 0o600) },
			write:   "f",
			want:    map[string]string{"f": "-rw------- new"},
		},
		"permissions that the umask would take are kept too": {
			prepare: func(t *testing.T, dir string) { put(t, dir+"/f", "old", 0o666) },
			write:   "f",
			want:    map[string]string{"f": "-rw-rw-rw- new"},
		},
		"a link is followed": {
			prepare: func(t *testing.T, dir string) {
				put(t, dir+"/dotfiles/f", "old", 0o644)
				link(t, "dotfiles/f", dir+"/f")
			},
			write: "f",
			want:  map[string]string{"f": "-> dotfiles/f", "dotfiles/": "", "dotfiles/f": "-rw-r--r-- new"},
		},
		"a link to nothing makes the file there": {
			prepare: func(t *testing.T, dir string) { link(t, "g", dir+"/f") },
			write:   "f",
			want:    map[string]string{"f": "-> g", "g": "-rw-r----- new"},
		},
		"a relative link is relative to where it really is": {
			prepare: func(t *testing.T, dir string) {
				mkdir(t, dir+"/deep/er")
				put(t, dir+"/deep/f", "old", 0o644)
				link(t, "../f", dir+"/deep/er/f")
				link(t, "deep/er", dir+"/short")
			},
			write: "short/f",
			want: map[string]string{"deep/": "", "deep/er/": "", "deep/er/f": "-> ../f",
				"deep/f": "-rw-r--r-- new", "short": "-> deep/er"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.prepare != nil {
				test.prepare(t, dir)
			}
			if err := WriteFile(filepath.Join(dir, test.write), []byte("new"), 0o640); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, tree(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteFileRefuses(t *testing.T) {
	tests := map[string]func(t *testing.T, dir string){
		"a directory":             func(t *testing.T, dir string) { mkdir(t, dir+"/f") },
		"a link to itself":        func(t *testing.T, dir string) { link(t, "f", dir+"/f") },
		"a link to a directory":   func(t *testing.T, dir string) { link(t, ".", dir+"/f") },
		"a link into no folder":   func(t *testing.T, dir string) { link(t, "no/where", dir+"/f") },
		"a file as its parent":    func(t *testing.T, dir string) { put(t, dir+"/g", "", 0o644); link(t, "g/f", dir+"/f") },
		"a parent that is a loop": func(t *testing.T, dir string) { link(t, "l", dir+"/l"); link(t, "l/f", dir+"/f") },
	}
	for name, prepare := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			prepare(t, dir)
			before := tree(t, dir)
			err := WriteFile(filepath.Join(dir, "f"), []byte("new"), 0o644)
			if err == nil || !strings.HasPrefix(err.Error(), "writing "+filepath.Join(dir, "f")+": ") {
				t.Errorf("the error is %v", err)
			}
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWriteFileOddPaths(t *testing.T) {
	for _, name := range oddNames {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), name, name)
			if err := MkdirAll(filepath.Dir(path)); err != nil {
				t.Fatal(err)
			}
			if created, err := CreateFile(path, []byte("one"), 0o644); !created || err != nil {
				t.Fatal(created, err)
			}
			if err := WriteFile(path, []byte("two"), 0o644); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]string{name: "-rw-r--r-- two"}, tree(t, filepath.Dir(path))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var oddNames = []string{
	"with space", `it's "quoted"`, "プロファイル", strings.Repeat("n", 200), "new\nline", "-dash", "a.staging-0123456789ab", "%s$HOME",
}

func TestCreateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for i, want := range []bool{true, false} {
		created, err := CreateFile(path, []byte{'0' + byte(i)}, 0o644)
		if created != want || err != nil {
			t.Fatalf("call %d: created %v, error %v", i, created, err)
		}
	}
	link(t, "nowhere", filepath.Join(dir, "l"))
	if created, err := CreateFile(filepath.Join(dir, "l"), nil, 0o644); created || err != nil {
		t.Errorf("over a link to nothing: created %v, error %v", created, err)
	}
	want := map[string]string{"f": "-rw-r--r-- 0", "l": "-> nowhere"}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestCreateFileRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var wg sync.WaitGroup
	var created [8]bool
	for i := range created {
		wg.Go(func() {
			var err error
			if created[i], err = CreateFile(path, []byte{'0' + byte(i)}, 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	winner := -1
	for i, c := range created {
		if c && winner >= 0 {
			t.Errorf("%d and %d both created it", winner, i)
		} else if c {
			winner = i
		}
	}
	if winner < 0 {
		t.Fatal("nobody created it")
	}
	want := map[string]string{"f": "-rw-r--r-- " + string(rune('0'+winner))}
	if diff := cmp.Diff(want, tree(t, filepath.Dir(path))); diff != "" {
		t.Error(diff)
	}
}

// Somebody makes the file after the look and before the rename.
func TestCreateFileLosesLate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	d := disk{hooked{OS, func(op, at string) error {
		if op == "RenameNew" {
			put(t, path, "theirs", 0o644)
		}
		return nil
	}}}
	if created, err := d.createFile(path, []byte("ours"), 0o644); created || err != nil {
		t.Errorf("created %v, error %v", created, err)
	}
	if diff := cmp.Diff(map[string]string{"f": "-rw-r--r-- theirs"}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestWriteFileIfChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for i, step := range []struct {
		data string
		want bool
	}{{"a", true}, {"a", false}, {"b", true}, {"", true}, {"", false}} {
		changed, err := WriteFileIfChanged(path, []byte(step.data), 0o644)
		if changed != step.want || err != nil {
			t.Errorf("step %d: changed %v, error %v", i, changed, err)
		}
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file", "", 0o644)
	mkdir(t, dir+"/real")
	link(t, "real", dir+"/link")
	link(t, "nowhere", dir+"/dangling")
	for path, ok := range map[string]bool{
		"a/b/c": true, "a": true, "link/x": true, "link": true,
		"file": false, "file/x": false, "dangling/x": false,
	} {
		if err := MkdirAll(filepath.Join(dir, path)); (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
	}
	want := map[string]string{"file": "-rw-r--r-- ", "real/": "", "real/x/": "", "link": "-> real",
		"dangling": "-> nowhere", "a/": "", "a/b/": "", "a/b/c/": ""}
	if diff := cmp.Diff(want, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestRetry(t *testing.T) {
	busy := syscall.EBUSY
	tests := map[string]struct {
		errs  []error // of the calls; the last one stays
		want  error
		calls int // 0 is until two seconds have passed
	}{
		"at once":       {[]error{nil}, nil, 1},
		"a lasting one": {[]error{fs.ErrNotExist}, fs.ErrNotExist, 1},
		"passes":        {[]error{busy, busy, nil}, nil, 3},
		"turns":         {[]error{busy, fs.ErrNotExist}, fs.ErrNotExist, 2},
		"stays":         {[]error{busy}, busy, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var slept time.Duration
			calls := 0
			err := retry(func(err error) bool { return errors.Is(err, busy) }, func(d time.Duration) { slept += d }, func() error {
				calls++
				return test.errs[min(calls, len(test.errs))-1]
			})
			if !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if test.calls != 0 && calls != test.calls {
				t.Errorf("%d calls, want %d", calls, test.calls)
			}
			if test.calls == 0 && (slept < time.Second || slept > 2*time.Second) {
				t.Errorf("gave up after %v", slept)
			}
		})
	}
}

func TestRemoveAllReadOnly(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/tree/a/b/f", "x", 0o400)
	for _, d := range []string{"/tree/a/b", "/tree/a", "/tree"} {
		if err := os.Chmod(dir+d, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	makeWritable(dir + "/tree") // for root nothing is read-only, so look at the bits
	if diff := cmp.Diff("drwx------", mode(t, dir+"/tree/a/b")); diff != "" {
		t.Error(diff)
	}
	if err := OS.RemoveAll(dir + "/tree"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{}, tree(t, dir)); diff != "" {
		t.Error(diff)
	}
}

// One call fails, or the process dies there: the file is old or new, and only
// death leaves a temporary file.
func TestFileFaults(t *testing.T) {
	type write func(d disk, path string) error
	tests := map[string]struct {
		old string // "" is no file
		do  write
	}{
		"replace": {"old", func(d disk, path string) error { return d.writeFile(path, []byte("new"), 0o600) }},
		"make":    {"", func(d disk, path string) error { return d.writeFile(path, []byte("new"), 0o600) }},
		"create": {"", func(d disk, path string) error {
			_, err := d.createFile(path, []byte("new"), 0o600)
			return err
		}},
		"change": {"old", func(d disk, path string) error {
			_, err := d.writeFileIfChanged(path, []byte("new"), 0o600)
			return err
		}},
	}
	for name, test := range tests {
		for _, mode := range []string{"EIO", "ENOSPC", "EACCES", "dies"} {
			t.Run(name+" "+mode, func(t *testing.T) {
				for at := 0; ; at++ {
					dir := t.TempDir()
					if test.old != "" {
						put(t, dir+"/f", test.old, 0o600)
					}
					before := tree(t, dir)
					after := map[string]string{"f": "-rw------- new"}
					s := &strike{mode: mode, after: at}
					_, err, dead := s.try(t, scenario{run: func(t testing.TB, fsys FS, home string) ([]string, error) {
						return nil, test.do(disk{fsys}, filepath.Join(home, "f"))
					}}, dir)
					if s.struck == "" { // all calls went well
						if diff := cmp.Diff(after, tree(t, dir)); diff != "" || err != nil || at < 5 {
							t.Errorf("unhurt, after %d calls: %v %s", at, err, diff)
						}
						return
					}
					got := tree(t, dir)
					if dead {
						for path := range got {
							if strings.HasPrefix(path, tempMark) {
								delete(got, path)
							}
						}
						oldOrNew(t, s.struck, before, after, got)
						continue
					}
					// The one call that comes after the rename.
					if synced := strings.HasPrefix(s.struck, "SyncDir"); synced {
						before = after
					}
					// Reading the old content may fail without harm.
					if err == nil && name == "change" && cmp.Equal(got, after) {
						continue
					}
					if diff := cmp.Diff(before, got); diff != "" || err == nil {
						t.Errorf("%s fails: error %v %s", s.struck, err, diff)
					}
				}
			})
		}
	}
}
