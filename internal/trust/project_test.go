package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindProject(t *testing.T) {
	const patch = "/.dsh/cordis.patch.yml"
	tests := map[string]struct {
		entries []string
		dir     string
		home    string // the user's; "home" if empty, none if "-"
		dshHome string // "home/.dsh" if empty
		want    string // "" for none
	}{
		"the directory itself":     {entries: []string{"home/p" + patch, ""}, dir: "home/p", want: "home/p"},
		"upwards":                  {entries: []string{"home/p" + patch, "", "home/p/a/b/", ""}, dir: "home/p/a/b", want: "home/p"},
		"from inside its .dsh":     {entries: []string{"home/p" + patch, ""}, dir: "home/p/.dsh", want: "home/p"},
		"the nearest wins":         {entries: []string{"home/p" + patch, "", "home/p/a" + patch, "", "home/p/a/b/", ""}, dir: "home/p/a/b", want: "home/p/a"},
		"none":                     {entries: []string{"home/p/a/", ""}, dir: "home/p/a"},
		"a .dsh without a patch":   {entries: []string{"home/p" + patch, "", "home/p/a/.dsh/skills/", ""}, dir: "home/p/a", want: "home/p"},
		"a .dsh that is a file":    {entries: []string{"home/p" + patch, "", "home/p/a/.dsh", "x"}, dir: "home/p/a", want: "home/p"},
		"a .dsh that leads away":   {entries: []string{"home/p/.dsh", "-> ../shared", "home/shared/cordis.patch.yml", ""}, dir: "home/p", want: "home/p"},
		"a .dsh that leads to nil": {entries: []string{"home/p" + patch, "", "home/p/a/.dsh", "-> gone"}, dir: "home/p/a", want: "home/p"},
		"a patch that is a link":   {entries: []string{"home/p" + patch, "-> ../my.yml"}, dir: "home/p", want: "home/p"},
		"a patch that is a folder": {entries: []string{"home/p" + patch + "/", ""}, dir: "home/p", want: "home/p"},

		"a repository root counts":       {entries: []string{"home/p" + patch, "", "home/p/.git/", "", "home/p/a/", ""}, dir: "home/p/a", want: "home/p"},
		"nothing above a repository":     {entries: []string{"home/p" + patch, "", "home/p/r/.git/", "", "home/p/r/a/", ""}, dir: "home/p/r/a"},
		"nothing above a worktree":       {entries: []string{"home/p" + patch, "", "home/p/r/.git", "gitdir: /r/.git/worktrees/r", "home/p/r/a/", ""}, dir: "home/p/r/a"},
		"nothing above a linked .git":    {entries: []string{"home/p" + patch, "", "home/p/r/.git", "-> gone"}, dir: "home/p/r"},
		"below a repository, not in one": {entries: []string{"home/p" + patch, "", "home/p/r/.git/", ""}, dir: "home/p", want: "home/p"},

		"the home itself":              {entries: []string{"home" + patch, ""}, dir: "home", dshHome: "elsewhere"},
		"the home from below":          {entries: []string{"home" + patch, "", "home/p/", ""}, dir: "home/p", dshHome: "elsewhere"},
		"the home as a repository":     {entries: []string{"home" + patch, "", "home/.git/", "", "home/p/", ""}, dir: "home/p", dshHome: "elsewhere"},
		"above the home":               {entries: []string{"u" + patch, "", "u/home/p/", ""}, dir: "u/home/p", home: "u/home"},
		"above the home, from above":   {entries: []string{"u" + patch, "", "u/home/", ""}, dir: "u", home: "u/home"},
		"above the home, from beside":  {entries: []string{"u" + patch, "", "u/home/", "", "u/p/", ""}, dir: "u/p", home: "u/home"},
		"above a home that is not yet": {entries: []string{"u" + patch, "", "u/p/", ""}, dir: "u/p", home: "u/x/y"},
		"outside the home":             {entries: []string{"home/", "", "srv/p" + patch, "", "srv/p/a/", ""}, dir: "srv/p/a", want: "srv/p"},
		"outside the home, a root":     {entries: []string{"home/", "", "srv" + patch, "", "srv/p/.git/", ""}, dir: "srv/p"},
		"no home":                      {entries: []string{"p" + patch, "", "p/a/", ""}, dir: "p/a", home: "-", want: "p"},

		"the home is a link":               {entries: []string{"disk/u" + patch, "", "disk/u/p/", "", "home", "-> disk/u"}, dir: "disk/u/p", dshHome: "elsewhere"},
		"the home is a link, and so named": {entries: []string{"disk/u" + patch, "", "disk/u/p/", "", "home", "-> disk/u"}, dir: "home/p", dshHome: "elsewhere"},
		"a project below a linked home":    {entries: []string{"disk/u/p" + patch, "", "home", "-> disk/u"}, dir: "home/p", want: "disk/u/p"},
		"above a linked home":              {entries: []string{"disk" + patch, "", "disk/u/", "", "disk/p/", "", "home", "-> disk/u"}, dir: "disk/p"},
		"a linked project":                 {entries: []string{"home/p" + patch, "", "home/l", "-> p"}, dir: "home/l", want: "home/p"},
		"below a link into a project":      {entries: []string{"home/p" + patch, "", "home/p/a/b/", "", "home/q" + patch, "", "home/q/l", "-> ../p/a"}, dir: "home/q/l/b", want: "home/p"},
		"below a link out of a project":    {entries: []string{"home/p" + patch, "", "home/a/", "", "home/p/l", "-> ../a"}, dir: "home/p/l"},

		"the dsh home":                     {entries: []string{"home/p" + patch, ""}, dir: "home/p", dshHome: "home/p/.dsh"},
		"the dsh home holds a layer":       {entries: []string{"home/p" + patch, "", "home/p/a" + patch, ""}, dir: "home/p/a", dshHome: "home/p/a", want: "home/p"},
		"above the dsh home":               {entries: []string{"home/p" + patch, "", "home/p/a" + patch, ""}, dir: "home/p/a", dshHome: "home/p/a/.dsh", want: "home/p"},
		"the dsh home in a repository":     {entries: []string{"home/p" + patch, "", "home/p/a" + patch, "", "home/p/a/.git/", ""}, dir: "home/p/a", dshHome: "home/p/a/.dsh"},
		"the dsh home is reached by link":  {entries: []string{"home/p/.dsh", "-> ../keep", "home/keep/cordis.patch.yml", ""}, dir: "home/p", dshHome: "home/keep"},
		"the dsh home is named by a link":  {entries: []string{"home/p" + patch, "", "home/keep", "-> p/.dsh"}, dir: "home/p", dshHome: "home/keep"},
		"the dsh home is another .dsh":     {entries: []string{"home/p" + patch, "", "home/q" + patch, ""}, dir: "home/p", dshHome: "home/q/.dsh", want: "home/p"},
		"the dsh home is not there so far": {entries: []string{"home/p" + patch, ""}, dir: "home/p", dshHome: "home/none", want: "home/p"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := world(t, test.entries...)
			in := func(path, normally string) string {
				switch path {
				case "-":
					return ""
				case "":
					path = normally
				}
				return filepath.Join(root, filepath.FromSlash(path))
			}
			got, found, err := FindProject(in(test.dir, ""), in(test.home, "home"), in(test.dshHome, "home/.dsh"))
			if err != nil {
				t.Fatal(err)
			}
			if test.want == "" {
				if found || got != (Project{}) {
					t.Errorf("found %+v", got)
				}
				return
			}
			want := Project{Dir: in(test.want, ""), Patch: in(test.want+patch, "")}
			if !found || got != want {
				t.Errorf("found %v: %+v, want %+v", found, got, want)
			}
		})
	}
}

