package install

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/install/registry"
	"dsh/internal/install/store"
)

// Plan is what a command would do to the packages of a profile.
type Plan struct {
	Packages []Planned `json:"packages"` // that would be added, updated or removed, by place
	Fetch    Amount    `json:"fetch"`    // what would be fetched
	Stored   Amount    `json:"stored"`   // what would be taken from the store
	// Layers would come and go.
	LayersAdded   []string `json:"layersAdded"`
	LayersRemoved []string `json:"layersRemoved"`
	// Files of the profile would be written, node_modules aside.
	Files   []string `json:"files"`
	Creates bool     `json:"creates"` // the profile would be made
	// Replaces is who made the node_modules that would be made anew.
	Replaces string `json:"replaces,omitempty"`
}

// Amount is a number of package contents. Several places can have one.
type Amount struct {
	Packages int   `json:"packages"`
	Bytes    int64 `json:"bytes"`   // unpacked, of those whose size is known
	Unknown  int   `json:"unknown"` // packages whose size nobody says
}

// Move is what becomes of the package at one place.
type Move struct {
	Action  Action `json:"action"`
	Name    string `json:"name"`
	Before  string `json:"before,omitempty"`  // version
	Version string `json:"version,omitempty"` // version then
	Place   string `json:"place"`
	// Of what comes from a git repository, the commits.
	CommitBefore string `json:"commitBefore,omitempty"`
	Commit       string `json:"commit,omitempty"`
}

// move is what becomes of a place, from what was there, if anything, to what is.
func move(action Action, at string, was, is Located) Move {
	m := Move{Action: action, Place: at}
	if was.Package != nil {
		m.Name, m.Before, m.CommitBefore = was.Name, was.Version, was.Origin.Commit()
	}
	if is.Package != nil {
		m.Name, m.Version, m.Commit = is.Name, is.Version, is.Origin.Commit()
	}
	return m
}

// Planned is one move of a plan.
type Planned struct {
	Move
	Source  string   `json:"source,omitempty"` // store, fetch, local or link
	Bytes   int64    `json:"bytes,omitempty"`  // unpacked; 0 where nobody says it
	Scripts []string `json:"scripts"`          // that it has, and that do not run
}

// content is what a plan knows of the content of a package.
type content struct {
	bytes   int64
	scripts []string
	layer   bool
	stored  bool
}

// add counts one content. No package is empty, so that 0 is a size that nobody
// says.
func (a *Amount) add(bytes int64) {
	a.Packages++
	a.Bytes += bytes
	if bytes == 0 {
		a.Unknown++
	}
}

