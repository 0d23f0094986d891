//go:build unix

package executable

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/program"
)

// launched is a host with rows that run scripts.
type launched struct {
	*host.Host
	terminal *Terminal
	codes    chan int
	ready    chan struct{}
	out      *os.File
	dir      string
}

// launch mounts a row for each script: a, b, …
func launch(t *testing.T, scripts ...string) *launched {
	t.Helper()
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	l := &launched{terminal: &Terminal{}, codes: make(chan int, 10), ready: make(chan struct{}), out: out, dir: dir}
	start := &Launch{
		Stdin: strings.NewReader(""), Stdout: out, Stderr: out, Environ: os.Environ(), Args: []string{"an arg"},
		Profile: &slot.ProfileContext{Name: "p", Dir: dir, HomeDir: dir, Cwd: dir}, Temp: filepath.Join(dir, "run"),
		Terminal: l.terminal, Exit: func(code int) { l.codes <- code }, Ready: l.ready, Grace: 5 * time.Second,
	}
	plugins := map[string]host.Plugin{}
	patch := "- insert:\n"
	for i, script := range scripts {
		name := string(rune('a' + i))
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		plugins[name] = start.Plugin(program.Program{Package: name, Root: dir, Path: file})
		patch += "  - {id: " + name + ", name: " + name + "}\n"
	}
	patches, err := compose.ParsePatches(compose.Source{File: "test"}, []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	l.Host = host.New(host.Options{Registry: func(name string) (host.Plugin, bool) { p, ok := plugins[name]; return p, ok }})
	if err := errors.Join(l.Apply(t.Context(), compose.Apply([]compose.Layer{{Label: "test", Patches: patches}}, nil).Rows), l.Settled(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Stop(context.Background()); out.Close() })
	return l
}

func (l *launched) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// says waits until a script has written a text.
func (l *launched) says(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(l.text(t), text); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no %q in %q", text, l.text(t))
		}
	}
}

func TestItsCodeIsThatOfTheProfile(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 42": 42, "kill -KILL $$": 137} {
		l := launch(t, "#!/bin/sh\n"+script+"\n")
		close(l.ready)
		if code := <-l.codes; code != want {
			t.Errorf("%s: got %d, want %d", script, code, want)
		}
	}
}

// What a program writes would stand between what the start has to say.
func TestItBeginsWhenAllHasSettled(t *testing.T) {
	l := launch(t, "#!/bin/sh\necho runs with \"$1\"; exit 1\n")
	if !l.terminal.Held() {
		t.Error("the terminal is free before the program runs")
	}
	if text := l.text(t); text != "" {
		t.Errorf("it ran: %q", text)
	}
	close(l.ready)
	<-l.codes
	if text := l.text(t); text != "runs with an arg\n" {
		t.Errorf("got %q", text)
	}
}

func TestAStoppedRowEndsItsProgram(t *testing.T) {
	l := launch(t, "#!/bin/sh\ntrap 'echo goes; exit 3' TERM\necho there; while :; do sleep 0.01; done\n")
	close(l.ready)
	l.says(t, "there")
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if text := l.text(t); text != "there\ngoes\n" {
		t.Errorf("got %q", text)
	}
	if l.terminal.Held() || len(l.codes) > 0 {
		t.Error("the profile was ended by a program that was ended itself, or the terminal is not free")
	}
	entries, err := os.ReadDir(filepath.Join(l.dir, "run"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// It is asked to end once: a second time is impatience to many programs.
func TestAProgramThatDoesNotEndIsKilled(t *testing.T) {
	l := launch(t, "#!/bin/sh\ntrap 'echo asked' TERM\necho $$; while :; do sleep 0.01; done\n")
	close(l.ready)
	l.says(t, "\n")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	l.Stop(ctx)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %s", took)
	}
	pid, rest, _ := strings.Cut(l.text(t), "\n")
	if strings.Count(rest, "asked") != 1 {
		t.Errorf("got %q", rest)
	}
	process, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(5 * time.Second); syscall.Kill(process, 0) == nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it lives")
		}
	}
}

func TestOnlyOneHasTheTerminal(t *testing.T) {
	l := launch(t, "#!/bin/sh\nexit 5\n", "#!/bin/sh\nexit 6\n")
	var failed []error
	for _, s := range l.Rows() {
		if s.Err != nil {
			failed = append(failed, s.Err)
		}
	}
	if len(failed) != 1 || fault.ClassOf(failed[0]) != fault.Composition || !strings.Contains(failed[0].Error(), "the terminal belongs to row ") {
		t.Errorf("got %v", failed)
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	for _, test := range []struct {
		name, script string
		class        fault.Class
		err, hint    string
	}{
		{"no interpreter", "#!/no/such/program -x\n", fault.MissingProgram, "a script for /no/such/program, which is not there", "install /no/such/program"},
		{"no first line", "echo hello\n", fault.Package, "exec format error", "#!/bin/sh"},
		{"nothing", "", fault.Package, "exec format error", "#!/bin/sh"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := launch(t, test.script)
			close(l.ready)
			for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
				if err := l.Rows()[0].Err; err != nil {
					if fault.ClassOf(err) != test.class || !strings.Contains(err.Error(), test.err) || !strings.Contains(fault.Hint(err), test.hint) {
						t.Errorf("got %v of %v (%s)", err, fault.ClassOf(err), fault.Hint(err))
					}
					return
				}
			}
			t.Fatal("the row did not fail")
		})
	}
}
