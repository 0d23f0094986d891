package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestApprovals(t *testing.T) {
	got, err := ReadApprovals([]byte("packages:\n  - .\nallowBuilds:\n  a: true\n  '@scope/b@1.0.0': false\n  c: set this to true or false\n  d:\nonlyBuiltDependencies:\n  - e\nignoredBuiltDependencies: [f]\n"))
	want := []Approval{
		{Package: "a", Allowed: true}, {Package: "@scope/b@1.0.0"}, {Package: "c", Placeholder: "set this to true or false"},
		{Package: "d", Placeholder: "no decision"}, {Package: "e", Allowed: true}, {Package: "f"},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Approval{})); diff != "" || err != nil {
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
		} else if diff := cmp.Diff(c.want, string(got)); diff != "" {
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
		after, err := ReadApprovals(edited)
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
