package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

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
	content  store.Integrity    // of a package directory
	built    bool               // content is what the package's scripts made, and is laid out as a copy
	link     string             // what it holds, for a link
	leads    string             // the native path to which it leads, for a link
	programs map[string]program // for a directory of program links, by name
}

// same reports whether two items of one path have one content, as far as that
// is known before anybody looks at the disk.
func (i item) same(other item) bool {
	return i.content == other.content && i.link == other.link && (i.programs == nil) == (other.programs == nil)
}

// tree is what node_modules should hold.
type tree struct {
	dir     string // the profile's real directory, or where it will be
	files   string // where its files are now
	lock    *Lock
	text    []byte                          // of the lockfile
	entries map[store.Integrity]store.Entry // content of every package that is laid out
	built   map[string]store.Integrity      // by place, content that scripts made of what was published
	skipped map[string]bool                 // optional packages that are left out, and what stands below them
	foreign int                             // how many of skipped are for other platforms
	damaged map[string]bool                 // places where something stands that is not as it was laid out
	copied  bool                            // nothing in it is a link to a file of the store
	// wrappers is where those of Agent Plugins are staged that change, by place.
	wrappers   map[string]string
	pluginData string // the directory with the data of Agent Plugins
	// laid says of a place whether the change lays it out anew; nil is nowhere.
	laid func(at string) bool
	// told is what is known of packages whose content is not in the store, in a
	// dry run.
	told map[string]installed
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
		if n.AgentPlugin {
			place := wrapperPlace(nameAt(at))
			items[at] = item{link: linkTarget(t.dir, at, place), leads: nativePlace(t.dir, place)}
		} else if n.Origin.Kind == Link {
			items[at] = item{link: linkTarget(t.dir, at, n.Origin.Place), leads: nativePlace(t.dir, n.Origin.Place)}
		} else {
			items[at] = item{content: t.contentAt(at), built: t.isBuilt(at)}
		}
		t.addBins(bins, at, n.Package)
	}
	for folder, programs := range bins {
		items[folder+"/.bin"] = item{programs: programs}
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
			if entry, ok := t.entries[t.contentAt(at)]; ok {
				return entry.Has(file)
			}
			return exists(t.files, at+"/"+file) // the store has lost the package
		}}
	}
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
	head := markerHead
	if t.copied {
		head += markerCopied
	}
	return slices.Concat([]byte(head+"\n"), t.text)
}

// isMarked reports whether a marker is that of the tree.
func (t *tree) isMarked(marker []byte) bool {
	head, text, _ := bytes.Cut(marker, []byte("\n"))
	platform, copied := bytes.CutSuffix(head, []byte(markerCopied))
	return copied == t.copied && string(platform) == markerHead && bytes.Equal(text, t.text)
}

// filesAt is where the files of the package at a place are until the change is
// committed.
func (t *tree) filesAt(at string) string {
	if n := t.lock.Nodes[at]; n.Package != nil && n.AgentPlugin {
		if staged, ok := t.wrappers[at]; ok {
			return staged
		}
		return filepath.Join(t.files, filepath.FromSlash(wrapperPlace(nameAt(at))))
	} else if n.Package != nil && n.Origin.Kind == Link {
		return seenAt(t.dir, t.files, n.Origin.Place)
	} else if entry, ok := t.entries[t.contentAt(at)]; ok && t.laid != nil && t.laid(at) {
		return entry.Dir()
	}
	return filepath.Join(t.files, filepath.FromSlash(at))
}

var markerHead = "# node_modules for " + ThisPlatform().String()

const markerCopied = ", copied"

func (t *tree) linkMode() store.Mode {
	if t.copied {
		return store.Copy
	}
	return store.Auto
}

// present is what stands in node_modules before a change.
type present struct {
	absent  bool   // there is no node_modules, or nothing in it
	foreign string // who made it, when it was not dsh
	manager bool   // who made it is a known package manager
	marker  []byte
	copied  bool
	lock    *Lock
	built   map[string]store.Integrity // see [tree]
}

// readPresent looks at a profile's node_modules. known is the lockfile of a text
// that has been read; what was laid out by it need not be read again.
func readPresent(dir string, knownText []byte, known *Lock) (present, error) {
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
	lock := known
	if known == nil || !bytes.Equal(text, knownText) {
		lock, err = ParseLock(treeMarker, text)
	}
	platform, copied := bytes.CutSuffix(head, []byte(markerCopied))
	if err != nil || string(platform) != markerHead {
		return present{foreign: "dsh on another machine"}, nil
	}
	built, err := readBuilt(dir)
	return present{marker: marker, copied: copied, lock: lock, built: built}, err
}

