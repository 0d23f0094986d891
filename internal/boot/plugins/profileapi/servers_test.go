package profileapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/fault"
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
		{"git", "group/git", "stdio", "connecting", ""},
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

// echo is a server with one tool, which answers its arguments.
type echo struct{}

func (echo) Status() tools.ServerStatus {
	return tools.ServerStatus{
		Name: "git", Row: "group/git", Transport: "stdio", State: tools.Connected, Since: someTime,
		Tools: []tools.ServerTool{{Name: "say", PublicName: "mcp__git__say", Description: "says it", InputSchema: json.RawMessage(`{"type":"object"}`)}},
		Log:   []tools.LogLine{{Time: someTime, Text: "asked https://user:hunter2@example.com/"}},
	}
}

func (echo) Call(_ context.Context, tool string, arguments json.RawMessage) (*tools.Result, error) {
	if tool != "say" {
		return nil, fault.Errorf(fault.Other, "there is no tool %q", tool)
	}
	return &tools.Result{Content: []json.RawMessage{arguments}, IsError: string(arguments) == "{}"}, nil
}

func TestCall(t *testing.T) {
	w := newWorld(t, true)
	w.write("cordis.patch.yml", `- insert:
    - id: group
      name: 'cordis:group'
      group: true
      config: [{id: git, name: '@deepseek-ai/dsh-mcp-client', config: {serverName: git, transport: stdio, command: git-server}}]
`)
	w.rows.mu.Lock()
	w.rows.rows = []host.Status{{RowSpec: host.RowSpec{Path: "group/git", ID: "git"}, State: host.Active}}
	w.rows.mu.Unlock()
	w.post("servers/git/call", map[string]any{"tool": "say"}, http.StatusNotFound)
	w.api.tools = tools.New()
	t.Cleanup(w.api.follow())
	l := w.listen()
	l.next()
	_, err := w.api.tools.AddServer("git", echo{})
	must(t, err)
	l.until("servers", whatever)

	s := at(w.get("servers"), "servers.0")
	if at(s, "state") != "connected" || at(s, "tools.0.publicName") != "mcp__git__say" || at(s, "tools.0.inputSchema.type") != "object" {
		t.Errorf("server %v", s)
	}
	if at(s, "log.0.text") != "asked https://example.com/" {
		t.Errorf("log %v", at(s, "log"))
	}
	answer := w.post("servers/git/call", map[string]any{"tool": "say", "arguments": map[string]any{"text": "hi"}}, http.StatusOK)
	if at(answer, "content.0.text") != "hi" || answer["isError"] != false || answer["ms"] == nil {
		t.Errorf("answer %v", answer)
	}
	if answer := w.post("servers/git/call", map[string]any{"tool": "say", "arguments": map[string]any{}}, http.StatusOK); answer["isError"] != true {
		t.Errorf("a tool that fails: %v", answer)
	}
	w.post("servers/git/call", map[string]any{"tool": "nope"}, http.StatusUnprocessableEntity)
	w.post("servers/git/call", map[string]any{"tool": ""}, http.StatusBadRequest)
	w.post("servers/git/call", map[string]any{"tool": "say", "arguments": []int{1}}, http.StatusBadRequest)
	w.post("servers/nope/call", map[string]any{"tool": "say"}, http.StatusNotFound)
	w.api.calls.Store(maxCalls)
	w.post("servers/git/call", map[string]any{"tool": "say"}, http.StatusServiceUnavailable)
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
