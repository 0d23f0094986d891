package install

import (
	"slices"

	"dsh/internal/profile"
)

// Listed is one dependency of a profile as it is.
type Listed struct {
	Name    string `json:"name"`
	Spec    string `json:"spec"`    // as package.json holds it
	Kind    string `json:"kind"`    // the section it stands in
	Version string `json:"version"` // as installed; "" when it is not
	Layer   int    `json:"layer"`   // its place in the bundle list from 1; 0 when it is no layer
}

// List reads the dependencies of a profile and what is installed of them, in
// the order of the manifest's sections.
func List(dir string, m *profile.Manifest) []Listed {
	list := []Listed{}
	bundles := m.Bundles()
	for _, kind := range dependencyKinds {
		for _, d := range m.Dependencies(kind) {
			list = append(list, Listed{
				Name: d.Name, Spec: d.Spec, Kind: string(kind),
				Version: onDisk(dir, d.Name).version,
				Layer:   slices.Index(bundles, d.Name) + 1,
			})
		}
	}
	return list
}
