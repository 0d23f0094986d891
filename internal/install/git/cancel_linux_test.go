package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"dsh/e2e/gittest"
)

// What git began ends with it. The processes are counted in /proc.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	w.server.Behave("o/r", gittest.Behaviour{Hangs: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := w.client.Refs(ctx, w.url("o/r"))
		ended <- err
	}()
	for len(w.server.Requests()) == 0 {
		time.Sleep(time.Millisecond)
	}
	home, err := w.client.home()
	if err != nil {
		t.Fatal(err)
	}
	if alive := processesIn(t, home); alive == 0 {
		t.Error("no process was found; the test looks in the wrong place")
	}
	began := time.Now()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("it took %v", took)
	}
	for deadline := time.Now().Add(5 * time.Second); processesIn(t, home) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("processes live on")
		}
	}
	// Who asks later is not told that somebody else gave up.
	w.server.Behave("o/r", gittest.Behaviour{})
	w.commit("o/r", "", plugin)
	if _, err := w.client.Refs(t.Context(), w.url("o/r")); err != nil {
		t.Error(err)
	}
}

// processesIn counts the processes that work in a directory.
func processesIn(t *testing.T, dir string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	return len(slices.DeleteFunc(found, func(link string) bool {
		at, err := os.Readlink(link)
		return err != nil || at != dir
	}))
}
