package install

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/trust"
)

// Fetched is a package whose content is in the store.
type Fetched struct {
	*Package
	Entry store.Entry
}

// Fetch brings packages of npm registries into the store, and nothing that they
// depend on, and holds them against a policy, which may be nil. The result is in
// the order of specs.
func Fetch(ctx context.Context, client *registry.Client, packages *store.Store, policy *trust.Policy, specs []Spec, events Events) ([]Fetched, error) {
	j := &Job{Registry: client, Store: packages, Policy: policy, Events: events}
	find, ctx, done := j.sources(ctx)
	defer done()
	fetched := make([]Fetched, len(specs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelRequests)
	for i, spec := range specs {
		group.Go(func() (err error) {
			if spec.Kind != Registry {
				return fault.Errorf(fault.Package, "%s is not a package of a registry, but %s", spec.Name, shownPlace(spec))
			}
			fetched[i], err = find.fetched(ctx, spec)
			return err
		})
	}
	return fetched, group.Wait()
}

// fetched picks a version and brings its content into the store.
func (s *sources) fetched(ctx context.Context, spec Spec) (Fetched, error) {
	pkg, err := s.find(ctx, spec)
	if err != nil {
		return Fetched{}, err
	}
	lock := &Lock{Wanted: map[string]string{pkg.Name: spec.Wanted}, Nodes: map[string]Located{"node_modules/" + pkg.Name: {Package: pkg}}}
	if err := s.job.holdSources(ctx, s, lock); err != nil {
		return Fetched{}, err
	}
	fetched, err := s.brought(ctx, pkg)
	if err != nil {
		return Fetched{}, err
	}
	return fetched, s.job.holdContents(&tree{lock: lock, entries: map[store.Integrity]store.Entry{pkg.Integrity: fetched.Entry}})
}

// looked is fetched for a look that adds nothing. Of the policy, only what is about
// fetching counts: from where, and signatures. What else is wrong with the package can
// be looked at.
func (s *sources) looked(ctx context.Context, spec Spec) (Fetched, error) {
	pkg, err := s.find(ctx, spec)
	if err != nil {
		return Fetched{}, err
	}
	if err := trust.Refusal(s.job.Policy.Check(s.job.subject(pkg))); err != nil {
		return Fetched{}, err
	}
	return s.brought(ctx, pkg)
}

// brought brings the content of a package into the store.
func (s *sources) brought(ctx context.Context, pkg *Package) (Fetched, error) {
	entry, ok := s.job.Store.Get(pkg.Integrity)
	if ok && entry.Sound() {
		return Fetched{pkg, entry}, nil
	}
	entry, err := s.archive(ctx, pkg)
	if _, refused := errors.AsType[trust.Violations](err); refused {
		return Fetched{}, err // it names the package
	}
	return Fetched{pkg, entry}, within(pkg.describe(), err)
}
