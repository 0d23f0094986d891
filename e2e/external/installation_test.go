//go:build external

package external

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	installedRelease = "0.1.0-rc.8"
	communityBundle  = "community-greeter"
)

// installHarness installs the launcher and a Node.js of the registry, and makes all profiles run on them.
func (m *machine) installHarness(t *testing.T) {
	t.Helper()
	m.dsh(t, "installation", "add", "@deepseek-ai/dsh@"+installedRelease, "--node", "24")
	m.dsh(t, "installation", "use", installedRelease)
}

// addCommunityBundle adds a bundle with a JavaScript plugin of its own and a dependency, as people publish them, which writes a file when it runs.
func (m *machine) addCommunityBundle(t *testing.T, profile string) (written string) {
	t.Helper()
	dir := filepath.Join(m.cwd, communityBundle)
	written = filepath.Join(m.cwd, "greeting")
	writeFile(t, filepath.Join(dir, "package.json"), `{"name": "`+communityBundle+`", "version": "1.0.0", "type": "module", "main": "index.js",
		"dependencies": {"is-odd": "^3.0.1"}, "dsh": {"bundle": {"patch": "cordis.patch.yml"}}}`)
	writeFile(t, filepath.Join(dir, "cordis.patch.yml"), "- insert:\n    - id: greeter\n      name: "+communityBundle+"\n      config:\n        file: "+written+"\n")
	writeFile(t, filepath.Join(dir, "index.js"), `import { writeFileSync } from 'node:fs'
import isOdd from 'is-odd'
export const name = 'greeter'
export function apply(ctx, config) { writeFileSync(config.file, 'three is ' + (isOdd(3) ? 'odd' : 'even')) }
`)
	m.dsh(t, "plugin", "--profile", profile, "add", "file:"+dir)
	return written
}

// startDsh starts the program under test as a server.
func (m *machine) startDsh(t *testing.T, args ...string) (exited <-chan struct{}) {
	t.Helper()
	cmd := exec.Command(programs.dsh, args...)
	cmd.Dir = m.cwd
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DSH_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "DSH_HOME="+m.home)
	return start(t, cmd)
}

// TestInstalledHarness installs the reference harness as users do, and starts profiles on it.
func TestInstalledHarness(t *testing.T) {
	m := newMachine(t)
	m.installHarness(t)
	wantWords(t, m.dsh(t, "installation", "check"), installedRelease+" is whole")
	if _, err := os.Stat(filepath.Join(m.home, "installations", installedRelease, "node", "bin", "node")); err != nil {
		t.Errorf("Node.js of the registry: %v", err)
	}

	written := m.addCommunityBundle(t, "web")
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	exited := m.startDsh(t, "web", "--no-open", "--port", port)
	waitForServer(t, "http://"+address+"/", exited)
	resp, err := http.Get("http://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the page of the launcher: %s, %s", resp.Status, kind)
	}
	if got := readFile(t, written); got != "three is odd" {
		t.Errorf("the plugin of the bundle wrote %q", got)
	}

	help := m.dsh(t, "headless", "--help")
	wantWords(t, help, "Usage: dsh --profile headless", "Answer one task")
	usage := m.tryDsh(t, "headless")
	if usage.code != 1 || !strings.Contains(usage.stderr, "a task is required") {
		t.Errorf("%s", usage)
	}

	// What is shown is what starts: the launcher's own dump has the same bytes.
	for _, profile := range []string{"web", "headless"} {
		for _, dump := range []string{"--dump-config", "--dump-default-config"} {
			ours, theirs := m.dsh(t, profile, dump), m.installedLauncher(t, "--profile", profile, dump)
			if diff := cmp.Diff(theirs.stdout, ours.stdout); diff != "" {
				t.Errorf("%s %s (-launcher +dsh)\n%s", profile, dump, diff)
			}
		}
	}
}

// installedLauncher runs the launcher that dsh installed, without dsh.
func (m *machine) installedLauncher(t *testing.T, args ...string) result {
	t.Helper()
	node, script := m.installedProgram()
	return succeeded(t, m.run(t, m.cwd, node, append([]string{script}, args...)...))
}

func (m *machine) installedProgram() (node, script string) {
	dir := filepath.Join(m.home, "installations", installedRelease)
	return filepath.Join(dir, "node", "bin", "node"), filepath.Join(dir, "node_modules", "@deepseek-ai", "dsh", "lib", "bin.js")
}

// TestHandedOverLayers has the launcher compose layers that only dsh knows: the tree is the one that dsh shows.
func TestHandedOverLayers(t *testing.T) {
	m := newMachine(t)
	m.installHarness(t)
	written := m.addCommunityBundle(t, "web")
	elsewhere := filepath.Join(m.cwd, "elsewhere")
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	exited := m.startDsh(t, "--set", "greeter.file="+elsewhere, "web", "--no-open", "--port", port)
	waitForServer(t, "http://"+address+"/", exited)
	if got := readFile(t, elsewhere); got != "three is odd" {
		t.Errorf("the plugin wrote %q", got)
	}
	if _, err := os.Stat(written); err == nil {
		t.Error("the value of --set did not count")
	}
}

// TestHandOverTime measures what dsh adds to the start of the launcher: all it does until the system has made its process another program, which
// here is a script that ends at once.
func TestHandOverTime(t *testing.T) {
	m := newMachine(t)
	m.installHarness(t)
	node := filepath.Join(m.cwd, "node")
	writeFile(t, node, "#!/bin/sh\nif [ \"$1\" = --version ]; then echo v24.1.0; fi\n")
	if err := os.Chmod(node, 0o755); err != nil {
		t.Fatal(err)
	}
	m.dsh(t, "installation", "add", filepath.Join(m.home, "installations", installedRelease), "--name", "timed", "--node", node)
	m.dsh(t, "installation", "use", "timed")
	m.dsh(t, "web")
	_, script := m.installedProgram()
	const runs = 40
	var through, direct []time.Duration
	timed := func(program string, args ...string) time.Duration {
		from := time.Now()
		succeeded(t, m.run(t, m.cwd, program, args...))
		return time.Since(from)
	}
	for range runs {
		through = append(through, timed(programs.dsh, "web"))
		direct = append(direct, timed(node, script, "--profile", "web"))
	}
	added := slices.Min(through) - slices.Min(direct) // whatever else the machine does only adds
	t.Logf("the start of a program that ends at once: %v through dsh, %v directly: %v more", slices.Min(through), slices.Min(direct), added)
	if added > 30*time.Millisecond {
		t.Errorf("dsh adds %v to the start of the launcher", added)
	}
}
