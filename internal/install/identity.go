package install

import (
	"cmp"
	"fmt"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/npmrange"
)

// OtherPackageError says that a content is another package than the lockfile, or a
// registry, says that it is. Rules of settings, of a policy and of approvals go by
// names, so that it is not taken for what it is called.
type OtherPackageError struct {
	Content store.Integrity
	Is      string // name@version of its package.json; "" where that has no name
	hint    string
}

func (e *OtherPackageError) Error() string {
	is := cmp.Or(e.Is, "a package without a name")
	return fmt.Sprintf("its content is %s, as its own package.json says\n\tcontent: %s", is, e.Content)
}

// Class implements fault.Classed.
func (e *OtherPackageError) Class() fault.Class { return fault.Package }

// Hint implements fault.Hinted.
func (e *OtherPackageError) Hint() string { return e.hint }

// holdNames refuses a content that is another package than a lock says of one of
// its places.
func (j *Job) holdNames(lock *Lock, n *piece, entry store.Entry) error {
	name, version := entry.Package()
	if n.located.AgentPlugin && n.located.Origin.Kind != Registry {
		if p, _, err := loadPlugin(entry.Dir()); err == nil {
			name, version = p.Manifest.Name.String(), pluginVersion(p.Manifest.Version)
		} else {
			name, version = "", ""
		}
	}
	for _, at := range n.places {
		if isNamed(lock.Nodes[at].Package, name, version) {
			continue
		}
		is := name
		if name != "" {
			is += "@" + cmp.Or(version, noVersion)
		}
		err := &OtherPackageError{Content: entry.Integrity, Is: is}
		if old, had := j.locked.at(at); had && old.Integrity == entry.Integrity {
			err.hint = fmt.Sprintf("%s is not what dsh wrote: have a look at who changed it; %s asks anew what the packages are", LockName, j.command("update"))
		}
		return err
	}
	return nil
}

// isNamed reports whether a package.json with a name and a version can be of a
// package. Registries write both their own way: versions without what does not
// matter of them, and names of long ago in lower case.
func isNamed(pkg *Package, name, version string) bool {
	if !strings.EqualFold(pkg.Name, name) {
		return false
	}
	if cmp.Or(version, noVersion) == pkg.Version {
		return true
	}
	is, err := npmrange.ParseVersion(strings.TrimSpace(version))
	if err != nil {
		return false
	}
	want, err := npmrange.ParseVersion(pkg.Version)
	return err == nil && is.Compare(want) == 0
}
