package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MoveDir gives a profile another name, with its history and what is kept of
// directories that were replaced. Something being at the new name is
// fs.ErrExist, and nothing at the old one fs.ErrNotExist. Generations that
// another profile of the new name left stay, as the older ones. What fails after
// the profile has its new name is no error: the next command on either name goes
// on with it.
func MoveDir(ctx context.Context, from, to Place, opts Options) error {
	d := opts.disk()
	if from.State == to.State {
		return fmt.Errorf("moving profile directory %s to itself: %w", from.Dir, fs.ErrExist)
	}
	if same, err := d.sameDir(from.Dir, to.Dir); err != nil {
		return fmt.Errorf("moving profile directory %s to %s: %w", from.Dir, to.Dir, err)
	} else if same && strings.EqualFold(filepath.Base(from.Dir), filepath.Base(to.Dir)) {
		return d.moveCase(ctx, from, to, opts)
	}
	// Whoever takes two locks takes them in this order.
	first, second := from, to
	if to.State < from.State {
		first, second = to, from
	}
	lock, err := d.lockPlace(ctx, first, opts)
	if err != nil {
		return err
	}
	// Where somebody else was quicker, no state is made for the new name.
	is, err := d.identityOf(from.Dir)
	if err == nil && is == "" {
		err = fmt.Errorf("moving profile directory %s to %s: %w", from.Dir, to.Dir, fs.ErrNotExist)
	}
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	other, err := d.lockPlace(ctx, second, opts)
	if err != nil {
		return errors.Join(err, lock.Release())
	}
	err = d.moveDir(from, to)
	released := errors.Join(other.Release(), lock.Release())
	if err == nil {
		return nil // the system takes the locks back in the end
	}
	return errors.Join(fmt.Errorf("moving profile directory %s to %s: %w", from.Dir, to.Dir, err), released)
}

// sameDir says whether two paths are one, as on a filesystem that ignores case.
func (d disk) sameDir(a, b string) (bool, error) {
	is, err := d.identityOf(a)
	if err != nil || is == "" {
		return false, err
	}
	other, err := d.identityOf(b)
	return is == other, err
}

// moveCase moves a profile where its old name and the new one are the same to the
// filesystem: there is one state, and one lock.
func (d disk) moveCase(ctx context.Context, from, to Place, opts Options) error {
	lock, err := d.lockPlace(ctx, from, opts)
	if err != nil {
		return err
	}
	resolved, err := from.resolved(d)
	if err == nil {
		_, err = d.recover(resolved)
	}
	if err == nil {
		err = d.Rename(from.Dir, to.Dir)
	}
	if err == nil {
		// By its old name the state is found as well.
		_ = d.Rename(from.State, to.State)
		err = d.SyncDir(filepath.Dir(to.Dir))
	}
	if err != nil {
		err = fmt.Errorf("moving profile directory %s to %s: %w", from.Dir, to.Dir, err)
	}
	return errors.Join(err, lock.Release())
}

// A move is decided by one rename. Each of the two states has a journal, that can
// be finished without the other: it looks where the directory is.
//
//	at the new name  the generations are published if the directory is there
//	at the old name  they are removed if it is at the new one
type move struct {
	Into bool `json:"into"` // this is the journal at the new name
	// In that at the old name, where the new ones are, relative to the old.
	Dir   string `json:"dir,omitempty"`
	State string `json:"state,omitempty"`

	// Where a directory cannot be renamed, Copy is the identity of the copy that
	// gets the new name. Gone says that it has it, and that what is left at the
	// old name is only to be removed. Kept are the copies of replaced profiles,
	// by number.
	Copy string         `json:"copy,omitempty"`
	Gone bool           `json:"gone,omitempty"`
	Kept map[int]string `json:"kept,omitempty"`
}

// moving is the two sides of a move.
type moving struct {
	disk
	old, new string // the paths that are renamed; a profile that is a link stays where it is
	from, to *change
}

func (d disk) moveDir(from, to Place) error {
	m, err := d.newMoving(from, to)
	if err != nil {
		return err
	}
	if err := m.prepare(); err != nil {
		return m.abandon(err)
	}
	if err := m.rename(); err != nil {
		return m.abandon(err)
	}
	m.from.dir, m.to.dir = m.old, m.new
	_, _ = m.to.resumeMove(), m.from.resumeMove()
	return nil
}

