package webserver

import (
	"net"
	"net/http"
	"sync"
)

// connectionKey is where the context of a request has its net.Conn.
type connectionKey struct{}

// connections are those on which something is under way, and whether it is a
// request of somebody who was let in. The server of net/http waits for all of
// them when it stops, also for one that never says a word.
type connections struct {
	mu       sync.Mutex
	answered map[net.Conn]bool
	stopped  bool
}

// changed is the ConnState of a server.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew, http.StateActive:
		if c.stopped {
			conn.Close()
		}
		if c.answered == nil {
			c.answered = map[net.Conn]bool{}
		}
		c.answered[conn] = false
	default: // idle, which the server closes itself, or gone
		delete(c.answered, conn)
	}
}

// answer notes that a request reaches its handler.
func (c *connections) answer(r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.answered[conn]; ok {
		c.answered[conn] = true
	}
}

// stop closes all that no handler answers, and those that come from now on.
func (c *connections) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	for conn, answered := range c.answered {
		if !answered {
			conn.Close()
		}
	}
}
