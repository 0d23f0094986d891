// Package ui is what a person sees: messages, errors with their hints,
// progress, tables and colour. With cmd/dsh it is the only package that knows
// a terminal.
//
// It decides how things look and never what is said: texts come from the
// packages that know the facts.
//
// The rules: what was asked for goes to standard output, everything else to
// standard error behind "dsh: ", without a capital or a full stop. Colour and
// progress appear on terminals only, colour never where NO_COLOR is set or
// TERM is dumb.
package ui

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"dsh/internal/fault"
)

// UI writes to the two streams of one run.
type UI struct {
	Out, Err io.Writer
	JSON     bool // results and errors are one JSON document on Out

	errTerminal bool
	colour      bool // on Err
	outColour   bool
	warnings    []string   // kept for the JSON document
	in          io.Reader  // of answers
	answers     bool       // in is a terminal
	columns     func() int // of the terminal behind Err; nil where there is none

	mu       sync.Mutex // of Err, where others write above the progress line
	progress *Progress
}

// New looks at the streams and the environment once.
func New(stdout, stderr io.Writer, getenv func(string) string) *UI {
	u := &UI{Out: stdout, Err: stderr, errTerminal: isTerminal(stderr)}
	u.errTerminal = u.errTerminal && getenv("TERM") != "dumb"
	u.colour = u.errTerminal && getenv("NO_COLOR") == ""
	if f, ok := stderr.(interface{ Fd() uintptr }); ok {
		u.columns = func() int {
			width, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return width
		}
	}
	u.outColour = isTerminal(stdout) && getenv("TERM") != "dumb" && getenv("NO_COLOR") == ""
	return u
}

// isTerminal is true of files that are terminals, also behind a writer that has
// the method Fd of one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// width is how many columns the terminal has; 0 where that is not known.
func (u *UI) width() int {
	if u.columns == nil {
		return 0
	}
	return u.columns()
}

// news writes to standard error, above the progress line.
func (u *UI) news(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.progress.clear()
	fmt.Fprintf(u.Err, format, args...)
}

// Colours of output.
const (
	yellow = "\x1b[33m"
	red    = "\x1b[31m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	reset  = "\x1b[0m"
)

// Red, Yellow, Bold and Dim are text for standard output, coloured where that
// is a terminal which shows colours.
func (u *UI) Red(text string) string    { return u.paintOut(red, text) }
func (u *UI) Yellow(text string) string { return u.paintOut(yellow, text) }
func (u *UI) Bold(text string) string   { return u.paintOut(bold, text) }
func (u *UI) Dim(text string) string    { return u.paintOut(dim, text) }

func (u *UI) paintOut(colour, text string) string {
	if !u.outColour {
		return text
	}
	return colour + text + reset
}

// Clean is text from files and packages, made fit for a terminal: characters that
// would do something there are visible and do nothing.
func Clean(text string) string { return clean(text) }

func (u *UI) paint(colour, text string) string {
	if !u.colour {
		return text
	}
	return colour + text + reset
}

// clean makes visible what packages could otherwise use to write what they like on
// a terminal: control characters, what turns the direction of writing, breaks lines
// or cannot be seen, and bytes that are no text.
func clean(text string) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, acts) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "\\x%02x", text[0])
		case acts(r):
			fmt.Fprintf(&b, "\\u%04x", r)
		default:
			b.WriteRune(r)
		}
		text = text[size:]
	}
	return b.String()
}

// acts reports whether a character does something to a terminal or to the
// characters beside it, in place of being seen. The joiners are let through, for
// words of some languages need them.
func acts(r rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case '\u00ad', '\u200b', '\u2060', '\ufeff': // seen nowhere
		return true
	}
	return unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

// Say writes one line of news to standard error.
func (u *UI) Say(format string, args ...any) {
	if !u.JSON {
		u.news("dsh: %s\n", clean(fault.Discreet(fmt.Sprintf(format, args...))))
	}
}

// Warn writes one warning.
func (u *UI) Warn(text string) {
	text = fault.Discreet(text)
	if u.JSON {
		u.warnings = append(u.warnings, text)
		return
	}
	u.news("dsh: %s %s\n", u.paint(yellow, "warning:"), clean(text))
}

// Notice writes a line whose words other programs know, as they are.
func (u *UI) Notice(text string) {
	text = fault.Discreet(text)
	if u.JSON {
		u.warnings = append(u.warnings, text)
		return
	}
	u.news("dsh: %s\n", clean(text))
}

// Result writes the result of a command: value as JSON, or what text prints.
func (u *UI) Result(value any, text func(w io.Writer)) error {
	return u.Verdict(true, value, text)
}

// Verdict is Result for a command that looks whether something is good.
func (u *UI) Verdict(good bool, value any, text func(w io.Writer)) error {
	if !u.JSON {
		text(u.Out)
		return nil
	}
	return u.document(map[string]any{"ok": good, "result": value})
}

// FailUsage writes a command line's mistake in the launcher's own words,
// which begin with "error: ", and the lines that go with it.
func (u *UI) FailUsage(text string, extra []string) {
	if u.JSON {
		u.fail(fault.Other, strings.TrimPrefix(text, "error: "), strings.Join(extra, "\n"))
		return
	}
	fmt.Fprintln(u.Err, text)
	for _, line := range extra {
		fmt.Fprintln(u.Err, line)
	}
}

// Fail writes what went wrong and the one hint that goes with it. The text of
// an interrupted run says so in plain words.
func (u *UI) Fail(err error) {
	class, hint := fault.ClassOf(err), fault.Discreet(fault.Hint(err))
	text := fault.Discreet(err.Error())
	if u.JSON {
		u.fail(class, text, hint)
		return
	}
	first, rest, more := strings.Cut(strings.TrimPrefix(clean(text), "dsh: "), "\n")
	fmt.Fprintf(u.Err, "dsh: %s\n", u.paint(red, first))
	if more {
		fmt.Fprintln(u.Err, rest)
	}
	if hint != "" {
		fmt.Fprintf(u.Err, "dsh: hint: %s\n", clean(hint))
	}
}

func (u *UI) fail(class fault.Class, text, hint string) {
	u.document(map[string]any{
		"ok":    false,
		"error": map[string]any{"class": class.String(), "message": text, "hint": hint},
	})
}

// document writes members and the warnings so far as one JSON object.
func (u *UI) document(members map[string]any) error {
	members["warnings"] = append([]string{}, u.warnings...)
	enc := json.NewEncoder(u.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(members)
}
