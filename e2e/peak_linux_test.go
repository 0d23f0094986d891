package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// runWatched runs a command and gives the most memory, in bytes, that it was seen to hold. What the system says at the end counts what the test
// itself held when it started the command.
func runWatched(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
	for {
		select {
		case err := <-ended:
			return peak, err
		case <-time.After(5 * time.Millisecond):
		}
		text, err := os.ReadFile(status)
		if err != nil {
			continue // it has just ended
		}
		if _, after, ok := strings.Cut(string(text), "VmHWM:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
			if err == nil {
				peak = max(peak, kib<<10)
			}
		}
	}
}
