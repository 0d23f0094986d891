package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/npmrange"
)

// parallelRequests is how many packages are picked or fetched at once. The
// registry client bounds its connections by itself.
const parallelRequests = 16

// assumedNode is the Node.js release that "engines" is held against where
// several versions fit: packages are for the harness, which needs Node.js, and
// dsh has none to ask.
var assumedNode = sync.OnceValue(func() npmrange.Version {
	v, _ := npmrange.ParseVersion("24.21.0")
	return v
})

// sources finds packages wherever a spec says they are.
type sources struct {
	job   *Job
	ahead errgroup.Group // requests made before the resolver needs them
	// deprecated holds what publishers say of packages that were picked.
	deprecated sync.Map
}

// sources makes the finder of one job. Done ends the requests made ahead.
func (j *Job) sources(ctx context.Context) (s *sources, within context.Context, done func()) {
	s = &sources{job: j}
	within, cancel := context.WithCancel(ctx)
	return s, within, func() {
		cancel()
		_ = s.ahead.Wait() // each error comes back to whoever really asks
	}
}

// prefetch implements finder.
func (s *sources) prefetch(ctx context.Context, spec Spec) {
	if spec.Kind != Registry || s.job.Offline {
		return
	}
	s.ahead.Go(func() error {
		_, err := s.manifest(ctx, spec)
		return err
	})
}

// find implements finder.
func (s *sources) find(ctx context.Context, spec Spec) (*Package, error) {
	switch spec.Kind {
	case Registry:
		return s.fromRegistry(ctx, spec)
	case Link:
		return s.fromLink(spec)
	}
	entry, err := s.content(ctx, Origin{spec.Kind, originPlace(spec, s.job.Dir)}, store.Integrity{})
	if err != nil {
		return nil, err
	}
	pkg, err := s.described(shownPlace(spec), entry.Dir(), spec, entry.Integrity)
	if err != nil {
		return nil, err
	}
	// What the content does not bring along has to be installed.
	pkg.Bundled = only(pkg.Bundled, func(name string) bool { return entry.Has("node_modules/" + name + "/package.json") })
	return pkg, nil
}

func (s *sources) fromRegistry(ctx context.Context, spec Spec) (*Package, error) {
	if s.job.Offline {
		if pkg := s.job.locked.newest(spec); pkg != nil {
			return pkg, nil
		}
		return nil, fault.Errorf(fault.Network, "%s%s is not in the lockfile, and --offline asks no registry", spec.Target, wantedSuffix(spec.Wanted))
	}
	if s.job.Events.Resolving != nil {
		s.job.Events.Resolving(spec.Target)
	}
	m, err := s.manifest(ctx, spec)
	if err != nil {
		return nil, err
	}
	pkg := packageOf(&m.Manifest)
	if m.Deprecated != "" {
		s.deprecated.Store(pkg.describe(), strings.Join(strings.Fields(m.Deprecated), " "))
	}
	if m.Dist.Tarball != s.job.Registry.TarballURL(pkg.Name, pkg.Version) {
		pkg.Origin.Place = m.Dist.Tarball
	}
	if pkg.Integrity, err = store.ParseIntegrity(m.Dist.Integrity); err != nil {
		return nil, fault.Errorf(fault.Package, "%s cannot be verified: %s gives no sha512 hash for it", pkg.describe(), s.job.Registry.RegistryFor(pkg.Name))
	}
	return pkg, nil
}

// manifest is what the registry says of the version that a spec picks. One
// exact version needs no list of all of them.
func (s *sources) manifest(ctx context.Context, spec Spec) (*registry.Manifest, error) {
	if version, err := npmrange.ParseVersion(spec.Wanted); err == nil {
		return s.job.Registry.Version(ctx, spec.Target, version)
	}
	packument, err := s.job.Registry.Packument(ctx, spec.Target)
	if err != nil {
		return nil, err
	}
	return registry.Pick(packument, spec.Wanted, registry.PickOptions{NodeVersion: assumedNode()})
}

// fromLink reads the package.json of a local folder that is linked.
func (s *sources) fromLink(spec Spec) (*Package, error) {
	where := shownPlace(spec)
	seen := seenAt(s.job.Dir, s.job.Files, spec.Place)
	info, err := os.Stat(seen)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.Errorf(fault.Package, "%s: there is no such folder", where)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", where, err)
	case !info.IsDir():
		return nil, fault.Errorf(fault.Package, "%s is no folder; an archive ends in .tgz", where)
	}
	return s.described(where, seen, spec, store.Integrity{})
}

