package stack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"dsh/internal/installation"
	"dsh/internal/npmrange"
)

// firstChecked is the harness version from which bundles are held to their
// peer ranges.
const firstChecked = "0.1.7"

// compatibility is the rule by which a harness of a known version refuses
// bundles that do not fit it. The zero value refuses nothing.
type compatibility struct {
	checked bool
	version npmrange.Version
	exempt  map[string][]string // "package@version" -> harness versions
}

func newCompatibility(inst installation.Installation, profileDir string) (compatibility, error) {
	version, ok := inst.Version()
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
	if text, err := os.ReadFile(filepath.Join(profileDir, "compatibility.json")); err == nil {
		if json.Unmarshal(text, &c.exempt) != nil {
			c.exempt = nil
		}
	}
	return c, nil
}

// check refuses a bundle one of whose harness peers the harness does not
// satisfy. Prereleases take part, and a range that cannot be read refuses.
func (c compatibility) check(m bundleManifest) error {
	if !c.checked || slices.Contains(c.exempt[m.Name+"@"+m.Version], c.version.String()) {
		return nil
	}
	var refused []string
	for name, wanted := range m.Peers {
		if name != "@deepseek-ai/dsh" && !strings.HasPrefix(name, "@deepseek-ai/dsh-") {
			continue
		}
		if !c.satisfies(wanted) {
			refused = append(refused, fmt.Sprintf("%s@%q", name, wanted))
		}
	}
	if len(refused) == 0 {
		return nil
	}
	sort.Strings(refused)
	return fmt.Errorf("%s@%s needs %s, and the harness is %s", m.Name, m.Version, strings.Join(refused, ", "), c.version)
}

func (c compatibility) satisfies(wanted string) bool {
	switch wanted = strings.TrimSpace(wanted); wanted {
	case "":
		return false
	case "workspace:^", "workspace:~", "workspace:*":
		return true
	}
	r, err := npmrange.ParseRange(wanted)
	return err == nil && r.SatisfiesPrerelease(c.version)
}
