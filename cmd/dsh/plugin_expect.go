package main

import (
	"fmt"

	"github.com/urfave/cli/v2"

	"dsh/internal/fault"
	"dsh/internal/install"
)

// expectFlags say what a package that is added has to be.
func expectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{DisableDefaultText: true, Name: "strict", Usage: "fail for a package that brings no layer"},
		expectRepoFlag(),
	}
}

func expectRepoFlag() cli.Flag {
	return &cli.StringFlag{Name: "expect-repo", Usage: "fail unless the package is of this repository (owner/repo, or an address)"}
}

// readExpect reads the flags of expectFlags.
func readExpect(p *pluginRun) (err error) {
	p.opts.Expect.Layer = p.cli.Bool("strict")
	if !p.cli.IsSet("expect-repo") {
		return nil
	}
	if p.opts.Expect.Repository, err = install.ParseRepository(p.cli.String("expect-repo")); err != nil {
		return fmt.Errorf("--expect-repo: %w", err)
	}
	if p.opts.DryRun {
		return fault.WithHint(fault.Errorf(fault.Other, "--expect-repo looks into the package, which --dry-run does not fetch"),
			"dsh plugin --profile %s info PACKAGE --expect-repo %s does", p.shellProfile(), fault.ShellWord(p.cli.String("expect-repo")))
	}
	return nil
}
