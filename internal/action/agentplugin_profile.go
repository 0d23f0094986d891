package action

import (
	"context"
	"path/filepath"

	"dsh/internal/agentplugin"
	"dsh/internal/install"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// AgentPlugin is one that a profile has.
type AgentPlugin struct {
	Name        string                   // under which it is installed
	Dir         string                   // PLUGIN_ROOT: absolute, without links on the way
	Data        string                   // PLUGIN_DATA
	Source      string                   // as it was asked for, without what may be secret
	Plugin      *agentplugin.Plugin      // nil where it does not load any more; the diagnostics say why
	Diagnostics []agentplugin.Diagnostic // of its files as they are
}

// AgentPlugins is the Agent Plugins of a profile, by name, as they stand on the
// disk.
func AgentPlugins(ctx context.Context, env Env, name profile.Name) ([]AgentPlugin, error) {
	list, _, err := reading(ctx, env, name, func(v staging.View) ([]AgentPlugin, error) {
		if _, err := profile.ReadFrom(v.Path, env.Home, name); err != nil {
			return nil, err
		}
		dir, err := realDir(env.Home.ProfileDir(name))
		if err != nil {
			return nil, err
		}
		lock := readableLock(v.Path(filepath.Join(env.Home.ProfileDir(name), install.LockName)))
		list := []AgentPlugin{}
		for _, plugin := range lock.AgentPlugins() {
			_, from, _ := lock.AgentPlugin(plugin)
			p := AgentPlugin{
				Name: plugin, Dir: install.PluginRoot(dir, plugin),
				Data: filepath.Join(env.Home.PluginDataDir(name), plugin), Source: install.ShownSpec(from),
			}
			source, err := agentplugin.OpenDirectory(v.Path(p.Dir))
			if err != nil {
				list = append(list, p) // the profile's repair tells of it
				continue
			}
			p.Plugin, p.Diagnostics, _ = agentplugin.Load(source, agentplugin.Options{})
			_ = source.Close()
			list = append(list, p)
		}
		return list, nil
	})
	return list, err
}
