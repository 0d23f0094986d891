//go:build !windows

package git

import (
	"os/exec"
	"syscall"
)

// group makes a process the first of a session of its own, which has no terminal
// to ask anybody on, and which is killed as a whole when its context ends: git
// leaves the work to others.
func group(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	process.Cancel = func() error { return syscall.Kill(-process.Process.Pid, syscall.SIGKILL) }
}
