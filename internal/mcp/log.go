package mcp

import (
	"bytes"
	"strings"
	"sync"
	"unicode/utf8"
)

// The bounds of what is kept of a standard error.
const (
	keptLines  = 200
	lineLength = 4096
)

// tail keeps the last lines of what is written to it.
type tail struct {
	mu    sync.Mutex
	lines []string
	rest  []byte // of a line that has not ended
	line  func(string)
	clean func(string) string
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		t.rest = append(t.rest, part[:min(len(part), max(0, lineLength-len(t.rest)))]...)
		if end < 0 {
			break
		}
		t.keep()
		rest = rest[end+1:]
	}
	return len(p), nil
}

// keep makes the line that has been gathered one of the last. mu is held.
func (t *tail) keep() {
	text := strings.TrimRight(strings.ToValidUTF8(string(t.rest), string(utf8.RuneError)), " \t\r")
	t.rest = t.rest[:0]
	if text == "" {
		return
	}
	text = t.clean(text)
	if len(t.lines) == keptLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, text)
	if t.line != nil {
		t.line(text)
	}
}

// last are the last n lines.
func (t *tail) last(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rest) > 0 {
		t.keep()
	}
	return append([]string{}, t.lines[max(0, len(t.lines)-n):]...)
}
