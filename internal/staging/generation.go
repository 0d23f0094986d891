package staging

import (
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Generation is the small files of a profile as they were at one time. It is
// what a rollback gives back, byte for byte.
type Generation struct {
	ID    int       // 1, 2, 3, … in the order in which they were saved; 0 is what is on the disk now
	Saved time.Time // when the state was made by Command, or found
	// Command is what made the state; "" when it was found as it is, because
	// somebody edited files by hand or the profile is older than its history.
	Command string
	Pinned  bool // kept until it is unpinned
	Files   []SavedFile
	// TooLarge are the paths of files that no generation keeps, for their size.
	// A rollback leaves them as they are.
	TooLarge []string
}

// SavedFile is one file or link of a generation. They are sorted by path.
type SavedFile struct {
	Path string      // slash-separated, relative to the profile
	Mode fs.FileMode // permission bits, and fs.ModeSymlink for a link
	Data []byte      // the content, or where the link leads
}

// File is the content of the file at a slash-separated path.
func (g *Generation) File(path string) ([]byte, bool) {
	i, ok := slices.BinarySearchFunc(g.Files, path, func(f SavedFile, path string) int { return strings.Compare(f.Path, path) })
	if !ok || g.Files[i].Mode&fs.ModeSymlink != 0 {
		return nil, false
	}
	return g.Files[i].Data, true
}
