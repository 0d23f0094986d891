package install

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/profile"
)

// Foreign is what another package manager chose for a profile, as its lockfile
// says.
type Foreign struct {
	File    string // the lockfile
	Manager string // pnpm or npm
	Format  string // the version of the lockfile's format
	// Refused are what dsh cannot take over as it is, a sentence each.
	Refused []string
	// Lock is the versions at places that Node.js finds them at. The packages of
	// undescribed are known only by version and content.
	Lock        *Lock
	undescribed map[*Package]bool
}

// The lockfiles of other package managers.
const (
	PNPMLockName = "pnpm-lock.yaml"
	NPMLockName  = "package-lock.json"
)

// ReadForeign reads the lockfile of the package manager that laid node_modules
// out, or, where that is not known, of pnpm before npm. It is an error of class
// Package where there is none or it cannot be read. manifest is the profile's; nil
// where that is lost.
func ReadForeign(dir string, manifest *profile.Manifest) (*Foreign, error) {
	names := []string{PNPMLockName, NPMLockName}
	if Maker(dir) == "npm" {
		slices.Reverse(names)
	}
	for _, name := range names {
		file := filepath.Join(dir, name)
		text, err := profile.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the lockfile: %w", err)
		}
		read := readPNPMLock
		if name == NPMLockName {
			read = readNPMLock
		}
		f, err := read(text)
		if err != nil {
			return nil, fault.Errorf(fault.Package, "read lockfile %s: %w", file, err)
		}
		f.File = file
		if manifest != nil {
			f.underOverrides(dir, manifest)
			f.refuse(dir, manifest)
		}
		return f, nil
	}
	return nil, fault.WithClass(fault.Package, &noForeignError{dir})
}

// Maker is who laid out the node_modules of a directory: "" where there is
// none, else dsh, pnpm, npm, yarn or in words that somebody else did.
func Maker(dir string) string {
	switch p, err := readPresent(dir, nil, nil); {
	case err != nil:
		return "another program"
	case p.absent:
		return ""
	case p.foreign != "":
		return p.foreign
	}
	return "dsh"
}

// noForeignError is a directory without a lockfile of another package manager.
type noForeignError struct{ dir string }

func (e *noForeignError) Error() string {
	return fmt.Sprintf("there is neither %s nor %s in %s", PNPMLockName, NPMLockName, e.dir)
}

func (e *noForeignError) Is(target error) bool { return target == fs.ErrNotExist }

// IsManager says whether a maker of node_modules is a package manager that knows
// what it holds.
func IsManager(maker string) bool { return maker == "pnpm" || maker == "npm" || maker == "yarn" }

// LaidOut is what the node_modules of a directory holds by its own record, nil
// where dsh did not lay it out on a machine like this.
func LaidOut(dir string) *Lock {
	p, err := readPresent(dir, nil, nil)
	if err != nil {
		return nil
	}
	return p.lock
}

// refuse adds what the manifest has that dsh cannot take over.
func (f *Foreign) refuse(dir string, m *profile.Manifest) {
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			if _, err := ParseDependency(d.Name, d.Spec, dir); err != nil {
				f.Refused = append(f.Refused, fmt.Sprintf("dependency %s: %v", d.Name, err))
			}
		}
	}
	var other struct {
		PNPM struct {
			PatchedDependencies, PackageExtensions json.RawMessage
		} `json:"pnpm"`
	}
	_ = json.Unmarshal(m.Bytes(), &other) // what has another type is none of them
	for _, part := range []struct {
		manager, what string
		value         json.RawMessage
	}{
		{"pnpm", "pnpm.patchedDependencies", other.PNPM.PatchedDependencies},
		{"pnpm", "pnpm.packageExtensions", other.PNPM.PackageExtensions},
	} {
		if text := string(part.value); part.manager == f.Manager && text != "" && text != "{}" && text != "null" {
			f.Refused = append(f.Refused, fmt.Sprintf("package.json has %s, which dsh does not apply", part.what))
		}
	}
	slices.Sort(f.Refused)
	f.Refused = slices.Compact(f.Refused)
}

