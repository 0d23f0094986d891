package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dsh/internal/action"
	"dsh/internal/fault"
	"dsh/internal/trust"
)

// pluginPolicy says what the policy is and whether the profile keeps it.
func (r *runner) pluginPolicy(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin policy takes no package; it looks at all of the profile"),
			"dsh plugin --profile %s policy", p.shellProfile())
	}
	report, err := action.Policy(p.ctx, p.env, p.opts)
	if err != nil {
		return err
	}
	for _, w := range report.Warnings {
		p.ui.Warn(w)
	}
	kept := len(report.Violations) == 0
	if err := p.ui.Verdict(kept, report, func(w io.Writer) { p.printPolicy(w, report) }); err != nil || kept {
		return err
	}
	return &saidError{fault.Policy}
}

func (p *pluginRun) printPolicy(w io.Writer, r *action.PolicyReport) {
	if !r.Exists {
		fmt.Fprintf(w, "there is no policy; %s would hold one\n", line(r.File))
	} else {
		fmt.Fprintf(w, "%s\n", line(r.File))
		for _, rule := range policyLines(r.Policy) {
			fmt.Fprintf(w, "  %s\n", line(rule))
		}
	}
	count := fmt.Sprintf("%d packages", r.Packages)
	if r.Packages == 1 {
		count = "1 package"
	}
	if len(r.Violations) == 0 {
		fmt.Fprintf(w, "profile %s keeps it: %s looked at\n", line(r.Profile), count)
		return
	}
	for _, v := range r.Violations {
		of := ""
		if len(v.Chain) > 1 {
			of = " (" + chainWords(r.Profile, v.Chain) + ")"
		}
		fmt.Fprintf(w, "%s %s: %s%s\n", p.ui.Red(string(v.Rule)), line(v.Package), line(v.Why), line(of))
	}
	fmt.Fprintf(w, "profile %s breaks it: %s looked at\n", line(r.Profile), count)
}

func chainWords(profile string, chain []string) string {
	return profile + " → " + strings.Join(chain, " → ")
}

// policyLines is what a policy says, a rule a line.
func policyLines(p *trust.Policy) []string {
	var lines []string
	add := func(rule, text string) {
		if text != "" {
			lines = append(lines, rule+": "+text)
		}
	}
	sources := make([]string, len(p.Sources))
	for i, s := range p.Sources {
		sources[i] = string(s)
	}
	add("registries", strings.Join(p.Registries, ", "))
	add("sources", strings.Join(sources, ", "))
	add("hosts", strings.Join(p.Hosts, ", "))
	add("scopes", strings.Join(p.Scopes, ", "))
	add("licences", strings.Join(p.Licences, ", "))
	add("minimumAge", p.Age())
	add("signatures", string(p.Signatures))
	add("malware", p.Malware)
	for _, limit := range []struct {
		name  string
		value int64
	}{{"unpacked", p.Limits.Unpacked}, {"entries", int64(p.Limits.Entries)}, {"ratio", int64(p.Limits.Ratio)}, {"path", int64(p.Limits.Path)}} {
		if limit.value > 0 {
			add("limits."+limit.name, fmt.Sprint(limit.value))
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(p.Exempt)) {
		var names []string
		for _, e := range p.Exempt[rule] {
			names = append(names, e.String())
		}
		add("exempt."+string(rule), strings.Join(names, ", "))
	}
	return lines
}
