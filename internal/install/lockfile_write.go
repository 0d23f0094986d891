package install

import (
	"fmt"
	"slices"
	"strings"
)

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
		if n.AgentPlugin {
			w.scalar(2, "agentPlugin", "true")
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