// TreeChange counts what a change does to node_modules.
type TreeChange struct {
	Added    int    `json:"added"`
	Removed  int    `json:"removed"`
	Changed  int    `json:"changed"`
	Replaced string `json:"replaced,omitempty"` // who made the node_modules that is replaced whole
}

// stage puts into the transaction what turns the present node_modules into t.
// Contents that are still on their way are waited for.
func (j *Job) stage(ctx context.Context, c *contents, t *tree) (TreeChange, error) {
	for attempt := 0; ; attempt++ {
		err := j.build(ctx, c, t)
		var change TreeChange
		if err == nil {
			change, err = j.stageOnce(ctx, c, newBuilder(t, filepath.Join(j.Tx.Stage(), strconv.Itoa(attempt)), t.linkMode()))
		}
		// Somebody has taken something out of the store behind our back.
		if _, damaged := errors.AsType[*store.DamagedError](err); !damaged || attempt == maxAttempts-1 {
			return change, err
		}
		j.distrust = true
	}
}

// maxAttempts is how often a tree is laid out, where the store turns out to be
// damaged. The second time all contents are looked at before.
const maxAttempts = 3

func (j *Job) stageOnce(ctx context.Context, c *contents, b *builder) (TreeChange, error) {
	t := b.tree
	if j.present.absent || j.present.foreign != "" {
		return j.stageAll(ctx, c, b)
	}
	t.damaged = map[string]bool{}
	if j.Check {
		if err := j.gather(ctx, c, t, t.pieces(everywhere), nil); err != nil {
			return TreeChange{}, err
		}
		var err error
		if t.damaged, err = t.findDamage(ctx, true, false); err != nil {
			return TreeChange{}, err
		}
	}
	for _, at := range j.Anew {
		t.damaged[at] = true
	}
	return j.stageChanges(ctx, c, b)
}

func everywhere(string) bool { return true }

// stageAll stages a whole node_modules.
func (j *Job) stageAll(ctx context.Context, c *contents, b *builder) (TreeChange, error) {
	t := b.tree
	t.laid = everywhere
	change := TreeChange{Replaced: j.present.foreign}
	if len(t.lock.Nodes) == 0 && j.present.absent {
		return change, nil
	}
	items, err := j.layAll(ctx, c, b)
	if err != nil {
		return change, err
	}
	for at := range items {
		if path.Base(at) != ".bin" {
			change.Added++
		}
	}
	if len(items) == 0 {
		if j.present.absent {
			return change, nil
		}
		return change, j.Tx.Remove("node_modules")
	}
	staged := filepath.Join(b.dir, "node_modules")
	if err := os.WriteFile(filepath.Join(staged, treeMarker), t.marker(), 0o644); err != nil {
		return change, err
	}
	if len(t.built) > 0 {
		if err := os.WriteFile(filepath.Join(staged, builtName), formatBuilt(t.built), 0o644); err != nil {
			return change, err
		}
	}
	return change, j.Tx.Replace("node_modules", staged)
}

// layAll lays out a whole tree, each package as soon as the store has it.
func (j *Job) layAll(ctx context.Context, c *contents, b *builder) (map[string]item, error) {
	t := b.tree
	var paths []string
	for at := range t.lock.Nodes {
		if !t.isSkipped(at) {
			paths = append(paths, at)
		}
	}
	if err := b.makeParents(paths); err != nil {
		return nil, err
	}
	known := maps.Clone(t.skipped)
	if err := j.gather(ctx, c, t, t.pieces(everywhere), b.lay); err != nil {
		return nil, err
	}
	t.withoutSkipped()
	for at, id := range t.built {
		if err := b.layPackage(at, t.entries[id]); err != nil {
			return nil, err
		}
	}
	// What could not be had goes, with what was laid out below it.
	for at := range t.skipped {
		if known[at] {
			continue
		}
		if err := staging.RemoveAll(b.place(at)); err != nil {
			return nil, err
		}
		if scope := filepath.Dir(b.place(at)); strings.HasPrefix(filepath.Base(scope), "@") {
			_ = staging.OS.Remove(scope) // where nothing else is in it
		}
	}
	items := t.items()
	return items, b.finish(ctx, items, sortedKeys(items))
}

