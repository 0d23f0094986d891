// Package plugins is which plugins are compiled in, by the names that rows
// have for them, and what can be said of a tree before any of it starts.
//
// It starts nothing.
package plugins

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"dsh/internal/boot/host"
	"dsh/internal/boot/page"
	"dsh/internal/boot/plugins/agent"
	"dsh/internal/boot/plugins/credentials"
	"dsh/internal/boot/plugins/frontend"
	"dsh/internal/boot/plugins/hmr"
	"dsh/internal/boot/plugins/inventory"
	"dsh/internal/boot/plugins/mcpclient"
	"dsh/internal/boot/plugins/profileapi"
	"dsh/internal/boot/plugins/scope"
	"dsh/internal/boot/plugins/settings"
	"dsh/internal/boot/plugins/skill"
	"dsh/internal/boot/plugins/startup"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/plugins/webruntime"
	"dsh/internal/boot/plugins/webserver"
	"dsh/internal/compose"
)

// table is made when it is first asked for: most commands never do.
var table = sync.OnceValue(func() map[string]host.Plugin {
	t := map[string]host.Plugin{
		agent.CompactionName:  agent.CompactionPlugin,
		agent.ModelName:       agent.ModelPlugin,
		agent.PersistenceName: agent.PersistencePlugin,
		agent.SessionName:     agent.SessionPlugin,
		credentials.Name:      credentials.Plugin,
		frontend.Name:         frontend.New(page.Files),
		hmr.Name:              hmr.Plugin,
		inventory.Name:        inventory.Plugin,
		profileapi.Name:       profileapi.Plugin,
		mcpclient.Name:        mcpclient.Plugin,
		scope.Name:            scope.Plugin,
		settings.Name:         settings.Plugin,
		skill.Name:            skill.Plugin,
		skill.FilesystemName:  skill.FilesystemPlugin,
		tools.Name:            tools.Plugin,
		webruntime.Name:       webruntime.New(webruntime.OpenBrowser),
		webserver.Name:        webserver.Plugin,
	}
	for _, app := range startup.Apps() {
		t[app.Name] = app.Plugin()
	}
	return t
})

// Lookup is the plugin that is compiled in under a name.
func Lookup(name string) (host.Plugin, bool) {
	p, ok := table()[name]
	return p, ok
}

// Names are the names of the plugins that are compiled in, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table())) }

// agents are the plugins that run an agent, by what they do.
var agents = map[string]string{
	"@deepseek-ai/dsh-headless":           "gives an agent its task",
	"@deepseek-ai/dsh-sdk-jsonrpc-server": "lets a program drive an agent",
	"@deepseek-ai/dsh-acp":                "lets an editor drive an agent",
}

// NeedsNode says whether a row of that name runs in the Node.js harness alone,
// and why. It is not to be asked about names of packages that bring an
// executable, which it does not know.
func NeedsNode(name string) (why string, needs bool) {
	if name == compose.GroupPlugin || name == compose.IncludePlugin {
		return "", false
	}
	if _, ok := Lookup(name); ok {
		return "", false
	}
	if does, ok := agents[name]; ok {
		return fmt.Sprintf("it %s, and agents run in the Node.js harness", does), true
	}
	return "it is a plugin of the Node.js harness", true
}

// ParseCommandLine lets the start-up rows of a tree read the arguments of the
// app, before anything starts: nil if all can go on, else what the first of
// them has to say. A tree without such a row ignores its arguments.
func ParseCommandLine(tree *compose.Tree, args []string) *startup.Exit {
	apps := startup.Apps()
	// Whether a row runs that an expression switches is known when it is mounted;
	// then it reads its command line itself.
	for row := range tree.Enabled(func(compose.Row, compose.Expr) bool { return true }) {
		if at := slices.IndexFunc(apps, func(a startup.App) bool { return a.Name == row.Name() }); at >= 0 {
			if _, exit := apps[at].Parse(row.Config(), args); exit != nil {
				return exit
			}
		}
	}
	return nil
}
