package install

import (
	"fmt"
	"slices"
	"strings"

	"dsh/internal/profile"
)

// HostPolicy says what becomes of a package of the harness that a plugin lists
// among its dependencies, where it should be a peer.
type HostPolicy string

// The policies.
const (
	WarnHosts  HostPolicy = "warn"  // it is installed, and the user hears of it
	OmitHosts  HostPolicy = "omit"  // it is left out, so that the plugin finds the installation's
	AllowHosts HostPolicy = "allow" // it is installed
)

// ParseHostPolicy reads warn, omit or allow.
func ParseHostPolicy(text string) (HostPolicy, error) {
	switch p := HostPolicy(text); p {
	case WarnHosts, OmitHosts, AllowHosts:
		return p, nil
	}
	return "", fmt.Errorf("%q is none of %s, %s and %s", text, WarnHosts, OmitHosts, AllowHosts)
}

// HostCopy is a package of the harness that a plugin brings along.
type HostCopy struct {
	Package string   `json:"package"`
	Version string   `json:"version"`
	Chain   []string `json:"chain"` // from the profile's dependency down to it, name@version each

	plugin string // the name of that dependency
}

// IsHost reports whether a package belongs to the harness itself. As a peer
// it is met by the installation, whatever its range says.
func IsHost(name string) bool { return name == "cordis" || strings.HasPrefix(name, "@deepseek-ai/") }

// provider is the version of a package that the installation provides. A nil one
// knows of none.
type provider func(name string) (version string, ok bool)

// has reports whether the installation provides a package.
func (p provider) has(name string) bool {
	if p == nil {
		return false
	}
	_, ok := p(name)
	return ok
}

// isHost is IsHost, or whether the installation provides the package.
func (p provider) isHost(name string) bool { return IsHost(name) || p.has(name) }

// isShared reports whether a package of the harness is made to be there more
// than once.
func isShared(name string) bool { return name == "schemastery" || name == "@deepseek-ai/schemastery" }

// omits reports whether a dependency of a package is left to the installation.
// What that is known not to have is not.
func (p provider) omits(policy HostPolicy, name string) bool {
	return policy == OmitHosts && p.isHost(name) && !isShared(name) && (p == nil || p.has(name))
}

// meets reports whether a peer is met by the installation. Where the profile
// brings the harness itself, and peers are installed, that is nobody's but those
// of the installation that there is.
func (p provider) meets(s Settings, peer string) bool {
	if s.AutoPeers && s.Hosts == AllowHosts {
		return p.has(peer)
	}
	return p.isHost(peer)
}

// hostReport is which packages of the harness come with plugins that list them
// among their dependencies, and what there is to say of them and of those that
// the profile depends on by itself. What was so before is not said again.
// command is one on the profile that can be pasted.
func hostReport(before, now *Lock, m *profile.Manifest, policy HostPolicy, provides provider, command func(words ...string) string) ([]HostCopy, []string) {
	known := map[string]bool{}
	if before != nil {
		for _, c := range hostCopies(before, provides) {
			known[c.Chain[0]+" "+c.describe()] = true
		}
	}
	copies := hostCopies(now, provides)
	if policy == AllowHosts {
		return copies, nil
	}
	var warnings []string
	for _, name := range sortedKeys(now.Wanted) {
		n, ok := now.Nodes["node_modules/"+name]
		if !ok || !isForeignHost(now, m, provides, name) || before != nil && before.Wanted[name] == now.Wanted[name] {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the profile depends on %s, which belongs to the installation: plugins would find this copy and not the harness that runs; %s takes it out",
			n.describe(), command("remove", name)))
	}
	byPlugin := map[string][]HostCopy{}
	for _, c := range copies {
		if plugin := c.Chain[0]; !known[plugin+" "+c.describe()] && !isForeignHost(now, m, provides, c.plugin) {
			byPlugin[plugin] = append(byPlugin[plugin], c)
		}
	}
	for _, plugin := range sortedKeys(byPlugin) {
		warnings = append(warnings, hostWarning(plugin, byPlugin[plugin], policy))
	}
	return copies, warnings
}

