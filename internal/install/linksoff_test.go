package install

import (
	"testing"

	"gopkg.in/yaml.v3"
)

func TestWithoutLinks(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":           {"", "packageImportMethod: copy\n"},
		"other settings":    {"# mine\nallowBuilds:\n  a: true\n", "# mine\nallowBuilds:\n  a: true\npackageImportMethod: copy\n"},
		"no newline at end": {"autoInstallPeers: false", "autoInstallPeers: false\npackageImportMethod: copy\n"},
		"carriage returns":  {"a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2\r\npackageImportMethod: copy\r\n"},
		"another method":    {"packageImportMethod: hardlink # fast\nb: 2\n", "packageImportMethod: copy # fast\nb: 2\n"},
		"quoted":            {"b: 2\npackageImportMethod:   'clone'\n", "b: 2\npackageImportMethod:   copy\n"},
		"umlauts before":    {"ä: {packageImportMethod: x}\npackageImportMethod: \"auto\"\n", "ä: {packageImportMethod: x}\npackageImportMethod: copy\n"},
		"said already":      {"packageImportMethod: copy", "packageImportMethod: copy"},
		"as good as said":   {"packageImportMethod: clone-or-copy\n", "packageImportMethod: clone-or-copy\n"},
		"comments alone":    {"# nothing\n", "# nothing\npackageImportMethod: copy\n"},
	} {
		got, err := WithoutLinks([]byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if again, err := WithoutLinks(got); err != nil || string(again) != string(got) {
			t.Errorf("%s, again: %q, %v", name, again, err)
		}
	}
	for name, text := range map[string]string{
		"a flow mapping":  "{a: 1}\n",
		"a list":          "- a\n",
		"two documents":   "a: 1\n---\nb: 2\n",
		"an end mark":     "a: 1\n...\n",
		"no YAML":         "a: [\n",
		"a block scalar":  "packageImportMethod: |\n  hardlink\n",
		"an empty method": "packageImportMethod:\n",
	} {
		if got, err := WithoutLinks([]byte(text)); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func FuzzWithoutLinks(f *testing.F) {
	for _, text := range []string{"", "a: 1\n", "packageImportMethod: hardlink\n", "packageImportMethod: 'x' # y", "{a: 1}", "a: 1\r\n", "---\na: 1"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := WithoutLinks(text)
		if err != nil {
			return
		}
		var said map[string]any
		if err := yaml.Unmarshal(got, &said); err != nil {
			t.Fatalf("%q became %q: %v", text, got, err)
		}
		if method := said[importMethod]; method != "copy" && method != "clone-or-copy" {
			t.Errorf("%q became %q", text, got)
		}
	})
}
