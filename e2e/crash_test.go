//go:build unix

package e2e

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// copied is the same user with a copy of the home.
func (u user) copied(t testing.TB) user {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	if out, err := exec.Command("cp", "-a", u.home, home).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return user{home, u.registry}
}

// verb is the words of a command that say what it does.
func verb(args []string) string {
	switch args[0] {
	case "plugin":
		return "plugin " + args[3]
	case "demo":
		return args[1]
	}
	return args[0] + " " + args[1]
}

// number is an environment variable, or what it is without.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("$%s: %v", name, err)
	}
	return n
}

// TestKilledAtAnyMoment kills commands that change a profile, each at a random
// moment. Whoever reads the profile next finds it as it was or as it should be.
// $DSH_CRASH_ROUNDS and $DSH_CRASH_SEED say how often and which moments.
func TestKilledAtAnyMoment(t *testing.T) {
	rounds, seed := number(t, "DSH_CRASH_ROUNDS", 40), number(t, "DSH_CRASH_SEED", time.Now().Nanosecond())
	t.Logf("DSH_CRASH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 0))
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	u.must(t, "plugin", "--profile", "demo", "add", "@acme/hello@1.0.0", "left@1.0.0")

	plugin := func(args ...string) []string { return append([]string{"plugin", "--profile", "demo"}, args...) }
	count := 0
	changes := []func() []string{
		func() []string { return plugin("add", "@acme/hello@1.0.0", "is-odd") },
		func() []string { return plugin("add", "@acme/hello@1.1.0", "@acme/stack") },
		func() []string { return plugin("add", "left@1.0.0", "@acme/cycle-a") },
		func() []string { return plugin("add", "left@^1.2.0", "@acme/wants-left-2") },
		func() []string { return plugin("update", "left@2.0.0") },
		func() []string { return plugin("remove", "left") },
		func() []string { return plugin("remove", "is-odd") },
		func() []string { return plugin("remove", "@acme/hello", "@acme/cycle-a") },
		func() []string {
			count++
			return []string{"config", "set", "--profile", "demo", "settings.watch", strconv.Itoa(count)}
		},
		func() []string { return []string{"demo", "--from-default-profile", "web", "--dump-config"} },
		func() []string { return []string{"profile", "rollback", "demo"} },
		func() []string { return []string{"profile", "rollback", "demo", "2"} },
	}

	const longest = time.Minute
	start := time.Now()
	outcomes, tried := map[string]int{}, map[string]int{}
	for done := 0; done < rounds && (time.Since(start) < longest || rounds > 40); {
		args := changes[r.IntN(len(changes))]()
		what := strings.Join(args, " ")

		// What it should become, and how long that takes, a copy tells.
		old := u.profile(t, "demo")
		double := u.copied(t)
		began := time.Now()
		if double.dsh(args...).Run() != nil {
			continue // nothing to remove, or nothing to go back to
		}
		takes := time.Since(began)
		want := double.profile(t, "demo")
		if err := os.RemoveAll(double.home); err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(old, want) {
			continue
		}
		done++
		tried[verb(args)]++

		cmd := u.dsh(args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		part := r.Float64()
		if done%2 == 0 {
			part = 0.5 + part/2 // most that can go wrong is at the end
		}
		time.Sleep(time.Duration(float64(takes) * part))
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it has ended
		}
		killed := cmd.Wait() != nil

		u.must(t, "demo", "--dump-config")
		got := u.profile(t, "demo")
		switch {
		case !killed:
			outcomes["not killed in time"]++
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s ended well, and the profile is not what it made:\n%s", what, diff)
			}
		case cmp.Equal(got, old):
			outcomes["old"]++
		case cmp.Equal(got, want):
			outcomes["new"]++
		default:
			t.Errorf("%s was killed: neither old nor new\nagainst old: %s\nagainst new: %s", what, cmp.Diff(old, got), cmp.Diff(want, got))
		}
		u.must(t, "plugin", "--profile", "demo", "install", "--frozen-lockfile", "--offline")
		u.noLitter(t, what) // readers leave that to those who change something
		if diff := cmp.Diff(got, u.profile(t, "demo")); diff != "" {
			t.Errorf("%s was killed, and an install from the lockfile finds work to do:\n%s", what, diff)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%v of %v", outcomes, tried)
	if outcomes["old"]+outcomes["new"]+outcomes["not killed in time"] == 0 {
		t.Error("nothing was tried")
	}
}

// TestKilledWhileRenamed kills dsh profile rename at random moments. The profile
// has one of its names then, and all that is in it works, also what is linked from
// inside it.
func TestKilledWhileRenamed(t *testing.T) {
	seed := number(t, "DSH_CRASH_SEED", time.Now().Nanosecond())
	t.Logf("DSH_CRASH_SEED=%d", seed)
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	u := newUser(t, filepath.Join(sourceDir(), "testdata", "registry"))
	u.must(t, "plugin", "--profile", "one", "add", "@acme/hello@1.0.0")
	inside := filepath.Join(u.home, "profiles", "one", "mine")
	for file, text := range map[string]string{
		"package.json": `{"name": "mine", "version": "1.0.0", "dsh": {"bundle": {"patch": "rows.yml"}}}`,
		"rows.yml":     "- insert: [{id: of-mine, name: mine}]\n",
	} {
		if err := os.MkdirAll(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(inside, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	u.must(t, "plugin", "--profile", "one", "add", inside)
	want, _ := u.must(t, "one", "--dump-config")

	from, to := "one", "two"
	outcomes := map[string]int{}
	for range number(t, "DSH_CRASH_ROUNDS", 15) {
		double := u.copied(t)
		began := time.Now()
		double.must(t, "profile", "rename", from, to)
		takes := time.Since(began)

		cmd := u.dsh("profile", "rename", from, to)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(float64(takes) * r.Float64()))
		if err := cmd.Process.Kill(); err != nil {
			t.Log(err) // it has ended
		}
		outcome := "not killed in time"
		if cmd.Wait() != nil {
			outcome = "killed"
		}

		var names []string
		for _, name := range []string{from, to} {
			if _, err := os.Lstat(filepath.Join(u.home, "profiles", name)); err == nil {
				names = append(names, name)
			}
		}
		if len(names) != 1 {
			t.Fatalf("after rename %s %s, %s, there are profiles %v", from, to, outcome, names)
		}
		name := names[0]
		if got, warnings := u.must(t, name, "--dump-config"); got != want || warnings != "" {
			t.Errorf("after rename %s %s, %s: %s\n%s", from, to, outcome, cmp.Diff(want, got), warnings)
		}
		u.must(t, "plugin", "--profile", name, "install", "--frozen-lockfile", "--offline")
		u.must(t, "profile", "history", name)
		outcomes[outcome+" as "+map[bool]string{true: "old", false: "new"}[name == from]]++
		if name == to {
			from, to = to, from
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%v", outcomes)
	// What lies in the state of a name is for the next command on that name.
	u.must(t, "profile", "rename", from, to)
	u.must(t, "profile", "rename", to, from)
	u.noLitter(t, "rename")
}
