package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// The kinds of malicious tarball entries.
const (
	EvilEscape        = "../escape"      // package/../../escape.txt
	EvilBackslash     = `..\escape`      // package/..\..\escape.txt
	EvilAbsolute      = "absolute"       // /npmtest-absolute.txt
	EvilSymlink       = "symlink"        // package/link, a symbolic link to ../../outside, then package/link/planted.txt
	EvilHardlink      = "hardlink"       // package/hard, a hard link to ../../../package.json
	EvilDevice        = "device"         // package/null, a character device
	EvilCaseCollision = "case-collision" // package/Collide.txt and package/collide.txt
	EvilHuge          = "huge"           // package/huge.bin, HugeSize bytes of zeros in a download of about 4 MB
)

// HugeSize is the size of the file in a tarball of the kind EvilHuge, in bytes.
const HugeSize = 4 << 30

var evilKinds = []string{EvilEscape, EvilBackslash, EvilAbsolute, EvilSymlink, EvilHardlink, EvilDevice, EvilCaseCollision, EvilHuge}

// modified is the time of every entry, the one that npm pack writes.
var modified = time.Date(1985, 10, 26, 8, 15, 0, 0, time.UTC)

// tarball is a gzipped tar with its checksums as a version document spells them.
type tarball struct {
	data      []byte
	integrity string
	shasum    string
}

// buildTarball packs files, the same bytes each time. Files that start with #! are executable.
func buildTarball(files []txtar.File, d directives) tarball {
	var plain bytes.Buffer
	w := tar.NewWriter(&plain)
	for _, f := range files {
		mode := int64(0o644)
		if bytes.HasPrefix(f.Data, []byte("#!")) {
			mode = 0o755
		}
		addFile(w, d.prefix+"/"+f.Name, f.Data, mode)
	}
	if d.evil == EvilHuge {
		return seal(hugeArchive(w, &plain, d.prefix), d)
	}
	addEvil(w, d)
	must(w.Close())
	return seal(compress(plain.Bytes()), d)
}

func seal(data []byte, d directives) tarball {
	if d.corrupt {
		for i := len(data) / 2; i < len(data)/2+8; i++ {
			data[i] ^= 0xff
		}
	}
	if d.truncated {
		data = data[:len(data)/2]
	}
	hashed := data
	if d.wrongIntegrity {
		hashed = append([]byte("other content"), data...)
	}
	t := tarball{data: data}
	long, short := sha512.Sum512(hashed), sha1.Sum(hashed)
	t.integrity = "sha512-" + base64.StdEncoding.EncodeToString(long[:])
	t.shasum = hex.EncodeToString(short[:])
	return t
}

func addFile(w *tar.Writer, name string, data []byte, mode int64) {
	addEntry(w, tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data))}, data)
}

func addEntry(w *tar.Writer, h tar.Header, data []byte) {
	h.ModTime, h.Format = modified, tar.FormatPAX
	must(w.WriteHeader(&h))
	_, err := w.Write(data)
	must(err)
}

func addEvil(w *tar.Writer, d directives) {
	planted := []byte("planted\n")
	switch d.evil {
	case EvilEscape:
		addFile(w, d.prefix+"/../../escape.txt", planted, 0o644)
	case EvilBackslash:
		addFile(w, d.prefix+`/..\..\escape.txt`, planted, 0o644)
	case EvilAbsolute:
		addFile(w, "/npmtest-absolute.txt", planted, 0o644)
	case EvilSymlink:
		addEntry(w, tar.Header{Typeflag: tar.TypeSymlink, Name: d.prefix + "/link", Linkname: "../../outside", Mode: 0o777}, nil)
		addFile(w, d.prefix+"/link/planted.txt", planted, 0o644)
	case EvilHardlink:
		addEntry(w, tar.Header{Typeflag: tar.TypeLink, Name: d.prefix + "/hard", Linkname: "../../../package.json", Mode: 0o644}, nil)
	case EvilDevice:
		addEntry(w, tar.Header{Typeflag: tar.TypeChar, Name: d.prefix + "/null", Mode: 0o666, Devmajor: 1, Devminor: 3}, nil)
	case EvilCaseCollision:
		addFile(w, d.prefix+"/Collide.txt", planted, 0o644)
		addFile(w, d.prefix+"/collide.txt", []byte("other\n"), 0o644)
	}
}

// hugeArchive ends the tar in plain with HugeSize zeros. The zeros are one small gzip member repeated, since a gzip stream may have many.
func hugeArchive(w *tar.Writer, plain *bytes.Buffer, prefix string) []byte {
	must(w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: prefix + "/huge.bin", Mode: 0o644, Size: HugeSize, ModTime: modified, Format: tar.FormatPAX,
	}))
	const chunk = 16 << 20
	member := compress(make([]byte, chunk))
	data := compress(plain.Bytes())
	for range HugeSize / chunk {
		data = append(data, member...)
	}
	return append(data, compress(make([]byte, 1024))...)
}

func compress(data []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(data)
	must(err)
	must(w.Close())
	return out.Bytes()
}

// must is for writes into memory, which fail only when this package is wrong.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
