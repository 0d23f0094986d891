package agentplugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// whole is what holds of every package, whatever is in it.
func whole(t *testing.T, files map[string]string, o Options) {
	p, found, err := Load(source(t, files), o)
	for _, d := range found {
		if d.Section == "" || d.Place == "" || d.Message == "" || !utf8.ValidString(d.Message) {
			t.Errorf("%+v", d)
		}
	}
	if (p == nil) != (err != nil) {
		t.Fatalf("%v and %v", p, err)
	}
	if err != nil {
		return
	}
	if name, err := ParseName(p.Manifest.Name.String()); err != nil || name != p.Manifest.Name {
		t.Errorf("the name %q: %v", p.Manifest.Name, err)
	}
	skipped := 0
	for _, d := range found {
		if d.Code == ServerSkipped {
			skipped++
		}
	}
	for _, s := range p.Servers {
		switch s := s.(type) {
		case Stdio:
			if command, err := ParseCommand(s.Command.String()); err != nil || command.String() != s.Command.String() {
				t.Errorf("%q: %v", s.Command, err)
			}
			// A directory that climbs by its placeholders is refused here.
			if plan, err := s.Plan(Anchors{"/root", "/data"}, []string{"A=b"}, false); err == nil {
				dir := filepath.ToSlash(filepath.Clean(plan.Dir))
				if dir != plan.Within && !strings.HasPrefix(dir, plan.Within+"/") {
					t.Errorf("cwd %q is %s", s.Cwd, plan.Dir)
				}
				if len(plan.Env) < 3 || plan.Env[len(plan.Env)-2] != "PLUGIN_ROOT=/root" || plan.Env[len(plan.Env)-1] != "PLUGIN_DATA=/data" {
					t.Error(plan.Env)
				}
			}
		case StreamableHTTP:
			if u, err := ParseURL(s.URL.String()); err != nil || u != s.URL {
				t.Errorf("%q: %v", s.URL, err)
			}
		}
	}
	for _, s := range p.Skills {
		if s.Name == "" || strings.TrimSpace(s.Description) == "" || utf8.RuneCountInString(s.Description) > 1024 {
			t.Errorf("%+v", s)
		}
	}
}

func official(f *testing.F, name string) {
	files, err := filepath.Glob(filepath.Join("testdata", "official", "*", filepath.FromSlash(name)))
	if err != nil || len(files) == 0 {
		f.Fatal(err, name)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
}

func FuzzManifest(f *testing.F) {
	official(f, "plugin.json")
	f.Add(`{` + draft + `, "name": "p", "presentation": {"icon": "./x"}}`)
	f.Add(manifest(`"author": {"name": null}, "keywords": ["\ud800"], "a": 1, "a": 2`)["plugin.json"])
	f.Fuzz(func(t *testing.T, text string) {
		whole(t, map[string]string{"plugin.json": text}, Options{Draft: true, LenientExtensions: true})
	})
}

func FuzzMCP(f *testing.F) {
	official(f, "mcp.json")
	f.Add(cwd(`"./${PLUGIN_DATA}/../.."`)["mcp.json"])
	f.Add(headers(`{"X": "a\u0000"}`)["mcp.json"])
	f.Fuzz(func(t *testing.T, text string) {
		whole(t, map[string]string{"plugin.json": valid, "mcp.json": text}, Options{})
	})
}

func FuzzSkill(f *testing.F) {
	official(f, "skills/*/SKILL.md")
	f.Add(head("name: a\ndescription: |\n  d\nmetadata: {x: y}")["skills/a/SKILL.md"])
	f.Add("---\nname: &a a\ndescription: *a\n---")
	f.Fuzz(func(t *testing.T, text string) {
		whole(t, skilled(text), Options{})
	})
}

func FuzzURL(f *testing.F) {
	for _, s := range []string{"https://example.com/", "http://[::1]:1/x?y", "http://localhost@x/", "https://h:1:2/", "//h", "https://[fe80::1%25en0]/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := ParseURL(text)
		if err != nil {
			return
		}
		if u.String() != text || strings.ContainsAny(text, "#\\ \n") {
			t.Errorf("%q is a URL", text)
		}
	})
}
