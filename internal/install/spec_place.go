package install

import (
	"net/url"
	"path"
	"path/filepath"
	"strings"
)

// archiveSuffixes are the ends of names that are archives, the longer ones of
// each family included.
var archiveSuffixes = []string{".tgz", ".tar.gz", ".tar", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst", ".tzst", ".zip"}

// hasArchiveName reports whether a file of that name is an archive by its name.
func hasArchiveName(name string) bool {
	if name == "" || !archiveEnds[name[len(name)-1]|0x20] {
		return false
	}
	for _, suffix := range archiveSuffixes {
		if len(name) > len(suffix) && strings.EqualFold(name[len(name)-len(suffix):], suffix) {
			return true
		}
	}
	return false
}

// archiveEnds is which letters an archive's name ends with.
var archiveEnds = func() (ends [256]bool) {
	for _, suffix := range archiveSuffixes {
		ends[suffix[len(suffix)-1]] = true
	}
	return ends
}()

// hasNpmArchiveName reports whether pnpm takes a file of that name for an archive.
func hasNpmArchiveName(name string) bool {
	name = strings.ToLower(name)
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

// cutInside takes the folder off "archive.zip//folder". A place whose name
// before // is no archive's stays as it is.
func cutInside(place string) (archive, inside string, ok bool) {
	from := 0
	if _, rest, isAddress := strings.Cut(place, "://"); isAddress {
		from = len(place) - len(rest)
	}
	for {
		i := strings.Index(place[from:], "//")
		if i < 0 {
			return place, "", false
		}
		if hasArchiveName(place[:from+i]) {
			return place[:from+i], strings.TrimLeft(place[from+i:], "/"), true
		}
		from += i + 1
	}
}

// cleanInside is a folder in an archive or a repository: relative,
// slash-separated and clean, "" for its top. It reports false for what is
// outside.
func cleanInside(folder string) (string, bool) {
	if strings.ContainsAny(folder, "\\") || strings.ContainsFunc(folder, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", false
	}
	for part := range strings.SplitSeq(folder, "/") {
		if part == ".." {
			return "", false
		}
	}
	folder = path.Clean(strings.Trim(folder, "/"))
	if folder == "." {
		folder = ""
	}
	return folder, true
}

// path reads what has no scheme.
func (p placeParser) path() (Spec, error) {
	switch place := p.place; {
	case place == "." || place == ".." || hasPathPrefix(place), filepath.IsAbs(place), strings.HasPrefix(place, "~/"):
		return p.local(place, Link)
	case ownerRepo(place):
		return p.hosted("github", place)
	case strings.ContainsRune(place, '/') || strings.HasPrefix(place, ".") || hasArchiveName(place):
		return p.local(place, Link) // as npm reads it
	}
	return Spec{Kind: Registry}, nil
}

// local reads a local path: an archive by its name, else what folders are in
// this form. In link: everything is a folder.
func (p placeParser) local(place string, folder Kind) (Spec, error) {
	spec := Spec{Kind: folder}
	if archive, inside, ok := cutInside(place); ok {
		if spec.Inside, ok = cleanInside(inside); !ok {
			return p.outside()
		}
		place = archive
	}
	if hasArchiveName(place) {
		spec.Kind = Archive
	}
	spec.Place, spec.Relative = nativePath(place, p.dir)
	return spec, nil
}

// localKind is the kind of a path behind file:.
func localKind(place string) Kind {
	spec, _ := placeParser{place: place}.local(place, Folder)
	return spec.Kind
}

// link reads what stands behind link:.
func (p placeParser) link(place string) (Spec, error) {
	native, relative := nativePath(place, p.dir)
	return Spec{Kind: Link, Place: native, Relative: relative}, nil
}

func (p placeParser) outside() (Spec, error) {
	return p.refuse("names a folder that leads out of the archive or repository", "")
}

// nativePath is a path as people write it, made absolute from dir.
func nativePath(place, dir string) (native string, relative bool) {
	if len(place) > 2 && place[0] == '/' && filepath.VolumeName(place[1:]) != "" {
		place = place[1:] // file:///C:/folder
	}
	native = filepath.FromSlash(place)
	if rest, ok := strings.CutPrefix(place, "~/"); ok {
		native = filepath.Join(userHome(), filepath.FromSlash(rest))
	}
	relative = !filepath.IsAbs(native)
	if relative {
		native = filepath.Join(dir, native)
	}
	return filepath.Clean(native), relative
}

func hasPathPrefix(s string) bool {
	for _, prefix := range []string{"./", "../", `.\`, `..\`} {
		if strings.HasPrefix(s, prefix) {
			return true
		}
	}
	return false
}

// address reads what begins with http:// or https://: a git repository by its
// name, a page of one, else an archive.
func (p placeParser) address() (Spec, error) {
	u, err := url.Parse(p.place)
	if err != nil || u.Hostname() == "" {
		return p.refuse("is not a valid address", "")
	}
	if git, err := p.browsed(u); git != nil || err != nil {
		return p.gitSpec(git, err)
	}
	if strings.HasSuffix(u.Path, ".git") {
		return p.git("git+"+strings.ToLower(u.Scheme), p.place[len(u.Scheme)+1:])
	}
	return p.archive(p.place)
}

// archive reads the address of an archive, and the folder in it.
func (p placeParser) archive(address string) (Spec, error) {
	spec := Spec{Kind: URL, Place: address}
	before, query := address, ""
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		before, query = address[:i], address[i:]
	}
	if archive, inside, ok := cutInside(before); ok {
		if inside, err := url.PathUnescape(inside); err != nil {
			return p.refuse("is not a valid address", "")
		} else if spec.Inside, ok = cleanInside(inside); !ok {
			return p.outside()
		}
		spec.Place = archive + query
	}
	return spec, nil
}

// forced reads go-getter's "getter::address".
func (p placeParser) forced(getter, address string) (Spec, error) {
	switch getter {
	case "s3", "gcs":
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
			return p.refuse("needs an address behind "+getter+"::", "write it as "+getter+"::https://HOST/BUCKET/KEY")
		}
		spec, err := p.archive(address)
		spec.Forced = getter
		return spec, err
	case "git":
		return p.refuse("is a form that only go-getter has", "write it as git+https://HOST/REPOSITORY.git#REF&path:/FOLDER")
	}
	return p.refuse("has an unknown kind "+quote(getter+"::"), "")
}
