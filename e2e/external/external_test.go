//go:build external

// Package external tests the program against outside programs and networks: the npm registry, a real registry server, pnpm and the reference launcher.
// It is no place for what can be tested without them. The script run installs the programs and says in the environment where they are.
package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// programs are the outside programs, and the one that is tested.
var programs struct {
	dsh       string // the binary under test
	node      string // directory of Node.js 24
	pnpm      string // directory of pnpm 10
	pnpmStore string // where pnpm keeps packages
	verdaccio string // its script
	ajv       string // the node_modules directory in which the npm package ajv is
	semver    string // the node_modules directory in which the npm package semver is
	reference string // a directory that holds an npm install of the reference launcher
}

func TestMain(m *testing.M) {
	for name, place := range map[string]*string{
		"DSH_E2E_NODE": &programs.node, "DSH_E2E_PNPM": &programs.pnpm, "DSH_E2E_PNPM_STORE": &programs.pnpmStore,
		"DSH_E2E_VERDACCIO": &programs.verdaccio, "DSH_E2E_SEMVER": &programs.semver, "DSH_E2E_AJV": &programs.ajv, "DSH_E2E_REFERENCE": &programs.reference,
	} {
		*place = os.Getenv(name)
		if *place == "" {
			fmt.Fprintf(os.Stderr, "%s is not set: start these tests with e2e/external/run\n", name)
			os.Exit(1)
		}
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dsh-external-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	programs.dsh = filepath.Join(dir, "dsh")
	build := exec.Command("go", "build", "-o", programs.dsh, "dsh/cmd/dsh")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building dsh: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// machine is a scratch user: a dsh home, a working directory and an environment.
type machine struct {
	home string // DSH_HOME
	cwd  string
	env  []string // added to the test's own environment
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir := t.TempDir()
	m := &machine{home: filepath.Join(dir, "dsh-home"), cwd: filepath.Join(dir, "cwd")}
	if err := os.Mkdir(m.cwd, 0o777); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) profile(name string, rest ...string) string {
	return filepath.Join(append([]string{m.home, "profiles", name}, rest...)...)
}

// result is what a finished program left.
type result struct {
	command        string
	stdout, stderr string
	code           int
}

func (r result) String() string {
	return fmt.Sprintf("$ %s\nexit %d\nstdout:\n%s\nstderr:\n%s", r.command, r.code, r.stdout, r.stderr)
}

// run starts a program in dir and waits for it. Node 24 and pnpm are first on its PATH.
func (m *machine) run(t *testing.T, dir, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "DSH_") && !strings.HasPrefix(v, "PATH=") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	path := strings.Join([]string{programs.node, programs.pnpm, os.Getenv("PATH")}, string(filepath.ListSeparator))
	cmd.Env = append(cmd.Env, "DSH_HOME="+m.home, "PATH="+path, "npm_config_store_dir="+programs.pnpmStore)
	cmd.Env = append(cmd.Env, m.env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("starting %s: %v", program, err)
	}
	if ctx.Err() != nil {
		t.Fatalf("%s %q did not end in time\nstdout:\n%s\nstderr:\n%s", program, args, &stdout, &stderr)
	}
	return result{
		command: filepath.Base(program) + " " + strings.Join(args, " "),
		stdout:  stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode(),
	}
}

// tryDsh runs the program under test.
func (m *machine) tryDsh(t *testing.T, args ...string) result {
	t.Helper()
	r := m.run(t, m.cwd, programs.dsh, args...)
	for _, trace := range []string{"goroutine ", "panic:", ".go:"} {
		if strings.Contains(r.stderr+r.stdout, trace) {
			t.Errorf("there is a stack trace in the output\n%s", r)
		}
	}
	return r
}

// dsh runs the program under test, which must succeed.
func (m *machine) dsh(t *testing.T, args ...string) result {
	t.Helper()
	return succeeded(t, m.tryDsh(t, args...))
}

// launcher runs the reference launcher, which must succeed.
func (m *machine) launcher(t *testing.T, args ...string) result {
	t.Helper()
	script := filepath.Join(programs.reference, "node_modules", "@deepseek-ai", "dsh", "lib", "bin.js")
	return succeeded(t, m.run(t, m.cwd, filepath.Join(programs.node, "node"), append([]string{script}, args...)...))
}

// runPnpm runs pnpm in a profile, where it must succeed.
func (m *machine) runPnpm(t *testing.T, profile string, args ...string) result {
	t.Helper()
	return succeeded(t, m.run(t, m.profile(profile), filepath.Join(programs.pnpm, "pnpm"), args...))
}

func succeeded(t *testing.T, r result) result {
	t.Helper()
	if r.code != 0 {
		t.Fatalf("%s", r)
	}
	return r
}

// manifest is what the tests look at in a profile's package.json.
type manifest struct {
	Name         string
	Dependencies map[string]string
	Dsh          struct {
		Profile struct{ Bundles []string }
	}
}

func (m *machine) manifest(t *testing.T, profile string) manifest {
	t.Helper()
	var got manifest
	path := m.profile(profile, "package.json")
	if err := json.Unmarshal([]byte(readFile(t, path)), &got); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return got
}

// wantManifest compares dependencies and bundles of a profile.
func (m *machine) wantManifest(t *testing.T, profile string, dependencies map[string]string, bundles ...string) {
	t.Helper()
	got := m.manifest(t, profile)
	if len(dependencies) == 0 && len(got.Dependencies) == 0 {
		got.Dependencies = dependencies
	}
	if diff := cmp.Diff(dependencies, got.Dependencies); diff != "" {
		t.Errorf("dependencies of %s (-want +got)\n%s", profile, diff)
	}
	if diff := cmp.Diff(bundles, got.Dsh.Profile.Bundles); diff != "" {
		t.Errorf("bundles of %s (-want +got)\n%s", profile, diff)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// installed lists the packages of a profile as "PATH name@version", where PATH is the folder below node_modules. Links are not followed.
func (m *machine) installed(t *testing.T, profile string) []string {
	t.Helper()
	root := m.profile(profile, "node_modules")
	list := []string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == root {
			return nil
		}
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && filepath.Base(filepath.Dir(path)) == "node_modules" {
			return filepath.SkipDir
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		folder := filepath.ToSlash(rel)
		if d.Name() != "package.json" || !isPackageFolder(folder) {
			return nil
		}
		var p struct{ Name, Version string }
		if err := json.Unmarshal([]byte(readFile(t, path)), &p); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		list = append(list, folder+" "+p.Name+"@"+p.Version)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// isPackageFolder reports whether folder, a path below node_modules, is where a package lies: x, @s/x, x/node_modules/y, and so on.
func isPackageFolder(folder string) bool {
	if i := strings.LastIndex(folder, "node_modules/"); i >= 0 {
		folder = folder[i+len("node_modules/"):]
	}
	slashes := strings.Count(folder, "/")
	return folder != "." && (slashes == 0 && !strings.HasPrefix(folder, "@") || slashes == 1 && strings.HasPrefix(folder, "@"))
}

// wantLines fails for every line that text lacks.
func wantLines(t *testing.T, r result, lines ...string) {
	t.Helper()
	have := strings.Split(r.stdout, "\n")
	for _, line := range lines {
		if !slices.Contains(have, line) {
			t.Errorf("there is no line %q\n%s", line, r)
		}
	}
}

// wantWords fails for every word that the output of a program lacks.
func wantWords(t *testing.T, r result, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(r.stdout+r.stderr, word) {
			t.Errorf("the output does not mention %q\n%s", word, r)
		}
	}
}

const base = "@deepseek-ai/dsh-base"