func (d disk) newMoving(from, to Place) (*moving, error) {
	m := &moving{disk: d}
	var err error
	if m.old, err = filepath.Abs(from.Dir); err != nil {
		return nil, err
	}
	if m.new, err = filepath.Abs(to.Dir); err != nil {
		return nil, err
	}
	if there, err := d.exists(m.new); err != nil || there {
		if there {
			err = fs.ErrExist
		}
		return nil, err
	}
	for _, place := range []*Place{&from, &to} {
		if *place, err = place.resolved(d); err != nil {
			return nil, err
		}
		if _, err := d.recover(*place); err != nil {
			return nil, err
		}
	}
	if err := d.mkdirAll(filepath.Dir(m.new)); err != nil {
		return nil, err
	}
	if info, err := d.Lstat(m.old); err == nil && info.IsDir() {
		if err := d.movable(m.old); err != nil {
			return nil, err
		}
	}
	is, err := d.ownIfAny(from.Dir)
	if err != nil {
		return nil, err
	}
	if is == "" {
		return nil, fs.ErrNotExist
	}
	m.from, m.to = newChange(d, from), newChange(d, to)
	m.from.Next, m.to.Next = is, is
	dir, err := filepath.Rel(m.old, m.new)
	if err != nil {
		return nil, err
	}
	state, err := filepath.Rel(from.State, to.State)
	m.from.Move, m.to.Move = &move{Dir: dir, State: state}, &move{Into: true}
	return m, err
}

// arrived says whether the profile is at its new name.
func (m *moving) arrived() (bool, error) {
	is, err := m.identityAt(m.new)
	return is == m.to.Next, err
}

// identityAt is the identity of the directory at a path, or to which it leads.
func (d disk) identityAt(path string) (string, error) {
	end, info, err := d.resolve(path)
	if err != nil || info == nil {
		return "", err
	}
	return d.identityOf(end)
}

// prepare puts the generations beside the new state, and writes both journals.
func (m *moving) prepare() error {
	last, err := m.readCommits(m.from.state)
	if err != nil {
		return err
	}
	if unclean, err := m.from.unclean(last); err != nil {
		return err
	} else if unclean {
		m.to.Boot = last.boot // the packages are as doubtful as they were
	}
	if err := m.stageHistory(); err != nil {
		return err
	}
	if err := m.to.write(true); err != nil {
		return err
	}
	return m.from.write(true)
}

func (m *moving) stageHistory() error {
	source, target := historyOf(m.disk, m.from.state), historyOf(m.disk, m.to.state)
	ids, err := source.ids()
	if err != nil {
		return err
	}
	pins, err := source.numbered(pinExt)
	if err != nil {
		return err
	}
	there, err := target.ids()
	if err != nil {
		return err
	}
	before := 0
	if len(there) > 0 {
		before = there[len(there)-1]
	}
	for _, id := range ids {
		s := save{ID: before + id, Pending: tempMark + random(), Pinned: slices.Contains(pins, id)}
		m.to.Saves = append(m.to.Saves, s)
		if err := m.linkOrCopy(source.path(id), m.to.pending(s)); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		return m.SyncDir(m.to.state)
	}
	return nil
}

// rename is the moment at which the profile has its new name.
func (m *moving) rename() error {
	if err := m.RenameNew(m.old, m.new); err != nil {
		there, lerr := m.arrived()
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		if !there && otherFilesystem(err) {
			if info, lerr := m.Lstat(m.old); lerr != nil || !info.IsDir() {
				return errors.Join(err, lerr)
			}
			return m.renameCopy()
		}
		if !there {
			return err
		}
		// It did happen, as a network filesystem may say of a call sent twice.
	}
	err := m.syncAll(map[string]bool{filepath.Dir(m.old): true, filepath.Dir(m.new): true})
	if err == nil {
		return nil
	}
	// Both journals say by themselves what is to be done if this fails too.
	return errors.Join(err, m.RenameNew(m.new, m.old))
}

// renameCopy is rename of a directory that comes from the image of a container:
// a copy gets the new name, and the original is removed. See aside.go.
func (m *moving) renameCopy() error {
	root, release, err := m.newStage(m.from.dir)
	if err != nil {
		return err
	}
	err = m.renameCopyIn(root)
	// What cannot be removed is removed by the next command.
	_, _ = release(), m.removeStage(root)
	return err
}

