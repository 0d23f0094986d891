// Package eval gives expressions their values. JavaScript runs in one child
// process of this program, within limits of time and memory.
//
// It does not decide when an expression is evaluated, or what of the tree it
// sees; the host does.
package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/compose"
	"dsh/internal/compose/jsexpr"
	"dsh/internal/fault"
)

// Options are what all expressions see, and their limits.
type Options struct {
	// Environ is process.env, "NAME=value".
	Environ []string
	// Home is the directory below which dshHomePath joins its arguments.
	Home string
	// Dir is process.cwd().
	Dir string
	// Platform is process.platform; that of this program when empty.
	Platform string
	// Time is what one expression may take of the processor: a second when zero.
	// It may last ten times as long, where the machine is busy.
	Time time.Duration
	// Memory is the bytes that the child may use for one expression: 256 MiB when
	// zero. It ends itself some milliseconds after it has more; on Linux the
	// system refuses it much more.
	Memory int64
	// Idle is how long the child waits for another expression: two seconds when
	// zero. A later expression gets a fresh one.
	Idle time.Duration
}

// startTime is what the child may take to be there.
const startTime = 10 * time.Second

// maxValue is how long the JSON of a value may be.
const maxValue = 4 << 20

// Error is an expression without a value.
type Error struct {
	Text    string // of the expression, without the texts in it
	Problem string
	Remedy  string // "" where there is none
}

func (e *Error) Error() string { return fmt.Sprintf("!!js %s: %s", e.Text, e.Problem) }

// Class is that of the layers.
func (e *Error) Class() fault.Class { return fault.Composition }

// Hint is the remedy.
func (e *Error) Hint() string { return e.Remedy }

func newError(text, problem, remedy string) *Error {
	const maxShown = 200
	shown := strings.Join(strings.Fields(jsexpr.MaskLiterals(text)), " ")
	if runes := []rune(shown); len(runes) > maxShown {
		shown = string(runes[:maxShown]) + "…"
	}
	return &Error{Text: shown, Problem: problem, Remedy: remedy}
}

// Evaluator evaluates expressions, one after the other. The first one starts
// the child. It is a host.Evaluator.
type Evaluator struct {
	options Options
	turn    chan struct{} // holds one while the child is used

	// What turn guards.
	child  *child
	idle   *time.Timer
	closed bool
}

// New is an evaluator without a child.
func New(o Options) *Evaluator {
	if o.Platform == "" {
		o.Platform = platform(runtime.GOOS)
	}
	if o.Time == 0 {
		o.Time = time.Second
	}
	if o.Memory == 0 {
		o.Memory = 256 << 20
	}
	if o.Idle == 0 {
		o.Idle = 2 * time.Second
	}
	return &Evaluator{options: o, turn: make(chan struct{}, 1)}
}

// platform is Node.js's name of a system.
func platform(goos string) string {
	switch goos {
	case "windows":
		return "win32"
	case "solaris", "illumos":
		return "sunos"
	default:
		return goos
	}
}

// Evaluate is the value of an expression. What it reads that is not there
// refuses it before it runs. The error is an *Error, or one of ctx or of
// starting the child.
func (e *Evaluator) Evaluate(ctx context.Context, text string, scope host.Scope) (compose.Value, error) {
	if err := refuse(text, scope); err != nil {
		return nil, err
	}
	req := request{Text: text, Services: map[string]json.RawMessage{}}
	for service, value := range scope.Services {
		if _, none := value.(host.Undefined); none {
			req.Undefined = append(req.Undefined, service)
			continue
		}
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("hand the service %s to an expression: %w", service, err)
		}
		req.Services[service] = text
	}
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-e.turn }()
	resp, err := e.ask(ctx, req)
	if err != nil {
		return nil, err
	}
	switch {
	case resp.Problem != "":
		return nil, newError(text, resp.Problem, "")
	case resp.Undefined:
		return host.Undefined{}, nil
	}
	value, err := parseValue(resp.Value)
	if err != nil {
		return nil, fmt.Errorf("read the value of an expression: %w", err)
	}
	return value, nil
}

var errClosed = errors.New("expressions are not evaluated any more")

