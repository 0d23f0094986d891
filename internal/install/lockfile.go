package install

import (
	"fmt"
	"slices"
	"sort"
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
	Place string // URL: the address; Archive, Folder, Link: slash-separated path relative to the profile; Registry: the archive's address where it is not the customary one
}

// Package is one resolved package: what it is, where its content comes from
// and what it needs. It holds what the lockfile says of it and nothing else,
// so that a package from the lockfile and one from a registry are the same.
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
}

// Lock is the content of a lockfile.
type Lock struct {
	Wanted map[string]string  // the profile's dependencies as its manifest writes them
	Nodes  map[string]Located // by path below the profile, "node_modules/a/node_modules/b"

	// What it was made under.
	Overrides map[string]string // by selector, see [Overrides]
	AutoPeers bool              // peers that nobody provides are among the packages
	Omitted   []string          // sorted names that are left to the installation
}

// Located is a package at its place in the tree.
type Located struct {
	*Package
	Optional bool // nothing fails when it cannot be installed on this platform
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
	sort.Strings(keys)
	return keys
}

// Bytes is the lockfile's text, the same for the same content: keys are
// sorted, and nothing in it depends on time or machine.
func (l *Lock) Bytes() []byte {
	w := lockWriter{out: []byte("# Written by dsh: the exact content of node_modules. Commit it with package.json.\n")}
	w.scalar(0, "lockfileVersion", lockVersion)
	w.scalars(0, "dependencies", l.Wanted)
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
var originKeys = map[Kind]string{Registry: "tarball", URL: "url", Archive: "archive", Folder: "folder", Link: "link"}

// nameAt is the name under which the package at a path is installed.
func nameAt(at string) string {
	return at[strings.LastIndex(at, "node_modules/")+len("node_modules/"):]
}

// lockWriter writes the subset of YAML that lockfiles use: block mappings of
// quoted or plain strings, and lists in brackets.
type lockWriter struct{ out []byte }

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
	for _, k := range sortedKeys(values) {
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

func isPlain(s string) bool {
	if s == "" {
		return false
	}
	digits, dots := true, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
		case c == '.' && i > 0:
			dots++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '^', c == '_', c == '/':
			digits = false
		case (c == '-' || c == '+' || c == '~' || c == '@' || c == '=') && i > 0:
			digits = false
		default:
			return false
		}
	}
	if c := s[0]; c >= '0' && c <= '9' {
		// 1.2.3 and 1.2.3-rc.1 are no numbers in YAML; 12, 1.5, 1e3 and 0x1f are.
		return dots >= 2
	}
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return false
	}
	return !digits
}

// ParseLock reads a lockfile's text. Errors name line and cause and are of
// class Package.
func ParseLock(file string, text []byte) (*Lock, error) {
	var lock *Lock
	err := checkLockFormat(string(text))
	if err == nil {
		var root []lockEntry
		if root, err = parseLockTree(string(text)); err == nil {
			lock, err = readLock(root)
		}
	}
	if err != nil {
		return nil, fault.Errorf(fault.Package, "read lockfile %s: %w", file, err)
	}
	return lock, nil
}

// lockEntry is one "key: value" of a lockfile, or a key with entries below.
type lockEntry struct {
	key, value string
	list       []string
	below      []lockEntry
	line       int
}

func (e *lockEntry) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", e.line, fmt.Sprintf(format, args...))
}

func parseLockTree(text string) ([]lockEntry, error) {
	root := &lockEntry{}
	open := []*lockEntry{root} // the entries that a line of each depth belongs to
	line := 0
	for text != "" {
		var raw string
		raw, text, _ = strings.Cut(text, "\n")
		line++
		raw = strings.TrimSuffix(raw, "\r")
		content := strings.TrimLeft(raw, " ")
		if content == "" || content[0] == '#' {
			continue
		}
		indent := len(raw) - len(content)
		if indent%2 != 0 || indent/2 >= len(open) {
			return nil, fmt.Errorf("line %d: unexpected indentation", line)
		}
		entry, err := parseLockLine(content)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		entry.line = line
		parent := open[indent/2]
		if parent.value != "" || parent.list != nil {
			return nil, fmt.Errorf("line %d: %q cannot hold entries", line, parent.key)
		}
		parent.below = append(parent.below, entry)
		open = append(open[:indent/2+1], &parent.below[len(parent.below)-1])
	}
	return root.below, nil
}

