package archive

import (
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/portable"
)

// Format is the version of the format that this package writes, and the only
// one that it reads.
const Format = 1

// headerName is the first member.
const headerName = "dsh-profile.json"

// The directories of an archive.
const (
	filesDir    = "profile/"
	packagesDir = "packages/"
)

// Limits bound what an archive may hold, which may come from anywhere. They are
// far above any real profile.
const (
	maxHeader   = 16 << 20 // bytes
	maxMembers  = 100_000
	maxFile     = 64 << 20  // bytes of a file of the profile
	maxFiles    = 256 << 20 // bytes of all of them
	maxPackage  = 1 << 30   // bytes of a package's archive
	maxPackages = 8 << 30   // bytes of all of them
	maxPath     = 1024
)

// Header is what the first member says.
type Header struct {
	Format  int      `json:"format"`
	Profile string   `json:"profile"` // its name where it was exported
	Version string   `json:"dsh"`     // of the program that wrote the archive
	Sources []Source `json:"sources"` // local folders and archives that travel along
	// LeftOut are files of the profile that did not come along, each with the
	// reason.
	LeftOut []LeftOut `json:"leftOut"`
	Members []Member  `json:"members"` // in the order in which they follow, which is that of their paths
}

// Source is a package that a profile had from its machine's disk.
type Source struct {
	Package string `json:"package"`
	Path    string `json:"path"` // in the profile, slash-separated
	Was     string `json:"was"`  // link, folder or archive
}

// LeftOut is a file that did not come along.
type LeftOut struct {
	Path   string `json:"path"` // in the profile, or behind the name of a package
	Reason string `json:"reason"`
}

// Member is one file of an archive.
type Member struct {
	Path       string `json:"path"` // in the archive
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"` // in lower-case hexadecimal digits
	Executable bool   `json:"executable,omitempty"`
	Private    bool   `json:"private,omitempty"` // for nobody but its owner
	// Integrity is a package's hash as lockfiles have it.
	Integrity string `json:"integrity,omitempty"`
}

// FilePath is the place in an archive of a file of the profile, which has the
// slash-separated path rel there.
func FilePath(rel string) string { return filesDir + rel }

// PackagePath is the place in an archive of a package's own archive.
func PackagePath(name string) string { return packagesDir + name }

// File is the slash-separated path that the member has in the profile, if it is
// a file of the profile.
func (m Member) File() (rel string, ok bool) { return strings.CutPrefix(m.Path, filesDir) }

// IsPackage says whether the member is a package's archive.
func (m Member) IsPackage() bool { return strings.HasPrefix(m.Path, packagesDir) }

// CheckFile says why a slash-separated path cannot be that of a file in a
// profile that travels: it leaves the profile, it is what a profile has of its
// own on each machine, or not every system can hold it.
func CheckFile(rel string) error {
	refuse := func(reason string) error {
		return fault.Errorf(fault.Policy, "the path %q %s", rel, reason)
	}
	switch {
	case len(rel) > maxPath:
		return refuse("is too long")
	case path.IsAbs(rel):
		return refuse("is absolute")
	}
	for part := range strings.SplitSeq(rel, "/") {
		switch name := portable.Fold(part); {
		case part == "" || part == "." || part == "..":
			return refuse("is no plain path inside the profile")
		case name == "node_modules" || name == ".git" || name == "cordis.yml":
			return refuse("is one that every machine has of its own")
		}
		if reason := portable.Unfit(part); reason != "" {
			return refuse("cannot be on every system: " + reason)
		}
	}
	return nil
}

// check says what is wrong with the list of members.
func (h *Header) check() error {
	if len(h.Members) > maxMembers {
		return fault.Errorf(fault.Policy, "it lists more than %d files", maxMembers)
	}
	taken := map[string]string{} // folded file or directory -> path
	isFile := map[string]bool{}
	var files, packages int64
	before := ""
	for _, m := range h.Members {
		if err := m.check(); err != nil {
			return err
		}
		if m.Path <= before {
			return fault.Errorf(fault.Package, "its list is not in order at %q", m.Path)
		}
		before = m.Path
		if m.IsPackage() {
			packages += m.Size
		} else {
			files += m.Size
		}
		folded := foldPath(m.Path)
		if other, ok := taken[folded]; ok {
			return fault.Errorf(fault.Policy, "it has %q and %q, which some systems cannot tell apart", other, m.Path)
		}
		taken[folded], isFile[folded] = m.Path, true
		for up := path.Dir(folded); up != "."; up = path.Dir(up) {
			if isFile[up] {
				return fault.Errorf(fault.Policy, "it has %q and %q, and a file cannot be a folder", taken[up], m.Path)
			}
			taken[up] = m.Path
		}
	}
	if files > maxFiles || packages > maxPackages {
		return fault.Errorf(fault.Policy, "it is larger than this program allows")
	}
	return nil
}

// foldPath maps all paths that some system takes for one to one.
func foldPath(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		parts[i] = portable.Fold(part)
	}
	return strings.Join(parts, "/")
}

func (m Member) check() error {
	largest := int64(maxFile)
	if rel, ok := m.File(); ok {
		if err := CheckFile(rel); err != nil {
			return err
		}
		if m.Integrity != "" {
			return fault.Errorf(fault.Package, "%q is no package, and has an integrity", m.Path)
		}
	} else if name, ok := strings.CutPrefix(m.Path, packagesDir); ok && !strings.Contains(name, "/") && CheckFile(name) == nil {
		largest = maxPackage
		if m.Integrity == "" {
			return fault.Errorf(fault.Package, "the package %q has no integrity", m.Path)
		}
	} else {
		return fault.Errorf(fault.Policy, "the path %q is none of a profile's archive", m.Path)
	}
	if m.Size < 0 || m.Size > largest {
		return fault.Errorf(fault.Policy, "%q is larger than this program allows, which is %d bytes", m.Path, largest)
	}
	if sum, err := hex.DecodeString(m.SHA256); err != nil || len(sum) != 32 || strings.ToLower(m.SHA256) != m.SHA256 {
		return fault.Errorf(fault.Package, "%q has no SHA-256", m.Path)
	}
	return nil
}

// FormatError is an archive of another format.
type FormatError struct {
	Format  int
	Version string // of the program that wrote it; "" when it does not say
}

func (e *FormatError) Error() string {
	by := ""
	if e.Version != "" {
		by = ", written by dsh " + e.Version
	}
	return fmt.Sprintf("it has format %d%s, and this dsh reads format %d", e.Format, by, Format)
}

// Class is Package.
func (e *FormatError) Class() fault.Class { return fault.Package }
