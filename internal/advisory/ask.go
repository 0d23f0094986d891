package advisory

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"dsh/internal/fault"
)

// Server is whoever talks to servers: an answer's body for a body in JSON, nil to
// ask without one. address is a whole address, doing says what for.
type Server interface {
	Exchange(ctx context.Context, doing, address string, body []byte) ([]byte, error)
}

const (
	// PublicOSV is where OSV answers.
	PublicOSV = "https://api.osv.dev"

	perQuestion = 1000 // versions in one question, as OSV limits it
	maxPages    = 100  // of an answer
	atOnce      = 8    // advisories on their way
)

// FromRegistry asks a registry, whose address ends in a slash, what it knows
// against versions of its packages.
func FromRegistry(ctx context.Context, server Server, registry, source string, versions []Version) ([]Advisory, error) {
	var list []Advisory
	for part := range slices.Chunk(versions, perQuestion) {
		question, names, err := bulkQuestion(part)
		if err != nil {
			return nil, err
		}
		answer, err := server.Exchange(ctx, "get advisories", registry+"-/npm/v1/security/advisories/bulk", question)
		if err != nil {
			return nil, err
		}
		found, err := ParseBulk(answer, names, source)
		if err != nil {
			return nil, fault.WithClass(fault.Network, fmt.Errorf("%s: %w", source, err))
		}
		list = append(list, found...)
	}
	return affecting(list, versions), nil
}

type osvPackage struct {
	Name      string `json:"name"`
	Ecosystem string `json:"ecosystem"`
}

type osvQuery struct {
	Package osvPackage `json:"package"`
	Version string     `json:"version"`
	Page    string     `json:"page_token,omitempty"`
}

type osvAnswer struct {
	Results []struct {
		Vulns []struct {
			ID string `json:"id"`
		} `json:"vulns"`
		Next string `json:"next_page_token"`
	} `json:"results"`
}

// FromOSV asks OSV at a base address what it knows against versions of packages of
// the public registry.
func FromOSV(ctx context.Context, server Server, base, source string, versions []Version) ([]Advisory, error) {
	base = strings.TrimRight(base, "/")
	ids := map[string]bool{}
	queries := make([]osvQuery, 0, len(versions))
	for _, v := range versions {
		queries = append(queries, osvQuery{Package: osvPackage{v.Name, "npm"}, Version: v.Version})
	}
	for page := 0; len(queries) > 0; page++ {
		if page == maxPages {
			return nil, fault.Errorf(fault.Network, "%s: its answer has no end", source)
		}
		var next []osvQuery
		for part := range slices.Chunk(queries, perQuestion) {
			more, err := osvBatch(ctx, server, base, source, part, ids)
			if err != nil {
				return nil, err
			}
			next = append(next, more...)
		}
		queries = next
	}
	var mu sync.Mutex
	var list []Advisory
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for id := range ids {
		group.Go(func() error {
			text, err := server.Exchange(ctx, "get advisory "+id, base+"/v1/vulns/"+url.PathEscape(id), nil)
			if err != nil {
				return err
			}
			found, err := ParseOSV(text, source)
			if err != nil {
				return fault.WithClass(fault.Network, fmt.Errorf("%s: %w", source, err))
			}
			mu.Lock()
			defer mu.Unlock()
			list = append(list, found...)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return affecting(list, versions), nil
}

// osvBatch asks one question, notes the ids in the answer, and returns what has to
// be asked again, for the rest of an answer.
func osvBatch(ctx context.Context, server Server, base, source string, queries []osvQuery, ids map[string]bool) (more []osvQuery, err error) {
	question, err := json.Marshal(map[string]any{"queries": queries})
	if err != nil {
		return nil, err
	}
	text, err := server.Exchange(ctx, "get advisories", base+"/v1/querybatch", question)
	if err != nil {
		return nil, err
	}
	var answer osvAnswer
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, fault.Errorf(fault.Network, "%s: read the advisories: %w", source, err)
	}
	if len(answer.Results) != len(queries) {
		return nil, fault.Errorf(fault.Network, "%s: asked about %d versions, it answers of %d", source, len(queries), len(answer.Results))
	}
	for i, result := range answer.Results {
		for _, v := range result.Vulns {
			if !validID(v.ID) {
				return nil, fault.Errorf(fault.Network, "%s: %.80q is no id", source, v.ID)
			}
			ids[v.ID] = true
		}
		if result.Next != "" {
			again := queries[i]
			again.Page = result.Next
			more = append(more, again)
		}
	}
	return more, nil
}

// affecting leaves out advisories that are about none of the versions. They are in
// order, whatever the order of the answers was.
func affecting(list []Advisory, versions []Version) []Advisory {
	of := map[string][]string{}
	for _, v := range versions {
		of[v.Name] = append(of[v.Name], v.Version)
	}
	list = slices.DeleteFunc(list, func(a Advisory) bool { return !slices.ContainsFunc(of[a.Package], a.Affects) })
	slices.SortFunc(list, func(a, b Advisory) int {
		return strings.Compare(a.Package+"\x00"+a.ID, b.Package+"\x00"+b.ID)
	})
	return list
}
