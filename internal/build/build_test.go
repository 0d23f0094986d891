package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
