package unpack

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// The container of xz is read here, and only what is in it by the library: that
// would make a dictionary as large as any block asks for, up to 4 GiB. See
// https://tukaani.org/xz/xz-file-format.txt.

const (
	xzMagic    = "\xfd7zXZ\x00"
	xzEnd      = "YZ"
	xzHeader   = 12 // bytes, as is the footer
	xzLZMA2    = 0x21
	xzMaxCheck = 64
)

var errXZ = errors.New("the xz data is damaged")

// xzReader is the text of an xz file: streams of blocks, each of LZMA2 chunks.
type xzReader struct {
	in     *countedBytes
	buf    *bufio.Reader // what in reads from
	limits Limits

	check   byte // the kind of checksum of a stream
	inside  bool // a stream
	block   io.Reader
	started int64 // where the block's data begins
	sum     hash.Hash
	err     error

	made, unpacked int64 // bytes of all dictionaries, and of all text
}

func newXZ(r io.Reader, limits Limits) *xzReader {
	buf := bufio.NewReaderSize(r, 64<<10)
	return &xzReader{in: &countedBytes{counted{r: buf}, buf}, buf: buf, limits: limits}
}

// countedBytes also counts single bytes: the decoder would read ahead where it
// cannot have them.
type countedBytes struct {
	counted
	bytes io.ByteReader
}

