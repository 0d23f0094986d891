package install

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/build"
	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// runInTree runs the install scripts of a package in a copy of it, with copies
// of what it can load around it where the tree has them, and says in which
// directory the result is. content is what the package consists of before.
func (j *Job) runInTree(ctx context.Context, c *contents, b building, content store.Integrity, entry store.Entry, done *Built) (string, error) {
	root, err := j.Store.TempDir() // goes with the store's Close
	if err != nil {
		return "", err
	}
	around := &tree{
		dir: j.Dir, files: j.Files, lock: &Lock{Nodes: map[string]Located{}},
		entries: b.tree.entries, skipped: b.tree.skipped, built: map[string]store.Integrity{b.at: content},
	}
	around.entries[content] = entry
	around.lock.Nodes[b.at] = b.n
	for at := range b.reach {
		n := b.tree.lock.Nodes[at]
		if _, inside := b.tree.lock.Nodes[n.Origin.Place]; n.Origin.Kind == Link && !inside {
			// From here a path that is relative to the profile leads nowhere.
			pkg := *n.Package
			pkg.Origin.Place = filepath.ToSlash(seenAt(j.Dir, j.Files, n.Origin.Place))
			n.Package = &pkg
		}
		around.lock.Nodes[at] = n
		if id, built := b.tree.built[at]; built {
			around.built[at] = id
		}
	}
	// Copies, for a script that nothing confines could write through a hard link.
	items, err := j.layAll(ctx, c, newBuilder(around, root, store.Copy))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, filepath.FromSlash(b.at))
	var bin []string
	for at := b.at; at != ""; at = parentPlace(at) {
		bin = append(bin, filepath.Join(root, filepath.FromSlash(at), "node_modules", ".bin"))
	}
	bin = append(bin, filepath.Join(root, "node_modules", ".bin"))
	if err := j.run(ctx, b, dir, root, bin, b.scripts.install, done); err != nil {
		if unbuilt := around.unbuilt(b.at); len(unbuilt) > 0 && ctx.Err() == nil {
			err = fmt.Errorf("%w\n\tit needs what nobody let run its scripts: %s", err, strings.Join(unbuilt, ", "))
		}
		return "", err
	}
	return dir, removeBelow(root, b.at, items)
}

// unbuilt is the packages around one at a place, as name@version, whose scripts
// did not run.
func (t *tree) unbuilt(but string) (names []string) {
	list, err := t.withScripts(func(at string) bool { return at != but && !t.isBuilt(at) })
	if err != nil {
		return nil // it is a help, and no more
	}
	for _, s := range list {
		names = append(names, s.Name+"@"+s.Version)
	}
	return names
}

// prepare runs the scripts of a package from a repository that make what is
// published, with all that its package.json asks for in its own node_modules, and
// says in which directory the result is.
func (j *Job) prepare(ctx context.Context, b building, done *Built) (string, error) {
	temp, err := j.Store.TempDir()
	if err != nil {
		return "", err
	}
	if temp, err = filepath.EvalSymlinks(temp); err != nil {
		return "", err
	}
	dir := filepath.Join(temp, "package")
	if err := b.tree.entries[b.n.Integrity].Link(dir, store.Copy, nil); err != nil {
		return "", err
	}
	items, err := j.layDevelopment(ctx, b, dir)
	if err != nil {
		return "", fmt.Errorf("installing what %s needs to be built: %w", b.n.describe(), err)
	}
	if err := j.run(ctx, b, dir, dir, []string{filepath.Join(dir, "node_modules", ".bin")}, b.scripts.prepare, done); err != nil {
		return "", err
	}
	return dir, removeBelow(dir, "", items)
}

