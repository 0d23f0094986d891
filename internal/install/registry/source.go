package registry

import (
	"context"
	"errors"
	"io"
	"sync"
	"unsafe"

	"dsh/internal/install/manifest/jsonscan"
)

const (
	maxWindow = 8 << 20 // bytes of a document that are looked at together; what is longer is no manifest

	// Beyond these a document needs a seat.
	freeWindow = 512 << 10
	freeTexts  = 256 << 10
	// Beyond these it needs the last seat.
	seatWindow  = 1 << 20
	seatTexts   = 2 << 20
	seatRecords = 20_000
)

// seats bound the memory that documents take while they are read. One of usual
// size needs none, of large ones several may be read at once, and only one of
// those that no registry should have.
type seats struct{ large, last chan struct{} }

func newSeats() *seats { return &seats{make(chan struct{}, 16), make(chan struct{}, 1)} }

// seat is what one document holds. The zero seat needs none.
type seat struct {
	of          *seats
	ctx         context.Context
	large, last bool
}

// take waits for a seat. Who has the last one waits for nobody, and who has
// another one only for that, so that all come to an end.
func (s *seat) take(last bool) error {
	wait := func(of chan struct{}, has *bool) error {
		if s.of == nil || *has {
			return nil
		}
		select {
		case of <- struct{}{}:
			*has = true
			return nil
		case <-s.ctx.Done():
			return &readError{s.ctx.Err()}
		}
	}
	if s.of == nil {
		return nil
	}
	if err := wait(s.of.large, &s.large); err != nil || !last {
		return err
	}
	return wait(s.of.last, &s.last)
}

func (s *seat) release() {
	if s.large {
		<-s.of.large
	}
	if s.last {
		<-s.of.last
	}
	s.large, s.last = false, false
}

// windows are the buffers that documents are read into, by size.
var windows = [...]struct {
	size int
	pool sync.Pool
}{{size: 32 << 10}, {size: 128 << 10}, {size: freeWindow}}

// takeWindow is a window for a document of a size, -1 if that is not known.
func takeWindow(size int64) []byte {
	for i := range windows {
		w := &windows[i]
		if size < int64(w.size) && (size >= 0 || i > 0) || i == len(windows)-1 {
			if buf, ok := w.pool.Get().(*[]byte); ok {
				return *buf
			}
			return make([]byte, w.size)
		}
	}
	return nil
}

func giveWindow(buf []byte) {
	for i := range windows {
		if w := &windows[i]; len(buf) == w.size {
			w.pool.Put(&buf)
		}
	}
}

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
	seat    seat
}

// fill reads on until the window is full or the document ends: most documents
// are then there whole, and reading them takes no other memory for long.
func (s *source) fill() {
	for s.n < len(s.buf) && s.more(s.n-s.i+1) {
	}
}

// release gives the window to the next document.
func (s *source) release() {
	giveWindow(s.buf)
	s.seat.release()
	s.buf = nil
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
	if size > freeWindow {
		if s.failure = s.seat.take(size > seatWindow); s.failure != nil {
			return false
		}
	}
	buf := make([]byte, size)
	copy(buf, s.buf[:s.n])
	giveWindow(s.buf)
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
