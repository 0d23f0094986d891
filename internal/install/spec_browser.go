package install

import (
	"net/url"
	"strings"
)

// browsed is the repository of a page that people copy out of a browser: its
// front page, or the one of a branch, tag, commit or folder. It is nil for
// every other address. Which part of a path is a branch is the custom of each
// host; those of GitLab and Gitea are recognised wherever such a server is.
func (p placeParser) browsed(u *url.URL) (*GitSource, error) {
	host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	var parts []string
	for part := range strings.SplitSeq(strings.Trim(u.EscapedPath(), "/"), "/") {
		plain, err := url.PathUnescape(part)
		if err != nil || part == "" {
			return nil, nil
		}
		parts = append(parts, plain)
	}
	page, ok := readPage(host, parts)
	if !ok || hasArchiveName(u.Path) {
		return nil, nil
	}
	scheme := "https"
	if page.host == "" && isLoopback(u.Hostname()) {
		scheme = strings.ToLower(u.Scheme)
	}
	g := &GitSource{Ref: page.ref, Browsed: page.open && len(page.folder) > 0}
	if base, known := gitHosts[page.host]; known && u.User == nil && u.Port() == "" {
		g.Host, g.Remote = page.host, base+strings.Join(page.repo, "/")+remoteSuffix(page.host)
	} else {
		at := url.URL{Scheme: scheme, User: u.User, Host: strings.ToLower(u.Host), Path: "/" + strings.Join(page.repo, "/") + ".git"}
		g.Remote = at.String()
	}
	for _, part := range page.repo {
		if !isRepoName(strings.TrimSuffix(part, ".git")) {
			return nil, nil
		}
	}
	folder, ok := cleanInside(strings.Join(page.folder, "/"))
	if !ok {
		_, err := p.outside()
		return nil, err
	}
	if g.Path = folder; g.Ref != "" && !isRef(g.Ref) {
		_, err := p.refuse("asks for "+quote(g.Ref)+", which is the name of no branch, tag or commit", "")
		return nil, err
	}
	if u.Fragment == "" || g.Ref != "" && !strings.Contains(u.Fragment, ":") {
		return g, nil // what is left is a place on the page
	}
	return p.selected(g, u.EscapedFragment())
}

// page is what the address of a page of a repository says.
type page struct {
	host   string // in gitHosts, or ""
	repo   []string
	ref    string
	folder []string
	open   bool // ref may go on in folder
}

// readPage reads the path of a page. It reports false for what is none of a
// repository as it is at some commit: archives, releases, issues.
func readPage(host string, parts []string) (page, bool) {
	// GitLab, anywhere: everything before /-/ is the repository.
	for i, part := range parts {
		if part == "-" && i >= 2 && len(parts) > i+2 {
			pg := page{repo: trimGit(parts[:i])}
			if host == "gitlab.com" {
				pg.host = "gitlab"
			}
			return pg.at(parts[i+1], parts[i+2:])
		}
	}
	switch host {
	case "gist.github.com":
		if len(parts) == 0 || len(parts) > 3 {
			return page{}, false
		}
		id := parts[min(1, len(parts)-1)]
		pg := page{host: "gist", repo: trimGit([]string{id})}
		if len(parts) == 3 {
			pg.ref = parts[2]
		}
		return pg, true
	case "gitlab.com":
		return page{host: "gitlab", repo: trimGit(parts)}, len(parts) >= 2
	case "git.sr.ht":
		if len(parts) < 2 || !strings.HasPrefix(parts[0], "~") {
			return page{}, false
		}
	}
	if len(parts) < 2 {
		return page{}, false
	}
	known := map[string]string{"github.com": "github", "bitbucket.org": "bitbucket", "git.sr.ht": "sourcehut", "codeberg.org": "", "gitee.com": ""}
	name, front := known[host]
	pg := page{host: name, repo: trimGit(parts[:2])}
	if len(parts) == 2 {
		return pg, front
	}
	if len(parts) == 3 {
		return page{}, false
	}
	kind, rest := parts[2], parts[3:]
	switch {
	case kind == "src" && host == "bitbucket.org":
		return pg.at("tree", rest)
	case kind == "branch" && host == "bitbucket.org":
		pg.ref = strings.Join(rest, "/")
		return pg, true
	case kind == "src" && len(rest) > 1 && (rest[0] == "branch" || rest[0] == "tag" || rest[0] == "commit"):
		return pg.at("tree", rest[1:]) // Gitea and Forgejo
	case kind == "releases" && len(rest) > 1 && rest[0] == "tag":
		pg.ref = strings.Join(rest[1:], "/")
		return pg, true
	case kind == "tree" || front && (kind == "blob" || kind == "commit" || kind == "commits"):
		return pg.at(kind, rest)
	}
	return page{}, false
}

// at adds what a page of that kind shows.
func (pg page) at(kind string, rest []string) (page, bool) {
	switch kind {
	case "tree":
		pg.ref, pg.folder, pg.open = rest[0], rest[1:], true
		return pg, true
	case "blob":
		if last := len(rest) - 1; last > 0 && rest[last] == "package.json" {
			pg.ref, pg.folder, pg.open = rest[0], rest[1:last], true
			return pg, true
		}
	case "commit", "commits", "tags":
		pg.ref = strings.Join(rest, "/")
		return pg, true
	}
	return page{}, false
}

func trimGit(parts []string) []string {
	parts = append([]string(nil), parts...)
	parts[len(parts)-1] = strings.TrimSuffix(parts[len(parts)-1], ".git")
	return parts
}
