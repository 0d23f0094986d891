package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// ProfileDetails is all there is to say about one profile.
type ProfileDetails struct {
	ProfileInfo
	// Package is the name in package.json.
	Package string `json:"package"`
	// Installation is what it runs on: a name, "embedded" or a directory; ChosenBy
	// is who says so.
	Installation string   `json:"installation"`
	ChosenBy     ChosenBy `json:"installationChosenBy"`
	// BundleList are the bundles in order, also those that are switched off.
	BundleList []BundleInfo     `json:"bundleList"`
	Depends    []install.Listed `json:"dependencyList"`
	Patch      PatchInfo        `json:"patch"`
	// Lockfile is its path, "" where there is none.
	Lockfile string `json:"lockfile"`
	// NodeModules is who laid out node_modules, "" where there is none.
	NodeModules string `json:"nodeModules"`
	Generations int    `json:"generations"`
	Newest      int    `json:"newest"` // id of the newest generation, 0 for none
	// Kept are directories of this profile that were replaced or removed.
	Kept     []string `json:"kept"`
	Disk     DiskUse  `json:"disk"`
	Warnings []string `json:"-"`
}

// BundleInfo is a bundle of a profile.
type BundleInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Source  string `json:"source"` // where it was found, "" if nowhere
	State   string `json:"state"`  // of its layer: applied, broken or disabled
}

// PatchInfo is the patch file of a profile.
type PatchInfo struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"` // -1 where there is none
	// Patches is how many entries it has; Problem is why they cannot be read.
	Patches int    `json:"patches"`
	Problem string `json:"problem,omitempty"`
}

// DiskUse is what a profile takes on the disk, in bytes. Files that the store
// shares are counted where they are.
type DiskUse struct {
	Files       int64 `json:"files"`       // all but node_modules
	NodeModules int64 `json:"nodeModules"` // most of it is shared with the store
	State       int64 `json:"state"`       // generations and kept directories
}

// ShowProfile says all there is to say about a profile. One that cannot be read
// is shown as far as it can be. current is the profile that counts where none is
// named.
func ShowProfile(ctx context.Context, env Env, name profile.Name, current string) (*ProfileDetails, error) {
	if err := env.there(name); err != nil {
		return nil, err
	}
	d, warnings, err := reading(ctx, env, name, func(v staging.View) (*ProfileDetails, error) { return env.details(v, name) })
	if err != nil {
		return nil, err
	}
	d.Default = d.Name == current
	d.Warnings = append(warnings, d.Warnings...)
	return d, nil
}

func (env Env) details(v staging.View, name profile.Name) (*ProfileDetails, error) {
	d := &ProfileDetails{BundleList: []BundleInfo{}, Depends: []install.Listed{}, Kept: []string{}}
	p, _ := profile.ReadFrom(v.Path, env.Home, name) // the state says what is wrong with it
	d.ProfileInfo = env.profileInfo(name)
	if choice, err := ChooseInstallation(env, name, env.Option); err == nil { // who opened env has said what is wrong
		d.Installation, d.ChosenBy = choice.Name, choice.By
	}
	place := env.Home.Place(name)
	if p != nil {
		d.Package, d.Depends = p.Manifest.PackageName(), install.List(p.Dir, p.Manifest)
		readableLock(v.Path(filepath.Join(p.Dir, install.LockName))).Trace(d.Depends, p.Manifest, p.Dir)
		if err := d.bundles(env, p); err != nil {
			d.Warnings = append(d.Warnings, err.Error())
		}
	}
	var err error
	if d.Patch, err = patchInfo(filepath.Join(place.Dir, profilePatch), v); err != nil {
		return nil, err
	}
	if file := filepath.Join(place.Dir, install.LockName); exists(file) {
		d.Lockfile = file
	}
	d.NodeModules = install.Maker(place.Dir)
	generations, err := place.History().Heads()
	if err != nil {
		d.Warnings = append(d.Warnings, fmt.Sprintf("left out of the history: %v", err))
	}
	if d.Generations = len(generations); d.Generations > 0 {
		d.Newest = generations[0].ID
	}
	d.Kept = append(d.Kept, keptDirs(place.State)...)
	d.Disk = DiskUse{
		Files:       size(place.Dir, "node_modules"),
		NodeModules: size(filepath.Join(place.Dir, "node_modules")),
		State:       size(place.State),
	}
	return d, nil
}

// bundles reads the list of bundles as a start would find them.
func (d *ProfileDetails) bundles(env Env, p *profile.Profile) error {
	c, err := withoutProject(env, p, nil)
	if err != nil {
		return err
	}
	for _, e := range c.Stack.Entries {
		if e.Kind == compose.BundleLayer {
			info := layerInfo(env, c, e)
			d.BundleList = append(d.BundleList, BundleInfo{info.Label, info.Version, info.Source, info.State})
		}
	}
	return nil
}

func patchInfo(file string, v staging.View) (PatchInfo, error) {
	info := PatchInfo{File: file, Bytes: -1}
	text, err := os.ReadFile(v.Path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil
	}
	if err != nil {
		return info, fmt.Errorf("reading the patch file: %w", err)
	}
	info.Bytes = int64(len(text))
	patches, err := compose.ParsePatches(compose.Source{File: file, Dir: filepath.Dir(file), Kind: compose.ProfileLayer}, text)
	if err != nil {
		info.Problem = err.Error()
	}
	info.Patches = len(patches)
	return info, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// size is the sum of the regular files below dir; what cannot be read, or goes
// meanwhile, counts nothing.
func size(dir string, skip ...string) (sum int64) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return 0
	}
	_ = filepath.WalkDir(real, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil
		case d.IsDir() && slices.Contains(skip, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}
