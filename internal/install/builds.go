package install

import (
	"cmp"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dsh/internal/build"
	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/npmrange"
	"dsh/internal/trust"
)

// Scripted is a package that may have scripts, as approvals speak of it.
type Scripted struct {
	Name, Version string
	Origin        Origin
	Content       store.Integrity // as it was published
}

// Pending is a package whose scripts did not run because nobody approved them.
type Pending struct {
	Name    string   `json:"name"`
	Version string   `json:"version"`
	Place   string   `json:"place"` // the first of them
	Spec    string   `json:"spec"`  // what approve takes for exactly this content
	Content string   `json:"content"`
	Scripts []Script `json:"scripts"`
	// Chain leads from a dependency of the profile to it, as name@version.
	Chain []string `json:"chain"`
	// Missing are files that its package.json declares and that are not there.
	Missing []string `json:"missing"`
	// Prepare says that it comes from a repository and is made by its scripts into
	// what is published, as opposed to native code that is compiled.
	Prepare bool `json:"prepare"`
}

// By whose word scripts run.
const (
	ByUser = "dsh"  // of exactly the content
	ByPnpm = "pnpm" // of a name, a version or a source, in the profile's settings for pnpm
)

// Built is a package that was approved, and stands as its scripts made it.
type Built struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	By      string `json:"by"` // ByUser or ByPnpm
	// Reused says that the store had the result already.
	Reused bool `json:"reused"`
	// Confinement says what held the scripts, in words; "" where none ran.
	Confinement string `json:"confinement,omitempty"`
	Log         string `json:"log,omitempty"` // the file with what they printed
}

// scripted is what approvals are asked about of a package.
func scripted(n Located) Scripted {
	return Scripted{n.Name, n.Version, n.Origin, n.Integrity}
}

// building is one package of a tree that is to be built.
type building struct {
	at      string
	n       Located
	by      string // who approved it
	scripts scripts
	reach   map[string]bool // the places that it can load something from, its own left out
	tree    *tree
	// confirm makes sure, once, that the approval is for what the lockfile says
	// that the package is.
	confirm func() error
}

// build finds out which packages of a tree stand as their scripts made them, in
// [tree.built], and makes those contents that the store does not have. A package
// is built once, for all profiles, and before anything of the profile changes.
//
// Where nobody approved anything, nothing is looked at.
func (j *Job) build(ctx context.Context, c *contents, t *tree) error {
	t.built, j.built, j.leftOut, j.unconfirmed = nil, nil, nil, map[store.Integrity]bool{}
	approved := map[string]string{}
	if j.Approved != nil {
		for at, n := range t.lock.Nodes {
			if n.linked() || t.isSkipped(at) {
				continue
			}
			by, err := j.Approved(scripted(n))
			if err != nil {
				return err
			}
			if by != "" {
				approved[at] = by
			}
		}
	}
	if err := j.keepStanding(ctx, c, t, approved); err != nil || len(approved) == 0 {
		return err
	}
	if err := j.gather(ctx, c, t, t.pieces(func(at string) bool { return approved[at] != "" }), nil); err != nil {
		return err
	}
	var list []building
	for at, by := range approved {
		n := t.lock.Nodes[at]
		entry, ok := t.entries[n.Integrity]
		if !ok || t.isSkipped(at) || !mayHaveScripts(n, entry) {
			continue
		}
		s, _, err := readScripts(n, entry.Dir(), holds(entry))
		if err != nil {
			return err
		}
		if s.none() {
			continue
		}
		reach := t.lock.reached([]string{at}, t.skipped)
		delete(reach, at)
		list = append(list, building{at, n, by, s, reach, t, sync.OnceValue(func() error { return j.confirm(ctx, c, n, by) })})
	}
	// Nothing of what the policy refuses runs.
	if len(list) > 0 && j.Policy != nil && len(j.Policy.Licences) > 0 {
		if err := j.gather(ctx, c, t, t.pieces(everywhere), nil); err != nil {
			return err
		}
		if err := j.holdContents(t); err != nil {
			return err
		}
	}
	// What a package loads reaches less than the package itself, unless both need
	// each other: so this is an order in which everything finds built what it needs.
	slices.SortFunc(list, func(a, b building) int {
		return cmp.Or(cmp.Compare(len(a.reach), len(b.reach)), strings.Compare(a.at, b.at))
	})
	if t.built == nil {
		t.built = map[string]store.Integrity{}
	}
	failed := map[store.Integrity]bool{}
	for _, b := range list {
		id, entry, err := j.buildOne(ctx, c, b)
		if errors.Is(err, errIgnored) {
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
			if j.standsWithout(b, err) {
				why, _, _ := strings.Cut(err.Error(), "\n")
				if hint := fault.Hint(err); hint != "" {
					why += "; " + hint
				}
				j.leftOut = append(j.leftOut, fmt.Sprintf("%s stays without what its scripts make: %s; %s lets them rest",
					b.n.describe(), why, j.command("approve", "--revoke", b.n.Name)))
				continue
			}
			if !b.n.Optional {
				return err
			}
			t.skipped[b.at] = true
			if !failed[b.n.Integrity] {
				failed[b.n.Integrity] = true
				j.leftOut = append(j.leftOut, "the optional package "+b.n.describe()+" was left out: "+err.Error())
			}
			continue
		}
		t.built[b.at], t.entries[id] = id, entry
	}
	return nil
}

