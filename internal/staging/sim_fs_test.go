package staging

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// simDisk is a filesystem in memory that knows what of it would survive a loss
// of power. It is as hostile as the journaling filesystems that people have may
// be (ext4, XFS, Btrfs, APFS), and not more:
//
//   - The content of a file survives as it was at its last Sync. What was
//     written later may be there, empty, cut, or zeros of the right length.
//   - A change of names (made, removed, linked, renamed, exchanged) survives
//     for sure once a directory that it is about was synced. A rename is one
//     change: both its names are old or both are new.
//   - Changes that were not synced survive in any combination in which a change
//     that survives has these with it: the earlier ones of the same names, the
//     making of the directories that it happens in, for the removal of a
//     directory what happened in it before, and for a new name of a file its
//     permissions.
//
// A sync of a file says nothing about its name.
type simDisk struct {
	simOptions
	mu      sync.Mutex
	root    *simNode
	made    int // nodes, ever
	boot    int
	pending []*simChange // of names and permissions, not synced, oldest first
	locks   map[*simNode]int
	// during is called in the middle of calls that are several on the disk.
	during func()
}

// simOptions are what a filesystem may lack.
type simOptions struct {
	foldCase    bool // names that differ by case are one name
	noLinks     bool // no hard links
	noExchange  bool // no exchange of two names
	noRenameNew bool // no rename that refuses to replace: done as osFS does it
	// image says that what there is at first comes from a container's image: on
	// overlayfs such directories cannot be renamed, and each becomes another one
	// when something in it, or below, is changed first.
	image bool
}

// simNode is a file, directory or link, whatever its names are.
type simNode struct {
	id       int
	image    int         // the id that a directory of the image has until it is changed; 0 is no such directory
	mode     fs.FileMode // type and permissions
	modified time.Time

	data    []byte // of a file, or where a link leads
	stored  []byte // what of data was synced
	unsaved bool   // data was written since

	entries map[string]simEntry // of a directory, by key
	// What a loss of power leaves at least.
	durableEntries map[string]simEntry
	durableMode    fs.FileMode
}

type simEntry struct {
	name string
	node *simNode
}

// simChange is what becomes durable as one.
type simChange struct {
	names   []simName
	makes   *simNode // new by this change
	removes *simNode // an empty directory that is no more
	chmod   *simNode // its new permissions are mode
	mode    fs.FileMode
	needs   []*simChange
	durable bool
}

// simName is what becomes of one name; nothing when the node of to is nil.
type simName struct {
	dir *simNode
	key string
	to  simEntry
}

func newSimDisk(options simOptions) *simDisk {
	d := &simDisk{simOptions: options, boot: 1, locks: map[*simNode]int{}, during: func() {}}
	d.root = d.newNode(fs.ModeDir | 0o755)
	return d
}

func (d *simDisk) newNode(mode fs.FileMode) *simNode {
	d.made++
	n := &simNode{id: d.made, mode: mode, durableMode: mode, modified: time.Now()}
	if mode.IsDir() {
		n.entries, n.durableEntries = map[string]simEntry{}, map[string]simEntry{}
	}
	return n
}

func (d *simDisk) key(name string) string {
	if d.foldCase {
		return strings.ToLower(name)
	}
	return name
}

// simWalked is where a path leads: to the entry name of the last of dirs, which
// node is, or nil. The name is "" when the path ends in a directory by itself.
type simWalked struct {
	dirs []simEntry
	name string
	node *simNode
}

func (w simWalked) dir() *simNode { return w.dirs[len(w.dirs)-1].node }

// below says whether n is a directory on the way.
func (w simWalked) below(n *simNode) bool {
	return slices.ContainsFunc(w.dirs, func(e simEntry) bool { return e.node == n })
}

