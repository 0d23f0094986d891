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

// index is the listing of an entry's files:
//
//	dsh-index 2 <boot, or ->
//	<x or -> <size> <hash> <path>
//	…
//	end <hash of all above>
//
// with an x for executable files. Paths hold no control characters; unpacking
// and copying refuse them. The last line tells an index that a power loss has
// cut from one that is whole. Earlier versions wrote dsh-index 1, without boot,
// hashes and last line.
type index struct {
	boot  string
	files []File
}

const (
	indexHeader    = "dsh-index 2 "
	oldIndexHeader = "dsh-index 1\n"
	indexEnd       = "end "
)

func (x index) format() []byte {
	boot := x.boot
	if boot == "" || strings.ContainsAny(boot, " \n") {
		boot = "-"
	}
	out := []byte(indexHeader + boot + "\n")
	for _, f := range x.files {
		kind := byte('-')
		if f.Executable {
			kind = 'x'
		}
		out = append(out, kind, ' ')
		out = strconv.AppendInt(out, f.Size, 10)
		out = append(out, ' ')
		out = hex.AppendEncode(out, f.Hash[:])
		out = append(out, ' ')
		out = append(out, f.Path...)
		out = append(out, '\n')
	}
	sum := sha256.Sum256(out)
	out = append(out, indexEnd...)
	return append(hex.AppendEncode(out, sum[:]), '\n')
}

func parseIndex(text string) (index, error) {
	var x index
	body, old := strings.CutPrefix(text, oldIndexHeader)
	if !old {
		rest, ok := strings.CutPrefix(text, indexHeader)
		if !ok {
			return x, errors.New("unknown index format")
		}
		if x.boot, body, ok = strings.Cut(rest, "\n"); !ok {
			return x, errors.New("the index is cut")
		}
		if x.boot == "-" {
			x.boot = ""
		}
		if body, ok = cutEnd(text, body); !ok {
			return x, errors.New("the index is cut")
		}
	}
	x.files = make([]File, 0, strings.Count(body, "\n"))
	for body != "" {
		line, rest, ended := strings.Cut(body, "\n")
		f, ok := parseFile(line, old)
		if !ended || !ok {
			return index{}, fmt.Errorf("bad index line %q", line)
		}
		x.files = append(x.files, f)
		body = rest
	}
	return x, nil
}

// cutEnd takes the last line off the end of a whole index's body.
func cutEnd(text, body string) (string, bool) {
	const size = len(indexEnd) + 2*sha256.Size + 1
	if len(body) < size {
		return "", false
	}
	sum := sha256.Sum256([]byte(text[:len(text)-size]))
	end := append(hex.AppendEncode([]byte(indexEnd), sum[:]), '\n')
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
	if f.Size, err = strconv.ParseInt(size, 10, 64); !ok || err != nil || f.Size < 0 {
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
	return f, fs.ValidPath(rest) && rest != "."
}
