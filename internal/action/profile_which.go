package action

import (
	"fmt"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// Which is the home and the profile that a command line means, and why.
type Which struct {
	Home    WhichHome    `json:"home"`
	Profile WhichProfile `json:"profile"`
	// Other is a home that commands do not use and that has profiles in it, ""
	// for none.
	Other    string   `json:"otherHome"`
	Warnings []string `json:"-"`
}

// WhichHome is the home of dsh.
type WhichHome struct {
	Dir    string `json:"dir"`
	Source string `json:"source"` // $DSH_HOME, or "the default"
}

// WhichProfile is a profile.
type WhichProfile struct {
	Name   string `json:"name"`
	Dir    string `json:"dir"`
	Source string `json:"source"` // what named it
	Exists bool   `json:"exists"`
	// Made says what a command that needs a profile would make of one that does
	// not exist: the name of a template, or "base"; "" where it exists.
	Made string `json:"made"`
}

// WhichProfileIs says which home and which profile commands use. source is what
// named the profile.
func WhichProfileIs(env Env, name profile.Name, source string) (*Which, error) {
	w := &Which{
		Home:    WhichHome{Dir: env.Home.Dir(), Source: "the default"},
		Profile: WhichProfile{Name: name.String(), Dir: env.Home.ProfileDir(name), Source: source},
	}
	if strings.TrimSpace(env.Getenv("DSH_HOME")) != "" {
		w.Home.Source = "$DSH_HOME"
	}
	if w.Profile.Exists = exists(w.Profile.Dir); !w.Profile.Exists {
		w.Profile.Made = "base"
		if _, err := profile.LookupTemplate(name.String()); err == nil {
			w.Profile.Made = name.String()
		}
	}
	if err := w.others(env); err != nil {
		return nil, err
	}
	return w, nil
}

// others looks for what may be meant and is not used.
func (w *Which) others(env Env) error {
	if usual := filepath.Join(env.userHome(), ".dsh"); env.userHome() != "" && !sameDir(usual, w.Home.Dir) {
		home, err := profile.ResolveHome(usual, env.Getenv)
		if err != nil {
			return err
		}
		names, err := home.Profiles()
		if err == nil && len(names) > 0 {
			w.Other = home.Dir()
			w.Warnings = append(w.Warnings, fmt.Sprintf("there is another home with profiles in it (%s), which is not used while DSH_HOME names %s: %s",
				listed(names), w.Home.Dir, w.Other))
		}
	}
	chosen, ok, err := profile.Chosen(env.Home)
	switch {
	case err != nil:
		w.Warnings = append(w.Warnings, fmt.Sprintf("%v; %s", err, fault.Hint(err)))
	case ok && chosen.String() != w.Profile.Name:
		w.Warnings = append(w.Warnings, fmt.Sprintf("dsh profile use chose %s, and %s counts more", chosen, w.Profile.Source))
	}
	return nil
}

// sameDir says whether two paths lead to one directory.
func sameDir(a, b string) bool {
	realA, errA := filepath.EvalSymlinks(a)
	realB, errB := filepath.EvalSymlinks(b)
	return a == b || errA == nil && errB == nil && realA == realB
}

// listed is some names in one line.
func listed(names []profile.Name) string {
	var texts []string
	for i, name := range names {
		if i == 5 {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, name.String())
	}
	return strings.Join(texts, ", ")
}

// ChooseProfile makes a profile the one that commands act on which name none,
// and reports whether it was another.
func ChooseProfile(env Env, name profile.Name) (changed bool, err error) {
	if profile.IsDesktop(name) {
		return false, fault.Errorf(fault.Other, "profile %q is managed exclusively by the Electron application", name)
	}
	if _, shipped := profile.LookupTemplate(name.String()); shipped != nil { // else it is made when it is first used
		if err := env.there(name); err != nil {
			return false, err
		}
	}
	// A choice that cannot be read is one to be replaced.
	if chosen, ok, err := profile.Chosen(env.Home); err == nil && ok && chosen == name {
		return false, nil
	}
	return true, env.unwritable(profile.Choose(env.Home, name))
}

// UnchooseProfile takes the choice back, and reports whether there was one.
func UnchooseProfile(env Env) (bool, error) {
	was, err := profile.Unchoose(env.Home)
	return was, env.unwritable(err)
}
