package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

// firstChecked is the harness version from which bundles are held to their
// peer ranges.
const firstChecked = "0.1.7"

// ExemptionsFile is the file of a profile that holds its [Exemptions].
const ExemptionsFile = "compatibility.json"

// Exemptions are the harness versions that bundles are let through with though
// their peers say otherwise, by "name@version" of the bundle.
type Exemptions map[string][]string

// ReadExemptions reads the exemptions of the profile in dir; none where there
// is no file. text is the file as it is. A file of another shape is an error of
// class Composition that names it.
func ReadExemptions(dir string) (exemptions Exemptions, text []byte, err error) {
	return readExemptions(filepath.Join(dir, ExemptionsFile), os.ReadFile)
}

func readExemptions(file string, read func(string) ([]byte, error)) (exemptions Exemptions, text []byte, err error) {
	text, err = read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Exemptions{}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the exemptions: %w", err)
	}
	if err := json.Unmarshal(text, &exemptions); err != nil || exemptions == nil {
		return nil, text, fault.Errorf(fault.Composition, `%s must hold an object such as {"name@1.0.0": ["0.1.7"]}`, file)
	}
	return exemptions, text, nil
}

// Allows says whether a bundle is exempted for a harness.
func (e Exemptions) Allows(name, version, harness string) bool {
	return slices.Contains(e[name+"@"+version], harness)
}

// compatibility is the rule by which a harness of a known version refuses
// bundles that do not fit it. The zero value refuses nothing.
type compatibility struct {
	checked bool
	version npmrange.Version
	exempt  Exemptions
}

func newCompatibility(opts Options) (compatibility, error) {
	version, ok := opts.Installation.Version()
	if !ok {
		return compatibility{}, nil // the embedded installation has no harness to fit
	}
	first, err := npmrange.ParseVersion(firstChecked)
	if err != nil {
		return compatibility{}, err
	}
	if version.Less(first) {
		return compatibility{}, nil
	}
	c := compatibility{checked: true, version: version}
	// A file that cannot be read exempts nothing and stops nothing.
	c.exempt, _, _ = readExemptions(filepath.Join(opts.Profile.Dir, ExemptionsFile), opts.readFile)
	return c, nil
}

// check refuses a bundle one of whose harness peers the harness does not
// satisfy, with a [*PeersError].
func (c compatibility) check(m bundleManifest) error {
	if !c.checked || c.exempt.Allows(m.Name, m.Version, c.version.String()) {
		return nil
	}
	refused := UnmetPeers(m.Peers, c.version)
	if len(refused) == 0 {
		return nil
	}
	return &PeersError{Name: m.Name, Version: m.Version, Peers: refused, Harness: c.version}
}

// Peer is a package that another one wants to find in the harness.
type Peer struct{ Name, Wanted string }

// PeersError is a bundle that a harness refuses.
type PeersError struct {
	Name, Version string // of the bundle's package
	Peers         []Peer // that the harness does not satisfy, sorted
	Harness       npmrange.Version
}

func (e *PeersError) Error() string {
	var refused []string
	for _, p := range e.Peers {
		refused = append(refused, fmt.Sprintf("%s@%q", p.Name, p.Wanted))
	}
	return fmt.Sprintf("%s@%s needs %s, and the harness is %s", e.Name, e.Version, strings.Join(refused, ", "), e.Harness)
}

// UnmetPeers is the harness peers that a harness does not satisfy, sorted.
// Prereleases take part, and a range that cannot be read is not satisfied.
func UnmetPeers(peers map[string]string, harness npmrange.Version) []Peer {
	var unmet []Peer
	for _, name := range slices.Sorted(maps.Keys(peers)) {
		if (name == "@deepseek-ai/dsh" || strings.HasPrefix(name, "@deepseek-ai/dsh-")) && !SatisfiesPeer(peers[name], harness) {
			unmet = append(unmet, Peer{name, peers[name]})
		}
	}
	return unmet
}

// SatisfiesPeer says whether a version of a host package is what a peer range
// wants, by the rule of [UnmetPeers].
func SatisfiesPeer(wanted string, have npmrange.Version) bool {
	switch wanted = strings.TrimSpace(wanted); wanted {
	case "":
		return false
	case "workspace:^", "workspace:~", "workspace:*":
		return true
	}
	r, err := npmrange.ParseRange(wanted)
	return err == nil && r.SatisfiesPrerelease(have)
}
