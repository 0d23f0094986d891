package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

const (
	firstWait = 500 * time.Millisecond // before the first retry; doubles with each
	longWait  = 60 * time.Second       // no wait is longer, whatever Retry-After says
)

// temporaryError is a failure after which the same may succeed.
type temporaryError struct {
	error
	after time.Duration // how long the server asks to wait; 0 if it does not say
}

func (e *temporaryError) Unwrap() error { return e.error }

// retry runs attempt until it succeeds, fails for good, or has failed too
// often, and waits longer each time.
func (c *Client) retry(ctx context.Context, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		temporary, ok := errors.AsType[*temporaryError](err)
		if !ok {
			return err
		}
		if n >= c.config.FetchRetries {
			return temporary.error
		}
		if err := sleep(ctx, waitBefore(n, temporary.after)); err != nil {
			return err
		}
	}
}

// Retry calls attempt again, as often and after such pauses as the client
// itself does, while its error is a network failure.
func (c *Client) Retry(ctx context.Context, attempt func() error) error {
	return c.retry(ctx, func() error {
		err := attempt()
		if fault.ClassOf(err) == fault.Network {
			return &temporaryError{error: err}
		}
		return err
	})
}

// waitBefore is the pause before retry n, counted from 0.
func waitBefore(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longWait)
	}
	wait := min(firstWait<<min(n, 16), longWait)
	return wait/2 + rand.N(wait/2) // so that many clients do not come back at once
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
}

func (x exchange) host() string {
	if u, err := url.Parse(x.address); err == nil {
		return u.Host
	}
	return "the server"
}

var (
	errGone   = errors.New("not found")      // the answer that there is nothing at the address
	errStatus = errors.New("not understood") // an answer that refuses the question as such
)

// open asks once. The answer's status is 200, or 206 where a range was asked.
func (c *Client) open(ctx context.Context, x exchange) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.address, nil)
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
	text, final := causeText(err)
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
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500:
		return &temporaryError{
			error: &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("it answered HTTP %d", status)},
			after: retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		}
	default:
		return &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("it answered HTTP %d", status), Err: errStatus}
	}
}

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

// document fetches a JSON document whole and has it read, with retries.
func (c *Client) document(ctx context.Context, x exchange, read func(text string) error) error {
	return c.retry(ctx, func() error {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return ctx.Err()
		}
		resp, err := c.open(ctx, x)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		text, err := readText(resp, c.maxDocument)
		if errors.Is(err, errTooLong) {
			return &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("its answer is longer than %d bytes", c.maxDocument), Err: err}
		}
		if err != nil {
			return c.failed(ctx, x, err)
		}
		if err := read(text); err != nil {
			return &NetworkError{Doing: x.doing, Host: x.host(), Cause: notJSON(resp, err), Err: err}
		}
		return nil
	})
}

func notJSON(resp *http.Response, err error) string {
	if kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); kind != "" && !strings.Contains(kind, "json") {
		return fmt.Sprintf("its answer is %s and no package document", strconv.Quote(kind))
	}
	return "its answer is no package document: " + err.Error()
}

var errTooLong = errors.New("too long")

// readText is the body of an answer, unpacked, of at most limit bytes.
func readText(resp *http.Response, limit int64) (string, error) {
	var body io.Reader = resp.Body
	var b strings.Builder
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return "", err
		}
		defer unpacked.Close()
		body = unpacked
	} else if n := resp.ContentLength; n > limit {
		return "", errTooLong
	} else if n > 0 {
		b.Grow(int(n))
	}
	n, err := io.Copy(&b, io.LimitReader(body, limit+1))
	if err != nil {
		return "", err
	}
	if n > limit {
		return "", errTooLong
	}
	return b.String(), nil
}
