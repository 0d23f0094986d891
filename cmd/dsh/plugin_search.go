package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
)

func searchFlags() []cli.Flag {
	return []cli.Flag{
		&cli.IntFlag{Name: "limit", Value: 20, Usage: "show this many results; 0 is all", DefaultText: "20"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "all", Usage: "show packages of the registry that bring no layer, too"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "look in what is kept of catalogues, and ask nobody"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "prefer-offline", Usage: "take what is kept, however old it is, and ask for the rest"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "fresh", Usage: "ask for everything anew"},
		&cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"},
	}
}

func (r *runner) pluginSearch(p *pluginRun) error {
	var words []string
	for _, arg := range p.cli.Args().Slice() {
		words = append(words, strings.Fields(arg)...)
	}
	if len(words) == 0 {
		return fault.Errorf(fault.Other, "plugin search needs words to search for")
	}
	if p.cli.Int("limit") < 0 {
		return fault.Errorf(fault.Other, "--limit: %d is no number of results", p.cli.Int("limit"))
	}
	p.progress.Set("searching")
	report, err := action.Search(p.ctx, p.env, action.SearchOptions{
		PluginOptions: p.opts, Words: words, Limit: p.cli.Int("limit"), All: p.cli.Bool("all"),
	})
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, w := range report.Warnings {
		first, _, _ := strings.Cut(w, "\n")
		p.ui.Warn(first)
	}
	return p.ui.Result(report, func(w io.Writer) { printSearch(w, p, report) })
}

func printSearch(w io.Writer, p *pluginRun, report *action.SearchReport) {
	for _, f := range report.Results {
		fmt.Fprintln(w, p.ui.Bold(line(strings.TrimSpace(f.Name+" "+f.Version)))+foundMarks(f))
		if f.Description != "" {
			fmt.Fprintf(w, "  %s\n", line(f.Description))
		}
		from := "from " + strings.Join(append([]string{f.Source}, f.Also...), ", ")
		if f.Spec != "" && f.Spec != f.Name {
			from += ": " + f.Spec
		}
		if f.Repository != "" {
			from += ", of " + f.Repository
		}
		fmt.Fprintf(w, "  %s\n", line(from))
		for _, note := range f.Notes {
			fmt.Fprintf(w, "  note: %s\n", line(note))
		}
		if len(f.Profiles) > 0 {
			fmt.Fprintf(w, "  installed in %s\n", line(strings.Join(f.Profiles, ", ")))
		}
		if f.Add != "" {
			fmt.Fprintf(w, "  %s\n", line(f.Add))
		} else {
			fmt.Fprintf(w, "  cannot be installed from here: %s\n", line(f.Refused))
		}
	}
	if len(report.Results) == 0 {
		fmt.Fprintf(w, "nothing fits %s\n", line(strings.Join(report.Words, " ")))
	}
	if report.More > 0 {
		fmt.Fprintf(w, "… and %d more (--limit 0 shows all)\n", report.More)
	}
	if report.Unknown > 0 {
		fmt.Fprintf(w, "%s of the registry fit and were not looked into; more words find less\n", counted(report.Unknown, "package"))
	}
	var asked []string
	for _, s := range report.Sources {
		text := s.Name + " " + s.Address
		switch {
		case s.Checked != nil:
			text = s.Name + " (" + ageText(*s.Checked)
			if s.Updated != "" {
				text += ", made " + s.Updated
			}
			text += ")"
		case s.Error != "":
			text += " (no answer)"
		}
		asked = append(asked, line(text))
	}
	fmt.Fprintf(w, "searched: %s\n", strings.Join(asked, ", "))
}

func foundMarks(f action.Found) string {
	switch {
	case f.Deprecated && f.Replacement != "":
		return line(" (deprecated, for " + f.Replacement + ")")
	case f.Deprecated:
		return " (deprecated)"
	case f.Source == "registry" && !f.Layer:
		return " (no layer)"
	}
	return ""
}

func catalogFlag() cli.Flag {
	return &cli.StringFlag{Name: "catalog", Usage: "take the package for an entry of this catalogue, and refuse what is of another repository"}
}

// fromCatalog is what an entry of a catalogue installs, and says of which
// repository it has to be.
func (p *pluginRun) fromCatalog(args []string) ([]install.Spec, error) {
	if len(args) != 1 {
		return nil, fault.Errorf(fault.Other, "--catalog takes one entry at a time")
	}
	p.progress.Set("looking into the catalogue")
	entry, err := action.FindInCatalog(p.ctx, p.env, p.opts, p.cli.String("catalog"), args[0])
	p.progress.Stop()
	if err != nil {
		return nil, err
	}
	for _, w := range entry.Warnings {
		p.ui.Warn(w)
	}
	p.ui.Say("catalogue %s says %s", entry.Catalog, entry.Spec.Shown())
	if p.opts.DryRun {
		return []install.Spec{entry.Spec}, nil // which looks into no package
	}
	if p.opts.Expect.Repository.IsZero() {
		p.opts.Expect.Repository = entry.Expected()
	}
	return []install.Spec{entry.Spec}, nil
}
