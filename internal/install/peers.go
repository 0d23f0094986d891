package install

import (
	"fmt"
	"slices"
	"strings"

	"dsh/internal/npmrange"
)

// IsHost reports whether a package belongs to the harness itself. As a peer
// it is met by the installation, whatever its range says.
func IsHost(name string) bool { return strings.HasPrefix(name, "@deepseek-ai/") }

// peerWarnings says which peers nobody provides, one line for each missing
// package, and which are there in a version that does not fit. Peers are not
// installed by themselves.
func peerWarnings(root *node) []string {
	missing := map[string][]string{} // peer -> who asks for what
	var wrong []string
	var walk func(n *node)
	walk = func(n *node) {
		for _, name := range sortedKeys(n.children) {
			child := n.children[name]
			for _, peer := range sortedKeys(child.pkg.Peers) {
				wanted := child.pkg.Peers[peer]
				if IsHost(peer) || slices.Contains(child.pkg.OptionalPeers, peer) {
					continue
				}
				found := lookUp(child, peer)
				switch {
				case found == nil:
					missing[peer] = append(missing[peer], fmt.Sprintf("%s (%s)", child.pkg.describe(), wanted))
				case !satisfies(found.pkg.Version, wanted):
					wrong = append(wrong, fmt.Sprintf("%s wants its peer %s@%s, and finds %s", child.pkg.describe(), peer, wanted, found.pkg.Version))
				}
			}
			walk(child)
		}
	}
	walk(root)
	var warnings []string
	for _, peer := range sortedKeys(missing) {
		warnings = append(warnings, fmt.Sprintf("the peer %s is not installed; asked for by %s", peer, strings.Join(missing[peer], ", ")))
	}
	return append(warnings, wrong...)
}

// lookUp finds a name as Node.js would from inside n.
func lookUp(n *node, name string) *node {
	for at := n; at != nil; at = at.parent {
		if found := at.children[name]; found != nil {
			return found
		}
	}
	return nil
}

// satisfies reports whether a version is in an npm range; what is no range,
// such as a tag, does not exclude anything.
func satisfies(version, wanted string) bool {
	v, err := npmrange.ParseVersionLoose(version)
	if err != nil {
		return false
	}
	r, err := npmrange.ParseRangeLoose(wanted)
	return err != nil || r.Satisfies(v)
}
