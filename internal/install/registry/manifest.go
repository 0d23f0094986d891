package registry

import (
	"net/url"
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
}

// Dist says where the archive of a version is and what it must hold.
type Dist struct {
	Tarball   string // address to fetch
	Integrity string // hashes in the form of Subresource Integrity, or ""
	Shasum    string // SHA-1 in hexadecimal where there is no other, or ""
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
