//go:build unix

package e2e

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/npmtest"
)

// killedInstall is one kind of install that is killed.
type killedInstall struct {
	name    string
	prepare [][]string // the commands that make the home it starts from
	gone    []string   // what is then deleted from the home
	command []string
	beside  []string // runs at the same time and is not killed
}

var killedInstalls = []killedInstall{
	{name: "first, nothing cached", command: in("demo", "add", "f0", "f2")},
	{name: "first, all cached", prepare: [][]string{in("other", "add", "f0", "f2")}, command: in("demo", "add", "f0", "f2")},
	{name: "add", prepare: [][]string{in("demo", "add", "f4", "f8@1.0.0")}, command: in("demo", "add", "f1", "f8@2.0.0")},
	{name: "update", prepare: [][]string{in("demo", "add", "f1@1.0.0", "f2@~1.0.0", "f9@1.0.0")}, command: in("demo", "update", "--latest")},
	{name: "remove", prepare: [][]string{in("demo", "add", "f0", "f1", "f7")}, command: in("demo", "remove", "f0", "f7")},
	{name: "frozen, all cached", prepare: [][]string{in("demo", "add", "f0", "f1")}, gone: []string{"profiles/demo/node_modules"}, command: in("demo", "install", "--frozen-lockfile")},
	{name: "frozen, nothing cached", prepare: [][]string{in("demo", "add", "f0", "f1")}, gone: []string{"profiles/demo/node_modules", "store"}, command: in("demo", "install", "--frozen-lockfile")},
	{name: "without a lockfile", prepare: [][]string{in("demo", "add", "f0", "f1")}, gone: []string{"profiles/demo/dsh-lock.yaml", "profiles/demo/node_modules"}, command: in("demo", "install")},
	{name: "two at once, nothing cached", prepare: [][]string{in("demo", "add", "f12"), in("other", "add", "f13")}, gone: []string{"store"}, command: in("demo", "add", "f0"), beside: in("other", "add", "f0", "f2")},
}

// TestInstallsKilled kills installs of every kind, 200 in all, each at a random moment. Whatever the moment: the profile loads and is the old
// one or the new one, the next install or the command itself ends well with what an undisturbed one makes, nothing in the store is
// damaged, and nothing stays behind. $DSH_CRASH_ROUNDS and $DSH_CRASH_SEED say how often and which moments.
func TestInstallsKilled(t *testing.T) {
	rounds, seed := number(t, "DSH_CRASH_ROUNDS", 200), number(t, "DSH_CRASH_SEED", time.Now().Nanosecond())
	t.Logf("DSH_CRASH_SEED=%d", seed)
	server, err := npmtest.New(forest(t, 14))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	for i, kind := range killedInstalls {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			kills := rounds / len(killedInstalls)
			if i < rounds%len(killedInstalls) {
				kills++
			}
			k := newKiller(t, kind, server.URL(), rand.New(rand.NewPCG(uint64(seed), uint64(i))))
			for tries := 0; k.killed < kills && tries < 3*kills && !t.Failed(); tries++ {
				k.kill()
			}
			t.Logf("%d killed: %d old, %d new", k.killed, k.old, k.new)
			if k.killed == 0 && kills > 0 {
				t.Error("no kill came in time")
			}
		})
	}
}

// killer kills one kind of install again and again.
type killer struct {
	*testing.T
	killedInstall
	random           *rand.Rand
	start            user            // the home before the command
	before           tree            // its profile
	installed        tree            // what an install makes of that
	after            tree            // what the command makes
	beside           tree            // what the command beside makes of its profile
	stored           map[string]bool // the paths of the store after it all
	takes            time.Duration
	killed, old, new int
}

// tree is everything in a profile, nil where there is none.
type tree map[string]string

func (k *killer) tree(u user, profile string) tree {
	k.Helper()
	if _, err := os.Lstat(filepath.Join(u.home, "profiles", profile)); os.IsNotExist(err) {
		return nil
	}
	return u.profile(k.T, profile)
}

