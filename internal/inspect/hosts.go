package inspect

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/install/manifest"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// hosts finds packages of the harness that stand in the profile.
func (i *inspection) hosts() {
	for _, d := range i.direct() {
		if !IsHost(d.Name) || i.isBundle(d.Name) {
			continue
		}
		f := check.Finding{
			Code: HostDependency, Severity: check.Warning, File: i.Options.Profile.Manifest.Path(),
			Message: fmt.Sprintf("the profile depends on %s (%s), which belongs to the installation", d.Name, d.Spec),
			Remedy:  i.command("remove", d.Name),
		}
		if here, ok, err := installation.Find(i.Options.Profile.Dir, d.Name); err == nil && ok {
			f.Message += i.skew(d.Name, here.Version)
		}
		i.add(f)
	}
	copies := i.copies()
	if len(copies) == 0 {
		return
	}
	chains := i.chains()
	for _, c := range copies {
		chain := chains[c.dir]
		f := check.Finding{
			Code: HostCopy, Severity: check.Warning, File: c.dir,
			Message: fmt.Sprintf("%s %s is a second copy of a package of the harness", c.name, c.version) + i.skew(c.name, c.version),
		}
		switch len(chain) {
		case 0:
			f.Message += "; nothing that the profile depends on asks for it"
			f.Remedy = i.command("install", "--force") + " lays node_modules out anew"
		case 1:
			continue // the profile's own dependency
		default:
			if IsHost(chain[0]) && !i.isBundle(chain[0]) {
				continue // it goes with the one that is told of
			}
			f.Message += fmt.Sprintf("; %s brings it (%s)", chain[0], strings.Join(chain, " → "))
			f.Remedy = fmt.Sprintf("%s should have it under peerDependencies; %s takes both out", chain[len(chain)-2], i.command("remove", chain[0]))
		}
		i.add(f)
	}
}

// skew says what version the installation has of a package, if it has another.
func (i *inspection) skew(name, version string) string {
	if i.BuiltIn != nil {
		return ""
	}
	have, ok, err := i.Installation.Bundle(name)
	switch {
	case err != nil || !ok:
		return ""
	case have.Version == version:
		return fmt.Sprintf(" (the installation has %s as well)", have.Version)
	default:
		return fmt.Sprintf(" (the installation has %s)", have.Version)
	}
}

// direct is the dependencies of the profile in all sections, by name.
func (i *inspection) direct() []profile.Dependency {
	var all []profile.Dependency
	for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
		all = append(all, i.Options.Profile.Manifest.Dependencies(kind)...)
	}
	slices.SortStableFunc(all, func(a, b profile.Dependency) int { return cmp.Compare(a.Name, b.Name) })
	return slices.CompactFunc(all, func(a, b profile.Dependency) bool { return a.Name == b.Name })
}

// isBundle says whether a package is one of the profile's bundles, on or off.
func (i *inspection) isBundle(name string) bool {
	return slices.ContainsFunc(i.Options.Profile.Manifest.BundlePlaces(), func(b profile.BundlePlace) bool { return b.Name == name })
}

// hostCopy is a package of the harness that stands in the profile.
type hostCopy struct{ name, version, dir string }

// copies finds real copies of host packages in the profile's node_modules, at
// the top and below other packages, sorted by place. A link to the package of
// the installation is no copy.
func (i *inspection) copies() []hostCopy {
	w := copyWalk{inspection: i, seen: map[string]bool{}}
	w.modules(filepath.Join(i.Options.Profile.Dir, "node_modules"), true)
	slices.SortFunc(w.found, func(a, b hostCopy) int { return cmp.Compare(a.dir, b.dir) })
	return w.found
}

type copyWalk struct {
	*inspection
	seen  map[string]bool // real directories
	found []hostCopy
}

// modules looks through a node_modules folder. deep also looks into the
// packages in it.
func (w *copyWalk) modules(dir string, deep bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, "@") {
			w.pkg(filepath.Join(dir, name), name, deep)
			continue
		}
		if !deep && name != "@deepseek-ai" {
			continue
		}
		scoped, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		for _, e := range scoped {
			w.pkg(filepath.Join(dir, name, e.Name()), name+"/"+e.Name(), deep)
		}
	}
}

func (w *copyWalk) pkg(dir, name string, deep bool) {
	if strings.HasPrefix(name, ".") || !deep && !IsHost(name) {
		return
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || w.seen[real] {
		return
	}
	w.seen[real] = true
	if IsHost(name) && !w.isBundle(name) && !w.isInstalled(name, real) {
		if pkg, err := installation.OpenPackage(real); err == nil {
			w.found = append(w.found, hostCopy{name, pkg.Version, real})
		}
	}
	if deep {
		// A linked folder is somebody's workshop; only what plugins in it would
		// take from the harness matters.
		w.modules(filepath.Join(real, "node_modules"), real == dir || inside(dir, real))
	}
}

// inside says whether the real place of a package is still in a node_modules of
// the profile.
func inside(dir, real string) bool {
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	return err == nil && filepath.Dir(real) == parent
}

// isInstalled says whether the directory is the installation's own package.
func (w *copyWalk) isInstalled(name, real string) bool {
	pkg, ok, err := w.Installation.Bundle(name)
	return err == nil && ok && pkg.Dir == real
}

// chains is how each package that the profile depends on came to be there: the
// names from a direct dependency down to it, by its real directory.
func (i *inspection) chains() map[string][]string {
	chains := map[string][]string{}
	var queue []string
	visit := func(from, name string, chain []string) {
		pkg, ok, err := installation.Find(from, name)
		if err != nil || !ok || chains[pkg.Dir] != nil {
			return
		}
		chains[pkg.Dir] = append(slices.Clip(chain), name)
		queue = append(queue, pkg.Dir)
	}
	for _, d := range i.direct() {
		visit(i.Options.Profile.Dir, d.Name, nil)
	}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		for _, name := range dependencies(dir, false) {
			visit(dir, name, chains[dir])
		}
	}
	return chains
}

