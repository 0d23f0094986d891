package registry

import (
	"errors"
	"io"
	"unsafe"

	"dsh/internal/install/manifest/jsonscan"
)

const (
	smallWindow = 64 << 10  // bytes of a document that are looked at together
	largeWindow = 512 << 10 // more than this only one document at a time has
	maxWindow   = 8 << 20   // what is longer is no manifest
)

var (
	errTooLong = errors.New("too long")
	errWindow  = errors.New("a part of it is longer than 8388608 bytes")
	errNothing = errors.New("the server sends nothing")
)

// source is a document that is read piece by piece, so that its size does not
// matter.
type source struct {
	r       io.Reader
	buf     []byte
	i, n    int // what is looked at is buf[i:n]
	left    int64
	ended   bool
	failure error
	scan    jsonscan.Scanner
	// enlarge is called once, before the first allocation of much memory.
	enlarge func() error
}

// view is what was read and not passed over. It holds until the next more.
func (s *source) view() string {
	if s.i == s.n {
		return ""
	}
	return unsafe.String(&s.buf[s.i], s.n-s.i)
}

// more reads on, until at least want bytes are in view or all there are. It
// reports false where there are no more.
func (s *source) more(want int) bool {
	if s.ended || s.failure != nil {
		return false
	}
	before := s.n - s.i
	if s.i > 0 {
		copy(s.buf, s.buf[s.i:s.n])
		s.i, s.n = 0, before
	}
	want = max(want, before+1)
	if want > len(s.buf) && !s.grow(want) {
		return false
	}
	for empty := 0; s.n < want && !s.ended && s.failure == nil; {
		n, err := s.r.Read(s.buf[s.n:])
		s.n += n
		if s.left -= int64(n); s.left < 0 {
			s.failure = errTooLong
			return false
		}
		switch {
		case err == io.EOF:
			s.ended = true
		case err != nil:
			s.failure = err
		case n > 0:
			empty = 0
		default:
			if empty++; empty == 100 {
				s.failure = errNothing
			}
		}
	}
	return s.n > before && s.failure == nil
}

func (s *source) grow(want int) bool {
	if want > maxWindow {
		s.failure = errWindow
		return false
	}
	size := len(s.buf)
	for size < want {
		size *= 2
	}
	if size > largeWindow && s.enlarge != nil {
		if s.failure = s.enlarge(); s.failure != nil {
			return false
		}
		s.enlarge = nil
	}
	buf := make([]byte, size)
	copy(buf, s.buf[:s.n])
	s.buf = buf
	return true
}

// part reads something that read can only take whole, and what stands behind
// it has to be in view. It is tried again with more of the document, so that
// read must change nothing that it does not set anew.
func (s *source) part(read func(c *jsonscan.Scanner)) error {
	for {
		c := &s.scan
		*c = jsonscan.New(s.view())
		read(c)
		if c.Err() == nil {
			c.Peek()
			if at := c.Pos(); at < s.n-s.i || s.ended {
				s.i += at
				return nil
			}
		} else if c.Err() != jsonscan.ErrTruncated {
			return c.Err()
		}
		// What is long is not looked at again for every piece of it.
		have := s.n - s.i
		if want := have + have/2; !s.more(want) {
			if s.failure != nil {
				return s.failure
			}
			if c.Err() != nil {
				return c.Err()
			}
		}
	}
}

// skip passes over a value, of which nothing has to be kept.
func (s *source) skip() error {
	depth, inString, over := 0, false, 0
	for {
		t := s.view()
		i := over
		for i < len(t) {
			if inString {
				if i = jsonscan.QuoteAfter(t, i); i >= len(t) {
					break
				}
				i++
				inString = false
				if depth == 0 {
					s.i += i
					return nil
				}
				continue
			}
			switch t[i] {
			case '"':
				inString = true
			case '{', '[':
				depth++
			case '}', ']', ',':
				switch {
				case depth == 0: // the end of a number or the like, and what follows it
					s.i += i
					return nil
				case t[i] == ',':
				case depth == 1:
					s.i += i + 1
					return nil
				default:
					depth--
				}
			}
			i++
		}
		over = i - len(t)
		s.i = s.n
		if !s.more(over + 1) {
			if s.failure != nil {
				return s.failure
			}
			return jsonscan.ErrTruncated
		}
	}
}
