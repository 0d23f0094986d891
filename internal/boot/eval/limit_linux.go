package eval

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitMemory bounds what the process may write to: what it has already, and
// the memory of expressions with as much again for the collector, and a rest for
// the runtime. The process watches itself besides.
func limitMemory(bytes int64) {
	const rest = 256 << 20
	have, ok := dataSize()
	if !ok {
		return
	}
	limit := have + 2*uint64(bytes) + rest
	_ = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
}

// dataSize is what counts for RLIMIT_DATA now.
func dataSize() (bytes uint64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, "VmData:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
