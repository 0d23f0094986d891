package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/fault"
	"dsh/internal/launch"
)

// commands is dsh's own commands.
func (r *runner) commands() []*cli.Command {
	return []*cli.Command{r.pluginCommand(), r.profileCommand(), r.configCommand(), r.storeCommand(), r.trustCommand(), r.agentPluginCommand(), r.mcpCommand(), r.skillsCommand(), r.catalogCommand(), r.installationCommand()}
}

// own runs one of them.
func (r *runner) own(ctx context.Context, own launch.Own) int {
	commands := r.commands()
	r.ui.JSON = own.Global.JSON
	invocation, err := own.Arrange(syntaxOf(commands))
	if err != nil {
		return usageError(r.ui, err)
	}
	r.invocation = invocation
	r.ui.JSON = invocation.Global.JSON
	app := &cli.App{
		Name:                   "dsh",
		Commands:               commands,
		Writer:                 r.ui.Out,
		ErrWriter:              io.Discard, // errors come back and are printed once
		HideHelpCommand:        true,
		ExitErrHandler:         func(*cli.Context, error) {},
		UseShortOptionHandling: true,
		// A value may hold commas.
		DisableSliceFlagSeparator: true,
		OnUsageError:              r.badFlag,
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			return fault.WithHint(fault.Errorf(fault.Other, "this dsh has no command %q", name),
				"a profile of that name is started with: dsh --profile %s", fault.ShellWord(name))
		},
	}
	if err := app.RunContext(ctx, append([]string{"dsh"}, helpOnly(invocation.Args)...)); err != nil {
		if run, ok := errors.AsType[*endedError](err); ok {
			return run.code
		}
		err = ended(ctx, err)
		if _, said := errors.AsType[*saidError](err); !said {
			r.ui.Fail(err)
		}
		return fault.ClassOf(err).ExitCode()
	}
	return 0
}

// leaf is a command without commands below it, as all of them are made.
func (r *runner) leaf(name, usage, args string, flags []cli.Flag, do cli.ActionFunc) *cli.Command {
	return &cli.Command{
		Name: name, Usage: usage, ArgsUsage: args, Flags: append(flags, profileFlag()),
		HideHelpCommand: true, UseShortOptionHandling: true, OnUsageError: r.badFlag, Action: do,
	}
}

// otherVerb refuses what is no verb of a command; hint is for who typed none.
func (r *runner) otherVerb(hint string) cli.ActionFunc {
	return func(c *cli.Context) error {
		names := make([]string, len(c.Command.Subcommands))
		for i, verb := range c.Command.Subcommands {
			names[i] = verb.Name
		}
		list := strings.Join(names, ", ")
		if last := len(names) - 1; last > 0 {
			list = strings.Join(names[:last], ", ") + " and " + names[last]
		}
		if !c.Args().Present() {
			return fault.WithHint(fault.Errorf(fault.Other, "%s needs a verb: %s", c.Command.Name, list), "%s", hint)
		}
		err := fault.Errorf(fault.Other, "dsh %s has no verb %q; it knows %s", c.Command.Name, c.Args().First(), list)
		if meant := r.closestVerb(c, c.Args().First()); meant != "" {
			return fault.WithHint(err, "did you mean: dsh %s %s", c.Command.Name, meant)
		}
		return err
	}
}

// saidError ends a command with the exit code of its class when its result has
// said everything.
type saidError struct{ class fault.Class }

func (e *saidError) Error() string      { return "see the output" }
func (e *saidError) Class() fault.Class { return e.class }

// endedError ends a command that ran a profile with the profile's code.
type endedError struct{ code int }

func (e *endedError) Error() string { return fmt.Sprintf("the profile ended with %d", e.code) }

// helpOnly leaves nothing but the command and its --help of a line that asks
// for help, because urfave/cli takes arguments for topics.
func helpOnly(args []string) []string {
	for i, word := range args {
		switch word {
		case "--":
			return args
		case "--help", "-h":
			path := slices.IndexFunc(args, func(s string) bool { return strings.HasPrefix(s, "-") })
			return append(args[:min(path, i):min(path, i)], "--help")
		}
	}
	return args
}

// badFlag words what urfave/cli says of a flag for people: with the dashes
// that were typed, and with the command that lists the flags.
func (r *runner) badFlag(c *cli.Context, err error, _ bool) error {
	words := strings.Fields(c.Command.HelpName)
	command := strings.Join(words[min(1, len(words)):], " ")
	if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
		for _, word := range r.args {
			if trimmed := strings.TrimLeft(word, "-"); word != trimmed && (trimmed == name || strings.HasPrefix(trimmed, name+"=")) {
				name, _, _ = strings.Cut(word, "=") // the value may be secret
			}
		}
		err = fault.Errorf(fault.Other, "%s has no flag %s", command, name)
	} else {
		err = fault.Errorf(fault.Other, "%s: %w", command, err)
	}
	return fault.WithHint(err, "dsh %s --help lists the flags", command)
}

// dashed is a flag as it is typed.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// syntaxOf tells the launcher's grammar which commands and flags there are.
func syntaxOf(commands []*cli.Command) []launch.Syntax {
	help := launch.Flag{Names: []string{"help", "h"}}
	var list []launch.Syntax
	for _, c := range commands {
		s := launch.Syntax{
			Names:   append([]string{c.Name}, c.Aliases...),
			Summary: c.Usage,
			Flags:   []launch.Flag{help},
			Verbs:   syntaxOf(c.Subcommands),
		}
		for _, f := range c.Flags {
			_, isBool := f.(*cli.BoolFlag)
			s.Flags = append(s.Flags, launch.Flag{Names: f.Names(), Value: !isBool})
		}
		list = append(list, s)
	}
	return list
}