func parseLockLine(s string) (lockEntry, error) {
	var e lockEntry
	var err error
	if e.key, s, err = cutScalar(s, ":"); err != nil {
		return e, err
	}
	s, ok := strings.CutPrefix(s, ":")
	if !ok {
		return e, fmt.Errorf("expected %q behind %q", ":", e.key)
	}
	s = strings.Trim(s, " ")
	if s == "" {
		return e, nil
	}
	if inside, ok := strings.CutPrefix(s, "["); ok {
		e.list = []string{}
		for {
			var item string
			if item, inside, err = cutScalar(strings.TrimLeft(inside, " "), ",]"); err != nil {
				return e, err
			}
			e.list = append(e.list, item)
			if inside == "]" {
				return e, nil
			}
			if inside, ok = strings.CutPrefix(inside, ","); !ok {
				return e, fmt.Errorf("expected %q or %q in the list of %q", ",", "]", e.key)
			}
		}
	}
	e.value, s, err = cutScalar(s, "")
	if err == nil && s != "" {
		err = fmt.Errorf("unexpected text behind the value of %q", e.key)
	}
	return e, err
}

// cutScalar takes one plain or double-quoted string off the front of s. A
// plain one ends before any byte of ends.
func cutScalar(s, ends string) (value, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		end := len(s)
		if i := strings.IndexAny(s, ends); ends != "" && i >= 0 {
			end = i
		}
		if !isPlain(s[:end]) {
			return "", "", fmt.Errorf("%q needs double quotes", s[:end])
		}
		return s[:end], s[end:], nil
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

func readLock(entries []lockEntry) (*Lock, error) {
	lock := &Lock{Wanted: map[string]string{}, Nodes: map[string]Located{}}
	version := ""
	for i := range entries {
		e := &entries[i]
		var err error
		switch e.key {
		case "lockfileVersion":
			version = e.value
		case "dependencies":
			lock.Wanted, err = e.scalars()
		case "packages":
			for j := range e.below {
				p := &e.below[j]
				if _, repeated := lock.Nodes[p.key]; repeated {
					return nil, p.errorf("%q stands here twice", p.key)
				}
				if lock.Nodes[p.key], err = readLocated(p); err != nil {
					return nil, err
				}
			}
		default:
			err = e.errorf("unknown key %q", e.key)
		}
		if err != nil {
			return nil, err
		}
	}
	if version != lockVersion {
		return nil, fmt.Errorf("lockfileVersion is %q, and this dsh reads version %s", version, lockVersion)
	}
	return lock, nil
}

func readLocated(at *lockEntry) (Located, error) {
	if !validPath(at.key) {
		return Located{}, at.errorf("%q is no place in node_modules", at.key)
	}
	n := Located{Package: &Package{Name: nameAt(at.key)}}
	for i := range at.below {
		e := &at.below[i]
		var err error
		switch e.key {
		case "name":
			n.Name = e.value
		case "version":
			n.Version = e.value
		case "integrity":
			if n.Integrity, err = store.ParseIntegrity(e.value); err != nil {
				err = e.errorf("%v", err)
			}
		case "optional":
			n.Optional = e.value == "true"
		case "os":
			n.OS = e.list
		case "cpu":
			n.CPU = e.list
		case "libc":
			n.Libc = e.list
		case "bundled":
			n.Bundled = e.list
		case "dependencies":
			n.Dependencies, err = e.scalars()
		case "optionalDependencies":
			n.Package.Optional, err = e.scalars()
		case "peerDependencies":
			n.Peers, err = e.scalars()
		case "optionalPeers":
			n.OptionalPeers = e.list
		case "bin":
			n.Bin, err = e.scalars()
		default:
			err = e.errorf("unknown key %q", e.key)
			for kind, key := range originKeys {
				if key == e.key {
					n.Origin, err = Origin{Kind: kind, Place: e.value}, nil
				}
			}
		}
		if err != nil {
			return Located{}, err
		}
	}
	switch {
	case !ValidName(n.Name):
		return Located{}, at.errorf("%q is no package name", n.Name)
	case n.Origin.Kind != Link && n.Integrity.IsZero():
		return Located{}, at.errorf("%q has no integrity", at.key)
	}
	return n, nil
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

func (e *lockEntry) scalars() (map[string]string, error) {
	values := make(map[string]string, len(e.below))
	for i := range e.below {
		b := &e.below[i]
		if b.value == "" {
			return nil, b.errorf("%q has no value", b.key)
		}
		values[b.key] = b.value
	}
	return values, nil
}
