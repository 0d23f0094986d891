package download

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
)

// maxRedirects is how many redirects are followed.
const maxRedirects = 10

// errAnew ends an answer whose rest is not to be had, as it is of another content
// or the server gives no parts.
var errAnew = errors.New("the transfer begins anew")

// transfer is one file on its way, over as many requests as it takes. To its
// client it is a server that answers once and never breaks off.
//
// Each request begins at the address that was asked for, and not at the one that
// it was redirected to: such addresses often hold for minutes only. Parts of two
// answers make one file only where the server says that they are of one content:
// who downloads a file for the first time has no hash to hold it against.
type transfer struct {
	opts    Options
	address string
	client  *http.Client // follows redirects

	at       int64 // how much of the present answer came
	furthest int64 // how much of any answer came
	failures int   // since it got on
	mark     int64 // how far it had got then
}

func newTransfer(opts Options, u *url.URL) *transfer {
	plain := *u
	plain.User, plain.Fragment = nil, ""
	next := opts.Client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client := *opts.Client
	client.Transport = &origin{next: next, scheme: u.Scheme, host: u.Host, user: u.User}
	client.CheckRedirect = checkRedirect
	client.Jar = nil
	return &transfer{opts: opts, address: plain.String(), client: &client}
}

// RoundTrip answers with the whole file. What its request says does not matter.
func (t *transfer) RoundTrip(req *http.Request) (*http.Response, error) {
	t.at = 0
	resp, err := t.answer(req.Context(), nil)
	if err != nil {
		return nil, err
	}
	first := *resp
	resp.Body = &body{transfer: t, ctx: req.Context(), first: &first, size: resp.ContentLength, now: resp.Body}
	if resp.ContentLength > t.opts.MaxBytes {
		resp.Body.Close()
		return nil, tooLarge(t.opts.MaxBytes)
	}
	resp.Request = req
	return resp, nil
}

// answer asks until there is an answer: for the whole, or for what comes behind
// t.at of an answer that broke off.
func (t *transfer) answer(ctx context.Context, of *http.Response) (*http.Response, error) {
	for {
		resp, err := t.ask(ctx, of)
		if err == nil {
			return resp, nil
		}
		if err := t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

func (t *transfer) ask(ctx context.Context, of *http.Response) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.address, nil)
	if err != nil {
		return nil, err
	}
	// A file is packed already, and its hash is that of the packed bytes.
	req.Header.Set("Accept", "*/*")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "dsh")
	want := http.StatusOK
	if of != nil {
		want = http.StatusPartialContent
		req.Header.Set("Range", "bytes="+strconv.FormatInt(t.at, 10)+"-")
		req.Header.Set("If-Range", validator(of.Header))
	}
	resp, err := t.client.Do(req)
	if err != nil {
		return nil, broken(err)
	}
	if resp.StatusCode == want {
		return resp, nil
	}
	resp.Body.Close()
	err = refused(resp)
	if _, temporary := errors.AsType[*temporaryError](err); of != nil && !temporary {
		return nil, errAnew // asking for the whole shows what is the matter
	}
	return nil, err
}

// refused is the error for a status that is none of success.
func refused(resp *http.Response) error {
	switch status := resp.StatusCode; {
	case status == http.StatusNotFound || status == http.StatusGone:
		return fault.Errorf(fault.Package, "there is nothing at this address (HTTP %d)", status)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fault.Errorf(fault.Package, "the server does not let you have it (HTTP %d)", status)
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500:
		return &temporaryError{fault.Errorf(fault.Network, "the server answered HTTP %d", status), registry.RetryAfter(resp.Header)}
	default:
		return fault.Errorf(fault.Network, "the server answered HTTP %d", status)
	}
}

// temporaryError is a failure after which the same may succeed.
type temporaryError struct {
	error
	after time.Duration // how long the server asks to wait; 0 if it does not say
}

func (e *temporaryError) Unwrap() error { return e.error }

// broken is the error for an exchange that broke off.
func broken(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text repeats the address
	}
	if classed(err) {
		return err
	}
	text, final := registry.Cause(err)
	failure := fault.Errorf(fault.Network, "%s", text)
	if final {
		return failure
	}
	return &temporaryError{error: failure}
}

