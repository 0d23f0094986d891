package ui

import (
	"fmt"
	"sync"
	"time"
)

// quiet is how long a run may take before it shows that it is alive.
const quiet = 500 * time.Millisecond

// Progress is one line on a terminal's standard error that says what is
// going on. Elsewhere it does nothing.
type Progress struct {
	ui    *UI
	mu    sync.Mutex
	text  string
	shown bool
	stop  chan struct{}
	done  sync.WaitGroup
}

// Progress begins a progress line; Stop ends it.
func (u *UI) Progress() *Progress {
	p := &Progress{ui: u, stop: make(chan struct{})}
	if u.errTerminal && !u.JSON {
		p.done.Go(p.run)
	}
	return p
}

// Set says what is going on now.
func (p *Progress) Set(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = fmt.Sprintf(format, args...)
}

func (p *Progress) run() {
	timer := time.NewTimer(quiet)
	defer timer.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-timer.C:
			p.draw()
			timer.Reset(100 * time.Millisecond)
		}
	}
}

func (p *Progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.text != "" {
		fmt.Fprintf(p.ui.Err, "\r\x1b[K%s", p.text)
		p.shown = true
	}
}

// Stop takes the line away. It may be called twice.
func (p *Progress) Stop() {
	select {
	case <-p.stop:
		return
	default:
		close(p.stop)
	}
	p.done.Wait()
	if p.shown {
		fmt.Fprint(p.ui.Err, "\r\x1b[K")
	}
}

// Bytes shows a size for people: "3.2 MB".
func Bytes(n int64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1f GB", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.0f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d bytes", n)
}
