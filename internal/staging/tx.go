package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"dsh/internal/fault"
)

// Options are what [Begin] and [ReplaceDir] can be told. The zero value works.
type Options struct {
	FS      FS           // nil is [OS]
	Command string       // what the user runs, for others who wait for us
	Waiting func(Holder) // called once when somebody else has the lock
	// Wait is how long to wait for the lock; 0 waits until the context ends.
	Wait time.Duration

	// Init fills the directory of a profile that is not there. It becomes the
	// profile in [Tx.Commit], with all that the transaction puts into it, and
	// is nowhere to be seen before. Without Init a missing profile is an error.
	// A directory that is there is never given to Init.
	Init func(dir string) error

	// Decide is asked by [ReplaceDir], with the lock held and earlier changes
	// finished, whether the previous directory is not worth keeping. An error
	// ends the replacement.
	Decide func() (drop bool, err error)
}

func (o Options) disk() disk {
	if o.FS == nil {
		return disk{OS}
	}
	return disk{o.FS}
}

// Tx is a transaction over one profile directory: what it is told happens in
// [Tx.Commit], all of it or nothing, also when the process dies. The profile
// is locked from [Begin] to the end. A Tx is for one goroutine, but any number
// may build below [Tx.Stage].
type Tx struct {
	change  *change
	work    *change // of the staged directory of a profile that is made; else change
	command string
	lock    *Lock
	release func() error // of the staging directory
	targets map[string]target
	expect  map[string][]byte
	seen    map[string]sight
	files   int
	saved   int
	after   []func()
	ended   bool
}

// target is what shall become of one path of the profile.
type target struct {
	staged  string // relative to the staging directory; "" removes
	follow  bool   // a link at the path is followed, not replaced
	emptied bool   // directories that a removal empties go too
}

// sight is what was at a path when the transaction was told to change it.
type sight struct {
	follow bool
	mark   string
}

// ChangedError is a file that somebody else wrote while a transaction ran.
// Nothing was changed.
type ChangedError struct {
	Path string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("changing the profile: %s was edited at the same time; nothing was changed", e.Path)
}

// Class is Environment.
func (e *ChangedError) Class() fault.Class { return fault.Environment }

// Hint says that a second try starts from the edited file.
func (e *ChangedError) Hint() string {
	return "run the command again: it will start from the edited file"
}

// Begin locks the profile, finishes what an earlier process left, and makes a
// fresh staging directory beside the profile, which has to exist or to be made
// by opts.Init. Waiting for the lock ends with ctx, as [Acquire] says, and after
// opts.Wait with a [*HeldError].
func Begin(ctx context.Context, place Place, opts Options) (*Tx, error) {
	d := opts.disk()
	lock, err := d.lockPlace(ctx, place, opts)
	if err != nil {
		return nil, err
	}
	tx, err := d.begin(place, opts)
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	tx.lock, tx.command = lock, opts.Command
	return tx, nil
}

func (d disk) begin(place Place, opts Options) (*Tx, error) {
	place, err := place.resolved(d)
	if err != nil {
		return nil, err
	}
	warnings, err := d.recover(place)
	if err != nil {
		return nil, err
	}
	is, err := d.identityOf(place.Dir)
	if err == nil && is == "" && opts.Init == nil {
		_, err = d.Lstat(place.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening profile directory: %w", err)
	}
	if is == "" {
		err = d.mkdirAll(filepath.Dir(place.Dir))
	} else {
		err = d.claim(place)
	}
	if err != nil {
		return nil, err
	}
	root, release, err := d.newStage(place.Dir)
	if err != nil {
		return nil, err
	}
	c := newChange(d, place)
	c.Stage, c.warnings = c.stageName(root), warnings
	tx := &Tx{
		change: c, work: c, release: release,
		targets: map[string]target{}, expect: map[string][]byte{}, seen: map[string]sight{},
	}
	if is == "" {
		if err := tx.init(opts.Init); err != nil {
			return nil, errors.Join(err, release(), d.removeStage(root))
		}
	}
	return tx, nil
}

// init makes the directory that becomes the profile.
func (tx *Tx) init(fill func(dir string) error) error {
	c := tx.change
	work := &change{disk: c.disk, dir: filepath.Join(c.stage(), "profile"), state: c.state, derived: c.derived}
	work.Stage = "." // beside it, and not beside the profile
	if err := c.Mkdir(work.dir, 0o755); err != nil {
		return fmt.Errorf("making the profile %s: %w", c.dir, err)
	}
	tx.work = work
	return fill(work.dir)
}

// Dir is where the files of the profile can be read until the commit: the
// profile, or the staged directory of a profile that the transaction makes.
func (tx *Tx) Dir() string { return tx.work.dir }

// Creating says that the transaction makes the profile.
func (tx *Tx) Creating() bool { return tx.work != tx.change }

// Saved is, after [Tx.Commit], the generation of the state that it made; 0 if
// it made none, because no file changed that generations keep.
func (tx *Tx) Saved() int { return tx.saved }

// Stage is the directory, on the profile's filesystem, in which callers build
// what [Tx.Replace] puts in place.
func (tx *Tx) Stage() string { return filepath.Join(tx.change.stage(), "new") }

// Warnings are what the user should know though nothing failed: an earlier
// change that was taken back, left-overs that could not be removed. The next
// transaction tries again.
func (tx *Tx) Warnings() []string {
	if !tx.Creating() {
		return tx.change.warnings
	}
	return slices.Concat(tx.change.warnings, tx.work.warnings)
}

// WriteFile stages the content of the file rel of the profile. As with the
// function [WriteFile] an existing file keeps its permissions and a link is
// followed. A file that has this content already is left alone.
func (tx *Tx) WriteFile(rel string, data []byte, perm fs.FileMode) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	if err := tx.see(rel, true); err != nil {
		return err
	}
	staged, path := tx.newFile()
	if err := tx.change.writeNew(path, data, perm, false); err != nil {
		return fmt.Errorf("staging %s: %w", rel, err)
	}
	tx.targets[rel] = target{staged: staged, follow: true}
	return nil
}

