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
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/staging"
)

// AgentPluginCheck is what is wrong with a package of the Agent Plugins format.
type AgentPluginCheck struct {
	Dir         string                   `json:"dir"`  // "" where it was fetched for this
	From        string                   `json:"from"` // what was fetched, else ""
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

// CheckAgentPlugin looks for everything that is wrong with a package. What rejects
// or skips something is an error, the rest warnings. where is a directory, or what
// can be added to a profile: that is fetched, for this alone, as opts say, and
// nothing of it runs.
func CheckAgentPlugin(ctx context.Context, env Env, opts PluginOptions, where string, rules agentplugin.Options) (check *AgentPluginCheck, err error) {
	err = env.atAgentPlugin(ctx, opts, where, func(dir, from string) error {
		_, check, err = loadAgentPlugin(dir, from, rules)
		return err
	})
	return check, err
}

// atAgentPlugin calls work with the directory in which the files of a package are.
func (env Env) atAgentPlugin(ctx context.Context, opts PluginOptions, where string, work func(dir, from string) error) error {
	dir := env.inDir(where)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return work(dir, "")
	}
	spec, err := install.ParseSpec(where, env.Dir)
	if err != nil {
		return err
	}
	if spec.Kind == install.Link || spec.Kind == install.Folder {
		return work(spec.Place, "") // which says what is wrong with the place
	}
	err = env.fetched(ctx, opts, spec, work)
	if _, unknown := errors.AsType[*registry.NotFoundError](err); unknown {
		return fault.WithHint(err, "there is no folder %s either; ./ before a name says that it is one", dir)
	}
	return err
}

// fetched calls work with the content of a package, which lies among the system's
// temporary files meanwhile. It is of no profile, so only the settings of the user
// count.
func (env Env) fetched(ctx context.Context, opts PluginOptions, spec install.Spec, work func(dir, from string) error) (err error) {
	opts.DryRun = true
	temp, err := scratchIn(os.TempDir())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, temp.close()) }()
	client, err := env.client(opts, env.Home.Dir())
	if err != nil {
		return err
	}
	defer client.Close()
	policy, err := env.policy()
	if err != nil {
		return err
	}
	packages := store.OpenOver(filepath.Join(temp.dir, "over"), env.Home.StoreDir())
	defer func() { err = errors.Join(err, packages.Close()) }()
	limit(packages, policy)
	job := &install.Job{
		Dir: env.Dir, Files: env.Dir, DryRun: true, Offline: opts.Offline,
		Registry: client, Store: packages, Policy: policy, Events: opts.Events,
	}
	dir, from, err := job.Content(ctx, spec)
	if err != nil {
		return limited(policy, err)
	}
	return work(dir, from)
}

// InspectAgentPlugin says what of a package loads, which is where
// [CheckAgentPlugin] says. That nothing does is no error.
func InspectAgentPlugin(ctx context.Context, env Env, opts PluginOptions, where string, rules agentplugin.Options) (content *AgentPluginContent, err error) {
	err = env.atAgentPlugin(ctx, opts, where, func(dir, from string) error {
		p, check, err := loadAgentPlugin(dir, from, rules)
		if err == nil {
			content = agentPluginContent(p, check)
		}
		return err
	})
	return content, err
}

// agentPluginContent is what a plugin brings, nil where it is rejected.
func agentPluginContent(p *agentplugin.Plugin, check *AgentPluginCheck) *AgentPluginContent {
	content := &AgentPluginContent{AgentPluginCheck: *check, MCP: string(agentplugin.MCPAbsent), Skills: []AgentPluginSkill{}, Servers: []AgentPluginServer{}}
	if p == nil {
		return content
	}
	content.Loads, content.MCP = true, string(p.MCP)
	content.Version, content.Description = p.Manifest.Version, p.Manifest.Description
	for _, s := range p.Skills {
		content.Skills = append(content.Skills, AgentPluginSkill{s.Name, s.Directory.String(), s.Description})
	}
	for _, s := range p.Servers {
		content.Servers = append(content.Servers, shownServer(s))
	}
	return content
}

// loadAgentPlugin is the plugin, nil where it is rejected, and what is wrong.
func loadAgentPlugin(dir, from string, rules agentplugin.Options) (p *agentplugin.Plugin, check *AgentPluginCheck, err error) {
	source, err := agentplugin.OpenDirectory(dir)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	p, found, err := agentplugin.Load(source, rules)
	if _, rejected := errors.AsType[*agentplugin.RejectedError](err); err != nil && !rejected {
		return nil, nil, err
	}
	check = &AgentPluginCheck{Dir: source.Path(), From: from, Diagnostics: found}
	if from != "" {
		check.Dir = ""
	}
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
