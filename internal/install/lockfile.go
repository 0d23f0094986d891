package install

import (
	"fmt"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/npmrange"
)

// LockName is the lockfile's name in a profile.
const LockName = "dsh-lock.yaml"

const lockVersion = "1"

// Origin is where the content of a package came from, as the lockfile keeps
// it: no path of one machine, nothing that differs between two runs.
type Origin struct {
	Kind  Kind
	Place string // URL: the address; Archive, Folder, Link: slash-separated path relative to the profile; Git: "git+https://host/repository.git#<commit>&path:/folder"; Registry: the archive's address where it is not the customary one
}

// Package is one resolved package: what it is, where its content comes from
// and what it needs. It holds what the lockfile says of it and, but for Node,
// nothing else, so that a package from the lockfile and one from a registry are
// the same.
type Package struct {
	Name      string // its own name, also where it is installed under an alias
	Version   string
	Origin    Origin
	Integrity store.Integrity // zero for links

	Dependencies  map[string]string
	Optional      map[string]string // optionalDependencies
	Peers         map[string]string
	OptionalPeers []string          // sorted
	Bundled       []string          // sorted names that its archive brings along
	OS, CPU, Libc []string          // platforms; empty means any
	Bin           map[string]string // program name -> file

	// Node is the releases of Node.js that it is for, "" for any. The lockfile
	// does not hold it: whoever is in there was found to be right.
	Node string
}

// Lock is the content of a lockfile.
type Lock struct {
	Wanted map[string]string  // the profile's dependencies as its manifest writes them
	Nodes  map[string]Located // by path below the profile, "node_modules/a/node_modules/b"

	// What it was made under.
	Overrides map[string]string // by selector, see [Overrides]
	AutoPeers bool              // peers that nobody provides are among the packages
	Omitted   []string          // sorted names that are left to the installation

	// Sources is what archives of [KeptDir] were made of, by the name of the
	// dependency.
	Sources map[string]Written
}

// Located is a package at its place in the tree.
type Located struct {
	*Package
	Optional bool // nothing fails when it cannot be installed on this platform
}

// MadeFor says why the lockfile is not one for a profile of such settings, whose
// installation provides what provides says; nil is not known. The error is of
// class Package.
func (l *Lock) MadeFor(s Settings, provides func(name string) (version string, ok bool)) error {
	changed := sortedKeys(s.Overrides.differFrom(l))
	switch {
	case len(changed) > 0:
		return fault.Errorf(fault.Package, "the overrides of %s are not those that %s was made under", strings.Join(changed, ", "), LockName)
	case s.AutoPeers != l.AutoPeers:
		return fault.Errorf(fault.Package, "%s says autoInstallPeers: %t, and %s was made for %t", WorkspaceName, s.AutoPeers, LockName, l.AutoPeers)
	}
	for _, name := range l.Omitted {
		if !provider(provides).omits(s.Hosts, name) {
			return fault.Errorf(fault.Package, "%s leaves %s to the installation, which it is not left to any more", LockName, name)
		}
	}
	if s.Hosts != OmitHosts {
		return nil
	}
	for _, at := range sortedKeys(l.Nodes) {
		n := l.Nodes[at]
		for _, wanted := range []map[string]string{n.Dependencies, n.Package.Optional} {
			for name := range wanted {
				if provider(provides).omits(s.Hosts, name) && !slices.Contains(l.Omitted, name) {
					return fault.Errorf(fault.Package, "%s does not leave %s, which %s needs, to the installation", LockName, name, n.describe())
				}
			}
		}
	}
	return nil
}

// lockSpot is a place in the tree of a lockfile.
type lockSpot struct {
	Located // without a package where only something below stands in the lockfile
	at      string
	up      *lockSpot // nil for the profile itself
	below   map[string]*lockSpot
	lock    *Lock
	linked  *lockSpot // where the package really stands that this is a link to; nil for none
}

