package staging

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// What a generation keeps at most. Files at the top of the profile come first,
// then those further down, and at last what links lead to outside.
const (
	largestFile  = 1 << 20  // bytes
	largestSum   = 16 << 20 // bytes, as [room] counts them
	largestCount = 1000     // files in a directory of the profile and those below it
)

// room is how many bytes a file takes, with its header and what pads it.
func room(path string, size int64) int64 { return 1<<10 + int64(len(path)) + size }

// Snapshot is the small files of a profile as they are on the disk now. Left out
// are what is Derived, ".git", and temporary files of this package; directories
// count by their files.
func Snapshot(place Place) (*Generation, error) {
	d := disk{OS}
	place, err := place.resolved(d)
	if err != nil {
		return nil, err
	}
	return d.snapshot(place.Dir, place.Derived)
}

// snapshot is [Snapshot] of a directory that is no link.
func (d disk) snapshot(dir string, derived []string) (*Generation, error) {
	return d.snapshotFor(dir, dir, derived)
}

// snapshotFor is the snapshot that the directory at will be once it stands at dir,
// which is where its links start from.
func (d disk) snapshotFor(dir, at string, derived []string) (*Generation, error) {
	l := &listing{disk: d, dir: dir, derived: derived, dirs: map[string]string{}}
	err := l.list(".", at)
	var g *Generation
	if err == nil {
		g, err = l.generation()
	}
	if err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", at, err)
	}
	return g, nil
}

// listing is what there is in a profile that a generation might keep.
type listing struct {
	disk
	dir     string // where the profile stands, or will
	derived []string
	entries []*entry
	dirs    map[string]string // directories, "." the profile itself, and where they are now
	refused []string          // directories that could not be read
}

// entry is a file or link in a profile. The content is read when it is known to
// be wanted, and once.
type entry struct {
	path string // slash-separated, relative to the profile
	at   string // where it is now

	looked, read bool
	none         bool        // it is nothing that a generation could keep
	info         fs.FileInfo // of what is at the path itself
	file         SavedFile   // with the content when it was read
	why          Reason      // "" if it can be kept
	end          string      // where a link leads to, outside the profile; "" if it does not
	outside      *SavedFile  // what is there, if it is a small file
}

// isSmall says whether a name in a profile is of what generations keep.
func isSmall(name string, derived []string) bool {
	return name != ".git" && !isTempOfFile(name) && !slices.Contains(derived, name)
}

// list adds what is in the directory at, which is the profile's rel, or will be.
func (l *listing) list(rel, at string) error {
	entries, err := l.ReadDir(at)
	if refused(err) {
		entries, err = l.ReadDir(at)
	}
	switch {
	case refused(err) && rel != ".":
		l.refused = append(l.refused, rel)
		return nil
	case err != nil && !(errors.Is(err, fs.ErrNotExist) && rel != "."):
		return err
	}
	l.dirs[rel] = at
	for _, e := range entries {
		if !isSmall(e.Name(), l.derived) {
			continue
		}
		below, at := path.Join(rel, e.Name()), filepath.Join(at, e.Name())
		if !e.IsDir() {
			l.entries = append(l.entries, &entry{path: below, at: at})
		} else if err := l.list(below, at); err != nil {
			return err
		}
	}
	return nil
}

// drop leaves out a path and all below it.
func (l *listing) drop(path string) {
	l.entries = slices.DeleteFunc(slices.Clone(l.entries), func(e *entry) bool { return isBelow(e.path, path) })
	l.dirs = maps.Clone(l.dirs)
	maps.DeleteFunc(l.dirs, func(dir, _ string) bool { return isBelow(dir, path) })
	l.refused = slices.DeleteFunc(slices.Clone(l.refused), func(dir string) bool { return isBelow(dir, path) })
}

// crowded are the directories that hold too many files, below which is nothing
// that is kept. A directory within that does so alone does not count for the
// others.
func (l *listing) crowded() []string {
	count := map[string]int{}
	for _, e := range l.entries {
		count[path.Dir(e.path)]++
		for up := path.Dir(e.path); up != "."; up = path.Dir(up) {
			count[path.Dir(up)] += 0
		}
	}
	depth := func(dir string) int { return strings.Count(dir, "/") }
	deepest := slices.SortedFunc(maps.Keys(count), func(a, b string) int { return cmp.Compare(depth(b), depth(a)) })
	var crowded []string
	for _, dir := range deepest {
		switch {
		case dir == ".":
		case count[dir] <= largestCount:
			count[path.Dir(dir)] += count[dir]
		default:
			count[path.Dir(dir)]++
			crowded = slices.DeleteFunc(crowded, func(other string) bool { return isBelow(other, dir) })
			crowded = append(crowded, dir)
		}
	}
	return crowded
}

