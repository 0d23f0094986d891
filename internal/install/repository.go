package install

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"dsh/internal/fault"
)

// Repository is where the source of a package is kept. The zero value is none.
type Repository struct {
	Host      string // github.com, in lower case
	Path      string // owner/repo, as it is written
	Directory string // the folder of it that is the package, "" for the whole
}

// hostedBy are the hosts that short forms stand for.
var hostedBy = map[string]string{"github": "github.com", "gitlab": "gitlab.com", "bitbucket": "bitbucket.org", "gist": "gist.github.com"}

// ParseRepository reads owner/repo, which means GitHub, github:owner/repo and its
// like, and addresses of all kinds: git+https://…, git@host:owner/repo.git, pages
// in a browser. Branches in them are left out.
func ParseRepository(text string) (Repository, error) {
	bad := fault.WithHint(fault.Errorf(fault.Other, "%.200q names no repository", ShownSpec(text)), "write it as owner/repo, or as https://host/owner/repo")
	place, _, _ := strings.Cut(strings.TrimSpace(text), "#")
	if strings.ContainsFunc(place, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return Repository{}, bad
	}
	if scheme, rest, ok := strings.Cut(place, ":"); ok && hostedBy[scheme] != "" {
		return repositoryAt(hostedBy[scheme], rest, bad)
	}
	if isScp(place) {
		_, rest, _ := strings.Cut(place, "@")
		host, path, _ := strings.Cut(rest, ":")
		return repositoryAt(host, path, bad)
	}
	if !strings.Contains(place, "://") {
		if strings.Count(place, "/") == 1 && !strings.HasPrefix(place, "@") && !strings.ContainsAny(place, ":@") {
			return repositoryAt("github.com", place, bad)
		}
		host, path, _ := strings.Cut(place, "/")
		if !strings.Contains(host, ".") {
			return Repository{}, bad
		}
		return repositoryAt(host, path, bad)
	}
	u, err := url.Parse(strings.TrimPrefix(place, "git+"))
	if err != nil {
		return Repository{}, bad
	}
	if u.Scheme == "file" {
		u.Host = "file"
	}
	return repositoryAt(cmp.Or(u.Hostname(), u.Host), u.Path, bad)
}

// repositoryAt is a repository by host and path; folders of pages in a browser are
// told apart where they are known.
func repositoryAt(host, path string, bad error) (Repository, error) {
	host = strings.TrimPrefix(strings.ToLower(host), "www.")
	path = strings.Trim(path, "/")
	directory := ""
	for _, mark := range []string{"/-/tree/", "/tree/", "/src/branch/", "/src/", "/blob/"} {
		if before, rest, ok := strings.Cut(path, mark); ok && host != "file" {
			path = before
			_, directory, _ = strings.Cut(rest, "/")
			break
		}
	}
	path = strings.TrimSuffix(path, ".git")
	if host == "" || path == "" || host != "file" && host != hostedBy["gist"] && !strings.Contains(path, "/") {
		return Repository{}, bad
	}
	return Repository{host, path, strings.Trim(directory, "/")}, nil
}

// RepositoryIn is the repository that a package.json claims, the zero value for
// none. Nobody has checked that it is right.
func RepositoryIn(packageJSON []byte) Repository {
	var manifest struct {
		Repository json.RawMessage `json:"repository"`
	}
	_ = json.Unmarshal(packageJSON, &manifest) // what does not read claims nothing
	var text string
	var object struct{ URL, Directory string }
	if json.Unmarshal(manifest.Repository, &text) != nil {
		if json.Unmarshal(manifest.Repository, &object) != nil {
			return Repository{}
		}
		text = object.URL
	}
	r, err := ParseRepository(text)
	if err != nil {
		return Repository{}
	}
	if directory := strings.Trim(strings.TrimPrefix(object.Directory, "./"), "/"); directory != "" {
		r.Directory = directory
	}
	return r
}

// IsZero reports whether it is none.
func (r Repository) IsZero() bool { return r.Path == "" }

// Same reports whether two are one repository. Folders do not count: a package says
// of its folder what its author has not forgotten. Nor does upper case, which hosts
// do not tell apart.
func (r Repository) Same(other Repository) bool {
	return !r.IsZero() && r.Host == other.Host && strings.EqualFold(r.Path, other.Path)
}

// String is the repository as people write it: owner/repo on GitHub.
func (r Repository) String() string {
	switch {
	case r.IsZero():
		return ""
	case r.Host == "github.com":
		return r.Path
	}
	return r.Host + "/" + r.Path
}
