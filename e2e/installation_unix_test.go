//go:build unix

package e2e

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKilledWhileInstallingHarness kills dsh installation add, and its replacing
// of an installation, at random moments. There is a whole installation then, or
// none, and the next one finds its way.
func TestKilledWhileInstallingHarness(t *testing.T) {
	seed := number(t, "DSH_CRASH_SEED", time.Now().Nanosecond())
	t.Logf("DSH_CRASH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 2))
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	node := filepath.Join(t.TempDir(), "node")
	if err := os.WriteFile(node, []byte("#!/bin/sh\nif [ \"$1\" = --version ]; then echo v24.1.0; exit; fi\nexec sh \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	add := []string{"installation", "add", "@deepseek-ai/dsh@0.2.9", "--node", node, "--force"}
	began := time.Now()
	u.must(t, add...)
	takes := time.Since(began)
	outcomes := map[string]int{}
	for range 20 {
		was := r.IntN(2) == 0
		if was {
			u.must(t, add...)
		} else if out, err := u.dsh("installation", "remove", "0.2.9").CombinedOutput(); err != nil && !strings.Contains(string(out), "there is no installation") {
			t.Fatalf("%v\n%s", err, out)
		}
		cmd := u.dsh(add...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(float64(takes) * r.Float64()))
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it has ended
		}
		killed := cmd.Wait() != nil
		_, err := os.Stat(filepath.Join(u.home, "installations", "0.2.9"))
		there := err == nil
		switch {
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			t.Fatal(err)
		case there:
			outcomes["there"]++
			u.must(t, "installation", "check", "0.2.9")
		case !killed:
			t.Error("the command ended well, and nothing is there")
		default:
			outcomes["not there"]++
			if out, _ := u.must(t, "installation", "list"); strings.Contains(out, "0.2.9") {
				t.Errorf("what is not there is listed:\n%s", out)
			}
		}
	}
	t.Logf("%v", outcomes)
	u.must(t, add...)
	left, err := filepath.Glob(filepath.Join(u.home, "installations", ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}
