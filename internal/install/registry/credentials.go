package registry

import (
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// credentials are the tokens by the address that they are for, written as
// npm's keys are: "//host:port/path", here without a slash at the end.
type credentials struct {
	by map[string]credential
	// plain holds the hosts that the configuration itself reaches over http.
	// To others a token goes only over https, though npm's keys have no scheme.
	plain map[string]bool
}

type credential struct {
	header  string // value of the Authorization header
	missing string // set in place of it: the variable that should hold the token
}

// credentials collects the keys "//host/path/:_authToken" and their like.
// Several of one address may come from several files.
func (l *loader) credentials(registries []string) *credentials {
	fields := map[string]map[string]setting{}
	add := func(key string, s setting) {
		at := strings.LastIndexByte(key, ':')
		if !strings.HasPrefix(key, "//") || at < 0 {
			return
		}
		address := normalKey(key[:at])
		if fields[address] == nil {
			fields[address] = map[string]setting{}
		}
		fields[address][key[at+1:]] = s
	}
	for key, s := range l.settings {
		add(key, s.setting)
	}
	// The environment cannot be listed here, only asked.
	for _, registry := range registries {
		for _, name := range []string{"_authToken", "_auth", "username", "_password"} {
			key := registry[strings.Index(registry, "//"):] + ":" + name
			if value, _ := l.env(key); value != "" {
				add(key, setting{values: []string{value}})
			}
		}
	}
	c := &credentials{by: map[string]credential{}, plain: map[string]bool{}}
	for address, f := range fields {
		if cred, ok := credentialOf(f); ok {
			c.by[address] = cred
		}
	}
	for _, registry := range registries {
		c = c.allowing(registry, nil)
	}
	return c
}

func credentialOf(fields map[string]setting) (credential, bool) {
	token, auth, user, password := fields["_authToken"], fields["_auth"], fields["username"], fields["_password"]
	switch {
	case token.last() != "":
		return credential{"Bearer " + token.last(), token.missing}.usable(), true
	case auth.last() != "":
		return credential{"Basic " + auth.last(), auth.missing}.usable(), true
	case user.last() != "" && password.last() != "":
		text, err := base64.StdEncoding.DecodeString(password.last())
		if err != nil && password.missing == "" {
			return credential{}, false
		}
		pair := base64.StdEncoding.EncodeToString([]byte(user.last() + ":" + string(text)))
		return credential{"Basic " + pair, user.missing + password.missing}.usable(), true
	}
	return credential{}, false
}

// usable drops a header that holds the name of a variable in place of a
// token: registries refuse it even for what anyone may read.
func (c credential) usable() credential {
	if c.missing != "" {
		c.header = ""
	}
	return c
}

// allowing is c for one more registry and the user and password that its
// address named, if any; c itself stays as it is.
func (c *credentials) allowing(registry string, user *url.Userinfo) *credentials {
	u, err := url.Parse(registry)
	if err != nil {
		return c
	}
	more := &credentials{by: maps.Clone(c.by), plain: maps.Clone(c.plain)}
	if u.Scheme == "http" {
		more.plain[hostOf(u)] = true
	}
	if password, ok := user.Password(); ok {
		pair := base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password))
		more.by[normalKey("//"+hostOf(u)+u.EscapedPath())] = credential{header: "Basic " + pair}
	}
	return more
}

// find is the credential for an address: that of the longest path it is below.
func (c *credentials) find(u *url.URL) (credential, bool) {
	if c == nil || u.Scheme != "https" && !(u.Scheme == "http" && c.plain[hostOf(u)]) {
		return credential{}, false
	}
	host := "//" + hostOf(u)
	for path := strings.TrimRight(u.EscapedPath(), "/"); ; {
		if cred, ok := c.by[host+path]; ok {
			return cred, true
		}
		at := strings.LastIndexByte(path, '/')
		if at < 0 {
			return credential{}, false
		}
		path = path[:at]
	}
}

// asker tells apart who asks a registry. It may be a secret.
func (c Config) asker(registry string) string {
	u, err := url.Parse(registry)
	if err != nil {
		return ""
	}
	cred, _ := c.credentials.find(u)
	return cred.header
}

// credentialKey is the .npmrc key that would hold the token for an address:
// that of the registry it is below, else of its host.
func (c Config) credentialKey(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ":_authToken"
	}
	path := "/"
	for _, registry := range append(slices.Collect(maps.Values(c.Scopes)), c.Registry) {
		if r, err := url.Parse(registry); err == nil && strings.HasPrefix(address, registry) && len(r.EscapedPath()) > len(path) {
			path = r.EscapedPath()
		}
	}
	return "//" + hostOf(u) + path + ":_authToken"
}

// hostOf is the host and port as npm's keys have them, without the port that
// the scheme implies.
func hostOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if u.Scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

func normalKey(address string) string {
	host, path, _ := strings.Cut(strings.TrimPrefix(address, "//"), "/")
	return strings.TrimRight("//"+strings.ToLower(host)+"/"+path, "/")
}

// authTransport adds the credential that belongs to each request's own
// address. It is asked again for every redirect, so that a token never
// follows one to where it does not belong.
type authTransport struct {
	next        http.RoundTripper
	credentials *credentials
}

func (t *authTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if cred, ok := t.credentials.find(req.URL); ok && cred.header != "" && req.Header.Get("Authorization") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", cred.header)
	}
	return t.next.RoundTrip(req)
}
