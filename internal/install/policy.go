package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/trust"
)

// heard is what was heard of packages that this job picked, by name@version.
type heard struct {
	signed   sync.Map // registry.Signed of those that have signatures
	ages     sync.Map // time.Time at which they were published already
	tooYoung sync.Map // those that were picked though the policy wants older ones
	asked    sync.Map // the registries whose keys were asked for
	verdicts sync.Map // func() (*trust.ViolationError, error)
	unasked  sync.Map // what to say of registries whose keys could not be had
}

// sourceKinds is what policies call the kinds of sources.
var sourceKinds = map[Kind]trust.Source{
	Registry: trust.FromRegistry, Git: trust.FromGit, URL: trust.FromURL,
	Archive: trust.FromArchive, Folder: trust.FromFolder, Link: trust.FromLink,
}

// subject is a package as a policy looks at it, its place in the tree aside.
func (j *Job) subject(pkg *Package) trust.Subject {
	s := trust.Subject{
		Name: pkg.Name, Version: pkg.Version, Source: sourceKinds[pkg.Origin.Kind], Address: pkg.Origin.Place, Shown: registry.ShownAddress,
	}
	if pkg.Origin.Kind == Registry && j.Registry != nil {
		s.Addresses = []string{j.Registry.RegistryFor(pkg.Name), registryDist(j.Registry, pkg).Tarball}
	}
	return s
}

// admits holds specs that something is read or fetched for, before their
// package's name is known, against the rules about sources. What comes from
// registries is looked at when all is resolved, so that one error names all.
func (s *sources) admits(specs []Spec) error {
	if s.job.Policy == nil {
		return nil
	}
	var broken []*trust.ViolationError
	for _, spec := range specs {
		if spec.Kind == Registry {
			continue
		}
		subject := trust.Subject{Name: spec.Name, Source: sourceKinds[spec.Kind], Address: spec.Place, Shown: registry.ShownAddress}
		if spec.Git != nil {
			subject.Address = spec.Git.Remote
		}
		if subject.Name == "" {
			subject.Name = shownPlace(spec)
		}
		broken = append(broken, s.job.Policy.Check(subject)...)
	}
	return trust.Refusal(broken)
}

// pick asks a registry for the version that a spec means. Where all that fit are
// too young for the policy, it is the one that would be taken without it, so that
// all packages that are can be named together.
func (s *sources) pick(ctx context.Context, spec Spec) (registry.Choice, error) {
	choice, err := s.job.Registry.Find(ctx, spec.Target, spec.Wanted, s.age(spec.Target))
	none, ok := errors.AsType[*registry.NoMatchError](err)
	if !ok || none.Young == "" || s.job.Policy == nil || s.job.Policy.MinimumAge == 0 {
		return choice, err
	}
	young := registry.Choice{}
	var second error
	if wished := options(s.wishedAge(spec.Target)); wished.Before.IsZero() {
		young, second = s.job.Registry.Find(ctx, spec.Target, none.Young, wished)
		young.Known = none.YoungAt
	} else {
		young, second = s.job.Registry.Find(ctx, spec.Target, spec.Wanted, wished)
	}
	if second != nil {
		return choice, err
	}
	s.heard.tooYoung.Store(spec.Target+"@"+young.Version, true)
	return young, nil
}

// noted remembers what was heard of a package that was picked. The keys of its
// registry are asked for beside what goes on.
func (s *sources) noted(pkg *Package, choice registry.Choice) {
	key := pkg.describe()
	if !choice.Known.IsZero() {
		s.heard.ages.Store(key, choice.Known)
	}
	if len(choice.Dist.Signatures) == 0 || s.job.Policy.Signed() == trust.SignaturesIgnored {
		return
	}
	signed := s.job.Registry.SignedOf(choice.Manifest)
	s.heard.signed.Store(key, signed)
	if _, asked := s.heard.asked.LoadOrStore(signed.Registry, true); !asked && !s.job.Offline {
		s.ahead.Go(func() error {
			s.job.Registry.Keys(s.contents.ctx, signed.Registry)
			return nil
		})
	}
}

