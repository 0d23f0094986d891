// Package jsonscan walks JSON text once and takes from it what it is asked
// for, without decoding the rest: registries' documents are thousands of times
// larger than what is read in them.
//
// It is not a validator: of what it passes over it checks strings and brackets.
package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// ErrTruncated says that the text ends within a value.
var ErrTruncated = errors.New("the JSON ends too early")

// Scanner stands somewhere in a text. Its first failure sticks; from then on
// there is nothing to read.
type Scanner struct {
	s   string
	i   int
	err error
}

// New is a scanner at the beginning of a text.
func New(text string) Scanner { return Scanner{s: text} }

// Pos is how much of the text was read.
func (c *Scanner) Pos() int { return c.i }

// Err is the first failure.
func (c *Scanner) Err() error { return c.err }

// Fail makes the scanner fail where it stands: what is there is not what the
// caller needs.
func (c *Scanner) Fail() {
	if c.err != nil {
		return
	}
	c.err = ErrTruncated
	if c.i < len(c.s) {
		c.err = fmt.Errorf("the JSON is broken at byte %d", c.i)
	}
	c.i = len(c.s)
}

// Peek is the next byte that is no white space, 0 at the end.
func (c *Scanner) Peek() byte {
	for ; c.i < len(c.s); c.i++ {
		if b := c.s[c.i]; b > ' ' || b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b
		}
	}
	return 0
}

// Take passes over one byte that has to be there, after white space.
func (c *Scanner) Take(b byte) bool {
	if c.Peek() != b || c.i >= len(c.s) {
		c.Fail()
		return false
	}
	c.i++
	return true
}

// End is the failure, which something behind the last value is too.
func (c *Scanner) End() error {
	if c.Peek(); c.i < len(c.s) {
		c.Fail()
	}
	return c.err
}

// Key is the key of a member, and leaves the scanner at its value.
func (c *Scanner) Key() string {
	if c.Peek() != '"' {
		c.Fail()
		return ""
	}
	key := c.Text()
	c.Take(':')
	return key
}

// PlainKey is Key for who looks for a few names of ASCII letters: other keys may
// come back as they are written.
func (c *Scanner) PlainKey() string {
	if c.Peek() != '"' {
		c.Fail()
		return ""
	}
	start := c.i
	end := QuoteAfter(c.s, c.i+1)
	if end >= len(c.s) {
		c.i = len(c.s)
		c.Fail()
		return ""
	}
	key := c.s[start+1 : end]
	if strings.IndexByte(key, '\\') >= 0 {
		return c.Key()
	}
	c.i = end + 1
	c.Take(':')
	return key
}

// Next is whether another member or element comes, after the first: it passes
// over the comma, or over the end.
func (c *Scanner) Next(close byte) bool {
	switch c.Peek() {
	case ',':
		c.i++
		return c.err == nil
	case close:
		if c.i < len(c.s) {
			c.i++
			return false
		}
	}
	c.Fail()
	return false
}

// Enter passes over the beginning of an object or array and reports whether
// there is something in it.
func (c *Scanner) Enter(open, close byte) bool {
	if !c.Take(open) {
		return false
	}
	if c.Peek() == close {
		c.i++
		return false
	}
	return true
}

// Members calls f for each member of an object, at its value. A value that f
// leaves is passed over; so is a whole value that is no object.
func (c *Scanner) Members(f func(key string)) {
	c.items('{', '}', func() {
		key := c.Key()
		if c.err == nil {
			c.each(func() { f(key) })
		}
	})
}

// Elements calls f for each element of an array, as Members does.
func (c *Scanner) Elements(f func()) {
	c.items('[', ']', func() { c.each(f) })
}

func (c *Scanner) items(open, close byte, item func()) {
	if c.Peek() != open {
		c.Skip()
		return
	}
	for more := c.Enter(open, close); more; more = c.Next(close) {
		item()
	}
}

