package install

import "testing"

func TestParseRepository(t *testing.T) {
	for text, want := range map[string]string{
		"o/r":                                     "github.com o/r ",
		"github:o/r":                              "github.com o/r ",
		"github:o/r#main":                         "github.com o/r ",
		"gitlab:g/sub/r":                          "gitlab.com g/sub/r ",
		"gist:0123456789abcdef":                   "gist.github.com 0123456789abcdef ",
		"git+https://github.com/O/R.git":          "github.com O/R ",
		"git://github.com/o/r.git":                "github.com o/r ",
		"git+ssh://git@github.com/o/r.git#v1":     "github.com o/r ",
		"ssh://git@host.example:22/o/r":           "host.example o/r ",
		"git@github.com:o/r.git":                  "github.com o/r ",
		"https://www.github.com/o/r/":             "github.com o/r ",
		"https://github.com/o/r/tree/main/pkg/a":  "github.com o/r pkg/a",
		"https://gitlab.com/g/r/-/tree/main/a":    "gitlab.com g/r a",
		"https://codeberg.org/o/r/src/branch/x/a": "codeberg.org o/r a",
		"https://user:secret@gitee.com/u/r.git":   "gitee.com u/r ",
		"gitee.com/u/r":                           "gitee.com u/r ",
		"git+file:///srv/r.git":                   "file srv/r ",
	} {
		r, err := ParseRepository(text)
		if got := r.Host + " " + r.Path + " " + r.Directory; err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "r", "@scope/name", "https://", "https://github.com/o", "o r/x", "http://[::1", "a/b/c"} {
		if r, err := ParseRepository(text); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

func TestRepositoryIn(t *testing.T) {
	for text, want := range map[string]string{
		`{"repository": "o/r"}`: "o/r ",
		`{"repository": {"type": "git", "url": "git+https://github.com/O/r.git", "directory": "./packages/a/"}}`: "O/r packages/a",
		`{"repository": {"url": "https://gitee.com/u/r"}}`:                                                       "gitee.com/u/r ",
		`{"repository": 7}`: " ", `{"repository": "nothing at all"}`: " ", `{}`: " ", `[`: " ",
	} {
		if r := RepositoryIn([]byte(text)); r.String()+" "+r.Directory != want {
			t.Errorf("%s: %q %q", text, r.String(), r.Directory)
		}
	}
	a, _ := ParseRepository("O/R")
	b, _ := ParseRepository("git@github.com:o/r.git")
	if !a.Same(b) || a.Same(Repository{}) || (Repository{}).Same(Repository{}) {
		t.Error("same")
	}
}

func FuzzParseRepository(f *testing.F) {
	f.Add("git+https://u:p@github.com/o/r.git#x")
	f.Add("git@h:o/r")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRepository(text)
		if err != nil {
			return
		}
		if r.IsZero() || r.Host == "" {
			t.Fatalf("%q is %+v", text, r)
		}
	})
}
