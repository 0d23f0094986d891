package registry

import (
	"context"
	"time"
)

// Published is when a version was published, zero where its registry does not say
// it or cannot be asked.
func (c *Client) Published(ctx context.Context, name, version string) time.Time {
	p, err := c.packument(ctx, document{name: name, full: true})
	if err != nil {
		return time.Time{}
	}
	return p.Published(version)
}
