//go:build !cgo

package boot

import (
	"syscall"
	"testing"
	"time"
)

// Whenever the signal comes, it ends dsh or the launcher.
func TestNoSignalIsLostInTheHandOver(t *testing.T) {
	for i := range 150 {
		cmd, _ := handing(t, "")
		for until := time.Now().Add(time.Duration(i) * 20 * time.Microsecond); time.Now().Before(until); {
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		status := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signal() != syscall.SIGTERM && status.ExitStatus() != 143 {
			t.Fatalf("%d: the signal was lost: %s", i, cmd.ProcessState)
		}
	}
}