// described is the package whose files are in dir.
func (s *sources) described(where, dir string, spec Spec, id store.Integrity) (*Package, error) {
	m, err := readPackageJSON(where, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.Package, "%s holds no package.json, so it is no package", where)
	}
	if err != nil {
		return nil, err
	}
	if !ValidName(m.Name) {
		return nil, fault.Errorf(fault.Package, "%s: %q in its package.json is no package name", where, m.Name)
	}
	pkg := packageOf(m)
	pkg.Integrity = id
	pkg.Origin = Origin{spec.Kind, originPlace(spec, s.job.Dir)}
	if spec.Kind == Link {
		// What a linked folder needs is its own affair, as in pnpm.
		pkg.Dependencies, pkg.Optional, pkg.Bundled = nil, nil, nil
	}
	return pkg, nil
}

// content brings the content of a package that is no link into the store. A
// zero want accepts what comes, which the lockfile then pins.
func (s *sources) content(ctx context.Context, origin Origin, want store.Integrity) (store.Entry, error) {
	if entry, ok := s.job.Store.Get(want); ok && entry.Check() == nil {
		return entry, nil
	}
	switch origin.Kind {
	case URL:
		return s.fromAddress(ctx, origin.Place, want)
	case Archive:
		file := nativePlace(s.job.Dir, origin.Place)
		f, err := os.Open(seenAt(s.job.Dir, s.job.Files, origin.Place))
		if errors.Is(err, fs.ErrNotExist) {
			// What was installed from it is kept, so that the file may go.
			if entry, ok := s.kept(origin); ok && want.IsZero() {
				return entry, nil
			}
			return store.Entry{}, fault.Errorf(fault.Package, "%s: there is no such file", file)
		}
		if err != nil {
			return store.Entry{}, err
		}
		defer f.Close()
		entry, err := s.job.Store.AddTarball(ctx, f, want)
		return entry, within(file, err)
	default: // Folder
		dir, seen := nativePlace(s.job.Dir, origin.Place), seenAt(s.job.Dir, s.job.Files, origin.Place)
		if info, err := os.Stat(seen); err != nil || !info.IsDir() {
			return store.Entry{}, fault.Errorf(fault.Package, "%s: there is no such folder", dir)
		}
		entry, err := s.job.Store.AddFolder(ctx, seen)
		if err == nil && !want.IsZero() && entry.Integrity != want {
			err = &store.MismatchError{Want: want, Got: entry.Integrity}
		}
		return entry, within(dir, err)
	}
}

// kept is the content that the profile's lockfile holds for an origin.
func (s *sources) kept(origin Origin) (store.Entry, bool) {
	if s.job.locked != nil {
		for _, n := range s.job.locked.Nodes {
			if n.Origin == origin {
				return s.job.Store.Get(n.Integrity)
			}
		}
	}
	return store.Entry{}, false
}

// fromAddress downloads an archive into the store.
func (s *sources) fromAddress(ctx context.Context, address string, want store.Integrity) (store.Entry, error) {
	if s.job.Offline {
		return store.Entry{}, fault.Errorf(fault.Network, "%s is not in the store, and --offline fetches nothing", registry.ShownAddress(address))
	}
	file, err := Download(ctx, s.job.Registry, s.job.Store, address)
	if err != nil {
		return store.Entry{}, err
	}
	f, err := os.Open(file)
	if err != nil {
		return store.Entry{}, err
	}
	defer f.Close()
	entry, err := s.job.Store.AddTarball(ctx, s.job.counted(f), want)
	return entry, within(registry.ShownAddress(address), err)
}

// within says of which package an error of the store speaks.
func within(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// counted reports the bytes that are read from r.
func (j *Job) counted(r io.Reader) io.Reader {
	if j.Events.Received == nil {
		return r
	}
	return countingReader{r, j.Events.Received}
}

type countingReader struct {
	io.Reader
	received func(int64)
}

func (c countingReader) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.received(int64(n))
	return n, err
}

// fetch brings every package of a lock that is laid out here into the store.
// A damaged entry stays until there is another in its place, so that it is found
// again where none is to be had. An optional package that cannot be had is added
// to skipped.
func (j *Job) fetch(ctx context.Context, s *sources, lock *Lock, skipped map[string]bool) (map[store.Integrity]store.Entry, error) {
	entries := map[store.Integrity]store.Entry{}
	missing := map[store.Integrity][]string{} // and all the places that need it
	for _, at := range sortedKeys(lock.Nodes) {
		n := lock.Nodes[at]
		if skipped[at] || n.Origin.Kind == Link {
			continue
		}
		if places, known := missing[n.Integrity]; known {
			missing[n.Integrity] = append(places, at)
			continue
		}
		entry, ok := j.Store.Get(n.Integrity)
		if ok && j.usable(entry, at, n) {
			entries[n.Integrity] = entry
		} else {
			delete(entries, n.Integrity)
			missing[n.Integrity] = []string{at}
		}
	}
	if len(missing) == 0 {
		return entries, nil
	}
	if err := j.lacks(lock, missing); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	done := 0
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for id, places := range missing {
		optional := true // nobody needs it
		for _, at := range places {
			optional = optional && lock.Nodes[at].Optional
		}
		n := lock.Nodes[places[0]]
		group.Go(func() error {
			entry, err := s.archive(groupCtx, n.Package)
			mu.Lock()
			defer mu.Unlock()
			if done++; j.Events.Fetching != nil {
				j.Events.Fetching(done, len(missing))
			}
			switch {
			case err == nil:
				entries[id] = entry
			case optional && isMissing(err):
				for _, at := range places {
					skipped[at] = true
				}
			default:
				return j.gone(places[0], n, within(n.describe(), err))
			}
			return nil
		})
	}
	return entries, group.Wait()
}