// ask sends the child a request, and gives up on a child that does not answer.
func (e *Evaluator) ask(ctx context.Context, req request) (response, error) {
	if err := ctx.Err(); err != nil {
		return response{}, err
	}
	if e.closed {
		return response{}, errClosed
	}
	if e.idle != nil {
		e.idle.Stop()
	}
	if e.child == nil {
		c, err := startChild(ctx, e.options)
		if err != nil {
			return response{}, fmt.Errorf("start the process that evaluates expressions: %w", err)
		}
		e.child = c
	}
	resp, err := e.child.exchange(ctx, 10*e.options.Time, req)
	if err != nil {
		code := e.child.kill()
		e.child = nil
		switch {
		case ctx.Err() != nil:
			return response{}, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded) || code == timeCode:
			return response{}, newError(req.Text, fmt.Sprintf("takes longer than %s", e.options.Time), "")
		case code == memoryCode:
			return response{}, newError(req.Text, fmt.Sprintf("takes more than %d MiB of memory", e.options.Memory>>20), "")
		default:
			return response{}, newError(req.Text, "ended the process that evaluates it, as a rule for its need of memory", "")
		}
	}
	e.idle = time.AfterFunc(e.options.Idle, e.rest)
	return resp, nil
}

// rest ends a child that has nothing to do.
func (e *Evaluator) rest() {
	select {
	case e.turn <- struct{}{}:
	default:
		return // it has something to do
	}
	defer func() { <-e.turn }()
	e.end()
}

func (e *Evaluator) end() {
	if e.idle != nil {
		e.idle.Stop()
	}
	if e.child != nil {
		e.child.kill()
		e.child = nil
	}
}

// Close ends the child. No expression is evaluated any more.
func (e *Evaluator) Close() error {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.closed = true
	e.end()
	return nil
}

// child is the process.
type child struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan []byte // the lines that it writes; closed at their end
}

func startChild(ctx context.Context, o Options) (*child, error) {
	program, err := self()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program)
	cmd.Args = []string{childName}
	cmd.Env = childEnviron()
	cmd.Dir = filepath.VolumeName(o.Home) + string(filepath.Separator)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, in: in, answers: make(chan []byte)}
	go c.read(out)
	settings := settings{Environ: o.Environ, Platform: o.Platform, Home: o.Home, Dir: o.Dir, Memory: o.Memory, Time: o.Time}
	if _, err := c.send(ctx, startTime, settings); err != nil {
		c.kill()
		return nil, err
	}
	return c, nil
}

// read hands on what the child writes.
func (c *child) read(out io.Reader) {
	defer close(c.answers)
	lines := bufio.NewReader(out)
	for {
		line, err := readLine(lines, 2*maxValue) // some characters are written longer
		if err != nil {
			return
		}
		c.answers <- line
	}
}

var errLongLine = errors.New("a line is too long")

// readLine reads up to the end of a line, which is left out.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if line = append(line, part...); len(line) > limit {
			return nil, errLongLine
		}
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// exchange sends a request and reads the response.
func (c *child) exchange(ctx context.Context, limit time.Duration, req request) (response, error) {
	line, err := c.send(ctx, limit, req)
	if err != nil {
		return response{}, err
	}
	var resp response
	if err := json.Unmarshal(line, &resp); err != nil {
		return response{}, err
	}
	return resp, nil
}

// send sends the child a message and waits for its answer.
func (c *child) send(ctx context.Context, limit time.Duration, message any) ([]byte, error) {
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	go func() { _, _ = c.in.Write(append(text, '\n')) }() // a child that is gone does not answer
	select {
	case line, ok := <-c.answers:
		if !ok {
			return nil, io.ErrUnexpectedEOF
		}
		return line, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// kill ends the process, and is the exit code of one that has ended by itself.
func (c *child) kill() int {
	_ = c.in.Close()
	patience := time.Duration(0)
	select {
	case _, more := <-c.answers:
		if !more {
			patience = time.Second
		}
	default:
	}
	killer := time.AfterFunc(patience, func() { _ = c.cmd.Process.Kill() })
	defer killer.Stop()
	for range c.answers {
		// What it still wrote.
	}
	_ = c.cmd.Wait()
	return c.cmd.ProcessState.ExitCode()
}
