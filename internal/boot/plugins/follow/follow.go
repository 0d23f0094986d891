// Package follow tells when one file became another one.
//
// It does not read the file, and it does not say what is different. It looks
// at the file again and again, which finds every kind of change on every file
// system: written over, renamed over, made, removed, given to others.
package follow

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// interval is how often a file is looked at.
const interval = 250 * time.Millisecond

// File is a file that is followed.
type File struct {
	path string
	seen state
}

// New notes how the file is now. Read it afterwards, so that no change is
// missed in between.
func New(path string) *File { return &File{path, look(path)} }

// Run calls changed for every change, one call at a time, until ctx ends.
// Where one change follows on another it waits until there was none for as
// long as settle.
func (f *File) Run(ctx context.Context, settle time.Duration, changed func()) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	var since time.Time // of the last change that was not told, zero if there is none
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		if now := look(f.path); !now.same(f.seen) {
			f.seen = now
			since = time.Now()
		}
		if !since.IsZero() && time.Since(since) >= settle {
			since = time.Time{}
			changed()
		}
	}
}

// state is what is looked at; info is nil for a file that is not there.
type state struct{ info fs.FileInfo }

func look(path string) state {
	info, err := os.Stat(path)
	if err != nil {
		return state{}
	}
	return state{info}
}

func (s state) same(other state) bool {
	if s.info == nil || other.info == nil {
		return s.info == other.info
	}
	return s.info.Size() == other.info.Size() && s.info.ModTime().Equal(other.info.ModTime()) &&
		s.info.Mode() == other.info.Mode() && os.SameFile(s.info, other.info)
}
