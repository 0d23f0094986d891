package main

import (
	"fmt"
	"io"
	"strings"

	"dsh/internal/action"
	"dsh/internal/install"
	"dsh/internal/ui"
)

// printPlanned prints what a command would have done.
func printPlanned(w io.Writer, report *action.Report) {
	plan := report.Plan
	if plan.Creates {
		fmt.Fprintf(w, "would make profile %s (%s)\n", line(report.Profile), line(report.Dir))
	}
	if plan.Replaces != "" {
		fmt.Fprintf(w, "would make node_modules anew, which was made by %s\n", line(plan.Replaces))
	}
	for _, c := range report.Changes {
		if c.Action == install.Kept && c.Section == "" && c.Layer != install.LayerAdded && c.Layer != install.LayerRemoved {
			continue
		}
		fmt.Fprintf(w, "would have: %s\n", line(changeLine(c)))
	}
	for _, p := range plan.Packages {
		fmt.Fprintln(w, plannedLine(p))
	}
	for _, p := range plan.Packages {
		if len(p.Scripts) > 0 {
			fmt.Fprintf(w, "%s has scripts, which run only where you approved them: %s\n", line(p.Name+" "+p.Version), line(strings.Join(p.Scripts, ", ")))
		}
	}
	if counts := treeCounts(report.Tree); counts != "" {
		fmt.Fprintf(w, "packages: %s\n", counts)
	}
	for _, amount := range []struct {
		of    install.Amount
		where string
	}{{plan.Fetch, "to fetch"}, {plan.Stored, "in the store"}} {
		if amount.of.Packages > 0 {
			fmt.Fprintf(w, "%s: %s%s\n", amount.where, counted(amount.of.Packages, "package"), amountText(amount.of))
		}
	}
	if len(plan.LayersAdded) > 0 {
		fmt.Fprintf(w, "layers added: %s\n", line(strings.Join(plan.LayersAdded, ", ")))
	}
	if len(plan.LayersRemoved) > 0 {
		fmt.Fprintf(w, "layers removed: %s\n", line(strings.Join(plan.LayersRemoved, ", ")))
	}
	if len(plan.Files) > 0 {
		fmt.Fprintf(w, "files changed: %s\n", strings.Join(plan.Files, ", "))
	}
	if len(plan.Packages)+len(plan.Files) == 0 && !plan.Creates {
		fmt.Fprintf(w, "profile %s is up to date\n", line(report.Profile))
	}
	fmt.Fprintln(w, "nothing was changed")
}

// movedText is what becomes of one package: "~ a > b 1.0.0 → 1.1.0".
func movedText(p install.Move) string {
	name := strings.ReplaceAll(strings.TrimPrefix(p.Place, "node_modules/"), "/node_modules/", " > ")
	if !strings.HasSuffix(name, p.Name) {
		name += " (" + p.Name + ")"
	}
	switch {
	case p.Action == install.Removed:
		return line(fmt.Sprintf("- %s %s", name, p.Before))
	case p.Action == install.Added:
		return line(fmt.Sprintf("+ %s %s", name, p.Version))
	case p.Before == p.Version:
		return line(fmt.Sprintf("~ %s %s%s", name, p.Version, commitMove(p.CommitBefore, p.Commit)))
	}
	return line(fmt.Sprintf("~ %s %s → %s%s", name, p.Before, p.Version, commitMove(p.CommitBefore, p.Commit)))
}

// plannedLine is one package of a plan: "+ a 1.0.0 (to fetch, 2 kB)".
func plannedLine(p install.Planned) string {
	text := movedText(p.Move)
	if p.Action == install.Removed {
		return text
	}
	switch p.Source {
	case "link":
		text += " (link)"
	case "local":
		text += " (from this machine" + unpacked(p.Bytes) + ")"
	case "store":
		text += " (in the store" + unpacked(p.Bytes) + ")"
	default:
		text += " (to fetch" + unpacked(p.Bytes) + ")"
	}
	return text
}

// amountText is the size of several packages, behind their number.
func amountText(a install.Amount) string {
	switch {
	case a.Unknown == a.Packages:
		return ", size unknown"
	case a.Unknown > 0:
		return fmt.Sprintf(", %s and %d of unknown size", ui.Bytes(a.Bytes), a.Unknown)
	}
	return unpacked(a.Bytes)
}

// unpacked is a size behind something else, "" for one that is not known.
func unpacked(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return ", " + ui.Bytes(bytes)
}
