package agentplugin

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"dsh/internal/fault"
)

const (
	schema    = `"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"`
	draft     = `"$schema": "https://agent-plugins.org/schemas/1.1.0/plugin.schema.json"`
	mcpSchema = `"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"`
	valid     = `{` + schema + `, "name": "p"}`
	noServers = `{` + mcpSchema + `, "mcpServers": {}}`
)

// manifest is a valid one with more in it.
func manifest(more string) map[string]string {
	return map[string]string{"plugin.json": `{` + schema + `, "name": "p", ` + more + `}`}
}

// named is a manifest with this name as JSON.
func named(name string) map[string]string {
	return map[string]string{"plugin.json": `{` + schema + `, "name": ` + name + `}`}
}

// configured is a plugin with this text as mcp.json.
func configured(mcp string) map[string]string {
	return map[string]string{"plugin.json": valid, "mcp.json": mcp}
}

// servers is a plugin with a server "s" besides a good one. Without files the
// bundled command would be missing.
func servers(s string) map[string]string {
	files := configured(`{` + mcpSchema + `, "mcpServers": {"s": ` + s + `, "good": {"type": "stdio", "command": "node"}}}`)
	files["bin/x y"], files["dir/"] = "", ""
	return files
}

func stdio(more string) map[string]string {
	return servers(`{"type": "stdio", "command": "node"` + more + `}`)
}
func command(c string) map[string]string {
	return servers(`{"type": "stdio", "command": ` + c + `}`)
}
func cwd(c string) map[string]string { return stdio(`, "cwd": ` + c) }
func remote(url, more string) map[string]string {
	return servers(`{"type": "streamable-http", "url": "` + url + `"` + more + `}`)
}
func headers(h string) map[string]string {
	return remote("https://example.com/", `, "headers": `+h)
}

// skilled is a plugin with a skill "a" of this text besides a good one.
func skilled(text string) map[string]string {
	return map[string]string{"plugin.json": valid, "skills/a/SKILL.md": text, "skills/good/SKILL.md": "---\nname: good\ndescription: d\n---\n"}
}
func head(lines string) map[string]string { return skilled("---\n" + lines + "\n---\nbody\n") }

