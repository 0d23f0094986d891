package profile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"dsh/internal/staging"
)

// Home is the directory that holds everything dsh keeps for one user. Its
// methods name the places in it. Only those touch the disk that follow links or list
// what is there.
type Home struct{ dir string }

// ResolveHome finds the home as the reference launcher does: explicit when it
// is not blank, else DSH_HOME when it is not blank, else ~/.dsh. A leading ~,
// ~/ or ~\ is the user's home directory, and the result is absolute.
func ResolveHome(explicit string, getenv func(string) string) (Home, error) {
	chosen := "~/.dsh"
	for _, candidate := range []string{explicit, getenv("DSH_HOME")} {
		if strings.TrimSpace(candidate) != "" {
			chosen = candidate
			break
		}
	}
	if rest, tilde := cutTilde(chosen); tilde {
		user, err := UserHome(getenv)
		if err != nil {
			return Home{}, fmt.Errorf("finding the dsh home %q: %w", chosen, err)
		}
		chosen = filepath.Join(user, rest)
	}
	dir, err := filepath.Abs(chosen)
	if err != nil {
		return Home{}, fmt.Errorf("finding the dsh home %q: %w", chosen, err)
	}
	return Home{dir}, nil
}

// cutTilde splits a leading ~ off. Both separators count on every system, as
// in the reference; "~user" is an ordinary name.
func cutTilde(path string) (rest string, ok bool) {
	if path == "~" {
		return "", true
	}
	if strings.HasPrefix(path, "~/") || strings.HasPrefix(path, `~\`) {
		return path[2:], true
	}
	return "", false
}

// UserHome is the home directory of the user.
func UserHome(getenv func(string) string) (string, error) {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if dir := getenv(name); dir != "" {
		return dir, nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", errors.New("neither DSH_HOME nor " + name + " is set")
	}
	return dir, nil
}

// Dir is the home itself, absolute.
func (h Home) Dir() string { return h.dir }

// Place is where a profile and its state are, for transactions over it. A name that
// is a link to another profile of the home has the state of that one: there is one
// lock, one journal and one history for a directory.
func (h Home) Place(name Name) staging.Place {
	return staging.Place{Dir: h.ProfileDir(name), State: h.StateDir(h.Real(name)), Derived: []string{"node_modules", "agent-plugins", rootFile}}
}

// PluginDataDir holds the data of a profile's Agent Plugins, a directory for each.
// It is no part of the profile.
func (h Home) PluginDataDir(name Name) string { return h.Path("plugin-data", h.Real(name).text) }

// Real is the name of the profile of this home to which a name leads by links, the
// name itself where it is no link to one.
func (h Home) Real(name Name) Name {
	profiles, err := filepath.EvalSymlinks(h.ProfilesDir())
	if err != nil {
		return name // there is none
	}
	const deepest = 40 // as Linux
	path := filepath.Join(profiles, name.text)
	for range deepest {
		target, err := os.Readlink(path)
		if err != nil {
			return name // the end
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		dir, err := filepath.EvalSymlinks(filepath.Dir(target))
		if err != nil {
			return name
		}
		path = filepath.Join(dir, filepath.Base(target))
		if other, err := ParseName(filepath.Base(path)); err == nil && dir == profiles {
			name = other
		}
	}
	return name // in a circle
}

// HistoryDir holds the generations of the home's own layer.
func (h Home) HistoryDir() string { return h.Path("generations") }

// Profiles are the directories that are profiles or could become some, sorted by
// name. A home without any is no error.
func (h Home) Profiles() ([]Name, error) { return namesIn(h.ProfilesDir()) }

// States are the names of the profiles, also of removed ones, of which dsh
// remembers something.
func (h Home) States() ([]Name, error) { return namesIn(h.Path("state")) }

// Kept says whether something was kept of a profile, from which it can be made
// again when it is gone: a generation, or its whole directory.
func (h Home) Kept(name Name) bool {
	for _, pattern := range []string{"generations/*.tar.gz", "replaced-*"} {
		dir, pattern := filepath.Split(filepath.FromSlash(pattern))
		entries, err := os.ReadDir(filepath.Join(h.StateDir(name), dir))
		if err != nil {
			continue // then nothing of it can be used
		}
		for _, entry := range entries {
			if ok, _ := filepath.Match(pattern, entry.Name()); ok {
				return true
			}
		}
	}
	return false
}

// namesIn are the directories in dir, and links to some, that can be called
// profiles. A link to what is not there is one: that may come back. Names of
// temporary files are not among them.
func namesIn(dir string) ([]Name, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for profiles: %w", err)
	}
	var names []Name
	for _, entry := range entries {
		name, err := ParseName(entry.Name())
		if err != nil || strings.HasPrefix(name.text, ".dsh-tmp-") {
			continue
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			info, err := os.Stat(filepath.Join(dir, entry.Name()))
			if err == nil && !info.IsDir() {
				continue
			}
		} else if !entry.IsDir() {
			continue
		}
		names = append(names, name)
	}
	return names, nil
}

// Path is a place under the home, as dshHomePath gives it to configuration.
func (h Home) Path(elem ...string) string {
	return filepath.Join(append([]string{h.dir}, elem...)...)
}

// PatchPath is the user's patch layer for every profile. It may not exist.
func (h Home) PatchPath() string { return h.Path("cordis.patch.yml") }

// ProfilesDir holds one directory for each profile, and the staging and
// backup directories of a replacement while it runs.
func (h Home) ProfilesDir() string { return h.Path("profiles") }

// ProfileDir is the directory of one profile.
func (h Home) ProfileDir(name Name) string { return h.Path("profiles", name.text) }

// StoreDir holds every package version once, shared by all profiles.
func (h Home) StoreDir() string { return h.Path("store", "v1") }

// StateDir is what dsh remembers about one profile: the journal, the lock
// and replaced profiles. It is outside the profile so that a profile can be
// copied as it is.
func (h Home) StateDir(name Name) string { return h.Path("state", name.text) }
