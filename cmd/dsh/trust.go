package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// trustCommand is `dsh trust`: which projects may bring a layer of their own.
func (r *runner) trustCommand() *cli.Command {
	return &cli.Command{
		Name: "trust", Usage: "trust the layer of a project, list what is trusted, or take it back", ArgsUsage: "[DIR]",
		Description: "The file .dsh/cordis.patch.yml of a project can run code, so it applies only where you\n" +
			"trust its directory. Trust covers the file and the files that its rows name; an edit of\n" +
			"one of them asks again. DIR is the working directory where it is left out.",
		Flags: []cli.Flag{
			&cli.BoolFlag{DisableDefaultText: true, Name: "list", Usage: "list the trusted directories"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "revoke", Usage: "take the trust in a directory back"},
		},
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: func(c *cli.Context) error { return ended(c.Context, r.trust(c)) },
	}
}

func (r *runner) trust(c *cli.Context) error {
	env, err := r.env(r.invocation.Global)
	if err != nil {
		return err
	}
	list, revoke := c.Bool("list"), c.Bool("revoke")
	switch {
	case list && revoke:
		return fault.Errorf(fault.Other, "--list and --revoke exclude each other")
	case list && c.Args().Present():
		return fault.Errorf(fault.Other, "trust --list takes no directory; it lists all")
	case c.NArg() > 1:
		return fault.Errorf(fault.Other, "trust takes one directory")
	}
	dir := env.Dir
	if c.Args().Present() {
		dir = c.Args().First()
	}
	switch {
	case list:
		return r.trustList(env)
	case revoke:
		return r.trustRevoke(c, env, dir)
	}
	report, err := action.Trust(c.Context, env, dir, time.Now())
	if err != nil {
		return err
	}
	return r.ui.Result(report, func(w io.Writer) { printTrust(w, report) })
}

// printTrust shows a layer of somebody else, whose texts must not look like lines
// of ours.
func printTrust(w io.Writer, t *action.TrustReport) {
	fmt.Fprintf(w, "%s\n", line(t.Patch))
	for _, row := range t.Inserts {
		id, group := "a row without an id", ""
		if row.ID != "" {
			id = row.ID
		}
		if row.Group != "" {
			group = " into " + row.Group
		}
		fmt.Fprintf(w, "  inserts %s (%s)%s\n", line(id), line(row.Plugin), line(group))
	}
	for _, o := range t.Overrides {
		fmt.Fprintf(w, "  overrides %s: %s\n", line(o.ID), line(strings.Join(o.Keys, ", ")))
	}
	for _, f := range t.ThrownAway {
		fmt.Fprintf(w, "  in profile %s, line %d: %s\n", t.Profile, f.Line, line(f.Message))
	}
	for _, f := range t.Files {
		state := ""
		if !f.Exists {
			state = ", which is not there"
		}
		fmt.Fprintf(w, "  names the file %s%s\n", line(f.Path), state)
	}
	for _, text := range t.Expressions {
		fmt.Fprintf(w, "  evaluates !!js %s\n", line(text))
	}
	if len(t.Inserts)+len(t.Overrides) == 0 {
		fmt.Fprintln(w, "  changes nothing")
	}
	if t.Was == "trusted" {
		fmt.Fprintf(w, "%s is trusted already\n", line(t.Dir))
		return
	}
	fmt.Fprintf(w, "trusted %s; an edit of these files asks again\n", line(t.Dir))
}

func (r *runner) trustList(env action.Env) error {
	dirs, err := action.TrustedDirs(env)
	if err != nil {
		return err
	}
	return r.ui.Result(dirs, func(w io.Writer) {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, d := range dirs {
			fmt.Fprintf(t, "%s\tsince %s\t%s\n", ui.Clean(d.Dir), d.Since.Local().Format(time.DateTime), d.State)
		}
		t.Flush()
		if len(dirs) == 0 {
			fmt.Fprintln(w, "no directory is trusted")
		}
	})
}

func (r *runner) trustRevoke(c *cli.Context, env action.Env, dir string) error {
	revoked, dir, err := action.Revoke(c.Context, env, dir)
	if err != nil {
		return err
	}
	return r.ui.Result(map[string]any{"dir": dir, "revoked": revoked}, func(w io.Writer) {
		if revoked {
			fmt.Fprintf(w, "%s is trusted no longer\n", ui.Clean(dir))
		} else {
			fmt.Fprintf(w, "nothing to do: %s was not trusted\n", ui.Clean(dir))
		}
	})
}
