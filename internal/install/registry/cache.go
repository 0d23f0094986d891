package registry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"dsh/internal/staging"
)

// cache keeps documents on disk in their compact form, one file for each, in a
// directory for each registry. A file that is broken, cut or about something
// else counts as absent, and what cannot be written is not kept. A nil cache
// keeps nothing.
type cache struct {
	dir      string
	readOnly bool
	asker    func(registry string) string // who asks it; nil: nobody in particular
	places   sync.Map                     // directory by registry

	mu      sync.Mutex
	waiting []*keptDocument
	wake    *sync.Cond // nil until something waits
	closed  bool
	done    sync.WaitGroup
}

func newCache(dir string, readOnly bool) *cache { return &cache{dir: dir, readOnly: readOnly} }

const (
	freshTime   = 5 * time.Minute // a document is used so long without asking
	longestTime = 24 * time.Hour  // and no longer, whatever its server allows
)

// keptDocument is a document with what its server said about keeping it.
type keptDocument struct {
	document
	fetched      time.Time
	fresh        time.Duration // how long its server allows to use it
	etag         string
	lastModified string
	noStore      bool

	packument *Packument
	data      string // its compact form
}

func keptFrom(d document, p *Packument, data string, header http.Header, now time.Time) *keptDocument {
	k := &keptDocument{document: d, packument: p, data: data}
	k.renew(header, now)
	return k
}

// renew takes what an answer says about keeping the document.
func (k *keptDocument) renew(header http.Header, now time.Time) {
	k.fetched, k.fresh = now, 0
	for _, line := range header["Cache-Control"] {
		for directive := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
			switch strings.ToLower(name) {
			case "no-store":
				k.noStore = true
			case "max-age":
				if n, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
					k.fresh = min(time.Duration(n)*time.Second, longestTime)
				}
			}
		}
	}
	// What was on its way for some time is older than it looks.
	if n, err := strconv.ParseUint(header.Get("Age"), 10, 31); err == nil {
		k.fresh = max(0, k.fresh-time.Duration(n)*time.Second)
	}
	// That it still holds may come without these.
	if etag := header.Get("Etag"); etag != "" && len(etag) <= 1024 {
		k.etag = etag
	}
	if modified := header.Get("Last-Modified"); modified != "" && len(modified) <= 1024 {
		k.lastModified = modified
	}
}

// ask adds to a question whether the document still holds.
func (k *keptDocument) ask(header http.Header) {
	if k.etag != "" {
		header["If-None-Match"] = []string{k.etag}
	}
	if k.lastModified != "" {
		header["If-Modified-Since"] = []string{k.lastModified}
	}
}

// usable reports whether a kept document is used without asking.
func (c *Client) usable(d document, k *keptDocument) bool {
	age, gone := c.now.Sub(k.fetched), k.packument.flags&flagGone != 0
	switch {
	case c.mode == Offline:
		return true
	case c.mode == Fresh || c.mode == UseCache && gone:
		return false
	case c.mode == PreferOffline:
		return !gone || age < longestTime
	}
	allowed := max(freshTime, k.fresh)
	if d.version != "" {
		// A version stays what it is; that it is deprecated is all that may come.
		allowed = longestTime
	}
	// Another command may have fetched it since this one began.
	return -freshTime < age && age < allowed
}

// keptVersion is the manifest of a version as a kept document about all versions
// has it, or nil.
func (c *Client) keptVersion(all document, version string) (m *Manifest) {
	if c.mode == Fresh {
		return nil
	}
	c.cache.lend(all, func(kept *keptDocument) {
		if age := c.now.Sub(kept.fetched); c.mode == UseCache && (age <= -freshTime || age >= longestTime) {
			return
		}
		kept.packument.lent = true
		m, _ = kept.packument.Manifest(version)
	})
	return m
}

// maxFile is how many bytes of a file are read.
const maxFile = maxTexts + maxTexts/2

