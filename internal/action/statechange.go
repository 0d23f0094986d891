package action

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// StateChange is how one state of a profile differs from an earlier one.
type StateChange struct {
	Dependencies []DependencyChange `json:"dependencies"`
	Bundles      BundleDiff         `json:"bundles"`
	// Packages counts what differs between the lockfiles, dependencies included.
	Packages PackageCounts `json:"packages"`
	Files    []FileChange  `json:"files"`
}

// PackageCounts is how many packages come, go and change.
type PackageCounts struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Changed int `json:"changed"`
}

// DependencyChange is an entry of package.json that differs, or whose locked
// version does.
type DependencyChange struct {
	Name   string          `json:"name"`
	Before *DependencyInfo `json:"before"` // nil: it was not there
	After  *DependencyInfo `json:"after"`  // nil: it is not there any more
}

// DependencyInfo is a dependency in one state.
type DependencyInfo struct {
	Spec    string `json:"spec"`    // as package.json has it, without secrets
	Version string `json:"version"` // in the lockfile, "" where that does not say
	section profile.DependencyKind
	written string // in package.json
}

// FileChange is a small file that differs.
type FileChange struct {
	Path   string `json:"path"`
	Change string `json:"change"` // FileAdded, FileRemoved, FileChanged or Unkept
	// Added and Removed are lines; both are 0 where the file is no text, or
	// only its permissions differ.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Unreadable says that the file, as it is in the later state, is a manifest
	// or lockfile that cannot be read.
	Unreadable bool `json:"unreadable"`
}

// What differs about a file.
const (
	FileAdded   = "added"
	FileRemoved = "removed"
	FileChanged = "changed"
	// Unkept is a file that only one of the states keeps, for its size. Nobody
	// knows what it was in the other, and a rollback leaves it alone.
	Unkept = "unkept"
)

// Empty says that nothing differs that a rollback would change.
func (c *StateChange) Empty() bool {
	return c == nil || !slices.ContainsFunc(c.Files, func(f FileChange) bool { return f.Change != Unkept })
}

// compareStates says how after differs from before, nil being a state without
// files.
func compareStates(before, after *staging.Generation) *StateChange {
	if before == nil {
		before = &staging.Generation{}
	}
	if after == nil {
		after = &staging.Generation{}
	}
	c := &StateChange{Dependencies: []DependencyChange{}, Bundles: BundleDiff{Added: []string{}, Removed: []string{}}, Files: []FileChange{}}
	a, b := contentOf(before), contentOf(after)
	c.files(before, after)
	for i := range c.Files {
		f := &c.Files[i]
		f.Unreadable = f.Path == "package.json" && b.broken || f.Path == install.LockName && b.lockBroken
	}
	// What one of the states does not say, because a file is broken, is no
	// difference that could be told.
	if !a.broken && !b.broken {
		c.Dependencies = append(c.Dependencies, diffDependencies(a.dependencies(), b.dependencies())...)
		c.Bundles = diffBundles(a.bundles(), b.bundles())
	}
	if a.locked() && b.locked() {
		c.Packages = diffPackages(a.lock, b.lock)
	}
	return c
}

// content is what manifest and lockfile of a state say; nil where one of them is
// not there or cannot be read.
type content struct {
	manifest *profile.Manifest
	broken   bool // the manifest is there and cannot be read
	lock     *install.Lock
	// lockBroken is what broken is, of the lockfile.
	lockBroken bool
}

func contentOf(g *staging.Generation) content {
	var c content
	if text, ok := g.File("package.json"); ok {
		m, err := profile.ParseManifest("package.json", text)
		if err == nil {
			c.manifest = m
		}
		c.broken = err != nil
	}
	if text, ok := g.File(install.LockName); ok {
		lock, err := install.ParseLock(install.LockName, text)
		if err == nil {
			c.lock = lock
		}
		c.lockBroken = err != nil
	}
	return c
}

// locked says that it is known which packages the state has: by its lockfile, or
// because it depends on none.
func (c content) locked() bool {
	return c.lock != nil || !c.broken && len(c.dependencies()) == 0
}

func (c content) bundles() []string {
	if c.manifest == nil {
		return nil
	}
	return c.manifest.Bundles()
}

