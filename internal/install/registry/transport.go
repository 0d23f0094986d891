package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	dialTimeout = 15 * time.Second // to the last address of a host
	nextTimeout = 4 * time.Second  // to each before it
	tlsTimeout  = 15 * time.Second
)

// connections is how many HTTP/2 connections there are to one host, half of
// them for documents and half for archives. Several carry more than one does,
// and archives, which are long, do not keep documents waiting, or the other way
// round. A server without HTTP/2 has as many connections as maxsockets says,
// shared out in the same way.
const connections = 4

// network reaches each host with what proves to it who asks.
type network struct {
	anyone *lanes
	by     map[string]*lanes // by host, for those that want a certificate
}

func newNetwork(c Config) (*network, error) {
	roots, err := c.roots()
	if err != nil {
		return nil, err
	}
	d := &dialer{net: net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}}
	n := &network{anyone: newLanes(c, d, roots, nil), by: map[string]*lanes{}}
	for host, certificate := range c.certificates {
		n.by[host] = newLanes(c, d, roots, certificate)
	}
	return n, nil
}

// lateNetwork makes the network for the first request: many commands have none,
// and what it needs takes time to read.
type lateNetwork struct {
	build func() (*network, error)
	built atomic.Pointer[network]
}

func (l *lateNetwork) RoundTrip(req *http.Request) (*http.Response, error) {
	n, err := l.build()
	if err != nil {
		return nil, &configError{err}
	}
	l.built.Store(n)
	return n.RoundTrip(req)
}

// CloseIdleConnections closes the connections, if there are any.
func (l *lateNetwork) CloseIdleConnections() {
	if n := l.built.Load(); n != nil {
		n.CloseIdleConnections()
	}
}

// configError is a fault of the configuration that only a request shows.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	if known, ok := n.by[hostOf(req.URL)]; ok && req.URL.Scheme == "https" {
		return known.RoundTrip(req)
	}
	return n.anyone.RoundTrip(req)
}

// CloseIdleConnections closes the connections.
func (n *network) CloseIdleConnections() {
	n.anyone.close()
	for _, l := range n.by {
		l.close()
	}
}

// lanes shares requests out among connections.
type lanes struct {
	documents, archives lane
}

// lane is the connections for one kind of request.
type lane struct {
	members []*connecting
	next    atomic.Uint32
}

// archiveKey marks the context of a request for an archive.
type archiveKey struct{}

func newLanes(c Config, d *dialer, roots *x509.CertPool, certificate *tls.Certificate) *lanes {
	l := &lanes{}
	n := min(connections, c.MaxSockets)
	for i := range n {
		sockets := (c.MaxSockets + i) / n // all of them together are maxsockets
		member := &connecting{transport: newTransport(c, d, roots, certificate, sockets)}
		if i%2 == 0 {
			l.documents.members = append(l.documents.members, member)
		} else {
			l.archives.members = append(l.archives.members, member)
		}
	}
	if n == 1 {
		l.archives.members = l.documents.members
	}
	return l
}

func (l *lanes) RoundTrip(req *http.Request) (*http.Response, error) {
	of := &l.documents
	if req.Context().Value(archiveKey{}) != nil {
		of = &l.archives
	}
	return of.members[int(of.next.Add(1)-1)%len(of.members)].RoundTrip(req)
}

func (l *lanes) close() {
	for _, of := range []*lane{&l.documents, &l.archives} {
		for _, member := range of.members {
			member.transport.CloseIdleConnections()
		}
	}
}

// connecting has the first request to a host connect alone: only then it is
// known whether the others can share that connection. To set them all up at
// once takes the time of many requests.
type connecting struct {
	transport *http.Transport
	mu        sync.Mutex
	hosts     map[string]chan struct{} // closed when there is a connection
}

func (t *connecting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" {
		return t.transport.RoundTrip(req)
	}
	t.mu.Lock()
	connected, others := t.hosts[req.URL.Host]
	if !others {
		connected = make(chan struct{})
		if t.hosts == nil {
			t.hosts = map[string]chan struct{}{}
		}
		t.hosts[req.URL.Host] = connected
	}
	t.mu.Unlock()
	if others {
		select {
		case <-connected:
			return t.transport.RoundTrip(req)
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	done := sync.OnceFunc(func() { close(connected) })
	defer done()
	// When the request is on its way, others find its connection.
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{WroteHeaders: done})
	return t.transport.RoundTrip(req.WithContext(ctx))
}

