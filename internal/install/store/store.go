// Package store is the directory in which every package content stands once,
// under the hash of what it was made from, shared by all profiles of a home.
//
// It is not a cache of metadata, and it knows nothing of names, versions or
// registries: content goes in with a hash and comes out as files to link.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"dsh/internal/install/manifest"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// Store is a directory of package contents.
//
// An entry is <dir>/<first two hex digits>/<the rest>/ with the content in
// files/ and its listing in index. Both are made in a temporary directory,
// the index last, and appear with one rename, so that an entry with an index
// is whole as long as the machine runs. Nothing is synced: what is left of it
// after a power loss the hashes in the index tell, see [Entry.Sound].
//
// A store is closed after use, and nothing is pruned before. It is safe for
// several goroutines, and for several processes at once.
type Store struct {
	Limits unpack.Limits // of what is added; set before the first use

	dir   string
	below *Store // whose entries are found too, nil for none
	boot  string // of the machine; "" when that cannot be told
	temp  func() (temp, error)
	next  atomic.Int64 // numbers the contents that are being made
	made  atomic.Bool  // temp was called
	use   use
}

// temp is the directory in which the contents of one process are made.
type temp struct {
	dir    string
	remove func() error
}

// Open names the store; the directory is made when the first entry is.
func Open(dir string) *Store {
	s := &Store{dir: filepath.Clean(dir), boot: staging.BootID()}
	s.temp = sync.OnceValues(func() (temp, error) {
		s.made.Store(true)
		if err := s.use.begin(dir); err != nil {
			return temp{}, err
		}
		dir, remove, err := staging.TempDir(dir)
		if err != nil {
			return temp{}, fmt.Errorf("open the package store: %w", err)
		}
		return temp{dir, remove}, nil
	})
	return s
}

// OpenOver is a store that also finds the entries of the store below, and never
// writes there, not even a lock: what is tried and not kept uses it.
func OpenOver(dir, below string) *Store {
	s := Open(dir)
	s.below = Open(below)
	return s
}

// Close takes the temporary directory away, if there is one, and lets others
// prune.
func (s *Store) Close() error {
	if !s.made.Load() {
		return s.use.end()
	}
	t, err := s.temp()
	if err != nil {
		return s.use.end() // it was never made
	}
	return errors.Join(t.remove(), s.use.end())
}

// TempDir is a new empty directory for a download, which goes with the store's
// Close at the latest.
func (s *Store) TempDir() (string, error) {
	t, err := s.temp()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(t.dir, strconv.FormatInt(s.next.Add(1), 10))
	return dir, os.Mkdir(dir, 0o755)
}

// Dir is the store's directory.
func (s *Store) Dir() string { return s.dir }

const (
	filesDir  = "files"
	indexName = "index"
)

// File is one file of an entry, or a symbolic link.
type File struct {
	Path       string // slash-separated, relative to the package's root
	Size       int64
	Executable bool
	Hash       Hash
	Link       string // where a link leads, relative to its directory and inside the package; "" of a file
}

// Entry is one package content that the store holds.
type Entry struct {
	Integrity Integrity
	list      listing
	dir       string
	boot      string // of the machine when the entry was made, or listed
	now       string // the boot that the machine is in
	listed    bool   // by a closure, and not by its index, which has more
	readOnly  bool   // nothing is noted beside it
}

func (s *Store) entryDir(id Integrity) string {
	h := id.hex()
	const slash = string(filepath.Separator)
	return s.dir + slash + h[:2] + slash + h[2:]
}

// Get is the entry with the given hash. It reports false when the store does
// not hold it whole.
func (s *Store) Get(id Integrity) (Entry, bool) {
	if id.IsZero() {
		return Entry{}, false
	}
	s.use.look(s.dir)
	if entry, ok := s.read(id); ok || s.below == nil {
		return entry, ok
	}
	entry, ok := s.below.read(id)
	entry.readOnly = true
	return entry, ok
}

func (s *Store) read(id Integrity) (Entry, bool) { return readEntry(id, s.entryDir(id), s.boot) }

func readEntry(id Integrity, dir, now string) (Entry, bool) {
	data, err := os.ReadFile(filepath.Join(dir, indexName))
	if err != nil {
		return Entry{}, false
	}
	index, err := parseIndex(data)
	if err != nil {
		return Entry{}, false // an index that does not read counts as absent, and is made anew
	}
	return Entry{Integrity: id, list: index.files, dir: dir, boot: index.boot, now: now}, true
}

