package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/advisory"
	"dsh/internal/fault"
)

func auditFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "level", Value: "low", Usage: "what counts as a finding, from there on: low, moderate, high or critical", DefaultText: "low"},
		&cli.StringFlag{Name: "db", Usage: "look in this copy of OSV's data, an all.zip or a folder, and ask nobody"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "save", Usage: "keep what is learned, for --offline and for installs, which refuse malicious packages"},
		&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "look in what is kept"},
		&cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"},
	}
}

func (r *runner) pluginAudit(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.Errorf(fault.Other, "plugin audit takes no names; it is about all packages of the profile")
	}
	level, err := advisory.ParseLevel(p.cli.String("level"))
	if err != nil {
		return fmt.Errorf("--level: %w", err)
	}
	db := p.cli.String("db")
	if db != "" && !filepath.IsAbs(db) {
		db = filepath.Join(p.env.Dir, db)
	}
	p.progress.Set("asking for advisories")
	report, err := action.Audit(p.ctx, p.env, action.AuditOptions{PluginOptions: p.opts, Level: level, DB: db, Save: p.cli.Bool("save")})
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, w := range report.Warnings {
		p.ui.Warn(w)
	}
	if report.Unasked != nil {
		p.ui.Warn("not everybody answered: " + firstLineOf(report.Unasked))
	}
	err = p.ui.Result(report, func(w io.Writer) { printAudit(w, p, report) })
	switch {
	case err != nil:
		return err
	case report.Malicious():
		return &saidError{fault.Policy}
	case report.Counting() > 0:
		return &saidError{fault.Other}
	case report.Unasked != nil:
		return &saidError{fault.ClassOf(report.Unasked)}
	}
	return nil
}

func firstLineOf(err error) string {
	text, _, _ := strings.Cut(err.Error(), "\n")
	return text
}

func printAudit(w io.Writer, p *pluginRun, report *action.AuditReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, f := range report.Findings {
		if i == 0 {
			fmt.Fprintln(t, "SEVERITY\tPACKAGE\tVERSION\tFIXED\tADVISORY")
		}
		severity, fixed := f.Severity.String(), line(f.Fixed)
		if f.Malicious {
			severity = "malicious"
		}
		if fixed == "" {
			fixed = "-"
		}
		fmt.Fprintln(t, strings.Join([]string{severity, line(f.Package), line(f.Version), fixed, line(f.ID)}, "\t"))
	}
	t.Flush()
	for _, f := range report.Findings {
		fmt.Fprintf(w, "\n%s %s\n", p.ui.Bold(line(f.Package+" "+f.Version)), line(f.ID))
		if f.Summary != "" {
			fmt.Fprintf(w, "  %s\n", line(f.Summary))
		}
		if f.Address != "" {
			fmt.Fprintf(w, "  %s\n", line(f.Address))
		}
		if len(f.Chain) > 0 {
			more := ""
			if f.More {
				more = " … and more (dsh plugin --profile " + p.shellProfile() + " why " + fault.ShellWord(f.Package+"@"+f.Version) + ")"
			}
			fmt.Fprintf(w, "  %s%s\n", chainText(report.Profile, f.Chain), line(more))
		}
		if f.Remedy != "" {
			fmt.Fprintf(w, "  to mend: %s\n", line(f.Remedy))
		}
	}
	if len(report.Findings) > 0 {
		fmt.Fprintln(w)
	}
	below := len(report.Findings) - report.Counting()
	switch n := report.Counting(); {
	case n > 0:
		fmt.Fprintf(w, "%s in %s of profile %s", counted(n, "finding"), counted(report.Versions, "package version"), line(report.Profile))
	default:
		fmt.Fprintf(w, "nothing is known against %s of profile %s", counted(report.Versions, "package version"), line(report.Profile))
		if below > 0 {
			fmt.Fprintf(w, " at level %s or above", report.Level)
		}
	}
	if below > 0 {
		fmt.Fprintf(w, "; %d below level %s", below, report.Level)
	}
	if report.Elsewhere > 0 {
		fmt.Fprintf(w, "; %s from no registry, of which nobody was asked", counted(report.Elsewhere, "package"))
	}
	fmt.Fprintln(w)
	var asked []string
	for _, s := range report.Sources {
		text := s.Name + " " + s.Address
		if s.Made != nil {
			text += " of " + s.Made.UTC().Format(time.DateOnly)
		}
		if s.Error != "" {
			text += " (no answer)"
		}
		asked = append(asked, line(text))
	}
	if len(asked) > 0 {
		fmt.Fprintf(w, "asked: %s\n", strings.Join(asked, ", "))
	}
	if report.Kept != "" {
		fmt.Fprintf(w, "kept in %s\n", line(report.Kept))
	}
}
