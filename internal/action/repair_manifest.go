package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// lastManifest is a manifest for a profile whose own cannot be read.
type lastManifest struct {
	manifest *profile.Manifest
	from     string // where it comes from, in words
	damaged  error  // of generations that cannot be read, nil if there are none
}

// lastManifest is the manifest of the newest generation that has a readable one;
// else one with the dependencies that the lockfile tells of, and the bundles
// among them; else that of a fresh profile.
func (env Env) lastManifest(name profile.Name) (*lastManifest, error) {
	file := filepath.Join(env.Home.ProfileDir(name), "package.json")
	generations, damaged := env.Home.Place(name).History().List()
	for i := range generations {
		text, ok := generations[i].File("package.json")
		if !ok {
			continue
		}
		if m, err := profile.ParseManifest(file, text); err == nil {
			return &lastManifest{m, generationWords(&generations[i]), damaged}, nil
		}
	}
	last, err := env.toldManifest(name, file)
	if err != nil {
		return nil, err
	}
	last.damaged = damaged
	return last, nil
}

// leftOutOfHistory is the warning of damaged generations.
func leftOutOfHistory(err error) string { return fmt.Sprintf("left out of the history: %v", err) }

// toldManifest is a fresh manifest with the dependencies that a lockfile of the
// profile tells of.
func (env Env) toldManifest(name profile.Name, file string) (*lastManifest, error) {
	m, err := freshManifest(name, file)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(file)
	wanted, told := wantedOf(dir)
	if told == "" {
		return &lastManifest{manifest: m, from: "what a fresh profile has"}, nil
	}
	bundles := m.Bundles()
	for _, dep := range slices.Sorted(maps.Keys(wanted)) {
		if !install.ValidName(dep) {
			continue
		}
		m.SetDependency(profile.Dependencies, dep, wanted[dep])
		if pkg, ok, err := installation.Find(dir, dep); err == nil && ok && !slices.Contains(bundles, dep) {
			if files, err := stack.PatchFiles(pkg.Manifest); err == nil && len(files) > 0 {
				bundles = append(bundles, dep)
			}
		}
	}
	m.SetBundles(bundles)
	from := fmt.Sprintf("what %s and the installed packages tell; order and choice of bundles are a guess", told)
	return &lastManifest{manifest: m, from: from}, nil
}

// wantedOf is the dependencies of a profile that its lockfile tells of, and the
// name of that file, "" if there is none.
func wantedOf(dir string) (wanted map[string]string, told string) {
	if text, err := os.ReadFile(filepath.Join(dir, install.LockName)); err == nil {
		if lock, err := install.ParseLock(install.LockName, text); err == nil {
			return lock.Wanted, install.LockName
		}
	}
	if f, err := install.ReadForeign(dir, nil); err == nil {
		return f.Lock.Wanted, filepath.Base(f.File)
	}
	return nil, ""
}

// freshManifest is the manifest of a profile that is made because it is missing.
func freshManifest(name profile.Name, file string) (*profile.Manifest, error) {
	type section struct {
		Bundles []string `json:"bundles"`
	}
	type dsh struct {
		Profile section `json:"profile"`
	}
	text, err := json.MarshalIndent(struct {
		Name         string   `json:"name"`
		Private      bool     `json:"private"`
		Dependencies struct{} `json:"dependencies"`
		Dsh          dsh      `json:"dsh"`
	}{"dsh-profile-" + name.String(), true, struct{}{}, dsh{section{profile.ForName(name).Bundles()}}}, "", "  ")
	if err != nil {
		return nil, err
	}
	return profile.ParseManifest(file, append(text, '\n'))
}