// WriteFrom stages a file rel of the profile that may be large: its content is what
// fill writes, and never whole in memory. It takes the place of whatever is there,
// a link too.
func (tx *Tx) WriteFrom(rel string, perm fs.FileMode, fill func(io.Writer) error) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	if err := tx.see(rel, false); err != nil {
		return err
	}
	staged, path := tx.newFile()
	if err := tx.change.fillNew(path, perm, false, fill); err != nil {
		return fmt.Errorf("staging %s: %w", rel, err)
	}
	tx.targets[rel] = target{staged: staged}
	return nil
}

// newFile is a free name for a small file, in the staging directory and whole.
func (tx *Tx) newFile() (staged, path string) {
	staged = filepath.Join("files", strconv.Itoa(tx.files))
	tx.files++
	return staged, under(tx.change.stage(), staged)
}

// see notes what is at a path that is to change, if it is of what somebody may
// edit while the transaction runs.
func (tx *Tx) see(rel string, follow bool) error {
	if _, done := tx.seen[rel]; done || !tx.work.small(rel) {
		return nil
	}
	mark, err := tx.work.mark(filepath.Join(tx.work.dir, rel), follow)
	if err != nil {
		return fmt.Errorf("changing %s: %w", rel, err)
	}
	tx.seen[rel] = sight{follow, mark}
	return nil
}

// Replace makes staged, a file, directory or link below [Tx.Stage], become the
// path rel of the profile, in place of whatever is there. It moves at commit.
func (tx *Tx) Replace(rel, staged string) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	inside, err := filepath.Rel(tx.Stage(), staged)
	if err != nil || inside == "." || !filepath.IsLocal(inside) {
		return fmt.Errorf("replacing %s: %s is not below the staging directory", rel, staged)
	}
	if _, err := tx.change.Lstat(staged); err != nil {
		return fmt.Errorf("replacing %s: %w", rel, err)
	}
	if err := tx.see(rel, false); err != nil {
		return err
	}
	tx.targets[rel] = target{staged: filepath.Join("new", inside)}
	return nil
}

// Remove removes the path rel of the profile with all below it; it need not
// exist. The last package of a scope takes the scope's directory with it.
func (tx *Tx) Remove(rel string) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	if err := tx.see(rel, false); err != nil {
		return err
	}
	tx.targets[rel] = target{}
	return nil
}

// Expect makes the commit stop with a [*ChangedError] unless the file rel then
// still holds data, or still is absent when data is nil. Of the files that the
// transaction changes it finds out by itself that somebody else did so since it
// was told.
func (tx *Tx) Expect(rel string, data []byte) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	tx.expect[rel] = data
	return nil
}

// local is rel cleaned, or an error if it is not inside the profile.
func (tx *Tx) local(rel string) (string, error) {
	clean := filepath.Clean(filepath.FromSlash(rel))
	switch {
	case tx.ended:
		return "", fmt.Errorf("changing %s: the transaction has ended", rel)
	case clean == "." || !filepath.IsLocal(clean):
		return "", fault.Errorf(fault.Policy, "changing the profile: path %q is not inside it", rel)
	}
	return clean, nil
}

