package action

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dsh/internal/agentplugin"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// PluginData is what an Agent Plugin that is not in the profile any more left.
type PluginData struct {
	Plugin  string `json:"plugin"`
	Dir     string `json:"dir"`
	Deleted bool   `json:"deleted"`
}

// leftData is the data that an Agent Plugin of a profile left, nil if there is
// none. With purge it is deleted. Data of one that is still there is not touched.
func (env Env) leftData(name profile.Name, plugin string, purge bool) (*PluginData, error) {
	if _, err := agentplugin.ParseName(plugin); err != nil {
		return nil, nil // no Agent Plugin has that name
	}
	if p, err := profile.Read(env.Home, name); err == nil {
		if _, _, depends := p.Manifest.Dependency(plugin); depends {
			return nil, nil
		}
	}
	dir := filepath.Join(env.Home.PluginDataDir(name), plugin)
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if !purge {
		if entries, err := os.ReadDir(dir); err == nil && len(entries) == 0 {
			return nil, nil // as it was made: it never wrote any
		}
		return &PluginData{plugin, dir, false}, nil
	}
	if err := staging.RemoveAll(dir); err != nil {
		return nil, fault.WithClass(fault.Environment, fmt.Errorf("deleting the data of %s: %w", plugin, err))
	}
	_ = staging.OS.Remove(filepath.Dir(dir)) // where nothing else is in it
	return &PluginData{plugin, dir, true}, nil
}

// movePluginData gives the data of a profile's Agent Plugins to the profile's new
// name. Data that an earlier profile of that name left is not mixed with it, nor
// deleted: what is there already stays, and the other stays where it was.
func (env Env) movePluginData(from, to profile.Name) (warnings []string) {
	old, now := env.Home.Path("plugin-data", from.String()), env.Home.PluginDataDir(to)
	entries, err := os.ReadDir(old)
	if err != nil {
		return nil // there is none
	}
	err = staging.MkdirAll(now)
	for _, e := range entries {
		src, dst := filepath.Join(old, e.Name()), filepath.Join(now, e.Name())
		// Only an empty directory, as was made for the new name, gives way.
		_ = staging.OS.Remove(dst)
		if _, there := os.Lstat(dst); there == nil {
			warnings = append(warnings, fmt.Sprintf("the data of %s stays in %s, for %s is there already", e.Name(), src, dst))
			continue
		}
		if err == nil {
			err = staging.OS.Rename(src, dst)
		}
		if err != nil {
			warnings = append(warnings, fmt.Sprintf("the data of %s stays in %s: %v", e.Name(), src, err))
		}
	}
	_ = staging.OS.Remove(old)
	return warnings
}