// in memory
func source(t testing.TB, files map[string]string) Source {
	t.Helper()
	content := map[string][]byte{}
	for name, text := range files {
		content[name] = []byte(text)
	}
	m, err := Memory(content)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// summary is what became of a package in one line.
func summary(p *Plugin, found []Diagnostic, err error) string {
	var codes []string
	for _, d := range found {
		codes = append(codes, string(d.Code))
	}
	rest := strings.Join(codes, " ")
	if err != nil {
		return "rejected: " + rest
	}
	text := p.Manifest.Name.String()
	for _, s := range p.Skills {
		text += " /" + s.Name
	}
	if p.MCP != MCPAbsent {
		text += " " + string(p.MCP)
	}
	for _, s := range p.Servers {
		text += " " + s.Name()
	}
	if rest != "" {
		text += ": " + rest
	}
	return text
}

const (
	ok          = "p"
	okServers   = "p configured s good"
	okSkills    = "p /a /good"
	skipServer  = "p configured good: server-skipped"
	skipSkill   = "p /good: skill-skipped"
	mcpDisabled = "p disabled: mcp-disabled"
)

// TestRules has for every rule what keeps it and what breaks it.
func TestRules(t *testing.T) {
	long := strings.Repeat("a", 64)
	for _, tt := range []struct {
		section string
		files   map[string]string
		want    string
	}{
		// 4.1: the package, its manifest, containment by text. Links are in TestLinks.
		{"4.1.2", map[string]string{"plugin.json": valid}, ok},
		{"4.1.2", map[string]string{"skills/a/SKILL.md": ""}, "rejected: manifest-missing"},
		{"4.1.2", map[string]string{"Plugin.json": valid}, "rejected: manifest-missing"},
		{"4.1.2", map[string]string{".claude-plugin/plugin.json": valid}, "rejected: manifest-missing"},
		{"4.1.4", command(`"./bin/x y"`), okServers},
		{"4.1.4", command(`"./bin/../bin/x y"`), okServers},
		{"4.1.4", command(`"../bin/x"`), skipServer},
		{"4.1.4", command(`"./../x"`), skipServer},
		{"4.1.4", command(`"./bin\\x"`), skipServer},
		{"4.1.4", command(`"./C:/x"`), skipServer},
		{"4.1.5", stdio(`, "args": ["../x", "/etc/passwd", "", "a b"]`), okServers},
		{"4.1.5", stdio(`, "env": {"P": "../x"}`), okServers},

		// 5.1 and 5.2: the manifest as a document.
		{"5.1", map[string]string{"plugin.json/": ""}, "rejected: manifest-not-a-file"},
		{"5.1", map[string]string{"plugin.json": strings.Repeat(" ", fileLimit) + valid}, "rejected: manifest-unreadable"},
		{"5.2", map[string]string{"plugin.json": ""}, "rejected: manifest-not-json"},
		{"5.2", map[string]string{"plugin.json": valid + "x"}, "rejected: manifest-not-json"},
		{"5.2", map[string]string{"plugin.json": valid + valid}, "rejected: manifest-not-json"},
		{"5.2", map[string]string{"plugin.json": "// c\n" + valid}, "rejected: manifest-not-json"},
		{"5.2", map[string]string{"plugin.json": "[" + valid + "]"}, "rejected: manifest-not-an-object"},
		{"5.2", map[string]string{"plugin.json": "null"}, "rejected: manifest-not-an-object"},
		{"5.2", map[string]string{"plugin.json": "\ufeff" + valid}, "p: byte-order-mark"},
		{"5.2", manifest(`"description": "\u00e9 \ud83d\ude00"`), ok},
		{"5.2", manifest("\"description\": \"\xff\""), "rejected: manifest-not-json"},
		{"5.2", manifest(`"description": "\ud83d"`), "rejected: manifest-not-json"},
		{"5.2", manifest(`"description": "\ude00"`), "rejected: manifest-not-json"},
		{"5.2", manifest(`"description": "\\ud83d"`), ok},
		{"5.2", manifest(`"x": 1`), "p: unknown-manifest-field"},
		{"5.2", manifest(`"skills": "./s", "mcpServers": null`), "p: unknown-manifest-field unknown-manifest-field"},
		{"5.2", manifest(`"NAME": "evil"`), "p: unknown-manifest-field"},
		{"5.2", manifest(`"version": "x"`), ok},
		{"5.2", manifest(`"Version": 1`), "p: unknown-manifest-field"},
		{"5.2", manifest(`"version": 1`), "rejected: field-invalid"},
		{"5.2", manifest(`"version": null`), "rejected: field-invalid"},
		{"5.2", manifest(`"name": "q"`), "q: duplicate-member"},
		{"5.2", manifest(`"presentation": {}`), "p: unknown-manifest-field"},
		{"5.2", map[string]string{"plugin.json": `{` + draft + `, "name": "p"}`}, "rejected: schema-unsupported"},
		{"5.2", map[string]string{"plugin.json": `{"$schema": "https://example.com/", "name": "p"}`}, "rejected: schema-unsupported"},
		{"5.2", map[string]string{"plugin.json": `{"$schema": null, "name": "p"}`}, "rejected: schema-unsupported"},
		{"5.2", map[string]string{"plugin.json": `{` + strings.Replace(schema, "https", "http", 1) + `, "name": "p"}`}, "rejected: schema-unsupported"},

		// 5.3: required fields.
		{"5.3", map[string]string{"plugin.json": `{"name": "p"}`}, "rejected: schema-missing"},
		{"5.3", map[string]string{"plugin.json": `{"$Schema": "x", "name": "p"}`}, "rejected: schema-missing"},
		{"5.3", map[string]string{"plugin.json": `{` + schema + `}`}, "rejected: name-missing"},
		{"5.3", map[string]string{"plugin.json": `{` + schema + `, "Name": "p"}`}, "rejected: name-missing unknown-manifest-field"},
		{"5.3", named(`null`), "rejected: name-invalid"},
		{"5.3", named(`1`), "rejected: name-invalid"},
		{"5.3", named(`""`), "rejected: name-invalid"},

		// 5.4: metadata, by type alone.
		{"5.4", manifest(`"version": "not semver", "homepage": ":::", "repository": "", "license": "Mine", "description": ""`), ok},
		{"5.4", manifest(`"author": {"name": "n", "email": "no address", "url": "no url"}`), ok},
		{"5.4", manifest(`"author": {}`), ok},
		{"5.4", manifest(`"author": "n"`), "rejected: author-invalid"},
		{"5.4", manifest(`"author": {"name": "n", "x": "y"}`), "rejected: author-invalid"},
		{"5.4", manifest(`"author": {"Name": "n"}`), "rejected: author-invalid"},
		{"5.4", manifest(`"author": {"url": null}`), "rejected: author-invalid"},
		{"5.4", manifest(`"keywords": ["a", ""]`), ok},
		{"5.4", manifest(`"keywords": []`), ok},
		{"5.4", manifest(`"keywords": "a"`), "rejected: field-invalid"},
		{"5.4", manifest(`"keywords": ["a", 1]`), "rejected: field-invalid"},
		{"5.4", manifest(`"homepage": {}, "license": []`), "rejected: field-invalid field-invalid"},

		// 5.5: the name.
		{"5.5", named(`"a"`), "a"},
		{"5.5", named(`"a-.b"`), "a-.b"},
		{"5.5", named(`"a.-b"`), "a.-b"},
		{"5.5", named(`"0.1-2"`), "0.1-2"},
		{"5.5", named(`"` + long + `"`), long},
		{"5.5", named(`"` + long + `a"`), "rejected: name-invalid"},
		{"5.5", named(`"A"`), "rejected: name-invalid"},
		{"5.5", named(`"a_b"`), "rejected: name-invalid"},
		{"5.5", named(`"ä"`), "rejected: name-invalid"},
		{"5.5", named(`"-a"`), "rejected: name-invalid"},
		{"5.5", named(`"a."`), "rejected: name-invalid"},
		{"5.5", named(`"a--b"`), "rejected: name-invalid"},
		{"5.5", named(`"a..b"`), "rejected: name-invalid"},
		{"5.5", named(`"a\n"`), "rejected: name-invalid"},

		// 8.1: extensions.
		{"8.1", manifest(`"extensions": {"com.example": {"any": null}}`), ok},
		{"8.1", manifest(`"extensions": {}`), ok},
		{"8.1", manifest(`"extensions": false`), "p: extensions-ignored"},
		{"8.1", manifest(`"extensions": null`), "p: extensions-ignored"},
		{"8.1", manifest(`"extensions": []`), "p: extensions-ignored"},
		{"8.1", manifest(`"extensions": {"com.example": 1}`), "rejected: extension-not-an-object"},

		// 6: fixed locations, no others.
		{"6.1", map[string]string{"plugin.json": valid, "other/a/SKILL.md": "", ".mcp.json": "{"}, "p: location-unread"},
		{"6.1", map[string]string{"plugin.json": valid, "Skills/a/SKILL.md": ""}, "p: location-unread"},
		{"6.2", map[string]string{"plugin.json": valid, "skills/": "", "mcp.json": noServers}, "p configured"},
		{"6.2", map[string]string{"plugin.json": valid, "skills": "", "mcp.json": noServers}, "p configured: component-invalid"},
		{"6.2", map[string]string{"plugin.json": valid, "mcp.json/": "", "skills/good/SKILL.md": skilled("")["skills/good/SKILL.md"]}, "p /good disabled: component-invalid"},

		// 7.1: skills.
		{"7.1", head("name: a\ndescription: d"), okSkills},
		{"7.1", map[string]string{"plugin.json": valid, "skills/x/readme": "", "skills/file": "", "skills/x/y/SKILL.md": "no skill"}, ok},
		{"7.1", map[string]string{"plugin.json": valid, "skills/a/skill.md": "---\nname: a\ndescription: d\n---\n"}, "p: location-unread"},
		{"7.1", map[string]string{"plugin.json": valid, "skills/a/SKILL.md/": ""}, "p: skill-skipped"},
		{"7.1", head("name: a\ndescription: d\nlicense: MIT\ncompatibility: c\nallowed-tools: Bash Read\nmetadata:\n  version: 1.0\n  k: 'v'"), okSkills},
		{"7.1", head("name: a\ndescription: d\nargument-hint: x"), "p /a /good: skill-field-unknown"},
		{"7.1", skilled(""), skipSkill},
		{"7.1", skilled("../../x/SKILL.md"), skipSkill},
		{"7.1", skilled("name: a\ndescription: d\n"), skipSkill},
		{"7.1", skilled("---\nname: a\ndescription: d\n"), skipSkill},
		{"7.1", skilled("---"), skipSkill},
		{"7.1", skilled("---\nname: a\ndescription: d\n---"), okSkills},
		{"7.1", skilled("---\r\nname: a\r\ndescription: d\r\n---\r\nbody\r\n"), okSkills},
		{"7.1", skilled("\ufeff---\nname: a\ndescription: d\n---\n"), "p /a /good: byte-order-mark"},
		{"7.1", skilled("---\nname: a\ndescription: \xff\n---\n"), skipSkill},
		{"7.1", head("name: a\ndescription: a --- b"), okSkills},
		{"7.1", head("name: a\n- description: d"), skipSkill},
		{"7.1", head("\tname: a\ndescription: d"), skipSkill},
		{"7.1", head("- name: a"), skipSkill},
		{"7.1", head(""), skipSkill},
		{"7.1", head("description: d"), skipSkill},
		{"7.1", head("name: a"), skipSkill},
		{"7.1", head("name: a\ndescription:"), skipSkill},
		{"7.1", head("name: a\ndescription: '  '"), skipSkill},
		{"7.1", head("name: b\ndescription: d"), skipSkill},
		{"7.1", head("name: A\ndescription: d"), skipSkill},
		{"7.1", head("name: a\nname: a\ndescription: d"), skipSkill},
		{"7.1", head("name: a\ndescription: [d]"), skipSkill},
		{"7.1", head("name: a\ndescription: d\nallowed-tools: [x, y]"), skipSkill},
		{"7.1", head("name: a\ndescription: d\nmetadata: {k: [v]}"), skipSkill},
		{"7.1", head("name: a\ndescription: d\nmetadata: {k: v, k: w}"), skipSkill},
		{"7.1", head("name: a\ndescription: d\nmetadata: text"), skipSkill},
		{"7.1", head("name: a\ndescription: &d d\nlicense: *d"), skipSkill},
		{"7.1", head("name: a\ndescription: d\nmetadata: &a [*a, *a]"), skipSkill},
		{"7.1", head("name: a\ndescription: d\n? [x]\n: y"), skipSkill},
		{"7.1", head("name: a\ndescription: " + strings.Repeat("ü", 1024)), okSkills},
		{"7.1", head("name: a\ndescription: " + strings.Repeat("ü", 1025)), skipSkill},
		{"7.1", head("name: a\ndescription: |\n  " + strings.Repeat("x", 1023) + "\n"), okSkills},
		{"7.1", head("name: a\ndescription: d\ncompatibility: " + strings.Repeat("x", 500)), okSkills},
		{"7.1", head("name: a\ndescription: d\ncompatibility: " + strings.Repeat("x", 501)), skipSkill},

		// 7.2.1: mcp.json as a document.
		{"7.2.1", configured(noServers), "p configured"},
		{"7.2.1", configured("\ufeff" + noServers), "p configured: byte-order-mark"},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpServers": }`), mcpDisabled},
		{"7.2.1", configured(`[]`), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `}`), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpservers": {}}`), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpServers": null}`), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpServers": []}`), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpServers": {}, "x": 1}`), mcpDisabled},
		{"7.2.1", configured(`{"mcpServers": {}}`), mcpDisabled},
		{"7.2.1", configured(`{"$schema": null, "mcpServers": {}}`), mcpDisabled},
		{"7.2.1", configured(`{"$schema": "https://cursor.com/schemas/mcp.json", "mcpServers": {}}`), mcpDisabled},
		{"10.1", configured(strings.Replace(noServers, "1.0.0", "1.1.0", 1)), mcpDisabled},
		{"7.2.1", configured(`{` + mcpSchema + `, "mcpServers": {"s": {}, "s": {"type": "stdio", "command": "x"}}}`), "p configured s: duplicate-member"},

		// 7.2.1: each entry is of one closed variant; 7.2.2: others stay.
		{"7.2.1", servers(`null`), skipServer},
		{"7.2.1", servers(`{}`), skipServer},
		{"7.2.1", servers(`{"Type": "stdio", "command": "x"}`), skipServer},
		{"7.2.1", servers(`{"type": 1, "command": "x"}`), skipServer},
		{"7.2.1", servers(`{"type": "http", "url": "https://example.com/"}`), skipServer},
		{"7.2.1", servers(`{"type": "STDIO", "command": "x"}`), skipServer},
		{"7.2.1", servers(`{"type": "stdio"}`), skipServer},
		{"7.2.1", stdio(`, "x": true`), skipServer},
		{"7.2.1", stdio(`, "Args": []`), skipServer},
		{"7.2.1", stdio(`, "url": "https://example.com/"`), skipServer},
		{"7.2.1", servers(`{"type": "sse", "url": "https://example.com/", "command": "x"}`), skipServer},
		{"7.2.1", servers(`{"type": "sse", "url": "https://example.com/"}`), okServers},
		{"7.2.1", servers(`{"type": "sse"}`), skipServer},
		{"7.2.1", stdio(`, "command": "deno"`), okServers + ": duplicate-member"},
		{"7.2.1", stdio(`, "args": ["\ud800"]`), skipServer},

		// 7.2.1: stdio.
		{"7.2.1", command(`"./bin/x"`), okServers + ": command-missing"},
		{"7.2.1", command(`"./dir"`), skipServer},
		{"7.2.1", command(`"./"`), skipServer},
		{"7.2.1", command(`"./bin/x y/"`), skipServer},
		{"7.2.1", command(`"node server.js --port 8080"`), okServers + ": command-has-spaces"},
		{"7.2.1", command(`"${PLUGIN_ROOT}/bin/x"`), skipServer},
		{"7.2.1", command(`"bin/x"`), skipServer},
		{"7.2.1", command(`"/usr/bin/env"`), skipServer},
		{"7.2.1", command(`"C:\\x"`), skipServer},
		{"7.2.1", command(`"C:x"`), skipServer},
		{"7.2.1", command(`".."`), skipServer},
		{"7.2.1", command(`""`), skipServer},
		{"7.2.1", command(`"a\u0000"`), skipServer},
		{"7.2.1", command(`["node"]`), skipServer},
		{"7.2.1", command(`null`), skipServer},
		{"7.2.1", stdio(`, "args": "x"`), skipServer},
		{"7.2.1", stdio(`, "args": null`), skipServer},
		{"7.2.1", stdio(`, "args": [1]`), skipServer},
		{"7.2.1", stdio(`, "args": ["\u0000"]`), skipServer},
		{"7.2.1", stdio(`, "env": {}`), okServers},
		{"7.2.1", stdio(`, "env": null`), skipServer},
		{"7.2.1", stdio(`, "env": {"A": 1}`), skipServer},
		{"7.2.1", stdio(`, "env": {"A=B": ""}`), skipServer},
		{"7.2.1", stdio(`, "env": {"": ""}`), skipServer},
		{"7.2.1", stdio(`, "env": {"A": "\u0000"}`), skipServer},
		{"7.2.1", cwd(`"./dir"`), okServers},
		{"7.2.1", cwd(`"./"`), okServers},
		{"7.2.1", cwd(`"${PLUGIN_ROOT}"`), okServers},
		{"7.2.1", cwd(`"${PLUGIN_ROOT}/dir/"`), okServers},
		{"7.2.1", cwd(`"${PLUGIN_DATA}"`), okServers},
		{"7.2.1", cwd(`"${PLUGIN_DATA}/made/later"`), okServers},
		{"7.2.1", cwd(`"./missing"`), okServers + ": cwd-missing"},
		{"7.2.1", cwd(`"./bin/x y"`), skipServer},
		{"7.2.1", cwd(`"."`), skipServer},
		{"7.2.1", cwd(`""`), skipServer},
		{"7.2.1", cwd(`"dir"`), skipServer},
		{"7.2.1", cwd(`"/dir"`), skipServer},
		{"7.2.1", cwd(`"./.."`), skipServer},
		{"7.2.1", cwd(`"${PLUGIN_ROOT}/.."`), skipServer},
		{"7.2.1", cwd(`"${PLUGIN_ROOT}dir"`), skipServer},
		{"7.2.1", cwd(`"${PLUGIN_DATA}/.."`), skipServer},
		{"7.2.1", cwd(`"${PLUGIN_DATA}/a/../../b"`), skipServer},
		{"7.2.1", cwd(`"${PLUGIN_OTHER}"`), skipServer},
		{"7.2.1", cwd(`null`), skipServer},

		// 7.2.1: URLs.
		{"7.2.1", remote("https://example.com", ""), okServers},
		{"7.2.1", remote("HTTPS://example.com:8443/a?b=${PLUGIN_ROOT}", ""), okServers},
		{"7.2.1", remote("http://localhost/", ""), okServers},
		{"7.2.1", remote("http://127.8.9.1:1/", ""), okServers},
		{"7.2.1", remote("http://[::1]:1/", ""), okServers},
		{"7.2.1", remote("http://example.com/", ""), skipServer},
		{"7.2.1", remote("http://0.0.0.0/", ""), skipServer},
		{"7.2.1", remote("http://127.1/", ""), skipServer},
		{"7.2.1", remote("http://127.0.0.01/", ""), skipServer},
		{"7.2.1", remote("http://2130706433/", ""), skipServer},
		{"7.2.1", remote("http://localhost./", ""), skipServer},
		{"7.2.1", remote("http://localhost.example.com/", ""), skipServer},
		{"7.2.1", remote("http://[::ffff:127.0.0.1]/", ""), skipServer},
		{"7.2.1", remote("//127.0.0.1/", ""), skipServer},
		{"7.2.1", remote("/path", ""), skipServer},
		{"7.2.1", remote("", ""), skipServer},
		{"7.2.1", remote("https:example.com", ""), skipServer},
		{"7.2.1", remote("https:///x", ""), skipServer},
		{"7.2.1", remote("https://:1/", ""), skipServer},
		{"7.2.1", remote("https://h:/", ""), skipServer},
		{"7.2.1", remote("https://h:65536/", ""), skipServer},
		{"7.2.1", remote("https://h:x/", ""), skipServer},
		{"7.2.1", remote("ws://example.com/", ""), skipServer},
		{"7.2.1", remote("https://u:p@example.com/", ""), skipServer},
		{"7.2.1", remote("https://@example.com/", ""), skipServer},
		{"7.2.1", remote("https://example.com/@x", ""), okServers},
		{"7.2.1", remote("https://example.com/#x", ""), skipServer},
		{"7.2.1", remote("https://example.com/#", ""), skipServer},
		{"7.2.1", remote("https://example.com/a b", ""), skipServer},
		{"7.2.1", remote(`https://example.com\\@x`, ""), skipServer},
		{"7.2.1", remote("https://ex%61mple.com/", ""), skipServer},
		{"7.2.1", remote("https://exämple.com/", ""), skipServer},

		// 7.2.1: headers.
		{"7.2.1", headers(`{}`), okServers},
		{"7.2.1", headers(`{"X-A": "${PLUGIN_ROOT} b", "!#$%&'*+-.^_|~1": "", "tab": "a\tb", "e": "é"}`), okServers},
		{"7.2.1", headers(`{"X-A": "1", "x-a": "2"}`), skipServer},
		{"7.2.1", headers(`{"X-A": "1", "X-A": "2"}`), skipServer},
		{"7.2.1", headers(`{"X A": "1"}`), skipServer},
		{"7.2.1", headers(`{"": "1"}`), skipServer},
		{"7.2.1", headers(`{"X:": "1"}`), skipServer},
		{"7.2.1", headers(`{"é": "1"}`), skipServer},
		{"7.2.1", headers(`{"X": "a\r\nb"}`), skipServer},
		{"7.2.1", headers(`{"X": " a"}`), skipServer},
		{"7.2.1", headers(`{"X": 1}`), skipServer},
		{"7.2.1", headers(`null`), skipServer},

		// 9: variables.
		{"9.1", stdio(`, "env": {"plugin_root": "x"}`), okServers + ": env-reserved-case"},
		{"9.2", stdio(`, "env": {"PLUGIN_ROOT": "x"}`), skipServer},
		{"9.2", stdio(`, "env": {"PLUGIN_DATA": "${PLUGIN_DATA}"}`), skipServer},
	} {
		got := summary(Load(source(t, tt.files), Options{}))
		if got != tt.want {
			_, found, _ := Load(source(t, tt.files), Options{})
			t.Errorf("%s: %v\ngot  %s\nwant %s\n%v", tt.section, tt.files, got, tt.want, found)
		}
	}
}

