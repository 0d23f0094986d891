package configschema

import (
	"testing"
)

func TestCompileRefuses(t *testing.T) {
	tests := []struct{ schema, want string }{
		{``, "unexpected end of JSON input"},
		{`{} {}`, "invalid character '{' after top-level value"},
		{`{"minimum": 1e999999999}`, "json: cannot unmarshal number 1e999999999 into Go value of type float64"},
		{`5`, "at /: it must be of type object, and is of type number"},
		{`{"$ref": "other.json"}`, `the $ref "other.json" leads nowhere: it can be # or #/$defs/NAME`},
		{`{"$ref": "a", "$defs": {"a": {}}}`, `the $ref "a" leads nowhere: it can be # or #/$defs/NAME`},
		{`{"$ref": "file:///etc/passwd"}`, `the $ref "file:///etc/passwd" leads nowhere: it can be # or #/$defs/NAME`},
		{`{"items": {"$ref": "#/$defs/a"}}`, `the $ref "#/$defs/a" leads nowhere: it can be # or #/$defs/NAME`},
		{`{"$ref": 1}`, "at /$ref: it must be of type string, and is of type number"},
		{`{"$schema": "http://json-schema.org/draft-07/schema#"}`, "at /$schema: it can only be https://json-schema.org/draft/2020-12/schema"},
		{`{"properties": {"a": {"type": "txt"}}}`, "at /properties/a/type: it must be a type: array, boolean, integer, null, number, object or string"},
		{`{"properties": []}`, "at /properties: it must be of type object, and is of type array"},
		{`{"anyOf": [{"required": ["a", null]}]}`, "at /anyOf/0/required/1: it must be of type string, and is of type null"},
		{`{"anyOf": []}`, "at /anyOf: it must not be empty"},
		{`{"items": [{}]}`, "at /items: it must be of type object, and is of type array"},
		{`{"maximum": 1, "minLength": "1"}`, "at /minLength: it must be of type number, and is of type string"},
		{`{"uniqueItems": 1}`, "at /uniqueItems: it must be of type boolean, and is of type number"},
		{`{"multipleOf": 0}`, "at /multipleOf: it must be more than 0"},
		{`{"pattern": "^(?!a)"}`, "at /pattern: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
		{`{"patternProperties": {"(": {}}}`, "at /patternProperties: error parsing regexp: missing closing ): `(`"},
	}
	for _, test := range tests {
		_, err := Compile("my-plugin", []byte(test.schema))
		if want := "reading the config schema of my-plugin: " + test.want; err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", test.schema, err, want)
		}
	}
}

func TestCompileTakesTheInBoxSchemas(t *testing.T) {
	names := []string{
		"@deepseek-ai/dsh-acp", "@deepseek-ai/dsh-compaction-basic", "@deepseek-ai/dsh-credentials-local", "@deepseek-ai/dsh-headless",
		"@deepseek-ai/dsh-hmr", "@deepseek-ai/dsh-host-frontend-static", "@deepseek-ai/dsh-host-webserver", "@deepseek-ai/dsh-llm",
		"@deepseek-ai/dsh-mcp-client", "@deepseek-ai/dsh-sdk-app", "@deepseek-ai/dsh-sdk-jsonrpc-server",
		"@deepseek-ai/dsh-session-persistence-jsonl", "@deepseek-ai/dsh-settings-file", "@deepseek-ai/dsh-skill",
		"@deepseek-ai/dsh-skill-filesystem", "@deepseek-ai/dsh-tools", "@deepseek-ai/dsh-web-app", "dsh:profile-api", "dsh:scope",
	}
	for _, name := range names {
		if got := inBox(t, name).Check(value(t, "{no-such-key: 1}")); len(got) == 0 || got[len(got)-1].Key == "" && got[0].Key == "" {
			t.Errorf("%s: an unknown key is no problem: %v", name, got)
		}
	}
}
