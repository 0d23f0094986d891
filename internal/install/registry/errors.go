package registry

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"dsh/internal/fault"
)

// NotFoundError says that a registry has no such package.
type NotFoundError struct {
	Name, Registry string
	Kept           bool // so it was said before, and nobody asked now
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("package %q not found in the registry %s", e.Name, ShownAddress(e.Registry))
}

// Hint says how to ask again.
func (e *NotFoundError) Hint() string {
	if !e.Kept {
		return ""
	}
	return "this is what it said before; run the command with --fresh to ask again"
}

// Class makes it a package failure.
func (e *NotFoundError) Class() fault.Class { return fault.Package }

// AuthError says that a server wants to know who asks, or knows and refuses.
type AuthError struct {
	Doing   string // what was being done
	Server  string // the address that was asked, without secrets
	Status  int    // 401 or 403
	Key     string // the .npmrc key that would hold the token
	Missing string // the environment variable that the key's value names and that is not set
	Sent    bool   // a token was sent
}

func (e *AuthError) Error() string {
	why := "it wants a token"
	if e.Sent {
		why = "it does not accept the token"
	}
	return fmt.Sprintf("%s: %s answered HTTP %d: %s", e.Doing, e.Server, e.Status, why)
}

// Class makes it a package failure.
func (e *AuthError) Class() fault.Class { return fault.Package }

// Hint names the key that would hold the token.
func (e *AuthError) Hint() string {
	if e.Missing != "" {
		return fmt.Sprintf("set the environment variable %s, which %s in .npmrc refers to", e.Missing, e.Key)
	}
	return fmt.Sprintf("put a token that may read it into ~/.npmrc: %s=<token>", e.Key)
}

// NetworkError says that a server could not be reached or did not answer as a
// registry does.
type NetworkError struct {
	Doing string // what was being done
	Host  string
	Cause string // in plain words
	Err   error  // what is underneath; may be nil
}

func (e *NetworkError) Error() string { return e.Doing + " from " + e.Host + ": " + e.Cause }

// Class makes it a network failure.
func (e *NetworkError) Class() fault.Class { return fault.Network }

func (e *NetworkError) Unwrap() error { return e.Err }

// NoMatchError says that a package exists and no version of it is what was
// asked for.
type NoMatchError struct {
	Code     string // npm's: ETARGET, or ENOVERSIONS where there is nothing to choose from
	Name     string
	Registry string
	Wanted   string
	Before   time.Time         // zero, or only older versions were allowed
	Young    string            // the version that would be taken but for Before, or ""
	YoungAt  time.Time         // when that was published
	Age      time.Duration     // that versions have to have, where Before is by that
	Kept     bool              // by what is kept; nobody may ask
	Newest   []string          // some of the versions there are, the highest first
	Tags     map[string]string // versions by dist-tag
}

func (e *NoMatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no version of %q", e.Name)
	if e.Wanted != "" {
		fmt.Fprintf(&b, " matches %q", e.Wanted)
		if !e.Before.IsZero() {
			b.WriteString(" and")
		}
	}
	if !e.Before.IsZero() {
		fmt.Fprintf(&b, " is older than %s", e.Before.UTC().Format(time.DateOnly))
	}
	fmt.Fprintf(&b, " in the registry %s", ShownAddress(e.Registry))
	if len(e.Newest) == 0 {
		b.WriteString(", which has no version of it at all")
		return b.String()
	}
	if e.Young != "" {
		fmt.Fprintf(&b, "\n\ttoo new: %s, published %s", e.Young, minute(e.YoungAt))
		if e.Age > 0 {
			fmt.Fprintf(&b, ", to be taken from %s", minute(e.YoungAt.Add(e.Age)))
		}
	}
	fmt.Fprintf(&b, "\n\tnewest: %s", strings.Join(e.Newest, ", "))
	if len(e.Tags) > 0 {
		fmt.Fprintf(&b, "\n\ttags:   %s", tagList(e.Tags))
	}
	return b.String()
}

// Class makes it a package failure.
func (e *NoMatchError) Class() fault.Class { return fault.Package }

// Hint says how a version that is too new is had, or one that is not known yet.
func (e *NoMatchError) Hint() string {
	switch {
	case e.Young != "" && e.Age > 0:
		return fmt.Sprintf("to take it now, add --min-release-age 0, or name %s in minimumReleaseAgeExclude of pnpm-workspace.yaml", e.Name)
	case e.Young != "":
		return "a later date with --before takes it"
	case e.Kept:
		return "this is what is kept; run the command once without --offline to ask the registry"
	}
	return ""
}

func minute(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// Cause is why an exchange failed, in plain words and without addresses, and
// whether trying again is of no use.
func Cause(err error) (text string, final bool) {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text repeats the address
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		switch {
		case dns.IsNotFound:
			return "no such host", true
		case dns.IsTimeout:
			return "looking up the host took too long", false
		}
		return "looking up the host failed", false
	}
	if stall, ok := errors.AsType[*stallError](err); ok {
		return stall.Error(), false
	}
	if cert, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return certificateText(cert.Err), true
	}
	text = err.Error()
	switch {
	case errors.Is(err, errDowngrade):
		return text, true
	case errors.Is(err, syscall.ECONNREFUSED), strings.Contains(text, "actively refused"):
		return "connection refused", false
	case errors.Is(err, syscall.ECONNRESET), strings.Contains(text, "forcibly closed"):
		return "connection reset", false
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "no route to the host", false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended early", false
	case errors.Is(err, os.ErrDeadlineExceeded), isTimeout(err):
		return "connecting took too long", false
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		return "it speaks http where https was expected", true
	}
	return text, false
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[net.Error](err)
	return ok && t.Timeout()
}

func certificateText(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is signed by an authority that is not trusted here (cafile in .npmrc names others)"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "its certificate has expired or is not valid yet"
	}
	return "its certificate cannot be verified"
}
