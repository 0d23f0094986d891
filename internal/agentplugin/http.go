package agentplugin

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// URL is the address of a server by section 7.2.1, exactly as it was written.
type URL struct{ text string }

func (u URL) String() string { return u.text }

// ParseURL reads an absolute http or https address without user information and
// fragment; http is for localhost and loopback addresses alone. It looks at the
// text, because parsers forgive what the specification does not. Errors do not have
// the address, in which there may be a secret.
func ParseURL(text string) (URL, error) {
	fail := func(why string) (URL, error) { return URL{}, errors.New("the URL " + why) }
	scheme, rest, _ := strings.Cut(text, ":")
	scheme = strings.ToLower(scheme)
	authority, isAbsolute := strings.CutPrefix(rest, "//")
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	switch {
	case scheme != "http" && scheme != "https" || !isAbsolute:
		return fail("is no absolute http or https address")
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }):
		return fail("has spaces, control characters or backslashes in it")
	case strings.Contains(text, "#"):
		return fail("has a fragment")
	case strings.Contains(authority, "@"):
		return fail("has user information")
	}
	u, err := url.Parse(text)
	if err != nil {
		return fail("cannot be read")
	}
	host := u.Hostname()
	switch {
	case host == "":
		return fail("has no host")
	case strings.ContainsFunc(authority, func(r rune) bool { return r > 0x7e || r == '%' }):
		return fail("has a host with other characters than ASCII's, or escaped ones")
	case strings.HasSuffix(authority, ":"):
		return fail("has an empty port")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n > 65535 {
			return fail("has a port that there is not")
		}
	}
	if scheme == "http" && !isLoopback(host) {
		return fail("is http, which is for localhost and loopback addresses alone; take https")
	}
	return URL{text}, nil
}

// isLoopback is true of localhost and of addresses, in their full form, of a
// loopback range.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && !addr.Is4In6() && addr.Zone() == "" && addr.IsLoopback()
}

// Header is a field that is sent to the origin of a server's URL and to no other.
type Header struct{ Name, Value string }

// checkHeader says what is wrong with a field. Its value is not in the error.
func checkHeader(name, text string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isTokenRune(r) }) {
		return fmt.Errorf("the header %q is no valid name of a field", name)
	}
	if strings.Trim(text, " \t") != text {
		return fmt.Errorf("the value of header %q has white space around it", name)
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("the value of header %q has control characters in it", name)
	}
	return nil
}

// isTokenRune is RFC 9110's tchar.
func isTokenRune(r rune) bool {
	return r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}
