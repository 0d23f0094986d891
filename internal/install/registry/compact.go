package registry

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"dsh/internal/install/manifest"
	"dsh/internal/install/manifest/jsonscan"
	"dsh/internal/npmrange"
)

// A packument is kept in a compact form, in memory as on disk:
//
//	head     four numbers of 4 bytes: versions, those of them that are no
//	         SemVer, tags, and flags; and one of 8, when the document changed
//	tags     of 12 bytes each: name, version, index of that version
//	records  of 32 bytes each, the highest version first, then what is no SemVer
//	texts    each with its length before it; the same text only once
//
// Numbers are little-endian. Texts are referred to by their place among the
// texts. The fields of a manifest stay the JSON that the registry sent, and are
// read when that version is looked at.
const (
	headSize   = 24
	tagSize    = 12
	recordSize = 32

	noRecord = math.MaxUint32

	maxVersions = 100_000 // of one package; the largest has a fifth of it
	maxTexts    = 64 << 20
)

// Flags of a document.
const (
	flagTimes  = 1 << iota // it says when versions were published
	flagGone               // it stands for the answer that there is none
	flagSigned             // it has the signatures that its registry gave; older ones have none
)

// goneText is the compact form of the answer that there is no document.
var goneText = string([]byte{12: flagGone, headSize - 1: 0})

// Flags of a record. The bits from flagScript on are the install scripts.
const (
	flagDeprecated = 1 << iota
	flagEngines
	flagPrerelease
	flagOdd // the numbers are not those of the text, which has to be read
	flagScript
)

// Fields of a manifest beyond those of package manifest.
const (
	fieldDeprecated manifest.Member = 64 + iota
	fieldIntegrity
	fieldShasum
	fieldTarball
	fieldSize
	fieldScript
	fieldName
	fieldSHA512     // integrity, where it is one such hash: its bytes
	fieldSignatures // see builder.signatures
	fieldCount
)

// record is a version as the compact form has it.
type record struct {
	numbers   [3]uint32
	text      uint32
	fields    uint32 // where the list of fields is; see builder.version
	flags     uint32
	published int64 // milliseconds since 1970, 0 where it is not said
}

func (r *record) put(to []byte) {
	le := binary.LittleEndian
	le.PutUint32(to, r.numbers[0])
	le.PutUint32(to[4:], r.numbers[1])
	le.PutUint32(to[8:], r.numbers[2])
	le.PutUint32(to[12:], r.text)
	le.PutUint32(to[16:], r.fields)
	le.PutUint32(to[20:], r.flags)
	le.PutUint64(to[24:], uint64(r.published))
}

func number(s string, at int) uint32 {
	t := s[at : at+4]
	return uint32(t[0]) | uint32(t[1])<<8 | uint32(t[2])<<16 | uint32(t[3])<<24
}

func recordOf(s string) record {
	s = s[:recordSize]
	return record{
		numbers:   [3]uint32{number(s, 0), number(s, 4), number(s, 8)},
		text:      number(s, 12),
		fields:    number(s, 16),
		flags:     number(s, 20),
		published: int64(uint64(number(s, 24)) | uint64(number(s, 28))<<32),
	}
}

// builder makes the compact form while a document is read.
type builder struct {
	src      *source
	name     string
	registry string
	tarball  string // what the address of every archive begins with, by custom

	flags    uint32
	claimed  string // the name that the document itself has, "" for none
	modified int64  // milliseconds since 1970, 0 where it is not said
	tags     []tag
	records  []record
	texts    []byte
	seen     []seenText // by hash, its size is a power of two
	seenUsed int
	times    []timed
	timeText []byte

	// What is being read, as it stands in the window.
	key    string
	at     int64
	fields [fieldCount]string
	sum    [sha512Size + 2]byte
	signed []byte // of signatures

	order   []ordered
	present []manifest.Member
}

type tag struct{ name, version uint32 }

type seenText struct {
	hash uint64
	at   uint32 // one more than its place, so that 0 is none
}

// timed is an entry of the member "time": its version is part of timeText.
type timed struct {
	from, to int
	at       int64
}

type ordered struct {
	version npmrange.Version
	index   int
}

var builders = sync.Pool{New: func() any {
	return &builder{seen: make([]seenText, 256)}
}}

var seed = maphash.MakeSeed()

