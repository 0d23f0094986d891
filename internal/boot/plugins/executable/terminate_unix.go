//go:build unix

package executable

import (
	"os"
	"syscall"
)

// terminate asks a process to end.
func terminate(p *os.Process) { p.Signal(syscall.SIGTERM) }