// TestOptions has what each option changes.
func TestOptions(t *testing.T) {
	drafted := func(more string) map[string]string {
		return map[string]string{"plugin.json": `{` + draft + `, "name": "p"` + more + `}`, "icon.png": ""}
	}
	for _, tt := range []struct {
		options Options
		files   map[string]string
		want    string
	}{
		{Options{LenientExtensions: true}, manifest(`"extensions": {"com.example": null}`), "p: extension-ignored"},
		{Options{LenientExtensions: true}, manifest(`"extensions": 1`), "p: extensions-ignored"},
		{Options{StrictSkills: true}, head("name: a\ndescription: d\nargument-hint: x"), skipSkill},
		{Options{StrictSkills: true}, head("name: a\ndescription: d"), okSkills},
		{Options{StrictMembers: true}, manifest(`"name": "q"`), "rejected: member-repeated"},
		{Options{StrictMembers: true}, configured(`{` + mcpSchema + `, "mcpServers": {"s": {}, "s": {}}}`), mcpDisabled},
		{Options{StrictMembers: true}, stdio(`, "command": "x"`), skipServer},
		{Options{Draft: true}, drafted(""), ok},
		{Options{Draft: true}, map[string]string{"plugin.json": valid}, ok},
		{Options{Draft: true}, drafted(`, "presentation": {"displayName": "P", "icon": "./icon.png"}`), ok},
		{Options{Draft: true}, drafted(`, "presentation": {"icon": "icon.png"}`), "p: icon-ignored"},
		{Options{Draft: true}, drafted(`, "presentation": {"icon": "./gone.png"}`), "p: icon-ignored"},
		{Options{Draft: true}, drafted(`, "presentation": {"icon": 1}`), "rejected: field-invalid"},
		{Options{Draft: true}, drafted(`, "presentation": {"x": "y"}`), "rejected: field-invalid"},
		{Options{Draft: true}, drafted(`, "presentation": null`), "rejected: field-invalid"},
		{Options{Draft: true}, drafted(`, "displayName": "P"`), "p: unknown-manifest-field"},
	} {
		if got := summary(Load(source(t, tt.files), tt.options)); got != tt.want {
			t.Errorf("%+v: %v\ngot  %s\nwant %s", tt.options, tt.files, got, tt.want)
		}
	}
}

