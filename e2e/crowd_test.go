package e2e

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/npmtest"
)

// newForestUser is somebody with a forest for a registry.
func newForestUser(t *testing.T) (user, *npmtest.Server) {
	t.Helper()
	server, err := npmtest.New(forest(t, 20))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return user{filepath.Join(t.TempDir(), "home"), server.URL()}, server
}

// another is a user of the same registry with an empty home.
func (u user) another(t *testing.T) user {
	t.Helper()
	return user{filepath.Join(t.TempDir(), "home"), u.registry}
}

// pruning tidies the store again and again until the returned function is called.
func (u user) pruning(t *testing.T) (stop func()) {
	t.Helper()
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if out, err := u.dsh("store", "prune").CombinedOutput(); err != nil {
				t.Errorf("pruning: %v\n%s", err, out)
				return
			}
			select {
			case <-quit:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(quit)
		<-ended
	}
}

// TestManyProfilesAtOnce installs into 20 profiles of one home by 20 processes that start with an empty store and need the same packages, while
// another one prunes the store. Each profile is what it is when it is made alone.
func TestManyProfilesAtOnce(t *testing.T) {
	const count = 20
	u, _ := newForestUser(t)
	words := func(i int) []string {
		return in(fmt.Sprintf("p%d", i), "add", fmt.Sprintf("f%d", i%5), fmt.Sprintf("f%d@1.0.0", 7+i%4))
	}
	var commands []*exec.Cmd
	for i := range count {
		commands = append(commands, u.dsh(words(i)...))
	}
	stop := u.pruning(t)
	results := atOnce(t, commands)
	stop()
	for i, r := range results {
		if r.err != nil {
			t.Errorf("dsh %v: %v\n%s%s", words(i), r.err, r.stdout, r.stderr)
		}
	}
	if t.Failed() {
		return
	}
	alone := u.another(t)
	for i := range count {
		name := fmt.Sprintf("p%d", i)
		alone.must(t, words(i)...)
		want, got := alone.profile(t, name), u.profile(t, name)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s is not as if it were made alone:\n%s", name, diff)
		}
		u.must(t, in(name, "install", "--frozen-lockfile", "--offline")...)
		if diff := cmp.Diff(got, u.profile(t, name)); diff != "" {
			t.Errorf("%s: an install from the lockfile finds work to do:\n%s", name, diff)
		}
	}
	u.must(t, "store", "verify")
	u.noLitter(t, "twenty profiles at once")
}

// TestOneProfileByMany changes one profile by five processes at once, while another one prunes the store. All end well, and the profile is what
// comes of doing it one after the other.
func TestOneProfileByMany(t *testing.T) {
	u, _ := newForestUser(t)
	u.must(t, in("demo", "add", "f19", "f18")...)
	changes := [][]string{
		in("demo", "add", "f9"), in("demo", "add", "f10"), in("demo", "add", "f12"), in("demo", "remove", "f18"), in("demo", "install"),
	}
	var commands []*exec.Cmd
	for _, args := range changes {
		commands = append(commands, u.dsh(args...))
	}
	stop := u.pruning(t)
	results := atOnce(t, commands)
	stop()
	for i, r := range results {
		if r.err != nil {
			t.Errorf("dsh %v: %v\n%s%s", changes[i], r.err, r.stdout, r.stderr)
		}
	}
	alone := u.another(t)
	alone.must(t, in("demo", "add", "f19", "f18")...)
	for _, args := range changes {
		alone.must(t, args...)
	}
	if diff := cmp.Diff(alone.profile(t, "demo"), u.profile(t, "demo")); diff != "" {
		t.Errorf("at once is not what one after the other is:\n%s", diff)
	}
	u.must(t, "demo", "--dump-config")
	u.must(t, "store", "verify")
	u.noLitter(t, "five processes on one profile")
}

// TestSameWhateverTheOrderOfAnswers installs the same into homes of their own, 20 times, from a registry whose answers come in another order each
// time, with few and many threads, and with a store that holds all, some or nothing of it.
func TestSameWhateverTheOrderOfAnswers(t *testing.T) {
	u, server := newForestUser(t)
	server.Spoil(npmtest.All, npmtest.Delay(25*time.Millisecond))
	manifest := `{"private": true, "dependencies": {"f0": "*", "f1": "^1.0.0", "f2": ">=1.0.0 <2", "f8": "~1.0.0"}}`
	var want map[string]string
	for round := range 20 {
		home := u.another(t)
		switch round % 4 {
		case 1:
			home.must(t, in("other", "add", "f1", "f5")...)
		case 2:
			home.must(t, in("other", "add", "f0", "f2@1.0.0")...)
		}
		dir := filepath.Join(home.home, "profiles", "demo")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := home.dsh(in("demo", "install")...)
		cmd.Env = append(cmd.Env, fmt.Sprintf("GOMAXPROCS=%d", []int{1, 2, 8}[round%3]))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := home.profile(t, "demo")
		if want == nil {
			want = got
		}
		if !maps.Equal(want, got) {
			t.Fatalf("round %d: another tree than in round 0:\n%s", round, cmp.Diff(want, got))
		}
	}
	if len(want) < 100 {
		t.Errorf("the tree is too small to tell anything: %d files", len(want))
	}
}
