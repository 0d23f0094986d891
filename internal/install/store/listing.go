package store

import (
	"encoding/binary"
	"errors"
	"io/fs"
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
}

// newListing lists files that are sorted by path.
func newListing(files []File) listing {
	dirs := map[string]bool{}
	for _, f := range files {
		for dir, _, ok := cutLast(f.Path); ok && !dirs[dir]; dir, _, ok = cutLast(dir) {
			dirs[dir] = true
		}
	}
	var b listingBuilder
	b.begin(dirs)
	for _, f := range files {
		b.add(f.Path, f.Size, f.Executable, f.Hash)
	}
	return b.done()
}

// append is the listing without its hashes as bytes.
func (l listing) append(out []byte) []byte {
	out = binary.AppendUvarint(out, uint64(l.count))
	for _, part := range []string{l.dirs, l.names, l.meta} {
		out = binary.AppendUvarint(out, uint64(len(part)))
	}
	out = append(out, l.dirs...)
	out = append(out, l.names...)
	return append(out, l.meta...)
}

var errListing = errors.New("the listing of files is damaged")

// cutListing takes a listing without hashes off the front of text. What is in it
// is looked at when it is used.
func cutListing(text string) (l listing, rest string, err error) {
	var sizes [4]int
	for i := range sizes {
		n, used := uvarint(text)
		if used <= 0 || n > uint64(len(text)) {
			return l, "", errListing
		}
		sizes[i], text = int(n), text[used:]
	}
	l.count = sizes[0]
	for i, part := range []*string{&l.dirs, &l.names, &l.meta} {
		size := sizes[i+1]
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
	return err
}

// files are the listed files. A listing that is damaged gives an error and
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
	if err != nil {
		return nil, err
	}
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

// has reports whether there is a file with a name.
func (l listing) has(name string) bool {
	if name == "" || strings.IndexByte(name, 0) >= 0 {
		return false
	}
	name += "\x00"
	return strings.HasPrefix(l.names, name) || strings.Contains(l.names, "\x00"+name)
}

// listingBuilder makes listings of files that come sorted, in memory that it
// keeps.
type listingBuilder struct {
	dirs               []string
	text, meta, hashes []byte
	count, names       int // files; where the names begin in the text
}

// begin takes the directories of the listing.
func (b *listingBuilder) begin(dirs map[string]bool) {
	b.dirs = b.dirs[:0]
	for dir := range dirs {
		b.dirs = append(b.dirs, dir)
	}
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

func (b *listingBuilder) done() listing {
	text := string(b.text)
	return listing{b.count, text[:b.names], text[b.names:], string(b.meta), string(b.hashes)}
}
