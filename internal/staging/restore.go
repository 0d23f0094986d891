package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// Restore makes all small files of the profile become as they are in a
// generation, permissions included, and removes those that it does not have,
// with the directories that this leaves empty. What the generation does not
// keep, or what is too large now, stays as it is. So does what links lead to: a
// link is made to lead where it did, and nothing is written through it. Where the filesystem ignores
// case, a file keeps the case that its name has now.
func (tx *Tx) Restore(g *Generation) error {
	if tx.ended {
		return errors.New("restoring a generation: the transaction has ended")
	}
	now, err := tx.work.snapshot(tx.work.dir, tx.work.derived)
	if err != nil {
		return err
	}
	r := restoration{tx: tx, now: map[string]SavedFile{}, wanted: map[string]SavedFile{}, untouched: slices.Concat(g.SkippedPaths(), now.SkippedPaths())}
	for _, f := range now.Files {
		r.now[f.Path] = f
	}
	for _, dir := range g.Dirs {
		if dir.Path != "." {
			r.dirs = append(r.dirs, dir)
		} else if tx.Creating() {
			if err := tx.change.giveMode(tx.work.dir, dir.Mode); err != nil {
				return fmt.Errorf("restoring a generation: %w", err)
			}
		}
	}
	for _, f := range g.Files {
		if tx.work.small(f.Path) && !r.leaves(f.Path) {
			r.wanted[f.Path] = f
		}
	}
	for _, f := range now.Files {
		if err := r.clear(f); err != nil {
			return fmt.Errorf("restoring a generation: %w", err)
		}
	}
	for _, f := range g.Files {
		if _, wanted := r.wanted[f.Path]; !wanted {
			continue
		}
		if err := r.put(f); err != nil {
			return fmt.Errorf("restoring a generation: %w", err)
		}
	}
	return nil
}

// LeftAlone is a link of a generation that leads to a file outside the profile,
// which is not as it was when the generation was saved.
type LeftAlone struct {
	Path string // of the link
	To   string // where the file is, or was
}

// Restored is what a generation is once it is restored: the same files, and links
// that lead to what is outside the profile now.
func (p Place) Restored(g *Generation) (*Generation, []LeftAlone, error) {
	d := disk{OS}
	p, err := p.resolved(d)
	if err != nil {
		return nil, nil, err
	}
	after, left := *g, []LeftAlone(nil)
	after.Outside = nil
	l := &listing{disk: d, dir: p.Dir, derived: p.Derived}
	for _, f := range g.Files {
		if f.Mode&fs.ModeSymlink == 0 {
			continue
		}
		end, is, err := l.follow(f.Path, string(f.Data))
		if err != nil {
			return nil, nil, fmt.Errorf("looking where %s leads: %w", f.Path, err)
		}
		was, kept := find(g.Outside, f.Path)
		if is != nil {
			after.Outside = append(after.Outside, *is)
		}
		if end == "" {
			end = string(f.Data)
		}
		if kept && (is == nil || string(is.Data) != string(was.Data)) {
			left = append(left, LeftAlone{f.Path, end})
		}
	}
	return &after, left, nil
}

// restoration is the state of one [Tx.Restore].
type restoration struct {
	tx          *Tx
	now, wanted map[string]SavedFile
	dirs        []SavedFile // with their permissions
	untouched   []string    // with all below them
	replaced    []string    // files and directories that are replaced with all that is below them
}

func (r *restoration) leaves(path string) bool {
	return slices.ContainsFunc(r.untouched, func(other string) bool { return isBelow(path, other) })
}

// isBelow says whether a slash-separated path is other, or inside it.
func isBelow(path, other string) bool {
	return path == other || strings.HasPrefix(path, other+"/")
}

// clear removes a file that is there and not wanted.
func (r *restoration) clear(f SavedFile) error {
	if _, stays := r.wanted[f.Path]; stays || r.leaves(f.Path) {
		return nil
	}
	rel := filepath.FromSlash(f.Path)
	if err := r.tx.see(rel, false); err != nil {
		return err
	}
	r.tx.targets[rel] = target{emptied: true}
	return nil
}

// put stages a wanted file, unless it is there as it is wanted.
func (r *restoration) put(f SavedFile) error {
	is, there := r.now[f.Path]
	switch {
	case there && is.Mode == f.Mode && string(is.Data) == string(f.Data):
		return r.tx.see(filepath.FromSlash(f.Path), false)
	case slices.ContainsFunc(r.replaced, func(root string) bool { return isBelow(f.Path, root) }):
		return nil
	case there:
		return r.stage(f, f.Path)
	}
	root, err := r.inTheWay(f.Path)
	if err != nil {
		return err
	}
	if root != "" {
		return r.replaceTree(root)
	}
	path, err := r.otherCase(f.Path)
	if err != nil {
		return err
	}
	return r.stage(f, path)
}

