package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/build"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/ui"
)

// scriptsVerb is `dsh plugin scripts`.
func (r *runner) scriptsVerb() *cli.Command {
	return r.verb("scripts", nil, "show which packages have scripts, what these are, and whether they may run", " ", r.pluginScripts, localFlags())
}

// approveVerb is `dsh plugin approve`.
func (r *runner) approveVerb() *cli.Command {
	return r.verb("approve", nil, "let the scripts of packages run, exactly as they are now", "<package>[@<version>]...", r.pluginApprove,
		networkFlags(), []cli.Flag{
			&cli.BoolFlag{DisableDefaultText: true, Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&cli.BoolFlag{DisableDefaultText: true, Name: "revoke", Usage: "take approvals of the package back"}, forceFlag()})
}

func (r *runner) pluginScripts(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.Errorf(fault.Other, "plugin scripts takes no names; it shows all packages that have scripts")
	}
	report, err := action.Scripts(p.ctx, p.env, p.opts.Name)
	p.progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(report, func(w io.Writer) {
		if len(report.Packages) == 0 {
			fmt.Fprintf(w, "no package of profile %s has scripts that an installation would run\n", report.Profile)
			return
		}
		pending := false
		for _, s := range report.Packages {
			printScripts(w, s)
			pending = pending || s.State == action.ScriptsPending || s.State == action.ScriptsRevoked
		}
		if pending {
			fmt.Fprintf(w, "to let them run: dsh plugin --profile %s approve PACKAGE\n", p.shellProfile())
		}
	})
}

// printScripts shows what a package wants to run. Its texts must not look like
// lines of ours, nor be anything but what the shell gets.
func printScripts(w io.Writer, s action.PackageScripts) {
	state := string(s.State)
	switch {
	case s.By == "pnpm" && s.Rule != "":
		state += ", by " + s.Rule
	case s.By != "":
		state += ", by you"
	}
	fmt.Fprintf(w, "%s %s (%s)\n", ui.Clean(s.Name), ui.Clean(s.Version), ui.Clean(state))
	if len(s.Chain) > 1 {
		fmt.Fprintf(w, "  comes with %s\n", ui.Clean(strings.Join(s.Chain, " → ")))
	}
	if s.Prepare {
		fmt.Fprintf(w, "  is source: %s\n", ui.Clean(s.Spec))
	}
	for _, script := range s.Scripts {
		printScript(w, script)
	}
	if s.State == action.ScriptsRevoked {
		fmt.Fprintln(w, "  stands as they made it until it is laid out anew")
	} else if len(s.Missing) > 0 && s.State != action.ScriptsRan {
		fmt.Fprintf(w, "  is without %s until then\n", ui.Clean(strings.Join(s.Missing, ", ")))
	}
}

// printScript shows what the shell gets.
func printScript(w io.Writer, s install.Script) {
	implied := ""
	if s.Implied {
		implied = " (package.json does not name it; a binding.gyp is there)"
	}
	fmt.Fprintf(w, "  %s: %s%s\n", ui.Clean(s.Event), build.Shown(s.Text), implied)
}

