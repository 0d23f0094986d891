package profileapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/internal/boot/host"
	"dsh/internal/boot/slot"
	"dsh/internal/fault"
)

// listener is a client of the stream of events.
type listener struct {
	*testing.T
	answer *http.Response
	lines  *bufio.Scanner
}

func (w *world) listen() *listener {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.http.URL+"/api/profile/events", nil)
	must(w.T, err)
	answer, err := http.DefaultClient.Do(r)
	must(w.T, err)
	w.Cleanup(func() { answer.Body.Close() })
	l := &listener{w.T, answer, bufio.NewScanner(answer.Body)}
	l.lines.Buffer(nil, 4<<20)
	return l
}

// next is the next event.
func (l *listener) next() (name string, value any) {
	l.Helper()
	for l.lines.Scan() {
		line := l.lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			must(l.T, json.Unmarshal([]byte(data), &value))
			if strings.Contains(data, "hunter2") {
				l.Errorf("%s shows a secret: %s", name, data)
			}
			return name, value
		}
	}
	l.Fatalf("the stream ended: %v", l.lines.Err())
	return "", nil
}

// until reads up to an event that fits.
func (l *listener) until(name string, fits func(any) bool) any {
	l.Helper()
	for {
		if event, value := l.next(); event == name && fits(value) {
			return value
		}
	}
}

func whatever(any) bool { return true }

func TestEvents(t *testing.T) {
	w := newWorld(t, true)
	l := w.listen()
	if kind := l.answer.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Errorf("content type %q", kind)
	}
	name, value := l.next()
	if name != "snapshot" || at(value, "rows.0.state") != "active" || at(value, "operation") != nil || at(value, "reload.count") != 0.0 {
		t.Fatalf("first %s %v", name, value)
	}

	err := fault.WithHint(errors.New("get http://user:hunter2@host/x"), "try again")
	w.rows.happen(host.Event{Path: "hello", State: host.Failed, Err: err})
	rows := l.until("rows", whatever)
	if at(rows, "rows.0.state") != "failed" || at(rows, "rows.0.error") != "get http://host/x" || at(rows, "rows.0.hint") != "try again" {
		t.Errorf("rows %v", rows)
	}
	w.rows.happen(host.Event{Path: "hello", Time: someTime, Line: strings.Repeat("x", maxLine) + "yy"})
	lines := l.until("log", whatever)
	if at(lines, "lines.0.path") != "hello" || at(lines, "lost") != 0.0 || len(at(lines, "lines.0.text").(string)) != maxLine+len("…") {
		t.Errorf("log %v", lines)
	}
	w.live.reloaded(slot.Reload{Count: 1, Err: errors.New("no list")})
	if reload := l.until("reload", whatever); at(reload, "reload.error") != "no list" || at(reload, "reload.count") != 1.0 {
		t.Errorf("reload %v", reload)
	}
	l.until("tree", whatever)

	w.post("patch", map[string]any{"text": "[]", "revision": w.revision()}, http.StatusOK)
	l.until("tree", whatever)
	w.post("plugins/add", map[string]any{"specs": []string{"is-number@7"}}, http.StatusAccepted)
	op := l.until("operation", func(v any) bool { return at(v, "state") == "done" })
	if at(op, "total") != 1.0 || at(op, "stage") != "linking" {
		t.Errorf("operation %v", op)
	}
	l.until("tree", whatever)
	if name, value := w.listen().next(); name != "snapshot" || at(value, "operation.id") != at(op, "id") {
		t.Errorf("who comes later gets %s %v", name, value)
	}
}

func TestStreamsAreBounded(t *testing.T) {
	w := newWorld(t, true)
	var all []*listener
	for range maxStreams {
		l := w.listen()
		l.next()
		all = append(all, l)
	}
	code, answer := w.ask(http.MethodGet, "events", "")
	if code != http.StatusServiceUnavailable || at(answer, "error.class") != "busy" {
		t.Errorf("one more: %d %v", code, answer)
	}
	all[0].answer.Body.Close()
	// The server sees it soon.
	for end := time.Now().Add(10 * time.Second); w.streams() == maxStreams; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("who left still counts")
		}
	}
	w.listen().next()
}

func (w *world) streams() int {
	w.api.hub.mu.RLock()
	defer w.api.hub.mu.RUnlock()
	return len(w.api.hub.streams)
}

// TestSlowClients fills the queue of a client that does not read.
func TestSlowClients(t *testing.T) {
	h := newHub()
	s := h.join()
	for i := range maxLogLines + 3 {
		h.log(logLine{Path: "x", Text: string(rune('a' + i%26))})
		h.notify(rowsChanged)
	}
	e := s.takeLines()
	if len(e.Lines) != maxLogLines || e.Lost != 3 || e.Lines[0].Text != "d" || len(s.wake) != 1 {
		t.Errorf("%d lines, %d lost, from %q, %d wakes", len(e.Lines), e.Lost, e.Lines[0].Text, len(s.wake))
	}
	if got := s.changed.Load(); got != uint32(rowsChanged|logged) {
		t.Errorf("changed %b", got)
	}
	if e := s.takeLines(); len(e.Lines) != 0 || e.Lost != 0 {
		t.Error("lines are sent twice")
	}
	h.leave(s)
	h.log(logLine{})
	if e := s.takeLines(); len(e.Lines) != 0 {
		t.Error("who left gets lines")
	}
}

// TestStages walks an operation through its stages.
func TestStages(t *testing.T) {
	op := &operation{notify: func(topic) {}, view: Operation{State: running}}
	e := op.events()
	var seen []string
	see := func() { v := op.shown(); seen = append(seen, strings.TrimSpace(v.Stage+" "+v.Detail)) }
	for _, step := range []func(){
		func() {}, func() { e.Waiting("process 12") }, func() { e.Resolving("a") }, func() { e.Resolving("b") }, func() { e.Fetching(0, 2) },
		func() { e.Linking(5) }, func() { e.Fetching(2, 2) }, func() { e.Building("c@1") },
	} {
		step()
		see()
	}
	want := []string{"starting", "waiting process 12", "resolving a", "resolving b", "fetching", "fetching", "linking", "building c@1"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q", seen)
	}
}
