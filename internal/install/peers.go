package install

import (
	"fmt"
	"slices"
	"strings"

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
	missing := map[string][]string{} // peer -> who asks for what
	wrong := map[string][]string{}   // "peer@version" -> whom it does not fit
	for _, p := range peerProblems(now) {
		switch {
		case known[p]:
		case p.found == "":
			missing[p.peer] = append(missing[p.peer], fmt.Sprintf("%s (%s)", p.asker, p.wanted))
		default:
			found := p.peer + "@" + p.found
			wrong[found] = append(wrong[found], fmt.Sprintf("%s (%s)", p.asker, p.wanted))
		}
	}
	var warnings []string
	for _, peer := range sortedKeys(missing) {
		warnings = append(warnings, fmt.Sprintf("the peer %s is not installed; asked for by %s", peer, strings.Join(missing[peer], ", ")))
	}
	for _, found := range sortedKeys(wrong) {
		warnings = append(warnings, fmt.Sprintf("%s is not the peer that is asked for by %s", found, strings.Join(wrong[found], ", ")))
	}
	return warnings
}

// peerProblem is a peer that is missing or does not fit.
type peerProblem struct {
	asker, peer, wanted string
	found               string // its version, "" when it is missing
}

func peerProblems(lock *Lock) []peerProblem {
	var problems []peerProblem
	seen := map[peerProblem]bool{} // one package may stand in several places
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
