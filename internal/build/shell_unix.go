//go:build !windows && !linux

package build

import (
	"os/exec"
	"syscall"
)

// shellCommand is the shell running a text in a session of its own: no terminal
// is its terminal, and all of it can be ended together.
func shellCommand(shell, text string) *exec.Cmd {
	cmd := exec.Command(shell, "-c", text)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}