// again waits for the next attempt, or says why there is none.
func (t *transfer) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	temporary, ok := errors.AsType[*temporaryError](err)
	if !ok {
		return err
	}
	if t.furthest-t.mark >= registry.LeastResumed {
		t.failures, t.mark = 0, t.furthest
	}
	if t.failures >= t.opts.Retries {
		return temporary.error
	}
	var pause time.Duration
	if t.opts.Pause != nil {
		pause = t.opts.Pause(t.failures, temporary.after)
	}
	t.failures++
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// body is the file as it comes, from one answer after the other.
type body struct {
	*transfer
	ctx   context.Context
	first *http.Response // whose content it is
	size  int64          // in bytes, -1 where nobody said
	now   io.ReadCloser  // of the present answer
	err   error          // sticky
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.now.Read(p)
	b.at += int64(n)
	b.furthest = max(b.furthest, b.at)
	if n > 0 && b.opts.Received != nil {
		b.opts.Received(int64(n))
	}
	switch {
	case b.at > b.opts.MaxBytes:
		b.err = tooLarge(b.opts.MaxBytes)
	case err == io.EOF && b.at < b.size:
		b.err = b.resume(io.ErrUnexpectedEOF)
	case err == io.EOF:
		b.err = io.EOF
	case err != nil:
		b.err = b.resume(err)
	}
	return n, b.err
}

// resume asks for the rest after the answer broke off with err. It returns the
// error that remains.
func (b *body) resume(err error) error {
	b.now.Close()
	if err := b.again(b.ctx, broken(err)); err != nil {
		return err
	}
	if validator(b.first.Header) == "" {
		return errAnew
	}
	resp, err := b.answer(b.ctx, b.first)
	if err != nil {
		return err
	}
	start, total := registry.ContentRange(resp.Header)
	if start != b.at || b.size >= 0 && total >= 0 && total != b.size || !sameContent(b.first.Header, resp.Header) {
		resp.Body.Close()
		return errAnew
	}
	if b.size < 0 {
		b.size = total
	}
	b.now = resp.Body
	return nil
}

// Close ends the transfer.
func (b *body) Close() error { return b.now.Close() }

// validator is what tells the content of an answer from any other for sure, ""
// where its server gives nothing that does (RFC 9110, 8.8 and 13.1.5).
func validator(h http.Header) string {
	if tag := h.Get("ETag"); strings.HasPrefix(tag, `"`) {
		return tag // not a weak one, which begins with W/
	}
	modified, err := http.ParseTime(h.Get("Last-Modified"))
	if err != nil {
		return ""
	}
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || date.Sub(modified) < time.Second {
		return "" // it may have changed once more in that second
	}
	return h.Get("Last-Modified")
}

// sameContent says whether a part is of the content of the first answer, also
// where the server does not know conditions.
func sameContent(first, part http.Header) bool {
	if part.Get("Content-Encoding") != first.Get("Content-Encoding") {
		return false
	}
	v := validator(first)
	if v == first.Get("ETag") {
		return part.Get("ETag") == v
	}
	modified := part.Get("Last-Modified")
	return modified == "" || modified == v
}

// origin sends the user and password of an address to where that leads, and to
// nowhere that it redirects to. Nor does another server learn the address, which
// may be a secret itself.
type origin struct {
	next         http.RoundTripper
	scheme, host string
	user         *url.Userinfo
}

func (o *origin) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Referer")
	if o.user != nil && req.URL.Scheme == o.scheme && req.URL.Host == o.host {
		password, _ := o.user.Password()
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(o.user.Username()+":"+password)))
	}
	return o.next.RoundTrip(req)
}

// checkRedirect follows redirects within http and https that do not give up
// encryption.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case len(via) > maxRedirects:
		return fault.Errorf(fault.Network, "it redirects more than %d times", maxRedirects)
	case req.URL.Scheme != "https" && req.URL.Scheme != "http":
		return fault.Errorf(fault.Policy, "it redirects to %q, which is neither http nor https", req.URL.Scheme+":")
	case req.URL.Scheme != "https" && from.Scheme == "https":
		return fault.Errorf(fault.Network, "it redirects from https to plain http")
	}
	return nil
}

// useLast leaves redirects to the transfer.
func useLast(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
