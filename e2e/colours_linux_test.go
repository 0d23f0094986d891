package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a new one: what is written to the second file is read from the
// first, as long as one of the two is open.
func terminal(t *testing.T) (screen, program *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return screen, program
}

// TestColours: output is coloured on a terminal, and only there, and not where
// people do not want it.
func TestColours(t *testing.T) {
	u := user{filepath.Join(t.TempDir(), "home"), ""}
	dir := filepath.Join(u.home, "profiles", "demo")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"dsh": {"profile": {"bundles": ["gone"]}}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	const red = "\x1b[31merror"
	for _, test := range []struct {
		name, variable string
		onTerminal     bool
		coloured       bool
	}{
		{"a terminal", "TERM=xterm", true, true},
		{"NO_COLOR", "NO_COLOR=1", true, false},
		{"a terminal that knows none", "TERM=dumb", true, false},
		{"a pipe", "TERM=xterm", false, false},
	} {
		cmd := u.dsh("config", "check", "--profile", "demo")
		cmd.Env = append(slices.DeleteFunc(cmd.Environ(), func(v string) bool {
			return strings.HasPrefix(v, "NO_COLOR=") || strings.HasPrefix(v, "TERM=")
		}), test.variable)
		var shown bytes.Buffer
		var err error
		if test.onTerminal {
			screen, program := terminal(t)
			cmd.Stdout = program
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			_ = program.Close()
			// The end of a terminal whose other side nobody has open is EIO.
			if _, err := io.Copy(&shown, screen); !errors.Is(err, syscall.EIO) {
				t.Fatalf("%s: %v", test.name, err)
			}
			err = cmd.Wait()
		} else {
			cmd.Stdout = &shown
			err = cmd.Run()
		}
		if cmd.ProcessState.ExitCode() != 2 {
			t.Errorf("%s: %v", test.name, err)
		}
		if text := shown.String(); strings.Contains(text, red) != test.coloured || !test.coloured && strings.Contains(text, "\x1b") {
			t.Errorf("%s: coloured is not %v:\n%q", test.name, test.coloured, text)
		}
	}
}
