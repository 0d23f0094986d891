package registry

import (
	"context"
	"net/url"
	"time"

	"dsh/internal/fault"
)

// Reach is how other programs reach an address: as the configuration says.
type Reach struct {
	Proxy       string        // address of a proxy, "" for none; it may hold a password
	Authorities []byte        // certificates, in PEM form, that are trusted in place of the system's; nil for none
	Insecure    bool          // certificates are not checked
	Silence     time.Duration // how long a server may send nothing; 0 is for ever
}

// Reach says how another program reaches an address.
func (c *Client) Reach(u *url.URL) (Reach, error) {
	r := Reach{Insecure: !c.config.StrictSSL, Silence: c.config.FetchTimeout}
	if c.config.proxies != nil {
		if proxy := c.config.proxies.proxyFor(u); proxy != nil {
			r.Proxy = proxy.String()
		}
	}
	if c.config.authorities == nil {
		return r, nil
	}
	var err error
	r.Authorities, err = c.config.authorities()
	return r, err
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
