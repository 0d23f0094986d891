package install

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dsh/internal/agentplugin"
	"dsh/internal/staging"
)

// AgentPluginsDir is the folder of a profile with the wrappers of its Agent
// Plugins, each a bundle that dsh makes: a package.json, a layer, and the plugin's
// files, untouched, in a folder of their own. It is derived from the lockfile as
// node_modules is, and is dsh's.
const AgentPluginsDir = "agent-plugins"

const (
	contentDir    = "plugin"           // of a wrapper: the plugin's files
	skillsDir     = "skills"           // of a wrapper: links to skills, where not all in the plugin's folder are any
	layerFile     = "cordis.patch.yml" // of a wrapper
	maxServerName = 32
)

// wrapperPlace is where the wrapper of an Agent Plugin stands, slash-separated and
// relative to the profile.
func wrapperPlace(name string) string { return path.Join(AgentPluginsDir, name) }

// PluginRoot is where the files of an Agent Plugin stand in the profile directory dir.
func PluginRoot(dir, name string) string {
	return filepath.Join(dir, AgentPluginsDir, name, contentDir)
}

// wrapped is what the package.json of a wrapper holds for the next one.
type wrapped struct {
	Integrity string            `json:"integrity"`
	Servers   map[string]string `json:"servers"` // serverName of each server
}

// readWrapped reads it from a wrapper's directory; ok is false where that is no
// wrapper.
func readWrapped(dir string) (w wrapped, ok bool) {
	text, err := os.ReadFile(filepath.Join(dir, "package.json"))
	if err != nil {
		return w, false
	}
	var m struct {
		DSH struct {
			AgentPlugin *wrapped `json:"agentPlugin"`
		} `json:"dsh"`
	}
	if err := json.Unmarshal(text, &m); err != nil || m.DSH.AgentPlugin == nil {
		return w, false
	}
	return *m.DSH.AgentPlugin, true
}

// wrapper is what dsh writes beside a plugin's files.
type wrapper struct {
	manifest, layer []byte
	skills          []string // entries of the plugin's skills that the wrapper links to; nil where the plugin's folder is right as it is
	warnings        []string
}

// wrapping is what a wrapper is derived from, but for the plugin.
type wrapping struct {
	name string // under which it is installed
	Located
	root, data string            // absolute
	servers    map[string]string // the serverName of each of its servers
}

// wrap derives a wrapper. Nothing in it depends on anything but w and the plugin,
// whose files are in dir.
func (w *wrapping) wrap(p *agentplugin.Plugin, dir string) (*wrapper, error) {
	made := &wrapper{}
	var m struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		Private bool   `json:"private"`
		DSH     struct {
			Bundle struct {
				Patch string `json:"patch"`
			} `json:"bundle"`
			AgentPlugin wrapped `json:"agentPlugin"`
		} `json:"dsh"`
	}
	m.Name, m.Version, m.Private = w.name, w.Version, true
	m.DSH.Bundle.Patch = "./" + layerFile
	m.DSH.AgentPlugin = wrapped{w.Integrity.String(), w.servers}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	made.manifest = append(text, '\n')
	made.skills, err = strayless(p, dir)
	if err != nil {
		return nil, err
	}
	made.layer, made.warnings, err = w.layer(p, made.skills != nil)
	return made, err
}

// strayless is the directories of the plugin's skills, where its folder has others
// from which a host would load skills that are none by the specification; nil
// where it has not.
func strayless(p *agentplugin.Plugin, dir string) ([]string, error) {
	if len(p.Skills) == 0 {
		return nil, nil
	}
	var own []string
	for _, s := range p.Skills {
		own = append(own, s.Directory.Base())
	}
	folder := filepath.Join(dir, "skills")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if slices.Contains(own, e.Name()) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(folder, e.Name(), "SKILL.md")); err == nil || strings.EqualFold(path.Ext(e.Name()), ".md") || e.Type()&fs.ModeSymlink != 0 {
			return own, nil
		}
	}
	return nil, nil
}

// rowID begins the ids of the rows of an Agent Plugin. No name of one has a colon.
func rowID(name string) string { return "agent-plugin:" + name }

