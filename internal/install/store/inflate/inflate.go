// Package inflate unpacks DEFLATE (RFC 1951) from memory to memory, in one go.
//
// That is much faster than unpacking a stream: there is no window to keep beside
// the output, no state to save between calls, and bits are fetched eight bytes at
// a time.
package inflate

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Errors of [Decoder.Inflate].
var (
	ErrCorrupt = errors.New("the compressed data is damaged")
	ErrShort   = errors.New("the compressed data ends too early")
	ErrLarge   = errors.New("the unpacked data is larger than the memory for it")
)

const (
	litBits    = 11 // of a code that the first look into the table decides
	distBits   = 8
	maxLen     = 15
	maxLits    = 286
	maxDists   = 30
	endOfBlock = 256
	litSize    = 1 << 12 // no code needs more than 2342 entries
	distSize   = 1 << 9  // no code needs more than 402 entries
)

// An entry of a decoding table says
//
//	literal:  1<<31 | byte<<16           | bits of code
//	length:   base<<16  | code bits<<8   | bits of code and extra bits
//	distance: the same
//	further:  place<<16 | special | bits of the next look<<8 | bits of this one
//	end:      special | end | bits of code
//	nothing:  special
const (
	literal = 1 << 31
	special = 1 << 15
	end     = 1 << 14
	further = 1 << 13
)

// Decoder holds the decoding tables of one block. The zero value is ready.
type Decoder struct {
	lit     [litSize]uint32
	dist    [distSize]uint32
	lengths [maxLits + 2 + maxDists + 2]uint8
	fixed   bool // the tables are those of the fixed codes
}

var litValues, distValues = func() (lits [288]uint32, dists [32]uint32) {
	for i := range lits {
		switch {
		case i < endOfBlock:
			lits[i] = literal | uint32(i)<<16
		case i == endOfBlock:
			lits[i] = special | end
		default:
			lits[i] = special
		}
	}
	base, symbol := uint32(3), 257
	for _, group := range []struct{ count, extra int }{{8, 0}, {4, 1}, {4, 2}, {4, 3}, {4, 4}, {4, 5}} {
		for range group.count {
			lits[symbol] = base<<16 | uint32(group.extra)
			base += 1 << group.extra
			symbol++
		}
	}
	lits[285] = 258 << 16
	base = 1
	for i := range dists {
		extra := max(0, i/2-1)
		dists[i] = base<<16 | uint32(extra)
		base += 1 << extra
		if i >= maxDists {
			dists[i] = special
		}
	}
	return lits, dists
}()

// build makes the decoding table of the code with these lengths. values are what
// the symbols mean, with the number of extra bits.
func build(table []uint32, tableBits int, lengths []uint8, values []uint32) bool {
	var count [maxLen + 1]int
	longest := 0
	for _, n := range lengths {
		count[n]++
		longest = max(longest, int(n))
	}
	if longest == 0 {
		// No symbol at all: an error only when one is needed.
		for i := range table[:1<<tableBits] {
			table[i] = special
		}
		return true
	}
	var next [maxLen + 2]int
	code := 0
	for n := 1; n <= longest; n++ {
		code <<= 1
		next[n] = code
		code += count[n]
	}
	switch {
	case code == 1<<longest:
	case code == 1 && longest == 1: // a single symbol, whose other bit means nothing
		for i := range table[:1<<tableBits] {
			table[i] = special
		}
	default:
		return false
	}
	free := 1 << tableBits // where tables for longer codes go
	var longestBelow [1 << litBits]uint8
	var placeBelow [1 << litBits]uint16
	if longest > tableBits {
		// How far do the codes that begin alike go on?
		starts := next
		for _, n := range lengths {
			if int(n) > tableBits {
				below := &longestBelow[reverse(starts[n], int(n))&(1<<tableBits-1)]
				*below = max(*below, n)
			}
			starts[n]++
		}
	}
	for symbol, n := range lengths {
		if n == 0 {
			continue
		}
		size := int(n)
		code := reverse(next[size], size)
		next[size]++
		value := values[symbol]
		if size <= tableBits {
			entry := entryOf(value, size)
			for i := code; i < 1<<tableBits; i += 1 << size {
				table[i] = entry
			}
			continue
		}
		first := code & (1<<tableBits - 1)
		below := int(longestBelow[first]) - tableBits
		if placeBelow[first] == 0 {
			if free+1<<below > len(table) {
				return false
			}
			placeBelow[first] = uint16(free)
			table[first] = uint32(free)<<16 | special | further | uint32(below)<<8 | uint32(tableBits)
			free += 1 << below
		}
		place := int(placeBelow[first])
		entry := entryOf(value, size-tableBits)
		for i := code >> tableBits; i < 1<<below; i += 1 << (size - tableBits) {
			table[place+i] = entry
		}
	}
	return true
}

