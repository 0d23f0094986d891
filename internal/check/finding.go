package check

import (
	"fmt"
	"strings"
)

// Severity is how bad a finding is.
type Severity uint8

// The severities, mildest first.
const (
	Info    Severity = iota // worth knowing
	Warning                 // probably not what somebody wanted
	Error                   // does not do what it says, or stops everything
)

// String is the severity in one word.
func (s Severity) String() string { return [...]string{"info", "warning", "error"}[s] }

// MarshalText is the same word, for JSON.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Code names a kind of finding. Codes never change their meaning.
type Code string

// Finding is one mistake, or something worth knowing.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Layer    string   `json:"layer,omitempty"` // label of the layer that it is in
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`   // from 1, 0 if unknown
	Column   int      `json:"column,omitempty"` // from 1, 0 if unknown
	Row      string   `json:"row,omitempty"`    // id of the row that it is about
	Message  string   `json:"message"`
	Remedy   string   `json:"remedy,omitempty"` // one sentence, or a command that works
	// Related are the other places that Message speaks of.
	Related []Related `json:"related,omitempty"`
	// Blocks says that composing or mounting stops here. It is what a change
	// of a profile is refused for.
	Blocks bool `json:"blocks"`

	// Subject tells it from others of its kind at its row, where Message would
	// not do because it has places in it.
	Subject string `json:"-"`
}

// Related is another place that a finding is about.
type Related struct {
	Layer  string `json:"layer,omitempty"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// Identity is the same for the same mistake wherever it stands in its layer and
// wherever its file lies, so that what a change adds can be told from what was
// there.
func (f Finding) Identity() string {
	where, subject := f.Layer, f.Subject
	if where == "" {
		where = f.File
	}
	if subject == "" {
		subject = f.Message
	}
	return strings.Join([]string{string(f.Code), where, f.Row, subject}, "\x00")
}

// Place is file:line:column, without what is unknown.
func (f Finding) Place() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	default:
		return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
}