// layDevelopment installs the dependencies of the package in a directory, those
// for its development too, below it.
func (j *Job) layDevelopment(ctx context.Context, b building, dir string) (map[string]item, error) {
	text, err := readPackageText(b.n.describe(), filepath.Join(dir, "package.json"))
	if err != nil {
		return nil, err
	}
	own, err := profile.ParseManifest(filepath.Join(dir, "package.json"), text)
	if err != nil {
		return nil, err
	}
	settings, err := ReadSettings(dir, own)
	if err != nil {
		settings = Settings{} // of somebody else's workspace
	}
	settings.AutoPeers = true
	sub := &Job{
		Profile: j.Profile, Dir: dir, Files: dir, Store: j.Store, Registry: j.Registry, Offline: j.Offline, Before: j.Before,
		Approved: j.Approved, IgnoreScripts: j.IgnoreScripts, Logs: j.Logs, Events: j.Events, Settings: &settings, Policy: j.Policy.ForBuilding(), Admit: j.Admit,
		manifest: own, before: own, author: b.n.Package, settings: settings, pinned: map[string]*Package{}, present: present{absent: true},
	}
	wishes := slices.DeleteFunc(sub.wishes(), func(w Wish) bool { return !ValidName(w.Name) })
	var peers struct {
		PeerDependencies map[string]json.RawMessage `json:"peerDependencies"`
	}
	_ = json.Unmarshal(text, &peers)
	for _, name := range sortedKeys(peers.PeerDependencies) {
		if wanted := textOf(peers.PeerDependencies[name]); ValidName(name) && !slices.ContainsFunc(wishes, func(w Wish) bool { return w.Name == name }) {
			wishes = append(wishes, Wish{Name: name, Wanted: wanted, Optional: true})
		}
	}
	slices.SortFunc(wishes, func(a, b Wish) int { return strings.Compare(a.Name, b.Name) })
	find, ctx, end := sub.sources(ctx)
	defer end()
	res, err := sub.resolve(ctx, find, wishes, change{})
	if err != nil {
		return nil, err
	}
	if err := sub.holdSources(ctx, find, res.lock); err != nil {
		return nil, err
	}
	warnings, err := sub.admit(res.lock)
	if err != nil {
		return nil, err
	}
	j.leftOut = append(j.leftOut, warnings...)
	t := &tree{dir: dir, files: dir, lock: res.lock, entries: map[store.Integrity]store.Entry{}, skipped: platformSkips(res.lock)}
	if err := sub.build(ctx, find.contents, t); err != nil {
		return nil, err
	}
	return sub.layAll(ctx, find.contents, newBuilder(t, dir, store.Copy))
}

// run runs scripts of a package in its directory, and keeps what they print.
func (j *Job) run(ctx context.Context, b building, dir, root string, bin []string, list []Script, done *Built) (err error) {
	temp, err := j.Store.TempDir() // goes with the store's Close
	if err != nil {
		return err
	}
	node, err := buildNode()
	if err != nil {
		return err
	}
	request := build.Request{Name: b.n.Name, Version: b.n.Version, Dir: dir, Root: root, Temp: temp, Bin: bin, Node: node}
	for _, s := range list {
		request.Scripts = append(request.Scripts, build.Script{Event: s.Event, Text: s.Text})
	}
	if j.Logs != "" {
		log, err := newLog(j.Logs, b.n.Name, time.Now())
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, log.Close()) }()
		request.Log, done.Log = log, log.Name()
	}
	if j.Events.Building != nil {
		j.Events.Building(b.n.describe())
	}
	done.Reused = false
	result, err := build.Run(ctx, request)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if failed, ok := errors.AsType[*build.ScriptError](err); ok {
			err = failed // it names the package
		}
		err = fmt.Errorf("building %s (%s): %w", b.n.describe(), fromProfile(b.tree.lock.waysTo()[b.at]...), err)
		if done.Log != "" {
			err = fault.WithHint(err, "all that was printed is in %s", done.Log)
		}
		return err
	}
	done.Confinement = result.Confined()
	return nil
}

// keptLogs is how many logs of builds a profile keeps.
const keptLogs = 20

// newLog makes a log for a package's scripts, and takes the oldest away.
func newLog(dir, name string, now time.Time) (*logFile, error) {
	if err := staging.MkdirAll(dir); err != nil {
		return nil, err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	// Names end in the time.
	stamp := func(e fs.DirEntry) string { return e.Name()[strings.LastIndexByte(e.Name(), '-')+1:] }
	slices.SortFunc(old, func(a, b fs.DirEntry) int { return strings.Compare(stamp(a), stamp(b)) })
	for _, e := range old[:max(0, len(old)-keptLogs+1)] {
		_ = staging.OS.Remove(filepath.Join(dir, e.Name())) // one more does no harm
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%s.log", strings.ReplaceAll(name, "/", "+"), now.UTC().Format("20060102T150405.000000000Z")))
	f, err := staging.OS.Create(path, 0o600)
	if err != nil {
		return nil, err
	}
	return &logFile{f, path}, nil
}

// logFile is a log with its name.
type logFile struct {
	staging.File
	path string
}

// Name is its path.
func (f *logFile) Name() string { return f.path }

// removeBelow takes the items of a tree out of the package at a place, so that
// only its own files are left.
func removeBelow(root, at string, items map[string]item) error {
	prefix := ""
	if at != "" {
		prefix = at + "/"
	}
	var folders []string
	for path := range items {
		if !strings.HasPrefix(path, prefix) || path == at {
			continue
		}
		file := filepath.Join(root, filepath.FromSlash(path))
		if err := staging.RemoveAll(file); err != nil {
			return err
		}
		folders = append(folders, filepath.Dir(file))
	}
	slices.Sort(folders)
	for _, dir := range slices.Backward(slices.Compact(folders)) {
		if filepath.Base(dir) != "node_modules" { // a scope
			_ = staging.OS.Remove(dir)
			dir = filepath.Dir(dir)
		}
		_ = staging.OS.Remove(dir) // where nothing else is in it
	}
	return nil
}
