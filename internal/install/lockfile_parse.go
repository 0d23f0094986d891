package install

import (
	"fmt"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/store"
)

// ParseLock reads a lockfile's text. Errors name line and cause and are of
// class Package.
func ParseLock(file string, text []byte) (*Lock, error) {
	whole := string(text) // of which all texts in the lock are parts
	err := checkLockFormat(whole)
	if err == nil {
		p := lockParser{lock: &Lock{Wanted: map[string]string{}, Nodes: make(map[string]Located, len(whole)/350)}}
		if err = p.parse(whole); err == nil {
			return p.lock, nil
		}
	}
	return nil, fault.Errorf(fault.Package, "read lockfile %s: %w", file, err)
}

// lockParser reads a lockfile line by line.
type lockParser struct {
	lock    *Lock
	version string
	line    int
	// open is what the lines of each depth belong to.
	open  [4]lockParent
	depth int // that a line may have at most

	node     Located // that is being read
	at       string  // its place, "" for none
	nodeLine int

	source     Written // that is being read
	sourceName string  // of its dependency, "" for none
	sourceLine int

	overridesLine int
}

// lockParent is a key with entries below it.
type lockParent struct {
	key   string
	holds lockContent
	texts *map[string]string
}

// lockContent is what may stand below a key.
type lockContent uint8

const (
	holdsNothing lockContent = iota
	holdsTop
	holdsTexts
	holdsPackages
	holdsFields
	holdsSources
	holdsSource
)

func (p *lockParser) parse(text string) error {
	p.open[0].holds = holdsTop
	for text != "" {
		raw := text
		if end := strings.IndexByte(text, '\n'); end >= 0 {
			raw, text = text[:end], text[end+1:]
		} else {
			text = ""
		}
		p.line++
		indent := 0
		for indent < len(raw) && raw[indent] == ' ' {
			indent++
		}
		content := strings.TrimSuffix(raw[indent:], "\r")
		if content == "" || content[0] == '#' {
			continue
		}
		if indent%2 != 0 || indent/2 > p.depth {
			return p.errorf("unexpected indentation")
		}
		if err := p.entry(indent/2, content); err != nil {
			return err
		}
	}
	if _, err := newOverrides(p.lock.Overrides); err != nil {
		return fmt.Errorf("line %d: %w", p.overridesLine, err)
	}
	if p.version != lockVersion {
		return fmt.Errorf("lockfileVersion is %q, and this dsh reads version %s", p.version, lockVersion)
	}
	if err := p.endSource(); err != nil {
		return err
	}
	return p.endNode()
}

func (p *lockParser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.line, fmt.Sprintf(format, args...))
}

// entry reads one line of a depth.
func (p *lockParser) entry(depth int, content string) error {
	parent := &p.open[depth]
	if parent.holds == holdsNothing {
		return p.errorf("%q cannot hold entries", parent.key)
	}
	key, rest, err := cutScalar(content, ':')
	if err != nil {
		return fmt.Errorf("line %d: %w", p.line, err)
	}
	if rest == "" || rest[0] != ':' {
		return p.errorf("expected %q behind %q", ":", key)
	}
	v := lockValue{parser: p, key: key, text: strings.Trim(rest[1:], " ")}
	below := lockParent{key: key}
	switch parent.holds {
	case holdsTop:
		if p.at != "" {
			err = p.endNode()
		}
		if err == nil {
			err = p.endSource()
		}
		if err == nil {
			err = p.topEntry(&v, &below)
		}
	case holdsTexts:
		if *parent.texts == nil {
			*parent.texts = map[string]string{}
		}
		if _, twice := (*parent.texts)[key]; twice {
			return p.errorf("%q stands here twice", key)
		}
		(*parent.texts)[key], err = v.scalar()
	case holdsPackages:
		if err = p.endNode(); err == nil {
			below.holds = holdsFields
			err = p.beginNode(&v)
		}
	case holdsFields:
		err = p.field(&v, &below)
	case holdsSources:
		if err = p.endSource(); err == nil {
			below.holds = holdsSource
			err = p.beginSource(&v)
		}
	case holdsSource:
		err = p.sourceField(&v)
	}
	if err != nil {
		return err
	}
	if depth+1 < len(p.open) {
		p.open[depth+1] = below
		p.depth = depth + 1
	} else {
		p.depth = depth
	}
	return nil
}

