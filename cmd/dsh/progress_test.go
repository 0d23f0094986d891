package main

import (
	"strings"
	"testing"
	"time"

	"dsh/internal/install"
	"dsh/internal/ui"
)

// progressFor is a progress that began some time ago.
func progressFor(ago time.Duration) *installProgress {
	return &installProgress{began: time.Now().Add(-ago)}
}

func TestProgressLine(t *testing.T) {
	p := progressFor(2 * time.Second)
	is := func(want string) {
		t.Helper()
		if got := p.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	is("")
	p.Set("checking %s", "a file")
	is("checking a file")
	events := p.events()
	events.Resolving("a")
	is("resolving 1 package")
	events.Resolving("b")
	is("resolving 2 packages")
	events.Fetching(0, 3)
	is("fetching 0 of 3 packages")
	p.receiving.Store(int64(time.Second)) // one second ago
	events.Received(2_500_000)
	events.Fetching(1, 3)
	if got := p.line(); !strings.HasPrefix(got, "fetching 1 of 3 packages, 2.5 MB, 2.") || !strings.HasSuffix(got, " MB/s") {
		t.Errorf("%q", got)
	}
	events.Linking(30)
	if got := p.line(); !strings.HasPrefix(got, "fetching 1 of 3 packages") {
		t.Errorf("%q", got)
	}
	events.Fetching(3, 3)
	is("linking 30 packages")
}

func TestSummary(t *testing.T) {
	tree := install.TreeChange{Added: 450, Removed: 1}
	for name, c := range map[string]struct {
		took     time.Duration
		received int64
		tree     install.TreeChange
		watched  bool
		want     string
	}{
		"a short run":                   {ui.Quiet / 2, 45_800_000, tree, true, ""},
		"watched":                       {1300 * time.Millisecond, 45_800_000, tree, true, "added 450 packages, removed 1 in 1.3s (fetched 45.8 MB)"},
		"watched, from the store":       {1300 * time.Millisecond, 0, install.TreeChange{Changed: 1}, true, "changed 1 package in 1.3s"},
		"watched, nothing to do":        {700 * time.Millisecond, 0, install.TreeChange{}, true, "nothing to change in 0.7s"},
		"in a pipe":                     {1300 * time.Millisecond, 45_800_000, tree, false, "added 450 packages, removed 1 in 1.3s (fetched 45.8 MB)"},
		"in a pipe, from the store":     {9 * time.Second, 0, tree, false, ""},
		"in a pipe, with little to get": {9 * time.Second, muchFetched - 1, tree, false, ""},
	} {
		p := progressFor(c.took)
		p.events().Received(c.received)
		if got := p.summary(c.tree, c.watched); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
