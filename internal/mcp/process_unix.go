//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// group is the process group of a program. Its number cannot be another one's
// for as long as one process is in it.
type group struct{ id int }

func startGroup(cmd *exec.Cmd) (group, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	endWithParent(cmd.SysProcAttr)
	if err := cmd.Start(); err != nil {
		return group{}, err
	}
	return group{cmd.Process.Pid}, nil
}

func (g group) gone() bool { return syscall.Kill(-g.id, 0) == syscall.ESRCH }
func (g group) ask()       { _ = syscall.Kill(-g.id, syscall.SIGTERM) } // it may be gone
func (g group) kill()      { _ = syscall.Kill(-g.id, syscall.SIGKILL) }
func (g group) close()     {}
