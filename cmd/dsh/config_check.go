package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// configCheckVerbs find mistakes.
func (r *runner) configCheckVerbs() []*cli.Command {
	strict := &cli.BoolFlag{DisableDefaultText: true, Name: "strict", Usage: "exit with 2 for warnings, too"}
	return []*cli.Command{
		r.configVerb("check", "look for mistakes in a profile (exit code 2: some were found)", " ", (*configRun).check, append(layerFlags(), strict)...),
		r.configVerb("lint", "look for mistakes in single patch files and bundles", "FILE...", (*configRun).lint, strict),
	}
}

func (r *configRun) check() error {
	if r.cli.Args().Present() {
		return fault.WithHint(fault.Errorf(fault.Other, "config check takes no arguments, got %q", r.cli.Args().First()),
			"files are checked with: dsh config lint %s", fault.ShellWord(r.cli.Args().First()))
	}
	report, err := action.Check(r.ctx, r.env, r.layers, action.CheckOptions{ShowSecrets: r.showSecrets()})
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		r.ui.Warn(w)
	}
	where := "profile " + report.Profile
	clean := fmt.Sprintf("%s: %s, %s", where, counted(report.Layers, "layer"), counted(report.Rows, "row"))
	return r.findings(report, report.Findings, report.Counts, where, clean)
}

func (r *configRun) lint() error {
	files := r.cli.Args().Slice()
	if len(files) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "config lint needs patch files or the folders of bundles"), "dsh config lint cordis.patch.yml")
	}
	opts := action.LintOptions{Files: files}
	for _, file := range files {
		if file != "-" {
			continue
		}
		if opts.Stdin != nil {
			return fault.Errorf(fault.Other, "config lint: standard input can be named only once")
		}
		text, err := r.readStdin(r.ctx)
		if err != nil {
			return err
		}
		opts.Stdin = text
	}
	report, err := action.Lint(r.ctx, r.env, opts)
	if err != nil {
		return err
	}
	where := counted(max(len(report.Files), len(files)), "file") // some may not be there
	return r.findings(report, report.Findings, report.Counts, where, where)
}

// findings prints what was found, and exits with 2 if it is wrong.
func (r *configRun) findings(report any, findings []check.Finding, counts action.CheckCounts, where, clean string) error {
	err := r.ui.Result(report, func(w io.Writer) {
		for i, f := range findings {
			if i > 0 && fileOf(f) != fileOf(findings[i-1]) {
				fmt.Fprintln(w)
			}
			r.finding(w, f)
		}
		if len(findings) > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, ui.Clean(summary(counts, where, clean)))
	})
	if err == nil && !counts.Passed(r.cli.Bool("strict")) {
		return &saidError{fault.Composition}
	}
	return err
}

// fileOf is what a finding is printed under.
func fileOf(f check.Finding) string {
	if f.File == "" {
		return f.Layer
	}
	return f.File
}

// finding prints one finding in the form that editors look for.
func (r *configRun) finding(w io.Writer, f check.Finding) {
	place := f.Place()
	if place == "" {
		place = f.Layer
	}
	if place != "" {
		place += ": "
	}
	severity := f.Severity.String() + ":"
	switch f.Severity {
	case check.Error:
		severity = r.ui.Red(severity)
	case check.Warning:
		severity = r.ui.Yellow(severity)
	}
	fmt.Fprintf(w, "%s%s %s %s\n", r.ui.Bold(line(place)), severity, line(f.Message), r.ui.Dim("["+string(f.Code)+"]"))
	if f.Remedy != "" {
		fmt.Fprintf(w, "    %s\n", line(f.Remedy))
	}
}

// line is text from files, on one line.
func line(text string) string {
	return strings.NewReplacer("\n", `\n`, "\t", " ").Replace(ui.Clean(text))
}

// summary is the last line.
func summary(c action.CheckCounts, where, clean string) string {
	var parts []string
	if c.Errors > 0 {
		parts = append(parts, counted(c.Errors, "error"))
	}
	if c.Warnings > 0 {
		parts = append(parts, counted(c.Warnings, "warning"))
	}
	if len(parts) == 0 {
		return "no problems in " + clean
	}
	return strings.Join(parts, ", ") + " in " + where
}
