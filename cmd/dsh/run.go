package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/launch"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
	"dsh/internal/ui"
)

// run is the whole program: argv in, exit code out.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, environ []string) int {
	getenv := lookup(environ)
	out := &checkedWriter{Writer: stdout}
	u := ui.New(out, stderr, getenv)
	u.Listen(stdin)
	// The HTTP client of the library tells the log of what odd servers send.
	log.SetOutput(io.Discard)
	code := dispatch(ctx, &runner{ui: u, args: args, stdin: stdin, environ: environ, getenv: getenv})
	if out.err != nil {
		u.JSON = false // there is nobody to read it
		u.Fail(fmt.Errorf("write the output: %w", out.err))
		// One code, whatever the command would have said with its own.
		if code < fault.Interrupted.ExitCode() {
			code = fault.Other.ExitCode()
		}
	}
	return code
}

// checkedWriter remembers that output was lost.
type checkedWriter struct {
	io.Writer
	err error
}

// Fd is that of the file behind it, by which a terminal is known; of no file
// where there is none.
func (w *checkedWriter) Fd() uintptr {
	if f, ok := w.Writer.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

func dispatch(ctx context.Context, r *runner) int {
	u := r.ui
	command, err := launch.Parse(r.args, r.getenv, r.chosen)
	if err != nil {
		return usageError(u, err)
	}
	if b, boots := command.(launch.Boot); boots {
		u.JSON = b.Global.JSON
		code, err := r.boot(ctx, b)
		if err != nil {
			u.Fail(err)
		}
		return code
	}
	ctx, stop := interruptible(ctx)
	defer stop()
	collectLate(r.getenv)
	switch c := command.(type) {
	case launch.Help:
		fmt.Fprint(u.Out, launch.HelpText(syntaxOf(r.commands())))
	case launch.Version:
		fmt.Fprintln(u.Out, version())
	case launch.Dump:
		u.JSON = c.Global.JSON
		return launcherCode(u, r.dump(ctx, c))
	case launch.Own:
		return r.own(ctx, c)
	}
	return 0
}

// memoryGoal is below what a short command may use at most, see collectLate.
const memoryGoal = 224 << 20

// collectLate leaves garbage where it is until there is much of it: a command
// that ends after a moment has better uses for its time. Who sets the variables
// of the Go runtime knows better.
func collectLate(getenv func(string) string) {
	if getenv("GOGC") == "" && getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(-1)
		debug.SetMemoryLimit(memoryGoal)
	}
}

// runner is what the commands of one run share.
type runner struct {
	ui      *ui.UI
	args    []string
	stdin   io.Reader
	environ []string
	getenv  func(string) string
	// invocation is the command line of one of our own commands, in order.
	invocation launch.Invocation
	unopened   string // what was said of a chosen installation that cannot be opened
}

// lookup finds a variable in an environment; as in exec, the last one counts,
// and on Windows names are the same in any case.
func lookup(environ []string) func(string) string {
	return func(name string) string {
		value := ""
		for _, entry := range environ {
			has, v, ok := strings.Cut(entry, "=")
			if ok && (has == name || runtime.GOOS == "windows" && strings.EqualFold(has, name)) {
				value = v
			}
		}
		return value
	}
}

// interruptible ends with the first Ctrl-C, SIGTERM or lost terminal; the
// second one kills the program the usual way, which harms nothing on disk.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		select {
		case s := <-signals:
			cause := fault.Errorf(fault.Interrupted, "interrupted; nothing was changed")
			if s != os.Interrupt {
				cause = fault.Errorf(fault.Terminated, "terminated; nothing was changed")
			}
			cancel(cause)
			// Programs that end a whole process group signal twice in one go;
			// only a second thought is a second signal.
			time.Sleep(200 * time.Millisecond)
			signal.Stop(signals)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(signals); cancel(nil) }
}

