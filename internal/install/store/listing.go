package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// listing is the files of an entry in the form in which the disk has them, so
// that thousands of entries are read without making a value for each file.
type listing struct {
	count  int    // of the files
	dirs   string // every directory, parents first; a zero byte after each
	names  string // every file, sorted; a zero byte after each
	meta   string // size<<1 | executable of every file, as varints
	hashes string // of every file, one after the other; "" where they are not at hand
	links  string // every symbolic link, sorted, and where it leads; a zero byte after each
	pkg    string // name@version, as its package.json has them; "" where that was not looked at
	traits traits
}

// traits are what is known of a package without reading its files.
type traits uint8

const (
	traitsKnown traits = 1 << iota // of an entry that an earlier version made they are not
	hasScripts                     // preinstall, install, postinstall, or a binding.gyp
	hasPrepare                     // prepare, prepublish, prepack
)

// facts are all that a listing says besides the files.
type facts struct {
	traits traits
	pkg    string // see [listing]
}

// newListing lists files and links that are sorted by path.
func newListing(files []File, known facts) listing {
	dirs := map[string]bool{}
	var list []string
	for _, f := range files {
		for dir, _, ok := cutLast(f.Path); ok && !dirs[dir]; dir, _, ok = cutLast(dir) {
			dirs[dir] = true
			list = append(list, dir)
		}
	}
	var b listingBuilder
	b.begin(list)
	var links []byte
	for _, f := range files {
		if f.Link == "" {
			b.add(f.Path, f.Size, f.Executable, f.Hash)
			continue
		}
		links = append(append(links, f.Path...), 0)
		links = append(append(links, f.Link...), 0)
	}
	l := b.done(known)
	l.links = string(links)
	return l
}

// append is the listing without its hashes as bytes.
func (l listing) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(l.count))
	for _, part := range []string{l.dirs, l.names, l.meta, l.links, l.pkg} {
		out = binary.AppendUvarint(out, uint64(len(part)))
	}
	out = append(out, byte(l.traits))
	out = append(out, l.dirs...)
	out = append(out, l.names...)
	out = append(out, l.meta...)
	out = append(out, l.links...)
	return append(out, l.pkg...)
}

var errListing = errors.New("the listing of files is damaged")

// cutListing takes a listing without hashes off the front of text. What is in it
// is looked at when it is used. Those of version 4 of an index do not say which
// package it is, and those of version 3 have no links and no traits either.
func cutListing(text string, version int) (l listing, rest string, err error) {
	var numbers [6]int
	sizes := numbers[:version+1]
	for i := range sizes {
		n, used := uvarint(text)
		if used <= 0 || n > uint64(len(text)) {
			return l, "", errListing
		}
		sizes[i], text = int(n), text[used:]
	}
	if version > 3 {
		if text == "" {
			return l, "", errListing
		}
		l.traits, text = traits(text[0]), text[1:]
	}
	l.count = sizes[0]
	for i, part := range []*string{&l.dirs, &l.names, &l.meta, &l.links, &l.pkg} {
		size := numbers[i+1]
		if size > len(text) {
			return l, "", errListing
		}
		*part, text = text[:size], text[size:]
	}
	return l, text, nil
}

// uvarint is binary.Uvarint of a string.
func uvarint(s string) (n uint64, used int) {
	for i := range min(len(s), binary.MaxVarintLen64) {
		b := s[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				return 0, -1
			}
			return n, i + 1
		}
	}
	return 0, -1
}

// next cuts the first of names that each end with a zero byte. No name leads
// out of the directory that it is in.
func next(names string) (name, rest string, err error) {
	i := strings.IndexByte(names, 0)
	if i < 0 || !fs.ValidPath(names[:i]) || names[:i] == "." {
		return "", "", errListing
	}
	return names[:i], names[i+1:], nil
}

// each calls f with every file until that fails.
func (l listing) each(f func(i int, name string, size int64, executable bool) error) error {
	names, meta := l.names, l.meta
	for i := range l.count {
		name, rest, err := next(names)
		kind, used := uvarint(meta)
		if err != nil || used <= 0 {
			return errListing
		}
		names, meta = rest, meta[used:]
		if err := f(i, name, int64(kind>>1), kind&1 != 0); err != nil {
			return err
		}
	}
	if names != "" || meta != "" {
		return errListing
	}
	return nil
}

