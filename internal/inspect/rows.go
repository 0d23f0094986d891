package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/installation"
	"dsh/internal/stack"
)

// name looks for what the name of a row stands for.
func (i *inspection) name(row compose.Row) {
	name := row.Name()
	if name == "" {
		return
	}
	born := i.births[row.Entry]
	f := check.Finding{Code: RowUnresolved, Severity: check.Warning, Row: rowID(row)}
	if i.kind(born).User() {
		f.Severity = check.Error
	}
	if file, ok := i.filePath(name); ok {
		if !absent(file) {
			return
		}
		f.Message = fmt.Sprintf("%s has the plugin %s, and there is no such file", describe(row), file)
		f.Remedy = "put the file there, or write where it is"
		f.Severity = check.Error
	} else if strings.Contains(name, ":") || !i.bare(name, born, &f, row) {
		return // cordis:group, node:fs and other addresses name no package
	}
	if off, _ := row.Disabled(); off && f.Severity > check.Info {
		f.Severity-- // nothing is loaded for it
	}
	i.place(&f, born, "name")
	i.add(f)
}

// filePath is the file that a row's name stands for, if it is one. Names that
// an override brought in stay as they are written, and are then relative to the
// profile.
func (i *inspection) filePath(name string) (string, bool) {
	if file, ok := compose.FilePath(name); ok {
		return file, true
	}
	if filepath.IsAbs(name) {
		return name, true
	}
	if strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") {
		return filepath.Join(i.Options.Profile.Dir, filepath.FromSlash(name)), true
	}
	return "", false
}

// noEntry is the subject of a [RowNoEntry].
func noEntry(pkg, missing string) string { return pkg + " " + missing }

// absent says whether nothing is at a path. What cannot be looked at may be
// there.
func absent(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// bare looks for a package, and writes into f what is wrong, if anything.
func (i *inspection) bare(name string, born birth, f *check.Finding, row compose.Row) bool {
	if i.BuiltIn != nil && i.BuiltIn(name) {
		return false
	}
	pkgName, subpath := splitName(name)
	pkg, found := i.find(pkgName, born)
	if found {
		missing := entryMissing(pkg, subpath)
		if missing == "" {
			return false
		}
		f.Code, f.Severity = RowNoEntry, check.Warning
		f.Subject = noEntry(pkgName, missing)
		f.Message = fmt.Sprintf("%s has the plugin %s, and the package in %s %s", describe(row), name, pkg.Dir, missing)
		f.Remedy = "the package is not built or not published whole; ask its author, or add another version of it"
		return true
	}
	if i.reachable(pkgName) {
		return false
	}
	f.Message = fmt.Sprintf("%s has the plugin %s, and there is no such package in the installation or the profile", describe(row), name)
	switch {
	case IsHost(pkgName) && i.BuiltIn != nil:
		f.Severity = check.Warning
		f.Message = fmt.Sprintf("%s has the plugin %s, which this dsh does not have built in", describe(row), name)
		f.Remedy = "start the profile with an installation of the harness that has it: dsh --installation DIR"
	case IsHost(pkgName):
		f.Remedy = "take the row out, or use an installation that has it"
	case !i.kind(born).User():
		f.Remedy = fmt.Sprintf("%s; the bundle should depend on it", i.command("add", pkgName))
	default:
		f.Remedy = fmt.Sprintf("%s, or take the row out", i.command("add", pkgName))
	}
	return true
}

// find is the package of a row as Node.js finds it: from the installation, from
// where the bundle of the row is, and from the profile. The packages beside the
// other bundles can be had as well.
func (i *inspection) find(name string, born birth) (installation.Package, bool) {
	if pkg, ok, err := i.Installation.Bundle(name); err == nil && ok && i.BuiltIn == nil {
		return pkg, true
	}
	for _, dir := range i.anchors(born) {
		if pkg, ok, err := installation.Find(dir, name); err == nil && ok {
			return pkg, true
		}
	}
	return installation.Package{}, false
}

// anchors are the directories to look from: that of the row's bundle first,
// then the profile's, then those of the other bundles.
func (i *inspection) anchors(born birth) []string {
	dirs := []string{i.Options.Profile.Dir}
	for _, e := range i.Stack.Entries {
		if e.State != stack.Applied || e.Bundle == nil || !filepath.IsAbs(e.Bundle.Dir) {
			continue
		}
		if born.step != nil && e.Layer == born.step.Layer {
			dirs = slices.Insert(dirs, 0, e.Bundle.Dir)
		} else {
			dirs = append(dirs, e.Bundle.Dir)
		}
	}
	return dirs
}

// splitName is the package of a bare name, and what follows it.
func splitName(name string) (pkg, subpath string) {
	from := 0
	if strings.HasPrefix(name, "@") {
		if from = strings.IndexByte(name, '/') + 1; from == 0 {
			return name, ""
		}
	}
	if slash := strings.IndexByte(name[from:], '/'); slash >= 0 {
		return name[:from+slash], name[from+slash+1:]
	}
	return name, ""
}

func rowID(row compose.Row) string {
	if id := row.ID(); id != nil {
		return compose.IDText(id)
	}
	return ""
}

func describe(row compose.Row) string {
	if id := rowID(row); id != "" {
		return fmt.Sprintf("row %q", id)
	}
	return "a row without an id"
}

// paths looks for the paths in the config of a row.
func (i *inspection) paths(row compose.Row) {
	if i.Rules == nil || len(row.Mounted()) > 0 {
		return
	}
	rule := i.Rules(row.Name())
	if rule == nil {
		return
	}
	if off, _ := row.Disabled(); off {
		return
	}
	for _, at := range compose.Paths(rule, row.Config()) {
		if !filepath.IsAbs(at.Path) || !absent(at.Path) {
			continue
		}
		f := check.Finding{
			Code: PathMissing, Severity: check.Warning, Row: rowID(row),
			Remedy: "make it, or write where it is; a relative path starts at the directory of the file that it is written in",
		}
		f.Message = fmt.Sprintf("%s of %s is %s, and there is nothing", compose.PathText(at.Keys), describe(row), at.Path)
		i.place(&f, i.configBirth(row.Entry), at.Keys...)
		i.add(f)
	}
}