// plan says what the tree of a lock would change, and changes nothing.
func (j *Job) plan(ctx context.Context, find *sources, lock *Lock, c change) (*Result, error) {
	if err := j.holdSources(ctx, find, lock); err != nil {
		return nil, err
	}
	skipped := platformSkips(lock)
	t := &tree{dir: j.Dir, files: j.Files, lock: lock, entries: map[store.Integrity]store.Entry{}, skipped: skipped, copied: j.settings.Copy, told: map[string]installed{}}
	plan := &Plan{Packages: []Planned{}, LayersAdded: []string{}, LayersRemoved: []string{}, Files: []string{}, Replaces: j.present.foreign}
	plan.Packages = append(plan.Packages, j.moves(t)...)
	contents, err := j.contents(ctx, t, plan.Packages)
	if err != nil {
		return nil, err
	}
	if err := j.holdContents(t); err != nil {
		return nil, err
	}
	result := &Result{Manifest: j.manifest, Plan: plan, tree: t, before: j.present, locked: j.locked}
	result.Tree.Replaced = plan.Replaces
	counted := map[store.Integrity]bool{}
	for i := range plan.Packages {
		p := &plan.Packages[i]
		p.Scripts = []string{}
		switch p.Action {
		case Added:
			result.Tree.Added++
		case Removed:
			result.Tree.Removed++
			continue
		default:
			result.Tree.Changed++
		}
		n := lock.Nodes[p.Place]
		if n.Origin.Kind == Link {
			p.Source = "link"
			continue
		}
		known := contents[n.Integrity]
		p.Bytes, p.Scripts = known.bytes, append(p.Scripts, known.scripts...)
		var amount *Amount
		switch {
		case known.stored:
			p.Source, amount = "store", &plan.Stored
		case n.Origin.Kind == Archive || n.Origin.Kind == Folder || j.Given[n.Integrity]:
			p.Source = "local"
			continue
		default:
			p.Source, amount = "fetch", &plan.Fetch
		}
		if !counted[n.Integrity] {
			counted[n.Integrity] = true
			amount.add(known.bytes)
		}
	}
	for name := range lock.Wanted {
		at := "node_modules/" + name
		n, ok := lock.at(at)
		if !ok || skipped[at] || n.Origin.Kind == Link {
			continue
		}
		if _, stored := t.entries[n.Integrity]; !stored {
			t.told[name] = installed{version: n.Version, bundle: contents[n.Integrity].layer || n.AgentPlugin, there: true}
		}
	}
	if _, err := j.stageWrappers(ctx, find.contents, t); err != nil {
		return nil, err
	}
	if result.Changes, err = j.reconcile(t, c); err != nil {
		return nil, err
	}
	for _, ch := range result.Changes {
		switch ch.Layer {
		case LayerAdded:
			plan.LayersAdded = append(plan.LayersAdded, ch.Name)
		case LayerRemoved:
			plan.LayersRemoved = append(plan.LayersRemoved, ch.Name)
		}
	}
	if string(j.manifest.Bytes()) != string(j.before.Bytes()) {
		plan.Files = append(plan.Files, "package.json")
	}
	if !j.locked.holds(lock) {
		plan.Files = append(plan.Files, LockName)
	}
	write, remove := j.archiveChanges(lock)
	plan.Files = slices.Concat(plan.Files, sortedKeys(write), remove)
	var hosts []string
	result.Hosts, hosts = hostReport(j.locked, lock, j.manifest, j.settings.Hosts, j.Provides, j.command)
	result.Warnings = slices.Concat(j.notes, find.deprecations(lock), find.tooNew(lock), find.notesOf(lock), find.unverified(), newPeerProblems(j.locked, lock), foreignPeers(j.locked, lock, j.Dir), hosts)
	return result, nil
}

// holds reports whether a lockfile says what another does. No lockfile says
// what an empty one does.
func (l *Lock) holds(other *Lock) bool {
	if l == nil {
		return len(other.Wanted) == 0
	}
	return string(l.Bytes()) == string(other.Bytes())
}

// moves is what would be added, changed and removed to make node_modules what a
// tree says, by place.
func (j *Job) moves(t *tree) []Planned {
	now := j.present.lock
	moves := []Planned{}
	for _, at := range sortedKeys(t.lock.Nodes) {
		n := t.lock.Nodes[at]
		if t.isSkipped(at) {
			continue
		}
		old, had := now.at(at)
		had = had && exists(j.Files, at)
		same := had && old.Integrity == n.Integrity && (n.Origin.Kind == Link) == (old.Origin.Kind == Link)
		if n.Origin.Kind == Link {
			same = same && n.Origin.Place == old.Origin.Place
		} else {
			same = same && j.present.copied == t.copied
		}
		switch {
		case same:
		case had:
			moves = append(moves, Planned{Move: move(Updated, at, old, n)})
		default:
			moves = append(moves, Planned{Move: move(Added, at, Located{}, n)})
		}
	}
	if now != nil {
		for _, at := range sortedKeys(now.Nodes) {
			if _, stays := t.lock.Nodes[at]; !stays && exists(j.Files, at) {
				moves = append(moves, Planned{Move: move(Removed, at, now.Nodes[at], Located{})})
			}
		}
	}
	slices.SortStableFunc(moves, func(a, b Planned) int { return strings.Compare(a.Place, b.Place) })
	return moves
}

