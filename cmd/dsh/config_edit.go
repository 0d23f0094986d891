package main

import "github.com/urfave/cli/v2"

// configEditVerbs change patch files and the list of bundles.
func (r *runner) configEditVerbs() []*cli.Command { return nil }
