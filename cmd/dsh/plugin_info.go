package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"dsh/internal/action"
	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/ui"
)

func (r *runner) pluginInfo(p *pluginRun) error {
	args := p.cli.Args().Slice()
	if len(args) != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin info takes one package"), "dsh plugin --profile %s info PACKAGE", p.shellProfile())
	}
	spec, err := install.ParseSpec(args[0], p.env.Dir)
	if err != nil {
		return err
	}
	if err := readExpect(p); err != nil {
		return err
	}
	info, err := action.LookAt(p.ctx, p.env, p.opts, spec)
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	for _, w := range info.Warnings {
		p.ui.Warn(w)
	}
	unexpected := info.Unexpected(p.opts.Expect)
	if err := p.ui.Result(info, func(w io.Writer) { printInfo(w, p, info, args[0]) }); err != nil {
		return err
	}
	if unexpected != nil && p.ui.JSON {
		return &saidError{fault.ClassOf(unexpected)}
	}
	return unexpected
}

func printInfo(w io.Writer, p *pluginRun, info *action.Info, spec string) {
	fmt.Fprintln(w, p.ui.Bold(line(info.Name+" "+info.Version)))
	if info.Description != "" {
		fmt.Fprintf(w, "  %s\n", line(info.Description))
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, line(fmt.Sprintf(format, args...)))
	}
	source := info.Source.Kind + " " + info.Source.Address
	if info.Source.Commit != "" && !strings.Contains(source, info.Source.Commit) {
		source += " at " + info.Source.Commit
	}
	row("source", "%s", source)
	if info.Source.Integrity != "" {
		row("integrity", "%s", info.Source.Integrity)
	}
	if text := info.Source.Signature; text != "" {
		if info.Source.SignatureNote != "" {
			text += ": " + info.Source.SignatureNote
		}
		row("signature", "%s", text)
	}
	row("repository", "%s", repositoryText(info.Repository))
	if info.Published != nil {
		row("published", "%s (%s ago)", info.Published.Format(time.DateOnly), daysText(time.Since(*info.Published)))
	}
	licence := info.Licence
	if licence == "" {
		licence = "none is named"
	}
	row("licence", "%s", licence)
	row("size", "%s, %s unpacked", counted(info.Files, "file"), ui.Bytes(info.Bytes))
	if info.Installed != "" {
		row("installed", "%s", info.Installed)
	}
	for _, peer := range info.Peers {
		text := peer.Name + " " + peer.Wanted
		switch {
		case peer.Have == "":
		case peer.Fits:
			text += " (the installation has " + peer.Have + ")"
		default:
			text += " (does not fit: the installation has " + peer.Have + ")"
		}
		row("harness", "%s", text)
	}
	d := info.Dependencies
	text := fmt.Sprintf("%d direct; %s would come besides it", d.Direct, counted(d.Packages, "package"))
	if d.Packages > 0 {
		text += amountText(install.Amount{Packages: d.Packages, Bytes: d.Bytes, Unknown: d.Unknown})
		var largest []string
		for _, l := range d.Largest {
			largest = append(largest, l.Name+" "+l.Version)
		}
		text += ": " + strings.Join(largest, ", ")
		if more := d.Packages - len(largest); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if info.Refused == "" {
		row("dependencies", "%s", text)
	} else {
		row("dependencies", "%d direct", d.Direct)
	}
	t.Flush()
	section := func(title string) { fmt.Fprintf(w, "\n%s\n", p.ui.Bold(title)) }
	if info.Deprecated != "" {
		section("deprecated")
		fmt.Fprintf(w, "  %s\n", line(info.Deprecated))
	}
	printInfoLayer(w, info, section)
	if len(info.Scripts) > 0 || len(d.Scripts) > 0 {
		section("scripts (none runs unless you approve it)")
		for _, s := range info.Scripts {
			printScript(w, s)
		}
		for _, s := range d.Scripts {
			fmt.Fprintf(w, "  of %s: %s\n", line(s.Name+" "+s.Version), line(strings.Join(s.Scripts, ", ")))
		}
	}
	if n := info.Native; n.Builds || len(n.Files)+len(n.OS)+len(n.CPU) > 0 {
		section("native code")
		if n.Builds {
			fmt.Fprintln(w, "  it is compiled where it is installed (binding.gyp)")
		}
		if len(n.Files) > 0 {
			fmt.Fprintf(w, "  compiled: %s\n", line(strings.Join(n.Files[:min(len(n.Files), 8)], ", ")))
		}
		if len(n.OS)+len(n.CPU) > 0 {
			runs := "it runs on this machine"
			if !n.Runs {
				runs = "it does not run on this machine"
			}
			fmt.Fprintf(w, "  only for %s: %s\n", line(strings.Join(append(append([]string{}, n.OS...), n.CPU...), ", ")), runs)
		}
	}
	if len(info.Missing) > 0 {
		section("declared and missing")
		for _, l := range info.Missing {
			fmt.Fprintf(w, "  %s (%s)\n", line(l.File), line(l.Field))
		}
	}
	if len(info.Below) > 0 {
		section("bundles in its folders")
		for _, below := range info.Below {
			fmt.Fprintf(w, "  %s\n", line(below))
		}
	}
	fmt.Fprintln(w)
	if info.Refused != "" {
		fmt.Fprintf(w, "it cannot be added to profile %s: %s\n", line(info.Profile), strings.ReplaceAll(line(info.Refused), `\n`, "\n "))
		return
	}
	fmt.Fprintf(w, "to add it: dsh plugin --profile %s add %s\n", p.shellProfile(), line(fault.ShellWord(install.ShownSpec(spec))))
}

