package runtimes

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
)

// Launcher is the package of the harness.
const Launcher = "@deepseek-ai/dsh"

// Known is the release that is named where a command needs one: the newest that
// dsh ships a lockfile of.
const Known = "0.1.0-rc.8"

// anyNode is the releases of Node.js for a launcher that says nothing of them.
const anyNode = ">=24"

// releases holds <version>/package.json and <version>/dsh-lock.yaml of each
// release that is known to work with these packages.
//
//go:embed releases
var releases embed.FS

// Release is what a release of the launcher is installed from.
type Release struct {
	Version  string
	Manifest []byte // package.json of the installation
	Lock     []byte // dsh-lock.yaml; nil where none is known to work
	Node     string // range of Node.js releases, "" where the manifest of the launcher says it
}

// Tested says whether dsh ships the lockfile of the release.
func (r Release) Tested() bool { return r.Lock != nil }

// FindRelease is what a version of the launcher is installed from.
func FindRelease(version string) (Release, error) {
	r := Release{Version: version}
	folder := path.Join("releases", version)
	var err error
	if r.Lock, err = releases.ReadFile(path.Join(folder, "dsh-lock.yaml")); err != nil {
		r.Manifest, err = json.MarshalIndent(struct {
			Name         string            `json:"name"`
			Private      bool              `json:"private"`
			Dependencies map[string]string `json:"dependencies"`
		}{"dsh-installation", true, map[string]string{Launcher: version}}, "", "  ")
		r.Lock, r.Manifest = nil, append(r.Manifest, '\n')
		return r, err
	}
	// A checkout on Windows may have other line ends.
	r.Lock = bytes.ReplaceAll(r.Lock, []byte("\r\n"), []byte("\n"))
	if r.Manifest, err = releases.ReadFile(path.Join(folder, "package.json")); err == nil {
		r.Node, err = NodeRange(r.Manifest)
	}
	if err != nil {
		return r, fmt.Errorf("reading the embedded release %s: %w", version, err)
	}
	return r, nil
}

// KnownReleases are the versions that dsh ships lockfiles of, sorted.
func KnownReleases() []string {
	entries, err := fs.ReadDir(releases, "releases")
	if err != nil {
		return nil // it is embedded
	}
	var versions []string
	for _, e := range entries {
		versions = append(versions, e.Name())
	}
	return slices.Sorted(slices.Values(versions))
}

// NodeRange is the releases of Node.js that a package.json asks for.
func NodeRange(manifest []byte) (string, error) {
	var m struct {
		Engines struct{ Node string }
	}
	if err := json.Unmarshal(manifest, &m); err != nil {
		return "", fmt.Errorf("reading engines: %w", err)
	}
	if m.Engines.Node == "" {
		return anyNode, nil
	}
	return m.Engines.Node, nil
}