func (d *simDisk) walk(path string, follow bool) (simWalked, error) {
	parts := simParts(path)
	dirs := []simEntry{{"", d.root}}
	for links := 0; len(parts) > 0; {
		part, last := parts[0], len(parts) == 1
		parts = parts[1:]
		if part == ".." {
			dirs = dirs[:max(1, len(dirs)-1)]
			continue
		}
		dir := dirs[len(dirs)-1].node
		if !dir.mode.IsDir() {
			return simWalked{}, syscall.ENOTDIR
		}
		e, there := dir.entries[d.key(part)]
		switch {
		case !there && last:
			return simWalked{dirs, part, nil}, nil
		case !there:
			return simWalked{}, fs.ErrNotExist
		case e.node.mode&fs.ModeSymlink != 0 && (follow || !last):
			if links++; links > 40 {
				return simWalked{}, syscall.ELOOP
			}
			target := string(e.node.data)
			if filepath.IsAbs(target) {
				dirs = dirs[:1]
			}
			parts = slices.Concat(simParts(target), parts)
		case last:
			return simWalked{dirs, e.name, e.node}, nil
		default:
			dirs = append(slices.Clip(dirs), e)
		}
	}
	return simWalked{dirs, "", dirs[len(dirs)-1].node}, nil
}

func simParts(path string) []string {
	path = path[len(filepath.VolumeName(path)):]
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool { return part == "" || part == "." })
}

// find is walk for what has to be there.
func (d *simDisk) find(path string, follow bool) (simWalked, error) {
	w, err := d.walk(path, follow)
	if err == nil && w.node == nil {
		err = fs.ErrNotExist
	}
	return w, err
}

// free is walk for a name that must not be taken.
func (d *simDisk) free(path string) (simWalked, error) {
	w, err := d.walk(path, false)
	if err == nil && w.node != nil {
		err = fs.ErrExist
	}
	if err == nil && !w.dir().mode.IsDir() {
		err = syscall.ENOTDIR
	}
	return w, err
}

func simFailed(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}

// change changes names.
func (d *simDisk) change(names ...simName) {
	d.do(&simChange{names: names})
}

// do makes a change and remembers it until it is durable.
func (d *simDisk) do(c *simChange) {
	for _, earlier := range d.pending {
		if c.cannotSurviveWithout(earlier) {
			c.needs = append(c.needs, earlier)
		}
	}
	for _, n := range c.names {
		d.own(n.dir)
		n.set(n.dir.entries)
		n.dir.modified = time.Now()
	}
	if c.chmod != nil {
		d.own(c.chmod)
		c.chmod.mode = c.mode
	}
	d.pending = append(d.pending, c)
}

// own makes a node of the image one of its own, with all above it.
func (d *simDisk) own(n *simNode) {
	var up func(at *simNode) bool
	up = func(at *simNode) bool {
		if at != n && !slices.ContainsFunc(slices.Collect(maps.Values(at.entries)), func(e simEntry) bool { return up(e.node) }) {
			return false
		}
		if at.image == at.id {
			d.made++
			at.id = d.made
		}
		return true
	}
	if d.image {
		up(d.root)
	}
}

// stuck says whether a node cannot be renamed.
func (n *simNode) stuck() bool { return n.image != 0 && n.mode.IsDir() }

func (c *simChange) cannotSurviveWithout(earlier *simChange) bool {
	if c.chmod != nil && (earlier.chmod == c.chmod || earlier.makes == c.chmod) {
		return true
	}
	return slices.ContainsFunc(c.names, func(n simName) bool {
		return earlier.makes == n.dir || // a simName always has a directory
			n.to.node != nil && earlier.chmod == n.to.node ||
			slices.ContainsFunc(earlier.names, func(e simName) bool {
				return e.dir == n.dir && e.key == n.key || e.dir == c.removes
			})
	})
}

func (n simName) set(entries map[string]simEntry) {
	if n.to.node == nil {
		delete(entries, n.key)
	} else {
		entries[n.key] = n.to
	}
}

