package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dsh/e2e/npmtest"
)

// underwayKey finds the background command that a script interrupts.
type underwayKey struct{}

// fails CODE COMMAND... is refused for a command that may have come as far as
// the network: whole packages may be new in the store, and the profile's lock
// in the state directory, but nothing half-done in either.
func fails(ts *testscript.TestScript, neg bool, args []string) {
	work := ts.Getenv("WORK")
	before := kept(listing(ts, work))
	exits(ts, neg, args)
	if ts.ReadFile("stderr") == "" {
		ts.Fatalf("nothing on standard error")
	}
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("on standard output:\n%s", out)
	}
	noLitter(ts, false, nil)
	if after := kept(listing(ts, work)); after != before {
		ts.Fatalf("the disk changed from\n%s\nto\n%s", before, after)
	}
}

// kept is a listing without the store, the state directory, and the
// directories that hold nothing but these.
func kept(list string) string {
	var out strings.Builder
	for line := range strings.Lines(list) {
		file, _, _ := strings.Cut(filepath.ToSlash(line), " ")
		inner := strings.HasPrefix(file, "home/store") || strings.HasPrefix(file, "home/state")
		if !inner && file != "home/profiles" {
			out.WriteString(line)
		}
	}
	return out.String()
}

// token SECRET makes the registry answer nobody who does not bring it.
func token(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: token SECRET")
	}
	ts.Value(registryKey{}).(*npmtest.Server).RequireToken(args[0])
}

// underway PATH waits until the registry was asked for a path, and remembers
// the newest background command for ended.
func underway(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: underway PATH")
	}
	commands := ts.BackgroundCmds()
	if len(commands) == 0 {
		ts.Fatalf("nothing runs in the background")
	}
	*ts.Value(underwayKey{}).(**exec.Cmd) = commands[len(commands)-1]
	server := ts.Value(registryKey{}).(*npmtest.Server)
	for deadline := time.Now().Add(30 * time.Second); server.Requests()[args[0]] == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("nobody asked for %s; all requests: %v", args[0], server.Requests())
		}
	}
}

// ended CODE checks the exit code of the command that underway remembered,
// after wait.
func ended(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: ended CODE")
	}
	got := (*ts.Value(underwayKey{}).(**exec.Cmd)).ProcessState.ExitCode()
	if (strconv.Itoa(got) == args[0]) == neg {
		ts.Fatalf("it exited with %d", got)
	}
}

// edit FILE OLD NEW replaces a text in a file.
func edit(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: edit FILE OLD NEW")
	}
	before := ts.ReadFile(args[0])
	after := strings.ReplaceAll(before, args[1], args[2])
	if after == before {
		ts.Fatalf("%s does not hold %q", args[0], args[1])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(after), 0o644))
}

// json [PATH VALUE] checks that standard output is one JSON document, and what
// stands at a path like result.changes.0.name in it.
func jsonOutput(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 0 && len(args) != 2 {
		ts.Fatalf("usage: json [PATH VALUE]")
	}
	text := ts.ReadFile("stdout")
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var at any
	if err := decoder.Decode(&at); err != nil {
		ts.Fatalf("standard output is no JSON: %v\n%s", err, text)
	}
	if _, err := decoder.Token(); err != io.EOF {
		ts.Fatalf("more than one JSON document on standard output:\n%s", text)
	}
	if len(args) == 0 {
		return
	}
	for step := range strings.SplitSeq(args[0], ".") {
		switch v := at.(type) {
		case map[string]any:
			at = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(v) {
				ts.Fatalf("no %s in\n%s", args[0], text)
			}
			at = v[i]
		default:
			ts.Fatalf("no %s in\n%s", args[0], text)
		}
	}
	if (fmt.Sprint(at) == args[1]) == neg {
		ts.Fatalf("%s is %v in\n%s", args[0], at, text)
	}
}