// standsWithout reports whether a package whose scripts failed stands in the
// profile without what they make already, so that another change need not fail
// for it.
func (j *Job) standsWithout(b building, err error) bool {
	_, failed := errors.AsType[*build.ScriptError](err)
	if !failed && fault.ClassOf(err) != fault.MissingProgram || j.MustBuild != nil && j.MustBuild(scripted(b.n)) {
		return false
	}
	old, had := j.present.lock.at(b.at)
	_, built := j.present.built[b.at]
	return had && !built && old.Integrity == b.n.Integrity && exists(j.Files, b.at+"/package.json")
}

// keepStanding leaves packages of repositories that are nothing without their
// scripts as these made them, where they stand so already and nobody lets the
// scripts run any more: nothing runs for it, and without them the package would be
// broken, or no change of the profile possible.
func (j *Job) keepStanding(ctx context.Context, c *contents, t *tree, approved map[string]string) error {
	if j.Approved == nil || len(j.present.built) == 0 {
		return nil
	}
	standing := map[string]store.Entry{}
	for at, id := range j.present.built {
		n, stays := t.lock.at(at)
		old, had := j.present.lock.at(at)
		if !stays || !had || approved[at] != "" || n.Origin.Kind != Git || old.Origin.Kind != Git || n.Integrity != old.Integrity || t.isSkipped(at) {
			continue
		}
		entry, ok := j.Store.Get(id)
		if ok && exists(j.Files, at+"/package.json") && j.usable(&arrival{entry: entry}, &piece{places: []string{at}, located: n}) {
			standing[at] = entry
		}
	}
	if len(standing) == 0 {
		return nil
	}
	if err := j.gather(ctx, c, t, t.pieces(func(at string) bool { _, ok := standing[at]; return ok }), nil); err != nil {
		return err
	}
	for _, at := range sortedKeys(standing) {
		n := t.lock.Nodes[at]
		entry, ok := t.entries[n.Integrity]
		if !ok {
			continue
		}
		s, missing, err := readScripts(n, entry.Dir(), holds(entry))
		if err != nil {
			return err
		}
		if p := pendingOf(n, at, s, missing, nil); !p.Incomplete() {
			continue
		}
		if t.built == nil {
			t.built = map[string]store.Integrity{}
		}
		t.built[at], t.entries[j.present.built[at]] = j.present.built[at], standing[at]
		j.leftOut = append(j.leftOut, fmt.Sprintf("%s stands as its scripts made it, though nobody lets them run any more; once it has to be laid out anew that is refused: %s lets them run, or remove it",
			n.describe(), j.command("approve", n.Name)))
	}
	return nil
}

// Incomplete reports whether a package comes as source that is nothing without its
// scripts.
func (p Pending) Incomplete() bool { return p.Prepare && len(p.Missing) > 0 }

