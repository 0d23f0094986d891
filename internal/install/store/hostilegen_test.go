package store

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// This file makes archives that no honest program makes. The writers of the
// standard library refuse much of it, so the bytes are laid here by hand.

// block is one member of a raw tar archive: a header as it is told, whatever that
// means, and what follows it.
type block struct {
	name, prefix, link string
	kind               byte   // '0' where it is 0
	mode               string // octal; 644 where it is ""
	size               string // of the header, raw; what the body has where it is ""
	body               string
	magic              string // of ustar where it is ""
	extra              string // written over the end of the header, from byte 386
}

const gnuMagic = "ustar  \x00"

// rawTar lays blocks one after the other, and the end.
func rawTar(blocks ...block) []byte {
	var out []byte
	for _, b := range blocks {
		out = append(out, b.bytes()...)
	}
	return append(out, make([]byte, 2*tarBlock)...)
}

func (b block) bytes() []byte {
	h := make([]byte, tarBlock)
	put := func(at, size int, text string) { copy(h[at:at+size], text) }
	if b.kind == 0 {
		b.kind = '0'
	}
	if b.mode == "" {
		b.mode = "0000644"
	}
	if b.size == "" {
		b.size = fmt.Sprintf("%011o", len(b.body))
	}
	if b.magic == "" {
		b.magic = "ustar\x0000"
	}
	put(0, 100, b.name)
	put(100, 8, b.mode)
	put(108, 8, "0000000")
	put(116, 8, "0000000")
	put(124, 12, b.size)
	put(136, 12, "00000000000")
	h[156] = b.kind
	put(157, 100, b.link)
	put(257, 8, b.magic)
	put(345, 155, b.prefix)
	put(386, 126, b.extra)
	setSum(h)
	body := []byte(b.body)
	if rest := len(body) % tarBlock; rest != 0 {
		body = append(body, make([]byte, tarBlock-rest)...)
	}
	return append(h, body...)
}

// pax is the header that extends the next one, or all with kind 'g'.
func pax(kind byte, records ...string) block {
	var text strings.Builder
	for _, r := range records {
		size := len(r) + 2
		for size != len(r)+2+len(fmt.Sprint(size)) {
			size = len(r) + 2 + len(fmt.Sprint(size))
		}
		fmt.Fprintf(&text, "%d %s\n", size, r)
	}
	return block{name: "PaxHeader/x", kind: kind, body: text.String()}
}

// base256 is a number as GNU tar writes what octal digits cannot hold.
func base256(n int64) string {
	var b [12]byte
	binary.BigEndian.PutUint64(b[4:], uint64(n))
	if n < 0 {
		copy(b[:4], "\xff\xff\xff\xff")
	}
	b[0] |= 0x80
	return string(b[:])
}

// zipped is one entry of a raw zip archive: what the directory says, and what is
// said where it stands, which are the same unless they are told otherwise.
type zipped struct {
	name, body string
	mode       uint32 // with the bits of the type; a file where it is 0
	method     uint16 // 8 where packed
	packed     bool
	flags      uint16
	system     byte // Unix where it is 0
	sum        uint32
	size       uint32 // 0 is as it is
	sizes      uint32 // added to the packed size of the directory
	extra      string // of the directory
	at         int    // of the local header, where another entry's is meant: 1 + its number
	local      func(header []byte, name *string)
	after      func(sum, packed, size uint32) []byte // what follows the content
}