// publish gives a finished content its place. A whole entry that stands there
// already is the same content and wins.
func (s *Store) publish(tmp string, id Integrity, files listing) (Entry, error) {
	if err := os.WriteFile(filepath.Join(tmp, indexName), index{s.boot, files}.format(), 0o444); err != nil {
		return Entry{}, err
	}
	final := s.entryDir(id)
	// One of 256 directories is made without a sync: content is derived.
	if err := staging.OS.Mkdir(filepath.Dir(final), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return Entry{}, err
	}
	for attempt := 0; ; attempt++ {
		err := staging.OS.RenameNew(tmp, final)
		if err == nil {
			return Entry{Integrity: id, list: files, dir: final, boot: s.boot, now: s.boot}, nil
		}
		if entry, ok := s.read(id); ok && entry.Check() == nil {
			return entry, nil // what was made here goes with Close
		}
		// What stood in the way may be gone by now: somebody else has dropped it.
		if !errors.Is(err, fs.ErrExist) || attempt == 10 {
			return Entry{}, fmt.Errorf("publish %s: %w", final, err)
		}
		if err := s.Drop(id); err != nil {
			return Entry{}, err
		}
	}
}

// lockName is the file whose lock is held while something leaves the store, so
// that nobody takes away what another has just put in the place of it.
const lockName = ".lock"

