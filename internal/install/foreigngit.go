package install

import (
	"net/url"
	"regexp"
	"strings"
	"sync"

	"dsh/internal/fault"
	"dsh/internal/install/git"
	"dsh/internal/install/store"
)

// archiveAddress is where a host has archives of commits, which pnpm fetches in
// place of the repository.
type archiveAddress struct {
	form   *regexp.Regexp
	remote string
}

// hostArchives is made when it is asked for: most commands never do.
var hostArchives = sync.OnceValue(func() []archiveAddress {
	return []archiveAddress{
		{regexp.MustCompile(`^https://codeload\.github\.com/([^/]+/[^/]+)/tar\.gz/([0-9a-fA-F]+)$`), "https://github.com/"},
		{regexp.MustCompile(`^https://gitlab\.com/api/v4/projects/([^/]+)/repository/archive\.tar\.gz\?ref=([0-9a-fA-F]+)$`), "https://gitlab.com/"},
		{regexp.MustCompile(`^https://gitlab\.com/(.+)/-/archive/([0-9a-fA-F]+)/[^/]+\.tar\.gz$`), "https://gitlab.com/"},
		{regexp.MustCompile(`^https://bitbucket\.org/([^/]+/[^/]+)/get/([0-9a-fA-F]+)\.tar\.gz$`), "https://bitbucket.org/"},
	}
})

// hostArchive is the repository and the commit of which an address has an archive.
func hostArchive(address string) (remote, commit string, ok bool) {
	for _, host := range hostArchives() {
		if m := host.form.FindStringSubmatch(address); m != nil {
			repo, err := url.PathUnescape(m[1])
			return host.remote + strings.TrimSuffix(repo, ".git") + ".git", m[2], err == nil
		}
	}
	return "", "", false
}

// foreignGit is the origin of a package that another package manager has from a
// commit of a repository. npm notes ssh for the hosts that it knows, also where it
// fetched by https, which everybody can.
func foreignGit(repo, commit, folder string) (Origin, error) {
	for _, host := range []string{"github.com", "gitlab.com", "bitbucket.org"} {
		for _, ssh := range []string{"git+ssh://git@" + host + "/", "ssh://git@" + host + "/", "git@" + host + ":"} {
			if rest, ok := strings.CutPrefix(repo, ssh); ok {
				repo = "git+https://" + host + "/" + rest
			}
		}
	}
	if strings.HasPrefix(repo, "http") || strings.HasPrefix(repo, "file:") {
		repo = "git+" + repo
	}
	spec, err := parsePlace(repo, repo, "")
	if err != nil {
		return Origin{}, err
	}
	if spec.Kind != Git || !git.IsCommit(commit) {
		return Origin{}, fault.Errorf(fault.Package, "%s at %q is no commit of a git repository", ShownSpec(repo), commit)
	}
	g := *spec.Git
	if g.Path, _ = cleanInside(folder); g.Path == "" && folder != "" {
		return Origin{}, fault.Errorf(fault.Package, "%q is no folder of a repository", folder)
	}
	return gitOrigin(g, strings.ToLower(commit)), nil
}

// fromNPM makes a package one of the repository and commit that npm notes for it:
// "git+ssh://git@host/o/r.git#<commit>", and "github:o/r#<commit>" long ago.
func (p *Package) fromNPM(resolved string) (err error) {
	repo, commit, _ := strings.Cut(resolved, "#")
	p.Integrity = store.Integrity{} // of an archive that npm made
	p.Origin, err = foreignGit(repo, commit, "")
	return err
}