// entryOf adds the bits of a code to what its symbol means.
func entryOf(value uint32, size int) uint32 {
	if value&(literal|special) != 0 {
		return value + uint32(size)
	}
	return value + uint32(size)<<8 + uint32(size)
}

func reverse(code, size int) int {
	return int(bits.Reverse16(uint16(code)) >> (16 - size))
}

// order is that of the code lengths in a block's header.
var order = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// input is compressed data and what was fetched of it.
type input struct {
	data []byte
	next int    // byte to fetch
	bits uint64 // fetched and not used, the next one lowest
	have uint   // how many of them
}

// fetch has at least 56 bits ready, but for the end of the data.
func (in *input) fetch() {
	for in.have < 56 && in.next < len(in.data) {
		in.bits |= uint64(in.data[in.next]) << in.have
		in.next++
		in.have += 8
	}
}

// take uses up to 16 bits, of which there are enough after fetch unless the data
// ends.
func (in *input) take(n uint) (value int, ok bool) {
	value = int(in.bits & (1<<n - 1))
	if n > in.have {
		return 0, false
	}
	in.bits >>= n
	in.have -= n
	return value, true
}

// Inflate unpacks the data at the beginning of src into dst, and says how much
// of both it took.
func (d *Decoder) Inflate(dst, src []byte) (written, read int, err error) {
	in := input{data: src}
	for {
		in.fetch()
		final, ok1 := in.take(1)
		kind, ok2 := in.take(2)
		if !ok1 || !ok2 {
			return written, len(src), ErrShort
		}
		switch kind {
		case 0:
			written, err = in.stored(dst, written)
		case 1:
			if !d.fixed {
				d.fixedCodes()
			}
			written, err = d.block(dst, written, &in)
		case 2:
			d.fixed = false
			if err = d.codes(&in); err == nil {
				written, err = d.block(dst, written, &in)
			}
		default:
			err = ErrCorrupt
		}
		if err != nil {
			return written, len(src), err
		}
		if final == 1 {
			return written, in.next - int(in.have/8), nil
		}
	}
}

// stored copies a block that is not compressed.
func (in *input) stored(dst []byte, at int) (int, error) {
	in.next -= int(in.have / 8)
	in.bits, in.have = 0, 0
	rest := in.data[in.next:]
	if len(rest) < 4 {
		return at, ErrShort
	}
	size := int(binary.LittleEndian.Uint16(rest))
	if binary.LittleEndian.Uint16(rest[2:]) != ^uint16(size) {
		return at, ErrCorrupt
	}
	rest = rest[4:]
	if len(rest) < size {
		return at, ErrShort
	}
	if len(dst)-at < size {
		return at, ErrLarge
	}
	copy(dst[at:], rest[:size])
	in.next += 4 + size
	return at + size, nil
}

func (d *Decoder) fixedCodes() {
	lits, dists := d.lengths[:288], d.lengths[288:288+32]
	for i := range lits {
		switch {
		case i < 144:
			lits[i] = 8
		case i < 256:
			lits[i] = 9
		case i < 280:
			lits[i] = 7
		default:
			lits[i] = 8
		}
	}
	for i := range dists {
		dists[i] = 5
	}
	build(d.lit[:], litBits, lits, litValues[:])
	build(d.dist[:], distBits, dists, distValues[:])
	d.fixed = true
}