// mayFetch reports whether nothing that is known by now speaks against fetching a
// package of a registry.
func (s *sources) mayFetch(pkg *Package) bool {
	if s.job.Policy == nil {
		return true
	}
	_, young := s.heard.tooYoung.Load(pkg.describe())
	return !young && len(s.job.Policy.Check(s.job.subject(pkg))) == 0
}

// vouched is an error where the signatures of a registry's package speak against
// it, or the policy wants one and there is none that is right. It is looked at
// before the archive is fetched, so that the store never has what is refused.
func (s *sources) vouched(ctx context.Context, pkg *Package) error {
	violation, err := s.verdict(ctx, pkg)
	if err == nil && violation != nil {
		return trust.Refusal([]*trust.ViolationError{violation})
	}
	return err
}

// verdict is what the signatures of a package break, found out once.
func (s *sources) verdict(ctx context.Context, pkg *Package) (*trust.ViolationError, error) {
	key := pkg.describe() + " " + pkg.Integrity.String()
	find, _ := s.heard.verdicts.LoadOrStore(key, sync.OnceValues(func() (*trust.ViolationError, error) { return s.judge(ctx, pkg) }))
	return find.(func() (*trust.ViolationError, error))()
}

// judge looks at the signatures of a package. What a lockfile names was looked at
// when it was picked; only a policy that requires signatures asks for them again.
func (s *sources) judge(ctx context.Context, pkg *Package) (*trust.ViolationError, error) {
	policy := s.job.Policy
	required := policy.Signed() == trust.SignaturesRequired
	if pkg.Origin.Kind != Registry || policy.Signed() == trust.SignaturesIgnored || policy.IsExempt(trust.SignaturesRule, pkg.Name, pkg.Version) {
		return nil, nil
	}
	refuse := func(why string, err error) (*trust.ViolationError, error) {
		if err != nil {
			why += ": " + err.Error()
		}
		return policy.Violation(trust.SignaturesRule, pkg.describe(), why), nil
	}
	found, picked := s.heard.signed.Load(pkg.describe())
	signed, _ := found.(registry.Signed)
	if !picked {
		if !required {
			return nil, nil
		}
		var err error
		if signed, err = s.job.Registry.Signed(ctx, pkg.Name, pkg.Version); ctx.Err() != nil {
			return nil, ctx.Err()
		} else if err != nil {
			return refuse("its signature cannot be looked at", err)
		}
	}
	if id, err := store.ParseIntegrity(signed.Integrity); err != nil || id != pkg.Integrity {
		return refuse("its registry signs another content than "+LockName+" names", nil)
	}
	verdict, err := s.job.Registry.Verify(ctx, signed)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case verdict.Refused(), required && verdict.State != registry.SignatureGood:
		return refuse(verdict.Why, err)
	case err != nil:
		s.heard.unasked.Store(signed.Registry, fmt.Sprintf("signatures of %s were not looked at: %v", registry.ShownAddress(signed.Registry), err))
	}
	return nil, nil
}

// unverified is a warning for every registry whose keys could not be had.
func (s *sources) unverified() []string {
	var list []string
	s.heard.unasked.Range(func(_, text any) bool {
		list = append(list, text.(string))
		return true
	})
	slices.Sort(list)
	return list
}

// holding is one package that a change brings into the profile.
type holding struct {
	at     string
	pkg    *Package
	direct bool
	had    bool // it stands there already, as it is
}

