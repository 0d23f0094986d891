package git

import (
	"context"
	"errors"
	"net/url"
	"path"
	"strings"

	"dsh/internal/fault"
)

// module is what .gitmodules says of one submodule.
type module struct{ url, update string }

// submodules reads the .gitmodules of a commit: what it says, by path.
func (r *repository) submodules(ctx context.Context, commit Commit) (map[string]module, error) {
	entries, err := r.entries(ctx, commit.ID, false)
	if err != nil {
		return nil, err
	}
	var id string
	for _, e := range entries {
		if e.path == ".gitmodules" && strings.HasPrefix(e.mode, "100") {
			id = e.id
		}
	}
	if id == "" {
		return nil, nil
	}
	if err := r.fetchBlobs(ctx, []string{id}); err != nil && !isRefused(err) {
		return nil, err
	}
	out, err := r.run(ctx, "config", "--blob="+id, "--list", "-z", "--no-includes")
	if f, ok := errors.AsType[*failure](err); ok {
		return nil, fault.Errorf(fault.Package, "%s: its .gitmodules cannot be read: %s", Shown(r.remote.text), f.lastWords())
	}
	if err != nil {
		return nil, err
	}
	return parseModules(string(out)), nil
}

// parseModules reads what "git config --list -z" prints of a .gitmodules:
// "submodule.<name>.<key><newline>value<NUL>".
func parseModules(text string) map[string]module {
	type named struct {
		module
		path string
	}
	by := map[string]*named{}
	for line := range strings.SplitSeq(text, "\x00") {
		key, value, _ := strings.Cut(line, "\n")
		rest, ok := strings.CutPrefix(key, "submodule.")
		dot := strings.LastIndexByte(rest, '.')
		if !ok || dot < 0 {
			continue
		}
		m := by[rest[:dot]]
		if m == nil {
			m = new(named)
			by[rest[:dot]] = m
		}
		switch rest[dot+1:] {
		case "path":
			m.path = path.Clean(value)
		case "url":
			m.url = value
		case "update":
			m.update = value
		}
	}
	modules := map[string]module{}
	for _, m := range by {
		if m.path != "" && m.url != "" {
			modules[m.path] = m.module
		}
	}
	return modules
}

// submodule is the repository that a submodule of r names. Nobody asked for it
// by name, so that it may be no nearer to this machine than r is: ssh keys are
// used below ssh only, and files are read below files only.
func (r remote) submodule(address string) (remote, error) {
	if strings.HasPrefix(address, "./") || strings.HasPrefix(address, "../") {
		return r.relative(address)
	}
	if file := path.IsAbs(address); file {
		address = "file://" + address
	} else if host, rest, ok := strings.Cut(address, ":"); ok && !strings.Contains(host, "/") && !strings.HasPrefix(rest, "//") {
		address = "ssh://" + host + "/" + strings.TrimPrefix(rest, "/") // user@host:path
	}
	of, err := parseRemote(address)
	if err != nil {
		return remote{}, err
	}
	near := of.scheme()
	if (near == "ssh" || near == "file") && near != r.scheme() || near == "http" && r.scheme() != "http" {
		return remote{}, &RemoteError{Remote: address, Reason: "is reached by " + near + ", while the repository that names it is reached by " + r.scheme()}
	}
	return of, nil
}

// relative is the repository at a path that begins at r's own address.
func (r remote) relative(address string) (remote, error) {
	u := *r.url
	base, user := strings.TrimRight(u.Path, "/"), r.url.User
	for {
		if rest, ok := strings.CutPrefix(address, "./"); ok {
			address = strings.TrimLeft(rest, "/")
			continue
		}
		rest, ok := strings.CutPrefix(address, "../")
		if !ok {
			break
		}
		address = strings.TrimLeft(rest, "/")
		at := strings.LastIndexByte(base, '/')
		if at < 0 {
			return remote{}, &RemoteError{Remote: r.text, Reason: "has nothing above it for a submodule"}
		}
		base = base[:at]
	}
	u = url.URL{Scheme: u.Scheme, Host: u.Host, User: user, Path: base + "/" + address}
	return parseRemote(u.String())
}
