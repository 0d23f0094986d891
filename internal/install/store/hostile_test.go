package store

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
)

// hostileCase is an archive that is refused.
type hostileCase struct {
	archive []byte
	names   string // what the error says, with the entry in it
	broken  bool   // the archive is damaged, and nothing else
	opts    unpack.Options
}

// tight are limits that archives of some kilobytes go beyond.
var tight = unpack.Limits{Unpacked: 1 << 20, Entries: 50, Ratio: 200, Path: 200}

// hostileTars are archives that every form of tar can have.
func hostileTars() map[string]hostileCase {
	good := block{name: "p/package.json", body: "{}"}
	links := unpack.Options{Links: true, Strip: true}
	one := func(names string, blocks ...block) hostileCase {
		return hostileCase{archive: rawTar(append([]block{good}, blocks...)...), names: names, opts: links}
	}
	link := func(name, target string) block { return block{name: name, link: target, kind: tar.TypeSymlink} }
	file := func(name string) block { return block{name: name, body: "x"} }
	cases := map[string]hostileCase{
		// Names.
		"parent":             one(`"p/../../x"`, file("p/../../x")),
		"parent at once":     one(`"../x"`, file("../x")),
		"parent in the end":  one(`"p/a/.."`, file("p/a/..")),
		"parent directory":   one(`"p/../../d/"`, block{name: "p/../../d/", kind: tar.TypeDir}),
		"absolute":           one(`"/etc/x"`, file("/etc/x")),
		"two slashes":        one(`"//etc/x"`, file("//etc/x")),
		"drive":              one(`"C:/x"`, file("C:/x")),
		"drive without path": one(`"c:x"`, file("c:x")),
		"backslash":          one(`"p\\..\\x"`, file(`p\..\x`)),
		"control":            one(`"p/a\x1b[2Jb"`, file("p/a\x1b[2Jb")),
		"delete":             one(`"p/a\x7f"`, file("p/a\x7f")),
		"line end":           one(`"p/a\nb"`, file("p/a\nb")),
		"c1 control":         one(`"p/a\u009bb"`, file("p/a\u009bb")),
		"overlong":           one(`"p/..\xc0\xafx"`, file("p/..\xc0\xafx")),
		"half a pair":        one(`"p/\xed\xa0\x80"`, file("p/\xed\xa0\x80")),
		"latin":              one(`"p/\xe9"`, file("p/\xe9")),
		"prefix":             one(`"p/../../x"`, block{prefix: "p/../..", name: "x", body: "x"}),

		// What GNU and PAX say instead of the header.
		"pax path":         one(`"../x"`, pax('x', "path=../x"), file("p/a")),
		"pax path twice":   one(`"../x"`, pax('x', "path=p/good", "path=../x"), file("p/a")),
		"pax link":         one(`"../../x"`, pax('x', "linkpath=../../x"), link("p/l", "a")),
		"pax long path":    one("has a name of more than 1024 bytes", pax('x', "path=p/"+strings.Repeat("a", 1100)), file("p/a")),
		"pax global path":  one("all members", pax('g', "path=../x"), file("p/a")),
		"pax global link":  one("all members", pax('g', "linkpath=/etc"), link("p/l", "a")),
		"gnu long name":    one(`"../x"`, block{name: "././@LongLink", kind: 'L', body: "../x\x00", magic: gnuMagic}, file("p/a")),
		"gnu long link":    one(`"/etc"`, block{name: "././@LongLink", kind: 'K', body: "/etc\x00", magic: gnuMagic}, link("p/l", "a")),
		"pax NUL":          {archive: rawTar(good, pax('x', "path=p/a\x00../x"), file("p/a")), names: `after "p/package.json"`, broken: true},
		"pax cut":          {archive: rawTar(good, block{name: "x", kind: 'x', body: "99 path=x\n"}, file("p/a")), names: `after "p/package.json"`, broken: true},
		"pax size":         {archive: rawTar(good, pax('x', "size=-5"), file("p/a")), names: `after "p/package.json"`, broken: true},
		"pax size huge":    one("unpacks to more", pax('x', "size=9000000000000000000"), file("p/a")),
		"size huge":        one(`"p/a": with it the package unpacks to more than`, block{name: "p/a", size: "77777777777\x00"}),
		"size base 256":    one(`"p/a": with it the package unpacks to more than`, block{name: "p/a", size: base256(1 << 60), magic: gnuMagic}),
		"size below zero":  {archive: rawTar(good, block{name: "p/a", size: base256(-512), magic: gnuMagic}), names: `after "p/package.json"`, broken: true},
		"size no number":   {archive: rawTar(good, block{name: "p/a", size: "12345678901z"}), names: `after "p/package.json"`, broken: true},
		"size beyond it":   {archive: rawTar(good, block{name: "p/a", size: "00000100000\x00", body: "x"}), names: `p/a`, broken: true},
		"sum":              {archive: append(bytes.Repeat([]byte("x"), 100), rawTar(good)[100:]...), names: "read archive", broken: true},
		"sparse gnu":       one(`"p/a" is a sparse file`, block{name: "p/a", kind: 'S', body: "", magic: gnuMagic, extra: "00000000000\x0000000000000\x00" + strings.Repeat("\x00", 72) + "\x0000000010000\x00"}),
		"sparse pax 0.1":   one(`"p/a" is a sparse file`, pax('x', "GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.size=1000000000", "GNU.sparse.numblocks=1", "GNU.sparse.map=999999999,1", "GNU.sparse.name=p/a"), file("p/a")),
		"sparse pax 1.0":   one(`"p/a" is a sparse file`, pax('x', "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.realsize=1000000000", "GNU.sparse.name=p/a"), block{name: "p/a", body: "1\n999999999\n1\n" + strings.Repeat("\x00", 498) + "x"}),
		"sparse pax name":  one("../x", pax('x', "GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.realsize=1", "GNU.sparse.name=../x"), block{name: "p/a", body: "1\n0\n1\n" + strings.Repeat("\x00", 505) + "x"}),
		"nothing at all":   {archive: rawTar(), names: "holds no files", broken: true},
		"only outside":     {archive: rawTar(file("stray")), names: "holds no files", broken: true, opts: links},
		"character device": one(`"p/null"`, block{name: "p/null", kind: tar.TypeChar}),
		"block device":     one(`"p/sda"`, block{name: "p/sda", kind: tar.TypeBlock}),
		"pipe":             one(`"p/pipe"`, block{name: "p/pipe", kind: tar.TypeFifo}),
		"unknown kind":     one(`"p/what"`, block{name: "p/what", kind: 'Z'}),
		"volume":           one(`"p/what"`, block{name: "p/what", kind: 'V', magic: gnuMagic}),

		// Links.
		"link, none allowed":    {archive: rawTar(good, link("p/l", "package.json")), names: `"p/l" is a link to`, opts: unpack.Options{Strip: true}},
		"link absolute":         one(`"p/l" is a link to "/etc/passwd"`, link("p/l", "/etc/passwd")),
		"link out":              one(`"p/l" is a link to "../x"`, link("p/l", "../x")),
		"link out and back":     one(`"p/l" is a link to "../p/a"`, link("p/l", "../p/a"), file("p/a")),
		"link out from below":   one(`"p/d/l" is a link to "../../x"`, link("p/d/l", "../../x")),
		"link around":           one(`"p/d/l" is a link to "a/../../../x"`, link("p/d/l", "a/../../../x")),
		"link down and up":      one(`"p/l" is a link to "node_modules/b/../c", which goes down and up again`, link("p/l", "node_modules/b/../c")),
		"link to itself":        one(`"p/l" is a link to "l"`, link("p/l", "l")),
		"link to its folder":    one(`"p/d/l" is a link to "."`, link("p/d/l", ".")),
		"link to the root":      one(`"p/d/l" is a link to ".."`, link("p/d/l", "..")),
		"link to nothing":       one(`"p/l" is a link to ""`, link("p/l", "")),
		"link with control":     one(`"p/l" is a link to "a\nb"`, link("p/l", "a\nb")),
		"link with backslash":   one(`"p/l" is a link to "..\\x"`, link("p/l", `..\x`)),
		"link to a drive":       one(`"p/l" is a link to "C:/x"`, link("p/l", "C:/x")),
		"link chain":            one(`"p/b" is a link to "a", which leads over the link "a"`, link("p/a", "package.json"), link("p/b", "a")),
		"link chain backwards":  one(`"p/b" is a link to "a"`, link("p/b", "a"), link("p/a", "package.json")),
		"link chain in letters": one(`"p/b" is a link to "A"`, link("p/a", "package.json"), link("p/b", "A")),
		"link chain out":        one(`"p/e/l" is a link to "../d/.."`, block{name: "p/x/y/z", body: "x"}, link("p/d", "x/y"), link("p/e/l", "../d/..")),
		"link as a parent":      one(`"p/l/x" is below "l", which is a link`, link("p/l", "d"), file("p/d/y"), file("p/l/x")),
		"link as a twin parent": one(`"p/L/x" is below "l", which is a link`, link("p/l", "d"), file("p/d/y"), file("p/L/x")),
		"link over a folder":    one(`"p/d" is a link in the place of the directory "d"`, file("p/d/y"), link("p/d", "e"), file("p/d/x")),
		"link over a dir entry": one(`"p/d" is a link in the place of the directory "d"`, block{name: "p/d/", kind: tar.TypeDir}, link("p/d", "e"), file("p/d/x")),
		"dir entry over a link": one(`"p/d/" stands in the place of "d", which is a link`, link("p/d", "e"), block{name: "p/d/", kind: tar.TypeDir}, file("p/d/x")),
		"link over a file":      one(`"p/package.json" stands in the archive twice`, link("p/package.json", "a")),
		"file over a link":      one(`"p/l" stands in the archive twice`, link("p/l", "a"), file("p/l")),
		"link moved":            one(`"p/l" stands in the archive twice`, link("p/l", "a"), link("p/l", "b")),
		"hard link":             one(`"p/h" is a link to "p/package.json", and a hard one`, block{name: "p/h", kind: tar.TypeLink, link: "p/package.json"}),
		"hard link out":         one(`"p/h" is a link to "/etc/passwd", and a hard one`, block{name: "p/h", kind: tar.TypeLink, link: "/etc/passwd"}),
		"hard link to a link":   one(`"p/h" is a link to "p/l", and a hard one`, link("p/l", "package.json"), block{name: "p/h", kind: tar.TypeLink, link: "p/l"}),

		// Names that are one somewhere.
		"case twins":          one(`"p/A" differs from "a" only in case`, file("p/a"), file("p/A")),
		"case twins below":    one(`"p/D/a" differs from "d/a" only in case`, file("p/d/a"), file("p/D/a")),
		"normal form twins":   one("\"p/cafe\u0301\" differs from \"caf\u00e9\"", file("p/caf\u00e9"), file("p/cafe\u0301")),
		"folding twins":       one("\"p/STRASSE\" differs from \"stra\u00dfe\"", file("p/stra\u00dfe"), file("p/STRASSE")),
		"kelvin twins":        one("\"p/\u212a\" differs from \"k\"", file("p/k"), file("p/\u212a")),
		"link twins":          one(`"p/L" differs from "l" only in case`, link("p/l", "a"), link("p/L", "b")),
		"twice":               one(`"p/a" stands in the archive twice with different contents`, file("p/a"), block{name: "p/a", body: "y"}),
		"twice by other ways": one(`"p/./a" stands in the archive twice with different contents`, file("p/a"), block{name: "p/./a", body: "y"}),
		"file and directory":  one(`"p/a/b" is below "a", which is a file`, file("p/a"), file("p/a/b")),
		"directory and file":  one(`"p/a" is a file and a directory`, file("p/a/b"), file("p/a")),
		"dir entry and file":  one(`"p/a" is a file and a directory`, block{name: "p/a/", kind: tar.TypeDir}, file("p/a")),
	}
	// Limits.
	many := []block{good}
	for i := range 60 {
		many = append(many, file(fmt.Sprintf("p/%d", i)))
	}
	cases["too many"] = hostileCase{archive: rawTar(many...), names: `"p/49": with it the package holds more than 50`, opts: unpack.Options{Limits: tight, Strip: true}}
	cases["too many folders"] = hostileCase{archive: rawTar(good, pax('x', "path=p/"+strings.Repeat("d/", 60)+"x"), file("p/a")), names: "holds more than 50", opts: unpack.Options{Limits: tight, Strip: true}}
	many = many[:1]
	for i := range 60 {
		many = append(many, block{name: fmt.Sprintf("p/%d/", i), kind: tar.TypeDir})
	}
	cases["too many empty folders"] = hostileCase{archive: rawTar(many...), names: `"p/49/": with it the package holds more than 50`, opts: unpack.Options{Limits: tight, Strip: true}}
	cases["too large"] = hostileCase{archive: rawTar(good, block{name: "p/a", body: noise(600 << 10)}, block{name: "p/b", body: noise(600 << 10)}), names: `"p/b": with it the package unpacks to more than 1 MiB`, opts: unpack.Options{Limits: tight, Strip: true}}
	cases["too long"] = hostileCase{archive: rawTar(good, block{prefix: "p/" + strings.Repeat("d", 120), name: strings.Repeat("n", 90), body: "x"}), names: "has a name of more than 200 bytes", opts: unpack.Options{Limits: tight, Strip: true}}
	return cases
}

