//go:build unix

package eval

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the time that processors have spent on this process.
func cpuTime() time.Duration {
	var usage unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