// buildOne is what the scripts of a package make of it: from the store, or made
// now.
func (j *Job) buildOne(ctx context.Context, c *contents, b building) (store.Integrity, store.Entry, error) {
	t, done := b.tree, Built{Name: b.n.Name, Version: b.n.Version, By: b.by, Reused: true}
	id, entry := b.n.Integrity, t.entries[b.n.Integrity]
	var err error
	if len(b.scripts.prepare) > 0 {
		id = j.preparedID(b)
		if entry, err = j.once(ctx, id, b, func() (string, error) { return j.prepare(ctx, b, &done) }); err != nil {
			return id, entry, err
		}
	}
	if len(b.scripts.install) > 0 {
		source, from := id, entry
		id = b.installedID(source)
		entry, err = j.once(ctx, id, b, func() (string, error) { return j.runInTree(ctx, c, b, source, from, &done) })
	}
	if err == nil && !slices.ContainsFunc(j.built, func(other Built) bool { return other.Name == done.Name && other.Version == done.Version }) {
		j.built = append(j.built, done)
	}
	return id, entry, err
}

// errIgnored is that scripts would have to run, and are not to.
var errIgnored = errors.New("its scripts are ignored")

// once is the entry of a built content, which is made by a function that says in
// which directory it is, if the store does not have it whole.
func (j *Job) once(ctx context.Context, id store.Integrity, b building, make func() (dir string, err error)) (store.Entry, error) {
	if entry, ok := j.Store.Get(id); ok && j.usable(&arrival{entry: entry}, &piece{places: []string{b.at}, located: b.n}) {
		return entry, nil
	}
	if j.IgnoreScripts {
		return store.Entry{}, errIgnored
	}
	if err := b.confirm(); err != nil {
		return store.Entry{}, err
	}
	dir, err := make()
	if err != nil {
		return store.Entry{}, err
	}
	return j.Store.AddBuilt(ctx, id, dir, j.Store.Limits)
}

// confirm makes sure that a package whose scripts run by the word of pnpm's
// settings is what it is called. These speak of names, versions and commits, and
// which content is meant by them the lockfile says alone, which anybody may have
// edited who has no say about scripts. Where nobody can be asked it is
// [errIgnored], and the scripts wait for the word of the user.
func (j *Job) confirm(ctx context.Context, c *contents, n Located, by string) error {
	if by != ByPnpm {
		return nil // the content itself was approved
	}
	err := c.find.confirm(ctx, n.Package)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if _, other := errors.AsType[*store.MismatchError](err); other {
		err = fmt.Errorf("%s is something else in %s than where it comes from, and would run its scripts by that name: %w", n.describe(), LockName, err)
		return fault.WithHint(err, "%s asks anew what it is; %s shows what the scripts of exactly this content are", j.command("update", n.Name), j.command("scripts"))
	}
	if err != nil {
		j.unconfirmed[n.Integrity] = true
		j.leftOut = append(j.leftOut, fmt.Sprintf("the scripts of %s did not run: pnpm's settings name it, and it could not be asked whether this is it: %v; %s lets exactly this content run",
			n.describe(), err, j.command("approve", n.Name)))
		return errIgnored
	}
	return nil
}

// confirm asks where a package comes from for its content. Another one is a
// [*store.MismatchError].
func (s *sources) confirm(ctx context.Context, pkg *Package) error {
	if pkg.Origin.Kind != Registry {
		_, err := s.fromOrigin(ctx, pkg.Origin, pkg.Integrity)
		return err
	}
	version, err := npmrange.ParseVersion(pkg.Version)
	if err != nil {
		return err
	}
	m, err := s.job.Registry.Version(ctx, pkg.Name, version)
	if err != nil {
		return err
	}
	id, err := store.ParseIntegrity(m.Dist.Integrity)
	if err == nil && id != pkg.Integrity {
		err = &store.MismatchError{Want: pkg.Integrity, Got: id}
	}
	return err
}

// preparedID names what the scripts of a repository make of a package. What they
// need for that is resolved when they run: who is asked for it, and what the policy
// lets in, are part of the name.
func (j *Job) preparedID(b building) store.Integrity {
	words := []string{"dsh-prepare 2", b.n.Integrity.String(), ThisPlatform().String(), nodeVersion()}
	if j.Registry != nil {
		words = append(words, j.Registry.Registries()...)
	}
	if policy := j.Policy.ForBuilding(); policy != nil {
		policy.Limits = trust.Limits{}
		text, _ := json.Marshal(policy) // it holds texts alone
		words = append(words, string(text))
	}
	return buildID(words...)
}

