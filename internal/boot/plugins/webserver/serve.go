package webserver

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strings"
	"sync"
	"time"
)

// Limits of one connection. What is written has to be taken, and what is sent
// has to come, within patience; a stream of events may be silent for as long
// as it likes.
const (
	maxHeader = 64 << 10 // bytes; cookies of other servers of this machine come along
	maxBody   = 8 << 20  // bytes
	patience  = 30 * time.Second
	idle      = 2 * time.Minute
)

// server is a Server.
type server struct {
	guard guard
	http  *http.Server
	logf  func(format string, args ...any)
	end   context.CancelFunc // of all requests

	mu     sync.RWMutex
	routes map[string]*entry[http.Handler]
	seat   *entry[http.Handler]
	taps   []*entry[func(string) string]

	streamsMu sync.Mutex
	streams   map[*answer]context.CancelFunc // nil once the server stops

	connections connections
}

func newServer(at netip.AddrPort, token string, logf func(format string, args ...any)) *server {
	s := &server{
		guard:   guard{address: at, token: token, now: time.Now, once: map[string]time.Time{}},
		logf:    logf,
		routes:  map[string]*entry[http.Handler]{},
		streams: map[*answer]context.CancelFunc{},
	}
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	s.http = &http.Server{
		Handler:           s,
		ReadHeaderTimeout: patience,
		IdleTimeout:       idle,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connectionKey{}, c)
		},
		ConnState: s.connections.changed,
		ErrorLog:  log.New(io.Discard, "", 0), // what strange clients do is no news
		// "OPTIONS *" is a request like others.
		DisableGeneralOptionsHandler: true,
	}
	return s
}

func (s *server) Address() string { return "http://" + s.guard.address.String() }

func (s *server) OpenURL() string { return s.Address() + "/?token=" + s.guard.token }

func (s *server) OnceURL() string { return s.Address() + "/?token=" + s.guard.newOnce() }

func (s *server) TrustHosts(hosts []string) { s.guard.trust(hosts) }

// Expression is what expressions see: ctx.webserver.port and the like, and no
// token.
func (s *server) Expression() any {
	at := s.guard.address
	return map[string]any{"address": s.Address(), "host": at.Addr().String(), "port": at.Port()}
}

// ServeHTTP lets a request through to its handler.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	// The deadline of the last answer on this connection may be over, and what
	// a handler leaves in buffers is written when it has returned, after what is
	// left of the body has come.
	control.SetWriteDeadline(time.Now().Add(patience))
	defer func() { control.SetWriteDeadline(time.Now().Add(2 * patience)) }()
	// A body is bounded also where nobody reads it: the server does, to go on
	// with the connection.
	if r.Body != nil && r.Body != http.NoBody {
		control.SetReadDeadline(time.Now().Add(patience))
		r.Body = &body{http.MaxBytesReader(w, r.Body, maxBody), control}
	}
	h, isRoute := s.find(r.URL.Path)
	if !s.guard.pass(w, r, !isRoute) {
		return
	}
	s.connections.answer(r)
	if h == nil {
		refuse(w, r, http.StatusNotFound, "there is nothing at this address", "")
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	a := &answer{ResponseWriter: w, control: control, server: s, cancel: cancel}
	defer s.closed(a)
	defer s.survive(a, r)
	h.ServeHTTP(a, r)
}

// survive makes of a handler's panic the answer 400, or an answer that is cut
// off where it has begun.
func (s *server) survive(a *answer, r *http.Request) {
	problem := recover()
	if problem == nil {
		return
	}
	if problem == http.ErrAbortHandler {
		panic(problem)
	}
	s.logf("%s %s failed: %v\n%s", r.Method, r.URL.Path, problem, debug.Stack())
	if a.status != 0 {
		panic(http.ErrAbortHandler)
	}
	header := a.Header()
	clear(header)
	setHeaders(header)
	refuse(a, r, http.StatusBadRequest, "this request made its handler fail", "the log of row webserver tells more")
}

// stop lets requests end that are being answered, until ctx ends. Streams of
// events would never end, so they are cut off first, as are connections on which
// no request has come yet: browsers open some in case they need them.
func (s *server) stop(ctx context.Context) error {
	s.streamsMu.Lock()
	for _, cancel := range s.streams {
		cancel()
	}
	s.streams = nil
	s.streamsMu.Unlock()
	s.connections.stop()
	defer s.end()
	err := s.http.Shutdown(ctx)
	if err != nil {
		s.end()
		s.http.Close()
		return fmt.Errorf("stop serving %s: requests were cut off: %w", s.Address(), err)
	}
	return nil
}

// streaming notes an answer as a stream of events.
func (s *server) streaming(a *answer) {
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	if s.streams == nil {
		a.cancel()
		return
	}
	s.streams[a] = a.cancel
}

func (s *server) closed(a *answer) {
	s.streamsMu.Lock()
	defer s.streamsMu.Unlock()
	delete(s.streams, a)
}

// answer is a ResponseWriter that knows whether the answer has begun and which
// gives the client a limited time to take each piece of it.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	server  *server
	cancel  context.CancelFunc
	status  int
}

func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= 200 {
		a.status = status
		if strings.HasPrefix(a.Header().Get("Content-Type"), "text/event-stream") {
			a.server.streaming(a)
		}
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.control.SetWriteDeadline(time.Now().Add(patience))
	return a.ResponseWriter.Write(p)
}

// Flush is for handlers that ask for an http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.control.SetWriteDeadline(time.Now().Add(patience))
	return a.control.Flush()
}

// body is a request's body that has to arrive in time. Once it is read the
// time limit goes, for it would end the request's context later on. After
// another error it stays, because the server reads what is left by itself.
type body struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