// TestSkillNames is the rules of the reference validator for names.
func TestSkillNames(t *testing.T) {
	for _, tt := range []struct {
		dir, name string
		skipped   bool
	}{
		{"a-1", "a-1", false}, {"1", "1", false}, {"yes", "yes", false},
		{"技能", "技能", false}, {"мой-навык", "мой-навык", false}, {"Мой", "Мой", true},
		{"caf\u00e9", "cafe\u0301", false}, {"cafe\u0301", "caf\u00e9", false},
		{"-a", "-a", true}, {"a-", "a-", true}, {"a--b", "a--b", true}, {"local_search", "local_search", true}, {"a b", "a b", true},
		{strings.Repeat("a", 64), strings.Repeat("a", 64), false}, {strings.Repeat("a", 65), strings.Repeat("a", 65), true},
	} {
		files := map[string]string{"plugin.json": valid, "skills/" + tt.dir + "/SKILL.md": "---\nname: " + tt.name + "\ndescription: d\n---\n"}
		p, found, err := Load(source(t, files), Options{})
		ascii := !strings.ContainsFunc(tt.name, func(r rune) bool { return r > 0x7f })
		want := "p /" + norm.NFKC.String(tt.name)
		if !ascii {
			want += ": skill-name-not-ascii"
		}
		if tt.skipped {
			want = "p: skill-skipped"
		}
		if got := summary(p, found, err); got != want {
			t.Errorf("%q in %q: %v, %v", tt.name, tt.dir, found, err)
		}
	}
}

