package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// DamagedError says that an entry has lost a file, or that one has changed.
// Dropping the entry and adding its content again mends it.
type DamagedError struct {
	Integrity Integrity
	File      string // path in the package
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("the package store holds a damaged %s of %s", e.File, e.Integrity)
}

// Class implements fault.Classed.
func (e *DamagedError) Class() fault.Class { return fault.Environment }

// check is a [*DamagedError] where a file has not the size that it was unpacked
// with. Profiles hold hard links to these files, so that an edit in a profile,
// which read-only permissions do not stop root from, damages the entry for all.
func (e Entry) check(f File) error {
	if f.Link != "" {
		return e.checkLink(f.Path, f.Link)
	}
	_, ok, err := look(e.path(f.Path), f)
	if err == nil && !ok {
		err = &DamagedError{e.Integrity, f.Path}
	}
	return err
}

// checkLink is a [*DamagedError] where a link is not there, or leads elsewhere.
func (e Entry) checkLink(name, target string) error {
	ok, err := leads(e.path(name), target)
	if err == nil && !ok {
		err = &DamagedError{e.Integrity, name}
	}
	return err
}

// leads reports whether a link is there and leads where it should. Where links
// cannot be made, what stands for it passes.
func leads(path, target string) (bool, error) {
	got, err := os.Readlink(path)
	switch {
	case err == nil:
		return filepath.ToSlash(got) == target, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return false, nil
	}
	if _, err := os.Lstat(path); err != nil {
		return false, err
	}
	return runtime.GOOS == "windows", nil
}

// look reports whether a file is there in the size that it should have.
func look(path string, f File) (info fs.FileInfo, ok bool, err error) {
	info, err = os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return info, info.Mode().IsRegular() && info.Size() == f.Size, nil
}

// holds reports whether a file that has the right size has the right content.
// One whose hash is not known passes.
func (f File) holds(path string) (bool, error) {
	if f.Hash == (Hash{}) {
		return true, nil
	}
	in, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer in.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, in); err != nil {
		if errors.Is(err, syscall.EIO) {
			return false, nil // the disk has lost it
		}
		return false, err
	}
	return Hash(sum.Sum(nil)) == f.Hash, nil
}

// Intact reports whether every file of the entry has the size that it was
// unpacked with.
func (e Entry) Intact() bool { return e.look(time.Time{}) == nil }

// look is nil where every file has its size and, unless latest is zero, was not
// written after that time.
func (e Entry) look(latest time.Time) error {
	if e.dir == "" {
		return errNoEntry
	}
	err := e.list.eachLink(e.checkLink)
	if err != nil {
		return err
	}
	return e.list.each(func(_ int, name string, size int64, _ bool) error {
		info, ok, err := look(e.path(name), File{Size: size})
		if err == nil && (!ok || !latest.IsZero() && info.ModTime().After(latest)) {
			err = &DamagedError{e.Integrity, name}
		}
		return err
	})
}

// withHashes is the entry with all that its index has.
func (e Entry) withHashes() (Entry, error) {
	if !e.listed {
		return e, nil
	}
	whole, ok := readEntry(e.Integrity, e.dir, e.now)
	if !ok {
		return e, errNoIndex
	}
	whole.readOnly = e.readOnly
	return whole, nil
}

// errNoIndex is of an entry that no use can be made of.
var errNoIndex = errors.New("the package store has lost the index of a package")

// Check reads every file of the entry. One that is not as it was unpacked is a
// [*DamagedError]; of entries that earlier versions made only the sizes are
// known.
func (e Entry) Check() error {
	if e.dir == "" {
		return errNoEntry
	}
	e, err := e.withHashes()
	if err != nil {
		return err
	}
	for _, f := range e.Files() {
		if err := e.check(f); err != nil {
			return err
		}
		if f.Link != "" {
			continue
		}
		switch same, err := f.holds(e.path(f.Path)); {
		case err != nil:
			return err
		case !same:
			return &DamagedError{e.Integrity, f.Path}
		}
	}
	return nil
}

// checkedName is the file that says of an entry that its content was read, and
// found whole, in a later boot than the one it was made in. It holds the boot in
// which the entry was looked at last.
const checkedName = "checked"

// Sound reports whether the entry may be used. In the boot in which it was made
// it may, without a look at its files. Since nothing of an entry is synced when it is made,
// its content is read once after the next start of the machine. After each
// further one the sizes and times of its files are looked at: a file that was
// written after the index was, is read.
func (e Entry) Sound() bool {
	if e.dir == "" {
		return false
	}
	if e.boot != "" && e.boot == e.now {
		if !e.listed {
			return true
		}
		// The entry may have gone since it was listed.
		_, err := os.Lstat(filepath.Join(e.dir, indexName))
		return err == nil
	}
	if e.listed {
		whole, err := e.withHashes()
		return err == nil && whole.Sound()
	}
	mark := filepath.Join(e.dir, checkedName)
	looked, err := os.ReadFile(mark)
	if err == nil && e.now != "" && string(looked) == bootName(e.now) {
		return true
	}
	info, statErr := os.Lstat(filepath.Join(e.dir, indexName))
	if err != nil || statErr != nil || e.look(info.ModTime()) != nil {
		if e.Check() != nil {
			return false
		}
	}
	if e.now != "" && !e.readOnly {
		// Without the mark it is looked at again.
		_ = staging.WriteDerived(mark, []byte(bootName(e.now)), 0o644)
	}
	return true
}

// Stands reports whether a directory holds every file of the entry as it was
// unpacked. checked says that Check has just passed, so that what is one file
// with the entry's need not be read again. What else is in the directory does
// not count.
func (e Entry) Stands(dir string, checked bool) (bool, error) {
	if e.dir == "" {
		return false, errNoEntry
	}
	e, err := e.withHashes()
	if err != nil {
		return false, err
	}
	for _, f := range e.Files() {
		if same, err := e.stands(dir, f, checked); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

func (e Entry) stands(dir string, f File, checked bool) (bool, error) {
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	if f.Link != "" {
		return leads(path, f.Link)
	}
	info, ok, err := look(path, f)
	if err != nil || !ok {
		return false, err
	}
	if checked {
		if own, err := os.Lstat(e.path(f.Path)); err == nil && os.SameFile(own, info) {
			return true, nil
		}
	}
	return f.holds(path)
}

// Edited reports whether all that is different in a directory from the entry is
// somebody's work, as opposed to what a power loss leaves: a file is there, was
// written after the entry was made, and has text in it. What is as it was
// unpacked is not edited.
func (e Entry) Edited(dir string) (bool, error) {
	if e.dir == "" {
		return false, nil
	}
	e, err := e.withHashes()
	if err != nil {
		return false, err
	}
	made, err := os.Lstat(filepath.Join(e.dir, indexName))
	if err != nil {
		return false, err
	}
	edited := false
	for _, f := range e.Files() {
		same, err := e.stands(dir, f, false)
		if err != nil {
			return false, err
		}
		if same {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || !info.ModTime().After(made.ModTime()) || !hasText(path) {
			return false, nil
		}
		edited = true
	}
	return edited, nil
}

// hasText reports whether a file has content, and no zero bytes near its
// beginning.
func hasText(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(f, head)
	return n > 0 && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) && bytes.IndexByte(head[:n], 0) < 0
}
