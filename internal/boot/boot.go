// Package boot starts a profile, keeps it running and ends it: the environment
// layers, the composed tree, what has to be right before a row starts, the
// slots, the signals, and the report of a start that fails.
//
// It does not read command lines and it does not compose: host runs the rows,
// and plugins has what they run. Of single rows it knows those without which a
// profile has not started, the one that DSH_TELEMETRY_DISABLED switches off, and
// the programs of packages.
package boot

import (
	"context"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"dsh/internal/action"
	"dsh/internal/boot/environ"
	"dsh/internal/boot/eval"
	"dsh/internal/boot/host"
	"dsh/internal/boot/live"
	"dsh/internal/boot/plugins"
	"dsh/internal/boot/plugins/executable"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Request is one start of a profile.
type Request struct {
	Env     action.Env
	Environ []string      // the process environment, "NAME=value"
	Layers  action.Layers // the profile, and the patches of this run
	Args    []string      // the app's, word for word
	// Prepare runs once the environment is known to be right and before the
	// profile is opened.
	Prepare func(ctx context.Context) error
	Version string // of dsh, for diagnostics

	// Stdin, Stdout and Stderr are for the program that a row runs.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Signals are those that end the run: the first one stops it, the second one
	// stops waiting. They are os.Interrupt and others, which terminate.
	Signals <-chan os.Signal
	// Kill ends the process at once. It is for a second signal before any row.
	Kill func(code int)
}

// Log is how a boot tells what happens.
type Log struct {
	Notice func(line string) // in the reference launcher's words
	Warn   func(text string)
	News   func(text string) // for somebody who watches
	// Print prints text that was asked for: on standard output, or on standard
	// error where it says what is wrong with a command line.
	Print func(text string, wrong bool)
	// Row gets what rows tell; nil where nobody wants to know.
	Row func(path, line string)
}

// serial is a Log that several goroutines may write to.
func (l Log) serial() Log {
	var mu sync.Mutex
	one := func(f func(string)) func(string) {
		return func(text string) {
			mu.Lock()
			defer mu.Unlock()
			f(text)
		}
	}
	s := Log{Notice: one(l.Notice), Warn: one(l.Warn), News: one(l.News)}
	s.Print = func(text string, wrong bool) {
		mu.Lock()
		defer mu.Unlock()
		l.Print(text, wrong)
	}
	if l.Row != nil {
		s.Row = func(path, line string) {
			mu.Lock()
			defer mu.Unlock()
			l.Row(path, line)
		}
	}
	return s
}

// telemetryRow is switched off on top of all layers while
// DSH_TELEMETRY_DISABLED is set to anything.
const telemetryRow = "session-telemetry-otel"

// Run starts the profile, and returns the exit code when it has ended. The
// error, if there is one, says why it did not start, failed or did not stop;
// its class says nothing about the code.
func Run(ctx context.Context, req Request, log Log) (code int, err error) {
	r := &run{req: req, log: log.serial()}
	r.ending = newEnding(req.Signals, r.interruptIsOurs)
	early, release := r.ending.early(ctx, req.Kill)
	err = r.prepare(early)
	if ended := release(); ended != nil {
		return codeOf(ended), ended
	}
	if err != nil {
		return codeOf(err), err
	}
	if r.handover != nil {
		return r.handover.run(req)
	}
	first := r.current.Load()
	if exit := plugins.ParseCommandLine(first.tree, req.Args); exit != nil {
		log.Print(exit.Text, exit.Code != 0)
		return exit.Code, nil
	}
	r.ready = make(chan struct{})
	r.profile = r.profileContext()
	r.eval = r.newEvaluator()
	defer r.eval.Close()
	if err := r.admit(ctx, first); err != nil {
		return codeOf(err), err
	}
	return r.start(ctx)
}

// codeOf is the exit code of a start that did not come to its rows. It is 1, as
// in the reference launcher, but for signals.
func codeOf(err error) int {
	if class := fault.ClassOf(err); class == fault.Interrupted || class == fault.Terminated {
		return class.ExitCode()
	}
	return fault.Other.ExitCode()
}

// run is one run of a profile.
type run struct {
	req      Request
	log      Log
	snapshot environ.Snapshot
	layers   action.Layers               // with the texts of the overlays
	current  atomic.Pointer[composition] // that runs, or is being applied
	ending   *ending
	ready    chan struct{} // closed when the start is over and went well
	profile  *slot.ProfileContext
	host     *host.Host
	live     *live.Layers
	eval     *eval.Evaluator
	terminal executable.Terminal
	events   slot.Listeners[host.Event]
	handover *handover // where a launcher on Node.js starts the profile
	flags
	said    map[string]bool // notices; of whoever composes
	mistake string          // the one that was told last; of live

	mu    sync.Mutex
	later []string // warnings that wait for the end of a program
}

// composition is the profile as its files were at one time.
type composition struct {
	*action.Composed
	tree     *compose.Tree // with what the environment adds on top
	programs *programs
}

// prepare is all that comes before a row: nothing of it is running when it
// returns.
func (r *run) prepare(ctx context.Context) error {
	req := r.req
	snapshot, warnings, err := environ.Load(req.Environ, req.Env.Dir, req.Env.Home.Dir(), os.ReadFile)
	if err != nil {
		return err
	}
	r.snapshot = snapshot
	choice, err := action.ChooseInstallation(req.Env, req.Layers.Name, req.Env.Option)
	if err != nil {
		return err
	}
	if choice.Embedded() { // the launcher says it itself
		for _, w := range warnings {
			r.log.Warn(w.String())
		}
	}
	if err := req.Prepare(ctx); err != nil {
		return err
	}
	if !choice.Embedded() {
		r.handover, err = readyHandOver(ctx, req, choice, r.log)
		return err
	}
	r.layers = req.Layers
	c, err := r.compose(ctx)
	if err != nil {
		return err
	}
	r.current.Store(c)
	r.layers.Patches = frozen(req.Layers.Patches, c.Composed)
	for _, w := range c.Warnings {
		r.log.Warn(w)
	}
	r.said = map[string]bool{}
	for _, n := range c.Notices {
		r.said[n] = true
		r.log.Notice(n)
	}
	return nil
}

// compose composes the profile as it is now, with what the environment adds on
// top.
func (r *run) compose(ctx context.Context) (*composition, error) {
	composed, err := action.Compose(ctx, r.env(), action.ComposeOptions{Layers: r.layers})
	if err != nil {
		return nil, err
	}
	tree := composed.Tree
	if r.snapshot.Getenv("DSH_TELEMETRY_DISABLED") != "" && hasRow(tree, telemetryRow) {
		off, err := compose.ParsePatches(compose.Source{File: "DSH_TELEMETRY_DISABLED"}, []byte("- id: "+telemetryRow+"\n  disabled: true\n"))
		if err != nil {
			return nil, err
		}
		layers := append(composed.Stack.Layers[:len(composed.Stack.Layers):len(composed.Stack.Layers)], compose.Layer{Label: "DSH_TELEMETRY_DISABLED", Patches: off})
		tree = compose.Apply(layers, composed.Rules)
	}
	return &composition{composed, tree, &programs{dir: composed.Profile.Dir}}, nil
}

// env is where the profile is read. What it misses is made for the start alone:
// a profile that is removed while it runs does not come back.
func (r *run) env() action.Env {
	env := r.req.Env
	env.Running = r.current.Load() != nil
	return env
}

func hasRow(tree *compose.Tree, id string) bool {
	for row := range tree.All() {
		if row.ID() == id {
			return true
		}
	}
	return false
}
