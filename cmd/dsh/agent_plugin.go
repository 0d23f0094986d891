package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/agentplugin"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// agentPluginCommand is `dsh agent-plugin`: packages of the Agent Plugins format.
func (r *runner) agentPluginCommand() *cli.Command {
	verb := func(name, usage, args string, do func(c *cli.Context, env action.Env) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, ArgsUsage: args, Flags: flags,
			HideHelpCommand: true, UseShortOptionHandling: true, OnUsageError: r.badFlag,
			Action: func(c *cli.Context) error {
				env, err := r.env(r.invocation.Global)
				if err != nil {
					return err
				}
				return ended(c.Context, do(c, env))
			},
		}
	}
	rules := []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "draft", Usage: "take version 1.1.0 too, which is a draft"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "lenient-extensions", Usage: `ignore members of "extensions" that are no objects`},
		&cli.BoolFlag{DisableDefaultText: true, Name: "strict-skills", Usage: "skip skills with fields that Agent Skills does not list"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "strict-members", Usage: "take members of one name in a JSON object for an error"},
	}
	fetching := []cli.Flag{
		&cli.StringFlag{Name: "registry", Usage: "the npm registry to fetch from, instead of .npmrc's"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "fetch nothing"},
	}
	strict := &cli.BoolFlag{DisableDefaultText: true, Name: "strict", Usage: "exit with 2 for warnings, too"}
	return &cli.Command{
		Name: "agent-plugin", Usage: "check Agent Plugins, look into them, and begin new ones", ArgsUsage: " ",
		Description:     "An Agent Plugin is a folder with a plugin.json, skills and MCP servers, by the\nspecification of agent-plugins.org. DIR is the working directory where it is left out. PACKAGE is what plugin add takes: an archive, a\nrepository, an address, a package of a registry. It is fetched to be looked at, and nothing of it is kept or run.",
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh agent-plugin check DIR looks for mistakes"),
		Subcommands: []*cli.Command{
			verb("check", "look for mistakes (exit code 2: something does not load)", "[DIR or PACKAGE]", r.agentPluginCheck, slices.Concat(rules, fetching, []cli.Flag{strict})...),
			verb("inspect", "show what loads, and what is left out and why", "[DIR or PACKAGE]", r.agentPluginInspect, slices.Concat(rules, fetching)...),
			verb("new", "make a folder with a valid plugin", "NAME", r.agentPluginNew,
				&cli.StringFlag{Name: "dir", Usage: "make it in this directory", DefaultText: "the working directory"}),
		},
	}
}

// agentPluginFlags are those of adding one to a profile.
func agentPluginFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "agent-plugin", Usage: "take the package for an Agent Plugin, also where it has a layer of its own"},
		&cli.StringFlag{Name: "as", Usage: "install an Agent Plugin under this name", DefaultText: "its own"},
	}
}

// agentPluginTarget is what check and inspect look at, and by which rules.
type agentPluginTarget struct {
	where string // a directory, or what can be added
	opts  action.PluginOptions
	rules agentplugin.Options
	done  func() // the progress is not shown any more
}

func (r *runner) agentPluginTarget(c *cli.Context) (agentPluginTarget, error) {
	var t agentPluginTarget
	if c.NArg() > 1 {
		return t, fault.Errorf(fault.Other, "agent-plugin %s takes one directory or package", c.Command.Name)
	}
	t.where = "."
	if c.Args().Present() {
		t.where = c.Args().First()
	}
	t.rules = agentplugin.Options{
		Draft: c.Bool("draft"), LenientExtensions: c.Bool("lenient-extensions"), StrictSkills: c.Bool("strict-skills"), StrictMembers: c.Bool("strict-members"),
	}
	progress := r.installing()
	t.done = progress.Stop
	t.opts = action.PluginOptions{Offline: c.Bool("offline"), Registry: c.String("registry"), Events: progress.events()}
	return t, nil
}

