package staging

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// What a generation keeps at most, in bytes. Files at the top of the profile
// come first, then those further down.
const (
	largestFile = 1 << 20
	largestSum  = 16 << 20
)

// Snapshot is the small files of a profile as they are on the disk now. Left out
// are what is Derived, ".git", and temporary files of this package; directories
// count by their files. A link that leads to a file outside the profile is kept
// as that file, for writing to it follows the link too.
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
	s := snapshot{disk: d, dir: dir, derived: derived}
	if err := s.list(""); err != nil {
		return nil, fmt.Errorf("reading the files of %s: %w", dir, err)
	}
	slices.SortFunc(s.found, func(a, b smallFile) int {
		depth := func(f smallFile) int { return strings.Count(f.path, "/") }
		return cmp.Or(cmp.Compare(depth(a), depth(b)), strings.Compare(a.path, b.path))
	})
	for _, f := range s.found {
		if err := s.keep(f); err != nil {
			return nil, fmt.Errorf("reading the files of %s: %w", dir, err)
		}
	}
	slices.SortFunc(s.Files, func(a, b SavedFile) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(s.TooLarge)
	return &s.Generation, nil
}

// snapshot is a generation that is being made of a directory.
type snapshot struct {
	disk
	dir     string
	derived []string
	found   []smallFile
	sum     int64 // bytes kept
	Generation
}

// smallFile is a file or link that was found.
type smallFile struct {
	path string // slash-separated, relative to the profile
	info fs.FileInfo
}

// isSmall says whether a name in a profile is of what generations keep.
func isSmall(name string, derived []string) bool {
	return name != ".git" && !isTempOfFile(name) && !slices.Contains(derived, name)
}

func (s *snapshot) list(rel string) error {
	dir := filepath.Join(s.dir, filepath.FromSlash(rel))
	entries, err := s.ReadDir(dir)
	if refused(err) {
		entries, err = s.ReadDir(dir)
	}
	switch {
	case refused(err) && rel != "":
		s.TooLarge = append(s.TooLarge, rel)
		return nil
	case err != nil && !(errors.Is(err, fs.ErrNotExist) && rel != ""):
		return err
	}
	for _, e := range entries {
		if !isSmall(e.Name(), s.derived) {
			continue
		}
		path := e.Name()
		if rel != "" {
			path = rel + "/" + path
		}
		if e.IsDir() {
			if err := s.list(path); err != nil {
				return err
			}
			continue
		}
		info, err := s.Lstat(filepath.Join(s.dir, filepath.FromSlash(path)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return err
		}
		s.found = append(s.found, smallFile{path, info})
	}
	return nil
}

// keep reads a file, if it is of those that are kept.
func (s *snapshot) keep(f smallFile) error {
	path := filepath.Join(s.dir, filepath.FromSlash(f.path))
	return s.keepAs(f.path, path, f.info, filepath.Dir(path))
}

// keepAs is keep of what is at path, and stands in the directory home, or will.
func (s *snapshot) keepAs(rel, path string, info fs.FileInfo, home string) error {
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := s.Readlink(path)
		if err != nil {
			return err
		}
		end, file, err := s.outside(target, home)
		if err != nil {
			return err
		}
		if file == nil {
			s.Files = append(s.Files, SavedFile{rel, fs.ModeSymlink, []byte(target)})
			return nil
		}
		path, info = end, file
	}
	if !info.Mode().IsRegular() {
		return nil // a socket or a pipe has no content
	}
	if info.Size() > largestFile {
		s.TooLarge = append(s.TooLarge, rel)
		return nil
	}
	data, err := s.readAtMost(path, largestFile)
	if refused(err) {
		data, err = s.readAtMost(path, largestFile) // what a scanner held may be free now
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case refused(err), errors.Is(err, errTooLarge), err == nil && s.sum+int64(len(data)) > largestSum:
		s.TooLarge = append(s.TooLarge, rel)
		return nil
	case err != nil:
		return err
	}
	s.sum += int64(len(data))
	s.Files = append(s.Files, SavedFile{rel, info.Mode().Perm(), data})
	return nil
}

// outside is the file outside the profile to which a link in the directory home
// leads; nil when it leads elsewhere, or to nothing.
func (s *snapshot) outside(target, home string) (string, fs.FileInfo, error) {
	if !filepath.IsAbs(target) {
		target = filepath.Join(home, target)
	}
	end, info, err := s.resolve(target)
	if err != nil {
		end, info, err = s.resolve(target) // once more, in case it passed
	}
	if err != nil || info == nil || !info.Mode().IsRegular() {
		return "", nil, nil // one that leads in a circle leads nowhere
	}
	real, err := s.RealPath(end)
	if err != nil {
		return "", nil, err
	}
	if inside, err := filepath.Rel(s.dir, real); err == nil && filepath.IsLocal(inside) {
		return "", nil, nil
	}
	return real, info, nil
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

// SameFiles says whether the files of two generations are the same state. What neither
// keeps is not looked at.
func SameFiles(a, b []SavedFile) bool {
	return slices.EqualFunc(a, b, func(a, b SavedFile) bool {
		return a.Path == b.Path && a.Mode == b.Mode && string(a.Data) == string(b.Data)
	})
}
