package action

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"dsh/internal/archive"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/portable"
	"dsh/internal/staging"
)

// addFiles takes the small files of the profile, less what must not leave the
// machine, and warns of what they say about it.
func (x *exporter) addFiles(now *staging.Generation) error {
	for _, f := range now.Files {
		kept, reason := x.travels(now, f)
		if reason != "" {
			x.leaveOut(f.Path, reason)
		}
		if kept == nil {
			continue
		}
		x.put(f.Path, kept.Data, kept.Mode)
		x.warnOfSecrets(f.Path, kept.Data)
		x.warnOfPlaces(f.Path, kept.Data)
	}
	for _, skipped := range now.TooLarge {
		if !x.included(skipped.Path) {
			x.leaveOut(skipped.Path, string(skipped.Why))
			continue
		}
		if err := x.putLarge(skipped.Path); err != nil {
			return err
		}
	}
	for _, kind := range dependencyKinds {
		for _, d := range x.manifest.Dependencies(kind) {
			if u, err := url.Parse(d.Spec); err == nil && u.Host != "" && (u.User != nil || u.RawQuery != "") {
				x.warn("the address of %s in %s may hold a secret, and travels", d.Name, manifestName)
			}
		}
	}
	return nil
}

// putLarge makes a file of the profile that no generation keeps one of the
// archive.
func (x *exporter) putLarge(name string) error {
	file := filepath.Join(x.dir, filepath.FromSlash(name))
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fault.Errorf(fault.Other, "%s is no file", file)
	}
	if err != nil {
		return err
	}
	mode := info.Mode()
	if isSecretFile(path.Base(name)) {
		mode &^= 0o077
	}
	x.private = x.private || isPrivate(mode)
	x.files[name] = archive.Content{
		Member: archive.Member{Path: archive.FilePath(name), Executable: mode&0o111 != 0, Private: isPrivate(mode)},
		Open:   func() (io.ReadCloser, error) { return os.Open(file) },
	}
	return nil
}

// travels is what of a file goes into the archive, nil for nothing, and why it
// is not all.
func (x *exporter) travels(now *staging.Generation, f staging.SavedFile) (kept *staging.SavedFile, reason string) {
	if err := archive.CheckFile(f.Path); err != nil {
		return nil, err.Error()
	}
	if name := takenFor(f.Path); name != "" {
		return nil, "some systems take it for " + name
	}
	target, reason := x.leadsTo(f.Path)
	file := f
	if f.Mode&fs.ModeSymlink != 0 {
		if reason != "" {
			return nil, reason
		}
		i := slices.IndexFunc(now.Files, func(to staging.SavedFile) bool { return to.Path == target })
		if i < 0 {
			return nil, fmt.Sprintf("it is a link to %s, which does not travel", target)
		}
		file = now.Files[i]
	}
	base := path.Base(f.Path)
	secret := isSecretFile(base) || isSecretFile(path.Base(target)) || registryLogin.Match(file.Data)
	switch {
	case x.included(f.Path):
		if secret {
			file.Mode &^= 0o077
		}
	case base == npmrcName:
		if lines, left := registriesOnly(file.Data, refusedOfOwn); len(left) > 0 {
			if len(lines) == 0 {
				return nil, mayHoldSecrets
			}
			// Without its secrets it need not be kept from anybody.
			return &staging.SavedFile{Mode: 0o644, Data: lines}, "only the registries that it names travel; the rest may hold secrets"
		}
	case secret:
		return nil, mayHoldSecrets
	case reason != "" && !slices.Contains(ownFiles, f.Path):
		return nil, reason
	}
	return &file, ""
}

// ownFiles are what a profile is made of. They travel wherever they are kept.
var ownFiles = []string{manifestName, install.LockName, patchFile, install.WorkspaceName}

// takenFor is the name of a file of every profile for which some system takes
// the last name of a path, "" if that is none or the name itself.
func takenFor(rel string) string {
	base := path.Base(rel)
	folded := portable.Fold(base)
	if folded != base && (folded == npmrcName || slices.Contains(ownFiles, folded)) {
		return folded
	}
	return ""
}

// leadsTo is the slash-separated path of the file that stands at a path of the
// profile: in the profile, which a link makes another path, or else on the disk
// and why it does not travel.
func (x *exporter) leadsTo(rel string) (target, reason string) {
	at := filepath.Join(x.dir, filepath.FromSlash(rel))
	if info, err := os.Lstat(at); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return rel, ""
	}
	end, err := filepath.EvalSymlinks(at)
	if err != nil {
		return rel, "it is a link to nothing"
	}
	dir, err := filepath.EvalSymlinks(x.dir)
	if err == nil {
		target, err = filepath.Rel(dir, end)
	}
	info, statErr := os.Stat(end)
	switch {
	case statErr == nil && info.IsDir():
		return filepath.ToSlash(end), "it is a link to a folder"
	case err != nil || !filepath.IsLocal(target):
		return filepath.ToSlash(end), "it is a link to a file outside the profile"
	}
	return filepath.ToSlash(target), ""
}

const (
	npmrcName      = ".npmrc"
	mayHoldSecrets = "it may hold secrets"
)

