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
	// Outside is what the links among Files led to, by the path of the link,
	// where that was a small file outside the profile. It is for people: no
	// rollback writes it, for it belongs to others too.
	Outside []SavedFile
	// Dirs are the directories of Files, and "." for the profile itself, that have
	// other permissions than usual. A rollback gives them to those that it makes.
	Dirs []SavedFile
	// TooLarge is what no generation keeps, by path. A rollback leaves it as it is.
	TooLarge []Skipped

	listing *listing // of a snapshot: what there is, kept or not
}

// SavedFile is one file or link of a generation. They are sorted by path.
type SavedFile struct {
	Path string      // slash-separated, relative to the profile
	Mode fs.FileMode // permission bits, and fs.ModeSymlink for a link or fs.ModeDir
	Data []byte      // the content, or where the link leads
}

// Skipped is a file that a generation does not keep, or a directory of which it
// keeps nothing.
type Skipped struct {
	Path string `json:"path"` // slash-separated, relative to the profile
	Why  Reason `json:"why"`
}

// Reason is why something is not kept, as the rest of a sentence about it.
type Reason string

// The reasons.
const (
	LargeFile  Reason = "it is larger than 1 MiB"
	LargeSum   Reason = "with it the profile's small files would be more than 16 MiB"
	ManyFiles  Reason = "it holds more than 1,000 files"
	Unreadable Reason = "it could not be read"
)

// SkippedPaths are the paths of what a generation does not keep.
func (g *Generation) SkippedPaths() []string {
	var paths []string
	for _, s := range g.TooLarge {
		paths = append(paths, s.Path)
	}
	return paths
}

// File is the content of the file at a slash-separated path. A link is one if it
// led to a file outside the profile.
func (g *Generation) File(path string) ([]byte, bool) {
	f, ok := find(g.Files, path)
	if ok && f.Mode&fs.ModeSymlink != 0 {
		f, ok = find(g.Outside, path)
	}
	return f.Data, ok
}

// find is the file at a path of sorted ones.
func find(files []SavedFile, path string) (SavedFile, bool) {
	i, ok := slices.BinarySearchFunc(files, path, func(f SavedFile, path string) int { return strings.Compare(f.Path, path) })
	if !ok {
		return SavedFile{}, false
	}
	return files[i], true
}

// Followed is Files with what is Outside in the place of the links that led there.
func (g *Generation) Followed() []SavedFile {
	files := slices.Clone(g.Files)
	for i, f := range files {
		if out, ok := find(g.Outside, f.Path); ok {
			files[i] = out
		}
	}
	return files
}

// Same says whether two generations are the same state, with what is outside. What
// neither keeps is not looked at.
func Same(a, b *Generation) bool {
	return SameFiles(a.Files, b.Files) && SameFiles(a.Outside, b.Outside)
}

// SameFiles says whether the files of two generations are the same.
func SameFiles(a, b []SavedFile) bool {
	return slices.EqualFunc(a, b, func(a, b SavedFile) bool {
		return a.Path == b.Path && a.Mode == b.Mode && string(a.Data) == string(b.Data)
	})
}

func sortFiles(files []SavedFile) {
	slices.SortFunc(files, func(a, b SavedFile) int { return strings.Compare(a.Path, b.Path) })
}
