package e2e

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// person is somebody at a terminal: who types, and reads what programs write.
type person struct {
	keys  *os.File
	lines chan string
	seen  []string
}

func (term *person) types(t *testing.T, text string) {
	t.Helper()
	if _, err := term.keys.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// says waits for a line with the text.
func (term *person) says(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		select {
		case line, ok := <-term.lines:
			if !ok {
				t.Fatalf("no %q in\n%s", text, strings.Join(term.seen, "\n"))
			}
			term.seen = append(term.seen, line)
			if strings.Contains(line, text) {
				return
			}
		case <-deadline:
			t.Fatalf("no %q in\n%s", text, strings.Join(term.seen, "\n"))
		}
	}
}

// onTerminal starts a profile on a terminal of its own, with a program that is a
// script.
func onTerminal(t *testing.T, script string, args ...string) (*person, *exec.Cmd) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"profiles/mine/package.json":                   `{"dsh": {"profile": {"bundles": ["tool"]}}}`,
		"profiles/mine/node_modules/tool/package.json": `{"name": "tool", "dsh": {"bundle": {"patch": "rows.yml"}, "plugin": {"exec": "./run"}}}`,
		"profiles/mine/node_modules/tool/rows.yml":     "- insert: [{id: tool, name: tool}, {id: hmr, name: '@deepseek-ai/dsh-hmr', config: {root: [], debounce: 1}}]\n",
		"profiles/mine/node_modules/tool/run":          "#!/bin/sh\n" + script,
		"profiles/idle/package.json":                   "{}",
		"profiles/idle/cordis.patch.yml":               "- insert: [{id: scope, name: dsh:scope}]\n",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	screen, side := terminal(t)
	term := &person{keys: screen, lines: make(chan string, 1000)}
	go func() {
		defer close(term.lines)
		for scanner := bufio.NewScanner(screen); scanner.Scan(); {
			term.lines <- strings.TrimRight(scanner.Text(), "\r")
		}
	}()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DSH_HOME="+dir, "TERM=xterm", "DSH_LOG=debug")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, side, side
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	side.Close()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return term, cmd
}

func exitCode(cmd *exec.Cmd) int {
	cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// Ctrl-C reaches all programs of the terminal at once. A program that makes
// something else of it than its end goes on, and dsh with it.
func TestCtrlCIsForTheProgramOfTheTerminal(t *testing.T) {
	term, cmd := onTerminal(t, "trap 'echo caught' INT\ntest -t 0 && test -t 1 && echo on a terminal\nuntil [ \"$line\" ]; do read line; done; echo got $line\nexit 3\n", "mine")
	term.says(t, "on a terminal")
	term.types(t, "\x03")
	term.says(t, "caught")
	term.types(t, "\x03")
	term.says(t, "caught")
	term.types(t, "a line\n")
	term.says(t, "got a line")
	if code := exitCode(cmd); code != 3 {
		t.Errorf("exit code %d\n%s", code, strings.Join(term.seen, "\n"))
	}
}

func TestAProgramThatCtrlCEnds(t *testing.T) {
	term, cmd := onTerminal(t, "echo there\nwhile :; do sleep 0.01; done\n", "mine")
	term.says(t, "there")
	term.types(t, "\x03")
	if code := exitCode(cmd); code != 130 {
		t.Errorf("exit code %d\n%s", code, strings.Join(term.seen, "\n"))
	}
}

// What dsh has to say while a program has the screen, it says when that has
// ended.
func TestWarningsWaitForTheEndOfTheProgram(t *testing.T) {
	term, cmd := onTerminal(t, "echo there\nread line\necho ends\n", "mine")
	term.says(t, "there")
	patch := filepath.Join(cmd.Dir, "profiles", "mine", "cordis.patch.yml")
	if err := os.WriteFile(patch, []byte("no list\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	term.says(t, "[hmr] the files do not apply") // what was asked for is shown at once
	term.types(t, "\n")
	term.says(t, "ends")
	term.says(t, "the files of mine do not apply, and what runs stays")
	if code := exitCode(cmd); code != 0 {
		t.Errorf("exit code %d\n%s", code, strings.Join(term.seen, "\n"))
	}
}

func TestAProfileOnATerminalSaysThatItRuns(t *testing.T) {
	term, cmd := onTerminal(t, "", "idle")
	term.says(t, "dsh: idle runs with 1 row; Ctrl-C ends it")
	term.types(t, "\x03")
	if code := exitCode(cmd); code != 130 {
		t.Errorf("exit code %d\n%s", code, strings.Join(term.seen, "\n"))
	}
}
