package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/fault"

	"dsh/internal/npmrange"
)

// newPeerProblems says which peers nobody provides, one line for each missing
// package, and which are there in a version that does not fit. Peers are not
// installed by themselves. What was so before the change is not said again.
func newPeerProblems(before, now *Lock) []string {
	known := map[peerProblem]bool{}
	if before != nil {
		for _, p := range peerProblems(before) {
			known[p] = true
		}
	}
	missing := map[string][]peerProblem{} // by peer
	wrong := map[string][]string{}        // "peer@version" -> whom it does not fit
	for _, p := range peerProblems(now) {
		switch {
		case known[p]:
		case p.found == "":
			missing[p.peer] = append(missing[p.peer], p)
		default:
			found := p.peer + "@" + p.found
			wrong[found] = append(wrong[found], fmt.Sprintf("%s (%s)", p.asker, p.wanted))
		}
	}
	var warnings []string
	for _, peer := range sortedKeys(missing) {
		warnings = append(warnings, now.missingPeer(missing[peer]))
	}
	for _, found := range sortedKeys(wrong) {
		warnings = append(warnings, fmt.Sprintf("%s is not the peer that is asked for by %s", found, strings.Join(wrong[found], ", ")))
	}
	return warnings
}

// missingPeer says of one peer who misses it. Where peers are installed by
// themselves it could not be, for no version is right for all who ask, and it
// says how they come into the profile.
func (l *Lock) missingPeer(problems []peerProblem) string {
	var askers []string
	for _, p := range problems {
		askers = append(askers, fmt.Sprintf("%s (%s)", p.asker, p.wanted))
	}
	peer := problems[0].peer
	if !l.AutoPeers || len(problems) < 2 {
		return fmt.Sprintf("the peer %s is not installed; asked for by %s", peer, strings.Join(askers, ", "))
	}
	chains := map[string]string{} // by who asks
	for _, name := range sortedKeys(l.Wanted) {
		l.reach(name, func(at string, chain func() []string) {
			asker := l.Nodes[at].describe()
			if i := slices.IndexFunc(problems, func(p peerProblem) bool { return p.asker == asker }); i >= 0 && chains[asker] == "" {
				chains[asker] = fromProfile(append(chain(), peer+wantedSuffix(problems[i].wanted))...)
			}
		})
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, "\n\t"+cmp.Or(chains[p.asker], p.asker+" → "+peer+wantedSuffix(p.wanted)))
	}
	return fmt.Sprintf("the peer %s is not installed, for no version of it is right for all who ask:%s", peer, strings.Join(lines, ""))
}

// peerProblem is a peer that is missing or does not fit.
type peerProblem struct {
	asker, peer, wanted string
	found               string // its version, "" when it is missing
}

func peerProblems(lock *Lock) []peerProblem {
	var problems []peerProblem
	overrides, _ := newOverrides(lock.Overrides) // those of a lockfile that was read are in order
	seen := map[peerProblem]bool{}               // one package may stand in several places
	for _, at := range sortedKeys(lock.Nodes) {
		n := lock.Nodes[at]
		for _, peer := range sortedKeys(n.Peers) {
			wanted := n.Peers[peer]
			if IsHost(peer) || slices.Contains(n.OptionalPeers, peer) {
				continue
			}
			_, found, ok := lock.lookUp(at, peer)
			if ok && found.Package == nil {
				continue // somebody brings it along
			}
			if wanted, _ = overrides.apply(nil, n.Package, peer, wanted); wanted == removed {
				continue
			}
			p := peerProblem{n.describe(), peer, wanted, found.version()}
			if (!ok || !satisfies(found.Version, wanted)) && !seen[p] {
				seen[p] = true
				problems = append(problems, p)
			}
		}
	}
	return problems
}

// lookUp finds a name, and its place, as Node.js would from inside the package
// at a path, or from the profile where the path is empty. What a package
// brings along in its archive is found without being known.
func (l *Lock) lookUp(at, name string) (place string, n Located, ok bool) {
	for {
		place = placeBelow(at, name)
		if n, ok := l.Nodes[place]; ok {
			return place, n, true
		}
		if n, ok := l.Nodes[at]; ok && slices.Contains(n.Bundled, name) {
			return place, Located{}, true
		}
		if at == "" {
			return "", Located{}, false
		}
		at = parentPlace(at)
	}
}

// satisfies reports whether a version is in an npm range; what is no range,
// such as a tag, does not exclude anything.
func satisfies(version, wanted string) bool {
	v, err := npmrange.ParseVersionLoose(version)
	return err == nil && accepts(wanted, v)
}

