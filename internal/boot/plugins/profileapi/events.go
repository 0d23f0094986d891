package profileapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// topic is something that a page shows and that can change. An event carries
// all of what is so now, never what changed: one that is left out is lost by
// nobody.
type topic uint32

// The topics.
const (
	rowsChanged topic = 1 << iota
	reloadChanged
	operationChanged
	treeChanged
	serversChanged
	skillsChanged
	logged
)

// Limits of streams of events.
const (
	maxStreams  = 32
	maxLogLines = 256                   // of one stream that wait to be sent; older ones are dropped
	pause       = 50 * time.Millisecond // between two sendings
	heartbeat   = 15 * time.Second      // so that proxies and clients see that the stream lives
	retry       = 2 * time.Second       // after which a browser connects anew
)

// logLine is a line of a row's log.
type logLine struct {
	Path string    `json:"path"`
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// hub tells streams that something changed. What it is they look up when they
// send.
type hub struct {
	mu      sync.RWMutex
	streams map[*stream]bool
}

// stream is one client.
type stream struct {
	changed atomic.Uint32 // topics
	wake    chan struct{}

	mu    sync.Mutex
	lines []logLine
	lost  int // lines that were dropped
}

func newHub() *hub { return &hub{streams: map[*stream]bool{}} }

// join adds a stream, nil if there are enough.
func (h *hub) join() *stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil
	}
	s := &stream{wake: make(chan struct{}, 1)}
	h.streams[s] = true
	return s
}

func (h *hub) leave(s *stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.streams, s)
}

// notify never blocks, and costs next to nothing while nobody listens.
func (h *hub) notify(t topic) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.streams {
		s.notify(t)
	}
}

func (s *stream) notify(t topic) {
	s.changed.Or(uint32(t))
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// log sends a line to all streams.
func (h *hub) log(line logLine) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for s := range h.streams {
		s.mu.Lock()
		if len(s.lines) == maxLogLines {
			s.lines, s.lost = s.lines[1:], s.lost+1
		}
		s.lines = append(s.lines, line)
		s.mu.Unlock()
		s.notify(logged)
	}
}

// logEvent is lines of logs, and how many before them were dropped.
type logEvent struct {
	Lines []logLine `json:"lines"`
	Lost  int       `json:"lost"`
}

func (s *stream) takeLines() logEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := logEvent{s.lines, s.lost}
	s.lines, s.lost = nil, 0
	return e
}

// events answers with a stream of server-sent events.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	s := a.hub.join()
	if s == nil {
		writeError(w, &failure{code: http.StatusServiceUnavailable, class: busyClass, message: fmt.Sprintf("there are %d streams of events already", maxStreams)})
		return
	}
	defer a.hub.leave(s)
	w.Header().Set("Content-Type", "text/event-stream")
	out := sender{w: w, control: http.NewResponseController(w)}
	fmt.Fprintf(w, "retry: %d\n\n", retry.Milliseconds())
	out.send("snapshot", a.snapshot())
	if r.Method == http.MethodHead {
		return
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for out.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-a.end.Done():
			return
		case <-beat.C:
			out.comment()
			continue
		case <-s.wake:
		}
		a.sendChanged(&out, s)
		if !sleep(r.Context(), pause) {
			return
		}
	}
}

// sendChanged sends what changed since it was called last.
func (a *api) sendChanged(out *sender, s *stream) {
	changed := topic(s.changed.Swap(0))
	for _, event := range []struct {
		topic topic
		name  string
		value func() any
	}{
		{rowsChanged, "rows", func() any { return map[string]any{"rows": a.rowViews()} }},
		{reloadChanged, "reload", func() any { return map[string]any{"reload": a.reload()} }},
		{operationChanged, "operation", func() any { return a.operations.last() }},
		{treeChanged, "tree", nothing},
		{serversChanged, "servers", nothing},
		{skillsChanged, "skills", nothing},
		{logged, "log", func() any { return s.takeLines() }},
	} {
		if changed&event.topic != 0 {
			out.send(event.name, event.value())
		}
	}
}

func nothing() any { return struct{}{} }

// sender writes events until one cannot be written.
type sender struct {
	w       http.ResponseWriter
	control *http.ResponseController
	err     error
}

func (s *sender) send(name string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		s.err = err
		return
	}
	s.write("event: " + name + "\ndata: " + string(text) + "\n\n")
}

func (s *sender) comment() { s.write(":\n\n") }

func (s *sender) write(text string) {
	if s.err != nil {
		return
	}
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.control.Flush()
	}
}

// sleep waits, and says whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
