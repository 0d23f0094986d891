package main

import "github.com/urfave/cli/v2"

// configCheckVerbs find mistakes.
func (r *runner) configCheckVerbs() []*cli.Command { return nil }
