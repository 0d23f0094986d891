package registry

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dsh/internal/install/manifest"
)

// Manifest is what a registry says about one version of a package.
type Manifest struct {
	manifest.Manifest        // its name and version are those that were asked for
	Deprecated        string // why it should not be used, or ""
	Dist              Dist
	UnpackedSize      int64     // bytes; 0 where it is not said
	Published         time.Time // zero where it is not said

	claimed string // the version that the document itself names
}

// Dist says where the archive of a version is and what it must hold.
type Dist struct {
	Tarball   string // address to fetch
	Integrity string // hashes in the form of Subresource Integrity, or ""
	Shasum    string // SHA-1 in hexadecimal, or ""
}

// parseManifest reads the manifest of name@version, which registry serves.
// What is no object says nothing.
func parseManifest(name, version, registry, text string) (*Manifest, error) {
	c := &scanner{s: text}
	if c.peek() != '{' {
		text = "{}"
	}
	read, err := manifest.ParseNamed(name, []byte(text))
	if err != nil {
		return nil, err
	}
	m := &Manifest{Manifest: *read, claimed: read.Version}
	m.Version = version
	c.members(func(key string) {
		switch key {
		case "deprecated":
			m.Deprecated = c.deprecation()
		case "dist":
			m.Dist, m.UnpackedSize = c.dist()
		case "hasInstallScript":
			// An abbreviated document has this in place of the scripts.
			if c.truthy() && !slices.Contains(m.Scripts, "install") {
				m.Scripts = append(m.Scripts, "install")
			}
		}
	})
	m.Dist.Tarball = tarballAddress(registry, name, version, m.Dist.Tarball)
	return m, nil
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

func (c *scanner) dist() (d Dist, unpacked int64) {
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
				unpacked = size
			}
		}
	})
	return d, unpacked
}

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
