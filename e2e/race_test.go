package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/npmtest"
)

// user is somebody with a home of their own and a registry.
type user struct {
	home, registry string
}

func newUser(t testing.TB, packages string) user {
	t.Helper()
	server, err := npmtest.New(packages)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return user{filepath.Join(t.TempDir(), "home"), server.URL()}
}

func (u user) dsh(args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(),
		"DSH_HOME="+u.home, "HOME="+filepath.Dir(u.home), "npm_config_registry="+u.registry, "npm_config_fetch_retries=0")
	return cmd
}

// must runs a command that has to succeed, and gives its output.
func (u user) must(t testing.TB, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := u.dsh(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("dsh %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// profile is everything in a profile, by path, but the empty root, which every
// start writes again.
func (u user) profile(t testing.TB, name string) map[string]string {
	t.Helper()
	found := map[string]string{}
	dir := filepath.Join(u.home, "profiles", name)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// A file that was about to take another's place may stay an hour.
		temporary := strings.HasPrefix(d.Name(), ".dsh-tmp-") || d.Name() == "cordis.yml"
		if temporary && filepath.Dir(path) == dir {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		content := info.Mode().String()
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content += " " + target
		case d.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content += " " + string(data)
		}
		found[strings.TrimPrefix(path, dir)] = content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// noLitter checks that nothing of dsh's own work lies beside the profiles or in
// their state.
func (u user) noLitter(t testing.TB, what string) {
	t.Helper()
	for _, pattern := range []string{"profiles/.*", "state/*/journal*", "state/*/.dsh-tmp-*", "state/*/generations/.dsh-tmp-*"} {
		left, err := filepath.Glob(filepath.Join(u.home, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range left {
			inside, err := exec.Command("ls", "-laR", path).CombinedOutput()
			t.Errorf("%s: left behind: %s %v\n%s", what, path, err, inside)
		}
	}
}

// finished is how a command of many at once went.
type finished struct {
	err            error
	stdout, stderr string
}

// atOnce starts all commands and waits for them.
func atOnce(t *testing.T, commands []*exec.Cmd) []finished {
	t.Helper()
	results := make([]finished, len(commands))
	outs := make([][2]strings.Builder, len(commands))
	for i, cmd := range commands {
		cmd.Stdout, cmd.Stderr = &outs[i][0], &outs[i][1]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, cmd := range commands {
		err := cmd.Wait()
		results[i] = finished{err, outs[i][0].String(), outs[i][1].String()}
	}
	return results
}

// TestReplacedAtOnce lets processes replace one profile at the same time, which
// is there or not. Whoever loses says so, and what stands is one whole profile.
func TestReplacedAtOnce(t *testing.T) {
	alone := newUser(t, t.TempDir())
	dump, _ := alone.must(t, "demo", "--from-default-profile", "web", "--dump-config")
	want := alone.profile(t, "demo")
	for _, count := range []int{2, 10} {
		for _, there := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d processes, profile there %v", count, there), func(t *testing.T) {
				u := newUser(t, t.TempDir())
				for range 3 {
					if there {
						u.must(t, "demo", "--from-default-profile", "headless", "--dump-config")
					} else if err := os.RemoveAll(filepath.Join(u.home, "profiles", "demo")); err != nil {
						t.Fatal(err)
					}
					var commands []*exec.Cmd
					for range count {
						commands = append(commands, u.dsh("demo", "--from-default-profile", "web", "--dump-config"))
					}
					winners := 0
					for _, r := range atOnce(t, commands) {
						failed, _ := r.err.(*exec.ExitError)
						switch {
						case r.err == nil:
							winners++
							if r.stdout != dump {
								t.Errorf("a winner prints\n%s\n%s", r.stdout, r.stderr)
							}
						case failed != nil && failed.ExitCode() == 1 && r.stdout == "" && strings.Contains(r.stderr, "another process replaced it at the same time"):
						default:
							t.Errorf("neither won nor lost: %v\n%s%s", r.err, r.stdout, r.stderr)
						}
					}
					if winners == 0 {
						t.Error("nobody won")
					}
					if diff := cmp.Diff(want, u.profile(t, "demo")); diff != "" {
						t.Errorf("the profile is not whole: %s", diff)
					}
					u.noLitter(t, "the race")
				}
			})
		}
	}
}

// bundles writes a registry of bundles p0, p1, … each of which has a row.
func bundles(t *testing.T, count int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i := range count {
		text := fmt.Sprintf(`-- package.json --
{"name": "p%[1]d", "version": "1.0.0", "dsh": {"bundle": {"patch": "rows.yml"}}}
-- rows.yml --
- insert: [{id: row-%[1]d, name: p%[1]d}]
-- index.js --
`, i)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%d_1.0.0.txtar", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAddedAtOnce adds ten packages by ten processes, and others read the
// profile meanwhile. Each time they see all of the packages that were added so
// far: never a part of one, and never fewer than before.
func TestAddedAtOnce(t *testing.T) {
	const count = 10
	u := newUser(t, bundles(t, count))
	u.must(t, "demo", "--from-default-profile", "web", "--dump-config")

	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var seen []string
			for done := false; !done; {
				select {
				case <-stop:
					done = true
				default:
				}
				cmd := u.dsh("demo", "--dump-config")
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil || stderr.Len() > 0 {
					t.Errorf("a reader: %v\n%s", err, stderr.String())
					return
				}
				var now []string
				for line := range strings.Lines(string(out)) {
					if row, ok := strings.CutPrefix(line, "- id: row-"); ok {
						now = append(now, strings.TrimSpace(row))
					}
				}
				if len(now) < len(seen) || !slices.Equal(now[:len(seen)], seen) {
					t.Errorf("a reader saw rows %v, and later %v", seen, now)
					return
				}
				seen = now
			}
			if len(seen) != count {
				t.Errorf("at the end a reader sees only rows %v", seen)
			}
		})
	}

	var commands []*exec.Cmd
	for i := range count {
		commands = append(commands, u.dsh("plugin", "--profile", "demo", "add", fmt.Sprintf("p%d", i)))
	}
	for i, r := range atOnce(t, commands) {
		if r.err != nil {
			t.Errorf("adding p%d: %v\n%s%s", i, r.err, r.stdout, r.stderr)
		}
	}
	close(stop)
	readers.Wait()

	got := u.profile(t, "demo")
	for i := range count {
		name := fmt.Sprintf("p%d", i)
		if !strings.Contains(got["/package.json"], `"`+name+`": "^1.0.0"`) || !strings.Contains(got["/dsh-lock.yaml"], "node_modules/"+name+":") || got["/node_modules/"+name+"/rows.yml"] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	u.must(t, "plugin", "--profile", "demo", "install", "--frozen-lockfile", "--offline")
	if diff := cmp.Diff(got, u.profile(t, "demo")); diff != "" {
		t.Error(diff)
	}
	u.noLitter(t, "ten commands at once")
}
