package install

import (
	"path/filepath"
	"strings"

	"dsh/internal/fault"
)

// Kind says where the content of a package comes from.
type Kind uint8

// The kinds of package source.
const (
	Registry Kind = iota // a version of a registry package
	URL                  // an archive at an http(s) address
	Archive              // an archive on this machine
	Folder               // a folder on this machine, copied
	Link                 // a folder on this machine, linked
	Git                  // a commit of a git repository, or a folder in it
)

// Spec is one package as a person or a manifest asks for it.
type Spec struct {
	Name   string // under which name it is installed; "" until its package.json is read
	Kind   Kind
	Target string // Registry: the package's own name, which an alias hides
	Wanted string // Registry: version, range or tag; "" is the tag latest
	Place  string // URL: the address; Archive, Folder, Link: an absolute native path
	// Inside is of a URL or Archive the folder of the archive that is the
	// package, slash-separated and clean; "" is its top.
	Inside string
	Forced string     // of a URL: "s3" or "gcs", which only a build with the tag cloud can fetch
	Git    *GitSource // of kind Git, else nil
	// Relative says that a manifest wrote Place relative to the profile.
	Relative bool
	Text     string // as it was written
	// Plugin says whether what is asked for may be an Agent Plugin.
	Plugin PluginMode
}

// String is what was written, in the form in which it was written. What may be
// secret in it is too: [Spec.Shown] is for messages.
func (s Spec) String() string { return s.Text }

// Shown is what was written without what may be secret in it.
func (s Spec) Shown() string { return ShownSpec(s.Text) }

