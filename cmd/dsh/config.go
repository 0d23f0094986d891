package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
)

// configCommand is `dsh config`: what a profile composes to, why, and how to
// change it. Nothing is booted and nothing is fetched.
func (r *runner) configCommand() *cli.Command {
	c := &cli.Command{
		Name:      "config",
		Usage:     "explain, check and change what a profile composes to",
		ArgsUsage: " ",
		Description: "ROW is the id of a row and ROW.KEY a place in its config; ROW:KEY is a key of the row\n" +
			"itself, as in web:disabled. Put a name that has a dot in quotes. Values under keys that\n" +
			"are named like secrets are hidden; --show-secrets shows them. --json prints one JSON\n" +
			"document.",
		Flags:           []cli.Flag{profileFlag()},
		HideHelpCommand: true,
		OnUsageError:    r.badFlag,
		Action:          r.otherVerb("dsh config check looks for mistakes, dsh config explain shows the rows"),
	}
	c.Subcommands = append(c.Subcommands, r.configShowVerbs()...)
	c.Subcommands = append(c.Subcommands, r.configCheckVerbs()...)
	c.Subcommands = append(c.Subcommands, r.configEditVerbs()...)
	c.Subcommands = append(c.Subcommands, r.configCompatVerb())
	return c
}

// layerFlags are the flags of verbs that compose the layers of a run.
func layerFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "patch", Usage: "a patch file on top of the profile's layers, - for standard input (repeatable)"},
		&cli.StringSliceFlag{Name: "set", Usage: "one value on top of everything: ROW.KEY=VALUE (repeatable)"},
		showSecretsFlag(),
	}
}

func showSecretsFlag() cli.Flag {
	return &cli.BoolFlag{DisableDefaultText: true, Name: "show-secrets", Usage: "show the values of keys that are named like secrets"}
}

// configVerb is one verb of `dsh config`.
func (r *runner) configVerb(name, usage, args string, do func(*configRun) error, flags ...cli.Flag) *cli.Command {
	return r.leaf(name, usage, args, flags, func(c *cli.Context) error {
		run, err := r.configRun(c)
		if err != nil {
			return err
		}
		return ended(run.ctx, do(run))
	})
}

// configRun is one verb of `dsh config` under way.
type configRun struct {
	*runner
	cli    *cli.Context
	ctx    context.Context
	env    action.Env
	layers action.Layers
}

func (r *runner) configRun(c *cli.Context) (*configRun, error) {
	env, err := r.place(r.invocation.Global)
	if err != nil {
		return nil, err
	}
	name, err := r.profileName()
	if err == nil {
		env, err = env.On(name)
	}
	if err != nil {
		return nil, err
	}
	run := &configRun{runner: r, cli: c, ctx: c.Context, env: env}
	run.layers = action.Layers{Name: name, Sets: c.StringSlice("set")}
	run.layers.Patches, err = r.overlays(c.Context, env.Dir, c.StringSlice("patch"))
	return run, err
}

// showSecrets says whether values are shown that look like secrets.
func (c *configRun) showSecrets() bool { return c.cli.Bool("show-secrets") }
