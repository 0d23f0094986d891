package ui

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Quiet is how long a run may take before it shows that it is alive.
const Quiet = 500 * time.Millisecond

// Progress is one line on a terminal's standard error that says what is
// going on. Elsewhere it does nothing. What else is written goes above it.
type Progress struct {
	ui    *UI
	text  func() string
	shown bool // under ui.mu
	stop  chan struct{}
	once  sync.Once
	done  sync.WaitGroup
}

// Progress begins a progress line that says what text returns, asked anew each
// time it is drawn; "" shows nothing. Stop ends it.
func (u *UI) Progress(text func() string) *Progress {
	p := &Progress{ui: u, text: text, stop: make(chan struct{})}
	if u.Watched() {
		u.mu.Lock()
		u.progress = p
		u.mu.Unlock()
		p.done.Go(p.run)
	}
	return p
}

// Watched reports whether somebody sees what goes to standard error while it
// is written.
func (u *UI) Watched() bool { return u.errTerminal && !u.JSON }

func (p *Progress) run() {
	timer := time.NewTimer(Quiet)
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
	text := clip(clean(p.text()), p.ui.width()-1)
	p.ui.mu.Lock()
	defer p.ui.mu.Unlock()
	if text == "" {
		p.clear()
		return
	}
	fmt.Fprintf(p.ui.Err, "\r\x1b[K%s", text)
	p.shown = true
}

// clear takes the line away. The caller holds ui.mu.
func (p *Progress) clear() {
	if p != nil && p.shown {
		fmt.Fprint(p.ui.Err, "\r\x1b[K")
		p.shown = false
	}
}

// Stop takes the line away. It may be called twice.
func (p *Progress) Stop() {
	p.once.Do(func() { close(p.stop) })
	p.done.Wait()
	p.ui.mu.Lock()
	defer p.ui.mu.Unlock()
	p.clear()
	if p.ui.progress == p {
		p.ui.progress = nil
	}
}

// clip cuts a line where a terminal of that width would break it: what was
// broken could not be taken away again.
func clip(text string, width int) string {
	text = strings.NewReplacer("\n", " ", "\t", " ").Replace(text)
	if width <= 0 || utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:width-1]) + "…"
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

// Rate shows how fast bytes come for people: "3.2 MB/s". It is "" for a time in
// which nothing can be measured.
func Rate(n int64, took time.Duration) string {
	if took < 50*time.Millisecond || n <= 0 {
		return ""
	}
	return Bytes(int64(float64(n)/took.Seconds())) + "/s"
}

// Took shows how long something took for people: "0.6s", "1m12s".
func Took(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
