package git

import (
	"os/exec"
	"strconv"
	"syscall"
)

// group makes a process one that is killed with its children when its context
// ends: git leaves the work to others.
func group(process *exec.Cmd) {
	process.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP, HideWindow: true}
	process.Cancel = func() error {
		kill := exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(process.Process.Pid))
		if err := kill.Run(); err != nil {
			return process.Process.Kill()
		}
		return nil
	}
}