// installedID names what a package's scripts make of a content of it, where it
// can load what it can load in the tree.
func (b building) installedID(source store.Integrity) store.Integrity {
	var around []string
	for at := range b.reach {
		n := b.tree.lock.Nodes[at]
		if n.Origin.Kind == Link {
			around = append(around, nameAt(at)+" link:"+n.Origin.Place)
		} else {
			around = append(around, nameAt(at)+" "+b.tree.contentAt(at).String())
		}
	}
	slices.Sort(around)
	words := []string{"dsh-build 1", source.String(), ThisPlatform().String(), nodeVersion()}
	return buildID(append(words, slices.Compact(around)...)...)
}

// buildID is a name for what follows from the words. Contents and their scripts
// have one hash, so that scripts are not among the words.
func buildID(words ...string) store.Integrity {
	sum := sha512.Sum512([]byte(strings.Join(words, "\n") + "\n"))
	id, _ := store.ParseIntegrity("sha512-" + base64.StdEncoding.EncodeToString(sum[:])) // it is one
	return id
}

// buildNode is the Node.js that scripts run with.
var buildNode = sync.OnceValues(func() (build.Node, error) { return build.FindNode(context.Background(), os.Getenv) })

// nodeVersion is what native code is compiled for of that Node.js, "" where there
// is none.
func nodeVersion() string {
	node, _ := buildNode() // running scripts tells of the error
	return strings.TrimSpace(strings.Join([]string{node.Version, node.Modules, node.Arch}, " "))
}

