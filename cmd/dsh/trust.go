package main

import "github.com/urfave/cli/v2"

// trustCommand is `dsh trust`.
func (r *runner) trustCommand() *cli.Command {
	return &cli.Command{Name: "trust", Usage: "trust the layer of a project", ArgsUsage: "[DIR]"}
}
