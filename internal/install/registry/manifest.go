package registry

import (
	"encoding/json"
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Manifest is what a registry says about one version of a package. Fields of a
// type that npm does not expect are read as npm takes them, or as absent.
type Manifest struct {
	Name    string
	Version string

	Dependencies         map[string]string
	OptionalDependencies map[string]string
	PeerDependencies     map[string]string
	OptionalPeers        []string // peers that peerDependenciesMeta calls optional, sorted
	BundleDependencies   []string // dependencies that the archive brings along, sorted

	Engines map[string]string
	OS      []string // as in npm: "linux", "!win32"
	CPU     []string
	Libc    []string

	Deprecated       string            // why it should not be used, or ""
	Bin              map[string]string // files by program name, cleaned as npm cleans them
	Dist             Dist
	HasInstallScript bool            // it declares preinstall, install or postinstall
	DSH              json.RawMessage // the member "dsh", or nil

	claimed string // the version that the manifest itself names
}

// Dist says where the archive of a version is and what it must hold.
type Dist struct {
	Tarball      string // address to fetch
	Integrity    string // hashes in the form of Subresource Integrity, or ""
	Shasum       string // SHA-1 in hexadecimal, or ""
	UnpackedSize int64  // bytes; 0 where it is not said
}

// parseManifest reads the manifest of name@version, which registry serves.
func parseManifest(name, version, registry, text string) (*Manifest, error) {
	m := &Manifest{Name: name, Version: version}
	c := &scanner{s: text}
	allBundled := false
	var bin string
	c.members(func(key string) {
		switch key {
		case "version":
			m.claimed = c.text()
		case "dependencies":
			m.Dependencies = c.stringMap()
		case "optionalDependencies":
			m.OptionalDependencies = c.stringMap()
		case "peerDependencies":
			m.PeerDependencies = c.stringMap()
		case "peerDependenciesMeta":
			m.OptionalPeers = c.optionalPeers()
		case "bundleDependencies", "bundledDependencies":
			if c.peek() == 't' {
				allBundled = true
			} else if names := c.names(); names != nil {
				m.BundleDependencies = names
			}
		case "engines":
			m.Engines = c.stringMap()
		case "os":
			m.OS = c.stringList()
		case "cpu":
			m.CPU = c.stringList()
		case "libc":
			m.Libc = c.stringList()
		case "deprecated":
			m.Deprecated = c.deprecation()
		case "bin":
			bin = c.raw()
		case "dist":
			m.Dist = c.dist()
		case "hasInstallScript":
			m.HasInstallScript = c.truthy() || m.HasInstallScript
		case "scripts":
			for script := range c.stringMap() {
				switch script {
				case "preinstall", "install", "postinstall":
					m.HasInstallScript = true
				}
			}
		case "dsh":
			m.DSH = json.RawMessage(c.raw())
		}
	})
	if err := c.end(); err != nil {
		return nil, err
	}
	if allBundled {
		m.BundleDependencies = slices.AppendSeq(m.BundleDependencies, maps.Keys(m.Dependencies))
	}
	slices.Sort(m.BundleDependencies)
	m.Bin = programs(name, bin)
	m.Dist.Tarball = tarballAddress(registry, name, version, m.Dist.Tarball)
	return m, nil
}

// stringMap is the members of an object that are strings.
func (c *scanner) stringMap() map[string]string {
	var out map[string]string
	c.members(func(key string) {
		if c.peek() != '"' {
			return
		}
		if out == nil {
			out = map[string]string{}
		}
		out[key] = c.text()
	})
	return out
}

// stringList is a list of strings; one string is a list of one.
func (c *scanner) stringList() []string {
	if c.peek() == '"' {
		if s := c.text(); s != "" {
			return []string{s}
		}
		return nil
	}
	var out []string
	c.elements(func() {
		if c.peek() == '"' {
			out = append(out, c.text())
		}
	})
	return out
}

// names is a list of names, or the keys of an object.
func (c *scanner) names() []string {
	if c.peek() == '{' {
		var out []string
		c.members(func(key string) { out = append(out, key) })
		return out
	}
	return c.stringList()
}

func (c *scanner) optionalPeers() []string {
	var out []string
	c.members(func(peer string) {
		optional := false
		c.members(func(key string) {
			if key == "optional" {
				optional = c.truthy()
			}
		})
		if optional {
			out = append(out, peer)
		}
	})
	slices.Sort(out)
	return out
}

// deprecation is the message of a deprecated version. Registries also hold
// false for one that no longer is, and true.
func (c *scanner) deprecation() string {
	if c.peek() == '"' {
		return c.text()
	}
	if c.truthy() {
		return "this version is deprecated"
	}
	return ""
}

func (c *scanner) dist() Dist {
	var d Dist
	c.members(func(key string) {
		switch key {
		case "tarball":
			d.Tarball = c.text()
		case "integrity":
			d.Integrity = c.text()
		case "shasum":
			d.Shasum = c.text()
		case "unpackedSize":
			if size, err := strconv.ParseInt(c.raw(), 10, 64); err == nil && size > 0 {
				d.UnpackedSize = size
			}
		}
	})
	return d
}

// programs reads a bin member: a map, one file under the package's own name,
// or a list of files under theirs. Names and files are kept inside their
// directories, as npm-normalize-package-bin does.
func programs(name, bin string) map[string]string {
	c := &scanner{s: bin}
	raw := map[string]string{}
	switch c.peek() {
	case '"':
		raw[name] = c.text()
	case '[':
		for _, file := range c.stringList() {
			raw[path.Base(file)] = file
		}
	case '{':
		raw = c.stringMap()
	}
	var out map[string]string
	for program, file := range raw {
		program = inside(path.Base(strings.NewReplacer(`\`, "/", ":", "/").Replace(program)))
		file = inside(strings.ReplaceAll(file, `\`, "/"))
		if program == "" || file == "" {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[program] = file
	}
	return out
}

// inside is a path without the steps that would lead above its root.
func inside(p string) string { return path.Join("/", p)[1:] }

// publicHost is the registry whose addresses copies of it often keep.
const publicHost = "registry.npmjs.org"

// tarballAddress is where to fetch an archive. As in npm, an address at the
// public registry means the registry that is configured in its place.
func tarballAddress(registry, name, version, address string) string {
	if address == "" {
		return tarballURL(registry, name, version)
	}
	base, err := url.Parse(registry)
	if err != nil {
		return address
	}
	u, err := base.Parse(address)
	if err != nil {
		return address
	}
	if u.Hostname() == publicHost && base.Hostname() != publicHost {
		moved := *base
		moved.Path = strings.TrimRight(base.Path, "/") + u.Path
		moved.RawPath = ""
		moved.RawQuery = u.RawQuery
		u = &moved
	}
	if u.Scheme == "http" && base.Scheme == "https" && u.Host == base.Host {
		u.Scheme = "https" // some registries never rewrote what they have from before
	}
	return u.String()
}
