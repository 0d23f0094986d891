package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"time"
)

const (
	dialTimeout = 15 * time.Second // to the last address of a host
	nextTimeout = 4 * time.Second  // to each before it
	tlsTimeout  = 15 * time.Second
)

// newTransport makes connections as the configuration says. A host is looked
// up once and for all its connections.
func newTransport(c Config) *http.Transport {
	d := &dialer{net: net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}}
	t := &http.Transport{
		DialContext:            d.dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.roots, InsecureSkipVerify: !c.StrictSSL},
		TLSHandshakeTimeout:    tlsTimeout,
		MaxConnsPerHost:        c.MaxSockets,
		MaxIdleConnsPerHost:    c.MaxSockets,
		IdleConnTimeout:        90 * time.Second,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true, // what is asked for and how it is unpacked is decided per request
		MaxResponseHeaderBytes: 1 << 20,
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
	// there may be, and connecting has time-outs of its own.
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { timer.Stop() },
		GotConn: func(httptrace.GotConnInfo) { timer.Reset(t.after) },
	})
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		err = stalled(ctx, err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &stallBody{
		ReadCloser: resp.Body,
		timer:      timer,
		after:      t.after,
		cause:      func(err error) error { return stalled(ctx, err) },
		cancel:     func() { cancel(nil) },
	}
	return resp, nil
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
	cause  func(error) error
	cancel func()
}

func (b *stallBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.after)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
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