// save makes the chosen changes durable, with what they need.
func (d *simDisk) save(chosen func(*simChange) bool) {
	var need func(c *simChange)
	need = func(c *simChange) {
		if c.durable {
			return
		}
		c.durable = true
		for _, n := range c.needs {
			need(n)
		}
	}
	for _, c := range d.pending {
		if chosen(c) {
			need(c)
		}
	}
	d.pending = slices.DeleteFunc(d.pending, func(c *simChange) bool {
		if c.durable {
			for _, n := range c.names {
				n.set(n.dir.durableEntries)
			}
			if c.chmod != nil {
				c.chmod.durableMode = c.mode
			}
		}
		return c.durable
	})
}

// flush makes everything durable, as some time without work does.
func (d *simDisk) flush() {
	d.save(func(*simChange) bool { return true })
	d.each(d.root, func(n *simNode) { n.stored, n.unsaved = n.data, false })
}

func (d *simDisk) each(n *simNode, do func(*simNode)) {
	do(n)
	for _, e := range n.entries {
		d.each(e.node, do)
	}
}

// powerLoss is the disk as it may be found when the power comes back, two hours
// later. d itself goes on.
func (d *simDisk) powerLoss(r *rand.Rand) *simDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	luck := []float64{0, 0.5, 0.9, 1}[r.IntN(4)]
	after := d.copied(func() bool { return r.Float64() < luck }, func(n *simNode) []byte {
		if !n.unsaved {
			return n.data
		}
		switch r.IntN(5) {
		case 0:
			return nil
		case 1:
			return make([]byte, len(n.data))
		case 2:
			return n.data[:r.IntN(len(n.data)+1)]
		case 3:
			return n.stored
		}
		return n.data
	})
	after.boot = d.boot + 1
	return after
}

// death is the disk as it is found when the process has died and no power was
// lost. d itself goes on.
func (d *simDisk) death() *simDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copied(func() bool { return true }, func(n *simNode) []byte { return n.data })
}

// copied is a disk on which all is durable: what is, and what lucky and content
// give of the rest.
func (d *simDisk) copied(lucky func() bool, content func(*simNode) []byte) *simDisk {
	entries := map[*simNode]map[string]simEntry{}
	modes := map[*simNode]fs.FileMode{}
	lost := map[*simChange]bool{}
	for _, c := range d.pending {
		// The draw is made in any case, so that it depends on nothing else.
		if !lucky() || slices.ContainsFunc(c.needs, func(n *simChange) bool { return lost[n] }) {
			lost[c] = true
			continue
		}
		for _, n := range c.names {
			if entries[n.dir] == nil {
				entries[n.dir] = maps.Clone(n.dir.durableEntries)
			}
			n.set(entries[n.dir])
		}
		if c.chmod != nil {
			modes[c.chmod] = c.mode
		}
	}
	after := newSimDisk(d.simOptions)
	copies := map[*simNode]*simNode{}
	var copyNode func(n *simNode) *simNode
	copyNode = func(n *simNode) *simNode {
		if copies[n] != nil {
			return copies[n]
		}
		mode, ok := modes[n]
		if !ok {
			mode = n.durableMode
		}
		c := after.newNode(mode)
		copies[n] = c
		c.id, c.image, c.modified = n.id, n.image, n.modified.Add(-2*time.Hour)
		if !mode.IsDir() {
			c.data = bytes.Clone(content(n))
			c.stored = c.data
			return c
		}
		from := entries[n]
		if from == nil {
			from = n.durableEntries
		}
		for _, key := range slices.Sorted(maps.Keys(from)) {
			e := from[key]
			c.entries[key] = simEntry{e.name, copyNode(e.node)}
		}
		c.durableEntries = maps.Clone(c.entries)
		return c
	}
	after.root = copyNode(d.root)
	after.made, after.boot = d.made, d.boot
	return after
}

// The calls of an FS.

