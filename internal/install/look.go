package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/install/registry"
	"dsh/internal/install/store"
)

// Looked is a package that somebody wants to know before it is installed.
type Looked struct {
	*Package
	From  string // registry, address or path, without secrets
	Dir   string // where its files are: in the store, or the folder itself of a link
	Text  []byte // its package.json
	Files []store.File
	// Scripts are what an installation would run of it, where it is approved.
	Scripts []Script
	// Published is when, by its registry, and zero where that is not known;
	// Deprecated is its publisher's advice against it, and Younger says which newer
	// version is passed over because it is too new.
	Published  time.Time
	Deprecated string
	Younger    string
	// Signature is what its registry's signature is worth; nil where it is from none.
	Signature *registry.Verdict
	Note      string // that it is a library in which there are plugins
	Runs      bool   // on this machine
}

// maxLinked bounds how many files of a linked folder are looked at.
const maxLinked = 100_000

// Describe picks the package that a spec names and brings its content into the job's
// store, which is one for that alone where nothing is to be kept. Nothing that it
// depends on is looked at, and the profile is not touched.
func (j *Job) Describe(ctx context.Context, spec Spec) (*Looked, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	l := &Looked{}
	if spec.Plugin == NoPlugin {
		spec.Plugin = MayBePlugin
	}
	if spec.Kind == Link && spec.isPluginFolder(ctx) {
		spec.Kind = Folder
	}
	if spec.Kind == Link {
		pkg, err := find.find(ctx, spec)
		if err != nil {
			return nil, err
		}
		l.Package, l.Dir = pkg, seenAt(j.Dir, j.Files, spec.Place)
		if l.Files, err = filesBelow(l.Dir); err != nil {
			return nil, err
		}
	} else {
		fetched, err := find.looked(ctx, spec)
		if err != nil {
			return nil, err
		}
		l.Package, l.Dir, l.Files = fetched.Package, fetched.Entry.Dir(), fetched.Entry.Files()
	}
	l.From, l.Runs = j.from(l.Package), ThisPlatform().runs(l.Package)
	var err error
	if l.AgentPlugin {
		l.Text, err = pluginText(l.Package, l.Dir)
	} else {
		l.Text, err = readPackageText(l.describe(), filepath.Join(l.Dir, "package.json"))
	}
	if err != nil {
		return nil, err
	}
	has := func(file string) bool {
		return slices.ContainsFunc(l.Files, func(f store.File) bool { return f.Path == file })
	}
	l.Scripts = scriptsIn(l.Text, l.Origin.Kind == Git, has).all()
	for _, said := range []struct {
		of   interface{ Load(any) (any, bool) }
		into *string
	}{{&find.deprecated, &l.Deprecated}, {&find.young, &l.Younger}, {&find.notes, &l.Note}} {
		if text, ok := said.of.Load(l.describe()); ok {
			*said.into = text.(string)
		}
	}
	if l.Origin.Kind == Registry {
		if at, err := j.Registry.Published(ctx, l.Name, l.Version, time.Time{}); err == nil {
			l.Published = at
		}
		if signed, err := j.Registry.Signed(ctx, l.Name, l.Version); err == nil {
			verdict, _ := j.Registry.Verify(ctx, signed) // it says why nothing is known
			l.Signature = &verdict
		}
	}
	return l, ctx.Err()
}

// Content brings the content that a spec of no profile names into a store, whatever
// it is: a package, an Agent Plugin, or neither. Places are seen from the job's Dir.
// The result is where its files are, and what it is, without secrets.
func (j *Job) Content(ctx context.Context, spec Spec) (dir, from string, err error) {
	find, ctx, done := j.sources(ctx)
	defer done()
	if err := find.admits([]Spec{spec}); err != nil {
		return "", "", err
	}
	var entry store.Entry
	switch spec.Kind {
	case Registry:
		fetched, err := find.looked(ctx, spec)
		if err != nil {
			return "", "", err
		}
		entry, from = fetched.Entry, fetched.describe()
	case Git:
		source, commit, err := find.reading(ctx, *spec.Git)
		if err == nil {
			entry, err = find.fromCommit(ctx, source, commit, store.Integrity{}, nil)
		}
		if err != nil {
			return "", "", within(spec.Shown(), err)
		}
		from = ShownSpec(source.At(commit.ID))
	default:
		if entry, err = find.content(ctx, Origin{spec.Kind, originPlace(spec, j.Dir)}, store.Integrity{}); err != nil {
			return "", "", err
		}
		from = shownPlace(spec)
	}
	return entry.Dir(), from, ctx.Err()
}

// filesBelow is the files of a folder, as an entry of the store would have them.
func filesBelow(dir string) ([]store.File, error) {
	var files []store.File
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		case len(files) == maxLinked:
			return filepath.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			return nil // it went
		}
		rel, err := filepath.Rel(dir, path)
		if err == nil && info.Mode().IsRegular() {
			files = append(files, store.File{Path: strings.ReplaceAll(rel, string(filepath.Separator), "/"), Size: info.Size()})
		}
		return err
	})
	return files, err
}
