package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
)

// listTree lists a profile's dependencies with what they depend on.
func (p *pluginRun) listTree() error {
	depth := -1
	if p.cli.IsSet("depth") {
		if depth = p.cli.Int("depth"); depth < 0 {
			return fault.Errorf(fault.Other, "--depth is %d, and should be 0 or more", depth)
		}
	}
	listing, err := action.ListTree(p.ctx, p.env, p.opts.Name, depth)
	if err != nil {
		return err
	}
	for _, w := range listing.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(listing, func(w io.Writer) {
		fmt.Fprintf(w, "profile %s (%s)\n", listing.Profile, line(listing.Dir))
		t := treePrinter{w: w, p: p}
		t.print(listing.Dependencies, "")
		for _, at := range listing.Extraneous {
			fmt.Fprintf(w, "%s: %s\n", line(strings.TrimPrefix(at, "node_modules/")), p.ui.Yellow("in node_modules, and not in the lockfile"))
		}
	})
}

type treePrinter struct {
	w io.Writer
	p *pluginRun
}

func (t treePrinter) print(branches []*install.Branch, indent string) {
	for i, b := range branches {
		mark, below := "├─ ", "│  "
		if i == len(branches)-1 {
			mark, below = "└─ ", "   "
		}
		fmt.Fprintf(t.w, "%s%s%s\n", indent, mark, t.label(b))
		t.print(b.Dependencies, indent+below)
	}
}

// oddStates is what is said of a package that is not there as it should be.
var oddStates = map[install.BranchState]string{
	install.Missing:   "missing",
	install.Other:     "not what the lockfile has",
	install.NotLocked: "not in the lockfile",
	install.NotHere:   "left out",
	install.Provided:  "of the installation",
	install.Bundled:   "brought along",
}

func (t treePrinter) label(b *install.Branch) string {
	text := line(b.Name)
	if b.Version != "" {
		text += " " + line(b.Version)
	}
	text += " (" + line(b.Wanted) + ")"
	if b.Layer > 0 {
		text += fmt.Sprintf(", layer %d", b.Layer)
	}
	switch b.Kind {
	case string(profile.DevDependencies):
		text += ", dev"
	case string(profile.OptionalDependencies):
		text += ", optional"
	case "peerDependencies":
		text += ", peer"
	}
	if odd := oddStates[b.State]; odd != "" {
		if b.State == install.Missing || b.State == install.Other || b.State == install.NotLocked {
			odd = t.p.ui.Red(odd)
		}
		text += ": " + odd
	}
	if b.Repeated {
		text += t.p.ui.Dim(" …") // its dependencies stand elsewhere
	}
	return text
}

// commitText is a commit as it stands behind something else, "" for none.
func commitText(commit string) string {
	if commit == "" {
		return ""
	}
	return ", commit " + line(shortCommit(commit))
}

// shortCommit is the beginning of a commit's hash.
func shortCommit(commit string) string { return commit[:min(len(commit), 10)] }

// commitMove is "commit a → b" behind a space, or what of it there is; "" where
// neither is from a git repository, or nothing changed.
func commitMove(before, now string) string {
	if before == now || before == "" || now == "" {
		return ""
	}
	return fmt.Sprintf(" (commit %s → %s)", line(shortCommit(before)), line(shortCommit(now)))
}

// shownChains is how many chains of a copy are printed; JSON has more.
const shownChains = 8

func (r *runner) pluginWhy(p *pluginRun) error {
	args := p.cli.Args().Slice()
	if len(args) != 1 {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin why takes one package"), "dsh plugin --profile %s why PACKAGE", p.shellProfile())
	}
	name, wanted := args[0], ""
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name, wanted = name[:at], name[at+1:]
	}
	if !install.ValidName(name) {
		return fault.Errorf(fault.Other, "%q is no package name", name)
	}
	reasons, err := action.Why(p.ctx, p.env, p.opts.Name, name, wanted)
	if err != nil {
		return err
	}
	for _, w := range reasons.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(reasons, func(w io.Writer) {
		for i, c := range reasons.Copies {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if c.Place == "" {
				what := "not installed"
				if install.IsHost(c.Name) {
					what = "provided by the installation"
				}
				fmt.Fprintf(w, "%s: %s\n", p.ui.Bold(line(c.Name)), what)
			} else {
				fmt.Fprintf(w, "%s (%s%s)\n", p.ui.Bold(line(c.Name+" "+c.Version)), line(c.Place), commitText(c.Commit))
			}
			for _, chain := range c.Chains[:min(shownChains, len(c.Chains))] {
				fmt.Fprintf(w, "  %s\n", chainText(p.opts.Name.String(), chain))
			}
			if more := len(c.Chains) - shownChains; more > 0 || c.More {
				fmt.Fprintln(w, "  … and more")
			}
			if len(c.Chains) == 0 {
				fmt.Fprintln(w, "  nothing asks for it any more")
			}
		}
	})
}

