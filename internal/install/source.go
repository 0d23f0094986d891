package install

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/archive"
	"dsh/internal/fault"
	"dsh/internal/install/git"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
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
	job      *Job
	contents *contents
	now      time.Time
	ahead    errgroup.Group // requests made before they are needed
	// What is to be said of packages that were picked, by name@version.
	deprecated, young sync.Map
	repacked          sync.Map // *made by Origin, of archives that were made of others
	notes             sync.Map // what checkRoot noted, by name@version
	roots             sync.Map // the same by [Origin]

	git   func() *git.Client
	heard heard
}

// sources makes the finder of one job. Done ends what was begun ahead.
func (j *Job) sources(ctx context.Context) (s *sources, within context.Context, done func()) {
	within, cancel := context.WithCancel(ctx)
	temp, remove := j.tempDirs()
	s = &sources{job: j, now: time.Now(), git: sync.OnceValue(func() *git.Client { return j.gitClient(temp) })}
	s.contents = newContents(within, s)
	return s, within, func() {
		cancel()
		_ = s.ahead.Wait() // each error comes back to whoever really asks
		s.contents.end()
		_ = remove() // what is left is among the system's temporary files
	}
}

// prefetch asks for what find will soon be called for.
func (s *sources) prefetch(ctx context.Context, spec Spec) {
	if spec.Kind != Registry {
		return
	}
	s.ahead.Go(func() error {
		_, err := s.find(ctx, spec)
		return err
	})
}

// placed is told by the resolver where a package goes.
func (s *sources) placed(_ string, pkg *Package) {
	if pkg.Origin.Kind == Registry && !s.job.Offline && !s.job.DryRun && ThisPlatform().runs(pkg) && s.mayFetch(pkg) {
		s.contents.want(pkg)
	}
}

// find implements finder.
func (s *sources) find(ctx context.Context, spec Spec) (*Package, error) {
	if err := s.admits([]Spec{spec}); err != nil {
		return nil, err
	}
	switch spec.Kind {
	case Registry:
		return s.fromRegistry(ctx, spec)
	case Link:
		if n, _ := s.job.locked.at("node_modules/" + spec.Name); isWrapped(n.Package, spec.Name, spec.Text) {
			return n.Package, nil // what it is made of is asked for by update alone
		}
		return s.fromLink(spec)
	case Git:
		return s.fromGit(ctx, spec)
	}
	entry, err := s.content(ctx, Origin{spec.Kind, originPlace(spec, s.job.Dir)}, store.Integrity{})
	if err != nil {
		return nil, err
	}
	if pkg, err := s.asPlugin(ctx, spec, entryFolder{entry}, entry.Dir()); pkg != nil || err != nil {
		if pkg != nil {
			pkg.Origin, pkg.Integrity = Origin{spec.Kind, originPlace(spec, s.job.Dir)}, entry.Integrity
		}
		return pkg, err
	}
	note := ""
	if spec.Kind != Folder {
		if note, err = s.job.checkRoot(ctx, below{spec: spec}, entryFolder{entry}); err != nil {
			return nil, err
		}
	}
	pkg, err := s.described(shownPlace(spec), entry.Dir(), spec, entry.Integrity)
	if err != nil {
		return nil, err
	}
	if note != "" {
		s.notes.Store(pkg.describe(), note)
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
	}
	if s.job.Events.Resolving != nil {
		s.job.Events.Resolving(spec.Target)
	}
	choice, err := s.pick(ctx, spec)
	if err != nil {
		return nil, err
	}
	m := choice.Manifest
	pkg := packageOf(&m.Manifest)
	s.noted(pkg, choice)
	if m.Deprecated != "" {
		s.deprecated.Store(pkg.describe(), strings.Join(strings.Fields(m.Deprecated), " "))
	}
	if choice.Skipped != "" {
		s.young.Store(pkg.describe(), fmt.Sprintf("%s, which was published %s", choice.Skipped, ago(s.now.Sub(choice.SkippedAt))))
	}
	if m.Dist.Tarball != s.job.Registry.TarballURL(pkg.Name, pkg.Version) {
		pkg.Origin.Place = m.Dist.Tarball
	}
	if pkg.Integrity, err = store.ParseIntegrity(m.Dist.Integrity); err != nil {
		return nil, fault.Errorf(fault.Package, "%s cannot be verified: %s gives no sha512 hash for it", pkg.describe(), s.job.Registry.RegistryFor(pkg.Name))
	}
	return pkg, nil
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
		return nil, fault.Errorf(fault.Package, "%s is no folder, and its name is not one of an archive (.tgz, .tar.gz, .zip, .tar and others)", where)
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
	return s.fromOrigin(ctx, origin, want)
}

