package gittest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

// Repositories is a directory of bare repositories.
type Repositories struct {
	dir  string
	time int // of the next commit, in seconds
}

// NewRepositories keeps repositories below a directory.
func NewRepositories(dir string) *Repositories { return &Repositories{dir: dir, time: 1_700_000_000} }

// Dir is the directory of a repository, which is called as in addresses, without
// .git: "owner/name".
func (r *Repositories) Dir(name string) string {
	return filepath.Join(r.dir, filepath.FromSlash(name)+".git")
}

// Git runs git in a repository and gives what it prints, without the space
// around it.
func (r *Repositories) Git(name string, args ...string) (string, error) {
	return r.git(name, "", nil, args...)
}

func (r *Repositories) git(name, work string, stdin []byte, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	when := strconv.Itoa(r.time) + " +0000"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_DIR=" + r.Dir(name),
		"GIT_AUTHOR_NAME=Tester", "GIT_AUTHOR_EMAIL=tester@example.test", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=Tester", "GIT_COMMITTER_EMAIL=tester@example.test", "GIT_COMMITTER_DATE=" + when,
	}
	if work != "" {
		cmd.Env = append(cmd.Env, "GIT_WORK_TREE="+work)
	}
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(stdin), &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// Make makes an empty repository if there is none; format is "sha1" or "sha256".
func (r *Repositories) Make(name, format string) error {
	if _, err := os.Stat(r.Dir(name)); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.Dir(name)), 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--initial-branch=main", "--object-format=" + format, r.Dir(name)},
		{"config", "uploadpack.allowFilter", "true"},
		{"config", "core.symlinks", "true"},
	} {
		if _, err := r.Git(name, args...); err != nil {
			return err
		}
	}
	return nil
}

// Commit makes the content of a folder the next commit of a branch, "" for main,
// in a repository that is made where it is not there. It returns the commit.
func (r *Repositories) Commit(name, branch, folder string) (string, error) {
	if branch == "" {
		branch = "main"
	}
	if err := r.Make(name, "sha1"); err != nil {
		return "", err
	}
	r.time += 60
	index := filepath.Join(r.Dir(name), "index")
	_ = os.Remove(index)
	// What is below a folder that has a .git is one link to git.
	if _, err := r.git(name, folder, nil, "add", "--all", "--force", "."); err != nil {
		return "", err
	}
	return r.commitIndex(name, branch)
}

func (r *Repositories) commitIndex(name, branch string) (string, error) {
	tree, err := r.Git(name, "write-tree")
	if err != nil {
		return "", err
	}
	return r.CommitTree(name, branch, tree)
}

// CommitTree makes a tree that the repository has the next commit of a branch.
func (r *Repositories) CommitTree(name, branch, tree string) (string, error) {
	args := []string{"commit-tree", "-m", "a change", tree}
	if parent, err := r.Git(name, "rev-parse", "--verify", "--quiet", "refs/heads/"+branch); err == nil {
		args = append(args, "-p", parent)
	}
	commit, err := r.Git(name, args...)
	if err == nil {
		_, err = r.Git(name, "update-ref", "refs/heads/"+branch, commit)
	}
	return commit, err
}

// Submodule adds to the last commit of a branch a submodule and makes it the
// next one. Its address is written to .gitmodules as it is.
func (r *Repositories) Submodule(name, branch, path, address, commit string) (string, error) {
	r.time += 60
	modules, _ := r.Git(name, "show", branch+":.gitmodules")
	modules += fmt.Sprintf("\n[submodule %q]\n\tpath = %s\n\turl = %s\n", path, path, address)
	blob, err := r.git(name, "", []byte(modules), "hash-object", "-w", "--stdin")
	if err != nil {
		return "", err
	}
	for _, args := range [][]string{
		{"read-tree", branch},
		{"update-index", "--add", "--cacheinfo", "100644," + blob + ",.gitmodules"},
		{"update-index", "--add", "--cacheinfo", "160000," + commit + "," + path},
	} {
		if _, err := r.Git(name, args...); err != nil {
			return "", err
		}
	}
	return r.commitIndex(name, branch)
}

// Write writes the files of a text in txtar's format below a folder. A name that
// ends in "@" is that of a symbolic link to its content, one that ends in "*" of
// a program.
func Write(folder, text string) error {
	for _, f := range txtar.Parse([]byte(text)).Files {
		name, isLink := strings.CutSuffix(f.Name, "@")
		name, isProgram := strings.CutSuffix(name, "*")
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		perm := os.FileMode(0o644)
		if isProgram {
			perm = 0o755
		}
		var err error
		if isLink {
			err = os.Symlink(strings.TrimSpace(string(f.Data)), file)
		} else {
			err = os.WriteFile(file, f.Data, perm)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
