package webruntime

import (
	"os/exec"
	"syscall"
)

// detach keeps a Ctrl-C that ends dsh from the browser.
func detach(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