// spotsOf is the tree of a lockfile, whose top is the profile; nil of nil.
func spotsOf(l *Lock) *lockSpot {
	if l == nil {
		return nil
	}
	top := &lockSpot{lock: l}
	spots := make(map[string]*lockSpot, len(l.Nodes)+1)
	spots[""] = top
	var spotAt func(at string) *lockSpot
	spotAt = func(at string) *lockSpot {
		s := spots[at]
		if s != nil {
			return s
		}
		up := spotAt(parentPlace(at))
		s = &lockSpot{Located: l.Nodes[at], at: at, up: up, lock: l}
		if up.below == nil {
			up.below = map[string]*lockSpot{}
		}
		up.below[nameAt(at)] = s
		spots[at] = s
		return s
	}
	for at := range l.Nodes {
		spotAt(at)
	}
	for at, n := range l.Nodes {
		if n.Origin.Kind == Link {
			spots[at].linked = spots[n.Origin.Place]
		}
	}
	return top
}

// lookUp finds a name as [Lock.lookUp] does, and what a link to a package above
// leads to. It is nil where nothing is found, and without a package where
// somebody brings the name along.
func (s *lockSpot) lookUp(name string) *lockSpot {
	for at := s; at != nil; at = at.up {
		if found := at.below[name]; found != nil && found.Package != nil {
			if found.linked != nil {
				return found.linked
			}
			return found
		}
		if at.Package != nil && slices.Contains(at.Bundled, name) {
			return &lockSpot{lock: s.lock}
		}
	}
	return nil
}

// at is the package at a path. A nil lock has none.
func (l *Lock) at(path string) (Located, bool) {
	if l == nil {
		return Located{}, false
	}
	n, ok := l.Nodes[path]
	return n, ok
}

// newest is the newest locked version of a registry package that a spec
// allows, nil where there is none. A nil lock has none.
func (l *Lock) newest(spec Spec) *Package {
	if l == nil {
		return nil
	}
	var best *Package
	var bestVersion npmrange.Version
	for _, n := range l.Nodes {
		if n.Origin.Kind != Registry || n.Name != spec.Target || (spec.Wanted != "" && !(isRange(spec.Wanted) && satisfies(n.Version, spec.Wanted))) {
			continue
		}
		if v, err := npmrange.ParseVersionLoose(n.Version); err == nil && (best == nil || bestVersion.Less(v)) {
			best, bestVersion = n.Package, v
		}
	}
	return best
}

// version is the package's, "" where there is none.
func (l Located) version() string {
	if l.Package == nil {
		return ""
	}
	return l.Package.Version
}

// sortedKeys is the keys of m in order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Bytes is the lockfile's text, the same for the same content: keys are
// sorted, and nothing in it depends on time or machine.
func (l *Lock) Bytes() []byte {
	w := lockWriter{out: make([]byte, 0, 512+400*len(l.Nodes))}
	w.out = append(w.out, "# Written by dsh: the exact content of node_modules. Commit it with package.json.\n"...)
	w.scalar(0, "lockfileVersion", lockVersion)
	if l.AutoPeers {
		w.scalar(0, "autoInstallPeers", "true")
	}
	w.scalars(0, "overrides", l.Overrides)
	w.list(0, "omitted", l.Omitted)
	w.scalars(0, "dependencies", l.Wanted)
	if len(l.Sources) > 0 {
		w.section(0, "sources")
	}
	for _, name := range sortedKeys(l.Sources) {
		w.section(1, name)
		w.scalar(2, "from", l.Sources[name].From)
		w.scalar(2, "integrity", l.Sources[name].Integrity.String())
	}
	if len(l.Nodes) > 0 {
		w.section(0, "packages")
	}
	for _, at := range sortedKeys(l.Nodes) {
		n := l.Nodes[at]
		w.section(1, at)
		if n.Name != nameAt(at) {
			w.scalar(2, "name", n.Name)
		}
		w.scalar(2, "version", n.Version)
		w.scalar(2, originKeys[n.Origin.Kind], n.Origin.Place)
		w.scalar(2, "integrity", n.Integrity.String())
		if n.Optional {
			w.scalar(2, "optional", "true")
		}
		w.list(2, "os", n.OS)
		w.list(2, "cpu", n.CPU)
		w.list(2, "libc", n.Libc)
		w.list(2, "bundled", n.Bundled)
		w.scalars(2, "dependencies", n.Dependencies)
		w.scalars(2, "optionalDependencies", n.Package.Optional)
		w.scalars(2, "peerDependencies", n.Peers)
		w.list(2, "optionalPeers", n.OptionalPeers)
		w.scalars(2, "bin", n.Bin)
	}
	return w.out
}

