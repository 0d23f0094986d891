//go:build !windows

package build

import (
	"os/exec"
	"syscall"

	"dsh/internal/fault"
)

const defaultPath = "/usr/local/bin:/usr/bin:/bin"

var programSuffixes = []string{""}

// node-gyp as scripts call it. npm has one of its own, which is in no PATH.
const (
	gypName = "node-gyp"
	gypText = "#!/bin/sh\nexec \"$npm_node_execpath\" \"$npm_config_node_gyp\" \"$@\"\n"
)

// findShell is the shell that scripts are written for.
func findShell() (string, error) {
	if isFile("/bin/sh") {
		return "/bin/sh", nil
	}
	if path := lookPath("sh", func(string) string { return "" }); path != "" {
		return path, nil
	}
	return "", fault.Errorf(fault.MissingProgram, "there is no shell sh, which scripts run in")
}

// killAll ends a started command and what it started.
func killAll(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
