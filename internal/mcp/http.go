package mcp

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// ownHeaders are fields that the protocol, or HTTP, sets itself: a configured
// value for one never counts, also where a request is without it.
var ownHeaders = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// generated says whether the client sets a field itself.
func generated(name string) bool {
	name = http.CanonicalHeaderKey(name)
	return strings.HasPrefix(name, "Mcp-") || slices.Contains(ownHeaders, name)
}

// origin is what a URL's server is to a browser.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// headers is a transport that adds the configured fields to requests to one
// origin. net/http asks it for every hop of a redirect.
type headers struct {
	next   http.RoundTripper
	origin string
	list   []Header
	limit  int64 // of a body that is no stream of events
}

func (h *headers) RoundTrip(request *http.Request) (*http.Response, error) {
	if origin(request.URL) == h.origin && len(h.list) > 0 {
		request = request.Clone(request.Context())
		for _, field := range h.list {
			if !generated(field.Name) && len(request.Header.Values(field.Name)) == 0 {
				request.Header.Set(field.Name, field.Value)
			}
		}
	}
	response, err := h.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	if kind := response.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/event-stream") {
		response.Body = &limitedBody{response.Body, h.limit}
	}
	return response, nil
}

// limitedBody ends with an error where a body is too long.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

var errTooLarge = errors.New("the answer is larger than a message may be")

// httpClient is the client for one server, and what closes its connections.
func httpClient(s Server, limit int64) (*http.Client, func(), error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, nil, fault.Errorf(fault.Composition, "url is no address")
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	client := &http.Client{
		Transport: &headers{base, origin(u), s.Headers, limit},
		CheckRedirect: func(request *http.Request, via []*http.Request) error {
			if len(via) >= 10 {
				return errors.New("more than 10 redirects")
			}
			if via[0].URL.Scheme == "https" && request.URL.Scheme != "https" {
				return errors.New("a redirect leads from https to an address without it")
			}
			return nil
		},
	}
	return client, base.CloseIdleConnections, nil
}