// IsPluginRow reports whether a row has an id that dsh gives to rows of Agent
// Plugins.
func IsPluginRow(id string) bool { return strings.HasPrefix(id, rowID("")) }

// layer writes the rows: one for the skills, one for each server.
func (w *wrapping) layer(p *agentplugin.Plugin, links bool) (text []byte, warnings []string, err error) {
	y := &layerWriter{}
	y.line("# Made by dsh of the Agent Plugin %s, and again whenever that or its place changes: edits do not stay.", w.name)
	if len(p.Skills)+len(p.Servers) == 0 {
		y.line("[]")
		return y.out, nil, nil
	}
	y.line("- insert:")
	if len(p.Skills) > 0 {
		root := filepath.Join(w.root, "skills")
		if links {
			root = filepath.Join(filepath.Dir(w.root), skillsDir)
		}
		y.line("    - id: %s", yamlQuoted(rowID(w.name)+":skills"))
		y.line("      name: %s", yamlQuoted("@deepseek-ai/dsh-skill-filesystem"))
		y.line("      config:")
		y.line("        providerName: %s", yamlQuoted(rowID(w.name)))
		y.line("        includeDefaultRoots: false")
		y.line("        customSkillDirs:")
		y.line("          - %s", yamlQuoted(root))
	}
	ids := map[string]bool{}
	for _, s := range p.Servers {
		id := rowID(w.name) + ":mcp:" + serverID(s.Name(), ids)
		y.line("    - id: %s", yamlQuoted(id))
		y.line("      name: %s", yamlQuoted("@deepseek-ai/dsh-mcp-client"))
		if s.Type() == "sse" {
			// Only our host has this service, and only it speaks this transport.
			y.line(`      disabled: !!js "!ctx.get('dshHost')"`)
			warnings = append(warnings, fmt.Sprintf("the server %s speaks sse, which runs in dsh itself; under Node.js its row is disabled", s.Name()))
		}
		y.line("      config:")
		y.line("        serverName: %s", yamlQuoted(w.servers[s.Name()]))
		y.line("        transport: %s", s.Type())
		if err := w.server(y, s); err != nil {
			return nil, nil, err
		}
	}
	return y.out, warnings, nil
}

// server writes how one server is started or reached, with everything expanded.
func (w *wrapping) server(y *layerWriter, s agentplugin.Server) error {
	switch s := s.(type) {
	case agentplugin.Stdio:
		plan, err := s.Plan(agentplugin.Anchors{Root: w.root, Data: w.data}, nil, runtime.GOOS == "windows")
		if err != nil {
			return err
		}
		y.line("        command: %s", yamlQuoted(plan.Program))
		y.list("        ", "args", plan.Args)
		y.line("        env:")
		for _, entry := range plan.Env {
			name, value, _ := strings.Cut(entry, "=")
			y.line("          %s: %s", yamlQuoted(name), yamlQuoted(value))
		}
		y.line("        cwd: %s", yamlQuoted(plan.Dir))
	case agentplugin.StreamableHTTP:
		y.remote(s.Remote)
	case agentplugin.SSE:
		y.remote(s.Remote)
	}
	return nil
}

// layerWriter writes the part of YAML that layers of Agent Plugins need.
type layerWriter struct{ out []byte }

func (y *layerWriter) line(format string, args ...any) {
	y.out = append(fmt.Appendf(y.out, format, args...), '\n')
}

func (y *layerWriter) list(indent, key string, values []string) {
	if len(values) == 0 {
		return
	}
	y.line("%s%s:", indent, key)
	for _, v := range values {
		y.line("%s  - %s", indent, yamlQuoted(v))
	}
}

func (y *layerWriter) remote(r agentplugin.Remote) {
	y.line("        url: %s", yamlQuoted(r.URL.String()))
	if len(r.Headers) > 0 {
		y.line("        headers:")
		for _, h := range r.Headers {
			y.line("          %s: %s", yamlQuoted(h.Name), yamlQuoted(h.Value))
		}
	}
}

