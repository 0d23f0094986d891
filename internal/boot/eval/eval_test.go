package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dop251/goja"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

func evaluator(t testing.TB, set ...func(*Options)) *Evaluator {
	t.Helper()
	o := Options{
		Environ: []string{"A=1", "EMPTY=", "Path=/bin", "TOKEN=s3cret", "=C:=C:\\x", "broken"},
		Home:    filepath.FromSlash("/home/u/.dsh"), Dir: "/work", Platform: "linux",
		Time: 10 * time.Second, // the machines that run tests may be busy
	}
	for _, f := range set {
		f(&o)
	}
	e := New(o)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

var scope = host.Scope{
	Services: map[string]any{
		"webStartup": map[string]any{"port": 8080, "hosts": []string{"a", "b"}, "open": nil},
		"absent":     host.Undefined{},
		"opaque":     struct{}{},
	},
	Others: []string{"webserver"},
}

func TestValues(t *testing.T) {
	e := evaluator(t)
	for text, want := range map[string]string{
		"1 + 1":                                  "2",
		"'a' + `b${1 + 1}`":                      `"ab2"`,
		"null":                                   "null",
		"undefined":                              "undefined",
		"void 0":                                 "undefined",
		"true":                                   "true",
		"[1, undefined, 'x']":                    `[1,null,"x"]`,
		"({b: 1, a: undefined, 2: [], 1: {}})":   `{"1":{},"2":[],"b":1}`,
		"new Date(0)":                            `"1970-01-01T00:00:00.000Z"`,
		"'<&>\u2028\\u0000\"'":                   `"<&>` + "\u2028" + `\u0000\""`,
		"process.env.A":                          `"1"`,
		"process.env.NONE":                       "undefined",
		"process.env.NONE ?? 5":                  "5",
		"process.env.EMPTY":                      `""`,
		"process.env.PATH":                       "undefined",
		"process.env[`A`]":                       `"1"`,
		"process.env.A = '2'; process.env.A":     `"1"`,
		"Object.keys(process.env).sort().join()": `"A,EMPTY,Path,TOKEN"`,
		"process.platform":                       `"linux"`,
		"process.platform === 'win32'":           "false",
		"process.cwd()":                          `"/work"`,
		"typeof process.argv0":                   "error",
		"ctx.webStartup.port ?? 3080":            "8080",
		"webStartup.hosts":                       `["a","b"]`,
		"ctx.webStartup.open ?? 'x'":             `"x"`,
		"ctx.get('webStartup').port":             "8080",
		"ctx.webStartup.prot":                    "undefined",
		"ctx.webStartup.port = 1; ctx.webStartup.port": "8080",
		"delete ctx.webStartup; ctx.webStartup.port":   "8080",
		"!ctx.get('profileContext')":                   "true",
		"ctx.get('profileContext')":                    "undefined",
		"ctx.absent?.port ?? 1":                        "1",
		"absent":                                       "undefined",
		"!!ctx.get('opaque')":                          "true",
		"ctx.opaque":                                   "{}",
		"const {webStartup: {port}} = ctx; port * 2":   "16160",
		"let x = 1; x + 1":                             "2",
		"(() => { let n = 0; for (const h of webStartup.hosts) n += h.length; return n })()": "2",
		"'aXb'.replaceAll('X', '-').at(-1)":                                                  `"b"`,
		"JSON.stringify = null; Object.freeze = null; [1]":                                   "[1]",
	} {
		v, err := e.Evaluate(t.Context(), text, scope)
		if want == "error" {
			if err == nil {
				t.Errorf("%s: %v", text, v)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		got := "undefined"
		if _, none := v.(host.Undefined); !none {
			got = compose.Show(v)
		}
		if got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
}

func TestHomePath(t *testing.T) {
	e := evaluator(t)
	home := filepath.FromSlash("/home/u/.dsh")
	for text, want := range map[string]string{
		"dshHomePath()":                           home,
		"dshHomePath('sessions')":                 filepath.Join(home, "sessions"),
		"ctx.dshHomePath('a', '..', 'b/./c', '')": filepath.Join(home, "b", "c"),
		"ctx.get('dshHomePath')('x')":             filepath.Join(home, "x"),
	} {
		if v, err := e.Evaluate(t.Context(), text, scope); err != nil || v != want {
			t.Errorf("%s: %v %v", text, v, err)
		}
	}
}

func TestWindowsEnviron(t *testing.T) {
	e := evaluator(t, func(o *Options) { o.Platform = "win32" })
	for text, want := range map[string]any{
		"process.env.PATH":            "/bin",
		"process.env.path":            "/bin",
		"'pATH' in process.env":       true,
		"'x' in process.env":          false,
		"Object.keys(process.env)[2]": "Path",
		"({...process.env}).Path":     "/bin",
	} {
		if v, err := e.Evaluate(t.Context(), text, scope); err != nil || v != want {
			t.Errorf("%s: %v %v", text, v, err)
		}
	}
}

func TestErrors(t *testing.T) {
	e := evaluator(t)
	for text, want := range map[string]string{
		"null.x":                           "TypeError: Cannot read property 'x' of",
		"throw new Error('a\\nb')":         "Error: a b",
		"throw ''":                         "throws",
		"throw {}":                         "[object Object]",
		"throw new Error('x'.repeat(999))": "xxx…",
		"(function f() { return f() })()":  "calls itself too often",
		"() => 1":                          "the value is a function, which a config cannot hold",
		"[{a: Symbol('s')}]":               "the value at a is a symbol, which a config cannot hold",
		"({n: 10n})":                       "the value at n is a bigint, which a config cannot hold",
		"Number(process.env.NONE)":         "the value is NaN, which a config cannot hold",
		"[1 / 0]":                          "the value at 0 is Infinity, which a config cannot hold",
		"(async () => 1)()":                "the value is a promise, which a config cannot hold",
		"const a = []; a.push(a); a":       "TypeError: Converting circular structure to JSON",
		"'x'.repeat(5 << 20)":              "has a value of more than 4 MiB",
		"1 +":                              "line 1, column",
		"ctx.webserver.port":               "reads the service webserver, which the row does not inject",
		"!ctx.get('webserver')":            "reads the service webserver, which the row does not inject",
		"ctx.nothing.port":                 "reads nothing, which is no service of the tree",
		"nothing":                          "reads nothing, which is no service of the tree",
		"[...ctx.loader.entries()]":        "reads loader, which is no service of the tree",
		"require('fs')":                    "reads require, which expressions do not have in this host",
		"fetch('http://x')":                "reads fetch, which expressions do not have in this host",
		"typeof Buffer":                    "reads Buffer, which expressions do not have in this host",
		"setTimeout(() => 1)":              "reads setTimeout, which expressions do not have in this host",
		"process.argv[2]":                  "reads process.argv; of process, expressions have env, platform and cwd() in this host",
		"const {exit} = process; exit(1)":  "reads process.exit",
		"eval('process.exit(1)')":          "TypeError: ",
		"new Function('return fetch')()":   "ReferenceError: fetch is not defined",
		"import('fs')":                     "",
		"dshHomePath(1)":                   "TypeError: dshHomePath: a path is a text, not 1",
	} {
		v, err := e.Evaluate(t.Context(), text, scope)
		wrong, ok := errors.AsType[*Error](err)
		if !ok || !strings.Contains(wrong.Problem, want) || fault.ClassOf(err) != fault.Composition {
			t.Errorf("%s: %v %v", text, v, err)
		}
	}
}

// TestErrorsHideTexts looks at what an error shows of its expression.
func TestErrorsHideTexts(t *testing.T) {
	e := evaluator(t)
	_, err := e.Evaluate(t.Context(), "ctx.none\n  ?? 'pa55word'", scope)
	if err == nil || err.Error() != "!!js ctx.none ?? '***': reads none, which is no service of the tree" {
		t.Error(err)
	}
	_, err = e.Evaluate(t.Context(), "webserver.x", scope)
	if hint := fault.Hint(err); hint != "add webserver to `inject` of the row" {
		t.Error(hint)
	}
	_, err = e.Evaluate(t.Context(), "ctx.none"+strings.Repeat(" + 1", 1000), scope)
	if err == nil || len(err.Error()) > 300 {
		t.Error(err)
	}
}

// TestLimits runs what would never end, or take all memory. Each time the next
// expression has its value.
func TestLimits(t *testing.T) {
	for text, want := range map[string]string{
		"while (true) {}":          "takes longer than 2s",
		"new Array(1e9).join('x')": "",
		"'x'.repeat(1 << 30)":      "",
		"let a = []; while (true) a.push('x'.repeat(1 << 20) + a.length)": "",
		"JSON.stringify(Array(1e8).fill(1))":                              "",
		"[...Array(1e8).keys()].sort()":                                   "",
		"/(a+)+$/.test('a'.repeat(40) + 'b')":                             "",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			e := evaluator(t, func(o *Options) { o.Time = 2 * time.Second })
			begin := time.Now()
			v, err := e.Evaluate(t.Context(), text, scope)
			if strings.HasPrefix(text, "/") && v == false {
				return // quick enough
			}
			wrong, ok := errors.AsType[*Error](err)
			if !ok || !strings.Contains(wrong.Problem, want) {
				t.Errorf("%v %v", v, err)
			}
			if took := time.Since(begin); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
			if v, err := e.Evaluate(t.Context(), "1 + 1", scope); err != nil || v != 2.0 {
				t.Errorf("afterwards: %v %v", v, err)
			}
		})
	}
}

func TestMemoryIsNamed(t *testing.T) {
	e := evaluator(t, func(o *Options) { o.Memory = 32 << 20 })
	_, err := e.Evaluate(t.Context(), "let a = []; while (true) a.push({a: a.length})", scope)
	if err == nil || !strings.Contains(err.Error(), "takes more than 32 MiB of memory") {
		t.Error(err)
	}
}

func TestOneChild(t *testing.T) {
	e := evaluator(t)
	if e.child != nil {
		t.Error("there is a child before the first expression")
	}
	if _, err := e.Evaluate(t.Context(), "nothing", scope); err == nil || e.child != nil {
		t.Error("what is refused starts a child")
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if v, err := e.Evaluate(t.Context(), "globalThis.x = (globalThis.x ?? 0) + 1", scope); err != nil || v != 1.0 {
				t.Errorf("expressions share a world: %v %v", v, err)
			}
		})
	}
	wg.Wait()
	first := e.child
	if _, err := e.Evaluate(t.Context(), "1", scope); err != nil || e.child != first {
		t.Error("another child", err)
	}
	// The child dies.
	_ = first.cmd.Process.Kill()
	if _, err := e.Evaluate(t.Context(), "1", scope); err != nil {
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Error(err)
		}
	}
	if v, err := e.Evaluate(t.Context(), "1", scope); err != nil || v != 1.0 {
		t.Error(v, err)
	}
}

