package ui

import (
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

// screen is what a terminal of one line each shows of an output, in which a
// line is taken back by a carriage return and an erasure.
func screen(t *testing.T, text string) []string {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(text, "\n") {
		if i := strings.LastIndex(line, "\r\x1b[K"); i >= 0 {
			line = line[i+len("\r\x1b[K"):]
		}
		if strings.ContainsAny(line, "\r\x1b") {
			t.Errorf("this stays on the screen: %q", line)
		}
		lines = append(lines, line)
	}
	return lines
}

// terminal is a UI on a terminal of some columns.
func terminal(columns int) (u *UI, errs func() string) {
	u, _, buffer := pair()
	u.errTerminal, u.columns = true, func() int { return columns }
	return u, func() string { u.mu.Lock(); defer u.mu.Unlock(); return buffer.String() }
}

func TestProgressIsTakenAway(t *testing.T) {
	u, errs := terminal(40)
	p := u.Progress(func() string { return "resolving: 12 packages" })
	p.draw()
	if got := screen(t, errs()); len(got) != 1 || got[0] != "resolving: 12 packages" {
		t.Errorf("screen %q", got)
	}
	u.Say("waiting for another dsh")
	u.Warn("careful")
	p.draw()
	u.Notice("[x] patch: skipped")
	p.draw()
	p.Stop()
	p.Stop()
	u.Fail(fault.Errorf(fault.Interrupted, "interrupted; nothing was changed"))
	want := "dsh: waiting for another dsh|dsh: warning: careful|dsh: [x] patch: skipped|dsh: interrupted; nothing was changed|"
	if got := strings.Join(screen(t, errs()), "|"); got != want {
		t.Errorf("screen %q", got)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	u, errs := terminal(20)
	p := u.Progress(func() string { return "fetching: ünïcödé and\nmuch more\x1b[2J" })
	p.draw()
	got := screen(t, errs())
	p.Stop()
	if len(got) != 1 || got[0] != "fetching: ünïcödé …" {
		t.Errorf("screen %q", got)
	}
}

func TestProgressWaits(t *testing.T) {
	u, errs := terminal(80)
	p := u.Progress(func() string { return "busy" })
	p.Stop()
	if got := errs(); got != "" {
		t.Errorf("a short run showed %q", got)
	}
	for name, hide := range map[string]func(*UI){"a pipe": func(u *UI) { u.errTerminal = false }, "JSON": func(u *UI) { u.JSON = true }} {
		u, errs := terminal(80)
		hide(u)
		p := u.Progress(func() string { t.Errorf("%s: somebody was asked", name); return "busy" })
		p.Stop()
		if errs() != "" || u.Watched() {
			t.Errorf("%s: %q", name, errs())
		}
	}
}

func TestRateAndTook(t *testing.T) {
	for _, c := range []struct {
		bytes int64
		took  time.Duration
		rate  string
		text  string
	}{
		{45_800_000, 1300 * time.Millisecond, "35.2 MB/s", "1.3s"},
		{1000, time.Second, "1 kB/s", "1.0s"},
		{1000, time.Millisecond, "", "0.0s"},
		{0, time.Second, "", "1.0s"},
		{9e9, 72*time.Second + 400*time.Millisecond, "124.3 MB/s", "1m12s"},
	} {
		if got := Rate(c.bytes, c.took); got != c.rate {
			t.Errorf("%d bytes in %s: %q", c.bytes, c.took, got)
		}
		if got := Took(c.took); got != c.text {
			t.Errorf("%s: %q", c.took, got)
		}
	}
}
