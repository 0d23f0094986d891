//go:build !linux

package build

import (
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// mayLookInto says whether a script can read a directory of programs: nothing
// keeps it from that.
func mayLookInto(string) bool { return true }

// runScript runs one script, which nothing confines on this system.
func runScript(ctx context.Context, j job) (end, error) {
	none := Confinement{Why: "dsh confines scripts on Linux only"}
	e := end{writes: none, network: none}
	cmd := shellCommand(j.shell, j.text)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = j.dir, j.env, j.out, j.out
	// What holds the output open after the shell ended is not waited for.
	cmd.WaitDelay = time.Second
	if err := ctx.Err(); err != nil {
		return e, err
	}
	if err := cmd.Start(); err != nil {
		return e, err
	}
	stopped := context.AfterFunc(ctx, func() { _ = killAll(cmd) }) // it may be gone already
	err := cmd.Wait()
	stopped()
	_ = killAll(cmd) // nothing is left, as a rule
	failed := &ScriptError{Code: -1}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		e.err = failed
	case err == nil || errors.Is(err, exec.ErrWaitDelay):
	case !ok:
		return e, err
	default:
		failed.Code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			failed.Signal = status.Signal().String()
		}
		e.err = failed
	}
	return e, nil
}