func (d *simDisk) Lstat(path string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, false)
	if err != nil {
		return nil, simFailed("lstat", path, err)
	}
	return w.node.info(filepath.Base(path)), nil
}

func (n *simNode) info(name string) fs.FileInfo {
	return simInfo{name, int64(len(n.data)), n.mode, n.modified}
}

type simInfo struct {
	name     string
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func (i simInfo) Name() string       { return i.name }
func (i simInfo) Size() int64        { return i.size }
func (i simInfo) Mode() fs.FileMode  { return i.mode }
func (i simInfo) ModTime() time.Time { return i.modified }
func (i simInfo) IsDir() bool        { return i.mode.IsDir() }
func (i simInfo) Sys() any           { return nil }

func (d *simDisk) ReadDir(path string) ([]fs.DirEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, true)
	if err == nil && !w.node.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, simFailed("open", path, err)
	}
	var entries []fs.DirEntry
	for _, e := range w.node.entries {
		entries = append(entries, fs.FileInfoToDirEntry(e.node.info(e.name)))
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func (d *simDisk) Readlink(path string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, false)
	if err == nil && w.node.mode&fs.ModeSymlink == 0 {
		err = syscall.EINVAL
	}
	if err != nil {
		return "", simFailed("readlink", path, err)
	}
	return string(w.node.data), nil
}

func (d *simDisk) RealPath(path string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, true)
	if err != nil {
		return "", simFailed("lstat", path, err)
	}
	real := filepath.VolumeName(path) + string(filepath.Separator)
	for _, dir := range w.dirs[1:] {
		real = filepath.Join(real, dir.name)
	}
	return filepath.Join(real, w.name), nil
}

func (d *simDisk) Open(path string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, true)
	if err != nil {
		return nil, simFailed("open", path, err)
	}
	return &simFile{d: d, node: w.node, path: path}, nil
}

func (d *simDisk) Create(path string, perm fs.FileMode) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.add(path, perm&^0o022)
	if err != nil {
		return nil, simFailed("open", path, err)
	}
	return &simFile{d: d, node: n, path: path, writes: true}, nil
}

func (d *simDisk) Mkdir(path string, perm fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, err := d.add(path, fs.ModeDir|perm&^0o022)
	return simFailed("mkdir", path, err)
}

func (d *simDisk) Symlink(target, path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.add(path, fs.ModeSymlink|0o777)
	if err != nil {
		return simFailed("symlink", path, err)
	}
	n.data, n.stored = []byte(target), []byte(target) // comes with the name
	return nil
}

func (d *simDisk) add(path string, mode fs.FileMode) (*simNode, error) {
	w, err := d.free(path)
	if err != nil {
		return nil, err
	}
	n := d.newNode(mode)
	d.do(&simChange{names: []simName{{w.dir(), d.key(w.name), simEntry{w.name, n}}}, makes: n})
	return n, nil
}

func (d *simDisk) Link(oldpath, newpath string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return simFailed("link", newpath, d.link(oldpath, newpath))
}

func (d *simDisk) link(oldpath, newpath string) error {
	from, err := d.find(oldpath, false)
	if err != nil {
		return err
	}
	to, err := d.free(newpath)
	if err == nil && (d.noLinks || from.node.mode.IsDir()) {
		err = syscall.EPERM
	}
	if err == nil {
		d.change(simName{to.dir(), d.key(to.name), simEntry{to.name, from.node}})
	}
	return err
}

func (d *simDisk) Chmod(path string, perm fs.FileMode) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, true)
	if err != nil {
		return simFailed("chmod", path, err)
	}
	d.do(&simChange{chmod: w.node, mode: w.node.mode&fs.ModeType | perm.Perm()})
	return nil
}

func (d *simDisk) Rename(oldpath, newpath string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return simFailed("rename", newpath, d.rename(oldpath, newpath))
}

