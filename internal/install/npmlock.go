package install

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"dsh/internal/install/manifest"
	"dsh/internal/install/store"
	"dsh/internal/profile"
)

// npmFile is a package-lock.json. Version 1 holds dependencies, the versions 2
// and 3 hold packages.
type npmFile struct {
	Version      int                        `json:"lockfileVersion"`
	Packages     map[string]json.RawMessage `json:"packages"`
	Dependencies map[string]npmOld          `json:"dependencies"`
}

// npmOld is a package in version 1, with those that stand in its node_modules.
type npmOld struct {
	Version, Resolved, Integrity string
	Bundled, Optional            bool
	Dependencies                 map[string]npmOld
}

// npmEntry is what an entry says beside what stands in a package.json.
type npmEntry struct {
	Resolved, Integrity string
	Link                bool
	InBundle            bool
	Optional            bool
	DevOptional         bool
}

// readNPMLock reads the text of a package-lock.json.
func readNPMLock(text []byte) (*Foreign, error) {
	var file npmFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if file.Version < 1 || file.Version > 3 {
		return nil, fmt.Errorf("its lockfileVersion is %d, and dsh reads 1, 2 and 3; run npm install with npm 5 to 11 first", file.Version)
	}
	f := &Foreign{Manager: "npm", Format: fmt.Sprint(file.Version), undescribed: map[*Package]bool{},
		Lock: &Lock{Wanted: map[string]string{}, Nodes: map[string]Located{}}}
	if file.Version == 1 {
		return f, f.npmOldPackages("", file.Dependencies, maxOldDepth)
	}
	root, err := npmManifest("", file.Packages[""])
	if err != nil {
		return nil, err
	}
	var dev struct{ DevDependencies map[string]string }
	_ = json.Unmarshal(file.Packages[""], &dev) // another type holds none
	for _, section := range []map[string]string{dev.DevDependencies, root.OptionalDependencies, root.Dependencies} {
		for name, wanted := range section {
			f.Lock.Wanted[name] = anyVersion(wanted)
		}
	}
	for _, at := range sortedKeys(file.Packages) {
		if !strings.HasPrefix(at, "node_modules/") {
			continue // the profile itself, and folders that links lead to
		}
		if !validPath(at) {
			return nil, fmt.Errorf("%q is no place in node_modules", at)
		}
		if err := f.npmPackage(at, file.Packages[at]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// maxOldDepth bounds how deep packages stand in each other.
const maxOldDepth = 100

// npmOldPackages adds the packages in the node_modules of the one at a place.
// What they need is not said.
func (f *Foreign) npmOldPackages(up string, packages map[string]npmOld, depth int) error {
	if depth == 0 {
		return fmt.Errorf("packages stand more than %d deep in each other", maxOldDepth)
	}
	for _, name := range sortedKeys(packages) {
		old := packages[name]
		at := placeBelow(up, name)
		switch {
		case !validPath(at):
			return fmt.Errorf("%q is no place in node_modules", at)
		case old.Bundled:
			continue // the archive of a package above brings it
		}
		if err := f.npmOldPackage(at, old); err != nil {
			return err
		}
		if err := f.npmOldPackages(at, old.Dependencies, depth-1); err != nil {
			return err
		}
	}
	return nil
}

func (f *Foreign) npmOldPackage(at string, old npmOld) error {
	pkg := &Package{Name: nameAt(at), Version: old.Version}
	pkg.Integrity, _ = store.ParseIntegrity(old.Integrity)
	if real, ok := strings.CutPrefix(old.Version, "npm:"); ok {
		if pkg.Name, pkg.Version, ok = splitName(real); !ok {
			return fmt.Errorf("%q is no package name", real)
		}
	}
	switch place, isLocal := strings.CutPrefix(old.Version, "file:"); {
	case strings.HasPrefix(old.Version, "git"), strings.HasPrefix(old.Version, "github:"):
		if err := pkg.fromNPM(old.Version); err != nil {
			f.Refused = append(f.Refused, fmt.Sprintf("%s comes from a git repository: %v", at, err))
		}
	case isLocal:
		pkg.Version, pkg.Origin = noVersion, Origin{localKind(place), place}
	case isAddress(old.Version):
		pkg.Version, pkg.Origin = noVersion, Origin{URL, old.Version}
	case isAddress(old.Resolved) && !npmArchive(old.Resolved, pkg):
		pkg.Origin = Origin{URL, old.Resolved}
	}
	f.undescribed[pkg] = true
	f.Lock.Nodes[at] = Located{Package: pkg, Optional: old.Optional}
	return nil
}

// underOverrides says under which overrides a lockfile that does not hold them
// was made: those of the profile, as it is npm's to make it anew when they
// change.
func (f *Foreign) underOverrides(dir string, m *profile.Manifest) {
	settings, err := ReadSettings(dir, m)
	if err != nil {
		f.Refused = append(f.Refused, err.Error())
		return
	}
	if f.Manager == "npm" {
		f.Lock.Overrides = settings.Overrides.values
	}
}

func npmManifest(at string, text json.RawMessage) (*manifest.Manifest, error) {
	if text == nil {
		return nil, fmt.Errorf("it has no entry %q", at)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the entry %q: %w", at, err)
	}
	return m, nil
}

// npmPackage adds the package at a place of node_modules.
func (f *Foreign) npmPackage(at string, text json.RawMessage) error {
	m, err := npmManifest(at, text)
	if err != nil {
		return err
	}
	var e npmEntry
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("the entry %q: %w", at, err)
	}
	if e.InBundle {
		return nil // the archive of a package above brings it
	}
	if m.Name == "" {
		m.Name = nameAt(at)
	}
	if !ValidName(m.Name) {
		return fmt.Errorf("%q is no package name", m.Name)
	}
	pkg := packageOf(m)
	pkg.Integrity, _ = store.ParseIntegrity(e.Integrity) // one that is too weak gives way to the registry's
	top := at == "node_modules/"+nameAt(at)
	wanted := f.Lock.Wanted[nameAt(at)]
	switch {
	case e.Link:
		if !top {
			return nil // npm links only what the profile itself depends on
		}
		pkg.Origin = Origin{Link, e.Resolved}
		if strings.HasPrefix(wanted, "file:") {
			pkg.Origin.Kind = Folder // which dsh copies
		}
	case strings.HasPrefix(e.Resolved, "git"):
		if err := pkg.fromNPM(e.Resolved); err != nil {
			f.Refused = append(f.Refused, fmt.Sprintf("%s comes from a git repository: %v", at, err))
		}
	case strings.HasPrefix(e.Resolved, "file:"):
		pkg.Origin = Origin{Archive, strings.TrimPrefix(e.Resolved, "file:")}
	case top && isAddress(wanted), !npmArchive(e.Resolved, pkg) && isAddress(e.Resolved):
		pkg.Origin = Origin{URL, e.Resolved}
	}
	if pkg.Origin.Kind != Registry || pkg.Integrity.IsZero() {
		f.undescribed[pkg] = true
	}
	f.Lock.Nodes[at] = Located{Package: pkg, Optional: e.Optional || e.DevOptional}
	return nil
}

func isAddress(s string) bool {
	return strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")
}

// npmArchive reports whether an address is one at which registries keep the
// archive of a package.
func npmArchive(address string, pkg *Package) bool {
	return strings.Contains(address, "/-/") && strings.HasSuffix(address, "/"+path.Base(pkg.Name)+"-"+pkg.Version+".tgz")
}
