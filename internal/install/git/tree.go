package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/fault"
)

// Entry is one file or link of a tree.
type Entry struct {
	Path       string // slash-separated, below the folder that was asked for
	Executable bool
	Link       string // what a symbolic link holds; "" for a file
	Size       int64  // bytes of a file
}

// Tree is the files of a commit, or of a folder in it, with those of its
// submodules. It is for one goroutine.
type Tree struct {
	Commit  Commit
	client  *Client
	repos   []*repository // the tree's own first
	files   []file        // in order of path
	fetched bool          // all contents are there
}

// file is an entry of a tree before its content is known.
type file struct {
	path       string
	id         string
	executable bool
	link       bool
	repo       *repository
	there      bool // the content has been fetched
}

// Bounds on one tree. They are those of any content in the store, and here for a
// server that sends on and on.
const (
	maxFiles      = 200_000
	maxLink       = 4096 // bytes of what a symbolic link holds
	maxRead       = 4 << 20
	maxSubmodules = 8 // in each other
)

// Fetch brings a commit, and of its files those below a folder, "" for all.
// Other files are left out where the server can do that. The caller closes the
// tree.
func (c *Client) Fetch(ctx context.Context, address string, commit Commit, folder string) (*Tree, error) {
	t, err := c.open(ctx, address, commit, folder, folder != "")
	if err == nil {
		if err = t.need(ctx, t.files); err != nil {
			t.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	t.fetched = true
	return t, nil
}

// Peek is Fetch that brings no files where the server can leave them out; each
// is fetched when it is read.
func (c *Client) Peek(ctx context.Context, address string, commit Commit, folder string) (*Tree, error) {
	return c.open(ctx, address, commit, folder, true)
}

func (c *Client) open(ctx context.Context, address string, commit Commit, folder string, partial bool) (*Tree, error) {
	r, err := parseRemote(address)
	if err != nil {
		return nil, err
	}
	if !IsCommit(commit.ID) {
		return nil, &RefError{Remote: address, Ref: commit.ID, Reason: "is not the whole hash of a commit"}
	}
	if folder != "" && (path.Clean(folder) != folder || path.IsAbs(folder) || folder == ".." || strings.HasPrefix(folder, "../") || strings.ContainsRune(folder, 0)) {
		return nil, &PathError{Remote: address, Commit: commit.ID, Path: folder, Reason: "is no folder below the repository's root"}
	}
	t := &Tree{Commit: commit, client: c}
	if err := t.add(ctx, r, commit, folder, "", partial, 0); err != nil {
		t.Close()
		return nil, err
	}
	// Folder by folder, as directories are walked: a name counts before what
	// stands behind a slash.
	slices.SortFunc(t.files, func(a, b file) int {
		return strings.Compare(strings.ReplaceAll(a.path, "/", "\x00"), strings.ReplaceAll(b.path, "/", "\x00"))
	})
	return t, nil
}

// Close takes away what was fetched.
func (t *Tree) Close() {
	for _, repo := range t.repos {
		repo.remove()
	}
}

// add adds the files of a commit of a repository, with its submodules, at a
// place of the tree.
func (t *Tree) add(ctx context.Context, r remote, commit Commit, folder, at string, partial bool, depth int) error {
	repo, err := t.client.newRepository(ctx, r, len(commit.ID))
	if err != nil {
		return err
	}
	t.repos = append(t.repos, repo)
	if err := repo.fetchCommit(ctx, commit, partial); err != nil {
		return err
	}
	top := commit.ID
	if folder != "" {
		if top, err = repo.folder(ctx, commit, folder); err != nil {
			return err
		}
	}
	files, links, err := repo.list(ctx, top)
	if err != nil {
		return err
	}
	for _, f := range files {
		f.path, f.repo = path.Join(at, f.path), repo
		t.files = append(t.files, f)
	}
	if len(t.files) > maxFiles {
		return fault.Errorf(fault.Policy, "%s: it holds more than %d files", Shown(r.text), maxFiles)
	}
	if len(links) == 0 {
		return nil
	}
	modules, err := repo.submodules(ctx, commit)
	if err != nil {
		return err
	}
	for _, link := range links {
		m, known := modules[path.Join(folder, link.path)]
		if !known || m.update == "none" {
			continue // git itself leaves an empty folder there
		}
		place := path.Join(at, link.path)
		err := func() error {
			if depth+1 > maxSubmodules {
				return fault.Errorf(fault.Policy, "%s: submodules are nested deeper than %d", Shown(r.text), maxSubmodules)
			}
			of, err := r.submodule(m.url)
			if err != nil {
				return err
			}
			if err := t.client.opts.Submodule(of.text); err != nil {
				return err
			}
			return t.add(ctx, of, Commit{ID: link.id}, "", place, partial, depth+1)
		}()
		if err != nil {
			return &SubmoduleError{place, err}
		}
	}
	return nil
}

// folder is the hash of a folder of a commit.
func (r *repository) folder(ctx context.Context, commit Commit, folder string) (string, error) {
	fail := &PathError{Remote: r.remote.text, Commit: commit.ID, Path: folder}
	top := commit.ID
	for i, name := range strings.Split(folder, "/") {
		entries, err := r.entries(ctx, top, false)
		if err != nil {
			return "", err
		}
		var here treeEntry
		for _, e := range entries {
			if e.path == name {
				here = e
			}
			if e.kind == "tree" {
				fail.Have = append(fail.Have, e.path)
			}
		}
		fail.Have = slices.Clip(fail.Have[:min(len(fail.Have), maxNear)])
		switch {
		case here.kind == "tree":
			top = here.id
			fail.Have, fail.Within = nil, path.Join(strings.Split(folder, "/")[:i+1]...)
			continue
		case here.kind == "commit":
			fail.Reason = "is in a submodule; add that repository itself"
		case here.mode == "120000":
			fail.Reason = "is a symbolic link"
		case here.kind == "blob":
			fail.Reason = "is a file"
		default:
			fail.Reason = "is not there"
		}
		return "", fail
	}
	return top, nil
}

// treeEntry is one line of ls-tree.
type treeEntry struct{ mode, kind, id, path string }

func (r *repository) entries(ctx context.Context, tree string, whole bool) ([]treeEntry, error) {
	args := []string{"ls-tree", "-z", "--full-tree"}
	if whole {
		args = append(args, "-r")
	}
	out, err := r.run(ctx, append(args, tree)...)
	if f, ok := errors.AsType[*failure](err); ok {
		return nil, fault.Errorf(fault.Network, "%s: what the server sent is broken: %s", Shown(r.remote.text), f.lastWords())
	}
	if err != nil {
		return nil, err
	}
	return parseTree(string(out))
}

// parseTree reads what ls-tree -z prints: "mode kind hash<tab>path<NUL>".
func parseTree(text string) ([]treeEntry, error) {
	var list []treeEntry
	for text != "" {
		line, rest, ok := strings.Cut(text, "\x00")
		head, name, tab := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || !tab || len(fields) != 3 || !IsCommit(fields[2]) {
			return nil, fmt.Errorf("git ls-tree says %q", line)
		}
		list = append(list, treeEntry{fields[0], fields[1], fields[2], name})
		text = rest
	}
	return list, nil
}

// list is the files below a folder, and the commits of submodules.
func (r *repository) list(ctx context.Context, tree string) (files []file, links []treeEntry, err error) {
	entries, err := r.entries(ctx, tree, true)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if err := r.checkName(e.path); err != nil {
			return nil, nil, err
		}
		switch {
		case e.kind == "commit":
			links = append(links, e)
		case e.kind == "blob":
			files = append(files, file{path: e.path, id: e.id, executable: e.mode == "100755", link: e.mode == "120000"})
		default:
			return nil, nil, &TreeError{r.remote.text, e.path, "is neither a file nor a folder"}
		}
	}
	return files, links, nil
}

// checkName refuses what git refuses to check out. What else a name must be is
// said where it is written.
func (r *repository) checkName(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
			return &TreeError{r.remote.text, name, "leads out of its folder"}
		case strings.EqualFold(strings.TrimRight(part, ". "), ".git") || strings.EqualFold(part, "git~1"):
			return &TreeError{r.remote.text, name, "is named like git's own folder"}
		}
	}
	return nil
}

