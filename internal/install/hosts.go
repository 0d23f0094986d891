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
func IsHost(name string) bool { return strings.HasPrefix(name, "@deepseek-ai/") }
