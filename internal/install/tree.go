package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"

	"dsh/internal/install/manifest"
	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// treeMarker is the file in node_modules that says which lockfile the tree
// holds and for which platform it was laid out. It is written with the tree,
// so that what it says is true unless somebody else touched the folder.
const treeMarker = ".dsh-tree"

// item is one thing that node_modules holds at a path of its own: a package
// directory, the link to a local folder, or a directory of program links.
type item struct {
	id       string             // two items with one id have one content
	link     string             // what it holds, for a link
	leads    string             // the native path to which it leads, for a link
	programs map[string]program // for a directory of program links, by name
	build    func(dst string) error
}

// tree is what node_modules should hold.
type tree struct {
	dir     string // the profile's real directory, or where it will be
	files   string // where its files are now
	lock    *Lock
	entries map[store.Integrity]store.Entry // content of every package that is laid out
	skipped map[string]bool                 // optional packages that are left out, and what stands below them
	damaged map[string]bool                 // places where something stands that is not as it was laid out
}

// items lists a tree by path.
func (t *tree) items() map[string]item {
	items := map[string]item{}
	bins := map[string]map[string]program{} // by node_modules folder and name
	for _, at := range sortedKeys(t.lock.Nodes) {
		if t.isSkipped(at) {
			continue
		}
		n := t.lock.Nodes[at]
		if n.Origin.Kind == Link {
			target, leads := linkTarget(t.dir, at, n.Origin.Place), nativePlace(t.dir, n.Origin.Place)
			items[at] = item{id: "link " + target, link: target, leads: leads, build: func(dst string) error { return staging.OS.Symlink(target, dst) }}
		} else {
			entry := t.entries[n.Integrity]
			items[at] = item{id: n.Integrity.String(), build: func(dst string) error { return entry.Link(dst, store.Auto, nil) }}
		}
		t.addBins(bins, at, n.Package)
	}
	for folder, programs := range bins {
		items[folder+"/.bin"] = binItem(programs)
	}
	return items
}

func (t *tree) isSkipped(at string) bool {
	for at != "" {
		if t.skipped[at] {
			return true
		}
		i := strings.LastIndex(at, "/node_modules/")
		if i < 0 {
			return false
		}
		at = at[:i]
	}
	return false
}

func (t *tree) isDirect(at string) bool {
	_, ok := t.lock.Wanted[strings.TrimPrefix(at, "node_modules/")]
	return ok
}

// program is one entry of a .bin folder.
type program struct {
	target string      // relative to the folder
	exists func() bool // whether the package has the file; asked when it is laid out
}

// addBins notes the programs of a package. Where two packages bring one name,
// the profile's own dependency wins, else the first by path.
func (t *tree) addBins(bins map[string]map[string]program, at string, pkg *Package) {
	folder := strings.TrimSuffix(at, "/"+nameAt(at))
	for name, file := range pkg.Bin {
		// The lockfile may have been edited. In a command file of Windows a quote
		// and a percent sign mean something else.
		cleanName, cleanFile, ok := manifest.Program(name, file)
		if !ok || cleanName != name || cleanFile != file || strings.ContainsAny(file, `"%`) {
			continue
		}
		if bins[folder] == nil {
			bins[folder] = map[string]program{}
		}
		if _, taken := bins[folder][name]; taken && !t.isDirect(at) {
			continue
		}
		bins[folder][name] = program{"../" + nameAt(at) + "/" + file, func() bool {
			if pkg.Origin.Kind == Link {
				return exists(seenAt(t.dir, t.files, pkg.Origin.Place), file)
			}
			if entry, ok := t.entries[pkg.Integrity]; ok {
				return entry.Has(file)
			}
			return exists(t.files, at+"/"+file) // the store has lost the package
		}}
	}
}