// codes reads the codes of a block.
func (d *Decoder) codes(in *input) error {
	in.fetch()
	lits, ok1 := in.take(5)
	dists, ok2 := in.take(5)
	count, ok3 := in.take(4)
	if !ok1 || !ok2 || !ok3 {
		return ErrShort
	}
	lits, dists, count = lits+257, dists+1, count+4
	if lits > maxLits || dists > maxDists {
		return ErrCorrupt
	}
	var lengths [19]uint8
	for _, symbol := range order[:count] {
		in.fetch()
		n, ok := in.take(3)
		if !ok {
			return ErrShort
		}
		lengths[symbol] = uint8(n)
	}
	const lengthBits = 7 // no code of lengths is longer
	if !build(d.lit[:], lengthBits, lengths[:], lengthValues[:]) {
		return ErrCorrupt
	}
	all := d.lengths[:lits+dists]
	for i := 0; i < len(all); {
		in.fetch()
		entry := d.lit[in.bits&(1<<lengthBits-1)]
		if entry&special != 0 {
			if in.have < lengthBits {
				return ErrShort
			}
			return ErrCorrupt
		}
		if _, ok := in.take(uint(entry & 0xff)); !ok {
			return ErrShort
		}
		symbol := uint8(entry >> 16)
		if symbol < 16 {
			all[i] = symbol
			i++
			continue
		}
		var value uint8
		repeat, extra := 3, uint(2)
		switch symbol {
		case 16:
			if i == 0 {
				return ErrCorrupt
			}
			value = all[i-1]
		case 17:
			extra = 3
		case 18:
			repeat, extra = 11, 7
		}
		more, ok := in.take(extra)
		if !ok {
			return ErrShort
		}
		if repeat += more; repeat > len(all)-i {
			return ErrCorrupt
		}
		for range repeat {
			all[i] = value
			i++
		}
	}
	if !build(d.lit[:], litBits, all[:lits], litValues[:]) || !build(d.dist[:], distBits, all[lits:], distValues[:]) {
		return ErrCorrupt
	}
	return nil
}

// lengthValues are the symbols of the code for lengths of codes.
var lengthValues = func() (values [19]uint32) {
	for i := range values {
		values[i] = literal | uint32(i)<<16
	}
	return values
}()

const (
	// A step of the fast loop reads at most two times eight bytes, and writes at
	// most three literals, or two and a copy that goes up to 15 bytes too far.
	nearSrcEnd = 16
	nearDstEnd = 2 + 258 + 16
)

