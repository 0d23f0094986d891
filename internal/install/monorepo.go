package install

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/install/store"
)

// folderOfPackages is a folder as far as checkRoot looks at it.
type folderOfPackages interface {
	// Folders lists the folders with a file of that name, "" for the top, without what
	// stands in a node_modules.
	Folders(file string) []string
	Has(file string) bool
	// ReadFiles reads files that are there.
	ReadFiles(ctx context.Context, names []string) ([][]byte, error)
}

// below makes specs of the folders below what a spec names.
type below struct {
	spec Spec
	git  *GitSource // what it was found to mean, of kind Git
}

// at is the spec of a folder, in the form in which the user wrote the whole.
func (b below) at(folder string) string {
	if b.git != nil {
		g := *b.git
		g.Path = path.Join(g.Path, folder)
		return ShownSpec(g.String())
	}
	return ShownSpec(forced(b.spec) + addInside(b.spec.Place, path.Join(b.spec.Inside, folder)))
}

// maxLookedAt bounds how many folders of a repository are looked at for plugins.
const maxLookedAt = 500

// checkRoot finds out whether a folder, which a spec names, is what somebody
// would want to install. Where it is no plugin, but folders below it are, it is
// refused, with the commands that add those; a plain library is let in with a
// note that names them, "" for none.
func (j *Job) checkRoot(ctx context.Context, spec below, folder folderOfPackages) (note string, err error) {
	packages := folder.Folders("package.json")
	var root struct {
		Private    bool
		Workspaces json.RawMessage
	}
	has := folder.Has("package.json")
	if has {
		texts, err := folder.ReadFiles(ctx, []string{"package.json"})
		if err != nil {
			return "", err
		}
		m, err := manifest.Parse(texts[0])
		if err != nil || m.Layer {
			return "", nil // what is wrong with it is said by who reads it
		}
		_ = json.Unmarshal(texts[0], &root) // odd values count as none
	}
	plugins, err := pluginsBelow(ctx, folder, packages)
	if err != nil {
		return "", err
	}
	commands := make([]string, 0, len(plugins))
	for _, at := range plugins {
		commands = append(commands, j.command("add", spec.at(at)))
	}
	workspace := root.Private || len(root.Workspaces) > 0 || folder.Has("pnpm-workspace.yaml")
	switch {
	case len(plugins) > 0 && (!has || workspace):
		return "", &RootError{Spec: spec.at(""), Commands: commands}
	case len(plugins) > 0:
		return fmt.Sprintf("it is a library and no plugin; folders below it are plugins:\n\t%s", strings.Join(commands, "\n\t")), nil
	case !has:
		err := fault.Errorf(fault.Package, "%s holds no package.json, so it is no package", spec.at(""))
		for _, at := range packages {
			if at != "" && len(commands) < 8 {
				commands = append(commands, j.command("add", spec.at(at)))
			}
		}
		if len(commands) > 0 {
			err = fault.Errorf(fault.Package, "%w; folders below it do:\n\t%s", err, strings.Join(commands, "\n\t"))
		}
		return "", err
	}
	return "", nil
}

// pluginsBelow is the folders below a folder that declare a layer or are Agent
// Plugins.
func pluginsBelow(ctx context.Context, folder folderOfPackages, packages []string) ([]string, error) {
	bundles, err := foldersBelow(ctx, folder, packages, "package.json", func(text []byte) bool {
		m, err := manifest.Parse(text)
		return err == nil && m.Layer
	})
	if err != nil {
		return nil, err
	}
	others, err := foldersBelow(ctx, folder, folder.Folders(pluginFile), pluginFile, namesSchema)
	list := append(bundles, others...)
	slices.Sort(list)
	return slices.Compact(list), err
}

// foldersBelow is those of the folders below a folder in which a file says so.
func foldersBelow(ctx context.Context, folder folderOfPackages, dirs []string, file string, says func(text []byte) bool) ([]string, error) {
	var names, at []string
	for _, dir := range dirs {
		if dir != "" && len(names) < maxLookedAt {
			names, at = append(names, path.Join(dir, file)), append(at, dir)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	texts, err := folder.ReadFiles(ctx, names)
	if err != nil {
		return nil, err
	}
	var list []string
	for i, text := range texts {
		if says(text) {
			list = append(list, at[i])
		}
	}
	return list, nil
}

// RootError is a repository or an archive that is no plugin as a whole, while
// folders in it are.
type RootError struct {
	Spec     string
	Commands []string // that add the folders which are plugins
}

func (e *RootError) Error() string {
	return fmt.Sprintf("%s is no plugin as a whole; these folders of it are:\n\t%s", e.Spec, strings.Join(e.Commands, "\n\t"))
}

// Class implements fault.Classed.
func (e *RootError) Class() fault.Class { return fault.Package }

// Hint implements fault.Hinted.
func (e *RootError) Hint() string { return e.Commands[0] }

// entryFolder is the content of an archive as checkRoot looks at it.
type entryFolder struct{ store.Entry }

// Folders implements folderOfPackages.
func (e entryFolder) Folders(file string) []string {
	var list []string
	for _, f := range e.Files() {
		dir, base := path.Split(f.Path)
		if base == file && !strings.Contains("/"+dir, "/node_modules/") {
			list = append(list, strings.TrimSuffix(dir, "/"))
		}
	}
	return list
}

// ReadFiles implements folderOfPackages.
func (e entryFolder) ReadFiles(_ context.Context, names []string) ([][]byte, error) {
	var texts [][]byte
	for _, name := range names {
		text, err := readPackageText(name, path.Join(e.Dir(), name))
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// notesOf is a warning for each of the profile's own dependencies that this job
// has noted something of. Of Agent Plugins that stay as they are all was told when
// they came.
func (s *sources) notesOf(lock *Lock) []string {
	var list []string
	for _, name := range sortedKeys(lock.Wanted) {
		if n, ok := lock.at("node_modules/" + name); ok {
			if was, had := s.job.locked.at("node_modules/" + name); had && n.AgentPlugin && was.Integrity == n.Integrity {
				continue
			}
			if note, ok := s.notes.Load(n.describe()); ok {
				list = append(list, name+": "+note.(string))
			}
		}
	}
	return list
}
