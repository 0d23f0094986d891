package installation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/bundles"
	"dsh/internal/fault"
)

// tree makes files below dir from "path: text" lines; "path -> target" makes a
// link.
func tree(t *testing.T, dir string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if path, target, ok := strings.Cut(line, " -> "); ok {
			path = filepath.Join(dir, filepath.FromSlash(path))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.FromSlash(target), path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		path, text, _ := strings.Cut(line, ": ")
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func manifest(name, version string) string {
	return fmt.Sprintf("/package.json: {\"name\": %q, \"version\": %q}", name, version)
}

// realDir is a new directory without links in its path.
func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEmbedded(t *testing.T) {
	in := Embedded()
	for _, name := range bundles.Names() {
		pkg, ok, err := in.Bundle(name)
		if err != nil || !ok {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		if pkg.Name != name || pkg.Version != "0.0.0-embedded" || pkg.Dir != "<embedded>/"+strings.TrimPrefix(name, "@deepseek-ai/") {
			t.Errorf("%s: %s %s in %s", name, pkg.Name, pkg.Version, pkg.Dir)
		}
		if text, err := pkg.ReadFile("./cordis.patch.yml"); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := pkg.ReadFile("../bundles.go"); fault.ClassOf(err) != fault.Policy {
			t.Errorf("%s: reading beside it: %v", name, err)
		}
	}
	for _, name := range []string{"@deepseek-ai/dsh", "dsh-base", "", "../x"} {
		if _, ok, err := in.Bundle(name); ok || err != nil {
			t.Errorf("%q: %v, %v", name, ok, err)
		}
	}
	if _, ok := in.Version(); ok {
		t.Error("the embedded installation has a version")
	}
	if got := in.Describe(); got != "embedded" {
		t.Errorf("described as %q", got)
	}
}

func TestOpenDir(t *testing.T) {
	const app, base = "@deepseek-ai/dsh", "@deepseek-ai/dsh-base"
	tests := []struct {
		name  string
		files []string
		open  string // the directory to open
		base  string // where the base bundle is found; "" for nowhere
	}{
		{
			"hoisted",
			[]string{"node_modules/" + app + manifest(app, "0.1.7"), "node_modules/" + base + manifest(base, "0.1.7")},
			".", "node_modules/" + base,
		},
		{
			"nested wins over hoisted",
			[]string{
				"node_modules/" + app + manifest(app, "0.1.7"), "node_modules/" + base + manifest(base, "0.1.6"),
				"node_modules/" + app + "/node_modules/" + base + manifest(base, "0.1.7"),
			},
			".", "node_modules/" + app + "/node_modules/" + base,
		},
		{
			"links of pnpm",
			[]string{
				"node_modules/.pnpm/a@1/node_modules/" + app + manifest(app, "0.1.7"),
				"node_modules/.pnpm/b@1/node_modules/" + base + manifest(base, "0.1.7"),
				"node_modules/.pnpm/a@1/node_modules/" + base + " -> ../../../b@1/node_modules/" + base,
				"node_modules/" + app + " -> ../.pnpm/a@1/node_modules/" + app,
			},
			".", "node_modules/.pnpm/b@1/node_modules/" + base,
		},
		{
			"the package itself",
			[]string{"lib/node_modules/" + app + manifest(app, "0.1.7"), "lib/node_modules/" + base + manifest(base, "0.1.7")},
			"lib/node_modules/" + app, "lib/node_modules/" + base,
		},
		{
			"above the directory",
			[]string{"in/node_modules/" + app + manifest(app, "0.1.7"), "node_modules/" + base + manifest(base, "0.1.7")},
			"in", "node_modules/" + base,
		},
		{
			"a folder without a manifest is passed over",
			[]string{
				"node_modules/" + app + manifest(app, "0.1.7"), "node_modules/" + app + "/node_modules/" + base + "/x: ",
				"node_modules/" + base + manifest(base, "0.1.7"),
			},
			".", "node_modules/" + base,
		},
		{"no bundle", []string{"node_modules/" + app + manifest(app, "0.1.7")}, ".", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := realDir(t)
			tree(t, dir, test.files...)
			in, err := OpenDir(filepath.Join(dir, test.open))
			if err != nil {
				t.Fatal(err)
			}
			if version, ok := in.Version(); !ok || version.String() != "0.1.7" {
				t.Errorf("version %v, %v", version, ok)
			}
			if got := in.Describe(); !strings.HasPrefix(got, "@deepseek-ai/dsh 0.1.7 in "+dir) {
				t.Errorf("described as %q", got)
			}
			pkg, ok, err := in.Bundle(base)
			if err != nil || ok != (test.base != "") {
				t.Fatalf("found %v, error %v", ok, err)
			}
			if ok && pkg.Dir != filepath.Join(dir, filepath.FromSlash(test.base)) {
				t.Errorf("found in %s", pkg.Dir)
			}
		})
	}
}

func TestOpenDirRefuses(t *testing.T) {
	const app = "@deepseek-ai/dsh"
	dir := realDir(t)
	tree(t, dir,
		"other"+manifest("other", "1.0.0"),
		"version/node_modules/"+app+manifest(app, "one"),
		"broken/node_modules/"+app+"/package.json: {",
		"my dir/x: ")
	const add = "dsh installation add @deepseek-ai/dsh@0.1.0-rc.8"
	tests := []struct {
		open, want, hint string
		class            fault.Class
	}{
		{"other", "other holds no installation: there is no package @deepseek-ai/dsh in ", add, fault.Environment},
		{"my dir", "my dir holds no installation: ", add, fault.Environment},
		{"gone/deep", "deep holds no installation: ", add, fault.Environment},
		{"version", "version of @deepseek-ai/dsh: ", "", fault.Package},
		{"broken", "package.json:1:1: unexpected end of JSON input", "", fault.Package},
	}
	for _, test := range tests {
		_, err := OpenDir(filepath.Join(dir, test.open))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.open, err, test.want)
		}
		if got := fault.Hint(err); got != test.hint {
			t.Errorf("%s: hint %q, want %q", test.open, got, test.hint)
		}
		if got := fault.ClassOf(err); got != test.class {
			t.Errorf("%s: class %v, want %v", test.open, got, test.class)
		}
	}
}

