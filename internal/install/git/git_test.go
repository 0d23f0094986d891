package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"dsh/e2e/gittest"
	"dsh/internal/fault"
)

// world is a server with repositories, and a client for it.
type world struct {
	t      *testing.T
	server *gittest.Server
	client *Client
	temp   string
	env    map[string]string
	reach  Reach
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	server, err := gittest.New(filepath.Join(dir, "repositories"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	w := &world{t: t, server: server, temp: filepath.Join(dir, "temp"), env: map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir}}
	if err := os.Mkdir(w.temp, 0o755); err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, server.CA(), 0o644); err != nil {
		t.Fatal(err)
	}
	w.reach = Reach{CAFile: ca}
	w.renew()
	return w
}

// renew gives the world a client that knows nothing yet.
func (w *world) renew() {
	w.client = New(Options{
		TempDir: func() (string, error) { return os.MkdirTemp(w.temp, "") },
		Getenv:  func(name string) string { return w.env[name] },
		Reach:   func(*url.URL) (Reach, error) { return w.reach, nil },
	})
}

// commit makes files, in txtar's format, the next commit of a branch.
func (w *world) commit(repo, branch, files string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	if err := gittest.Write(dir, files); err != nil {
		w.t.Fatal(err)
	}
	id, err := w.server.Commit(repo, branch, dir)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) git(repo string, args ...string) string {
	w.t.Helper()
	out, err := w.server.Git(repo, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) url(repo string) string { return w.server.URL() + "/" + repo + ".git" }

func (w *world) file(repo string) string {
	return "file://" + filepath.ToSlash(w.server.Dir(repo))
}

func (w *world) resolve(address string, want Want) Commit {
	w.t.Helper()
	c, err := w.client.Resolve(w.t.Context(), address, want)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// tree fetches a tree and prints it, a line for each file.
func (w *world) tree(address string, commit Commit, folder string) string {
	w.t.Helper()
	text, err := w.try(address, commit, folder)
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

func (w *world) try(address string, commit Commit, folder string) (string, error) {
	tree, err := w.client.Fetch(w.t.Context(), address, commit, folder)
	if err != nil {
		return "", err
	}
	defer tree.Close()
	return printed(w.t.Context(), tree)
}

func printed(ctx context.Context, tree *Tree) (string, error) {
	var b strings.Builder
	err := tree.Each(ctx, func(e Entry, r io.Reader) error {
		if e.Link != "" {
			fmt.Fprintf(&b, "%s -> %s\n", e.Path, e.Link)
			return nil
		}
		content, err := io.ReadAll(r)
		if int64(len(content)) != e.Size {
			return fmt.Errorf("%s: %d bytes, not %d", e.Path, len(content), e.Size)
		}
		mark := ""
		if e.Executable {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s%s %q\n", e.Path, mark, content)
		return err
	})
	return b.String(), err
}

func (w *world) nothingLeft() {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.temp, "*", "*"))
	if err != nil {
		w.t.Fatal(err)
	}
	if len(found) > 0 {
		w.t.Errorf("left behind: %v", found)
	}
}

const plugin = `
-- package.json --
{"name":"plugin","version":"1.0.0"}
-- bin/run* --
#!/bin/sh
-- lib/a.js --
a
-- lib-b.js --
b
-- current@ --
lib/a.js
-- packages/one/package.json --
{"name":"one"}
-- packages/one/x.js --
x
-- packages/two/package.json --
{"name":"two"}
-- node_modules/dep/package.json --
{"name":"dep"}
`

const wholePlugin = `bin/run* "#!/bin/sh\n"
current -> lib/a.js
lib/a.js "a\n"
lib-b.js "b\n"
node_modules/dep/package.json "{\"name\":\"dep\"}\n"
package.json "{\"name\":\"plugin\",\"version\":\"1.0.0\"}\n"
packages/one/package.json "{\"name\":\"one\"}\n"
packages/one/x.js "x\n"
packages/two/package.json "{\"name\":\"two\"}\n"
`

func TestFetch(t *testing.T) {
	w := newWorld(t)
	id := w.commit("o/r", "", plugin)
	for name, address := range map[string]string{
		"http": w.url("o/r"), "https": w.server.SecureURL() + "/o/r.git", "file": w.file("o/r"), "without .git": w.server.URL() + "/o/r",
	} {
		t.Run(name, func(t *testing.T) {
			commit := w.resolve(address, Want{})
			if commit != (Commit{id, "HEAD"}) {
				t.Errorf("got %v", commit)
			}
			if got := w.tree(address, commit, ""); got != wholePlugin {
				t.Errorf("got\n%s", got)
			}
			if got, want := w.tree(address, commit, "packages/one"), "package.json \"{\\\"name\\\":\\\"one\\\"}\\n\"\nx.js \"x\\n\"\n"; got != want {
				t.Errorf("got\n%s", got)
			}
			w.nothingLeft()
		})
	}
}

func TestServersThatGiveLess(t *testing.T) {
	for name, arrange := range map[string]func(w *world){
		"no filter": func(w *world) { w.git("o/r", "config", "uploadpack.allowFilter", "false") },
		"old":       func(w *world) { w.server.Behave("o/r", gittest.Behaviour{Old: true}) },
		"old, no filter": func(w *world) {
			w.git("o/r", "config", "uploadpack.allowFilter", "false")
			w.server.Behave("o/r", gittest.Behaviour{Old: true})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			first := w.commit("o/r", "", plugin)
			w.commit("o/r", "", "-- a --\nchanged\n")
			arrange(w)
			for _, commit := range []Commit{{ID: first}, {ID: first, Ref: "refs/heads/main"}} {
				if got := w.tree(w.url("o/r"), commit, ""); got != wholePlugin {
					t.Errorf("got\n%s", got)
				}
				if got := w.tree(w.url("o/r"), commit, "packages/two"); got != "package.json \"{\\\"name\\\":\\\"two\\\"}\\n\"\n" {
					t.Errorf("got\n%s", got)
				}
			}
			_, err := w.try(w.url("o/r"), Commit{ID: strings.Repeat("1", 40)}, "")
			if lost, ok := errors.AsType[*RefError](err); !ok || fault.ClassOf(err) != fault.Package {
				t.Errorf("of a commit that is not there: %v, %v", lost, err)
			}
			w.nothingLeft()
		})
	}
}

// A branch was pushed over: its old commit has no name, and is still what a
// lockfile wants.
func TestFetchCommitWithoutName(t *testing.T) {
	w := newWorld(t)
	old := w.commit("o/r", "", plugin)
	w.git("o/r", "update-ref", "-d", "refs/heads/main")
	w.commit("o/r", "", "-- a --\nnew\n")
	if got := w.tree(w.url("o/r"), Commit{ID: old, Ref: "refs/heads/main"}, ""); got != wholePlugin {
		t.Errorf("got\n%s", got)
	}
	w.git("o/r", "config", "uploadpack.allowAnySHA1InWant", "false")
	w.server.Behave("o/r", gittest.Behaviour{Old: true})
	if _, err := w.try(w.url("o/r"), Commit{ID: old, Ref: "refs/heads/main"}, ""); err == nil || !strings.Contains(err.Error(), "is not there, or not any more") {
		t.Errorf("of a server that gives named commits only: %v", err)
	}
}

// Only what is below the folder travels.
func TestFetchFolderIsSmall(t *testing.T) {
	w := newWorld(t)
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(i * i >> 7 * 31)
	}
	big := strings.ToValidUTF8(fmt.Sprintf("%x", noise), "")
	id := w.commit("o/r", "", plugin+"-- big --\n"+big)
	w.tree(w.url("o/r"), Commit{ID: id}, "packages/one")
	small := w.server.Sent("o/r")
	w.tree(w.url("o/r"), Commit{ID: id}, "")
	whole := w.server.Sent("o/r") - small
	if small > 8<<10 || whole < 2*small {
		t.Errorf("a folder took %d bytes, all of it %d", small, whole)
	}
}