func newKiller(t *testing.T, kind killedInstall, registry string, random *rand.Rand) *killer {
	t.Helper()
	k := &killer{T: t, killedInstall: kind, random: random, start: user{filepath.Join(t.TempDir(), "home"), registry}}
	if err := os.MkdirAll(k.start.home, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range kind.prepare {
		k.start.must(t, args...)
	}
	for _, path := range kind.gone {
		if err := os.RemoveAll(filepath.Join(k.start.home, filepath.FromSlash(path))); err != nil {
			t.Fatal(err)
		}
	}
	k.before = k.tree(k.start, "demo")
	if k.before != nil {
		u := k.start.copied(t)
		u.must(t, in("demo", "install")...)
		k.installed = k.tree(u, "demo")
	}
	for range 2 {
		u := k.start.copied(t)
		began := time.Now()
		u.must(t, kind.command...)
		k.takes = max(k.takes, time.Since(began))
		after := k.tree(u, "demo")
		if k.after != nil {
			k.same("the undisturbed command makes one thing and then another", k.after, after)
		}
		k.after = after
		if kind.beside != nil {
			u.must(t, kind.beside...)
			k.beside = k.tree(u, "other")
		}
		u.must(t, "store", "prune")
		k.stored = k.paths(u)
		k.remove(u)
	}
	return k
}

// paths are the names in the store.
func (k *killer) paths(u user) map[string]bool {
	k.Helper()
	found := map[string]bool{}
	root := filepath.Join(u.home, "store")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		// How much of the answers of registries is kept is a matter of chance.
		if name := strings.TrimPrefix(path, root); !strings.HasPrefix(name, "/metadata") || strings.Contains(name, ".dsh-tmp-") {
			found[name] = true
		}
		return err
	})
	if err != nil {
		k.Fatal(err)
	}
	return found
}

func (k *killer) remove(u user) {
	k.Helper()
	if err := os.RemoveAll(u.home); err != nil {
		k.Fatal(err)
	}
}

func (k *killer) kill() {
	k.Helper()
	u := k.start.copied(k.T)
	cmd := u.dsh(k.command...)
	if err := cmd.Start(); err != nil {
		k.Fatal(err)
	}
	var beside *exec.Cmd
	var said strings.Builder
	if k.killedInstall.beside != nil {
		beside = u.dsh(k.killedInstall.beside...)
		beside.Stdout, beside.Stderr = &said, &said
		if err := beside.Start(); err != nil {
			k.Fatal(err)
		}
	}
	part := k.random.Float64()
	if k.random.IntN(2) == 0 {
		part = 0.5 + part/2 // most that can go wrong is at the end
	}
	moment := time.Duration(float64(k.takes) * part)
	time.Sleep(moment)
	_ = cmd.Process.Kill() // it may have ended
	killed := cmd.Wait() != nil
	if killed {
		k.killed++
	}
	what := fmt.Sprintf("dsh %s, killed after %v (%v)", strings.Join(k.command, " "), moment, killed)
	if beside != nil {
		if err := beside.Wait(); err != nil {
			k.Errorf("%s: the command beside: %v\n%s", what, err, said.String())
			return
		}
		k.same(what+": the profile beside", k.beside, k.tree(u, "other"))
	}

	// A change that was decided when its process died is made by the next command, a reader's as well.
	if k.tree(u, "demo") != nil {
		u.must(k.T, "demo", "--dump-config")
	}
	now := k.tree(u, "demo")
	switch {
	case maps.Equal(now, k.after):
		k.new++
	case killed && maps.Equal(now, k.before):
		k.old++
	default:
		k.Errorf("%s: neither old nor new\nagainst old: %s\nagainst new: %s", what, cmp.Diff(k.before, now), cmp.Diff(k.after, now))
		return
	}
	// What comes next is an install, or the command itself where it still has something to do.
	next := k.command
	if now != nil && (maps.Equal(now, k.after) || k.random.IntN(2) == 0) {
		next = in("demo", "install")
	}
	u.must(k.T, next...)
	what += ", then dsh " + strings.Join(next, " ")
	want := k.after
	if !slices.Equal(next, k.command) && !maps.Equal(now, k.after) {
		want = k.installed
	}
	k.same(what, want, k.tree(u, "demo"))
	u.noLitter(k.T, what)
	if k.killed%5 == 1 {
		u.must(k.T, "store", "verify")
		u.must(k.T, "store", "prune")
		var extra []string
		for path := range k.paths(u) {
			if !k.stored[path] {
				extra = append(extra, path)
			}
		}
		if slices.Sort(extra); len(extra) > 0 {
			k.Errorf("%s: more in the store than without: %q", what, extra)
		}
	}
	k.remove(u)
}

func (k *killer) same(what string, want, got tree) {
	k.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		k.Errorf("%s:\n%s", what, diff)
	}
}
