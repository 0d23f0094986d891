package staging

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// journal is what a process leaves on the disk before it changes a profile, so
// that whoever finds it can finish the change or take it back.
type journal struct {
	Version int `json:"version"`
	// Complete says that everything is prepared and only renames follow. Without
	// it the profile is whole, and only what lies about has to be removed: the
	// change has not begun, or is over.
	Complete bool     `json:"complete"`
	Stage    string   `json:"stage"`             // the staging directory, relative to where the profile stands
	Next     string   `json:"next,omitempty"`    // identity of the directory that takes the profile's place
	Removes  bool     `json:"removes,omitempty"` // the profile goes, and nothing takes its place
	Boot     string   `json:"boot,omitempty"`    // when the change was prepared, as BootID of [FS]
	Made     []string `json:"made,omitempty"`    // parents of targets that the change makes, outermost first
	Ops      []op     `json:"ops"`
	Saves    []save   `json:"saves,omitempty"` // generations that the change adds
	Move     *move    `json:"move,omitempty"`  // the profile gets another name, and there is no op
	Link     string   `json:"link,omitempty"`  // the profile is this link, which goes, and there is no op
}

// save is a generation. It waits in the state directory, by a temporary name,
// and is published by a rename after those of the ops.
type save struct {
	ID      int    `json:"id"`
	Pending string `json:"pending"`
	Pinned  bool   `json:"pinned,omitempty"`
}

// op is one path of a change. Path is relative to the profile, Staged and
// Backup to the staging directory; a file outside, which a link of the profile
// leads to, has all three absolute and beside it.
//
// What has been done already shows on the disk: what is staged is gone from
// there once it is in place, and a backup is there once something was moved
// aside. So both directions can be repeated from any point between.
type op struct {
	Path   string `json:"path"`
	Staged string `json:"staged,omitempty"` // "" removes the path
	Backup string `json:"backup,omitempty"` // "" for a file that was not there

	// File says that the new thing is a file and the old one too, or nothing:
	// it is renamed over the old one, which is linked to Backup before, so that
	// no reader ever finds it missing. Was is the digest of the old content.
	//
	// Of what is neither derived nor such a file, Was is the mark of the old thing.
	// Is is the mark of the new one, unless it is derived.
	File bool   `json:"file,omitempty"`
	Was  string `json:"was,omitempty"`
	Is   string `json:"is,omitempty"`

	// New is the identity of a staged directory. It is exchanged with the old
	// one in one step, where the filesystem can, and then the old one, which
	// stands where the new was staged, is renamed to Backup. Which of the two is
	// where is told by New.
	New string `json:"new,omitempty"`

	// Emptied says that the directories go that a removal leaves empty.
	Emptied bool `json:"emptied,omitempty"`

	rel string // what generations call it: Path, or the link that leads out to there
}

// The version of journals that are written, and the first that is understood.
const (
	journalVersion = 3
	oldestJournal  = 1
)

// change is a journal and the places that it speaks of.
type change struct {
	disk
	dir     string // the profile, without links
	state   string
	derived []string
	journal
	began    bool              // something of the profile was renamed, perhaps back
	copies   bool              // something may have been moved aside by a copy
	foreign  bool              // the journal was written when all this was somewhere else
	edits    map[string]string // by path, the marks of edits that were saved
	warnings []string          // clean-up that did not work out
}

// newChange is a change that is to be prepared.
func newChange(d disk, place Place) *change {
	c := &change{disk: d, dir: place.Dir, state: place.State, derived: place.Derived}
	c.Boot = d.BootID()
	return c
}

// small says whether a path of the profile is of what generations keep.
func (c *change) small(rel string) bool {
	for name := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		if !isSmall(name, c.derived) {
			return false
		}
	}
	return true
}

// stageName is what Stage is of a staging directory.
func (c *change) stageName(root string) string {
	if filepath.Dir(root) == c.dir {
		return filepath.Join(filepath.Base(c.dir), filepath.Base(root))
	}
	return filepath.Base(root)
}

func (c *change) stage() string       { return filepath.Join(filepath.Dir(c.dir), c.Stage) }
func (c *change) journalPath() string { return filepath.Join(c.state, "journal") }

func under(base, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(base, path)
}

func (c *change) path(o op) string   { return under(c.dir, o.Path) }
func (c *change) staged(o op) string { return under(c.stage(), o.Staged) }
func (c *change) backup(o op) string { return under(c.stage(), o.Backup) }

// write puts the journal on the disk. An error may leave it there all the same.
func (c *change) write(complete bool) error {
	j := c.journal
	j.Version, j.Complete = journalVersion, complete
	data, err := json.MarshalIndent(j, "", "\t")
	if err != nil {
		return err
	}
	c.Complete = c.Complete || complete // until the disk surely says otherwise
	if err := c.writeFile(c.journalPath(), append(data, '\n'), 0o600); err != nil {
		return err
	}
	c.Complete = complete
	return nil
}

// erase removes the journal, if it is there: the change is over.
func (c *change) erase() error {
	err := c.Remove(c.journalPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing the journal: %w", err)
	}
	return c.SyncDir(c.state)
}

// readJournal is the journal of a profile, or nil.
func (d disk) readJournal(state string) (*journal, error) {
	path := filepath.Join(state, "journal")
	data, err := d.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the journal of an unfinished change: %w", err)
	}
	var j journal
	if err := json.Unmarshal(data, &j); err != nil {
		return nil, fault.Errorf(fault.Environment, "reading the journal of an unfinished change: %s: %w", path, err)
	}
	if j.Version < oldestJournal || j.Version > journalVersion {
		return nil, fault.Errorf(fault.Environment, "reading the journal of an unfinished change: %s is of version %d, and this dsh knows %d: a newer dsh has to finish it", path, j.Version, journalVersion)
	}
	return &j, nil
}

