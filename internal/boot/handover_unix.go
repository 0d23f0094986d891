//go:build unix

package boot

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// run makes this process the launcher. It returns only where that fails.
func (h *handover) run(req Request) (int, error) {
	// A signal ends dsh or the launcher, and is not lost between them: from here on
	// it ends the process, and one that came before has been given to us once
	// Stop returns.
	last := make(chan os.Signal, 1)
	signal.Notify(last, syscall.SIGTERM)
	endBySignals()
	signal.Stop(last)
	select {
	case s := <-req.Signals:
		h.discard()
		err := endedBy(s)
		return codeOf(err), err
	default:
	}
	// What the process was started with counts again: of a signal that was
	// ignored, as by nohup, too.
	signal.Reset(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := syscall.Exec(h.node, append([]string{h.node}, h.args...), h.environ)
	err = h.failed(err)
	return codeOf(err), err
}

// isRunning says whether there is a process of a number.
func isRunning(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
