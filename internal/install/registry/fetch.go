package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// temporaryError is a failure after which the same may succeed.
type temporaryError struct {
	error
	after time.Duration // how long the server asks to wait; 0 if it does not say
}

func (e *temporaryError) Unwrap() error { return e.error }

// retryTime is how long after the first attempt another may begin.
const retryTime = 10 * time.Minute

// retry runs attempt until it succeeds, fails for good, or has failed too
// often, and waits longer each time.
func (c *Client) retry(ctx context.Context, attempt func() error) error {
	start := time.Now()
	for n := 0; ; n++ {
		err := attempt()
		temporary, ok := errors.AsType[*temporaryError](err)
		if !ok {
			return err
		}
		wait := c.config.waitBefore(n, temporary.after)
		if n >= c.config.FetchRetries || time.Since(start)+wait > retryTime {
			return temporary.error
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// Retries is how often the configuration has an attempt repeated.
func (c *Client) Retries() int { return c.config.FetchRetries }

// Pause is how long to wait before retry n, counted from 0, when the server asks
// for so long, 0 where it does not say.
func (c *Client) Pause(n int, asked time.Duration) time.Duration {
	return c.config.waitBefore(n, asked)
}

// waitBefore is the pause before retry n, counted from 0. No pause is longer
// than the configuration says, also where the server asks for more.
func (c Config) waitBefore(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, c.RetryMaxWait)
	}
	wait := float64(c.RetryMinWait) * math.Pow(float64(c.retryFactor), float64(n))
	limit := min(time.Duration(min(wait, float64(c.RetryMaxWait))), c.RetryMaxWait)
	if limit < 2 {
		return 0
	}
	return limit/2 + rand.N(limit/2) // so that many clients do not come back at once
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exchange is one question to a server.
type exchange struct {
	doing   string // for messages: what for
	address string
	header  http.Header
	body    []byte // nil asks by the address alone
}

func (x exchange) host() string {
	if u, err := url.Parse(x.address); err == nil {
		return u.Host
	}
	return "the server"
}

var (
	errGone       = errors.New("not found")            // the answer that there is nothing at the address
	errGoneBefore = fmt.Errorf("%w, as kept", errGone) // the same, by what is kept
	errStatus     = errors.New("not understood")       // an answer that refuses the question as such
)

// open asks once. The answer's status is 200, or 206 where a range was asked,
// or 304 where it was asked whether something still holds.
func (c *Client) open(ctx context.Context, x exchange) (*http.Response, error) {
	method, body := http.MethodGet, io.Reader(nil)
	if x.body != nil {
		method, body = http.MethodPost, bytes.NewReader(x.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, x.address, body)
	if err != nil {
		return nil, &NetworkError{Doing: x.doing, Host: x.host(), Cause: "the address cannot be used"}
	}
	for name, values := range x.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.failed(ctx, x, err)
	}
	if resp.StatusCode == http.StatusNotModified && (req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != "") {
		return resp, nil
	}
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusPartialContent && req.Header.Get("Range") != "" {
		return resp, nil
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 4096) // so that the connection can be used again
	return nil, c.refused(x, resp)
}

// failed is the error for an exchange that broke off.
func (c *Client) failed(ctx context.Context, x exchange, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if broken, ok := errors.AsType[*configError](err); ok {
		return broken.error
	}
	text, final := Cause(err)
	if u, err := url.Parse(x.address); err == nil && c.config.proxies != nil {
		if proxy := c.config.proxies.proxyFor(u); proxy != nil {
			text += " (through the proxy " + ShownAddress(proxy.String()) + ")"
		}
	}
	failure := &NetworkError{Doing: x.doing, Host: x.host(), Cause: text, Err: plainError(err)}
	if final {
		return failure
	}
	return &temporaryError{error: failure}
}

// plainError is err without the layer that repeats the address.
func plainError(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// refused is the error for a status that is no success.
func (c *Client) refused(x exchange, resp *http.Response) error {
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusGone:
		return errGone
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		cred, _ := c.config.credentials.find(resp.Request.URL)
		return &AuthError{
			Doing: x.doing, Server: ShownAddress(x.address), Status: status,
			Key: c.config.credentialKey(x.address), Missing: cred.missing, Sent: cred.header != "",
		}
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500 && status != http.StatusNotImplemented:
		return &temporaryError{
			error: &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("it answered HTTP %d", status)},
			after: RetryAfter(resp.Header),
		}
	default:
		return &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("it answered HTTP %d", status), Err: errStatus}
	}
}

// RetryAfter is how long an answer asks to wait, 0 where it does not say.
func RetryAfter(h http.Header) time.Duration { return retryAfter(h.Get("Retry-After"), time.Now()) }

// retryAfter reads the header of that name, seconds or a date; 0 is no wish.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// document is what a registry is asked for: all versions of a package, or one.
type document struct {
	registry, name string
	version        string // "" for all
	full           bool   // not the abbreviated form
	again          bool   // as it is now, whatever is kept
}

func (d document) doing() string {
	if d.version != "" {
		return "get " + d.name + "@" + d.version
	}
	return "get the versions of " + d.name
}

