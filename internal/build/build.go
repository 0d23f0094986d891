package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// DefaultTimeout is how long the scripts of one package may take together.
const DefaultTimeout = 10 * time.Minute

// Script is one script of a package.
type Script struct {
	Event string `json:"event"` // its key in package.json: preinstall, install, …
	Text  string `json:"text"`  // the command line, as it is written
}

// Request is what to run, and where.
type Request struct {
	Name, Version string              // of the package
	Dir           string              // of the package: absolute; the scripts run in it, and may write there
	Root          string              // absolute; what is below it can be read, as what Dir needs is there; "" is Dir
	Temp          string              // absolute, not in Dir, an empty directory of this request alone: HOME and TMPDIR of the scripts are in it, and they may write there; the caller takes it away
	Bin           []string            // absolute directories of programs, looked into first
	Scripts       []Script            // run in this order, until one fails
	Env           []string            // NAME=value, added to the environment
	Node          Node                // that runs them: of FindNode
	Getenv        func(string) string // of dsh's own environment, for PATH; nil is os.Getenv
	Network       bool                // the scripts may use the network
	Timeout       time.Duration       // of all scripts together; 0 is DefaultTimeout
	Log           io.Writer           // gets the output as it comes, up to MaxLog bytes; nil is nobody
}

// Confinement is whether scripts were kept from doing something.
type Confinement struct {
	Held bool   `json:"held"`
	Why  string `json:"why"` // what held them, or why nothing did
}

// Result is how the scripts ran.
type Result struct {
	Writes  Confinement   `json:"writes"`  // to anything but Dir and a temporary directory
	Network Confinement   `json:"network"` // of any kind
	Output  string        `json:"output"`  // its last lines, fit for a terminal
	Took    time.Duration `json:"-"`
	Left    int           `json:"left,omitempty"` // processes that went on after their script, and were ended
}

// Confined is both confinements in one line.
func (r *Result) Confined() string {
	if !r.Writes.Held && !r.Network.Held {
		if r.Writes.Why == r.Network.Why {
			return "NOT confined: " + r.Writes.Why
		}
		return "NOT confined: " + r.Writes.Why + "; network open: " + r.Network.Why
	}
	text := "writes NOT confined: " + r.Writes.Why
	if r.Writes.Held {
		text = "writes confined (" + r.Writes.Why + ")"
	}
	if r.Network.Held {
		return text + "; no network (" + r.Network.Why + ")"
	}
	return text + "; network open: " + r.Network.Why
}

// ScriptError is that a script failed. Its class is Package, or MissingProgram
// where the shell did not find what the script calls.
type ScriptError struct {
	Package  string // name@version
	Script   Script
	Code     int           // exit code; -1 where there is none
	Signal   string        // that ended it, "" for none
	Timeout  time.Duration // that ran out, 0 where none did
	Output   string        // the last lines, fit for a terminal
	Confined string        // as Result.Confined
}

// notFound is the exit code by which a shell says that there is no such program.
const notFound = 127

func (e *ScriptError) Error() string {
	what := fmt.Sprintf("exit code %d", e.Code)
	switch {
	case e.Timeout > 0:
		what = fmt.Sprintf("not done after %s", e.Timeout)
	case e.Signal != "":
		what = "ended by " + e.Signal
	case e.Code == notFound:
		what = "a program that it calls is not there"
	}
	text := fmt.Sprintf("script %s of %s: %s", e.Script.Event, e.Package, what)
	if e.Output != "" {
		text += "\n\t" + strings.ReplaceAll(e.Output, "\n", "\n\t")
	}
	if e.Confined != "" {
		text += "\nhow it ran: " + e.Confined
	}
	return text
}

// Class is whose problem it is.
func (e *ScriptError) Class() fault.Class {
	if e.Code == notFound {
		return fault.MissingProgram
	}
	return fault.Package
}

// errTimeout is why the scripts end when their time is over.
var errTimeout = errors.New("the scripts took too long")

// job is one script, with all that running it needs.
type job struct {
	shell, text     string
	dir, temp, root string
	node            Node
	network         bool
	env             []string
	out             *output
}

// end is how a script ended: err is a *ScriptError if it failed.
type end struct {
	writes, network Confinement
	left            int
	err             error
}

func (q Request) title() string {
	if q.Version == "" {
		return q.Name
	}
	return q.Name + "@" + q.Version
}

// Run runs the scripts of a package in order. The Result is there also when one
// fails, with a *ScriptError; it is nil if nothing ran. What was written to Dir
// stays there whatever happens. When Run returns, the processes of the scripts
// are gone, those too that went to the background.
func Run(ctx context.Context, q Request) (result *Result, err error) {
	fail := func(err error) (*Result, error) {
		return nil, fmt.Errorf("running scripts of %s: %w", q.title(), err)
	}
	shell, err := findShell()
	if err != nil {
		return fail(err)
	}
	q.Dir, q.Root = filepath.Clean(q.Dir), filepath.Clean(cmp.Or(q.Root, q.Dir))
	if q.Getenv == nil {
		q.Getenv = os.Getenv
	}
	q.Temp = filepath.Clean(q.Temp)
	for _, dir := range []string{q.Dir, q.Root, q.Temp} {
		if !filepath.IsAbs(dir) {
			return fail(fmt.Errorf("the path %q is not absolute", dir))
		}
	}
	if _, err := os.Stat(q.Dir); err != nil {
		return fail(err)
	}
	for _, dir := range []string{homeIn(q.Temp), tmpIn(q.Temp), binIn(q.Temp)} {
		if err := staging.MkdirAll(dir); err != nil {
			return fail(err)
		}
	}
	if q.Node.gyp() != "" {
		if err := staging.WriteDerived(filepath.Join(binIn(q.Temp), gypName), []byte(gypText), 0o755); err != nil {
			return fail(err)
		}
	}
	limit := cmp.Or(q.Timeout, DefaultTimeout)
	ctx, stop := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer stop()
	out := newOutput(q.Log)
	start := time.Now()
	result = &Result{}
	for _, s := range q.Scripts {
		out.heading(s)
		end, err := runScript(ctx, job{
			shell: shell, text: s.Text, dir: q.Dir, temp: q.Temp, root: q.Root,
			node: q.Node, network: q.Network, env: q.environ(s, shell), out: out,
		})
		if err != nil {
			return fail(errors.Join(err, out.close()))
		}
		result.Writes, result.Network = end.writes, end.network
		result.Left += end.left
		result.Took = time.Since(start)
		if end.err == nil {
			continue
		}
		err = end.err
		if failed, ok := errors.AsType[*ScriptError](err); ok {
			failed.Package, failed.Script = q.title(), s
			failed.Output, failed.Confined = out.tail(), result.Confined()
			if errors.Is(context.Cause(ctx), errTimeout) {
				failed.Timeout = limit
			}
		}
		result.Output = out.tail()
		if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout) {
			err = ctx.Err()
		}
		return result, errors.Join(fmt.Errorf("running scripts of %s: %w", q.title(), err), out.close())
	}
	result.Took, result.Output = time.Since(start), out.tail()
	return result, out.close()
}
