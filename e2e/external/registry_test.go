//go:build external

package external

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNpmRegistry is the main job: an empty home, a plain package, then a real bundle under a name of its own.
func TestNpmRegistry(t *testing.T) {
	const spec = "npm:@deepseek-ai/dsh-headless@0.1.0-rc.8"
	m := newMachine(t)

	wantWords(t, m.dsh(t, "plugin", "--profile", "demo", "add", "is-number"), "is-number", "7.0.0")
	m.wantManifest(t, "demo", map[string]string{"is-number": "^7.0.0"}, base)
	withNumber := readFile(t, m.profile("demo", "package.json"))
	if diff := cmp.Diff([]string{"is-number is-number@7.0.0"}, m.installed(t, "demo")); diff != "" {
		t.Fatalf("packages (-want +got)\n%s", diff)
	}

	m.dsh(t, "plugin", "--profile", "demo", "add", "headless-app@"+spec)
	m.wantManifest(t, "demo", map[string]string{"headless-app": spec, "is-number": "^7.0.0"}, base, "headless-app")
	packages := m.installed(t, "demo")
	if len(packages) != 1+7 {
		t.Errorf("there should be 7 packages more: %q", packages)
	}
	wantLines(t, m.dsh(t, "demo", "--dump-config"), "# == "+base, "# == headless-app")

	m.dsh(t, "plugin", "--profile", "demo", "remove", "headless-app", "is-number")
	m.wantManifest(t, "demo", map[string]string{}, base)
	if diff := cmp.Diff([]string{}, m.installed(t, "demo")); diff != "" {
		t.Errorf("packages after the removal (-want +got)\n%s", diff)
	}
	if r := m.dsh(t, "demo", "--dump-config"); strings.Contains(r.stdout, "headless-app") {
		t.Errorf("the layer is still there\n%s", r)
	}

	m.dsh(t, "plugin", "--profile", "demo", "add", "is-number")
	if diff := cmp.Diff(withNumber, readFile(t, m.profile("demo", "package.json"))); diff != "" {
		t.Errorf("the manifest after adding, removing and adding again (-before +after)\n%s", diff)
	}
}

// TestSamePackagesAsPnpm adds the same things here and with pnpm and compares what is installed, and what the manifest says.
func TestSamePackagesAsPnpm(t *testing.T) {
	specs := []string{"express@^4", "is-odd@3", "headless-app@npm:@deepseek-ai/dsh-headless@0.1.0-rc.8", "ms@~2.1.0", "semver"}
	ours, theirs := newMachine(t), newMachine(t)
	ours.dsh(t, append([]string{"plugin", "--profile", "x", "add"}, specs...)...)
	theirs.launcher(t, append([]string{"plugin", "--profile", "x", "add"}, specs...)...)
	if diff := cmp.Diff(theirs.manifest(t, "x"), ours.manifest(t, "x")); diff != "" {
		t.Errorf("manifest (-pnpm +dsh)\n%s", diff)
	}
	if diff := cmp.Diff(versions(theirs.installed(t, "x")), versions(ours.installed(t, "x"))); diff != "" {
		t.Errorf("packages (-pnpm +dsh)\n%s", diff)
	}
}

// versions gives each name@version of a list of installed packages once: where a version is nested is a matter of taste.
func versions(installed []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range installed {
		_, version, _ := strings.Cut(line, " ")
		set[version] = true
	}
	return set
}

func TestNpmRegistryErrors(t *testing.T) {
	m := newMachine(t)
	m.dsh(t, "plugin", "--profile", "x", "add", "ms")
	before := readFile(t, m.profile("x", "package.json"))
	for spec, words := range map[string][]string{
		"no-such-package-zzz-9": {"no-such-package-zzz-9"},
		"is-number@999":         {"is-number", "999", "7.0.0"},
	} {
		r := m.tryDsh(t, "plugin", "--profile", "x", "add", spec)
		if r.code != 3 {
			t.Errorf("want exit 3\n%s", r)
		}
		wantWords(t, r, words...)
	}
	if diff := cmp.Diff(before, readFile(t, m.profile("x", "package.json"))); diff != "" {
		t.Errorf("the manifest changed (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ms"}, names(m.installed(t, "x"))); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
}

// names gives the folders of a list of installed packages.
func names(installed []string) []string {
	list := []string{}
	for _, line := range installed {
		folder, _, _ := strings.Cut(line, " ")
		list = append(list, folder)
	}
	return list
}
