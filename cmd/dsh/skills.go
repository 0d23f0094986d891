package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// skillsCommand is `dsh skills`: the skills that a profile finds.
func (r *runner) skillsCommand() *cli.Command {
	return &cli.Command{
		Name: "skills", Usage: "list the skills that a profile finds, and show them", ArgsUsage: " ",
		Description:     "Skills are found by the rows of @deepseek-ai/dsh-skill-filesystem: in the project, in\nthe folders that a row names, in the home of dsh and in ~/.agents.",
		Flags:           []cli.Flag{profileFlag()},
		HideHelpCommand: true, OnUsageError: r.badFlag,
		Action: r.otherVerb("dsh skills list"),
		Subcommands: []*cli.Command{
			r.configVerb("list", "list the skills, which of them are hidden by others, and what is skipped and why", " ", (*configRun).skillsList, overlayFlags()...),
			r.configVerb("show", "print a skill with its instructions", "NAME", (*configRun).skillsShow, overlayFlags()...),
		},
	}
}

// overlayFlags are those of verbs that compose a profile and show none of its
// values.
func overlayFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "patch", Usage: "a patch file on top of the profile's layers, - for standard input (repeatable)"},
		&cli.StringSliceFlag{Name: "set", Usage: "one value on top of everything: ROW.KEY=VALUE (repeatable)"},
	}
}

func (r *configRun) skillsList() error {
	if r.cli.Args().Present() {
		return fault.WithHint(fault.Errorf(fault.Other, "skills list takes no arguments, got %q", r.cli.Args().First()), "dsh skills show %s", fault.ShellWord(r.cli.Args().First()))
	}
	evaluate, _, done, err := r.evaluation()
	if err != nil {
		return err
	}
	defer done()
	list, err := action.ListSkills(r.ctx, r.env, r.layers, evaluate)
	if err != nil {
		return err
	}
	r.warn(list.Warnings)
	return r.ui.Result(list, func(w io.Writer) {
		table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, s := range list.Skills {
			fmt.Fprintf(table, "%s\t%s\t%s\n", line(s.Name), line(s.Path), line(firstSentence(s.Description))+forWhom(s))
		}
		table.Flush()
		if len(list.Skills) == 0 {
			fmt.Fprintf(w, "profile %s finds no skills\n", ui.Clean(list.Profile))
		}
		for _, s := range list.Hidden {
			fmt.Fprintf(w, "hidden: %s in %s, by %s\n", line(s.Name), line(s.Path), line(s.HiddenBy))
		}
		for _, s := range list.Skipped {
			fmt.Fprintf(w, "skipped: %s: %s\n", line(s.Path), line(s.Why))
		}
		for _, p := range list.Providers {
			if p.Problem != "" {
				fmt.Fprintf(w, "row %s finds nothing: %s\n", line(idText(p.Row)), line(p.Problem))
			}
		}
	})
}

// idText is the id of a row for people.
func idText(id action.Shown) string {
	if id.V == nil {
		return "(no id)"
	}
	return fmt.Sprint(id.V)
}

// firstSentence is the beginning of a description, fit for a table.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if at := strings.Index(text, ". "); at > 0 {
		text = text[:at+1]
	}
	if runes := []rune(text); len(runes) > 100 {
		text = string(runes[:99]) + "…"
	}
	return text
}

// forWhom says who may not load a skill.
func forWhom(s action.SkillFound) string {
	switch {
	case !s.UserInvocable && !s.ModelInvocable:
		return " (for nobody)"
	case !s.UserInvocable:
		return " (for models only)"
	case !s.ModelInvocable:
		return " (for users only)"
	}
	return ""
}

func (r *configRun) skillsShow() error {
	if r.cli.NArg() != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "skills show needs the name of one skill"), "dsh skills list")
	}
	evaluate, _, done, err := r.evaluation()
	if err != nil {
		return err
	}
	defer done()
	s, err := action.ShowSkill(r.ctx, r.env, r.layers, r.cli.Args().First(), evaluate)
	if err != nil {
		return err
	}
	r.warn(s.Warnings)
	return r.ui.Result(s, func(w io.Writer) {
		fmt.Fprintf(w, "%s%s\n  %s\n  %s, found by %s\n", r.ui.Bold(line(s.Name)), forWhom(s.SkillFound), line(s.Description), line(s.Path), line(s.Provider))
		if s.WhenToUse != "" {
			fmt.Fprintf(w, "  when to use: %s\n", line(s.WhenToUse))
		}
		for _, h := range s.Hidden {
			fmt.Fprintf(w, "  hides %s\n", line(h.Path))
		}
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(ui.Clean(s.Body)))
	})
}