var (
	errNoObject = errors.New("it is no JSON object")
	errVersions = errors.New("it lists more than 100000 versions")
	errTexts    = errors.New("its manifests are longer than 67108864 bytes")
)

func newBuilder(name, registry string, src *source) *builder {
	b := builders.Get().(*builder)
	b.src, b.name, b.registry, b.flags = src, name, registry, flagSigned
	b.tarball = registry + name + "/-/" + name[strings.LastIndexByte(name, '/')+1:] + "-"
	return b
}

// release gives the builder's memory to the next one.
func (b *builder) release() {
	if cap(b.texts) > 2*seatTexts || cap(b.records) > 2*seatRecords {
		return // for the garbage collector
	}
	clear(b.seen)
	clear(b.order)
	clear(b.fields[:])
	*b = builder{
		tags:    b.tags[:0],
		records: b.records[:0],
		texts:   b.texts[:0],
		seen:    b.seen[:256],
		times:   b.times[:0], timeText: b.timeText[:0],
		order: b.order[:0], present: b.present[:0], signed: b.signed[:0],
	}
	builders.Put(b)
}

// packument reads a registry's document about a package.
func (b *builder) packument() error {
	var first byte
	if err := b.src.part(func(c *jsonscan.Scanner) {
		c.Peek()
		if strings.HasPrefix(b.src.view()[c.Pos():], "\ufeff") {
			for _, mark := range []byte("\ufeff") {
				c.Take(mark)
			}
		}
		if first = c.Peek(); first == 0 {
			c.Fail()
			return
		}
		c.Take(first)
	}); err != nil {
		return err
	}
	if first != '{' {
		return errNoObject
	}
	return b.members(func(key string) error {
		switch key {
		case "name":
			if err := b.src.part(b.readName); err != nil {
				return err
			}
			if b.claimed != "" && b.claimed != b.name {
				return &otherError{b.claimed}
			}
			return nil
		case "dist-tags":
			return b.src.part(b.distTags)
		case "versions":
			b.records = b.records[:0] // of two members with one name the last counts
			return b.each(b.readVersion, b.keepVersion)
		case "time":
			b.times, b.timeText = b.times[:0], b.timeText[:0]
			b.flags |= flagTimes
			return b.each(b.readTime, b.keepTime)
		case "modified":
			return b.src.part(b.readModified)
		}
		return b.src.skip()
	})
}

// single reads the manifest of one version, which has to name it.
func (b *builder) single(version string) error {
	err := b.src.part(func(c *jsonscan.Scanner) {
		b.key = version
		b.readManifest(c)
	})
	if err != nil {
		return err
	}
	c := jsonscan.New(b.fields[manifest.Version])
	if c.Peek() != '"' || c.Text() != version {
		return errGone
	}
	c = jsonscan.New(b.fields[fieldName])
	if c.Peek() == '"' {
		if name := c.Text(); name != b.name {
			return &otherError{name}
		}
	}
	if err := b.keepVersion(); err != nil {
		return err
	}
	return b.end()
}

// members reads the rest of the document, an object that was entered.
func (b *builder) members(member func(key string) error) error {
	for first := true; ; first = false {
		var key string
		var ended bool
		err := b.src.part(func(c *jsonscan.Scanner) {
			key, ended = "", false
			if first && c.Peek() == '}' {
				ended = true
				c.Take('}')
				return
			}
			if !first {
				if ended = !c.Next('}'); ended {
					return
				}
			}
			key = c.PlainKey()
			switch c.Peek() {
			case 0, '}', ']', ',', ':':
				c.Fail()
			}
		})
		if err != nil {
			return err
		}
		if ended {
			return b.end()
		}
		if err := member(key); err != nil {
			return err
		}
	}
}

// end makes sure that nothing follows.
func (b *builder) end() error {
	for {
		c := jsonscan.New(b.src.view())
		if err := c.End(); err != nil {
			return err
		}
		b.src.i = b.src.n
		if !b.src.more(1) {
			return b.src.failure
		}
	}
}

// each reads the members of the object that comes, one at a time: read sets
// fields of b, and keep keeps them. What is no object has none.
func (b *builder) each(read func(c *jsonscan.Scanner), keep func() error) error {
	entered := false
	for {
		more := true
		err := b.src.part(func(c *jsonscan.Scanner) {
			switch more = true; {
			case entered:
				more = c.Next('}')
			case c.Peek() == '{':
				more = c.Enter('{', '}')
			default:
				c.Skip()
				more = false
			}
			if more {
				read(c)
			}
		})
		if err != nil || !more {
			return err
		}
		entered = true
		if err := keep(); err != nil {
			return err
		}
	}
}

