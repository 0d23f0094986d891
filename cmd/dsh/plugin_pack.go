package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
)

// packFlags are those of `dsh plugin pack`.
func packFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "the file; - is standard output", DefaultText: "NAME" + action.SetSuffix},
		&cli.BoolFlag{DisableDefaultText: true, Name: "force", Usage: "overwrite a file that is there"},
	}
}

func (r *runner) pluginPack(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.Errorf(fault.Other, "plugin pack takes all packages of a profile, and no names")
	}
	opts := action.PackOptions{
		Name: p.opts.Name, File: p.cli.String("output"), Force: p.cli.Bool("force"), Version: version(), Events: p.opts.Events,
	}
	switch {
	case opts.File == "":
		opts.File = opts.Name.String() + action.SetSuffix
	case opts.File == "-" && p.ui.JSON:
		return fault.Errorf(fault.Other, "-o - and --json both want standard output")
	case opts.File == "-":
		opts.Out = p.ui.Out
	}
	done, err := action.Pack(p.ctx, p.env, opts)
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	for _, s := range done.Sources {
		p.ui.Say("%s has no registry (%s), and travels as an archive", s.Package, s.Was)
	}
	for _, l := range done.LeftOut {
		p.ui.Say("left out %s: %s", l.Path, l.Reason)
	}
	if opts.Out != nil {
		return nil
	}
	return p.ui.Result(done, func(w io.Writer) {
		fmt.Fprintf(w, "packed %s of profile %s, %s in all, into %s\n",
			counted(len(done.Dependencies), "package"), done.Profile, counted(done.Packages, "archive"), done.File)
		for _, d := range done.Dependencies {
			fmt.Fprintf(w, "  %s %s\n", d.Name, d.Version)
		}
	})
}

// setAmong is the file or address of a set among the packages that are to be
// added, "" if there is none.
func setAmong(specs []install.Spec) string {
	for _, spec := range specs {
		switch {
		case spec.Inside != "" || spec.Forced != "":
		case spec.Kind == install.Archive && action.IsSet(spec.Place), spec.Kind == install.URL && action.SetAddress(spec.Place):
			return spec.Place
		}
	}
	return ""
}

// addSet adds what a set holds, which is said by it alone.
func (p *pluginRun) addSet(file string, specs []install.Spec) error {
	if len(specs) > 1 || specs[0].Name != "" {
		return fault.Errorf(fault.Other, "%s is a set of packages, and is added alone and under the names that it has", install.ShownSpec(file))
	}
	for _, flag := range []string{"save-prod", "save-dev", "save-optional", "save-exact"} {
		if p.cli.Bool(flag) {
			return fault.Errorf(fault.Other, "--%s does not go with a set of packages, which says that itself", flag)
		}
	}
	done, err := action.AddSet(p.ctx, p.env, p.opts, file)
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, s := range done.Skipped {
		p.ui.Say("left alone %s: %s", s.Name, s.Reason)
	}
	p.said(&done.Report)
	return p.ui.Result(done, func(w io.Writer) {
		if done.Plan != nil {
			printPlanned(w, &done.Report)
			return
		}
		printReport(w, &done.Report)
	})
}