// eachLink calls f with every link until that fails.
func (l listing) eachLink(f func(name, target string) error) error {
	for links := l.links; links != ""; {
		name, rest, err := next(links)
		i := strings.IndexByte(rest, 0)
		if err != nil || i < 1 {
			return errListing
		}
		if !staysInside(name, rest[:i]) {
			return errListing
		}
		if err := f(name, rest[:i]); err != nil {
			return err
		}
		links = rest[i+1:]
	}
	return nil
}

// staysInside reports whether a link leads to somewhere in the package.
func staysInside(name, target string) bool {
	dir, _, _ := cutLast(name)
	return !path.IsAbs(target) && filepath.IsLocal(filepath.FromSlash(path.Join(dir, target)))
}

// eachDir calls f with every directory until that fails.
func (l listing) eachDir(f func(dir string) error) error {
	for dirs := l.dirs; dirs != ""; {
		dir, rest, err := next(dirs)
		if err != nil {
			return err
		}
		if err := f(dir); err != nil {
			return err
		}
		dirs = rest
	}
	return nil
}

// check looks at all that is listed.
func (l listing) check() error {
	err := l.eachDir(func(string) error { return nil })
	if err == nil {
		err = l.each(func(int, string, int64, bool) error { return nil })
	}
	if err == nil {
		err = l.eachLink(func(string, string) error { return nil })
	}
	return err
}

// files are the listed files and links, sorted by path. A listing that is damaged gives an error and
// none.
func (l listing) files() ([]File, error) {
	if l.hashes != "" && len(l.hashes) != l.count*len(Hash{}) {
		return nil, errListing
	}
	files := make([]File, 0, min(l.count, len(l.meta))) // a count that lies makes nothing large
	err := l.each(func(i int, name string, size int64, executable bool) error {
		f := File{Path: name, Size: size, Executable: executable}
		if l.hashes != "" {
			f.Hash = l.hash(i)
		}
		files = append(files, f)
		return nil
	})
	if err != nil || l.links == "" {
		return files, err
	}
	err = l.eachLink(func(name, target string) error {
		files = append(files, File{Path: name, Link: target})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

func (l listing) hash(i int) Hash {
	const size = len(Hash{})
	return Hash([]byte(l.hashes[i*size : (i+1)*size]))
}

// size is what the files hold together.
func (l listing) size() (sum int64) {
	for meta := l.meta; meta != ""; {
		kind, used := uvarint(meta)
		if used <= 0 {
			return sum
		}
		sum, meta = sum+int64(kind>>1), meta[used:]
	}
	return sum
}

// has reports whether there is a file, or a link, with a name.
func (l listing) has(name string) bool {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return false
	}
	_, linked := l.link(name)
	name += "\x00"
	return strings.HasPrefix(l.names, name) || strings.Contains(l.names, "\x00"+name) || linked
}

// link is where the link with a name leads.
func (l listing) link(name string) (target string, ok bool) {
	_ = l.eachLink(func(n, t string) error {
		if n == name {
			target, ok = t, true
		}
		return nil
	})
	return target, ok
}

// listingBuilder makes listings of files that come sorted, in memory that it
// keeps.
type listingBuilder struct {
	dirs               []string
	text, meta, hashes []byte
	count, names       int // files; where the names begin in the text
}

// begin takes the directories of the listing.
func (b *listingBuilder) begin(dirs []string) {
	b.dirs = append(b.dirs[:0], dirs...)
	slices.Sort(b.dirs)
	b.text, b.meta, b.hashes, b.count = b.text[:0], b.meta[:0], b.hashes[:0], 0
	for _, dir := range b.dirs {
		b.text = append(append(b.text, dir...), 0)
	}
	b.names = len(b.text)
}

func (b *listingBuilder) add(name string, size int64, executable bool, hash Hash) {
	b.text = append(append(b.text, name...), 0)
	kind := uint64(size) << 1
	if executable {
		kind |= 1
	}
	b.meta = binary.AppendUvarint(b.meta, kind)
	b.hashes = append(b.hashes, hash[:]...)
	b.count++
}

func (b *listingBuilder) done(known facts) listing {
	text := string(b.text)
	return listing{
		count: b.count, dirs: text[:b.names], names: text[b.names:], meta: string(b.meta), hashes: string(b.hashes),
		traits: known.traits, pkg: known.pkg,
	}
}
