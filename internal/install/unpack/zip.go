package unpack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"strings"

	"github.com/klauspost/compress/flate"

	"dsh/internal/fault"
)

// Archives of the zip format are read here and not by package archive/zip, which
// holds all entries of one in memory, however many it claims, and does not tell
// when an entry is another one where it stands than in the directory at the end:
// what two programs would unpack differently is refused. See
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT.

const (
	zipLocal      = 0x04034b50 // signatures
	zipEntry      = 0x02014b50
	zipEnd        = 0x06054b50
	zipEnd64      = 0x06064b50
	zipEnd64At    = 0x07064b50
	zipDescriptor = 0x08074b50

	zipLocalSize = 30 // bytes without what varies
	zipEntrySize = 46
	zipEndSize   = 22
	zipEnd64Size = 56
	zipAt64Size  = 20

	zipStored, zipDeflated = 0, 8 // methods
	zipExtra64             = 1    // the extra field with large numbers

	zipEncrypted  = 1<<0 | 1<<6 | 1<<13 // bits of the flags
	zipDescribed  = 1 << 3              // sizes and checksum follow the content
	zipPatch      = 1 << 5
	zipUnix       = 3 // systems that an entry's permissions are of
	zipMac        = 19
	zipMaxComment = 1<<16 - 1
)

var errZip = fault.Errorf(fault.Package, "read archive: the zip archive is damaged")

// zipHeader is what the directory says of an entry.
type zipHeader struct {
	name          string
	flags, method uint16
	sum           uint32
	packed, size  int64
	at            int64 // of its local header
	system        byte
	attributes    uint32
}

func walkZip(ctx context.Context, r io.ReaderAt, size int64, limits Limits, visit func(Member, io.Reader) error) error {
	at, end, count, err := zipDirectory(r, size)
	if err != nil {
		return err
	}
	directory := io.NewSectionReader(r, at, end-at)
	w := zipWalk{ctx: ctx, r: r, end: at, size: size, limits: limits, seen: names{limits: limits}}
	for read := io.Reader(bufio.NewReader(directory)); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := readZipEntry(read)
		if errors.Is(err, io.EOF) {
			if count != 0 {
				return errZip
			}
			return nil
		}
		if err != nil {
			return err
		}
		count--
		if err := w.entry(h, visit); err != nil {
			return err
		}
	}
}

// zipDirectory finds the directory of a zip archive. It ends where the record
// that tells of it begins, which ends with the file.
func zipDirectory(r io.ReaderAt, size int64) (at, end int64, count uint64, err error) {
	tail := make([]byte, min(size, zipEndSize+zipMaxComment))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return 0, 0, 0, fmt.Errorf("read archive: %w", err)
	}
	i := len(tail) - zipEndSize
	for ; i >= 0; i-- {
		b := tail[i:]
		if le32(b) == zipEnd && int(le16(b[20:])) == len(b)-zipEndSize {
			break
		}
	}
	if i < 0 {
		return 0, 0, 0, fault.Errorf(fault.Package, "read archive: the zip archive has no directory at its end")
	}
	b := tail[i:]
	disk, first, length := le16(b[4:]), le16(b[6:]), int64(le32(b[12:]))
	at, end, count = int64(le32(b[16:])), size-int64(len(b)), uint64(le16(b[10:]))
	if at == math.MaxUint32 || length == math.MaxUint32 || count == math.MaxUint16 {
		var ok bool
		if at, length, count, end, ok = zip64Directory(r, end, at, length, count); !ok {
			return 0, 0, 0, errZip
		}
		disk, first = 0, 0
	}
	if disk != 0 || first != 0 {
		return 0, 0, 0, fault.Errorf(fault.Package, "read archive: the zip archive is one part of several")
	}
	if at < 0 || length < 0 || at > end || length != end-at {
		return 0, 0, 0, errZip
	}
	return at, end, count, nil
}

// zip64Directory reads the record of large archives, which stands before the
// short one if there is one.
func zip64Directory(r io.ReaderAt, end, shortAt, shortLength int64, shortCount uint64) (at, length int64, count uint64, newEnd int64, ok bool) {
	var where [zipAt64Size]byte
	if end < zipAt64Size {
		return 0, 0, 0, 0, false
	}
	if _, err := r.ReadAt(where[:], end-zipAt64Size); err != nil {
		return 0, 0, 0, 0, false
	}
	if le32(where[:]) != zipEnd64At {
		// Exactly 65,535 entries need no such record.
		return shortAt, shortLength, shortCount, end, shortAt != math.MaxUint32 && shortLength != math.MaxUint32
	}
	record := int64(le64(where[8:]))
	var b [zipEnd64Size]byte
	if record < 0 || record > end-zipAt64Size-zipEnd64Size {
		return 0, 0, 0, 0, false
	}
	if _, err := r.ReadAt(b[:], record); err != nil || le32(b[:]) != zipEnd64 {
		return 0, 0, 0, 0, false
	}
	return int64(le64(b[48:])), int64(le64(b[40:])), le64(b[32:]), record, le32(b[16:]) == 0 && le32(b[20:]) == 0
}

