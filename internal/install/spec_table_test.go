package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// inWords is everything that a spec says, on one line.
func inWords(s Spec) string {
	words := []string{map[Kind]string{Registry: "registry", URL: "url", Archive: "archive", Folder: "folder", Link: "link", Git: "git"}[s.Kind]}
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+value)
		}
	}
	add("as ", s.Name)
	if s.Kind == Registry {
		add("of ", s.Target)
		add("wanted ", s.Wanted)
	}
	add("by ", s.Forced)
	if s.Kind != Git {
		add("", filepath.ToSlash(s.Place))
	}
	add("inside ", s.Inside)
	if g := s.Git; g != nil {
		add("", g.Remote)
		add("host ", g.Host)
		add("ref ", g.Ref)
		add("range ", g.Range)
		add("path ", g.Path)
		if g.Browsed {
			words = append(words, "browsed")
		}
	}
	return strings.Join(words, ", ")
}

// specTable is how each form is read from the directory /cwd with the home
// /home: what it says, and what package.json gets, "" where that depends on what
// is found ("kept" where the archive is kept in the profile).
var specTable = []struct{ text, want, saved string }{
	// Registries.
	{"p", "registry, as p, of p", ""},
	{"p@", "registry, as p, of p", ""},
	{"p@1", "registry, as p, of p, wanted 1", ""},
	{"p@^1.2", "registry, as p, of p, wanted ^1.2", ""},
	{"p@>=1 <2", "registry, as p, of p, wanted >=1 <2", ""},
	{"p@1 || 2", "registry, as p, of p, wanted 1 || 2", ""},
	{"p@1.x", "registry, as p, of p, wanted 1.x", ""},
	{"p@~1.2.3-rc.1", "registry, as p, of p, wanted ~1.2.3-rc.1", ""},
	{"p@1.2.3+build", "registry, as p, of p, wanted 1.2.3+build", ""},
	{"p@latest", "registry, as p, of p, wanted latest", ""},
	{"p@next", "registry, as p, of p, wanted next", ""},
	{"p@latest ", "registry, as p, of p, wanted latest", ""},
	{"p@ 1.2.3", "registry, as p, of p, wanted 1.2.3", ""},
	{"p@v1.2.3", "registry, as p, of p, wanted v1.2.3", ""},
	{"p@=1.2.3", "registry, as p, of p, wanted =1.2.3", ""},
	{"p@01.2.3", "registry, as p, of p, wanted 01.2.3", ""},
	{"p@*", "registry, as p, of p, wanted *", ""},
	{"p@1.0.0 - 2.0.0", "registry, as p, of p, wanted 1.0.0 - 2.0.0", ""},
	{"@s/p", "registry, as @s/p, of @s/p", ""},
	{"@s/p@beta", "registry, as @s/p, of @s/p, wanted beta", ""},
	{"P", "registry, as P, of P", ""},
	{"_p", "registry, as _p, of _p", ""},
	{"http", "registry, as http, of http", ""},
	{"git", "registry, as git, of git", ""},
	{"zip", "registry, as zip, of zip", ""},
	{"git@1.2.3", "registry, as git, of git, wanted 1.2.3", ""},
	{"a@npm:b", "registry, as a, of b", ""},
	{"a@npm:b@1", "registry, as a, of b, wanted 1", ""},
	{"git@npm:b@1", "registry, as git, of b, wanted 1", ""},
	{"a@npm:@s/b@^2", "registry, as a, of @s/b, wanted ^2", ""},
	{"npm:b@1", "registry, as b, of b, wanted 1", ""},

	// Hosted repositories.
	{"o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"o/r.git", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"o/.r", "git, https://github.com/o/.r.git, host github", "github:o/.r"},
	{"o/r#main", "git, https://github.com/o/r.git, host github, ref main", "github:o/r#main"},
	{"o/r#feature/x", "git, https://github.com/o/r.git, host github, ref feature/x", "github:o/r#feature/x"},
	{"o/r#feature%2Fx", "git, https://github.com/o/r.git, host github, ref feature/x", "github:o/r#feature/x"},
	{"o/r#100%", "git, https://github.com/o/r.git, host github, ref 100%", "github:o/r#100%25"},
	{"o/r#issue#7", "git, https://github.com/o/r.git, host github, ref issue#7", "github:o/r#issue#7"},
	{"o/r#@s/p@1.0.0", "git, https://github.com/o/r.git, host github, ref @s/p@1.0.0", "github:o/r#@s/p@1.0.0"},
	{"o/r#semver:^1.2", "git, https://github.com/o/r.git, host github, range ^1.2", "github:o/r#semver:^1.2"},
	{"o/r#semver:>=1 <3", "git, https://github.com/o/r.git, host github, range >=1 <3", "github:o/r#semver:>=1%20<3"},
	{"o/r#semver:", "git, https://github.com/o/r.git, host github, range *", "github:o/r#semver:*"},
	{"o/r#path:/pkg", "git, https://github.com/o/r.git, host github, path pkg", "github:o/r#path:/pkg"},
	{"o/r#path:pkg", "git, https://github.com/o/r.git, host github, path pkg", "github:o/r#path:/pkg"},
	{"o/r#path:/a/./b//c/", "git, https://github.com/o/r.git, host github, path a/b/c", "github:o/r#path:/a/b/c"},
	{"o/r#path:/", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"o/r#path:/a b", "git, https://github.com/o/r.git, host github, path a b", "github:o/r#path:/a%20b"},
	{"o/r#main&path:/pkg", "git, https://github.com/o/r.git, host github, ref main, path pkg", "github:o/r#main&path:/pkg"},
	{"o/r#path:/pkg&main", "git, https://github.com/o/r.git, host github, ref main, path pkg", "github:o/r#main&path:/pkg"},
	{"o/r#semver:^1&path:/pkg", "git, https://github.com/o/r.git, host github, range ^1, path pkg", "github:o/r#semver:^1&path:/pkg"},
	{"o/r#semver:^1::path:pkg", "git, https://github.com/o/r.git, host github, range ^1, path pkg", "github:o/r#semver:^1&path:/pkg"},
	{"o/r#", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"p@o/r", "git, as p, https://github.com/o/r.git, host github", "github:o/r"},
	{"github:o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"GitHub:o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"github:o/r.git", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"github:o/r#0123456789abcdef0123456789abcdef01234567&path:/packages/p", "git, https://github.com/o/r.git, host github, ref 0123456789abcdef0123456789abcdef01234567, path packages/p", "github:o/r#0123456789abcdef0123456789abcdef01234567&path:/packages/p"},
	{"p@github:o/r#x", "git, as p, https://github.com/o/r.git, host github, ref x", "github:o/r#x"},
	{"@s/p@github:o/r#path:/x", "git, as @s/p, https://github.com/o/r.git, host github, path x", "github:o/r#path:/x"},
	{"gitlab:o/r", "git, https://gitlab.com/o/r.git, host gitlab", "gitlab:o/r"},
	{"gitlab:g/sub/r#v1", "git, https://gitlab.com/g/sub/r.git, host gitlab, ref v1", "gitlab:g/sub/r#v1"},
	{"bitbucket:o/r#path:/x", "git, https://bitbucket.org/o/r.git, host bitbucket, path x", "bitbucket:o/r#path:/x"},
	{"gist:11081aaa281", "git, https://gist.github.com/11081aaa281.git, host gist", "gist:11081aaa281"},
	{"gist:u/11081aaa281#x", "git, https://gist.github.com/11081aaa281.git, host gist, ref x", "gist:11081aaa281#x"},
	{"sourcehut:~u/r", "git, https://git.sr.ht/~u/r, host sourcehut", "sourcehut:~u/r"},

	// Repositories at any address.
	{"git+https://h.example/o/r.git", "git, https://h.example/o/r.git", "git+https://h.example/o/r.git"},
	{"git+https://h.example/o/r", "git, https://h.example/o/r", "git+https://h.example/o/r"},
	{"git+https://H.Example:8443/o/r.git#v1&path:/x", "git, https://h.example:8443/o/r.git, ref v1, path x", "git+https://h.example:8443/o/r.git#v1&path:/x"},
	{"git+https://u:t@h.example/o/r.git", "git, https://u:t@h.example/o/r.git", "git+https://u:t@h.example/o/r.git"},
	{"git+https://github.com/o/r.git", "git, https://github.com/o/r.git", "git+https://github.com/o/r.git"},
	{"p@git+https://h.example/o/r", "git, as p, https://h.example/o/r", "git+https://h.example/o/r"},
	{"git+http://127.0.0.1:99/o/r.git#x", "git, http://127.0.0.1:99/o/r.git, ref x", "git+http://127.0.0.1:99/o/r.git#x"},
	{"git+http://localhost/o/r.git", "git, http://localhost/o/r.git", "git+http://localhost/o/r.git"},
	{"http://[::1]:99/o/r.git", "git, http://[::1]:99/o/r.git", "git+http://[::1]:99/o/r.git"},
	{"https://h.example/o/r.git", "git, https://h.example/o/r.git", "git+https://h.example/o/r.git"},
	{"https://gitee.example/u/r.git#path:/x", "git, https://gitee.example/u/r.git, path x", "git+https://gitee.example/u/r.git#path:/x"},
	{"p@https://h.example/o/r.git#semver:1.x", "git, as p, https://h.example/o/r.git, range 1.x", "git+https://h.example/o/r.git#semver:1.x"},
	{"git+ssh://git@h.example/o/r.git", "git, ssh://git@h.example/o/r.git", "git+ssh://git@h.example/o/r.git"},
	{"git+ssh://git@h.example:2222/o/r.git#x", "git, ssh://git@h.example:2222/o/r.git, ref x", "git+ssh://git@h.example:2222/o/r.git#x"},
	{"git+ssh://git@h.example:o/r.git", "git, ssh://git@h.example/o/r.git", "git+ssh://git@h.example/o/r.git"},
	{"ssh://git@h.example/o/r", "git, ssh://git@h.example/o/r", "git+ssh://git@h.example/o/r"},
	{"git@h.example:o/r.git", "git, ssh://git@h.example/o/r.git", "git+ssh://git@h.example/o/r.git"},
	{"git@h:o/r.git#v1", "git, ssh://git@h/o/r.git, ref v1", "git+ssh://git@h/o/r.git#v1"},
	{"git@h.example:/srv/r.git", "git, ssh://git@h.example/srv/r.git", "git+ssh://git@h.example/srv/r.git"},
	{"git@github.com:o/r.git#path:/x", "git, ssh://git@github.com/o/r.git, path x", "git+ssh://git@github.com/o/r.git#path:/x"},
	{"me@h.example:r.git", "git, ssh://me@h.example/r.git", "git+ssh://me@h.example/r.git"},
	{"p@git@h.example:o/r.git", "git, as p, ssh://git@h.example/o/r.git", "git+ssh://git@h.example/o/r.git"},
	{"git+file:///srv/r.git", "git, file:///srv/r.git", "git+file:///srv/r.git"},
	{"git+file:///srv/a%20b#v1", "git, file:///srv/a%20b, ref v1", "git+file:///srv/a%20b#v1"},
	{"git+file:/srv/r.git#path:x", "git, file:///srv/r.git, path x", "git+file:///srv/r.git#path:/x"},
	{"git+file:../r", "git, file:///r", "git+file:///r"},

	// Pages in a browser.
	{"https://github.com/o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"https://github.com/o/r/", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"https://www.github.com/o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"http://github.com/o/r", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"https://github.com/o/r.git", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"https://github.com/o/r?tab=readme", "git, https://github.com/o/r.git, host github", "github:o/r"},
	{"https://github.com/o/r#branch", "git, https://github.com/o/r.git, host github, ref branch", "github:o/r#branch"},
	{"https://github.com/o/r#path:/x", "git, https://github.com/o/r.git, host github, path x", "github:o/r#path:/x"},
	{"https://github.com/o/r/tree/dev", "git, https://github.com/o/r.git, host github, ref dev", "github:o/r#dev"},
	{"https://github.com/o/r/tree/dev/pkg", "git, https://github.com/o/r.git, host github, ref dev, path pkg, browsed", "github:o/r#dev&path:/pkg"},
	{"https://github.com/o/r/tree/main/packages/a#readme", "git, https://github.com/o/r.git, host github, ref main, path packages/a, browsed", "github:o/r#main&path:/packages/a"},
	{"https://github.com/o/r/tree/feature%2Fx/pkg", "git, https://github.com/o/r.git, host github, ref feature/x, path pkg, browsed", "github:o/r#feature/x&path:/pkg"},
	{"https://github.com/o/r/tree/main/a%20b", "git, https://github.com/o/r.git, host github, ref main, path a b, browsed", "github:o/r#main&path:/a%20b"},
	{"https://github.com/o/r/blob/main/pkg/package.json", "git, https://github.com/o/r.git, host github, ref main, path pkg, browsed", "github:o/r#main&path:/pkg"},
	{"https://github.com/o/r/commit/0123456789abcdef0123456789abcdef01234567", "git, https://github.com/o/r.git, host github, ref 0123456789abcdef0123456789abcdef01234567", "github:o/r#0123456789abcdef0123456789abcdef01234567"},
	{"https://github.com/o/r/releases/tag/v1.0.0", "git, https://github.com/o/r.git, host github, ref v1.0.0", "github:o/r#v1.0.0"},
	{"p@https://github.com/o/r/tree/main/plugin", "git, as p, https://github.com/o/r.git, host github, ref main, path plugin, browsed", "github:o/r#main&path:/plugin"},
	{"https://gist.github.com/u/11081aaa281", "git, https://gist.github.com/11081aaa281.git, host gist", "gist:11081aaa281"},
	{"https://gitlab.com/g/sub/r", "git, https://gitlab.com/g/sub/r.git, host gitlab", "gitlab:g/sub/r"},
	{"https://gitlab.com/g/sub/r/-/tree/main/pkg", "git, https://gitlab.com/g/sub/r.git, host gitlab, ref main, path pkg, browsed", "gitlab:g/sub/r#main&path:/pkg"},
	{"https://gitlab.example/g/r/-/tree/v1/pkg/a", "git, https://gitlab.example/g/r.git, ref v1, path pkg/a, browsed", "git+https://gitlab.example/g/r.git#v1&path:/pkg/a"},
	{"https://gitlab.example/g/r/-/tags/v1", "git, https://gitlab.example/g/r.git, ref v1", "git+https://gitlab.example/g/r.git#v1"},
	{"https://bitbucket.org/o/r", "git, https://bitbucket.org/o/r.git, host bitbucket", "bitbucket:o/r"},
	{"https://bitbucket.org/o/r/src/main/pkg/", "git, https://bitbucket.org/o/r.git, host bitbucket, ref main, path pkg, browsed", "bitbucket:o/r#main&path:/pkg"},
	{"https://codeberg.org/o/r", "git, https://codeberg.org/o/r.git", "git+https://codeberg.org/o/r.git"},
	{"https://codeberg.org/o/r/src/branch/main/pkg", "git, https://codeberg.org/o/r.git, ref main, path pkg, browsed", "git+https://codeberg.org/o/r.git#main&path:/pkg"},
	{"https://git.example/o/r/src/tag/v1/pkg", "git, https://git.example/o/r.git, ref v1, path pkg, browsed", "git+https://git.example/o/r.git#v1&path:/pkg"},
	{"https://git.example/o/r/src/commit/0123456/pkg", "git, https://git.example/o/r.git, ref 0123456, path pkg, browsed", "git+https://git.example/o/r.git#0123456&path:/pkg"},
	{"http://127.0.0.1:99/o/r/src/branch/main/pkg", "git, http://127.0.0.1:99/o/r.git, ref main, path pkg, browsed", "git+http://127.0.0.1:99/o/r.git#main&path:/pkg"},
	{"https://gitee.com/u/r/tree/master/x", "git, https://gitee.com/u/r.git, ref master, path x, browsed", "git+https://gitee.com/u/r.git#master&path:/x"},
	{"https://ghe.example/o/r/tree/main/x", "git, https://ghe.example/o/r.git, ref main, path x, browsed", "git+https://ghe.example/o/r.git#main&path:/x"},

	// Archives at an address.
	{"https://github.com/o/r/archive/v1.tar.gz", "url, https://github.com/o/r/archive/v1.tar.gz", "https://github.com/o/r/archive/v1.tar.gz"},
	{"https://github.com/o/r/archive/refs/heads/main.zip", "url, https://github.com/o/r/archive/refs/heads/main.zip", "kept"},
	{"https://github.com/o/r/archive/refs/heads/main.zip//r-main/plugin", "url, https://github.com/o/r/archive/refs/heads/main.zip, inside r-main/plugin", "kept"},
	{"https://github.com/o/r/releases/download/v1/p-1.tgz", "url, https://github.com/o/r/releases/download/v1/p-1.tgz", "https://github.com/o/r/releases/download/v1/p-1.tgz"},
	{"https://codeload.github.com/o/r/tar.gz/abc", "url, https://codeload.github.com/o/r/tar.gz/abc", "https://codeload.github.com/o/r/tar.gz/abc"},
	{"https://gitlab.com/g/r/-/archive/v1/r-v1.tar.gz", "url, https://gitlab.com/g/r/-/archive/v1/r-v1.tar.gz", "https://gitlab.com/g/r/-/archive/v1/r-v1.tar.gz"},
	{"https://h.example/p.tgz", "url, https://h.example/p.tgz", "https://h.example/p.tgz"},
	{"http://h.example/p.tgz", "url, http://h.example/p.tgz", "http://h.example/p.tgz"},
	{"https://h.example/p.tgz#x", "url, https://h.example/p.tgz#x", "https://h.example/p.tgz#x"},
	{"https://h.example/p", "url, https://h.example/p", "https://h.example/p"},
	{"https://h.example/d?file=p.zip", "url, https://h.example/d?file=p.zip", "https://h.example/d?file=p.zip"},
	{"p@https://h.example/p.tgz", "url, as p, https://h.example/p.tgz", "https://h.example/p.tgz"},
	{"https://h.example/p.tgz//a/b", "url, https://h.example/p.tgz, inside a/b", "kept"},
	{"https://h.example/p.tar.gz//a?v=1", "url, https://h.example/p.tar.gz?v=1, inside a", "kept"},
	{"https://h.example/P.ZIP", "url, https://h.example/P.ZIP", "kept"},
	{"https://h.example/p.zip//", "url, https://h.example/p.zip", "kept"},
	{"https://h.example/a.zip//b.tgz//c", "url, https://h.example/a.zip, inside b.tgz/c", "kept"},
	{"https://h.example/p.tar", "url, https://h.example/p.tar", "kept"},
	{"https://h.example/p.tar.bz2", "url, https://h.example/p.tar.bz2", "kept"},
	{"https://h.example/p.tbz2", "url, https://h.example/p.tbz2", "kept"},
	{"https://h.example/p.tar.xz", "url, https://h.example/p.tar.xz", "kept"},
	{"https://h.example/p.txz", "url, https://h.example/p.txz", "kept"},
	{"https://h.example/p.tar.zst", "url, https://h.example/p.tar.zst", "kept"},
	{"https://h.example/p.tzst", "url, https://h.example/p.tzst", "kept"},
	{"s3::https://b.example/k.tgz", "url, by s3, https://b.example/k.tgz", "kept"},
	{"S3::https://b.example/k.zip//a", "url, by s3, https://b.example/k.zip, inside a", "kept"},
	{"p@gcs::https://www.googleapis.com/storage/v1/b/k.tgz", "url, as p, by gcs, https://www.googleapis.com/storage/v1/b/k.tgz", "kept"},

	// Archives and folders of this machine.
	{"./p.tgz", "archive, /cwd/p.tgz", "file:/cwd/p.tgz"},
	{"p.tgz", "archive, /cwd/p.tgz", "file:/cwd/p.tgz"},
	{"a/b.tgz", "archive, /cwd/a/b.tgz", "file:/cwd/a/b.tgz"},
	{"../a/b.tar.gz", "archive, /a/b.tar.gz", "file:/a/b.tar.gz"},
	{"/abs/p.tgz", "archive, /abs/p.tgz", "file:/abs/p.tgz"},
	{"file:p.tgz", "archive, /cwd/p.tgz", "file:/cwd/p.tgz"},
	{"x@file:p.tgz", "archive, as x, /cwd/p.tgz", "file:/cwd/p.tgz"},
	{"~/p.tgz", "archive, /home/p.tgz", "file:/home/p.tgz"},
	{"./p.tgz//sub", "archive, /cwd/p.tgz, inside sub", "kept"},
	{"file:///abs/p.zip//sub/dir", "archive, /abs/p.zip, inside sub/dir", "kept"},
	{"./p.zip", "archive, /cwd/p.zip", "kept"},
	{"p.zip", "archive, /cwd/p.zip", "kept"},
	{"./p.tar.xz", "archive, /cwd/p.tar.xz", "kept"},
	{"x@../p.tar.zst//a", "archive, as x, /p.tar.zst, inside a", "kept"},
	{"./p", "link, /cwd/p", "link:/cwd/p"},
	{"../p", "link, /p", "link:/p"},
	{"../p/", "link, /p", "link:/p"},
	{".", "link, /cwd", "link:/cwd"},
	{"..", "link, /", "link:/"},
	{"/p", "link, /p", "link:/p"},
	{"~/p", "link, /home/p", "link:/home/p"},
	{".p", "link, /cwd/.p", "link:/cwd/.p"},
	{"a/b/c", "link, /cwd/a/b/c", "link:/cwd/a/b/c"},
	{"@a/b/c", "link, /cwd/@a/b/c", "link:/cwd/@a/b/c"},
	{"@s/", "link, /cwd/@s", "link:/cwd/@s"},
	{"@/", "link, /cwd/@", "link:/cwd/@"},
	{"o/r@1", "link, /cwd/o/r@1", "link:/cwd/o/r@1"},
	{"@o/r#b", "link, /cwd/@o/r#b", "link:/cwd/@o/r#b"},
	{"x@./p", "link, as x, /cwd/p", "link:/cwd/p"},
	{"link:../p", "link, /p", "link:/p"},
	{"link:p.tgz", "link, /cwd/p.tgz", "link:/cwd/p.tgz"},
	{"x@link:../p", "link, as x, /p", "link:/p"},
	{"file:p", "folder, /cwd/p", "file:/cwd/p"},
	{"file:./p", "folder, /cwd/p", "file:/cwd/p"},
	{"file:../p", "folder, /p", "file:/p"},
	{"file:/abs/p", "folder, /abs/p", "file:/abs/p"},
	{"file:///abs/p", "folder, /abs/p", "file:/abs/p"},
	{"file:", "folder, /cwd", "file:/cwd"},
	{"x@file:../x", "folder, as x, /x", "file:/x"},
}

// atHome makes /home the home directory.
func atHome(t testing.TB) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Setenv("USERPROFILE", `C:\home`)
	} else {
		t.Setenv("HOME", "/home")
	}
}

