package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// scanner walks JSON text once and takes what it is asked for. What it passes
// over is checked only for its strings and brackets. Its first failure sticks;
// from then on there is nothing to read.
type scanner struct {
	s   string
	i   int
	err error
}

var errTruncated = errors.New("the JSON ends too early")

func (c *scanner) fail() {
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf("the JSON is broken at byte %d", c.i)
	if c.i >= len(c.s) {
		c.err = errTruncated
	}
	c.i = len(c.s)
}

// peek is the next byte that is no white space, 0 at the end.
func (c *scanner) peek() byte {
	for ; c.i < len(c.s); c.i++ {
		switch b := c.s[c.i]; b {
		case ' ', '\t', '\n', '\r':
		default:
			return b
		}
	}
	return 0
}

func (c *scanner) take(b byte) bool {
	if c.peek() != b || c.i >= len(c.s) {
		c.fail()
		return false
	}
	c.i++
	return true
}

// end reports a failure, or something after the value.
func (c *scanner) end() error {
	if c.peek(); c.i < len(c.s) {
		c.fail()
	}
	return c.err
}

// members calls f for each member of an object, at its value. A value that f
// leaves is passed over; so is a whole value that is no object.
func (c *scanner) members(f func(key string)) {
	c.items('{', '}', func() {
		if c.peek() != '"' {
			c.fail()
			return
		}
		key := c.text()
		if c.take(':') {
			c.each(func() { f(key) })
		}
	})
}

func (c *scanner) items(open, close byte, item func()) {
	if c.peek() != open {
		c.skip()
		return
	}
	c.i++
	if c.peek() == close {
		c.i++
		return
	}
	for c.err == nil {
		item()
		switch c.peek() {
		case ',':
			c.i++
		case close:
			c.i++
			return
		default:
			c.fail()
		}
	}
}

func (c *scanner) each(f func()) {
	c.peek()
	start := c.i
	if f(); c.i == start && c.err == nil {
		c.skip()
	}
}

// text is a string; "" for a value of another type.
func (c *scanner) text() string {
	if c.peek() != '"' {
		c.skip()
		return ""
	}
	start := c.i
	c.skipString()
	raw := c.s[start:c.i]
	if c.err != nil {
		return ""
	}
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var text string
	if json.Unmarshal([]byte(raw), &text) != nil {
		c.i = start
		c.fail()
	}
	return text
}

// raw is the JSON of a value.
func (c *scanner) raw() string {
	c.peek()
	start := c.i
	c.skip()
	if c.err != nil {
		return ""
	}
	return c.s[start:c.i]
}

// truthy reads a value as JavaScript's if does.
func (c *scanner) truthy() bool {
	switch c.raw() {
	case "", "false", "null", `""`, "0", "-0":
		return false
	}
	return true
}

func (c *scanner) skip() {
	switch c.peek() {
	case '"':
		c.skipString()
	case '{', '[':
		c.skipNested()
	case 0, '}', ']', ',', ':':
		c.fail()
	default:
		for c.i < len(c.s) && strings.IndexByte("\"{}[],: \t\r\n", c.s[c.i]) < 0 {
			c.i++
		}
	}
}

// skipString leaves the scanner behind the string that begins here.
func (c *scanner) skipString() {
	end := quoteAfter(c.s, c.i+1)
	if end >= len(c.s) {
		c.i = len(c.s)
		c.fail()
		return
	}
	c.i = end + 1
}

// skipNested leaves the scanner behind the object or array that begins here.
func (c *scanner) skipNested() {
	s, i, depth := c.s, c.i, 0
	for i < len(s) {
		switch s[i] {
		case '"':
			i = quoteAfter(s, i+1)
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
	c.fail()
}

// quoteAfter is where the string ends whose text begins at i, at or beyond the
// end of s if it does not. Most of a document goes through here, so it looks
// at eight bytes at a time: a byte of m is set where w has a quote or a
// backslash, and perhaps also above the first such byte.
func quoteAfter(s string, i int) int {
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
