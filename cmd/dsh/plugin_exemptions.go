package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"dsh/internal/action"
	"dsh/internal/fault"
)

func harnessFlag() cli.Flag {
	return &cli.StringFlag{Name: "dsh-version", Usage: "the exact version of the harness"}
}

// exemptionVerb is one verb about compatibility.json.
func (r *runner) exemptionVerb(name, usage, args string, do func(*pluginRun) error, flags ...cli.Flag) *cli.Command {
	return r.leaf(name, usage, args, flags, r.pluginAction(do))
}

func (r *runner) versionExemptions(p *pluginRun) error {
	if p.cli.Args().Present() {
		return fault.Errorf(fault.Other, "plugin version-exemptions takes no names; it prints all exemptions of the profile")
	}
	exemptions, warnings, err := action.Exemptions(p.ctx, p.env, p.opts.Name)
	if err != nil {
		return err
	}
	for _, w := range warnings {
		p.ui.Warn(w)
	}
	return p.ui.Result(exemptions, func(w io.Writer) {
		// Names of packages and versions hold nothing that JSON escapes.
		text, _ := json.MarshalIndent(exemptions, "", "  ")
		fmt.Fprintf(w, "%s\n", text)
	})
}

func (r *runner) allowVersion(p *pluginRun) error {
	e, err := p.exemption("allow-version")
	if err != nil {
		return err
	}
	if !p.cli.Bool("accept-risk") {
		return fault.WithHint(fault.Errorf(fault.Other, "plugin allow-version needs --accept-risk: %s@%s says that it does not work with DSH %s", e.Package, e.Version, e.Harness),
			"dsh plugin --profile %s allow-version %s --dsh-version %s --accept-risk", p.shellProfile(), fault.ShellWord(e.Package+"@"+e.Version), fault.ShellWord(e.Harness))
	}
	p.ui.Warn(fmt.Sprintf("%s@%s says that it does not work with DSH %s: it may crash the harness or lose data", e.Package, e.Version, e.Harness))
	change, err := action.AllowVersion(p.ctx, p.env, p.opts.Name, e)
	return p.exempted(change, err, "allowed %s", "%s is allowed already")
}

func (r *runner) revokeVersion(p *pluginRun) error {
	e, err := p.exemption("revoke-version")
	if err != nil {
		return err
	}
	change, err := action.RevokeVersion(p.ctx, p.env, p.opts.Name, e)
	return p.exempted(change, err, "revoked %s", "%s is not allowed, so there is nothing to revoke")
}

// exemption is what the command line of a verb names.
func (p *pluginRun) exemption(verb string) (action.Exemption, error) {
	var e action.Exemption
	var err error
	switch args := p.cli.Args().Slice(); {
	case len(args) != 1:
		err = fault.Errorf(fault.Other, "plugin %s takes one package@version", verb)
	case p.cli.String("dsh-version") == "":
		err = fault.Errorf(fault.Other, "plugin %s needs --dsh-version, the exact version of the harness", verb)
	default:
		e, err = action.ParseExemption(args[0], p.cli.String("dsh-version"))
	}
	return e, fault.WithHint(err, "dsh plugin %s --help shows the form", verb)
}

// exempted prints what became of an exemption.
func (p *pluginRun) exempted(change *action.ExemptionChange, err error, did, already string) error {
	if err != nil {
		return err
	}
	for _, w := range change.Warnings {
		p.ui.Warn(w)
	}
	if change.Changed {
		p.ui.Say(did, change.Exemption)
	} else {
		p.ui.Say(already, change.Exemption)
	}
	return p.ui.Result(change, func(io.Writer) {})
}
