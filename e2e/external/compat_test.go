//go:build external

package external

import (
	"path/filepath"
	"testing"
)

// TestCompatWithAPublishedLauncher compares a profile with a release of the launcher, once from the bundles that are fetched for it and once from a whole install.
func TestCompatWithAPublishedLauncher(t *testing.T) {
	m := newMachine(t)
	m.dsh(t, "plugin", "--profile", "web", "install")
	writeFile(t, m.profile("web", "cordis.patch.yml"), "- insert:\n    - id: tool-bash\n      name: my-tool\n")
	if r := m.tryDsh(t, "config", "compat", "--profile", "web", "0.1.0-rc.8"); r.code != 3 {
		t.Errorf("a version that is not there: want exit 3\n%s", r)
	}
	for _, target := range [][]string{{"0.1.0-rc.8", "--fetch"}, {"0.1.0-rc.8"}, {programs.reference}} {
		r := m.tryDsh(t, append([]string{"config", "compat", "--profile", "web"}, target...)...)
		if r.code != 2 {
			t.Errorf("want exit 2\n%s", r)
		}
		wantLines(t, r, "ids that are taken (1)", "tool-bash (@deepseek-ai/dsh-tool-bash) of @deepseek-ai/dsh-base", "1 thing would stop fitting")
	}
	readFile(t, filepath.Join(m.home, "installations", "bundles-0.1.0-rc.8", "node_modules", "@deepseek-ai", "dsh-web-app", "package.json"))

	// Everything that the release's own rows name is in a whole install of it.
	writeFile(t, m.profile("web", "cordis.patch.yml"), "[]\n")
	r := m.dsh(t, "--installation", programs.reference, "config", "check", "--strict", "--profile", "web")
	wantWords(t, r, "no problems in profile web", "135 rows")
}
