package registry

import (
	"encoding/base64"
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

	Signatures []Signature // of the registry, over name, version and Integrity
	signed     bool        // Signatures is all there are; else nobody looked
}

// sound reports whether the archive can be fetched and checked by what the
// manifest says.
func (m *Manifest) sound() bool {
	u, err := url.Parse(m.Dist.Tarball)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return false
	}
	for hash := range strings.FieldsSeq(m.Dist.Integrity) {
		hash, _, _ = strings.Cut(hash, "?")
		if text, ok := strings.CutPrefix(hash, "sha512-"); ok {
			sum, err := base64.StdEncoding.DecodeString(text)
			if err == nil && len(sum) == sha512Size {
				return true
			}
		}
	}
	return false
}

// forLinux reports whether a version is for some platforms only, of which Linux
// is one: only there may the C library matter.
func (m *Manifest) forLinux() bool {
	listed := false
	for _, name := range m.OS {
		switch {
		case name == "linux" || name == "any":
			return true
		case name == "!linux":
			return false
		}
		listed = listed || name[0] != '!'
	}
	return !listed && len(m.OS)+len(m.CPU) > 0
}

// lacksLibc reports whether the C libraries may have been left out.
func (m *Manifest) lacksLibc() bool { return m.Libc == nil && m.forLinux() }

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
