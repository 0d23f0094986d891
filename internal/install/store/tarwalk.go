package store

import (
	"archive/tar"
	"bytes"
	"strings"

	"dsh/internal/install/unpack"
)

// member is one entry of an archive.
type member struct {
	name       string
	link       string // where a link leads
	kind       byte   // as in package archive/tar
	executable bool
	size       int64
	data       []byte // where the archive is in memory
}

// unpack is the member as the rules know it.
func (m member) unpack() unpack.Member {
	return unpack.Member{Name: m.name, Link: m.link, Type: unpack.TypeOf(m.kind), Executable: m.executable, Size: m.size}
}

const tarBlock = 512

var zeroBlock [tarBlock]byte

// walkTar lists the members of an archive in memory, appended to list, as
// package archive/tar does. It only knows what archives of packages are made of,
// and reports false for everything else, be it rare or wrong: then that package
// has the word.
func walkTar(archive []byte, list []member) (members []member, ok bool) {
	var longName, longLink string
	var pax paxRecords
	for {
		if len(archive) == 0 {
			return list, true
		}
		if len(archive) < tarBlock {
			return nil, false
		}
		block := (*[tarBlock]byte)(archive)
		if *block == zeroBlock {
			// The second block of zeros may be missing.
			return list, len(archive) == tarBlock || len(archive) >= 2*tarBlock && bytes.Equal(archive[tarBlock:2*tarBlock], zeroBlock[:])
		}
		m, ok := readTarHeader(block)
		if !ok {
			return nil, false
		}
		archive = archive[tarBlock:]
		meta := true
		switch m.kind {
		case tar.TypeXHeader, tar.TypeXGlobalHeader, tar.TypeGNULongName, tar.TypeGNULongLink:
		case tar.TypeReg, '\x00', tar.TypeDir, tar.TypeSymlink, tar.TypeLink: // '\x00' is an old file
			meta = false
			if pax.path != "" {
				m.name = pax.path
			}
			if pax.link != "" {
				m.link = pax.link
			}
			if pax.hasSize {
				m.size = pax.size
			}
			if longName != "" {
				m.name = longName
			}
			if longLink != "" {
				m.link = longLink
			}
			if m.kind == '\x00' {
				m.kind = tar.TypeReg
				if strings.HasSuffix(m.name, "/") {
					m.kind = tar.TypeDir
				}
			}
		default:
			return nil, false
		}
		held := m.size
		if m.kind == tar.TypeDir || m.kind == tar.TypeSymlink || m.kind == tar.TypeLink {
			held = 0 // whatever the header says
		}
		padded := (held + tarBlock - 1) &^ (tarBlock - 1)
		if padded > int64(len(archive)) {
			return nil, false
		}
		m.data, archive = archive[:held], archive[padded:]
		if !meta {
			list = append(list, m)
			longName, longLink, pax = "", "", paxRecords{}
			continue
		}
		const most = 1 << 20 // archive/tar refuses more of what describes a member
		if held > most {
			return nil, false
		}
		switch m.kind {
		case tar.TypeGNULongName:
			longName = untilZero(m.data)
		case tar.TypeGNULongLink:
			longLink = untilZero(m.data)
		default:
			records, ok := parsePAX(m.data)
			if !ok {
				return nil, false
			}
			if m.kind == tar.TypeXHeader {
				pax = records
				continue
			}
			if records.path != "" || records.link != "" || records.hasSize {
				return nil, false // which only one member can have
			}
			// What is said of all members is left out, as in archive/tar.
			m.data = nil
			list = append(list, m)
			longName, longLink, pax = "", "", paxRecords{}
		}
	}
}

// readTarHeader reads the block before a member.
func readTarHeader(b *[tarBlock]byte) (m member, ok bool) {
	const sumAt, sumEnd = 148, 156
	want, ok := octal(b[sumAt:sumEnd])
	sum := int64(' ') * (sumEnd - sumAt)
	for _, c := range b[:sumAt] {
		sum += int64(c)
	}
	for _, c := range b[sumEnd:] {
		sum += int64(c)
	}
	if !ok || sum != want {
		return m, false
	}
	mode, ok1 := octal(b[100:108])
	_, ok2 := octal(b[108:116]) // user
	_, ok3 := octal(b[116:124]) // group
	size, ok4 := octal(b[124:136])
	_, ok5 := octal(b[136:148]) // time
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 {
		return m, false
	}
	m = member{name: untilZero(b[:100]), link: untilZero(b[157:257]), kind: b[156], executable: mode&0o111 != 0, size: size}
	switch magic, version := string(b[257:263]), string(b[263:265]); {
	case magic == "ustar\x00":
		if string(b[508:]) == "tar\x00" {
			return m, false // a dialect
		}
		if prefix := untilZero(b[345:500]); prefix != "" {
			m.name = prefix + "/" + m.name
		}
	case magic == "ustar " && version == " \x00":
		if b[345] != 0 || b[357] != 0 {
			return m, false // times, or a prefix that old programs wrote there
		}
	default:
		return m, true // as old as tar
	}
	_, ok1 = octal(b[329:337]) // device
	_, ok2 = octal(b[337:345])
	return m, ok1 && ok2
}

func untilZero(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}

// octal is a number of a header, padded with zeros and spaces; none is 0.
func octal(b []byte) (n int64, ok bool) {
	b = bytes.Trim(b, " \x00")
	if len(b) > 20 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '7' {
			return 0, false
		}
		n = n<<3 | int64(c-'0')
	}
	return n, true
}

// paxRecords is what matters of a header that extends the next one.
type paxRecords struct {
	path, link string
	size       int64
	hasSize    bool
}

// parsePAX reads records of the form "<length> <key>=<value>\n". An empty value
// leaves what the header itself says; a later record of a key counts.
func parsePAX(text []byte) (r paxRecords, ok bool) {
	for len(text) > 0 {
		space := bytes.IndexByte(text, ' ')
		if space < 1 {
			return r, false
		}
		length, ok := decimal(text[:space])
		if !ok || length > int64(len(text)) || length < int64(space)+4 || text[length-1] != '\n' {
			return r, false
		}
		key, value, ok := bytes.Cut(text[space+1:length-1], []byte("="))
		if !ok || len(key) == 0 || bytes.IndexByte(key, 0) >= 0 {
			return r, false
		}
		text = text[length:]
		switch string(key) {
		case "path":
			r.path, ok = string(value), bytes.IndexByte(value, 0) < 0
		case "linkpath":
			r.link, ok = string(value), bytes.IndexByte(value, 0) < 0
		case "uname", "gname":
			ok = bytes.IndexByte(value, 0) < 0
		case "size":
			if r.hasSize = len(value) > 0; r.hasSize {
				r.size, ok = decimal(value)
			}
		case "uid", "gid":
			if len(value) > 0 {
				_, ok = decimal(value)
			}
		case "atime", "mtime", "ctime":
			if seconds, fraction, _ := bytes.Cut(value, []byte(".")); len(value) > 0 {
				_, ok = decimal(seconds)
				for _, c := range fraction {
					ok = ok && '0' <= c && c <= '9'
				}
			}
		default:
			ok = !bytes.HasPrefix(key, []byte("GNU.sparse."))
		}
		if !ok {
			return r, false
		}
	}
	return r, true
}

func decimal(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int64(c-'0')
	}
	return n, true
}
