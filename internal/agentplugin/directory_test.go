package agentplugin

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"dsh/internal/pkgpath"
)

// onDisk writes files, and links where the text begins with "-> ". It gives the
// directory of the package, beside which is a directory "outside".
func onDisk(t testing.TB, files map[string]string) string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(base, "outside"), map[string]string{
		"plugin.json": valid, "mcp.json": noServers, "SKILL.md": "---\nname: a\ndescription: secret\n---\n", "a/SKILL.md": "---\nname: a\ndescription: secret\n---\n", "run": "",
	})
	root := filepath.Join(base, "root")
	put(t, root, files)
	return root
}

func put(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			must(t, os.MkdirAll(file, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			target = strings.ReplaceAll(target, "ROOT", root)
			must(t, os.Symlink(filepath.FromSlash(target), file))
			continue
		}
		must(t, os.WriteFile(file, []byte(text), 0o644))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *Directory {
	t.Helper()
	d, err := OpenDirectory(dir)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// TestLinks is the five boundaries of section 4.1.3 with links, in and out.
func TestLinks(t *testing.T) {
	good := skilled("")["skills/good/SKILL.md"]
	skill := strings.ReplaceAll(good, "good", "a")
	with := func(files map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"manifest inside", map[string]string{"plugin.json": "-> real.json", "real.json": valid}, ok},
		{"manifest by an absolute link inside", map[string]string{"plugin.json": "-> ROOT/real.json", "real.json": valid}, ok},
		{"manifest over the parent and back", map[string]string{"plugin.json": "-> ../root/real.json", "real.json": valid}, ok},
		{"manifest outside", map[string]string{"plugin.json": "-> ../outside/plugin.json"}, "rejected: manifest-escapes"},
		{"manifest to nothing outside", map[string]string{"plugin.json": "-> ../gone"}, "rejected: manifest-escapes"},
		{"manifest to nothing inside", map[string]string{"plugin.json": "-> gone"}, "rejected: manifest-unreadable"},
		{"manifest to itself", map[string]string{"plugin.json": "-> plugin.json"}, "rejected: manifest-unreadable"},
		{"manifest is a directory", map[string]string{"plugin.json": "-> d", "d/": ""}, "rejected: manifest-not-a-file"},

		{"skills inside", map[string]string{"plugin.json": valid, "skills": "-> s", "s/good/SKILL.md": good}, "p /good"},
		{"skills outside", map[string]string{"plugin.json": valid, "skills": "-> ../outside", "mcp.json": noServers}, "p configured: component-invalid"},
		{"skills to nothing", map[string]string{"plugin.json": valid, "skills": "-> gone"}, "p: component-invalid"},
		{"mcp.json inside", map[string]string{"plugin.json": valid, "mcp.json": "-> m", "m": noServers}, "p configured"},
		{"mcp.json outside", with(skilled(skill), "mcp.json", "-> ../outside/mcp.json"), "p /a /good disabled: component-invalid"},

		{"a skill inside", map[string]string{"plugin.json": valid, "skills/good": "-> ../s", "s/SKILL.md": good}, "p /good"},
		{"a skill outside", with(skilled(""), "skills/a/SKILL.md", "-> ../../../outside/SKILL.md"), skipSkill},
		{"a skill's directory outside", map[string]string{"plugin.json": valid, "skills/good/SKILL.md": good, "skills/a": "-> ../../outside/a"}, skipSkill},
		{"a skill in a loop", map[string]string{"plugin.json": valid, "skills/good/SKILL.md": good, "skills/a": "-> a"}, skipSkill},
		{"a skill that is one twice", map[string]string{"plugin.json": valid, "skills/good/SKILL.md": good, "skills/a": "-> good"}, skipSkill},
		{"a SKILL.md that is a directory", map[string]string{"plugin.json": valid, "skills/good/SKILL.md": good, "skills/a/SKILL.md/": ""}, skipSkill},

		{"a command inside", with(command(`"./in"`), "in", "-> bin/x y"), okServers},
		{"a command outside", with(command(`"./out"`), "out", "-> ../outside/run"), skipServer},
		{"a command outside in two steps", with(command(`"./one"`), "one", "-> two", "two", "-> /usr/bin/env"), skipServer},
		{"a command below a link to nothing", with(command(`"./out/x"`), "out", "-> ../gone"), skipServer},
		{"a command in a loop", with(command(`"./loop"`), "loop", "-> loop"), skipServer},
		{"a command below a file", command(`"./bin/x y/z"`), skipServer},
		{"a command that comes back by its text only", with(command(`"./out/../bin/x y"`), "out", "-> ../outside"), skipServer},
		{"a command over a link and back", with(command(`"./deep/../x y"`), "deep", "-> bin/deep", "bin/deep/", ""), okServers},
		{"a directory inside", with(cwd(`"./in"`), "in", "-> dir"), okServers},
		{"a directory outside", with(cwd(`"./out"`), "out", "-> .."), skipServer},
		{"a directory outside by the placeholder", with(cwd(`"${PLUGIN_ROOT}/out"`), "out", "-> .."), skipServer},
		{"an argument outside is no path", with(stdio(`, "args": ["./out"]`), "out", "-> .."), okServers},
	} {
		d := open(t, onDisk(t, tt.files))
		if got := summary(Load(d, Options{})); got != tt.want {
			_, found, _ := Load(d, Options{})
			t.Errorf("%s: got  %s\nwant %s\n%v", tt.name, got, tt.want, found)
		}
	}
}

// TestRootIsALink has the root resolved first.
func TestRootIsALink(t *testing.T) {
	root := onDisk(t, map[string]string{"plugin.json": valid})
	link := filepath.Join(filepath.Dir(root), "link")
	must(t, os.Symlink(root, link))
	d := open(t, link)
	if got := summary(Load(d, Options{})); got != ok || d.Path() != root {
		t.Errorf("%s: %s", d.Path(), got)
	}
	if _, err := OpenDirectory(filepath.Join(root, "plugin.json")); err == nil {
		t.Error("a file is opened as a package")
	}
	if _, err := OpenDirectory(filepath.Join(root, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestDirectoryAndMemoryAgree loads the tables of one with the other.
func TestDirectoryAndMemoryAgree(t *testing.T) {
	for _, files := range []map[string]string{
		manifest(`"x": 1`), head("name: a\ndescription: d"), command(`"./bin/x"`), command(`"./bin/../bin/x y"`), command(`"./dir"`),
		cwd(`"./gone/../dir"`), cwd(`"./bin/x y"`), {"plugin.json/": ""}, {"plugin.json": valid, "skills": ""},
		{"plugin.json": valid, "mcp.json/": ""}, {"Plugin.json": valid},
	} {
		memory, disk := summary(Load(source(t, files), Options{})), summary(Load(open(t, onDisk(t, files)), Options{}))
		if memory != disk {
			t.Errorf("%v: in memory %s, on disk %s", files, memory, disk)
		}
	}
}

func TestMemoryRefusesPaths(t *testing.T) {
	for _, name := range []string{"", "/", "/a", "../a", "a/../b", "./a", "a//b", "a\x00"} {
		if _, err := Memory(map[string][]byte{name: nil}); err == nil {
			t.Errorf("%q is a path", name)
		}
	}
	if _, err := Memory(map[string][]byte{"a": nil, "a/b": nil}); err == nil {
		t.Error("a is file and directory")
	}
}

// TestOfficialPlugins loads the plugins of the official suite, with the links that
// their installation makes, as its cases say.
func TestOfficialPlugins(t *testing.T) {
	load := func(name string) (*Plugin, []Diagnostic) {
		root := filepath.Join(t.TempDir(), name)
		must(t, os.CopyFS(root, os.DirFS(filepath.Join("testdata", "official", name))))
		switch name {
		case "agent-plugins-conformance-core":
			put(t, root, map[string]string{"probe-workdir/": "", "bin/posix/probe token.sh": "", "bin/windows/probe token.cmd": "", "bin/posix/probe": "", "skills/without-skill/": ""})
		case "agent-plugins-conformance-recovery":
			put(t, root, map[string]string{
				"escape-command-posix": "-> escape-command-intermediate-posix", "escape-command-intermediate-posix": "-> /usr/bin/env",
				"escape-command-windows.exe": "-> /usr/bin/env", "escape-link": "-> ..",
			})
		}
		p, found, err := Load(open(t, root), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p, found
	}
	core, found := load("agent-plugins-conformance-core")
	want := "agent-plugins-conformance-core /conformance-alpha /conformance-beta configured " +
		"default relative root http data command-token-posix command-token-windows sse http-redirect sse-header-precedence sse-redirect sse-endpoint-origin"
	if got := summary(core, found, nil); got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, found)
	}
	for i, marker := range []string{"APC_ALPHA_V1", "APC_BETA_V1"} {
		if !strings.Contains(core.Skills[i].Body, marker) {
			t.Errorf("%s is not in its skill", marker)
		}
	}
	recovery, found := load("agent-plugins-conformance-recovery")
	want = "agent-plugins-conformance-recovery /conformance-recovery-valid configured recovery-valid: " +
		"unknown-manifest-field extensions-ignored skill-skipped" + strings.Repeat(" server-skipped", 26)
	if got := summary(recovery, found, nil); got != want {
		t.Errorf("got  %s\nwant %s\n%v", got, want, found)
	}
	invalid, found := load("agent-plugins-conformance-invalid-mcp")
	if got := summary(invalid, found, nil); got != "agent-plugins-conformance-invalid-mcp /conformance-invalid-mcp-valid disabled: mcp-disabled" {
		t.Error(got)
	}
	plan, err := core.Servers[0].(Stdio).Plan(Anchors{"/plugin ${PLUGIN_DATA}", "/data"}, nil, false)
	must(t, err)
	if got := strings.Join(plan.Args, "|"); got != "/plugin ${PLUGIN_DATA}/dist/probe.mjs|default|arg with spaces||/plugin ${PLUGIN_DATA}|/data|${APC_UNKNOWN}|$APC_VALUE|${PLUGIN_ROOT_SUFFIX}" {
		t.Error(got)
	}
}

// TestSwapped exchanges directories for links to outside, again and again, while
// the package is loaded: what is outside is never read.
func TestSwapped(t *testing.T) {
	for _, part := range []string{"skills", "skills/a", "bin"} {
		files := command(`"./bin/run"`)
		for name, text := range head("name: a\ndescription: open") {
			files[name] = text
		}
		files["bin/run"] = ""
		root := onDisk(t, files)
		live, kept, link := filepath.Join(root, part), filepath.Join(root, "kept"), filepath.Join(root, "link")
		outside := filepath.Join(filepath.Dir(root), "outside")
		if part == "skills/a" {
			outside = filepath.Join(outside, "a")
		}
		must(t, os.Symlink(outside, link))
		d := open(t, root)
		stop := make(chan struct{})
		var swapping sync.WaitGroup
		swapping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				// live is the directory, then for a moment nothing, then the link, and back.
				for _, step := range [][2]string{{live, kept}, {link, live}, {live, link}, {kept, live}} {
					if err := os.Rename(step[0], step[1]); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		loaded, refused := 0, 0
		for tries := 0; (loaded == 0 || refused == 0 || tries < 300) && tries < 100_000; tries++ {
			p, found, err := Load(d, Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range p.Skills {
				if s.Description == "secret" {
					t.Fatalf("%s: a skill from outside was read", part)
				}
			}
			if len(found) == 0 {
				loaded++
			} else {
				refused++
			}
			if text, err := d.Read(pkgpath.Manifest(), fileLimit); err != nil || string(text) != valid {
				t.Fatalf("%s, %v", text, err)
			}
		}
		close(stop)
		swapping.Wait()
		if loaded == 0 || refused == 0 {
			t.Errorf("%s: loaded whole %d times and with something left out %d times", part, loaded, refused)
		}
	}
}
