package install

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
)

// GitSource is a git repository and what of it is asked for.
type GitSource struct {
	Remote string // what git is told: https://…, ssh://…, file:///…, and http://… of this machine
	Host   string // "github", "gitlab", "bitbucket", "gist" or "sourcehut" where it is written by that name or as a page there, else ""
	Ref    string // branch, tag or commit as written; "" is HEAD
	Range  string // of #semver:, "" none; Ref is "" then
	Path   string // of path:, slash-separated, relative and clean; "" is the root
	// Browsed says that Ref and Path are of an address in which nothing tells
	// where the name of the branch ends: see [GitSource.Readings].
	Browsed bool
}

// gitHosts is where the hosts are that have a name of their own in specs.
var gitHosts = map[string]string{
	"github":    "https://github.com/",
	"gitlab":    "https://gitlab.com/",
	"bitbucket": "https://bitbucket.org/",
	"gist":      "https://gist.github.com/",
	"sourcehut": "https://git.sr.ht/",
}

// String is the source as a package.json holds it, which pnpm understands.
func (g GitSource) String() string {
	if base, ok := gitHosts[g.Host]; ok {
		if repo, ok := strings.CutPrefix(g.Remote, base); ok {
			return g.Host + ":" + strings.TrimSuffix(repo, ".git") + g.fragment()
		}
	}
	return "git+" + g.Remote + g.fragment()
}

// At is the source at one commit, as a lockfile holds it.
func (g GitSource) At(commit string) string {
	return "git+" + g.Remote + GitSource{Ref: commit, Path: g.Path}.fragment()
}

func (g GitSource) fragment() string {
	what := ""
	if g.Range != "" {
		what = "semver:" + escapeFragment(g.Range)
	} else if g.Ref != "" {
		what = escapeFragment(g.Ref)
	}
	if g.Path != "" {
		if what != "" {
			what += "&"
		}
		what += "path:/" + escapeFragment(g.Path)
	}
	if what == "" {
		return ""
	}
	return "#" + what
}

// Readings is what the source can mean, the likeliest first: in
// /tree/feature/x/plugin the branch is feature, feature/x or feature/x/plugin.
func (g GitSource) Readings() []GitSource {
	readings := []GitSource{g}
	for g.Browsed && g.Path != "" {
		next, rest, _ := strings.Cut(g.Path, "/")
		g.Ref, g.Path = g.Ref+"/"+next, rest
		readings = append(readings, g)
	}
	return readings
}

func escapeFragment(s string) string {
	return strings.NewReplacer("%", "%25", " ", "%20", "&", "%26", "::", "%3A%3A").Replace(s)
}

func unescapeFragment(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

func (p placeParser) gitSpec(g *GitSource, err error) (Spec, error) {
	if err != nil {
		return Spec{}, err
	}
	return Spec{Kind: Git, Git: g}, nil
}

// hosted reads what stands behind the name of a host: owner/repo#what.
func (p placeParser) hosted(host, rest string) (Spec, error) {
	if strings.HasPrefix(rest, "//") {
		return p.refuse("is not a valid address", "write it as "+host+":OWNER/REPOSITORY")
	}
	repo, fragment, _ := strings.Cut(rest, "#")
	repo = strings.TrimSuffix(strings.TrimPrefix(repo, host+":"), ".git")
	parts := strings.Split(repo, "/")
	valid := len(parts) == 2 || host == "gitlab" && len(parts) > 2
	example := host + ":OWNER/REPOSITORY"
	if host == "gist" {
		valid, example = len(parts) <= 2, "gist:ID"
		repo = parts[len(parts)-1]
	}
	for _, part := range parts {
		valid = valid && isRepoName(part)
	}
	if !valid {
		return p.refuse("names no repository", "write it as "+example)
	}
	return p.gitSpec(p.selected(&GitSource{Remote: gitHosts[host] + repo + remoteSuffix(host), Host: host}, fragment))
}

// remoteSuffix is what the address of a repository ends with at a host.
func remoteSuffix(host string) string {
	if host == "sourcehut" {
		return ""
	}
	return ".git"
}

func isRepoName(s string) bool {
	return s != "" && s != "." && s != ".." && s[0] != '-' && isNameText(s)
}

// git reads the address of a repository behind its scheme.
func (p placeParser) git(scheme, rest string) (Spec, error) {
	address, fragment, _ := strings.Cut(rest, "#")
	transport := strings.TrimPrefix(scheme, "git+")
	if transport == "file" {
		return p.gitFile(address, fragment)
	}
	if !strings.HasPrefix(address, "//") {
		return p.refuse("is not a valid address", "write it as "+scheme+"://HOST/REPOSITORY.git")
	}
	if transport == "ssh" {
		address = slashedScp(address)
	}
	u, err := url.Parse(transport + ":" + address)
	switch {
	case err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" || strings.HasPrefix(u.Host, "-") || strings.HasPrefix(u.User.Username(), "-"):
		return p.refuse("is not a valid address", "")
	case u.RawQuery != "":
		return p.refuse("has a query, which no address of a repository has", "")
	case transport == "git" || transport == "http" && !isLoopback(u.Hostname()):
		return p.refuse("would be fetched without encryption", "write it as "+ShownSpec("git+https:"+address))
	case transport != "ssh" && hasDots(u.Path):
		return p.refuse("is not a valid address", "")
	}
	u.Host = strings.ToLower(u.Host)
	return p.gitSpec(p.selected(&GitSource{Remote: u.String()}, fragment))
}

func hasDots(p string) bool {
	for part := range strings.SplitSeq(p, "/") {
		if part == ".." || part == "." {
			return true
		}
	}
	return false
}

// gitFile reads a repository on this machine.
func (p placeParser) gitFile(place, fragment string) (Spec, error) {
	plain, err := url.PathUnescape(strings.TrimPrefix(place, "//"))
	if err != nil || plain == "" {
		return p.refuse("is not a valid address", "write it as git+file:///FOLDER")
	}
	native, relative := nativePath(plain, p.dir)
	slashed := filepath.ToSlash(native)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // file:///C:/folder
	}
	spec, err := p.gitSpec(p.selected(&GitSource{Remote: (&url.URL{Scheme: "file", Path: slashed}).String()}, fragment))
	spec.Relative = relative && err == nil
	return spec, err
}

