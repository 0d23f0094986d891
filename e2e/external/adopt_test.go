//go:build external

package external

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAdopt takes a profile over that pnpm installed for the reference launcher, and finds the same packages in it. Then pnpm works in it again.
func TestAdopt(t *testing.T) {
	m := newMachine(t)
	m.dsh(t, "profile", "create", "web")
	writeFile(t, filepath.Join(m.home, "profiles", "mine", "package.json"), `{"name": "mine", "version": "1.0.0", "dependencies": {"ms": "2.0.0"}}`)
	for _, spec := range []string{"express@4.18.0", "esbuild@0.19.0", "odd@npm:is-odd@3.0.0", "@modelcontextprotocol/sdk@1.0.0", "link:../mine", "copy@file:../mine"} {
		succeeded(t, m.runPnpm(t, "web", "add", spec))
	}
	// Newer versions than those that pnpm chose are there by now.
	before := m.installed(t, "web")
	lock := readFile(t, m.profile("web", "pnpm-lock.yaml"))
	manifest := readFile(t, m.profile("web", "package.json"))

	r := m.dsh(t, "profile", "adopt", "web")
	wantWords(t, r, "adopted profile web", "  express 4.18.0", "not run: scripts of esbuild@0.19.0: postinstall", "node_modules, which pnpm had made, was made anew")
	after := m.installed(t, "web")
	if diff := cmp.Diff(versions(before), versions(after)); diff != "" {
		t.Errorf("packages (-pnpm +dsh)\n%s", diff)
	}
	if readFile(t, m.profile("web", "pnpm-lock.yaml")) != lock || readFile(t, m.profile("web", "package.json")) != manifest {
		t.Error("pnpm's lockfile or the manifest has changed")
	}
	wantWords(t, m.dsh(t, "plugin", "--profile", "web", "install", "--frozen-lockfile", "--offline"), "is up to date")
	wantWords(t, m.dsh(t, "profile", "repair", "web"), "nothing is damaged")
	succeeded(t, m.runPnpm(t, "web", "install", "--frozen-lockfile"))
}