func (d *simDisk) rename(oldpath, newpath string) error {
	from, err := d.find(oldpath, false)
	if err != nil {
		return err
	}
	to, err := d.walk(newpath, false)
	if err != nil {
		return err
	}
	if to.below(from.node) {
		return syscall.EINVAL
	}
	if from.node.stuck() {
		return syscall.EXDEV
	}
	same := from.dir() == to.dir() && d.key(from.name) == d.key(to.name)
	switch {
	case to.node == nil:
	case to.node.mode.IsDir() && (!same || from.name == filepath.Base(newpath)):
		return fs.ErrExist // package os replaces no directory, not even an empty one
	case same:
	case to.node == from.node:
		return nil // two names of one file: both stay
	case from.node.mode.IsDir():
		return syscall.ENOTDIR
	}
	c := &simChange{}
	name := filepath.Base(newpath)
	if !same {
		c.names = append(c.names, simName{from.dir(), d.key(from.name), simEntry{}})
	}
	c.names = append(c.names, simName{to.dir(), d.key(name), simEntry{name, from.node}})
	d.do(c)
	return nil
}

func (d *simDisk) RenameNew(oldpath, newpath string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return simFailed("rename", newpath, d.renameNew(oldpath, newpath))
}

func (d *simDisk) renameNew(oldpath, newpath string) error {
	if _, err := d.free(newpath); err != nil {
		return err
	}
	from, err := d.find(oldpath, false)
	if err != nil {
		return err
	}
	if !d.noRenameNew || d.noLinks || !from.node.mode.IsRegular() {
		return d.rename(oldpath, newpath)
	}
	if err := d.link(oldpath, newpath); err != nil {
		return err
	}
	d.pause()
	return d.remove(oldpath)
}

// pause lets others look while a call is half done.
func (d *simDisk) pause() {
	d.mu.Unlock()
	defer d.mu.Lock()
	d.during()
}

// Exchange lets two names change what they name.
func (d *simDisk) Exchange(a, b string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, err := d.find(a, false)
	if err != nil {
		return simFailed("exchange", a, err)
	}
	second, err := d.find(b, false)
	if err == nil && (d.noExchange || first.node.stuck() || second.node.stuck() || first.below(second.node) || second.below(first.node)) {
		err = errors.ErrUnsupported
	}
	if err != nil {
		return simFailed("exchange", b, err)
	}
	d.change(
		simName{first.dir(), d.key(first.name), simEntry{first.name, second.node}},
		simName{second.dir(), d.key(second.name), simEntry{second.name, first.node}})
	return nil
}

func (d *simDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return simFailed("remove", path, d.remove(path))
}

func (d *simDisk) remove(path string) error {
	w, err := d.find(path, false)
	if err == nil && len(w.node.entries) > 0 {
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return err
	}
	c := &simChange{names: []simName{{w.dir(), d.key(w.name), simEntry{}}}}
	if w.node.mode.IsDir() {
		c.removes = w.node
	}
	d.do(c)
	return nil
}

func (d *simDisk) RemoveAll(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.removeAll(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return simFailed("remove", path, err)
}

func (d *simDisk) removeAll(path string) error {
	w, err := d.find(path, false)
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(w.node.entries)) {
		if err := d.removeAll(filepath.Join(path, w.node.entries[key].name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		d.pause()
	}
	return d.remove(path)
}

func (d *simDisk) SyncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, true)
	if err != nil {
		return simFailed("sync", path, err)
	}
	d.save(func(c *simChange) bool {
		return c.chmod == w.node || slices.ContainsFunc(c.names, func(n simName) bool { return n.dir == w.node })
	})
	return nil
}

// exclusively is in locks for a lock that is not shared.
const exclusively = -1

func (d *simDisk) TryLock(path string, record []byte) (func() error, error) {
	return d.tryLock(path, record, exclusively)
}