func (m *moving) renameCopyIn(root string) error {
	c := m.from
	profile := filepath.Join(root, "profile")
	was, err := c.mark(m.old, false)
	if err != nil {
		return err
	}
	if err := m.copyTree(m.old, profile, true, c.derived); err != nil {
		return err
	}
	if is, err := c.mark(m.old, false); err != nil {
		return err
	} else if is != was {
		return &ChangedError{m.old}
	}
	is, err := m.Identity(profile)
	if err != nil {
		return err
	}
	c.Move.Copy, m.to.Next = is, is
	// Neither says that anything has happened, whichever gets to the disk.
	if err := m.to.write(true); err != nil {
		return err
	}
	if err := c.write(true); err != nil {
		return err
	}
	if err := m.RenameNew(profile, m.new); err != nil {
		if there, lerr := m.arrived(); lerr != nil || !there {
			return errors.Join(err, lerr)
		}
	}
	if err := m.SyncDir(filepath.Dir(m.new)); err != nil {
		return errors.Join(err, m.RenameNew(m.new, profile))
	}
	return nil
}

// abandon gives the move up, of which nothing has happened.
func (m *moving) abandon(why error) error {
	if there, err := m.arrived(); err != nil || there {
		return errors.Join(why, err)
	}
	return errors.Join(why, m.from.erase(), m.to.erase(), m.to.dropSaves())
}

// resumeMove finishes one side of a move, or takes it back.
func (c *change) resumeMove() error {
	c.began = true
	is, err := c.identityAt(c.dir)
	if err != nil {
		return err
	}
	if c.Move.Into && is == c.Next {
		if err := c.publish(); err != nil {
			return err
		}
		if err := c.claimAs(is); err != nil {
			return err
		}
	}
	if !c.Move.Into {
		moved, err := c.hasMoved(is)
		if err == nil && moved {
			err = c.leave(is)
		}
		if err != nil {
			return err
		}
	}
	return c.finish()
}

// hasMoved says whether the profile whose old name this is has got the new one.
// Is is the directory that has the old one.
func (c *change) hasMoved(is string) (bool, error) {
	m := c.Move
	if m.Gone || m.Copy == "" && is == c.Next {
		return m.Gone, nil
	}
	at, err := c.identityAt(filepath.Join(c.dir, m.Dir))
	return at != "" && (at == m.Copy || m.Copy == "" && at == c.Next), err
}

// leave takes what belongs to a profile that has moved out of its old state, and
// removes the directory of which a copy has moved.
func (c *change) leave(is string) error {
	if c.Move.Copy != "" {
		if err := c.leaveCopied(is); err != nil {
			return err
		}
	}
	other := filepath.Join(c.state, c.Move.State)
	numbers, err := c.numbers(c.state, replacedMark)
	if err != nil {
		return err
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		if err := c.leaveKept(n, other); err != nil {
			return err
		}
	}
	for _, name := range []string{"identity", "checked"} {
		if err := c.Remove(filepath.Join(c.state, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return c.RemoveAll(historyOf(c.disk, c.state).dir)
}

func (c *change) leaveCopied(is string) error {
	if !c.Move.Gone {
		c.Move.Gone = true
		if err := c.write(true); err != nil {
			return err
		}
	}
	if is == c.Next {
		if err := c.RemoveAll(c.dir); err != nil {
			return err
		}
	}
	return c.SyncDir(filepath.Dir(c.dir)) // also after a death, or it may come back
}

// leaveKept moves one of the replaced profiles to another state.
func (c *change) leaveKept(n int, other string) error {
	kept := filepath.Join(c.state, replacedMark+strconv.Itoa(n))
	numbers, err := c.numbers(other, replacedMark)
	if err != nil {
		return err
	}
	for _, there := range numbers {
		is, err := c.identityOf(filepath.Join(other, replacedMark+strconv.Itoa(there)))
		if err != nil {
			return err
		}
		if is == c.Move.Kept[n] {
			return c.dropKept(kept)
		}
	}
	to := filepath.Join(other, replacedMark+strconv.Itoa(slices.Max(append(numbers, 0))+1))
	err = c.RenameNew(kept, to)
	if !otherFilesystem(err) {
		return err
	}
	// As of the profile itself, a copy moves.
	part := filepath.Join(other, tempMark+random())
	err = c.copyTree(kept, part, true, nil)
	if err == nil {
		err = c.noteKept(n, part)
	}
	if err == nil {
		err = c.Rename(part, to)
	}
	if err != nil {
		return errors.Join(err, c.RemoveAll(part))
	}
	if err := c.SyncDir(other); err != nil {
		return err
	}
	return c.dropKept(kept)
}

func (c *change) dropKept(kept string) error {
	if err := c.RemoveAll(kept); err != nil {
		return err
	}
	return c.SyncDir(c.state)
}

func (c *change) noteKept(n int, part string) error {
	is, err := c.Identity(part)
	if err != nil {
		return err
	}
	if c.Move.Kept == nil {
		c.Move.Kept = map[int]string{}
	}
	c.Move.Kept[n] = is
	return c.write(true)
}