func (b *builder) distTags(c *jsonscan.Scanner) {
	b.tags = b.tags[:0]
	c.Members(func(name string) {
		if version := c.Text(); version != "" && c.Err() == nil {
			b.tags = append(b.tags, tag{b.intern(name), b.intern(version)})
		}
	})
}

// otherError says that a document is about another package.
type otherError struct{ name string }

func (e *otherError) Error() string {
	return fmt.Sprintf("it is about the package %q", e.name[:min(len(e.name), 214)])
}

func (b *builder) readName(c *jsonscan.Scanner) { b.claimed = strings.Clone(c.Text()) }

func (b *builder) readModified(c *jsonscan.Scanner) {
	b.modified = 0
	if at, err := parseTime(c.Text()); err == nil {
		b.modified = at.UnixMilli()
	}
}

func (b *builder) readTime(c *jsonscan.Scanner) {
	b.key, b.at = c.Key(), 0
	if at, err := parseTime(c.Text()); err == nil {
		b.at = at.UnixMilli()
	}
}

func (b *builder) keepTime() error {
	if b.at == 0 {
		return nil
	}
	if len(b.times) == 2*maxVersions {
		return errVersions
	}
	from := len(b.timeText)
	b.timeText = append(b.timeText, b.key...)
	b.times = append(b.times, timed{from, len(b.timeText), b.at})
	return b.room()
}