// TestWords holds what people need to know: which value, which place.
func TestWords(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  string
	}{
		{head("name: b\ndescription: d"), `skills/a/SKILL.md: its name is "b" and its directory "a", which have to be equal [skill-skipped]`},
		{command(`"${PLUGIN_ROOT}/bin/x"`), `mcp.json#s: command "${PLUGIN_ROOT}/bin/x": nothing is expanded in a command; write ./bin/x [server-skipped]`},
		{skilled("../../x/SKILL.md"), `skills/a/SKILL.md: it has no frontmatter; it is a path, as a link becomes where links were not checked out [skill-skipped]`},
		{map[string]string{"plugin.json": "{\n  \"a\": }"}, `plugin.json: it is not JSON: line 2, column 8: invalid character '}' looking for beginning of value [manifest-not-json]`},
		{map[string]string{".codex-plugin/plugin.json": ""}, `plugin.json: there is no plugin.json; .codex-plugin is of another format [manifest-missing]`},
		{servers(`{"type": "http", "url": "https://example.com/"}`), `mcp.json#s: the type "http" is called streamable-http here [server-skipped]`},
		{headers(`{"X": "secret\n"}`), `mcp.json#s: the value of header "X" has control characters in it [server-skipped]`},
		{remote("http://u:secret@localhost/", ""), `mcp.json#s: the URL has user information [server-skipped]`},
	} {
		_, found, _ := Load(source(t, tt.files), Options{})
		if !slices.ContainsFunc(found, func(d Diagnostic) bool { return d.String() == tt.want }) {
			t.Errorf("%v\ngot  %v\nwant %s", tt.files, found, tt.want)
		}
	}
}