func TestAFolderThatLoopsIsAProject(t *testing.T) {
	dir := filepath.Join(world(t, "p/.dsh", "-> .dsh"), "p")
	if got, found, err := FindProject(dir, "", ""); err != nil || !found || got.Dir != dir {
		t.Errorf("found %v: %+v, %v", found, got, err)
	}
}

func TestFindProjectFromTheWorkingDirectory(t *testing.T) {
	root := world(t, "home/p/.dsh/cordis.patch.yml", "", "home/p/a/", "", "home/l", "-> p/a")
	t.Chdir(filepath.Join(root, "home", "l"))
	got, found, err := FindProject(".", filepath.Join(root, "home"), "")
	if want := filepath.Join(root, "home", "p"); err != nil || !found || got.Dir != want {
		t.Errorf("found %v: %+v, %v; want %s", found, got, err, want)
	}
}

func TestFindProjectRefuses(t *testing.T) {
	tests := map[string]struct {
		entries []string
		want    string // the error, after its beginning; DIR is the directory
	}{
		"a file":       {[]string{"p", "text"}, "it is not a directory"},
		"a link to it": {[]string{"p", "-> f", "f", ""}, "it is not a directory"},
		"nothing":      {nil, "lstat DIR: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(world(t, test.entries...), "p")
			got, found, err := FindProject(dir, "", "")
			if found || got != (Project{}) {
				t.Errorf("found %+v", got)
			}
			want := "looking for the project of " + dir + ": " + strings.ReplaceAll(test.want, "DIR", dir)
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("the error is %v, want %s", err, want)
			}
		})
	}
}

// A patch that cannot be read or looked at is a project still: whoever reads it
// says why not, instead of a layer that silently does not apply.
func TestFindProjectUnreadable(t *testing.T) {
	for _, locked := range []string{"p/.dsh/cordis.patch.yml", "p/.dsh"} {
		t.Run(locked, func(t *testing.T) {
			needsPermissions(t)
			root := world(t, "p/.dsh/cordis.patch.yml", "")
			chmod(t, filepath.Join(root, filepath.FromSlash(locked)), 0)
			got, found, err := FindProject(filepath.Join(root, "p"), "", "")
			if err != nil || !found || got.Dir != filepath.Join(root, "p") {
				t.Fatalf("found %v: %+v, %v", found, got, err)
			}
			if _, err := os.ReadFile(got.Patch); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("reading the patch: %v", err)
			}
		})
	}
	t.Run("the directory", func(t *testing.T) {
		needsPermissions(t)
		root := world(t, "p/.dsh/cordis.patch.yml", "")
		chmod(t, filepath.Join(root, "p"), 0o600)
		_, found, err := FindProject(filepath.Join(root, "p"), "", "")
		if found || err != nil {
			t.Errorf("found %v, %v", found, err)
		}
	})
}
