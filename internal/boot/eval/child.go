package eval

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dop251/goja"
)

// The child is known by its own name and a variable of the environment
// together, which no argument of a user can be, and is taken care of before
// main, so that every program that has this package, a test too, can evaluate.
//
// Both sides write JSON, one message in a line: first the settings, which the
// child answers with an empty response, then a request for each expression.
const (
	childName = "dsh: evaluating expressions"
	childEnv  = "DSH_EVAL_CHILD"
)

// The exit codes of a child that has too much memory, and whose expression takes
// too long.
const (
	memoryCode = 77
	timeCode   = 78
)

func init() {
	if os.Args[0] == childName && os.Getenv(childEnv) != "" {
		os.Exit(serve(os.Stdin, os.Stdout))
	}
}

// self is the program to start. On Linux it is also there when the file has
// been replaced.
func self() (string, error) {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe", nil
	}
	return os.Executable()
}

// childEnviron is all that the child gets of an environment. Windows needs to
// know where it is.
func childEnviron() []string {
	environ := []string{childEnv + "=1"}
	if root := os.Getenv("SystemRoot"); root != "" {
		environ = append(environ, "SystemRoot="+root)
	}
	return environ
}

// settings are what all expressions see.
type settings struct {
	Environ             []string
	Platform, Home, Dir string
	Memory              int64
	Time                time.Duration
}

// request is one expression and the services that it sees.
type request struct {
	Text      string
	Services  map[string]json.RawMessage
	Undefined []string // services that could be there and are not
}

// response is the value of an expression, or why it has none.
type response struct {
	Value     json.RawMessage `json:",omitempty"`
	Undefined bool            `json:",omitempty"`
	Problem   string          `json:",omitempty"`
}

// serve is the child.
func serve(in io.Reader, out io.Writer) int {
	signal.Ignore(os.Interrupt) // that is for the parent, whose end is the end of in
	debug.SetMaxStack(64 << 20)
	debug.SetTraceback("none")
	lines := bufio.NewReader(in)
	var s settings
	line, err := readLine(lines, 64<<20)
	if err != nil || json.Unmarshal(line, &s) != nil {
		return 1
	}
	limitMemory(s.Memory)
	var began atomic.Int64 // what cpuTime was when the expression began; 0 while there is none
	go watch(&began, s.Time, uint64(s.Memory))
	answers := json.NewEncoder(out)
	answers.SetEscapeHTML(false)
	if err := answers.Encode(response{}); err != nil {
		return 1
	}
	// What is evaluated may take for ever. The end of in ends it as well.
	requests := make(chan request)
	go func() {
		for {
			var r request
			line, err := readLine(lines, 64<<20)
			if err != nil || json.Unmarshal(line, &r) != nil {
				os.Exit(0)
			}
			requests <- r
		}
	}()
	for r := range requests {
		began.Store(max(int64(cpuTime()), 1))
		resp := s.evaluate(r)
		began.Store(0)
		if err := answers.Encode(resp); err != nil {
			return 1
		}
	}
	return 0
}

// watch ends the process when an expression takes too long, or when it has more
// memory than it may. What counts is the time of the processor, so that
// expressions do not fail because the machine is busy.
func watch(began *atomic.Int64, limit time.Duration, memory uint64) {
	var stats runtime.MemStats
	for range time.Tick(5 * time.Millisecond) {
		if runtime.ReadMemStats(&stats); stats.HeapAlloc > memory {
			os.Exit(memoryCode)
		}
		if began := began.Load(); began > 0 && cpuTime()-time.Duration(began) > limit {
			os.Exit(timeCode)
		}
	}
}

//go:embed scope.js
var scopeText string

var scopeProgram = sync.OnceValue(func() *goja.Program { return goja.MustCompile("scope.js", scopeText, true) })

// evaluate runs one expression in a world of its own.
func (s *settings) evaluate(r request) (resp response) {
	defer func() {
		if p := recover(); p != nil {
			resp = response{Problem: fmt.Sprintf("cannot be evaluated: %v", p)}
		}
	}()
	text, err := s.run(r)
	switch {
	case err != nil:
		return response{Problem: problem(err)}
	case text == nil:
		return response{Undefined: true}
	case len(*text) > maxValue:
		return response{Problem: fmt.Sprintf("has a value of more than %d MiB", maxValue>>20)}
	}
	return response{Value: json.RawMessage(*text)}
}

// run is the value as JSON, nil for undefined.
func (s *settings) run(r request) (*string, error) {
	vm := goja.New()
	vm.SetMaxCallStackSize(512)
	set := map[string]any{"env": s.env(), "platform": s.Platform, "cwd": s.Dir, "services": r.Services, "undefined": r.Undefined}
	text, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	prepare, err := vm.RunProgram(scopeProgram())
	if err != nil {
		return nil, err
	}
	call, ok := goja.AssertFunction(prepare)
	if !ok {
		return nil, errors.New("the scope is no function")
	}
	export, err := call(goja.Undefined(), vm.ToValue(string(text)), vm.ToValue(s.homePath(vm)))
	if err != nil {
		return nil, err
	}
	write, ok := goja.AssertFunction(export)
	if !ok {
		return nil, errors.New("the scope has no writer")
	}
	value, err := vm.RunScript("expression", r.Text)
	if err != nil {
		return nil, err
	}
	written, err := write(goja.Undefined(), value)
	if err != nil || goja.IsUndefined(written) {
		return nil, err
	}
	result := written.String()
	return &result, nil
}

// env is process.env.
func (s *settings) env() map[string]string {
	env := make(map[string]string, len(s.Environ))
	for _, entry := range s.Environ {
		if name, value, ok := strings.Cut(entry, "="); ok && name != "" {
			env[name] = value
		}
	}
	return env
}

// homePath is dshHomePath.
func (s *settings) homePath(vm *goja.Runtime) func(goja.FunctionCall) goja.Value {
	return func(call goja.FunctionCall) goja.Value {
		parts := []string{s.Home}
		for _, argument := range call.Arguments {
			part, ok := argument.Export().(string)
			if !ok {
				panic(vm.NewTypeError("dshHomePath: a path is a text, not %s", argument))
			}
			parts = append(parts, part)
		}
		return vm.ToValue(filepath.Join(parts...))
	}
}

// problem is what is wrong, in one line.
func problem(err error) string {
	const maxProblem = 500
	text := err.Error()
	if thrown, ok := errors.AsType[*goja.Exception](err); ok {
		text = thrown.Value().String()
	}
	if _, ok := errors.AsType[*goja.StackOverflowError](err); ok {
		text = "calls itself too often"
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxProblem {
		text = strings.ToValidUTF8(text[:maxProblem], "") + "…"
	}
	if text == "" {
		text = "throws"
	}
	return text
}