func (r *runner) agentPluginCheck(c *cli.Context, env action.Env) error {
	t, err := r.agentPluginTarget(c)
	if err != nil {
		return err
	}
	check, err := action.CheckAgentPlugin(c.Context, env, t.opts, t.where, t.rules)
	t.done()
	if err != nil {
		return err
	}
	err = r.ui.Result(check, func(w io.Writer) {
		r.agentPluginDiagnostics(w, check.Diagnostics)
		where := cmp.Or(check.Name, check.From, check.Dir)
		fmt.Fprintln(w, ui.Clean(summary(check.Counts, where, where)))
	})
	if err == nil && !check.Counts.Passed(c.Bool("strict")) {
		return &saidError{fault.Composition}
	}
	return err
}

func (r *runner) agentPluginDiagnostics(w io.Writer, found []agentplugin.Diagnostic) {
	for _, d := range found {
		severity := r.ui.Red("error:")
		if d.Effect == agentplugin.Noted {
			severity = r.ui.Yellow("warning:")
		}
		fmt.Fprintf(w, "%s %s %s %s\n", r.ui.Bold(line(d.Place+":")), severity, line(d.Message), r.ui.Dim(fmt.Sprintf("[%s, section %s]", d.Code, d.Section)))
	}
}

// agentPluginInspect exits with 2 where there is no plugin.
func (r *runner) agentPluginInspect(c *cli.Context, env action.Env) error {
	t, err := r.agentPluginTarget(c)
	if err != nil {
		return err
	}
	content, err := action.InspectAgentPlugin(c.Context, env, t.opts, t.where, t.rules)
	t.done()
	if err != nil {
		return err
	}
	err = r.ui.Result(content, func(w io.Writer) { r.printAgentPlugin(w, content) })
	if err == nil && !content.Loads {
		return &saidError{fault.Composition}
	}
	return err
}

func (r *runner) printAgentPlugin(w io.Writer, p *action.AgentPluginContent) {
	if p.Loads {
		fmt.Fprintln(w, line(strings.TrimSpace(p.Name+" "+p.Version))+", Agent Plugins "+p.Spec)
		if p.Description != "" {
			fmt.Fprintln(w, "  "+line(p.Description))
		}
		fmt.Fprintln(w, "\nskills: "+fmt.Sprint(len(p.Skills)))
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, s := range p.Skills {
			fmt.Fprintf(table, "  %s\t%s\n", line(s.Name), line(s.Description))
		}
		table.Flush()
		fmt.Fprintln(w, "\nMCP servers: "+fmt.Sprint(len(p.Servers)))
		for _, s := range p.Servers {
			what := s.URL
			if s.Command != "" {
				what = fault.ShellWords(append([]string{s.Command}, s.Args...)...)
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\n", line(s.Name), s.Type, line(what))
		}
		table.Flush()
	} else {
		fmt.Fprintln(w, line(cmp.Or(p.From, p.Dir))+" is no Agent Plugin")
	}
	for _, part := range []struct {
		title string
		takes func(agentplugin.Effect) bool
	}{
		{"left out", func(e agentplugin.Effect) bool { return e != agentplugin.Noted }},
		{"also", func(e agentplugin.Effect) bool { return e == agentplugin.Noted }},
	} {
		var list []agentplugin.Diagnostic
		for _, d := range p.Diagnostics {
			if part.takes(d.Effect) {
				list = append(list, d)
			}
		}
		if len(list) > 0 {
			fmt.Fprintf(w, "\n%s:\n", part.title)
		}
		for _, d := range list {
			fmt.Fprintf(w, "  %s: %s %s\n", line(d.Place), line(d.Message), r.ui.Dim("["+string(d.Code)+"]"))
		}
	}
}

func (r *runner) agentPluginNew(c *cli.Context, env action.Env) error {
	if c.NArg() != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "agent-plugin new needs one name"), "dsh agent-plugin new my-plugin")
	}
	parent := c.String("dir")
	if parent == "" {
		parent = "."
	}
	made, err := action.CreateAgentPlugin(c.Context, env, c.Args().First(), parent)
	if err != nil {
		return err
	}
	return r.ui.Result(made, func(w io.Writer) {
		fmt.Fprintf(w, "made %s\n", line(made.Dir))
		for _, f := range made.Files {
			fmt.Fprintf(w, "  %s\n", f)
		}
	})
}
