package install

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"dsh/internal/install/store"
)

// pnpmFile is a pnpm-lock.yaml of the versions 6 and 9, as far as it tells what
// is installed. Version 6 keeps in packages what 9 keeps in snapshots.
type pnpmFile struct {
	Version      string                  `yaml:"lockfileVersion"`
	Overrides    map[string]string       `yaml:"overrides"`
	Patched      map[string]yaml.Node    `yaml:"patchedDependencies"`
	Extensions   string                  `yaml:"packageExtensionsChecksum"`
	Hooks        string                  `yaml:"pnpmfileChecksum"`
	Importers    map[string]pnpmImporter `yaml:"importers"`
	pnpmImporter `yaml:",inline"`
	Packages     map[string]pnpmPackage  `yaml:"packages"`
	Snapshots    map[string]pnpmSnapshot `yaml:"snapshots"`
}

type pnpmImporter struct {
	Dependencies map[string]pnpmDirect `yaml:"dependencies"`
	Dev          map[string]pnpmDirect `yaml:"devDependencies"`
	Optional     map[string]pnpmDirect `yaml:"optionalDependencies"`
}

type pnpmDirect struct {
	Specifier string `yaml:"specifier"`
	Version   string `yaml:"version"`
}

type pnpmSnapshot struct {
	Dependencies map[string]string `yaml:"dependencies"`
	Optional     map[string]string `yaml:"optionalDependencies"`
	IsOptional   bool              `yaml:"optional"`
}

type pnpmPackage struct {
	Resolution struct {
		Integrity string `yaml:"integrity"`
		Tarball   string `yaml:"tarball"`
		Directory string `yaml:"directory"`
		Type      string `yaml:"type"`
		Repo      string `yaml:"repo"`
		Commit    string `yaml:"commit"`
		Path      string `yaml:"path"`
		GitHosted bool   `yaml:"gitHosted"`
	} `yaml:"resolution"`
	Name         string   `yaml:"name"`
	Version      string   `yaml:"version"`
	OS           []string `yaml:"os"`
	CPU          []string `yaml:"cpu"`
	Libc         []string `yaml:"libc"`
	pnpmSnapshot `yaml:",inline"`
}

// readPNPMLock reads the text of a pnpm-lock.yaml.
func readPNPMLock(text []byte) (*Foreign, error) {
	var file pnpmFile
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	old := false
	switch major, _, _ := strings.Cut(file.Version, "."); major {
	case "9":
	case "6":
		old = true
	default:
		return nil, fmt.Errorf("its lockfileVersion is %q, and dsh reads 6.0 (of pnpm 8) and 9.0 (of pnpm 9 and later); run pnpm install with one of these first", file.Version)
	}
	f := &Foreign{Manager: "pnpm", Format: file.Version, Lock: &Lock{Wanted: map[string]string{}}, undescribed: map[*Package]bool{}}
	f.Refused = file.refused()
	if _, err := newOverrides(file.Overrides); err != nil {
		f.Refused = append(f.Refused, err.Error())
	} else {
		f.Lock.Overrides = file.Overrides
	}
	r := pnpmReader{file: &file, old: old, foreign: f, graph: graph{}}
	root := map[string]string{}
	importer, listed := file.Importers["."]
	if !listed {
		importer = file.pnpmImporter
	}
	for _, section := range []map[string]pnpmDirect{importer.Optional, importer.Dev, importer.Dependencies} {
		for _, name := range sortedKeys(section) {
			d := section[name]
			if !ValidName(name) {
				return nil, fmt.Errorf("%q is no package name", name)
			}
			f.Lock.Wanted[name] = anyVersion(d.Specifier)
			if place, ok := strings.CutPrefix(d.Version, "link:"); ok {
				pkg := &Package{Name: name, Version: noVersion, Origin: Origin{Link, place}}
				f.undescribed[pkg] = true
				root[name] = "link " + name
				r.graph[root[name]] = graphNode{pkg: pkg}
				continue
			}
			root[name] = r.key(name, d.Version)
			if err := r.add(root[name]); err != nil {
				return nil, err
			}
			root[name] = r.byAddress(root[name], d.Specifier)
		}
	}
	for len(r.queue) > 0 {
		key := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		for name, needed := range r.graph[key].needs {
			if !ValidName(name) {
				return nil, fmt.Errorf("%q, which %s needs, is no package name", name, key)
			}
			if err := r.add(needed); err != nil {
				return nil, err
			}
		}
	}
	var err error
	f.Lock.Nodes, err = r.graph.layOut(root)
	return f, err
}

// refused are the parts of the file that change what packages are, or need.
func (file *pnpmFile) refused() []string {
	var refused []string
	for _, name := range sortedKeys(file.Patched) {
		refused = append(refused, fmt.Sprintf("%s is patched, and dsh applies no patches", name))
	}
	if file.Extensions != "" {
		refused = append(refused, "it was made with packageExtensions, which dsh does not apply")
	}
	if file.Hooks != "" {
		refused = append(refused, "it was made with a .pnpmfile.cjs, which dsh does not run")
	}
	for _, name := range sortedKeys(file.Importers) {
		if name != "." {
			refused = append(refused, fmt.Sprintf("it also holds the packages of %s, and a profile is no workspace", name))
		}
	}
	return refused
}

