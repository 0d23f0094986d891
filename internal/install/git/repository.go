package git

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// repository is a bare repository in a temporary directory, for what is fetched
// from one remote.
type repository struct {
	client *Client
	remote remote
	commit Commit // that was fetched
	dir    string
	// partial says that the contents of files were left out, and are asked for
	// when they are needed.
	partial bool
}

// newRepository makes an empty repository for hashes of so many digits.
func (c *Client) newRepository(ctx context.Context, r remote, digits int) (*repository, error) {
	parent, err := c.opts.TempDir()
	if err != nil {
		return nil, err
	}
	repo := &repository{client: c, remote: r, dir: filepath.Join(parent, "repository")}
	format := "sha1"
	if digits == 64 {
		format = "sha256"
	}
	// No template: it could bring hooks and settings.
	_, err = c.run(ctx, command{dir: repo.dir, args: []string{"init", "--quiet", "--bare", "--template=", "--object-format=" + format}})
	if f, ok := errors.AsType[*failure](err); ok {
		err = fault.Errorf(fault.Environment, "make a repository for what is fetched: %s", f.lastWords())
	}
	if err != nil {
		repo.remove()
		return nil, err
	}
	return repo, nil
}

func (r *repository) remove() {
	_ = staging.RemoveAll(r.dir) // goes with the client's directories at the latest
}

// run runs git on what is there already; nothing is asked for.
func (r *repository) run(ctx context.Context, args ...string) ([]byte, error) {
	return r.client.run(ctx, command{dir: r.dir, args: args})
}

// fetch asks the remote for refs or objects.
func (r *repository) fetch(ctx context.Context, options []string, wanted ...string) error {
	args := append([]string{"fetch", "--progress", "--no-tags", "--no-auto-maintenance", "--no-write-fetch-head", "--no-recurse-submodules", "--update-head-ok"}, options...)
	args = append(args, "--stdin", "--end-of-options", origin)
	input := strings.Join(wanted, "\n") + "\n"
	return r.client.opts.Retry(ctx, func() error {
		_, err := r.client.run(ctx, command{remote: r.remote, dir: r.dir, args: args, stdin: strings.NewReader(input)})
		if f, ok := errors.AsType[*failure](err); ok && f.refusesWant() {
			return &refusedError{f}
		}
		return explained(r.remote, err)
	})
}

// refusedError is a server that does not give what it does not advertise, or
// does not have it.
type refusedError struct{ failure *failure }

func (e *refusedError) Error() string { return e.failure.Error() }

func (f *failure) refusesWant() bool {
	return f.says("unadvertised object", "not our ref", "couldn't find remote ref", "not valid", "filter '",
		"did not send all necessary objects", "remote did not send")
}

// fetchCommit brings a commit with its folders, and its files unless the
// repository is partial. Servers differ in what they give.
func (r *repository) fetchCommit(ctx context.Context, commit Commit, partial bool) error {
	shallow := []string{"--depth=1"}
	r.commit = commit
	if partial {
		r.partial = true
		shallow = append(shallow, "--filter=blob:none")
	}
	err := r.fetch(ctx, shallow, commit.ID)
	if refused, ok := errors.AsType[*refusedError](err); !ok || refused == nil {
		return r.checked(ctx, commit, err)
	}
	// It gives what has a name only.
	if commit.Ref != "" && commit.Ref != "HEAD" {
		err := r.fetch(ctx, shallow, commit.Ref)
		if err == nil && r.has(ctx, commit.ID) {
			return r.checked(ctx, commit, nil)
		}
		if err != nil && !isRefused(err) {
			return err
		}
	}
	// A commit that no name leads to any more may still be in the history.
	if err := r.renew(ctx); err != nil {
		return err
	}
	err = r.fetch(ctx, nil, "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
	if err != nil && !isRefused(err) {
		return err
	}
	if !r.has(ctx, commit.ID) {
		return r.gone(commit)
	}
	return r.checked(ctx, commit, nil)
}

// renew begins with an empty repository: one that was fetched in part stays so.
func (r *repository) renew(ctx context.Context) error {
	empty, err := r.client.newRepository(ctx, r.remote, len(r.commit.ID))
	if err != nil {
		return err
	}
	r.remove()
	r.dir, r.partial = empty.dir, false
	return nil
}

func isRefused(err error) bool {
	_, ok := errors.AsType[*refusedError](err)
	return ok
}

func (r *repository) gone(commit Commit) error {
	return &RefError{Remote: r.remote.text, Ref: commit.ID, Reason: "is not there, or not any more"}
}

func (r *repository) has(ctx context.Context, commit string) bool {
	_, err := r.run(ctx, "cat-file", "-e", commit+"^{commit}")
	return err == nil
}

// checked is the end of fetching a commit.
func (r *repository) checked(ctx context.Context, commit Commit, err error) error {
	if err != nil {
		return err
	}
	out, err := r.run(ctx, "cat-file", "-t", commit.ID)
	if _, ok := errors.AsType[*failure](err); ok {
		return r.gone(commit)
	}
	if kind := strings.TrimSpace(string(out)); err == nil && kind != "commit" {
		return &RefError{Remote: r.remote.text, Ref: commit.ID, Reason: fmt.Sprintf("is the hash of a %s and not of a commit", kind)}
	}
	return err
}

// fetchBlobs brings the contents of files, in one request.
func (r *repository) fetchBlobs(ctx context.Context, ids []string) error {
	if !r.partial || len(ids) == 0 {
		return nil
	}
	return r.fetch(ctx, []string{"--filter=blob:none"}, ids...)
}
