package live

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"dsh/internal/fault"
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
//
// The error is that the system cannot tell of a file. Directories that it cannot
// watch later on, and those above the ones of the files, are told to unwatched,
// each once; what can be followed is.
func Watch(files []File, quiet time.Duration, changed func(), unwatched func(error)) (stop func(), err error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watcher{
		files: files, quiet: quiet, changed: changed, unwatched: unwatched,
		notify: notify, add: notify.Add, watched: map[string]bool{},
	}
	return w.start()
}

// start begins to follow the files.
func (w *watcher) start() (stop func(), err error) {
	// The state comes after the watches, so that no change is between them; a
	// caller that composes after Watch sees what is in it.
	if err := w.follow(); err != nil {
		w.notify.Close()
		return nil, err
	}
	w.state = w.read()
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run()
	}()
	return func() {
		w.notify.Close()
		<-done
	}, nil
}

type watcher struct {
	files     []File
	quiet     time.Duration
	changed   func()
	unwatched func(error)
	notify    *fsnotify.Watcher
	add       func(dir string) error // to notify

	watched map[string]bool // the directories; false is of one that the system refused
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
				w.followOn()
			}
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			// Events were lost; the files themselves tell.
			w.followOn()
		case <-due:
			due = nil
			w.followOn()
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
// seen. The error is that of a directory which holds a file.
func (w *watcher) follow() (refused error) {
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
		if _, wanted := dirs[dir]; !wanted {
			w.notify.Remove(dir)
			delete(w.watched, dir)
		}
	}
	for dir, holds := range dirs {
		// A directory that has come to the path of another one is not watched
		// yet, and adding one that is does nothing.
		err := w.add(dir)
		switch watched, known := w.watched[dir]; {
		case err == nil:
			w.watched[dir] = true
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fsnotify.ErrClosed):
			delete(w.watched, dir) // it has gone, or nobody watches any more
		case known && !watched: // it was told
		default:
			w.watched[dir] = false
			if err := watchError(dir, err); holds && refused == nil {
				refused = err
			} else {
				w.unwatched(err)
			}
		}
	}
	return refused
}

// followOn is follow while it runs: a refusal ends nothing.
func (w *watcher) followOn() {
	if err := w.follow(); err != nil {
		w.unwatched(err)
	}
}

// watchError is why the system does not watch a directory.
func watchError(dir string, err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		// What inotify_add_watch says where a user has as many as allowed.
		return fault.WithHint(fault.Errorf(fault.Environment, "watch %s: the system watches no more directories, see fs.inotify.max_user_watches", dir),
			"sudo sysctl fs.inotify.max_user_watches=524288")
	}
	return fmt.Errorf("watch %s: %w", dir, err)
}

// above is how many directories above the one of a file are watched where they
// are there: that of a profile and that of all profiles.
const above = 2

// chain adds the directories to watch for a path, with true the nearest that is
// there, and the paths at which an event is about it.
func (w *watcher) chain(path string, dirs map[string]bool) {
	nearest := true
	for n, at := 0, path; ; n++ {
		w.at[at] = true
		dir := filepath.Dir(at)
		if dir == at {
			return
		}
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			dirs[dir] = dirs[dir] || nearest
			nearest = false
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
