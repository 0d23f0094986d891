package main

import "github.com/urfave/cli/v2"

// configCompatVerb compares installations.
func (r *runner) configCompatVerb() *cli.Command {
	return r.configVerb("compat", "show what another installation would change", "DIR|VERSION", func(*configRun) error { return nil })
}