// chainText is a chain in one line: who asks for what, and gets what.
func chainText(profileName string, chain []install.Need) string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s", line(profileName))
	for _, n := range chain {
		fmt.Fprintf(&b, " → %s@%s", line(n.Name), line(n.Wanted))
		var more []string
		if n.Version != "" && n.Version != n.Wanted {
			more = append(more, line(n.Version))
		}
		switch n.Kind {
		case string(profile.DevDependencies):
			more = append(more, "dev")
		case string(profile.OptionalDependencies):
			more = append(more, "optional")
		case "peerDependencies":
			more = append(more, "peer")
		}
		if len(more) > 0 {
			fmt.Fprintf(&b, " (%s)", strings.Join(more, ", "))
		}
	}
	return b.String()
}

func (r *runner) pluginOutdated(p *pluginRun) error {
	report, err := action.Outdated(p.ctx, p.env, p.opts, p.cli.Args().Slice())
	p.progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		p.ui.Warn(w)
	}
	newer := false
	for _, d := range report.Dependencies {
		newer = newer || d.Outdated
		for _, n := range d.Notes {
			if n.Code == install.NoteZero {
				p.ui.Warn(fmt.Sprintf("%s stays at %s: %s", d.Name, d.Wanted, n.Text))
			}
		}
	}
	err = p.ui.Result(report, func(w io.Writer) { printOutdated(w, p, report) })
	if err == nil && report.Unasked != nil {
		if p.ui.JSON {
			return &saidError{fault.ClassOf(report.Unasked)}
		}
		return report.Unasked
	}
	if err == nil && newer && p.cli.Bool("exit-code") {
		err = &saidError{fault.Other}
	}
	return err
}

func printOutdated(w io.Writer, p *pluginRun, report *action.OutdatedReport) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	rows := 0
	row := func(d install.Dated) {
		if rows++; rows == 1 {
			fmt.Fprintln(t, "PACKAGE\tCURRENT\tWANTED\tLATEST\tSPEC")
		}
		cell := func(text, none string) string {
			if text == "" {
				return none
			}
			return line(text)
		}
		fmt.Fprintln(t, strings.Join([]string{
			line(d.Name), cell(d.Current, "none"), cell(d.Wanted, "-"), cell(d.Latest, "-"), line(d.Spec)}, "\t"))
	}
	var notes []string
	movable := 0
	for _, d := range report.Dependencies {
		if !d.Outdated && len(d.Notes) == 0 && d.Current != "" {
			continue
		}
		row(d)
		for _, n := range d.Notes {
			if n.Code == install.NoteLocked {
				movable++
			}
			notes = append(notes, fmt.Sprintf("%s: %s", line(d.Name), line(n.Text)))
		}
	}
	t.Flush()
	if rows == 0 {
		fmt.Fprintf(w, "all of profile %s is up to date (%s)\n", line(report.Profile), dependenciesText(len(report.Dependencies)))
		return
	}
	for i, note := range notes {
		if i == 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, note)
	}
	if movable > 1 {
		fmt.Fprintf(w, "\ndsh plugin --profile %s update moves %d packages within their ranges\n", p.shellProfile(), movable)
	}
}

func dependenciesText(n int) string {
	if n == 1 {
		return "1 dependency"
	}
	return fmt.Sprintf("%d dependencies", n)
}

func (r *runner) pluginDedupe(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.Errorf(fault.Other, "plugin dedupe takes no names; it is about all packages of the profile")
	}
	report, err := action.Dedupe(p.ctx, p.env, p.opts)
	return p.report(report, err)
}
