package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// EditOptions say which patch file of the user an edit is about.
type EditOptions struct {
	Name profile.Name
	// Layer is whose file: compose.ProfileLayer, HomeLayer or ProjectLayer.
	Layer       compose.Kind
	ShowSecrets bool
	Now         time.Time // what a grant of trust is dated with
}

// Edit is what a command did to a patch file, or to the list of bundles.
type Edit struct {
	Profile string `json:"profile"`
	Layer   string `json:"layer"` // profile, home or project
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // of what was written, from 1
	// Target is the place in the tree as people write it, or the name of a
	// bundle.
	Target  string `json:"target"`
	Bundle  bool   `json:"bundle"`
	Row     bool   `json:"row"`     // Target is a whole row, whose overrides were taken out
	Created bool   `json:"created"` // the profile was made by this command
	Changed bool   `json:"changed"` // the file is not what it was
	// Before and After are what the layers up to the file compose to at the
	// target; null for a bundle and where nothing is.
	Before *Shown `json:"before"`
	After  *Shown `json:"after"`
	// Composed is what all layers compose to at the target now, and Overridden
	// which layer above the file has the last word there, "" if none.
	Composed   *Shown `json:"composed"`
	Overridden string `json:"overridden"`
	// Copied are the keys of the config that the edit copied from the layers
	// below, for an override replaces a config whole.
	Copied []string `json:"copied"`
	// Notes are what a person may want to know though nothing is wrong.
	Notes    []string `json:"notes"`
	Warnings []string `json:"-"`
}

// edit is the edit of one patch file under way.
type edit struct {
	env   Env
	opts  EditOptions
	shown shown
	src   compose.Source
	rules compose.PathRules
	// composed is the profile as it is.
	composed *Composed
	// below and above are the layers around that of the file.
	below, above []compose.Layer
	// winner is the layer that Overridden of the report names.
	winner compose.Kind
	report *Edit
}

// runEdit changes a patch file by change, which is given the file's text, nil
// where there is no file, and returns what it is to be.
func runEdit(ctx context.Context, env Env, opts EditOptions, change func(*edit, []byte) ([]byte, error)) (*Edit, error) {
	warnings := recovered(ctx, env, opts.Name)
	// What is wrong is said before anything is touched.
	if _, err := readOrNew(env.Home, opts.Name); err != nil {
		return nil, err
	}
	var err error
	e := &edit{env: env, opts: opts, shown: shown{opts.ShowSecrets}, report: &Edit{
		Profile: opts.Name.String(), Layer: opts.Layer.String(), Copied: []string{}, Notes: []string{}, Warnings: warnings,
	}}
	switch opts.Layer {
	case compose.ProfileLayer:
		err = e.inProfile(ctx, func(tx *staging.Tx, p *profile.Profile) error {
			return e.profileFile(tx, p, change)
		})
	case compose.HomeLayer:
		err = e.homeFile(ctx, change)
	default:
		err = e.projectFile(ctx, change)
	}
	if err != nil {
		return nil, err
	}
	return e.report, nil
}