// Moves is what a job has added, changed and removed, by place.
func (r *Result) Moves() []Move {
	moves := []Move{}
	old := func(at string) Located { n, _ := r.before.lock.at(at); return n }
	for _, at := range sortedKeys(r.tree.lock.Nodes) {
		n, was := r.tree.lock.Nodes[at], old(at)
		switch {
		case r.tree.isSkipped(at):
		case was.Package == nil:
			moves = append(moves, move(Added, at, Located{}, n))
		case was.Integrity != n.Integrity || was.Origin != n.Origin || was.Version != n.Version:
			moves = append(moves, move(Updated, at, was, n))
		}
	}
	if r.before.lock != nil {
		for _, at := range sortedKeys(r.before.lock.Nodes) {
			if _, stays := r.tree.lock.Nodes[at]; !stays {
				moves = append(moves, move(Removed, at, old(at), Located{}))
			}
		}
	}
	slices.SortStableFunc(moves, func(a, b Move) int { return strings.Compare(a.Place, b.Place) })
	return moves
}

// contents finds out what is known of the contents that a plan would lay out,
// and of those of the profile's own dependencies: from the store, else from
// registries, where nobody has to know them. What is needed, not in the store
// and not to be fetched is an error.
func (j *Job) contents(ctx context.Context, t *tree, planned []Planned) (map[store.Integrity]content, error) {
	needed, laid := map[store.Integrity][]string{}, map[string]bool{}
	add := func(at string) {
		n, ok := t.lock.at(at)
		if ok && !t.isSkipped(at) && n.Origin.Kind != Link {
			needed[n.Integrity] = append(needed[n.Integrity], at)
		}
	}
	for _, p := range planned {
		if p.Action != Removed {
			add(p.Place)
			laid[p.Place] = true
		}
	}
	for name := range t.lock.Wanted {
		add("node_modules/" + name)
	}
	t.laid = func(at string) bool { return laid[at] }
	contents := map[store.Integrity]content{}
	var asked []store.Integrity
	for id, places := range needed {
		n := t.lock.Nodes[places[0]]
		if entry, ok := j.Store.Get(id); ok {
			t.entries[id] = entry
			contents[id] = j.unpacked(n, entry)
		} else if n.Origin.Kind == Registry && !j.Offline {
			asked = append(asked, id)
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for _, id := range asked {
		places := needed[id]
		group.Go(func() error {
			n := t.lock.Nodes[places[0]]
			m, err := j.told(ctx, n, slices.ContainsFunc(places, t.isDirect))
			if err != nil || m == nil {
				return ctx.Err() // the plan says what it knows
			}
			mu.Lock()
			defer mu.Unlock()
			contents[id] = content{bytes: m.UnpackedSize, scripts: scriptsOf(n, m.Scripts), layer: m.Layer}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return contents, j.lacks(t.pieces(t.laid))
}

// unpacked is what the files of a package say of it. Those of a dry run's own
// store were unpacked to look at them, and are not there afterwards.
func (j *Job) unpacked(n Located, entry store.Entry) content {
	known := content{stored: !strings.HasPrefix(entry.Dir(), j.Store.Dir()+string(filepath.Separator))}
	for _, f := range entry.Files() {
		known.bytes += f.Size
	}
	if m, err := readPackageJSON(n.describe(), entry.Dir()); err == nil {
		known.layer, known.scripts = m.Layer, scriptsOf(n, m.Scripts)
	}
	return known
}

// scriptsOf is the scripts that other package managers would run: prepare is
// for packages in source form, as folders and git repositories have them.
func scriptsOf(n Located, scripts []string) []string {
	if n.Origin.Kind == Folder || n.Origin.Kind == Git {
		return scripts
	}
	return slices.DeleteFunc(slices.Clone(scripts), func(name string) bool { return name == "prepare" })
}

// told is what a registry says of a package. Of the profile's own dependencies
// it has to say whether they are layers, which it leaves out where it is short.
func (j *Job) told(ctx context.Context, n Located, direct bool) (*registry.Manifest, error) {
	if direct {
		return j.Registry.Described(ctx, n.Name, n.Version)
	}
	choice, err := j.Registry.Find(ctx, n.Name, n.Version, registry.PickOptions{})
	return choice.Manifest, err
}
