//go:build external

package external

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAgentPluginThere adds an Agent Plugin here. The reference launcher composes the same tree of it, and pnpm keeps it.
func TestAgentPluginThere(t *testing.T) {
	m := newMachine(t)
	dir := filepath.Join(m.cwd, "tools")
	for name, text := range map[string]string{
		"plugin.json":         `{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "acme.tools", "version": "1.2.0"}`,
		"skills/one/SKILL.md": "---\nname: one\ndescription: Does one thing.\n---\n",
		"mcp.json": `{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": {
			"files": {"type": "stdio", "command": "./server", "args": ["--root=${PLUGIN_ROOT}", "a: b # c\n\u2028\u007f'\"\\"], "env": {"A": "${PLUGIN_DATA}/ä", "EMPTY": ""}},
			"old": {"type": "sse", "url": "https://example.com/sse"},
			"remote": {"type": "streamable-http", "url": "https://example.com/mcp", "headers": {"X-Key": "yes"}}}}`,
		"server": "#!/bin/sh\n",
	} {
		writeFile(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	m.dsh(t, "plugin", "--profile", "tooled", "add", "./tools")
	sameDumps(t, m, "an Agent Plugin", "tooled", "--dump-config")
	before := m.dsh(t, "--installation", programs.reference, "tooled", "--dump-config")
	wantWords(t, before, "agent-plugin:acme.tools:skills", "agent-plugin:acme.tools:mcp:files", "agent-plugin:acme.tools:mcp:old")
	m.runPnpm(t, "tooled", "install")
	m.runPnpm(t, "tooled", "add", "is-odd")
	sameDumps(t, m, "after pnpm", "tooled", "--dump-config")
	after := m.dsh(t, "--installation", programs.reference, "tooled", "--dump-config")
	if diff := cmp.Diff(before.stdout, after.stdout); diff != "" {
		t.Errorf("dump (-before +after pnpm)\n%s", diff)
	}
	m.dsh(t, "plugin", "--profile", "tooled", "install")
	m.dsh(t, "plugin", "--profile", "tooled", "remove", "acme.tools")
}
