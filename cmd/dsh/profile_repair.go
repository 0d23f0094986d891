package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// profileRepairVerbs are the ways out of a profile that does not start.
func (r *runner) profileRepairVerbs() []*cli.Command {
	dryRun := &cli.BoolFlag{DisableDefaultText: true, Name: "dry-run", Usage: "say what would be done, and change nothing"}
	offline := &cli.BoolFlag{DisableDefaultText: true, Name: "offline", Usage: "use nothing but the store"}
	registry := &cli.StringFlag{Name: "registry", Usage: "the npm registry to ask, instead of .npmrc's"}
	return []*cli.Command{
		r.profileVerb("safe", "start or dump a profile without your own layers, or without some bundles; nothing is changed", "NAME [-- ARGUMENTS OF THE APP]", (*profileRun).safe,
			&cli.StringSliceFlag{Name: "without", Usage: "set a bundle aside, and keep your layers"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "no-user", Usage: "leave your layers out with --without as well"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "dump-config", Usage: "print the composed tree and start nothing"}),
		r.profileVerb("repair", "find what is damaged in a profile, and mend it", "[NAME]", (*profileRun).repair,
			dryRun, &cli.BoolFlag{DisableDefaultText: true, Name: "yes", Aliases: []string{"y"}, Usage: "mend without asking"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "rows", Usage: "also switch off rows of your patch files whose packages have gone"}, offline, registry),
		r.profileVerb("adopt", "take over a profile that pnpm or npm installed, in the same versions", "NAME", (*profileRun).adopt, dryRun, offline, registry, forceFlag()),
	}
}

// safe starts or dumps a profile with what may be broken left out.
func (p *profileRun) safe() error {
	name, err := p.named()
	if err != nil {
		return err
	}
	without := p.cli.StringSlice("without")
	layers := action.Layers{
		Name: name, Safe: true, Without: without, BundlesOnly: len(without) == 0 || p.cli.Bool("no-user"),
	}
	if !p.cli.Bool("dump-config") {
		code, err := p.run(context.WithoutCancel(p.ctx), p.env, layers, p.args, "", func(context.Context) error { return nil })
		if err != nil {
			p.ui.Fail(err)
		}
		return &endedError{code}
	}
	if err := p.done(); err != nil {
		return err
	}
	composed, err := action.Compose(p.ctx, p.env, action.ComposeOptions{Layers: layers})
	if err != nil {
		return err
	}
	return p.dumped(composed)
}

func (p *profileRun) dumped(composed *action.Composed) error {
	for _, w := range composed.Warnings {
		p.ui.Warn(w)
	}
	for _, n := range composed.Notices {
		p.ui.Notice(n)
	}
	text := composed.Tree.Dump()
	document := map[string]any{"profile": composed.Profile.Name.String(), "config": string(text), "notes": append([]string{}, composed.Notes...)}
	return p.ui.Result(document, func(w io.Writer) { w.Write(text) })
}

func (p *profileRun) repair() error {
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	opts := action.RepairOptions{PluginOptions: p.pluginOptions(name, progress), Rows: p.cli.Bool("rows")}
	progress.Set("looking at profile %s", name)
	found, err := action.Diagnose(p.ctx, p.env, opts)
	progress.Stop()
	if err != nil {
		return err
	}
	if !p.cli.Bool("dry-run") && found.Mendable() {
		if !p.cli.Bool("yes") {
			if !p.ui.JSON {
				p.printDamages(p.ui.Err, found)
			}
			yes, err := p.ui.Ask(p.ctx, fmt.Sprintf("mend profile %s?", name))
			if err != nil {
				return err
			}
			if !yes {
				p.ui.Say("nothing was changed")
				return &saidError{fault.Composition}
			}
		}
		progress = p.installing()
		defer progress.Stop()
		opts.PluginOptions = p.pluginOptions(name, progress)
		if found, err = action.Mend(p.ctx, p.env, opts, found); err != nil {
			return err
		}
		progress.Stop()
	} else if !p.cli.Bool("dry-run") {
		found.DryRun = false
	}
	for _, w := range found.Warnings {
		p.ui.Warn(w)
	}
	err = p.ui.Result(found, func(w io.Writer) { p.printRepair(w, found) })
	if err == nil && found.Left > 0 {
		err = &saidError{fault.Composition}
	}
	return err
}

