package trust

import (
	"cmp"
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
