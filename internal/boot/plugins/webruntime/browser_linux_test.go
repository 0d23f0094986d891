package webruntime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
)

func script(t *testing.T, text string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "opener")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{file, "first"}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	if err := open(script(t, `printf '%s|%s|%s' "$PWD" "$1" "$2" >opened`), "http://x/?token=y&z", dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "opened")); err != nil || string(got) != dir+"|first|http://x/?token=y&z" {
		t.Errorf("got %s, %v", got, err)
	}
	if err := open(script(t, "exit 3"), "http://x", dir); err == nil || !strings.Contains(err.Error(), "opener: exit status 3") || strings.Contains(err.Error(), "http://") {
		t.Errorf("got %v", err)
	}
	if err := open([]string{"no-such-opener"}, "http://x", dir); fault.ClassOf(err) != fault.MissingProgram || !strings.Contains(err.Error(), "no-such-opener is not there") {
		t.Errorf("got %v", err)
	}
	if err := open(script(t, "exit 0"), "http://x", filepath.Join(dir, "none")); err == nil {
		t.Error("it starts in a folder that is not there")
	}
}

func TestNoBrowser(t *testing.T) {
	for _, c := range []struct{ system, variables, want string }{
		{"linux", "DISPLAY", ""},
		{"linux", "WAYLAND_DISPLAY", ""},
		{"linux", "", "no display"},
		{"freebsd", "", "no display"},
		{"darwin", "", ""},
		{"windows", "", ""},
		{"darwin", "SSH_TTY", "SSH_TTY"},
		{"windows", "SSH_CONNECTION", "SSH_CONNECTION"},
		{"linux", "DISPLAY SSH_CONNECTION SSH_TTY", "SSH_CONNECTION"},
	} {
		got := noBrowser(c.system, func(name string) string {
			if strings.Contains(" "+c.variables+" ", " "+name+" ") {
				return "set"
			}
			return ""
		})
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %s: %q", c.system, c.variables, got)
		}
	}
	for system, want := range map[string]string{"windows": "rundll32 url.dll,FileProtocolHandler", "darwin": "open", "linux": "xdg-open"} {
		if got := strings.Join(opener(system), " "); got != want {
			t.Errorf("%s: %s", system, got)
		}
	}
}
