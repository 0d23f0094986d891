package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// systemDirs are what every script may read: programs, libraries and settings of
// the system. The user's files are not among them.
var systemDirs = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/proc", "/sys",
	"/nix", "/gnu", "/snap", "/run/current-system", "/home/linuxbrew/.linuxbrew",
}

// mayLookInto says whether a confined script can read a directory of programs.
func mayLookInto(dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	return err == nil && slices.ContainsFunc(systemDirs, func(system string) bool { return isBelow(real, system) })
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// readable is what of a Node.js installation outside the system's directories
// scripts may read: not the directory that it is in, which may be the user's.
func (n Node) readable() []string {
	if n.Program == "" {
		return nil
	}
	return []string{n.Program, filepath.Join(n.prefix(), "lib", "node_modules"), filepath.Join(n.prefix(), "include", "node"), n.gyp()}
}

// patience is how long the processes of a script, which are killed, may take to
// be gone.
const patience = 10 * time.Second

// runScript runs one script in processes of its own: see childName.
func runScript(ctx context.Context, j job) (e end, err error) {
	if err := ctx.Err(); err != nil {
		return e, err
	}
	toldRead, toldWrite, err := os.Pipe()
	if err != nil {
		return e, err
	}
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return e, errors.Join(err, toldRead.Close(), toldWrite.Close())
	}
	defer func() { err = errors.Join(err, reportRead.Close()) }()
	cmd := childCommand(supervisor, toldRead, reportWrite)
	cmd.Stdout, cmd.Stderr = j.out, j.out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second
	startErr := cmd.Start()
	closeErr := errors.Join(toldRead.Close(), reportWrite.Close())
	if err := errors.Join(startErr, closeErr); err != nil {
		return e, errors.Join(err, toldWrite.Close())
	}
	// The end of what it is told is the end of the script.
	stop := context.AfterFunc(ctx, func() {
		_ = toldWrite.Close()
		time.AfterFunc(patience, func() { _ = killAll(cmd) }) // of a process that is gone, as a rule
	})
	t := task{
		Shell: j.shell, Text: j.text, Dir: j.dir, Env: j.env, Network: j.network,
		Read:  slices.Concat(systemDirs, j.node.readable(), []string{j.root}),
		Write: []string{j.dir, j.temp},
	}
	_ = json.NewEncoder(toldWrite).Encode(t) // fails where it was closed: the reports tell
	var started, ended bool
	var failed error
	for reports := json.NewDecoder(reportRead); ; {
		var r report
		if err := reports.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) {
				failed = err
			}
			break
		}
		switch {
		case r.Error != "":
			failed = errors.New(r.Error)
		case r.Ended:
			ended = true
			e.left = r.Left
			if r.Code != 0 || r.Signal != "" {
				e.err = &ScriptError{Code: r.Code, Signal: r.Signal}
			}
		default:
			started = true
			e.writes, e.network = *r.Writes, *r.Network
		}
	}
	waitErr := cmd.Wait()
	if stop() {
		_ = toldWrite.Close()
	}
	switch {
	case ctx.Err() != nil:
		e.err = &ScriptError{Code: -1}
		return e, nil
	case failed != nil:
		return e, fmt.Errorf("starting the shell: %w", failed)
	case !started || !ended:
		return e, fmt.Errorf("the process that watches over the script ended: %w", errors.Join(waitErr, io.ErrUnexpectedEOF))
	}
	return e, nil
}
