// Command bench times dsh and other package managers side by side: the same projects from the same registry on the same filesystem,
// taking turns in one run, so that what disturbs the machine disturbs them all. The script run installs the others and starts it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		stop()
		os.Exit(1)
	}
}

// plan is what one run measures.
type plan struct {
	runs, slowRuns int
	timeout        time.Duration
	fixtures       []fixture
	scenarios      []scenario
	managers       []manager // the first is dsh
	judge          bool
	onDisk         bool
}

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	runs := flags.Int("runs", 5, "how often each cell is measured")
	slowRuns := flags.Int("slow-runs", 1, "how often, of pnpm 10 and npm, which take up to a hundred times as long")
	fixtureNames := flags.String("fixtures", "bundle,medium,dsh,big", "which projects")
	scenarioNames := flags.String("scenarios", "cold,warm,frozen,noop", "what is there before an install")
	peerNames := flags.String("peers", "bun,pnpm12,pnpm10", "beside which others of bun, pnpm12, pnpm10 and npm")
	dir := flags.String("dir", "", "a directory on the disk to measure on (default: a filesystem in memory)")
	jsonFile := flags.String("json", "", "a file for all samples, as JSON")
	judge := flags.Bool("judge", false, "let e2e/judge look at every tree; a fault in a tree of dsh is a failure")
	timeout := flags.Duration("timeout", 5*time.Minute, "after which an install has failed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || *runs < 1 || *slowRuns < 1 {
		return fmt.Errorf("there are no arguments but flags, and at least one run; -h lists the flags")
	}
	p := plan{runs: *runs, slowRuns: *slowRuns, timeout: *timeout, judge: *judge, onDisk: *dir != ""}
	fixtures, err := readFixtures()
	if err != nil {
		return err
	}
	if p.fixtures, err = choose("fixture", *fixtureNames, fixtures, func(f fixture) string { return f.Name }); err != nil {
		return err
	}
	if p.scenarios, err = choose("scenario", *scenarioNames, scenarios, func(s scenario) string { return string(s) }); err != nil {
		return err
	}
	if p.managers, err = choose("peer", "dsh,"+*peerNames, managers, func(m manager) string { return m.name }); err != nil {
		return err
	}
	for _, m := range p.managers {
		if os.Getenv(m.variable) == "" {
			return fmt.Errorf("%s is not set: start this program with e2e/bench/run", m.variable)
		}
	}
	parent := *dir
	if parent == "" {
		parent = memory()
	}
	if p.judge && os.Getenv("DSH_E2E_SEMVER") == "" {
		return fmt.Errorf("DSH_E2E_SEMVER is not set: start this program with e2e/bench/run")
	}
	scratch, err := os.MkdirTemp(parent, "dsh-bench-")
	if err != nil {
		return fmt.Errorf("making a directory to measure in: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()

	r := report{Machine: describe(scratch), Start: time.Now().UTC()}
	for _, f := range p.fixtures {
		if err := p.measure(ctx, f, scratch, &r); err != nil {
			return err
		}
	}
	if err := r.markdown(os.Stdout); err != nil {
		return err
	}
	if *jsonFile != "" {
		if err := r.json(*jsonFile); err != nil {
			return err
		}
	}
	return r.failure()
}

// choose picks the named ones of all, in the order of all.
func choose[T any](what, names string, all []T, name func(T) string) ([]T, error) {
	wanted := strings.Split(names, ",")
	var chosen []T
	var known []string
	for _, one := range all {
		known = append(known, name(one))
		if slices.Contains(wanted, name(one)) {
			chosen = append(chosen, one)
		}
	}
	for _, w := range wanted {
		if w != "" && !slices.Contains(known, w) {
			return nil, fmt.Errorf("there is no %s %q, but %s", what, w, strings.Join(known, ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no %s is chosen of %s", what, strings.Join(known, ", "))
	}
	return chosen, nil
}

// memory is a directory on a filesystem in memory, where there is one.
func memory() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return os.TempDir()
}
