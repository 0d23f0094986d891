package skills

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	fits := func(name string, user, model bool) Skill {
		return Skill{Name: name, Description: "d", UserInvocable: user, ModelInvocable: model}
	}
	for text, want := range map[string]Skill{
		"---\nname: a\ndescription: d\n---\nbody":                              fits("a", true, true),
		"\xef\xbb\xbf---\r\nname: a\r\ndescription: d\r\n---\r\n":              fits("a", true, true),
		"---\nname: a-b-1\ndescription: d\n---":                                fits("a-b-1", true, true),
		"---\nname: a\ndescription: d\nuser-invocable: no\n---\n":              fits("a", false, true),
		"---\nname: a\ndescription: d\nuser-invocable: 'OFF'\n---\n":           fits("a", false, true),
		"---\nname: a\ndescription: d\nuser-invocable: 0\n---\n":               fits("a", false, true),
		"---\nname: a\ndescription: d\nuser-invocable: On\n---\n":              fits("a", true, true),
		"---\nname: a\ndescription: d\ndisable-model-invocation: 1\n---\n":     fits("a", true, false),
		"---\nname: a\ndescription: d\ndisable-model-invocation: TRUE\n---\n":  fits("a", true, false),
		"---\nname: a\ndescription: d\nallowed-tools: [x]\nmetadata: 1\n---\n": fits("a", true, true),
	} {
		got, err := Parse([]byte(text))
		if err != nil || got.Name != want.Name || got.UserInvocable != want.UserInvocable || got.ModelInvocable != want.ModelInvocable || got.Description != "d" {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}
	for text, word := range map[string]string{
		"":                                                                  "frontmatter",
		"name: a":                                                           "frontmatter",
		"---\nname: a\ndescription: d":                                      "not closed",
		"---\ndescription: d\n---\n":                                        "no name",
		"---\nname: a\n---\n":                                               "no description",
		"---\nname: a\ndescription: ~\n---\n":                               "no description",
		"---\nname: ''\ndescription: d\n---\n":                              "no name",
		"---\nname: A\ndescription: d\n---\n":                               `"A"`,
		"---\nname: a_b\ndescription: d\n---\n":                             `"a_b"`,
		"---\nname: a--b\ndescription: d\n---\n":                            `"a--b"`,
		"---\nname: -a\ndescription: d\n---\n":                              `"-a"`,
		"---\nname: [a]\ndescription: d\n---\n":                             "name is no text",
		"---\nname: a\nname: b\ndescription: d\n---\n":                      "twice",
		"---\n- a\n---\n":                                                   "no mapping",
		"---\nname: a\n- b: c\n---\n":                                       "not YAML",
		"---\nname: \xff\ndescription: d\n---\n":                            "UTF-8",
		"---\nname: a\ndescription: d\nuser-invocable: perhaps\n---\n":      "user-invocable",
		"---\nname: a\ndescription: d\nuser-invocable:\n---\n":              "user-invocable",
		"---\nname: a\ndescription: d\nuser-invocable: 2\n---\n":            "user-invocable",
		"---\nname: a\ndescription: d\ndisable-model-invocation: []\n---\n": "disable-model-invocation",
		"---\nname: a\ndescription: d\ndisable-model-invocation: y\n---\n":  "disable-model-invocation",
	} {
		if got, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is %+v, %v, want an error with %q", text, got, err, word)
		}
	}
}

// FuzzParse looks for texts that break the reader, or become skills that nobody
// could name.
func FuzzParse(f *testing.F) {
	f.Add([]byte("---\nname: a\ndescription: d\nuser-invocable: yes\n---\nbody"))
	f.Add([]byte("---\nname: &a x\ndescription: *a\n---\n"))
	f.Add([]byte("---\nmetadata: {a: {b: c}}\n? [x]\n: y\n---\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse(text)
		if err == nil && (!kebab.MatchString(s.Name) || s.Description == "") {
			t.Errorf("%q is %+v", text, s)
		}
	})
}

// tree makes files, those that end in a slash as directories and those with an
// arrow as links.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(filepath.FromSlash(target), path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func text(name string) string { return "---\nname: " + name + "\ndescription: d\n---\nbody of " + name }