// A file begins with these, which change with the form.
const fileMagic = "dsh-doc1"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// file is the name of the file of a document, "" where it can have none.
func (c *cache) file(d document) string {
	name := fileName(d)
	if len(name) > 200 {
		return ""
	}
	return filepath.Join(c.place(d.registry), name)
}

// place is the directory of a registry.
func (c *cache) place(registry string) string {
	if place, ok := c.places.Load(registry); ok {
		return place.(string)
	}
	key := registry
	if c.asker != nil {
		if who := c.asker(registry); who != "" {
			key += "\x00" + who // what one may read is not for all
		}
	}
	sum := sha256.Sum256([]byte(key))
	place := filepath.Join(c.dir, hex.EncodeToString(sum[:10]))
	c.places.Store(registry, place)
	return place
}

// fileName is a name that is a file name everywhere, and another for names that
// differ only in case.
func fileName(d document) string {
	var b strings.Builder
	b.Grow(len(d.name) + len(d.version) + 8)
	switch {
	case d.version != "":
		b.WriteString("v-")
	case d.full:
		b.WriteString("f-")
	default:
		b.WriteString("p-")
	}
	for _, part := range []string{d.name, "@" + d.version} {
		for i := range len(part) {
			switch c := part[i]; {
			case 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.' || c == '@':
				b.WriteByte(c)
			case 'A' <= c && c <= 'Z':
				b.WriteByte('!')
				b.WriteByte(c + 'a' - 'A')
			case c == '/':
				b.WriteByte('+')
			default:
				b.WriteByte('%')
				b.WriteString(hex.EncodeToString([]byte{c}))
			}
		}
		if d.version == "" {
			break
		}
	}
	return b.String()
}

// load is what is kept of a document, or nil.
func (c *cache) load(d document) (kept *keptDocument) {
	c.lend(d, func(k *keptDocument) {
		data := strings.Clone(k.data)
		own := *k
		own.etag, own.lastModified, own.data = strings.Clone(k.etag), strings.Clone(k.lastModified), data
		p, err := openPackument(d.name, d.registry, data)
		if err != nil {
			return
		}
		own.packument = p
		kept = &own
	})
	return kept
}

// readers are buffers for files.
var readers = sync.Pool{New: func() any {
	buf := make([]byte, 64<<10)
	return &buf
}}

// lend calls use with what is kept of a document, if anything is. Its memory is
// for other files afterwards.
func (c *cache) lend(d document, use func(*keptDocument)) {
	if c == nil {
		return
	}
	file := c.file(d)
	if file == "" {
		return
	}
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close() // it was only read
	buf := readers.Get().(*[]byte)
	defer readers.Put(buf)
	n := 0
	for {
		m, err := f.Read((*buf)[n:])
		if n += m; err == io.EOF || err == nil && n < len(*buf) {
			break // a shorter file than the buffer comes at once
		}
		if err != nil || len(*buf) > maxFile {
			return
		}
		grown := make([]byte, 4*len(*buf))
		copy(grown, (*buf)[:n])
		*buf = grown
	}
	if n == 0 {
		return
	}
	if k := parseKept(d, unsafe.String(&(*buf)[0], n)); k != nil {
		use(k)
	}
}

// parseKept reads a file; nil is one that is not of this document and whole.
func parseKept(d document, data string) *keptDocument {
	const head = len(fileMagic) + 4
	if len(data) < head || data[:len(fileMagic)] != fileMagic {
		return nil
	}
	rest := data[head:]
	if number(data, len(fileMagic)) != crc32.Checksum(unsafe.Slice(unsafe.StringData(rest), len(rest)), castagnoli) {
		return nil
	}
	if len(rest) < 16 {
		return nil
	}
	k := &keptDocument{document: d}
	k.fetched = time.UnixMilli(int64(uint64(number(rest, 0)) | uint64(number(rest, 4))<<32))
	k.fresh = time.Duration(number(rest, 8)) * time.Second
	ok := true
	rest = rest[12:]
	next := func() string {
		if !ok || len(rest) < 4 || uint64(number(rest, 0)) > uint64(len(rest)-4) {
			ok = false
			return ""
		}
		n := number(rest, 0)
		text := rest[4 : 4+n]
		rest = rest[4+n:]
		return text
	}
	registry, name, version := next(), next(), next()
	k.etag, k.lastModified = next(), next()
	if !ok || registry != d.registry || name != d.name || version != d.version {
		return nil
	}
	k.data = rest
	p, err := openPackument(d.name, d.registry, rest)
	if err != nil {
		return nil
	}
	k.packument = p
	return k
}

