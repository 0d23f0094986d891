package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"dsh/internal/agentplugin"
	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/staging"
)

// AgentPluginCheck is what is wrong with a package of the Agent Plugins format.
type AgentPluginCheck struct {
	Dir         string                   `json:"dir"`
	Name        string                   `json:"name"` // "" where there is no plugin
	Spec        string                   `json:"spec"` // the version that it targets
	Diagnostics []agentplugin.Diagnostic `json:"diagnostics"`
	Counts      CheckCounts              `json:"counts"`
}

// AgentPluginContent is what a package brings besides.
type AgentPluginContent struct {
	AgentPluginCheck
	Loads       bool                `json:"loads"`
	Version     string              `json:"version"`
	Description string              `json:"description"`
	Skills      []AgentPluginSkill  `json:"skills"`
	MCP         string              `json:"mcp"` // absent, configured, disabled
	Servers     []AgentPluginServer `json:"servers"`
}

// AgentPluginSkill is a skill that loads.
type AgentPluginSkill struct {
	Name        string `json:"name"`
	Path        string `json:"path"` // in the package
	Description string `json:"description"`
}

// AgentPluginServer is a server that loads, as it is written. Values of variables
// and headers, and queries of addresses, are left out: they may be secret.
type AgentPluginServer struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Command string   `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	Env     []string `json:"env,omitempty"` // names
	Cwd     string   `json:"cwd,omitempty"`
	URL     string   `json:"url,omitempty"`
	Headers []string `json:"headers,omitempty"` // names
}

// CheckAgentPlugin looks for everything that is wrong with the package in a
// directory. What rejects or skips something is an error, the rest warnings.
func CheckAgentPlugin(env Env, dir string, rules agentplugin.Options) (*AgentPluginCheck, error) {
	_, check, err := loadAgentPlugin(env, dir, rules)
	return check, err
}

// InspectAgentPlugin says what of the package in a directory loads. That nothing
// does is no error.
func InspectAgentPlugin(env Env, dir string, rules agentplugin.Options) (*AgentPluginContent, error) {
	p, check, err := loadAgentPlugin(env, dir, rules)
	if err != nil {
		return nil, err
	}
	content := &AgentPluginContent{AgentPluginCheck: *check, MCP: string(agentplugin.MCPAbsent), Skills: []AgentPluginSkill{}, Servers: []AgentPluginServer{}}
	if p == nil {
		return content, nil
	}
	content.Loads, content.MCP = true, string(p.MCP)
	content.Version, content.Description = p.Manifest.Version, p.Manifest.Description
	for _, s := range p.Skills {
		content.Skills = append(content.Skills, AgentPluginSkill{s.Name, s.Directory.String(), s.Description})
	}
	for _, s := range p.Servers {
		content.Servers = append(content.Servers, shownServer(s))
	}
	return content, nil
}

// loadAgentPlugin is the plugin, nil where it is rejected, and what is wrong.
func loadAgentPlugin(env Env, dir string, rules agentplugin.Options) (p *agentplugin.Plugin, check *AgentPluginCheck, err error) {
	source, err := agentplugin.OpenDirectory(env.inDir(dir))
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	p, found, err := agentplugin.Load(source, rules)
	if _, rejected := errors.AsType[*agentplugin.RejectedError](err); err != nil && !rejected {
		return nil, nil, err
	}
	check = &AgentPluginCheck{Dir: source.Path(), Diagnostics: found}
	if p != nil {
		check.Name, check.Spec = p.Manifest.Name.String(), string(p.Manifest.Spec)
	}
	for i, d := range found {
		found[i].Place, found[i].Message = withoutSecrets(d.Place), withoutSecrets(d.Message)
		if d.Effect == agentplugin.Noted {
			check.Counts.Warnings++
		} else {
			check.Counts.Errors++
		}
	}
	return p, check, nil
}

// addressInText is an address among other words of an author.
var addressInText = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'\\]+`)

// withoutSecrets is a text without users, passwords and queries of the addresses in
// it.
func withoutSecrets(text string) string {
	return addressInText.ReplaceAllStringFunc(text, func(address string) string {
		if !strings.ContainsAny(address, "@?#") {
			return address
		}
		return registry.ShownAddress(address)
	})
}

