package stack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
)

// harness is an installation of a version, with no bundles of its own.
type harness string

func (h harness) Bundle(string) (installation.Package, bool, error) {
	return installation.Package{}, false, nil
}

func (h harness) Version() (npmrange.Version, bool) {
	v, err := npmrange.ParseVersion(string(h))
	return v, err == nil
}

func (h harness) Describe() string { return "harness " + string(h) }

// world is a home with one profile and what is installed in it.
func world(t *testing.T, bundles string, files map[string]string) Options {
	t.Helper()
	dir := t.TempDir()
	home, err := profile.ResolveHome(dir, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	name, err := profile.ParseName("x")
	if err != nil {
		t.Fatal(err)
	}
	files["profiles/x/package.json"] = `{"dsh":{"profile":{"bundles":` + bundles + `}}}`
	for file, text := range files {
		file = filepath.Join(dir, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	p, err := profile.OpenForReading(home, name)
	if err != nil {
		t.Fatal(err)
	}
	return Options{Home: home, Profile: p, Installation: installation.Embedded()}
}

const (
	installed = "profiles/x/node_modules/"
	oneRow    = "- insert: [{id: %s, name: p}]\n"
)

func bundleFiles(files map[string]string, name, patch string) {
	files[installed+name+"/package.json"] = `{"name":"` + name + `","version":"1.0.0","dsh":{"bundle":{"patch":"./p.yml"}}}`
	files[installed+name+"/p.yml"] = patch
}

func labels(layers []compose.Layer) []string {
	var list []string
	for _, l := range layers {
		list = append(list, l.Label)
	}
	return list
}

func TestOrderOfLayers(t *testing.T) {
	files := map[string]string{
		"cordis.patch.yml":            "[]\n",
		"profiles/x/cordis.patch.yml": "[]\n",
		"over.yml":                    "[]\n",
	}
	bundleFiles(files, "one", fmt.Sprintf(oneRow, "a"))
	bundleFiles(files, "@s/two", fmt.Sprintf(oneRow, "b"))
	opts := world(t, `["@s/two","one","one"]`, files)
	opts.Overlays = []Overlay{{Label: opts.Home.Path("over.yml"), Dir: opts.Home.Dir()}}
	s, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"@s/two", "one", "one", opts.Profile.PatchPath(), opts.Home.PatchPath(), opts.Home.Path("over.yml")}
	if diff := cmp.Diff(want, labels(s.Layers)); diff != "" {
		t.Error(diff)
	}
	opts.BundlesOnly = true
	if s, err = Open(opts); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[:3], labels(s.Layers)); diff != "" {
		t.Error(diff)
	}
}

func TestTheInstallationComesFirst(t *testing.T) {
	files := map[string]string{}
	bundleFiles(files, profile.BaseBundle, fmt.Sprintf(oneRow, "mine"))
	s, err := Open(world(t, `["`+profile.BaseBundle+`"]`, files))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Entries) != 1 || !s.Entries[0].InBox {
		t.Errorf("got %+v", s.Entries)
	}
}

func TestBrokenBundlesAreSkipped(t *testing.T) {
	files := map[string]string{
		installed + "plain/package.json":   `{"name":"plain"}`,
		installed + "odd/package.json":     `{"name":"odd","dsh":{"bundle":{"patch":7}}}`,
		installed + "spelt/package.json":   `{"name":"spelt","DSH":{"Bundle":{"Patch":"p.yml"}}}`,
		installed + "text/package.json":    `{"name":"text","dsh":"x"}`,
		installed + "escape/package.json":  `{"name":"escape","dsh":{"bundle":{"patch":"../good/p.yml"}}}`,
		installed + "no-file/package.json": `{"name":"no-file","dsh":{"bundle":{"patch":"gone.yml"}}}`,
		installed + "list/package.json":    `{"name":"list","dsh":{"bundle":{"patch":["a.yml","./b.yml"]}}}`,
		installed + "list/a.yml":           fmt.Sprintf(oneRow, "a"),
		installed + "list/b.yml":           fmt.Sprintf(oneRow, "b"),
	}
	bundleFiles(files, "tab", "- insert:\n\t- id: x\n")
	bundleFiles(files, "good", fmt.Sprintf(oneRow, "good"))
	s, err := Open(world(t, `["gone","plain","odd","spelt","text","escape","no-file","tab","list","good"]`, files))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"list", "good"}, labels(s.Layers)); diff != "" {
		t.Error(diff)
	}
	if got := len(s.Layers[0].Patches); got != 2 {
		t.Errorf("the layer of two files has %d patches", got)
	}
	want := []string{
		`skipping profile bundle "gone": cannot resolve profile bundle "gone" from the dsh installation or `,
		`skipping profile bundle "plain": profile bundle "plain" declares no dsh.bundle in its package.json`,
		`skipping profile bundle "odd": dsh.bundle.patch must be a file path or a list of file paths`,
		`skipping profile bundle "spelt": profile bundle "spelt" declares no dsh.bundle`,
		`skipping profile bundle "text": dsh in its package.json must hold a JSON object`,
		`skipping profile bundle "escape": failed to read patches: ../good/p.yml in package escape leads outside the package`,
		`skipping profile bundle "no-file": failed to read patches `,
		`skipping profile bundle "tab": failed to parse patches `,
	}
	if len(s.Skipped()) != len(want) {
		t.Fatalf("skipped %v", s.Skipped())
	}
	for i, skipped := range s.Skipped() {
		if !strings.HasPrefix(skipped.String(), want[i]) {
			t.Errorf("got  %s\nwant %s", skipped, want[i])
		}
	}
}

