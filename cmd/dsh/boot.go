package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"dsh/internal/action"
	"dsh/internal/boot"
	"dsh/internal/fault"
	"dsh/internal/launch"
	"dsh/internal/profile"
)

// boot starts the profile of a command line, and returns the exit code when it
// has ended.
func (r *runner) boot(ctx context.Context, b launch.Boot) (int, error) {
	env, layers, err := r.target(ctx, b.Launch)
	if err != nil {
		return fault.Other.ExitCode(), err
	}
	hint := ""
	if option := launch.Misplaced(b.Args); option != "" {
		hint = option + " and what follows it went to the profile: dsh's own options go before the profile's name"
	}
	code, err := r.run(ctx, env, layers, b.Args, hint, func(ctx context.Context) error { return r.replace(ctx, env, layers.Name, b.Launch) })
	if missing, ok := errors.AsType[*profile.MissingError](err); ok && slices.Contains(otherTools, missing.Name.String()) {
		return code, fault.WithHint(err, "dsh --help lists the commands; packages are added with dsh plugin add")
	}
	if hint != "" {
		err = fault.WithHint(err, "%s", hint)
	}
	return code, err
}

// otherTools are first words that people know as commands from other tools and
// that here, as in the reference launcher, name a profile.
var otherTools = []string{"help", "version", "list", "ls", "add", "install", "i", "remove", "rm", "update", "init", "doctor"}

// logVariable is set to "debug" to see on standard error what rows do.
const logVariable = "DSH_LOG"

// run runs a profile until it ends, with the signals of the process. hint is for
// arguments that the app does not understand.
func (r *runner) run(ctx context.Context, env action.Env, layers action.Layers, args []string, hint string, prepare func(context.Context) error) (int, error) {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		// What a program was told to ignore, as by nohup, it ignores.
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	log := boot.Log{
		Notice: r.ui.Notice, Warn: r.ui.Warn,
		News: func(text string) {
			if r.ui.Watched() {
				r.ui.Say("%s", text)
			}
		},
		Print: func(text string, wrong bool) {
			if wrong {
				fmt.Fprint(r.ui.Err, text)
				if hint != "" {
					r.ui.Say("hint: %s", hint)
				}
			} else {
				fmt.Fprint(r.ui.Out, text)
			}
		},
	}
	if r.getenv(logVariable) == "debug" {
		log.Row = func(path, line string) { r.ui.Say("[%s] %s", path, line) }
	}
	stdout := r.ui.Out
	if checked, ok := stdout.(*checkedWriter); ok {
		stdout = checked.Writer // a file goes to a program as it is
	}
	return boot.Run(ctx, boot.Request{
		Env: env, Environ: r.environ, Layers: layers, Args: args, Prepare: prepare, Version: version(),
		Stdin: r.stdin, Stdout: stdout, Stderr: r.ui.Err, Signals: signals, Kill: os.Exit,
	}, log)
}