func (c *countedBytes) ReadByte() (byte, error) {
	b, err := c.bytes.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (x *xzReader) Read(p []byte) (n int, err error) {
	for n == 0 && x.err == nil && len(p) > 0 {
		if x.block == nil {
			x.err = x.next()
			continue
		}
		n, err = x.block.Read(p)
		x.unpacked += int64(n)
		if x.sum != nil {
			x.sum.Write(p[:n])
		}
		switch {
		case err == io.EOF:
			x.err = x.endBlock()
		case err != nil:
			x.err = err
		}
	}
	if n > 0 {
		return n, nil
	}
	if x.err == io.ErrUnexpectedEOF {
		x.err = errXZ
	}
	return 0, x.err
}

// next begins a block, or ends with io.EOF behind the last stream.
func (x *xzReader) next() error {
	if !x.inside {
		return x.beginStream()
	}
	size, err := x.in.ReadByte()
	if err != nil {
		return errXZ
	}
	if size == 0 {
		return x.endStream()
	}
	return x.beginBlock(size)
}

// beginStream reads the header of a stream, and the padding before it. At the
// end of the file it is io.EOF.
func (x *xzReader) beginStream() error {
	head, err := x.buf.Peek(4)
	for ; len(head) == 4 && binary.BigEndian.Uint32(head) == 0; head, err = x.buf.Peek(4) {
		if _, err := io.CopyN(io.Discard, x.in, 4); err != nil {
			return err
		}
	}
	if len(head) == 0 && err == io.EOF && x.in.n > 0 {
		return io.EOF
	}
	var h [xzHeader]byte
	if _, err := io.ReadFull(x.in, h[:]); err != nil {
		return errXZ
	}
	if string(h[:6]) != xzMagic || h[6] != 0 || h[7] > 15 || crc32.ChecksumIEEE(h[6:8]) != binary.LittleEndian.Uint32(h[8:]) {
		return errXZ
	}
	x.check, x.inside = h[7], true
	return nil
}

// beginBlock reads the header of a block. size is its first byte.
func (x *xzReader) beginBlock(size byte) error {
	h := make([]byte, (int(size)+1)*4)
	h[0] = size
	if _, err := io.ReadFull(x.in, h[1:]); err != nil {
		return errXZ
	}
	body := h[:len(h)-4]
	if crc32.ChecksumIEEE(body) != binary.LittleEndian.Uint32(h[len(body):]) {
		return errXZ
	}
	flags, fields := body[1], bytes.NewBuffer(body[2:])
	if flags&0x3f != 0 {
		return errors.New("the xz data was made with a filter that this program does not know")
	}
	unpacked := int64(-1)
	for _, bit := range []byte{0x40, 0x80} { // the sizes of the packed and the unpacked block
		if flags&bit == 0 {
			continue
		}
		n, err := binary.ReadUvarint(fields)
		if err != nil || n > 1<<62 {
			return errXZ
		}
		if bit == 0x80 {
			unpacked = int64(n)
		}
	}
	filter := fields.Next(3) // id, size of its properties, dictionary
	if len(filter) < 3 || filter[0] != xzLZMA2 || filter[1] != 1 {
		return errors.New("the xz data was made with a filter that this program does not know")
	}
	dict, err := x.dictionary(filter[2], unpacked)
	if err != nil {
		return err
	}
	// Each block has a dictionary of its own. Many that hold next to nothing would
	// make nothing but memory.
	if x.made += int64(dict); x.made > int64(dict)+48<<20+4*x.unpacked {
		return &LimitError{Beyond: "needs memory for more dictionaries than its content explains"}
	}
	x.started = x.in.n
	if x.block, err = (lzma.Reader2Config{DictCap: dict}).NewReader2(x.in); err != nil {
		return err
	}
	x.sum = newCheck(x.check)
	return nil
}

// dictionary is the size of the dictionary that a block is unpacked with: what
// it asks for, or what it unpacks to where it says that, but no more than is
// allowed.
func (x *xzReader) dictionary(bits byte, unpacked int64) (int, error) {
	size := int64(1)<<32 - 1
	switch {
	case bits > 40:
		return 0, errXZ
	case bits < 40:
		size = int64(2|bits&1) << (bits/2 + 11)
	}
	if size > maxWindow {
		return 0, &LimitError{Beyond: fmt.Sprintf("needs a dictionary of %s, and %s is the most", bytesText(size), bytesText(maxWindow))}
	}
	if unpacked >= 0 {
		size = min(size, unpacked)
	}
	return int(max(min(size, x.limits.stream()), lzma.MinDictCap)), nil
}

// endBlock reads what is behind the data of a block: padding and checksum.
func (x *xzReader) endBlock() error {
	packed := x.in.n - x.started
	var rest [4 + xzMaxCheck]byte
	padding := int(-packed & 3)
	size := checkSizes[x.check]
	if _, err := io.ReadFull(x.in, rest[:padding+size]); err != nil {
		return errXZ
	}
	if !bytes.Equal(rest[:padding], make([]byte, padding)) {
		return errXZ
	}
	if x.sum != nil {
		sum := x.sum.Sum(nil)
		if x.check != checkSHA256 {
			reverse(sum) // little-endian
		}
		if !bytes.Equal(sum, rest[padding:padding+size]) {
			return errXZ
		}
	}
	x.block, x.sum = nil, nil
	return nil
}

// endStream reads the index of a stream, whose first byte is read, and its
// footer. What they say is known by now, so that only their form counts.
func (x *xzReader) endStream() error {
	start := x.in.n - 1
	records, err := binary.ReadUvarint(x.in)
	if err != nil {
		return errXZ
	}
	for range records {
		for range 2 {
			if _, err := binary.ReadUvarint(x.in); err != nil {
				return errXZ
			}
		}
	}
	padding := -(x.in.n - start) & 3
	if _, err := io.CopyN(io.Discard, x.in, padding+4); err != nil { // and the checksum
		return errXZ
	}
	var footer [xzHeader]byte
	if _, err := io.ReadFull(x.in, footer[:]); err != nil || string(footer[10:]) != xzEnd {
		return errXZ
	}
	x.inside = false
	return nil
}

const (
	checkCRC32  = 1
	checkCRC64  = 4
	checkSHA256 = 10
)

// checkSizes are the bytes of each kind of checksum.
var checkSizes = [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}

// newCheck is nil for what this program does not know, which is left unchecked.
func newCheck(kind byte) hash.Hash {
	switch kind {
	case checkCRC32:
		return crc32.NewIEEE()
	case checkCRC64:
		return crc64.New(crc64.MakeTable(crc64.ECMA))
	case checkSHA256:
		return sha256.New()
	}
	return nil
}

func reverse(b []byte) {
	for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
}
