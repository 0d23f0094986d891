//go:build external

package external

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dsh/internal/agentplugin"
)

// judged is a document of an Agent Plugin for ajv and for us.
type judged struct {
	Schema   string         `json:"schema"`   // plugin or mcp
	Document map[string]any `json:"document"` // for ajv
	given    map[string]any // for us; it has what the schema and the specification disagree about
	prose    string         // a rule that it breaks and that no schema has
}

// TestAgentPluginsAsAjv holds the loader against ajv with the official schemas. These are the exceptions:
//   - An unknown field of the manifest and "extensions" that is no object, which the schema refuses and 5.2 and 8.1 have reported and ignored.
//   - What no schema can say: commands, paths below a working directory's anchor, URLs, names and values of headers, and names that no variable can have.
//   - What is no JSON value any more: repeated members, byte order marks, halves of surrogate pairs.
//
// So ajv is asked about a document without the first, the second is marked where it is drawn, and the third is not drawn.
func TestAgentPluginsAsAjv(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var cases []judged
	for range 300 {
		cases = append(cases, drawManifest(random), drawConfiguration(random))
	}
	accepted := ajv(t, cases)
	counts := map[string]int{}
	for i, c := range cases {
		want := accepted[i] && c.prose == ""
		text, err := json.Marshal(c.given)
		if err != nil {
			t.Fatal(err)
		}
		got, found := loads(t, c.Schema, text)
		if got != want {
			t.Errorf("%s\najv takes it: %v; prose: %q; it loads here: %v\n%v", text, accepted[i], c.prose, got, found)
		}
		counts[fmt.Sprintf("%s accepted by ajv: %v", c.Schema, accepted[i])]++
		if accepted[i] && c.prose != "" {
			counts["broken by prose alone"]++
		}
		if len(c.given) != len(c.Document) {
			counts["with an exception"]++
		}
	}
	t.Log(counts)
	for _, name := range []string{"plugin accepted by ajv: true", "plugin accepted by ajv: false", "mcp accepted by ajv: true", "mcp accepted by ajv: false", "broken by prose alone", "with an exception"} {
		if counts[name] < 20 {
			t.Errorf("only %d documents are %s", counts[name], name)
		}
	}
}

func ajv(t *testing.T, cases []judged) (accepted []bool) {
	t.Helper()
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("testdata/agent-plugins/ajv.cjs")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(programs.node, "node"), script, programs.ajv)
	cmd.Stdin = strings.NewReader(string(input))
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok {
		t.Fatalf("ajv: %v\n%s", err, exit.Stderr)
	}
	if err == nil {
		err = json.Unmarshal(out, &accepted)
	}
	if err != nil || len(accepted) != len(cases) {
		t.Fatalf("%d answers for %d documents, %v", len(accepted), len(cases), err)
	}
	return accepted
}

// loads says whether our loader takes all of a document.
func loads(t *testing.T, schema string, text []byte) (bool, []agentplugin.Diagnostic) {
	t.Helper()
	files := map[string][]byte{"plugin.json": text}
	if schema == "mcp" {
		files = map[string][]byte{"plugin.json": []byte(`{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "p"}`), "mcp.json": text}
	}
	source, err := agentplugin.Memory(files)
	if err != nil {
		t.Fatal(err)
	}
	_, found, _ := agentplugin.Load(source, agentplugin.Options{})
	return !slices.ContainsFunc(found, func(d agentplugin.Diagnostic) bool { return d.Effect != agentplugin.Noted }), found
}

// anything are values of every type, right ones and wrong ones for every field.
var anything = []any{
	nil, true, 1, 1.5, "", "x", "./x", []any{}, []any{"a", ""}, []any{"a", 1}, []any{nil}, map[string]any{}, map[string]any{"a": "b"}, map[string]any{"a": 1},
	map[string]any{"a": map[string]any{}}, map[string]any{"name": "n", "url": "u"}, map[string]any{"email": nil}, map[string]any{"Name": "n"},
}

func pick[T any](random *rand.Rand, list []T) T { return list[random.IntN(len(list))] }

func drawManifest(random *rand.Rand) judged {
	d := map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json", "name": "p"}
	long := strings.Repeat("a", 64)
	for range random.IntN(3) {
		switch random.IntN(6) {
		case 0:
			d["name"] = pick(random, []any{"a", "a-.b", "a.-b", "0", long, long + "a", "", "A", "-a", "a.", "a--b", "a..b", "a_b", "ä", "a\n", nil, 1})
		case 1:
			d["$schema"] = pick(random, []any{nil, 1, "", "https://agent-plugins.org/schemas/1.1.0/plugin.schema.json", "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json#"})
		case 2:
			delete(d, pick(random, []string{"$schema", "name"}))
		default:
			d[pick(random, []string{"version", "description", "author", "homepage", "repository", "license", "keywords", "extensions"})] = pick(random, anything)
		}
	}
	given := maps.Clone(d)
	if _, isObject := d["extensions"].(map[string]any); !isObject {
		delete(d, "extensions")
	}
	if random.IntN(4) == 0 {
		given[pick(random, []string{"skills", "Name", "", "x-y"})] = pick(random, anything)
	}
	return judged{Schema: "plugin", Document: d, given: given}
}

