//go:build unix

package mcpclient

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"dsh/internal/boot/environ"
	"dsh/internal/boot/host"
	"dsh/internal/boot/plugins/tools"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
)

// BenchmarkServers starts and stops this many servers as rows. Its figure "times
// slowest" is the whole start over the time of the slowest row in it, and "times
// one" over that of a single server.
func BenchmarkServers(b *testing.B) {
	probe := filepath.Join(b.TempDir(), "mcpprobe")
	if out, err := exec.Command("go", "build", "-o", probe, "dsh/e2e/mcpprobe").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, count := range []int{1, 100} {
		b.Run(fmt.Sprint(count), func(b *testing.B) {
			var starts, stops, slowest time.Duration
			for b.Loop() {
				start, stop, slow := servers(b, probe, count)
				starts, stops, slowest = starts+start, stops+stop, slowest+slow
			}
			b.ReportMetric(float64(starts.Milliseconds())/float64(b.N), "ms-start")
			b.ReportMetric(float64(stops.Milliseconds())/float64(b.N), "ms-stop")
			b.ReportMetric(float64(starts)/float64(slowest), "times-slowest")
		})
	}
}

func servers(b *testing.B, probe string, count int) (start, stop, slowest time.Duration) {
	began := map[string]time.Time{}
	h := host.New(host.Options{
		Registry: func(name string) (host.Plugin, bool) {
			p, ok := map[string]host.Plugin{Name: Plugin, tools.Name: tools.Plugin}[name]
			return p, ok
		},
		Slots: map[string]any{slot.Environment: snapshot(b)},
		Event: func(e host.Event) {
			switch {
			case e.Line != "":
			case e.State == host.Starting:
				began[e.Path] = e.Time
			case e.State == host.Active && e.Path != "tools":
				slowest = max(slowest, e.Time.Sub(began[e.Path]))
			}
		},
	})
	text := "- insert:\n    - {id: tools, name: '" + tools.Name + "'}\n"
	for i := range count {
		text += fmt.Sprintf("    - {id: s%d, name: '%s', config: {serverName: s%d, transport: stdio, command: '%s', failOnStartupError: true}}\n", i, Name, i, probe)
	}
	patches, err := compose.ParsePatches(compose.Source{File: "bench", Dir: b.TempDir()}, []byte(text))
	if err != nil {
		b.Fatal(err)
	}
	tree := compose.Apply([]compose.Layer{{Label: "bench", Patches: patches}}, func(string) *compose.PathRule { return nil })
	at := time.Now()
	if err := h.Apply(context.Background(), tree.Rows); err != nil {
		b.Fatal(err)
	}
	if err := h.Settled(context.Background()); err != nil {
		b.Fatal(err)
	}
	start = time.Since(at)
	for _, row := range h.Rows() {
		if row.State != host.Active {
			b.Fatalf("%s is %s: %v", row.Path, row.State, row.Err)
		}
	}
	at = time.Now()
	if err := h.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	return start, time.Since(at), slowest
}

func snapshot(b *testing.B) slot.LaunchEnvironment {
	s, _, err := environ.Load(os.Environ(), b.TempDir(), b.TempDir(), os.ReadFile)
	if err != nil {
		b.Fatal(err)
	}
	return s
}
