package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/stack"
	"dsh/internal/ui"
)

// configCompatVerb compares installations.
func (r *runner) configCompatVerb() *cli.Command {
	return r.configVerb("compat", "tell what another installation would change (exit code 2: something stops fitting)", "DIR|VERSION", (*configRun).compat,
		&cli.BoolFlag{DisableDefaultText: true, Name: "fetch", Usage: "fetch the bundles of a version that are not here yet"},
		&cli.StringFlag{Name: "registry", Usage: "the npm registry to fetch from, instead of .npmrc's"})
}

func (r *configRun) compat() error {
	if r.cli.NArg() != 1 {
		return fault.Errorf(fault.Other, "config compat takes one directory with an installation, or one exact version of it")
	}
	report, err := action.Compat(r.ctx, r.env, action.CompatOptions{
		Layers: r.layers, Target: r.cli.Args().First(), Fetch: r.cli.Bool("fetch"), Registry: r.cli.String("registry"),
	})
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		r.ui.Warn(w)
	}
	err = r.ui.Result(report, func(w io.Writer) { r.printCompat(w, report) })
	if err == nil && !report.Fits {
		return &saidError{fault.Composition}
	}
	return err
}

func (r *configRun) printCompat(w io.Writer, report *action.CompatReport) {
	fmt.Fprintf(w, "profile %s: %s → %s\n", report.Profile, ui.Clean(report.From), ui.Clean(report.To))
	misfits := len(report.Problems)
	for _, part := range report.Parts() {
		r.compatSection(w, part.Title, len(part.Problems))
		for _, f := range part.Problems {
			r.finding(w, f)
		}
	}
	var exempt []string
	r.compatSection(w, "peers that stop fitting", len(report.Peers))
	for _, u := range report.Peers {
		why := fmt.Sprintf("%s would fit both", u.Range)
		if u.Exempt {
			why = "exempted in " + stack.ExemptionsFile
			exempt = append(exempt, u.Package)
		} else {
			misfits++
		}
		fmt.Fprintf(w, "%s\n", line(fmt.Sprintf("%s@%s wants %s %s, and there is %s; %s", u.Package, u.Version, u.Peer, u.Wanted, u.Have, why)))
	}
	for _, part := range []struct {
		title string
		rows  []action.CompatRow
	}{{"rows that appear", report.Added}, {"rows that disappear", report.Removed}} {
		r.compatSection(w, part.title, len(part.rows))
		for _, row := range part.rows {
			fmt.Fprintln(w, line(row.String()))
		}
	}
	if len(report.Solved) > 0 {
		r.compatSection(w, "problems that go away", len(report.Solved))
		for _, f := range report.Solved {
			r.finding(w, f)
		}
	}
	switch {
	case misfits > 0:
		fmt.Fprintf(w, "\n%s would stop fitting\n", counted(misfits, "thing"))
	case len(exempt) > 0:
		fmt.Fprintf(w, "\nnothing stops fitting, as %s lets %s through\n", stack.ExemptionsFile, strings.Join(slices.Compact(exempt), ", "))
	default:
		fmt.Fprintln(w, "\nnothing stops fitting")
	}
}

// compatSection begins a part of the report that is not empty.
func (r *configRun) compatSection(w io.Writer, title string, entries int) {
	if entries > 0 {
		fmt.Fprintf(w, "\n%s\n", r.ui.Bold(fmt.Sprintf("%s (%d)", title, entries)))
	}
}
