package action

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
	"dsh/internal/staging"
)

// needs is the contents that somebody in a home may want to lay out again.
type needs struct {
	contents map[store.Integrity]bool
	// forget are removed profiles that nobody will bring back.
	forget []string
}

// needed is what the lockfiles of a home name: those of profiles and of their
// node_modules, of directories that are kept or on their way, and of all
// generations, also of removed profiles but those to forget. One that cannot be
// read is an error, for nobody can say what it needs.
func (env Env) needed(forget []string) (*needs, error) {
	n := &needs{contents: map[store.Integrity]bool{}, forget: forget}
	// Names do not matter here: what has a name that is none may be somebody's.
	profiles, err := directories(env.Home.ProfilesDir())
	if err != nil {
		return nil, err
	}
	for _, dir := range profiles {
		if err := n.directory(dir); err != nil {
			return nil, unreadable(filepath.Base(dir), err)
		}
	}
	if err := n.installations(env.Home); err != nil {
		return nil, err
	}
	states, err := env.states()
	if err != nil {
		return nil, err
	}
	for _, state := range states {
		if err := n.state(state); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// directories are the directories in a directory, and links to some. What cannot
// be looked at, such as a link to a disk that is not there now, may be one: that
// is an error.
func directories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, dangling(dir)
	}
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			err = dangling(path)
		}
		if err != nil {
			return nil, err
		}
		if info != nil && info.IsDir() {
			dirs = append(dirs, path)
		}
	}
	return dirs, nil
}

// dangling is an error if a path that leads nowhere is a link.
func dangling(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return nil // nothing is there
	}
	return fault.WithHint(fault.Errorf(fault.Environment, "what is needed cannot be told: %s is a link to a place that is not there", path), "mount the disk that it leads to, or remove the link")
}

// remembered is what is remembered of a profile.
type remembered struct {
	dir     string
	name    string
	removed bool // there is no profile of that name
}

func (env Env) states() ([]remembered, error) {
	dirs, err := directories(env.Home.Path("state"))
	if err != nil {
		return nil, err
	}
	states := make([]remembered, len(dirs))
	for i, dir := range dirs {
		name := filepath.Base(dir)
		_, err := os.Lstat(filepath.Join(env.Home.ProfilesDir(), name))
		states[i] = remembered{dir, name, errors.Is(err, fs.ErrNotExist)}
	}
	return states, nil
}

// directory adds what a profile, or what was or will be one, needs.
func (n *needs) directory(dir string) error {
	lock, err := lockIn(dir)
	if err != nil {
		return err
	}
	n.add(lock)
	// What stands in node_modules can differ where the lockfile was edited or
	// taken away. One that others laid out needs nothing.
	if lock, err := install.InModules(dir); err == nil {
		n.add(lock)
	}
	for _, id := range install.BuiltIn(dir) {
		n.contents[id] = true
	}
	return nil
}

// installations adds what the installations of a home need.
func (n *needs) installations(home profile.Home) error {
	list, broken, err := runtimes.List(home)
	if err = errors.Join(append(broken, err)...); err != nil {
		return fault.WithHint(fmt.Errorf("what is needed cannot be told: %w", err), "dsh installation list shows the installations; remove what is no whole one")
	}
	for _, i := range list {
		if err := n.directory(i.Dir); err != nil {
			return fmt.Errorf("what is needed cannot be told: %w", err)
		}
		if id, err := store.ParseIntegrity(i.Node.Integrity); err == nil {
			n.contents[id] = true
		}
	}
	return nil
}

func (n *needs) state(s remembered) error {
	generations, err := staging.OpenHistory(filepath.Join(s.dir, "generations")).List()
	if err != nil {
		return fault.WithHint(err, "a damaged generation cannot be restored; when it is moved away, the command runs")
	}
	for _, g := range generations {
		text, ok := g.File(install.LockName)
		if !ok || n.forgets(s) && !g.Pinned {
			continue
		}
		lock, err := install.ParseLock(fmt.Sprintf("of generation %d of profile %s", g.ID, s.name), bytes.Clone(text))
		if err != nil {
			continue // it was saved as it was found, and a rollback brings it back as it is
		}
		n.add(lock)
	}
	kept, err := directories(s.dir)
	if err != nil {
		return err
	}
	for _, dir := range kept {
		if n.forgets(s) && strings.HasPrefix(filepath.Base(dir), "replaced-") {
			continue
		}
		if err := n.directory(dir); err != nil {
			return fmt.Errorf("what is needed cannot be told: %w", err)
		}
	}
	return nil
}

func (n *needs) forgets(s remembered) bool { return s.removed && slices.Contains(n.forget, s.name) }

func (n *needs) add(lock *install.Lock) {
	if lock == nil {
		return
	}
	for _, node := range lock.Nodes {
		n.contents[node.Integrity] = true
	}
}

// unreadable explains why a lockfile that does not read ends the command. name
// is of the directory that it is in.
func unreadable(name string, err error) error {
	err = fmt.Errorf("what is needed cannot be told: %w", err)
	if _, invalid := profile.ParseName(name); invalid != nil {
		return err
	}
	return fault.WithHint(err, "%s mends it", fault.ShellWords("dsh", "profile", "repair", name))
}
