package trust

import (
	"strings"
	"testing"
)

const exactKey = "@acme/x@git+https://github.com/acme/x.git#0123456789012345678901234567890123456789&path:/packages/x"

func TestAllowBuilds(t *testing.T) {
	for name, c := range map[string]struct{ text, key, want string }{
		"nothing":            {"", "a", "allowBuilds:\n  a: true\n"},
		"comment alone":      {"# mine", "a", "# mine\nallowBuilds:\n  a: true\n"},
		"other settings":     {"b: 2\n", exactKey, "b: 2\nallowBuilds:\n  '" + exactKey + "': true\n"},
		"said already":       {"allowBuilds: {a: yes, b: true}\n", "b", "allowBuilds: {a: yes, b: true}\n"},
		"denied before":      {"allowBuilds:\n  a: false # no\n", "a", "allowBuilds:\n  a: true # no\n"},
		"placeholder":        {"allowBuilds:\n  a: set this to true or false\n  b: false\n", "a", "allowBuilds:\n  a: true\n  b: false\n"},
		"behind the last":    {"allowBuilds:\n    # first\n    a: true # yes\nc: 1\n", "b", "allowBuilds:\n    # first\n    a: true # yes\n    b: true\nc: 1\n"},
		"no newline at end":  {"allowBuilds:\n  a: true", "b", "allowBuilds:\n  a: true\n  b: true\n"},
		"carriage returns":   {"allowBuilds:\r\n  a: true\r\nc: 1\r\n", "b", "allowBuilds:\r\n  a: true\r\n  b: true\r\nc: 1\r\n"},
		"last is long":       {"allowBuilds:\n  a: set this\n    to true\nc: 1\n", "b", "allowBuilds:\n  b: true\n  a: set this\n    to true\nc: 1\n"},
		"empty":              {"allowBuilds:\nc: 1\n", "b", "allowBuilds:\n  b: true\nc: 1\n"},
		"a word of YAML":     {"", "true", "allowBuilds:\n  'true': true\n"},
		"a quote in the key": {"", "o'b", "allowBuilds:\n  'o''b': true\n"},
		"a number":           {"", "1e3", "allowBuilds:\n  '1e3': true\n"},
	} {
		got, err := AllowBuilds([]byte(c.text), c.key)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
			continue
		}
		if again, err := AllowBuilds(got, c.key); err != nil || string(again) != c.want {
			t.Errorf("%s, again: %q, %v", name, again, err)
		}
	}
	for name, c := range map[string]struct{ text, key string }{
		"a flow mapping":       {"allowBuilds: {a: true}\n", "b"},
		"an empty mapping":     {"allowBuilds: {}\n", "b"},
		"a list":               {"allowBuilds:\n  - a\n", "b"},
		"no YAML":              {"allowBuilds: [", "b"},
		"no decision":          {"allowBuilds:\n  a:\n", "a"},
		"a newline in a key":   {"", "a\nb"},
		"no key":               {"", ""},
		"no mapping":           {"- a\n", "b"},
		"a document that ends": {"a: 1\n...\n", "b"},
	} {
		if got, err := AllowBuilds([]byte(c.text), c.key); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
	_, err := AllowBuilds([]byte("allowBuilds: {a: true}\n"), "@a/b")
	if err == nil || !strings.Contains(err.Error(), "write there: '@a/b': true") {
		t.Error(err)
	}
}

func FuzzAllowBuilds(f *testing.F) {
	f.Add([]byte("allowBuilds:\n  a: true\n"), "b")
	f.Add([]byte("allowBuilds:\n  a: false # x\r\n"), "a")
	f.Add([]byte("a: 1"), exactKey)
	f.Fuzz(func(t *testing.T, text []byte, key string) {
		got, err := AllowBuilds(text, key)
		if err != nil {
			return
		}
		rules, err := PnpmApprovals(got, nil)
		if err != nil {
			t.Fatalf("%q: %v", got, err)
		}
		for _, r := range rules {
			if r.Package == key && r.Setting == "allowBuilds" && r.Allowed {
				return
			}
		}
		t.Errorf("%q does not allow %q", got, key)
	})
}