// readZipEntry reads the next entry of the directory; io.EOF is its end.
func readZipEntry(r io.Reader) (h zipHeader, err error) {
	var b [zipEntrySize]byte
	if _, err := io.ReadFull(r, b[:]); err == io.EOF {
		return h, io.EOF
	} else if err != nil || le32(b[:]) != zipEntry {
		return h, errZip
	}
	nameSize, extraSize, commentSize := int(le16(b[28:])), int(le16(b[30:])), int(le16(b[32:]))
	rest := make([]byte, nameSize+extraSize+commentSize)
	if _, err := io.ReadFull(r, rest); err != nil {
		return h, errZip
	}
	h = zipHeader{
		name: string(rest[:nameSize]), system: b[5], flags: le16(b[8:]), method: le16(b[10:]), sum: le32(b[16:]),
		packed: int64(le32(b[20:])), size: int64(le32(b[24:])), attributes: le32(b[38:]), at: int64(le32(b[42:])),
	}
	if le16(b[34:]) != 0 && le16(b[34:]) != math.MaxUint16 {
		return h, errZip // on another disk
	}
	wide, ok := zipExtra(rest[nameSize : nameSize+extraSize])
	if !ok {
		return h, errZip
	}
	for _, field := range []*int64{&h.size, &h.packed, &h.at} {
		if *field != math.MaxUint32 {
			continue
		}
		if len(wide) < 8 {
			return h, errZip
		}
		*field, wide = int64(le64(wide)), wide[8:]
		if *field < 0 {
			return h, &UnsafeEntryError{h.name, "has a size that no file has"}
		}
	}
	return h, nil
}

// zipExtra is the field of large numbers, which may be missing.
func zipExtra(extra []byte) (wide []byte, ok bool) {
	for len(extra) >= 4 {
		id, size := le16(extra), int(le16(extra[2:]))
		if size > len(extra)-4 {
			return nil, false
		}
		if id == zipExtra64 && wide == nil {
			wide = extra[4 : 4+size]
		}
		extra = extra[4+size:]
	}
	return wide, true // some writers pad with less than a field
}

// zipWalk goes through the entries of one archive.
type zipWalk struct {
	ctx    context.Context
	r      io.ReaderAt
	end    int64 // of the entries
	size   int64 // of the archive
	limits Limits
	n      int64 // bytes unpacked so far
	seen   names
}

func (w *zipWalk) entry(h zipHeader, visit func(Member, io.Reader) error) error {
	content, err := w.open(h)
	if err != nil {
		return err
	}
	m := Member{Name: h.name, Size: h.size}
	const typeBits, dir, file, link = 0o170000, 0o040000, 0o100000, 0o120000
	kind := uint32(0)
	if h.system == zipUnix || h.system == zipMac {
		mode := h.attributes >> 16
		kind = mode & typeBits
		m.Executable = (kind == 0 || kind == file) && mode&0o111 != 0 && !strings.HasSuffix(h.name, "/")
	}
	switch {
	case strings.HasSuffix(h.name, "/") && (kind == 0 || kind == dir):
		if m.Type, m.Size = Dir, 0; h.size > 0 {
			return &UnsafeEntryError{h.name, "is a directory, and has a content"}
		}
		content = bytes.NewReader(nil)
	case strings.HasSuffix(h.name, "/"):
		return &UnsafeEntryError{h.name, "has the name of a directory, and is another thing"}
	case kind == 0 || kind == file:
		m.Type = File
	case kind == dir:
		m.Type, m.Size = Dir, 0
	case kind == link:
		m.Type, m.Size = Link, 0
		if h.size > int64(w.limits.Path) {
			return &UnsafeEntryError{h.name, "is a link whose target is too long"}
		}
		target, err := io.ReadAll(content)
		if err != nil {
			return err
		}
		m.Link, content = string(target), bytes.NewReader(nil)
	default:
		m.Type = Other
	}
	if err := w.seen.add(m.Name, len(m.Name)+len(m.Link)); err != nil {
		return err
	}
	return visit(m, content)
}

