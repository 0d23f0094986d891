package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"dsh/internal/fault"
)

// OpenTarball is the bytes of an archive and how many there will be, -1 if the
// server does not say. When the transfer breaks off it is taken up again where
// it stood; the content may therefore be of two answers, and the caller checks
// it against dist.Integrity, as always. The caller closes it.
func (c *Client) OpenTarball(ctx context.Context, dist Dist) (io.ReadCloser, int64, error) {
	ctx = context.WithValue(ctx, archiveKey{}, true)
	u, err := url.Parse(dist.Tarball)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, 0, fault.Errorf(fault.Package, "download %s: it is no http or https address", ShownAddress(dist.Tarball))
	}
	x := exchange{
		doing:   "download " + path.Base(u.Path),
		address: dist.Tarball,
		// An archive is packed already, and its hash is that of the packed bytes.
		header: http.Header{"Accept": {"*/*"}, "Accept-Encoding": {"identity"}},
	}
	var resp *http.Response
	err = c.retry(ctx, func() (err error) {
		resp, err = c.open(ctx, x)
		return err
	})
	if errors.Is(err, errGone) {
		return nil, 0, fault.WithHint(
			fault.Errorf(fault.Package, "download %s: there is nothing at this address", ShownAddress(dist.Tarball)),
			"--fresh asks the registry where it is now; what a lockfile names stays as it is until the package is updated")
	}
	if err != nil {
		return nil, 0, err
	}
	t := &tarball{body: resp.Body, size: resp.ContentLength, limit: c.maxTarball, retries: c.config.FetchRetries, address: dist.Tarball}
	t.left = t.retries
	if t.size > t.limit {
		resp.Body.Close()
		return nil, 0, t.tooLong()
	}
	t.failed = func(err error) error { return c.failed(ctx, x, err) }
	t.reopen = func() error {
		return c.retry(ctx, func() error { return t.resume(ctx, c, x) })
	}
	return t, t.size, nil
}

// LeastResumed is how many bytes have to come before a transfer that breaks off
// counts as one that gets on, so that with a server which always does it comes to
// an end.
const LeastResumed = 64 << 10

// tarball is an archive on its way.
type tarball struct {
	body    io.ReadCloser
	read    int64 // bytes given out so far
	size    int64 // bytes in all, or -1
	limit   int64
	retries int   // without progress
	left    int   // of them
	mark    int64 // how much had been read when there was progress last
	address string
	failed  func(error) error
	reopen  func() error
	err     error // sticky
}

func (t *tarball) Read(p []byte) (int, error) {
	if t.err != nil {
		return 0, t.err
	}
	for {
		n, err := t.body.Read(p)
		t.read += int64(n)
		switch {
		case t.read > t.limit:
			t.err = t.tooLong()
		case err == io.EOF && (t.size < 0 || t.read >= t.size):
			t.err = io.EOF
		case err != nil:
			t.err = t.again(err)
		}
		// What was read is given out before its error, and after a new start
		// with nothing yet there is something to read.
		if n > 0 || t.err != nil || len(p) == 0 {
			if n > 0 && t.err != io.EOF {
				return n, nil
			}
			return n, t.err
		}
	}
}

// again starts anew where the transfer broke off with err. It returns the
// error that remains.
func (t *tarball) again(err error) error {
	failure := t.failed(err)
	temporary, ok := errors.AsType[*temporaryError](failure)
	if !ok {
		return failure
	}
	if t.read-t.mark >= LeastResumed {
		t.left, t.mark = t.retries, t.read
	}
	if t.left == 0 {
		return temporary.error
	}
	t.left--
	t.body.Close()
	if err := t.reopen(); errors.Is(err, errGone) {
		return temporary.error
	} else if err != nil {
		return err
	}
	return nil
}

// resume asks for the rest of the archive, or for all of it and passes over
// what was read.
func (t *tarball) resume(ctx context.Context, c *Client, x exchange) error {
	x.header = x.header.Clone()
	x.header.Set("Range", fmt.Sprintf("bytes=%d-", t.read))
	resp, err := c.open(ctx, x)
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusPartialContent {
		if start, total := ContentRange(resp.Header); start != t.read || t.size >= 0 && total >= 0 && total != t.size {
			resp.Body.Close()
			return &NetworkError{Doing: x.doing, Host: x.host(), Cause: "the archive changed while it was downloaded"}
		}
	} else if _, err := io.CopyN(io.Discard, resp.Body, t.read); err != nil {
		resp.Body.Close()
		return c.failed(ctx, x, err)
	}
	t.body = resp.Body
	return nil
}

// ContentRange is where in the whole a part begins, and how large that is. -1 is
// what an answer does not say.
func ContentRange(h http.Header) (start, total int64) { return contentRange(h.Get("Content-Range")) }

// contentRange reads "bytes 100-199/200".
func contentRange(header string) (start, total int64) {
	span, all, _ := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	from, _, _ := strings.Cut(span, "-")
	number := func(s string) int64 {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && n >= 0 {
			return n
		}
		return -1
	}
	return number(from), number(all)
}

func (t *tarball) tooLong() error {
	return fault.Errorf(fault.Policy, "download %s: the archive is larger than %d bytes", ShownAddress(t.address), t.limit)
}

// Close ends the transfer. It may be called at any time.
func (t *tarball) Close() error { return t.body.Close() }
