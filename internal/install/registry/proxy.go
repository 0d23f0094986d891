package registry

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"dsh/internal/fault"
)

// proxies says through which proxy an address is reached. Its addresses may
// hold passwords, so it is never printed.
type proxies struct {
	http, https *url.URL
	except      []string // hosts that are reached directly
}

// proxies reads npm's keys, and where they are silent the usual variables.
func (l *loader) proxies() (*proxies, error) {
	p := &proxies{}
	var err error
	if p.http, err = l.proxy([]string{"proxy", "http-proxy"}, "http_proxy"); err != nil {
		return nil, err
	}
	if p.https, err = l.proxy([]string{"https-proxy", "proxy"}, "https_proxy"); err != nil {
		return nil, err
	}
	var list []string
	if s, ok := l.get("noproxy", "no-proxy"); ok {
		list = s.values
	} else {
		list = []string{l.variable("no_proxy")}
	}
	for _, s := range list {
		for host := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
			p.except = append(p.except, strings.ToLower(host))
		}
	}
	return p, nil
}

func (l *loader) proxy(keys []string, variable string) (*url.URL, error) {
	address, where := l.variable(variable), strings.ToUpper(variable)
	if s, ok := l.get(keys...); ok {
		address, where = s.last(), s.file
	}
	if address == "" || address == "false" {
		return nil, nil
	}
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return nil, fault.Errorf(fault.Other, "%s: the proxy's address cannot be read", where)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
		return u, nil
	}
	return nil, fault.Errorf(fault.Other, "%s: a proxy is reached by http, https or socks5, not %q", where, u.Scheme)
}

// variable is an environment variable in either case.
func (l *loader) variable(name string) string {
	if value := l.getenv(name); value != "" {
		return value
	}
	return l.getenv(strings.ToUpper(name))
}

// proxyFor is the proxy of an address, or nil. The machine itself is never
// reached through one.
func (p *proxies) proxyFor(u *url.URL) *url.URL {
	proxy := p.https
	if u.Scheme == "http" {
		proxy = p.http
	}
	if proxy == nil || p.direct(u) {
		return nil
	}
	return proxy
}

func (p *proxies) direct(u *url.URL) bool {
	host, port := strings.ToLower(u.Hostname()), u.Port()
	ip, err := netip.ParseAddr(host)
	isIP := err == nil
	if host == "localhost" || isIP && ip.IsLoopback() {
		return true
	}
	for _, except := range p.except {
		if except == "*" {
			return true
		}
		if network, err := netip.ParsePrefix(except); err == nil {
			if isIP && network.Contains(ip.Unmap()) {
				return true
			}
			continue
		}
		if h, wanted, err := net.SplitHostPort(except); err == nil {
			if wanted != port {
				continue
			}
			except = h
		}
		domain := strings.TrimPrefix(strings.TrimPrefix(except, "*"), ".")
		if host == domain || !isIP && strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}