// append adds the content of the file to out, which is empty.
func (k *keptDocument) append(out []byte) []byte {
	const head = len(fileMagic) + 4
	le := binary.LittleEndian
	out = append(out, fileMagic...)
	out = le.AppendUint32(out, 0)
	out = le.AppendUint64(out, uint64(k.fetched.UnixMilli()))
	out = le.AppendUint32(out, uint32(k.fresh/time.Second))
	for _, text := range []string{k.registry, k.name, k.version, k.etag, k.lastModified} {
		out = le.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
	}
	out = append(out, k.data...)
	le.PutUint32(out[len(fileMagic):], crc32.Checksum(out[head:], castagnoli))
	return out
}

// save has a document written in the background.
func (c *cache) save(k *keptDocument) {
	if c == nil || c.readOnly || c.file(k.document) == "" {
		return
	}
	if k.noStore {
		c.forget(k.document)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	if c.wake == nil {
		c.wake = sync.NewCond(&c.mu)
		c.done.Go(c.write)
	}
	c.waiting = append(c.waiting, k)
	c.wake.Signal()
}

// forget removes what is kept of a document.
func (c *cache) forget(d document) {
	if c == nil || c.readOnly {
		return
	}
	if file := c.file(d); file != "" {
		_ = staging.OS.Remove(file) // it is seldom there
	}
}

// close waits until all is written.
func (c *cache) close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	if c.wake != nil {
		c.wake.Signal()
	}
	c.mu.Unlock()
	c.done.Wait()
	if c.wake != nil || c.readOnly {
		return
	}
	// Who writes takes away what was left by processes that were killed. Here
	// nothing was written.
	c.places.Range(func(_, place any) bool {
		_ = staging.SweepTemp(place.(string)) // there may be no such directory
		return true
	})
}

// write writes what waits until the cache is closed.
func (c *cache) write() {
	stages := map[string]*stage{}
	var content []byte
	for {
		c.mu.Lock()
		for len(c.waiting) == 0 && !c.closed {
			c.wake.Wait()
		}
		batch := c.waiting
		c.waiting = nil
		c.mu.Unlock()
		if len(batch) == 0 {
			break
		}
		for _, k := range batch {
			place := c.place(k.registry)
			if stages[place] == nil {
				stages[place] = newStage(place)
			}
			content = k.append(content[:0])
			stages[place].write(c.file(k.document), content)
		}
	}
	for _, s := range stages {
		s.close()
	}
}

// stage is where the files of one registry are made before they get their
// names. What fails is not kept: the next command asks again.
type stage struct {
	path   string
	dir    *staging.Dir // nil where there can be none
	remove func() error
	made   int
}

func newStage(place string) *stage {
	path, remove, err := staging.TempDir(place)
	if err != nil {
		return &stage{}
	}
	s := &stage{path: path, remove: remove}
	if s.dir, err = staging.OpenDir(path); err != nil {
		s.dir = nil
	}
	return s
}

func (s *stage) write(file string, data []byte) {
	if s.dir == nil {
		return
	}
	s.made++
	name := strconv.Itoa(s.made)
	if s.dir.WriteFile(name, data, 0o600) == nil {
		_ = staging.OS.Rename(filepath.Join(s.path, name), file)
	}
}

func (s *stage) close() {
	if s.dir != nil {
		_ = s.dir.Close()
	}
	if s.remove != nil {
		_ = s.remove()
	}
}
