package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
