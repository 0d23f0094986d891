package launch

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// UsageError is a command line that cannot be understood. It has no class, so
// the exit code is 1.
type UsageError struct {
	// Message is the diagnostic without its "error: ".
	Message string
	// Extra are lines to print below it, as they are.
	Extra []string
	// Global is what our own options said up to the mistake, so that --json
	// covers this error as well.
	Global Global
}

// Error is the one line that the reference prints, "error: " included.
func (e *UsageError) Error() string { return "error: " + e.Message }

// Hint is Extra as one text, for [fault.Hint].
func (e *UsageError) Hint() string { return strings.Join(e.Extra, "\n") }

func usagef(format string, args ...any) *UsageError {
	return &UsageError{Message: fmt.Sprintf(format, args...)}
}

// missingValue and invalidValue are worded as commander words them.
func missingValue(flags string) *UsageError {
	return usagef("option '%s' argument missing", flags)
}

func invalidValue(flags, value, why string) *UsageError {
	return usagef("option '%s' argument '%s' is invalid. %s", flags, value, why)
}

// quoteJSON quotes as JSON.stringify does: it escapes quotes, backslashes and
// control characters, and nothing else.
func quoteJSON(s string) string {
	const hex = "0123456789abcdef"
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\f':
			b.WriteString(`\f`)
		case '\n':
			b.WriteString(`\n`)
		case '\r':
			b.WriteString(`\r`)
		case '\t':
			b.WriteString(`\t`)
		case utf8.RuneError:
			b.WriteString("\uFFFD") // what Node makes of bytes that are no text
		default:
			if r < ' ' {
				b.WriteString(`\u00`)
				b.WriteByte(hex[r>>4])
				b.WriteByte(hex[r&0xf])
				continue
			}
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
