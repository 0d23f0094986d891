package action

import (
	"dsh/internal/compose"
	"dsh/internal/install"
	"dsh/internal/profile"
)

// mcpClient is the plugin of a row that is an MCP server.
const mcpClient = "@deepseek-ai/dsh-mcp-client"

// serverNames is the names of MCP servers that rows of a profile have, without
// those of its Agent Plugins. Of a profile that does not compose nothing is known.
func (env Env) serverNames(p *profile.Profile) map[string]bool {
	names := map[string]bool{}
	c, err := withoutProject(env, p, nil)
	if err != nil || c.Tree == nil {
		return names
	}
	for row := range c.Tree.All() {
		if id, _ := row.ID().(string); row.Name() != mcpClient || install.IsPluginRow(id) {
			continue
		}
		if config, ok := row.Config().(*compose.Map); ok {
			if name, _ := config.Get("serverName"); name != nil {
				if text, ok := name.(string); ok {
					names[text] = true
				}
			}
		}
	}
	return names
}