func TestFindRefusesNames(t *testing.T) {
	dir := realDir(t)
	tree(t, dir, "package.json: {}", "a/package.json: {}", "node_modules/x/package.json: {}", "node_modules/x/sub/package.json: {}")
	for name, want := range map[string]bool{
		"x": true, "x/sub": true,
		"../a": false, "x/../../a": false, "..": false, ".": false, "": false, "/": false, "x/": false, "./x": false, "y": false,
		filepath.Join(dir, "a"): false,
	} {
		if _, ok, err := Find(dir, name); ok != want || err != nil {
			t.Errorf("%q: found %v, error %v", name, ok, err)
		}
	}
}

func TestFindBrokenPackage(t *testing.T) {
	dir := realDir(t)
	tree(t, dir, "in/node_modules/x/package.json: []", "node_modules/x"+manifest("x", "1.0.0"))
	_, ok, err := Find(filepath.Join(dir, "in"), "x")
	if ok || err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "in", "node_modules", "x", "package.json")) {
		t.Errorf("found %v, error %v", ok, err)
	}
}

func TestOpenPackage(t *testing.T) {
	dir := realDir(t)
	tree(t, dir,
		"real/pkg/package.json: \ufeff{\"name\": \"p\", \"version\": 1}",
		"real/pkg/patch.yml: patch",
		"real/pkg/presets/a.yml: preset",
		"real/pkg/inside.yml -> presets/a.yml",
		"real/pkg/outside.yml -> ../secret",
		"real/pkg/absolute.yml -> "+filepath.Join(dir, "real", "secret"),
		"real/pkg/up -> ..",
		"real/pkg/dangling.yml -> nowhere",
		"real/secret: secret",
		"link -> real/pkg")
	pkg, err := OpenPackage(filepath.Join(dir, "link"))
	if err != nil {
		t.Fatal(err)
	}
	if pkg.Dir != filepath.Join(dir, "real", "pkg") || pkg.Name != "p" || pkg.Version != "" || pkg.Manifest[0] != '{' {
		t.Errorf("opened %q %q in %s: %q", pkg.Name, pkg.Version, pkg.Dir, pkg.Manifest)
	}
	for name, want := range map[string]string{
		"patch.yml": "patch", "./patch.yml": "patch", "presets/a.yml": "preset", "./presets/../patch.yml": "patch", "inside.yml": "preset",
	} {
		if got, err := pkg.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"../secret", "./../secret", "presets/../../secret", "..", filepath.Join(dir, "real", "secret"), "/etc/hosts", "outside.yml", "absolute.yml", "up/secret"} {
		_, err := pkg.ReadFile(name)
		if escape, ok := errors.AsType[*EscapeError](err); !ok || escape.File != name || escape.Package != "p" || fault.ClassOf(err) != fault.Policy {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"gone.yml", "dangling.yml"} {
		if _, err := pkg.ReadFile(name); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "reading "+name+" of package p: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := pkg.ReadFile("presets"); err == nil {
		t.Error("a folder was read")
	}
	if _, err := fs.ReadFile(pkg.FS, "outside.yml"); err == nil {
		t.Error("FS leads outside the package")
	}
}

func TestOpenPackageErrors(t *testing.T) {
	dir := realDir(t)
	tree(t, dir, "none/x: ", "list/package.json: [1]", "out/package.json -> ../list/package.json")
	for name, want := range map[string]error{"none": fs.ErrNotExist, "gone": fs.ErrNotExist} {
		if _, err := OpenPackage(filepath.Join(dir, name)); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := OpenPackage(filepath.Join(dir, "list")); fault.ClassOf(err) != fault.Package {
		t.Errorf("list: %v", err)
	}
	if _, err := OpenPackage(filepath.Join(dir, "out")); fault.ClassOf(err) != fault.Policy {
		t.Errorf("out: %v", err)
	}
}

func TestOpenPackageHoldsNothingOpen(t *testing.T) {
	dir := realDir(t)
	tree(t, dir, "a/package.json: {}", "a/x: before", "b/package.json: {}", "b/x: after")
	pkg, err := OpenPackage(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, rename := range [][2]string{{"a", "old"}, {"b", "a"}} {
		if err := os.Rename(filepath.Join(dir, rename[0]), filepath.Join(dir, rename[1])); err != nil {
			t.Fatal(err)
		}
	}
	got, err := pkg.ReadFile("x")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("after", string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
