package install

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// ForeignSpecError says that a package depends on something by a spec that only
// means something where its author works: a path of a machine, or a member of a
// workspace. Whoever published it has to mend that.
type ForeignSpecError struct {
	Package    *Package // that is mis-published
	Dependency string   // the name
	Wanted     string   // as the package writes it
	Why        string   // what is wrong with it
	building   bool     // it is asked for to build the package
	hint       string
}

func (e *ForeignSpecError) Error() string {
	is := "is mis-published"
	switch {
	case e.building:
		is = "cannot be built"
	case e.Package.Origin.Kind == Folder:
		is = "cannot be copied alone"
	}
	return fmt.Sprintf("%s %s: it depends on %s as %q, %s", e.Package.describe(), is, e.Dependency, ShownSpec(e.Wanted), e.Why)
}

// Class makes it a package failure.
func (e *ForeignSpecError) Class() fault.Class { return fault.Package }

// Hint says who mends it, and what to do until then.
func (e *ForeignSpecError) Hint() string { return e.hint }

// foreignSpec says what is wrong with what a package writes of a dependency, ""
// for nothing. Fetched packages may ask for versions, git repositories and archives
// at addresses, as npm has them.
func foreignSpec(asker *Package, spec Spec, err error, wanted string) (why string) {
	scheme, _, _ := strings.Cut(wanted, ":")
	switch {
	case err != nil && (scheme == "workspace" || scheme == "catalog"):
		return "which only has a meaning inside its author's workspace"
	case err != nil:
		if odd, ok := err.(*SpecError); ok {
			return "which " + odd.Reason
		}
		return "which does not read"
	case isPath(spec.Kind) && asker.Origin.Kind == Folder:
		return "a path that leads on from the folder that it was copied from"
	case isPath(spec.Kind):
		return "a path on its author's machine"
	case spec.Kind == Git && strings.HasPrefix(spec.Git.Remote, "file:") && !strings.HasPrefix(asker.Origin.Place, "git+file:"):
		return "a repository on its author's machine"
	case spec.Kind == URL && (spec.Inside != "" || spec.Forced != ""):
		return "an address that no other package manager understands"
	}
	return ""
}

// checkForeignSpec refuses a dependency of a package, nil for whose manifest is
// resolved, if its spec only means something to its author. What an override says
// in its place is the author's of the overrides: the user, whose profile it is, or
// a package that is built from source.
func (r *resolver) checkForeignSpec(asker *Package, n *need) error {
	wanted := n.wanted
	if asker == nil || n.overridden {
		asker, wanted = r.author, n.demand.text
	}
	if asker == nil || n.demand.spec.Kind == Registry && n.demand.err == nil {
		return nil
	}
	why := foreignSpec(asker, n.demand.spec, n.demand.err, wanted)
	if why == "" {
		return nil
	}
	refused := &ForeignSpecError{Package: asker, Dependency: n.name, Wanted: wanted, Why: why}
	if asker == r.author {
		refused.building, refused.hint = true, "what is published of it in a registry is built already"
	} else {
		refused.hint = foreignHint(asker, n.name, wanted, r.dir)
	}
	return refused
}

// foreignHint is the line for package.json that puts something else in the place of
// such a dependency.
func foreignHint(asker *Package, name, wanted, dir string) string {
	instead, author := "*", "its author has to publish it anew; until then "
	switch scheme, rest, _ := strings.Cut(wanted, ":"); {
	case scheme == "workspace" && isRange(rest) && strings.ContainsAny(rest, "0123456789"):
		instead = rest // what its author's package manager would have written
	case asker.Origin.Kind == Folder && (scheme == "file" || scheme == "link"):
		author = ""
		instead = scheme + ":" + nativePlace(dir, path.Join(asker.Origin.Place, strings.TrimPrefix(rest, "//")))
	}
	if asker.Origin.Kind == Git {
		author = "what is published of it in a registry may be right; else "
	}
	hint := fmt.Sprintf(`%sanother version of it may do, or this line in the profile's package.json, which takes that dependency from elsewhere: "pnpm": {"overrides": {"%s>%s": "%s"}}`,
		author, asker.Name, name, instead)
	if instead == "*" {
		hint += ` ("-" in place of "*" leaves it out)`
	}
	return hint
}

// foreignPeers is a warning for every package that is new in a lockfile and writes
// such a spec of a peer or of an optional dependency: nothing fails for it, and
// what the package finds when it runs is not what its author had.
func foreignPeers(before, now *Lock, dir string) []string {
	known := map[string]bool{}
	if before != nil {
		for _, n := range before.Nodes {
			known[n.describe()] = true
		}
	}
	var warnings []string
	for _, at := range sortedKeys(now.Nodes) {
		n := now.Nodes[at]
		if known[n.describe()] || n.Origin.Kind == Link || len(n.Peers)+len(n.Package.Optional) == 0 {
			continue
		}
		known[n.describe()] = true
		for _, c := range dependenciesAt(n.Package) {
			if c.kind == "dependencies" || isPlainWanted(c.wanted) {
				continue
			}
			spec, err := ParseDependency(c.name, c.wanted, dir)
			why := foreignSpec(n.Package, spec, err, c.wanted)
			if why == "" {
				continue
			}
			_, found, there := now.lookUp(at, c.name)
			finds := "it is not installed"
			switch {
			case there && found.Package != nil:
				finds = "it finds " + found.describe()
			case there:
				continue // it brings it along
			case IsHost(c.name) && c.kind == peerKind:
				finds = "it finds the installation's"
			}
			what := "an optional dependency"
			if c.kind == peerKind {
				what = "a peer"
				if slices.Contains(n.OptionalPeers, c.name) {
					what = "an optional peer"
				}
			}
			warnings = append(warnings, fmt.Sprintf("%s is mis-published: it has %s %s as %q, %s; %s", n.describe(), what, c.name, ShownSpec(c.wanted), why, finds))
		}
	}
	return warnings
}
