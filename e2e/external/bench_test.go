//go:build external && unix

package external

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// BenchmarkDumpBesideReference composes and prints the web profile of the reference launcher's own bundles, in turn with dsh and with that
// launcher. It reports medians of whole processes, of their largest memory, and of the quotients pair by pair.
//
//	e2e/external/run -run XXX -bench Reference -benchtime 20x
func BenchmarkDumpBesideReference(b *testing.B) {
	home := b.TempDir()
	script := filepath.Join(programs.reference, "node_modules", "@deepseek-ai", "dsh", "lib", "bin.js")
	sample := func(program string, args ...string) (milliseconds, mebibytes float64) {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "DSH_HOME="+home)
		cmd.Dir = home
		start := time.Now()
		out, err := cmd.Output()
		took := time.Since(start)
		if err != nil || len(out) == 0 {
			b.Fatalf("%s %q: %v", program, args, err)
		}
		usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if !ok {
			b.Fatal("the system does not say how much memory a process took")
		}
		return float64(took.Microseconds()) / 1e3, float64(usage.Maxrss) / 1024 // Linux counts in KiB
	}
	var ours, theirs, ourMemory, theirMemory, quotients []float64
	for b.Loop() {
		ms, mib := sample(programs.dsh, "--installation", programs.reference, "web", "--dump-config")
		ours, ourMemory = append(ours, ms), append(ourMemory, mib)
		ms, mib = sample(filepath.Join(programs.node, "node"), script, "--profile", "web", "--dump-config")
		theirs, theirMemory = append(theirs, ms), append(theirMemory, mib)
		quotients = append(quotients, ms/ours[len(ours)-1])
	}
	b.ReportMetric(median(ours), "dsh-ms")
	b.ReportMetric(median(theirs), "reference-ms")
	b.ReportMetric(median(quotients), "times-faster")
	b.ReportMetric(median(ourMemory), "dsh-MiB")
	b.ReportMetric(median(theirMemory), "reference-MiB")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
