package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// Page is what a server has at an address.
type Page struct {
	Text      []byte
	ETag      string // by which it can be asked whether this is still so; "" for none
	Modified  string // the same, by its time
	Unchanged bool   // it is what the caller has; there is no text
}

// Page gets what is at an address, unless it is still what ETag and Modified of have
// say. It is not kept. What is longer than limit bytes is an error. Proxies,
// certificates, time-outs, pauses and credentials are those of the configuration.
// doing says what for, as messages begin. The error is an *AuthError, a
// *NetworkError, or the context's.
func (c *Client) Page(ctx context.Context, doing, address string, have Page, limit int64) (Page, error) {
	if c.mode == Offline {
		return Page{}, fault.Errorf(fault.Network, "%s: --offline asks nobody", doing)
	}
	x := exchange{doing: doing, address: address, header: http.Header{"Accept": {"application/json, application/yaml;q=0.9, */*;q=0.5"}, "Accept-Encoding": {"gzip"}}}
	if have.ETag != "" {
		x.header.Set("If-None-Match", have.ETag)
	} else if have.Modified != "" {
		x.header.Set("If-Modified-Since", have.Modified)
	}
	var page Page
	err := c.retry(ctx, func() (err error) {
		page, err = c.pageOnce(ctx, x, limit)
		return err
	})
	if errors.Is(err, errGone) {
		return Page{}, &NetworkError{Doing: doing, Host: x.host(), Cause: "there is nothing at " + ShownAddress(address), Err: err}
	}
	return page, err
}

func (c *Client) pageOnce(ctx context.Context, x exchange, limit int64) (Page, error) {
	resp, err := c.open(ctx, x)
	if err != nil {
		return Page{}, err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusNotModified {
		return Page{Unchanged: true}, nil
	}
	var from io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if from, err = gzip.NewReader(resp.Body); err != nil {
			return Page{}, c.failed(ctx, x, err)
		}
	}
	text, err := io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return Page{}, c.failed(ctx, x, err)
	case int64(len(text)) > limit:
		return Page{}, &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("its answer is longer than %d bytes", limit), Err: errTooLong}
	}
	page := Page{Text: text, ETag: resp.Header.Get("ETag")}
	// Times are in seconds: what changed just now may change again in the same one.
	modified, err := http.ParseTime(resp.Header.Get("Last-Modified"))
	if date, dated := http.ParseTime(resp.Header.Get("Date")); err == nil && dated == nil && date.Sub(modified) >= time.Minute {
		page.Modified = resp.Header.Get("Last-Modified")
	}
	return page, nil
}
