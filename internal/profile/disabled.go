package profile

import (
	"slices"

	"github.com/tailscale/hujson"
)

// A bundle that is switched off is not in dsh.profile.bundles, so that every
// launcher leaves its layer out. Its place is remembered beside the list, in
// dsh.profile.disabledBundles: an object with the names of such bundles, and
// for each the name of the bundle that it stood behind, "" for the first.

// disabledKey is where switched-off bundles are remembered.
const disabledKey = "disabledBundles"

type disabled struct{ name, after string }

// BundlePlace is a bundle of a profile in its place.
type BundlePlace struct {
	Name     string
	Disabled bool // it is switched off, and not in the list
}

func (m *Manifest) readDisabled(profile hujson.Value) error {
	value, ok := find(profile, disabledKey)
	if !ok {
		return nil
	}
	if value.Value.Kind() != '{' {
		return m.errorAt(value.StartOffset, "dsh.profile."+disabledKey+" must be an object of bundle names")
	}
	for _, member := range members(value) {
		if member.Value.Value.Kind() != '"' {
			return m.errorAt(member.Value.StartOffset, "dsh.profile."+disabledKey+" must hold names of bundles")
		}
		name, after := literal(member.Name), literal(member.Value)
		if !slices.Contains(m.bundles, name) { // a listed one is on, whoever listed it
			m.off = append(m.off, disabled{name, after})
		}
	}
	return nil
}

// BundlePlaces is the bundles of the list, and between them those that are
// switched off. One whose neighbour is gone stands at the end.
func (m *Manifest) BundlePlaces() []BundlePlace {
	var places []BundlePlace
	for _, name := range m.bundles {
		places = append(places, BundlePlace{Name: name})
	}
	rest := slices.Clone(m.off)
	for moved := true; moved; {
		moved = false
		rest = slices.DeleteFunc(rest, func(d disabled) bool {
			at := slices.IndexFunc(places, func(p BundlePlace) bool { return p.Name == d.after })
			if at < 0 && d.after != "" {
				return false
			}
			places = slices.Insert(places, at+1, BundlePlace{d.name, true})
			moved = true
			return true
		})
	}
	for _, d := range rest {
		places = append(places, BundlePlace{d.name, true})
	}
	return places
}

// DisableBundle takes a bundle out of the list and remembers its place. It
// reports whether the bundle was listed; every mention of it goes.
func (m *Manifest) DisableBundle(name string) bool {
	places := m.BundlePlaces()
	at := slices.IndexFunc(places, func(p BundlePlace) bool { return p.Name == name && !p.Disabled })
	if at < 0 {
		return false
	}
	after := ""
	if at > 0 {
		after = places[at-1].Name
	}
	m.SetBundles(slices.DeleteFunc(m.Bundles(), func(b string) bool { return b == name }))
	profile := m.ensureProfile()
	m.ensureObject(profile, indexOf(members(profile), "bundles")+1, disabledKey)
	list, _ := find(m.profileSection(), disabledKey)
	m.insert(list, len(members(list)), name, string(hujson.String(after)))
	return true
}

// EnableBundle puts a bundle that was switched off back in its place. It
// reports whether the bundle was switched off.
func (m *Manifest) EnableBundle(name string) bool {
	var names []string
	found := false
	for _, p := range m.BundlePlaces() {
		if p.Disabled && p.Name == name {
			found = true
		}
		if !p.Disabled || p.Name == name {
			names = append(names, p.Name)
		}
	}
	if found {
		m.SetBundles(names)
	}
	return found
}

// keepDisabled forgets the switched-off bundles that keep does not want, and
// the whole record where none is left.
func (m *Manifest) keepDisabled(keep func(name string) bool) {
	for {
		list, ok := find(m.profileSection(), disabledKey)
		i := slices.IndexFunc(members(list), func(member hujson.ObjectMember) bool { return !keep(literal(member.Name)) })
		if !ok || i < 0 {
			return
		}
		profile := m.profileSection()
		if len(members(list)) > 1 || count(members(profile), disabledKey) > 1 {
			m.remove(list, i) // or a key of the same name would count instead
			continue
		}
		m.remove(profile, indexOf(members(profile), disabledKey))
	}
}
