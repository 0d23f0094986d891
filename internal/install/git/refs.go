package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"dsh/internal/npmrange"
)

// Ref is a name that a repository has for a commit.
type Ref struct {
	Name string // "HEAD", "refs/heads/main", "refs/tags/v1.0.0"
	ID   string // of what it names
	// Commit is what an annotated tag leads to, else ID.
	Commit string
}

// Want is what is asked for of a repository: a branch, a tag or a commit, or the
// highest version in a range that a tag names; both "" is HEAD.
type Want struct{ Ref, Range string }

// Commit is a commit, and the ref that led to it.
type Commit struct {
	ID  string // 40 or 64 hex digits
	Ref string // full name, "" where the commit was named itself
}

// Refs lists HEAD, the branches and the tags of a repository. It is asked once in
// the client's life.
func (c *Client) Refs(ctx context.Context, address string) ([]Ref, error) {
	r, err := parseRemote(address)
	if err != nil {
		return nil, err
	}
	return c.allRefs(ctx, r)
}

func (c *Client) allRefs(ctx context.Context, r remote) ([]Ref, error) {
	c.mu.Lock()
	known := c.refs[r.text]
	if known == nil {
		known = new(refsOnce)
		c.refs[r.text] = known
	}
	c.mu.Unlock()
	known.once.Do(func() { known.refs, known.err = c.listRefs(ctx, r, "HEAD", "refs/heads/*", "refs/tags/*") })
	if errors.Is(known.err, context.Canceled) {
		// Who began it went away; whoever comes now asks anew.
		c.mu.Lock()
		if c.refs[r.text] == known {
			delete(c.refs, r.text)
		}
		c.mu.Unlock()
		if ctx.Err() == nil {
			return c.allRefs(ctx, r)
		}
	}
	return known.refs, known.err
}

// listRefs asks a repository for the refs of some patterns.
func (c *Client) listRefs(ctx context.Context, r remote, patterns ...string) (refs []Ref, err error) {
	var out []byte
	err = c.opts.Retry(ctx, func() error {
		var err error
		out, err = c.run(ctx, command{remote: r, args: append([]string{"ls-remote", "--quiet", "--", r.told}, patterns...)})
		return explained(r, err)
	})
	if err != nil {
		return nil, err
	}
	return parseRefs(string(out))
}

// parseRefs reads the lines of ls-remote. "name^{}" is what the annotated tag
// before it leads to.
func parseRefs(text string) ([]Ref, error) {
	var refs []Ref
	for line := range strings.Lines(text) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok || !IsCommit(id) {
			return nil, fmt.Errorf("git ls-remote says %q", line)
		}
		if tag, peeled := strings.CutSuffix(name, "^{}"); peeled {
			if last := len(refs) - 1; last >= 0 && refs[last].Name == tag {
				refs[last].Commit = id
			}
			continue
		}
		refs = append(refs, Ref{Name: name, ID: id, Commit: id})
	}
	return refs, nil
}

// IsCommit reports whether a text is the whole hash of a commit, SHA-1 or
// SHA-256.
func IsCommit(text string) bool { return (len(text) == 40 || len(text) == 64) && isHex(text) }

func isHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return text != ""
}

// minAbbreviation is how many digits of a hash are taken for a commit.
const minAbbreviation = 7

// Resolve finds the commit that is wanted of a repository. A whole hash is taken
// as it is, without asking.
func (c *Client) Resolve(ctx context.Context, address string, want Want) (Commit, error) {
	r, err := parseRemote(address)
	if err != nil {
		return Commit{}, err
	}
	if want.Range == "" && IsCommit(want.Ref) {
		return Commit{ID: strings.ToLower(want.Ref)}, nil
	}
	if err := checkRef(r, want.Ref); err != nil {
		return Commit{}, err
	}
	refs, err := c.allRefs(ctx, r)
	if err != nil {
		return Commit{}, err
	}
	if len(refs) == 0 {
		return Commit{}, &RefError{Remote: address, Ref: cmp.Or(want.Ref, want.Range, "HEAD"), Range: want.Range != "", Reason: "is not there: the repository is empty"}
	}
	if want.Range != "" {
		return highest(r, refs, want.Range)
	}
	if found, ok := named(refs, cmp.Or(want.Ref, "HEAD")); ok {
		return Commit{found.Commit, found.Name}, nil
	}
	if want.Ref == "" {
		return Commit{}, &RefError{Remote: address, Ref: "HEAD", Reason: "leads to no branch", Near: names(refs, "")}
	}
	// Names outside of branches and tags, such as pull/1/head, are asked for alone:
	// large hosts have very many.
	if strings.Contains(want.Ref, "/") {
		others, err := c.listRefs(ctx, r, want.Ref)
		if err != nil {
			return Commit{}, err
		}
		if found, ok := named(others, want.Ref); ok {
			return Commit{found.Commit, found.Name}, nil
		}
	}
	if len(want.Ref) >= minAbbreviation && len(want.Ref) < 64 && isHex(want.Ref) {
		return c.abbreviated(ctx, r, refs, strings.ToLower(want.Ref))
	}
	return Commit{}, &RefError{Remote: address, Ref: want.Ref, Near: names(refs, want.Ref)}
}