func TestSpecTable(t *testing.T) {
	atHome(t)
	if len(specTable) < 150 {
		t.Errorf("the table has %d specs", len(specTable))
	}
	for _, c := range specTable {
		t.Run(c.text, func(t *testing.T) {
			spec, err := ParseSpec(c.text, "/cwd")
			if err != nil {
				t.Fatal(err)
			}
			// Where such paths are on Windows depends on the current drive.
			local := runtime.GOOS == "windows" && (spec.Place != "" && spec.Kind != URL || strings.HasPrefix(c.text, "git+file:"))
			if got := inWords(spec); got != c.want && !local {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if spec.String() != c.text {
				t.Errorf("it prints as %q", spec)
			}
		})
	}
}

// readOtherwise is what npm accepts and dsh does not, and why.
var readOtherwise = map[string]string{
	"node_modules":            "it is the name of no package, and a tag needs a name",
	"favicon.ico":             "it is the name of no package, and a tag needs a name",
	"":                        "it names nothing",
	" ":                       "it names nothing",
	`C:\p`:                    "it is a path of Windows, where it is read as one",
	"c:/p":                    "it is a path of Windows, where it is read as one",
	"git://h.example/o/r.git": "nothing protects what comes that way",
	"github:o":                "npm looks for a repository of nobody",
	"github:":                 "npm looks for a repository without a name",
	"git+https://":            "npm looks for a repository at no host",
}

// TestSpecsOfNpm holds every spec that npm reads against the same reading here,
// as far as both have the same things.
func TestSpecsOfNpm(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("the table was recorded on Linux, and its paths are read there")
		return
	}
	atHome(t)
	text, err := os.ReadFile("testdata/specs.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var npm struct {
			Spec, Type, Name, Error, FetchSpec, GitCommittish, GitRange, GitSubdir string
			Hosted                                                                 struct{ Type, User, Project string }
			Alias                                                                  struct{ Name, RawSpec string }
		}
		if err := json.Unmarshal([]byte(line), &npm); err != nil {
			t.Fatal(err)
		}
		t.Run(npm.Spec, func(t *testing.T) {
			spec, err := ParseSpec(npm.Spec, "/cwd")
			if npm.Error != "" || readOtherwise[npm.Spec] != "" {
				// pnpm has link:, and ssh:// is what git has.
				if err == nil && !strings.Contains(npm.Spec, "link:") && !strings.HasPrefix(npm.Spec, "ssh:") {
					t.Errorf("it is read as %s", inWords(spec))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]Kind{"range": Registry, "tag": Registry, "version": Registry, "alias": Registry, "git": Git, "remote": URL, "file": Archive, "directory": Folder}[npm.Type]
			switch {
			case npm.Spec == "s3::https://b.example/k.tgz":
				want = URL // go-getter's form; npm takes it for a path
			case npm.Type == "directory" && !strings.Contains(npm.Spec, "file:"):
				want = Link // as in pnpm
			case npm.Type == "tag" && npm.Name == "":
				npm.Name = npm.Spec // _p, -p: names that the registry once allowed
			}
			if spec.Kind != want {
				t.Errorf("it is read as %s", inWords(spec))
			}
			if spec.Name != npm.Name {
				t.Errorf("it is named %q, and %q in npm", spec.Name, npm.Name)
			}
			switch spec.Kind {
			case Registry:
				target, wanted := npm.Name, npm.FetchSpec
				if npm.Type == "alias" {
					target, wanted = npm.Alias.Name, npm.Alias.RawSpec
				}
				if got := spec.Wanted; spec.Target != target || got != wanted && !(got == "" && (wanted == "*" || wanted == npm.Spec)) {
					t.Errorf("it asks for %q of %q, and %q of %q in npm", spec.Wanted, spec.Target, wanted, target)
				}
			case Archive, Folder, Link:
				if npm.Spec != "~/p" && spec.Place != npm.FetchSpec {
					t.Errorf("it is at %s, and at %s in npm", spec.Place, npm.FetchSpec)
				}
			case URL:
				if spec.Forced == "" && spec.Place != npm.FetchSpec {
					t.Errorf("it is at %s, and at %s in npm", spec.Place, npm.FetchSpec)
				}
			case Git:
				g := spec.Git
				if npm.Hosted.Type != "" && (g.Host != npm.Hosted.Type || !strings.Contains(g.Remote, npm.Hosted.Project)) {
					t.Errorf("it is %+v, and of %+v in npm", g, npm.Hosted)
				}
				if npm.GitCommittish != "" && g.Ref != npm.GitCommittish || g.Range != npm.GitRange || npm.GitSubdir != "" && strings.Trim(npm.GitSubdir, "/") != g.Path {
					t.Errorf("it is %+v, and %+v in npm", g, npm)
				}
			}
		})
	}
}

func TestSpecsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "is not a package name",
		"@":                             "is not a package name",
		"@acme":                         "is not a package name",
		"node_modules":                  "is not a package name",
		"a b":                           "is not a package name",
		"é":                             "is not a package name",
		"p\x00":                         "control characters",
		"o/r#a\nb":                      "control characters",
		"p@$HOME":                       "no version, range or tag",
		"p@a b":                         "no version, range or tag",
		"p@1@2":                         "no version, range or tag",
		"p@é":                           "no version, range or tag",
		"a@npm:":                        "no package name behind npm:",
		"a@npm:../x":                    "no package name behind npm:",
		"x@workspace:*":                 "inside its author's workspace",
		"x@catalog:":                    "inside its author's workspace",
		"jsr:@s/p":                      "no npm registry",
		"portal:../p":                   "only yarn has",
		"ftp://h.test/x.tgz":            `unknown kind "ftp:"`,
		"https:///x.tgz":                "not a valid address",
		strings.Repeat("a", 300):        "is not a package name",
		"github:o":                      "names no repository",
		"github:":                       "names no repository",
		"github:o/r/s":                  "names no repository",
		"github:o/..":                   "names no repository",
		"github:-o/r":                   "names no repository",
		"github://h/o/r":                "not a valid address",
		"git://h.test/o/r.git":          "without encryption",
		"git+http://h.test/o/r.git":     "without encryption",
		"http://h.test/o/r.git":         "without encryption",
		"git+https://":                  "not a valid address",
		"git+https://h.test":            "not a valid address",
		"git+https://h.test/a/../b":     "not a valid address",
		"git+https://h.test/r?x=1":      "has a query",
		"git+ssh://-oProxy=x/r":         "not a valid address",
		"git+ssh://-x@h.test/r":         "not a valid address",
		"git+file:":                     "not a valid address",
		"git+ext::sh -c x":              `unknown kind "git+ext::"`,
		"ext::sh -c x":                  `unknown kind "ext::"`,
		"o/r#--upload-pack=x":           "no branch, tag or commit",
		"o/r#HEAD~1":                    "no branch, tag or commit",
		"o/r#main@{1}":                  "no branch, tag or commit",
		"o/r#a..b":                      "no branch, tag or commit",
		"o/r#x:y":                       "no branch, tag or commit",
		"o/r#abc::semver:1":             "more than one version",
		"o/r#a&b":                       "more than one version",
		"o/r#path:a&path:b":             "more than one version",
		"o/r#semver:next":               "which is none",
		"o/r#path:../x":                 "leads out",
		"o/r#path:/a/../../x":           "leads out",
		`o/r#path:a\b`:                  "leads out",
		"./p.tgz//../x":                 "leads out",
		"https://h.test/p.zip//a/../b":  "leads out",
		"https://h.test/p.zip//a%2F..":  "leads out",
		"s3::k.tgz":                     "needs an address behind s3::",
		"s3://b/k.tgz":                  `unknown kind "s3:"`,
		"git::https://h.test/o/r.git":   "only go-getter has",
		"hg::https://h.test/o/r":        `unknown kind "hg::"`,
		"https://github.com/o/r/tree/-": "no branch, tag or commit",
	} {
		t.Run(text, func(t *testing.T) {
			spec, err := ParseSpec(text, "/cwd")
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %+v, %v, want %q in the error", spec, err, want)
			}
		})
	}
}

