package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

// NotOfferedError says that a server does not know what it was asked for: not
// every registry has all that npm's has.
type NotOfferedError struct {
	Doing  string // what was being done
	Server string // the address that was asked, without secrets
}

func (e *NotOfferedError) Error() string {
	return fmt.Sprintf("%s: %s does not offer that", e.Doing, e.Server)
}

// Class makes it a network failure.
func (e *NotOfferedError) Class() fault.Class { return fault.Network }

// Exchange asks a server in JSON and returns the body of its answer. A nil body is
// a question by the address alone. Proxies, certificates, time-outs, pauses and
// credentials are those of the configuration; a token only goes to the address that
// it is for. doing says what for, as messages begin. The error is a
// *NotOfferedError, an *AuthError, a *NetworkError, or the context's.
func (c *Client) Exchange(ctx context.Context, doing, address string, body []byte) ([]byte, error) {
	if c.mode == Offline {
		return nil, fault.Errorf(fault.Network, "%s: --offline asks nobody", doing)
	}
	x := exchange{doing: doing, address: address, header: http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"gzip"}}}
	if body != nil {
		x.header.Set("Content-Type", "application/json")
	}
	var answer []byte
	err := c.retry(ctx, func() (err error) {
		answer, err = c.exchangeOnce(ctx, x, body)
		return err
	})
	if errors.Is(err, errGone) || errors.Is(err, errStatus) {
		return nil, &NotOfferedError{Doing: doing, Server: ShownAddress(address)}
	}
	return answer, err
}

func (c *Client) exchangeOnce(ctx context.Context, x exchange, body []byte) ([]byte, error) {
	within := ctx
	if c.config.FetchTimeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeoutCause(ctx, documentTimes*c.config.FetchTimeout, errSlow)
		defer cancel()
	}
	x.body = body
	resp, err := c.open(within, x)
	if err != nil {
		return nil, c.late(within, x, err)
	}
	defer resp.Body.Close()
	var from io.Reader = resp.Body
	if resp.Header.Get("Content-Encoding") == "gzip" {
		if from, err = gzip.NewReader(resp.Body); err != nil {
			return nil, c.late(within, x, c.failed(ctx, x, err))
		}
	}
	text, err := io.ReadAll(io.LimitReader(from, c.maxDocument+1))
	switch {
	case err != nil:
		return nil, c.late(within, x, c.failed(ctx, x, err))
	case int64(len(text)) > c.maxDocument:
		return nil, &NetworkError{Doing: x.doing, Host: x.host(), Cause: fmt.Sprintf("its answer is longer than %d bytes", c.maxDocument), Err: errTooLong}
	case !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")):
		return nil, &NetworkError{Doing: x.doing, Host: x.host(), Cause: "its answer is no JSON object"}
	}
	return text, nil
}