// stageChanges stages what is different from the present tree of ours. Only
// contents that are laid out are looked for in the store.
func (j *Job) stageChanges(ctx context.Context, c *contents, b *builder) (TreeChange, error) {
	t, now := b.tree, j.present
	var change TreeChange
	want, marked := t.items(), t.isMarked(now.marker)
	old := want
	sameBuilds := sameBuilt(now.built, t.built)
	if !marked || !sameBuilds || len(t.skipped) > t.foreign {
		old = (&tree{dir: t.dir, lock: now.lock, skipped: platformSkips(now.lock), built: now.built}).items()
	}
	changed := map[string]bool{}
	differs := func(at string, w item) bool {
		o, had := old[at]
		return !had || !o.same(w) || now.copied != t.copied && !w.content.IsZero() && !w.built || !w.stands(t.files, at) || t.damaged[at]
	}
	for at, w := range want {
		if w.programs != nil || !differs(at, w) {
			continue
		}
		changed[at] = true
		if _, had := old[at]; had {
			change.Changed++
		} else {
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
		up := parentPlace(at)
		if _, there := want[up]; there && j.brings(c, t, up, at) {
			changed[up] = true // what its archive has there comes back
		}
	}
	t.laid = func(at string) bool { return outermost(changed, at) != "" }
	known := len(t.skipped)
	if err := j.gather(ctx, c, t, t.pieces(t.laid), nil); err != nil {
		return change, err
	}
	if len(t.skipped) > known {
		t.withoutSkipped()
		return j.stageChanges(ctx, c, b) // without what could not be had
	}
	for at, w := range want {
		if w.programs != nil && differs(at, w) {
			changed[at] = true
		}
	}
	if len(changed) > 0 {
		if err := b.buildChanged(ctx, want, changed); err != nil {
			return change, err
		}
	}
	for at := range removed {
		if outermost(changed, at) == "" && outermost(removed, at) == at {
			if err := j.Tx.Remove(at); err != nil {
				return change, err
			}
		}
	}
	for at := range changed {
		if outermost(changed, at) == at {
			if err := j.Tx.Replace(at, b.place(at)); err != nil {
				return change, err
			}
		}
	}
	switch {
	case sameBuilds:
	case len(t.built) == 0:
		if err := j.Tx.Remove("node_modules/" + builtName); err != nil {
			return change, err
		}
	default:
		if err := j.Tx.WriteFile("node_modules/"+builtName, formatBuilt(t.built), 0o644); err != nil {
			return change, err
		}
	}
	if len(changed) == 0 && marked {
		return change, nil
	}
	return change, j.Tx.WriteFile("node_modules/"+treeMarker, t.marker(), 0o644)
}

// brings reports whether the archive of the package at up holds files at a
// place in its node_modules.
func (j *Job) brings(c *contents, t *tree, up, at string) bool {
	n := t.lock.Nodes[up]
	if n.linked() {
		return false
	}
	if id, built := t.built[up]; built {
		return bringsAlong(t.entries[id], strings.TrimPrefix(at, up+"/"))
	}
	p := c.want(n.Package)
	<-p.done
	return p.err == nil && bringsAlong(p.entry, strings.TrimPrefix(at, up+"/"))
}

// bringsAlong reports whether a content has files at a path or below it.
func bringsAlong(entry store.Entry, at string) bool {
	return slices.ContainsFunc(entry.Files(), func(f store.File) bool { return strings.HasPrefix(f.Path, at+"/") })
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

// platformSkips is the packages that do not run on this machine, and those that
// nobody but these needs.
func platformSkips(lock *Lock) map[string]bool {
	skipped := map[string]bool{}
	for at, n := range lock.Nodes {
		if !ThisPlatform().runs(n.Package) {
			skipped[at] = true
		}
	}
	led := lock.reached(sortedKeys(skipped), nil)
	if len(led) == len(skipped) {
		return skipped
	}
	var own []string
	for name := range lock.Wanted {
		if at := "node_modules/" + name; !skipped[at] {
			own = append(own, at)
		}
	}
	needed := lock.reached(own, skipped)
	for at := range led {
		if !needed[at] {
			skipped[at] = true
		}
	}
	return skipped
}

// reached is the places that Node.js comes to from some, over dependencies and
// peers, without those in but.
func (l *Lock) reached(from []string, but map[string]bool) map[string]bool {
	seen := map[string]bool{}
	var queue []string
	enter := func(at string) {
		if _, ok := l.Nodes[at]; ok && !seen[at] && !but[at] {
			seen[at] = true
			queue = append(queue, at)
		}
	}
	for _, at := range from {
		enter(at)
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		n := l.Nodes[at]
		if n.Origin.Kind == Link {
			enter(n.Origin.Place) // where it leads to a package above
			continue
		}
		for _, needs := range []map[string]string{n.Dependencies, n.Package.Optional, n.Peers} {
			for name := range needs {
				if to, _, ok := l.lookUp(at, name); ok {
					enter(to)
				}
			}
		}
	}
	return seen
}

// InModules is the lockfile that the node_modules of a profile directory was
// laid out by, nil where dsh did not lay it out.
func InModules(dir string) (*Lock, error) {
	now, err := readPresent(dir, nil, nil)
	return now.lock, err
}
