package install

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"dsh/internal/fault"
	"dsh/internal/install/git"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
	"dsh/internal/trust"
)

// gitOrigin is a source at a commit, as the lockfile keeps it: without a user
// and a password, who are not the same for everybody.
func gitOrigin(g GitSource, commit string) Origin {
	g.Remote = withoutUser(g.Remote)
	return Origin{Git, g.At(commit)}
}

// withoutUser is the address of a repository without who asks. The user of an ssh
// address is part of its place.
func withoutUser(remote string) string {
	u, err := url.Parse(remote)
	if err != nil || u.User == nil || u.Scheme == "ssh" {
		return remote
	}
	u.User = nil
	return u.String()
}

// Commit is the commit of an origin of kind Git, "" of another.
func (o Origin) Commit() string {
	if o.Kind != Git {
		return ""
	}
	_, fragment, _ := strings.Cut(o.Place, "#")
	commit, _, _ := strings.Cut(fragment, "&")
	return commit
}

// source is what an origin of kind Git says.
func (o Origin) source() (GitSource, error) {
	spec, err := parsePlace(o.Place, o.Place, "")
	if err != nil {
		return GitSource{}, err
	}
	if spec.Kind != Git || !git.IsCommit(spec.Git.Ref) {
		return GitSource{}, fault.Errorf(fault.Package, "%s names no commit of a git repository", ShownSpec(o.Place))
	}
	return *spec.Git, nil
}

// admits reports whether a package can be what a source asks for: it is from the
// same folder of the same repository, and its commit is the one that is named.
// sure is that nothing else could be meant.
func (g GitSource) admits(pkg *Package) (can, sure bool) {
	if pkg.Origin.Kind != Git {
		return false, false
	}
	from, err := pkg.Origin.source()
	if err != nil || from.Remote != withoutUser(g.Remote) || from.Path != g.Path || g.Browsed && len(g.Readings()) > 1 {
		return false, false
	}
	if git.IsCommit(g.Ref) {
		same := strings.EqualFold(from.Ref, g.Ref)
		return same, same
	}
	return true, false
}

// gitClient makes the git of a job, which reaches servers as the registry's
// client does.
func (j *Job) gitClient(temp func() (string, error)) *git.Client {
	opts := git.Options{TempDir: temp, Received: j.Events.Received}
	if j.Policy != nil {
		opts.Submodule = func(address string) error {
			return trust.Refusal(j.Policy.Check(trust.Subject{Name: git.Shown(address), Source: trust.FromGit, Address: address, Shown: registry.ShownAddress}))
		}
	}
	if j.Registry == nil {
		return git.New(opts)
	}
	authorities := sync.OnceValues(func() (string, error) {
		r, err := j.Registry.Reach(&url.URL{})
		if err != nil || r.Authorities == nil {
			return "", err
		}
		dir, err := temp()
		if err != nil {
			return "", err
		}
		file := filepath.Join(dir, "authorities.pem")
		f, err := staging.OS.Create(file, 0o644)
		if err != nil {
			return "", err
		}
		_, err = f.Write(r.Authorities)
		return file, errors.Join(err, f.Close())
	})
	opts.Retry = j.Registry.Retry
	opts.Reach = func(u *url.URL) (git.Reach, error) {
		r, err := j.Registry.Reach(u)
		if err != nil {
			return git.Reach{}, err
		}
		file, err := authorities()
		return git.Reach{Proxy: r.Proxy, CAFile: file, Insecure: r.Insecure}, err
	}
	if r, err := j.Registry.Reach(&url.URL{}); err == nil {
		opts.Silence = r.Silence
	}
	return git.New(opts)
}

// tempDirs makes directories for a job's git: among those of the store, or of
// the system where the job has none, and then remove takes them away.
func (j *Job) tempDirs() (temp func() (string, error), remove func() error) {
	if j.Store != nil {
		return j.Store.TempDir, func() error { return nil }
	}
	var mu sync.Mutex
	var removes []func() error
	temp = func() (string, error) {
		dir, remove, err := staging.TempDir(os.TempDir())
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			removes = append(removes, remove)
		}
		return dir, err
	}
	return temp, func() (err error) {
		for _, remove := range removes {
			err = errors.Join(err, remove())
		}
		return err
	}
}

// reading is what a source means at the repository, and the commit of it.
func (s *sources) reading(ctx context.Context, g GitSource) (GitSource, git.Commit, error) {
	var first error
	for _, r := range g.Readings() {
		commit, err := s.git().Resolve(ctx, r.Remote, git.Want{Ref: r.Ref, Range: r.Range})
		if err == nil {
			r.Browsed = false
			return r, commit, nil
		}
		first = cmp.Or(first, err)
		if _, none := errors.AsType[*git.RefError](err); !none {
			break
		}
	}
	return g, git.Commit{}, first
}

// fromGit is the package at the commit that a source means now.
func (s *sources) fromGit(ctx context.Context, spec Spec) (*Package, error) {
	pkg, err := s.atCommit(ctx, spec)
	if err == nil {
		return pkg, nil
	}
	// Of several dependencies the error is to name the one that it is about.
	if what := cmp.Or(spec.Name, spec.Shown()); !strings.HasPrefix(err.Error(), what) {
		err = within(what, err)
	}
	if _, none := errors.AsType[*git.NoRepositoryError](err); none && spec.Name != "" && s.job.depended(spec.Name) {
		err = fault.WithHint(err, "%s takes it out", s.job.command("remove", spec.Name))
	}
	return nil, err
}

