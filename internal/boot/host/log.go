package host

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// What is kept of the log of one row.
const (
	maxLines = 200
	maxLine  = 4 << 10 // bytes
)

// maxTold is how many events may wait to be told before lines of logs are left
// out; new states are not.
const maxTold = 4096

// Event is a row's new state, or a line of its log.
type Event struct {
	Time    time.Time
	Path    string
	Row     RowSpec // as it was composed
	State   State
	Missing []string // of a waiting row
	Err     error    // of a failed row
	Line    string   // of the log; "" for a new state
	// Clock is a logical time. It is greater than that of all that the event
	// waited for, and where rows do the same it is the same, however long they
	// take.
	Clock int
	index int // of the row in the tree
}

// Line is a line of a row's log.
type Line struct {
	Time time.Time
	Text string
}

// SortEvents puts events into an order that follows from the tree and from what
// the rows did, and not from how long they took: what waited for something
// stands after it, and rows that have nothing to do with each other stand in
// the order of the tree. Only rows that could provide the same service, which is
// a mistake in the tree, may be in each other's way in more than one order.
func SortEvents(events []Event) {
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(cmp.Compare(a.Clock, b.Clock), cmp.Compare(a.index, b.index), cmp.Compare(a.Path, b.Path))
	})
}

// tell gives an event to Options.Event, which one goroutine at a time calls.
func (h *Host) tell(e *entry, event Event) {
	if h.options.Event == nil {
		return
	}
	event.Path, event.Row, event.index = e.plan.Path, e.plan.RowSpec, e.index
	if event.Time.IsZero() {
		event.Time = e.since
	}
	if event.Clock == 0 {
		event.Clock = e.clock
	}
	h.events = append(h.events, event)
	h.queued++
	if !h.telling {
		h.telling = true
		go h.tellAll()
	}
}

func (h *Host) tellAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.events) > 0 {
		events := h.events
		h.events = nil
		h.mu.Unlock()
		for _, event := range events {
			h.options.Event(event)
		}
		h.mu.Lock()
		h.told += len(events)
		h.wake()
	}
	h.telling = false
}

// tellMissing tells, when nothing moves, what the waiting rows wait for.
func (h *Host) tellMissing() {
	clock := h.clock + 1
	for _, e := range h.entries {
		if e.state != Waiting {
			continue
		}
		if missing := h.missing(e); !slices.Equal(missing, e.missing) {
			e.missing = missing
			h.tell(e, Event{Time: time.Now(), State: Waiting, Missing: missing, Clock: clock})
			h.clock = clock
		}
	}
}

// line adds text to the log of a row, line by line.
func (h *Host) line(e *entry, text string) {
	now := time.Now()
	for line := range strings.Lines(text) {
		line = cut(strings.TrimRight(line, "\r\n"))
		if line == "" {
			continue
		}
		e.log.add(Line{now, line})
		if len(h.events) < maxTold {
			h.tell(e, Event{Time: now, State: e.state, Line: line})
		}
	}
}

// cut is text without what is too long.
func cut(text string) string {
	if len(text) <= maxLine {
		return text
	}
	end := maxLine
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// ring is the last lines of a log.
type ring struct {
	lines []Line
	next  int // the oldest, once there are as many as are kept
}

func (r *ring) add(line Line) {
	if len(r.lines) < maxLines {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.next] = line
	r.next = (r.next + 1) % maxLines
}

// all is the lines, oldest first.
func (r *ring) all() []Line { return slices.Concat(r.lines[r.next:], r.lines[:r.next]) }