// rawZip lays entries, the directory and its end, which edit may change.
func rawZip(edit func(end []byte), entries ...zipped) []byte {
	var out, directory []byte
	var begins []int
	le := binary.LittleEndian
	for _, e := range entries {
		body := []byte(e.body)
		if e.packed {
			e.method = 8
			var b bytes.Buffer
			fw, _ := flate.NewWriter(&b, 9)
			_, _ = fw.Write(body)
			_ = fw.Close()
			body = b.Bytes()
		}
		if e.sum == 0 {
			e.sum = crc32.ChecksumIEEE([]byte(e.body))
		}
		if e.size == 0 {
			e.size = uint32(len(e.body))
		}
		if e.system == 0 {
			e.system = 3
		}
		if e.mode == 0 {
			e.mode = 0o100644
		}
		local := make([]byte, 30)
		le.PutUint32(local, 0x04034b50)
		le.PutUint16(local[6:], e.flags)
		le.PutUint16(local[8:], e.method)
		le.PutUint32(local[14:], e.sum)
		le.PutUint32(local[18:], uint32(len(body)))
		le.PutUint32(local[22:], e.size)
		name := e.name
		if e.flags&8 != 0 {
			clear(local[14:26])
		}
		if e.local != nil {
			e.local(local, &name)
		}
		le.PutUint16(local[26:], uint16(len(name)))
		begin := len(out)
		begins = append(begins, begin)
		if e.at > 0 {
			begin = begins[e.at-1]
		} else {
			out = append(append(append(out, local...), name...), body...)
			if e.after != nil {
				out = append(out, e.after(e.sum, uint32(len(body)), e.size)...)
			}
		}
		c := make([]byte, 46)
		le.PutUint32(c, 0x02014b50)
		c[5] = e.system
		le.PutUint16(c[8:], e.flags)
		le.PutUint16(c[10:], e.method)
		le.PutUint32(c[16:], e.sum)
		le.PutUint32(c[20:], uint32(len(body))+e.sizes)
		le.PutUint32(c[24:], e.size)
		le.PutUint16(c[28:], uint16(len(e.name)))
		le.PutUint16(c[30:], uint16(len(e.extra)))
		le.PutUint32(c[38:], e.mode<<16)
		le.PutUint32(c[42:], uint32(begin))
		directory = append(append(append(directory, c...), e.name...), e.extra...)
	}
	end := make([]byte, 22)
	le.PutUint32(end, 0x06054b50)
	le.PutUint16(end[8:], uint16(len(entries)))
	le.PutUint16(end[10:], uint16(len(entries)))
	le.PutUint32(end[12:], uint32(len(directory)))
	le.PutUint32(end[16:], uint32(len(out)))
	if edit != nil {
		edit(end)
	}
	return append(append(out, directory...), end...)
}

// described is what follows a content whose sizes the header does not have.
func described(sum, packed, size uint32) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("PK\x07\x08"), sum)
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(b, packed), size)
}