// Commit does everything that the transaction was told, and ends it. After an
// error nothing has changed, or the error says what the next command will put
// right.
func (tx *Tx) Commit() error {
	if tx.ended {
		return errors.New("changing the profile: the transaction has ended")
	}
	err := tx.commit()
	if err == nil {
		for _, f := range tx.after {
			f()
		}
	}
	return errors.Join(err, tx.end(err == nil))
}

// Then makes a commit that succeeds call f: for what stands beside the profile, can
// be made again, and may fail without harm.
func (tx *Tx) Then(f func()) { tx.after = append(tx.after, f) }

// Rollback ends the transaction without a change. After [Tx.Commit] it does
// nothing.
func (tx *Tx) Rollback() error {
	if tx.ended {
		return nil
	}
	return tx.end(false)
}

// end removes the staging directory and gives the locks back. When the change
// was made, a failure is only worth a warning.
func (tx *Tx) end(committed bool) error {
	tx.ended = true
	c := tx.change
	err := tx.release()
	// While there is a journal it needs what is staged.
	if open, lerr := c.exists(c.journalPath()); lerr != nil || open {
		err = errors.Join(err, lerr)
	} else {
		err = errors.Join(err, c.removeStage(c.stage()))
	}
	err = errors.Join(err, tx.lock.Release())
	if err != nil && committed {
		c.warnings = append(c.warnings, fmt.Sprintf("cleaning up after the change: %v", err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("cleaning up: %w", err)
	}
	return nil
}

func (tx *Tx) commit() error {
	if err := tx.plan(); err != nil {
		return err
	}
	for _, rel := range slices.Sorted(maps.Keys(tx.expect)) {
		if err := tx.checkExpected(rel); err != nil {
			return err
		}
	}
	for _, rel := range slices.Sorted(maps.Keys(tx.seen)) {
		if err := tx.checkSeen(rel); err != nil {
			return err
		}
	}
	if tx.Creating() {
		return tx.create()
	}
	c := tx.change
	if len(c.Ops) == 0 {
		return nil
	}
	fail := func(err error) error {
		return c.abandon(fmt.Errorf("preparing the change of %s: %w", c.dir, err))
	}
	if err := c.prepare(); err != nil {
		return fail(err)
	}
	saved, err := tx.save()
	if err != nil {
		return fail(err)
	}
	if err := c.run(); err != nil {
		return err
	}
	tx.saved = saved
	return nil
}

// create commits a profile that the transaction makes: nobody sees what happens
// to the staged directory, and one rename makes it the profile.
func (tx *Tx) create() error {
	c, work := tx.change, tx.work
	for _, o := range work.Ops {
		if filepath.IsAbs(o.Path) {
			return fmt.Errorf("making the profile %s: %s leads out of it", c.dir, o.rel)
		}
	}
	if err := work.forward(); err != nil {
		return fmt.Errorf("making the profile %s: %w", c.dir, err)
	}
	c.Ops = []op{{Path: ".", Staged: filepath.Base(work.dir)}}
	saved, err := c.replace("", tx.command, "making")
	tx.saved = saved
	return err
}

// save prepares the generations of the change, if it changes what they keep.
func (tx *Tx) save() (int, error) {
	c := tx.change
	if !slices.ContainsFunc(c.Ops, func(o op) bool { return c.small(o.rel) }) {
		return 0, nil
	}
	found, err := c.snapshot(c.dir, c.derived)
	if err != nil {
		return 0, err
	}
	next, err := c.after(found)
	if err != nil {
		return 0, err
	}
	return c.stageSaves(found, next, tx.command, time.Now())
}

// checkSeen makes sure that a path is as it was when the change was planned.
func (tx *Tx) checkSeen(rel string) error {
	path, was := filepath.Join(tx.work.dir, rel), tx.seen[rel]
	is, err := tx.work.mark(path, was.follow)
	if err != nil {
		return fmt.Errorf("changing the profile: %w", err)
	}
	if is != was.mark {
		return &ChangedError{path}
	}
	return nil
}

func (tx *Tx) checkExpected(rel string) error {
	path := filepath.Join(tx.work.dir, rel)
	want := tx.expect[rel]
	got, err := tx.work.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		got, err = nil, nil
	}
	if err != nil {
		return fmt.Errorf("changing the profile: %w", err)
	}
	if (got == nil) != (want == nil) || !bytes.Equal(got, want) {
		return &ChangedError{path}
	}
	return nil
}

// plan makes the ops of the targets: removals first, since on some systems
// names differ only by case, then directories and links, then small files.
func (tx *Tx) plan() error {
	c := tx.work
	c.Ops, c.Made = nil, nil
	rels := slices.Sorted(maps.Keys(tx.targets))
	made := map[string]bool{}
	var removals, replacements, files []op
	for _, rel := range rels {
		for up := filepath.Dir(rel); up != "."; up = filepath.Dir(up) {
			if _, both := tx.targets[up]; both {
				return fmt.Errorf("changing the profile: both %s and %s are to change", up, rel)
			}
		}
		t := tx.targets[rel]
		missing, err := c.missingParents(rel)
		if err != nil {
			return fmt.Errorf("changing %s: %w", rel, err)
		}
		if t.staged != "" {
			for _, dir := range missing {
				made[dir] = true
			}
		} else if len(missing) > 0 {
			continue // nothing to remove
		}
		o, skip, err := c.planOp(rel, t)
		if err == nil && !skip && o.Staged != "" && c.small(o.rel) {
			o.Is, err = c.mark(c.staged(o), false)
		}
		switch {
		case err != nil:
			return fmt.Errorf("changing %s: %w", rel, err)
		case skip:
		case o.Staged == "":
			removals = append(removals, o)
		case o.File:
			files = append(files, o)
		default:
			replacements = append(replacements, o)
		}
	}
	c.Ops = slices.Concat(removals, replacements, files)
	c.Made = slices.Sorted(maps.Keys(made)) // a parent sorts before its child
	for i := range c.Ops {
		// Outside paths get theirs when they are prepared.
		if o := &c.Ops[i]; !filepath.IsAbs(o.Path) && (!o.File || o.Was != "") {
			o.Backup = filepath.Join("old", strconv.Itoa(i))
		}
	}
	return nil
}

// missingParents are the parents of rel that do not exist, outermost first. A
// link among those that do would lead out of the profile.
func (c *change) missingParents(rel string) ([]string, error) {
	var missing []string
	for up := filepath.Dir(rel); up != "."; up = filepath.Dir(up) {
		info, err := c.Lstat(filepath.Join(c.dir, up))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, up)
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, fault.Errorf(fault.Policy, "%s is a link, and dsh does not write through it", filepath.Join(c.dir, up))
		case !info.IsDir():
			return nil, fmt.Errorf("%s is not a directory", filepath.Join(c.dir, up))
		}
	}
	slices.Reverse(missing)
	return missing, nil
}