// usable reports whether an entry of the store is good for what the job does
// with it.
func (j *Job) usable(entry store.Entry, at string, n Located) bool {
	if j.Check || slices.Contains(j.Anew, at) {
		return entry.Check() == nil
	}
	return !j.lays(at, n) || entry.Sound()
}

// lacks is an error that names all packages that would have to be fetched when
// nothing may be.
func (j *Job) lacks(lock *Lock, missing map[store.Integrity][]string) error {
	if !j.Offline {
		return nil
	}
	var names []string
	for _, places := range missing {
		if n := lock.Nodes[places[0]]; n.Origin.Kind == Registry || n.Origin.Kind == URL {
			names = append(names, n.describe())
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return nil
	case 1:
		return fault.Errorf(fault.Network, "%s: it is not in the store, and --offline fetches nothing", names[0])
	}
	return fault.Errorf(fault.Network, "%s: they are not in the store, and --offline fetches nothing", strings.Join(names, ", "))
}

// gone adds to an error the way out where the store has lost the content of a
// local folder or archive, and what is there now is not it.
func (j *Job) gone(at string, n Located, err error) error {
	if n.Origin.Kind != Archive && n.Origin.Kind != Folder {
		return err
	}
	place := nativePlace(j.Dir, n.Origin.Place)
	if _, wrong := errors.AsType[*store.MismatchError](err); wrong && j.depended(nameAt(at)) {
		return fault.WithHint(err, "put %s back as it was, or take it as it is now: %s", place, j.command("update", nameAt(at)))
	} else if wrong || fault.ClassOf(err) == fault.Package {
		return fault.WithHint(err, "put %s back as it was", place)
	}
	return err
}

// lays reports whether the package at a path is laid out by this job, and is
// not there already.
func (j *Job) lays(at string, n Located) bool {
	if j.present.lock == nil {
		return true
	}
	old, ok := j.present.lock.Nodes[at]
	return !ok || old.Integrity != n.Integrity || !exists(j.Files, at)
}

// isMissing reports whether a package is not to be had, as opposed to being
// wrong or out of reach.
func isMissing(err error) bool {
	_, wrong := errors.AsType[*store.MismatchError](err)
	return fault.ClassOf(err) == fault.Package && !wrong
}

// archive fetches the content of one locked package.
func (s *sources) archive(ctx context.Context, pkg *Package) (store.Entry, error) {
	if pkg.Origin.Kind != Registry {
		return s.content(ctx, pkg.Origin, pkg.Integrity)
	}
	if s.job.Offline {
		return store.Entry{}, fault.Errorf(fault.Network, "it is not in the store, and --offline fetches nothing")
	}
	body, _, err := s.job.Registry.OpenTarball(ctx, registryDist(s.job.Registry, pkg))
	if err != nil {
		return store.Entry{}, err
	}
	defer body.Close()
	return s.job.Store.AddTarball(ctx, s.job.counted(body), pkg.Integrity)
}

func shownPlace(spec Spec) string {
	if spec.Kind == URL {
		return registry.ShownAddress(spec.Place)
	}
	return spec.Place
}

// from says in one word or address where a package comes from.
func (j *Job) from(pkg *Package) string {
	switch pkg.Origin.Kind {
	case Registry:
		return j.Registry.RegistryFor(pkg.Name)
	case URL:
		return registry.ShownAddress(pkg.Origin.Place)
	default:
		return nativePlace(j.Dir, pkg.Origin.Place)
	}
}

// deprecations is a warning for every package of the lock that was picked by
// this job although its publisher advises against it.
func (s *sources) deprecations(lock *Lock) []string {
	warned := map[string]bool{}
	var warnings []string
	for _, at := range sortedKeys(lock.Nodes) {
		name := lock.Nodes[at].describe()
		if why, ok := s.deprecated.Load(name); ok && !warned[name] {
			warned[name] = true
			warnings = append(warnings, fmt.Sprintf("%s is deprecated: %s", name, why))
		}
	}
	return warnings
}