func TestBrokenUserLayersAreFatal(t *testing.T) {
	for _, file := range []string{"cordis.patch.yml", "profiles/x/cordis.patch.yml"} {
		opts := world(t, "[]", map[string]string{file: "- \tx"})
		if _, err := Open(opts); fault.ClassOf(err) != fault.Composition {
			t.Errorf("%s: got %v", file, err)
		}
		opts.BundlesOnly = true
		if _, err := Open(opts); err != nil {
			t.Errorf("%s: without user layers: %v", file, err)
		}
	}
	opts := world(t, "[]", map[string]string{})
	opts.Overlays = []Overlay{{Label: opts.Home.Path("gone.yml"), Dir: opts.Home.Dir()}}
	if _, err := Open(opts); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "failed to read overlay ") {
		t.Errorf("a --patch file that is not there: %v", err)
	}
}

func TestCompatibility(t *testing.T) {
	for _, c := range []struct {
		harness, peers, exempt string
		fits                   bool
	}{
		{"0.1.6", `{"@deepseek-ai/dsh":"^9"}`, "", true}, // not checked yet
		{"0.1.7", `{"@deepseek-ai/dsh":"^9"}`, "", false},
		{"0.1.7", `{"@deepseek-ai/dsh":"^9"}`, `{"b@1.0.0":["0.1.7"]}`, true},
		{"0.1.7", `{"@deepseek-ai/dsh":"^9"}`, `{"b@1.0.0":["0.1.8"]}`, false},
		{"0.1.7", `{"@deepseek-ai/dsh":"^9"}`, `{"b@1.0.0":`, false},
		{"0.1.7", `{"@deepseek-ai/dsh-llm":"^0.1.0","react":"^99"}`, "", true},
		{"0.1.7", `{"@deepseek-ai/cordis":"^99"}`, "", true},
		{"0.2.0-rc.1", `{"@deepseek-ai/dsh-llm":">=0.1.0"}`, "", true}, // prereleases take part
		{"0.2.0-rc.1", `{"@deepseek-ai/dsh-llm":"^0.1.0"}`, "", false},
		{"0.1.7", `{"@deepseek-ai/dsh-llm":"workspace:^"}`, "", true},
		{"0.1.7", `{"@deepseek-ai/dsh-llm":" "}`, "", false},
		{"0.1.7", `{"@deepseek-ai/dsh-llm":"nonsense!"}`, "", false},
		{"", `{"@deepseek-ai/dsh":"^9"}`, "", true}, // the embedded installation has no version
	} {
		t.Run(c.harness+c.peers, func(t *testing.T) {
			files := map[string]string{
				installed + "b/package.json": `{"name":"b","version":"1.0.0","peerDependencies":` + c.peers + `,"dsh":{"bundle":{"patch":"p.yml"}}}`,
				installed + "b/p.yml":        fmt.Sprintf(oneRow, "a"),
			}
			if c.exempt != "" {
				files["profiles/x/compatibility.json"] = c.exempt
			}
			opts := world(t, `["b"]`, files)
			opts.Installation = harness(c.harness)
			s, err := Open(opts)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(s.Skipped()) == 0; got != c.fits {
				t.Errorf("fits: %v, skipped: %v", got, s.Skipped())
			}
		})
	}
}

func TestCheckBundle(t *testing.T) {
	files := map[string]string{}
	bundleFiles(files, "good", fmt.Sprintf(oneRow, "a"))
	bundleFiles(files, "bad", "nothing\n")
	opts := world(t, "[]", files)
	if err := CheckBundle("good", filepath.Join(opts.Profile.Dir, "node_modules", "good")); err != nil {
		t.Error(err)
	}
	err := CheckBundle("bad", filepath.Join(opts.Profile.Dir, "node_modules", "bad"))
	if fault.ClassOf(err) != fault.Composition || !strings.Contains(err.Error(), filepath.FromSlash("bad@1.0.0/p.yml")) {
		t.Errorf("got %v", err)
	}
}