// ShownSpec is a spec as messages may show it: an address in it is without
// user, password and query, which can be secrets. The user of an ssh address is
// part of its place.
func ShownSpec(text string) string {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok || strings.HasSuffix(scheme, "file") || strings.HasSuffix(scheme, "link") {
		return text
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	if host, port, _ := strings.Cut(authority, ":"); host != "[" && strings.Trim(port, "0123456789") != "" && !strings.Contains(authority, "@") {
		// No port: a password that should have been escaped ends behind the slash.
		if at := strings.LastIndexByte(path, '@'); at >= 0 {
			authority, path, _ = strings.Cut(path[at+1:], "/")
			path = "/" + path
		}
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, _, secret := strings.Cut(authority[:at], ":")
		authority = authority[at+1:]
		if !secret && strings.HasSuffix(scheme, "ssh") {
			authority = user + "@" + authority
		}
	}
	path, fragment, cut := strings.Cut(path, "#")
	if cut {
		fragment = "#" + fragment
	}
	path, _, _ = strings.Cut(path, "?")
	return scheme + "://" + authority + path + fragment
}

// SpecError says why a text is no package spec that can be installed.
type SpecError struct {
	Text, Reason, Remedy string
}

func (e *SpecError) Error() string {
	return "package spec " + quote(ShownSpec(e.Text)) + " " + e.Reason
}

// Hint implements fault.Hinted.
func (e *SpecError) Hint() string { return e.Remedy }

// Class implements fault.Classed.
func (e *SpecError) Class() fault.Class { return fault.Other }

// ParseSpec reads one argument of `dsh plugin add`: name, name@version,
// name@range, name@tag, alias@npm:name@wanted, or a place, alone or behind
// "name@". A place is a git repository in any form that npm or pnpm has, a page
// of one in a browser, an http(s) address of an archive, or a local path; behind
// an archive, //folder is a folder in it. Relative paths are taken from dir and
// become absolute. As in pnpm, a bare folder is linked and a file: folder is
// copied.
func ParseSpec(text, dir string) (Spec, error) {
	spec, err := parseArgument(text, dir)
	if err != nil {
		return Spec{}, err
	}
	spec.Relative, spec.Text = false, text
	if spec.Kind == Registry {
		spec.Wanted = strings.TrimSpace(spec.Wanted)
		if !isRange(spec.Wanted) && !isTag(spec.Wanted) {
			return Spec{}, &SpecError{Text: text, Reason: "asks for " + quote(spec.Wanted) + ", which is no version, range or tag"}
		}
	}
	return spec, nil
}

func parseArgument(text, dir string) (Spec, error) {
	if real, ok := strings.CutPrefix(text, "npm:"); ok {
		if name, rest, ok := splitName(real); ok {
			return Spec{Name: name, Kind: Registry, Target: name, Wanted: rest}, nil
		}
	}
	if name, rest, ok := splitName(text); ok && !isScp(text) && !(rest == "" && hasArchiveName(text)) {
		return parseWanted(text, name, rest, dir)
	}
	spec, err := parsePlace(text, text, dir) // no name in front: a place
	if err == nil && spec.Kind == Registry {
		err = &SpecError{Text: text, Reason: "is not a package name"}
	}
	return spec, err
}

// ParseDependency reads one entry of a manifest's dependencies. Relative
// paths are taken from dir, the manifest's directory.
func ParseDependency(name, wanted, dir string) (Spec, error) {
	spec, err := parseWanted(wanted, name, wanted, dir)
	if err == nil {
		spec.Text = wanted
	}
	return spec, err
}

// parseWanted reads what stands behind "name@".
func parseWanted(text, name, wanted, dir string) (Spec, error) {
	if isPlainWanted(wanted) { // nearly all, and asked for often
		return Spec{Name: name, Kind: Registry, Target: name, Wanted: wanted}, nil
	}
	if real, ok := strings.CutPrefix(wanted, "npm:"); ok {
		target, rest, ok := splitName(real)
		if !ok {
			return Spec{}, &SpecError{Text: text, Reason: "has no package name behind npm:", Remedy: "write it as " + name + "@npm:NAME@VERSION"}
		}
		return Spec{Name: name, Kind: Registry, Target: target, Wanted: rest}, nil
	}
	spec, err := parsePlace(text, wanted, dir)
	if err != nil {
		return Spec{}, err
	}
	spec.Name = name
	if spec.Kind == Registry {
		spec.Target, spec.Wanted = name, wanted
	}
	return spec, nil
}

// isPlainWanted reports that a text can only be a version, range or tag.
func isPlainWanted(wanted string) bool {
	for i := range len(wanted) {
		if c := wanted[i]; !nameBytes[c] && c != ' ' && c != '^' && c != '<' && c != '>' && c != '=' && c != '|' && c != '+' || c == '.' && i == 0 {
			return false
		}
	}
	return !hasArchiveName(wanted)
}

// isTag reports whether s can be a dist-tag: what stands in an address as it is.
func isTag(s string) bool {
	return s == "" || isNameText(s)
}

// placeParser reads one place.
type placeParser struct {
	text  string // the whole spec, for errors
	place string
	dir   string // from which relative paths are taken
}

func (p placeParser) refuse(reason, remedy string) (Spec, error) {
	return Spec{}, &SpecError{Text: p.text, Reason: reason, Remedy: remedy}
}

// parsePlace reads an address or a path. What is neither comes back as
// Registry, for the caller to read as a version, range or tag.
func parsePlace(text, place, dir string) (Spec, error) {
	p := placeParser{text, place, dir}
	if strings.ContainsFunc(place, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return p.refuse("has control characters in it", "")
	}
	if isScp(place) {
		return p.scp(place)
	}
	scheme, rest, hasScheme := strings.Cut(place, ":")
	if strings.ContainsAny(scheme, `/\#`) || len(scheme) == 1 && filepath.VolumeName(place) != "" {
		hasScheme = false // a path or o/r with a colon in it, or a Windows drive
	}
	if !hasScheme {
		return p.path()
	}
	if strings.HasPrefix(rest, ":") {
		return p.forced(strings.ToLower(scheme), rest[1:])
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "file":
		return p.local(strings.TrimPrefix(rest, "//"), Folder)
	case "link":
		return p.link(rest)
	case "http", "https":
		return p.address()
	case "git+https", "git+http", "git+ssh", "git+file", "ssh", "git":
		return p.git(scheme, rest)
	case "github", "gitlab", "bitbucket", "gist", "sourcehut":
		return p.hosted(scheme, rest)
	case "npm":
		return p.refuse("is an alias without a name", "write it as NAME@"+place)
	case "workspace", "catalog":
		return p.refuse("only has a meaning inside its author's workspace", "")
	case "jsr":
		return p.refuse("names a package of jsr.io, which is no npm registry", "say @jsr:registry=https://npm.jsr.io in .npmrc and write it as @jsr/SCOPE__NAME")
	case "patch", "portal":
		return p.refuse("is a form that only yarn has", "")
	case "s3", "gs", "gcs":
		return p.refuse("has an unknown kind "+quote(scheme+":"), "an object store is asked for with s3::https://… or gcs::https://…")
	}
	return p.refuse("has an unknown kind "+quote(scheme+":"), "")
}

// splitName takes a package name off the front of "name@rest". It reports
// false where text does not begin with a name that may be installed.
func splitName(text string) (name, rest string, ok bool) {
	from := 0
	if strings.HasPrefix(text, "@") {
		from = 1
	}
	name = text
	if at := strings.IndexByte(text[from:], '@'); at >= 0 {
		name, rest = text[:from+at], text[from+at+1:]
	}
	return name, rest, ValidName(name)
}

// ValidName says whether name can be the name of a package: what the registry
// ever allowed, old upper-case names included, and nothing that could mean
// another place on disk.
func ValidName(name string) bool {
	if len(name) > 214 || name == "" || name[0] == '~' {
		return false
	}
	base := name
	if name[0] == '@' {
		scope, rest, ok := strings.Cut(name[1:], "/")
		if !ok || scope == "" || scope == "." || scope == ".." || !isNameText(scope) {
			return false
		}
		base = rest
	}
	return base != "" && base[0] != '.' && isNameText(base) && base != "node_modules" && base != "favicon.ico"
}

func isNameText(s string) bool {
	for i := range len(s) {
		if !nameBytes[s[i]] {
			return false
		}
	}
	return true
}

// nameBytes is which bytes stand in names.
var nameBytes = func() (valid [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789~!*'()._-") {
		valid[c] = true
	}
	return valid
}()