func (s *sources) atCommit(ctx context.Context, spec Spec) (*Package, error) {
	if s.job.Events.Resolving != nil {
		s.job.Events.Resolving(spec.Shown())
	}
	if err := s.admits([]Spec{spec}); err != nil {
		return nil, err // what other packages ask for has not been looked at yet
	}
	if s.job.Offline && !git.IsCommit(spec.Git.Ref) {
		return nil, fault.Errorf(fault.Network, "which commit it is now can only be asked, and --offline asks nobody")
	}
	source, commit, err := s.reading(ctx, *spec.Git)
	if err != nil {
		return nil, err
	}
	origin := gitOrigin(source, commit.ID)
	want := s.job.lockedContent(origin)
	entry, ok := s.job.Store.Get(want)
	if !ok || entry.Check() != nil {
		if entry, err = s.fromCommit(ctx, source, commit, want, &spec); err != nil {
			return nil, err
		}
	}
	pkg, err := s.asPlugin(ctx, spec, entryFolder{entry}, entry.Dir())
	if pkg != nil && err == nil {
		pkg.Origin, pkg.Integrity = origin, entry.Integrity
		return pkg, nil
	}
	if err == nil {
		pkg, err = s.described(ShownSpec(origin.Place), entry.Dir(), spec, entry.Integrity)
	}
	if err != nil {
		return nil, err
	}
	pkg.Origin = origin
	pkg.Bundled = only(pkg.Bundled, func(name string) bool { return entry.Has("node_modules/" + name + "/package.json") })
	if note := s.below(origin); note != "" {
		s.notes.Store(pkg.describe(), note)
	}
	return pkg, nil
}

// lockedContent is the hash that the lockfile has for an origin, zero for none.
func (j *Job) lockedContent(origin Origin) store.Integrity {
	if j.locked != nil {
		for _, n := range j.locked.Nodes {
			if n.Origin == origin {
				return n.Integrity
			}
		}
	}
	return store.Integrity{}
}

// fromCommit brings a folder of a commit into the store. Another content than
// want, unless that is zero, is a [*store.MismatchError]. asked, where it is not
// nil, is the spec for which the commit is taken for the first time, so that a
// folder that is no package is refused before its files are fetched.
func (s *sources) fromCommit(ctx context.Context, source GitSource, commit git.Commit, want store.Integrity, asked *Spec) (store.Entry, error) {
	if s.job.Offline {
		return store.Entry{}, fault.Errorf(fault.Network, "%s is not in the store, and --offline fetches nothing", ShownSpec(source.At(commit.ID)))
	}
	open := s.git().Fetch
	if asked != nil {
		open = s.git().Peek
	}
	tree, err := open(ctx, source.Remote, commit, source.Path)
	if err != nil {
		return store.Entry{}, err
	}
	defer tree.Close()
	if asked != nil {
		note := ""
		is, _, err := isPlugin(ctx, tree, asked.Plugin)
		if err == nil && !is {
			note, err = s.job.checkRoot(ctx, below{*asked, &source}, tree)
		}
		if err != nil {
			return store.Entry{}, err
		}
		s.roots.Store(gitOrigin(source, commit.ID), note)
	}
	entry, err := s.job.Store.AddTree(ctx, s.job.Store.Limits, func(add func(unpack.Member, io.Reader) error) error {
		return tree.Each(ctx, func(e git.Entry, content io.Reader) error {
			m := unpack.Member{Name: e.Path, Executable: e.Executable, Size: e.Size}
			if e.Link != "" {
				m.Type, m.Link = unpack.Link, e.Link
			}
			return add(m, content)
		})
	})
	if err == nil && !want.IsZero() && entry.Integrity != want {
		err = &store.MismatchError{Want: want, Got: entry.Integrity}
	}
	return entry, err
}

// below is what was noted of the root of an origin.
func (s *sources) below(origin Origin) string {
	note, _ := s.roots.Load(origin)
	text, _ := note.(string)
	return text
}

// fromLocked brings the content of a locked commit into the store.
func (s *sources) fromLocked(ctx context.Context, origin Origin, want store.Integrity) (store.Entry, error) {
	source, err := origin.source()
	if err != nil {
		return store.Entry{}, err
	}
	commit := git.Commit{ID: source.Ref}
	source.Remote = s.job.withUser(source.Remote)
	return s.fromCommit(ctx, source, commit, want, nil)
}

// withUser is the address of a locked repository with who asks, where somebody's
// spec says that.
func (j *Job) withUser(remote string) string {
	look := func(name, wanted string) (string, bool) {
		spec, err := ParseDependency(name, wanted, j.Dir)
		return remoteOf(spec), err == nil && spec.Kind == Git && remoteOf(spec) != remote && withoutUser(remoteOf(spec)) == remote
	}
	if j.manifest != nil {
		for _, w := range j.wishes() {
			if full, ok := look(w.Name, w.Wanted); ok {
				return full
			}
		}
	}
	if j.locked != nil {
		for _, n := range j.locked.Nodes {
			for _, d := range dependenciesAt(n.Package) {
				if !strings.Contains(d.wanted, "@") {
					continue
				}
				if full, ok := look(d.name, d.wanted); ok {
					return full
				}
			}
		}
	}
	return remote
}

func remoteOf(spec Spec) string {
	if spec.Git == nil {
		return ""
	}
	return spec.Git.Remote
}

// hostOf is the host of a repository, "" for one on this machine.
func (g GitSource) hostOf() string {
	u, err := url.Parse(g.Remote)
	if err != nil {
		return ""
	}
	return u.Host
}
