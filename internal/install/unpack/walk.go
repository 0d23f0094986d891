package unpack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"dsh/internal/fault"
)

// Formats of archives, as [Format] finds them.
const (
	Tar     = "tar"
	TarGzip = "tar.gz"
	TarBzip = "tar.bz2"
	TarXZ   = "tar.xz"
	TarZstd = "tar.zst"
	Zip     = "zip"
)

// Format finds the format of an archive by its content, whatever it is called.
// What is none of them is a fault of the package.
func Format(r io.ReaderAt, size int64) (string, error) {
	head := make([]byte, min(size, 512))
	if n, err := r.ReadAt(head, 0); n < len(head) {
		return "", fmt.Errorf("read archive: %w", err)
	}
	starts := func(magic string) bool { return bytes.HasPrefix(head, []byte(magic)) }
	switch {
	case starts("\x1f\x8b"):
		return TarGzip, nil
	case starts("BZh"):
		return TarBzip, nil
	case starts(xzMagic):
		return TarXZ, nil
	case starts("\x28\xb5\x2f\xfd"):
		return TarZstd, nil
	case starts("PK\x03\x04") || starts("PK\x05\x06"):
		return Zip, nil
	case isTar(head):
		return Tar, nil
	}
	return "", fault.Errorf(fault.Package, "read archive: it is neither a tar archive, plain or compressed with gzip, bzip2, xz or zstd, nor a zip archive")
}

// isTar reports whether a block is the header of a tar archive, or the end of an
// empty one.
func isTar(block []byte) bool {
	const size, sumAt, sumEnd = 512, 148, 156
	if len(block) < size {
		return false
	}
	var want, sum, zeros int64
	for i, c := range block {
		switch {
		case i >= sumAt && i < sumEnd:
			sum += ' '
			if '0' <= c && c <= '7' {
				want = want<<3 | int64(c-'0')
			}
		default:
			sum += int64(c)
		}
		if c == 0 {
			zeros++
		}
	}
	return sum == want || zeros == size
}

// Walk calls visit with every member of an archive and its content, in the order
// of the archive, until that fails. It finds the format itself. What is said of
// the members is what the archive says: [Rules] decide about them.
//
// It reads no more, and visits no more members and bytes of names, than the limits
// allow; beyond them it fails with a [*LimitError]. What cannot be read is a fault of the package. What stands
// behind the end of a tar archive is not looked at.
func Walk(ctx context.Context, r io.ReaderAt, size int64, limits Limits, visit func(Member, io.Reader) error) error {
	format, err := Format(r, size)
	if err != nil {
		return err
	}
	if format == Zip {
		return walkZip(ctx, r, size, limits.fill(), visit)
	}
	packed := &counted{r: io.NewSectionReader(r, 0, size)}
	text, closeText, err := decompress(format, packed, limits.fill())
	if err != nil {
		return archiveError(err)
	}
	defer closeText()
	return walkTar(ctx, text, packed, limits.fill(), visit)
}

// WalkGzip is [Walk] of a gzipped tar archive that comes as a stream.
func WalkGzip(ctx context.Context, r io.Reader, limits Limits, visit func(Member, io.Reader) error) error {
	packed := &counted{r: r}
	text, err := gzip.NewReader(packed)
	if err != nil {
		if _, ok := errors.AsType[fault.Classed](err); ok {
			return err
		}
		return fault.Errorf(fault.Package, "read archive: not a gzip file: %w", err)
	}
	return walkTar(ctx, text, packed, limits.fill(), visit)
}

// decompress is the text of an archive.
func decompress(format string, packed *counted, limits Limits) (text io.Reader, done func(), err error) {
	done = func() {}
	switch format {
	case TarGzip:
		text, err = gzip.NewReader(packed)
	case TarBzip:
		text = bzip2.NewReader(packed)
	case TarXZ:
		text = newXZ(packed, limits)
	case TarZstd:
		var zr *zstd.Decoder
		zr, err = zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(uint64(min(maxWindow, max(usualWindow, limits.stream())))))
		if err == nil {
			text, done = zr, zr.Close
		}
	default:
		text = bufio.NewReaderSize(packed, 64<<10)
	}
	return text, done, err
}

// A decompressor keeps some of its past in memory. What xz and zstd make with the
// best of their levels needs no more than maxWindow, and with those that people
// use no more than usualWindow, which is allowed even where less than that may be
// unpacked.
const (
	maxWindow   = 128 << 20
	usualWindow = 8 << 20
)

// walkTar goes through the text of a tar archive. packed counts what it was
// unpacked from.
func walkTar(ctx context.Context, text io.Reader, packed *counted, limits Limits, visit func(Member, io.Reader) error) error {
	bounded := &boundedReader{r: text, ctx: ctx, limits: limits, packed: packed}
	tr := tar.NewReader(bounded)
	seen := names{limits: limits}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if bounded.entry != "" {
				err = fmt.Errorf("after %q: %w", bounded.entry, err)
			}
			return archiveError(err)
		}
		bounded.entry = header.Name
		m := Member{
			Name: header.Name, Link: header.Linkname, Type: TypeOf(header.Typeflag),
			Executable: header.Typeflag == tar.TypeReg && header.Mode&0o111 != 0, Size: header.Size,
		}
		switch {
		case isSparse(header):
			m.Type = Sparse
		case m.Type == Meta && speaksOf(header.PAXRecords, "path", "linkpath", "size"):
			return &UnsafeEntryError{header.Name, "says for all members what only one can have"}
		}
		if err := seen.add(m.Name, len(m.Name)+len(m.Link)); err != nil && m.Type != Meta {
			return err
		}
		if err := visit(m, memberReader{tr}); err != nil {
			return err
		}
	}
}

// TypeOf is the type of a member by its flag in a tar archive.
func TypeOf(flag byte) Type {
	switch flag {
	case tar.TypeReg, '\x00':
		return File
	case tar.TypeDir:
		return Dir
	case tar.TypeSymlink:
		return Link
	case tar.TypeLink:
		return HardLink
	case tar.TypeGNUSparse:
		return Sparse
	case tar.TypeXGlobalHeader:
		return Meta
	}
	return Other
}

// isSparse tells sparse files of the PAX formats, whose flag is that of files.
func isSparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}
	return false
}

// speaksOf reports whether there is a record of one of the keys. Programs differ in
// what they make of some.
func speaksOf(records map[string]string, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { _, ok := records[key]; return ok })
}

// memberReader gives what breaks in a member its class.
type memberReader struct{ r io.Reader }

func (m memberReader) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	if err != nil && err != io.EOF {
		err = archiveError(err)
	}
	return n, err
}

// archiveError gives what broke while reading an archive its class, unless a
// layer below (the network, a limit) already has.
func archiveError(err error) error {
	if _, ok := errors.AsType[fault.Classed](err); ok || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Errorf(fault.Package, "read archive: %w", err)
}

// counted counts what is read of an archive.
type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	return n, err
}

// boundedReader fails, and does not end, once more than the limits is unpacked.
type boundedReader struct {
	r      io.Reader
	ctx    context.Context
	limits Limits
	packed *counted
	entry  string // that was begun last
	n      int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := b.r.Read(p)
	b.n += int64(n)
	switch {
	case b.n > b.limits.stream():
		return 0, &LimitError{b.entry, beyondUnpacked(b.limits)}
	case b.packed.n > 0 && b.limits.TooDense(b.n, b.packed.n):
		return 0, &LimitError{b.entry, beyondRatio(b.limits)}
	}
	return n, err
}