// want is a package whose peer nobody provides.
type want struct {
	by   *node
	peer *need
}

// addPeers installs the peers that nobody provides beside the profile's own
// dependencies, where all who ask find them: one version for all, or none. Where
// another version stands there, that only came up from below, the peer takes its
// place, which needs a new start.
func (r *resolver) addPeers(ctx context.Context, root *node) error {
	wants, content := map[string][]want{}, map[string][]want{}
	r.lackPeers(root, wants, content)
	anew := false
	for _, name := range sortedKeys(wants) {
		if r.unmet[name] {
			continue
		}
		all := wants[name]
		isTaken := root.children[name] != nil
		if isTaken {
			all = append(all, content[name]...) // who has what it wants must still have it
		}
		// Whoever stands highest is asked first, so that the chain is short.
		slices.SortStableFunc(all, func(a, b want) int { return cmp.Compare(a.by.depth(), b.by.depth()) })
		n, err := r.pickPeer(ctx, all)
		if err != nil {
			return err
		}
		if n == nil {
			r.unmet[name] = true
			continue
		}
		if isTaken {
			r.first[name], anew = n, true
			continue
		}
		if err := r.placeIn(root, n); err != nil {
			return err
		}
		for _, w := range all {
			w.by.met = append(w.by.met, &edge{from: w.by, need: w.peer, met: true, to: n})
			markPasses(w.by, root, name)
		}
	}
	if anew {
		return errPeersFirst
	}
	return nil
}

// meetFirst notes who needs the peers that came first.
func (r *resolver) meetFirst(n *node) {
	if len(r.first) == 0 {
		return
	}
	for _, name := range sortedKeys(n.children) {
		child := n.children[name]
		if child.bundled || child.same != nil {
			continue
		}
		peers := r.needs(child.pkg, child.rule).peers
		for i := range peers {
			if p := &peers[i]; r.first[p.name] != nil && !p.optional && child.lookUp(p.name) == r.root.children[p.name] {
				child.met = append(child.met, &edge{from: child, need: p, met: true, to: r.root.children[p.name]})
			}
		}
		r.meetFirst(child)
	}
}

// gives reports whether a place beside the profile's own dependencies may be
// taken by a peer: something stands there that is neither of these nor a peer
// that came first.
func (r *resolver) gives(there *node) bool {
	return there.parent == r.root && !there.bundled && r.first[there.name] == nil &&
		!slices.ContainsFunc(r.root.edges, func(e edge) bool { return e.name == there.name })
}

// depth is how many packages stand above n.
func (n *node) depth() int {
	depth := 0
	for ; n.parent != nil; n = n.parent {
		depth++
	}
	return depth
}

// lackPeers collects below n, in order of place, whose peers nobody provides, or
// only something that gives way, and who is content with that.
func (r *resolver) lackPeers(n *node, wants, content map[string][]want) {
	for _, name := range sortedKeys(n.children) {
		child := n.children[name]
		if child.bundled || child.same != nil {
			continue
		}
		peers := r.needs(child.pkg, child.rule).peers
		for i := range peers {
			p := &peers[i]
			if p.optional || p.name == child.name {
				continue
			}
			switch found := n.lookUp(p.name); {
			case found == nil || r.gives(found) && !p.demand.fits(found.pkg):
				wants[p.name] = append(wants[p.name], want{child, p})
			case r.gives(found):
				content[p.name] = append(content[p.name], want{child, p})
			}
		}
		r.lackPeers(child, wants, content)
	}
}

// lookUp finds a name as Node.js would from inside n.
func (n *node) lookUp(name string) *node {
	for at := n; at != nil; at = at.parent {
		if found := at.children[name]; found != nil {
			return found
		}
	}
	return nil
}

