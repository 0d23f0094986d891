package git

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"dsh/internal/fault"
)

// RemoteError says why a text is not taken as the address of a repository.
type RemoteError struct{ Remote, Reason string }

func (e *RemoteError) Error() string {
	return fmt.Sprintf("repository %s %s", Shown(e.Remote), e.Reason)
}

// Class implements fault.Classed.
func (e *RemoteError) Class() fault.Class { return fault.Policy }

// NoRepositoryError says that there is no repository at an address, or none for
// whoever asks.
type NoRepositoryError struct {
	Remote  string
	Refused bool   // it may be there for others
	Said    string // by git
}

func (e *NoRepositoryError) Error() string {
	if e.Refused {
		return fmt.Sprintf("%s: there is no such repository, or it is private", Shown(e.Remote))
	}
	return fmt.Sprintf("%s: there is no such repository", Shown(e.Remote))
}

// Class implements fault.Classed.
func (e *NoRepositoryError) Class() fault.Class { return fault.Package }

// RefError says that a repository does not have what was asked for.
type RefError struct {
	Remote, Ref string
	Near        []string // names that the repository has, the likely ones first
	Range       bool     // Ref is a range of versions
	Reason      string   // "" is that there is none
}

func (e *RefError) Error() string {
	what := fmt.Sprintf("no branch, tag or commit %q", e.Ref)
	if e.Range {
		what = fmt.Sprintf("no tag with a version in %q", e.Ref)
	}
	if e.Reason != "" {
		what = fmt.Sprintf("%q %s", e.Ref, e.Reason)
	}
	text := fmt.Sprintf("%s: %s", Shown(e.Remote), what)
	if e.Reason == "" {
		text = fmt.Sprintf("%s has %s", Shown(e.Remote), what)
	}
	if len(e.Near) > 0 {
		text += "; it has " + strings.Join(e.Near, ", ")
	}
	return text
}

// Class implements fault.Classed.
func (e *RefError) Class() fault.Class { return fault.Package }

// PathError says that a commit does not have a folder.
type PathError struct {
	Remote, Commit, Path string
	Reason               string
	Within               string   // the deepest folder on the way that is there, "" for the root
	Have                 []string // the folders in it
}

func (e *PathError) Error() string {
	text := fmt.Sprintf("%s at %s: %s %s", Shown(e.Remote), Short(e.Commit), e.Path, e.Reason)
	if len(e.Have) > 0 {
		within := "it has"
		if e.Within != "" {
			within = e.Within + " has"
		}
		text += "; " + within + " the folders " + strings.Join(e.Have, ", ")
	}
	return text
}

// Class implements fault.Classed.
func (e *PathError) Class() fault.Class { return fault.Package }

// SubmoduleError says which submodule of a repository could not be had.
type SubmoduleError struct {
	Path string
	Err  error
}

func (e *SubmoduleError) Error() string { return fmt.Sprintf("submodule %s: %v", e.Path, e.Err) }
func (e *SubmoduleError) Unwrap() error { return e.Err }

// TreeError is something in a commit that no repository holds.
type TreeError struct{ Remote, Path, Reason string }

func (e *TreeError) Error() string {
	return fmt.Sprintf("%s: %q %s", Shown(e.Remote), e.Path, e.Reason)
}

// Class implements fault.Classed.
func (e *TreeError) Class() fault.Class { return fault.Policy }

// Short is the beginning of a commit's hash, as people read it.
func Short(commit string) string {
	if len(commit) > 10 {
		return commit[:10]
	}
	return commit
}

// errNoSSH is a system without the program that reaches addresses of ssh.
var errNoSSH = fault.Errorf(fault.MissingProgram, "ssh is not installed, and repositories with an address of ssh are fetched with it")

// noRepository is what hosts say of a repository that is not there, or not there
// for whoever asks. What else is not found, as a program, is none of it.
var noRepository = regexp.MustCompile(`(?i)\b(repository|project)\b.*(not found|not be found|not exist)` +
	`|(no such|cannot find|can't find) repository|not appear to be a git repository|not a git repository` +
	`|returned error: 4(04|10)|(path|file|directory) .*does not exist`)

// unreached is what git and ssh say of a server that they cannot talk to, and the
// words that downloads have for it. The first one that fits counts.
var unreached = []struct{ said, means string }{
	{"Could not resolve", "looking up the host failed"},
	{"Connection refused", "connection refused"},
	{"Connection reset", "connection reset"},
	{"No route to host", "no route to the host"},
	{"Network is unreachable", "no route to the host"},
	{"timed out", "connecting took too long"},
	{"Failed to connect", "the server cannot be reached"}, // curl has no other words for most of these
	{"Couldn't connect", "the server cannot be reached"},
	{"Operation too slow", "the server sends nothing"},
}

// explained is what git's failure to talk to a remote means.
func explained(r remote, err error) error {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		return err
	}
	said := f.lastWords()
	switch {
	case r.scheme() == "ssh" && f.says("cannot run ssh", "ssh: not found", "ssh: command not found", "command not found: ssh"):
		return fault.WithHint(fmt.Errorf("%s: %w", Shown(r.text), errNoSSH),
			"install OpenSSH so that ssh is found in the PATH, or name the repository with git+https://")
	case f.says("Host key verification failed"):
		return fault.WithHint(fault.Errorf(fault.Environment, "%s: ssh does not know the server's key", Shown(r.text)),
			"connect once by hand, and compare the key: %s", fault.ShellWords(sshCommand(r)...))
	case f.says("Permission denied", "Too many authentication failures"):
		return &NoRepositoryError{Remote: r.text, Refused: true, Said: said}
	case f.says("Authentication failed", "could not read Username", "could not read Password", "terminal prompts disabled",
		"requested URL returned error: 401", "requested URL returned error: 403"):
		return &NoRepositoryError{Remote: r.text, Refused: true, Said: said}
	case f.says("dubious ownership"):
		return fault.Errorf(fault.Environment, "%s: it belongs to another user, and git does not read it for safety", Shown(r.text))
	case noRepository.MatchString(f.stderr):
		// Hosts say of a private repository that it is not there.
		return &NoRepositoryError{Remote: r.text, Refused: r.scheme() != "file", Said: said}
	case f.says("transport '", "Protocol \"") && f.says("not allowed", "not supported", "disabled"):
		return fault.Errorf(fault.Policy, "%s: the server redirects to an address that is not %s, which is not followed", Shown(r.text), r.scheme())
	case f.says("SSL certificate problem", "certificate verify failed", "server certificate"):
		return fault.Errorf(fault.Network, "%s: the server's certificate is not trusted: %s", Shown(r.text), said)
	}
	for _, u := range unreached {
		if f.says(u.said) {
			return fault.Errorf(fault.Network, "%s: %s", Shown(r.text), u.means)
		}
	}
	return fault.Errorf(fault.Network, "%s: %s", Shown(r.text), cmpOr(said, err.Error()))
}

// sshCommand connects to a remote by hand.
func sshCommand(r remote) []string {
	words := []string{"ssh"}
	if port := r.url.Port(); port != "" {
		words = append(words, "-p", port)
	}
	target := r.url.Hostname()
	if name := r.url.User.Username(); name != "" {
		target = name + "@" + target
	}
	return append(words, target)
}