// holdings is the packages of a lock that are held against the policy, each once,
// by place: what is not in node_modules yet, and all where that is wanted.
func (j *Job) holdings(lock *Lock) []holding {
	type identity struct {
		name, version string
		origin        Origin
		content       store.Integrity
		direct        bool
	}
	identify := func(l *Lock, at string, n Located) identity {
		_, direct := l.Wanted[nameAt(at)]
		return identity{n.Name, n.Version, n.Origin, n.Integrity, direct && parentPlace(at) == ""}
	}
	had := map[identity]bool{}
	if now := j.present.lock; now != nil {
		for at, n := range now.Nodes {
			had[identify(now, at, n)] = true
		}
	}
	t := &tree{lock: lock, skipped: platformSkips(lock)}
	var list []holding
	seen := map[identity]bool{}
	for _, at := range sortedKeys(lock.Nodes) {
		n := lock.Nodes[at]
		id := identify(lock, at, n)
		_, inside := lock.Nodes[n.Origin.Place]
		if seen[id] || t.isSkipped(at) || n.Origin.Kind == Link && inside || had[id] && !j.entire {
			continue
		}
		seen[id] = true
		list = append(list, holding{at, n.Package, id.direct, had[id]})
	}
	return list
}

// holdSources holds what comes into the profile against the rules for which
// nothing has to be fetched, and against signatures. All that is broken is one
// error.
func (j *Job) holdSources(ctx context.Context, find *sources, lock *Lock) error {
	broken, err := j.brokenSources(ctx, find, lock, false)
	if err != nil {
		return err
	}
	return trust.Refusal(broken)
}

// Held is how the packages of a profile stand to the policy.
type Held struct {
	Violations []*trust.ViolationError
	Packages   int // that were looked at
	Warnings   []string
}

// Hold holds all packages of a lock against the policy. Licences are looked at
// where the store, or node_modules, has the package. Nothing is changed.
func (j *Job) Hold(ctx context.Context, lock *Lock) (held Held, err error) {
	if j.Files == "" {
		j.Files = j.Dir
	}
	j.entire, j.closure, j.present.lock = true, readClosure(j.Closure, j.Store), lock
	find, ctx, done := j.sources(ctx)
	defer done()
	if held.Violations, err = j.brokenSources(ctx, find, lock, true); err != nil {
		return held, err
	}
	t := &tree{dir: j.Dir, files: j.Files, lock: lock, skipped: platformSkips(lock)}
	held.Violations = append(held.Violations, j.brokenContents(t)...)
	held.Packages, held.Warnings = len(j.holdings(lock)), find.unverified()
	return held, nil
}