// checkRef refuses what git would read as anything but a name.
func checkRef(r remote, ref string) error {
	bad := strings.HasPrefix(ref, "-") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") || strings.Contains(ref, "//") ||
		strings.HasSuffix(ref, "/") || strings.HasSuffix(ref, ".lock") || strings.HasPrefix(ref, "/") || strings.HasSuffix(ref, ".") ||
		strings.ContainsAny(ref, " ~^:?*[\\") || strings.ContainsFunc(ref, unicode.IsControl)
	if bad {
		return &RefError{Remote: r.text, Ref: ref, Reason: "is no name of a branch, a tag or a commit"}
	}
	return nil
}

// named is the ref that a name means, tags before branches as in git and pnpm.
func named(refs []Ref, name string) (Ref, bool) {
	for _, full := range []string{name, "refs/" + name, "refs/tags/" + name, "refs/heads/" + name} {
		if i := slices.IndexFunc(refs, func(r Ref) bool { return r.Name == full }); i >= 0 && (name == "HEAD" || full != "HEAD") {
			return refs[i], true
		}
	}
	return Ref{}, false
}

// highest is the tag with the highest version in a range. As in pnpm, tags are
// versions with or without a v in front, and of two for one version the one
// without comes first.
func highest(r remote, refs []Ref, wanted string) (Commit, error) {
	in, err := npmrange.ParseRangeLoose(wanted)
	if err != nil {
		return Commit{}, &RefError{Remote: r.text, Ref: wanted, Range: true, Reason: "is no range of versions"}
	}
	var best npmrange.Version
	var found Ref
	var versions []string
	for _, ref := range refs {
		tag, ok := strings.CutPrefix(ref.Name, "refs/tags/")
		if !ok {
			continue
		}
		version, err := npmrange.ParseVersionLoose(strings.TrimPrefix(tag, "v"))
		if err != nil {
			continue
		}
		versions = append(versions, tag)
		if in.Satisfies(version) && (found.Name == "" || best.Less(version)) {
			best, found = version, ref
		}
	}
	if found.Name == "" {
		slices.Reverse(versions)
		return Commit{}, &RefError{Remote: r.text, Ref: wanted, Range: true, Near: versions[:min(len(versions), maxNear)]}
	}
	return Commit{found.Commit, found.Name}, nil
}

// maxNear is how many names an error offers.
const maxNear = 8

// names is the branches and tags that look most like a name.
func names(refs []Ref, like string) []string {
	like = strings.ToLower(like)
	type scored struct {
		name  string
		score int
	}
	var list []scored
	for _, ref := range refs {
		name, ok := strings.CutPrefix(ref.Name, "refs/heads/")
		if !ok {
			if name, ok = strings.CutPrefix(ref.Name, "refs/tags/"); !ok {
				continue
			}
		}
		s := distance(like, strings.ToLower(name))
		if like != "" && (strings.Contains(strings.ToLower(name), like) || strings.Contains(like, strings.ToLower(name))) {
			s = min(s, 1)
		}
		list = append(list, scored{name, s})
	}
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
	var out []string
	for _, s := range list[:min(len(list), maxNear)] {
		out = append(out, s.name)
	}
	return out
}

// distance is how many letters two words differ in.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// abbreviated finds the commit whose hash begins with some digits: for that all
// commits of the repository are looked at, and no files where the server can leave
// them out.
func (c *Client) abbreviated(ctx context.Context, r remote, refs []Ref, digits string) (Commit, error) {
	none := &RefError{Remote: r.text, Ref: digits, Near: names(refs, digits)}
	repo, err := c.newRepository(ctx, r, len(refs[0].ID))
	if err != nil {
		return Commit{}, err
	}
	defer repo.remove()
	if err := repo.fetch(ctx, []string{"--filter=tree:0"}, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return Commit{}, err
	}
	out, err := repo.run(ctx, "rev-parse", "--disambiguate="+digits)
	if err != nil {
		return Commit{}, none
	}
	var found []string
	for _, id := range strings.Fields(string(out)) {
		kind, err := repo.run(ctx, "cat-file", "-t", id)
		if err == nil && strings.TrimSpace(string(kind)) == "commit" {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return Commit{}, none
	case 1:
		return Commit{ID: found[0]}, nil
	}
	return Commit{}, &RefError{Remote: r.text, Ref: digits, Reason: fmt.Sprintf("is the beginning of several commits: %s", strings.Join(found, ", "))}
}
