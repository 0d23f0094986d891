package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// writer writes the members of one package as they come, under the rules.
type writer struct {
	dir   *staging.Dir
	rules unpack.Rules
	sum   hash.Hash // of the file that is being written
	made  map[string]bool
	files []File
	links []File

	tree    hash.Hash // of the same file, where the whole is hashed as a tree
	leaves  []leaf
	scratch []byte
}

func newWriter(dir *staging.Dir, opts unpack.Options) *writer {
	w := &writer{dir: dir, sum: sha256.New(), made: map[string]bool{}, scratch: make([]byte, 64<<10)}
	w.rules.Reset(opts)
	return w
}

// add writes a file, and notes a link until all files are written.
func (w *writer) add(m unpack.Member, content io.Reader) error {
	name, again, err := w.rules.Admit(m)
	switch {
	case err != nil || name == "":
		return err
	case m.Type == unpack.Link:
		if !again {
			w.links = append(w.links, File{Path: name, Link: m.Link})
			w.leaf(name, leafLink, sha512.Sum512([]byte(m.Link)))
		}
		return nil
	case again:
		return w.repeated(m, name, content)
	}
	if err := w.makeDirs(name); err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	f, err := w.dir.Create(name, fileMode(m.Executable))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	to := io.MultiWriter(f, w.sum)
	if w.tree != nil {
		to = io.MultiWriter(f, w.sum, w.tree)
		w.tree.Reset()
	}
	w.sum.Reset()
	// One more byte tells what is longer than was said.
	size, err := io.CopyBuffer(to, io.LimitReader(content, m.Size+1), w.scratch)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil && size != m.Size {
		err = fault.Errorf(fault.Package, "it does not have the %d bytes that it should", m.Size)
	}
	if err != nil {
		if _, ok := errors.AsType[*unpack.LimitError](err); ok {
			return err // which names it
		}
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	w.files = append(w.files, File{Path: name, Size: size, Executable: m.Executable, Hash: Hash(w.sum.Sum(nil))})
	if w.tree != nil {
		kind := leafFile
		if m.Executable {
			kind = leafProgram
		}
		w.leaf(name, kind, [sha512.Size]byte(w.tree.Sum(nil)))
	}
	return nil
}

// makeDirs makes the directories of a file.
func (w *writer) makeDirs(name string) error {
	dir, _, ok := cutLast(name)
	if !ok || w.made[dir] {
		return nil
	}
	if err := w.makeDirs(dir); err != nil {
		return err
	}
	w.made[dir] = true
	return w.dir.Mkdir(dir)
}

// repeated accepts a file that comes twice with one content.
func (w *writer) repeated(m unpack.Member, name string, content io.Reader) error {
	i := slices.IndexFunc(w.files, func(f File) bool { return f.Path == name })
	if i < 0 || w.files[i].Size != m.Size {
		return unpack.ErrTwice(m)
	}
	w.sum.Reset()
	if _, err := io.CopyBuffer(w.sum, content, w.scratch); err != nil {
		return err
	}
	if Hash(w.sum.Sum(nil)) != w.files[i].Hash {
		return unpack.ErrTwice(m)
	}
	return nil
}

// finish makes the links, makes the programs that package.json names executable,
// which publishers on systems without permission bits cannot do, and lists all.
func (w *writer) finish() (listing, error) {
	if err := w.rules.Finish(); err != nil {
		return listing{}, err
	}
	known, err := w.look()
	if err != nil {
		return listing{}, err
	}
	all := append(w.files, w.links...)
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	list := newListing(all, known)
	for _, l := range w.links {
		if err := w.makeDirs(l.Path); err != nil {
			return listing{}, fmt.Errorf("unpack %s: %w", l.Path, err)
		}
		if err := list.layLink(w.dir, w.dir, l.Path, l.Link); err != nil {
			return listing{}, fmt.Errorf("unpack %s: %w", l.Path, err)
		}
	}
	return list, nil
}

// look reads the package.json that was written.
func (w *writer) look() (known traits, err error) {
	at := func(name string) int {
		return slices.IndexFunc(w.files, func(f File) bool { return f.Path == name })
	}
	if at(bindingFile) >= 0 {
		known |= hasScripts
	}
	i := at(packageFile)
	if i < 0 || w.files[i].Size > manifest.MaxSize {
		return known | traitsKnown, nil // the caller reads the manifest and says what is wrong with it
	}
	text, err := readFile(w.dir, packageFile)
	if err != nil {
		return 0, err
	}
	programs, more := read(text)
	for i := range w.files {
		f := &w.files[i]
		if !f.Executable && programs[f.Path] {
			if err := w.dir.Chmod(f.Path, fileMode(true)); err != nil {
				return 0, err
			}
			f.Executable = true
		}
	}
	return known | more | traitsKnown, nil
}

func readFile(dir *staging.Dir, name string) ([]byte, error) {
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// fileMode is how files stand in the store: never writable, since profiles
// hold hard links to them.
func fileMode(executable bool) fs.FileMode {
	if executable {
		return 0o555
	}
	return 0o444
}

// layLink makes one of the listed links in a directory. Where the system does
// not let it be made, it is a copy of what it leads to.
func (l listing) layLink(from, to *staging.Dir, name, target string) error {
	err := to.Symlink(target, name)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	dir, _, _ := cutLast(name)
	end := path.Join(dir, target)
	return l.each(func(_ int, file string, _ int64, executable bool) error {
		perm := fileMode(executable)
		if file == end {
			return from.CopyTo(file, to, name, perm)
		}
		rest, below := strings.CutPrefix(file, end+"/")
		if !below {
			return nil
		}
		if err := makeBelow(to, name, rest); err != nil {
			return err
		}
		return from.CopyTo(file, to, name+"/"+rest, perm)
	})
}

// makeBelow makes a directory, and those below it on the way to a file.
func makeBelow(to *staging.Dir, dir, rest string) error {
	for i := 0; ; {
		if err := to.Mkdir(dir + strings.TrimSuffix("/"+rest[:i], "/")); err != nil {
			return err
		}
		next := strings.IndexByte(rest[i:], '/')
		if next < 0 {
			return nil
		}
		i += next + 1
	}
}

// leaf is what the hash of a tree covers of a file or link.
type leaf struct {
	name string
	kind byte
	sum  [sha512.Size]byte
}

const (
	leafFile byte = iota
	leafProgram
	leafLink
)

func (w *writer) leaf(name string, kind byte, sum [sha512.Size]byte) {
	if w.tree != nil {
		w.leaves = append(w.leaves, leaf{name, kind, sum})
	}
}

// treeSum is the hash of a tree: names, executable bits, contents and targets of
// links, folder by folder in order of name, in whatever order they came. That
// programs become executable in the store does not count.
func (w *writer) treeSum() Integrity {
	slices.SortFunc(w.leaves, func(a, b leaf) int { return compareWalk(a.name, b.name) })
	sum := sha512.New()
	for _, l := range w.leaves {
		// Lengths go before what they measure, so that no two trees hash alike.
		head := binary.BigEndian.AppendUint64(nil, uint64(len(l.name)))
		sum.Write(append(append(head, l.name...), l.kind))
		sum.Write(l.sum[:])
	}
	return Integrity{[sha512.Size]byte(sum.Sum(nil))}
}

// compareWalk is the order in which a walk through folders meets two paths.
func compareWalk(a, b string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			switch {
			case a[i] == '/':
				return -1
			case b[i] == '/':
				return 1
			}
			return cmp.Compare(a[i], b[i])
		}
	}
	return cmp.Compare(len(a), len(b))
}

// AddTree stores a tree of files and links that come one by one in any order;
// each calls add for every one, and ends with the error of that. Its hash is that
// of the same folder for [Store.AddFolder], which knows no links.
func (s *Store) AddTree(ctx context.Context, limits unpack.Limits, each func(add func(unpack.Member, io.Reader) error) error) (Entry, error) {
	return s.build(func(dir *staging.Dir) (Integrity, listing, error) {
		w := newWriter(dir, unpack.Options{Limits: limits, Links: true})
		w.tree = sha512.New()
		err := each(func(m unpack.Member, content io.Reader) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return w.add(m, content)
		})
		if err != nil {
			return Integrity{}, listing{}, err
		}
		list, err := w.finish()
		return w.treeSum(), list, err
	})
}