// fromOrigin reads a content where it comes from, whatever the store has.
func (s *sources) fromOrigin(ctx context.Context, origin Origin, want store.Integrity) (store.Entry, error) {
	switch origin.Kind {
	case Git:
		return s.fromLocked(ctx, origin, want)
	case URL:
		file, err := s.download(ctx, origin.Place)
		if err != nil {
			return store.Entry{}, err
		}
		entry, err := s.archived(ctx, origin, file, want)
		return entry, within(ShownSpec(origin.Place), err)
	case Archive:
		archive, _, _ := cutInside(origin.Place)
		file := seenAt(s.job.Dir, s.job.Files, archive)
		if coming := s.job.archives[archive]; coming != "" {
			file = coming
		}
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			// What was installed from it is kept, so that the file may go.
			if entry, ok := s.kept(origin); ok && want.IsZero() {
				return entry, nil
			}
			return store.Entry{}, fault.Errorf(fault.Package, "%s: there is no such file", nativePlace(s.job.Dir, archive))
		}
		entry, err := s.archived(ctx, origin, file, want)
		return entry, within(nativePlace(s.job.Dir, archive), err)
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

// download fetches the archive that an origin of kind URL names.
func (s *sources) download(ctx context.Context, place string) (file string, err error) {
	spec, err := urlSpec(place)
	if err != nil {
		return "", err
	}
	if s.job.Offline {
		return "", fault.Errorf(fault.Network, "%s is not in the store, and --offline fetches nothing", ShownSpec(place))
	}
	return Download(ctx, s.job.Registry, s.job.Store, forced(spec)+spec.Place, s.job.Events.Received)
}

// urlSpec reads the place of an origin of kind URL.
func urlSpec(place string) (Spec, error) {
	spec, err := parsePlace(place, place, "")
	if err == nil && spec.Kind != URL {
		err = &SpecError{Text: place, Reason: "is not the address of an archive"}
	}
	return spec, err
}

// archived brings the package in an archive of any format into the store. Where
// pnpm could not install the archive as it is, another one is made of it.
func (s *sources) archived(ctx context.Context, origin Origin, file string, want store.Integrity) (store.Entry, error) {
	spec := Spec{Kind: origin.Kind}
	if origin.Kind == URL {
		var err error
		if spec, err = urlSpec(origin.Place); err != nil {
			return store.Entry{}, err
		}
	} else {
		spec.Place, spec.Inside, _ = cutInside(origin.Place)
	}
	in, err := os.Open(file)
	if err != nil {
		return store.Entry{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return store.Entry{}, err
	}
	if !info.Mode().IsRegular() {
		return store.Entry{}, fault.Errorf(fault.Package, "it is no file")
	}
	format, err := unpack.Format(in, info.Size())
	if err != nil && !want.IsZero() {
		err = cmp.Or(CheckArchive(file, want), err) // it is another file now, which says more
	}
	if err == nil && format == unpack.TarGzip {
		err = s.job.noSet(in, info.Size())
	}
	if err != nil {
		return store.Entry{}, err
	}
	if isNpmArchive(spec, format) {
		entry, err := s.job.Store.AddArchive(ctx, file, unpack.Options{Limits: s.job.Store.Limits, Links: true, Strip: true}, want)
		if err == nil && entry.Has("package.json") || !isFlat(ctx, in, info.Size(), s.job.Store.Limits) {
			return entry, err
		}
	}
	was, err := ArchiveIntegrity(in)
	if err != nil {
		return store.Entry{}, err
	}
	entry, packed, err := repack(ctx, s.job.Store, file, spec.Inside, want)
	if err == nil {
		s.repacked.Store(origin, &made{packed, Written{Integrity: was}})
	}
	return entry, err
}

// noSet refuses an archive that is a whole set of packages, which would be taken
// for the package of the profile that it is of.
func (j *Job) noSet(in io.ReaderAt, size int64) error {
	if !archive.Is(io.NewSectionReader(in, 0, size)) {
		return nil
	}
	return fault.WithHint(fault.Errorf(fault.Package, "it is a set of packages, or the archive of a profile, and no package"),
		"download it, and add the file: %s; an address is taken for that of a set where it ends in .dsh-set.tgz", j.command("add", "./NAME.dsh-set.tgz"))
}

// made is the archive that was made of what a spec asks for, nil where pnpm can
// install that as it is.
func (s *sources) made(spec Spec) *made {
	m, ok := s.repacked.Load(Origin{spec.Kind, originPlace(spec, s.job.Dir)})
	if !ok {
		return nil
	}
	done := *m.(*made)
	done.written.From = WrittenForm(spec)
	return &done
}

// within says of which package an error of the store speaks.
func within(what string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// counter reports the bytes that are read.
type counter struct {
	io.Reader
	left     int               // bytes to come, as far as that is known
	received func(bytes int64) // may be nil
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.left -= n
	if c.received != nil {
		c.received(int64(n))
	}
	return n, err
}

// Len is how many bytes are to come, 0 where that is not known.
func (c *counter) Len() int { return max(0, c.left) }

// usable reports whether a content of the store is good for what the job does
// with it.
func (j *Job) usable(p *arrival, n *piece) bool {
	switch {
	case j.Check || slices.ContainsFunc(n.places, func(at string) bool { return slices.Contains(j.Anew, at) }):
		return p.entry.Check() == nil
	case j.distrust:
		return p.entry.Sound() && p.entry.Intact()
	}
	return p.sure || p.entry.Sound()
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

// isMissing reports whether a package is not to be had, as opposed to being
// wrong or out of reach.
func isMissing(err error) bool {
	_, wrong := errors.AsType[*store.MismatchError](err)
	_, other := errors.AsType[*OtherPackageError](err)
	return fault.ClassOf(err) == fault.Package && !wrong && !other
}

// archive fetches the content of one locked package.
func (s *sources) archive(ctx context.Context, pkg *Package) (store.Entry, error) {
	if pkg.Origin.Kind != Registry {
		return s.content(ctx, pkg.Origin, pkg.Integrity)
	}
	if s.job.Offline {
		return store.Entry{}, fault.Errorf(fault.Network, "it is not in the store, and --offline fetches nothing")
	}
	if err := s.vouched(ctx, pkg); err != nil {
		return store.Entry{}, err
	}
	body, size, err := s.job.Registry.OpenTarball(ctx, registryDist(s.job.Registry, pkg))
	if err != nil {
		return store.Entry{}, err
	}
	defer body.Close()
	return s.job.Store.AddTarball(ctx, &counter{body, int(size), s.job.Events.Received}, pkg.Integrity)
}

func shownPlace(spec Spec) string {
	switch spec.Kind {
	case URL, Git:
		return ShownSpec(originPlace(spec, ""))
	}
	return addInside(spec.Place, spec.Inside)
}

// from says in one word or address where a package comes from.
func (j *Job) from(pkg *Package) string {
	switch pkg.Origin.Kind {
	case Registry:
		return j.Registry.RegistryFor(pkg.Name)
	case URL:
		return registry.ShownAddress(pkg.Origin.Place)
	case Git:
		return ShownSpec(pkg.Origin.Place)
	default:
		return nativePlace(j.Dir, pkg.Origin.Place)
	}
}

// deprecations is a warning for every package of the lock that was picked by
// this job although its publisher advises against it.
func (s *sources) deprecations(lock *Lock) []string {
	return said(&s.deprecated, lock, func(name, why string) string { return name + " is deprecated: " + why })
}

// tooNew is a warning for every package of the lock for which this job passed
// over a newer version, with one chain that leads to it.
func (s *sources) tooNew(lock *Lock) []string {
	none := true
	s.young.Range(func(any, any) bool { none = false; return false })
	if none {
		return nil
	}
	chains := map[string]string{}
	for _, name := range sortedKeys(lock.Wanted) {
		lock.reach(name, func(at string, chain func() []string) {
			name := lock.Nodes[at].describe()
			if _, young := s.young.Load(name); young && chains[name] == "" {
				chains[name] = fromProfile(chain()...)
			}
		})
	}
	return said(&s.young, lock, func(name, newer string) string {
		return fmt.Sprintf("%s is taken and not %s: that is too new (%s)", name, newer, chains[name])
	})
}

// said is what there is to say of the packages of a lock, each once, in order.
func said(of *sync.Map, lock *Lock, say func(name, what string) string) []string {
	known := map[string]bool{}
	var list []string
	for _, n := range lock.Nodes {
		name := n.describe()
		if what, ok := of.Load(name); ok && !known[name] {
			known[name] = true
			list = append(list, say(name, what.(string)))
		}
	}
	slices.Sort(list)
	return list
}
