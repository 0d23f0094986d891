package build

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// MaxLog is how many bytes of output a log gets; what is in the middle of more is
// left out.
const MaxLog = 4 << 20

// tailLines is how many lines of output messages have, and tailBytes how long
// these may be together.
const (
	tailLines = 20
	tailBytes = 8 << 10
)

// output takes what scripts write: to the log as it comes while there is room,
// then into memory, of which the last half of the room goes to the log at the end.
// Scripts write from several processes, so that it is locked.
type output struct {
	mu   sync.Mutex
	log  io.Writer
	err  error  // of the log; the scripts go on
	sent int    // bytes that the log has
	cut  int64  // bytes that came after
	last []byte // the end of all output, up to twice MaxLog/2
}

func newOutput(log io.Writer) *output {
	if log == nil {
		log = io.Discard
	}
	return &output{log: log}
}

const half = MaxLog / 2

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	now := p[:min(len(p), half-o.sent)]
	o.send(now)
	o.sent += len(now)
	o.cut += int64(n - len(now))
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if o.last = append(o.last, p...); len(o.last) > 2*half {
		o.last = append(o.last[:0], o.last[len(o.last)-half:]...)
	}
	return n, nil
}

func (o *output) send(p []byte) {
	if o.err == nil && len(p) > 0 {
		_, o.err = o.log.Write(p)
	}
}

// heading writes what is run into the log, as npm does.
func (o *output) heading(s Script) {
	fmt.Fprintf(o, "> %s: %s\n", s.Event, Shown(s.Text))
}

// close gives the log what was kept for its end, and says what went wrong with it.
func (o *output) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cut > 0 {
		rest := o.last[len(o.last)-int(min(o.cut, half, int64(len(o.last)))):]
		if missing := o.cut - int64(len(rest)); missing > 0 {
			o.send(fmt.Appendf(nil, "\n… %d bytes left out …\n", missing))
		}
		o.send(rest)
		o.cut = 0
	}
	if o.err != nil {
		return fmt.Errorf("writing the log: %w", o.err)
	}
	return nil
}

// tail is the last lines of all output, fit for a terminal.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := o.last[max(0, len(o.last)-tailBytes):]
	lines := bytes.Split(bytes.TrimRight(text, "\r\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-tailLines):]
	for i, line := range lines {
		// What a carriage return went back over is what nobody saw in the end.
		line = bytes.TrimRight(line, "\r")
		lines[i] = []byte(plainText(string(line[bytes.LastIndexByte(line, '\r')+1:])))
	}
	return string(bytes.Join(lines, []byte("\n")))
}

// plainText is a line without control characters, and without the sequences by
// which programs colour their output.
func plainText(line string) string {
	var b strings.Builder
	for rest := line; rest != ""; {
		if skip := sequence(rest); skip > 0 {
			rest = rest[skip:]
			continue
		}
		r, size := utf8.DecodeRuneInString(rest)
		if (r == '\t' || unicode.IsPrint(r)) && (r != utf8.RuneError || size > 1) {
			b.WriteRune(r)
		}
		rest = rest[size:]
	}
	return b.String()
}

// sequence is how long the terminal's control sequence is that a text begins with,
// 0 where there is none: ESC [ … letter, or ESC ] … BEL or ESC \.
func sequence(text string) int {
	if len(text) < 2 || text[0] != 0x1b {
		return 0
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] >= 0x40 && text[i] <= 0x7e {
				return i + 1
			}
		}
		return len(text)
	case ']':
		for i := 2; i < len(text); i++ {
			if text[i] == 0x07 {
				return i + 1
			}
			if text[i] == 0x1b && i+1 < len(text) && text[i+1] == '\\' {
				return i + 2
			}
		}
		return len(text)
	}
	return 2
}