// newTransport makes up to so many connections to one host, as the
// configuration says. A host is looked up once and for all of them.
func newTransport(c Config, d *dialer, roots *x509.CertPool, certificate *tls.Certificate, sockets int) *http.Transport {
	trust := &tls.Config{RootCAs: roots, InsecureSkipVerify: !c.StrictSSL}
	if certificate != nil {
		trust.Certificates = []tls.Certificate{*certificate}
	}
	t := &http.Transport{
		DialContext:            d.dial,
		TLSClientConfig:        trust,
		TLSHandshakeTimeout:    tlsTimeout,
		MaxConnsPerHost:        sockets,
		MaxIdleConnsPerHost:    sockets,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is asked for and how it is unpacked is decided per request
		MaxResponseHeaderBytes: 1 << 20,
		// What is not read yet lies in memory.
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: 8 << 20, MaxReceiveBufferPerStream: 1 << 20},
	}
	if c.proxies != nil {
		t.Proxy = func(req *http.Request) (*url.URL, error) { return c.proxies.proxyFor(req.URL), nil }
	}
	return t
}

// dialer connects to hosts whose addresses it remembers.
type dialer struct {
	net   net.Dialer
	hosts flight[string, []netip.Addr]
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return d.net.DialContext(ctx, network, address)
	}
	addrs, err := d.hosts.do(ctx, host, func() ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	})
	if err != nil {
		return nil, err
	}
	var first error
	for i, addr := range addrs {
		one := d.net
		if i < len(addrs)-1 {
			one.Timeout = nextTimeout
		}
		conn, err := one.DialContext(ctx, network, net.JoinHostPort(addr.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if first == nil {
		first = &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	return nil, first
}

// stallError ends an exchange in which nothing came for too long.
type stallError struct{ after time.Duration }

func (e *stallError) Error() string {
	return fmt.Sprintf("no data for %v s", e.after.Seconds())
}

// Timeout makes it a timeout for callers that ask, as net.Error does.
func (e *stallError) Timeout() bool { return true }

// leastProgress is how many bytes a server has to send in the time that it may
// send nothing, so that an exchange that only drips comes to an end as well.
const leastProgress = 512

// stallTransport ends an exchange when nothing has come for some time: neither
// the head of the answer nor more of its body. However long the whole takes is
// fine, and time in which the caller does not read does not count.
type stallTransport struct {
	next  http.RoundTripper
	after time.Duration
}

func (t *stallTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.after <= 0 {
		return t.next.RoundTrip(req)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.after, func() { cancel(&stallError{t.after}) })
	// Waiting for a connection is not the server's silence: others may have all
	// there may be, and connecting has time-outs of its own. Only for what a
	// proxy answers before it connects there is none.
	tunnel := &tunnelTimer{after: min(t.after, tlsTimeout), stop: cancel}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:           func(string) { timer.Stop() },
		ConnectDone:       func(_, _ string, err error) { tunnel.wait(err == nil) },
		TLSHandshakeStart: func() { tunnel.wait(false) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { tunnel.wait(true) },
		GotConn: func(httptrace.GotConnInfo) {
			tunnel.end()
			timer.Reset(t.after)
		},
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	tunnel.end()
	if err != nil {
		err = stalled(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &stallBody{
		ReadCloser: resp.Body,
		timer:      timer,
		after:      t.after,
		left:       t.after,
		cause:      func(err error) error { return stalled(ctx, err) },
		cancel:     func() { cancel(nil) },
	}
	return resp, nil
}

// tunnelTimer ends an exchange whose proxy does not say whether it connects. The
// connection that is being made may come to be another exchange's, after this
// one got one: then it is no more of its business.
type tunnelTimer struct {
	after time.Duration
	stop  context.CancelCauseFunc

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// wait begins to wait for the proxy, or ends that.
func (t *tunnelTimer) wait(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if on && !t.over {
		t.timer = time.AfterFunc(t.after, func() { t.stop(&stallError{t.after}) })
	}
}

// end ends it for good.
func (t *tunnelTimer) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
	t.wait(false)
}

// stalled is the reason that the exchange was ended for, when it was.
func stalled(ctx context.Context, err error) error {
	if stall, ok := errors.AsType[*stallError](context.Cause(ctx)); ok && !errors.Is(err, io.EOF) {
		return stall
	}
	return err
}

type stallBody struct {
	io.ReadCloser
	timer  *time.Timer
	after  time.Duration
	left   time.Duration // until there has to be progress
	got    int           // bytes since there was
	cause  func(error) error
	cancel func()
}

func (b *stallBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.timer.Reset(b.left)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if b.got += n; b.got >= leastProgress {
		b.left, b.got = b.after, 0
	} else {
		b.left = max(0, b.left-time.Since(start))
	}
	if err != nil {
		err = b.cause(err)
	}
	return n, err
}

func (b *stallBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel()
	return err
}

var errDowngrade = errors.New("it redirects from https to plain http")

// checkRedirect follows up to ten redirects, and none that gives up https.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("it redirects more than 10 times")
	}
	if req.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
		return errDowngrade
	}
	return nil
}
