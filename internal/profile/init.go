package profile

import (
	"fmt"
	"path/filepath"
	"slices"

	"dsh/internal/staging"
)

// The files of a profile that dsh makes.
const (
	manifestFile  = "package.json"
	patchFile     = "cordis.patch.yml"
	workspaceFile = "pnpm-workspace.yaml"
	rootFile      = "cordis.yml"
)

// filePerm is for files that hold no secret; the umask applies.
const filePerm = 0o644

const emptyPatch = `# Your own patch layer of this profile; it comes after the layers of all bundles.
# A YAML list: "- id: x" with the keys to set changes or disables row x, "- insert: [...]" adds rows.
# Values may be !!js expressions. Replace the [] below by your list.
[]
`

const workspace = `packages:
  - .

nodeLinker: hoisted
autoInstallPeers: false
`

const emptyRoot = `# The empty root of this profile's tree; dsh writes this file again when it differs.
# The rows come from the bundles, from cordis.patch.yml and from --patch files.
# To change something, edit cordis.patch.yml and not this file.
[]
`

// Init makes the files of a profile that are missing and never touches one
// that is there; created says that package.json was missing, which is what
// makes a directory a profile. Doing it twice changes nothing.
func Init(home Home, name Name, tmpl Template) (created bool, err error) {
	there, err := writeFiles(home.ProfileDir(name), name, tmpl)
	return err == nil && !slices.Contains(there, manifestFile), err
}

// Write makes the complete files of a fresh profile called name in dir, which
// is made and may be elsewhere than the profile will be, as for a replacement.
// A file of them that is there already stays and is an error.
func Write(dir string, name Name, tmpl Template) error {
	there, err := writeFiles(dir, name, tmpl)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("writing profile %s: %s already exists", quote(name.text), filepath.Join(dir, there[0]))
	}
	return err
}

// writeFiles makes the files that are missing and names those that are there.
func writeFiles(dir string, name Name, tmpl Template) (there []string, err error) {
	if err := staging.MkdirAll(dir); err != nil {
		return nil, fmt.Errorf("creating profile %s: %w", quote(name.text), err)
	}
	// The manifest comes last: a process that dies before it leaves a directory
	// that is no profile yet and is completed by the next one.
	for _, file := range tmpl.Files(name) {
		created, err := staging.CreateFile(filepath.Join(dir, file.Name), file.Data, filePerm)
		if err != nil {
			return nil, fmt.Errorf("creating profile %s: %w", quote(name.text), err)
		}
		if !created {
			there = append(there, file.Name)
		}
	}
	return there, nil
}

// File is one file of a fresh profile.
type File struct {
	Name string // in the profile's directory
	Data []byte
}

// Files are the complete files of a fresh profile called name.
func (t Template) Files(name Name) []File {
	return []File{{patchFile, []byte(emptyPatch)}, {workspaceFile, []byte(workspace)}, {manifestFile, t.manifest(name)}}
}
