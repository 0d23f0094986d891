package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/fault"
	"dsh/internal/launch"
)

// commands is dsh's own commands.
func (r *runner) commands() []*cli.Command {
	return []*cli.Command{r.pluginCommand()}
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
		OnUsageError:           func(_ *cli.Context, err error, _ bool) error { return err },
		Action: func(c *cli.Context) error {
			name := c.Args().First()
			return fault.WithHint(fault.Errorf(fault.Other, "this dsh has no command %q", name),
				"a profile of that name is started with: dsh --profile %s", shellWord(name))
		},
	}
	if err := app.RunContext(ctx, append([]string{"dsh"}, invocation.Args...)); err != nil {
		err = ended(ctx, err)
		r.ui.Fail(err)
		return fault.ClassOf(err).ExitCode()
	}
	return 0
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

// shellWord is a word as a shell needs it written.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./-_~") == "" {
		return s
	}
	return fmt.Sprintf("'%s'", strings.ReplaceAll(s, "'", `'\''`))
}

func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellWord(w)
	}
	return strings.Join(quoted, " ")
}