func (c *Scanner) each(f func()) {
	c.Peek()
	start := c.i
	if f(); c.i == start && c.err == nil {
		c.Skip()
	}
}

// Text is a string; "" for a value of another type.
func (c *Scanner) Text() string {
	if c.Peek() != '"' {
		c.Skip()
		return ""
	}
	start := c.i
	c.skipString()
	if c.err != nil {
		return ""
	}
	text, ok := unquoted(c.s[start:c.i])
	if !ok {
		c.i = start
		c.Fail()
	}
	return text
}

// unquoted is the text of a string with its quotes.
func unquoted(raw string) (text string, ok bool) {
	inner := raw[1 : len(raw)-1]
	if plain(inner) {
		return inner, true
	}
	return decoded(raw)
}

func decoded(raw string) (text string, ok bool) {
	err := json.Unmarshal([]byte(raw), &text)
	return text, err == nil
}

// plain reports whether a string stands for itself.
func plain(s string) bool {
	for i := range len(s) {
		if b := s[i]; b < ' ' || b == '\\' || b >= utf8.RuneSelf {
			return utf8.ValidString(s) && strings.IndexByte(s, '\\') < 0 && strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0
		}
	}
	return true
}

// Raw is the JSON of a value.
func (c *Scanner) Raw() string {
	c.Peek()
	start := c.i
	c.Skip()
	if c.err != nil {
		return ""
	}
	return c.s[start:c.i]
}

// Truthy reads a value as JavaScript's if does.
func (c *Scanner) Truthy() bool { return Truthy(c.Raw()) }

// Truthy reads the JSON of a value as JavaScript's if does; "" is none.
func Truthy(raw string) bool {
	switch raw {
	case "", "false", "null", `""`, "0", "-0":
		return false
	}
	return true
}

// Skip passes over a value.
func (c *Scanner) Skip() {
	switch c.Peek() {
	case '"':
		c.skipString()
	case '{', '[':
		c.skipNested()
	case 0, '}', ']', ',', ':':
		c.Fail()
	default:
		for c.i < len(c.s) && strings.IndexByte("\"{}[],: \t\r\n", c.s[c.i]) < 0 {
			c.i++
		}
	}
}

// skipString leaves the scanner behind the string that begins here.
func (c *Scanner) skipString() {
	end := QuoteAfter(c.s, c.i+1)
	if end >= len(c.s) {
		c.i = len(c.s)
		c.Fail()
		return
	}
	c.i = end + 1
}

// skipNested leaves the scanner behind the object or array that begins here.
func (c *Scanner) skipNested() {
	s, i, depth := c.s, c.i, 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = QuoteAfter(s, i+1)
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				c.i = i + 1
				return
			}
		}
		i++
	}
	c.i = len(s)
	c.Fail()
}

// QuoteAfter is where the string ends whose text begins at i, at or beyond the
// end of s if it does not. Most of a document goes through here, so it looks
// at eight bytes at a time: a byte of m is set where w has a quote or a
// backslash, and perhaps also above the first such byte.
func QuoteAfter(s string, i int) int {
	const (
		ones  = 0x0101010101010101
		highs = 0x80 * ones
	)
	for {
		for ; i+8 <= len(s); i += 8 {
			t := s[i : i+8]
			w := uint64(t[0]) | uint64(t[1])<<8 | uint64(t[2])<<16 | uint64(t[3])<<24 |
				uint64(t[4])<<32 | uint64(t[5])<<40 | uint64(t[6])<<48 | uint64(t[7])<<56
			quote, slash := w^'"'*ones, w^'\\'*ones
			m := ((quote-ones)&^quote | (slash-ones)&^slash) & highs
			if m != 0 {
				i += bits.TrailingZeros64(m) / 8
				break
			}
		}
		for i < len(s) && s[i] != '"' && s[i] != '\\' {
			i++
		}
		if i >= len(s) || s[i] == '"' {
			return i
		}
		i += 2
	}
}
