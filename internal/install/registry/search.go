package registry

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"

	"dsh/internal/fault"
)

// Hit is a package that a registry's search found.
type Hit struct {
	Name, Version, Description string
	Keywords                   []string
	Repository                 string // the address that it claims, "" for none
	Deprecated                 bool
}

// Search asks the registry of packages without a scope for packages that fit a
// text, at most limit. Which fit and in which order is the registry's affair. The
// error is a *NotOfferedError where it has no search, an *AuthError, a
// *NetworkError, or the context's.
func (c *Client) Search(ctx context.Context, text string, limit int) ([]Hit, error) {
	query := url.Values{"text": {text}, "size": {strconv.Itoa(limit)}}
	data, err := c.Exchange(ctx, "search for packages", c.config.Registry+"-/v1/search?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Objects []struct {
			Package struct {
				Name, Version, Description string
				Keywords                   any
				Links                      struct{ Repository string }
				Deprecated                 any
			}
		}
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fault.Errorf(fault.Network, "search for packages: the answer of %s cannot be read: %w", ShownAddress(c.config.Registry), err)
	}
	var hits []Hit
	for _, object := range answer.Objects {
		p := object.Package
		if _, ok := escapedName(p.Name); !ok || len(hits) == limit {
			continue
		}
		hit := Hit{Name: p.Name, Version: p.Version, Description: p.Description, Repository: p.Links.Repository}
		if list, ok := p.Keywords.([]any); ok { // some registries have a text there
			for _, keyword := range list {
				if text, ok := keyword.(string); ok {
					hit.Keywords = append(hit.Keywords, text)
				}
			}
		}
		switch d := p.Deprecated.(type) {
		case string:
			hit.Deprecated = d != ""
		case bool:
			hit.Deprecated = d
		}
		hits = append(hits, hit)
	}
	return hits, nil
}

// Registry is that of packages without a scope of their own.
func (c *Client) Registry() string { return c.config.Registry }
