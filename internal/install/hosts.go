package install

import (
	"fmt"
	"strings"
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
}

// IsHost reports whether a package belongs to the harness itself. As a peer
// it is met by the installation, whatever its range says.
func IsHost(name string) bool { return name == "cordis" || strings.HasPrefix(name, "@deepseek-ai/") }

// isHost is IsHost, or whether the installation provides the package.
func (r *resolver) isHost(name string) bool {
	if IsHost(name) {
		return true
	}
	if r.provides == nil {
		return false
	}
	_, ok := r.provides(name)
	return ok
}

// omits reports whether a dependency of a package is left to the installation.
func (r *resolver) omits(name string) bool {
	if r.settings.Hosts != OmitHosts || !r.isHost(name) || isShared(name) {
		return false
	}
	if r.provides == nil {
		return true
	}
	_, ok := r.provides(name)
	return ok
}

// isShared reports whether a package of the harness is made to be there more
// than once.
func isShared(name string) bool { return name == "schemastery" || name == "@deepseek-ai/schemastery" }
