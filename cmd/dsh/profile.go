package main

import (
	"context"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/profile"
)

// profileCommand is `dsh profile`: what there is of profiles, their life cycle,
// and the way back to what they were.
func (r *runner) profileCommand() *cli.Command {
	c := &cli.Command{
		Name:      "profile",
		Usage:     "list, make, copy, share and restore profiles",
		ArgsUsage: " ",
		Description: "NAME is the profile; where it is left out, --profile, $DSH_PROFILE, the profile that\n" +
			"dsh profile use chose, or default. --json prints one JSON document.",
		Flags:           []cli.Flag{profileFlag()},
		HideHelpCommand: true,
		OnUsageError:    r.badFlag,
		Action:          r.otherVerb("dsh profile list shows the profiles, dsh profile history what has changed in one"),
	}
	c.Subcommands = append(c.Subcommands, r.profileLifeVerbs()...)
	c.Subcommands = append(c.Subcommands, r.profileHistoryVerbs()...)
	c.Subcommands = append(c.Subcommands, r.profileArchiveVerbs()...)
	c.Subcommands = append(c.Subcommands, r.profileRepairVerbs()...)
	return c
}

// profileVerb is one verb of `dsh profile`. Its arguments are for do to read,
// which may begin with [profileRun.named].
func (r *runner) profileVerb(name, usage, args string, do func(*profileRun) error, flags ...cli.Flag) *cli.Command {
	return r.leaf(name, usage, args, flags, func(c *cli.Context) error {
		env, err := r.env(r.invocation.Global)
		if err != nil {
			return err
		}
		run := &profileRun{runner: r, cli: c, ctx: c.Context, env: env, args: c.Args().Slice()}
		return ended(run.ctx, do(run))
	})
}

// profileRun is one verb of `dsh profile` under way.
type profileRun struct {
	*runner
	cli  *cli.Context
	ctx  context.Context
	env  action.Env
	args []string // those that have not been read yet
}

// named is the profile that the verb is about: the next argument, or the one
// that --profile, the environment or the user's choice names. Naming two is an
// error.
func (p *profileRun) named() (profile.Name, error) {
	name, err := p.readName()
	if err == nil {
		p.env, err = p.leniently(p.env, name)
	}
	return name, err
}

func (p *profileRun) readName() (profile.Name, error) {
	if len(p.args) == 0 {
		return p.profileName()
	}
	text := p.args[0]
	if !p.invocation.Implied && p.invocation.Profile != text {
		return profile.Name{}, fault.Errorf(fault.Other, "two profiles are named: %q and %q", p.invocation.Profile, text)
	}
	p.args = p.args[1:]
	return profile.ParseName(text)
}

// done refuses arguments that nobody read.
func (p *profileRun) done() error {
	if len(p.args) == 0 {
		return nil
	}
	return fault.WithHint(fault.Errorf(fault.Other, "profile %s does not know what to do with %q", p.cli.Command.Name, p.args[0]),
		"dsh profile %s --help lists the arguments", p.cli.Command.Name)
}