// block unpacks the rest of a block whose codes are known. The loop is written
// for speed: away from the ends of both memories nothing is asked twice.
func (d *Decoder) block(dst []byte, at int, input *input) (int, error) {
	src, next, acc, have := input.data, input.next, input.bits, input.have
	for next+nearSrcEnd <= len(src) && at+nearDstEnd <= len(dst) {
		// Bits above have are those that come next; to add them again changes
		// nothing.
		acc |= binary.LittleEndian.Uint64(src[next:]) << (have & 63)
		next += int(63-have) >> 3
		have |= 56
		entry := d.lit[acc&(1<<litBits-1)]
		if entry&literal != 0 {
			acc >>= entry & 63
			have -= uint(entry & 63)
			dst[at] = byte(entry >> 16)
			at++
			entry = d.lit[acc&(1<<litBits-1)]
			if entry&literal != 0 {
				acc >>= entry & 63
				have -= uint(entry & 63)
				dst[at] = byte(entry >> 16)
				at++
				entry = d.lit[acc&(1<<litBits-1)]
				if entry&literal != 0 {
					acc >>= entry & 63
					have -= uint(entry & 63)
					dst[at] = byte(entry >> 16)
					at++
					continue
				}
			}
		}
		if entry&special != 0 {
			if entry&further != 0 {
				acc >>= entry & 63
				have -= uint(entry & 63)
				entry = d.lit[(uint64(entry>>16)+acc&(1<<(entry>>8&15)-1))&(litSize-1)]
				if entry&literal != 0 {
					acc >>= entry & 63
					have -= uint(entry & 63)
					dst[at] = byte(entry >> 16)
					at++
					continue
				}
			}
			if entry&special != 0 {
				if entry&end == 0 {
					return at, ErrCorrupt
				}
				acc >>= entry & 63
				have -= uint(entry & 63)
				input.next, input.bits, input.have = next, acc&(1<<have-1), have
				return at, nil
			}
		}
		length := int(entry>>16) + int(acc&(1<<(entry&63)-1)>>(entry>>8&15))
		acc >>= entry & 63
		have -= uint(entry & 63)

		acc |= binary.LittleEndian.Uint64(src[next:]) << (have & 63)
		next += int(63-have) >> 3
		have |= 56
		entry = d.dist[acc&(1<<distBits-1)]
		if entry&special != 0 {
			if entry&further == 0 {
				return at, ErrCorrupt
			}
			acc >>= entry & 63
			have -= uint(entry & 63)
			entry = d.dist[(uint64(entry>>16)+acc&(1<<(entry>>8&15)-1))&(distSize-1)]
			if entry&special != 0 {
				return at, ErrCorrupt
			}
		}
		distance := int(entry>>16) + int(acc&(1<<(entry&63)-1)>>(entry>>8&15))
		acc >>= entry & 63
		have -= uint(entry & 63)

		from := at - distance
		if from < 0 {
			return at, ErrCorrupt
		}
		to := at + length
		if distance >= 8 {
			// Eight bytes at a time, beyond the end where it does not come out
			// even: what is there is written over.
			for at < to {
				binary.LittleEndian.PutUint64(dst[at:], binary.LittleEndian.Uint64(dst[from:]))
				at += 8
				from += 8
			}
			at = to
			continue
		}
		for at < to {
			dst[at] = dst[from]
			at++
			from++
		}
	}
	input.next, input.bits, input.have = next, acc&(1<<have-1), have
	return d.lastOfBlock(dst, at, input)
}

// lastOfBlock is block near the ends, with care.
func (d *Decoder) lastOfBlock(dst []byte, at int, in *input) (int, error) {
	for {
		in.fetch()
		entry, ok := in.entry(d.lit[:], litBits)
		switch {
		case !ok:
			return at, ErrShort
		case entry&literal != 0:
			if at == len(dst) {
				return at, ErrLarge
			}
			dst[at] = byte(entry >> 16)
			at++
			continue
		case entry&end != 0:
			return at, nil
		case entry&special != 0:
			return at, ErrCorrupt
		}
		length, ok := in.number(entry)
		if !ok {
			return at, ErrShort
		}
		in.fetch()
		if entry, ok = in.entry(d.dist[:], distBits); !ok {
			return at, ErrShort
		}
		if entry&special != 0 {
			return at, ErrCorrupt
		}
		distance, ok := in.number(entry)
		switch {
		case !ok:
			return at, ErrShort
		case distance > at:
			return at, ErrCorrupt
		case length > len(dst)-at:
			return at, ErrLarge
		}
		for range length {
			dst[at] = dst[at-distance]
			at++
		}
	}
}

// entry decodes a code. Of a length or a distance the bits are still there.
func (in *input) entry(table []uint32, tableBits int) (entry uint32, ok bool) {
	entry = table[in.bits&(1<<tableBits-1)]
	if entry&(literal|special|further) == special|further {
		if _, ok := in.take(uint(tableBits)); !ok {
			return 0, false
		}
		entry = table[uint64(entry>>16)+in.bits&(1<<(entry>>8&15)-1)]
	}
	switch {
	case entry&(literal|end) != 0 && entry&(literal|special) != 0:
		_, ok = in.take(uint(entry & 0xff))
	case entry&special != 0:
		ok = in.have >= maxLen || in.next == len(in.data) && in.have > 0
	default:
		ok = uint(entry&0xff) <= in.have
	}
	return entry, ok
}

// number is the value of a length or a distance, with its extra bits.
func (in *input) number(entry uint32) (int, bool) {
	value := int(entry>>16) + int(in.bits&(1<<(entry&63)-1)>>(entry>>8&15))
	_, ok := in.take(uint(entry & 0xff))
	return value, ok
}