// generation is what a generation of what there is keeps. It is the one place
// that decides so.
func (l *listing) generation() (*Generation, error) {
	g := &Generation{listing: l}
	skip := func(path string, why Reason) { g.TooLarge = append(g.TooLarge, Skipped{path, why}) }
	for _, dir := range l.refused {
		skip(dir, Unreadable)
	}
	left := map[string]bool{}
	for _, dir := range l.crowded() {
		skip(dir, ManyFiles)
		left[dir] = true
	}
	var kept []*entry
	sum := int64(0)
	for _, e := range l.inOrder(left) {
		if err := l.look(e); err != nil {
			return nil, err
		}
		if e.why == "" && !e.none && sum+e.room() <= largestSum {
			if err := l.fetch(e); err != nil {
				return nil, err
			}
		}
		switch {
		case e.none:
		case e.why != "":
			skip(e.path, e.why)
		case sum+e.room() > largestSum:
			skip(e.path, LargeSum)
		default:
			sum += e.room()
			g.Files = append(g.Files, e.file)
			kept = append(kept, e)
		}
	}
	var err error
	if g.Dirs, err = l.unusual(kept); err != nil {
		return nil, err
	}
	for _, dir := range g.Dirs {
		sum += room(dir.Path, 0)
	}
	for _, e := range kept {
		if e.outside == nil {
			continue
		}
		if more := room(e.path, int64(len(e.outside.Data))); sum+more <= largestSum {
			sum += more
			g.Outside = append(g.Outside, *e.outside)
		}
	}
	sortFiles(g.Files)
	sortFiles(g.Outside)
	slices.SortFunc(g.TooLarge, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	return g, nil
}

// usualDir are the permissions of directories that need no mention.
const usualDir = 0o755

// unusual are the directories of what is kept that have other permissions.
func (l *listing) unusual(kept []*entry) (dirs []SavedFile, err error) {
	holds := map[string]bool{".": true}
	for _, e := range kept {
		for up := path.Dir(e.path); !holds[up]; up = path.Dir(up) {
			holds[up] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(holds)) {
		at, there := l.dirs[dir]
		if !there || runtime.GOOS == "windows" { // where directories have none
			continue
		}
		info, err := l.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.IsDir() && info.Mode().Perm() != usualDir {
			dirs = append(dirs, SavedFile{Path: dir, Mode: fs.ModeDir | info.Mode().Perm()})
		}
	}
	return dirs, nil
}

// inOrder is what comes into question, the more important first.
func (l *listing) inOrder(left map[string]bool) []*entry {
	in := func(dir string) bool {
		for ; dir != "."; dir = path.Dir(dir) {
			if left[dir] {
				return true
			}
		}
		return false
	}
	entries := slices.DeleteFunc(slices.Clone(l.entries), func(e *entry) bool { return in(path.Dir(e.path)) })
	depth := func(e *entry) int { return strings.Count(e.path, "/") }
	slices.SortFunc(entries, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a.path, b.path))
	})
	return entries
}

// room is what the entry takes, by its size as long as it has not been read.
func (e *entry) room() int64 {
	if e.read {
		return room(e.path, int64(len(e.file.Data)))
	}
	return room(e.path, e.info.Size())
}

// look finds out what an entry is, and reads it if it is a link.
func (l *listing) look(e *entry) error {
	if e.looked {
		return nil
	}
	info, err := l.Lstat(e.at)
	if errors.Is(err, fs.ErrNotExist) {
		e.none, e.looked = true, true // it went meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	e.info = info
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := l.Readlink(e.at)
		if err != nil {
			return err
		}
		e.file, e.read = SavedFile{e.path, fs.ModeSymlink, []byte(target)}, true
		if e.end, e.outside, err = l.follow(e.path, target); err != nil {
			return err
		}
	case !info.Mode().IsRegular():
		e.none = true // a socket or a pipe has no content
	case info.Size() > largestFile:
		e.why = LargeFile
	}
	e.looked = true
	return nil
}

// fetch reads the content of an entry.
func (l *listing) fetch(e *entry) error {
	if e.read {
		return nil
	}
	data, why, err := l.content(e.at)
	if errors.Is(err, fs.ErrNotExist) {
		e.none = true
		return nil
	}
	if err != nil {
		return err
	}
	e.read, e.why = true, why
	e.file = SavedFile{e.path, e.info.Mode().Perm(), data}
	return nil
}

// content is a file of at most the size that is kept, or why it is not.
func (d disk) content(path string) ([]byte, Reason, error) {
	data, err := d.readAtMost(path, largestFile)
	if refused(err) {
		data, err = d.readAtMost(path, largestFile) // what a scanner held may be free now
	}
	switch {
	case refused(err):
		return nil, Unreadable, nil
	case errors.Is(err, errTooLarge):
		return nil, LargeFile, nil
	}
	return data, "", err
}

// follow is where the link at a path of the profile leads to, if that is outside,
// and the small file there.
func (l *listing) follow(rel, target string) (end string, file *SavedFile, err error) {
	if !filepath.IsAbs(target) {
		target = filepath.Join(l.dir, filepath.FromSlash(path.Dir(rel)), target)
	}
	end, info, err := l.resolve(target)
	if err != nil {
		end, info, err = l.resolve(target) // once more, in case it passed
	}
	if err != nil {
		return "", nil, nil // one that leads in a circle leads nowhere
	}
	end, err = l.realEnd(end)
	if err != nil || end == "" {
		return "", nil, err
	}
	if _, inside := l.inside(end); inside {
		return "", nil, nil
	}
	if info == nil || !info.Mode().IsRegular() || info.Size() > largestFile {
		return end, nil, nil
	}
	data, why, err := l.content(end)
	if errors.Is(err, fs.ErrNotExist) || err == nil && why != "" {
		return end, nil, nil
	}
	return end, &SavedFile{rel, info.Mode().Perm(), data}, err
}

// realEnd is the path of something, that need not be there, by way of no link;
// "" where there is not even a directory for it.
func (d disk) realEnd(end string) (string, error) {
	dir, err := d.RealPath(filepath.Dir(end))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return filepath.Join(dir, filepath.Base(end)), err
}

// inside is the path of something in the profile, slash-separated.
func (l *listing) inside(path string) (rel string, ok bool) {
	rel, err := filepath.Rel(l.dir, path)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

var errTooLarge = errors.New("the file is too large")

func (d disk) readAtMost(path string, limit int64) ([]byte, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(data)) > limit {
		err = errors.Join(err, errTooLarge)
	}
	return data, errors.Join(err, f.Close())
}

func refused(err error) bool { return errors.Is(err, fs.ErrPermission) }
