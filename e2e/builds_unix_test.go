//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestBuildsKilled kills installs that run scripts, each at a random moment. The profile then has both packages built, or neither, and says
// so; the next install makes the rest, and nothing stays behind. $DSH_CRASH_SEED says which moments.
func TestBuildsKilled(t *testing.T) {
	seed := number(t, "DSH_CRASH_SEED", time.Now().Nanosecond())
	t.Logf("DSH_CRASH_SEED=%d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	start := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	start.must(t, "plugin", "--profile", "demo", "add", "@acme/makes-more", "left")
	// The profile that is not there yet gets no install, but its word.
	for _, pkg := range []string{"@acme/makes@1.0.0", "@acme/makes-more@1.0.0"} {
		start.must(t, "plugin", "--profile", "none", "approve", pkg, "--yes")
	}
	install := []string{"plugin", "--profile", "demo", "install"}
	once, began := start.copied(t), time.Now()
	once.must(t, install...)
	takes := time.Since(began)

	killed, fresh := 0, 0
	for range 20 {
		u := start.copied(t)
		cmd := u.dsh(install...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		moment := time.Duration(float64(takes) * random.Float64())
		time.Sleep(moment)
		_ = cmd.Process.Kill() // it may have ended
		if cmd.Wait() != nil {
			killed++
		}
		u.must(t, "demo", "--dump-config")
		modules := filepath.Join(u.home, "profiles", "demo", "node_modules")
		stands := 0
		for _, file := range []string{"@acme/makes/made.txt", "@acme/makes-more/more.txt", ".dsh-builds"} {
			if _, err := os.Stat(filepath.Join(modules, filepath.FromSlash(file))); err == nil {
				stands++
			}
		}
		switch stands {
		case 3:
			fresh++
		case 0:
		default:
			t.Errorf("killed after %v: %d of 3 files are there", moment, stands)
		}
		u.must(t, install...)
		if text, err := os.ReadFile(filepath.Join(modules, "@acme", "makes-more", "more.txt")); err != nil || string(text) != "made by 1.0.0\nmore\n" {
			t.Errorf("killed after %v, the next install made %q, %v", moment, text, err)
		}
		u.must(t, "store", "verify")
		u.noLitter(t, "killed after "+moment.String())
	}
	t.Logf("%d killed, %d of all were done", killed, fresh)
	if killed == 0 {
		t.Error("no kill came in time")
	}
}