func (d *simDisk) TryRLock(path string, record []byte) (func() error, error) {
	return d.tryLock(path, record, 1)
}

func (d *simDisk) tryLock(path string, record []byte, how int) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.walk(path, true)
	if err == nil && w.node == nil {
		w.node, err = d.add(path, 0o600)
	}
	if err != nil {
		return nil, simFailed("open", path, err)
	}
	n := w.node
	if d.locks[n] == exclusively || d.locks[n] > 0 && how == exclusively {
		return nil, ErrHeld
	}
	d.locks[n] += how
	if len(record) > 0 {
		n.data = make([]byte, recordOffset+recordSize)
		copy(n.data[recordOffset:], record)
		for i := recordOffset + len(record); i < len(n.data); i++ {
			n.data[i] = ' '
		}
		n.unsaved = true
	}
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.locks[n] -= how
		return nil
	}, nil
}

func (d *simDisk) Identity(path string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w, err := d.find(path, false)
	if err != nil {
		return "", simFailed("identity", path, err)
	}
	return "node " + strconv.Itoa(w.node.id), nil
}

// BootID is another one after each loss of power.
func (d *simDisk) BootID() string { return "boot " + strconv.Itoa(d.boot) }

type simFile struct {
	d      *simDisk
	node   *simNode
	path   string
	at     int64
	writes bool
}

func (f *simFile) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.at)
	f.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *simFile) ReadAt(p []byte, at int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.node.mode.IsDir() {
		return 0, simFailed("read", f.path, syscall.EISDIR)
	}
	return bytes.NewReader(f.node.data).ReadAt(p, at)
}

func (f *simFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if !f.writes {
		return 0, simFailed("write", f.path, syscall.EBADF)
	}
	f.node.data = append(slices.Clip(f.node.data), p...)
	f.node.unsaved, f.node.modified = true, time.Now()
	return len(p), nil
}

func (f *simFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	f.node.stored, f.node.unsaved = f.node.data, false
	f.d.save(func(c *simChange) bool { return c.chmod == f.node })
	return nil
}

func (f *simFile) Close() error { return nil }

// Files for the tests, without sync, as plain programs make them.

// put makes a file with its directories, in place of what is there.
func (d *simDisk) put(t testing.TB, path, content string, perm fs.FileMode) {
	t.Helper()
	d.mkdirs(t, filepath.Dir(path))
	if err := d.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	f, err := d.Create(path, perm)
	if err == nil {
		_, err = io.WriteString(f, content)
	}
	if err == nil {
		err = d.Chmod(path, perm)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (d *simDisk) mkdirs(t testing.TB, path string) {
	t.Helper()
	if w, err := d.walk(path, true); err == nil && w.node != nil {
		return
	}
	d.mkdirs(t, filepath.Dir(path))
	if err := d.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

func (d *simDisk) symlink(t testing.TB, target, path string) {
	t.Helper()
	d.mkdirs(t, filepath.Dir(path))
	if err := d.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// tree is everything below dir, as the function tree says it of a real disk, with
// the permissions of directories that have others than most.
func (d *simDisk) tree(dir string) map[string]string {
	d.mu.Lock()
	defer d.mu.Unlock()
	got := map[string]string{}
	w, err := d.find(dir, true)
	if err != nil {
		return got
	}
	var add func(n *simNode, at string)
	add = func(n *simNode, at string) {
		for _, e := range n.entries {
			path := at + e.name
			switch {
			case e.node.mode.IsDir():
				got[path+"/"] = ""
				if e.node.mode.Perm() != 0o755 {
					got[path+"/"] = e.node.mode.String()
				}
				add(e.node, path+"/")
			case e.node.mode&fs.ModeSymlink != 0:
				got[path] = "-> " + filepath.ToSlash(string(e.node.data))
			default:
				got[path] = fmt.Sprint(e.node.mode, " ", string(e.node.data))
			}
		}
	}
	add(w.node, "")
	return got
}