// isForeignHost reports whether a dependency of the profile itself is a package
// of the harness, and no bundle, that has no business there.
func isForeignHost(l *Lock, m *profile.Manifest, provides provider, name string) bool {
	n := l.Nodes["node_modules/"+name]
	if n.Package == nil || !provides.isHost(n.Name) || isShared(n.Name) || n.Origin.Kind == Link {
		return false
	}
	return !slices.ContainsFunc(m.BundlePlaces(), func(b profile.BundlePlace) bool { return b.Name == name })
}

// maxListed bounds how many packages one warning names.
const maxListed = 5

func hostWarning(plugin string, copies []HostCopy, policy HostPolicy) string {
	var listed []string
	for _, c := range copies[:min(len(copies), maxListed)] {
		listed = append(listed, fmt.Sprintf("%s (%s)", c.describe(), fromProfile(c.Chain...)))
	}
	if more := len(copies) - len(listed); more > 0 {
		listed = append(listed, fmt.Sprintf("and %d more", more))
	}
	what, are := "packages of the harness", "are"
	if len(copies) == 1 {
		what, are = "a package of the harness", "is"
	}
	if policy == OmitHosts {
		return fmt.Sprintf("%s brings %s that the installation does not have, and that %s installed all the same: %s", plugin, what, are, strings.Join(listed, ", "))
	}
	return fmt.Sprintf(`%s brings a second copy of %s: %s; its author should have them under peerDependencies, and "hostPackages": "%s" below dsh.profile in package.json leaves them out`,
		plugin, what, strings.Join(listed, ", "), OmitHosts)
}

// hostCopies is the packages of the harness that stand in a lockfile because a
// plugin depends on them, by plugin and package, each with its shortest chain.
func hostCopies(l *Lock, provides provider) []HostCopy {
	isCopy := func(n Located) bool { return provides.isHost(n.Name) && !isShared(n.Name) }
	var copies []HostCopy
	hasSome := false
	for _, n := range l.Nodes {
		hasSome = hasSome || isCopy(n)
	}
	if !hasSome {
		return nil
	}
	for _, name := range sortedKeys(l.Wanted) {
		found := map[string]bool{}
		l.reach(name, func(at string, chain func() []string) {
			n := l.Nodes[at]
			if at == "node_modules/"+name || !isCopy(n) || found[n.describe()] {
				return
			}
			found[n.describe()] = true
			copies = append(copies, HostCopy{Package: n.Name, Version: n.Version, Chain: chain(), plugin: name})
		})
	}
	return copies
}

func (c HostCopy) describe() string { return c.Package + "@" + c.Version }

// reach calls visit for each package that a dependency of the profile leads to
// over dependencies, itself included, nearest first.
func (l *Lock) reach(name string, visit func(at string, chain func() []string)) {
	first := "node_modules/" + name
	if l.Nodes[first].Package == nil {
		return
	}
	by := map[string]string{first: ""} // who leads to it
	queue := []string{first}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		visit(at, func() []string {
			var chain []string
			for up := at; up != ""; up = by[up] {
				chain = append(chain, l.Nodes[up].describe())
			}
			slices.Reverse(chain)
			return chain
		})
		n := l.Nodes[at]
		if n.Origin.Kind == Link {
			if _, ok := l.Nodes[n.Origin.Place]; !ok {
				continue
			}
		}
		for _, wanted := range []map[string]string{n.Dependencies, n.Package.Optional} {
			for _, name := range sortedKeys(wanted) {
				to, found, ok := l.lookUp(at, name)
				if !ok || found.Package == nil {
					continue
				}
				if found.Origin.Kind == Link && l.Nodes[found.Origin.Place].Package != nil {
					to = found.Origin.Place
				}
				if _, seen := by[to]; !seen {
					by[to] = at
					queue = append(queue, to)
				}
			}
		}
	}
}
