package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dsh/internal/fault"
)

func TestReadSettings(t *testing.T) {
	for name, c := range map[string]struct {
		manifest, workspace string
		want                Settings
	}{
		"none":     {`{}`, "", Settings{Hosts: WarnHosts}},
		"template": {`{}`, "packages:\n  - .\n\nnodeLinker: hoisted\nautoInstallPeers: false\n", Settings{Hosts: WarnHosts}},
		"all": {
			`{"dsh": {"profile": {"hostPackages": "omit"}}, "overrides": {"a": "1"}}`,
			"autoInstallPeers: true\nminimumReleaseAge: 1440\nminimumReleaseAgeExclude: ['@acme/*', left]\npackageImportMethod: copy\noverrides:\n  b: 2.0.0\n",
			Settings{AutoPeers: true, Hosts: OmitHosts, MinAge: 24 * time.Hour, AgeExcept: []string{"@acme/*", "left"}, Copy: true, Overrides: mustOverrides(t, map[string]string{"a": "1", "b": "2.0.0"})},
		},
		"links":              {`{}`, "packageImportMethod: hardlink\n", Settings{Hosts: WarnHosts}},
		"a clone, or a copy": {`{}`, "packageImportMethod: clone-or-copy\n", Settings{Hosts: WarnHosts, Copy: true}},
		"empty values":       {`{"dsh": {}}`, "autoInstallPeers:\nminimumReleaseAge:\nminimumReleaseAgeExclude:\noverrides:\n", Settings{Hosts: WarnHosts}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if c.workspace != "" {
				if err := os.WriteFile(filepath.Join(dir, WorkspaceName), []byte(c.workspace), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := ReadSettings(dir, testManifest(t, c.manifest))
			if err != nil {
				t.Fatal(err)
			}
			same := cmp.Comparer(func(a, b Overrides) bool { return cmp.Equal(a.values, b.values) })
			if diff := cmp.Diff(c.want, got, same, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadSettingsErrors(t *testing.T) {
	for _, c := range []struct{ manifest, workspace, want string }{
		{`{}`, "a: [", "pnpm-workspace.yaml: line 1"},
		{`{}`, "- a\n", "it must hold a mapping"},
		{`{}`, "x: 1\nautoInstallPeers: 'yes'\n", "line 2: autoInstallPeers must be true or false"},
		{`{}`, "minimumReleaseAge: 1 day\n", "line 1: minimumReleaseAge must be a number of minutes"},
		{`{}`, "minimumReleaseAge: -1\n", "a number of minutes"},
		{`{}`, "minimumReleaseAge: [1]\n", "minimumReleaseAge must be one value"},
		{`{}`, "minimumReleaseAgeExclude: a\n", "must be a list"},
		{`{}`, "overrides: [a]\n", "line 1: overrides must be a mapping of texts"},
		{`{"dsh": {"profile": {"hostPackages": "deny"}}}`, "", `dsh.profile.hostPackages: "deny" is none of warn, omit and allow`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, WorkspaceName), []byte(c.workspace), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadSettings(dir, testManifest(t, c.manifest))
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.ClassOf(err) != fault.Package {
			t.Errorf("%s: got %v, want %q", c.workspace, err, c.want)
		}
	}
}

// TestSettingsOfAProfile changes the settings of a profile: the next install
// follows, and a frozen one refuses.
func TestSettingsOfAProfile(t *testing.T) {
	w := newWorkshop(t)
	install := func(frozen bool) (*Result, error) {
		return w.try("p", func(j *Job) (*Result, error) { return j.Install(t.Context(), InstallOptions{Frozen: frozen}) })
	}
	manifest := func(more string) {
		w.write("profiles/p/package.json", `{"name": "p", "dependencies": {"is-odd": "^3.0.0", "@acme/peer-met": "^1.0.0"}, "dsh": {"profile": {"bundles": []}}`+more+"}\n")
	}
	version := func(at string) string {
		n, _ := w.lock("p").at(at)
		return n.version()
	}
	manifest("")
	if _, err := install(false); err != nil {
		t.Fatal(err)
	}
	was := version("node_modules/is-number")
	for _, step := range []struct {
		name    string
		set     func()
		changes func() bool
	}{
		{"overrides", func() { manifest(`, "overrides": {"is-number": "7.0.0"}`) }, func() bool { return version("node_modules/is-number") == "7.0.0" }},
		{"no overrides", func() { manifest("") }, func() bool { return version("node_modules/is-number") == was }},
		{"autoInstallPeers", func() { w.write("profiles/p/pnpm-workspace.yaml", "autoInstallPeers: true\n") }, func() bool { return w.lock("p").AutoPeers }},
	} {
		step.set()
		if _, err := install(true); fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "must not change") {
			t.Errorf("%s: a frozen install: %v", step.name, err)
		}
		if _, err := install(false); err != nil {
			t.Fatal(err)
		}
		if !step.changes() {
			t.Errorf("%s: the lockfile is %s", step.name, w.lock("p").Bytes())
		}
		if _, err := install(true); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	if result := w.run("p", func(j *Job) (*Result, error) { return j.Dedupe(t.Context()) }); result.Tree.Added+result.Tree.Changed+result.Tree.Removed > 0 {
		t.Errorf("there is nothing to share, and %+v changed", result.Tree)
	}
}