// inProfile runs work in a transaction over the profile, which is made if it is
// missing.
func (e *edit) inProfile(ctx context.Context, work func(*staging.Tx, *profile.Profile) error) (err error) {
	// What an old manifest needs is written with the edit, or not at all.
	tx, p, err := e.env.begin(ctx, e.opts.Name, fresh(e.opts.Name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if err := work(tx, p); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if e.report.Changed {
		e.report.Created = p.Created
		err = tx.Commit()
	}
	e.report.Warnings = append(e.report.Warnings, tx.Warnings()...)
	return err
}

func (e *edit) profileFile(tx *staging.Tx, p *profile.Profile, change func(*edit, []byte) ([]byte, error)) error {
	text, edited, err := e.apply(p, p.PatchPath(), change)
	if err != nil || !e.report.Changed {
		return err
	}
	name := filepath.Base(p.PatchPath())
	return errors.Join(tx.Expect(name, text), tx.WriteFile(name, edited, 0o644))
}

// editLock is the lock under which files outside of profiles are edited. No
// profile has a name that begins with a dot.
const editLock = ".patches.lock"

// unwritable says of the home what an error says of a file of ours in it, which
// nobody asked to write.
func (e Env) unwritable(err error) error {
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS} {
		if errors.Is(err, cause) {
			return fault.WithHint(fault.Errorf(fault.Environment, "the home of dsh, %s, cannot be written: %w", e.Home.Dir(), cause),
				"make it yours to write, or name another: DSH_HOME=DIR dsh …")
		}
	}
	return err
}

// readOrNew is readOrTemplate, and for the profile that a command without a name
// means, which is made when it is first needed, what it will be.
func readOrNew(home profile.Home, name profile.Name) (*profile.Profile, error) {
	p, err := readOrTemplate(staging.View{}, home, name)
	if missing, ok := errors.AsType[*profile.MissingError](err); ok && !missing.Lost && name == profile.Default {
		return unmade(home, name, profile.BaseTemplate())
	}
	return p, err
}

// homeFile edits the patch of the home.
func (e *edit) homeFile(ctx context.Context, change func(*edit, []byte) ([]byte, error)) error {
	return e.locked(ctx, func(p *profile.Profile) error {
		file := e.env.Home.PatchPath()
		text, edited, err := e.apply(p, file, change)
		if err != nil || !e.report.Changed {
			return err
		}
		return e.env.inHomeHistory(ctx, func() error { return writeOver(file, text, edited) })
	})
}

// locked runs work under the lock for files outside of profiles, with the profile
// as it is now.
func (e *edit) locked(ctx context.Context, work func(*profile.Profile) error) (err error) {
	lock, err := e.env.acquire(ctx, e.env.Home.Path("state", editLock))
	if err != nil {
		return e.env.unwritable(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	p, err := readOrNew(e.env.Home, e.opts.Name)
	if err != nil {
		return err
	}
	return work(p)
}

// writeOver gives a file new content unless it does not hold what it held when
// it was read. nil is no file.
func writeOver(file string, was, data []byte) error {
	now, err := readFile(file)
	if err != nil {
		return err
	}
	if (now == nil) != (was == nil) || !bytes.Equal(now, was) {
		return &staging.ChangedError{Path: file}
	}
	if err := staging.MkdirAll(filepath.Dir(file)); err != nil {
		return err
	}
	_, err = staging.WriteFileIfChanged(file, data, 0o644)
	return err
}

// readFile is the content of a file, nil if there is none.
func readFile(file string) ([]byte, error) {
	text, err := profile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // it says what was read
	}
	return append([]byte{}, text...), nil
}

// apply reads a file and lets change say what it is to be.
func (e *edit) apply(p *profile.Profile, file string, change func(*edit, []byte) ([]byte, error)) (text, edited []byte, err error) {
	if text, err = readFile(p.Where(file)); err != nil {
		return nil, nil, err
	}
	if err := e.open(p, file); err != nil {
		return nil, nil, err
	}
	if edited, err = change(e, text); err != nil {
		return nil, nil, err
	}
	e.report.Changed = !bytes.Equal(text, edited)
	return text, edited, nil
}

// open reads the layers around the file.
func (e *edit) open(p *profile.Profile, file string) error {
	c, err := composeProfile(e.env, p, Layers{Name: e.opts.Name}, true)
	if err != nil {
		return err
	}
	e.report.File = file
	e.src = compose.Source{File: file, Dir: filepath.Dir(file), Kind: e.opts.Layer, UserHome: e.env.userHome()}
	e.rules, e.composed = c.Rules, c
	for _, entry := range c.Stack.Entries {
		switch {
		case entry.Kind == compose.BundleLayer && entry.State == stack.Broken:
			e.warn("%v", stack.SkippedBundle{Name: entry.Label, Reason: entry.Err})
		case entry.Kind == e.opts.Layer, entry.State == stack.Disabled:
		case entry.State == stack.Broken && entry.Kind < e.opts.Layer:
			return entry.Err // what the row is cannot be known
		case entry.State == stack.Broken:
			e.warn("left out: %v", entry.Err)
		case entry.State == stack.Untrusted:
			e.warn("%v; %s", entry.Err, fault.Hint(entry.Err))
		}
	}
	e.below, e.above = nil, nil
	for _, layer := range c.Stack.Layers {
		switch {
		case layer.Kind < e.opts.Layer:
			e.below = append(e.below, layer)
		case layer.Kind > e.opts.Layer:
			e.above = append(e.above, layer)
		}
	}
	return nil
}

func (e *edit) warn(format string, args ...any) {
	e.report.Warnings = append(e.report.Warnings, fmt.Sprintf(format, args...))
}

func (e *edit) note(format string, args ...any) {
	e.report.Notes = append(e.report.Notes, fmt.Sprintf(format, args...))
}

// parse reads the patches of the file. One that holds nothing has none.
func (e *edit) parse(text []byte) ([]compose.Patch, error) {
	if text == nil {
		return nil, nil
	}
	patches, err := compose.ParsePatches(e.src, text)
	if shape, ok := errors.AsType[*compose.ShapeError](err); ok && shape.Fault == compose.NotAList && shape.Line == 0 {
		return nil, nil
	}
	return patches, err
}

// tree composes the layers up to the file, with these patches in it, and the
// layers above if all is set.
func (e *edit) tree(patches []compose.Patch, all bool) *compose.Tree {
	layers := append(slices.Clip(e.below), compose.Layer{Label: e.src.File, Kind: e.src.Kind, Patches: patches})
	if all {
		layers = append(layers, e.above...)
	}
	return compose.Apply(layers, e.rules)
}

// own is the index of the file's layer.
func (e *edit) own() int { return len(e.below) }

// projectFile edits the patch of the project that the command runs in. What is
// trusted stays trusted.
func (e *edit) projectFile(ctx context.Context, change func(*edit, []byte) ([]byte, error)) error {
	project, err := e.env.editedProject()
	if err != nil {
		return err
	}
	store := trust.Open(e.env.trustFile())
	return e.locked(ctx, func(p *profile.Profile) error {
		text, edited, err := e.apply(p, project.Patch, change)
		if err != nil {
			return err
		}
		patches, err := e.parse(text)
		if err != nil {
			return err
		}
		state, contents, err := stack.TrustOf(store, project, text, patches)
		if err != nil {
			return err
		}
		if state != trust.Trusted && edited != nil {
			e.warn("the project %s is not trusted, so its layer is left out; look at it, then: dsh trust %s",
				project.Dir, fault.ShellWord(project.Dir))
		}
		if !e.report.Changed {
			return nil
		}
		if err := writeOver(project.Patch, text, edited); err != nil || state != trust.Trusted {
			return err
		}
		return e.grant(ctx, store, project, edited, contents)
	})
}

// grant trusts a project with the text that an edit gave its patch, since when
// it was trusted before. Of the files that it named before the edit those
// contents count that were trusted, and not what they hold by now.
func (e *edit) grant(ctx context.Context, store *trust.Store, project trust.Project, text []byte, trusted trust.Contents) error {
	patches, err := e.parse(text)
	if err != nil {
		return err
	}
	record := trust.Record{Dir: project.Dir, Files: stack.NamedFiles(project, patches), Since: e.opts.Now}
	contents := trust.Contents{}
	var added []string
	for _, file := range record.Files {
		if sum, ok := trusted[file]; ok {
			contents[file] = sum
		} else {
			added = append(added, file)
		}
	}
	now, err := trust.Read(added)
	if err != nil {
		return err
	}
	maps.Copy(contents, now)
	record.Seal = contents.Seal(text)
	if known, ok, err := store.Recorded(project); err != nil {
		return err
	} else if ok {
		record.Since = known.Since
	}
	return store.Grant(ctx, record)
}
