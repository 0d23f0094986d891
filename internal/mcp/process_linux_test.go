package mcp

import (
	"context"
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
			for end := time.Now().Add(5 * time.Second); running(group); time.Sleep(time.Millisecond) {
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

// running says whether a group has a process. Dead ones that nobody asked for are
// counted by the system for a moment.
func running(group int) bool { return syscall.Kill(-group, 0) == nil }

func TestStopIsBoundedByItsContext(t *testing.T) {
	session := connected(t, probeServer(t, "deaf"), Options{Grace: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := session.Stop(ctx); err != nil || session.Exit().Signal != "killed" {
		t.Errorf("got %v, %v", err, session.Exit())
	}
}
