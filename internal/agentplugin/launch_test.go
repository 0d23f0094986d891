package agentplugin

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	a := Anchors{Root: "/r/${PLUGIN_DATA}", Data: "/d/${PLUGIN_ROOT}"}
	for text, want := range map[string]string{
		"":                                  "",
		"${PLUGIN_ROOT}":                    a.Root,
		"${PLUGIN_DATA}/x${PLUGIN_ROOT}":    a.Data + "/x" + a.Root,
		"$${PLUGIN_ROOT}}":                  "$" + a.Root + "}",
		"${PLUGIN_ROOT_SUFFIX}":             "${PLUGIN_ROOT_SUFFIX}",
		"$PLUGIN_ROOT %PLUGIN_ROOT% ${cwd}": "$PLUGIN_ROOT %PLUGIN_ROOT% ${cwd}",
		"${plugin_root}${ PLUGIN_ROOT}":     "${plugin_root}${ PLUGIN_ROOT}",
		"${CLAUDE_PLUGIN_ROOT}":             "${CLAUDE_PLUGIN_ROOT}",
		"${PLUGIN_${PLUGIN_ROOT}}":          "${PLUGIN_" + a.Root + "}",
	} {
		template := ParseTemplate(text)
		if got := template.Expand(a); got != want || template.String() != text {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if template.IsLiteral() != (want == text) {
			t.Errorf("%q is literal: %v", text, template.IsLiteral())
		}
	}
}

// TestExpandOnce cuts a text at its placeholders in another way.
func TestExpandOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"${PLUGIN_ROOT}", "${PLUGIN_DATA}", "${PLUGIN_", "ROOT}", "DATA}", "$", "{", "x"})
		text := strings.Join(rapid.SliceOfN(piece, 0, 8).Draw(t, "text"), "")
		a := Anchors{strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "root"), ""), strings.Join(rapid.SliceOfN(piece, 0, 3).Draw(t, "data"), "")}
		want := ""
		for rest := text; rest != ""; {
			switch {
			case strings.HasPrefix(rest, "${PLUGIN_ROOT}"):
				want, rest = want+a.Root, rest[len("${PLUGIN_ROOT}"):]
			case strings.HasPrefix(rest, "${PLUGIN_DATA}"):
				want, rest = want+a.Data, rest[len("${PLUGIN_DATA}"):]
			default:
				want, rest = want+rest[:1], rest[1:]
			}
		}
		if got := ParseTemplate(text).Expand(a); got != want {
			t.Fatalf("%q: got %q, want %q", text, got, want)
		}
	})
}

// stdioServer is the server of a table's entry.
func stdioServer(t *testing.T, entry string) Stdio {
	t.Helper()
	p, found, err := Load(source(t, servers(entry)), Options{})
	if err != nil || len(p.Servers) != 2 {
		t.Fatal(err, found)
	}
	return p.Servers[0].(Stdio)
}

func TestPlan(t *testing.T) {
	a := Anchors{Root: filepath.FromSlash("/plugins/p"), Data: filepath.FromSlash("/data/p")}
	s := stdioServer(t, `{"type": "stdio", "command": "./bin/x y", "args": ["${PLUGIN_ROOT}/a", "", "b c"],
		"env": {"PATH": "/mine", "Z": "${PLUGIN_DATA}", "plugin_root": "x"}, "cwd": "${PLUGIN_DATA}/w"}`)
	got, err := s.Plan(a, []string{"Path=/base", "HOME=/h", "PLUGIN_ROOT=old"}, false)
	if err != nil {
		t.Fatal(err)
	}
	below := func(dir, rest string) string { return dir + string(filepath.Separator) + filepath.FromSlash(rest) }
	want := LaunchPlan{
		Program: below(a.Root, "bin/x y"), Bundled: true, Args: []string{a.Root + "/a", "", "b c"},
		Env: []string{"Path=/base", "HOME=/h", "PATH=/mine", "Z=" + a.Data, "plugin_root=x", "PLUGIN_ROOT=" + a.Root, "PLUGIN_DATA=" + a.Data},
		Dir: below(a.Data, "w"), Within: a.Data,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err = s.Plan(a, []string{"=C:=C:\\x", "Path=/base", "HOME=/h"}, true)
	if err != nil {
		t.Fatal(err)
	}
	folded := []string{"=C:=C:\\x", "HOME=/h", "PATH=/mine", "Z=" + a.Data, "PLUGIN_ROOT=" + a.Root, "PLUGIN_DATA=" + a.Data}
	if diff := cmp.Diff(folded, got.Env); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	got, err = stdioServer(t, `{"type": "stdio", "command": "my tool"}`).Plan(a, nil, false)
	if err != nil || got.Program != "my tool" || got.Bundled || got.Dir != a.Root || got.Within != a.Root {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestPlanCwd expands before it looks whether a directory stays inside.
func TestPlanCwd(t *testing.T) {
	a := Anchors{Root: "/r", Data: "/d/e"}
	for _, tt := range []struct{ cwd, dir, within string }{
		{"./", "/r", "/r"},
		{"./a/../b", "/r/a/../b", "/r"}, // a may be a link
		{"${PLUGIN_ROOT}", "/r", "/r"},
		{"${PLUGIN_ROOT}/", "/r", "/r"},
		{"${PLUGIN_DATA}/a//b", "/d/e/a/b", "/d/e"},
		{"./${PLUGIN_DATA}/x", "/r/d/e/x", "/r"},
		{"./${PLUGIN_DATA}/../../..", "", ""}, // two levels, and three up
		{"./${PLUGIN_DATA}/../..", "/r/d/e/../..", "/r"},
		{"${PLUGIN_DATA}/${PLUGIN_ROOT}/../..", "", ""},
	} {
		c, err := ParseCwd(tt.cwd)
		if err != nil {
			t.Errorf("%s: %v", tt.cwd, err)
			continue
		}
		plan, err := Stdio{Cwd: c}.Plan(a, nil, false)
		if (err == nil) != (tt.dir != "") || filepath.ToSlash(plan.Dir) != tt.dir || plan.Within != tt.within || c.String() != tt.cwd {
			t.Errorf("%s: got %s within %s, %v", tt.cwd, plan.Dir, plan.Within, err)
		}
	}
}
