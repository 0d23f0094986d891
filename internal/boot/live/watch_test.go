package live

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"dsh/internal/fault"
)

// follows watches the patch file of a profile in a home, and returns what tells
// of its changes.
func follows(t *testing.T, part func([]byte) []byte, paths ...string) <-chan struct{} {
	t.Helper()
	var files []File
	for _, p := range paths {
		files = append(files, File{Path: p, Part: part})
	}
	told := make(chan struct{}, 100)
	stop, err := Watch(files, 5*time.Millisecond, func() { told <- struct{}{} }, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return told
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func rename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func told(t *testing.T, changes <-chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not told")
	}
}

func TestWatchTellsOf(t *testing.T) {
	tests := []struct {
		name    string
		missing bool // the profile is not there at first
		change  func(t *testing.T, profiles, file string)
	}{
		{"a file that is written", false, func(t *testing.T, _, file string) { write(t, file, "two") }},
		{"a file that is renamed over it", false, func(t *testing.T, _, file string) {
			write(t, file+".new", "two")
			rename(t, file+".new", file)
		}},
		{"a file that is removed", false, func(t *testing.T, _, file string) { os.Remove(file) }},
		{"a file that is moved away and made anew", false, func(t *testing.T, _, file string) {
			rename(t, file, file+"~")
			write(t, file, "two")
		}},
		{"a directory that is exchanged", false, func(t *testing.T, profiles, file string) {
			write(t, filepath.Join(profiles, "new", "patch.yml"), "two")
			rename(t, filepath.Dir(file), filepath.Join(profiles, "old"))
			rename(t, filepath.Join(profiles, "new"), filepath.Dir(file))
		}},
		{"a directory that is removed", false, func(t *testing.T, profiles, file string) { os.RemoveAll(filepath.Dir(file)) }},
		{"all directories made", true, func(t *testing.T, _, file string) { write(t, file, "two") }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			profiles := filepath.Join(t.TempDir(), "home", "profiles")
			file := filepath.Join(profiles, "web", "patch.yml")
			if !test.missing {
				write(t, file, "one")
			}
			changes := follows(t, nil, file)
			test.change(t, profiles, file)
			told(t, changes)
			// What is there now is followed as before.
			write(t, file, "one")
			write(t, file, "three")
			told(t, changes)
		})
	}
}

func TestWatchAfterTheProfileWasReplacedTwice(t *testing.T) {
	profiles := t.TempDir()
	file := filepath.Join(profiles, "web", "patch.yml")
	write(t, file, "0")
	changes := follows(t, nil, file)
	for i := range 3 {
		next := filepath.Join(profiles, "new")
		write(t, filepath.Join(next, "patch.yml"), string(rune('a'+i)))
		rename(t, filepath.Join(profiles, "web"), filepath.Join(profiles, "old"+string(rune('a'+i))))
		rename(t, next, filepath.Join(profiles, "web"))
		told(t, changes)
	}
}

func TestWatchFollowsLinks(t *testing.T) {
	dir := t.TempDir()
	file, target := filepath.Join(dir, "web", "patch.yml"), filepath.Join(dir, "elsewhere", "mine.yml")
	write(t, target, "one")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, file); err != nil {
		t.Fatal(err)
	}
	changes := follows(t, nil, file)
	write(t, target, "two")
	told(t, changes)
}

// Only what counts of a file is looked at; the file that is written after it
// shows that the first one was seen and did not count.
func TestWatchLooksAtWhatCounts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "package.json")
	write(t, file, "bundles a\nrest 1")
	calls := make(chan string, 100)
	stop, err := Watch([]File{{Path: file, Part: func(content []byte) []byte {
		first, _, _ := bytes.Cut(content, []byte("\n"))
		return first
	}}}, time.Millisecond, func() {
		text, _ := os.ReadFile(file)
		calls <- string(text)
	}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	exchange := func(text string) {
		write(t, file+".new", text)
		rename(t, file+".new", file)
	}
	exchange("bundles a\nrest 2")
	write(t, filepath.Join(dir, "other"), "x")
	exchange("bundles b\nrest 2")
	select {
	case text := <-calls:
		if text != "bundles b\nrest 2" {
			t.Errorf("told of %q", text)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the change was not told")
	}
}

// refusing follows a file where the system refuses to watch some directories.
func refusing(t *testing.T, file string, refused func(dir string) error) (changes <-chan struct{}, unwatched <-chan error, err error) {
	t.Helper()
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	told, errs := make(chan struct{}, 100), make(chan error, 100)
	w := &watcher{
		files: []File{{Path: file}}, quiet: 5 * time.Millisecond,
		changed: func() { told <- struct{}{} }, unwatched: func(err error) { errs <- err },
		notify: notify, watched: map[string]bool{},
		add: func(dir string) error {
			if err := refused(dir); err != nil {
				return err
			}
			return notify.Add(dir)
		},
	}
	stop, err := w.start()
	if err == nil {
		t.Cleanup(stop)
	}
	return told, errs, err
}

func TestWatchFailsWhereNothingCanBeWatched(t *testing.T) {
	file := filepath.Join(t.TempDir(), "profiles", "web", "patch.yml")
	write(t, file, "one")
	_, _, err := refusing(t, file, func(string) error { return syscall.ENOSPC })
	if fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), "max_user_watches") || fault.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestWatchTellsOnceOfADirectoryAboveThatItCannotWatch(t *testing.T) {
	profiles := filepath.Join(t.TempDir(), "profiles")
	file := filepath.Join(profiles, "web", "patch.yml")
	write(t, file, "one")
	changes, unwatched, err := refusing(t, file, func(dir string) error {
		if dir == profiles {
			return syscall.EACCES
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"two", "three"} {
		write(t, file, text)
		told(t, changes)
	}
	if len(unwatched) != 1 {
		t.Fatalf("told %d times", len(unwatched))
	}
	if err := <-unwatched; !strings.Contains(err.Error(), profiles) {
		t.Errorf("got %v", err)
	}
}

func TestWatchTellsOfADirectoryThatItCannotWatchLater(t *testing.T) {
	profiles := filepath.Join(t.TempDir(), "profiles")
	file := filepath.Join(profiles, "web", "patch.yml")
	if err := os.MkdirAll(profiles, 0o755); err != nil {
		t.Fatal(err)
	}
	_, unwatched, err := refusing(t, file, func(dir string) error {
		if dir == filepath.Dir(file) {
			return syscall.ENOSPC
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "one")
	select {
	case err := <-unwatched:
		if !strings.Contains(err.Error(), filepath.Dir(file)) {
			t.Errorf("got %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it was not told")
	}
}