// yamlQuoted is a text as every reader of YAML takes it for that text.
func yamlQuoted(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffe || r == 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isNameOfServer reports whether a text can be a serverName.
func isNameOfServer(text string) bool {
	return text != "" && len(text) <= maxServerName && serverText(text) == text
}

// serverText is a text with everything replaced that may not be in a serverName.
func serverText(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, text)
}

// cutServerName is a name of at most max characters that tells what it was made of,
// and says so by a hash.
func cutServerName(text string, most int, of ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append(of, text), "\x00")))
	hash := hex.EncodeToString(sum[:4])
	stem := serverText(text)
	if room := most - len(hash) - 1; len(stem) > room {
		stem = stem[:room]
	}
	return stem + "-" + hash
}

// serverID is the part of a row's id that is a server's. Names of servers are any
// text, and ids are typed in commands.
func serverID(name string, taken map[string]bool) string {
	id := name
	if serverText(strings.ReplaceAll(name, ".", "-")) != strings.ReplaceAll(name, ".", "-") || len(name) > maxServerName || name == "" {
		id = cutServerName(name, maxServerName)
	}
	for taken[id] {
		id = cutServerName(id, maxServerName, name)
	}
	taken[id] = true
	return id
}

// nameServers gives each server of the plugins a serverName of its own: what it
// had, if nothing else has that now, else its own name where that is free, else a
// cut form with a hash. Who comes first in the list chooses first.
func nameServers(plugins []*wrapping, names map[*wrapping][]string, before map[*wrapping]map[string]string, taken map[string]bool) {
	taken = maps.Clone(taken)
	if taken == nil {
		taken = map[string]bool{}
	}
	for _, w := range plugins {
		w.servers = map[string]string{}
		for _, server := range names[w] {
			if had := before[w][server]; isNameOfServer(had) && !taken[had] {
				w.servers[server], taken[had] = had, true
			}
		}
	}
	for _, w := range plugins {
		for _, server := range names[w] {
			if w.servers[server] != "" {
				continue
			}
			name := server
			if !isNameOfServer(name) {
				name = cutServerName(server, maxServerName)
			}
			for taken[name] {
				name = cutServerName(server, maxServerName, w.name, name)
			}
			w.servers[server], taken[name] = name, true
		}
	}
}

// stageWrappers puts into the transaction what makes the wrappers of a profile
// those of the tree's lock. It returns how many change.
func (j *Job) stageWrappers(ctx context.Context, c *contents, t *tree) (changed int, err error) {
	places := t.plugins()
	if j.DryRun {
		// What is not in the store is not looked into.
		places = slices.DeleteFunc(places, func(at string) bool { _, known := t.entries[t.lock.Nodes[at].Integrity]; return !known })
	}
	remove, only := j.strayWrappers(places)
	if len(places) == 0 && j.DryRun {
		return 0, nil
	}
	if len(places) == 0 {
		if only && len(remove) > 0 {
			remove = []string{AgentPluginsDir}
		}
		for _, at := range remove {
			err = errors.Join(err, j.Tx.Remove(at))
		}
		return 0, err
	}
	before := map[*wrapping]map[string]string{}
	now := map[string]bool{} // places whose files stand
	list := make([]*wrapping, len(places))
	for i, at := range places {
		name := nameAt(at)
		w := &wrapping{name: name, Located: t.lock.Nodes[at], root: PluginRoot(j.Dir, name), data: filepath.Join(j.PluginData, name)}
		list[i] = w
		dir := filepath.Join(j.Files, AgentPluginsDir, name)
		had, ok := readWrapped(dir)
		before[w] = had.Servers
		info, err := os.Lstat(filepath.Join(dir, contentDir))
		now[at] = ok && had.Integrity == w.Integrity.String() && err == nil && info.IsDir() && !j.Check && !slices.Contains(j.Anew, at) && !t.damaged[at]
	}
	base, err := j.wrapperStage()
	if err != nil {
		return 0, err
	}
	if err := j.gather(ctx, c, t, t.pluginPieces(func(at string) bool { return !now[at] }), nil); err != nil {
		return 0, err
	}
	plugins := map[*wrapping]*agentplugin.Plugin{}
	servers := map[*wrapping][]string{}
	from := map[*wrapping]string{}
	for i, at := range places {
		w := list[i]
		from[w] = filepath.Join(j.Files, AgentPluginsDir, w.name, contentDir)
		if !now[at] {
			from[w] = t.entries[w.Integrity].Dir()
		}
		p, _, err := loadPlugin(from[w])
		if err != nil {
			return 0, within(w.describe(), err)
		}
		plugins[w] = p
		for _, s := range p.Servers {
			servers[w] = append(servers[w], s.Name())
		}
	}
	var taken map[string]bool
	if j.ServerNames != nil {
		taken = j.ServerNames()
	}
	nameServers(j.inLayerOrder(list), servers, before, taken)
	for i, at := range places {
		w := list[i]
		made, err := w.wrap(plugins[w], from[w])
		if err != nil {
			return 0, within(w.describe(), err)
		}
		if now[at] && made.stands(filepath.Join(j.Files, AgentPluginsDir, w.name)) {
			continue
		}
		staged := filepath.Join(base, AgentPluginsDir, w.name)
		if err := made.build(staged, t, at, from[w]); err != nil {
			return 0, fmt.Errorf("lay out %s: %w", wrapperPlace(w.name), err)
		}
		if !j.DryRun {
			if err := j.Tx.Replace(wrapperPlace(w.name), staged); err != nil {
				return 0, err
			}
		}
		if t.wrappers == nil {
			t.wrappers = map[string]string{}
		}
		t.wrappers[at] = staged
		for _, warning := range made.warnings {
			j.notes = append(j.notes, w.name+": "+warning)
		}
		if _, had := j.present.lock.at(at); had {
			changed++ // of one that comes, its link is counted
		}
	}
	if j.DryRun {
		return changed, nil
	}
	for _, at := range remove {
		if err := j.Tx.Remove(at); err != nil {
			return 0, err
		}
	}
	if j.PluginData != "" {
		j.Tx.Then(func() { makeData(list) })
	}
	return changed, nil
}