func TestContextEndsAnExpression(t *testing.T) {
	e := evaluator(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := e.Evaluate(ctx, "while (true) {}", scope); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := e.Evaluate(ctx, "1", scope); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if v, err := e.Evaluate(t.Context(), "1", scope); err != nil || v != 1.0 {
		t.Error(v, err)
	}
}

func TestIdleChildEnds(t *testing.T) {
	e := evaluator(t, func(o *Options) { o.Idle = time.Millisecond })
	for range 3 {
		if v, err := e.Evaluate(t.Context(), "1", scope); err != nil || v != 1.0 {
			t.Error(v, err)
		}
		e.turn <- struct{}{}
		c := e.child
		<-e.turn
		if c != nil {
			for range c.answers {
				t.Error("it answers nobody")
			}
		}
	}
}

func TestClose(t *testing.T) {
	e := evaluator(t)
	if _, err := e.Evaluate(t.Context(), "1", scope); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.Evaluate(t.Context(), "1", scope); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// TestServiceThatIsNoJSON hands over what cannot be written.
func TestServiceThatIsNoJSON(t *testing.T) {
	e := evaluator(t)
	bad := host.Scope{Services: map[string]any{"bad": map[string]any{"f": func() {}}}}
	if _, err := e.Evaluate(t.Context(), "1", bad); err == nil || !strings.Contains(err.Error(), "hand the service bad to an expression") {
		t.Error(err)
	}
}

// TestChildHasNothing looks at what the child gets of this process.
func TestChildHasNothing(t *testing.T) {
	t.Setenv("DSH_TEST_SECRET", "x")
	for _, entry := range childEnviron() {
		if name, _, _ := strings.Cut(entry, "="); name != childEnv && name != "SystemRoot" {
			t.Error(entry)
		}
	}
}

// TestGlobalsAreThere asks the child for each name that expressions may use.
func TestGlobalsAreThere(t *testing.T) {
	vm := goja.New()
	for _, name := range globals {
		if name == "process" || name == "undefined" || name == "arguments" {
			continue
		}
		if v, err := vm.RunString("typeof " + name); err != nil || v.String() == "undefined" {
			t.Errorf("%s: %v %v", name, v, err)
		}
	}
}

func TestPlatform(t *testing.T) {
	for goos, want := range map[string]string{"windows": "win32", "linux": "linux", "darwin": "darwin", "illumos": "sunos"} {
		if got := platform(goos); got != want {
			t.Errorf("%s: %s", goos, got)
		}
	}
	if got := New(Options{}).options.Platform; got != platform(runtime.GOOS) {
		t.Error(got)
	}
}

func TestReadLine(t *testing.T) {
	r := bufio.NewReaderSize(strings.NewReader("a\n\n"+strings.Repeat("b", 100)+"\n"+strings.Repeat("c", 1000)+"\n"), 16)
	for _, want := range []string{"a", "", strings.Repeat("b", 100)} {
		if line, err := readLine(r, 500); err != nil || string(line) != want {
			t.Errorf("%q %v", line, err)
		}
	}
	if _, err := readLine(r, 500); !errors.Is(err, errLongLine) {
		t.Error(err)
	}
}

// TestServe speaks to the child's side without a process.
func TestServe(t *testing.T) {
	for name, in := range map[string]string{"nothing": "", "no JSON": "x\n"} {
		if code := serve(strings.NewReader(in), &bytes.Buffer{}); code != 1 {
			t.Errorf("%s: %d", name, code)
		}
	}
}

// FuzzParseValue reads what a child that has gone mad may write.
func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{`{"b":[1,null,"x",true],"1":{"a":{}}}`, "[", "1 2", `{"a":1,"a":2}`, "]", `"\ud800"`, "1e999"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := parseValue(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseValue(written)
		if err != nil || !compose.Equal(v, again) {
			t.Errorf("%s is %s, then %s: %v", text, written, compose.Show(again), err)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	e := evaluator(b)
	for b.Loop() {
		if _, err := e.Evaluate(b.Context(), "ctx.webStartup.port ?? 3080", scope); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFirst(b *testing.B) {
	for b.Loop() {
		e := New(Options{Environ: os.Environ(), Home: b.TempDir()})
		if _, err := e.Evaluate(b.Context(), "process.env.HOME", scope); err != nil {
			b.Fatal(err)
		}
		_ = e.Close()
	}
}

// BenchmarkInChild is Evaluate without the two processes.
func BenchmarkInChild(b *testing.B) {
	s := settings{Environ: os.Environ(), Platform: "linux", Home: "/home", Dir: "/"}
	r := request{Text: "ctx.webStartup.port ?? 3080", Services: map[string]json.RawMessage{"webStartup": json.RawMessage(`{"port":1}`)}}
	for b.Loop() {
		if resp := s.evaluate(r); string(resp.Value) != "1" {
			b.Fatal(resp)
		}
	}
}
