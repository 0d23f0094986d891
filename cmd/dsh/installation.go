package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/ui"
)

// installationCommand is `dsh installation`: the Node.js harnesses that profiles
// run on.
func (r *runner) installationCommand() *cli.Command {
	verb := func(name, usage, args string, most int, do func(c *cli.Context, env action.Env) error, flags ...cli.Flag) *cli.Command {
		leaf := r.leaf(name, usage, args, flags, func(c *cli.Context) error {
			if c.NArg() > most {
				return fault.WithHint(fault.Errorf(fault.Other, "installation %s does not know what to do with %q", name, c.Args().Get(most)),
					"dsh installation %s --help lists the arguments", name)
			}
			// A choice that cannot be opened is what these commands mend.
			env, err := r.place(r.invocation.Global)
			if err != nil {
				return err
			}
			return ended(c.Context, do(c, env))
		})
		leaf.Flags = flags // only one of them is about a profile
		return leaf
	}
	force := func(usage string) cli.Flag {
		return &cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: usage}
	}
	return &cli.Command{
		Name: "installation", Usage: "install the Node.js harness, and choose what profiles run on", ArgsUsage: " ",
		Description: "Profiles of JavaScript plugins run on the Node.js harness. Which installation counts, the first\n" +
			"that is named: --installation, $DSH_INSTALLATION, the profile's choice, the home's, the one\n" +
			"inside dsh, which is called embedded. No script of a package runs.",
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh installation list shows the installations"),
		Subcommands: []*cli.Command{
			verb("add", "install a release of the harness, or name a directory that holds one", "<@deepseek-ai/dsh@version or directory>", 1, r.installationAdd,
				&cli.StringFlag{Name: "name", Usage: "what to call it, instead of its version"},
				&cli.StringFlag{Name: "node", Usage: "a version of Node.js to fetch, or the path of its program; otherwise that of PATH, if it fits"},
				&cli.StringFlag{Name: "registry", Usage: "the npm registry to fetch from, instead of .npmrc's"},
				&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "fetch nothing: all comes from the store"},
				force("replace one of that name")),
			verb("list", "list the installations, and who uses them", " ", 0, r.installationList),
			verb("use", "choose what the profile of --profile runs on, or without it all profiles that chose nothing", "<name or embedded>", 1, r.installationUse, profileFlag(),
				&cli.BoolFlag{DisableDefaultText: true, Name: "unset", Usage: "take the choice away"}),
			verb("remove", "remove an installation; the store keeps its packages", "<name>", 1, r.installationRemove,
				force("also where it is used")),
			verb("check", "look whether an installation is whole and runs (exit code 3: it does not)", "[<name>]", 1, r.installationCheck),
		},
	}
}

func (r *runner) installationAdd(c *cli.Context, env action.Env) error {
	if c.NArg() != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "installation add takes one release or directory"),
			"dsh installation add %s@%s", action.HarnessPackage, action.KnownHarness)
	}
	progress := r.installing()
	defer progress.Stop()
	added, err := action.AddInstallation(c.Context, env, action.AddInstallationOptions{
		Source: c.Args().First(), Name: c.String("name"), Node: c.String("node"), Registry: c.String("registry"),
		Offline: c.Bool("offline"), Force: c.Bool("force"), Events: progress.events(),
	})
	progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range added.Warnings {
		r.ui.Warn(w)
	}
	return r.ui.Result(added, func(w io.Writer) {
		did := "added"
		if added.Replaced {
			did = "replaced"
		}
		fmt.Fprintf(w, "%s installation %s: %s %s in %s\n", did, added.Name, action.HarnessPackage, added.Version, ui.Clean(added.Dir))
		if added.Packages > 0 {
			fmt.Fprintf(w, "packages: %d\n", added.Packages)
		}
		fmt.Fprintf(w, "Node.js %s: %s\n", added.Node.Version, ui.Clean(added.Node.Program))
		if !added.Default && len(added.Profiles) == 0 {
			fmt.Fprintf(w, "to run a profile on it: dsh installation use %s --profile NAME\n", added.Name)
		}
	})
}

