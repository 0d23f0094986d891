package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// storeCommand is `dsh store`: what the store holds, and what of it nobody needs.
func (r *runner) storeCommand() *cli.Command {
	verb := func(name, usage string, do func(c *cli.Context, env action.Env) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: " ", Flags: flags,
			HideHelpCommand: true, UseShortOptionHandling: true, OnUsageError: r.badFlag,
			Action: func(c *cli.Context) error {
				if c.Args().Present() {
					return fault.Errorf(fault.Other, "store %s takes no arguments; it is about all profiles", name)
				}
				env, err := r.env(r.invocation.Global)
				if err != nil {
					return err
				}
				return ended(c.Context, do(c, env))
			},
		}
	}
	return &cli.Command{
		Name: "store", Usage: "look at the package store and tidy it up", ArgsUsage: " ",
		Description: "The store holds every package once, for all profiles. What removing or updating a package\n" +
			"leaves there is needed by earlier generations of the profile, so that a rollback works\n" +
			"without a network. prune takes out what no profile and no generation needs any more.",
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh store status shows what it holds"),
		Subcommands: []*cli.Command{
			verb("status", "show what the store holds, and how much of it nobody needs", r.storeStatus),
			verb("prune", "take out what no profile and no generation needs", r.storePrune,
				&cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "only show what would go"},
				&cli.BoolFlag{DisableDefaultText: true, Name: "generations", Usage: "first give up what is kept of removed profiles, so that they cannot be brought back; pinned generations stay"},
				&cli.BoolFlag{DisableDefaultText: true, Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}),
			verb("verify", "hold every file in the store against its hash", r.storeVerify,
				&cli.BoolFlag{DisableDefaultText: true, Name: "fix", Usage: "take out what is damaged, so that it is fetched again"}),
			verb("path", "print the directory of the store", r.storePath),
			verb("size", "print how much the store holds", r.storeSize),
		},
	}
}

func (r *runner) storeStatus(_ *cli.Context, env action.Env) error {
	status, err := action.Store(env)
	if err != nil {
		return err
	}
	for _, w := range status.Warnings {
		r.ui.Warn(w)
	}
	return r.ui.Result(status, func(w io.Writer) {
		fmt.Fprintf(w, "%s\n%s\n", status.Path, contents(status.Contents))
		if u := status.Unneeded; u != nil && u.Packages > 0 {
			fmt.Fprintf(w, "%s needed by no profile and no generation: dsh store prune removes what is older than an hour\n", contents(*u))
		}
	})
}

func (r *runner) storePrune(c *cli.Context, env action.Env) error {
	opts := action.PruneOptions{DryRun: c.Bool("dry-run"), Now: time.Now()}
	if c.Bool("generations") {
		names, err := action.Forgettable(env)
		if err != nil {
			return err
		}
		if err := r.askToForget(c, names); err != nil {
			return err
		}
		opts.Forget = names
	}
	pruned, err := action.PruneStore(c.Context, env, opts)
	if err != nil {
		if pruned != nil && len(pruned.Forgotten) > 0 && !pruned.DryRun {
			r.ui.Say("gave up what was kept of removed profiles: %s", strings.Join(pruned.Forgotten, ", "))
		}
		return err
	}
	return r.ui.Result(pruned, func(w io.Writer) { printPruned(w, pruned) })
}

func (r *runner) storeVerify(c *cli.Context, env action.Env) error {
	progress := r.installing()
	defer progress.Stop()
	verified, err := action.VerifyStore(c.Context, env, action.VerifyOptions{
		Fix: c.Bool("fix"), Progress: func(n int) { progress.Set("reading package %d", n) },
	})
	progress.Stop()
	if verified == nil {
		return err
	}
	failed := err
	if failed != nil && r.ui.JSON {
		return failed
	}
	err = r.ui.Verdict(verified.Whole(), verified, func(w io.Writer) {
		for _, d := range verified.Damaged {
			name, did := d.Name, ""
			if name == "" {
				name = d.Integrity
			}
			if d.Removed {
				did = "; removed"
			}
			fmt.Fprintf(w, "%s: %s%s\n", line(name), line(d.Problem), did)
		}
		fmt.Fprintf(w, "%s read, %d damaged\n", contents(verified.Contents), len(verified.Damaged))
	})
	switch {
	case err != nil || failed != nil:
		return cmp.Or(err, failed)
	case !verified.Whole():
		r.ui.Say("dsh store verify --fix takes out what is damaged; it is fetched again when it is needed")
		return &saidError{fault.Environment}
	case len(verified.Damaged) > 0:
		r.ui.Say("profiles may hold the same files: dsh profile repair NAME looks at one and mends it")
	}
	return nil
}

func (r *runner) storePath(_ *cli.Context, env action.Env) error {
	dir := env.Home.StoreDir()
	return r.ui.Result(map[string]string{"path": dir}, func(w io.Writer) { fmt.Fprintln(w, dir) })
}

func (r *runner) storeSize(_ *cli.Context, env action.Env) error {
	size, err := action.MeasureStore(env)
	if err != nil {
		return err
	}
	return r.ui.Result(size, func(w io.Writer) {
		fmt.Fprintf(w, "%s in %s\n", contents(size.Contents), counted(size.Files, "file"))
		fmt.Fprintf(w, "%s remembered of registries\n", ui.Bytes(size.Metadata))
	})
}

// askToForget asks before what is kept of removed profiles is given up.
func (r *runner) askToForget(c *cli.Context, names []string) error {
	if len(names) == 0 || c.Bool("yes") || c.Bool("dry-run") {
		return nil
	}
	yes, err := r.ui.Ask(c.Context, fmt.Sprintf("give up what is kept of removed profiles (%s)? They cannot be brought back then.", strings.Join(names, ", ")))
	if err == nil && !yes {
		r.ui.Say("nothing was removed")
		err = &saidError{fault.Other}
	}
	return err
}

func printPruned(w io.Writer, p *action.Pruned) {
	gone, forgot := "removed", "gave up what was kept of"
	if p.DryRun {
		gone, forgot = "would remove", "would give up what is kept of"
	}
	if len(p.Forgotten) > 0 {
		fmt.Fprintf(w, "%s removed profiles: %s\n", forgot, line(strings.Join(p.Forgotten, ", ")))
	}
	for _, e := range p.Removed {
		name := e.Name
		if name == "" {
			name = e.Integrity
		}
		fmt.Fprintf(w, "- %s (%s)\n", line(name), ui.Bytes(e.Bytes))
	}
	if p.Metadata > 0 {
		fmt.Fprintf(w, "%s of registries, not asked for in 30 days: %s\n", counted(p.Metadata, "document"), gone)
	}
	if len(p.Removed) == 0 && p.Metadata > 0 {
		fmt.Fprintln(w, "no packages to remove")
	} else if len(p.Removed) == 0 {
		fmt.Fprintln(w, "nothing to remove")
	} else {
		fmt.Fprintf(w, "%s %s\n", gone, contents(action.Contents{Packages: len(p.Removed), Bytes: p.Bytes}))
	}
	if p.Young > 0 {
		fmt.Fprintf(w, "%s that nobody needs: younger than an hour, left for now\n", counted(p.Young, "package"))
	}
}

// contents is "3 packages, 1.2 MB".
func contents(c action.Contents) string {
	return counted(c.Packages, "package") + ", " + ui.Bytes(c.Bytes)
}
