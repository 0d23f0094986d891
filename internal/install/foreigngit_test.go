package install

import (
	"strings"
	"testing"
)

func TestForeignGit(t *testing.T) {
	commit := strings.Repeat("1a", 20)
	for _, c := range []struct{ repo, commit, folder, want string }{
		{"git+ssh://git@github.com/o/r.git", commit, "", "git+https://github.com/o/r.git#" + commit},
		{"git@gitlab.com:o/r.git", commit, "", "git+https://gitlab.com/o/r.git#" + commit},
		{"git+ssh://git@example.com/o/r.git", commit, "", "git+ssh://git@example.com/o/r.git#" + commit},
		{"https://example.com/o/r.git", strings.ToUpper(commit), "/packages/a", "git+https://example.com/o/r.git#" + commit + "&path:/packages/a"},
		{"https://user:secret@example.com/o/r.git", commit, "", "git+https://example.com/o/r.git#" + commit},
		{"github:o/r", commit, "", "git+https://github.com/o/r.git#" + commit},
		{"https://example.com/o/r.git", "main", "", ""},
		{"https://example.com/o/r.git", commit, "../x", ""},
		{"git://example.com/o/r.git", commit, "", ""},
		{"ext::sh", commit, "", ""},
		{"", commit, "", ""},
	} {
		origin, err := foreignGit(c.repo, c.commit, c.folder)
		if origin.Place != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s at %s: %q, %v", c.repo, c.commit, origin.Place, err)
		}
	}
	for address, want := range map[string]string{
		"https://codeload.github.com/o/r/tar.gz/" + commit:                                     "https://github.com/o/r.git",
		"https://gitlab.com/api/v4/projects/g%2Fs%2Fr/repository/archive.tar.gz?ref=" + commit: "https://gitlab.com/g/s/r.git",
		"https://gitlab.com/g/s/r/-/archive/" + commit + "/r-" + commit + ".tar.gz":            "https://gitlab.com/g/s/r.git",
		"https://bitbucket.org/o/r/get/" + commit + ".tar.gz":                                  "https://bitbucket.org/o/r.git",
		"https://codeload.github.com/o/r/tar.gz/main":                                          "",
		"https://registry.example.com/r/-/r-1.0.0.tgz":                                         "",
		"https://example.com/https://codeload.github.com/o/r/tar.gz/" + commit:                 "",
	} {
		remote, at, ok := hostArchive(address)
		if remote != want || ok != (want != "") || ok && at != commit {
			t.Errorf("%s: %q, %q", address, remote, at)
		}
	}
}

func TestOriginCommit(t *testing.T) {
	commit := strings.Repeat("0b", 32)
	for _, g := range []GitSource{
		{Remote: "https://h/o/r.git"}, {Remote: "https://h/o/r.git", Path: "a b/c&d"}, {Remote: "file:///x%20y/r"}, {Remote: "ssh://git@h/r"},
	} {
		o := gitOrigin(g, commit)
		back, err := o.source()
		if o.Commit() != commit || err != nil || back.Remote != g.Remote || back.Path != g.Path || back.Ref != commit {
			t.Errorf("%+v: %+v, %v", g, back, err)
		}
	}
	if got := gitOrigin(GitSource{Remote: "https://me:secret@h/o/r.git"}, commit).Place; strings.Contains(got, "secret") || strings.Contains(got, "me@") {
		t.Errorf("the lockfile holds %s", got)
	}
	for _, o := range []Origin{{}, {URL, "https://h/x.tgz#" + commit}, {Git, "git+https://h/o/r.git"}, {Git, "git+https://h/o/r.git#main"}, {Git, "left"}} {
		if _, err := o.source(); err == nil && o.Kind == Git {
			t.Errorf("%s names a commit", o.Place)
		}
		if o.Kind != Git && o.Commit() != "" {
			t.Errorf("%s is of a repository", o.Place)
		}
	}
}

func TestGitSourceAdmits(t *testing.T) {
	one, two := strings.Repeat("1", 40), strings.Repeat("2", 40)
	pkg := &Package{Name: "p", Version: "1.0.0", Origin: gitOrigin(GitSource{Remote: "https://h/o/r.git", Path: "a"}, one)}
	for _, c := range []struct {
		g         GitSource
		can, sure bool
	}{
		{GitSource{Remote: "https://h/o/r.git", Path: "a"}, true, false},
		{GitSource{Remote: "https://h/o/r.git", Path: "a", Ref: "main"}, true, false},
		{GitSource{Remote: "https://me:x@h/o/r.git", Path: "a", Ref: one}, true, true},
		{GitSource{Remote: "https://h/o/r.git", Path: "a", Ref: two}, false, false},
		{GitSource{Remote: "https://h/o/r.git", Path: "b", Ref: one}, false, false},
		{GitSource{Remote: "https://h/o/r.git", Ref: one}, false, false},
		{GitSource{Remote: "https://h/o/other.git", Path: "a", Ref: one}, false, false},
	} {
		if can, sure := c.g.admits(pkg); can != c.can || sure != c.sure {
			t.Errorf("%+v: %t, %t", c.g, can, sure)
		}
	}
}