func (p *profileRun) printRepair(w io.Writer, r *action.Repair) {
	p.printDamages(w, r)
	for _, file := range r.Kept {
		if r.Changed {
			fmt.Fprintf(w, "kept: %s\n", ui.Clean(file))
		}
	}
	printBuilds(w, r.Profile, r.Builds)
	name := ui.Clean(r.Profile)
	switch {
	case r.DryRun && r.Left > 0:
		fmt.Fprintf(w, "%s in profile %s; nothing was changed\n", counted(r.Left, "damage"), name)
	case r.Left > 0:
		fmt.Fprintf(w, "%s left in profile %s\n", counted(r.Left, "damage"), name)
	case r.Changed:
		fmt.Fprintf(w, "profile %s is mended\n", name)
	default:
		fmt.Fprintf(w, "nothing is damaged in profile %s (%s)\n", name, ui.Clean(r.Dir))
	}
	if r.Changed && r.Saved > 0 {
		fmt.Fprintf(w, "to take it back: %s\n", fault.ShellWords("dsh", "profile", "rollback", r.Profile))
	}
	if r.HomeChanged {
		fmt.Fprintln(w, "to take back what was changed for all profiles: dsh profile rollback --home")
	}
}

// printDamages prints what is wrong, and what is, or was, done about it.
func (p *profileRun) printDamages(w io.Writer, r *action.Repair) {
	for _, d := range r.Damages {
		file := d.File
		if rel, err := filepath.Rel(r.Dir, d.File); err == nil && !strings.HasPrefix(rel, "..") {
			file = rel
		}
		problem := ui.Clean(strings.TrimPrefix(d.Problem, d.File+": "))
		switch {
		case d.Mended:
			fmt.Fprintf(w, "mended %s: %s\n  %s\n", ui.Clean(file), problem, ui.Clean(d.Mend))
		case d.Note:
			fmt.Fprintf(w, "note %s: %s\n", ui.Clean(file), problem)
		default:
			fmt.Fprintf(w, "%s %s: %s\n", p.ui.Red("damaged"), ui.Clean(file), problem)
		}
		if !d.Mended && d.Mend != "" {
			fmt.Fprintf(w, "  mending: %s\n", ui.Clean(d.Mend))
		}
		if !d.Mended && d.ByHand != "" && (d.Mend == "" || r.Changed) {
			fmt.Fprintf(w, "  by hand: %s\n", ui.Clean(d.ByHand))
		}
	}
}

func (p *profileRun) adopt() error {
	name, err := p.named()
	if err == nil {
		err = p.done()
	}
	if err != nil {
		return err
	}
	progress := p.installing()
	defer progress.Stop()
	opts := action.AdoptOptions{PluginOptions: p.pluginOptions(name, progress), DryRun: p.cli.Bool("dry-run")}
	opts.Force = p.cli.Bool("force")
	done, err := action.Adopt(p.ctx, p.env, opts)
	progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(done, func(w io.Writer) { printAdopted(w, done) })
}

func printAdopted(w io.Writer, a *action.Adopted) {
	switch a.Manager {
	case "":
		fmt.Fprintf(w, "profile %s has no packages to take over (%s)\n", ui.Clean(a.Profile), ui.Clean(a.Dir))
		return
	case "dsh":
		fmt.Fprintf(w, "profile %s is dsh's already (%s)\n", ui.Clean(a.Profile), ui.Clean(a.Dir))
		return
	}
	verb := "adopted"
	if a.DryRun {
		verb = "would adopt"
	}
	fmt.Fprintf(w, "%s profile %s: %s, as %s has them\n", verb, ui.Clean(a.Profile), counted(a.Packages, "package"), ui.Clean(filepath.Base(a.Lockfile)))
	for _, d := range a.Dependencies {
		fmt.Fprintf(w, "  %s %s\n", ui.Clean(d.Name), ui.Clean(d.Version))
	}
	for _, name := range a.Different {
		fmt.Fprintf(w, "resolved anew: %s, for what %s has does not fit package.json\n", ui.Clean(name), ui.Clean(filepath.Base(a.Lockfile)))
	}
	for _, s := range a.Scripts {
		if a.DryRun {
			fmt.Fprintf(w, "run where somebody allowed it: scripts of %s\n", ui.Clean(s))
		} else {
			fmt.Fprintf(w, "not run: scripts of %s\n", ui.Clean(s))
		}
	}
	printBuilt(w, a.Built)
	for _, approval := range a.Approvals {
		word := "refused"
		switch {
		case approval.Undecided != "":
			word = "undecided (" + approval.Undecided + ")"
		case approval.Allowed:
			word = "allowed"
		}
		fmt.Fprintf(w, "scripts of %s: %s in pnpm-workspace.yaml, which stays as it is\n", ui.Clean(approval.Package), ui.Clean(word))
	}
	if a.Changed && a.Replaced != "" {
		fmt.Fprintf(w, "node_modules, which %s had made, was made anew; %s stays as it is\n", ui.Clean(a.Replaced), ui.Clean(filepath.Base(a.Lockfile)))
	}
	if a.Changed {
		fmt.Fprintf(w, "to take it back: %s\n", fault.ShellWords("dsh", "profile", "rollback", a.Profile))
	}
}
