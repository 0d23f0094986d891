package store

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
)

// A closure is the listings of several entries in one file, without the hashes
// of their files:
//
//	dsh-closure 3 <boot, or ->
//	<number of entries> (<integrity> <length of listing> <listing>)… <checksum>
//
// with nothing between; numbers are varints, and the checksum is CRC-32C, which
// finds what a power loss has cut or lost.
const closureHeader = "dsh-closure 3 "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FormatClosure is the listing of several entries in one text, which
// [Store.ParseClosure] reads: those of a lockfile, so that laying them out again
// opens one file. The text vouches for them as long as the machine runs, so that
// those which are not sound are left out.
//
// The text is the same in whatever order they come.
func FormatClosure(entries []Entry) []byte {
	entries = slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return !e.Sound() })
	entries = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int { return bytes.Compare(a.Integrity.sum[:], b.Integrity.sum[:]) })
	size, boot := len(closureHeader)+64, ""
	for i, e := range entries {
		size += sha512.Size + len(e.list.dirs) + len(e.list.names) + len(e.list.meta) + len(e.list.links) + len(e.list.pkg) + 7*binary.MaxVarintLen32
		if i == 0 {
			boot = e.now
		} else if boot != e.now {
			boot = ""
		}
	}
	out := make([]byte, 0, size)
	out = append(out, closureHeader...)
	out = append(out, bootName(boot)...)
	out = append(out, '\n')
	out = binary.AppendUvarint(out, uint64(len(entries)))
	var list []byte
	for _, e := range entries {
		list = e.list.append(list[:0])
		out = append(out, e.Integrity.sum[:]...)
		out = binary.AppendUvarint(out, uint64(len(list)))
		out = append(out, list...)
	}
	return binary.BigEndian.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

var errClosure = errors.New("the list of packages is damaged or of another version")

// ParseClosure reads what [FormatClosure] made. Whether the entries are still
// there shows when they are used. Of a store over another one they are those of
// the other.
func (s *Store) ParseClosure(data []byte) (map[Integrity]Entry, error) {
	s.use.look(s.dir)
	held := s
	if s.below != nil {
		held = s.below
	}
	const sum = crc32.Size
	if len(data) < len(closureHeader)+sum || string(data[:len(closureHeader)]) != closureHeader {
		return nil, errClosure
	}
	body := data[:len(data)-sum]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(data[len(body):]) {
		return nil, errClosure
	}
	boot, text, ok := strings.Cut(string(body[len(closureHeader):]), "\n")
	count, used := uvarint(text)
	if !ok || used <= 0 || count > uint64(len(text)/sha512.Size) {
		return nil, errClosure
	}
	text = text[used:]
	entries := make(map[Integrity]Entry, count)
	for range count {
		if len(text) < sha512.Size {
			return nil, errClosure
		}
		e := Entry{boot: readBoot(boot), now: s.boot, listed: true, readOnly: s.below != nil}
		copy(e.Integrity.sum[:], text)
		text = text[sha512.Size:]
		size, used := uvarint(text)
		if used <= 0 || size > uint64(len(text)-used) {
			return nil, errClosure
		}
		list, rest, err := cutListing(text[used:used+int(size)], 5)
		if err != nil || rest != "" {
			return nil, errClosure
		}
		text = text[used+int(size):]
		e.list, e.dir = list, held.entryDir(e.Integrity)
		entries[e.Integrity] = e
	}
	if text != "" {
		return nil, errClosure
	}
	return entries, nil
}
