package install

import (
	"context"
	"maps"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// Taken is a dependency of another profile.
type Taken struct {
	Name string
	Spec string // as that profile writes it, with paths that are right from this one
	Kind profile.DependencyKind
	// Written is what the archive that the profile keeps of it was made of; nil
	// where it keeps none. Archive is the other profile's archive.
	Written *Written
	Archive string
}

// taken is the dependencies that come from another profile, with its lockfile.
type taken struct {
	names []string
	lock  *Lock
}

// has reports whether a dependency of the profile itself is one of them. A nil
// taken has none.
func (t *taken) has(name string) bool { return t != nil && slices.Contains(t.names, name) }

// Take adds dependencies of another profile, and all that they need, in the
// versions that the lockfile from holds; nil holds none. The bundles among them
// become layers in the order of deps.
func (j *Job) Take(ctx context.Context, deps []Taken, from *Lock) (*Result, error) {
	if err := j.begin(); err != nil {
		return nil, err
	}
	names := make([]string, len(deps))
	for i, d := range deps {
		if slices.Contains(names[:i], d.Name) {
			return nil, fault.Errorf(fault.Other, "%s is named twice", d.Name)
		}
		if d.Kind == "" {
			d.Kind = profile.Dependencies
		}
		names[i] = d.Name
		if n, ok := from.at("node_modules/" + d.Name); ok && n.AgentPlugin {
			j.takePlugin(d, from, n)
		} else {
			j.manifest.SetDependency(d.Kind, d.Name, d.Spec)
		}
		if d.Written != nil {
			j.written[d.Name] = *d.Written
			if at := keptAt(d.Spec, j.Dir); at != "" {
				j.archives[at] = d.Archive
			}
		}
	}
	if err := j.linksLead(names); err != nil {
		return nil, err
	}
	find, ctx, done := j.sources(ctx)
	defer done()
	c := change{touched: names, activate: true}
	if from != nil {
		c.taken = &taken{names, j.relocated(from, deps)}
	}
	return j.settle(ctx, find, c)
}

// relocated is another profile's lockfile, in which the dependencies that are
// taken are as this profile writes them.
func (j *Job) relocated(from *Lock, deps []Taken) *Lock {
	lock := &Lock{Wanted: maps.Clone(from.Wanted), Nodes: maps.Clone(from.Nodes)}
	for _, d := range deps {
		spec, err := ParseDependency(d.Name, d.Spec, j.Dir)
		at := "node_modules/" + d.Name
		n, ok := lock.Nodes[at]
		if err != nil || !ok || n.Origin.Kind != spec.Kind {
			continue // resolving says what is wrong, or what it means now
		}
		if spec.Kind != Registry {
			lock.Wanted[d.Name] = anyVersion(d.Spec)
			pkg := *n.Package
			if spec.Kind != Git { // a commit is the same for every profile
				pkg.Origin = Origin{spec.Kind, originPlace(spec, j.Dir)}
			}
			lock.Nodes[at] = Located{Package: &pkg, Optional: n.Optional}
		}
	}
	return lock
}