// pnpmReader collects the packages that are reached from the profile.
type pnpmReader struct {
	file    *pnpmFile
	old     bool // version 6
	foreign *Foreign
	graph   graph
	queue   []string
}

// key is the key of the package that a name is resolved to: version may be a
// version, or a key by itself.
func (r *pnpmReader) key(name, version string) string {
	bare := withoutPeers(version)
	if r.old {
		if !strings.Contains(bare, "/") && !strings.HasPrefix(version, "file:") {
			return "/" + name + "@" + version
		}
		return version
	}
	if strings.HasPrefix(version, "@") {
		return version
	}
	at, colon := strings.IndexByte(bare, '@'), strings.IndexByte(bare, ':')
	if at < 0 || colon >= 0 && colon < at {
		return name + "@" + version
	}
	return version
}

// withoutPeers is a key without the peers that pnpm writes behind it, each in
// parentheses, or a hash of them.
func withoutPeers(key string) string {
	for strings.HasSuffix(key, ")") {
		depth, open := 0, -1
		for i := len(key) - 1; i >= 0 && open < 0; i-- {
			switch key[i] {
			case ')':
				depth++
			case '(':
				if depth--; depth == 0 {
					open = i
				}
			}
		}
		if open <= 0 {
			return key
		}
		key = key[:open]
	}
	return key
}

// byAddress is the key of the package that the profile names by its address
// where pnpm holds it as the registry's of the same content.
func (r *pnpmReader) byAddress(key, specifier string) string {
	if n := r.graph[key]; n.pkg.Origin.Kind == Registry && (strings.HasPrefix(specifier, "https://") || strings.HasPrefix(specifier, "http://")) {
		pkg := *n.pkg
		pkg.Origin = Origin{URL, specifier}
		r.foreign.undescribed[&pkg] = true
		key = "by address " + key
		r.graph[key] = graphNode{pkg: &pkg, optional: n.optional, needs: n.needs}
	}
	return key
}

// add puts a package, and what it needs, into the graph.
func (r *pnpmReader) add(key string) error {
	if _, known := r.graph[key]; known {
		return nil
	}
	p, ok := r.file.Packages[withoutPeers(key)]
	if r.old {
		p, ok = r.file.Packages[key]
	}
	if !ok {
		return fmt.Errorf("it needs %s and does not hold it", key)
	}
	snapshot := p.pnpmSnapshot
	if !r.old {
		if snapshot, ok = r.file.Snapshots[key]; !ok {
			return fmt.Errorf("it needs %s and says nothing of what that needs", key)
		}
	}
	pkg, err := r.pkg(withoutPeers(key), p)
	if err != nil {
		return err
	}
	n := graphNode{pkg: pkg, optional: snapshot.IsOptional, needs: map[string]string{}}
	for _, section := range []map[string]string{snapshot.Dependencies, snapshot.Optional} {
		for name, version := range section {
			if strings.HasPrefix(version, "link:") {
				r.refuse("%s links to %s, a folder outside of the profile", key, version)
				continue
			}
			n.needs[name] = r.key(name, version)
		}
	}
	r.graph[key] = n
	r.queue = append(r.queue, key)
	return nil
}

func (r *pnpmReader) refuse(format string, args ...any) {
	r.foreign.Refused = append(r.foreign.Refused, fmt.Sprintf(format, args...))
}

// pkg is what the file says of a package. Packages that differ only in their
// peers are one.
func (r *pnpmReader) pkg(key string, p pnpmPackage) (*Package, error) {
	name, version, _ := splitName(strings.TrimPrefix(key, "/"))
	if p.Name != "" {
		name = p.Name
	}
	address := strings.Contains(version, "://")
	if p.Version != "" || strings.Contains(version, ":") {
		version = cmp.Or(p.Version, noVersion)
	}
	if !ValidName(name) {
		return nil, fmt.Errorf("%q is no package name", name)
	}
	pkg := &Package{Name: name, Version: version, OS: p.OS, CPU: p.CPU, Libc: p.Libc}
	if p.Resolution.Integrity != "" {
		// Hashes that are too weak to count give way to the registry's.
		pkg.Integrity, _ = store.ParseIntegrity(p.Resolution.Integrity)
	}
	resolution := p.Resolution
	kind, place := Registry, ""
	remote, commit, isArchive := hostArchive(resolution.Tarball)
	switch {
	case resolution.Type == "git" || resolution.Repo != "" || resolution.GitHosted || isArchive:
		if isArchive {
			resolution.Repo, resolution.Commit = remote, commit
		}
		// The hash is that of the host's archive, and not of the tree.
		pkg.Integrity = store.Integrity{}
		origin, err := foreignGit(resolution.Repo, resolution.Commit, resolution.Path)
		if err != nil {
			r.refuse("%s comes from a git repository: %v", key, err)
		}
		kind, place = Git, origin.Place
	case resolution.Type == "directory":
		kind, place = Folder, resolution.Directory
	case strings.HasPrefix(resolution.Tarball, "file:"):
		kind, place = Archive, strings.TrimPrefix(resolution.Tarball, "file:")
	case address:
		kind, place = URL, resolution.Tarball
	case resolution.Type != "" && resolution.Type != "tarball":
		r.refuse("%s comes from a place of the kind %q, which dsh does not know", key, resolution.Type)
	}
	pkg.Origin = Origin{kind, place}
	r.foreign.undescribed[pkg] = true
	return pkg, nil
}