// hostileZips are archives of the zip format.
func hostileZips() map[string]hostileCase {
	good := zipped{name: "p/package.json", body: "{}"}
	links := unpack.Options{Links: true, Strip: true}
	one := func(names string, entries ...zipped) hostileCase {
		return hostileCase{archive: rawZip(nil, append([]zipped{good}, entries...)...), names: names, opts: links}
	}
	broken := func(names string, entries ...zipped) hostileCase {
		c := one(names, entries...)
		c.broken = true
		return c
	}
	file := func(name string) zipped { return zipped{name: name, body: "x"} }
	link := func(name, target string) zipped { return zipped{name: name, body: target, mode: 0o120777} }
	cases := map[string]hostileCase{
		"zip slip":             one(`"p/../../x"`, file("p/../../x")),
		"absolute":             one(`"/etc/x"`, file("/etc/x")),
		"drive":                one(`"C:/x"`, file("C:/x")),
		"windows drive":        one(`"C:\\x"`, file(`C:\x`)),
		"backslash":            one(`"p\\..\\..\\x"`, file(`p\..\..\x`)),
		"share":                one(`"\\\\host\\share\\x"`, file(`\\host\share\x`)),
		"control":              one(`"p/a\x00b"`, file("p/a\x00b")),
		"code page":            one(`"p/\x82"`, file("p/\x82")),
		"case twins":           one(`"p/A" differs from "a" only in case`, file("p/a"), file("p/A")),
		"normal form twins":    one("\"p/cafe\u0301\" differs from \"caf\u00e9\"", file("p/caf\u00e9"), file("p/cafe\u0301")),
		"twice":                one(`"p/a" stands in the archive twice`, file("p/a"), zipped{name: "p/a", body: "y"}),
		"link out":             one(`"p/l" is a link to "../../x"`, link("p/l", "../../x")),
		"link absolute":        one(`"p/l" is a link to "/etc/passwd"`, link("p/l", "/etc/passwd")),
		"link packed":          one(`"p/l" is a link to "/etc/passwd"`, zipped{name: "p/l", body: "/etc/passwd", mode: 0o120777, packed: true}),
		"link, none allowed":   {archive: rawZip(nil, good, link("p/l", "package.json")), names: `"p/l" is a link to`, opts: unpack.Options{Strip: true}},
		"link long":            one(`"p/l" is a link whose target is too long`, link("p/l", strings.Repeat("a", 2000))),
		"link as a parent":     one(`"p/l/x" is below "l", which is a link`, link("p/l", "d"), file("p/l/x")),
		"link as a directory":  one(`"p/l/"`, link("p/l/", "d")),
		"device":               one(`"p/null"`, zipped{name: "p/null", mode: 0o020666}),
		"pipe":                 one(`"p/pipe"`, zipped{name: "p/pipe", mode: 0o010666}),
		"socket":               one(`"p/socket"`, zipped{name: "p/socket", mode: 0o140666}),
		"directory with text":  one(`"p/d/" is a directory, and has a content`, zipped{name: "p/d/", body: "x", mode: 0o040755}),
		"encrypted":            one(`"p/a" is encrypted`, zipped{name: "p/a", body: "x", flags: 1}),
		"strongly encrypted":   one(`"p/a" is encrypted`, zipped{name: "p/a", body: "x", flags: 1 | 1<<6}),
		"masked headers":       one(`"p/a" is encrypted`, zipped{name: "p/a", body: "x", flags: 1 << 13}),
		"encrypted there":      one(`"p/a" is encrypted`, zipped{name: "p/a", body: "x", local: func(h []byte, _ *string) { h[6] |= 1 }}),
		"another name":         one(`"p/a" is called "p/../../x"`, zipped{name: "p/a", body: "x", local: func(_ []byte, name *string) { *name = "p/../../x" }}),
		"another size":         one(`"p/a" has another size`, zipped{name: "p/a", body: "xyz", local: func(h []byte, _ *string) { h[22] = 1 }}),
		"another packed size":  one(`"p/a" has another size`, zipped{name: "p/a", body: "xyz", packed: true, local: func(h []byte, _ *string) { h[18] = 1 }}),
		"another checksum":     one(`"p/a" has another checksum`, zipped{name: "p/a", body: "xyz", local: func(h []byte, _ *string) { h[14]++ }}),
		"another method":       one(`"p/a" has another compression`, zipped{name: "p/a", body: "xyz", local: func(h []byte, _ *string) { h[8] = 8 }}),
		"another form":         one(`"p/a" has another form`, zipped{name: "p/a", body: "xyz", local: func(h []byte, _ *string) { h[6] |= 8 }}),
		"descriptor lies":      one(`"p/a" has another size or checksum`, zipped{name: "p/a", body: "xyz", packed: true, flags: 8, after: func(sum, packed, size uint32) []byte { return described(sum, packed, size+1) }}),
		"descriptor sum lies":  one(`"p/a" has another size or checksum`, zipped{name: "p/a", body: "xyz", packed: true, flags: 8, after: func(sum, packed, size uint32) []byte { return described(sum+1, packed, size) }}),
		"descriptor missing":   one(`"p/a" has another size or checksum`, zipped{name: "p/a", body: "xyz", packed: true, flags: 8}),
		"larger than it says":  one(`"p/a" is larger than the archive says`, zipped{name: "p/a", body: strings.Repeat("x", 5000), packed: true, size: 10}),
		"smaller than it says": one(`"p/a" is smaller than the archive says`, zipped{name: "p/a", body: "xyz", packed: true, size: 10}),
		"stored in two sizes":  one(`"p/a" is not compressed, and has two sizes`, zipped{name: "p/a", body: "xyz", size: 10}),
		"wide size below zero": one(`"p/a" has a size that no file has`, zipped{name: "p/a", body: "x", packed: true, size: 1<<32 - 1, extra: "\x01\x00\x08\x00\xff\xff\xff\xff\xff\xff\xff\xff"}),
		"wide size huge":       one(`"p/a"`, zipped{name: "p/a", body: "x", packed: true, size: 1<<32 - 1, extra: "\x01\x00\x08\x00\xff\xff\xff\xff\xff\xff\xff\x7f"}),
		"wrong checksum":       broken(`"p/a" is wrong`, zipped{name: "p/a", body: "xyz", sum: 7}),
		"unknown method":       broken(`"p/a" is compressed in a way (14)`, zipped{name: "p/a", body: "x", method: 14}),
		"damaged":              broken(`"p/a"`, zipped{name: "p/a", body: "\xff\xff\xff", method: 8, size: 99}),
		"no wide size":         broken("damaged", zipped{name: "p/a", body: "x", packed: true, size: 1<<32 - 1}),
		"content beyond":       broken("damaged", zipped{name: "p/a", body: "x", packed: true, sizes: 1 << 20}),
		"another's place":      one(`"p/a" is called "p/package.json"`, zipped{name: "p/a", body: "{}", at: 1}),
	}
	edited := func(edit func(end []byte)) hostileCase {
		return hostileCase{archive: rawZip(edit, good), names: "zip archive", broken: true, opts: links}
	}
	cases["count lies"] = edited(func(end []byte) { end[10] = 9 })
	cases["directory too long"] = edited(func(end []byte) { end[12]++ })
	cases["directory elsewhere"] = edited(func(end []byte) { end[16]-- })
	cases["several disks"] = edited(func(end []byte) { end[4], end[6] = 1, 1 })
	cases["more behind it"] = hostileCase{archive: append(rawZip(nil, good), "more"...), names: "no directory at its end", broken: true}
	cases["more before the directory"] = hostileCase{archive: append([]byte("PK\x03\x04"), rawZip(nil, good)...), names: "damaged", broken: true}
	var many []zipped
	for i := range 60 {
		many = append(many, file(fmt.Sprintf("p/%d", i)))
	}
	cases["too many"] = hostileCase{archive: rawZip(nil, many...), names: `"p/50": with it the package holds more than 50`, opts: unpack.Options{Limits: tight, Strip: true}}
	cases["too large"] = hostileCase{archive: rawZip(nil, good, zipped{name: "p/a", body: noise(600 << 10)}, zipped{name: "p/b", body: noise(600 << 10)}), names: `"p/b": with it the package unpacks to more than 1 MiB`, opts: unpack.Options{Limits: tight, Strip: true}}
	bomb := zipped{name: "p/bomb", body: strings.Repeat("0", 40<<20), packed: true}
	cases["bomb"] = hostileCase{archive: rawZip(nil, good, bomb), names: `"p/bomb": with it the package unpacks to more than 200 times its size`, opts: links}
	return cases
}

