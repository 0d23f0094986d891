package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"dsh/e2e/gittest"
)

// gitKey finds a script's git server among its values.
type gitKey struct{}

// gitServer is a script's git server, which begins with the first that asks.
type gitServer struct {
	*gittest.Server
	start func() (*gittest.Server, error)
	seen  int              // requests that a script has looked at
	sent  map[string]int64 // bytes that had been sent then
}

// withGit gives a script a git server.
func withGit(env *testscript.Env) {
	env.Setenv("DSHDIR", filepath.Dir(program))
	s := &gitServer{sent: map[string]int64{}}
	s.start = func() (*gittest.Server, error) {
		dir, err := os.MkdirTemp("", "dsh-git-")
		if err != nil {
			return nil, err
		}
		env.Defer(func() { os.RemoveAll(dir) })
		server, err := gittest.New(dir)
		if err == nil {
			env.Defer(server.Close)
		}
		return server, err
	}
	env.Values[gitKey{}] = s
}

// gitrepo runs one of these on the script's git repositories, which are called
// OWNER/NAME and made with their first commit:
//
//	serve                             sets GIT, GITHOST, GITS, GITPROXY (a proxy to all hosts), GITCA (a file) and GITDIR
//	commit NAME DIR [BRANCH]          makes the content of a folder the next commit, and sets COMMIT and SHORT
//	submodule NAME PATH URL COMMIT    adds a submodule in a commit, and sets COMMIT
//	git NAME ARGUMENT...              runs git in the repository
//	behave NAME private USER PASSWORD | old | hangs | status CODE | redirect URL | well
//	asked NAME                        that it was asked for since the last look, or with ! not
//	waits NAME                        until it is asked for
//	sent NAME BYTES                   that no more than that was sent since the last look, or with ! more
func gitrepo(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(gitKey{}).(*gitServer)
	if s.Server == nil {
		var err error
		s.Server, err = s.start()
		ts.Check(err)
	}
	need := func(n int) {
		if len(args) < n {
			ts.Fatalf("gitrepo %s: too few arguments", args[0])
		}
	}
	need(1)
	switch args[0] {
	case "serve":
		ca := ts.MkAbs("git-ca.pem")
		ts.Check(os.WriteFile(ca, s.CA(), 0o644))
		for name, value := range map[string]string{"GIT": s.URL(), "GITS": s.SecureURL(), "GITPROXY": s.ProxyURL(), "GITCA": ca, "GITHOST": strings.TrimPrefix(s.URL(), "http://"), "GITDIR": filepath.Dir(filepath.Dir(s.Dir("o/r")))} {
			ts.Setenv(name, value)
		}
	case "commit":
		need(3)
		branch := ""
		if len(args) > 3 {
			branch = args[3]
		}
		commit, err := s.Commit(args[1], branch, ts.MkAbs(args[2]))
		ts.Check(err)
		setCommit(ts, commit)
	case "submodule":
		need(5)
		commit, err := s.Submodule(args[1], "main", args[2], args[3], args[4])
		ts.Check(err)
		setCommit(ts, commit)
	case "git":
		need(3)
		_, err := s.Git(args[1], args[2:]...)
		ts.Check(err)
	case "behave":
		need(3)
		var how gittest.Behaviour
		switch args[2] {
		case "private":
			need(5)
			how.User, how.Password = args[3], args[4]
		case "old":
			how.Old = true
		case "hangs":
			how.Hangs = true
		case "status":
			need(4)
			code, err := strconv.Atoi(args[3])
			ts.Check(err)
			how.Status = code
		case "redirect":
			need(4)
			how.Redirect = args[3]
		case "well":
		default:
			ts.Fatalf("gitrepo behave: %q?", args[2])
		}
		s.Behave(args[1], how)
	case "asked":
		need(2)
		requests := s.Requests()
		asked := false
		for _, r := range requests[s.seen:] {
			asked = asked || strings.Contains(r, " /"+args[1])
		}
		if asked == neg {
			ts.Fatalf("requests since the last look: %q", requests[s.seen:])
		}
		s.seen = len(requests)
	case "waits":
		need(2)
		for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(s.Requests(), func(r string) bool { return strings.Contains(r, " /"+args[1]) }); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				ts.Fatalf("nobody asked for %s", args[1])
			}
		}
	case "sent":
		need(3)
		most, err := strconv.ParseInt(args[2], 10, 64)
		ts.Check(err)
		sent := s.Sent(args[1])
		if now := sent - s.sent[args[1]]; (now <= most) == neg {
			ts.Fatalf("%d bytes were sent", now)
		}
		s.sent[args[1]] = sent
	default:
		ts.Fatalf("gitrepo: %q?", args[0])
	}
}

func setCommit(ts *testscript.TestScript, commit string) {
	ts.Setenv("COMMIT", commit)
	ts.Setenv("SHORT", commit[:10])
}
