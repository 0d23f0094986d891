package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// appears GLOB TEXT waits until a file that the pattern fits holds a text, and
// remembers the newest background command for ended.
func appears(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: appears GLOB TEXT")
	}
	if commands := ts.BackgroundCmds(); len(commands) > 0 {
		*ts.Value(underwayKey{}).(**exec.Cmd) = commands[len(commands)-1]
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		files, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), args[1]) {
				return
			}
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no file %s holds %q: %q", args[0], args[1], files)
		}
	}
}

// gone FILE waits until none of the processes runs whose ids are in a file.
func gone(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 || neg {
		ts.Fatalf("usage: gone FILE")
	}
	ids := 0
	for word := range strings.FieldsSeq(ts.ReadFile(args[0])) {
		id, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		ids++
		for deadline := time.Now().Add(10 * time.Second); runs(id); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				ts.Fatalf("process %d still runs", id)
			}
		}
	}
	if ids == 0 {
		ts.Fatalf("%s has no process ids", args[0])
	}
}

// runs says whether a process is there and has not ended: a dead one that nobody
// asked for is none.
func runs(id int) bool {
	process, err := os.FindProcess(id)
	if err != nil || process.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", id))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