// parseTime reads a time, at once if it is as JavaScript writes it.
func parseTime(s string) (time.Time, error) {
	if len(s) != len("2006-01-02T15:04:05.000Z") || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
		s[13] != ':' || s[16] != ':' || s[19] != '.' || s[23] != 'Z' {
		return time.Parse(time.RFC3339, s)
	}
	ok := true
	digits := func(from, to int) (n int) {
		for _, c := range []byte(s[from:to]) {
			ok = ok && '0' <= c && c <= '9'
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, day := digits(0, 4), digits(5, 7), digits(8, 10)
	hour, minute, second, ms := digits(11, 13), digits(14, 16), digits(17, 19), digits(20, 23)
	at := time.Date(year, time.Month(month), day, hour, minute, second, ms*1e6, time.UTC)
	// A day that does not exist is moved to one that does.
	if !ok || month < 1 || month > 12 || day < 1 || at.Day() != day || hour > 23 || minute > 59 || second > 59 {
		return time.Parse(time.RFC3339, s)
	}
	return at, nil
}

func (b *builder) readVersion(c *jsonscan.Scanner) {
	b.key = c.Key()
	b.readManifest(c)
}

// readManifest takes the fields of a manifest that matter. What is no object
// has none.
func (b *builder) readManifest(c *jsonscan.Scanner) {
	clear(b.fields[:])
	if c.Peek() != '{' {
		c.Skip()
		return
	}
	for more := c.Enter('{', '}'); more; more = c.Next('}') {
		switch key := c.PlainKey(); key {
		case "name":
			b.fields[fieldName] = c.Raw()
		case "dist":
			b.readDist(c)
		case "deprecated":
			b.fields[fieldDeprecated] = c.Raw()
		case "hasInstallScript":
			b.fields[fieldScript] = c.Raw()
		default:
			if member, ok := manifest.MemberOf(key); ok {
				b.fields[member] = c.Raw()
			} else {
				c.Skip()
			}
		}
	}
}

func (b *builder) readDist(c *jsonscan.Scanner) {
	for f := fieldIntegrity; f <= fieldSize; f++ {
		b.fields[f] = ""
	}
	b.fields[fieldSignatures] = ""
	if c.Peek() != '{' {
		c.Skip()
		return
	}
	for more := c.Enter('{', '}'); more; more = c.Next('}') {
		switch c.PlainKey() {
		case "tarball":
			b.fields[fieldTarball] = c.Raw()
		case "integrity":
			b.fields[fieldIntegrity] = c.Raw()
		case "shasum":
			b.fields[fieldShasum] = c.Raw()
		case "unpackedSize":
			b.fields[fieldSize] = c.Raw()
		case "signatures":
			b.fields[fieldSignatures] = c.Raw()
		default:
			c.Skip()
		}
	}
}

// keepVersion makes a record of what was read.
func (b *builder) keepVersion() error {
	if len(b.records) == maxVersions {
		return errVersions
	}
	r := record{text: b.text(b.key)}
	f := &b.fields
	if !jsonscan.Truthy(f[fieldDeprecated]) {
		f[fieldDeprecated] = ""
	} else {
		r.flags |= flagDeprecated
	}
	if f[manifest.Engines] != "" {
		r.flags |= flagEngines
	}
	r.flags |= b.scripts(f[manifest.Scripts], f[fieldScript])
	if f[fieldIntegrity] != "" {
		f[fieldShasum] = "" // the weaker one is of no use then
	}
	if sum, ok := sha512Of(f[fieldIntegrity], &b.sum); ok {
		f[fieldIntegrity], f[fieldSHA512] = "", sum
	}
	if b.usualTarball(f[fieldTarball]) {
		f[fieldTarball] = ""
	}
	if f[fieldSignatures] != "" {
		f[fieldSignatures] = b.signatures(f[fieldSignatures])
	}
	f[manifest.Scripts], f[fieldScript], f[manifest.Version], f[fieldName] = "", "", "", ""

	b.present = b.present[:0]
	for i := range f {
		// An empty one says as much as none, but of the two names of one member.
		if raw := f[i]; raw != "" && (raw != "{}" && raw != "[]" && raw != "null" || manifest.Member(i) == manifest.BundleDependencies) {
			b.present = append(b.present, manifest.Member(i))
		}
	}
	var list [5 * int(fieldCount)]byte
	n := 0
	for _, field := range b.present {
		var at uint32
		if field == fieldIntegrity || field == fieldShasum || field == fieldTarball || field == fieldSHA512 || field == fieldSignatures {
			at = b.text(f[field])
		} else {
			at = b.intern(f[field])
		}
		list[n] = byte(field)
		binary.LittleEndian.PutUint32(list[n+1:], at)
		n += 5
	}
	r.fields = b.intern(unsafe.String(&list[0], n))
	b.records = append(b.records, r)
	return b.room()
}

// room makes sure that what is kept does not take too much memory.
func (b *builder) room() error {
	switch {
	case len(b.texts) > maxTexts:
		return errTexts
	case len(b.texts) > seatTexts || len(b.records) > seatRecords || len(b.times) > 2*seatRecords:
		return b.src.seat.take(true)
	case len(b.texts) > freeTexts:
		return b.src.seat.take(false)
	}
	return nil
}

// scripts are the flags of the scripts that an installation may run.
func (b *builder) scripts(raw, announced string) (flags uint32) {
	if raw != "" && raw[0] == '{' {
		c := jsonscan.New(raw)
		for more := c.Enter('{', '}'); more; more = c.Next('}') {
			i := slices.Index(manifest.InstallScripts[:], c.PlainKey())
			text := c.Raw()
			if i < 0 {
				continue
			}
			flags &^= flagScript << i
			if len(text) > 2 && text[0] == '"' {
				flags |= flagScript << i
			}
		}
	}
	// An abbreviated document has this in place of the scripts.
	if flags == 0 && jsonscan.Truthy(announced) {
		flags = flagScript << slices.Index(manifest.InstallScripts[:], "install")
	}
	return flags
}

const (
	sha512Begin = `"sha512-`
	sha512Size  = 64
	sha512Text  = (sha512Size + 2) / 3 * 4
)

// sha512Of is the bytes of an integrity, in JSON, that is one SHA-512, and
// written as such are.
func sha512Of(raw string, buf *[sha512Size + 2]byte) (string, bool) {
	if len(raw) != len(sha512Begin)+sha512Text+1 || raw[:len(sha512Begin)] != sha512Begin {
		return "", false
	}
	text := raw[len(sha512Begin) : len(raw)-1]
	n, err := base64.StdEncoding.Strict().Decode(buf[:], unsafe.Slice(unsafe.StringData(text), len(text)))
	if err != nil || n != sha512Size {
		return "", false
	}
	return unsafe.String(&buf[0], n), true
}

// maxSignatures is how many signatures of a version are kept. There is one, or
// two while a registry changes its key.
const maxSignatures = 8

// signatures is the compact form of dist.signatures, which holds until the next
// call: of each, 4 bytes for the place of its key's name, one for its length, and
// its bytes. One that is not as it should be has no bytes, and is wrong.
func (b *builder) signatures(raw string) string {
	c := jsonscan.New(raw)
	if c.Peek() != '[' {
		return ""
	}
	b.signed = b.signed[:0]
	n := 0
	for more := c.Enter('[', ']'); more && n < maxSignatures; more = c.Next(']') {
		if c.Peek() != '{' {
			c.Skip()
			continue
		}
		key, value := "", ""
		for more := c.Enter('{', '}'); more; more = c.Next('}') {
			switch c.PlainKey() {
			case "keyid":
				key = c.Text()
			case "sig":
				value = c.Text()
			default:
				c.Skip()
			}
		}
		b.signed = binary.LittleEndian.AppendUint32(b.signed, b.intern(key))
		at := len(b.signed)
		b.signed = append(b.signed, 0)
		if len(value) <= base64.StdEncoding.EncodedLen(maxSignature) {
			decoded, err := base64.StdEncoding.AppendDecode(b.signed, unsafe.Slice(unsafe.StringData(value), len(value)))
			if size := len(decoded) - at - 1; err == nil && size <= maxSignature {
				b.signed = decoded
				b.signed[at] = byte(size)
			}
		}
		n++
	}
	return unsafe.String(unsafe.SliceData(b.signed), len(b.signed))
}

// usualTarball reports whether an address, in JSON, is the one by custom.
func (b *builder) usualTarball(raw string) bool {
	return len(raw) == len(b.tarball)+len(b.key)+len(`"".tgz`) && raw[1:1+len(b.tarball)] == b.tarball &&
		raw[1+len(b.tarball):len(raw)-len(`.tgz"`)] == b.key && raw[len(raw)-len(`.tgz"`):] == `.tgz"` &&
		url.PathEscape(b.key) == b.key
}

// text adds a text and returns its place.
func (b *builder) text(s string) uint32 {
	at := len(b.texts)
	b.texts = binary.AppendUvarint(b.texts, uint64(len(s)))
	b.texts = append(b.texts, s...)
	return uint32(at)
}

// intern is the place of a text, which is added if it is not there.
func (b *builder) intern(s string) uint32 {
	if 2*b.seenUsed >= len(b.seen) {
		b.more()
	}
	hash := maphash.String(seed, s)
	mask := uint64(len(b.seen) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		switch have := &b.seen[i]; {
		case have.at == 0:
			b.seenUsed++
			*have = seenText{hash, b.text(s) + 1}
			return have.at - 1
		case have.hash == hash:
			if text, ok := textAt(b.texts, have.at-1); ok && string(text) == s {
				return have.at - 1
			}
		}
	}
}

// more doubles the table of texts.
func (b *builder) more() {
	old := b.seen
	b.seen = make([]seenText, 2*len(old))
	mask := uint64(len(b.seen) - 1)
	for _, have := range old {
		if have.at == 0 {
			continue
		}
		i := have.hash & mask
		for b.seen[i].at != 0 {
			i = (i + 1) & mask
		}
		b.seen[i] = have
	}
}

// textAt is the text at a place.
func textAt[T string | []byte](texts T, at uint32) (T, bool) {
	var none T
	if uint64(at) >= uint64(len(texts)) {
		return none, false
	}
	rest := texts[at:]
	length, n := uint64(0), 0
	for shift := 0; ; shift += 7 {
		if n == len(rest) || shift > 28 {
			return none, false
		}
		c := rest[n]
		n++
		length |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
	}
	if length > uint64(len(rest)-n) {
		return none, false
	}
	return rest[n : n+int(length)], true
}

// finish puts the compact form together.
func (b *builder) finish() (data string, err error) {
	if len(b.tags) > maxVersions {
		return "", errVersions
	}
	b.date()
	odd := b.sort()
	size := headSize + tagSize*len(b.tags) + recordSize*len(b.order) + len(b.texts)
	out := make([]byte, size)
	le := binary.LittleEndian
	le.PutUint32(out, uint32(len(b.order)))
	le.PutUint32(out[4:], uint32(odd))
	le.PutUint32(out[8:], uint32(len(b.tags)))
	le.PutUint32(out[12:], b.flags)
	le.PutUint64(out[16:], uint64(b.modified))
	at := headSize
	index := b.indexer()
	for _, t := range b.tags {
		version, _ := textAt(b.texts, t.version)
		le.PutUint32(out[at:], t.name)
		le.PutUint32(out[at+4:], t.version)
		le.PutUint32(out[at+8:], index(version))
		at += tagSize
	}
	for _, o := range b.order {
		b.records[o.index].put(out[at:])
		at += recordSize
	}
	copy(out[at:], b.texts)
	return unsafe.String(&out[0], len(out)), nil
}

// indexer finds the index of a version by its text.
func (b *builder) indexer() func(version []byte) uint32 {
	if len(b.tags) < 4 {
		return func(version []byte) uint32 {
			for i, o := range b.order {
				if text, _ := textAt(b.texts, b.records[o.index].text); string(text) == string(version) {
					return uint32(i)
				}
			}
			return noRecord
		}
	}
	all := make(map[string]uint32, len(b.order))
	for i, o := range b.order {
		text, _ := textAt(b.texts, b.records[o.index].text)
		all[string(text)] = uint32(i)
	}
	return func(version []byte) uint32 {
		if i, ok := all[string(version)]; ok {
			return i
		}
		return noRecord
	}
}

// date gives the records their times. Registries have both in one order.
func (b *builder) date() {
	var byVersion map[string]int64
	next := 0
	for i := range b.records {
		r := &b.records[i]
		text, _ := textAt(b.texts, r.text)
		for skipped := 0; next+skipped < len(b.times) && skipped < 3 && r.published == 0; skipped++ {
			if t := b.times[next+skipped]; string(b.timeText[t.from:t.to]) == string(text) {
				r.published = t.at
				next += skipped + 1
			}
		}
		if r.published != 0 || len(b.times) == 0 {
			continue
		}
		if byVersion == nil {
			byVersion = make(map[string]int64, len(b.times))
			for _, t := range b.times {
				byVersion[string(b.timeText[t.from:t.to])] = t.at
			}
		}
		r.published = byVersion[string(text)]
	}
}

// sort puts the records into order: the highest first, equal ones as the
// registry has them, then those that are no version. Of two with one text the
// last counts.
func (b *builder) sort() (odd int) {
	b.order = b.order[:0]
	var rest []ordered
	rising := true
	for i := range b.records {
		r := &b.records[i]
		text, _ := textAt(b.texts, r.text)
		// The texts stay where they are until the order is made.
		v, err := npmrange.ParseVersionLoose(unsafe.String(unsafe.SliceData(text), len(text)))
		if err != nil {
			r.flags |= flagOdd
			rest = append(rest, ordered{index: i})
			continue
		}
		major, minor, patch := v.Numbers()
		if max(major, minor, patch) > math.MaxUint32 || v.Text() != string(text) {
			r.flags |= flagOdd
		}
		if v.Prerelease() {
			r.flags |= flagPrerelease
		}
		r.numbers = capped(major, minor, patch)
		rising = rising && (len(b.order) == 0 || b.order[len(b.order)-1].version.Less(v))
		b.order = append(b.order, ordered{v, i})
	}
	if rising {
		slices.Reverse(b.order)
	} else {
		slices.SortFunc(b.order, func(x, y ordered) int {
			return cmp.Or(y.version.Compare(x.version), cmp.Compare(x.index, y.index))
		})
		b.order = b.unique(b.order)
	}
	rest = b.unique(rest)
	b.order = append(b.order, rest...)
	return len(rest)
}

// capped is numbers as records have them.
func capped(major, minor, patch uint64) [3]uint32 {
	return [3]uint32{
		uint32(min(major, math.MaxUint32)), uint32(min(minor, math.MaxUint32)), uint32(min(patch, math.MaxUint32)),
	}
}

// unique drops the records for which a later one has the same text, among
// equal versions.
func (b *builder) unique(list []ordered) []ordered {
	out := list[:0]
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && list[to].version.Compare(list[from].version) == 0 {
			to++
		}
		if to == from+1 {
			out = append(out, list[from])
			from = to
			continue
		}
		last := make(map[string]int, to-from)
		for _, o := range list[from:to] {
			text, _ := textAt(b.texts, b.records[o.index].text)
			last[string(text)] = o.index
		}
		for _, o := range list[from:to] {
			text, _ := textAt(b.texts, b.records[o.index].text)
			if at, first := last[string(text)]; first {
				out = append(out, ordered{o.version, at})
				delete(last, string(text))
			}
		}
		from = to
	}
	return out
}
