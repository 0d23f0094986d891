package action

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/archive"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// ArchiveSuffix ends the names of files that hold a profile.
const ArchiveSuffix = ".dsh-profile.tar.gz"

// ExportOptions say what of a profile goes into an archive, and where that goes.
type ExportOptions struct {
	Name     profile.Name
	File     string    // where the archive goes, relative to the working directory
	Out      io.Writer // where it goes instead, if not nil
	Force    bool      // an existing file is overwritten
	Packages bool      // the archives of all packages go along
	Include  []string  // files that would be left out
	Version  string    // of this program
	Events   install.Events
	// set makes the archive one of packages alone: of the profile's own files
	// there is only what says which they are.
	set bool
}

// Exported says what went into an archive.
type Exported struct {
	Profile  string            `json:"profile"`
	File     string            `json:"file"` // "" for a stream
	Files    int               `json:"files"`
	Packages int               `json:"packages"` // archives of packages
	Sources  []archive.Source  `json:"sources"`
	LeftOut  []archive.LeftOut `json:"leftOut"`
	Warnings []string          `json:"-"`

	dependencies []CopiedPlugin // of a set
}

// Export writes a profile into one file that depends on nothing of this machine:
// its small files, and what it has from local folders and archives. The same
// profile gives the same bytes.
func Export(ctx context.Context, env Env, opts ExportOptions) (done *Exported, err error) {
	target := ""
	if opts.Out == nil {
		target = env.inDir(opts.File)
		if err := checkTarget(target, opts.Force); err != nil {
			return nil, err
		}
	}
	if _, err := env.opened(ctx, opts.Name); err != nil {
		if _, missing := errors.AsType[*profile.MissingError](err); !missing {
			err = fault.WithHint(err, "dsh profile repair %s", fault.ShellWord(opts.Name.String()))
		}
		return nil, err
	}
	now, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (*staging.Generation, error) {
		if v.Redirects() {
			return nil, fault.Errorf(fault.Environment, "an earlier change of profile %s has to be finished first, and its home cannot be written", opts.Name)
		}
		now, err := staging.Snapshot(env.Home.Place(opts.Name))
		if err == nil {
			now.Files = now.Followed() // whatever may travel does so as a file
		}
		return now, err
	})
	if err != nil {
		return nil, err
	}
	x := &exporter{
		env: env, opts: opts, dir: env.Home.ProfileDir(opts.Name), store: store.Open(env.Home.StoreDir()),
		files: map[string]archive.Content{}, inSource: map[string]bool{},
		done: &Exported{Profile: opts.Name.String(), File: target, Sources: []archive.Source{}, LeftOut: []archive.LeftOut{}, Warnings: warnings},
	}
	x.scratch = sync.OnceValues(x.makeScratch)
	defer func() { err = errors.Join(err, x.close()) }()
	if err := x.gather(ctx, now); err != nil {
		return nil, err
	}
	fill := func(w io.Writer) error {
		return archive.Write(w, archive.Header{
			Profile: opts.Name.String(), Version: opts.Version, Sources: x.done.Sources, LeftOut: x.done.LeftOut,
		}, x.contents())
	}
	if opts.Out != nil {
		return x.done, fill(opts.Out)
	}
	perm := fs.FileMode(0o644)
	if x.private {
		perm = 0o600
	}
	return x.done, writeArchive(target, perm, opts.Force, fill)
}

// checkTarget says early why a file cannot be written.
func checkTarget(file string, force bool) error {
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return fault.Errorf(fault.Other, "%s is a directory; name a file in it", file)
	case err == nil && !force:
		return existsError(file)
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if info, err := os.Stat(filepath.Dir(file)); err != nil || !info.IsDir() {
		return fault.Errorf(fault.Other, "there is no directory %s to write the archive into", filepath.Dir(file))
	}
	return nil
}

func existsError(file string) error {
	return fault.WithHint(fault.Errorf(fault.Other, "%s exists already; nothing was written", file), "--force overwrites it, -o FILE writes another")
}

