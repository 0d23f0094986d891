package staging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"dsh/internal/fault"
)

// Options are what [Begin] and [ReplaceDir] can be told. The zero value works.
type Options struct {
	FS      FS           // nil is [OS]
	Command string       // what the user runs, for others who wait for us
	Waiting func(Holder) // called once when somebody else has the lock

	// Make makes what [Begin] needs to be there. It is called with the lock
	// held and earlier changes finished, so that the profile that it makes, or
	// finds, is the one that the transaction is about.
	Make func() error
	// Unmake takes back what Make made. It is called with the lock still held
	// when the transaction ends without having changed anything.
	Unmake func() error
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
	change  change
	lock    *Lock
	unmake  func() error // takes back the making of the profile
	release func() error // of the staging directory
	targets map[string]target
	expect  map[string][]byte
	files   int
	ended   bool
}

// target is what shall become of one path of the profile.
type target struct {
	staged string // relative to the staging directory; "" removes
	follow bool   // a link at the path is followed, not replaced
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
// by opts.Make. Waiting for the lock ends with ctx, as [Acquire] says.
func Begin(ctx context.Context, place Place, opts Options) (*Tx, error) {
	d := opts.disk()
	lock, err := d.acquire(ctx, filepath.Join(place.State, "lock"), opts.Command, opts.Waiting)
	if err != nil {
		return nil, err
	}
	tx, err := d.begin(place, opts.Make)
	if err != nil {
		if opts.Unmake != nil {
			err = errors.Join(err, opts.Unmake())
		}
		return nil, errors.Join(err, lock.Release())
	}
	tx.lock, tx.unmake = lock, opts.Unmake
	return tx, nil
}

func (d disk) begin(place Place, makeProfile func() error) (*Tx, error) {
	place, err := place.resolved(d)
	if err != nil {
		return nil, err
	}
	warnings, err := d.recover(place)
	if err != nil {
		return nil, err
	}
	if makeProfile != nil {
		if err := makeProfile(); err != nil {
			return nil, err
		}
	}
	if _, err := d.Lstat(place.Dir); err != nil {
		return nil, fmt.Errorf("opening profile directory: %w", err)
	}
	if err := d.claim(place); err != nil {
		return nil, err
	}
	root, release, err := d.newStage(place.Dir)
	if err != nil {
		return nil, err
	}
	return &Tx{
		change: change{
			disk: d, dir: place.Dir, state: place.State, warnings: warnings,
			journal: journal{Stage: filepath.Base(root)},
		},
		release: release,
		targets: map[string]target{},
		expect:  map[string][]byte{},
	}, nil
}

// Stage is the directory, on the profile's filesystem, in which callers build
// what [Tx.Replace] puts in place.
func (tx *Tx) Stage() string { return filepath.Join(tx.change.stage(), "new") }

// Warnings are what the user should know though nothing failed: an earlier
// change that was taken back, left-overs that could not be removed. The next
// transaction tries again.
func (tx *Tx) Warnings() []string { return tx.change.warnings }

// WriteFile stages the content of the file rel of the profile. As with the
// function [WriteFile] an existing file keeps its permissions and a link is
// followed. A file that has this content already is left alone.
func (tx *Tx) WriteFile(rel string, data []byte, perm fs.FileMode) error {
	rel, err := tx.local(rel)
	if err != nil {
		return err
	}
	staged := filepath.Join("files", strconv.Itoa(tx.files))
	tx.files++
	if err := tx.change.writeNew(under(tx.change.stage(), staged), data, perm); err != nil {
		return fmt.Errorf("staging %s: %w", rel, err)
	}
	tx.targets[rel] = target{staged: staged, follow: true}
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
	tx.targets[rel] = target{}
	return nil
}

// Expect makes the commit stop with a [*ChangedError] unless the file rel then
// still holds data, or still is absent when data is nil.
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
	return errors.Join(err, tx.end(err == nil))
}

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
	c := &tx.change
	err := tx.release()
	// While there is a journal it needs what is staged.
	if open, lerr := c.exists(c.journalPath()); lerr != nil || open {
		err = errors.Join(err, lerr)
	} else {
		err = errors.Join(err, c.removeStage(c.stage()))
		if !committed && tx.unmake != nil {
			err = errors.Join(err, tx.unmake())
		}
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
	c := &tx.change
	if err := tx.plan(); err != nil {
		return err
	}
	for _, rel := range slices.Sorted(maps.Keys(tx.expect)) {
		if err := tx.checkExpected(rel); err != nil {
			return err
		}
	}
	if len(c.Ops) == 0 {
		return nil
	}
	if err := c.prepare(); err != nil {
		return c.abandon(fmt.Errorf("preparing the change of %s: %w", c.dir, err))
	}
	return c.run()
}

func (tx *Tx) checkExpected(rel string) error {
	path := filepath.Join(tx.change.dir, rel)
	want := tx.expect[rel]
	got, err := tx.change.readFile(path)
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
	c := &tx.change
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
	o = op{Path: rel, Staged: t.staged}
	path := filepath.Join(c.dir, rel)
	var old fs.FileInfo
	if t.follow {
		var end string
		if end, old, err = c.resolve(path); err != nil {
			return o, false, err
		}
		if end != path {
			path, o.Path = end, end
		}
		if old != nil && !old.Mode().IsRegular() {
			return o, false, errors.New("it is not a regular file")
		}
	} else if old, err = c.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		old = nil
	} else if err != nil {
		return o, false, err
	}
	if t.staged == "" {
		return o, old == nil, nil
	}
	staged, err := c.Lstat(c.staged(o))
	if err != nil {
		return o, false, err
	}
	o.File = staged.Mode().IsRegular() && (old == nil || old.Mode().IsRegular())
	if !o.File {
		return o, false, nil
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
	if old != nil && is != o.Was {
		err = c.Chmod(c.staged(o), old.Mode().Perm())
	}
	return o, is == o.Was, err
}