// stage stages one file or link for a path.
func (r *restoration) stage(f SavedFile, path string) error {
	tx, rel := r.tx, filepath.FromSlash(path)
	if err := tx.see(rel, false); err != nil {
		return err
	}
	staged, at := tx.newFile()
	if err := tx.change.writeSaved(at, f); err != nil {
		return fmt.Errorf("staging %s: %w", path, err)
	}
	tx.targets[rel] = target{staged: staged}
	return nil
}

// writeSaved makes a file or link as it was saved.
func (d disk) writeSaved(path string, f SavedFile) error {
	if f.Mode&fs.ModeSymlink != 0 {
		return d.Symlink(string(f.Data), path)
	}
	return d.writeNew(path, f.Data, f.Mode.Perm(), true)
}

// giveMode gives a directory, if it is there, the permissions that it had. Its owner
// may always write to it, or it could not be moved.
func (d disk) giveMode(dir string, mode fs.FileMode) error {
	info, err := d.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if want := mode.Perm() | 0o700; err == nil && info.IsDir() && info.Mode().Perm() != want {
		err = d.Chmod(dir, want)
	}
	return err
}

// inTheWay is what has to be replaced as a whole: the file or link that stands
// where a directory of the path has to be, the directory that stands where the path
// itself is to be, or one that is not there and gets permissions; "" if none.
func (r *restoration) inTheWay(path string) (string, error) {
	for i, c := range path {
		if c != '/' {
			continue
		}
		dir := path[:i]
		if _, there := r.now[dir]; there {
			return dir, nil
		}
		if !slices.ContainsFunc(r.dirs, func(d SavedFile) bool { return isBelow(d.Path, dir) }) {
			continue
		}
		if there, err := r.tx.work.exists(filepath.Join(r.tx.work.dir, filepath.FromSlash(dir))); err != nil || !there {
			return dir, err
		}
	}
	info, err := r.tx.work.Lstat(filepath.Join(r.tx.work.dir, filepath.FromSlash(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !info.IsDir() {
		return "", err
	}
	return path, nil
}

// replaceTree makes a path, with all below it, what the generation has there.
func (r *restoration) replaceTree(root string) error {
	tx := r.tx
	if err := r.onlyCleared(root); err != nil {
		return err
	}
	for rel := range tx.targets {
		if isBelow(filepath.ToSlash(rel), root) {
			delete(tx.targets, rel)
		}
	}
	staged, at := tx.newFile()
	for path, f := range r.wanted {
		if !isBelow(path, root) {
			continue
		}
		to := filepath.Join(at, filepath.FromSlash(strings.TrimPrefix(path, root)))
		if err := tx.change.mkdirAll(filepath.Dir(to)); err != nil {
			return err
		}
		if err := tx.change.writeSaved(to, f); err != nil {
			return fmt.Errorf("staging %s: %w", path, err)
		}
	}
	for _, dir := range r.dirs {
		if isBelow(dir.Path, root) {
			to := filepath.Join(at, filepath.FromSlash(strings.TrimPrefix(dir.Path, root)))
			if err := tx.change.giveMode(to, dir.Mode); err != nil {
				return fmt.Errorf("staging %s: %w", dir.Path, err)
			}
		}
	}
	rel := filepath.FromSlash(root)
	if err := tx.see(rel, false); err != nil {
		return err
	}
	tx.targets[rel] = target{staged: staged}
	r.replaced = append(r.replaced, root)
	return nil
}

// onlyCleared is an error unless all that is below a directory is about to go.
func (r *restoration) onlyCleared(root string) error {
	path := filepath.Join(r.tx.work.dir, filepath.FromSlash(root))
	info, err := r.tx.work.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() {
		return err
	}
	entries, err := r.tx.work.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below := root + "/" + e.Name()
		if e.IsDir() && isSmall(e.Name(), r.tx.work.derived) {
			err = r.onlyCleared(below)
		} else if _, kept := r.now[below]; !kept {
			at := filepath.Join(r.tx.work.dir, filepath.FromSlash(below))
			err = fault.WithHint(fault.Errorf(fault.Other, "%s is in the way, and no generation keeps it", at), "move it out of the profile, then try again")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// otherCase is the name that a path has now, on a filesystem that ignores case:
// a file that was to be removed is then the same as the one that is wanted.
func (r *restoration) otherCase(path string) (string, error) {
	work := r.tx.work
	is, err := work.identityOf(filepath.Join(work.dir, filepath.FromSlash(path)))
	if err != nil || is == "" {
		return path, err
	}
	for rel, t := range r.tx.targets {
		if t.staged != "" {
			continue
		}
		if other, err := work.identityOf(filepath.Join(work.dir, rel)); err != nil {
			return "", err
		} else if other == is {
			delete(r.tx.targets, rel)
			return filepath.ToSlash(rel), nil
		}
	}
	return path, nil
}