// open is the content of an entry, after a look at what stands before it.
func (w *zipWalk) open(h zipHeader) (io.Reader, error) {
	var b [zipLocalSize]byte
	if h.at < 0 || h.at > w.end-zipLocalSize {
		return nil, errZip
	}
	if _, err := w.r.ReadAt(b[:], h.at); err != nil || le32(b[:]) != zipLocal {
		return nil, errZip
	}
	flags, method, sum := le16(b[6:]), le16(b[8:]), le32(b[14:])
	packed, size := int64(le32(b[18:])), int64(le32(b[22:]))
	nameSize, extraSize := int64(le16(b[26:])), int64(le16(b[28:]))
	begin := h.at + zipLocalSize + nameSize + extraSize
	if begin > w.end || h.packed > w.end-begin {
		return nil, errZip
	}
	rest := make([]byte, nameSize+extraSize)
	if _, err := w.r.ReadAt(rest, h.at+zipLocalSize); err != nil {
		return nil, errZip
	}
	other := func(what string) error {
		return &UnsafeEntryError{h.name, "has another " + what + " where it stands than in the directory of the archive"}
	}
	if name := string(rest[:nameSize]); name != h.name {
		return nil, &UnsafeEntryError{h.name, fmt.Sprintf("is called %q where it stands in the archive", name)}
	}
	switch {
	case (flags|h.flags)&zipEncrypted != 0:
		return nil, &UnsafeEntryError{h.name, "is encrypted"}
	case method != h.method:
		return nil, other("compression")
	case h.flags&zipPatch != 0 || method != zipStored && method != zipDeflated:
		return nil, fault.Errorf(fault.Package, "archive entry %q is compressed in a way (%d) that this program does not know", h.name, h.method)
	case (flags^h.flags)&zipDescribed != 0:
		return nil, other("form")
	case method == zipStored && h.packed != h.size:
		return nil, &UnsafeEntryError{h.name, "is not compressed, and has two sizes"}
	}
	if wide, ok := zipExtra(rest[nameSize:]); ok && (size == math.MaxUint32 || packed == math.MaxUint32) && len(wide) >= 16 {
		size, packed = int64(le64(wide)), int64(le64(wide[8:]))
	}
	// What follows the content says it otherwise; zeros stand here then.
	if h.flags&zipDescribed == 0 || sum != 0 || size != 0 || packed != 0 {
		switch {
		case size != h.size || packed != h.packed:
			return nil, other("size")
		case sum != h.sum && !(h.flags&zipDescribed != 0 && sum == 0):
			return nil, other("checksum")
		}
	}
	if h.flags&zipDescribed != 0 && !w.described(h, begin+h.packed) {
		return nil, other("size or checksum")
	}
	content := io.Reader(io.NewSectionReader(w.r, begin, h.packed))
	if h.method == zipDeflated {
		content = flate.NewReader(bufio.NewReader(content))
	}
	return &zipReader{w: w, h: h, r: content, left: h.size}, nil
}

// described reports whether what follows the content of an entry says what the
// directory does. It comes with and without a signature, in two widths.
func (w *zipWalk) described(h zipHeader, at int64) bool {
	b := make([]byte, min(24, w.end-at))
	if _, err := w.r.ReadAt(b, at); err != nil && err != io.EOF {
		return false
	}
	same := func(b []byte) bool {
		switch {
		case len(b) >= 12 && le32(b) == h.sum && int64(le32(b[4:])) == h.packed && int64(le32(b[8:])) == h.size:
			return true
		case len(b) >= 20 && le32(b) == h.sum && int64(le64(b[4:])) == h.packed && int64(le64(b[12:])) == h.size:
			return true
		}
		return false
	}
	return len(b) > 4 && le32(b) == zipDescriptor && same(b[4:]) || same(b)
}

// zipReader gives the content of an entry, and fails where it is not as long as
// it should be, or has another checksum.
type zipReader struct {
	w    *zipWalk
	h    zipHeader
	r    io.Reader
	left int64
	sum  uint32
	err  error
}

func (z *zipReader) Read(p []byte) (int, error) {
	if z.err != nil {
		return 0, z.err
	}
	if z.err = z.w.ctx.Err(); z.err != nil {
		return 0, z.err
	}
	n, err := z.r.Read(p)
	z.sum = crc32.Update(z.sum, crc32.IEEETable, p[:n])
	z.left -= int64(n)
	z.w.n += int64(n)
	switch {
	case z.left < 0:
		z.err = &UnsafeEntryError{z.h.name, "is larger than the archive says"}
	case z.w.n > z.w.limits.stream():
		z.err = &LimitError{z.h.name, beyondUnpacked(z.w.limits)}
	case z.w.limits.TooDense(z.w.n, z.w.size):
		z.err = &LimitError{z.h.name, beyondRatio(z.w.limits)}
	case err == io.EOF && z.left > 0:
		z.err = &UnsafeEntryError{z.h.name, "is smaller than the archive says"}
	case err == io.EOF && z.sum != z.h.sum:
		z.err = fault.Errorf(fault.Package, "read archive: the checksum of %q is wrong", z.h.name)
	case err == io.EOF:
		z.err = io.EOF
	case err != nil:
		z.err = fault.Errorf(fault.Package, "read archive: %q: %w", z.h.name, err)
	default:
		return n, nil
	}
	if z.err == io.EOF {
		return n, io.EOF
	}
	return 0, z.err
}

func le16(b []byte) uint16 { return binary.LittleEndian.Uint16(b) }
func le32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
func le64(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
