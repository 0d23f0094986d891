package main

import "github.com/urfave/cli/v2"

// configShowVerbs show what is composed and where it comes from.
func (r *runner) configShowVerbs() []*cli.Command { return nil }