// brokenSources is what the packages of a lock break of the rules for which no
// archive is needed. Age and signatures are about what comes in; all asks for
// those of what is there, too.
func (j *Job) brokenSources(ctx context.Context, find *sources, lock *Lock, all bool) ([]*trust.ViolationError, error) {
	if j.Policy == nil && !find.heardSignatures() {
		return nil, nil
	}
	list := j.holdings(lock)
	broken := make([][]*trust.ViolationError, len(list))
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, h := range list {
		subject := j.subject(h.pkg)
		subject.Direct = h.direct
		broken[i] = j.Policy.Check(subject)
		if from := madeOf(lock, h); from != "" && subject.Source == trust.FromArchive {
			// The archive that the profile keeps is one, and so is what it was made of.
			subject.Source, subject.Address, subject.Direct = trust.FromURL, from, false
			broken[i] = append(broken[i], j.Policy.Check(subject)...)
		}
		if h.pkg.Origin.Kind != Registry || h.had && !all {
			continue
		}
		if j.Policy != nil && j.Policy.MinimumAge > 0 {
			group.Go(func() error {
				young, err := j.tooYoung(within, find, h.pkg)
				if young != nil {
					broken[i] = append(broken[i], young)
				}
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	group, within = errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, h := range list {
		// What has come was looked at before, or was there.
		if h.had && !all || find.contents.hasCome(h.pkg.Integrity) && j.Policy.Signed() != trust.SignaturesRequired {
			continue
		}
		group.Go(func() error {
			wrong, err := find.verdict(within, h.pkg)
			if wrong != nil {
				broken[i] = append(broken[i], wrong)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var violations []*trust.ViolationError
	for i, h := range list {
		violations = append(violations, broughtBy(lock, h.at, broken[i])...)
	}
	return violations, nil
}

// madeOf is the address of what an archive that the profile keeps was made of, ""
// where it was none.
func madeOf(lock *Lock, h holding) string {
	from := lock.Sources[nameAt(h.at)].From
	if _, address, forced := strings.Cut(from, "::"); forced {
		from = address
	}
	if !h.direct || !strings.Contains(from, "://") || strings.HasPrefix(from, "file:") {
		return ""
	}
	return from
}

// heardSignatures reports whether a package that was picked has signatures.
func (s *sources) heardSignatures() bool {
	some := false
	s.heard.signed.Range(func(any, any) bool { some = true; return false })
	return some
}

// broughtBy adds to violations of the package at a place who brings it.
func broughtBy(lock *Lock, place string, violations []*trust.ViolationError) []*trust.ViolationError {
	if _, direct := lock.Wanted[nameAt(place)]; len(violations) == 0 || direct && parentPlace(place) == "" {
		return violations
	}
	var chain []string
	for _, name := range sortedKeys(lock.Wanted) {
		if chain != nil {
			break
		}
		lock.reach(name, func(at string, steps func() []string) {
			if at == place && chain == nil {
				chain = steps()
			}
		})
	}
	for _, v := range violations {
		v.Chain = chain
	}
	return violations
}

// tooYoung is the violation of a package that was published too recently for the
// policy, or of which nobody says when.
func (j *Job) tooYoung(ctx context.Context, find *sources, pkg *Package) (*trust.ViolationError, error) {
	if j.Policy.IsExempt(trust.MinimumAgeRule, pkg.Name, pkg.Version) {
		return nil, nil
	}
	unknown := "its registry does not say when it was published"
	heard, ok := find.heard.ages.Load(pkg.describe())
	at, _ := heard.(time.Time)
	if !ok {
		var err error
		at, err = j.Registry.Published(ctx, pkg.Name, pkg.Version, find.now.Add(-j.Policy.MinimumAge))
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && j.Offline:
			unknown = "nothing that is kept says when it was published, and --offline asks no registry"
		case err != nil && fault.ClassOf(err) == fault.Network:
			return nil, err
		}
	}
	return j.Policy.CheckAge(pkg.Name, pkg.Version, at, find.now, unknown), nil
}

// hasCome reports whether a content was asked for and is in the store.
func (c *contents) hasCome(id store.Integrity) bool {
	c.mu.Lock()
	p := c.all[id]
	c.mu.Unlock()
	return p != nil && p.isThere() && p.err == nil
}

// holdContents holds what comes into the profile against the rules about what is
// in packages.
func (j *Job) holdContents(t *tree) error {
	return trust.Refusal(j.brokenContents(t))
}

func (j *Job) brokenContents(t *tree) []*trust.ViolationError {
	if j.Policy == nil || len(j.Policy.Licences) == 0 {
		return nil
	}
	var broken []*trust.ViolationError
	for _, h := range j.holdings(t.lock) {
		if h.pkg.Origin.Kind == Link || t.isSkipped(h.at) {
			continue // the user's own folder
		}
		dir := ""
		if entry, ok := t.entries[h.pkg.Integrity]; ok {
			dir = entry.Dir()
		} else if known, ok := j.stored(h.pkg.Integrity); ok {
			dir = known.entry.Dir()
		} else if h.had && exists(j.Files, h.at) {
			dir = filepath.Join(j.Files, filepath.FromSlash(h.at))
		} else {
			continue // of a dry run, which fetches nothing
		}
		text, err := os.ReadFile(filepath.Join(dir, "package.json"))
		if err != nil {
			text = nil // then it names none
		}
		if v := j.Policy.CheckLicence(h.pkg.Name, h.pkg.Version, text); v != nil {
			broken = append(broken, broughtBy(t.lock, h.at, []*trust.ViolationError{v})...)
		}
	}
	return broken
}
