package install

import (
	"net/url"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// Kind says where the content of a package comes from.
type Kind uint8

// The kinds of package source.
const (
	Registry Kind = iota // a version of a registry package
	URL                  // a gzipped tar archive at an http(s) address
	Archive              // a gzipped tar archive on this machine
	Folder               // a folder on this machine, copied
	Link                 // a folder on this machine, linked
)

// Spec is one package as a person or a manifest asks for it.
type Spec struct {
	Name   string // under which name it is installed; "" until its package.json is read
	Kind   Kind
	Target string // Registry: the package's own name, which an alias hides
	Wanted string // Registry: version, range or tag; "" is the tag latest
	Place  string // URL: the address; Archive, Folder, Link: an absolute native path
	// Relative says that a manifest wrote Place relative to the profile.
	Relative bool
	Text     string // as it was written
}

// SpecError says why a text is no package spec that can be installed.
type SpecError struct {
	Text, Reason, Remedy string
}

func (e *SpecError) Error() string {
	text := e.Text
	if strings.Contains(text, "://") {
		text = registry.ShownAddress(text) // without what may be secret in it
	}
	return "package spec " + quote(text) + " " + e.Reason
}

// Hint implements fault.Hinted.
func (e *SpecError) Hint() string { return e.Remedy }

// Class implements fault.Classed.
func (e *SpecError) Class() fault.Class { return fault.Other }

// ParseSpec reads one argument of `dsh plugin add`: name, name@version,
// name@range, name@tag, alias@npm:name@wanted, an http(s) address of an
// archive, or a local path, alone or behind "name@". Relative paths are taken
// from dir and become absolute. As in pnpm, a bare folder is linked and a file: folder is copied.
func ParseSpec(text, dir string) (Spec, error) {
	spec, err := parseArgument(text, dir)
	if err != nil {
		return Spec{}, err
	}
	spec.Relative, spec.Text = false, text
	return spec, nil
}

func parseArgument(text, dir string) (Spec, error) {
	name, rest, ok := splitName(strings.TrimPrefix(text, "npm:"))
	if ok && strings.HasPrefix(text, "npm:") {
		return Spec{Name: name, Kind: Registry, Target: name, Wanted: rest}, nil
	}
	if ok {
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
	return parseWanted(wanted, name, wanted, dir)
}

// parseWanted reads what stands behind "name@".
func parseWanted(text, name, wanted, dir string) (Spec, error) {
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

// parsePlace reads an address or a path. What is neither comes back as
// Registry, for the caller to read as a version, range or tag.
func parsePlace(text, place, dir string) (Spec, error) {
	unsupported := func(reason, remedy string) (Spec, error) {
		return Spec{}, &SpecError{Text: text, Reason: reason, Remedy: remedy}
	}
	if strings.HasPrefix(place, "git@") {
		return unsupported("names a git repository, and git packages cannot be installed", "use the address of a .tgz archive of it, or a local folder")
	}
	scheme, rest, hasScheme := strings.Cut(place, ":")
	if len(scheme) == 1 && filepath.VolumeName(place) != "" {
		hasScheme = false // a Windows drive
	}
	if hasScheme {
		switch strings.ToLower(scheme) {
		case "file":
			return localSpec(strings.TrimPrefix(rest, "//"), dir, Folder), nil
		case "link":
			spec := localSpec(rest, dir, Link)
			spec.Kind = Link
			return spec, nil
		case "http", "https":
			u, err := url.Parse(place)
			if err != nil || u.Host == "" {
				return unsupported("is not a valid address", "")
			}
			if archive := hostArchive(u); archive != "" {
				return unsupported("is a git repository, and git packages cannot be installed", "use the address of an archive: "+archive)
			}
			if strings.HasSuffix(u.Path, ".git") {
				return unsupported("is a git repository, and git packages cannot be installed", "use the address of a .tgz archive")
			}
			return Spec{Kind: URL, Place: place}, nil
		case "npm":
			return unsupported("is an alias without a name", "write it as NAME@"+place)
		case "workspace", "catalog":
			return unsupported("only has a meaning inside its author's workspace", "")
		case "git", "ssh", "git+https", "git+ssh", "git+http", "git+file", "github", "gitlab", "bitbucket", "gist":
			return unsupported("names a git repository, and git packages cannot be installed", "use the address of a .tgz archive of it, or a local folder")
		}
		return unsupported("has an unknown kind "+quote(scheme+":"), "")
	}
	switch {
	case place == "." || place == ".." || hasPathPrefix(place), filepath.IsAbs(place), strings.HasPrefix(place, "~/"):
		return localSpec(place, dir, Link), nil
	case ownerRepo(place):
		return unsupported("names a git repository, and git packages cannot be installed",
			"use the address of a .tgz archive of it; a local folder is written ./"+place)
	}
	return Spec{Kind: Registry}, nil
}

// localSpec makes an absolute spec of a local path: an archive by its name,
// else what folders are in this form.
func localSpec(place, dir string, folder Kind) Spec {
	kind := folder
	for _, suffix := range []string{".tgz", ".tar.gz"} {
		if strings.HasSuffix(strings.ToLower(place), suffix) {
			kind = Archive
		}
	}
	if len(place) > 2 && place[0] == '/' && filepath.VolumeName(place[1:]) != "" {
		place = place[1:] // file:///C:/folder
	}
	native := filepath.FromSlash(place)
	if rest, ok := strings.CutPrefix(place, "~/"); ok {
		native = filepath.Join(userHome(), filepath.FromSlash(rest))
	}
	relative := !filepath.IsAbs(native)
	if relative {
		native = filepath.Join(dir, native)
	}
	return Spec{Kind: kind, Place: filepath.Clean(native), Relative: relative}
}

func hasPathPrefix(s string) bool {
	for _, prefix := range []string{"./", "../", `.\`, `..\`} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// ownerRepo reports the GitHub short form owner/repo, which npm reads as git.
func ownerRepo(s string) bool {
	s, _, _ = strings.Cut(s, "#")
	owner, repo, ok := strings.Cut(s, "/")
	return ok && owner != "" && repo != "" && !strings.HasPrefix(owner, "@") && !strings.ContainsAny(repo, "/ ") && !strings.ContainsAny(owner, " :<>=^~*|")
}

// hostArchive is the archive address for a repository page of GitHub.
func hostArchive(u *url.URL) string {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	if u.Host != "github.com" || len(parts) != 2 {
		return ""
	}
	return "https://codeload.github.com/" + parts[0] + "/" + strings.TrimSuffix(parts[1], ".git") + "/tar.gz/HEAD"
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
