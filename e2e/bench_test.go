package e2e

import (
	"os"
	"os/exec"
	"testing"
)

// BenchmarkStart is the time of a whole process that does nothing; 5 ms is
// the goal. BenchmarkDump composes and prints the web profile.
func BenchmarkStart(b *testing.B) { benchmarkRun(b, "--version") }

func BenchmarkDump(b *testing.B) { benchmarkRun(b, "web", "--dump-config") }

func benchmarkRun(b *testing.B, args ...string) {
	home := b.TempDir()
	for b.Loop() {
		cmd := exec.Command(program, args...)
		cmd.Env = append(os.Environ(), "DSH_HOME="+home)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
	}
}
