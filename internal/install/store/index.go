package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// Hash is the SHA-256 of a file's content; the zero value is not known, as in
// entries that earlier versions made.
type Hash [sha256.Size]byte

// index is the listing of an entry's files with their hashes, and the boot of
// the machine in which it was written. On disk it is
//
//	dsh-index 5 <boot, or ->
//	<listing> <hashes> <hash of all before>
//
// with nothing between. The last hash tells an index that a power loss has cut
// from one that is whole. Paths hold no control characters; unpacking and
// copying refuse them. In dsh-index 4 the listing does not say which package it is, and in
// dsh-index 3 it has no links and no traits either.
// Earlier versions wrote texts:
//
//	dsh-index 2 <boot, or ->
//	<x or -> <size> <hash> <path>
//	…
//	end <hash of all above>
//
// and dsh-index 1, without boot, hashes and last line.
type index struct {
	boot  string
	files listing
}

// maxSize of a file leaves a bit for its mode.
const maxSize = 1<<62 - 1

const (
	indexHeader     = "dsh-index 5 "
	fourthHeader    = "dsh-index 4 "
	thirdHeader     = "dsh-index 3 "
	secondHeader    = "dsh-index 2 "
	secondIndexEnd  = "end "
	firstIndexStart = "dsh-index 1\n"
)

func (x index) format() []byte {
	l := x.files
	out := make([]byte, 0, 128+len(l.dirs)+len(l.names)+len(l.meta)+len(l.links)+len(l.pkg)+len(l.hashes)+sha256.Size)
	out = append(out, indexHeader...)
	out = append(out, bootName(x.boot)...)
	out = append(out, '\n')
	out = l.append(out)
	out = append(out, l.hashes...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...)
}

// bootName is how a boot is written; one that would not read again is as none.
func bootName(boot string) string {
	if boot == "" || strings.ContainsAny(boot, " \n") {
		return "-"
	}
	return boot
}

func parseIndex(data []byte) (index, error) {
	var version int // of headers that are of one length
	switch {
	case bytes.HasPrefix(data, []byte(indexHeader)):
		version = 5
	case bytes.HasPrefix(data, []byte(fourthHeader)):
		version = 4
	case bytes.HasPrefix(data, []byte(thirdHeader)):
		version = 3
	default:
		return parseOldIndex(string(data))
	}
	body := len(data) - sha256.Size
	if body < len(indexHeader) || sha256.Sum256(data[:body]) != Hash(data[body:]) {
		return index{}, errors.New("the index is cut")
	}
	boot, rest, ok := strings.Cut(string(data[len(indexHeader):body]), "\n")
	if !ok {
		return index{}, errListing
	}
	l, hashes, err := cutListing(rest, version)
	if err != nil {
		return index{}, err
	}
	if len(hashes) != l.count*len(Hash{}) {
		return index{}, errListing
	}
	l.hashes = hashes
	if err := l.check(); err != nil {
		return index{}, err
	}
	return index{readBoot(boot), l}, nil
}

func readBoot(name string) string {
	if name == "-" {
		return ""
	}
	return name
}

// parseOldIndex reads what earlier versions wrote.
func parseOldIndex(text string) (index, error) {
	var x index
	body, first := strings.CutPrefix(text, firstIndexStart)
	if !first {
		rest, ok := strings.CutPrefix(text, secondHeader)
		if !ok {
			return x, errors.New("unknown index format")
		}
		boot, rest, ok := strings.Cut(rest, "\n")
		if !ok {
			return x, errors.New("the index is cut")
		}
		x.boot = readBoot(boot)
		if body, ok = cutEnd(text, rest); !ok {
			return x, errors.New("the index is cut")
		}
	}
	files := make([]File, 0, strings.Count(body, "\n"))
	for body != "" {
		line, rest, ended := strings.Cut(body, "\n")
		f, ok := parseFile(line, first)
		if !ended || !ok {
			return index{}, fmt.Errorf("bad index line %q", line)
		}
		files = append(files, f)
		body = rest
	}
	x.files = newListing(files, facts{})
	return x, nil
}

// cutEnd takes the last line off the end of a whole index's body.
func cutEnd(text, body string) (string, bool) {
	const size = len(secondIndexEnd) + 2*sha256.Size + 1
	if len(body) < size {
		return "", false
	}
	sum := sha256.Sum256([]byte(text[:len(text)-size]))
	end := append(hex.AppendEncode([]byte(secondIndexEnd), sum[:]), '\n')
	return body[:len(body)-size], bytes.Equal(end, []byte(body[len(body)-size:]))
}

func parseFile(line string, old bool) (f File, ok bool) {
	kind, rest, ok := strings.Cut(line, " ")
	if !ok || kind != "x" && kind != "-" {
		return f, false
	}
	f.Executable = kind == "x"
	size, rest, ok := strings.Cut(rest, " ")
	var err error
	if f.Size, err = strconv.ParseInt(size, 10, 64); !ok || err != nil || f.Size < 0 || f.Size > maxSize {
		return f, false
	}
	if !old {
		var sum string
		if sum, rest, ok = strings.Cut(rest, " "); !ok || len(sum) != 2*len(f.Hash) {
			return f, false
		}
		if _, err := hex.Decode(f.Hash[:], []byte(sum)); err != nil {
			return f, false
		}
	}
	f.Path = rest
	return f, fs.ValidPath(rest) && rest != "." && strings.IndexByte(rest, 0) < 0
}
