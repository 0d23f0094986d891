package staging

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// touched is the path of something that somebody else has written since the
// journal was, or "". Only what has not happened yet counts.
func (c *change) touched() (string, error) {
	for _, o := range c.Ops {
		if !o.File && o.Was == "" {
			continue // packages, which are nobody's to edit
		}
		done, err := c.done(o)
		if err != nil {
			return "", err
		}
		if done {
			continue
		}
		was, err := c.was(o)
		if err != nil {
			return "", err
		}
		if was == o.Was {
			continue
		}
		if ours, err := c.isTakenAway(o, was); err != nil {
			return "", err
		} else if !ours {
			return c.path(o), nil
		}
	}
	return "", nil
}

// isTakenAway says whether the old thing is not what it was because of the change
// itself: it is aside, or on its way there, and the new one has not come yet.
func (c *change) isTakenAway(o op, is string) (bool, error) {
	switch {
	case o.File:
		return false, nil
	case is != markNone:
		copied, err := c.hasCopy(o)
		if err != nil || !copied {
			return false, err
		}
		return c.isRest(o)
	case o.Staged == "":
		return true, nil
	}
	return c.isAside(o)
}

// checkBackups is an error if somebody has written to a file after it was looked
// at last: an editor that has it open writes to what is aside.
func (c *change) checkBackups() error {
	for _, o := range c.Ops {
		if o.Was == "" || o.Backup == "" {
			continue
		}
		is, err := c.mark(c.backup(o), false)
		if err != nil {
			return err
		}
		if is != o.Was && is != markNone {
			return &ChangedError{c.path(o)}
		}
	}
	return nil
}

// was is what is at the path of o now, to be compared with the Was of o.
func (c *change) was(o op) (string, error) {
	if o.File {
		return c.digest(c.path(o))
	}
	return c.mark(c.path(o), false)
}

// The marks of what has no content to compare. That of a file is its digest, that
// of a large one its size, and that of a link is of where it leads. That of a directory
// is of all that is in it, less what can be made again.
const (
	markNone       = "none"
	markOther      = "other"
	markUnreadable = "unreadable"
)

// mark is what somebody would change who edits what is at path.
func (c *change) mark(path string, follow bool) (string, error) {
	info, err := c.Lstat(path)
	if err == nil && follow {
		path, info, err = c.resolve(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && info == nil:
		return markNone, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return c.markOfDir(path)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := c.Readlink(path)
		return "link " + digestOf([]byte(target)), err
	case !info.Mode().IsRegular():
		return markOther, nil
	case info.Size() > largestFile:
		return fmt.Sprintf("large %d", info.Size()), nil
	}
	is, err := c.digest(path)
	if refused(err) {
		is, err = c.digest(path) // what a scanner held may be free now
	}
	switch {
	case refused(err):
		return markUnreadable, nil
	case is == "" && err == nil:
		return markNone, nil
	}
	return is, err
}

func (c *change) markOfDir(dir string) (string, error) {
	entries, err := c.ReadDir(dir)
	if refused(err) {
		entries, err = c.ReadDir(dir)
	}
	if refused(err) {
		return markUnreadable, nil
	}
	if err != nil {
		return "", err
	}
	var list strings.Builder
	for _, e := range entries {
		if slices.Contains(c.derived, e.Name()) {
			continue
		}
		is, err := c.mark(filepath.Join(dir, e.Name()), false)
		if err != nil {
			return "", err
		}
		if is != markOther { // no copy has it
			fmt.Fprintf(&list, "%q %s\n", e.Name(), is)
		}
	}
	return "directory " + digestOf([]byte(list.String())), nil
}

// digest is of the content of a file; "" is of no file.
func (d disk) digest(path string) (string, error) {
	f, err := d.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	_, err = io.Copy(sum, f) // files may be larger than what memory should hold
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
