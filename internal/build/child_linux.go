package build

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// A script is run by two more processes of this program:
//
//   - the supervisor, which nothing confines: it starts the other one, waits for
//     it, and ends what is left of the script, wherever that went;
//   - the confined one, which takes its rights away and becomes the shell. Landlock
//     and seccomp hold for one thread and what it executes, so that a process that
//     does nothing else is the place for it.
//
// Both are told what to do by JSON at descriptor 3 and report by JSON at
// descriptor 4. The end of the supervisor's descriptor 3 is the end of the script:
// also a dsh that is killed takes it along.
//
// They are known by their own name and a variable of the environment together,
// which no argument of a user can be, and are taken care of before main, so that
// every program that has this package, a test too, can run scripts.
const (
	childName   = "dsh: running a script"
	childEnv    = "DSH_BUILD_CHILD"
	supervisor  = "supervisor"
	confined    = "confined"
	toldAt      = 3
	reportAt    = 4
	programSelf = "/proc/self/exe"
)

func init() {
	if os.Args[0] != childName {
		return
	}
	switch os.Getenv(childEnv) {
	case supervisor:
		os.Exit(supervise())
	case confined:
		os.Exit(becomeShell())
	}
}

// task is what both processes are told.
type task struct {
	Shell, Text string
	Dir         string
	Env         []string
	Read, Write []string // what is below these may be read, or written too
	Network     bool
}

// report is what either process reports: the confined one what it is kept from,
// the supervisor how it ended.
type report struct {
	Writes, Network *Confinement `json:",omitempty"`
	Error           string       `json:",omitempty"` // why no script was started
	Ended           bool         `json:",omitempty"`
	Code            int          `json:",omitempty"`
	Signal          string       `json:",omitempty"`
	Left            int          `json:",omitempty"`
}

// pipes are the two descriptors of a child, which nothing that it starts gets.
func pipes() (told, reports *os.File) {
	unix.CloseOnExec(toldAt)
	unix.CloseOnExec(reportAt)
	return os.NewFile(toldAt, "told"), os.NewFile(reportAt, "report")
}

// childCommand is a process of this program that has one of the two parts.
func childCommand(part string, told, reports *os.File) *exec.Cmd {
	cmd := exec.Command(programSelf)
	cmd.Args = []string{childName}
	cmd.Env = []string{childEnv + "=" + part}
	cmd.ExtraFiles = []*os.File{told, reports}
	return cmd
}

// supervise runs the confined process and ends what it leaves.
func supervise() int {
	told, reports := pipes()
	tell := func(r report) int {
		_ = json.NewEncoder(reports).Encode(r) // to a dsh that may be gone
		return 0
	}
	fail := func(err error) int { return tell(report{Error: err.Error()}) }
	var text json.RawMessage
	if err := json.NewDecoder(told).Decode(&text); err != nil {
		return fail(err)
	}
	// What a script's processes leave behind becomes a child of this one.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fail(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	cmd := childCommand(confined, r, reports)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// The signal is for the death of this thread, which is the main one.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	_ = r.Close()
	go func() {
		_, _ = io.Copy(w, bytes.NewReader(text)) // fails if the child is gone
		_ = w.Close()
		_, _ = io.Copy(io.Discard, told)
		// Nobody wants the script any more. Its end is noticed below.
		for _, p := range descendants() {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}()
	err = cmd.Wait()
	end := report{Ended: true}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		end.Code = exit.ExitCode()
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			end.Signal = unix.SignalName(status.Signal())
		}
	} else if err != nil {
		return fail(err)
	}
	end.Left = endAll()
	return tell(end)
}

// endAll ends all descendants of this process, and says how many lived.
func endAll() (lived int) {
	for first := true; ; first = false {
		for _, p := range descendants() {
			if p.dead {
				continue
			}
			if first {
				lived++
			}
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // it may have ended meanwhile
		}
		// Each one that ends may leave children to this process; all that are there
		// at any look are killed, so that this waits for the dying alone.
		_, err := syscall.Wait4(-1, nil, 0, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return lived // there are no more children
		}
	}
}

type process struct {
	pid, parent int
	dead        bool
}

// descendants are the processes that this one has started, and these.
func descendants() []process {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	children := map[int][]process{}
	for _, file := range stats {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// pid (any name) state parent …
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		parent, _ := strconv.Atoi(string(fields[1]))
		children[parent] = append(children[parent], process{pid, parent, bytes.Equal(fields[0], []byte("Z"))})
	}
	var all []process
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			all = append(all, p)
			next = append(next, p.pid)
		}
	}
	return all
}

// becomeShell takes rights away and executes the shell.
func becomeShell() int {
	runtime.LockOSThread()
	told, reports := pipes()
	fail := func(err error) int {
		_ = json.NewEncoder(reports).Encode(report{Error: err.Error()})
		return 1
	}
	var t task
	if err := json.NewDecoder(told).Decode(&t); err != nil {
		return fail(err)
	}
	if err := os.Chdir(t.Dir); err != nil {
		return fail(err)
	}
	writes, network, err := confine(t)
	if err != nil {
		return fail(err)
	}
	if err := json.NewEncoder(reports).Encode(report{Writes: &writes, Network: &network}); err != nil {
		return 1
	}
	return fail(syscall.Exec(t.Shell, []string{filepath.Base(t.Shell), "-c", t.Text}, t.Env))
}