// wrapperStage is the directory in which wrappers are built.
func (j *Job) wrapperStage() (string, error) {
	if j.DryRun {
		return j.Store.TempDir() // it goes with the store of the dry run
	}
	return j.Tx.Stage(), nil
}

// plugins is the places of a tree with Agent Plugins, sorted.
func (t *tree) plugins() []string {
	var list []string
	for at, n := range t.lock.Nodes {
		if n.AgentPlugin && !t.isSkipped(at) {
			list = append(list, at)
		}
	}
	slices.Sort(list)
	return list
}

// pluginPieces is [tree.pieces] for the Agent Plugins.
func (t *tree) pluginPieces(wanted func(at string) bool) []*piece {
	var list []*piece
	for _, at := range t.plugins() {
		if wanted(at) {
			n := t.lock.Nodes[at]
			n.Optional = false // its link would lead nowhere
			list = append(list, &piece{places: []string{at}, located: n})
		}
	}
	return list
}

// inLayerOrder sorts wrappers as their layers are, and those that are none behind.
func (j *Job) inLayerOrder(list []*wrapping) []*wrapping {
	bundles := j.manifest.Bundles()
	rank := func(w *wrapping) int {
		if i := slices.Index(bundles, w.name); i >= 0 {
			return i
		}
		return len(bundles)
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b *wrapping) int { return rank(a) - rank(b) })
	return sorted
}

// strayWrappers is the wrappers that no place stands for and nothing in package.json
// depends on, whichever change left them. only says that there is nothing else in
// their folder.
func (j *Job) strayWrappers(places []string) (strays []string, only bool) {
	entries, _ := os.ReadDir(filepath.Join(j.Files, AgentPluginsDir)) // most profiles have none
	only = true
	for _, e := range entries {
		name := e.Name()
		wanted, _, depends := j.manifest.Dependency(name)
		if slices.Contains(places, "node_modules/"+name) || depends && wanted == wrapperSpec(name) {
			only = false
			continue
		}
		if _, ok := readWrapped(filepath.Join(j.Files, AgentPluginsDir, name)); !ok || !e.IsDir() {
			only = false
			continue
		}
		strays = append(strays, wrapperPlace(name))
	}
	return strays, only
}

