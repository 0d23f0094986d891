//go:build !windows

package webruntime

import (
	"os/exec"
	"syscall"
)

// detach keeps a Ctrl-C that ends dsh from the browser.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