// Adopt makes the profile's node_modules and lockfile what another package
// manager chose for it: the same versions with the same contents. What does not
// fit the manifest any more is resolved anew, see [Foreign.Differences].
func (j *Job) Adopt(ctx context.Context, manifest *profile.Manifest, f *Foreign) (*Result, error) {
	if len(f.Refused) > 0 {
		return nil, &RefusedLockError{f.File, f.Refused}
	}
	if err := j.locate(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	if err := j.complete(ctx, find, f); err != nil {
		return nil, err
	}
	return j.Mend(ctx, manifest, f.Lock)
}

// keptForeign reads, where the profile has no lockfile of ours, what another
// package manager chose for it, so that c keeps these versions, and says so. It
// is an error where they cannot be kept.
func (j *Job) keptForeign(ctx context.Context, find *sources, c *change) (told []string, err error) {
	if j.locked != nil || c.anew {
		return nil, nil
	}
	f, err := ReadForeign(j.Files, j.manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && len(f.Refused) > 0 {
		err = &RefusedLockError{f.File, f.Refused}
	}
	if err == nil {
		err = j.complete(ctx, find, f)
	}
	if fault.ClassOf(err) == fault.Package {
		err = fault.WithHint(err, "%s, or moving that lockfile away, takes the newest versions that package.json allows", j.command("update"))
	}
	if err != nil {
		return nil, err
	}
	c.foreign = f.Lock
	return []string{fmt.Sprintf("the versions of %s are kept", filepath.Base(f.File))}, nil
}

// foreignLockfile is the name of the lockfile of another package manager in a
// directory, "" where there is none.
func foreignLockfile(dir string) string {
	for _, name := range []string{PNPMLockName, NPMLockName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return name
		}
	}
	return ""
}

// RefusedLockError is a lockfile of another package manager that dsh cannot take
// over.
type RefusedLockError struct {
	File    string
	Reasons []string
}

func (e *RefusedLockError) Error() string {
	return fmt.Sprintf("%s cannot be taken over; nothing was changed\n  %s", e.File, strings.Join(e.Reasons, "\n  "))
}

// Class is Package.
func (e *RefusedLockError) Class() fault.Class { return fault.Package }

// Mend makes node_modules and lockfile what a manifest asks for, in the versions
// of a lock where those fit; nil holds none. Nothing that the profile has now
// needs to be readable. Manifest and bundle list are not written: they are the
// caller's.
func (j *Job) Mend(ctx context.Context, manifest *profile.Manifest, from *Lock) (*Result, error) {
	if err := j.locate(); err != nil {
		return nil, err
	}
	if err := j.readWhatReads(); err != nil {
		return nil, err
	}
	j.manifest = manifest
	if err := j.configure(); err != nil {
		return nil, err
	}
	old := j.locked
	j.locked = from
	find, ctx, done := j.sources(ctx)
	defer done()
	wishes := j.wishes()
	res, err := j.resolve(ctx, find, wishes, change{})
	if err != nil {
		return nil, err
	}
	if err := res.checkPlatform(); err != nil {
		return nil, err
	}
	lock := res.lock
	result, err := j.layOut(ctx, find, lock, lock.Bytes())
	if err != nil {
		return nil, err
	}
	j.locked = old
	if result.Archives, _, err = j.stageArchives(ctx, lock); err != nil {
		return nil, err
	}
	result.Warnings = slices.Concat(result.Warnings, j.notes, find.deprecations(lock))
	result.Changes = j.compare(result.tree)
	return result, j.writeLock(lock)
}

// writeLock puts the lockfile into the transaction, unless it says the same
// already.
func (j *Job) writeLock(lock *Lock) error {
	was, err := profile.ReadFile(filepath.Join(j.Files, LockName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read lockfile: %w", err)
	}
	if err := j.Tx.Expect(LockName, was); err != nil {
		return err
	}
	text := lock.Bytes()
	if was == nil && len(lock.Nodes) == 0 {
		return nil
	}
	if old, err := ParseLock(LockName, was); err == nil && was != nil && bytes.Equal(old.Bytes(), text) {
		return nil // the same content, in whatever line ends
	}
	return j.Tx.WriteFile(LockName, text, 0o644)
}

// complete fills in what a foreign lockfile does not say of its packages.
func (j *Job) complete(ctx context.Context, find *sources, f *Foreign) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	optional := map[*Package]bool{}
	for _, n := range f.Lock.Nodes {
		was, known := optional[n.Package]
		optional[n.Package] = n.Optional && (was || !known)
	}
	for pkg := range f.undescribed {
		group.Go(func() error {
			known, err := j.completed(ctx, find, pkg)
			if optional[pkg] && (isMissing(err) || err != nil && j.Offline && !ThisPlatform().runs(pkg)) {
				return nil // it is as good as left out
			}
			if err != nil {
				return within(pkg.describe(), err)
			}
			if !pkg.Integrity.IsZero() {
				known.Integrity = pkg.Integrity // what was verified there is verified here
			}
			*pkg = *known
			return nil
		})
	}
	return group.Wait()
}

// completed is a package of a foreign lockfile with what it needs.
func (j *Job) completed(ctx context.Context, find *sources, pkg *Package) (*Package, error) {
	spec := Spec{Name: pkg.Name, Kind: pkg.Origin.Kind, Target: pkg.Name, Wanted: pkg.Version}
	switch pkg.Origin.Kind {
	case Registry:
		if !j.Offline {
			return find.find(ctx, spec)
		}
		entry, ok := j.Store.Get(pkg.Integrity)
		if !ok {
			return nil, fault.Errorf(fault.Network, "it is not in the store, and --offline fetches nothing")
		}
		known, err := find.described(pkg.describe(), entry.Dir(), spec, entry.Integrity)
		if err == nil {
			known.Origin = pkg.Origin
			known.Bundled = only(known.Bundled, func(name string) bool { return entry.Has("node_modules/" + name + "/package.json") })
		}
		return known, err
	case Git:
		source, err := pkg.Origin.source()
		if err != nil {
			return nil, err
		}
		spec.Git, spec.Text = &source, pkg.Origin.Place
	case URL:
		spec.Place = pkg.Origin.Place
	default:
		spec.Place, spec.Relative = nativePlace(j.Dir, pkg.Origin.Place), !filepath.IsAbs(filepath.FromSlash(pkg.Origin.Place))
	}
	known, err := find.find(ctx, spec)
	if err == nil && !pkg.Integrity.IsZero() && known.Integrity != pkg.Integrity {
		err = &store.MismatchError{Want: pkg.Integrity, Got: known.Integrity}
	}
	return known, err
}

// Lock is the lockfile of node_modules as the job leaves it.
func (r *Result) Lock() *Lock { return r.tree.lock }

// Differences are the packages of a result that the foreign lockfile does not
// have in that version, sorted: name@version.
func (f *Foreign) Differences(r *Result) []string {
	chosen := map[string]bool{}
	for _, n := range f.Lock.Nodes {
		chosen[n.describe()] = true
	}
	var other []string
	for _, n := range r.tree.lock.Nodes {
		if !chosen[n.describe()] {
			other = append(other, n.describe())
		}
	}
	slices.Sort(other)
	return slices.Compact(other)
}

// WithScripts are the packages of a result that bring scripts which package
// managers run when they install them and that did not run here, sorted, with the
// names of the scripts.
func (r *Result) WithScripts() []string {
	var found []string
	for at, n := range r.tree.lock.Nodes {
		if r.tree.isSkipped(at) || r.tree.isBuilt(at) || n.Origin.Kind == Link {
			continue
		}
		dir := r.tree.filesAt(at)
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			continue
		}
		var scripts []string
		for _, s := range scriptsIn(text, false, func(file string) bool { return exists(dir, file) }).install {
			if s.Implied {
				s.Event = "node-gyp"
			}
			scripts = append(scripts, s.Event)
		}
		if len(scripts) > 0 {
			found = append(found, n.describe()+": "+strings.Join(scripts, ", "))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// graph is packages that name what they need by the keys of others.
type graph map[string]graphNode

type graphNode struct {
	pkg      *Package
	optional bool
	needs    map[string]string // the key by the name that it is needed under
}

// spot is a place in a tree that a graph is laid out as.
type spot struct {
	name, key string
	up        *spot
	below     map[string]*spot
	passes    map[string]bool // names that are found further up from here
}

func (s *spot) path() string {
	if s.up == nil {
		return ""
	}
	return placeBelow(s.up.path(), s.name)
}

// layOut gives each package of a graph places at which Node.js finds what the
// graph says: as high as may be, in order of name. A package that stands below
// itself becomes a link to the upper one.
func (g graph) layOut(root map[string]string) (map[string]Located, error) {
	nodes := map[string]Located{}
	queue := []*spot{{below: map[string]*spot{}, passes: map[string]bool{}}}
	for len(queue) > 0 {
		from := queue[0]
		queue = queue[1:]
		needs := root
		if from.up != nil {
			needs = g[from.key].needs
		}
		for _, name := range sortedKeys(needs) {
			node, ok := g[needs[name]]
			if !ok {
				return nil, fmt.Errorf("it needs %s and does not hold it", needs[name])
			}
			s, isNew := from.find(name, needs[name])
			if !isNew {
				continue
			}
			if len(nodes) > maxNodes {
				return nil, fmt.Errorf("it comes to more than %d packages, copies included", maxNodes)
			}
			same := s.up
			for same.up != nil && (same.key != s.key || same.name != s.name) {
				same = same.up
			}
			if same.up != nil {
				nodes[s.path()] = Located{Package: &Package{Name: node.pkg.Name, Version: node.pkg.Version, Origin: Origin{Link, same.path()}}}
				continue
			}
			nodes[s.path()] = Located{Package: node.pkg, Optional: node.optional}
			queue = append(queue, s)
		}
	}
	return nodes, nil
}

// find is the spot that a name leads to from s, made where it is missing.
func (s *spot) find(name, key string) (found *spot, isNew bool) {
	level := s
	for at := s; at != nil; at = at.up {
		if there := at.below[name]; there != nil {
			if there.key == key {
				s.pass(name, at)
				return there, false
			}
			break
		}
		if !at.passes[name] {
			level = at
		}
	}
	found = &spot{name: name, key: key, up: level, below: map[string]*spot{}, passes: map[string]bool{}}
	level.below[name] = found
	s.pass(name, level)
	return found, true
}

// pass notes on the way up to a level that a name is found there.
func (s *spot) pass(name string, level *spot) {
	for at := s; at != level; at = at.up {
		at.passes[name] = true
	}
}