// readScripts is the scripts of a package whose files are in dir, and the files
// that it declares and does not have. has tells of its files and folders.
func readScripts(n Located, dir string, has func(file string) bool) (s scripts, missing []string, err error) {
	text, err := readPackageText(n.describe(), filepath.Join(dir, "package.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return scripts{}, nil, nil
	}
	if err != nil {
		return scripts{}, nil, err
	}
	if s = scriptsIn(text, n.Origin.Kind == Git, has); s.none() {
		return s, nil, nil
	}
	return s, declaredMissing(text, has), nil
}

// mayHaveScripts is false of most packages, without a look at their files.
func mayHaveScripts(n Located, entry store.Entry) bool {
	return entry.HasScripts() || n.Origin.Kind == Git && entry.HasPrepare()
}

// holds reports whether an entry has a file, or a folder with files.
func holds(entry store.Entry) func(name string) bool {
	return func(name string) bool {
		return entry.Has(name) || slices.ContainsFunc(entry.Files(), func(f store.File) bool { return strings.HasPrefix(f.Path, name+"/") })
	}
}

// WithScripts is a package of a profile that has scripts.
type WithScripts struct {
	Pending
	Scripted Scripted `json:"-"`
	Built    bool     `json:"-"` // it stands as they made it
}

// ScriptsIn lists the packages with scripts that a profile's lockfile names, by
// name. What the store does not have is looked for in node_modules.
func ScriptsIn(dir string, lock *Lock, packages *store.Store) ([]WithScripts, error) {
	built, err := readBuilt(dir)
	if err != nil {
		return nil, err
	}
	t := &tree{dir: dir, files: dir, lock: lock, entries: map[store.Integrity]store.Entry{}, skipped: platformSkips(lock), built: built}
	for _, n := range lock.Nodes {
		if entry, ok := packages.Get(n.Integrity); ok {
			t.entries[n.Integrity] = entry
		}
	}
	return t.withScripts(everywhere)
}

// withScripts lists the packages with scripts at places of a tree, each content
// once.
func (t *tree) withScripts(places func(at string) bool) ([]WithScripts, error) {
	var list []WithScripts
	var ways map[string][]string
	seen := map[store.Integrity]bool{}
	for _, at := range sortedKeys(t.lock.Nodes) {
		n := t.lock.Nodes[at]
		if n.linked() || seen[n.Integrity] || t.isSkipped(at) || !places(at) {
			continue
		}
		seen[n.Integrity] = true
		dir := filepath.Join(t.files, filepath.FromSlash(at))
		has := func(file string) bool { return exists(dir, file) }
		if entry, ok := t.entries[n.Integrity]; ok {
			if !mayHaveScripts(n, entry) {
				continue
			}
			dir, has = entry.Dir(), holds(entry)
		}
		s, missing, err := readScripts(n, dir, has)
		if err != nil {
			return nil, err
		}
		if s.none() {
			continue
		}
		if ways == nil {
			ways = t.lock.waysTo()
		}
		list = append(list, WithScripts{
			Pending: pendingOf(n, at, s, missing, ways[at]), Scripted: scripted(n), Built: t.isBuilt(at),
		})
	}
	slices.SortStableFunc(list, func(a, b WithScripts) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return list, nil
}

func pendingOf(n Located, at string, s scripts, missing, chain []string) Pending {
	return Pending{
		Name: n.Name, Version: n.Version, Place: at, Spec: approvalSpec(n), Content: n.Integrity.String(), Scripts: s.all(),
		Chain: append([]string{}, chain...), Missing: append([]string{}, missing...), Prepare: len(s.prepare) > 0,
	}
}

// pending is the packages that a job has laid out and whose scripts nobody lets
// run.
func (j *Job) pending(t *tree) ([]Pending, error) {
	all, err := t.withScripts(func(at string) bool { return t.laid(at) && !t.isBuilt(at) })
	list := []Pending{}
	for _, p := range all {
		by := ""
		if err == nil && j.Approved != nil && !j.IgnoreScripts {
			by, err = j.Approved(p.Scripted)
		}
		if by == "" || j.unconfirmed[p.Scripted.Content] {
			list = append(list, p.Pending)
		}
	}
	return list, err
}

// Look finds what a spec names, brings its content into the store, and says which
// scripts it has. Nothing of the profile changes.
func (j *Job) Look(ctx context.Context, spec Spec) (*WithScripts, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	if err := find.admits([]Spec{spec}); err != nil {
		return nil, err
	}
	pkg, err := find.find(ctx, spec)
	if err != nil {
		return nil, err
	}
	if j.Policy != nil {
		if err := trust.Refusal(j.Policy.Check(j.subject(pkg))); err != nil {
			return nil, err
		}
	}
	n := Located{Package: pkg}
	if pkg.Origin.Kind == Link {
		return nil, fault.Errorf(fault.Other, "%s is a link to a folder, whose scripts are its owner's affair: dsh runs none of them", pkg.describe())
	}
	came := find.contents.want(pkg)
	if err := came.wait(ctx); err != nil {
		return nil, err
	}
	if came.err != nil {
		return nil, fmt.Errorf("%s: %w", pkg.describe(), came.err)
	}
	s, missing, err := readScripts(n, came.entry.Dir(), holds(came.entry))
	if err != nil {
		return nil, err
	}
	return &WithScripts{Pending: pendingOf(n, "", s, missing, nil), Scripted: scripted(n)}, nil
}

// approvalSpec is what names exactly one content of a package to approve.
func approvalSpec(n Located) string {
	if n.Origin.Kind == Git {
		return ShownSpec(n.Origin.Place)
	}
	return n.describe()
}

// waysTo is one shortest way from a dependency of the profile to each place, as
// name@version.
func (l *Lock) waysTo() map[string][]string {
	chains := map[string][]string{}
	for _, name := range sortedKeys(l.Wanted) {
		l.reach(name, func(at string, chain func() []string) {
			if known, ok := chains[at]; ok && len(known) == 1 {
				return
			}
			if found := chain(); chains[at] == nil || len(found) < len(chains[at]) {
				chains[at] = found
			}
		})
	}
	return chains
}

// needPrepare refuses a package of a repository that is nothing without its
// scripts, before anything changes.
func (j *Job) needPrepare(pending []Pending) error {
	for _, p := range pending {
		if !p.Incomplete() {
			continue
		}
		var texts []string
		for _, s := range p.Scripts {
			texts = append(texts, "\n  "+s.Event+": "+quote(s.Text))
		}
		err := fault.Errorf(fault.Policy, "%s@%s comes as source (%s): its package.json names %s, which only its own scripts make, and nobody approved that they run:%s",
			p.Name, p.Version, fromProfile(p.Chain...), strings.Join(p.Missing, ", "), strings.Join(texts, ""))
		return fault.WithHint(err, "%s shows them, asks, and lets them run; then run this command again", j.command("approve", p.Spec))
	}
	return nil
}

// withoutSkipped is a tree's built contents without those of packages that turned
// out not to be had.
func (t *tree) withoutSkipped() {
	maps.DeleteFunc(t.built, func(at string, _ store.Integrity) bool { return t.isSkipped(at) })
}