// Drop takes out of the store what stands at the place of an entry and is not
// whole. What another process has mended meanwhile stays.
func (s *Store) Drop(id Integrity) (err error) {
	aside, err := s.TempDir() // goes with Close
	if err != nil {
		return err
	}
	// The lock is held for one rename, so that waiting for it needs no end.
	lock, err := staging.Acquire(context.Background(), filepath.Join(s.dir, lockName), "dsh", nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if entry, ok := s.read(id); ok && entry.Check() == nil {
		return nil
	}
	err = staging.SetAside(s.entryDir(id), filepath.Join(aside, "damaged"), indexName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// build runs fill on an empty content directory in a temporary place of the
// store and publishes what it made. Nothing is left of a content that failed.
func (s *Store) build(fill func(content *staging.Dir) (Integrity, listing, error)) (entry Entry, err error) {
	tmp, err := s.TempDir()
	if err != nil {
		return Entry{}, err
	}
	published := false
	defer func() {
		if !published {
			err = errors.Join(err, staging.RemoveAll(tmp))
		}
	}()
	path := filepath.Join(tmp, filesDir)
	if err := os.Mkdir(path, 0o755); err != nil {
		return Entry{}, err
	}
	content, err := staging.OpenDir(path)
	if err != nil {
		return Entry{}, err
	}
	id, files, err := fill(content)
	if err = errors.Join(err, content.Close()); err != nil {
		return Entry{}, err
	}
	entry, err = s.publish(tmp, id, files)
	published = err == nil
	return entry, err
}

// Dir is the directory that holds the entry's files. Nothing in it may be
// changed.
func (e Entry) Dir() string { return filepath.Join(e.dir, filesDir) }

// Has reports whether the entry has a file at the slash-separated path.
func (e Entry) Has(name string) bool { return e.list.has(name) }

func (e Entry) path(name string) string {
	return filepath.Join(e.dir, filesDir, filepath.FromSlash(name))
}

// errNoEntry is the use of a zero Entry.
var errNoEntry = errors.New("the package is not in the store")

// Len is how many files the entry has, without links.
func (e Entry) Len() int { return e.list.count }

// Files lists the entry's files and links, sorted by path. Of an entry that came from a
// closure their hashes are not known.
func (e Entry) Files() []File {
	files, err := e.list.files()
	if err != nil {
		return nil // the index is read whole, and a closure tells when it is damaged
	}
	return files
}

// HasScripts reports whether the package has scripts that run when it is
// installed: preinstall, install or postinstall, or a binding.gyp, which is as
// good as one.
func (e Entry) HasScripts() bool { return e.traits()&hasScripts != 0 }

// HasPrepare reports whether the package may have scripts that make its files of
// its sources: prepare, prepublish or prepack. They matter where it does not come
// from a registry.
func (e Entry) HasPrepare() bool { return e.traits()&hasPrepare != 0 }

// traits are read again of an entry that an earlier version made.
func (e Entry) traits() traits {
	if e.list.traits&traitsKnown != 0 || e.dir == "" {
		return e.list.traits
	}
	text, err := os.ReadFile(e.path(packageFile))
	if err != nil {
		text = nil
	}
	_, known := readTraits(text)
	if e.Has(bindingFile) {
		known |= hasScripts
	}
	return known
}

// Package is the name and the version that the package.json of the entry has, each
// "" where it has none.
func (e Entry) Package() (name, version string) {
	pkg := e.list.pkg
	if pkg == "" && e.dir != "" { // an earlier version made it
		if text, err := os.ReadFile(e.path(packageFile)); err == nil {
			return manifest.Identity(text)
		}
	}
	i := strings.LastIndexByte(pkg, '@')
	if i < 0 {
		return "", ""
	}
	return pkg[:i], pkg[i+1:]
}

// EachFile calls visit with every file of the entry and its content, sorted by
// path, with copies in the place of links: of the file that one leads to, or of
// the files below the directory, of which the links are left out.
func (e Entry) EachFile(ctx context.Context, visit func(unpack.Member, io.Reader) error) error {
	all, err := withCopies(e.Files())
	if err != nil {
		return err
	}
	for _, c := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		in, err := os.Open(e.path(c.of.Path))
		if err != nil {
			return e.lost(err, c.of.Path)
		}
		err = visit(unpack.Member{Name: c.name, Executable: c.of.Executable, Size: c.of.Size}, in)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Mode says how files get from the store to where they are used.
type Mode int

// Modes of [Entry.Link].
const (
	// Auto shares blocks where the filesystem can, else makes hard links, else
	// copies.
	Auto Mode = iota
	// Copy makes files of their own, which may be changed.
	Copy
)

// Link fills the directory dst with the entry's files. Its parent exists, and
// it may exist too, with other packages in its node_modules. skip, which may be
// nil, says of a directory below node_modules (by a slash-separated path below
// the package) that it is left out, because something else is to stand there.
// A file that the entry has lost is a [*DamagedError].
func (e Entry) Link(dst string, mode Mode, skip func(dir string) bool) (err error) {
	if e.dir == "" {
		return errNoEntry
	}
	from, err := staging.OpenDir(e.Dir())
	if err != nil {
		return e.lost(err, "")
	}
	defer from.Close()
	if err := os.Mkdir(dst, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	to, err := staging.OpenDir(dst)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	var leftOut []string // directories, with a slash
	leaves := func(path string) bool {
		return len(leftOut) > 0 && strings.HasPrefix(path, modules) &&
			slices.ContainsFunc(leftOut, func(dir string) bool { return strings.HasPrefix(path, dir) })
	}
	err = e.list.eachDir(func(dir string) error {
		if leaves(dir) {
			return nil
		}
		if skip != nil && strings.HasPrefix(dir, modules) && skip(dir) {
			leftOut = append(leftOut, dir+"/")
			return nil
		}
		return to.Mkdir(dir)
	})
	if err != nil {
		return err
	}
	way := from.LinkTo
	if mode == Copy {
		way = from.CopyTo
	}
	err = e.list.each(func(_ int, name string, _ int64, executable bool) error {
		if leaves(name) {
			return nil
		}
		perm := fs.FileMode(0o644)
		if executable {
			perm = 0o755
		}
		if err := way(name, to, name, perm); err != nil {
			return e.lost(err, name)
		}
		return nil
	})
	if err != nil || e.list.links == "" {
		return err
	}
	// Last, so that no file is written through one.
	return layLinks(e.Files(), from, to, leaves)
}

// modules is how the names begin of what an archive brings in a node_modules of
// its own.
const modules = "node_modules/"

// lost makes an error a [*DamagedError] where it comes from a file, "" for any
// of them, that is not there. Who looks again may find it: another process puts
// back what it misses too, and the entry is then the one that it made.
func (e Entry) lost(err error, file string) error {
	damaged := e.list.each(func(_ int, name string, size int64, _ bool) error {
		if file != "" && name != file {
			return nil
		}
		return e.check(File{Path: name, Size: size})
	})
	switch _, ok := errors.AsType[*DamagedError](damaged); {
	case ok:
		return damaged
	case errors.Is(err, fs.ErrNotExist):
		return &DamagedError{e.Integrity, cmp.Or(file, packageFile)}
	}
	return err
}

func cutLast(p string) (dir, base string, ok bool) {
	i := strings.LastIndexByte(p, '/')
	if i < 0 {
		return "", p, false
	}
	return p[:i], p[i+1:], true
}
