package mcp

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWholeGroupEnds stops what hears nothing, and what left a child behind.
func TestWholeGroupEnds(t *testing.T) {
	for kind, grace := range map[string]time.Duration{"plain": 10 * time.Second, "deaf": 100 * time.Millisecond, "child": 10 * time.Second} {
		t.Run(kind, func(t *testing.T) {
			session := connected(t, probeServer(t, kind), Options{Grace: grace})
			group := session.process.cmd.Process.Pid
			observed(t, session)
			if kind == "child" && !strings.HasPrefix(session.Stderr()[0], "child ") {
				t.Fatalf("it has no child: %q", session.Stderr())
			}
			if err := session.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			for end := time.Now().Add(5 * time.Second); inGroup(group); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("something of its group still runs")
				}
			}
			exit := session.Exit()
			if want := map[string]string{"deaf": "killed"}[kind]; exit == nil || exit.Signal != want {
				t.Errorf("it ended with %+v", exit)
			}
		})
	}
}

// inGroup says whether a group has a process. Dead ones that nobody asked for are
// counted by the system for a moment.
func inGroup(group int) bool { return syscall.Kill(-group, 0) == nil }

// TestKillAll ends what is being connected, with what it started, and lets nothing
// start whose context has ended.
func TestKillAll(t *testing.T) {
	stderr := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := Connect(ctx, probeServer(t, "mute child"), Options{Grace: time.Hour, Line: func(line string) { stderr <- line }})
		failed <- err
	}()
	if line := <-stderr; !strings.HasPrefix(line, "child ") {
		t.Fatal(line)
	}
	var group int
	running.mu.Lock()
	for p := range running.all {
		group = p.cmd.Process.Pid
	}
	running.mu.Unlock()
	cancel()
	KillAll()
	if err := <-failed; err == nil {
		t.Error("it connected")
	}
	for end := time.Now().Add(5 * time.Second); inGroup(group); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("something of its group still runs")
		}
	}
	if _, err := Connect(ctx, probeServer(t, "plain"), Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("after its end, a connection gave %v", err)
	}
	if len(running.all) > 0 {
		t.Errorf("still remembered: %v", running.all)
	}
}

func TestStopIsBoundedByItsContext(t *testing.T) {
	session := connected(t, probeServer(t, "deaf"), Options{Grace: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := session.Stop(ctx); err != nil || session.Exit().Signal != "killed" {
		t.Errorf("got %v, %v", err, session.Exit())
	}
}