// ended gives an error that the end of ctx caused the words and the class of
// that cause. Changes happen whole or not at all, so that an error says that
// nothing was changed.
func ended(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// usageError reports a command line that cannot be understood.
func usageError(u *ui.UI, err error) int {
	if usage, ok := errors.AsType[*launch.UsageError](err); ok {
		u.JSON = usage.Global.JSON
		u.FailUsage(usage.Error(), usage.Extra)
	} else {
		u.Fail(err)
	}
	return fault.Other.ExitCode()
}

// launcherCode reports how a dump ended. All errors of it exit
// with 1, as the reference launcher's do, except that a signal keeps its code.
func launcherCode(u *ui.UI, err error) int {
	if err == nil {
		return 0
	}
	if _, said := errors.AsType[*saidError](err); said {
		return fault.Other.ExitCode()
	}
	u.Fail(err)
	if class := fault.ClassOf(err); class == fault.Interrupted || class == fault.Terminated {
		return class.ExitCode()
	}
	return fault.Other.ExitCode()
}

// env is where the commands of this run act that are not about one profile.
func (r *runner) env(global launch.Global) (action.Env, error) {
	env, err := r.place(global)
	if err != nil {
		return env, err
	}
	return r.leniently(env, profile.Name{})
}

// leniently is env for a command on a profile that goes on where the
// installation that was chosen cannot be opened: one that only looks, or mends.
func (r *runner) leniently(env action.Env, name profile.Name) (action.Env, error) {
	on, err := env.On(name)
	if err == nil || env.Option != "" {
		return on, err
	}
	if text := fmt.Sprintf("%v; going on with the embedded installation; %s", err, fault.Hint(err)); text != r.unopened {
		r.ui.Warn(text)
		r.unopened = text
	}
	return env.OnEmbedded(), nil
}

// place is env for commands that need no installation.
func (r *runner) place(global launch.Global) (action.Env, error) {
	home, err := profile.ResolveHome("", r.getenv)
	if err != nil {
		return action.Env{}, err
	}
	// The real directory, and not the links that led here: "..", too, means
	// what it means to every other program.
	dir, err := os.Getwd()
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return action.Env{}, fmt.Errorf("find the working directory: %w", err)
	}
	wait, err := lockWait(r.getenv)
	if err != nil {
		return action.Env{}, err
	}
	return action.Env{
		Home:   home,
		Wait:   wait,
		Dir:    dir,
		Getenv: r.getenv,
		Option: global.Installation,
		Args:   r.args,
		Waiting: func(h staging.Holder) {
			r.ui.Say("waiting for another dsh: %s", h)
		},
	}, nil
}

// lockVariable says how long to wait for another dsh that changes a profile.
const lockVariable = "DSH_LOCK_TIMEOUT"

// lockWait is the value of lockVariable: seconds, or a number with a unit.
func lockWait(getenv func(string) string) (time.Duration, error) {
	const usual = 10 * time.Minute
	text := strings.TrimSpace(getenv(lockVariable))
	if text == "" {
		return usual, nil
	}
	wait, err := time.ParseDuration(text)
	if err != nil {
		wait, err = time.ParseDuration(text + "s")
	}
	if err != nil || wait <= 0 {
		return 0, fault.Errorf(fault.Other, "%s is %q, and should be a time such as 30s or 10m", lockVariable, text)
	}
	return wait, nil
}

// target is the profile that a boot or a dump is about, and its layers.
func (r *runner) target(ctx context.Context, l launch.Launch) (action.Env, action.Layers, error) {
	env, err := r.place(l.Global)
	if err != nil {
		return env, action.Layers{}, err
	}
	name, err := profile.ParseName(l.Profile)
	if err == nil {
		env, err = env.On(name)
	}
	if err != nil {
		return env, action.Layers{}, err
	}
	patches, err := r.overlays(ctx, env.Dir, l.Patches)
	return env, action.Layers{Name: name, Patches: patches, Sets: l.Sets}, err
}