// forward does what has not been done yet.
func (c *change) forward() error {
	c.began = true
	for _, dir := range c.Made {
		if err := c.Mkdir(filepath.Join(c.dir, dir), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, o := range c.Ops {
		if err := c.forwardOp(o); err != nil {
			return err
		}
	}
	if err := c.removeEmptied(); err != nil {
		return err
	}
	if err := c.checkBackups(); err != nil {
		return err
	}
	if err := c.syncTargets(); err != nil {
		return err
	}
	return c.publish()
}

func (c *change) forwardOp(o op) error {
	if o.New != "" {
		return c.forwardDir(o)
	}
	if o.Staged != "" {
		if waiting, err := c.exists(c.staged(o)); err != nil || !waiting {
			return err
		}
	}
	if !o.File {
		if err := c.moveAside(o); err != nil {
			return err
		}
	} else if is, err := c.digest(c.path(o)); err != nil {
		return err
	} else if is != o.Was {
		return &ChangedError{c.path(o)} // while other things were renamed
	}
	if o.Staged == "" {
		return nil
	}
	return c.Rename(c.staged(o), c.path(o))
}

// forwardDir puts a directory in the place of another, or of nothing.
func (c *change) forwardDir(o op) error {
	if err := c.finishAside(o); err != nil {
		return err
	}
	is, err := c.identityOf(c.path(o))
	if err != nil {
		return err
	}
	if there, err := c.isNew(o, is); err != nil {
		return err
	} else if !there {
		if waiting, err := c.exists(c.staged(o)); err != nil || !waiting {
			return err
		}
		if is != "" {
			err = c.Exchange(c.staged(o), c.path(o))
		}
		if errors.Is(err, errors.ErrUnsupported) {
			err = c.moveAside(o)
			is = ""
		}
		if err == nil && is == "" {
			err = c.Rename(c.staged(o), c.path(o))
		}
		if err != nil {
			return err
		}
	}
	return c.settle(o)
}

// isNew says whether the directory is, which stands at the path of o, is the new
// one. Where all was copied to somewhere else, what is in it has to tell.
func (c *change) isNew(o op, is string) (bool, error) {
	if is == o.New || !c.foreign || o.Is == "" || is == "" {
		return is == o.New, nil
	}
	mark, err := c.mark(c.path(o), false)
	return mark == o.Is, err
}

// settle moves what was exchanged for a staged directory to its backup.
func (c *change) settle(o op) error {
	left, err := c.exists(c.staged(o))
	if err != nil || !left {
		return err
	}
	backup, _, err := c.freeBackup(o)
	if err != nil {
		return err
	}
	return c.Rename(c.staged(o), backup)
}

// moveAside moves what is at the path of o to its backup.
func (c *change) moveAside(o op) error {
	if err := c.finishAside(o); err != nil {
		return err
	}
	there, err := c.exists(c.path(o))
	if err != nil || !there {
		return err
	}
	backup, kept, err := c.freeBackup(o)
	if err != nil || kept && o.Staged == "" {
		return err
	}
	return c.renameAside(o, backup)
}

// freeBackup is where the old thing goes. When it is aside already, what is
// there now came after our process died.
func (c *change) freeBackup(o op) (path string, kept bool, err error) {
	path = c.backup(o)
	kept, err = c.exists(path)
	switch {
	case !kept:
	case o.Path == ".":
		path = filepath.Join(filepath.Dir(c.dir), beside(c.dir, backupMark)) // kept as well
	default:
		path += "-" + random()
	}
	return path, kept, err
}

// done says whether o has happened.
func (c *change) done(o op) (bool, error) {
	switch {
	case o.New != "":
		is, err := c.identityOf(c.path(o))
		if err != nil {
			return false, err
		}
		return c.isNew(o, is)
	case o.Staged != "":
		waiting, err := c.exists(c.staged(o))
		return !waiting, err
	default:
		return c.exists(c.backup(o))
	}
}

// removeEmptied removes the directories whose last package went: those of npm
// scopes, as in node_modules/@scope, and the node_modules of a package. Those of
// the user go only where the op says so.
func (c *change) removeEmptied() error {
	for _, o := range c.Ops {
		if o.Staged != "" {
			continue
		}
		for dir := filepath.Dir(c.path(o)); dir != c.dir; dir = filepath.Dir(dir) {
			name := filepath.Base(dir)
			nested := name == "node_modules" && filepath.Dir(dir) != c.dir
			if !o.Emptied && name[0] != '@' && !nested {
				break
			}
			if err := c.removeIfEmpty(dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d disk) removeIfEmpty(dir string) error {
	entries, err := d.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) > 0 {
		return nil
	}
	if err != nil {
		return err
	}
	err = d.Remove(dir)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if entries, lerr := d.ReadDir(dir); lerr == nil && len(entries) > 0 {
		return nil // not empty any more
	}
	return err
}

// syncTargets syncs the directories in which the user's things changed. Packages
// can be made again and are not worth the wait.
func (c *change) syncTargets() error {
	if c.Next != "" || c.Removes { // the directory itself was renamed
		return c.syncAll(map[string]bool{filepath.Dir(c.dir): true})
	}
	dirs := map[string]bool{c.dir: true}
	for _, o := range c.Ops {
		if o.File || o.Was != "" {
			dirs[filepath.Dir(c.path(o))] = true
		}
	}
	for _, dir := range c.Made {
		if c.small(dir) {
			dirs[filepath.Join(c.dir, filepath.Dir(dir))] = true
		}
	}
	return c.syncAll(dirs)
}

// syncAll syncs directories. One that the change made may have been unmade.
func (d disk) syncAll(dirs map[string]bool) error {
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := d.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
