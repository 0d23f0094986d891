// Package e2e tests dsh as a whole program: each script in testdata/script is
// one behaviour that a user would see, against an npm registry served from
// testdata/registry.
package e2e

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"dsh/e2e/npmtest"
)

// program is the dsh that the scripts run.
var program string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dsh-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "dsh")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	// Beside it is an MCP server, which scripts find by its bare name.
	for file, pkg := range map[string]string{program: "dsh/cmd/dsh", filepath.Join(dir, "mcpprobe"+filepath.Ext(program)): "dsh/e2e/mcpprobe"} {
		build := exec.Command("go", "build", "-o", file, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", pkg, err, out)
			return 1
		}
	}
	return m.Run()
}

func TestScripts(t *testing.T) { testscript.Run(t, scriptsIn("script")) }

// scriptsIn is how the scripts in a folder of testdata run.
func scriptsIn(folder string) testscript.Params {
	return testscript.Params{
		Dir:                 filepath.Join("testdata", folder),
		Setup:               setup,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"nolitter":  noLitter,
			"archive":   archive,
			"pack":      pack,
			"unpack":    unpack,
			"requests":  requests,
			"sameFiles": sameFiles,
			"fails":     fails,
			"token":     token,
			"underway":  underway,
			"ended":     ended,
			"appears":   appears,
			"gone":      gone,
			"ask":       ask,
			"json":      jsonOutput,
			"edit":      edit,
			"exits":     exits,
			"refused":   refused,
			"untouched": untouched,
			"hashes":    hashes,
			"gitrepo":   gitrepo,
			"signing":   signing,
		},
	}
}

// registryKey finds a script's registry among its values.
type registryKey struct{}

// setup gives every script a home, a user and a registry of its own.
func setup(env *testscript.Env) error {
	server, err := npmtest.New(filepath.Join(sourceDir(), "testdata", "registry"))
	if err != nil {
		return err
	}
	env.Defer(server.Close)
	server.Publish(filepath.Join(env.WorkDir, "public"))
	env.Values[registryKey{}] = server
	env.Values[underwayKey{}] = new(*exec.Cmd)
	withGit(env)
	for _, dir := range []string{"home", "user", "tmp"} {
		if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
			return err
		}
	}
	env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
	env.Setenv("DSH_HOME", filepath.Join(env.WorkDir, "home"))
	env.Setenv("HOME", filepath.Join(env.WorkDir, "user"))
	env.Setenv("USERPROFILE", filepath.Join(env.WorkDir, "user"))
	env.Setenv("TMPDIR", filepath.Join(env.WorkDir, "tmp"))
	env.Setenv("PROFILES", filepath.Join(env.WorkDir, "home", "profiles"))
	env.Setenv("REGISTRY", server.URL())
	env.Setenv("HOST", strings.TrimPrefix(server.URL(), "http://"))
	env.Setenv("npm_config_registry", server.URL())
	env.Setenv("npm_config_fetch_retries", "0")
	env.Setenv("DSH_OSV_URL", server.URL()+"/osv")
	return nil
}

func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// noLitter fails when dsh left something of its own work behind: a staging or
// backup directory, a temporary file, a journal.
func noLitter(ts *testscript.TestScript, neg bool, args []string) {
	home := ts.MkAbs("home")
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if strings.Contains(name, ".staging-") || strings.Contains(name, ".backup-") || strings.Contains(name, ".dsh-tmp-") || name == "journal" {
			ts.Fatalf("left behind: %s", path)
		}
		return nil
	})
	ts.Check(err)
}

// archive NAME_VERSION FILE writes the .tgz of one of the registry's packages.
func archive(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: archive NAME_VERSION FILE")
	}
	resp, err := http.Get(ts.Value(registryKey{}).(*npmtest.Server).URL() + "/files/" + args[0] + ".tgz")
	ts.Check(err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	ts.Check(err)
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("no archive %s: %s", args[0], resp.Status)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o644))
}

// unpack NAME_VERSION DIR writes one of the registry's packages as a folder.
func unpack(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: unpack NAME_VERSION DIR")
	}
	ts.Check(npmtest.Unpack(filepath.Join(sourceDir(), "testdata", "registry", args[0]+".txtar"), ts.MkAbs(args[1])))
}

// requests PATH N checks how often the registry was asked for a path.
func requests(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: requests PATH N")
	}
	server := ts.Value(registryKey{}).(*npmtest.Server)
	got := fmt.Sprint(server.Requests()[args[0]])
	if (got == args[1]) == neg {
		ts.Fatalf("%s was asked for %s times; all requests: %v", args[0], got, server.Requests())
	}
}

// exits CODE COMMAND... runs a command and checks its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		failed, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = failed.ExitCode()
	}
	if (fmt.Sprint(got) == args[0]) == neg {
		ts.Fatalf("%s exited with %d", args[1], got)
	}
	if strings.Contains(ts.ReadFile("stderr"), "goroutine ") {
		ts.Fatalf("a stack trace on standard error")
	}
}

// refused CODE COMMAND... is exits for a command that must print nothing on
// standard output and leave everything in the script's directory as it was.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	before := listing(ts, ts.MkAbs("."))
	exits(ts, neg, args)
	if ts.ReadFile("stderr") == "" {
		ts.Fatalf("nothing on standard error")
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("on standard output:\n%s", out)
	}
	if after := listing(ts, ts.MkAbs(".")); after != before {
		ts.Fatalf("the disk changed from\n%s\nto\n%s", before, after)
	}
}

// signing on|off says whether the registry signs packages.
func signing(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || args[0] != "on" && args[0] != "off" {
		ts.Fatalf("usage: signing on|off")
	}
	ts.Value(registryKey{}).(*npmtest.Server).Sign(args[0] == "on")
}

// sameFiles A B checks that two directories hold the same files.
func sameFiles(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sameFiles DIR DIR")
	}
	a, b := listing(ts, ts.MkAbs(args[0])), listing(ts, ts.MkAbs(args[1]))
	if (a == b) == neg {
		ts.Fatalf("%s holds\n%s\n%s holds\n%s", args[0], a, args[1], b)
	}
}

func listing(ts *testscript.TestScript, dir string) string {
	var out strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content := ""
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			content, err = os.Readlink(path)
		case d.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			content = string(data)
		}
		fmt.Fprintf(&out, "%s %q\n", rel, content)
		return err
	})
	ts.Check(err)
	return out.String()
}