// pickPeer is a node for the one version of a peer that is right for all, the
// locked one if it is; nil where there is none.
func (r *resolver) pickPeer(ctx context.Context, wants []want) (*node, error) {
	first := wants[0]
	e := &edge{from: first.by, need: first.peer, met: true}
	fitsAll := func(pkg *Package) bool {
		return pkg != nil && !slices.ContainsFunc(wants, func(w want) bool { return !w.peer.demand.check(pkg) })
	}
	for _, w := range wants {
		got := r.recall(w.peer, w.by.pkg, w.by.was, w.by.locked)
		if e.was == nil {
			e.was = got.was
		}
		if fitsAll(got.kept) {
			e.recalled = got
			return &node{name: e.name, pkg: got.kept, via: e, locked: true, was: got.was, rule: e.rule}, nil
		}
	}
	best, err := r.newestPeer(ctx, e, r.together(wants), fitsAll)
	if best == nil || err != nil {
		return nil, err
	}
	// A version whose own peers do not suit what stands in the profile gives way
	// to one of an earlier major version whose peers do.
	chosen := best
	for tries := 0; best != nil && tries < maxMajors; tries++ {
		if r.suits(e.rule, best) {
			chosen = best
			break
		}
		if best, err = r.newestPeer(ctx, e, r.below(first.peer, wants, best), fitsAll); err != nil {
			return nil, err
		}
	}
	return &node{name: e.name, pkg: chosen, via: e, was: e.was, rule: e.rule}, nil
}

// maxMajors bounds how many major versions of a peer are looked at.
const maxMajors = 10

// newestPeer is the newest package that is found for one of some demands and
// fits, nil where there is none.
func (r *resolver) newestPeer(ctx context.Context, e *edge, demands []*demand, fits func(*Package) bool) (*Package, error) {
	var best *Package
	for _, d := range demands {
		if d.err != nil || d.spec.Kind != Registry && d.spec.Kind != URL {
			continue
		}
		pkg, err := d.found(ctx, r.find)
		if class := fault.ClassOf(err); err != nil && (ctx.Err() != nil || class != fault.Package && class != fault.Other) {
			return nil, &ConflictError{Chain: append(chain(e.from), e.asks()), Err: err}
		}
		if err == nil && fits(pkg) && (best == nil || isNewer(pkg, best)) {
			best = pkg
		}
	}
	return best, nil
}

// suits reports whether the peers of what is to stand beside the profile's own
// dependencies are met there, or by nobody.
func (r *resolver) suits(rule *override, pkg *Package) bool {
	peers := r.needs(pkg, rule).peers
	return !slices.ContainsFunc(peers, func(p need) bool {
		there := r.root.children[p.name]
		return there != nil && !there.bundled && !p.demand.fits(there.pkg)
	})
}

// below is the demands of all who want a peer, for what is older than the major
// version of pkg.
func (r *resolver) below(peer *need, wants []want, pkg *Package) []*demand {
	major, _, _ := strings.Cut(pkg.Version, ".")
	var demands []*demand
	for _, d := range r.together(wants) {
		if d.spec.Kind != Registry || !isRange(d.spec.Wanted) || strings.Contains(d.spec.Wanted, " - ") {
			continue
		}
		var parts []string
		for alternative := range strings.SplitSeq(d.spec.Wanted, "||") {
			parts = append(parts, strings.TrimSpace(alternative+" <"+major+".0.0"))
		}
		demands = append(demands, r.demand(peer.name, aliased(peer.name, d.spec.Target, strings.Join(parts, " || "))))
	}
	return demands
}

// aliased is the spec that wants a version of target under a name.
func aliased(name, target, wanted string) string {
	if name == target {
		return wanted
	}
	return "npm:" + target + "@" + wanted
}

// maxTogether bounds what the ranges of one peer are multiplied to.
const maxTogether = 64

// together is the demands in which a version for all may be found: that for
// what all ranges have in common, and each of them by itself.
func (r *resolver) together(wants []want) []*demand {
	var demands []*demand
	common := []string{""}
	for _, w := range wants {
		d := w.peer.demand
		if slices.Contains(demands, d) {
			continue
		}
		demands = append(demands, d)
		if d.spec.Kind != Registry || d.spec.Target != wants[0].peer.demand.spec.Target || !isRange(d.spec.Wanted) || strings.Contains(d.spec.Wanted, " - ") {
			common = nil
		}
		var next []string
		for _, have := range common {
			for alternative := range strings.SplitSeq(d.spec.Wanted, "||") {
				next = append(next, strings.TrimSpace(have+" "+strings.TrimSpace(alternative)))
			}
		}
		common = next
		if len(common) > maxTogether {
			common = nil
		}
	}
	if len(demands) < 2 || common == nil {
		return demands
	}
	first := wants[0].peer
	wanted := aliased(first.name, first.demand.spec.Target, strings.Join(common, " || "))
	return append([]*demand{r.demand(first.name, wanted)}, demands...)
}

func isNewer(a, b *Package) bool {
	v, errA := npmrange.ParseVersionLoose(a.Version)
	w, errB := npmrange.ParseVersionLoose(b.Version)
	return errA == nil && errB == nil && w.Less(v)
}
