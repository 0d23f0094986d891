//go:build external

package external

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDefaultDumps compares the trees of the two templates that the reference launcher has, byte for byte.
func TestDefaultDumps(t *testing.T) {
	for _, name := range []string{"web", "headless"} {
		theirs := newMachine(t).launcher(t, "--profile", name, "--dump-default-config")
		ours := newMachine(t).dsh(t, "--installation", programs.reference, name, "--dump-default-config")
		if diff := cmp.Diff(theirs.stdout, ours.stdout); diff != "" {
			t.Errorf("%s (-launcher +dsh)\n%s", name, diff)
		}
		viaEnvironment := newMachine(t)
		viaEnvironment.env = append(viaEnvironment.env, "DSH_INSTALLATION="+programs.reference)
		if diff := cmp.Diff(theirs.stdout, viaEnvironment.dsh(t, "--profile", name, "--dump-default-config").stdout); diff != "" {
			t.Errorf("%s, with $DSH_INSTALLATION (-launcher +dsh)\n%s", name, diff)
		}
	}
}

// sameDumps composes a profile with both programs.
func sameDumps(t *testing.T, m *machine, what, profile string, flags ...string) {
	t.Helper()
	ours := m.dsh(t, append([]string{"--installation", programs.reference, profile}, flags...)...)
	theirs := m.launcher(t, append([]string{"--profile", profile}, flags...)...)
	if diff := cmp.Diff(theirs.stdout, ours.stdout); diff != "" {
		t.Errorf("%s: dump (-launcher +dsh)\n%s", what, diff)
	}
}

const userPatch = `# mine
- id: hmr
  disabled: true
- id: llm
  config:
    model: 'some: model'
    lines: |
      one
      two
    when: !!js process.env.WHEN ?? 'never'
- insert:
    - id: mine
      name: '@acme/mine'
      config: {list: [1, 2.50, 0x10, null], empty: {}}
  after: timer
- id: no-such-row
  disabled: true
`

// TestOurProfileThere makes a profile here; the reference launcher composes it, and pnpm works in it.
func TestOurProfileThere(t *testing.T) {
	m := newMachine(t)
	m.dsh(t, "plugin", "--profile", "ours", "add", "is-number")
	sameDumps(t, m, "a plain package", "ours", "--dump-config")

	m.dsh(t, "plugin", "--profile", "ours", "add", "headless-app@npm:@deepseek-ai/dsh-headless@0.1.0-rc.8")
	sameDumps(t, m, "a bundle", "ours", "--dump-config")

	writeFile(t, m.profile("ours", "cordis.patch.yml"), userPatch)
	writeFile(t, filepath.Join(m.home, "cordis.patch.yml"), "- id: mine\n  config: {home: true}\n")
	overlay := filepath.Join(m.cwd, "overlay.yml")
	writeFile(t, overlay, "- id: mine\n  group: here\n- id: timer\n  disabled: true\n")
	sameDumps(t, m, "user layers", "ours", "--dump-config")
	sameDumps(t, m, "an overlay", "ours", "--patch", overlay, "--dump-config")
	sameDumps(t, m, "default layers only", "ours", "--dump-default-config")

	before := m.dsh(t, "--installation", programs.reference, "ours", "--dump-config")
	bundles := m.manifest(t, "ours").Dsh.Profile.Bundles
	m.runPnpm(t, "ours", "install")
	sameDumps(t, m, "after pnpm install", "ours", "--dump-config")
	m.runPnpm(t, "ours", "add", "is-odd")
	sameDumps(t, m, "after pnpm add", "ours", "--dump-config")
	after := m.dsh(t, "--installation", programs.reference, "ours", "--dump-config")
	if diff := cmp.Diff(before.stdout, after.stdout); diff != "" {
		t.Errorf("dump (-before +after pnpm)\n%s", diff)
	}
	if diff := cmp.Diff(bundles, m.manifest(t, "ours").Dsh.Profile.Bundles); diff != "" {
		t.Errorf("bundles (-before +after pnpm)\n%s", diff)
	}
	wantWords(t, m.dsh(t, "plugin", "--profile", "ours", "list"), "headless-app", "is-number", "is-odd")

	m.dsh(t, "plugin", "--profile", "ours", "add", "ms")
	m.dsh(t, "plugin", "--profile", "ours", "remove", "headless-app", "is-number")
	m.wantManifest(t, "ours", map[string]string{"is-odd": "^3.0.1", "ms": "^2.1.3"}, base)
	if diff := cmp.Diff([]string{"is-number", "is-odd", "ms"}, names(m.installed(t, "ours"))); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
	m.runPnpm(t, "ours", "install", "--no-frozen-lockfile")
	sameDumps(t, m, "after both", "ours", "--dump-config")
}

// TestTheirProfileHere makes a profile with the reference launcher and pnpm; it opens here without being changed.
func TestTheirProfileHere(t *testing.T) {
	m := newMachine(t)
	m.launcher(t, "plugin", "--profile", "theirs", "add", "is-odd", "headless-app@npm:@deepseek-ai/dsh-headless@0.1.0-rc.8")
	before := profileFiles(t, m, "theirs")
	if !slices.Contains(m.manifest(t, "theirs").Dsh.Profile.Bundles, "headless-app") {
		t.Fatalf("the reference launcher made no layer of its bundle: %s", before["package.json"])
	}
	unchanged := func(what string) {
		t.Helper()
		if diff := cmp.Diff(before, profileFiles(t, m, "theirs")); diff != "" {
			t.Errorf("%s changed files (-before +after)\n%s", what, diff)
		}
	}
	wantLines(t, m.dsh(t, "theirs", "--dump-config"), "# == headless-app")
	unchanged("a dump")
	wantWords(t, m.dsh(t, "plugin", "--profile", "theirs", "list"), "is-odd", "headless-app")
	unchanged("a list")
	sameDumps(t, m, "a profile made there", "theirs", "--dump-config")
	unchanged("a dump with the installation")

	m.dsh(t, "plugin", "--profile", "theirs", "install")
	unchanged("an install")
	packages := m.installed(t, "theirs")
	m.dsh(t, "plugin", "--profile", "theirs", "add", "ms")
	m.dsh(t, "plugin", "--profile", "theirs", "remove", "ms")
	unchanged("adding and removing a package")
	if diff := cmp.Diff(packages, m.installed(t, "theirs")); diff != "" {
		t.Errorf("packages (-before +after)\n%s", diff)
	}
	sameDumps(t, m, "after our own commands", "theirs", "--dump-config")
}

// profileFiles reads the files of a profile that belong to its user.
func profileFiles(t *testing.T, m *machine, profile string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"package.json", "cordis.patch.yml", "pnpm-workspace.yaml", "pnpm-lock.yaml"} {
		data, err := os.ReadFile(m.profile(profile, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	return files
}
