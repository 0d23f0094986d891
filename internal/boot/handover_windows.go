package boot

import (
	"errors"
	"os"
	"os/exec"
)

// run starts the launcher and waits for it, for the system cannot make one
// program of another. It has the console: Ctrl-C and the like reach it as they
// reach this process, which lets it decide.
func (h *handover) run(req Request) (int, error) {
	defer h.discard()
	cmd := exec.Command(h.node, h.args...)
	cmd.Env = h.environ
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		err = h.failed(err)
		return codeOf(err), err
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case <-req.Signals:
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	close(ended)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), nil
	}
	if err != nil {
		return codeOf(err), err
	}
	return 0, nil
}

// isRunning says whether there is a process of a number.
func isRunning(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	_ = p.Release()
	return true
}
