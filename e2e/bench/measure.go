package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// cacheAge is the age from which a cache is used once outside the clock before a warm install is timed: dsh and bun take metadata for
// fresh during five minutes, and what counts is that all are in the same position.
const cacheAge = 3 * time.Minute

// place is the directory of one manager for one fixture.
type place struct {
	manager
	dir    string
	trash  string // what is removed is moved there and removed later; "" removes at once
	filled time.Time
	moved  int
}

// measure takes all samples of a fixture.
func (p *plan) measure(ctx context.Context, f fixture, scratch string, r *report) (err error) {
	root := filepath.Join(scratch, f.Name)
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	var places []*place
	for _, m := range p.managers {
		if m.never == f.Name {
			continue
		}
		at := &place{manager: m, dir: filepath.Join(root, m.name)}
		if p.onDisk {
			// Creating files soon after others were deleted is slow on some disks, which would be charged to whoever comes next.
			at.trash = filepath.Join(root, "trash-"+m.name)
		}
		if err := at.prepare(f); err != nil {
			return err
		}
		places = append(places, at)
	}
	// The registry answers faster what it was asked for before.
	if _, err := p.install(ctx, places[len(places)-1], cold); err != nil {
		return err
	}
	broken := map[*place]bool{}
	for _, s := range p.scenarios {
		for i := range p.runs {
			for k := range places {
				at := places[(k+i)%len(places)] // nobody is always the first
				if broken[at] || (at.slow && i >= p.slowRuns) {
					continue
				}
				one, err := p.sample(ctx, at, s)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err != nil {
					broken[at] = true
					fmt.Fprintf(os.Stderr, "bench: %s %s %s: %v\n", f.Name, s, at.name, err)
					r.Failures = append(r.Failures, failed{f.Name, s, at.name, err.Error()})
					continue
				}
				one.Fixture, one.Scenario, one.Manager, one.Run = f.Name, s, at.name, i
				r.Samples = append(r.Samples, one)
				fmt.Fprintf(os.Stderr, "bench: %-6s %-6s %-6s %d: %7.3f s, %6.2f s user, %6.2f s system, %4.0f MiB\n",
					f.Name, s, at.name, i+1, one.Wall, one.User, one.System, one.Peak)
			}
		}
	}
	for _, at := range places {
		if broken[at] {
			continue
		}
		t := tree{Fixture: f.Name, Manager: at.name}
		if err := t.count(filepath.Join(at.dir, at.project, "node_modules")); err != nil {
			return err
		}
		if p.judge {
			if err := t.judge(ctx, filepath.Join(at.dir, at.project), f); err != nil {
				return err
			}
		}
		r.Trees = append(r.Trees, t)
	}
	return nil
}