func printInfoLayer(w io.Writer, info *action.Info, section func(string)) {
	switch {
	case !info.Layer:
		section("no layer: it declares no dsh.bundle, and nothing loads it by itself")
	case info.Refused == "":
		section("its layer")
		for _, r := range info.Rows {
			text := fmt.Sprintf("inserts %s: %s", r.ID, r.Plugin)
			if len(r.Config) > 0 {
				text += " (config: " + strings.Join(r.Config, ", ") + ")"
			}
			if r.State != "on" {
				text += ", " + r.State
			}
			fmt.Fprintf(w, "  %s\n", line(text))
		}
		for _, o := range info.Overrides {
			text := fmt.Sprintf("overrides %s: %s", o.ID, strings.Join(o.Keys, ", "))
			if o.Layer != "" {
				text += " (of " + o.Layer + ")"
			}
			fmt.Fprintf(w, "  %s\n", line(text))
		}
		if len(info.Rows)+len(info.Overrides) == 0 {
			fmt.Fprintln(w, "  does nothing")
		}
	}
	if len(info.Problems) == 0 {
		return
	}
	section("problems that it would bring")
	for _, f := range info.Problems {
		if f.Severity > check.Info {
			fmt.Fprintf(w, "  %s\n", line(f.Message))
		}
	}
}

func repositoryText(r action.InfoRepository) string {
	text := r.Name
	if r.Directory != "" {
		text += ", folder " + r.Directory
	}
	switch {
	case r.Name == "":
		text = "none is named"
	case r.Proven && r.Claims != "" && r.Claims != r.Name:
		text += " (it comes from there, and claims to be of " + r.Claims + ")"
	case r.Proven:
		text += " (it comes from there)"
	default:
		text += " (as it claims; nobody has checked that)"
	}
	if r.Expected != "" && r.AsWanted {
		text += ", as expected"
	} else if r.Expected != "" {
		text += ", and " + r.Expected + " was expected"
	}
	return text
}

// daysText is an age in words.
func daysText(age time.Duration) string {
	if days := int(age.Hours() / 24); days > 0 {
		return counted(days, "day")
	}
	return counted(int(age.Hours()), "hour")
}
