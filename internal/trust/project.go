package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

const (
	layerDir  = ".dsh"
	patchName = "cordis.patch.yml"
)

// Project is a directory with a project layer.
type Project struct {
	Dir   string // the real path: absolute, without links
	Patch string // Dir/.dsh/cordis.patch.yml, which may be a link or unreadable
}

// FindProject looks for a project in dir and upwards, along its real path, and
// returns the nearest. The search ends at a repository root, which has .git as
// a file or a directory and may itself be the project. It also ends where it
// meets userHome or a directory above that, neither of which is ever a project,
// and at the root of the filesystem. dshHome, under whatever name, is passed
// over, be it a .dsh or the directory that holds one.
//
// An empty userHome or dshHome is none, and neither has to exist. It is an
// error if dir is no directory.
func FindProject(dir, userHome, dshHome string) (Project, bool, error) {
	p, found, err := findProject(dir, userHome, dshHome)
	if err != nil {
		return Project{}, false, fmt.Errorf("looking for the project of %s: %w", dir, err)
	}
	return p, found, nil
}

func findProject(dir, userHome, dshHome string) (Project, bool, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return Project{}, false, err
	}
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Project{}, false, err
	}
	ends, err := upwards(userHome)
	if err != nil {
		return Project{}, false, err
	}
	for {
		info, err := os.Stat(at)
		if err != nil {
			return Project{}, false, err
		}
		if !info.IsDir() {
			return Project{}, false, errors.New("it is not a directory")
		}
		if slices.ContainsFunc(ends, func(end fs.FileInfo) bool { return os.SameFile(end, info) }) {
			return Project{}, false, nil
		}
		if hasLayer(at, info, dshHome) {
			return Project{Dir: at, Patch: filepath.Join(at, layerDir, patchName)}, true, nil
		}
		root, err := exists(filepath.Join(at, ".git"))
		if errors.Is(err, fs.ErrPermission) {
			root, err = true, nil // what may not be searched is where the search ends
		}
		if up := filepath.Dir(at); root || err != nil || up == at {
			return Project{}, false, err
		}
		at = filepath.Dir(at)
	}
}

// upwards is a directory and all above it, as far as they exist.
func upwards(dir string) ([]fs.FileInfo, error) {
	if dir == "" {
		return nil, nil
	}
	at, err := realPath(dir)
	if err != nil {
		return nil, err
	}
	var infos []fs.FileInfo
	for {
		// One that cannot be looked at cannot be met on the way up either.
		if info, err := os.Stat(at); err == nil {
			infos = append(infos, info)
		}
		up := filepath.Dir(at)
		if up == at {
			return infos, nil
		}
		at = up
	}
}

// hasLayer says whether dir holds a project layer. What cannot be looked at
// counts, so that whoever reads it can say why not, and only then.
func hasLayer(dir string, dirInfo fs.FileInfo, dshHome string) bool {
	folder := filepath.Join(dir, layerDir)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission): // dir itself may not be searched
		return false
	case err != nil:
		return true
	case !info.IsDir():
		return false
	}
	if home, err := os.Stat(dshHome); err == nil && (os.SameFile(info, home) || os.SameFile(dirInfo, home)) {
		return false
	}
	found, err := exists(filepath.Join(folder, patchName))
	return found || err != nil
}

// exists says whether anything is at path; a link counts, wherever it points.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// realPath is path made absolute and without links. Of a path that does not
// exist, the part that does is resolved.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	rest := ""
	for at := path; ; {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest), nil
		}
		up := filepath.Dir(at)
		if up == at {
			return path, nil
		}
		at, rest = up, filepath.Join(filepath.Base(at), rest)
	}
}