func (r *runner) installationList(_ *cli.Context, env action.Env) error {
	list, err := action.ListInstallations(env)
	if err != nil {
		return err
	}
	for _, w := range list.Warnings {
		r.ui.Warn(w)
	}
	return r.ui.Result(list, func(w io.Writer) {
		for _, i := range list.Installations {
			fmt.Fprintf(w, "%s  %s %s  Node.js %s%s\n", i.Name, action.HarnessPackage, i.Version, i.Node.Version, usedBy(i.Default, i.Profiles))
			fmt.Fprintf(w, "  %s\n", ui.Clean(i.Dir))
		}
		fmt.Fprintf(w, "%s  inside dsh%s\n", action.Embedded, usedBy(list.Embedded.Default, list.Embedded.Profiles))
	})
}

// usedBy is who uses an installation, for the end of a line.
func usedBy(byDefault bool, profiles []string) string {
	text := ""
	if byDefault {
		text = "  (default)"
	}
	if len(profiles) > 0 {
		text += "  used by " + ui.Clean(strings.Join(profiles, ", "))
	}
	return text
}

func (r *runner) installationUse(c *cli.Context, env action.Env) error {
	chosen := c.Args().First()
	if (chosen == "") != c.Bool("unset") {
		return fault.WithHint(fault.Errorf(fault.Other, "installation use takes the name of one installation, or embedded, or --unset"), "dsh installation list shows the names")
	}
	var name *profile.Name
	if !r.invocation.Implied {
		parsed, err := profile.ParseName(r.invocation.Profile)
		if err != nil {
			return err
		}
		name = &parsed
	}
	used, err := action.UseInstallation(c.Context, env, name, chosen)
	if err != nil {
		return err
	}
	return r.ui.Result(used, func(w io.Writer) {
		who := "profiles that chose nothing"
		if used.Profile != "" {
			who = "profile " + used.Profile
		}
		if used.Unset {
			fmt.Fprintf(w, "%s: no choice any more\n", ui.Clean(who))
			return
		}
		verb := "runs"
		if used.Profile == "" {
			verb = "run"
		}
		fmt.Fprintf(w, "%s %s on %s\n", ui.Clean(who), verb, used.Installation)
	})
}

func (r *runner) installationRemove(c *cli.Context, env action.Env) error {
	if c.NArg() != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "installation remove takes the name of one installation"), "dsh installation list shows the names")
	}
	removed, err := action.RemoveInstallation(c.Context, env, c.Args().First(), c.Bool("force"))
	if err != nil {
		return err
	}
	return r.ui.Result(removed, func(w io.Writer) {
		fmt.Fprintf(w, "removed installation %s\n", removed.Name)
		if len(removed.Freed) > 0 {
			fmt.Fprintf(w, "no choice any more: %s\n", ui.Clean(strings.Join(removed.Freed, ", ")))
		}
		if removed.Home {
			fmt.Fprintln(w, "profiles that chose nothing run on embedded")
		}
	})
}

func (r *runner) installationCheck(c *cli.Context, env action.Env) error {
	checked, err := action.CheckInstallations(c.Context, env, c.Args().First())
	if err != nil {
		return err
	}
	whole := true
	for _, i := range checked {
		whole = whole && len(i.Problems) == 0
	}
	err = r.ui.Verdict(whole, map[string]any{"installations": checked}, func(w io.Writer) {
		for _, i := range checked {
			if len(i.Problems) == 0 {
				fmt.Fprintf(w, "%s is whole: %s %s on Node.js %s\n", i.Name, action.HarnessPackage, i.Version, i.Node.Version)
			}
			for _, p := range i.Problems {
				fmt.Fprintln(w, line(strings.TrimPrefix(i.Name+": "+p, ": ")))
			}
		}
		if len(checked) == 0 {
			fmt.Fprintln(w, "there are no installations")
		}
	})
	if err == nil && !whole {
		for _, i := range checked {
			if len(i.Problems) > 0 && i.Name != "" {
				r.ui.Say("to make it anew: %s", action.RenewCommand(i.InstallationInfo))
			}
		}
		return &saidError{fault.Package}
	}
	return err
}
