package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dsh/internal/fault"
)

// testNode is the Node.js of this system. Tests need one.
var testNode = sync.OnceValue(func() Node {
	n, err := FindNode(context.Background(), os.Getenv)
	if err != nil || n.Program == "" {
		panic(fmt.Sprint("no Node.js: ", err))
	}
	return n
})

// request is a package in an odd place, with one script.
func request(t *testing.T, text string) Request {
	t.Helper()
	root := filepath.Join(t.TempDir(), "o'brien \"日本\"\n$x")
	dir := filepath.Join(root, "node_modules", "pkg")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return Request{
		Name: "pkg", Version: "1.0.0", Dir: dir, Root: root, Temp: t.TempDir(),
		Scripts: []Script{{"postinstall", text}}, Getenv: os.Getenv, Timeout: time.Minute, Node: testNode(),
	}
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRun(t *testing.T) {
	var log bytes.Buffer
	q := request(t, `echo made > made && echo "hello $npm_package_name $EXTRA" && echo 'o'"'"'x' >&2`)
	q.Env, q.Log = []string{"EXTRA=x"}, &log
	r, err := Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(q.Dir, "made")); string(text) != "made\n" {
		t.Errorf("%q %v", text, err)
	}
	if !strings.Contains(r.Output, "hello pkg x\no'x") || !strings.Contains(log.String(), "hello pkg x\n") {
		t.Errorf("output %q, log %q", r.Output, log.String())
	}
}

func TestRunFails(t *testing.T) {
	q := request(t, "echo bad luck; exit 3")
	r, err := Run(t.Context(), q)
	e, ok := errors.AsType[*ScriptError](err)
	if !ok || e.Code != 3 || fault.ClassOf(err) != fault.Package || !strings.Contains(err.Error(), "bad luck") || r == nil {
		t.Errorf("%+v, %v", r, err)
	}
	_, err = Run(t.Context(), request(t, "no-such-program-here"))
	if fault.ClassOf(err) != fault.MissingProgram {
		t.Error(err)
	}
}

func TestScriptsRunInOrder(t *testing.T) {
	var log bytes.Buffer
	q := request(t, "")
	q.Log = &log
	q.Scripts = []Script{{"preinstall", "echo one > order"}, {"install", "echo two >> order; (exit 7)"}, {"postinstall", "echo three >> order"}}
	_, err := Run(t.Context(), q)
	e, ok := errors.AsType[*ScriptError](err)
	if !ok || e.Script.Event != "install" || e.Code != 7 || e.Package != "pkg@1.0.0" {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(q.Dir, "order")); string(text) != "one\ntwo\n" {
		t.Errorf("%q %v", text, err)
	}
	if want := "> preinstall: echo one > order\n> install: echo two >> order; (exit 7)\n"; log.String() != want {
		t.Errorf("log %q", log.String())
	}
}

// TestTextIsPassedAsItIs runs texts that a quoting of ours could break.
func TestTextIsPassedAsItIs(t *testing.T) {
	for _, text := range []string{
		`echo "a  b"`, `echo 'a'"'"'b'`, "echo a\necho b", `echo $((1+1)) ; echo "$npm_lifecycle_script" | cat`,
		`echo 日本 "o'brien"`, `: ; # comment 'not closed`, `printf '%s\n' "--" -n`,
	} {
		q := request(t, text)
		direct, err := exec.Command("/bin/sh", "-c", "npm_lifecycle_script="+fault.ShellWord(text)+"\n"+text).Output()
		if err != nil {
			t.Fatal(err)
		}
		r, err := Run(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if want := "> postinstall: " + Shown(text) + "\n" + strings.TrimRight(string(direct), "\n"); strings.TrimRight(r.Output, "\n") != strings.TrimRight(want, "\n") {
			t.Errorf("%q printed %q, not %q", text, r.Output, want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	for _, name := range []string{"NPM_TOKEN", "DSH_HOME", "DSH_NPM_TOKEN", "HTTPS_PROXY", "NODE_OPTIONS", "npm_config_registry", "SSH_AUTH_SOCK", "GIT_DIR", "LD_PRELOAD"} {
		t.Setenv(name, "secret-"+name)
	}
	q := request(t, "env; pwd; which sh node")
	r, err := Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.Output, "secret-") {
		t.Errorf("what dsh has in its environment reached the script:\n%s", r.Output)
	}
	env := q.environ(q.Scripts[0], "/bin/sh")
	for _, want := range []string{
		"HOME=" + q.Temp + "/home", "TMPDIR=" + q.Temp + "/tmp", "LANG=C.UTF-8", "npm_lifecycle_event=postinstall", "npm_package_name=pkg",
		"npm_package_version=1.0.0", "npm_node_execpath=" + testNode().Program, "NODE=" + testNode().Program, "npm_execpath=", "INIT_CWD=" + q.Dir,
	} {
		if !slices.Contains(env, want) {
			t.Errorf("no %q in %q", want, env)
		}
	}
	q.Getenv = func(name string) string { return map[string]string{"PATH": "relative:.::/usr/bin"}[name] }
	q.Bin = []string{"/bin/of/root"}
	if got, want := q.path(), "/bin/of/root:"+q.Temp+"/bin:"+filepath.Dir(testNode().Program)+":/usr/bin"; got != want {
		t.Errorf("PATH %q, not %q", got, want)
	}
}

func TestNodeGyp(t *testing.T) {
	q := request(t, "node-gyp rebuild 'a b'")
	prefix := t.TempDir()
	write(t, filepath.Join(prefix, "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js"), "console.log('gyp', process.argv.slice(2))")
	if err := os.Mkdir(filepath.Join(prefix, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(testNode().Program, filepath.Join(prefix, "bin", "node")); err != nil {
		t.Fatal(err)
	}
	q.Node.Program = filepath.Join(prefix, "bin", "node")
	if r, err := Run(t.Context(), q); err != nil || !strings.Contains(r.Output, "gyp [ 'rebuild', 'a b' ]") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRefuses(t *testing.T) {
	for name, change := range map[string]func(*Request){
		"a relative directory": func(q *Request) { q.Dir = "x" },
		"a relative root":      func(q *Request) { q.Root = "x" },
		"no temporary one":     func(q *Request) { q.Temp = "" },
	} {
		q := request(t, "echo ran")
		change(&q)
		if r, err := Run(t.Context(), q); err == nil || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	q := request(t, "echo ran")
	q.Dir = filepath.Join(q.Root, "not there")
	if _, err := Run(t.Context(), q); err == nil || !strings.Contains(err.Error(), "not there") {
		t.Error(err)
	}
}

func TestConfined(t *testing.T) {
	for want, r := range map[string]Result{
		"writes confined (Landlock ABI 6); no network (seccomp)":           {Writes: Confinement{true, "Landlock ABI 6"}, Network: Confinement{true, "seccomp"}},
		"NOT confined: this system has no Landlock; network open: none":    {Writes: Confinement{Why: "this system has no Landlock"}, Network: Confinement{Why: "none"}},
		"NOT confined: dsh confines scripts on Linux only":                 {Writes: Confinement{Why: "dsh confines scripts on Linux only"}, Network: Confinement{Why: "dsh confines scripts on Linux only"}},
		"writes NOT confined: this system has no Landlock; no network (x)": {Writes: Confinement{Why: "this system has no Landlock"}, Network: Confinement{true, "x"}},
		"writes confined (Landlock ABI 3); network open: it was allowed":   {Writes: Confinement{true, "Landlock ABI 3"}, Network: Confinement{Why: "it was allowed"}},
	} {
		if got := r.Confined(); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