// writeArchive writes a file whole or not at all.
func writeArchive(file string, perm fs.FileMode, force bool, fill func(io.Writer) error) (err error) {
	temp, remove, err := staging.TempDir(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	staged := filepath.Join(temp, "archive")
	f, err := staging.OS.Create(staged, perm)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	if err := errors.Join(fill(w), w.Flush(), f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	move := staging.OS.RenameNew
	if force {
		move = staging.OS.Rename
	}
	if err := move(staged, file); errors.Is(err, fs.ErrExist) {
		return existsError(file)
	} else if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return staging.OS.SyncDir(filepath.Dir(file))
}

// exporter is one export under way.
type exporter struct {
	env      Env
	opts     ExportOptions
	dir      string       // the profile's
	store    *store.Store // the home's, of which only is read
	scratch  func() (scratch, error)
	closers  []func() error
	manifest *profile.Manifest // of the archive, as far as it is known
	lock     *install.Lock     // of the archive; nil where the profile has none
	files    map[string]archive.Content
	archives []archive.Content // of packages
	inSource map[string]bool   // files of sources that are there by wish
	private  bool              // only its owner may read the archive
	done     *Exported
}

// scratch is a place for what is made on the way, and a store in it.
type scratch struct {
	dir      string
	packages *store.Store
	close    func() error
}

// scratchIn makes one below a directory. Its store is nobody else's, so that
// whoever prunes the home's does not wait for it.
func scratchIn(parent string) (scratch, error) {
	dir, remove, err := staging.TempDir(parent)
	if err != nil {
		return scratch{}, err
	}
	packages := store.Open(filepath.Join(dir, "store"))
	return scratch{dir, packages, func() error { return errors.Join(packages.Close(), remove()) }}, nil
}

// makeScratch makes it in the home's store, or where that cannot be written
// among the system's temporary files: to save a profile may be all that is left
// to do.
func (x *exporter) makeScratch() (scratch, error) {
	s, err := scratchIn(x.store.Dir())
	if err != nil {
		s, err = scratchIn(os.TempDir())
	}
	if err == nil {
		x.closers = append(x.closers, s.close)
	}
	return s, err
}

// close takes away what was made on the way, the last first.
func (x *exporter) close() error {
	var err error
	for _, done := range slices.Backward(x.closers) {
		err = errors.Join(err, done())
	}
	return errors.Join(err, x.store.Close())
}

func (x *exporter) warn(format string, args ...any) {
	x.done.Warnings = append(x.done.Warnings, fmt.Sprintf(format, args...))
}

func (x *exporter) leaveOut(path, reason string) {
	x.done.LeftOut = append(x.done.LeftOut, archive.LeftOut{Path: path, Reason: reason})
}

// put makes bytes a file of the archive. What others cannot read here, they
// cannot read there.
func (x *exporter) put(path string, data []byte, mode fs.FileMode) {
	x.private = x.private || isPrivate(mode)
	x.files[path] = archive.Content{
		Member: archive.Member{Path: archive.FilePath(path), Executable: mode&0o111 != 0, Private: isPrivate(mode)},
		Open:   func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// isPrivate says whether only its owner may use a file.
func isPrivate(mode fs.FileMode) bool { return mode&0o077 == 0 }

func (x *exporter) contents() []archive.Content {
	all := slices.Clone(x.archives)
	for _, c := range x.files {
		all = append(all, c)
	}
	return all
}

// gather decides on everything that goes into the archive.
func (x *exporter) gather(ctx context.Context, now *staging.Generation) error {
	if err := x.read(now); err != nil {
		return err
	}
	if x.opts.set {
		if err := x.reduceToSet(); err != nil {
			return err
		}
	} else if err := x.addFiles(now); err != nil {
		return err
	}
	// What is not there is said before anything is packed.
	isOfDependency := func(name string) bool {
		return slices.ContainsFunc(dependenciesOf(x.manifest), func(d profile.Dependency) bool { return strings.HasPrefix(name, d.Name+"/") })
	}
	if err := x.checkIncluded(isOfDependency); err != nil {
		return err
	}
	if err := x.addSources(ctx); err != nil {
		return err
	}
	if err := x.checkIncluded(func(name string) bool { return x.inSource[name] }); err != nil {
		return err
	}
	if x.opts.set {
		if err := x.finishSet(ctx); err != nil {
			return err
		}
	}
	x.put(manifestName, x.manifest.Bytes(), 0o644)
	if x.lock != nil {
		x.put(install.LockName, x.lock.Bytes(), 0o644)
	}
	x.done.Files = len(x.files)
	if x.opts.Packages {
		if err := x.addPackages(ctx); err != nil {
			return err
		}
	}
	x.done.Packages = len(x.archives)
	return nil
}

const manifestName = "package.json"

// read reads manifest and lockfile, which have to fit: the receiver installs
// exactly what the lockfile says.
func (x *exporter) read(now *staging.Generation) (err error) {
	name := fault.ShellWord(x.opts.Name.String())
	text, ok := now.File(manifestName)
	if !ok {
		return fault.Errorf(fault.Other, "profile %s has no %s", x.opts.Name, manifestName)
	}
	if x.manifest, err = profile.ParseManifest(filepath.Join(x.dir, manifestName), text); err != nil {
		return fault.WithHint(err, "dsh profile repair %s", name)
	}
	text, ok = now.File(install.LockName)
	if !ok {
		if len(dependenciesOf(x.manifest)) == 0 {
			return nil
		}
		hint := "dsh plugin --profile %s install"
		if _, ok := now.File("pnpm-lock.yaml"); ok {
			hint = "dsh profile adopt %s"
		}
		return fault.WithHint(fault.Errorf(fault.Package, "profile %s has no %s, so nothing says which versions belong into the archive", x.opts.Name, install.LockName), hint, name)
	}
	if x.lock, err = install.ParseLock(filepath.Join(x.dir, install.LockName), text); err != nil {
		return fault.WithHint(err, "dsh profile repair %s", name)
	}
	return fault.WithHint(x.lock.Fits(x.manifest, x.dir), "dsh plugin --profile %s install", name)
}

var dependencyKinds = []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies}

// addPackages adds the archives of everything that registries, addresses and git
// repositories have. They are fetched anew: what the store holds unpacked could not be held
// against the lockfile by who receives it.
func (x *exporter) addPackages(ctx context.Context) error {
	if x.lock == nil {
		return nil
	}
	client, err := x.client()
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := x.scratch()
	if err != nil {
		return err
	}
	wanted, optional := x.originals()
	var mu sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(8)
	for _, pkg := range wanted {
		group.Go(func() error {
			file, id, err := x.original(groupCtx, client, s, pkg)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && optional[pkg.Integrity] && fault.ClassOf(err) == fault.Package:
				x.warn("an optional package is not in the archive: %v", err)
			case err != nil:
				return fault.WithHint(err, "--with-packages fetches the packages' archives again, so that the receiver can check them; without it they are fetched on import")
			default:
				x.archives = append(x.archives, archive.Content{
					Member: archive.Member{Path: archivePath(pkg), Integrity: id.String()},
					Open:   func() (io.ReadCloser, error) { return os.Open(file) },
				})
			}
			if x.opts.Events.Fetching != nil {
				x.opts.Events.Fetching(len(x.archives), len(wanted))
			}
			return nil
		})
	}
	return group.Wait()
}

// original is the archive of a package as it was published, and its hash. What
// comes from a git repository has none, and gets one with its files.
func (x *exporter) original(ctx context.Context, client *registry.Client, s scratch, pkg *install.Package) (file string, id store.Integrity, err error) {
	if pkg.Origin.Kind != install.Git {
		file, err = install.Original(ctx, client, s.packages, pkg)
		return file, pkg.Integrity, err
	}
	if file, err = install.OriginalTree(ctx, client, s.packages, x.store, pkg); err != nil {
		return "", store.Integrity{}, err
	}
	f, err := os.Open(file)
	if err != nil {
		return "", store.Integrity{}, err
	}
	defer f.Close()
	id, err = install.ArchiveIntegrity(f)
	return file, id, err
}

// client asks the registries that the profile has its packages from.
func (x *exporter) client() (*registry.Client, error) {
	config, err := registryConfig(x.env, PluginOptions{}, x.dir)
	if err != nil {
		return nil, err
	}
	return registry.New(config, registry.Options{})
}

// originals is the packages that registries, addresses and repositories have, each once, and
// which of them nobody needs.
func (x *exporter) originals() (wanted []*install.Package, optional map[store.Integrity]bool) {
	optional = map[store.Integrity]bool{}
	for _, n := range x.lock.Nodes {
		if n.Origin.Kind != install.Registry && n.Origin.Kind != install.URL && n.Origin.Kind != install.Git {
			continue
		}
		before, known := optional[n.Integrity]
		optional[n.Integrity] = n.Optional && (before || !known)
		if !known {
			wanted = append(wanted, n.Package)
		}
	}
	return wanted, optional
}

// archivePath is the place of a package's archive. Two that have one name and
// version are told apart by their hash.
func archivePath(pkg *install.Package) string {
	hash := strings.NewReplacer("+", "", "/", "").Replace(strings.TrimPrefix(pkg.Integrity.String(), "sha512-"))
	return archive.PackagePath(flatName(pkg.Name) + "-" + pkg.Version + "-" + strings.ToLower(hash[:12]) + ".tgz")
}

// flatName is a package's name as the name of a file.
func flatName(name string) string {
	return strings.ReplaceAll(strings.TrimPrefix(name, "@"), "/", "-")
}
