package webserver

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// newToken is 32 random bytes as text that fits in URLs and cookies.
func newToken() string {
	var random [32]byte
	rand.Read(random[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(random[:])
}

// onceLife is how long the token of OnceURL can be used.
const onceLife = time.Minute

// guard decides which requests reach a handler. A browser brings requests of
// every page that its user looks at, also under names of its own choice for
// our address, so a request has to show three things: that it asks for a host
// that is ours, that no other site sent it, and that it knows the token.
type guard struct {
	address netip.AddrPort
	token   string
	now     func() time.Time

	mu      sync.Mutex
	trusted []string             // lower case, with or without a port
	once    map[string]time.Time // tokens for one use, and their end
}

// trust replaces the hosts that are ours besides those of the address.
func (g *guard) trust(hosts []string) {
	trusted := make([]string, len(hosts))
	for i, host := range hosts {
		trusted[i] = strings.ToLower(host)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trusted = trusted
}

// isOurs says whether an authority, as it stands in Host and in Origin, is one
// that this server goes by.
func (g *guard) isOurs(authority string) bool {
	authority = strings.ToLower(authority)
	name, port, err := net.SplitHostPort(authority)
	if err != nil {
		name, port = strings.Trim(authority, "[]"), "80"
	}
	if port == fmt.Sprint(g.address.Port()) {
		own := g.address.Addr()
		if ip, err := netip.ParseAddr(name); err == nil && (ip == own || own.IsLoopback() && ip.IsLoopback()) {
			return true
		}
		if name == "localhost" && own.IsLoopback() {
			return true
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, trusted := range g.trusted {
		// With a port it is the whole authority, without one the name.
		if trusted == authority || strings.Trim(trusted, "[]") == name {
			return true
		}
	}
	return false
}

// sameSite says whether a request comes from this server's own page, from the
// address line of a browser, or from no browser at all.
func (g *guard) sameSite(r *http.Request) bool {
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" && site != "none" {
			return false
		}
	}
	for _, text := range r.Header.Values("Origin") {
		origin, err := url.Parse(text)
		if err != nil || (origin.Scheme != "http" && origin.Scheme != "https") || !g.isOurs(origin.Host) {
			return false
		}
	}
	return true
}

// cookieName has the port in it, for cookies of one host are shared by all
// of its ports.
func (g *guard) cookieName() string { return fmt.Sprintf("dsh-%d", g.address.Port()) }

// cookieValue opens the files of the page alone: other servers of this machine
// that the browser goes to are sent it as well.
func (g *guard) cookieValue() string { return g.derived("cookie") }

// key is what the page shows for its data. It gets it behind the # of the address
// that the token leads to, and keeps it where pages of other ports cannot read.
func (g *guard) key() string { return g.derived("key") }

// derived follows from the token, but the token does not follow from it.
func (g *guard) derived(what string) string {
	sum := sha256.Sum256([]byte(what + " of dsh " + g.token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// knows says whether a request shows that it knows the token: for a file of the
// page the cookie will do.
func (g *guard) knows(r *http.Request, file bool) bool {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "bearer") {
		token = strings.TrimSpace(token)
		return same(token, g.token) || same(token, g.key())
	}
	if !file {
		// The EventSource of a browser sends no headers of the page's choice.
		return r.Method == http.MethodGet && same(r.URL.Query().Get("key"), g.key())
	}
	for _, cookie := range r.CookiesNamed(g.cookieName()) {
		if same(cookie.Value, g.cookieValue()) {
			return true
		}
	}
	return false
}

// newOnce makes a token for one use.
func (g *guard) newOnce() string {
	token := newToken()
	g.mu.Lock()
	defer g.mu.Unlock()
	for t, end := range g.once {
		if g.now().After(end) {
			delete(g.once, t)
		}
	}
	g.once[token] = g.now().Add(onceLife)
	return token
}

// opens says whether a token of an address is right, and uses it up if it is
// one for one use.
func (g *guard) opens(token string) bool {
	if same(token, g.token) {
		return true
	}
	// Looking a secret up in a table tells by the time it takes how much of it is
	// right, if at all, of a value that is random, long, and gone in a minute.
	g.mu.Lock()
	defer g.mu.Unlock()
	end, ok := g.once[token]
	delete(g.once, token)
	return ok && !g.now().After(end)
}

// policy is what the page may load, and who may show it in a frame: itself,
// and nobody.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// setHeaders sets what every answer has. Handlers may allow a cache, and
// nothing else.
func setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// pass answers a request that is not to reach a handler, and says whether it
// did not have to. file says that what is asked for is a file of the page.
func (g *guard) pass(w http.ResponseWriter, r *http.Request, file bool) bool {
	setHeaders(w.Header())
	switch {
	case !g.isOurs(r.Host):
		refuse(w, r, http.StatusForbidden, "this server does not go by the name of this request",
			"if the name is yours, start dsh with --trusted-host NAME")
	case !strings.HasPrefix(r.URL.Path, "/"):
		refuse(w, r, http.StatusBadRequest, "the request has no path", "")
	case !g.sameSite(r):
		refuse(w, r, http.StatusForbidden, "another site sent this request", "paste the address that dsh printed when it started into the address line of the browser")
	case r.URL.Path == "/" && r.URL.Query().Has("token") && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		if !g.opens(r.URL.Query().Get("token")) {
			unauthorized(w, r)
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: g.cookieValue(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		w.Header().Set("Location", "/#key="+g.key())
		w.WriteHeader(http.StatusSeeOther)
	case !g.knows(r, file):
		unauthorized(w, r)
	default:
		return true
	}
	return false
}

func unauthorized(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("WWW-Authenticate", `Bearer realm="dsh"`)
	refuse(w, r, http.StatusUnauthorized, "this page is for who started dsh",
		"open the address that dsh printed when it started, with the token at its end; each start has another one")
}

// refuse answers with words: a page for people, and JSON for programs.
func refuse(w http.ResponseWriter, r *http.Request, status int, message, hint string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(status)
		title := html.EscapeString(strings.ToUpper(message[:1]) + message[1:])
		fmt.Fprintf(w, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"+
			"<meta name=\"color-scheme\" content=\"light dark\">\n<title>dsh</title>\n<h1>%s</h1>\n<p>%s.</p>\n</html>\n", title, html.EscapeString(sentence(hint)))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	type body struct {
		Message string `json:"message"`
		Hint    string `json:"hint,omitempty"`
		Class   string `json:"class"`
	}
	class := "error"
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		class = "policy"
	}
	json.NewEncoder(w).Encode(map[string]body{"error": {message, hint, class}})
}

func sentence(text string) string {
	if text == "" {
		return "There is nothing more to say about it"
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
