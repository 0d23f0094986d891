package stack

import (
	"encoding/json"
	"errors"
	"fmt"
)

// bundleManifest is what a package.json says that matters to composition.
type bundleManifest struct {
	Name, Version string
	Patches       []string // paths inside the package, as written; none: it is no bundle
	Peers         map[string]string
}

// readBundleManifest reads the declaration of a bundle. dsh.bundle.patch is a
// path or a list of paths, with or without "./".
func readBundleManifest(text []byte) (bundleManifest, error) {
	var raw struct {
		Name    string
		Version string
		Peers   map[string]string `json:"peerDependencies"`
		Dsh     struct {
			Bundle *struct {
				Patch json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return bundleManifest{}, fmt.Errorf("its package.json cannot be read: %w", err)
	}
	m := bundleManifest{Name: raw.Name, Version: raw.Version, Peers: raw.Peers}
	if raw.Dsh.Bundle == nil || raw.Dsh.Bundle.Patch == nil {
		return m, nil
	}
	var one string
	var list []string
	if json.Unmarshal(raw.Dsh.Bundle.Patch, &one) == nil && one != "" {
		list = []string{one}
	} else if json.Unmarshal(raw.Dsh.Bundle.Patch, &list) != nil || len(list) == 0 {
		return m, errors.New("dsh.bundle.patch must be a file path or a list of file paths")
	}
	m.Patches = list
	return m, nil
}
