package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/catalog"
	"dsh/internal/fault"
)

// catalogCommand is `dsh catalog`: the catalogues that `dsh plugin search` looks in.
func (r *runner) catalogCommand() *cli.Command {
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
	return &cli.Command{
		Name: "catalog", Usage: "add, list and remove catalogues of plugins", ArgsUsage: " ",
		Description: "A catalogue is a list of plugins in JSON or YAML that somebody publishes. plugin search looks in\n" +
			"those that you added, and plugin add NAME --catalog CATALOG takes one of its entries. What a\n" +
			"catalogue says is data: commands in it are never run.",
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh catalog list shows the catalogues"),
		Subcommands: []*cli.Command{
			verb("add", "fetch a catalogue, and have plugin search look in it", "<address or file>", r.catalogAdd,
				&cli.StringFlag{Name: "name", Usage: "what to call it, instead of a name made of where it is"},
				&cli.BoolFlag{DisableDefaultText: true, Name: "allow-ssh", Usage: "accept entries of it that git fetches by ssh, with your key"}),
			verb("list", "list the catalogues, and how old they are", " ", r.catalogList),
			verb("remove", "forget a catalogue", "<name>", r.catalogRemove),
			verb("update", "fetch what is new of catalogues: the named ones, or all", "[<name>...]", r.catalogUpdate),
		},
	}
}

func (r *runner) catalogAdd(c *cli.Context, env action.Env) error {
	if c.NArg() != 1 {
		return fault.Errorf(fault.Other, "catalog add takes one address or file")
	}
	at, err := catalog.New(c.String("name"), c.Args().First(), env.Dir)
	if err != nil {
		return err
	}
	at.SSH = c.Bool("allow-ssh")
	state, err := action.AddCatalog(c.Context, env, at)
	if err != nil {
		return err
	}
	r.sayCatalog(state)
	return r.ui.Result(state, func(w io.Writer) {
		done := "added"
		if !state.Changed {
			done = "there already:"
		}
		fmt.Fprintf(w, "%s catalogue %s: %s\n", done, state.Name, entriesText(state))
		fmt.Fprintf(w, "to look in it: dsh plugin search WORDS\n")
	})
}

// sayCatalog warns of what of a catalogue does not count.
func (r *runner) sayCatalog(s *action.CatalogState) {
	for _, note := range s.Notes {
		r.ui.Warn(fmt.Sprintf("catalogue %s: %s", s.Name, note))
	}
	const shown = 3
	for i, skipped := range s.Skipped {
		if i == shown && len(s.Skipped) > shown+1 {
			r.ui.Warn(fmt.Sprintf("catalogue %s: %d more entries are left out (--json has all)", s.Name, len(s.Skipped)-shown))
			return
		}
		name := ""
		if skipped.Name != "" {
			name = " (" + skipped.Name + ")"
		}
		r.ui.Warn(fmt.Sprintf("catalogue %s: entry %d%s is left out: %s", s.Name, skipped.At, name, skipped.Why))
	}
}

func entriesText(s *action.CatalogState) string {
	text := fmt.Sprintf("%s, %d of which say what to install", countedEntries(s.Entries), s.Installable)
	if s.Checked != nil {
		text += "; " + ageText(*s.Checked)
	}
	if s.Updated != "" {
		text += ", made " + line(s.Updated)
	}
	return text
}

func countedEntries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

// ageText says how old the knowledge is that something is the newest.
func ageText(checked time.Time) string {
	age := time.Since(checked)
	switch {
	case age < time.Minute:
		return "looked at just now"
	case age < time.Hour:
		return "looked at " + counted(int(age.Minutes()), "minute") + " ago"
	}
	return "looked at " + daysText(age) + " ago"
}

func (r *runner) catalogList(c *cli.Context, env action.Env) error {
	if c.Args().Present() {
		return fault.Errorf(fault.Other, "catalog list takes no names; it lists all")
	}
	states, err := action.Catalogs(c.Context, env)
	if err != nil {
		return err
	}
	return r.ui.Result(states, func(w io.Writer) { printCatalogs(w, states) })
}

func printCatalogs(w io.Writer, states []action.CatalogState) {
	if len(states) == 0 {
		fmt.Fprintln(w, "no catalogue was added; dsh catalog add ADDRESS OR FILE adds one")
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range states {
		s := &states[i]
		text := line(s.Error)
		if s.Checked != nil {
			text = entriesText(s)
		}
		fmt.Fprintln(t, strings.Join([]string{s.Name, line(s.From), text}, "\t"))
	}
	t.Flush()
}

func (r *runner) catalogRemove(c *cli.Context, env action.Env) error {
	if c.NArg() != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "catalog remove takes the name of one catalogue"), "dsh catalog list shows the names")
	}
	state, err := action.RemoveCatalog(c.Context, env, c.Args().First())
	if err != nil {
		return err
	}
	return r.ui.Result(state, func(w io.Writer) { fmt.Fprintf(w, "removed catalogue %s (%s)\n", state.Name, line(state.From)) })
}

func (r *runner) catalogUpdate(c *cli.Context, env action.Env) error {
	states, failed, err := action.UpdateCatalogs(c.Context, env, c.Args().Slice())
	if err != nil {
		return err
	}
	for i := range states {
		r.sayCatalog(&states[i])
		if states[i].Error == "" {
			continue
		}
		r.ui.Warn(states[i].Error)
		if states[i].Checked != nil {
			r.ui.Warn(fmt.Sprintf("what was kept of catalogue %s stays: %s", states[i].Name, entriesText(&states[i])))
		}
	}
	if err := r.ui.Result(states, func(w io.Writer) {
		for i := range states {
			s := &states[i]
			switch {
			case s.Error != "":
			case s.Changed:
				fmt.Fprintf(w, "updated catalogue %s: %s\n", s.Name, entriesText(s))
			default:
				fmt.Fprintf(w, "catalogue %s is up to date: %s\n", s.Name, entriesText(s))
			}
		}
		if len(states) == 0 {
			printCatalogs(w, nil)
		}
	}); err != nil {
		return err
	}
	if failed != nil {
		return &saidError{fault.ClassOf(failed)}
	}
	return nil
}