// dependencies is what the manifest depends on, by name.
func (c content) dependencies() map[string]*DependencyInfo {
	all := map[string]*DependencyInfo{}
	if c.manifest == nil {
		return all
	}
	for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
		for _, d := range c.manifest.Dependencies(kind) {
			if all[d.Name] != nil {
				continue
			}
			info := &DependencyInfo{Spec: install.ShownSpec(d.Spec), written: d.Spec, section: kind}
			if c.lock != nil {
				if n := c.lock.Nodes["node_modules/"+d.Name]; n.Package != nil {
					info.Version = n.Version
				}
			}
			all[d.Name] = info
		}
	}
	return all
}

func diffDependencies(a, b map[string]*DependencyInfo) []DependencyChange {
	var changes []DependencyChange
	for _, name := range namesOf(a, b) {
		x, y := a[name], b[name]
		if x == nil || y == nil || x.differs(y) {
			changes = append(changes, DependencyChange{name, x, y})
		}
	}
	return changes
}

// differs says that the entries in package.json differ, or the versions where both
// are known.
func (d *DependencyInfo) differs(other *DependencyInfo) bool {
	return d.written != other.written || d.section != other.section ||
		d.Version != "" && other.Version != "" && d.Version != other.Version
}

// diffPackages counts the packages that come, go and change between two
// lockfiles. A state without one has no packages that are known.
func diffPackages(a, b *install.Lock) PackageCounts {
	var nodesA, nodesB map[string]install.Located
	if a != nil {
		nodesA = a.Nodes
	}
	if b != nil {
		nodesB = b.Nodes
	}
	var c PackageCounts
	for _, at := range namesOf(nodesA, nodesB) {
		x, hadIt := nodesA[at]
		y, hasIt := nodesB[at]
		switch {
		case !hadIt:
			c.Added++
		case !hasIt:
			c.Removed++
		case x.Integrity != y.Integrity || x.Origin != y.Origin || x.Version != y.Version:
			c.Changed++
		}
	}
	return c
}

// namesOf is the keys of both maps, sorted, each once.
func namesOf[V any](a, b map[string]V) []string {
	var names []string
	for _, m := range []map[string]V{a, b} {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// files compares the files of two states.
func (c *StateChange) files(before, after *staging.Generation) {
	a, b := filesOf(before), filesOf(after)
	for _, path := range namesOf(a, b) {
		x, hadIt := a[path]
		y, hasIt := b[path]
		f := FileChange{Path: path, Change: FileChanged}
		switch {
		case hadIt && hasIt && sameSaved(x.SavedFile, y.SavedFile) && sameSaved(x.outside, y.outside):
			continue
		case !hadIt && leavesOut(before, path), !hasIt && leavesOut(after, path):
			f.Change = Unkept
		case !hadIt:
			f.Change = FileAdded
		case !hasIt:
			f.Change = FileRemoved
		}
		if f.Change != Unkept {
			f.Added, f.Removed = countLines(x.lines(), y.lines())
		}
		c.Files = append(c.Files, f)
	}
}

// savedFile is a file of a state, or a link and the file outside the profile to
// which it leads.
type savedFile struct {
	staging.SavedFile
	outside staging.SavedFile
}

func filesOf(g *staging.Generation) map[string]savedFile {
	files := map[string]savedFile{}
	for _, f := range g.Files {
		files[f.Path] = savedFile{SavedFile: f}
	}
	for _, f := range g.Outside {
		files[f.Path] = savedFile{files[f.Path].SavedFile, f}
	}
	return files
}

// leavesOut says that a state has something at a path, or above it, that it does
// not keep.
func leavesOut(g *staging.Generation, path string) bool {
	return slices.ContainsFunc(g.TooLarge, func(skipped staging.Skipped) bool {
		return path == skipped.Path || strings.HasPrefix(path, skipped.Path+"/")
	})
}

// lines is the text of a file, nil where it is no text, or a link within the
// profile.
func (f savedFile) lines() []byte {
	text := f.Data
	if f.Mode&fs.ModeSymlink != 0 {
		text = f.outside.Data
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return nil
	}
	return text
}

// countLines is how many lines of b are not in a, and the other way round.
func countLines(a, b []byte) (added, removed int) {
	text := diff.Diff("a", a, "b", b)
	for i, line := range bytes.Split(text, []byte("\n")) {
		switch {
		case i < 3 || len(line) == 0: // the names
		case line[0] == '+':
			added++
		case line[0] == '-':
			removed++
		}
	}
	return added, removed
}