func TestScan(t *testing.T) {
	root := tree(t, map[string]string{
		"first/one/SKILL.md":        text("one"),
		"first/one.md":              text("one"),
		"first/two.md":              text("two"),
		"first/linked":              "-> ../elsewhere/linked",
		"first/dangling":            "-> nowhere",
		"first/folder/README.md":    "",
		"first/deep/er/SKILL.md":    text("deeper"),
		"first/.system/SKILL.md":    text("system"),
		"first/broken/SKILL.md":     "",
		"first/odd.md/x":            "",
		"first/lower/skill.md":      text("lower"),
		"elsewhere/linked/SKILL.md": text("linked"),
		"second/two/SKILL.md":       text("two"),
	})
	first, second := Root{filepath.Join(root, "first"), custom}, Root{filepath.Join(root, "second"), ofDshHome}
	found := Scan([]Root{second, {filepath.Join(root, "missing"), projectDsh}, first})
	var names []string
	for _, s := range found.Skills {
		names = append(names, s.Name)
	}
	if want := []string{"system", "linked", "one", "two"}; !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	var hidden []string
	for _, h := range found.Hidden {
		rel, _ := filepath.Rel(root, h.Path)
		by, _ := filepath.Rel(root, h.By)
		hidden = append(hidden, filepath.ToSlash(rel)+" by "+filepath.ToSlash(by))
	}
	if want := []string{"first/one.md by first/one/SKILL.md", "second/two/SKILL.md by first/two.md"}; !slices.Equal(hidden, want) {
		t.Errorf("hidden are %q, want %q", hidden, want)
	}
	if len(found.Skipped) != 1 || !strings.Contains(found.Skipped[0].Path, "broken") {
		t.Errorf("skipped are %v", found.Skipped)
	}
	if body, err := found.Skills[2].Body(); err != nil || body != "body of one" {
		t.Errorf("body is %q, %v", body, err)
	}
	// The folder that dsh keeps for itself is none of the home's.
	first.Rank = ofDshHome
	if found := Scan([]Root{first}); slices.ContainsFunc(found.Skills, func(s Skill) bool { return s.Name == "system" }) {
		t.Error(".system of the home was searched")
	}
}

func TestBodyIsReadWhenItIsAskedFor(t *testing.T) {
	root := tree(t, map[string]string{"one.md": text("one")})
	found := Scan([]Root{{root, custom}})
	if err := os.WriteFile(filepath.Join(root, "one.md"), []byte("---\n---\nanother"), 0o644); err != nil {
		t.Fatal(err)
	}
	if body, err := found.Skills[0].Body(); err != nil || body != "another" {
		t.Errorf("body is %q, %v", body, err)
	}
	if err := os.WriteFile(filepath.Join(root, "one.md"), make([]byte, mostBody+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := found.Skills[0].Body(); err == nil || !strings.Contains(err.Error(), "larger") {
		t.Errorf("a large body gave %v", err)
	}
}

func TestRoots(t *testing.T) {
	project := tree(t, map[string]string{".git/HEAD": "", "a/b/x": ""})
	at := Place{Cwd: filepath.Join(project, "a", "b"), DshHome: "/home/dsh", AgentsHome: "/home/agents"}
	ranks := func(c Config) (list []int) {
		for _, r := range c.Roots(at) {
			list = append(list, r.Rank)
		}
		return list
	}
	no := false
	for _, c := range []struct {
		config Config
		want   []int
	}{
		{Config{}, []int{100, 200, 400, 500}},
		{Config{CustomSkillDirs: []string{"/x", "/y"}, BundledSkillDir: "/z"}, []int{100, 200, 300, 300, 400, 500, 600}},
		{Config{IncludeDefaultRoots: &no, CustomSkillDirs: []string{"/x"}}, []int{300}},
		{Config{IncludeDefaultRoots: &no}, nil},
	} {
		if got := ranks(c.config); !slices.Equal(got, c.want) {
			t.Errorf("%+v has ranks %v, want %v", c.config, got, c.want)
		}
	}
	if got := (Config{}).Roots(at)[0].Dir; got != filepath.Join(project, ".dsh", "skills") {
		t.Errorf("the project's folder is %s", got)
	}
	if got := (Config{DshHome: "/other"}).Roots(at)[2].Dir; got != filepath.Join("/other", "skills") {
		t.Errorf("the home's folder is %s", got)
	}
}

func TestAgentsHome(t *testing.T) {
	for value, want := range map[string]string{"": filepath.Join("/me", ".agents"), "relative": filepath.Join("/me", ".agents"), absolute: absolute} {
		if got := AgentsHome(func(string) string { return value }, "/me"); got != want {
			t.Errorf("%q: %s", value, got)
		}
	}
}

var absolute, _ = filepath.Abs("shared")