func (r *runner) pluginApprove(p *pluginRun) error {
	words := p.cli.Args().Slice()
	if len(words) == 0 {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin approve needs a package"), "dsh plugin --profile %s scripts shows which have scripts", p.shellProfile())
	}
	word := words[0]
	if p.cli.Bool("revoke") {
		if len(words) > 1 {
			return fault.Errorf(fault.Other, "plugin approve --revoke takes one package")
		}
		return r.revokeScripts(p, word)
	}
	what, err := action.FindAllScripts(p.ctx, p.env, p.opts, words)
	p.progress.Stop()
	if err != nil {
		return err
	}
	if !p.ui.JSON {
		for _, s := range what.Packages {
			printScripts(p.ui.Err, s)
		}
	}
	if !p.cli.Bool("yes") {
		yes, err := p.ui.Ask(p.ctx, fmt.Sprintf("let %s run?", scriptNames(what.Packages)))
		if err != nil {
			return err
		}
		if !yes {
			p.ui.Say("nothing was approved")
			return &saidError{fault.Other}
		}
	}
	done, err := action.ApproveScripts(p.ctx, p.env, p.opts, what, word, time.Now())
	p.progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range done.Warnings {
		p.ui.Warn(w)
	}
	if done.Report != nil {
		p.said(done.Report)
	}
	return p.ui.Result(done, func(w io.Writer) {
		for _, s := range done.Packages {
			fmt.Fprintf(w, "approved the scripts of %s %s, as it is now\n", ui.Clean(s.Name), ui.Clean(s.Version))
		}
		if done.Report != nil {
			printReport(w, done.Report)
		} else if what.Other != "" {
			fmt.Fprintf(w, "now it can be taken: %s\n", done.Add)
		} else if done.Add != "" {
			fmt.Fprintf(w, "now it can be added: %s\n", done.Add)
		}
	})
}

// scriptNames is "the script of a 1.0.0" or "3 scripts of a 1.0.0, b 2.0.0".
func scriptNames(packages []action.PackageScripts) string {
	scripts, names := 0, []string{}
	for _, p := range packages {
		scripts += len(p.Scripts)
		names = append(names, p.Name+" "+p.Version)
	}
	what := "the script"
	if scripts > 1 {
		what = fmt.Sprintf("the %d scripts", scripts)
	}
	return what + " of " + strings.Join(names, ", ")
}

func (r *runner) revokeScripts(p *pluginRun, word string) error {
	revoked, err := action.RevokeScripts(p.ctx, p.env, p.opts.Name, word)
	p.progress.Stop()
	if err != nil {
		return err
	}
	for _, w := range revoked.Warnings {
		p.ui.Warn(w)
	}
	for _, rule := range revoked.Rules {
		p.ui.Warn("the settings for pnpm still let its scripts run: " + rule)
	}
	return p.ui.Result(revoked, func(w io.Writer) {
		for _, a := range revoked.Revoked {
			i := slices.IndexFunc(revoked.Standing, func(s action.Standing) bool { return s.Content == a.Content })
			if i >= 0 {
				s := revoked.Standing[i]
				fmt.Fprintf(w, "the scripts of %s %s may not run any more; it is nothing without them, and stands as they made it until it has to be laid out anew, which is refused\n", ui.Clean(a.Name), ui.Clean(a.Version))
				fmt.Fprintf(w, "  to take it out: %s\n  to let them run again: %s\n", s.Remove, s.Approve)
				continue
			}
			fmt.Fprintf(w, "the scripts of %s %s may not run any more; what they made goes with the next: dsh plugin --profile %s install\n", ui.Clean(a.Name), ui.Clean(a.Version), p.shellProfile())
		}
		if len(revoked.Revoked) == 0 {
			fmt.Fprintf(w, "nothing to do: nothing of %s was approved\n", ui.Clean(word))
		}
	})
}

// printBuilt says of which packages scripts ran.
func printBuilt(w io.Writer, built []install.Built) {
	for _, b := range built {
		if !b.Reused {
			fmt.Fprintf(w, "built %s %s: %s\n", ui.Clean(b.Name), ui.Clean(b.Version), b.Confinement)
		}
	}
}

// printBuilds says what scripts ran, and what held them.
func printBuilds(w io.Writer, profile string, report action.Builds) {
	printBuilt(w, report.Built)
	if len(report.Pending) == 0 {
		return
	}
	var names []string
	for _, p := range report.Pending {
		names = append(names, p.Name)
	}
	names = slices.Compact(names)
	have := "packages have scripts"
	if len(names) == 1 {
		have = "package has scripts"
	}
	fmt.Fprintf(w, "%d %s that did not run: %s (dsh plugin --profile %s scripts)\n", len(names), have, ui.Clean(strings.Join(names, ", ")), fault.ShellWord(profile))
}

// building is what a progress line says while scripts run.
func (p *installProgress) building(pkg string) { p.builds.Store(&pkg) }