func (p *lockParser) topEntry(v *lockValue, below *lockParent) (err error) {
	switch v.key {
	case "lockfileVersion":
		if p.version, err = v.scalar(); err == nil && p.version != lockVersion {
			err = &LockFormatError{p.version}
		}
	case "autoInstallPeers":
		p.lock.AutoPeers, err = v.boolean()
	case "overrides":
		p.overridesLine = p.line
		err = v.texts(below, &p.lock.Overrides)
	case "omitted":
		p.lock.Omitted, err = v.list()
	case "dependencies":
		err = v.texts(below, &p.lock.Wanted)
	case "sources":
		below.holds, err = holdsSources, v.nothing()
	case "packages":
		below.holds, err = holdsPackages, v.nothing()
	default:
		err = p.errorf("unknown key %q", v.key)
	}
	return err
}

// beginSource begins what the archive of a dependency was made of.
func (p *lockParser) beginSource(v *lockValue) error {
	if _, repeated := p.lock.Sources[v.key]; repeated {
		return p.errorf("%q stands here twice", v.key)
	}
	if !ValidName(v.key) {
		return p.errorf("%q is no package name", v.key)
	}
	p.source, p.sourceName, p.sourceLine = Written{}, v.key, p.line
	return v.nothing()
}

func (p *lockParser) sourceField(v *lockValue) (err error) {
	switch v.key {
	case "from":
		p.source.From, err = v.scalar()
	case "integrity":
		p.source.Integrity, err = v.integrity()
	default:
		err = p.errorf("unknown key %q", v.key)
	}
	return err
}

// endSource adds the source that was being read.
func (p *lockParser) endSource() error {
	if p.sourceName == "" {
		return nil
	}
	if p.source.From == "" || p.source.Integrity.IsZero() {
		return fmt.Errorf("line %d: the source of %q has to say from where it is, and its integrity", p.sourceLine, p.sourceName)
	}
	if p.lock.Sources == nil {
		p.lock.Sources = map[string]Written{}
	}
	p.lock.Sources[p.sourceName] = p.source
	p.sourceName = ""
	return nil
}

// beginNode begins the package at a place.
func (p *lockParser) beginNode(v *lockValue) error {
	if _, repeated := p.lock.Nodes[v.key]; repeated {
		return p.errorf("%q stands here twice", v.key)
	}
	if !validPath(v.key) {
		return p.errorf("%q is no place in node_modules", v.key)
	}
	p.node = Located{Package: &Package{Name: nameAt(v.key)}}
	p.at, p.nodeLine = v.key, p.line
	return v.nothing()
}

// endNode adds the package that was being read.
func (p *lockParser) endNode() error {
	if p.at == "" {
		return nil
	}
	switch {
	case !ValidName(p.node.Name):
		return fmt.Errorf("line %d: %q is no package name", p.nodeLine, p.node.Name)
	case p.node.AgentPlugin && (p.node.Origin.Kind == Link || parentPlace(p.at) != "" || strings.Contains(nameAt(p.at), "/")):
		return fmt.Errorf("line %d: %q is no place for an Agent Plugin", p.nodeLine, p.at)
	case p.node.Origin.Kind != Link && p.node.Integrity.IsZero():
		return fmt.Errorf("line %d: %q has no integrity", p.nodeLine, p.at)
	}
	p.lock.Nodes[p.at] = p.node
	p.at = ""
	return nil
}

func (p *lockParser) field(v *lockValue, below *lockParent) (err error) {
	n := &p.node
	switch v.key {
	case "name":
		n.Name, err = v.scalar()
	case "version":
		n.Version, err = v.scalar()
	case "integrity":
		n.Integrity, err = v.integrity()
	case "optional":
		n.Optional, err = v.boolean()
	case "agentPlugin":
		n.AgentPlugin, err = v.boolean()
	case "os":
		n.OS, err = v.list()
	case "cpu":
		n.CPU, err = v.list()
	case "libc":
		n.Libc, err = v.list()
	case "bundled":
		n.Bundled, err = v.list()
	case "optionalPeers":
		n.OptionalPeers, err = v.list()
	case "dependencies":
		err = v.texts(below, &n.Dependencies)
	case "optionalDependencies":
		err = v.texts(below, &n.Package.Optional)
	case "peerDependencies":
		err = v.texts(below, &n.Peers)
	case "bin":
		err = v.texts(below, &n.Bin)
	default:
		err = p.errorf("unknown key %q", v.key)
		for kind, key := range originKeys {
			if key == v.key {
				n.Origin.Kind = kind
				n.Origin.Place, err = v.scalar()
			}
		}
	}
	return err
}

// lockValue is what stands behind a key.
type lockValue struct {
	parser    *lockParser
	key, text string
}

// nothing is an error unless the value is left out.
func (v *lockValue) nothing() error {
	if v.text != "" {
		return v.parser.errorf("%q holds entries and no value", v.key)
	}
	return nil
}