// wraps are the compressions that a tar archive comes in.
var wraps = map[string]func(t testing.TB, data []byte) []byte{
	"tar":     func(_ testing.TB, data []byte) []byte { return data },
	"tar.gz":  func(t testing.TB, data []byte) []byte { return through(t, data, asWriter(gzip.NewWriter)) },
	"tar.bz2": func(_ testing.TB, data []byte) []byte { return bzip(data) },
	"tar.xz": func(t testing.TB, data []byte) []byte {
		return through(t, data, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
	},
	"tar.zst": func(t testing.TB, data []byte) []byte {
		return through(t, data, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
	},
}

func asWriter[W io.WriteCloser](f func(io.Writer) W) func(io.Writer) (io.WriteCloser, error) {
	return func(w io.Writer) (io.WriteCloser, error) { return f(w), nil }
}

func through(t testing.TB, data []byte, open func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := open(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// bitWriter writes numbers of some bits, the highest first.
type bitWriter struct {
	out  []byte
	free int
}

func (w *bitWriter) put(n uint64, size int) {
	for i := size - 1; i >= 0; i-- {
		if w.free == 0 {
			w.out, w.free = append(w.out, 0), 8
		}
		w.free--
		w.out[len(w.out)-1] |= byte(n>>i&1) << w.free
	}
}

// bzip compresses as bzip2 does, with no thought of how well: nobody else writes
// the format in Go. All symbols have nearly the same number of bits.
func bzip(data []byte) []byte {
	const blockMagic, endMagic, level = 0x314159265359, 0x177245385090, 9
	w := &bitWriter{out: []byte("BZh9")}
	total := uint32(0)
	for len(data) > 0 {
		n := min(len(data), level*100_000/5*4/2)
		sum := bzipSum(data[:n])
		total = bits.RotateLeft32(total, 1) ^ sum
		w.put(blockMagic, 48)
		w.put(uint64(sum), 32)
		w.put(0, 1)
		bzipBlock(w, bzipRuns(data[:n]))
		data = data[n:]
	}
	w.put(endMagic, 48)
	w.put(uint64(total), 32)
	return w.out
}

// bzipSum is CRC-32 with the highest bit first.
func bzipSum(data []byte) uint32 {
	sum := ^uint32(0)
	for _, b := range data {
		sum ^= uint32(b) << 24
		for range 8 {
			if sum&(1<<31) != 0 {
				sum = sum<<1 ^ 0x04c11db7
			} else {
				sum <<= 1
			}
		}
	}
	return ^sum
}

// bzipRuns shortens runs of four and more.
func bzipRuns(data []byte) (out []byte) {
	for len(data) > 0 {
		n := 1
		for n < len(data) && n < 255+4 && data[n] == data[0] {
			n++
		}
		out = append(out, data[:min(n, 4)]...)
		if n >= 4 {
			out = append(out, byte(n-4))
		}
		data = data[n:]
	}
	return out
}

func bzipBlock(w *bitWriter, data []byte) {
	// Rotations in order; doubled, so that one is a slice.
	twice, order := append(bytes.Clone(data), data...), make([]int, len(data))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(twice[a:a+len(data)], twice[b:b+len(data)]) })
	var used [256]bool
	last := make([]byte, len(data))
	for i, at := range order {
		last[i] = twice[at+len(data)-1]
		used[last[i]] = true
	}
	w.put(uint64(slices.Index(order, 0)), 24)
	for high := range 16 {
		w.put(uint64(anyBit(used[high*16:high*16+16])), 1)
	}
	var front []byte
	for high := range 16 {
		if anyBit(used[high*16:high*16+16]) == 0 {
			continue
		}
		for low := range 16 {
			w.put(uint64(anyBit(used[high*16+low:high*16+low+1])), 1)
			if used[high*16+low] {
				front = append(front, byte(high*16+low))
			}
		}
	}
	symbols := len(front) + 2
	var coded []int
	zeros := 0
	flush := func() {
		for ; zeros > 0; zeros = (zeros - 1) / 2 {
			coded = append(coded, (zeros-1)&1)
		}
	}
	for _, b := range last {
		i := bytes.IndexByte(front, b)
		if i == 0 {
			zeros++
			continue
		}
		flush()
		coded = append(coded, i+1)
		copy(front[1:], front[:i])
		front[0] = b
	}
	flush()
	coded = append(coded, symbols-1)
	groups := (len(coded) + 49) / 50
	w.put(2, 3)
	w.put(uint64(groups), 15)
	for range groups {
		w.put(0, 1) // the first table
	}
	size := bits.Len(uint(symbols - 1))
	short := 1<<size - symbols // so many have one bit less
	length := func(symbol int) int {
		if symbol < short {
			return size - 1
		}
		return size
	}
	for range 2 { // tables
		w.put(uint64(length(0)), 5)
		for s := range symbols {
			if s > 0 && length(s) > length(s-1) {
				w.put(0b10, 2)
			}
			w.put(0, 1)
		}
	}
	for _, s := range coded {
		if s < short {
			w.put(uint64(s), size-1)
		} else {
			w.put(uint64(s+short), size)
		}
	}
}

func anyBit(list []bool) int {
	if slices.Contains(list, true) {
		return 1
	}
	return 0
}

// sum32 is the checksum of the headers of xz.
func sum32(data []byte) []byte {
	return binary.LittleEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
}
