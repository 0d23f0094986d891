package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/staging"
)

// CopyProfile makes a profile that is the same as from, with its packages or not
// at all; nothing of from changes. Dependencies on what lies in from lead to the
// copy of it. Empty directories, .git and what can be made again are not copied.
func CopyProfile(ctx context.Context, env Env, opts PluginOptions, from profile.Name) (made *Made, err error) {
	if opts.Name, err = env.newName(opts.Name.String()); err != nil {
		return nil, err
	}
	c := &copying{env: env}
	if c.from, err = env.siteOf(from); err != nil {
		return nil, fmt.Errorf("looking for profile %s: %w", from, err)
	}
	if err := staging.MkdirAll(env.Home.ProfilesDir()); err != nil {
		return nil, env.unwritable(err)
	}
	if c.to, err = env.siteOf(opts.Name); err != nil {
		return nil, err
	}
	warnings, err := staging.Read(ctx, env.Home.Place(from), c.read)
	if missing, ok := errors.AsType[*profile.MissingError](err); ok && !missing.Left {
		return nil, cmp.Or(env.there(from), err)
	}
	if err != nil {
		return nil, err
	}
	if err := profile.CheckShipped(opts.Name, c.manifest.Bundles()); err != nil {
		return nil, err
	}
	tx, p, err := env.begin(ctx, opts.Name, c.fill)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if !p.Created {
		return nil, existing(&profile.TakenError{Name: opts.Name, By: opts.Name}) // somebody was faster
	}
	made = &Made{
		Profile: opts.Name.String(), Dir: p.Dir, From: from.String(),
		Bundles: append([]string{}, c.manifest.Bundles()...), Changes: []install.Change{}, Notes: c.notes,
	}
	if c.restores() {
		err := env.withJob(opts, tx, p, func(j *install.Job) error {
			result, err := j.Restore(ctx, c.manifest, c.lock)
			if err != nil {
				return fmt.Errorf("laying out the packages of the copy: %w", err)
			}
			made.Changes, made.Tree, made.Builds = result.Changes, result.Tree, buildsOf(result)
			made.Warnings = append(made.Warnings, result.Warnings...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	if err := runtimes.CopyChoice(runtimes.ChoicePath(env.Home, &from), runtimes.ChoicePath(env.Home, &opts.Name)); err != nil {
		made.Warnings = append(made.Warnings, fmt.Sprintf("which installation the copy runs on: %v", err))
	}
	made.References = references(env.Home, from, []profile.Name{opts.Name}, false)
	made.Warnings = slices.Concat(warnings, made.Warnings, tx.Warnings())
	return made, nil
}

// copying is the copy of a profile under way.
type copying struct {
	env      Env
	from, to site
	state    *staging.Generation
	manifest *profile.Manifest
	lock     *install.Lock // nil without a lockfile
	maker    string        // of node_modules
	notes    []string
}

// read takes what is to be copied, as it is at one time. It may be called again.
func (c *copying) read(view staging.View) (err error) {
	source := c.env.Home.Place(c.from.name)
	c.notes, c.lock = []string{}, nil
	if _, err := profile.ReadFrom(view.Path, c.env.Home, c.from.name); err != nil {
		return err
	}
	if c.state, err = staging.Snapshot(source); err != nil {
		return err
	}
	// An edit of the copy is to be none of the other.
	c.state.Files = c.state.Followed()
	// What an old manifest needs is left to whoever opens the copy.
	text, _ := c.state.File("package.json")
	if c.manifest, err = profile.ParseManifest(packageFile(c.to.dir), text); err != nil {
		return err
	}
	lockText, locked := c.state.File(install.LockName)
	if locked {
		if c.lock, err = install.ParseLock(filepath.Join(c.from.dir, install.LockName), lockText); err != nil {
			return err
		}
	}
	changed, lockChanged := relocate(c.manifest, c.lock, c.from, c.to)
	if changed {
		c.replace("package.json", c.manifest.Bytes())
	}
	if lockChanged {
		c.replace(install.LockName, c.lock.Bytes())
	}
	c.maker = install.Maker(c.from.dir)
	if exists(filepath.Join(c.from.dir, ".git")) {
		c.notes = append(c.notes, "the repository .git was not copied")
	}
	switch {
	case c.foreign():
		c.notes = append(c.notes, fmt.Sprintf("node_modules was laid out by %s and was copied as it is", c.maker))
	case c.maker == "" && c.lock == nil && len(dependenciesOf(c.manifest)) > 0:
		c.notes = append(c.notes, fmt.Sprintf("the packages of %s are not installed, and neither are those of the copy", c.from.name))
	}
	return nil
}

// replace gives a file of the copy another content.
func (c *copying) replace(name string, data []byte) {
	for i, f := range c.state.Files {
		if f.Path == name {
			c.state.Files[i].Data = data
		}
	}
}

// foreign says that another package manager laid node_modules out, so that only
// it knows what belongs there.
func (c *copying) foreign() bool { return c.maker != "" && c.maker != "dsh" }

// restores says that node_modules of the copy is made anew.
func (c *copying) restores() bool {
	return !c.foreign() && (c.lock != nil || c.maker == "dsh")
}

// fill writes the files of the copy.
func (c *copying) fill(dir string) error {
	if err := writeSaved(dir, c.state.Files); err != nil {
		return err
	}
	for _, name := range c.state.SkippedPaths() {
		name = filepath.FromSlash(name)
		if err := copyLarge(filepath.Join(c.from.dir, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if c.foreign() {
		if _, err := staging.CopyTree(filepath.Join(c.from.dir, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			return err
		}
	}
	return c.fillInside(dir)
}

// fillInside copies what has the name of something that dsh makes and lies deeper,
// where dsh makes nothing: the packages of a folder in the profile. Directories of
// the copy become as open to others as theirs.
func (c *copying) fillInside(dir string) error {
	derived := c.env.Home.Place(c.from.name).Derived
	type folder struct {
		path string
		mode fs.FileMode
	}
	var folders []folder
	err := filepath.WalkDir(c.from.dir, func(from string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // who could not read it has been told
		}
		rel, err := filepath.Rel(c.from.dir, from)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.Name() == ".git" || slices.Contains(derived, d.Name()) {
			if d.Name() != ".git" && d.Name() != rel && exists(filepath.Dir(to)) && !exists(to) {
				if target, lerr := os.Readlink(from); lerr == nil {
					err = staging.OS.Symlink(target, to)
				} else {
					err = copyLarge(from, to)
				}
			}
			if err == nil && d.IsDir() {
				err = fs.SkipDir
			}
			return err
		}
		if d.IsDir() && exists(to) {
			info, err := d.Info()
			if err != nil {
				return err
			}
			folders = append(folders, folder{to, info.Mode().Perm()})
		}
		return nil
	})
	for _, f := range slices.Backward(folders) {
		if err == nil {
			err = staging.OS.Chmod(f.path, f.mode|0o700)
		}
	}
	return err
}

// writeSaved writes the files and links of a state into a directory that has
// none of them.
func writeSaved(dir string, files []staging.SavedFile) error {
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := staging.MkdirAll(filepath.Dir(path)); err != nil {
			return err
		}
		var err error
		if f.Mode&fs.ModeSymlink != 0 {
			err = staging.OS.Symlink(string(f.Data), path)
		} else if err = staging.WriteFile(path, f.Data, f.Mode.Perm()); err == nil {
			err = staging.OS.Chmod(path, f.Mode.Perm()) // in spite of the umask
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", f.Path, err)
		}
	}
	return nil
}

// copyLarge copies a file, or a directory with all in it, that is too large for
// memory.
func copyLarge(from, to string) (err error) {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err := staging.CopyTree(from, to)
		return err
	}
	if err := staging.MkdirAll(filepath.Dir(to)); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := staging.OS.Create(to, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copying %s: %w", from, err)
	}
	return nil
}