// planOp looks at what is there and what is staged. It is to be skipped if
// both are the same already.
func (c *change) planOp(rel string, t target) (o op, skip bool, err error) {
	o = op{Path: rel, Staged: t.staged, Emptied: t.emptied, rel: rel}
	old, err := c.planTarget(&o, t.follow)
	if err != nil {
		return o, false, err
	}
	path := c.path(o)
	if t.staged == "" {
		if old == nil {
			return o, true, nil
		}
		if c.small(rel) {
			o.Was, err = c.mark(path, false)
		}
		return o, false, err
	}
	staged, err := c.Lstat(c.staged(o))
	if err != nil {
		return o, false, err
	}
	o.File = staged.Mode().IsRegular() && (old == nil || old.Mode().IsRegular())
	if !o.File {
		return o, false, c.planWhole(&o, old, staged)
	}
	if old != nil {
		if o.Was, err = c.digest(path); err != nil {
			return o, false, err
		}
	}
	if !t.follow {
		return o, false, nil
	}
	is, err := c.digest(c.staged(o))
	if err != nil {
		return o, false, err
	}
	same := old != nil && is == o.Was
	if old != nil && !same && staged.Mode().Perm() != old.Mode().Perm() {
		if err = c.Chmod(c.staged(o), old.Mode().Perm()); err == nil {
			err = c.syncFile(c.staged(o))
		}
	}
	return o, same, err
}

// planTarget is what stands where o goes, nil if nothing does. Where links are
// followed, that is at their end, which becomes the path of o.
func (c *change) planTarget(o *op, follow bool) (old fs.FileInfo, err error) {
	path := c.path(*o)
	if !follow {
		if old, err = c.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return old, err
	}
	end, old, err := c.resolve(path)
	if err != nil {
		return nil, err
	}
	if end != path {
		o.Path = end
		if inside, err := filepath.Rel(c.dir, end); err == nil && filepath.IsLocal(inside) {
			o.rel = inside
		}
	}
	if old != nil && !old.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	return old, nil
}

// planWhole plans what is not a file in the place of a file.
func (c *change) planWhole(o *op, old, staged fs.FileInfo) (err error) {
	if old != nil && old.IsDir() && staged.IsDir() {
		o.New, err = c.Identity(c.staged(*o))
	}
	if err == nil && c.small(o.rel) {
		o.Was, err = c.mark(c.path(*o), false)
	}
	return err
}
