package action

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/install/store"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/runtimes"
)

// inHome is an environment with a new home that holds files, by path below it.
func inHome(t *testing.T, files map[string]string) Env {
	t.Helper()
	home, err := profile.ResolveHome(t.TempDir(), func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		file := home.Path(filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Env{Home: home, Dir: home.Dir(), Getenv: func(string) string { return "" }}
}

const (
	leftContent = "sha512-w6ZVnyQjAjQqnQ6gm+UTbCAIEuNHFIyP0OnNDpL6omFdKmcZXzsHHcMoLhLGdB1F4vR4TY1RtxgIVFVmLMfVjg=="
	nodeContent = "sha512-9O1tJ5kpsJdmZ0rCKmVBV0Hgz8pnHEsbz9Qa4BKvFUXmF7kpc1dXHZ3GBUEuwWqPTNIHbXkzN8jGOMPo9hxVFw=="
)

// TestStoreKeepsInstallations looks whether pruning leaves what installations are
// made of, their Node.js as well.
func TestStoreKeepsInstallations(t *testing.T) {
	env := inHome(t, map[string]string{
		"installations/a/installation.json": `{"launcher": "0.1.0", "node": {"program": "node/bin/node", "integrity": "` + nodeContent + `"}}`,
		"installations/a/dsh-lock.yaml":     "lockfileVersion: \"1\"\ndependencies:\n  left: 1.0.0\npackages:\n  node_modules/left:\n    version: 1.0.0\n    integrity: " + leftContent + "\n",
	})
	n, err := env.needed(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{leftContent, nodeContent} {
		id, err := store.ParseIntegrity(text)
		if err != nil {
			t.Fatal(err)
		}
		if !n.contents[id] {
			t.Errorf("%s is not needed", text)
		}
	}
}

func TestLauncherScript(t *testing.T) {
	dir := t.TempDir()
	for manifest, want := range map[string]string{
		`{"bin": "lib/bin.js"}`:              filepath.Join(dir, "lib", "bin.js"),
		`{"bin": {"dsh": "./lib/bin.js"}}`:   filepath.Join(dir, "lib", "bin.js"),
		`{"bin": {"other": "./lib/bin.js"}}`: "",
		`{"bin": "../up.js"}`:                "",
		`{"bin": "/abs.js"}`:                 "",
		`{"bin": [1]}`:                       "",
		`{}`:                                 "",
	} {
		got, err := launcherScript(installation.Package{Name: "x", Dir: dir, Manifest: []byte(manifest)})
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", manifest, got, err)
		}
	}
}

func TestPreferredNode(t *testing.T) {
	for wanted, want := range map[string]string{">=24": "^24 >=24", ">= 22.3": "^22.3 >= 22.3", "^24": "^24", "20 || >=24": "20 || >=24", ">=22 <25": "^22 <25 >=22 <25"} {
		if got := strings.Join(preferredNode(wanted), " "); got != want {
			t.Errorf("%s: %s", wanted, got)
		}
	}
}

// TestInstallationHint gives commands that work: an installation that is there
// is not installed again.
func TestInstallationHint(t *testing.T) {
	x, err := profile.ParseName("my x")
	if err != nil {
		t.Fatal(err)
	}
	none := inHome(t, nil)
	if got, want := InstallationHint(none, x), "dsh installation add @deepseek-ai/dsh@"+runtimes.Known+" && dsh installation use "+runtimes.Known+" --profile 'my x'"; got != want {
		t.Errorf("without one: %s", got)
	}
	some := inHome(t, map[string]string{
		"installations/a/installation.json": `{"launcher": "0.1.0", "tested": true, "node": {"program": "n"}}`,
		"installations/b/installation.json": `{"launcher": "0.2.0", "node": {"program": "n"}}`,
	})
	if got, want := InstallationHint(some, x), "dsh installation use a --profile 'my x'"; got != want {
		t.Errorf("with some: %s", got)
	}
}
