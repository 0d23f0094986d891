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
// path or a list of paths, with or without "./". Keys count in this spelling
// only.
func readBundleManifest(text []byte) (bundleManifest, error) {
	root, err := object("package.json", text)
	if err != nil {
		return bundleManifest{}, err
	}
	var m bundleManifest
	// Names and peers of another type are for npm to complain about.
	_ = json.Unmarshal(root["name"], &m.Name)
	_ = json.Unmarshal(root["version"], &m.Version)
	_ = json.Unmarshal(root["peerDependencies"], &m.Peers)
	dsh, err := object("dsh in its package.json", root["dsh"])
	if err != nil {
		return m, err
	}
	bundle, err := object("dsh.bundle in its package.json", dsh["bundle"])
	if err != nil || bundle["patch"] == nil {
		return m, err
	}
	var one string
	if json.Unmarshal(bundle["patch"], &one) == nil && one != "" {
		m.Patches = []string{one}
	} else if json.Unmarshal(bundle["patch"], &m.Patches) != nil || len(m.Patches) == 0 {
		return m, errors.New("dsh.bundle.patch must be a file path or a list of file paths")
	}
	return m, nil
}

// PatchFiles are the patch files that a package.json declares, as written; none
// for a package that is no bundle.
func PatchFiles(manifest []byte) ([]string, error) {
	m, err := readBundleManifest(manifest)
	return m.Patches, err
}

// object reads a JSON object; text that is not there is an empty one.
func object(what string, text []byte) (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if text == nil || json.Unmarshal(text, &members) == nil {
		return members, nil
	}
	return nil, fmt.Errorf("%s must hold a JSON object", what)
}