// overlays are the patches that --patch options name; "-" is standard input.
func (r *runner) overlays(ctx context.Context, dir string, names []string) ([]stack.Overlay, error) {
	var overlays []stack.Overlay
	for _, name := range names {
		if name == "-" {
			text, err := r.readStdin(ctx)
			if err != nil {
				return nil, err
			}
			overlays = append(overlays, stack.Overlay{Label: "<stdin>", Dir: dir, Text: text})
			continue
		}
		file := filepath.Clean(name)
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, name)
		}
		overlays = append(overlays, stack.Overlay{Label: file, Dir: filepath.Dir(file)})
	}
	return overlays, nil
}

// readStdin is all of standard input, never nil. A read from a terminal or a
// pipe cannot be taken back, so it is left behind when ctx ends.
func (r *runner) readStdin(ctx context.Context) ([]byte, error) {
	text, err := []byte{}, error(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = io.ReadAll(r.stdin)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("read standard input: %w", err)
	}
	return text, nil
}

// replace does what --from-default-profile asks for, if anything.
func (r *runner) replace(ctx context.Context, env action.Env, name profile.Name, l launch.Launch) error {
	if l.FromDefault == "" {
		return nil
	}
	done, err := action.Replace(ctx, env, action.ReplaceOptions{Name: name, Template: l.FromDefault, Implied: l.Implied})
	if err != nil {
		return ended(ctx, err)
	}
	if done.Kept != "" {
		r.ui.Notice(fmt.Sprintf("the previous profile %s is kept in %s; to undo this: %s", name, done.Kept, rollbackCommand(name.String())))
	}
	for _, w := range done.Warnings {
		r.ui.Warn(w)
	}
	r.warnReserved(name)
	return nil
}

// warnReserved tells who just made a profile that its name alone means a
// command.
func (r *runner) warnReserved(name profile.Name) {
	if launch.IsCommand(name.String()) {
		r.ui.Warn(fmt.Sprintf("%q is also a command; the profile is started with: dsh --profile %s", name, name))
	}
}

func (r *runner) dump(ctx context.Context, d launch.Dump) error {
	env, layers, err := r.target(ctx, d.Launch)
	if err != nil {
		return err
	}
	if err := r.replace(ctx, env, layers.Name, d.Launch); err != nil {
		return err
	}
	layers.BundlesOnly = d.Kind == launch.DefaultConfig
	composed, err := action.Compose(ctx, env, action.ComposeOptions{
		Layers: layers, Create: d.Implied && d.Profile == launch.DefaultProfile,
	})
	if err != nil {
		return err
	}
	for _, w := range composed.Warnings {
		r.ui.Warn(w)
	}
	if d.Kind == launch.ConfigSchema {
		return r.printSchema(env, composed)
	}
	for _, n := range composed.Notes {
		r.ui.Say("%s", n)
	}
	for _, n := range composed.Notices {
		r.ui.Notice(n)
	}
	text := composed.Tree.Dump()
	document := map[string]any{"profile": layers.Name.String(), "config": string(text), "notes": append([]string{}, composed.Notes...)}
	return r.ui.Result(document, func(w io.Writer) {
		w.Write(text)
	})
}

// printSchema ends with exit code 1 where the schema does not know the config
// of every row.
func (r *runner) printSchema(env action.Env, composed *action.Composed) error {
	schema, err := action.Schema(env, composed)
	if err != nil {
		return err
	}
	for _, d := range schema.Diagnostics {
		if d.Error {
			r.ui.Notice("error: " + d.String())
		} else {
			r.ui.Warn(d.String())
		}
	}
	err = r.ui.Result(json.RawMessage(schema.Document), func(w io.Writer) { w.Write(schema.Document) })
	if err == nil && !schema.Complete {
		err = &saidError{fault.Other}
	}
	return err
}

// version is the release, or the commit that the program was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "0.1.0-dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}