// stands reports whether a wrapper's directory holds what dsh writes.
func (m *wrapper) stands(dir string) bool {
	for name, want := range map[string][]byte{"package.json": m.manifest, layerFile: m.layer} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != string(want) {
			return false
		}
	}
	entries, err := os.ReadDir(filepath.Join(dir, skillsDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || len(entries) != len(m.skills) {
		return false
	}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, skillsDir, e.Name()))
		if err != nil || !slices.Contains(m.skills, e.Name()) || target != skillTarget(e.Name()) {
			return false
		}
	}
	return true
}

// skillTarget is what the link to a skill holds.
func skillTarget(name string) string { return filepath.Join("..", contentDir, "skills", name) }

// build makes the directory of a wrapper. from is where the plugin's files are: in
// the store, or in the wrapper that was there.
func (m *wrapper) build(dir string, t *tree, at, from string) error {
	if err := errors.Join(staging.RemoveAll(dir), staging.MkdirAll(dir)); err != nil {
		return err
	}
	content := filepath.Join(dir, contentDir)
	var err error
	if entry, ok := t.entries[t.lock.Nodes[at].Integrity]; ok {
		err = entry.Link(content, t.linkMode(), nil)
	} else {
		_, err = staging.CopyTree(from, content)
	}
	if err != nil {
		return err
	}
	err = errors.Join(
		staging.WriteDerived(filepath.Join(dir, "package.json"), m.manifest, 0o644),
		staging.WriteDerived(filepath.Join(dir, layerFile), m.layer, 0o644),
	)
	if err != nil || m.skills == nil {
		return err
	}
	if err := staging.MkdirAll(filepath.Join(dir, skillsDir)); err != nil {
		return err
	}
	for _, name := range m.skills {
		if err := staging.OS.Symlink(skillTarget(name), filepath.Join(dir, skillsDir, name)); err != nil {
			return err
		}
	}
	return nil
}

// wrapperStands reports whether the wrapper of an Agent Plugin holds what the
// store has of it, and a layer for the place where it stands.
func (t *tree) wrapperStands(at string, checked bool) (bool, error) {
	n := t.lock.Nodes[at]
	dir := filepath.Join(t.files, filepath.FromSlash(wrapperPlace(nameAt(at))))
	had, ok := readWrapped(dir)
	if !ok || had.Integrity != n.Integrity.String() {
		return false, nil
	}
	root := filepath.Join(dir, contentDir)
	if entry, known := t.entries[n.Integrity]; known {
		if whole, err := entry.Stands(root, checked); err != nil || !whole {
			return false, err
		}
	}
	p, _, err := loadPlugin(root)
	if err != nil {
		return false, nil
	}
	w := &wrapping{name: nameAt(at), Located: n, root: PluginRoot(t.dir, nameAt(at)), data: filepath.Join(t.pluginData, nameAt(at)), servers: had.Servers}
	made, err := w.wrap(p, root)
	return err == nil && made.stands(dir), nil
}

// AgentPlugins is the names of the lock's Agent Plugins, sorted.
func (l *Lock) AgentPlugins() []string {
	if l == nil {
		return nil
	}
	return slices.Collect(func(yield func(string) bool) {
		for _, at := range (&tree{lock: l, skipped: map[string]bool{}}).plugins() {
			if !yield(nameAt(at)) {
				return
			}
		}
	})
}

// AgentPlugin is what an Agent Plugin was made of, and how the user asked for it.
func (l *Lock) AgentPlugin(name string) (pkg *Package, from string, ok bool) {
	n, ok := l.at("node_modules/" + name)
	if !ok || !n.AgentPlugin {
		return nil, "", false
	}
	w, _ := l.source(name)
	return n.Package, w.From, true
}

// makeData makes the directories for the data of Agent Plugins, which only the user
// may read. They are no part of the profile, and stay when it changes. That one
// cannot be made is told by the server that needs it.
func makeData(list []*wrapping) {
	for _, w := range list {
		if err := staging.MkdirAll(filepath.Dir(w.data)); err == nil {
			_ = staging.OS.Mkdir(w.data, 0o700) // it may be there
		}
	}
}
