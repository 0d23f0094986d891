//go:build external

package external

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/gittest"
)

// TestGitSpecsThere makes a profile of packages of git repositories; pnpm understands what its package.json says, and installs the same commits.
func TestGitSpecsThere(t *testing.T) {
	m := newMachine(t)
	server, err := gittest.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	writeFile(t, ca, string(server.CA()))
	m.env = append(m.env, "npm_config_cafile="+ca, "GIT_SSL_CAINFO="+ca, "NODE_EXTRA_CA_CERTS="+ca)
	commit := func(repo, text string) {
		t.Helper()
		dir := t.TempDir()
		if err := gittest.Write(dir, text); err != nil {
			t.Fatal(err)
		}
		if _, err := server.Commit(repo, "", dir); err != nil {
			t.Fatal(err)
		}
	}
	const bundle = "-- p.yml --\n[]\n"
	commit("acme/whole", "-- package.json --\n{\"name\": \"whole\", \"version\": \"1.0.0\", \"dsh\": {\"bundle\": {\"patch\": \"p.yml\"}}}\n"+bundle)
	commit("acme/mono", "-- package.json --\n{\"name\": \"mono\", \"private\": true}\n-- packages/part/package.json --\n{\"name\": \"part\", \"version\": \"1.1.0\"}\n-- packages/part/index.js --\n")
	commit("acme/tagged", "-- package.json --\n{\"name\": \"tagged\", \"version\": \"1.2.0\"}\n")
	if _, err := server.Git("acme/tagged", "tag", "-a", "-m", "a release", "v1.2.0"); err != nil {
		t.Fatal(err)
	}
	commit("acme/tagged", "-- package.json --\n{\"name\": \"tagged\", \"version\": \"1.3.0-dev\"}\n")

	base := "git+" + server.SecureURL() + "/acme/"
	m.dsh(t, "plugin", "--profile", "ours", "add", base+"whole.git", base+"mono.git#main&path:/packages/part", base+"tagged.git#semver:^1.0.0")
	ours := m.installed(t, "ours")
	manifest := readFile(t, m.profile("ours", "package.json"))
	if err := os.RemoveAll(m.profile("ours", "node_modules")); err != nil {
		t.Fatal(err)
	}
	m.runPnpm(t, "ours", "install")
	if diff := cmp.Diff(ours, m.installed(t, "ours")); diff != "" {
		t.Errorf("packages (-dsh +pnpm)\n%s", diff)
	}
	if diff := cmp.Diff(manifest, readFile(t, m.profile("ours", "package.json"))); diff != "" {
		t.Errorf("package.json (-dsh +pnpm)\n%s", diff)
	}

	// And back: dsh takes over what pnpm has locked.
	if err := os.Remove(m.profile("ours", "dsh-lock.yaml")); err != nil {
		t.Fatal(err)
	}
	m.dsh(t, "profile", "adopt", "ours")
	if diff := cmp.Diff(ours, m.installed(t, "ours")); diff != "" {
		t.Errorf("packages (-first +taken over)\n%s", diff)
	}
}