// TestEveryRuleIsExpected wants each rule in the tables of these tests.
func TestEveryRuleIsExpected(t *testing.T) {
	var tables string
	for _, name := range []string{"rules_test.go", "directory_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tables += string(text)
	}
	for rule, facts := range rules {
		if !regexp.MustCompile("[ `\"]" + string(rule) + "[ `\"]").MatchString(tables) {
			t.Errorf("nothing breaks %s of section %s", rule, facts.section)
		}
	}
}

func TestRejection(t *testing.T) {
	_, found, err := Load(source(t, manifest(`"version": 1, "x": 2, "author": 3`)), Options{})
	rejected, ok := errors.AsType[*RejectedError](err)
	if !ok || len(rejected.Diagnostics) != 2 || len(found) != 3 || fault.ClassOf(err) != fault.Package {
		t.Fatalf("got %v, %v", err, found)
	}
	if d := found[0]; d.Code != FieldInvalid || d.Section != "5.2" || d.Effect != Rejected || found[1].Effect != Noted {
		t.Error(found)
	}
	want := "no Agent Plugin:\n\tplugin.json#version: it is a number, and has to be a string [field-invalid]\n\tplugin.json#author: it is a number, and has to be an object [author-invalid]"
	if err.Error() != want {
		t.Error(err)
	}
}

