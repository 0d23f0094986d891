package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// profileArchiveVerbs are those that let a profile travel.
func (r *runner) profileArchiveVerbs() []*cli.Command {
	return []*cli.Command{
		r.profileVerb("export", "write a profile into one file for other machines", "[NAME]", (*profileRun).export,
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "the file; - is standard output", DefaultText: "NAME" + action.ArchiveSuffix},
			&cli.BoolFlag{DisableDefaultText: true, Name: "with-packages", Usage: "put all packages into it, so that importing needs no network"},
			&cli.StringSliceFlag{Name: "include", Usage: "take a file along that would be left out; repeatable"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "overwrite a file that is there"}),
		r.profileVerb("import", "make a profile of a file that profile export wrote", "FILE|URL", (*profileRun).importProfile,
			&cli.StringFlag{Name: "name", Usage: "what the profile is to be called, instead of as it was"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "use nothing but the file and the store"},
			&cli.StringSliceFlag{Name: "include", Usage: "take an .npmrc as it is, with what would be left out of it"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "check the file and say what would come, and make nothing"}),
	}
}

func (p *profileRun) export() error {
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	opts := action.ExportOptions{
		Name: name, File: p.cli.String("output"), Force: p.cli.Bool("force"), Packages: p.cli.Bool("with-packages"),
		Include: p.cli.StringSlice("include"), Version: version(), Events: progress.events(),
	}
	switch {
	case opts.File == "":
		opts.File = name.String() + action.ArchiveSuffix
	case opts.File == "-" && p.ui.JSON:
		return fault.Errorf(fault.Other, "-o - and --json both want standard output")
	case opts.File == "-":
		opts.Out = p.ui.Out
	}
	done, err := action.Export(p.ctx, p.env, opts)
	progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	for _, s := range done.Sources {
		if s.Was == "link" {
			p.ui.Say("%s is a linked folder; what is in it now travels as %s, and no link", s.Package, s.Path)
		} else {
			p.ui.Say("%s is a local %s, and travels as %s", s.Package, s.Was, s.Path)
		}
	}
	for _, l := range done.LeftOut {
		p.ui.Say("left out %s: %s", l.Path, l.Reason)
	}
	if opts.Out != nil {
		return nil
	}
	return p.ui.Result(done, func(w io.Writer) {
		with := ""
		if done.Packages > 0 {
			with = fmt.Sprintf(" and %s", counted(done.Packages, "package"))
		}
		fmt.Fprintf(w, "profile %s is in %s, with %s%s\n", done.Profile, done.File, counted(done.Files, "file"), with)
	})
}

func (p *profileRun) importProfile() error {
	if len(p.args) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "profile import needs a file or an address"), "dsh profile export NAME writes such a file")
	}
	source := p.args[0]
	p.args = p.args[1:]
	if err := p.done(); err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	opts := action.ImportOptions{
		Name: p.cli.String("name"), Offline: p.cli.Bool("offline"), Include: p.cli.StringSlice("include"), Events: progress.events(),
	}
	if opts.Name == "" && !p.invocation.Implied {
		opts.Name = p.invocation.Profile
	}
	progress.Set("checking %s", source)
	a, err := action.OpenArchive(p.ctx, p.env, source, opts)
	progress.Stop()
	if err != nil {
		return err
	}
	defer a.Close()
	name, err := a.CheckName(p.env, opts)
	if err != nil {
		return err
	}
	for _, w := range a.Plan.Warnings {
		p.ui.Warn(w)
	}
	if p.cli.Bool("dry-run") {
		return p.ui.Result(a.Plan, func(w io.Writer) {
			printPlan(w, &a.Plan, true)
			fmt.Fprintf(w, "this would become profile %s; nothing was made\n", name)
		})
	}
	var plan strings.Builder
	printPlan(&plan, &a.Plan, false)
	for line := range strings.Lines(plan.String()) {
		p.ui.Say("%s", strings.TrimSuffix(line, "\n"))
	}
	done, err := action.Import(p.ctx, p.env, a, opts)
	progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	p.warnReserved(name)
	return p.ui.Result(done, func(w io.Writer) {
		fmt.Fprintf(w, "made profile %s (%s) with %s\n", done.Profile, done.Dir, counted(done.Tree.Added, "package"))
		printBuilds(w, done.Profile, done.Builds)
	})
}

// printPlan says what is in an archive, in words that its sender cannot choose.
// Packages that others need are only counted, unless all are to be shown.
func printPlan(w io.Writer, plan *action.Plan, all bool) {
	line := func(format string, args ...any) {
		fmt.Fprintln(w, ui.Clean(fmt.Sprintf(format, args...)))
	}
	line("profile %s, exported by dsh %s, %s", oneLine(plan.From), oneLine(plan.Version), counted(plan.Files, "file"))
	for i, bundle := range plan.Bundles {
		line("  layer %d: %s", i+1, oneLine(bundle))
	}
	carried, needed := 0, 0
	for _, pkg := range plan.Packages {
		from := "from " + pkg.From
		switch {
		case pkg.Carried:
			carried++
			from = "in the file"
		case pkg.From == "registry":
			from = "from its registry"
		}
		if !pkg.Direct && !all {
			needed++
			continue
		}
		line("  package %s %s, %s", oneLine(pkg.Name), oneLine(pkg.Version), oneLine(from))
	}
	if needed > 0 {
		line("  and %s that these need", counted(needed, "package"))
		switch n := len(plan.Packages); carried {
		case n:
			line("  all %d are in the file", n)
		default:
			line("  %d of all %d are in the file", carried, n)
		}
	}
	for _, row := range plan.Rows {
		line("  its own layer runs %s as row %s", oneLine(row.Plugin), oneLine(row.ID))
	}
	for _, text := range plan.Expressions {
		line("  its own layer evaluates %s", oneLine(text))
	}
	for _, setting := range plan.Settings {
		line("  %s %s", oneLine(setting.File), oneLine(setting.Does))
	}
	for _, left := range plan.LeftOut {
		line("  its sender left out %s: %s", oneLine(left.Path), oneLine(left.Reason))
	}
	line("layers run code when the profile is started; importing runs none, and of the scripts of packages only what you approved")
}

// oneLine keeps text of others from looking like a line of ours.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