// isSecretFile says whether a file of this name is where people keep secrets.
func isSecretFile(base string) bool {
	base = strings.ToLower(base)
	if rest, ok := strings.CutPrefix(base, ".env."); ok {
		return !slices.Contains([]string{"example", "sample", "template", "dist"}, rest)
	}
	return slices.Contains([]string{".env", ".netrc", "_netrc", npmrcName}, base) ||
		slices.Contains([]string{".pem", ".key", ".p12", ".pfx"}, path.Ext(base))
}

// registryLogin is a line with which package managers log in at a registry.
var registryLogin = regexp.MustCompile(`(?mi)^\s*"?(//[^\s=]+:)?(_authToken|_auth|_password|npmAuthToken|npmAuthIdent)"?\s*[=:]\s*\S`)

// registriesOnly is the lines of an .npmrc that refused has nothing against, and
// what is left out: only a line that says where packages are can neither hold a
// secret, nor send one to somebody, nor decide whom connections trust.
func registriesOnly(text []byte, refused func(line string) (why string)) (kept []byte, left []string) {
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';' {
			continue
		}
		if why := refused(trimmed); why != "" {
			left = append(left, fmt.Sprintf("line %d %s", n, why))
			continue
		}
		kept = append(kept, strings.TrimRight(line, "\r\n")...)
		kept = append(kept, '\n')
	}
	return kept, left
}

// refusedOfOwn says why a line of one's own .npmrc does not travel, "" if it does.
func refusedOfOwn(line string) string {
	if !isRegistryLine(line) {
		return "may hold a secret"
	}
	return ""
}

func isRegistryLine(line string) bool {
	key, value, ok := strings.Cut(line, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	if key != "registry" && !(strings.HasPrefix(key, "@") && strings.HasSuffix(key, ":registry") && !strings.ContainsAny(key, "[]")) {
		return false
	}
	u, err := url.Parse(value)
	return ok && err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil && u.RawQuery == "" &&
		!strings.Contains(value, "${")
}

// included says whether the user wants a file in the archive whatever it is.
func (x *exporter) included(name string) bool { return slices.Contains(x.opts.Include, name) }

// checkIncluded refuses the name of a file that is not there. Those of sources
// begin with the name of the package, and are known when it is packed.
func (x *exporter) checkIncluded(known func(name string) bool) error {
	for _, name := range x.opts.Include {
		if _, ok := x.files[name]; !ok && !known(name) {
			return fault.Errorf(fault.Other, "--include %s: profile %s has no such file; names are as the list of what is left out has them", name, x.opts.Name)
		}
	}
	return nil
}

// warnOfSecrets names the values of a layer that look like secrets. They travel,
// for the profile may need them.
func (x *exporter) warnOfSecrets(name string, text []byte) {
	if ext := path.Ext(name); ext != ".yml" && ext != ".yaml" {
		return
	}
	patches, err := compose.ParsePatches(compose.Source{File: name, Dir: x.dir}, text)
	if err != nil {
		return
	}
	for _, patch := range patches {
		for _, at := range secretPlaces(patch.Map) {
			x.warn("%s: the value of %s looks like a secret, and travels", name, at)
		}
	}
}

// secretPlaces is where in a patch there are values that are never shown, as
// ROW.KEY. Expressions say where a secret is and hold none.
func secretPlaces(patch *compose.Map) []string {
	var found []string
	var walk func(at string, v, masked compose.Value)
	walk = func(at string, v, masked compose.Value) {
		switch v := v.(type) {
		case *compose.Map:
			hidden, ok := masked.(*compose.Map)
			if !ok {
				return
			}
			if id, has := v.Get("id"); has && compose.Truthy(id) {
				at = compose.IDText(id)
			}
			for key, value := range v.All() {
				below := key
				if at != "" && key == "config" {
					below = at
				} else if at != "" {
					below = at + "." + key
				}
				shown, _ := hidden.Get(key)
				walk(below, value, shown)
			}
		case *compose.List:
			hidden, ok := masked.(*compose.List)
			if !ok || len(hidden.Items) != len(v.Items) {
				return
			}
			for i, item := range v.Items {
				below := at
				if _, isMap := item.(*compose.Map); !isMap {
					below = fmt.Sprintf("%s.%d", at, i)
				}
				walk(below, item, hidden.Items[i])
			}
		case compose.Expr:
		default:
			if v != masked {
				found = append(found, at)
			}
		}
	}
	if !compose.Endless(patch) {
		walk("", patch, compose.Redact(patch))
	}
	return found
}

// warnOfPlaces names the line of a file that speaks of this machine's folders.
func (x *exporter) warnOfPlaces(name string, text []byte) {
	if name == manifestName || name == install.LockName || bytes.IndexByte(text, 0) >= 0 {
		return // what these say of local sources is written anew
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		for _, dir := range []string{x.env.Home.Dir(), x.env.userHome()} {
			if place := placeIn(line, dir); place != "" {
				x.warn("%s:%d names %s, which other machines do not have", name, n, place)
				return
			}
		}
	}
}

// placeIn is the path in a line that is dir or is below it, "" for none.
func placeIn(line, dir string) string {
	if len(dir) < 2 {
		return ""
	}
	i := strings.Index(line, dir)
	if i < 0 {
		return ""
	}
	rest := line[i+len(dir):]
	end := strings.IndexAny(rest, " \t\r\n\"',;)]}")
	if end < 0 {
		end = len(rest)
	}
	if end > 0 && rest[0] != '/' && rest[0] != '\\' {
		return "" // a longer name
	}
	return dir + rest[:end]
}
