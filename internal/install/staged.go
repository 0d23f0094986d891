package install

import (
	"path/filepath"

	"dsh/internal/install/store"
)

// Staged is a package as it will be once a job is committed.
type Staged struct {
	Dir   string // where it will stand
	Files string // where its files are until then
}

// Staged finds a package of the profile's own node_modules as it will be. It is
// not ok for one that will not be there; Node.js then looks in the directories
// above the profile's.
func (r *Result) Staged(name string) (s Staged, ok bool) {
	if !ValidName(name) {
		return s, false
	}
	t, at := r.tree, "node_modules/"+name
	s.Dir = filepath.Join(t.dir, filepath.FromSlash(at))
	n, locked := t.lock.at(at)
	_, leaves := r.before.lock.at(at)
	switch {
	case locked && t.skipped[at]:
		return s, false
	case locked && n.AgentPlugin:
		s.Dir = nativePlace(t.dir, wrapperPlace(name))
		s.Files = t.filesAt(at)
	case locked && n.Origin.Kind == Link:
		s.Dir = nativePlace(t.dir, n.Origin.Place)
		s.Files = seenAt(t.dir, t.files, n.Origin.Place)
	case locked:
		s.Files = t.filesAt(at)
	case leaves || r.before.foreign != "":
		return s, false
	default:
		// Nobody's business but the one's who put it there.
		s.Files = filepath.Join(t.files, filepath.FromSlash(at))
	}
	return s, true
}

// Listed is the files of a package of the profile's own node_modules as it will be,
// where the store was asked for it and knows them; nil elsewhere.
func (r *Result) Listed(name string) []store.File {
	n, ok := r.tree.lock.at("node_modules/" + name)
	if !ok || n.Integrity.IsZero() {
		return nil
	}
	entry, ok := r.tree.entries[n.Integrity]
	if !ok {
		return nil
	}
	return entry.Files()
}

// Kept says whether the profile's lockfile had the package of a name before as
// it will be.
func (r *Result) Kept(name string) bool {
	at := "node_modules/" + name
	old, had := r.locked.at(at)
	now, has := r.tree.lock.at(at)
	return had && has && old.Integrity == now.Integrity && old.Origin == now.Origin
}
