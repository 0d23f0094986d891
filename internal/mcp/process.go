package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"dsh/internal/fault"
)

// Exit is how the program of a server ended.
type Exit struct {
	Code   int    `json:"code"`   // -1 where a signal ended it
	Signal string `json:"signal"` // "" where none did
}

// String is the end in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// process is a running program and all that it starts.
type process struct {
	cmd           *exec.Cmd
	stdin, stdout *os.File // ours
	log           *tail
	group         group
	ended         chan struct{} // closed when the program has ended
	exit          Exit          // of an ended one
	cut           atomic.Bool   // one of the pipes has ended
}

// start starts the program of s, unless ctx has ended. base is the environment below
// that of s.
func start(ctx context.Context, s Server, base []string, log *tail) (p *process, err error) {
	for _, in := range s.Inside {
		if err := in.check(); err != nil {
			return nil, err
		}
	}
	program, err := find(s)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(s.Dir); err != nil {
		return nil, fault.Errorf(fault.Environment, "the working directory %s cannot be used: %w", s.Dir, errors.Unwrap(err))
	} else if !info.IsDir() {
		return nil, fault.Errorf(fault.Environment, "the working directory %s is no directory", s.Dir)
	}
	cmd := exec.Command(program, s.Args...)
	cmd.Args[0] = s.Program
	cmd.Dir, cmd.Env = s.Dir, overlaid(base, s.Env)
	cmd.Stderr = log
	// A child of the program may hold standard error open for ever.
	cmd.WaitDelay = time.Second
	inRead, inWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	outRead, outWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, inRead.Close(), inWrite.Close())
	}
	cmd.Stdin, cmd.Stdout = inRead, outWrite
	p = &process{cmd: cmd, stdin: inWrite, stdout: outRead, log: log, ended: make(chan struct{})}
	err = running.start(ctx, p)
	_, _ = inRead.Close(), outWrite.Close() // the program has its own
	if err != nil {
		_, _ = inWrite.Close(), outRead.Close()
		return nil, startError(program, err)
	}
	go func() {
		_ = cmd.Wait() // the state says how it ended
		p.exit = exitOf(cmd.ProcessState)
		close(p.ended)
	}()
	return p, nil
}

// check follows the links now.
func (in Inside) check() error {
	within, err := filepath.EvalSymlinks(in.Within)
	if err != nil {
		return fault.Errorf(fault.Environment, "%s: %s is not there: %w", in.What, in.Within, err)
	}
	real, err := filepath.EvalSymlinks(in.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Errorf(fault.MissingProgram, "%s: %s is not there, or a link that leads nowhere", in.What, in.Path)
	}
	if err != nil {
		return fault.Errorf(fault.Environment, "%s: follow %s: %w", in.What, in.Path, err)
	}
	if rel, err := filepath.Rel(within, real); err != nil || !filepath.IsLocal(rel) {
		return fault.Errorf(fault.Policy, "%s: %s leads out of %s over a link", in.What, in.Path, in.Within)
	}
	return nil
}

// find is the file of the program. A bare name is looked for in dsh's own PATH,
// whatever the server's environment says.
func find(s Server) (string, error) {
	if filepath.IsAbs(s.Program) {
		return s.Program, nil
	}
	file, err := exec.LookPath(s.Program)
	if err == nil {
		file, err = filepath.Abs(file)
	}
	if err == nil {
		return file, nil
	}
	missing := fault.Errorf(fault.MissingProgram, "there is no program %q in PATH", s.Program)
	if first, rest, ok := strings.Cut(s.Program, " "); ok {
		return "", fault.WithHint(missing, "a command is one word: %q goes to args, behind the command %q", rest, first)
	}
	return "", missing
}

func startError(program string, err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		err = pathError.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault.Errorf(fault.MissingProgram, "start %s: it, or the program that its first line names, is not there", program)
	case errors.Is(err, fs.ErrPermission):
		return fault.WithHint(fault.Errorf(fault.Environment, "start %s: it is not executable", program), "chmod +x %s", fault.ShellWord(program))
	case errors.Is(err, syscall.ENOEXEC):
		return fault.Errorf(fault.Environment, "start %s: this system cannot run it; a script needs a first line such as #!/bin/sh", program)
	}
	return fmt.Errorf("start %s: %w", program, err)
}

func exitOf(state *os.ProcessState) Exit {
	if state == nil {
		return Exit{Code: -1}
	}
	exit := Exit{Code: state.ExitCode()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = status.Signal().String()
	}
	return exit
}

// alive says whether the program has not ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// stop takes the program and all of its group down: its input ends, then it is
// asked, then it is killed, with grace between the steps. The end of ctx makes all
// steps follow at once. The error says that the program itself is still there; what
// else was killed with it is not waited for.
func (p *process) stop(ctx context.Context, grace time.Duration) error {
	defer running.forget(p)
	_ = p.stdin.Close()
	wait := func(most time.Duration) (gone bool) {
		limit := time.NewTimer(most)
		defer limit.Stop()
		ended := p.ended
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			if !p.alive() && p.group.gone() {
				return true
			}
			select {
			case <-ended:
				ended = nil
			case <-tick.C:
			case <-limit.C:
				return false
			case <-ctx.Done():
				return !p.alive() && p.group.gone()
			}
		}
	}
	defer p.stdout.Close()
	defer p.group.close()
	// What a program that has ended leaves behind is not waited for as long.
	select {
	case <-p.ended:
	case <-time.After(grace):
	case <-ctx.Done():
	}
	if !p.alive() && p.group.gone() {
		return nil
	}
	p.group.ask()
	if wait(grace) {
		return nil
	}
	p.group.kill()
	select {
	case <-p.ended:
		return nil
	case <-time.After(5 * time.Second): // the system's, for what it has killed
		return fault.Errorf(fault.Environment, "process %d does not end", p.cmd.Process.Pid)
	}
}
