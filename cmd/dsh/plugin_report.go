package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
)

// report prints what a command did.
func (p *pluginRun) report(report *action.Report, err error) error {
	p.progress.Stop()
	if err != nil {
		return ended(p.ctx, err)
	}
	p.said(report)
	if report.Plan != nil {
		return p.ui.Result(report, func(w io.Writer) { printPlanned(w, report) })
	}
	if err := p.ui.Result(report, func(w io.Writer) {
		printReport(w, report)
		printMoved(w, report)
	}); err != nil {
		return err
	}
	if line := p.progress.summary(report.Tree, p.ui.Watched()); line != "" {
		p.ui.Say("%s", line)
	}
	return nil
}

// said tells what a user should know of a change besides its result.
func (p *pluginRun) said(report *action.Report) {
	if report.Created {
		p.ui.Say("initialized profile %s at %s", report.Profile, report.Dir)
		p.warnReserved(p.opts.Name)
	}
	for _, w := range report.Warnings {
		p.ui.Warn(w)
	}
	for _, c := range report.Changes {
		switch {
		case c.Action == install.Added && c.Layer == install.NoLayer:
			p.ui.Warn(fmt.Sprintf("%s declares no dsh.bundle — installed as a plain dependency, not a profile layer", c.Name))
		case c.Layer != install.NoLayer && c.Shadowed:
			p.ui.Warn(fmt.Sprintf("the layer %s comes from the installation and not from this package; to use this one add it under a name of its own: dsh plugin --profile %s add %s",
				c.Name, p.shellProfile(), fault.ShellWord("my-"+path.Base(c.Name)+"@"+ownSpec(c))))
		}
	}
	for _, d := range report.There {
		p.ui.Say("%s", thereText(p, d))
	}
	for _, name := range report.Absent {
		p.ui.Say("nothing to remove: profile %s does not depend on %s", report.Profile, name)
	}
	for _, d := range report.Data {
		if d.Deleted {
			p.ui.Say("deleted the data of %s, %s", d.Plugin, d.Dir)
		} else {
			p.ui.Say("the data of %s stays in %s; to delete it: dsh plugin --profile %s remove %s --purge", d.Plugin, d.Dir, p.shellProfile(), fault.ShellWord(d.Plugin))
		}
	}
	if by := report.Tree.Replaced; by != "" {
		p.ui.Say("node_modules was made by %s and has been made anew", by)
	}
}

// thereText says of a package that was to be added and is there already which
// version that is, and which is newer.
func thereText(p *pluginRun, d install.Dated) string {
	text := fmt.Sprintf("%s %s is installed already (package.json asks for %s)", d.Name, d.Current, d.Spec)
	for _, n := range d.Notes {
		if n.Code == install.NoteNotAsked || n.Code == install.NoteNotFound {
			return fmt.Sprintf("%s; newer versions could not be looked up: %s", text, n.Text)
		}
	}
	within, beyond := d.Wanted != d.Current && d.Wanted != "", d.Latest != d.Wanted && d.Latest != ""
	update := fmt.Sprintf("dsh plugin --profile %s update %s", p.shellProfile(), fault.ShellWord(d.Name))
	newest := fmt.Sprintf("dsh plugin --profile %s update --latest %s", p.shellProfile(), fault.ShellWord(d.Name))
	switch {
	case !d.Outdated:
		return text + ", and that is the newest"
	case within && beyond:
		return fmt.Sprintf("%s; %s is newer (%s), and the newest is %s (%s)", text, d.Wanted, update, d.Latest, newest)
	case within:
		return fmt.Sprintf("%s; %s is newer: %s", text, d.Wanted, update)
	}
	return fmt.Sprintf("%s; the newest is %s: %s", text, d.Latest, newest)
}

// ownSpec is where a package came from, to be written behind another name.
func ownSpec(c install.Change) string {
	if strings.Contains(c.Spec, ":") {
		return c.Spec // an alias, an address or a path
	}
	return "npm:" + c.Name + "@" + c.Version
}

func printReport(w io.Writer, report *action.Report) {
	shown := 0
	for _, c := range report.Changes {
		if c.Action == install.Kept && c.Section == "" && c.Layer != install.LayerAdded && c.Layer != install.LayerRemoved && len(report.Changes) > 1 {
			continue
		}
		shown++
		fmt.Fprintln(w, changeLine(c))
	}
	t := report.Tree
	switch {
	case t.Added+t.Removed+t.Changed > 0:
		fmt.Fprintf(w, "packages: %s in profile %s (%s)\n", treeCounts(t), report.Profile, report.Dir)
	case shown == 0:
		fmt.Fprintf(w, "profile %s is up to date (%s)\n", report.Profile, report.Dir)
	}
	printBuilds(w, report.Profile, report.Builds)
}

// shownMoves is how many packages of packages are printed; JSON has more.
const shownMoves = 50

// printMoved prints what an update or dedupe did to packages of packages.
func printMoved(w io.Writer, report *action.Report) {
	shown := 0
	for _, m := range report.Moved {
		if slices.ContainsFunc(report.Changes, func(c install.Change) bool {
			return c.Action == m.Action && m.Place == "node_modules/"+c.Name
		}) {
			continue
		}
		if shown++; shown <= shownMoves {
			fmt.Fprintln(w, movedText(m))
		}
	}
	if more := shown - shownMoves; more > 0 {
		fmt.Fprintf(w, "… and %d more\n", more)
	}
}

// treeCounts is "3 added, 1 changed", "" for nothing.
func treeCounts(t install.TreeChange) string {
	var parts []string
	for _, part := range []struct {
		n    int
		what string
	}{{t.Added, "added"}, {t.Changed, "changed"}, {t.Removed, "removed"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(parts, ", ")
}

func changeLine(c install.Change) string {
	var b strings.Builder
	switch c.Action {
	case install.LeftOut:
		fmt.Fprintf(&b, "left out %s: %s", strings.TrimSpace(c.Name+" "+c.Version), c.Reason)
		return b.String()
	case install.Updated:
		if c.Before == c.Version {
			fmt.Fprintf(&b, "updated %s %s%s", c.Name, c.Version, commitMove(c.CommitBefore, c.Commit))
			break
		}
		fmt.Fprintf(&b, "updated %s %s → %s%s", c.Name, c.Before, c.Version, commitMove(c.CommitBefore, c.Commit))
	case install.Removed:
		fmt.Fprintf(&b, "removed %s %s", c.Name, c.Before)
	case install.Kept:
		fmt.Fprintf(&b, "kept %s %s", c.Name, c.Version)
	default:
		fmt.Fprintf(&b, "added %s %s", c.Name, c.Version)
	}
	if c.From != "" && c.Action != install.Removed {
		fmt.Fprintf(&b, " from %s", c.From)
	}
	if c.AgentPlugin && c.Action == install.Added {
		b.WriteString(", an Agent Plugin")
	}
	if c.Section != "" {
		fmt.Fprintf(&b, ", moved to %s", c.Section)
	}
	switch c.Layer {
	case install.LayerAdded:
		b.WriteString(", now a layer")
	case install.LayerKept:
		b.WriteString(", a layer")
	case install.LayerInBox:
		b.WriteString(", still a layer: the installation has a bundle of this name")
	case install.LayerRemoved:
		b.WriteString(", no longer a layer")
	case install.LayerOff:
		b.WriteString(", its layer is switched off")
	}
	return b.String()
}
