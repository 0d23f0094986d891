//go:build external

package external

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// newProfile writes the manifest of a profile that takes everything from the registry, and says whether missing peers are installed too.
func (m *machine) newProfile(t *testing.T, name string, peers bool, manifest map[string]any) {
	t.Helper()
	profile := map[string]any{"bundles": []string{}}
	if peers {
		profile["hostPackages"] = "allow"
	}
	manifest["name"], manifest["private"], manifest["dsh"] = "dsh-profile-"+name, true, map[string]any{"profile": profile}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, m.profile(name, "package.json"), string(text))
	writeFile(t, m.profile(name, "pnpm-workspace.yaml"), fmt.Sprintf("packages:\n  - .\n\nnodeLinker: hoisted\nautoInstallPeers: %t\n", peers))
}

// wantMet fails for what the judge found, but for peers that the user was warned of: two packages may ask for what no tree has.
func wantMet(t *testing.T, v verdict, install result) {
	t.Helper()
	asked := regexp.MustCompile(`asks for peer (\S+) `)
	wrong := 0
	for _, f := range v.Findings {
		if peer := asked.FindStringSubmatch(f.Text); peer != nil && strings.Contains(install.stderr, peer[1]) {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Error(f.Text)
		}
	}
	t.Logf("%d packages, %d dependencies; %d findings that the user was not warned of, %d others", v.Packages, v.Edges, wrong, len(v.Findings)-wrong)
}

// TestJudgedTrees lets the judge look at the trees that e2e/bench measures, as they are laid out at first and again from the lockfile.
func TestJudgedTrees(t *testing.T) {
	var fixtures []struct {
		Name         string
		Dependencies map[string]string
		Peers        bool
	}
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join("..", "bench", "fixtures.json"))), &fixtures); err != nil {
		t.Fatal(err)
	}
	atLeast := map[string]int{"bundle": 7, "medium": 250, "dsh": 440, "big": 1200}
	for _, f := range fixtures {
		t.Run(f.Name, func(t *testing.T) {
			m := newMachine(t)
			m.newProfile(t, "x", f.Peers, map[string]any{"dependencies": f.Dependencies})
			var hosts []string
			if !f.Peers {
				hosts = []string{"--host", "@deepseek-ai/*"}
			}
			first := m.dsh(t, "plugin", "--profile", "x", "install")
			v := m.judge(t, m.profile("x"), hosts...)
			wantMet(t, v, first)
			if v.Packages < atLeast[f.Name] {
				t.Errorf("there are only %d packages", v.Packages)
			}

			before := m.installed(t, "x")
			if err := os.RemoveAll(m.profile("x", "node_modules")); err != nil {
				t.Fatal(err)
			}
			m.dsh(t, "plugin", "--profile", "x", "install", "--frozen-lockfile", "--offline")
			if after := m.installed(t, "x"); !slices.Equal(before, after) {
				t.Errorf("packages from the lockfile\n%q\nand before\n%q", after, before)
			}
			if again := m.judge(t, m.profile("x"), hosts...); again.Edges != v.Edges || len(again.Findings) != len(v.Findings) {
				t.Errorf("after an install from the lockfile the judge counts %d dependencies and finds %v", again.Edges, again.Findings)
			}
		})
	}
}

// TestLauncherBoots installs the reference launcher with the overrides that it needs, and starts its web page.
func TestLauncherBoots(t *testing.T) {
	var theirs struct {
		Dependencies map[string]string
		Pnpm         struct{ Overrides map[string]string }
	}
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(programs.reference, "package.json"))), &theirs); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.newProfile(t, "launcher", true, map[string]any{"dependencies": theirs.Dependencies, "pnpm": map[string]any{"overrides": theirs.Pnpm.Overrides}})
	install := m.dsh(t, "plugin", "--profile", "launcher", "install")
	var flags []string
	for name, version := range theirs.Pnpm.Overrides {
		flags = append(flags, "--override", name+"="+version)
	}
	wantMet(t, m.judge(t, m.profile("launcher"), flags...), install)

	script := m.profile("launcher", "node_modules", "@deepseek-ai", "dsh", "lib", "bin.js")
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.Command(filepath.Join(programs.node, "node"), script, "web", "--no-open", "--port", port)
	cmd.Dir = m.cwd
	cmd.Env = append(os.Environ(), "DSH_HOME="+filepath.Join(m.cwd, "home"), "HOME="+m.cwd)
	exited := start(t, cmd)
	waitForServer(t, "http://"+address+"/", exited)
	resp, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page of the launcher: %s, %s", resp.Status, kind)
	}
}
