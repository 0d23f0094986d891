package catalog

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"dsh/internal/fault"
	"dsh/internal/install"
)

// Entry is one plugin of a catalogue.
type Entry struct {
	ID           string   // by which the catalogue knows it, "" where it has none
	Name         string   // for people
	Descriptions []string // in the languages that there are, the one to show first
	Keywords     []string // categories, tags and the like
	Version      string   // that the catalogue knows, which says nothing of what is installed
	Package      string   // its name in the registry, "" where it is in none or that is not said
	// Repository is where its source has to be kept, by the catalogue.
	Repository install.Repository
	// Spec is what installs it; its Text is "" where Refused says why there is none.
	Spec    install.Spec
	Refused string
	Class   fault.Class // of Refused: Policy where it is for safety
	Notes   []string    // what of the entry does not count, or does not fit together
	Ignored []string    // what its command says besides the spec
	// Deprecated says that it should not be used, and Replacement what should be.
	Deprecated  bool
	Replacement string
}

// Description is the text to show, "" where there is none.
func (e *Entry) Description() string {
	if len(e.Descriptions) == 0 {
		return ""
	}
	return e.Descriptions[0]
}

// Expected is the repository that what is installed has to be of; none where the
// spec itself says where it comes from.
func (e *Entry) Expected() install.Repository {
	if e.Spec.Kind == install.URL && ofRepository(e.Spec.Place, e.Repository) {
		return install.Repository{}
	}
	return e.Repository
}

