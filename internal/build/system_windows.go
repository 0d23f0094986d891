package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"dsh/internal/fault"
)

const defaultPath = `C:\Windows\System32;C:\Windows`

var programSuffixes = []string{".exe", ".com", ".cmd", ".bat"}

// node-gyp as scripts call it. npm has one of its own, which is in no PATH.
const (
	gypName = "node-gyp.cmd"
	gypText = "@\"%npm_node_execpath%\" \"%npm_config_node_gyp%\" %*\r\n"
)

// findShell is the shell that scripts are written for.
func findShell() (string, error) {
	shell := filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe")
	if !isFile(shell) {
		return "", fault.Errorf(fault.MissingProgram, "there is no cmd.exe, which scripts run in")
	}
	return shell, nil
}

// shellCommand is the shell running a text, which it reads as it is written.
func shellCommand(shell, text string) *exec.Cmd {
	cmd := exec.Command(shell)
	cmd.SysProcAttr = &syscall.SysProcAttr{CmdLine: `/d /s /c "` + text + `"`, CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	return cmd
}

// killAll ends a started command and what it started.
func killAll(cmd *exec.Cmd) error {
	taskkill := filepath.Join(os.Getenv("SystemRoot"), "System32", "taskkill.exe")
	if exec.Command(taskkill, "/t", "/f", "/pid", strconv.Itoa(cmd.Process.Pid)).Run() == nil {
		return nil
	}
	return cmd.Process.Kill()
}
