package build

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

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
		Scripts: []Script{{"postinstall", text}}, Getenv: os.Getenv, Timeout: time.Minute, Node: testNode(t),
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
	q := request(t, "env; pwd")
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
		"npm_package_version=1.0.0", "npm_node_execpath=" + q.Node.Program, "NODE=" + q.Node.Program, "npm_execpath=", "INIT_CWD=" + q.Dir,
	} {
		if !slices.Contains(env, want) {
			t.Errorf("no %q in %q", want, env)
		}
	}
	q.Getenv = func(name string) string { return map[string]string{"PATH": "relative:.::/usr/bin"}[name] }
	q.Bin = []string{"/bin/of/root"}
	if got, want := q.path(), "/bin/of/root:"+q.Temp+"/bin:"+filepath.Dir(q.Node.Program)+":/usr/bin"; got != want {
		t.Errorf("PATH %q, not %q", got, want)
	}
}

func TestNodeGyp(t *testing.T) {
	q := request(t, "node-gyp rebuild 'a b'")
	prefix := t.TempDir()
	script := write(t, filepath.Join(prefix, "lib/node_modules/npm/node_modules/node-gyp/bin/node-gyp.js"), "")
	if err := os.Mkdir(filepath.Join(prefix, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(q.Node.Program, filepath.Join(prefix, "bin", "node")); err != nil {
		t.Fatal(err)
	}
	q.Node.Program = filepath.Join(prefix, "bin", "node")
	q.Env = []string{probeEnv + "=arguments"}
	if r, err := Run(t.Context(), q); err != nil || !strings.Contains(r.Output, `["`+script+`" "rebuild" "a b"]`) {
		t.Errorf("%+v, %v", r, err)
	}
	write(t, filepath.Join(prefix, "include/node/node.h"), "")
	if env := q.environ(q.Scripts[0], "/bin/sh"); !slices.Contains(env, "npm_config_nodedir="+prefix) {
		t.Error(env)
	}
}

func TestFindNode(t *testing.T) {
	dir := t.TempDir()
	real := write(t, filepath.Join(dir, "versions", "24", "bin", "node"), "")
	shims := filepath.Join(dir, "shims")
	find := func() (Node, error) {
		return FindNode(t.Context(), func(string) string { return "relative:" + filepath.Join(dir, "none") + ":" + shims })
	}
	if n, err := find(); err != nil || n != (Node{}) {
		t.Errorf("there is none: %+v, %v", n, err)
	}
	shim := write(t, filepath.Join(shims, "node"), "#!/bin/sh\n[ \"$1\" = -p ] && echo '{\"Program\":\""+real+"\",\"Version\":\"v24.1.0\",\"Modules\":\"137\",\"Arch\":\"x64\"}'")
	if n, err := find(); err != nil || n != (Node{}) {
		t.Errorf("it is no program: %+v, %v", n, err)
	}
	if err := os.Chmod(shim, 0o755); err != nil {
		t.Fatal(err)
	}
	if n, err := find(); err != nil || n != (Node{real, "v24.1.0", "137", "x64"}) {
		t.Errorf("%+v, %v", n, err)
	}
	for _, text := range []string{"echo broken >&2; exit 1", "echo hello", `echo '{"Program": "node"}'`} {
		write(t, shim, "#!/bin/sh\n"+text)
		if n, err := find(); err == nil || !strings.Contains(err.Error(), shim) || fault.ClassOf(err) != fault.Environment {
			t.Errorf("%s: %+v, %v", text, n, err)
		}
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