// TestShownSpec: nobody learns a password from what is printed.
func TestShownSpec(t *testing.T) {
	for text, want := range map[string]string{
		"is-odd@^1":                                  "is-odd@^1",
		"npm:left@1":                                 "npm:left@1",
		"link:./x":                                   "link:./x",
		"file:../a?b@c":                              "file:../a?b@c",
		"file:///a/b@c":                              "file:///a/b@c",
		"github:o/r#main&path:/x":                    "github:o/r#main&path:/x",
		"git@h.test:o/r.git":                         "git@h.test:o/r.git",
		"git+ssh://git@h.test/o/r.git#v1":            "git+ssh://git@h.test/o/r.git#v1",
		"git+ssh://git:secret@h.test/o/r.git":        "git+ssh://h.test/o/r.git",
		"git+https://user:secret@h.test/o/r.git#v1":  "git+https://h.test/o/r.git#v1",
		"git+https://h.test/o/r.git#v1":              "git+https://h.test/o/r.git#v1",
		"x@https://secret@h.test/p.tgz":              "x@https://h.test/p.tgz",
		"https://h.test/p.tgz":                       "https://h.test/p.tgz",
		"https://u:secret%zz@h.test/x.tgz":           "https://h.test/x.tgz",
		"https://h.test/p?u=https://x&t=secret":      "https://h.test/p",
		"https://h.test/p.zip//a?token=secret":       "https://h.test/p.zip//a",
		"s3::https://b.test/k.tgz?aws_secret=secret": "s3::https://b.test/k.tgz",
		"https://h.test/p.tgz?a=secret#x":            "https://h.test/p.tgz#x",
		"https://u:sec/secret@h.test/o/r.git#v1":     "https://h.test/o/r.git#v1",
		"https://u:sec#secret?/x@h.test":             "https://h.test/",
		"http://h.test:4873/@acme/x.tgz":             "http://h.test:4873/@acme/x.tgz",
		"http://[::1]:4873/@acme/x.tgz":              "http://[::1]:4873/@acme/x.tgz",
	} {
		if got := ShownSpec(text); got != want || strings.Contains(got, "secret") {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}