// load is a document that is kept, or else the registry's answer. The error is
// errGone where there is none.
func (c *Client) load(ctx context.Context, d document) (*Packument, error) {
	path, ok := escapedName(d.name)
	if !ok {
		return nil, errGone
	}
	var kept *keptDocument
	if !d.again {
		kept = c.cache.load(d)
	}
	if kept != nil {
		kept.packument.kept = true
		usable, gone := c.usable(d, kept), kept.packument.flags&flagGone != 0
		switch {
		case usable && gone:
			return nil, errGoneBefore
		case usable:
			return kept.packument, nil
		case gone:
			kept = nil
		}
	}
	if c.mode == Offline {
		return nil, fault.WithHint(
			fault.Errorf(fault.Network, "%s: nothing is kept of it, and --offline asks no registry", d.doing()),
			"run the command once without --offline")
	}
	x := exchange{doing: d.doing(), address: d.registry + path, header: http.Header{
		"Accept":          {"application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*"},
		"Accept-Encoding": {"gzip"},
	}}
	if d.full || d.version != "" {
		x.header["Accept"] = []string{"application/json"}
	}
	if d.version != "" {
		x.address += "/" + url.PathEscape(d.version)
	}
	if kept != nil {
		kept.ask(x.header)
	}
	var p *Packument
	err := c.retry(ctx, func() (err error) {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
		p, err = c.ask(ctx, d, x, kept)
		return err
	})
	if errors.Is(err, errGone) || d.version != "" && errors.Is(err, errStatus) {
		// For those who may not ask.
		c.keep(&keptDocument{document: d, fetched: time.Now(), data: goneText})
	}
	return p, err
}

// documentTimes is how many times the time that a server may send nothing a
// whole document may take.
const documentTimes = 10

var errSlow = errors.New("its answer takes too long")

// ask asks for a document once.
func (c *Client) ask(ctx context.Context, d document, x exchange, kept *keptDocument) (*Packument, error) {
	within := ctx
	if c.config.FetchTimeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeoutCause(ctx, documentTimes*c.config.FetchTimeout, errSlow)
		defer cancel()
	}
	resp, err := c.open(within, x)
	if err != nil {
		return nil, c.late(within, x, err)
	}
	defer resp.Body.Close()
	now := time.Now()
	if resp.StatusCode == http.StatusNotModified {
		kept.renew(resp.Header, now)
		c.keep(kept)
		return kept.packument, nil
	}
	data, err := c.compact(within, d, resp)
	switch {
	case errors.Is(err, errGone):
		return nil, err
	case errors.Is(err, errTooLong):
		return nil, &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("its answer is longer than %d bytes", c.maxDocument), Err: err}
	}
	if broken, ok := errors.AsType[*readError](err); ok {
		return nil, c.late(within, x, c.failed(ctx, x, broken.error))
	}
	if _, ok := errors.AsType[*otherError](err); ok {
		return nil, &NetworkError{Doing: x.doing, Host: x.host(), Cause: "its answer is for something else: " + err.Error(), Err: err}
	}
	if err != nil {
		failure := &NetworkError{Doing: x.doing, Host: x.host(), Cause: notJSON(resp, err), Err: err}
		if d.version != "" {
			failure.Err = errStatus
		}
		return nil, failure
	}
	p, err := openPackument(d.name, d.registry, data)
	if err != nil {
		return nil, err
	}
	c.keep(keptFrom(d, p, data, resp.Header, now))
	return p, nil
}

// keep has a document kept on disk. What was asked for again takes the place of
// another that some still read, so that each gets what it would get without the
// others.
func (c *Client) keep(k *keptDocument) {
	if !k.again {
		c.cache.save(k)
		return
	}
	c.mu.Lock()
	c.later = append(c.later, k)
	c.mu.Unlock()
}

// late is err, or that the whole took too long.
func (c *Client) late(ctx context.Context, x exchange, err error) error {
	if errors.Is(context.Cause(ctx), errSlow) {
		return &NetworkError{Doing: x.doing, Host: x.host(), Cause: errSlow.Error(), Err: errSlow}
	}
	return err
}

// readError is a failure of the connection and not of what came.
type readError struct{ error }

type bodyReader struct{ io.Reader }

func (r bodyReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = &readError{err}
	}
	return n, err
}

var unzippers sync.Pool // of *gzip.Reader

// compact reads an answer into the compact form.
func (c *Client) compact(ctx context.Context, d document, resp *http.Response) (string, error) {
	var body io.Reader = bodyReader{resp.Body}
	size := resp.ContentLength
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unzip, _ := unzippers.Get().(*gzip.Reader)
		if unzip == nil {
			unzip = new(gzip.Reader)
		}
		defer unzippers.Put(unzip)
		if err := unzip.Reset(body); err != nil {
			return "", broken(err)
		}
		body = zipReader{unzip}
		size = -1
	} else if size > c.maxDocument {
		return "", errTooLong
	}
	src := source{r: body, left: c.maxDocument, buf: takeWindow(size), seat: seat{of: c.seats, ctx: ctx}}
	return compacted(d, &src)
}

// zipReader tells a packed answer that was cut or damaged from one that is no
// document: both may come out right the next time, only the first is asked for
// again.
type zipReader struct{ io.Reader }

func (r zipReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		err = broken(err)
	}
	return n, err
}

func broken(err error) error {
	if already, ok := errors.AsType[*readError](err); ok {
		return already
	}
	return &readError{err}
}

func notJSON(resp *http.Response, err error) string {
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); kind != "" && !strings.Contains(kind, "json") {
		return fmt.Sprintf("its answer is %s and no package document", strconv.Quote(kind))
	}
	return "its answer is no package document: " + err.Error()
}
