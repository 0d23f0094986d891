package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"dsh/internal/install"
	"dsh/internal/ui"
)

// installProgress shows on a progress line how an install proceeds, and counts
// what it brought in.
type installProgress struct {
	*ui.Progress
	began     time.Time
	doing     atomic.Pointer[string] // what comes before the install, or in its place
	asked     atomic.Int64           // packages of which a registry was asked
	fetched   atomic.Int64           // packages
	total     atomic.Int64           // packages that are to be fetched
	received  atomic.Int64           // bytes
	receiving atomic.Int64           // when the first of them came, in nanoseconds since began
	linking   atomic.Int64           // packages
	builds    atomic.Pointer[string] // the package whose scripts run
}

func (r *runner) installing() *installProgress {
	p := &installProgress{began: time.Now()}
	p.Progress = r.ui.Progress(p.line)
	return p
}

// Set says what is done while nothing is installed.
func (p *installProgress) Set(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.doing.Store(&text)
}

// events is what an install tells of itself. Functions are called from many
// goroutines, and often: they count, and the words are made when a line is drawn.
func (p *installProgress) events() install.Events {
	return install.Events{
		Resolving: func(string) { p.asked.Add(1) },
		Fetching: func(done, all int) {
			p.fetched.Store(int64(done))
			p.total.Store(int64(all))
		},
		Received: func(n int64) {
			p.receiving.CompareAndSwap(0, int64(max(1, time.Since(p.began))))
			p.received.Add(n)
		},
		Linking:  func(n int) { p.linking.Store(int64(n)) },
		Building: p.building,
	}
}

// line is what there is to see now.
func (p *installProgress) line() string {
	fetching := p.total.Load() > 0 || p.received.Load() > 0
	if pkg := p.builds.Load(); pkg != nil {
		return "running the scripts of " + *pkg
	}
	switch n := p.linking.Load(); {
	case n > 0 && p.fetched.Load() >= p.total.Load():
		return fmt.Sprintf("linking %s", counted(int(n), "package"))
	case fetching:
		parts := []string{}
		if all := p.total.Load(); all > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", p.fetched.Load(), counted(int(all), "package")))
		}
		if n := p.received.Load(); n > 0 {
			parts = append(parts, ui.Bytes(n))
			took := time.Since(p.began) - time.Duration(p.receiving.Load())
			if rate := ui.Rate(n, took); rate != "" {
				parts = append(parts, rate)
			}
		}
		return "fetching " + strings.Join(parts, ", ")
	case p.asked.Load() > 0:
		return "resolving " + counted(int(p.asked.Load()), "package")
	}
	if text := p.doing.Load(); text != nil {
		return *text
	}
	return ""
}

// muchFetched is how many bytes are worth a line where nobody watches.
const muchFetched = 1_000_000

// summary is one line about the whole of an install that somebody had to wait
// for, "" about any other. Where nobody watched it is about the network alone.
func (p *installProgress) summary(tree install.TreeChange, watched bool) string {
	took, fetched := time.Since(p.began), p.received.Load()
	if took < ui.Quiet || !watched && fetched < muchFetched {
		return ""
	}
	done := "nothing to change"
	if parts := treeParts(tree); len(parts) > 0 {
		done = strings.Join(parts, ", ")
	}
	line := fmt.Sprintf("%s in %s", done, ui.Took(took))
	if fetched > 0 {
		line += fmt.Sprintf(" (fetched %s)", ui.Bytes(fetched))
	}
	return line
}

// treeParts is "added 3 packages", "changed 1" and "removed 2".
func treeParts(t install.TreeChange) []string {
	var parts []string
	for _, part := range []struct {
		did string
		n   int
	}{{"added", t.Added}, {"changed", t.Changed}, {"removed", t.Removed}} {
		switch {
		case part.n == 0:
		case len(parts) == 0:
			parts = append(parts, part.did+" "+counted(part.n, "package"))
		default:
			parts = append(parts, fmt.Sprintf("%s %d", part.did, part.n))
		}
	}
	return parts
}