// isLoopback reports whether a host is this machine, by its address or by its
// usual name.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// isScp reports the form user@host:path that ssh programs have. The user is
// git, or the host has a dot, for name@kind:place is ours.
func isScp(s string) bool {
	user, rest, ok := strings.Cut(s, "@")
	if !ok || user == "" || strings.ContainsAny(user, ":/#") {
		return false
	}
	host, path, ok := strings.Cut(rest, ":")
	if !ok || host == "" || path == "" || strings.HasPrefix(path, "//") || strings.HasPrefix(path, ":") || strings.ContainsAny(host, "/@# ") {
		return false
	}
	return strings.Contains(host, ".") || user == "git" && !placeSchemes[strings.ToLower(host)]
}

// placeSchemes is what may stand before the colon behind "name@".
var placeSchemes = map[string]bool{
	"npm": true, "file": true, "link": true, "workspace": true, "catalog": true, "jsr": true, "patch": true, "portal": true, "http": true, "https": true,
	"github": true, "gitlab": true, "bitbucket": true, "gist": true, "sourcehut": true,
	"git": true, "ssh": true, "git+ssh": true, "git+https": true, "git+http": true, "git+file": true, "s3": true, "gcs": true,
}

// scp reads user@host:path as pnpm does: as ssh://user@host/path.
func (p placeParser) scp(place string) (Spec, error) {
	return p.git("git+ssh", "//"+place)
}

// slashedScp makes "//host/path" of "//host:path".
func slashedScp(address string) string {
	authority, path := address[2:], ""
	if i := strings.IndexByte(authority, '/'); i >= 0 {
		authority, path = authority[:i], authority[i:]
	}
	at := strings.LastIndexByte(authority, '@') + 1
	host, first, ok := strings.Cut(authority[at:], ":")
	if !ok || strings.HasPrefix(host, "[") || isNumber(first) && path != "" {
		return address
	}
	return "//" + authority[:at] + host + "/" + strings.TrimPrefix(first+path, "/")
}

// selected reads what stands behind the #: a branch, tag or commit, or
// semver:range, and path:folder, with & or :: between them in any order.
func (p placeParser) selected(g *GitSource, fragment string) (*GitSource, error) {
	refuse := func(reason, remedy string) (*GitSource, error) {
		_, err := p.refuse(reason, remedy)
		return nil, err
	}
	seen := map[string]bool{}
	for part := range strings.SplitSeq(strings.ReplaceAll(fragment, "::", "&"), "&") {
		if part == "" {
			continue
		}
		what := "ref"
		value := unescapeFragment(part)
		for _, key := range []string{"semver", "path"} {
			if rest, ok := strings.CutPrefix(part, key+":"); ok {
				what, value = key, unescapeFragment(rest)
			}
		}
		if seen[what] || what == "ref" && seen["semver"] || what == "semver" && seen["ref"] {
			return refuse("asks for more than one version", "write it as REPOSITORY#REF&path:/FOLDER")
		}
		seen[what] = true
		switch what {
		case "semver":
			g.Range = strings.TrimSpace(value)
			if g.Range == "" {
				g.Range = "*"
			}
			if !isRange(g.Range) {
				return refuse("asks for the range "+quote(g.Range)+", which is none", "")
			}
		case "path":
			if value == "" {
				return refuse("names no folder behind path:", "")
			}
			folder, ok := cleanInside(value)
			if !ok {
				_, err := p.outside()
				return nil, err
			}
			g.Path = folder
		default:
			if !isRef(value) {
				return refuse("asks for "+quote(value)+", which is the name of no branch, tag or commit", "")
			}
			g.Ref = value
		}
	}
	return g, nil
}

// isRef reports whether s can be the name of a branch or tag, by git's rules
// for them, or a commit.
func isRef(s string) bool {
	if s == "" || s[0] == '-' || s[0] == '/' || s == "@" || strings.HasSuffix(s, "/") || strings.HasSuffix(s, ".") ||
		strings.Contains(s, "..") || strings.Contains(s, "//") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\&") {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// ownerRepo reports GitHub's short form owner/repo.
func ownerRepo(s string) bool {
	s, _, hasRef := strings.Cut(s, "#")
	if !hasRef && hasArchiveName(s) {
		return false
	}
	owner, repo, ok := strings.Cut(s, "/")
	return ok && owner != "" && repo != "" && isRepoName(owner) && isRepoName(repo) && owner[0] != '~' && owner[0] != '.'
}
