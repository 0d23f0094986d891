package profileapi

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"dsh/internal/boot/host"
)

func TestSkills(t *testing.T) {
	w := newWorld(t, true)
	dir := t.TempDir()
	for file, text := range map[string]string{
		"tidy/SKILL.md":  "---\nname: tidy\ndescription: tidies up\n---\nPut things away.\n",
		"broken.md":      "no frontmatter",
		"other/SKILL.md": "---\nname: other\ndescription: does else\ndisable-model-invocation: true\n---\nElse.\n",
	} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644))
	}
	w.write("cordis.patch.yml", "- insert:\n    - {id: mine, name: '@deepseek-ai/dsh-skill-filesystem', config: {providerName: mine, includeDefaultRoots: false, customSkillDirs: ['"+dir+"']}}\n")
	list := w.get("skills")
	if at(list, "skills.0.name") != "other" || at(list, "skills.0.modelInvocable") != false || at(list, "skills.1.name") != "tidy" || at(list, "skills.1.provider") != "mine" {
		t.Errorf("skills %v", list)
	}
	if at(list, "skipped.0.path") != filepath.Join(dir, "broken.md") || at(list, "skipped.0.why") == "" {
		t.Errorf("skipped %v", list["skipped"])
	}
	if one := w.get("skills/tidy"); one["body"] != "Put things away.\n" || one["description"] != "tidies up" {
		t.Errorf("skill %v", one)
	}
	if code, answer := w.ask("GET", "skills/nope", ""); code != http.StatusNotFound {
		t.Errorf("no skill: %d %v", code, answer)
	}
}

func TestServers(t *testing.T) {
	w := newWorld(t, true)
	w.write("cordis.patch.yml", `- insert:
    - id: group
      name: 'cordis:group'
      group: true
      config:
        - {id: git, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: git, transport: stdio, command: git-server, args: ['--token=hunter2']}}
    - {name: '@deepseek-ai/dsh-mcp-client', config: {serverName: web, transport: streamable-http, url: 'http://user:hunter2@127.0.0.1:1/'}}
    - {id: off, name: '@deepseek-ai/dsh-mcp-client', disabled: true, config: {serverName: off, transport: stdio, command: x}}
`)
	w.rows.mu.Lock()
	w.rows.rows = []host.Status{
		{RowSpec: host.RowSpec{Path: "group/git", ID: "git"}, State: host.Active},
		{RowSpec: host.RowSpec{Path: "#3"}, State: host.Failed, Err: errors.New("get http://user:hunter2@127.0.0.1:1/: refused")},
		{RowSpec: host.RowSpec{Path: "off", ID: "off"}, State: host.Off},
	}
	w.rows.mu.Unlock()
	list := w.get("servers")
	for i, want := range []struct{ name, row, transport, state, err string }{
		{"git", "group/git", "stdio", "connected", ""},
		{"web", "#3", "streamable-http", "down", "get http://127.0.0.1:1/: refused"},
		{"off", "off", "stdio", "stopped", ""},
	} {
		s, _ := at(list, "servers").([]any)[i].(map[string]any)
		if s["name"] != want.name || s["row"] != want.row || s["transport"] != want.transport || s["state"] != want.state || s["error"] != want.err {
			t.Errorf("server %v, want %v", s, want)
		}
	}
	if at(list, "servers.0.log.0.text") != "fetched http://127.0.0.1/x" {
		t.Errorf("log %v", at(list, "servers.0.log"))
	}
}

// TestRowPaths asks for rows whose paths are no plain words.
func TestRowPaths(t *testing.T) {
	w := newWorld(t, true)
	w.rows.mu.Lock()
	w.rows.rows = nil
	for _, path := range []string{"group/inner", "#3", "http://x/?y#z", "..", "ä b%2F"} {
		w.rows.rows = append(w.rows.rows, host.Status{RowSpec: host.RowSpec{Path: path}})
	}
	w.rows.mu.Unlock()
	for _, escaped := range []string{"group%2Finner", "%233", "http%3A%2F%2Fx%2F%3Fy%23z", "%2e%2e", "%C3%A4%20b%252F"} {
		w.get("rows/" + escaped + "/log")
	}
}