// surroundings is all around a store, to be compared.
func surroundings(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == "store" {
			return fs.SkipDir
		}
		text := ""
		if d.Type().IsRegular() {
			body, err := os.ReadFile(at)
			if err != nil {
				return err
			}
			text = string(body)
		}
		found[at] = d.Type().String() + " " + text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refuse adds an archive to a store, and fails where it is not refused as it
// should be, or anything is left of it, inside or outside.
func refuse(t *testing.T, c hostileCase, add func(s *Store) error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"x", "a", "package.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("outside"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := surroundings(t, dir)
	s := Open(filepath.Join(dir, "store"))
	err := add(s)
	class := fault.Policy
	if c.broken {
		class = fault.Package
	}
	switch {
	case err == nil:
		t.Fatal("it is taken")
	case fault.ClassOf(err) != class:
		t.Errorf("it is of class %v: %v", fault.ClassOf(err), err)
	case !strings.Contains(err.Error(), c.names):
		t.Errorf("the error does not say %s: %v", c.names, err)
	}
	nothingLeft(t, s)
	if diff := cmp.Diff(before, surroundings(t, dir)); diff != "" {
		t.Error(diff)
	}
}

func TestHostileArchives(t *testing.T) {
	tars := hostileTars()
	for _, name := range slices.Sorted(maps.Keys(tars)) {
		c := tars[name]
		for _, form := range slices.Sorted(maps.Keys(wraps)) {
			if form == "tar.bz2" && len(c.archive) > 100<<10 {
				continue // which takes our compressor too long
			}
			t.Run(form+"/"+name, func(t *testing.T) {
				c := c
				if form == "tar" && name == "sum" { // it is not even known for a tar
					c.names = "neither a tar archive"
				}
				file := saved(t, wraps[form](t, c.archive))
				refuse(t, c, func(s *Store) error {
					_, err := s.AddArchive(context.Background(), file, c.opts, Integrity{})
					return err
				})
			})
		}
	}
	zips := hostileZips()
	for _, name := range slices.Sorted(maps.Keys(zips)) {
		c := zips[name]
		t.Run("zip/"+name, func(t *testing.T) {
			file := saved(t, c.archive)
			refuse(t, c, func(s *Store) error {
				_, err := s.AddArchive(context.Background(), file, c.opts, Integrity{})
				return err
			})
		})
	}
}

// What a registry sends is held to the same rules, in memory and as a stream,
// and may have no links at all.
func TestHostileTarballs(t *testing.T) {
	tars := hostileTars()
	for _, name := range slices.Sorted(maps.Keys(tars)) {
		c := tars[name]
		if strings.HasSuffix(c.names, "holds no files") {
			continue // the caller says so who misses package.json
		}
		if bytes.Contains(c.archive, []byte{tar.TypeSymlink, 0}) || strings.Contains(name, "link") {
			c.names = "" // a link may be what it stumbles over
		}
		for way, stream := range map[string]bool{"memory": false, "stream": true} {
			t.Run(way+"/"+name, func(t *testing.T) {
				archive := wraps["tar.gz"](t, c.archive)
				if stream { // more than one member is not unpacked in memory
					archive = append(wraps["tar.gz"](t, c.archive[:100]), wraps["tar.gz"](t, c.archive[100:])...)
				}
				refuse(t, c, func(s *Store) error {
					s.Limits = c.opts.Limits
					_, err := s.AddTarball(context.Background(), bytes.NewReader(archive), Integrity{})
					return err
				})
			})
		}
	}
}

// What looks odd, and harms nobody, is taken as it is meant.
func TestOddArchives(t *testing.T) {
	inner := wraps["tar.gz"](t, rawTar(block{name: "../x", body: "x"}))
	global := pax('g', "comment=0123456789abcdef")
	for name, blocks := range map[string][]block{
		"an archive in an archive": {{name: "p/inner.tgz", body: string(inner)}},
		"a comment for all":        {global, {name: "p/inner.tgz", body: string(inner)}},
		"dots":                     {{name: "./p/./inner.tgz", body: string(inner)}},
		"setuid":                   {{name: "p/inner.tgz", body: string(inner), mode: "0006644"}},
		"twice":                    {{name: "p/inner.tgz", body: string(inner)}, {name: "p//inner.tgz", body: string(inner)}},
		"pax size":                 {pax('x', fmt.Sprintf("size=%d", len(inner))), {name: "p/inner.tgz", body: string(inner), size: "00000000000"}},
		"old":                      {{name: "p/inner.tgz", body: string(inner), magic: "\x00\x00"}},
	} {
		for form, wrap := range wraps {
			s := Open(filepath.Join(t.TempDir(), "store"))
			e, err := s.AddArchive(context.Background(), saved(t, wrap(t, rawTar(blocks...))), unpack.Options{Strip: true, Links: true}, Integrity{})
			if diff := cmp.Diff([]File{file("inner.tgz", string(inner), false)}, e.Files()); err != nil || diff != "" {
				t.Errorf("%s, %s: %v %s", form, name, err, diff)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	streamed := zipped{name: "p/a", body: "xyz", packed: true, flags: 8, after: described}
	for name, archive := range map[string][]byte{
		"streamed":             rawZip(nil, streamed),
		"streamed, no magic":   rawZip(nil, zipped{name: "p/a", body: "xyz", packed: true, flags: 8, after: func(a, b, c uint32) []byte { return described(a, b, c)[4:] }}),
		"setuid":               rawZip(nil, zipped{name: "p/a", body: "xyz", mode: 0o106644}),
		"from another system":  rawZip(nil, zipped{name: "p/a", body: "xyz", system: 10, mode: 0o120777}),
		"with a directory":     rawZip(nil, zipped{name: "p/", mode: 0o040755}, streamed),
		"with a comment":       append(rawZip(func(end []byte) { end[20] = 7 }, streamed), "comment"...),
		"with a fake end in a": append(rawZip(func(end []byte) { end[20] = 22 }, streamed), "PK\x05\x06------------------"...),
	} {
		s := Open(filepath.Join(t.TempDir(), "store"))
		e, err := s.AddArchive(context.Background(), saved(t, archive), unpack.Options{Strip: true}, Integrity{})
		if diff := cmp.Diff([]File{file("a", "xyz", false)}, e.Files()); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// heapPeak is how many bytes more than before f had in use at most. It looks
// often, and makes the collector leave little that is not used.
func heapPeak(f func()) int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	look := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before, peak := look(), int64(0)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				peak = max(peak, look()-before)
			}
		}
	}()
	f()
	close(done)
	<-ended
	return peak
}

// However an archive is made, no more memory than 64 MiB is used beyond the limit.
func TestHostileMemory(t *testing.T) {
	limits := unpack.Limits{Unpacked: 1 << 20, Entries: 1000}
	zeros := rawTar(block{name: "p/bomb", body: strings.Repeat("\x00", 100<<20)})
	var names []zipped
	for i := range 60_000 {
		names = append(names, zipped{name: fmt.Sprintf("p/%d-%s", i, strings.Repeat("n", 150))})
	}
	headers := make([]block, 0, 20_000)
	for i := range 20_000 {
		headers = append(headers, pax('x', "path="+fmt.Sprintf("p/%d/%s", i, strings.Repeat("n", 600))), block{name: "p/a"})
	}
	large := pax('x', "path=p/a", "comment="+strings.Repeat("c", 1<<20-100))
	repeated := make([]block, 200)
	for i := range repeated {
		repeated[i] = large
	}
	archives := map[string][]byte{
		"zip of names":          rawZip(nil, names...),
		"zip bomb":              rawZip(nil, zipped{name: "p/bomb", body: strings.Repeat("\x00", 100<<20), packed: true}),
		"tar of names":          rawTar(headers...),
		"large headers":         wraps["tar.gz"](t, rawTar(repeated...)),
		"gzip bomb":             wraps["tar.gz"](t, zeros),
		"gzip of gzip":          wraps["tar.gz"](t, rawTar(block{name: "p/a.tgz", body: string(wraps["tar.gz"](t, zeros))})),
		"xz bomb":               wraps["tar.xz"](t, zeros[:20<<20]),
		"zstd bomb":             wraps["tar.zst"](t, zeros),
		"xz dictionary":         hugeDictionary(28),
		"xz allowed dictionary": hugeDictionary(26),
		"zstd window":           {0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00},
	}
	for _, name := range slices.Sorted(maps.Keys(archives)) {
		file := saved(t, archives[name])
		archives[name] = nil
		s := Open(filepath.Join(t.TempDir(), "store"))
		var err error
		peak := heapPeak(func() {
			_, err = s.AddArchive(context.Background(), file, unpack.Options{Limits: limits, Strip: true}, Integrity{})
		})
		if name != "gzip of gzip" && err == nil {
			t.Errorf("%s: it is taken", name)
		}
		if most := int64(64<<20) + limits.Unpacked; peak > most {
			t.Errorf("%s: %d MiB of memory", name, peak>>20)
		}
		if err != nil {
			nothingLeft(t, s)
		} else if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// hugeDictionary is the begin of an xz file that asks for much memory: two to
// the power of bits.
func hugeDictionary(bits int) []byte {
	out := []byte("\xfd7zXZ\x00\x00\x00")
	out = append(out, sum32(out[6:8])...)
	for range 100 {
		head := []byte{2, 0, 0x21, 1, byte(bits-12) * 2, 0, 0, 0}
		out = append(append(out, head...), sum32(head)...)
		out = append(out, 1, 0, 0, 'x', 0) // one byte as it is, and the end
		for len(out)%4 != 0 {
			out = append(out, 0)
		}
	}
	return out
}
