package registry

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
	"unique"

	"dsh/internal/install/manifest"
	"dsh/internal/install/manifest/jsonscan"
	"dsh/internal/npmrange"
)

// Packument is a registry's document about one package, in a compact form: a
// manifest is read when it is looked at. It is safe for use by several
// goroutines.
type Packument struct {
	Name     string
	Registry string
	Tags     map[string]string // versions by dist-tag; not to be changed

	records string // see compact.go
	texts   string
	count   int // of records
	odd     int // of them, at the end, are no versions
	latest  int // record of the tag latest, or -1
	flags   uint32
	changed int64 // in milliseconds, 0 where it is not said

	kept bool // it was kept on disk, and the registry did not send it now
	lent bool // the memory of the texts is for something else afterwards

	mu        sync.Mutex
	manifests map[int]*Manifest // those that were looked at
}

// ParsePackument reads a registry's document about the package of that name.
// What does not matter here may be malformed.
func ParsePackument(name, registry, text string) (*Packument, error) {
	src := source{r: strings.NewReader(text), left: defaultMaxDocument, buf: takeWindow(int64(len(text)))}
	data, err := compacted(document{name: name, registry: registry}, &src)
	if err != nil {
		return nil, err
	}
	return openPackument(name, registry, data)
}

// compacted reads a document into the compact form.
func compacted(d document, src *source) (string, error) {
	defer src.release()
	src.fill()
	b := newBuilder(d.name, d.registry, src)
	defer b.release()
	var err error
	if d.version != "" {
		err = b.single(d.version)
	} else {
		err = b.packument()
	}
	if err != nil {
		return "", err
	}
	return b.finish()
}

var errCompact = errors.New("it is not in the compact form")

// openPackument is the packument of a compact form.
func openPackument(name, registry, data string) (*Packument, error) {
	if len(data) < headSize {
		return nil, errCompact
	}
	count, odd, tags := uint64(number(data, 0)), uint64(number(data, 4)), uint64(number(data, 8))
	if odd > count || headSize+tags*tagSize+count*recordSize > uint64(len(data)) {
		return nil, errCompact
	}
	p := &Packument{
		Name: name, Registry: registry, Tags: make(map[string]string, tags),
		count: int(count), odd: int(odd),
		latest: -1, flags: number(data, 12), changed: int64(uint64(number(data, 16)) | uint64(number(data, 20))<<32),
	}
	tagged := data[headSize : headSize+tags*tagSize]
	p.records = data[headSize+len(tagged):][:count*recordSize]
	p.texts = data[headSize+len(tagged)+len(p.records):]
	for i := 0; i < len(tagged); i += tagSize {
		tag, version := p.text(number(tagged, i)), p.text(number(tagged, i+4))
		p.Tags[tag] = version
		if tag == "latest" {
			p.latest = -1
			if at := number(tagged, i+8); uint64(at) < count {
				p.latest = int(at)
			}
		}
	}
	return p, nil
}

func (p *Packument) text(at uint32) string {
	text, _ := textAt(p.texts, at)
	return text
}

func (p *Packument) record(i int) record { return recordOf(p.records[i*recordSize:]) }

// version is the version of a record that is one.
func (p *Packument) version(r *record) npmrange.Version {
	if r.flags&(flagPrerelease|flagOdd) == 0 {
		return npmrange.Release(p.text(r.text), uint64(r.numbers[0]), uint64(r.numbers[1]), uint64(r.numbers[2]))
	}
	// It was read when the record was made.
	v, _ := npmrange.ParseVersionLoose(p.text(r.text))
	return v
}

// dated reports whether the document says which versions are older than a time,
// as far as its registry knows that at all.
func (p *Packument) dated(before time.Time) bool {
	return p.flags&flagTimes != 0 || p.changed != 0 && !time.UnixMilli(p.changed).After(before)
}

// find is the record of a version, spelt as the registry spells it, or -1.
func (p *Packument) find(version string) int {
	if p.latest >= 0 && p.Tags["latest"] == version {
		return p.latest
	}
	readable := p.count - p.odd
	v, err := npmrange.ParseVersionLoose(version)
	if err != nil {
		for i := readable; i < p.count; i++ {
			if r := p.record(i); p.text(r.text) == version {
				return i
			}
		}
		return -1
	}
	for i := sort.Search(readable, func(i int) bool {
		r := p.record(i)
		return p.version(&r).Compare(v) <= 0
	}); i < readable; i++ {
		r := p.record(i)
		if p.text(r.text) == version {
			return i
		}
		if p.version(&r).Compare(v) != 0 {
			break
		}
	}
	return -1
}

// Versions are the versions there are, the highest first. Strings that are no
// version are left out.
func (p *Packument) Versions() []string { return p.highest(p.count - p.odd) }

func (p *Packument) highest(n int) []string {
	out := make([]string, min(n, p.count-p.odd))
	for i := range out {
		r := p.record(i)
		out[i] = p.text(r.text)
	}
	return out
}

// Published is when a version was published; zero where that is not known.
func (p *Packument) Published(version string) time.Time {
	i := p.find(version)
	if i < 0 {
		return time.Time{}
	}
	r := p.record(i)
	return r.time()
}

func (r *record) time() time.Time {
	if r.published == 0 {
		return time.Time{}
	}
	return time.UnixMilli(r.published).UTC()
}

// Manifest is the manifest of a version, spelt as the registry spells it. It
// is nil where there is none. It is shared, and not to be changed.
func (p *Packument) Manifest(version string) (*Manifest, error) {
	i := p.find(version)
	if i < 0 {
		return nil, nil
	}
	return p.manifest(i)
}