// said is a value with the rule of the prose that it breaks, if any.
type said struct {
	value any
	prose string
}

var (
	commands = []said{
		{"node", ""}, {"./bin/x", ""}, {"a b", ""}, {"${X}", ""}, {"", ""}, {nil, ""}, {1, ""},
		{"../x", "path"}, {"/x", "path"}, {"bin/x", "path"}, {"./../x", "path"}, {`.\x`, "path"}, {"${PLUGIN_ROOT}/x", "path"}, {"./", "path"},
	}
	cwds = []said{
		{"./", ""}, {"./a/../b", ""}, {"${PLUGIN_ROOT}", ""}, {"${PLUGIN_DATA}/x", ""}, {"${PLUGIN_ROOT}x", ""}, {".", ""}, {"", ""}, {"/x", ""}, {nil, ""},
		{"./..", "escapes"}, {"${PLUGIN_DATA}/..", "escapes"}, {"${PLUGIN_ROOT}/a/../..", "escapes"},
	}
	envs = []said{
		{map[string]any{}, ""}, {map[string]any{"A": "${PLUGIN_ROOT}"}, ""}, {map[string]any{"PLUGIN_ROOT": "x"}, ""}, {map[string]any{"PLUGIN_DATA": "x"}, ""},
		{map[string]any{"plugin_root": "x"}, ""}, {map[string]any{"": "x"}, "variable"}, {map[string]any{"A=B": "x"}, "variable"}, {map[string]any{"A": "\x00"}, "variable"},
	}
	urls = []said{
		{"https://example.com/?a=${X}", ""}, {"http://localhost:1", ""}, {"http://[::1]/", ""}, {"", ""}, {nil, ""}, {1, ""},
		{"http://example.com/", "url"}, {"//127.0.0.1/", "url"}, {"https://u@example.com/", "url"}, {"https://example.com/#", "url"}, {"ftp://example.com/", "url"}, {"x", "url"},
	}
	headers = []said{
		{map[string]any{"A": "b", "C": ""}, ""}, {map[string]any{}, ""}, {map[string]any{"A": 1}, ""}, {nil, ""}, {[]any{}, ""},
		{map[string]any{"A": "b", "a": "c"}, "header"}, {map[string]any{"A B": "c"}, "header"}, {map[string]any{"A": "b\r\nc"}, "header"}, {map[string]any{"": "c"}, "header"},
	}
)

func drawConfiguration(random *rand.Rand) judged {
	c := judged{Schema: "mcp"}
	s := map[string]any{"type": "stdio", "command": "node"}
	fields := map[string][]said{"command": commands, "cwd": cwds, "env": envs}
	if random.IntN(2) == 0 {
		s = map[string]any{"type": pick(random, []string{"streamable-http", "sse"}), "url": "https://example.com/"}
		fields = map[string][]said{"url": urls, "headers": headers}
	}
	d := map[string]any{"$schema": "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json", "mcpServers": map[string]any{pick(random, []string{"s", "", "a b"}): s}}
	broken := map[string]string{}
	for range random.IntN(3) {
		switch random.IntN(8) {
		case 0:
			s["type"] = pick(random, []any{nil, 1, "http", "STDIO", "stdio", "sse"})
		case 1:
			delete(s, pick(random, []string{"type", "command", "url"}))
		case 2:
			field := pick(random, []string{"x", "Args", "", "command", "url", "headers", "cwd"})
			s[field], broken[field] = "./x", ""
			if field == "url" {
				broken[field] = "url"
			}
		case 3:
			if _, isStdio := fields["command"]; isStdio {
				s["args"] = pick(random, anything)
			}
		case 4:
			d[pick(random, []string{"$schema", "mcpServers", "x"})] = pick(random, anything)
		default:
			field := pick(random, slices.Sorted(maps.Keys(fields)))
			v := pick(random, fields[field])
			s[field], broken[field] = v.value, v.prose
		}
	}
	for field, prose := range broken {
		if _, there := s[field]; there && prose != "" {
			c.prose = prose
		}
	}
	// Without servers nothing of them is broken.
	if list, ok := d["mcpServers"].(map[string]any); !ok || len(list) == 0 {
		c.prose = ""
	}
	c.Document, c.given = d, d
	return c
}
