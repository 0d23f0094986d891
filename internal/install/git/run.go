package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"dsh/internal/fault"
)

// maxOutput bounds what a git command may say, in bytes.
const maxOutput = 256 << 20

// command is one run of git.
type command struct {
	remote remote   // that it talks to; the zero one for none
	dir    string   // of the repository, "" for none
	args   []string // behind the settings
	stdin  io.Reader
}

// failure is a git that ended with an error.
type failure struct {
	verb   string // of git
	code   int
	stderr string
}

func (e *failure) Error() string {
	return fmt.Sprintf("git %s: %s", e.verb, cmpOr(e.lastWords(), "exit status "+strconv.Itoa(e.code)))
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// lastWords is what of that which git said tells most.
func (e *failure) lastWords() string {
	said, before := "", "" // before is the line above git's own last word
	last := ""
	for line := range strings.Lines(e.stderr) {
		line = strings.TrimSpace(line)
		for _, mark := range []string{"fatal: ", "error: ", "remote: "} {
			if rest, ok := strings.CutPrefix(line, mark); ok && (said == "" || mark == "fatal: ") {
				said, before = rest, last
			}
		}
		if line != "" {
			last = line
		}
	}
	switch {
	case strings.HasPrefix(said, "Could not read from remote repository"), strings.HasPrefix(said, "the remote end hung up"):
		// Why is what ssh or the server said last.
		before = strings.TrimPrefix(strings.TrimPrefix(before, "ssh: "), "remote: ")
		return cmpOr(before, said)
	case strings.HasPrefix(said, "unable to access '"):
		// The address is in every message already.
		if _, why, ok := strings.Cut(said, "': "); ok {
			return why
		}
	}
	return said
}

func (e *failure) says(texts ...string) bool {
	for _, text := range texts {
		if strings.Contains(e.stderr, text) {
			return true
		}
	}
	return false
}

// prepare makes the process, which is not started.
func (c *Client) prepare(ctx context.Context, cmd command) (*exec.Cmd, error) {
	env, err := c.environment(cmd.remote)
	if err != nil {
		return nil, err
	}
	home, err := c.home()
	if err != nil {
		return nil, err
	}
	program, err := lookPath("git", c.opts.Getenv("PATH"))
	if err != nil {
		return nil, errNoGit
	}
	at := cmd.dir
	if at == "" {
		// What does not exist, so that no repository around the directory is taken.
		at = home + "/none"
	}
	args := append([]string{"--git-dir=" + at}, c.settings(cmd.remote)...)
	process := exec.CommandContext(ctx, program, append(args, cmd.args...)...)
	process.Dir, process.Env, process.Stdin = home, env, cmd.stdin
	process.WaitDelay = 5 * time.Second
	group(process)
	return process, nil
}

var errNoGit = fault.WithHint(fault.Errorf(fault.MissingProgram, "git is not installed, and packages of git repositories are fetched with it"),
	"install git (https://git-scm.com/downloads) so that it is found in the PATH")

// lookPath is exec.LookPath in a path that is not the process's.
func lookPath(name, path string) (string, error) {
	file, err := exec.LookPath(name)
	if err == nil || path == "" {
		return file, err
	}
	return "", err
}

// run runs git to its end and gives what it wrote to standard output.
func (c *Client) run(ctx context.Context, cmd command) ([]byte, error) {
	within, stop := context.WithCancel(ctx)
	defer stop()
	process, err := c.prepare(within, cmd)
	if err != nil {
		return nil, err
	}
	var out, said limited
	out.left, said.left = maxOutput, 1<<20
	progress := &progress{to: &said, received: c.opts.Received, most: c.opts.MaxBytes, stop: stop}
	process.Stdout, process.Stderr = &out, progress
	err = process.Run()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case progress.over:
		return nil, fault.Errorf(fault.Policy, "%s: it sends more than %d bytes", Shown(cmd.remote.text), c.opts.MaxBytes)
	case out.over:
		return nil, fault.Errorf(fault.Policy, "git %s says more than %d bytes", cmd.args[0], int64(maxOutput))
	case err == nil:
		return out.Bytes(), nil
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.Bytes(), &failure{verb: cmd.args[0], code: exit.ExitCode(), stderr: said.String()}
	}
	return nil, fmt.Errorf("run git: %w", err)
}

// limited keeps so many bytes, and forgets the rest.
type limited struct {
	bytes.Buffer
	left int
	over bool
}

func (l *limited) Write(p []byte) (int, error) {
	kept := p
	if len(kept) > l.left {
		kept, l.over = kept[:l.left], true
	}
	l.left -= len(kept)
	l.Buffer.Write(kept)
	return len(p), nil
}

// progress takes the lines of git's progress out of what it says.
type progress struct {
	to       *limited
	received func(int64)
	line     []byte
	told     int64
	most     int64  // bytes that may come
	stop     func() // is called when more do
	over     bool
}

func (p *progress) Write(data []byte) (int, error) {
	for _, c := range data {
		if c != '\r' && c != '\n' {
			if len(p.line) < 4096 {
				p.line = append(p.line, c)
			}
			continue
		}
		p.end()
	}
	return len(data), nil
}

func (p *progress) end() {
	line := string(p.line)
	p.line = p.line[:0]
	if !strings.HasPrefix(line, "Receiving objects:") {
		_, _ = p.to.Write([]byte(line + "\n"))
		return
	}
	bytes, ok := receivedBytes(line)
	if !ok || bytes <= p.told {
		return
	}
	if p.received != nil {
		p.received(bytes - p.told)
	}
	if p.told = bytes; bytes > p.most && !p.over {
		p.over = true
		p.stop()
	}
}

// receivedBytes reads "Receiving objects: 45% (9/20), 1.50 MiB | 2.00 MiB/s".
func receivedBytes(line string) (int64, bool) {
	_, rest, ok := strings.Cut(line, "), ")
	if !ok {
		return 0, false
	}
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, false
	}
	units := map[string]float64{"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
	n, err := strconv.ParseFloat(fields[0], 64)
	unit, known := units[strings.TrimSuffix(fields[1], ",")]
	return int64(n * unit), err == nil && known && n >= 0
}

func seconds(d time.Duration) string { return strconv.Itoa(max(1, int(d/time.Second))) }