func TestPeek(t *testing.T) {
	w := newWorld(t)
	id := w.commit("o/r", "", plugin)
	tree, err := w.client.Peek(t.Context(), w.url("o/r"), Commit{ID: id}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	if text, err := tree.ReadFile(t.Context(), "packages/one/package.json"); err != nil || string(text) != "{\"name\":\"one\"}\n" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := tree.ReadFile(t.Context(), "none"); !errors.Is(err, errNoFile) {
		t.Errorf("of a file that is not there: %v", err)
	}
	if got := tree.Folders("package.json"); !slices.Equal(got, []string{"", "packages/one", "packages/two"}) {
		t.Errorf("packages: %q", got)
	}
	if got, err := printed(t.Context(), tree); err != nil || got != wholePlugin {
		t.Errorf("got\n%s%v", got, err)
	}
}

func TestResolve(t *testing.T) {
	w := newWorld(t)
	first := w.commit("o/r", "", plugin)
	for _, tag := range []string{"1.0.0", "v1.2.0", "v1.3.0-rc.1", "v2.0.0-rc.1", "release-9.0.0", "main"} {
		w.git("o/r", "tag", tag)
	}
	second := w.commit("o/r", "", "-- a --\nsecond\n")
	w.git("o/r", "tag", "v1.1.0")
	w.git("o/r", "tag", "-a", "-m", "a release", "v1.2.1", second)
	branch := w.commit("o/r", "feature/x", "-- a --\nthird\n")
	w.git("o/r", "update-ref", "refs/pull/7/head", branch)
	w.git("o/r", "symbolic-ref", "HEAD", "refs/heads/feature/x")
	for _, c := range []struct {
		want Want
		id   string
		ref  string
	}{
		{Want{}, branch, "HEAD"},
		{Want{Ref: "HEAD"}, branch, "HEAD"},
		{Want{Ref: "main"}, first, "refs/tags/main"}, // tags before branches
		{Want{Ref: "heads/main"}, second, "refs/heads/main"},
		{Want{Ref: "refs/heads/main"}, second, "refs/heads/main"},
		{Want{Ref: "feature/x"}, branch, "refs/heads/feature/x"},
		{Want{Ref: "v1.2.1"}, second, "refs/tags/v1.2.1"}, // annotated
		{Want{Ref: "pull/7/head"}, branch, "refs/pull/7/head"},
		{Want{Ref: second}, second, ""},
		{Want{Ref: strings.ToUpper(second)}, second, ""},
		{Want{Ref: second[:9]}, second, ""},
		{Want{Ref: first[:7]}, first, ""},
		{Want{Range: "^1.0.0"}, second, "refs/tags/v1.2.1"},
		{Want{Range: "<1.2"}, w.git("o/r", "rev-parse", "v1.1.0"), "refs/tags/v1.1.0"},
		{Want{Range: "1.0.0"}, first, "refs/tags/1.0.0"},
		{Want{Range: "*"}, second, "refs/tags/v1.2.1"},
		{Want{Range: "^1.3.0-rc.0"}, first, "refs/tags/v1.3.0-rc.1"},
		{Want{Range: "^2.0.0-0"}, first, "refs/tags/v2.0.0-rc.1"},
	} {
		if got := w.resolve(w.url("o/r"), c.want); got != (Commit{c.id, c.ref}) {
			t.Errorf("%+v: got %v, not %v %v", c.want, got, c.id, c.ref)
		}
	}
	for _, c := range []struct {
		want Want
		text string
	}{
		{Want{Ref: "featur/x"}, `has no branch, tag or commit "featur/x"; it has feature/x`},
		{Want{Ref: "pull/8/head"}, `has no branch, tag or commit "pull/8/head"`},
		{Want{Ref: "1234567"}, `has no branch, tag or commit "1234567"`},
		{Want{Range: "^3.0.0"}, `has no tag with a version in "^3.0.0"; it has v2.0.0-rc.1, v1.3.0-rc.1, v1.2.1`},
		{Want{Range: ">> 1"}, `is no range of versions`},
		{Want{Ref: "--upload-pack=touch /tmp/x"}, "is no name of a branch"},
		{Want{Ref: "-x"}, "is no name of a branch"},
		{Want{Ref: "a..b"}, "is no name of a branch"},
		{Want{Ref: "a\nb"}, "is no name of a branch"},
		{Want{Ref: "main^"}, "is no name of a branch"},
	} {
		_, err := w.client.Resolve(t.Context(), w.url("o/r"), c.want)
		if err == nil || !strings.Contains(err.Error(), c.text) || fault.ClassOf(err) != fault.Package {
			t.Errorf("%+v: %v", c.want, err)
		}
	}
	w.nothingLeft()
}

func TestResolveAmbiguousAndEmpty(t *testing.T) {
	w := newWorld(t)
	if err := w.server.Make("o/empty", "sha1"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Resolve(t.Context(), w.url("o/empty"), Want{}); err == nil || !strings.Contains(err.Error(), "the repository is empty") {
		t.Errorf("of an empty repository: %v", err)
	}
	w.commit("o/r", "", plugin)
	w.git("o/r", "symbolic-ref", "HEAD", "refs/heads/gone")
	if _, err := w.client.Resolve(t.Context(), w.url("o/r"), Want{}); err == nil || !strings.Contains(err.Error(), `"HEAD" leads to no branch; it has main`) {
		t.Errorf("of a HEAD that leads nowhere: %v", err)
	}
}

func TestSHA256(t *testing.T) {
	w := newWorld(t)
	if err := w.server.Make("o/r", "sha256"); err != nil {
		t.Fatal(err)
	}
	id := w.commit("o/r", "", plugin)
	if len(id) != 64 {
		t.Fatal(id)
	}
	for _, address := range []string{w.url("o/r"), w.file("o/r")} {
		commit := w.resolve(address, Want{Ref: "main"})
		if commit.ID != id {
			t.Fatalf("got %v", commit)
		}
		if got := w.tree(address, commit, ""); got != wholePlugin {
			t.Errorf("got\n%s", got)
		}
		if got := w.resolve(address, Want{Ref: id[:8]}); got.ID != id {
			t.Errorf("got %v", got)
		}
	}
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	for _, address := range []string{
		"ext::sh -c touch%20/tmp/x", "ext::sh", "--upload-pack=touch", "-x", "/tmp", "./x", "git://h/r", "http://example.test/r.git", "ftp://h/r",
		"https://-oProxyCommand=x/r", "ssh://-oProxyCommand=x/r", "ssh://h/-x", "https://h/r?x=y", "https://h/r\n", "https:///r", "file://other/r", "git@h:o/r.git", "fd::17",
		"ssh://u:secret@h/r", "transport::https://h/r", "https://u:%0aquit@h/r",
		"https://u:p@127.0.0.1.helper=!touch$IFS/x;:4999/o/r.git", "ssh://git@h;x/r", "https://h.x=y/r", "https://h!/r",
	} {
		_, err := w.client.Refs(t.Context(), address)
		if _, ok := errors.AsType[*RemoteError](err); !ok || fault.ClassOf(err) != fault.Policy {
			t.Errorf("%q: %v", address, err)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("a password is shown: %v", err)
		}
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	id := w.commit("o/r", "", plugin)
	w.commit("o/private", "", plugin)
	w.server.Behave("o/private", gittest.Behaviour{User: "me", Password: "s3cret"})
	w.server.Behave("o/down", gittest.Behaviour{Status: 503})
	w.server.Behave("o/moved", gittest.Behaviour{Redirect: w.url("o/r")})
	w.server.Behave("o/lowered", gittest.Behaviour{Redirect: w.url("o/r")})
	secure := w.server.SecureURL()
	for _, c := range []struct {
		address, text string
		class         fault.Class
	}{
		{w.url("o/none"), "there is no such repository, or it is private", fault.Package},
		{w.file("o/none"), "there is no such repository", fault.Package},
		{w.url("o/private"), "there is no such repository, or it is private", fault.Package},
		{strings.Replace(w.url("o/private"), "://", "://me:wr0ng@", 1), "there is no such repository, or it is private", fault.Package},
		{w.url("o/down"), "503", fault.Network},
		{secure + "/o/lowered.git", "not followed", fault.Policy},
		{"https://127.0.0.1:1/o/r.git", "r.git: the server cannot be reached", fault.Network},
	} {
		_, err := w.client.Refs(t.Context(), c.address)
		if err == nil || !strings.Contains(err.Error(), c.text) || fault.ClassOf(err) != c.class || strings.Contains(err.Error(), "wr0ng") {
			t.Errorf("%s: %v (%v)", c.address, err, fault.ClassOf(err))
		}
	}
	if got := w.resolve(w.url("o/moved"), Want{}); got.ID != id {
		t.Errorf("of a repository that moved: %v", got)
	}
	w.reach.CAFile = ""
	w.renew()
	if _, err := w.client.Refs(t.Context(), secure+"/o/r.git"); err == nil || !strings.Contains(err.Error(), "certificate is not trusted") {
		t.Errorf("without the authority: %v", err)
	}
	w.reach.Insecure = true
	w.renew()
	if _, err := w.client.Refs(t.Context(), secure+"/o/moved.git"); err == nil {
		t.Error("a redirect to http is followed")
	}
	if _, err := w.client.Refs(t.Context(), secure+"/o/private.git"); err == nil {
		t.Error("a private repository is read")
	}
	if refs, err := w.client.Refs(t.Context(), secure+"/o/r.git"); err != nil || len(refs) != 2 {
		t.Errorf("with certificates not checked: %v, %v", refs, err)
	}
}

// What git, ssh and hosts say is told as what it means: what is not there is no
// program that is missing, and no network.
func TestExplained(t *testing.T) {
	const couldNot = "fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.\n"
	const ssh, https = "ssh://git@h.example:2222/o/r.git", "https://h.example/o/r.git"
	const private = "there is no such repository, or it is private"
	for _, c := range []struct {
		address, stderr, text string
		class                 fault.Class
	}{
		{ssh, "error: cannot run ssh: No such file or directory\nfatal: unable to fork\n", "ssh is not installed", fault.MissingProgram},
		{ssh, "ssh -o BatchMode=yes: 1: ssh: not found\n" + couldNot, "ssh is not installed", fault.MissingProgram},
		{ssh, "/bin/sh: line 1: ssh: command not found\n" + couldNot, "ssh is not installed", fault.MissingProgram},
		{ssh, "ssh: connect to host h.example port 2222: Connection refused\r\n" + couldNot, ": connection refused", fault.Network},
		{ssh, "ssh: Could not resolve hostname h.example: Name or service not known\n" + couldNot, ": looking up the host failed", fault.Network},
		{ssh, "kex_exchange_identification: Connection closed by remote host\nConnection closed by 192.0.2.1 port 2222\n" + couldNot, ": Connection closed by 192.0.2.1 port 2222", fault.Network},
		{ssh, "bash: git-upload-pack: command not found\n" + couldNot, ": bash: git-upload-pack: command not found", fault.Network},
		{ssh, "Host key verification failed.\n" + couldNot, "ssh does not know the server's key", fault.Environment},
		{ssh, "git@h.example: Permission denied (publickey).\n" + couldNot, private, fault.Package},
		{ssh, "ERROR: Repository not found.\n" + couldNot, private, fault.Package},
		{ssh, "remote: ERROR: The project you were looking for could not be found or you don't have permission to view it.\n" + couldNot, private, fault.Package},
		{ssh, "remote: conq: repository does not exist.\n" + couldNot, private, fault.Package},
		{ssh, "Forgejo: Cannot find repository: o/r\n" + couldNot, private, fault.Package},
		{ssh, "fatal: '/o/r.git' does not appear to be a git repository\n" + couldNot, private, fault.Package},
		{https, "remote: Not Found\nfatal: repository 'https://h.example/o/r.git/' not found\n", private, fault.Package},
		{https, "fatal: unable to access 'https://h.example/o/r.git/': Could not resolve host: h.example\n", ": looking up the host failed", fault.Network},
		{https, "fatal: unable to access 'https://h.example/o/r.git/': Failed to connect to h.example port 443 after 3 ms: Couldn't connect to server\n", ": the server cannot be reached", fault.Network},
		{https, "fatal: unable to access 'https://h.example/o/r.git/': Failed to connect to h.example port 443: Connection timed out\n", ": connecting took too long", fault.Network},
		{https, "fatal: unable to access 'https://h.example/o/r.git/': Received HTTP code 407 from proxy after CONNECT\n", "r.git: Received HTTP code 407 from proxy", fault.Network},
	} {
		r, err := parseRemote(c.address)
		if err != nil {
			t.Fatal(err)
		}
		err = explained(r, &failure{verb: "ls-remote", code: 128, stderr: c.stderr})
		if !strings.Contains(err.Error(), c.text) || fault.ClassOf(err) != c.class || strings.Count(err.Error(), "o/r.git") != 1 {
			t.Errorf("%s: %v (%v)", c.stderr, err, fault.ClassOf(err))
		}
		if hint := fault.Hint(err); c.class == fault.Environment && !strings.HasSuffix(hint, "ssh -p 2222 git@h.example") || c.class == fault.MissingProgram && hint == "" {
			t.Errorf("%s: the hint is %q", c.stderr, hint)
		}
	}
}

// A password goes to the host it is for, and stands on no command line.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	id := w.commit("o/private", "", plugin)
	w.server.Behave("o/private", gittest.Behaviour{User: "me", Password: "s3cr et/%"})
	u, _ := url.Parse(w.url("o/private"))
	u.User = url.UserPassword("me", "s3cr et/%")
	commit := w.resolve(u.String(), Want{})
	if got := w.tree(u.String(), commit, ""); got != wholePlugin || commit.ID != id {
		t.Errorf("got\n%s", got)
	}
	other := newWorld(t)
	other.commit("o/r", "", plugin)
	w.server.Behave("o/leads", gittest.Behaviour{Redirect: other.url("o/r")})
	other.server.Behave("o/r", gittest.Behaviour{User: "x", Password: "y"})
	away := *u
	away.Path = "/o/leads.git"
	if _, err := w.client.Refs(t.Context(), away.String()); err == nil {
		t.Error("the other server let it in")
	}
	for _, request := range other.server.Requests() {
		if strings.Contains(request, "Basic") {
			t.Errorf("the password went to another host: %s", request)
		}
	}
	if len(other.server.Requests()) == 0 {
		t.Error("the other server was not asked")
	}
}

func TestPaths(t *testing.T) {
	w := newWorld(t)
	sub := w.commit("o/sub", "", plugin)
	w.commit("o/r", "", plugin)
	id, err := w.server.Submodule("o/r", "main", "packages/sub", "../sub.git", sub)
	if err != nil {
		t.Fatal(err)
	}
	for folder, text := range map[string]string{
		"nothing":            "nothing is not there; it has the folders bin, lib, node_modules, packages",
		"packages/three":     "packages/three is not there; packages has the folders one, two",
		"lib/a.js":           "lib/a.js is a file",
		"current":            "current is a symbolic link",
		"packages/sub/lib":   "is in a submodule",
		"../x":               "is no folder below the repository's root",
		"/lib":               "is no folder below the repository's root",
		"lib/":               "is no folder below the repository's root",
		"-x":                 "-x is not there",
		":(top)lib":          "is not there",
		"packages/one/lib/x": "packages/one/lib/x is not there",
	} {
		_, err := w.try(w.url("o/r"), Commit{ID: id}, folder)
		if _, ok := errors.AsType[*PathError](err); !ok || !strings.Contains(err.Error(), text) || fault.ClassOf(err) != fault.Package {
			t.Errorf("%s: %v", folder, err)
		}
	}
	w.nothingLeft()
}

func TestSubmodules(t *testing.T) {
	w := newWorld(t)
	inner := w.commit("o/inner", "", "-- deep.txt --\ndeep\n")
	w.commit("o/middle", "", "-- middle.txt --\nmiddle\n")
	middle, err := w.server.Submodule("o/middle", "main", "vendor/inner", "./../inner.git", inner)
	if err != nil {
		t.Fatal(err)
	}
	w.commit("o/r", "", "-- top.txt --\ntop\n-- lib/x --\nx\n")
	if _, err = w.server.Submodule("o/r", "main", "lib/middle", "../middle.git", middle); err != nil {
		t.Fatal(err)
	}
	id, err := w.server.Submodule("o/r", "main", "absolute", w.url("o/inner"), inner)
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{w.url("o/r"), w.file("o/r")} {
		got := w.tree(address, Commit{ID: id}, "lib")
		if want := "middle/.gitmodules"; !strings.Contains(got, want) {
			t.Errorf("got\n%s", got)
		}
		var lines []string
		for line := range strings.Lines(got) {
			if !strings.Contains(line, ".gitmodules") {
				lines = append(lines, line)
			}
		}
		if got, want := strings.Join(lines, ""), "middle/middle.txt \"middle\\n\"\nmiddle/vendor/inner/deep.txt \"deep\\n\"\nx \"x\\n\"\n"; got != want {
			t.Errorf("got\n%s", got)
		}
		// Nothing but the folder's own submodules is fetched.
		if got := w.tree(address, Commit{ID: w.git("o/r", "rev-parse", "main~2")}, ""); strings.Contains(got, "deep") {
			t.Errorf("got\n%s", got)
		}
		if address == w.file("o/r") {
			continue
		}
		if got := w.tree(address, Commit{ID: id}, ""); !strings.Contains(got, "absolute/deep.txt") || !strings.Contains(got, "lib/middle/vendor/inner/deep.txt") {
			t.Errorf("got\n%s", got)
		}
	}
	w.nothingLeft()
}

func TestSubmodulesRefused(t *testing.T) {
	for address, text := range map[string]string{
		"ssh://git@h/o/r.git":  "is reached by ssh, while the repository that names it is reached by http",
		"git@h:o/r.git":        "is reached by ssh",
		"file:///etc":          "is reached by file",
		"/etc":                 "is reached by file",
		"ext::sh -c x":         "repository",
		"-uploadpack":          "is neither https nor ssh nor file",
		"../../../../../x.git": "has nothing above it for a submodule",
		"../none.git":          "there is no such repository",
	} {
		w := newWorld(t)
		w.commit("o/r", "", "-- x --\nx\n")
		id, err := w.server.Submodule("o/r", "main", "lib/sub", address, strings.Repeat("1", 40))
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.try(w.url("o/r"), Commit{ID: id}, "")
		if sub, ok := errors.AsType[*SubmoduleError](err); !ok || sub.Path != "lib/sub" || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", address, err)
		}
		w.nothingLeft()
	}
}

// A repository that is its own submodule ends somewhere.
func TestSubmodulesEnd(t *testing.T) {
	w := newWorld(t)
	first := w.commit("o/r", "", "-- x --\nx\n")
	at := first
	for range maxSubmodules + 1 {
		var err error
		if at, err = w.server.Submodule("o/r", "main", "sub", "./", at); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.try(w.url("o/r"), Commit{ID: at}, "")
	if err == nil || !strings.Contains(err.Error(), "nested deeper than 8") || fault.ClassOf(err) != fault.Policy {
		t.Errorf("got %v", err)
	}
	if _, err := w.try(w.url("o/r"), Commit{ID: w.git("o/r", "rev-parse", "main~1")}, ""); err != nil {
		t.Errorf("of one less: %v", err)
	}
}

// What a repository, its attributes, or the settings of user and machine say has
// no say in the contents.
func TestContentsAreAsTheyAre(t *testing.T) {
	w := newWorld(t)
	marker := filepath.Join(t.TempDir(), "ran")
	id := w.commit("o/r", "", "-- .gitattributes --\n* filter=evil ident text eol=crlf\nleft export-ignore\nversion export-subst\n"+
		"-- left --\nleft\n-- version --\n$Format:%H$ $Id$\n-- lines --\na\nb\n")
	home := w.env["HOME"]
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[filter \"evil\"]\n\tsmudge = touch "+marker+"\n\tprocess = touch "+marker+"\n"+
		"[core]\n\tautocrlf = true\n\thooksPath = "+home+"\n\tfsmonitor = touch "+marker+"\n[init]\n\ttemplateDir = "+home+"\n[url \"file:///nowhere\"]\n\tinsteadOf = "+w.server.URL()+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, hook := range []string{"hooks/post-checkout", "post-checkout", "reference-transaction", "hooks/reference-transaction", "hooks/post-index-change", "hooks/pre-auto-gc"} {
		if err := os.WriteFile(filepath.Join(home, hook), []byte("#!/bin/sh\ntouch "+marker+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"GIT_TEMPLATE_DIR": home, "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": home, "GIT_SSH_COMMAND": "touch " + marker,
		"GIT_DIR": home, "GIT_EXEC_PATH": home, "GIT_PROXY_COMMAND": "touch " + marker, "GIT_ASKPASS": "touch " + marker, "GIT_TRACE": "1",
	} {
		w.env[name] = value
	}
	for _, address := range []string{w.url("o/r"), w.file("o/r")} {
		got := w.tree(address, Commit{ID: id}, "")
		for _, line := range []string{`left "left\n"`, `version "$Format:%H$ $Id$\n"`, `lines "a\nb\n"`} {
			if !strings.Contains(got, line) {
				t.Errorf("%s is not in\n%s", line, got)
			}
		}
	}
	if _, err := os.Stat(marker); err == nil {
		t.Error("something was run")
	}
}

// tree makes a commit of a tree object that no checkout would give.
func (w *world) rawTree(repo string, lines ...string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	file := filepath.Join(dir, "blob")
	if err := os.WriteFile(file, []byte("content"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	blob := w.git(repo, "hash-object", "-w", file)
	var object []byte
	for _, line := range lines {
		object = append(object, line...)
		object = append(object, 0)
		for i := 0; i < len(blob); i += 2 {
			var b byte
			fmt.Sscanf(blob[i:i+2], "%02x", &b)
			object = append(object, b)
		}
	}
	raw := filepath.Join(dir, "tree")
	if err := os.WriteFile(raw, object, 0o644); err != nil {
		w.t.Fatal(err)
	}
	tree := w.git(repo, "hash-object", "-w", "-t", "tree", "--literally", raw)
	commit, err := w.server.CommitTree(repo, "main", tree)
	if err != nil {
		w.t.Fatal(err)
	}
	return commit
}

func TestNames(t *testing.T) {
	w := newWorld(t)
	w.commit("o/r", "", plugin)
	id := w.rawTree("o/r", "100644 a b", "100644 line\nbreak", "100644 quote\"'", "100644 tab\there", "100644 ü€😀", "100755 -x", "100664 old mode", "120000 \xff\xfe")
	want := "-x* \"content\"\na b \"content\"\nline\nbreak \"content\"\nold mode \"content\"\nquote\"' \"content\"\ntab\there \"content\"\nü€😀 \"content\"\n\xff\xfe -> content\n"
	if got := w.tree(w.url("o/r"), Commit{ID: id}, ""); got != want {
		t.Errorf("got\n%q", got)
	}
	for _, name := range []string{".git", ".GIT", "..", ".", ".git ", "git~1", ".git.", "a/../../b", "../x", "/x"} {
		id := w.rawTree("o/r", "100644 "+name)
		_, err := w.try(w.url("o/r"), Commit{ID: id}, "")
		if err == nil || fault.ClassOf(err) != fault.Policy && fault.ClassOf(err) != fault.Network {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A server that sends nothing is given up.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	w.server.Behave("o/r", gittest.Behaviour{Hangs: true})
	w.client.opts.Silence = time.Second
	_, err := w.client.Refs(t.Context(), w.url("o/r"))
	if err == nil || !strings.Contains(err.Error(), "the server sends nothing") || fault.ClassOf(err) != fault.Network {
		t.Errorf("got %v", err)
	}
}

// What sends more than anybody should is stopped, and what names a submodule is
// asked about.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	var noise strings.Builder
	seed := uint32(1)
	for range 400_000 {
		seed = seed*1664525 + 1013904223
		fmt.Fprintf(&noise, "%x", seed)
	}
	big := w.commit("o/big", "", "-- big --\n"+noise.String())
	w.client.opts.MaxBytes = 10_000
	if _, err := w.try(w.url("o/big"), Commit{ID: big}, ""); err == nil || !strings.Contains(err.Error(), "it sends more than 10000 bytes") || fault.ClassOf(err) != fault.Policy {
		t.Errorf("got %v", err)
	}
	w.client.opts.MaxBytes = 1 << 30
	w.tree(w.url("o/big"), Commit{ID: big}, "")
	var asked []string
	w.client.opts.Submodule = func(address string) error {
		asked = append(asked, address)
		return fault.Errorf(fault.Policy, "not that one")
	}
	id, err := w.server.Submodule("o/big", "main", "sub", "../other.git", big)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.try(w.url("o/big"), Commit{ID: id}, ""); err == nil || !strings.Contains(err.Error(), "submodule sub: not that one") || fault.ClassOf(err) != fault.Policy {
		t.Errorf("got %v", err)
	}
	if !slices.Equal(asked, []string{w.url("o/other")}) {
		t.Errorf("asked about %q", asked)
	}
	w.nothingLeft()
}

func TestRetry(t *testing.T) {
	w := newWorld(t)
	w.server.Behave("o/r", gittest.Behaviour{Status: 502})
	w.commit("o/r", "", plugin)
	w.client.opts.Retry = func(_ context.Context, attempt func() error) error {
		if err := attempt(); fault.ClassOf(err) != fault.Network {
			return err
		}
		w.server.Behave("o/r", gittest.Behaviour{})
		return attempt()
	}
	w.resolve(w.url("o/r"), Want{})
}

func TestNoGit(t *testing.T) {
	w := newWorld(t)
	w.commit("o/r", "", plugin)
	t.Setenv("PATH", t.TempDir())
	w.env["PATH"] = os.Getenv("PATH")
	_, err := w.client.Refs(t.Context(), w.url("o/r"))
	if fault.ClassOf(err) != fault.MissingProgram || fault.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

// The short forms of hosts are real addresses, which a proxy leads here.
func TestProxy(t *testing.T) {
	w := newWorld(t)
	id := w.commit("o/r", "", plugin)
	w.reach.Proxy = w.server.ProxyURL()
	if got := w.resolve("https://github.com/o/r.git", Want{}); got.ID != id {
		t.Errorf("got %v", got)
	}
	if got := w.server.Proxied(); len(got) == 0 || got[0] != "github.com:443" {
		t.Errorf("the proxy was asked for %v", got)
	}
}

func TestReceived(t *testing.T) {
	for line, want := range map[string]int64{
		"Receiving objects:  45% (9/20), 1.50 MiB | 2.00 MiB/s":       3 << 19,
		"Receiving objects: 100% (20/20), 512 bytes | 1 KiB/s, done.": 512,
		"Receiving objects: 100% (20/20), 2 KiB, done.":               2048,
		"Receiving objects:  45% (9/20)":                              -1,
		"Receiving objects: 1% (1/2), x MiB":                          -1,
	} {
		got, ok := receivedBytes(line)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%s: %d", line, got)
		}
	}
}

func TestShown(t *testing.T) {
	for address, want := range map[string]string{
		"https://me:secret@h/o/r.git": "https://h/o/r.git",
		"https://token@h/o/r.git":     "https://h/o/r.git",
		"ssh://git:secret@h/o/r.git":  "ssh://git@h/o/r.git",
		"file:///x y":                 "file:///x%20y",
		"https://h/%zz":               "(an address that cannot be read)",
	} {
		if got := Shown(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("100644 blob " + strings.Repeat("a", 40) + "\tx\x00")
	f.Add(strings.Repeat("a", 40) + "\trefs/tags/v1\n" + strings.Repeat("b", 40) + "\trefs/tags/v1^{}\n")
	f.Add("submodule.x.path\ny\x00submodule.x.url\n../z\x00")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = parseTree(text)
		_, _ = parseRefs(text)
		for place := range parseModules(text) {
			if place == "" {
				t.Error("a submodule without a place")
			}
		}
		if r, err := parseRemote(text); err == nil {
			if strings.HasPrefix(r.told, "-") {
				t.Errorf("git takes %q for an option", r.told)
			}
			if _, err := r.submodule("../" + text); err == nil && text == "" {
				t.Error("a submodule of nothing")
			}
		}
		receivedBytes(text)
	})
}
