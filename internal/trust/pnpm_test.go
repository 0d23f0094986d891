package trust

import (
	"cmp"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestPnpmApprovals(t *testing.T) {
	got, err := PnpmApprovals([]byte("packages:\n  - .\nallowBuilds:\n  a: true\n  '@scope/b@1.0.0': false\n  c: set this to true or false\n  d:\nonlyBuiltDependencies:\n  - e\nignoredBuiltDependencies: [f]\n"), nil)
	want := PnpmRules{
		{Package: "a", Allowed: true, Line: 4}, {Package: "@scope/b@1.0.0", Line: 5}, {Package: "c", Placeholder: "set this to true or false", Line: 6},
		{Package: "d", Placeholder: "no decision", Line: 7}, {Package: "e", Allowed: true, Line: 9, Setting: "onlyBuiltDependencies"},
		{Package: "f", Line: 10, Setting: "ignoredBuiltDependencies"},
	}
	for i := range want {
		want[i].File, want[i].Setting = "pnpm-workspace.yaml", cmp.Or(want[i].Setting, "allowBuilds")
	}
	if diff := diff.Diff(want, got, cmpopts.IgnoreUnexported(PnpmRule{})); diff != "" || err != nil {
		t.Errorf("%s%v", diff, err)
	}
}

// Commits and sources, in the forms in which dsh and pnpm write them.
const (
	commit  = "0123456789abcdef0123456789abcdef01234567"
	commit2 = "89abcdef0123456789abcdef0123456789abcdef"
	gitOf   = "git+https://github.com/o/r.git#"
	tarOf   = "https://codeload.github.com/o/r/tar.gz/"
)

func TestPnpmVerdict(t *testing.T) {
	registry := func(name, version string) Built { return Built{Name: name, Version: version} }
	from := func(source string) Built { return Built{"p", "1.0.0", source} }
	for _, c := range []struct {
		settings string
		built    Built
		want     Verdict
	}{
		{"", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {}", registry("p", "1.0.0"), Undecided},
		// A name, of the registry alone.
		{"allowBuilds: {p: true}", registry("p", "1.0.0"), Allowed},
		{"allowBuilds: {p: false}", registry("p", "1.0.0"), Denied},
		{"allowBuilds: {p: true}", registry("P", "1.0.0"), Undecided},
		{"allowBuilds: {'@s/p': true}", registry("@s/p", "1.0.0"), Allowed},
		{"allowBuilds: {'@s/p': true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p: true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {p: true}", from(tarOf + commit), Undecided},
		{"allowBuilds: {p: true}", from("https://h.example/p.tgz"), Undecided},
		{"allowBuilds: {p: true}", from("file:p.tgz"), Undecided},
		{"allowBuilds: {p: false}", from(gitOf + commit), Denied},
		{"allowBuilds: {p@1.0.0: false}", from(gitOf + commit), Denied},
		{"allowBuilds: {p*: true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {'*': true}", registry("p", "1.0.0"), Undecided},
		// Versions.
		{"allowBuilds: {p@1.0.0: true}", registry("p", "1.0.0"), Allowed},
		{"allowBuilds: {p@1.0.0: true}", registry("p", "1.0.1"), Undecided},
		{"allowBuilds: {p@v1.0.0: true}", registry("p", "1.0.0"), Allowed},
		{"allowBuilds: {p@1.0.0: true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@1.0.0 || 2.0.0': true}", registry("p", "2.0.0"), Allowed},
		{"allowBuilds: {'p@1.0.0||2.0.0-rc.1': true}", registry("p", "2.0.0-rc.1"), Allowed},
		{"allowBuilds: {'p@1.0.0 || 2.0.0': true}", registry("p", "3.0.0"), Undecided},
		{"allowBuilds: {'@s/p@1.0.0 || 2.0.0': true}", registry("@s/p", "1.0.0"), Allowed},
		{"allowBuilds: {p@^1.0.0: true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p@1: true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {'p@1.0.0 || ^2': true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p@latest: true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p@1.0.0(q@2.0.0): true}", registry("p", "1.0.0"), Allowed},
		{"allowBuilds: {p@1.0.0: true}", registry("p", "1.0.0+build.1"), Allowed},
		// Commits.
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from(gitOf + commit), Allowed},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from(gitOf + commit2), Undecided},
		{"allowBuilds: {'q@" + gitOf + commit + "': true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from("git+https://github.com/o/other.git#" + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from("git+ssh://git@github.com/o/r.git#" + commit), Allowed},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from("git+http://github.com/o/r.git#" + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from("git+https://GitHub.com/o/r#" + commit), Allowed},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from(tarOf + commit), Allowed},
		{"allowBuilds: {'p@" + tarOf + commit + "': true}", from(gitOf + commit), Allowed},
		{"allowBuilds: {'p@" + tarOf + commit + "': true}", from(tarOf + commit2), Undecided},
		{"allowBuilds: {'p@https://codeload.github.com/o/r/tar.gz/main': true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@https://codeload.github.com/o/r/tar.gz/main': true}", from("https://codeload.github.com/o/r/tar.gz/main"), Allowed},
		{"allowBuilds: {'p@" + gitOf + "main': true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit[:7] + "': true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "(q@2.0.0)': true}", from(gitOf + commit), Allowed},
		{"allowBuilds: {'" + gitOf + commit + "': true}", from(gitOf + commit), Allowed},
		{"allowBuilds: {'p@https://gitlab.com/g/s/r/-/archive/" + commit + "/r.tar.gz': true}", from("git+https://gitlab.com/g/s/r.git#" + commit), Allowed},
		{"allowBuilds: {'p@https://bitbucket.org/o/r/get/" + commit + ".tar.gz': true}", from("git+https://bitbucket.org/o/r.git#" + commit), Allowed},
		{"allowBuilds: {'p@git+file:///srv/r.git#" + commit + "': true}", from("git+file:///srv/r.git#" + commit), Allowed},
		{"allowBuilds: {'p@git+file:///srv/r.git#" + commit + "': true}", from("git+file:///tmp/r.git#" + commit), Undecided},
		// Folders.
		{"allowBuilds: {'p@" + gitOf + commit + "&path:/packages/p': true}", from(gitOf + commit + "&path:/packages/p"), Allowed},
		{"allowBuilds: {'p@" + gitOf + commit + "&path:packages/p/': true}", from(gitOf + commit + "&path:/packages/p"), Allowed},
		{"allowBuilds: {'p@" + tarOf + commit + "#path:/packages/p': true}", from(gitOf + commit + "&path:/packages/p"), Allowed},
		{"allowBuilds: {'p@" + gitOf + commit + "': true}", from(gitOf + commit + "&path:/packages/p"), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "&path:/packages/p': true}", from(gitOf + commit), Undecided},
		{"allowBuilds: {'p@" + gitOf + commit + "&path:/packages/p': true}", from(gitOf + commit + "&path:/packages/q"), Undecided},
		// A repository, of pnpm 11.
		{"allowBuilds: {p@git+https://github.com/o/r.git: true}", from(gitOf + commit), Allowed},
		{"allowBuilds: {p@git+https://github.com/o/r.git: true}", from(gitOf + commit2 + "&path:/x"), Allowed},
		{"allowBuilds: {p@git+https://github.com/o/r.git: true}", from(tarOf + commit), Allowed},
		{"allowBuilds: {p@git+https://github.com/o/r.git: false}", from(gitOf + commit), Denied},
		{"allowBuilds: {p@git+https://github.com/o/r.git: true}", from("git+https://github.com/o/r2.git#" + commit), Undecided},
		{"allowBuilds: {p@git+https://github.com/o/r.git: true}", registry("p", "1.0.0"), Undecided},
		// Addresses.
		{"allowBuilds: {'p@https://h.example/p.tgz': true}", from("https://h.example/p.tgz"), Allowed},
		{"allowBuilds: {'p@https://h.example/p.tgz': true}", from("https://h.example/q.tgz"), Undecided},
		{"allowBuilds: {'p@file:p.tgz': true}", from("file:p.tgz"), Allowed},
		// Lists.
		{"onlyBuiltDependencies: [p]", registry("p", "1.0.0"), Allowed},
		{"onlyBuiltDependencies: [p@1.0.0]", registry("p", "1.0.0"), Allowed},
		{"onlyBuiltDependencies: [p]", from(gitOf + commit), Undecided},
		{"onlyBuiltDependencies: ['p@" + gitOf + commit + "']", from(gitOf + commit), Allowed},
		{"onlyBuiltDependencies: [q]", registry("p", "1.0.0"), Undecided},
		{"neverBuiltDependencies: [p]", registry("p", "1.0.0"), Denied},
		{"neverBuiltDependencies: [q]", registry("p", "1.0.0"), Undecided}, // pnpm would build it
		{"ignoredBuiltDependencies: [p]", registry("p", "1.0.0"), Denied},
		{"onlyBuiltDependencies: [p]\nignoredBuiltDependencies: [p]", registry("p", "1.0.0"), Denied},
		{"allowBuilds: {p: true, p@1.0.0: false}", registry("p", "1.0.0"), Denied},
		{"allowBuilds: {p: true, p@1.0.0: false}", registry("p", "1.0.1"), Allowed},
		// Everything.
		{"dangerouslyAllowAllBuilds: true", from(gitOf + commit), Allowed},
		{"dangerouslyAllowAllBuilds: false", registry("p", "1.0.0"), Undecided},
		{"dangerouslyAllowAllBuilds: 'true'", registry("p", "1.0.0"), Undecided},
		{"dangerouslyAllowAllBuilds: true\nallowBuilds: {p: false}", registry("p", "1.0.0"), Denied},
		// What is no decision.
		{"allowBuilds: {p: set this to true or false}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p: 'true'}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p: yes}", registry("p", "1.0.0"), Undecided}, // YAML 1.2 has no such word
		{"allowBuilds: {p: TRUE}", registry("p", "1.0.0"), Allowed},
		{"allowBuilds: {p: }", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: {p: [true]}", registry("p", "1.0.0"), Undecided},
		{"allowBuilds: [p]", registry("p", "1.0.0"), Undecided},
		{"onlyBuiltDependencies: p", registry("p", "1.0.0"), Undecided},
		{"onlyBuiltDependencies: [{p: true}]", registry("p", "1.0.0"), Undecided},
	} {
		rules, err := PnpmApprovals([]byte(c.settings), nil)
		if err != nil {
			t.Errorf("%s: %v", c.settings, err)
			continue
		}
		got, rule := rules.Verdict(c.built)
		if got != c.want || (got == Undecided) != (rule.Setting == "") || got != Undecided && rule.Allowed != (got == Allowed) {
			t.Errorf("%s: %+v is %s by %+v, not %s", c.settings, c.built, got, rule, c.want)
		}
	}
}

func TestPnpmApprovalsOfBothFiles(t *testing.T) {
	p := Built{Name: "p", Version: "1.0.0"}
	for _, c := range []struct {
		settings, manifest string
		want               Verdict
		file               string
	}{
		{"", `{"pnpm": {"onlyBuiltDependencies": ["p"]}}`, Allowed, "package.json"},
		{"", `{"pnpm": {"allowBuilds": {"p": true}}}`, Allowed, "package.json"},
		{"", `{"pnpm": {"neverBuiltDependencies": ["p"]}}`, Denied, "package.json"},
		{"", `{"pnpm": {"dangerouslyAllowAllBuilds": true}}`, Allowed, "package.json"},
		// Of a setting that is in both, the one in pnpm-workspace.yaml counts.
		{"onlyBuiltDependencies: [q]", `{"pnpm": {"onlyBuiltDependencies": ["p"]}}`, Undecided, ""},
		{"onlyBuiltDependencies: [p]", `{"pnpm": {"onlyBuiltDependencies": ["q"]}}`, Allowed, "pnpm-workspace.yaml"},
		{"onlyBuiltDependencies: [p]", `{"pnpm": {"ignoredBuiltDependencies": ["p"]}}`, Denied, "package.json"},
		{"", `{"onlyBuiltDependencies": ["p"]}`, Undecided, ""},
		{"", `{"pnpm": {"onlyBuiltDependencies": "p"}}`, Undecided, ""},
		{"", `{"pnpm": ["p"]}`, Undecided, ""},
		{"", `no JSON`, Undecided, ""},
		{"", ``, Undecided, ""},
	} {
		rules, err := PnpmApprovals([]byte(c.settings), []byte(c.manifest))
		if err != nil {
			t.Error(err)
		}
		if got, rule := rules.Verdict(p); got != c.want || rule.File != c.file {
			t.Errorf("%s and %s: %s by %+v", c.settings, c.manifest, got, rule)
		}
	}
	if _, err := PnpmApprovals([]byte("a: [\n"), nil); err == nil || !strings.Contains(err.Error(), "line ") {
		t.Error(err)
	}
}

func TestPnpmRulesSayWhatIsWrong(t *testing.T) {
	rules, err := PnpmApprovals([]byte("allowBuilds:\n  p@^1: true\n  q*: true\n  r: decide\n  s: true\n  s: false\n"), nil)
	if err != nil || len(rules) != 5 {
		t.Fatal(rules, err)
	}
	if r := rules[0]; r.Invalid != `"^1" is no exact version` || r.Line != 2 {
		t.Errorf("%+v", r)
	}
	if r := rules[1]; r.Invalid != "pnpm knows no patterns here" || r.Line != 3 {
		t.Errorf("%+v", r)
	}
	if r := rules[2]; r.Invalid != "" || r.Placeholder != "decide" || r.Line != 4 {
		t.Errorf("%+v", r)
	}
	for _, r := range rules[3:] {
		if r.Invalid != "it stands there twice, in lines 5 and 6, which pnpm refuses" {
			t.Errorf("%+v", r)
		}
	}
	if got, _ := rules.Verdict(Built{Name: "s", Version: "1.0.0"}); got != Undecided {
		t.Errorf("s is %s", got)
	}
}

func FuzzPnpmVerdict(f *testing.F) {
	f.Add("p@1.0.0 || 2.0.0", "1.0.0", "")
	f.Add("p@"+gitOf+commit+"&path:/x", "1.0.0", tarOf+commit+"#path:/x")
	f.Add("p@git+ssh://git@h/o/r.git", "1.0.0", "git+https://h/o/r#"+commit)
	f.Add("(", "@", "https://h/-/archive/"+commit+"/")
	f.Fuzz(func(t *testing.T, key, version, source string) {
		k, invalid := parsePnpmKey(key)
		if invalid != "" {
			return
		}
		b := Built{"p", version, source}
		if k.allows(b) && !k.names(b) {
			t.Errorf("%q allows what it does not name: %+v", key, b)
		}
		if source != "" && k.source.text == "" && k.allows(b) {
			t.Errorf("%q allows a source by a name: %+v", key, b)
		}
	})
}

func TestWithoutPlaceholders(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"none":        {"allowBuilds:\n  a: true\n", "allowBuilds:\n  a: true\n"},
		"no section":  {"# nothing\n", "# nothing\n"},
		"one":         {"packages:\n  - .\n# mine\nallowBuilds:\n  a: true # yes\n  b: set this to true or false\n  c: false\nnodeLinker: hoisted\n", "packages:\n  - .\n# mine\nallowBuilds:\n  a: true # yes\n  c: false\nnodeLinker: hoisted\n"},
		"all":         {"packages:\n  - .\nallowBuilds:\n  b: set this to true or false\nnodeLinker: hoisted\n", "packages:\n  - .\nnodeLinker: hoisted\n"},
		"in one line": {"allowBuilds: {b: set this, c: true}\n", ""},
		"two lines":   {"allowBuilds:\n  b: set this\n    to true or false\n  c: true\n", ""},
		"CRLF":        {"allowBuilds:\r\n  b: set this\r\n  c: true\r\n", "allowBuilds:\r\n  c: true\r\n"},
		"no newline":  {"allowBuilds:\n  c: true\n  b: set this", "allowBuilds:\n  c: true\n"},
	} {
		got, err := WithoutPlaceholders([]byte(c.text))
		if (err == nil) != (c.want != "") {
			t.Errorf("%s: %v", name, err)
		} else if diff := diff.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzWithoutPlaceholders(f *testing.F) {
	f.Add([]byte("allowBuilds:\n  a: true\n  b: set this\n"))
	f.Add([]byte("allowBuilds: &a\n  a: true\n  b: *a\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		edited, err := WithoutPlaceholders(text)
		if err != nil {
			return
		}
		after, err := PnpmApprovals(edited, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range after {
			if a.Placeholder != "" {
				t.Errorf("%q is left in %q", a.Package, edited)
			}
		}
	})
}
