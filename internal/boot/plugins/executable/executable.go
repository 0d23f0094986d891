// Package executable runs the program of a package as a row: a child process
// with the terminal, the row's config and the arguments of the app. When it
// ends, the profile ends with its code.
//
// It does not decide which rows are such: boot finds the package of a row, and
// gives the program to [Launch.Plugin].
package executable

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
	"dsh/internal/program"
	"dsh/internal/staging"
)

// The variables that a program gets besides those of the start.
const (
	ConfigVariable     = "DSH_PLUGIN_CONFIG" // a file with the row's config as JSON
	RowVariable        = "DSH_PLUGIN_ROW"    // the path of the row in the tree
	ProfileVariable    = "DSH_PROFILE"       // the name of the profile
	ProfileDirVariable = "DSH_PROFILE_DIR"
	HomeVariable       = "DSH_HOME"
)

// Launch is what the programs of one start share.
type Launch struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // "NAME=value"
	Args           []string
	Profile        *slot.ProfileContext
	Temp           string // where the config is written for as long as a program runs
	Terminal       *Terminal
	Exit           slot.ExitFunc
	// Ready is closed when all other rows have settled: a program begins when it
	// is certain that the profile starts, and nothing else writes to the terminal.
	Ready <-chan struct{}
	// Grace is how long a program may take to end when it is told to.
	Grace time.Duration

	mu      sync.Mutex
	running map[*child]bool
}

// Kill ends the programs that run, at once. It is for a run that does not wait
// for its rows any more.
func (l *Launch) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for child := range l.running {
		child.kill()
	}
}

// runs remembers a child, until it is told that it does not.
func (l *Launch) runs(c *child, does bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running == nil {
		l.running = map[*child]bool{}
	}
	if does {
		l.running[c] = true
	} else {
		delete(l.running, c)
	}
}

// Plugin is the plugin of the rows that run p.
func (l *Launch) Plugin(p program.Program) host.Plugin {
	return host.Plugin{Start: func(_ context.Context, r *host.Row) error {
		config := r.Config()
		if config == nil {
			config = map[string]any{}
		}
		text, err := json.Marshal(config)
		if err != nil {
			return fmt.Errorf("write the config for %s: %w", p.Package, err)
		}
		if err := l.Terminal.take(r.Path()); err != nil {
			return err
		}
		child := &child{ended: make(chan struct{})}
		r.OnStop(child.stop)
		r.Go(func(ctx context.Context) error {
			defer close(child.ended)
			defer l.Terminal.release()
			select {
			case <-l.Ready:
			case <-ctx.Done():
				return nil
			}
			return l.run(ctx, r, p, text, child)
		})
		return nil
	}}
}

// run runs the program until it ends, and asks for the end of the profile,
// unless the program ends because the row does.
func (l *Launch) run(ctx context.Context, r *host.Row, p program.Program, config []byte, child *child) error {
	dir, remove, err := staging.TempDir(l.Temp)
	if err != nil {
		return err
	}
	defer remove()
	file := filepath.Join(dir, "config.json")
	if err := staging.WriteDerived(file, config, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(p.Path, l.Args...)
	cmd.Dir = l.Profile.Cwd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = l.Stdin, l.Stdout, l.Stderr
	cmd.Env = append(append([]string{}, l.Environ...),
		HomeVariable+"="+l.Profile.HomeDir, ProfileVariable+"="+l.Profile.Name, ProfileDirVariable+"="+l.Profile.Dir,
		RowVariable+"="+r.Path(), ConfigVariable+"="+file)
	// A reader that is no file is copied to the program, and may have nothing
	// to read for ever.
	cmd.WaitDelay = time.Second
	started, err := child.start(cmd)
	if err != nil {
		return startError(p, err)
	}
	if !started {
		return nil
	}
	l.runs(child, true)
	defer l.runs(child, false)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		child.ask()
		select {
		case <-ended:
		case <-time.After(l.Grace):
			child.kill()
			<-ended
		}
		return nil
	}
	if ctx.Err() != nil {
		return nil
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) {
		return fmt.Errorf("run %s: %w", p.Path, err)
	}
	r.Logf("%s ended: %s", p.Package, cmd.ProcessState)
	l.Exit(exitCode(cmd.ProcessState))
	return nil
}

// exitCode is the code of a process as shells give it: 128 and the signal that
// ended it.
func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// child is the process of one row.
type child struct {
	mu      sync.Mutex
	process *os.Process
	stopped bool
	ended   chan struct{}
}

// start starts cmd unless the row has been stopped.
func (c *child) start(cmd *exec.Cmd) (started bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false, nil
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	c.process = cmd.Process
	return true, nil
}

// ask asks the process to end, once: many programs take a second time for
// impatience. It reports whether there is one.
func (c *child) ask() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopped && c.process != nil {
		terminate(c.process)
	}
	c.stopped = true
	return c.process != nil
}

// kill ends the process, if there is one.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.process != nil {
		c.process.Kill()
	}
}

// stop asks the process to end and waits for it. It is killed when ctx ends.
func (c *child) stop(ctx context.Context) error {
	if !c.ask() {
		return nil
	}
	select {
	case <-c.ended:
	case <-ctx.Done():
		c.kill()
	}
	return nil
}

// Terminal is the terminal of dsh, which one row has at a time. Its zero value
// is free.
type Terminal struct {
	mu    sync.Mutex
	owner string
}

// Held says whether a row has the terminal.
func (t *Terminal) Held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owner != ""
}

func (t *Terminal) take(row string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.owner != "" {
		return TakenError{Owner: t.owner}
	}
	t.owner = row
	return nil
}

func (t *Terminal) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.owner = ""
}

// TakenError is a second row that would have the terminal.
type TakenError struct{ Owner string }

func (e TakenError) Error() string {
	return fmt.Sprintf("the terminal belongs to row %s; a profile runs one program at a time", e.Owner)
}

// Class is Composition: the tree has one such row too many.
func (e TakenError) Class() fault.Class { return fault.Composition }