// dependencies are the packages that the one in dir depends on, sorted.
func dependencies(dir string, peers bool) []string {
	m, ok := readManifest(dir)
	if !ok {
		return nil
	}
	var names []string
	sections := []map[string]string{m.Dependencies, m.OptionalDependencies}
	if peers {
		sections = append(sections, m.PeerDependencies)
	}
	for _, section := range sections {
		for name := range section {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func readManifest(dir string) (*manifest.Manifest, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return nil, false
	}
	m, err := manifest.Parse(text)
	return m, err == nil
}

// reachable says whether a package is to be had though it is in no obvious
// place: the harness finds what its own package and the profile's bundles
// depend on, however deep, whatever the layout of node_modules.
func (i *inspection) reachable(name string) bool {
	if !i.walked {
		i.walked = true
		var queue []string
		if app, ok, err := i.Installation.Bundle("@deepseek-ai/dsh"); err == nil && ok {
			queue = append(queue, app.Dir)
		}
		queue = append(queue, i.anchors(birth{})[1:]...)
		seen := map[string]bool{}
		for len(queue) > 0 {
			dir := queue[0]
			queue = queue[1:]
			for _, dep := range dependencies(dir, true) {
				pkg, ok, err := installation.Find(dir, dep)
				if err != nil || !ok {
					continue
				}
				i.packages[dep] = true
				if !seen[pkg.Dir] {
					seen[pkg.Dir] = true
					queue = append(queue, pkg.Dir)
				}
			}
		}
	}
	return i.packages[name]
}

// Unmet is a peer that an installation does not satisfy.
type Unmet struct {
	Package string `json:"package"` // who wants it
	Version string `json:"version"`
	Peer    string `json:"peer"`
	Wanted  string `json:"wanted"`
	Have    string `json:"have"`
	// Range is what the package could write to work with both.
	Range string `json:"range"`
	// Exempt says that the profile lets the package through all the same.
	Exempt bool `json:"exempt"`
}

// UnmetPeers is the peers on host packages that the packages which a profile
// depends on have, and a harness in a directory does not satisfy: each is held
// against the installation's package of that name, else against the harness
// itself. Prereleases take part. The embedded installation satisfies all.
func UnmetPeers(p *profile.Profile, inst installation.Installation) []Unmet {
	harness, ok := inst.Version()
	if !ok {
		return nil
	}
	i := inspection{Options: Options{Profile: p}}
	exemptions, _, _ := stack.ReadExemptions(p.Dir) // one that cannot be read exempts nothing
	var unmet []Unmet
	for _, d := range i.direct() {
		pkg, ok, err := installation.Find(p.Dir, d.Name)
		if err != nil || !ok {
			continue
		}
		m, err := manifest.Parse(pkg.Manifest)
		if err != nil {
			continue
		}
		for _, peer := range sorted(m.PeerDependencies) {
			wanted := m.PeerDependencies[peer]
			if !IsHost(peer) || slices.Contains(m.OptionalPeers, peer) {
				continue
			}
			have := harness
			if host, ok, err := inst.Bundle(peer); err == nil && ok {
				if v, err := npmrange.ParseVersion(host.Version); err == nil {
					have = v
				}
			}
			if !stack.SatisfiesPeer(wanted, have) {
				unmet = append(unmet, Unmet{
					Package: pkg.Name, Version: pkg.Version, Peer: peer, Wanted: wanted, Have: have.String(),
					Range:  widened(wanted, have),
					Exempt: exemptions.Allows(pkg.Name, pkg.Version, harness.String()),
				})
			}
		}
	}
	return unmet
}

// widened is a range that admits have and what wanted does.
func widened(wanted string, have npmrange.Version) string {
	caret := "^" + have.String()
	if _, err := npmrange.ParseRange(wanted); err != nil || strings.TrimSpace(wanted) == "" {
		return caret
	}
	return strings.TrimSpace(wanted) + " || " + caret
}

func sorted(m map[string]string) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// peers finds host peers that the installation does not satisfy. A bundle that
// the harness refuses for them is a finding of the check of bundles.
func (i *inspection) peers() {
	for _, u := range UnmetPeers(i.Options.Profile, i.Installation) {
		if u.Exempt || i.refused(u.Package) {
			continue
		}
		i.add(check.Finding{
			Code: PeerUnmet, Severity: check.Warning, File: i.Options.Profile.Manifest.Path(),
			Message: fmt.Sprintf("%s %s wants %s %s beside it, and the installation has %s", u.Package, u.Version, u.Peer, u.Wanted, u.Have),
			Remedy:  fmt.Sprintf("a version of %s whose peerDependencies hold %q: %q works with both", u.Package, u.Peer, u.Range),
		})
	}
}

// refused says whether the harness leaves the bundle of a package out.
func (i *inspection) refused(pkg string) bool {
	return slices.ContainsFunc(i.Stack.Entries, func(e stack.Entry) bool {
		refused, ok := e.Err.(*stack.PeersError)
		return ok && refused.Name == pkg
	})
}