// originKeys is the key under which an entry holds its place.
var originKeys = map[Kind]string{Registry: "tarball", URL: "url", Archive: "archive", Folder: "folder", Link: "link", Git: "git"}

// nameAt is the name under which the package at a path is installed.
func nameAt(at string) string {
	return at[strings.LastIndex(at, "node_modules/")+len("node_modules/"):]
}

// lockWriter writes the subset of YAML that lockfiles use: block mappings of
// quoted or plain strings, and lists in brackets.
type lockWriter struct {
	out  []byte
	keys []string // room for those of one mapping
}

func (w *lockWriter) key(depth int, key string) {
	for range depth {
		w.out = append(w.out, "  "...)
	}
	w.out = appendScalar(w.out, key)
	w.out = append(w.out, ':')
}

func (w *lockWriter) section(depth int, key string) {
	w.key(depth, key)
	w.out = append(w.out, '\n')
}

func (w *lockWriter) scalar(depth int, key, value string) {
	if value == "" {
		return
	}
	w.key(depth, key)
	w.out = append(w.out, ' ')
	w.out = append(appendScalar(w.out, value), '\n')
}

func (w *lockWriter) scalars(depth int, key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	w.section(depth, key)
	w.keys = w.keys[:0]
	for k := range values {
		w.keys = append(w.keys, k)
	}
	slices.Sort(w.keys)
	for _, k := range w.keys {
		w.key(depth+1, k)
		w.out = append(w.out, ' ')
		w.out = append(appendScalar(w.out, values[k]), '\n')
	}
}

func (w *lockWriter) list(depth int, key string, values []string) {
	if len(values) == 0 {
		return
	}
	w.key(depth, key)
	w.out = append(w.out, " ["...)
	for i, v := range values {
		if i > 0 {
			w.out = append(w.out, ", "...)
		}
		w.out = appendScalar(w.out, v)
	}
	w.out = append(w.out, "]\n"...)
}

// appendScalar writes s plain where every YAML reader takes it for a string,
// else in double quotes with JSON's escapes.
func appendScalar(out []byte, s string) []byte {
	if isPlain(s) {
		return append(out, s...)
	}
	out = append(out, '"')
	if isUnescaped(s) {
		return append(append(out, s...), '"')
	}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ' || r == 0x7f:
			out = fmt.Appendf(out, `\u%04x`, r)
		default:
			out = append(out, string(r)...)
		}
	}
	return append(out, '"')
}

// isUnescaped reports whether quotes around s are enough.
func isUnescaped(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func isPlain(s string) bool {
	if s == "" || !plainFirst[s[0]] {
		return false
	}
	digits, dots := true, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case !plainBytes[c]:
			return false
		case c == '.':
			dots++
		case c < '0' || c > '9':
			digits = false
		}
	}
	if c := s[0]; c >= '0' && c <= '9' {
		// 1.2.3 and 1.2.3-rc.1 are no numbers in YAML; 12, 1.5, 1e3 and 0x1f are.
		return dots >= 2
	}
	if len(s) <= len("false") {
		switch strings.ToLower(s) {
		case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
			return false
		}
	}
	return !digits
}

// The bytes that may stand in a plain scalar, and at its beginning.
var plainBytes, plainFirst = func() (anywhere, first [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789^_/") {
		anywhere[c], first[c] = true, true
	}
	for _, c := range []byte(".-+~@=") {
		anywhere[c] = true
	}
	return anywhere, first
}()

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
