package webserver

import (
	"net/http"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// entry is one handler or tap that somebody added. It is known by its
// address, so that removing it twice, or after another took its place, does
// nothing.
type entry[T any] struct{ of T }

func (s *server) Handle(pattern string, h http.Handler) (remove func(), err error) {
	if !strings.HasPrefix(pattern, "/") || strings.ContainsAny(pattern, "?#") {
		return nil, fault.Errorf(fault.Other, "webserver: %q is no path of a URL", pattern)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.routes[pattern] != nil {
		return nil, fault.Errorf(fault.Other, "webserver: %s already registered", pattern)
	}
	added := &entry[http.Handler]{h}
	s.routes[pattern] = added
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.routes[pattern] == added {
			delete(s.routes, pattern)
		}
	}, nil
}

func (s *server) RegisterFallback(h http.Handler) (remove func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seat != nil {
		return nil, fault.Errorf(fault.Other, "webserver: fallback already registered")
	}
	added := &entry[http.Handler]{h}
	s.seat = added
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.seat == added {
			s.seat = nil
		}
	}, nil
}

func (s *server) TapIndex(tap func(html string) string) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &entry[func(string) string]{tap}
	s.taps = append(s.taps, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taps = slices.DeleteFunc(slices.Clone(s.taps), func(e *entry[func(string) string]) bool { return e == added })
	}
}

func (s *server) RenderIndex(html string) string {
	s.mu.RLock()
	taps := s.taps
	s.mu.RUnlock()
	for _, tap := range taps {
		html = tap.of(html)
	}
	return html
}

// find is the handler of a path, nil if there is none, and whether it has a route.
func (s *server) find(path string) (h http.Handler, isRoute bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if exact := s.routes[path]; exact != nil {
		return exact.of, true
	}
	for end := len(path); ; {
		end = strings.LastIndexByte(path[:end], '/')
		if end < 0 {
			break
		}
		if prefix := s.routes[path[:end+1]]; prefix != nil {
			return prefix.of, true
		}
	}
	if s.seat != nil {
		return s.seat.of, false
	}
	return nil, false
}