// prepare makes the project of a fixture.
func (at *place) prepare(f fixture) error {
	files, err := at.files(at.dir, f)
	if err != nil {
		return err
	}
	for _, dir := range []string{at.project, "home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(at.dir, dir), 0o777); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(at.dir, at.project, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	// All ask the registry that the user asks.
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	npmrc, err := os.ReadFile(filepath.Join(home, ".npmrc"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(at.dir, "home", ".npmrc"), npmrc, 0o600)
}

// sample times one install. What it needs before is outside the clock.
func (p *plan) sample(ctx context.Context, at *place, s scenario) (sample, error) {
	if s != cold && at.filled.IsZero() {
		if _, err := p.install(ctx, at, cold); err != nil {
			return sample{}, err
		}
	}
	if s == warm && time.Since(at.filled) > cacheAge {
		if err := at.clear(warm); err != nil {
			return sample{}, err
		}
		if _, err := p.install(ctx, at, warm); err != nil {
			return sample{}, err
		}
	}
	if err := at.clear(s); err != nil {
		return sample{}, err
	}
	if p.onDisk {
		settle()
	}
	return p.install(ctx, at, s)
}

// clear removes what must not be there before an install.
func (at *place) clear(s scenario) error {
	var paths []string
	switch s {
	case cold:
		paths = append(paths, at.caches...)
		paths = append(paths, "tmp")
		fallthrough
	case warm:
		paths = append(paths, filepath.Join(at.project, at.lockfile))
		fallthrough
	case frozen:
		paths = append(paths, filepath.Join(at.project, "node_modules"))
	}
	for _, path := range paths {
		if err := at.remove(filepath.Join(at.dir, path)); err != nil {
			return err
		}
	}
	return os.MkdirAll(filepath.Join(at.dir, "tmp"), 0o777)
}

func (at *place) remove(path string) error {
	if at.trash == "" {
		return os.RemoveAll(path)
	}
	if err := os.MkdirAll(at.trash, 0o777); err != nil {
		return err
	}
	at.moved++
	err := os.Rename(path, filepath.Join(at.trash, fmt.Sprint(at.moved)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// install runs a manager once.
func (p *plan) install(ctx context.Context, at *place, s scenario) (sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.timeout, fmt.Errorf("not finished after %v", p.timeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Getenv(at.variable), at.manager.install(s)...)
	cmd.Dir = filepath.Join(at.dir, at.project)
	cmd.WaitDelay = time.Second
	cmd.Env = append(environment(os.Environ(), at.dir), at.environ(at.dir)...)
	// A file, because a pipe would need somebody to read it meanwhile.
	log, err := os.Create(filepath.Join(at.dir, "log"))
	if err != nil {
		return sample{}, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	start := time.Now()
	err = cmd.Run()
	took := time.Since(start)
	if ctx.Err() != nil {
		return sample{}, context.Cause(ctx)
	}
	if err != nil {
		said, _ := os.ReadFile(log.Name()) // without it the error is as good as it gets
		return sample{}, fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, lastLines(string(said), 10))
	}
	if s != noop && s != frozen {
		at.filled = time.Now()
	}
	return sample{
		Wall: took.Seconds(), User: cmd.ProcessState.UserTime().Seconds(), System: cmd.ProcessState.SystemTime().Seconds(), Peak: peak(cmd.ProcessState),
	}, nil
}

// environment is the one of this process without what would tell managers of other directories than dir, or that nobody looks.
func environment(of []string, dir string) []string {
	var kept []string
	for _, v := range of {
		name, _, _ := strings.Cut(v, "=")
		own := strings.HasPrefix(name, "DSH_") || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "BUN_") || strings.HasPrefix(name, "PNPM_")
		if own || name == "CI" || name == "HOME" || name == "TMPDIR" || name == "PWD" {
			continue
		}
		kept = append(kept, v)
	}
	return append(kept, "HOME="+filepath.Join(dir, "home"), "TMPDIR="+filepath.Join(dir, "tmp"), "NO_COLOR=1", "DO_NOT_TRACK=1")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// count finds the packages and files below node_modules.
func (t *tree) count(modules string) error {
	return filepath.WalkDir(modules, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == "package.json" && isPackage(filepath.ToSlash(path)):
			t.Packages++
			t.Files++
		case d.Type().IsRegular():
			t.Files++
		}
		return nil
	})
}

// isPackage reports whether a package.json is the manifest of an installed package, and not some file in one.
func isPackage(manifest string) bool {
	folder := strings.TrimSuffix(manifest, "/package.json")
	name := folder[strings.LastIndex(folder, "/node_modules/")+len("/node_modules/"):]
	slashes := strings.Count(name, "/")
	return !strings.HasPrefix(name, ".") && (slashes == 0 && name[0] != '@' || slashes == 1 && name[0] == '@')
}

// judge asks e2e/judge about a project.
func (t *tree) judge(ctx context.Context, project string, f fixture) error {
	args := []string{filepath.Join("e2e", "judge", "judge.mjs"), "--json"}
	if !f.Peers {
		args = append(args, "--host", "@deepseek-ai/*")
	}
	cmd := exec.CommandContext(ctx, "node", append(args, project)...)
	cmd.Env = append(os.Environ(), "NODE_PATH=")
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1 is a verdict
		return fmt.Errorf("judging the tree of %s for %s: %w\n%s", t.Manager, t.Fixture, err, complaints.String())
	}
	t.Verdict = &verdict{}
	if err := json.Unmarshal(out, t.Verdict); err != nil {
		return fmt.Errorf("judging the tree of %s for %s: %w", t.Manager, t.Fixture, err)
	}
	return nil
}
