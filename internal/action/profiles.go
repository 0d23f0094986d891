package action

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/profile"
	"dsh/internal/staging"
)

// What a profile can be.
const (
	ProfileOK         = "ok"
	ProfileBroken     = "broken manifest"
	ProfileUnmanaged  = "no manifest"       // a directory without package.json
	ProfileUnfinished = "unfinished change" // that the next command on it finishes or takes back
	ProfileNotMade    = "not made yet"      // it is made when it is first used
	ProfileRemoved    = "removed"           // and can be brought back
)

// ProfileList is the profiles of a home.
type ProfileList struct {
	Home string `json:"home"`
	// Chosen is the profile that the user chose as default, "" for none.
	Chosen   string        `json:"chosen"`
	Profiles []ProfileInfo `json:"profiles"`
	// Removed is how many profiles can be brought back.
	Removed  int      `json:"removed"`
	Warnings []string `json:"-"`
}

// ProfileInfo is one profile in a list.
type ProfileInfo struct {
	Name string `json:"name"`
	Dir  string `json:"dir"`
	// Default says that commands that name no profile act on this one.
	Default bool   `json:"default"`
	State   string `json:"state"`
	Problem string `json:"problem,omitempty"` // what is wrong with its manifest
	// Bundles and Dependencies are numbers; 0 where the manifest cannot be read.
	Bundles      int `json:"bundles"`
	Dependencies int `json:"dependencies"`
	// Changed is when the newest generation was saved; nil without a history.
	Changed *time.Time `json:"changed"`
}

// ListProfiles lists the profiles, and those that are made when they are first
// used, sorted by name: the shipped ones and current, which is the one that
// counts where none is named. With removed it lists also the profiles that can be
// brought back. Nothing is changed,
// and what is unfinished stays so.
func ListProfiles(env Env, current string, removed bool) (*ProfileList, error) {
	names, err := env.Home.Profiles()
	if err != nil {
		return nil, err
	}
	list := &ProfileList{Home: env.Home.Dir(), Profiles: []ProfileInfo{}}
	if chosen, ok, err := profile.Chosen(env.Home); err != nil {
		list.Warnings = append(list.Warnings, err.Error())
	} else if ok {
		list.Chosen = chosen.String()
	}
	for _, name := range names {
		list.Profiles = append(list.Profiles, env.profileInfo(name))
	}
	unmade := profile.Templates()
	if !slices.Contains(unmade, current) {
		unmade = append(unmade, current)
	}
	for _, text := range unmade {
		name, err := profile.ParseName(text)
		if err != nil || slices.Contains(names, name) {
			continue
		}
		tmpl := profile.ForName(name)
		list.Profiles = append(list.Profiles, ProfileInfo{
			Name: text, Dir: env.Home.ProfileDir(name), State: ProfileNotMade, Bundles: len(tmpl.Bundles()),
		})
	}
	gone, err := env.removedProfiles(names)
	if err != nil {
		return nil, err
	}
	if list.Removed = len(gone); removed {
		list.Profiles = append(list.Profiles, gone...)
	}
	for i := range list.Profiles {
		p := &list.Profiles[i]
		p.Default = p.Name == current && p.State != ProfileRemoved
	}
	slices.SortStableFunc(list.Profiles, func(a, b ProfileInfo) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// profileInfo looks at a profile that has a directory.
func (env Env) profileInfo(name profile.Name) ProfileInfo {
	info := ProfileInfo{Name: name.String(), Dir: env.Home.ProfileDir(name), State: ProfileOK, Changed: env.lastChange(name)}
	p, err := profile.Read(env.Home, name)
	if missing, ok := errors.AsType[*profile.MissingError](err); ok && missing.Left {
		info.State = ProfileUnmanaged
	} else if err != nil {
		info.State, info.Problem = ProfileBroken, err.Error()
	} else {
		info.Bundles, info.Dependencies = len(p.Manifest.Bundles()), len(dependenciesOf(p.Manifest))
	}
	if unfinished(env.Home.Place(name)) {
		info.State = ProfileUnfinished
	}
	return info
}

// unfinished says that a process died while it changed the profile, or changes
// it right now.
func unfinished(place staging.Place) bool {
	_, err := os.Lstat(filepath.Join(place.State, "journal"))
	return err == nil
}

// removedProfiles are the profiles that are not there and of which a generation
// or a directory was kept.
func (env Env) removedProfiles(there []profile.Name) ([]ProfileInfo, error) {
	states, err := env.Home.States()
	if err != nil {
		return nil, err
	}
	var list []ProfileInfo
	for _, name := range states {
		if !slices.Contains(there, name) && env.Home.Kept(name) {
			list = append(list, ProfileInfo{
				Name: name.String(), Dir: env.Home.ProfileDir(name), State: ProfileRemoved, Changed: env.lastChange(name),
			})
		}
	}
	return list, nil
}

// lastChange is when the newest generation was saved, nil where there is none.
func (env Env) lastChange(name profile.Name) *time.Time {
	newest, _ := env.Home.Place(name).History().Newest() // damaged ones are told of by the history
	if newest == nil {
		return nil
	}
	return &newest.Saved
}

// dependenciesOf is all dependencies of a manifest.
func dependenciesOf(m *profile.Manifest) []profile.Dependency {
	var all []profile.Dependency
	for _, kind := range dependencyKinds {
		all = append(all, m.Dependencies(kind)...)
	}
	return all
}
