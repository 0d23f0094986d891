package staging

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
)

// tempMark is in the name of everything temporary that stands beside the real
// thing. The rest of the name is random and short, so that no name is too long.
const tempMark = ".dsh-tmp-"

// WriteFile replaces the file at path, or makes it: readers see the old bytes
// or the new, also after a power loss. An existing file keeps its permissions,
// and perm, before the umask, is for a new one. A symbolic link is followed:
// what it points at is replaced. A failure leaves the old bytes and no litter;
// only when the directory cannot be synced do the new ones stand already.
func WriteFile(path string, data []byte, perm fs.FileMode) error {
	return disk{OS}.writeFile(path, data, perm)
}

// CreateFile makes the file at path if nothing is there, whole or not at all,
// and says whether it did. What is there, whatever it is, stays.
func CreateFile(path string, data []byte, perm fs.FileMode) (created bool, err error) {
	return disk{OS}.createFile(path, data, perm)
}

// WriteFileIfChanged is [WriteFile] unless the file holds these bytes already.
func WriteFileIfChanged(path string, data []byte, perm fs.FileMode) (changed bool, err error) {
	return disk{OS}.writeFileIfChanged(path, data, perm)
}

// MkdirAll makes the directory at path and its parents where they are missing.
func MkdirAll(path string) error {
	return disk{OS}.mkdirAll(path)
}

// disk is what the package builds from the calls of an FS.
type disk struct{ FS }

func (d disk) writeFile(path string, data []byte, perm fs.FileMode) error {
	if err := d.replaceFile(path, data, perm); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func (d disk) replaceFile(path string, data []byte, perm fs.FileMode) error {
	path, info, err := d.resolve(path)
	if err != nil {
		return err
	}
	keep := info != nil
	if keep {
		if !info.Mode().IsRegular() {
			return errors.New("it is not a regular file")
		}
		perm = info.Mode().Perm()
	}
	temp, err := d.writeTemp(filepath.Dir(path), data, perm, keep)
	if err != nil {
		return err
	}
	if err := d.Rename(temp, path); err != nil {
		return errors.Join(err, d.Remove(temp))
	}
	return d.SyncDir(filepath.Dir(path))
}

func (d disk) createFile(path string, data []byte, perm fs.FileMode) (bool, error) {
	fail := func(err error) (bool, error) { return false, fmt.Errorf("creating %s: %w", path, err) }
	if there, err := d.exists(path); err != nil {
		return fail(err)
	} else if there {
		return false, nil
	}
	temp, err := d.writeTemp(filepath.Dir(path), data, perm, false)
	if err != nil {
		return fail(err)
	}
	if err := d.RenameNew(temp, path); err != nil {
		removed := d.Remove(temp)
		// Who else made it is told by the file, for errors differ by system.
		if there, lerr := d.exists(path); lerr == nil && there {
			if removed != nil {
				return fail(removed)
			}
			return false, nil
		}
		return fail(errors.Join(err, removed))
	}
	if err := d.SyncDir(filepath.Dir(path)); err != nil {
		return fail(err)
	}
	return true, nil
}

func (d disk) writeFileIfChanged(path string, data []byte, perm fs.FileMode) (bool, error) {
	old, err := d.readFile(path)
	if err == nil && bytes.Equal(old, data) {
		return false, nil
	}
	// An unreadable file is for writeFile to judge.
	if err := d.writeFile(path, data, perm); err != nil {
		return false, err
	}
	return true, nil
}

// writeTemp writes a synced temporary file into dir and returns its path. With
// exact the permissions are perm, else perm less the umask.
func (d disk) writeTemp(dir string, data []byte, perm fs.FileMode, exact bool) (string, error) {
	path := filepath.Join(dir, tempMark+random())
	return path, d.writeNew(path, data, perm, exact)
}

// writeNew makes a file with its content and permissions on the disk, or leaves
// nothing.
func (d disk) writeNew(path string, data []byte, perm fs.FileMode, exact bool) error {
	return d.fillNew(path, perm, exact, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fillNew is writeNew of what fill writes.
func (d disk) fillNew(path string, perm fs.FileMode, exact bool, fill func(io.Writer) error) error {
	f, err := d.Create(path, perm)
	if err != nil {
		return err
	}
	if exact { // before the sync, which is of permissions too
		err = d.Chmod(path, perm)
	}
	if err == nil {
		err = fill(f)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.Remove(path))
	}
	return nil
}

func (d disk) readFile(path string) ([]byte, error) {
	f, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	return data, errors.Join(err, f.Close())
}

// exists says whether anything is at path; a link counts, wherever it points.
func (d disk) exists(path string) (bool, error) {
	_, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// resolve follows the links that path itself is, and says what stands at the
// end; nil when nothing does.
func (d disk) resolve(path string) (string, fs.FileInfo, error) {
	const deepest = 40 // as Linux
	for range deepest {
		info, err := d.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, info, nil
		}
		target, err := d.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(target) {
			// Relative to where the link really is, or ".." would mislead.
			dir, err := d.RealPath(filepath.Dir(path))
			if err != nil {
				return "", nil, err
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return "", nil, fmt.Errorf("too many links at %s", path)
}

// mkdirAll makes missing directories and syncs the parent of each one made, so
// that what is synced inside them later can be found again.
func (d disk) mkdirAll(path string) error {
	_, info, err := d.resolve(path)
	if err != nil {
		return fmt.Errorf("making directory %s: %w", path, err)
	}
	if info != nil {
		if !info.IsDir() {
			return fmt.Errorf("making directory %s: a file is in its place", path)
		}
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := d.mkdirAll(parent); err != nil {
			return err
		}
	}
	err = d.Mkdir(path, 0o755)
	if errors.Is(err, fs.ErrExist) {
		// Somebody else was quicker, or it is a link to nothing.
		if _, info, _ = d.resolve(path); info != nil && info.IsDir() {
			return nil
		}
	}
	if err == nil {
		err = d.SyncDir(parent)
	}
	if err != nil {
		return fmt.Errorf("making directory %s: %w", path, err)
	}
	return nil
}

// random is twelve hexadecimal digits.
func random() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// isTemp says whether a name was made of tempMark by this package.
func isTemp(name string) bool {
	rest, ok := strings.CutPrefix(name, tempMark)
	return ok && isRandom(rest)
}

// isTempOfFile is isTemp, also for what stands beside a file that a link leads
// to while it is changed.
func isTempOfFile(name string) bool {
	name, _ = strings.CutSuffix(name, "-new")
	name, _ = strings.CutSuffix(name, "-old")
	return isTemp(name)
}

func isRandom(s string) bool {
	return len(s) == 12 && strings.Trim(s, "0123456789abcdef") == ""
}