func shownServer(s agentplugin.Server) AgentPluginServer {
	shown := AgentPluginServer{Name: withoutSecrets(s.Name()), Type: s.Type()}
	remote := func(r agentplugin.Remote) {
		shown.URL = registry.ShownAddress(r.URL.String())
		for _, h := range r.Headers {
			shown.Headers = append(shown.Headers, h.Name)
		}
	}
	switch s := s.(type) {
	case agentplugin.Stdio:
		shown.Command, shown.Cwd = withoutSecrets(s.Command.String()), withoutSecrets(s.Cwd.String())
		for _, arg := range s.Args {
			shown.Args = append(shown.Args, withoutSecrets(arg.String()))
		}
		for _, v := range s.Env {
			shown.Env = append(shown.Env, v.Name)
		}
	case agentplugin.StreamableHTTP:
		remote(s.Remote)
	case agentplugin.SSE:
		remote(s.Remote)
	}
	return shown
}

// NewAgentPlugin is a package that was made.
type NewAgentPlugin struct {
	Name  string   `json:"name"`
	Dir   string   `json:"dir"`
	Files []string `json:"files"` // in it
}

// CreateAgentPlugin makes the package of a new plugin: a folder of its name in
// parent, with a manifest, one skill, and no servers yet. What is there under the
// name, whatever it is, stays, and is an error.
func CreateAgentPlugin(ctx context.Context, env Env, name, parent string) (made *NewAgentPlugin, err error) {
	parsed, err := agentplugin.ParseName(name)
	if err != nil {
		return nil, fault.WithClass(fault.Other, err)
	}
	parent = env.inDir(parent)
	dir := filepath.Join(parent, parsed.String())
	taken := func() error {
		return fault.WithHint(fault.Errorf(fault.Other, "%s is there already, and stays as it is", dir),
			"to look at it: dsh agent-plugin check %s", fault.ShellWord(dir))
	}
	if _, err := os.Lstat(dir); err == nil {
		return nil, taken()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("making the plugin %s: %w", parsed, err)
	}
	files, err := newAgentPluginFiles(parsed)
	if err != nil {
		return nil, err
	}
	temp, remove, err := staging.TempDir(parent)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	made = &NewAgentPlugin{Name: parsed.String(), Dir: dir}
	for _, f := range files {
		at := filepath.Join(temp, filepath.FromSlash(f.name))
		if err := staging.MkdirAll(filepath.Dir(at)); err != nil {
			return nil, err
		}
		if err := staging.WriteFile(at, []byte(f.text), 0o644); err != nil {
			return nil, err
		}
		made.Files = append(made.Files, f.name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := staging.OS.RenameNew(temp, dir); errors.Is(err, fs.ErrExist) {
		return nil, taken()
	} else if err != nil {
		return nil, fmt.Errorf("making the plugin %s: %w", parsed, err)
	}
	return made, nil
}

type newFile struct{ name, text string }

func newAgentPluginFiles(name agentplugin.Name) ([]newFile, error) {
	skill := skillName(name)
	var manifest, mcp strings.Builder
	for to, document := range map[*strings.Builder]any{
		&manifest: struct {
			Schema      string `json:"$schema"`
			Name        string `json:"name"`
			Version     string `json:"version"`
			Description string `json:"description"`
		}{agentplugin.V1_0_0.PluginSchema(), name.String(), "0.1.0", "What " + name.String() + " is for."},
		&mcp: struct {
			Schema  string         `json:"$schema"`
			Servers map[string]any `json:"mcpServers"`
		}{agentplugin.V1_0_0.MCPSchema(), map[string]any{}},
	} {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(document); err != nil {
			return nil, err
		}
	}
	return []newFile{
		{"plugin.json", manifest.String()},
		{"mcp.json", mcp.String()},
		{"skills/" + skill + "/SKILL.md", "---\nname: " + skill + "\ndescription: \"Say here what the skill does, and when to use it.\"\n---\n\n# " + skill + "\n\nWrite here what to do, step by step.\n"},
	}, nil
}

// skillName is a name by the rules of Agent Skills, which know no periods and no
// two hyphens in a row.
func skillName(name agentplugin.Name) string {
	return strings.Join(strings.FieldsFunc(name.String(), func(r rune) bool { return r == '.' || r == '-' }), "-")
}
