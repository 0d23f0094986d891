package agentplugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is a JSON value as it is written: names in their case and order, repeated
// ones too, and null as a kind of its own. encoding/json into structs keeps none
// of that.
type value struct {
	kind     kind
	text     string   // of a string
	broken   bool     // the string has half of a surrogate pair
	members  []member // of an object
	elements []value  // of an array
}

type member struct {
	name   string
	broken bool
	value  value
}

type kind string

const (
	nullKind   kind = "null"
	boolKind   kind = "a boolean"
	numberKind kind = "a number"
	stringKind kind = "a string"
	arrayKind  kind = "an array"
	objectKind kind = "an object"
)

var byteOrderMark = []byte("\xef\xbb\xbf")

// parseJSON reads one JSON value, which is all of the text but a byte order mark.
func parseJSON(text []byte) (v value, marked bool, err error) {
	text, marked = bytes.CutPrefix(text, byteOrderMark)
	if !utf8.Valid(text) {
		return value{}, marked, errors.New("it is no UTF-8")
	}
	var raw json.RawMessage // checks all of the grammar
	if err := json.Unmarshal(text, &raw); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			line, column := position(text, int(syntax.Offset))
			return value{}, marked, fmt.Errorf("line %d, column %d: %w", line, column, err)
		}
		return value{}, marked, err
	}
	r := reader{decoder: json.NewDecoder(bytes.NewReader(text)), text: text}
	r.decoder.UseNumber()
	v, err = r.value()
	return v, marked, err
}

// position is where the byte before offset is, counted from 1 in characters.
func position(text []byte, offset int) (line, column int) {
	before := text[:min(max(offset-1, 0), len(text))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

type reader struct {
	decoder *json.Decoder
	text    []byte
	end     int64 // of the last token
	depth   int
}

// depthLimit is how deep values may stand in each other.
const depthLimit = 200

// token is the next token, and whether it is a string with half of a surrogate pair.
func (r *reader) token() (t json.Token, broken bool, err error) {
	t, err = r.decoder.Token()
	start := r.end
	r.end = r.decoder.InputOffset()
	if _, ok := t.(string); ok {
		broken = halfPair(r.text[start:r.end])
	}
	return t, broken, err
}

func (r *reader) value() (value, error) {
	t, broken, err := r.token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case nil:
		return value{kind: nullKind}, nil
	case bool:
		return value{kind: boolKind}, nil
	case json.Number:
		return value{kind: numberKind}, nil
	case string:
		return value{kind: stringKind, text: t, broken: broken}, nil
	case json.Delim:
		if r.depth++; r.depth > depthLimit {
			return value{}, fmt.Errorf("values stand in each other more than %d deep", depthLimit)
		}
		defer func() { r.depth-- }()
		v := value{kind: arrayKind}
		if t == '{' {
			v.kind = objectKind
		}
		for r.decoder.More() {
			var m member
			if v.kind == objectKind {
				name, broken, err := r.token()
				if err != nil {
					return value{}, err
				}
				m.name, m.broken = name.(string), broken
			}
			if m.value, err = r.value(); err != nil {
				return value{}, err
			}
			if v.kind == objectKind {
				v.members = append(v.members, m)
			} else {
				v.elements = append(v.elements, m.value)
			}
		}
		_, _, err = r.token()
		return v, err
	}
	return value{}, fmt.Errorf("unexpected token %v", t)
}

// halfPair says whether a string, as it is written, has an escaped half of a
// surrogate pair, for which encoding/json puts another character.
func halfPair(raw []byte) bool {
	high := false
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			if high {
				return true
			}
			continue
		}
		i++
		code := uint64(0)
		if i+4 < len(raw) && raw[i] == 'u' {
			code, _ = strconv.ParseUint(string(raw[i+1:i+5]), 16, 32)
			i += 4
		}
		low := code >= 0xdc00 && code < 0xe000
		if low != high {
			return true
		}
		high = code >= 0xd800 && code < 0xdc00
	}
	return high
}

// hasHalfPair says whether a string or name anywhere in v is broken.
func (v value) hasHalfPair() bool {
	return v.broken || slices.ContainsFunc(v.elements, value.hasHalfPair) ||
		slices.ContainsFunc(v.members, func(m member) bool { return m.broken || m.value.hasHalfPair() })
}

// object is the members of an object, of repeated ones the last, and the names of
// those that are repeated.
func (v value) object() (members []member, repeated []string) {
	last := map[string]int{}
	told := map[string]bool{}
	for i, m := range v.members {
		if _, again := last[m.name]; again && !told[m.name] {
			repeated = append(repeated, m.name)
			told[m.name] = true
		}
		last[m.name] = i
	}
	for i, m := range v.members {
		if last[m.name] == i {
			members = append(members, m)
		}
	}
	return members, repeated
}

// repeatsTold is how many repeated names of a document are told of: each stands
// with all names that lead to it, which is more text than the document has.
const repeatsTold = 20

// repeats is the repeated names in v, each with the names that lead to it.
func (v value) repeats() []string { return v.repeatsBelow(nil, nil) }

func (v value) repeatsBelow(path, found []string) []string {
	_, repeated := v.object()
	for _, name := range repeated {
		if len(found) < repeatsTold {
			found = append(found, strings.Join(append(path, name), "."))
		}
	}
	for _, m := range v.members {
		found = m.value.repeatsBelow(append(path, m.name), found)
	}
	for i, e := range v.elements {
		found = e.repeatsBelow(append(path, strconv.Itoa(i)), found)
	}
	return found
}

// get is the member of this name, the last if there are several.
func (v value) get(name string) (value, bool) {
	for _, m := range slices.Backward(v.members) {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}
