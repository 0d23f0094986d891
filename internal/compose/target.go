package compose

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Target is a place in the tree: a row, a key of the row, or a path in its
// config.
type Target struct {
	ID     string   // as people write it
	Row    *Map     // nil if no row has the id
	RowKey string   // "disabled" for ROW:disabled; "" else
	Path   []string // in the config; empty: the row itself, or the whole row key
}

// TargetError is a text that names no place.
type TargetError struct {
	Text    string // the whole text
	Column  int    // where it goes wrong, in bytes from 1
	Problem string
	Remedy  string // how to write it, or ""
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("reading %s: column %d: %s", quoteForMessage(e.Text), e.Column, e.Problem)
}

// Hint is the remedy.
func (e *TargetError) Hint() string { return e.Remedy }

// howToQuote is the remedy for signs that mean something in a target.
const howToQuote = `quote a part that holds . : = or a space: ROW."a.b".KEY`

// ParseTarget reads ROW, ROW.KEY.KEY or ROW:KEY. The longest id that find knows
// and that ends at a dot, at a colon or with the text is the row's. An id or
// key with a dot, colon, equals sign or space may be quoted: "a.b" with the
// escapes of JSON, 'a.b' with doubled single quotes. Where no row is found, the
// id ends at the first dot behind a scope, or at the colon before the key of a
// row. find may be [Tree.FindText]. The error is a *TargetError.
func ParseTarget(text string, find func(string) *Map) (Target, error) {
	s := targetScanner{text: text}
	t, err := s.row(find)
	if err != nil {
		return Target{}, err
	}
	colon := s.i < len(text) && text[s.i] == ':'
	for s.i < len(text) {
		s.i++ // the dot or colon
		start := s.i
		key, quoted, err := s.part(".")
		if err != nil {
			return Target{}, err
		}
		if key == "" && !quoted {
			return Target{}, s.fail(start, "a key is missing", `write the empty key as ""`)
		}
		if colon && s.i < len(text) {
			return Target{}, s.fail(s.i, "nothing can stand behind the key of a row", "write a path in the config behind a dot: ROW.KEY.KEY")
		}
		if colon {
			t.RowKey = key
		} else {
			t.Path = append(t.Path, key)
		}
	}
	return t, nil
}

// CutAssignment cuts TARGET=VALUE at the first equals sign that is in no
// quotes of the target. VALUE is YAML, see [ParseValue]. The error is a
// *TargetError.
func CutAssignment(text string) (target, value string, err error) {
	s := targetScanner{text: text}
	for {
		if _, _, err := s.part(".:="); err != nil {
			return "", "", err
		}
		switch {
		case s.i == len(text):
			return "", "", s.fail(s.i, "no = stands behind the target", "write ROW.KEY=VALUE")
		case text[s.i] != '=':
			s.i++
		case s.i == 0:
			return "", "", s.fail(0, "no target stands before the =", "write ROW.KEY=VALUE")
		default:
			return text[:s.i], text[s.i+1:], nil
		}
	}
}

// String is the target as [ParseTarget] reads it, with quotes where they may
// be needed. With a row it reads back as the same target, unless another row has
// an id that is this one with keys behind it.
func (t Target) String() string {
	var b strings.Builder
	writePart(&b, t.ID)
	if t.RowKey != "" {
		b.WriteByte(':')
		writePart(&b, t.RowKey)
	}
	for _, key := range t.Path {
		b.WriteByte('.')
		writePart(&b, key)
	}
	return b.String()
}

func writePart(b *strings.Builder, part string) {
	if part != "" && !strings.ContainsFunc(part, func(c rune) bool {
		return c <= ' ' || c == 0x7F || strings.ContainsRune(`.:="'`, c)
	}) {
		b.WriteString(part)
		return
	}
	b.Write(appendJSONString(nil, part))
}

// targetScanner reads a target from the front.
type targetScanner struct {
	text string
	i    int // what is read
}

func (s *targetScanner) fail(at int, problem, remedy string) error {
	return &TargetError{Text: s.text, Column: at + 1, Problem: problem, Remedy: remedy}
}

// row reads the id.
func (s *targetScanner) row(find func(string) *Map) (Target, error) {
	if s.text != "" && strings.IndexByte(`"'`, s.text[0]) < 0 {
		for end := len(s.text); end > 0; end-- {
			if end < len(s.text) && s.text[end] != '.' && s.text[end] != ':' {
				continue
			}
			if row := find(s.text[:end]); row != nil {
				s.i = end
				return Target{ID: s.text[:end], Row: row}, nil
			}
		}
		s.skipScope()
	}
	start, ends := s.i, "."
	if start < len(s.text) && strings.IndexByte(`"'`, s.text[start]) >= 0 {
		ends = ".:"
	}
	id, quoted, err := s.part(ends)
	if err != nil {
		return Target{}, err
	}
	if start > 0 || !quoted {
		id = s.text[:start] + id
		if i := strings.LastIndexByte(id, ':'); i > 0 && slices.Contains(rowKeys, id[i+1:]) && s.i == len(s.text) {
			id, s.i = id[:i], i
		}
	}
	if id == "" {
		return Target{}, s.fail(0, "the id of a row is missing", "write ROW, ROW.KEY or ROW:KEY")
	}
	return Target{ID: id, Row: find(id)}, nil
}

// rowKeys are the keys of rows that the loader knows.
var rowKeys = []string{"id", "name", "config", "disabled", "group", "inject", "intercept", "isolate"}

// skipScope skips the @scope/ of an id, in which dots are no ends.
func (s *targetScanner) skipScope() {
	if s.text[0] == '@' {
		s.i = strings.IndexByte(s.text, '/') + 1
	}
}

// part reads up to one of the ends, or a part in quotes, which one of the ends
// or nothing stands behind.
func (s *targetScanner) part(ends string) (part string, quoted bool, err error) {
	start := s.i
	rest := s.text[start:]
	if rest == "" || rest[0] != '"' && rest[0] != '\'' {
		length := strings.IndexAny(rest, ends)
		if length < 0 {
			length = len(rest)
		}
		s.i += length
		return rest[:length], false, nil
	}
	end := closingQuote(rest)
	if end < 0 {
		return "", true, s.fail(start, "a quote is not closed", howToQuote)
	}
	if rest[0] == '\'' {
		part = strings.ReplaceAll(rest[1:end], "''", "'")
	} else if json.Unmarshal([]byte(rest[:end+1]), &part) != nil {
		return "", true, s.fail(start, "what is in double quotes is no text of JSON", `write " as \" and \ as \\, or use single quotes`)
	}
	s.i += end + 1
	if s.i < len(s.text) && strings.IndexByte(ends, s.text[s.i]) < 0 {
		return "", true, s.fail(s.i, "something stands directly behind a quoted part", howToQuote)
	}
	return part, true, nil
}

// closingQuote is where the quote that begins text ends, -1 if nowhere.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[0] == '"' && text[i] == '\\':
			i++
		case text[i] != text[0]:
		case text[0] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++
		default:
			return i
		}
	}
	return -1
}
