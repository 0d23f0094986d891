package live

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"dsh/internal/profile"
)

// File is a file that is followed by its path, whether or not it is there.
type File struct {
	Path string // absolute
	// Part is what counts of the content; nil is all of it.
	Part func(content []byte) []byte
}

// Watch calls changed when what counts of a file has become another: it was
// written, made, removed, or something else is at its path, such as a new
// directory with the profile. changes that follow each other are told once,
// when nothing has happened for a while. changed is not called at the same time
// twice, and not any more once stop has returned.
func Watch(files []File, quiet time.Duration, changed func()) (stop func(), err error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{files: files, quiet: quiet, changed: changed, notify: notify, watched: map[string]bool{}}
	// The state comes after the watches, so that no change is between them; a
	// caller that composes after Watch sees what is in it.
	w.follow()
	w.state = w.read()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run()
	}()
	return func() {
		notify.Close()
		<-done
	}, nil
}

type watcher struct {
	files   []File
	quiet   time.Duration
	changed func()
	notify  *fsnotify.Watcher

	watched map[string]bool // the directories
	at      map[string]bool // the paths at which something matters
	state   []digest        // of files
}

// digest is what counts of a file; the zero one is of a file that is not there.
type digest struct {
	there bool
	sum   [sha256.Size]byte
}

// longest is how many times quiet a change waits while others follow it.
const longest = 10

func (w *watcher) run() {
	var due <-chan time.Time
	var first time.Time
	for {
		select {
		case event, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if event.Op == fsnotify.Chmod || !w.at[event.Name] {
				continue
			}
			// Now and not only when all is quiet: what happens in a directory
			// that is new is seen from here on.
			if event.Op&^(fsnotify.Write|fsnotify.Chmod) != 0 {
				w.follow()
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			// Events were lost; the files themselves tell.
			w.follow()
		case <-due:
			due = nil
			w.follow()
			if state := w.read(); !slices.Equal(state, w.state) {
				w.state = state
				w.changed()
			}
			continue
		}
		if now := time.Now(); due == nil {
			first = now
			due = time.After(w.quiet)
		} else if now.Sub(first) < longest*w.quiet {
			due = time.After(w.quiet)
		}
	}
}

// follow watches the directories of the files as they are now: those that hold
// them, as far as they are there, and those in which these could come to be or
// be exchanged. Links are followed, so that a change of what a link leads to is
// seen.
func (w *watcher) follow() {
	dirs := map[string]bool{}
	w.at = map[string]bool{}
	for _, f := range w.files {
		w.chain(f.Path, dirs)
		if real, err := filepath.EvalSymlinks(f.Path); err == nil && real != f.Path {
			w.chain(real, dirs)
		} else if dir, err := filepath.EvalSymlinks(filepath.Dir(f.Path)); err == nil {
			w.chain(filepath.Join(dir, filepath.Base(f.Path)), dirs)
		}
	}
	for dir := range w.watched {
		if !dirs[dir] {
			w.notify.Remove(dir)
			delete(w.watched, dir)
		}
	}
	for dir := range dirs {
		// A directory that has come to the path of another one is not watched
		// yet, and adding one that is does nothing.
		if w.notify.Add(dir) == nil {
			w.watched[dir] = true
		}
	}
}

// above is how many directories above the one of a file are watched where they
// are there: that of a profile and that of all profiles.
const above = 2

// chain adds the directories to watch for a path, and the paths at which an
// event is about it.
func (w *watcher) chain(path string, dirs map[string]bool) {
	for n, at := 0, path; ; n++ {
		w.at[at] = true
		dir := filepath.Dir(at)
		if dir == at {
			return
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs[dir] = true
			if n >= above {
				return
			}
		}
		at = dir
	}
}

func (w *watcher) read() []digest {
	state := make([]digest, len(w.files))
	for i, f := range w.files {
		content, err := profile.ReadFile(f.Path)
		if err != nil {
			continue
		}
		if f.Part != nil {
			content = f.Part(content)
		}
		state[i] = digest{there: true, sum: sha256.Sum256(content)}
	}
	return state
}