// texts makes the lines below the key entries of a mapping.
func (v *lockValue) texts(below *lockParent, into *map[string]string) error {
	below.holds, below.texts = holdsTexts, into
	return v.nothing()
}

func (v *lockValue) scalar() (string, error) {
	if v.text == "" {
		return "", v.parser.errorf("%q has no value", v.key)
	}
	value, rest, err := cutScalar(v.text, 0)
	if err != nil {
		return "", fmt.Errorf("line %d: %w", v.parser.line, err)
	}
	if rest != "" {
		return "", v.parser.errorf("unexpected text behind the value of %q", v.key)
	}
	return value, nil
}

func (v *lockValue) integrity() (id store.Integrity, err error) {
	text, err := v.scalar()
	if err == nil {
		if id, err = store.ParseIntegrity(text); err != nil {
			err = fmt.Errorf("line %d: %w", v.parser.line, err)
		}
	}
	return id, err
}

func (v *lockValue) boolean() (bool, error) {
	text, err := v.scalar()
	if err == nil && text != "true" {
		err = v.parser.errorf("%q is true or left out", v.key)
	}
	return err == nil, err
}

func (v *lockValue) list() ([]string, error) {
	rest, ok := strings.CutPrefix(v.text, "[")
	if !ok {
		return nil, v.parser.errorf("%q must be a list in brackets", v.key)
	}
	var list []string
	for {
		item, after, err := cutScalar(strings.TrimLeft(rest, " "), ',')
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", v.parser.line, err)
		}
		list = append(list, item)
		if after == "]" {
			return list, nil
		}
		if rest, ok = strings.CutPrefix(after, ","); !ok {
			return nil, v.parser.errorf("expected %q or %q in the list of %q", ",", "]", v.key)
		}
	}
}

// cutScalar takes one plain or double-quoted string off the front of s. A
// plain one ends before end, 0 for none, in a list also before a bracket.
func cutScalar(s string, end byte) (value, rest string, err error) {
	if s == "" || s[0] != '"' {
		length := len(s)
		if end != 0 {
			if i := strings.IndexByte(s, end); i >= 0 {
				length = i
			}
		}
		if end == ',' {
			if i := strings.IndexByte(s[:length], ']'); i >= 0 {
				length = i
			}
		}
		if !isPlain(s[:length]) {
			return "", "", fmt.Errorf("%q needs double quotes", s[:length])
		}
		return s[:length], s[length:], nil
	}
	if i := strings.IndexAny(s[1:], `"\\`) + 1; i > 1 && s[i] == '"' {
		return s[1:i], s[i+1:], nil // nothing in it is escaped
	}
	var out []byte
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			if len(out) == 0 {
				return "", "", fmt.Errorf("an empty string has no meaning here")
			}
			return string(out), s[i+1:], nil
		case c != '\\':
			out = append(out, c)
		case strings.HasPrefix(s[i+1:], "u") && len(s) >= i+6:
			var r rune
			if _, err := fmt.Sscanf(s[i+2:i+6], "%04x", &r); err != nil {
				return "", "", fmt.Errorf("bad escape %q", s[i:i+6])
			}
			out = append(out, string(r)...)
			i += 5
		case i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			out = append(out, s[i+1])
			i++
		default:
			return "", "", fmt.Errorf("bad escape behind %q", s[:i])
		}
	}
	return "", "", fmt.Errorf("the quote that begins %q is not closed", s)
}

// LockFormatError is a lockfile of a format that this dsh does not know.
type LockFormatError struct{ Version string }

func (e *LockFormatError) Error() string {
	return fmt.Sprintf("lockfileVersion is %q, and this dsh reads version %s; a newer dsh may have written it", e.Version, lockVersion)
}

// checkLockFormat looks at the version of a lockfile before anything else, for
// the rest may be written in another way.
func checkLockFormat(text string) error {
	for line := range strings.Lines(text) {
		if version, ok := strings.CutPrefix(line, "lockfileVersion:"); ok {
			if version = strings.Trim(strings.TrimSpace(version), `"'`); version != lockVersion && version != "" {
				return &LockFormatError{version}
			}
			return nil
		}
	}
	return nil
}

// validPath reports whether at is "node_modules/a/node_modules/@s/b…".
func validPath(at string) bool {
	rest, ok := strings.CutPrefix(at, "node_modules/")
	if !ok {
		return false
	}
	for name := range strings.SplitSeq(rest, "/node_modules/") {
		if !ValidName(name) {
			return false
		}
	}
	return true
}