// need brings the contents of files.
func (t *Tree) need(ctx context.Context, files []file) error {
	if t.fetched {
		return nil
	}
	missing := map[*repository][]string{}
	seen := map[string]bool{}
	for _, f := range files {
		if f.repo.partial && !f.there && !seen[f.id] {
			seen[f.id] = true
			missing[f.repo] = append(missing[f.repo], f.id)
		}
	}
	for _, repo := range t.repos {
		ids := missing[repo]
		if len(ids) == 0 {
			continue
		}
		err := repo.fetchBlobs(ctx, ids)
		if isRefused(err) {
			// It gives no single files.
			if err = repo.renew(ctx); err == nil {
				err = repo.fetchCommit(ctx, repo.commit, false)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Each calls visit for all files in order of path. The reader ends with the file.
func (t *Tree) Each(ctx context.Context, visit func(Entry, io.Reader) error) (err error) {
	if err := t.need(ctx, t.files); err != nil {
		return err
	}
	t.fetched = true
	r := t.reader(ctx)
	defer func() { err = errors.Join(err, r.close(err)) }()
	for _, f := range t.files {
		if err := r.visit(f, visit); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether a file stands at a path.
func (t *Tree) Has(name string) bool {
	_, ok := t.find(name)
	return ok
}

func (t *Tree) find(name string) (file, bool) {
	i := slices.IndexFunc(t.files, func(f file) bool { return f.path == name })
	if i < 0 {
		return file{}, false
	}
	return t.files[i], true
}

// errNoFile is the reading of a file that a tree does not have.
var errNoFile = errors.New("there is no such file")

// ReadFile is the content of one small file. What is no file is an error that
// [IsNotExist] tells.
func (t *Tree) ReadFile(ctx context.Context, name string) (content []byte, err error) {
	f, ok := t.find(name)
	if !ok || f.link {
		return nil, fmt.Errorf("%s: %w", name, errNoFile)
	}
	if err := t.need(ctx, []file{f}); err != nil {
		return nil, err
	}
	t.note([]file{f})
	r := t.reader(ctx)
	defer func() { err = errors.Join(err, r.close(err)) }()
	err = r.visit(f, func(e Entry, from io.Reader) (err error) {
		if e.Size > maxRead {
			return fault.Errorf(fault.Package, "%s is larger than %d bytes", name, int64(maxRead))
		}
		content, err = io.ReadAll(from)
		return err
	})
	return content, err
}

// ReadFiles is the contents of small files that are there, fetched together.
func (t *Tree) ReadFiles(ctx context.Context, names []string) ([][]byte, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var files []file
	for _, f := range t.files {
		if wanted[f.path] {
			files = append(files, f)
		}
	}
	if err := t.need(ctx, files); err != nil {
		return nil, err
	}
	t.note(files)
	var contents [][]byte
	for _, name := range names {
		text, err := t.ReadFile(ctx, name)
		if err != nil {
			return nil, err
		}
		contents = append(contents, text)
	}
	return contents, nil
}

// note notes that the contents of files are there.
func (t *Tree) note(files []file) {
	ids := map[string]bool{}
	for _, f := range files {
		ids[f.id] = true
	}
	for i := range t.files {
		t.files[i].there = t.files[i].there || ids[t.files[i].id]
	}
}

// Folders lists the folders with a file of that name, "" for the top, without what
// stands in a node_modules.
func (t *Tree) Folders(file string) []string {
	var list []string
	for _, f := range t.files {
		dir, base := path.Split(f.path)
		if base == file && !f.link && !slices.Contains(strings.Split(dir, "/"), "node_modules") {
			list = append(list, strings.TrimSuffix(dir, "/"))
		}
	}
	return list
}

// reader reads objects of a tree's repositories, over one process for each.
type reader struct {
	ctx  context.Context
	tree *Tree
	by   map[*repository]*batch
}

// batch is a running "git cat-file --batch".
type batch struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	said    *limited
}

func (t *Tree) reader(ctx context.Context) *reader {
	return &reader{ctx: ctx, tree: t, by: map[*repository]*batch{}}
}

func (r *reader) open(repo *repository) (*batch, error) {
	if b := r.by[repo]; b != nil {
		return b, nil
	}
	process, err := r.tree.client.prepare(r.ctx, command{dir: repo.dir, args: []string{"cat-file", "--batch"}})
	if err != nil {
		return nil, err
	}
	b := &batch{process: process, said: &limited{left: 1 << 16}}
	process.Stderr = b.said
	if b.in, err = process.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	b.out = bufio.NewReaderSize(out, 64<<10)
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("run git: %w", err)
	}
	r.by[repo] = b
	return b, nil
}

// visit reads one object: "hash kind size<newline>content<newline>".
func (r *reader) visit(f file, visit func(Entry, io.Reader) error) error {
	b, err := r.open(f.repo)
	if err != nil {
		return err
	}
	broken := func(err error) error {
		if r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		said := (&failure{stderr: b.said.String()}).lastWords()
		return fault.Errorf(fault.Network, "%s: read %s: %s", Shown(f.repo.remote.text), f.path, cmp.Or(said, err.Error()))
	}
	if _, err := io.WriteString(b.in, f.id+"\n"); err != nil {
		return broken(err)
	}
	head, err := b.out.ReadString('\n')
	if err != nil {
		return broken(err)
	}
	fields := strings.Fields(head)
	if len(fields) != 3 || fields[0] != f.id || fields[1] != "blob" {
		return broken(fmt.Errorf("its content is not there (%s)", strings.TrimSpace(head)))
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil || size < 0 {
		return broken(fmt.Errorf("git cat-file says %q", head))
	}
	entry := Entry{Path: f.path, Executable: f.executable, Size: size}
	content := &io.LimitedReader{R: b.out, N: size}
	if f.link {
		if size > maxLink {
			return &TreeError{f.repo.remote.text, f.path, fmt.Sprintf("is a link to a name of more than %d bytes", maxLink)}
		}
		target, err := io.ReadAll(content)
		if err != nil || int64(len(target)) != size {
			return broken(cmp.Or(err, io.ErrUnexpectedEOF))
		}
		if entry.Link, entry.Size = string(target), 0; entry.Link == "" {
			return &TreeError{f.repo.remote.text, f.path, "is a link to nothing"}
		}
		err = visit(entry, bytes.NewReader(nil))
		if err != nil {
			return err
		}
	} else {
		if err := visit(entry, content); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, content); err != nil {
			return broken(err)
		}
		if content.N > 0 {
			return broken(io.ErrUnexpectedEOF)
		}
	}
	if _, err := b.out.Discard(1); err != nil {
		return broken(err)
	}
	return nil
}

// close ends the processes. After an error they may have more to say, which
// nobody reads.
func (r *reader) close(failed error) error {
	var all error
	for repo, b := range r.by {
		if failed != nil {
			_ = b.process.Cancel()
		}
		_ = b.in.Close()
		err := b.process.Wait()
		if err != nil && failed == nil {
			all = errors.Join(all, fault.Errorf(fault.Network, "%s: read its files: %w", Shown(repo.remote.text), err))
		}
	}
	return all
}