// binItem is a .bin folder. A program whose file its package does not have is
// left out.
func binItem(programs map[string]program) item {
	return item{programs: programs, build: func(dst string) error {
		if err := os.Mkdir(dst, 0o755); err != nil {
			return err
		}
		for name, p := range programs {
			if !p.exists() {
				continue
			}
			if err := p.build(filepath.Join(dst, name)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// build makes a symlink, or on Windows, where those need rights, a command
// file that starts Node.js.
func (p program) build(file string) error {
	if runtime.GOOS == "windows" {
		return os.WriteFile(file+".cmd", p.command(), 0o755)
	}
	return os.Symlink(p.target, file)
}

func (p program) command() []byte {
	return []byte("@node \"%~dp0\\" + filepath.FromSlash(p.target) + "\" %*\r\n")
}

// stands reports whether build made what is there.
func (p program) stands(file string) bool {
	if runtime.GOOS == "windows" {
		text, err := os.ReadFile(file + ".cmd")
		return err == nil && bytes.Equal(text, p.command())
	}
	target, err := os.Readlink(file)
	return err == nil && target == p.target
}

// programsStand reports whether a .bin folder holds the programs and nothing else.
func programsStand(folder string, programs map[string]program) bool {
	found, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	expected := 0
	for name, p := range programs {
		if !p.exists() {
			continue
		}
		if expected++; !p.stands(filepath.Join(folder, name)) {
			return false
		}
	}
	return len(found) == expected
}

// marker is the content of the tree's marker file.
func (t *tree) marker() []byte {
	return append([]byte("# node_modules for "+ThisPlatform().String()+"\n"), t.lock.Bytes()...)
}

// present is what stands in node_modules before a change.
type present struct {
	absent  bool   // there is no node_modules, or nothing in it
	foreign string // who made it, when it was not dsh
	manager bool   // who made it is a known package manager
	marker  []byte
	lock    *Lock
}

// readPresent looks at a profile's node_modules.
func readPresent(dir string) (present, error) {
	modules := filepath.Join(dir, "node_modules")
	found, err := os.ReadDir(modules)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(found) == 0) {
		return present{absent: true}, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return present{foreign: "somebody, as a file,"}, nil
	}
	if err != nil {
		return present{}, err
	}
	for _, other := range []struct{ file, manager string }{
		{".modules.yaml", "pnpm"}, {".package-lock.json", "npm"}, {".yarn-integrity", "yarn"}, {".yarn-state.yml", "yarn"},
	} {
		if _, err := os.Lstat(filepath.Join(modules, other.file)); err == nil {
			return present{foreign: other.manager, manager: true}, nil
		}
	}
	marker, err := os.ReadFile(filepath.Join(modules, treeMarker))
	if err != nil {
		return present{foreign: "another program"}, nil
	}
	head, text, _ := bytes.Cut(marker, []byte("\n"))
	lock, err := ParseLock(treeMarker, text)
	if err != nil || string(head) != "# node_modules for "+ThisPlatform().String() {
		return present{foreign: "dsh on another machine"}, nil
	}
	return present{marker: marker, lock: lock}, nil
}

// TreeChange counts what a change does to node_modules.
type TreeChange struct {
	Added    int    `json:"added"`
	Removed  int    `json:"removed"`
	Changed  int    `json:"changed"`
	Replaced string `json:"replaced,omitempty"` // who made the node_modules that is replaced whole
}

// stage puts into tx what turns the present node_modules into t.
func (t *tree) stage(ctx context.Context, tx *staging.Tx, now present) (TreeChange, error) {
	want := t.items()
	if now.absent || now.foreign != "" {
		change := TreeChange{Replaced: now.foreign}
		for at := range want {
			if path.Base(at) != ".bin" {
				change.Added++
			}
		}
		if len(want) == 0 {
			if now.absent {
				return change, nil
			}
			return change, tx.Remove("node_modules")
		}
		staged := filepath.Join(tx.Stage(), "node_modules")
		if err := os.Mkdir(staged, 0o755); err != nil {
			return change, err
		}
		if err := buildAll(ctx, want, sortedKeys(want), func(at string) string {
			return filepath.Join(tx.Stage(), filepath.FromSlash(at))
		}); err != nil {
			return change, err
		}
		if err := os.WriteFile(filepath.Join(staged, treeMarker), t.marker(), 0o644); err != nil {
			return change, err
		}
		return change, tx.Replace("node_modules", staged)
	}

	old := (&tree{dir: t.dir, lock: now.lock, skipped: platformSkips(now.lock)}).items()
	var change TreeChange
	changed := map[string]bool{}
	for at, w := range want {
		o, had := old[at]
		if had && o.id == w.id && w.stands(t.files, at) && !t.damaged[at] {
			continue
		}
		changed[at] = true
		switch {
		case path.Base(at) == ".bin":
		case had:
			change.Changed++
		default:
			change.Added++
		}
	}
	removed := map[string]bool{}
	for at := range old {
		if _, stays := want[at]; stays || !exists(t.files, at) {
			continue
		}
		removed[at] = true
		if path.Base(at) != ".bin" {
			change.Removed++
		}
		if up := parentPlace(at); want[up].build != nil && t.brings(up, at) {
			changed[up] = true // what its archive has there comes back
		}
	}
	for at := range removed {
		if outermost(changed, at) == "" && outermost(removed, at) == at {
			if err := tx.Remove(at); err != nil {
				return change, err
			}
		}
	}
	if len(changed) == 0 && bytes.Equal(now.marker, t.marker()) {
		return change, nil
	}
	return change, t.stageChanged(ctx, tx, want, changed)
}

// brings reports whether the archive of the package at up holds files at a
// place in its node_modules.
func (t *tree) brings(up, at string) bool {
	inside := strings.TrimPrefix(at, up+"/") + "/"
	return slices.ContainsFunc(t.entries[t.lock.Nodes[up].Integrity].Files(), func(f store.File) bool {
		return strings.HasPrefix(f.Path, inside)
	})
}

// outermost is the topmost of the places at or above at, "" where none is.
func outermost(places map[string]bool, at string) string {
	top := ""
	for ; at != ""; at = parentPlace(at) {
		if places[at] {
			top = at
		}
	}
	return top
}

// stageChanged stages every changed item. One that stands below another
// changed one is built inside it, since the outer directory is replaced whole.
func (t *tree) stageChanged(ctx context.Context, tx *staging.Tx, want map[string]item, changed map[string]bool) error {
	places := map[string]string{} // path -> where it is staged
	for _, at := range sortedKeys(want) {
		top := outermost(changed, at)
		if top == "" {
			continue
		}
		if _, ok := places[top]; !ok {
			places[top] = filepath.Join(tx.Stage(), fmt.Sprintf("package-%d", len(places)))
		}
		if at != top {
			places[at] = filepath.Join(places[top], filepath.FromSlash(at[len(top):]))
		}
	}
	if err := buildAll(ctx, want, sortedKeys(places), func(at string) string { return places[at] }); err != nil {
		return err
	}
	for at := range changed {
		if outermost(changed, at) == at {
			if err := tx.Replace(at, places[at]); err != nil {
				return err
			}
		}
	}
	return tx.WriteFile("node_modules/"+treeMarker, t.marker(), 0o644)
}

// buildAll builds items at the paths, which are sorted so that what stands
// inside something comes after it. Packages at the top of node_modules are
// independent of each other and are built side by side.
func buildAll(ctx context.Context, items map[string]item, paths []string, place func(at string) string) error {
	batches := map[string][]string{} // by the outermost package
	for _, at := range paths {
		top := at
		for up := parentPlace(at); up != ""; up = parentPlace(up) {
			top = up
		}
		batches[top] = append(batches[top], at)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2 * runtime.NumCPU())
	for _, batch := range batches {
		group.Go(func() error {
			for _, at := range batch {
				if err := ctx.Err(); err != nil {
					return err
				}
				dst := place(at)
				if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
					return err
				}
				if parentPlace(at) != "" {
					// An archive may bring a node_modules of its own; what is
					// placed there by us is what the lockfile says.
					if err := staging.RemoveAll(dst); err != nil {
						return err
					}
				}
				if err := items[at].build(dst); err != nil {
					return fmt.Errorf("lay out %s: %w", at, err)
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// stands reports whether an item is at its place, as far as a look tells.
func (i item) stands(dir, at string) bool {
	file := filepath.Join(dir, filepath.FromSlash(at))
	if i.programs != nil {
		return programsStand(file, i.programs)
	}
	if i.link != "" {
		target, err := os.Readlink(file)
		return err == nil && (target == i.link || target == i.leads) // older dsh made all absolute
	}
	info, err := os.Lstat(file)
	return err == nil && info.IsDir()
}

func exists(dir, at string) bool {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at)))
	return err == nil
}

// parentPlace is the package in whose node_modules a path stands, "" at the top.
func parentPlace(at string) string {
	i := strings.LastIndex(at, "/node_modules/")
	if i < 0 {
		return ""
	}
	return at[:i]
}

// nativePlace is a lockfile's path on this machine.
func nativePlace(dir, place string) string {
	native := filepath.FromSlash(place)
	if filepath.IsAbs(native) {
		return native
	}
	return filepath.Join(dir, native)
}

// linkTarget is what the link at a place of the tree holds. One to a folder in
// the profile itself is relative, so that it stays right when the profile gets
// another name. Windows wants to see the folder when the link is made, and the
// tree is made elsewhere.
func linkTarget(dir, at, place string) string {
	native := filepath.FromSlash(place)
	if inside, err := filepath.Rel(filepath.FromSlash(path.Dir(at)), native); err == nil && filepath.IsLocal(native) && runtime.GOOS != "windows" {
		return inside
	}
	return nativePlace(dir, place)
}

// seenAt is where what a lockfile's path means is read: a place inside the profile
// dir is where the profile's files are now; "" is in dir.
func seenAt(dir, files, place string) string {
	native := nativePlace(dir, place)
	if files == "" {
		return native
	}
	if inside, err := filepath.Rel(dir, native); err == nil && filepath.IsLocal(inside) {
		return filepath.Join(files, inside)
	}
	return native
}

// platformSkips is the packages that do not run on this machine.
func platformSkips(lock *Lock) map[string]bool {
	skipped := map[string]bool{}
	for at, n := range lock.Nodes {
		if !ThisPlatform().runs(n.Package) {
			skipped[at] = true
		}
	}
	return skipped
}

// InModules is the lockfile that the node_modules of a profile directory was
// laid out by, nil where dsh did not lay it out.
func InModules(dir string) (*Lock, error) {
	now, err := readPresent(dir)
	return now.lock, err
}