// ofRepository reports whether a file is one that a repository's own pages offer.
func ofRepository(address string, r install.Repository) bool {
	u, err := url.Parse(address)
	if err != nil || r.IsZero() || !strings.EqualFold(u.Hostname(), r.Host) || strings.Contains(u.Path, "..") {
		return false
	}
	for _, part := range []string{"/releases/download/", "/archive/", "/-/archive/", "/-/releases/"} {
		if prefix := "/" + r.Path + part; len(u.Path) > len(prefix) && strings.EqualFold(u.Path[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// Origin is where a catalogue comes from, by which it may name more or less.
type Origin struct {
	// Dir is the folder of a catalogue that is a file of this machine; "" is one
	// that a server sent, which names nothing of this machine.
	Dir string
	// Loopback is a catalogue of a server on this machine, which may name others there.
	Loopback bool
	SSH      bool // the user allows it specs that git fetches by ssh
}

// read makes an entry of what is written; why is why it cannot be read.
func (o Origin) read(value any) (e Entry, why string) {
	m, ok := value.(map[string]any)
	if !ok {
		return Entry{}, "it is no object"
	}
	if broken(value) {
		return Entry{}, "it is not valid UTF-8"
	}
	f := fields(m)
	e.ID = Line(f.text(idKeys...), maxName)
	e.Package = f.text(packageKeys...)
	if e.Package == "" {
		e.Package = f.object("r").text("npmPackage", "npm")
	}
	if !install.ValidName(e.Package) {
		if e.Package != "" {
			e.Notes = append(e.Notes, "its package name "+Line(e.Package, maxName)+" is none")
		}
		e.Package = ""
	}
	e.Repository, _ = repositoryOf(f)
	e.Name = Line(f.text(nameKeys...), maxName)
	for _, other := range []string{e.ID, e.Package, e.Repository.String()} {
		if e.Name == "" {
			e.Name = Line(other, maxName)
		}
	}
	if e.Name == "" {
		return Entry{}, "it has no name"
	}
	for _, text := range f.languages(descriptionKeys...) {
		if text = Line(text, maxText); text != "" {
			e.Descriptions = append(e.Descriptions, text)
		}
	}
	e.Keywords = f.list("category", "categories", "tags", "keywords", "capabilities")
	e.Version = Line(f.text("version", "latestVersion"), 60)
	switch v := f["deprecated"].(type) {
	case bool:
		e.Deprecated = v
	case string:
		e.Deprecated = strings.TrimSpace(v) != ""
	case map[string]any:
		e.Deprecated = true
	}
	e.Replacement = Line(f.text("replacement", "replacedBy"), maxName)
	o.choose(f, &e)
	return e, ""
}

// repositoryOf is the repository that an entry is about, and how it is written. The
// address that it is about may also be a page of another kind, which says nothing.
func repositoryOf(f fields) (r install.Repository, text string) {
	source := f.object("source")
	for _, in := range []fields{f, f.object("r"), f.object("repository"), source} {
		text = in.text(append(repositoryKeys, "git")...)
		if text == "" && (in.has("subdir") || in.text("type") == "git") || len(f.object("repository")) > 0 && text == "" {
			text = in.text("url")
		}
		r, err := install.ParseRepository(text)
		if err != nil {
			continue
		}
		if folder := in.text("subdir", "directory", "folder", "subpath"); folder != "" && r.Directory == "" {
			r.Directory = strings.Trim(folder, "/")
		}
		if page := pageOf(f); r.Directory == "" && page.Same(r) {
			r.Directory = page.Directory
		}
		return withFolderOfID(r, f), text
	}
	return withFolderOfID(pageOf(f), f), ""
}

// pageOf is the repository whose page the entry's address is.
func pageOf(f fields) install.Repository {
	for _, key := range []string{"url", "homepage"} {
		text := f.text(key)
		if !strings.Contains(text, "://") {
			continue
		}
		if spec, err := install.ParseSpec(text, ""); err != nil || spec.Kind != install.Git {
			continue
		}
		if r, err := install.ParseRepository(text); err == nil {
			return r
		}
	}
	return install.Repository{}
}

// withFolderOfID reads owner/repo/folder, as an id of some catalogues is.
func withFolderOfID(r install.Repository, f fields) install.Repository {
	if rest, ok := cutFold(f.text("id"), r.Path+"/"); ok && r.Directory == "" && !r.IsZero() {
		r.Directory = strings.Trim(rest, "/")
	}
	return r
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// choice is the spec that an entry gives, and by what.
type choice struct {
	text string
	by   string // "its command", for messages
}

// choose finds the spec of an entry, or why there is none.
func (o Origin) choose(f fields, e *Entry) {
	if members := f.list("members"); len(members) > 0 {
		e.Refused, e.Class = "it is a pack of "+strings.Join(members, ", "), fault.Package
		return
	}
	c, err := e.written(f)
	var spec install.Spec
	if err == nil {
		spec, err = o.admitted(c)
	}
	if err == nil {
		spec, err = o.fitting(f, e, c, spec)
	}
	if err != nil {
		e.Refused, e.Class = err.Error(), fault.ClassOf(err)
		if e.Class == fault.Other {
			e.Class = fault.Package
		}
		return
	}
	e.Spec = spec
}

// otherKinds are kinds of entries that are no plugins, in catalogues that have them.
var otherKinds = []string{"app", "application", "skill", "article", "tutorial", "website", "template", "theme", "prompt", "tool"}

// written is the spec that an entry gives: as such, in a command, or as the place
// where it is.
func (e *Entry) written(f fields) (choice, error) {
	object := f.object("install")
	for _, text := range []string{object.text("spec"), f.text("spec", "installSpec", "install_spec")} {
		if text != "" {
			return choice{text, "its spec"}, nil
		}
	}
	if c, ok, err := e.command(f, object); ok {
		return c, err
	}
	if target := f.text("target"); strings.ContainsAny(target, "/:@#") {
		return choice{target, "its target"}, nil
	}
	if kind := f.text("type", "kind"); slices.Contains(otherKinds, strings.TrimSuffix(strings.ToLower(kind), "s")) {
		return choice{}, fmt.Errorf("it is of the kind %s and no plugin", Line(kind, maxName))
	}
	if text := f.text("tarball"); text != "" {
		return choice{text, "its tarball"}, nil
	}
	typed := f
	if source := f.object("source"); source.has("type", "subdir", "package", "npm", "git", "path") {
		typed = source
	}
	switch typed.text("type", "kind") {
	case "npm":
		if name := typed.text(append([]string{"package"}, append(packageKeys, "name")...)...); name != "" {
			return choice{name + version(typed), "its package"}, nil
		}
	case "path", "local", "file", "folder", "link":
		return choice{"./" + strings.TrimPrefix(typed.text("path", "dir", "folder", "url"), "./"), "its path"}, nil
	}
	if e.Package != "" {
		return choice{e.Package, "its package"}, nil
	}
	if text, err := e.repositorySpec(f, typed); text != "" || err != nil {
		return choice{text, "its repository"}, err
	}
	return choice{}, errors.New("it names nothing that can be installed")
}

func version(f fields) string {
	if wanted := f.text("range", "version"); wanted != "" {
		return "@" + wanted
	}
	return ""
}

// command is what the commands of an entry add, the registry's first; ok reports
// that there are some.
func (e *Entry) command(f, object fields) (c choice, ok bool, err error) {
	var lines []string
	npm := f.text("ic")
	if e.Package != "" || f.text("igc") == "" {
		lines = append(lines, npm)
	}
	lines = append(lines, f.text("igc"), f.text("install", "installCommand", "install_command"), object.text("command", "dsh"))
	for _, line := range lines {
		if line == "" {
			continue
		}
		if !strings.ContainsFunc(line, unicode.IsSpace) {
			return choice{line, "its spec"}, true, nil
		}
		text, notes, why := addedBy(line)
		if why == nil {
			e.Ignored = notes
			return choice{text, "its command"}, true, nil
		}
		ok = true
		if err == nil {
			err = fmt.Errorf("its command is not taken apart, for %w: %s", why, Line(line, maxName))
		}
	}
	return choice{}, ok, err
}

// repositorySpec is the spec of the repository that an entry is about, with the
// branch and folder that are named in from, "" for none.
func (e *Entry) repositorySpec(f, from fields) (string, error) {
	if e.Repository.IsZero() {
		return "", nil
	}
	_, written := repositoryOf(f)
	ref, folder := from.text(refKeys...), e.Repository.Directory
	for _, text := range []string{f.text("url"), written} {
		if !strings.Contains(text, "://") {
			continue
		}
		spec, err := install.ParseSpec(text, "")
		if err != nil || spec.Kind != install.Git {
			continue
		}
		if of, err := install.ParseRepository(text); err != nil || !of.Same(e.Repository) {
			continue
		}
		if spec.Git.Browsed || spec.Git.Path == folder && ref == "" {
			return text, nil
		}
		if spec.Git.Path == "" {
			return inFolder(text, ref, folder)
		}
	}
	text := "https://" + hostOf(written, e.Repository.Host) + "/" + e.Repository.Path + ".git"
	if e.Repository.Host == "github.com" {
		text = "github:" + e.Repository.Path
	}
	return inFolder(text, ref, folder)
}

// hostOf is the host of an address with its port.
func hostOf(address, host string) string {
	if u, err := url.Parse(strings.TrimPrefix(address, "git+")); err == nil && strings.EqualFold(u.Hostname(), host) {
		return u.Host
	}
	return host
}

// inFolder is the spec of a folder of a repository that text names.
func inFolder(text, ref, folder string) (string, error) {
	spec, err := install.ParseSpec(text, "")
	if err != nil || spec.Kind != install.Git {
		return "", fmt.Errorf("its repository %s cannot be asked for", Line(text, maxName))
	}
	g := *spec.Git
	if ref != "" {
		g.Ref, g.Range = ref, ""
	}
	g.Path = folder
	return g.String(), nil
}

// admitted parses a spec and refuses what a catalogue may not name.
func (o Origin) admitted(c choice) (install.Spec, error) {
	no := func(format string, args ...any) (install.Spec, error) {
		return install.Spec{}, fault.Errorf(fault.Policy, "%s %s %s", c.by, Line(install.ShownSpec(c.text), maxName), fmt.Sprintf(format, args...))
	}
	switch {
	case len(c.text) > maxSpec:
		return no("is longer than %d bytes", maxSpec)
	case strings.ContainsFunc(c.text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return no("has characters in it that cannot be seen")
	case strings.HasPrefix(c.text, "-"):
		return no("is a flag")
	}
	dir := o.Dir
	if dir == "" {
		dir = "/" // nothing relative is admitted
	}
	spec, err := install.ParseSpec(c.text, dir)
	if wrong, ok := errors.AsType[*install.SpecError](err); ok {
		return no("%s", wrong.Reason)
	}
	if err != nil {
		return no("cannot be read: %v", err)
	}
	switch spec.Kind {
	case install.Archive, install.Folder, install.Link:
		if o.Dir == "" {
			return no("is a place of this machine, which a catalogue from elsewhere may not name")
		}
		spec.Text = absolute(spec)
	case install.Git:
		return o.admittedAddress(spec, spec.Git.Remote, no)
	case install.URL:
		if spec.Forced != "" {
			return no("is of an object store, which a catalogue may not name")
		}
		return o.admittedAddress(spec, spec.Place, no)
	case install.Registry:
	}
	return spec, nil
}

// absolute is the spec of a local place by its whole path.
func absolute(spec install.Spec) string {
	text := spec.Place
	switch spec.Kind {
	case install.Folder:
		text = "file:" + text
	case install.Link:
		text = "link:" + text
	}
	if spec.Inside != "" {
		text += "//" + spec.Inside
	}
	if spec.Name != "" {
		text = spec.Name + "@" + text
	}
	return text
}

// admittedAddress refuses addresses that a catalogue may not name.
func (o Origin) admittedAddress(spec install.Spec, address string, no func(string, ...any) (install.Spec, error)) (install.Spec, error) {
	u, err := url.Parse(address)
	if err != nil {
		return no("has no valid address")
	}
	_, secret := u.User.Password()
	switch {
	case secret || u.User != nil && u.Scheme != "ssh":
		return no("has a user in its address")
	case u.Scheme == "ssh" && !o.SSH:
		return no("is fetched by ssh, with your key (dsh catalog add --allow-ssh allows that)")
	case u.Scheme == "file" && o.Dir == "":
		return no("is a place of this machine, which a catalogue from elsewhere may not name")
	case u.Scheme == "file" || u.Scheme == "ssh":
		return spec, nil
	case isLoopback(u.Hostname()) && !o.Loopback && o.Dir == "":
		return no("is a server of this machine, which a catalogue from elsewhere may not name")
	case u.Scheme == "http" && !isLoopback(u.Hostname()):
		return no("would be fetched without encryption")
	case u.Scheme != "https" && u.Scheme != "http":
		return no("is of the kind %s", u.Scheme)
	}
	return spec, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && (ip.IsLoopback() || ip.IsUnspecified()) || strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost")
}

// fitting holds a spec against what else the entry says, and mends what is known
// to get lost.
func (o Origin) fitting(f fields, e *Entry, c choice, spec install.Spec) (install.Spec, error) {
	part := ""
	if name := f.text("name"); strings.Contains(name, "/") {
		_, part, _ = strings.Cut(name, "#")
	}
	switch spec.Kind {
	case install.Registry:
		return o.fittingPackage(f, e, c, spec)
	case install.Git:
		have, err := install.ParseRepository(spec.Git.Remote)
		if err != nil {
			have = install.Repository{}
		}
		if e.Repository.IsZero() {
			return spec, nil
		}
		if !e.Repository.Same(have) {
			return install.Spec{}, fault.Errorf(fault.Policy, "%s %s is another repository than %s, which the entry is about", c.by, Line(install.ShownSpec(c.text), maxName), e.Repository)
		}
		folder, want := spec.Git.Path, e.Repository.Directory
		switch {
		case folder == want && (want != "" || part == "") || spec.Git.Browsed:
			return spec, nil
		case folder == "" && want != "":
			text, err := inFolder(c.text, "", want)
			if spec.Git.Ref+spec.Git.Range == "" { // the branch is that of the entry's address, too
				text, err = e.repositorySpec(f, f)
			}
			if err != nil {
				return install.Spec{}, err
			}
			e.Notes = append(e.Notes, fmt.Sprintf("%s is the whole repository, and the entry is about the folder %s, which is taken", c.by, Line(want, maxName)))
			return o.admitted(choice{text, c.by})
		case folder == "":
			return install.Spec{}, fmt.Errorf("it is the part %s of %s, and nothing says in which folder that is", Line(part, maxName), e.Repository)
		case want != "" && !strings.HasSuffix(want, "/"+folder):
			return install.Spec{}, fault.Errorf(fault.Policy, "%s is the folder %s, and the entry is about %s", c.by, Line(folder, maxName), Line(want, maxName))
		}
	default:
	}
	return spec, nil
}

// fittingPackage is fitting for a package of the registry.
func (o Origin) fittingPackage(f fields, e *Entry, c choice, spec install.Spec) (install.Spec, error) {
	if e.Package != "" {
		if spec.Target != e.Package {
			return install.Spec{}, fault.Errorf(fault.Policy, "%s is the package %s, and the entry is about %s", c.by, spec.Target, e.Package)
		}
		return spec, nil
	}
	if !f.has(packageKeys...) && !f.object("r").has("npmPackage") {
		return spec, nil
	}
	// Somebody else may have the name in the registry.
	text, err := e.repositorySpec(f, f)
	if text == "" || err != nil {
		return install.Spec{}, fault.Errorf(fault.Policy, "%s is the package %s of the registry, in which the entry says that it is not", c.by, spec.Target)
	}
	e.Notes = append(e.Notes, fmt.Sprintf("%s is the package %s of the registry, in which the entry says that it is not; its repository is taken", c.by, spec.Target))
	taken := choice{text, "its repository"}
	if spec, err = o.admitted(taken); err != nil {
		return install.Spec{}, err
	}
	return o.fitting(f, e, taken, spec)
}

// MissingError says that a catalogue has no such entry, or several.
type MissingError struct {
	Catalog, Name string
	Several       []string // by which the entries can be told apart
}

func (e *MissingError) Error() string {
	if len(e.Several) > 0 {
		return fmt.Sprintf("catalogue %s has %d entries that %q can mean: %s", e.Catalog, len(e.Several), e.Name, strings.Join(e.Several, ", "))
	}
	return fmt.Sprintf("catalogue %s has no entry %q", e.Catalog, e.Name)
}

// Class is Package.
func (e *MissingError) Class() fault.Class { return fault.Package }

// Key is what the entry is asked for by, in its catalogue.
func (e *Entry) Key() string {
	if e.ID != "" {
		return e.ID
	}
	return e.Name
}

// Find is the entry that a name means: its id, else its name, else its package,
// else its repository.
func (x *Index) Find(catalog, name string) (*Entry, error) {
	for _, of := range []func(*Entry) string{
		func(e *Entry) string { return e.ID },
		func(e *Entry) string { return e.Name },
		func(e *Entry) string { return e.Package },
		func(e *Entry) string { return e.Repository.String() },
	} {
		var found []*Entry
		for i := range x.Entries {
			if e := &x.Entries[i]; of(e) != "" && strings.EqualFold(of(e), name) {
				found = append(found, e)
			}
		}
		if len(found) == 1 || len(found) > 1 && same(found) {
			return found[0], nil
		}
		if len(found) > 1 {
			missing := &MissingError{Catalog: catalog, Name: name}
			for _, e := range found[:min(len(found), 10)] {
				text := e.Key() + " (" + e.Spec.Shown() + ")"
				if e.Spec.Text == "" {
					text = e.Key()
				}
				missing.Several = append(missing.Several, text)
			}
			return nil, missing
		}
	}
	return nil, &MissingError{Catalog: catalog, Name: name}
}

// same reports whether entries are one, written more than once.
func same(list []*Entry) bool {
	return !slices.ContainsFunc(list, func(e *Entry) bool {
		return e.Spec.Text == "" || e.Spec.Text != list[0].Spec.Text || !e.Repository.IsZero() && !e.Repository.Same(list[0].Repository)
	})
}