func TestManifestIsRead(t *testing.T) {
	p, _, err := Load(source(t, manifest(`"version": "1", "description": "d", "author": {"name": "n", "email": "e", "url": "u"}, "homepage": "h",
		"repository": "r", "license": "l", "keywords": ["a", "b"], "extensions": {"com.example": {}}`)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", p.Manifest); got != "{Spec:1.0.0 Name:p Version:1 Description:d Author:{Name:n Email:e URL:u} Homepage:h Repository:r License:l Keywords:[a b] Extensions:[com.example] DisplayName: Icon:<nil>}" {
		t.Error(got)
	}
	p, _, err = Load(source(t, head("name: a\ndescription: >\n  d\n  e\nlicense: l\ncompatibility: c\nallowed-tools: t u\nmetadata:\n  version: 1.0\n  on: yes\n  none:")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%+v", p.Skills[0]); got != "{Name:a Directory:skills/a Description:d e\n License:l Compatibility:c Metadata:[{Key:version Value:1.0} {Key:on Value:yes} {Key:none Value:}] AllowedTools:t u Body:body\n}" {
		t.Error(got)
	}
}

// TestSizes loads documents as large as they may be, of which nothing is told at
// more length than people read.
func TestSizes(t *testing.T) {
	many := func(n int) string {
		text := strings.Builder{}
		for i := range n {
			fmt.Fprintf(&text, `"%d":"1","%[1]d":"1",`, i)
		}
		return text.String()
	}
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	for _, tt := range []struct {
		files map[string]string
		told  int
	}{
		{manifest(`"extensions": {"x": {` + many(150_000) + `"y": 1}}`), repeatsTold},
		{manifest(`"extensions": {"` + strings.Repeat("x", 1<<20) + `": {` + many(40_000) + `"y": 1}}`), repeatsTold},
		{manifest(`"extensions": {"x": ` + deep(depthLimit-3) + `}`), 0},
		{manifest(`"extensions": {"x": ` + deep(depthLimit) + `}`), 1},
		{manifest(`"extensions": {"x": ` + deep(100_000) + `}`), 1},
		{configured(`{` + mcpSchema + `, "mcpServers": {"s": {"type": "stdio", "command": "x", "env": {` + many(150_000) + `"y": "1"}}}}`), repeatsTold},
	} {
		_, found, _ := Load(source(t, tt.files), Options{})
		if len(found) != tt.told {
			t.Errorf("%.60s: %d, and %d were told", tt.files["plugin.json"], len(found), tt.told)
		}
	}
}
