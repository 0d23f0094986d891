//go:build external

package external

import (
	"os"
	"path/filepath"
	"testing"

	"dsh/e2e/gittest"
)

// TestApprovedThere approves a package of a git repository that is nothing without its prepare; pnpm builds it in that profile too, which it refuses otherwise.
func TestApprovedThere(t *testing.T) {
	m := newMachine(t)
	server, err := gittest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, ca, string(server.CA()))
	m.env = append(m.env, "npm_config_cafile="+ca, "GIT_SSL_CAINFO="+ca, "NODE_EXTRA_CA_CERTS="+ca)
	dir := t.TempDir()
	if err := gittest.Write(dir, `-- package.json --
{"name": "made", "version": "1.0.0", "main": "lib/index.js", "scripts": {"prepare": "mkdir lib && echo 'module.exports = 1' > lib/index.js"}}
`); err != nil {
		t.Fatal(err)
	}
	commit, err := server.Commit("acme/made", "", dir)
	if err != nil {
		t.Fatal(err)
	}
	spec := "git+" + server.SecureURL() + "/acme/made.git"
	m.dsh(t, "profile", "create", "ours")
	m.dsh(t, "plugin", "--profile", "ours", "approve", spec+"#"+commit, "--yes")
	m.dsh(t, "plugin", "--profile", "ours", "add", spec)
	built := m.profile("ours", "node_modules", "made", "lib", "index.js")
	readFile(t, built)
	if err := os.RemoveAll(m.profile("ours", "node_modules")); err != nil {
		t.Fatal(err)
	}
	m.runPnpm(t, "ours", "install")
	readFile(t, built)
}