func (p *Packument) manifest(i int) (*Manifest, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m, ok := p.manifests[i]; ok {
		return m, nil
	}
	r := p.record(i)
	m, err := p.read(&r)
	if err != nil {
		return nil, &NetworkError{
			Doing: "get the versions of " + p.Name, Host: ShownAddress(p.Registry),
			Cause: fmt.Sprintf("the manifest of %s cannot be read: %v", p.text(r.text), err), Err: err,
		}
	}
	if p.manifests == nil {
		p.manifests = map[int]*Manifest{}
	}
	p.manifests[i] = m
	return m, nil
}

// read reads the fields of a manifest.
func (p *Packument) read(r *record) (*Manifest, error) {
	var members manifest.Members
	var own [fieldCount - fieldDeprecated]string
	for list := p.text(r.fields); len(list) >= 5; list = list[5:] {
		field, raw := manifest.Member(list[0]), p.text(number(list, 1))
		switch {
		case int(field) < len(members):
			members[field] = raw
		case field >= fieldDeprecated && field < fieldCount:
			own[field-fieldDeprecated] = raw
		}
	}
	version := p.text(r.text)
	if p.lent {
		version = strings.Clone(version)
		copyTexts(members[:], own[:])
	}
	read, err := members.Manifest(p.Name)
	if err != nil {
		return nil, err
	}
	text := func(field manifest.Member) string {
		c := jsonscan.New(own[field-fieldDeprecated])
		if c.Peek() != '"' {
			return ""
		}
		s := c.Text()
		err = cmp.Or(err, c.Err())
		return s
	}
	m := &Manifest{Manifest: *read, Published: r.time()}
	m.Version = version
	if !m.forLinux() {
		m.Libc = nil // abbreviated documents say nothing of it, so none may
	}
	m.Dist = Dist{Integrity: text(fieldIntegrity), Shasum: text(fieldShasum), Tarball: text(fieldTarball)}
	if sum := own[fieldSHA512-fieldDeprecated]; sum != "" {
		m.Dist.Integrity = "sha512-" + base64.StdEncoding.EncodeToString([]byte(sum))
	}
	m.Dist.signed = p.flags&flagSigned != 0
	m.Dist.Signatures = p.signatures(own[fieldSignatures-fieldDeprecated])
	m.Dist.Tarball = tarballAddress(p.Registry, p.Name, m.Version, m.Dist.Tarball)
	if size, err := strconv.ParseInt(own[fieldSize-fieldDeprecated], 10, 64); err == nil && size > 0 {
		m.UnpackedSize = size
	}
	if r.flags&flagDeprecated != 0 {
		// Registries also hold true.
		m.Deprecated = cmp.Or(text(fieldDeprecated), "this version is deprecated")
	}
	for i, name := range manifest.InstallScripts {
		if r.flags&(flagScript<<i) != 0 {
			m.Scripts = append(m.Scripts, name)
		}
	}
	return m, err
}

// signatures reads the compact form of a version's signatures.
func (p *Packument) signatures(text string) (list []Signature) {
	for len(text) >= 5 {
		key, size := p.text(number(text, 0)), int(text[4])
		if text = text[5:]; size > len(text) {
			break
		}
		// All versions have one of few keys.
		list = append(list, Signature{Key: unique.Make(key).Value(), Value: text[:size]})
		text = text[size:]
	}
	return list
}

// copyTexts moves texts to memory of their own, which they share.
func copyTexts(lists ...[]string) {
	size := 0
	for _, list := range lists {
		for _, text := range list {
			size += len(text)
		}
	}
	var b strings.Builder
	b.Grow(size)
	for _, list := range lists {
		for i, text := range list {
			from := b.Len()
			b.WriteString(text)
			list[i] = b.String()[from:]
		}
	}
}

// node is engines.node of a version.
func (p *Packument) node(r *record) (wanted string) {
	for list := p.text(r.fields); len(list) >= 5; list = list[5:] {
		if manifest.Member(list[0]) != manifest.Engines {
			continue
		}
		c := jsonscan.New(p.text(number(list, 1)))
		c.Members(func(key string) {
			if key == "node" {
				wanted = c.Text()
			}
		})
	}
	return wanted
}

// exact is the manifest of a version that was asked for by its number.
func (p *Packument) exact(version string) (*Manifest, error) {
	m, err := p.Manifest(version)
	if err == nil && m == nil {
		err = p.noMatch("ETARGET", version, time.Time{})
	}
	return m, err
}

// newest is how many versions a NoMatchError names.
const newest = 5

func (p *Packument) noMatch(code, wanted string, before time.Time) error {
	return &NoMatchError{
		Code: code, Name: p.Name, Registry: p.Registry, Wanted: wanted, Before: before,
		Newest: p.highest(newest), Tags: p.Tags,
	}
}

// tagList writes tags with latest first.
func tagList(tags map[string]string) string {
	names := slices.SortedFunc(maps.Keys(tags), func(a, b string) int {
		if first := cmp.Compare(rank(a), rank(b)); first != 0 {
			return first
		}
		return strings.Compare(a, b)
	})
	var list []string
	for _, name := range names[:min(newest, len(names))] {
		list = append(list, name+" "+tags[name])
	}
	if len(names) > newest {
		list = append(list, "…")
	}
	return strings.Join(list, ", ")
}

func rank(tag string) int {
	if tag == "latest" {
		return 0
	}
	return 1
}
