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

	number map[string]int // of a file in the list, by its path

	tree    hash.Hash // of the same file, where the whole is hashed as a tree
	leaves  []leaf
	scratch []byte
}

func newWriter(dir *staging.Dir, opts unpack.Options) *writer {
	w := &writer{dir: dir, sum: sha256.New(), made: map[string]bool{}, number: map[string]int{}, scratch: make([]byte, 64<<10)}
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
	if err := makeDirs(w.dir, name, w.made); err != nil {
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
	w.number[name] = len(w.files)
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

// repeated accepts a file that comes twice with one content.
func (w *writer) repeated(m unpack.Member, name string, content io.Reader) error {
	i, ok := w.number[name]
	if !ok || w.files[i].Size != m.Size {
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
	all := slices.Concat(w.files, w.links)
	slices.SortFunc(all, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	list := newListing(all, known)
	for _, l := range w.links {
		if err := makeDirs(w.dir, l.Path, w.made); err != nil {
			return listing{}, fmt.Errorf("unpack %s: %w", l.Path, err)
		}
	}
	if len(w.links) > 0 {
		if err := layLinks(all, w.dir, w.dir, func(string) bool { return false }); err != nil {
			return listing{}, err
		}
	}
	return list, nil
}

// look reads the package.json that was written.
func (w *writer) look() (known facts, err error) {
	if _, ok := w.number[bindingFile]; ok {
		known.traits |= hasScripts
	}
	i, ok := w.number[packageFile]
	if !ok || w.files[i].Size > manifest.MaxSize {
		known.traits |= traitsKnown
		return known, nil // the caller reads the manifest and says what is wrong with it
	}
	text, err := readFile(w.dir, packageFile)
	if err != nil {
		return facts{}, err
	}
	programs, more := read(text)
	for i := range w.files {
		f := &w.files[i]
		if !f.Executable && programs[f.Path] {
			if err := w.dir.Chmod(f.Path, fileMode(true)); err != nil {
				return facts{}, err
			}
			f.Executable = true
		}
	}
	known.traits |= more.traits | traitsKnown
	known.pkg = more.pkg
	return known, nil
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
// of the same folder for [Store.AddFolder], which knows no links. Limits that are
// zero are those of the store.
func (s *Store) AddTree(ctx context.Context, limits unpack.Limits, each func(add func(unpack.Member, io.Reader) error) error) (Entry, error) {
	limits = cmp.Or(limits, s.Limits)
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
