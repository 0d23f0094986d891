package profile

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestParseName(t *testing.T) {
	for _, ok := range []string{"a", "Bad", "my profile", "a.b", ".hidden", "...", "节点", "node_modules2", "Node_Modules", "a:b", "staging-1", "x.staging-1", strings.Repeat("a", 200)} {
		name, err := ParseName(ok)
		if err != nil {
			t.Errorf("%q: %v", ok, err)
		}
		if name.String() != ok {
			t.Errorf("%q became %q", ok, name)
		}
	}
	for bad, want := range map[string]string{
		"":                   `invalid profile name ""`,
		".":                  `invalid profile name "."`,
		"..":                 `invalid profile name ".."`,
		"a/b":                `invalid profile name "a/b"`,
		`a\b`:                `invalid profile name "a\b"`,
		"/":                  `invalid profile name "/"`,
		"node_modules":       `invalid profile name "node_modules"`,
		"a\x00b":             `invalid profile name "a\x00b"`,
		"../\x1b[31m":        `invalid profile name "../\x1b[31m"`,
		".web.staging-12ab":  `invalid profile name ".web.staging-12ab"`,
		".web.backup-12ab":   `invalid profile name ".web.backup-12ab"`,
		"profiles/../../etc": `invalid profile name "profiles/../../etc"`,
	} {
		if _, err := ParseName(bad); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", bad, err, want)
		}
	}
}

func FuzzParseName(f *testing.F) {
	f.Add("web")
	f.Add("../x")
	f.Add("sdk-minimal")
	f.Add("\u0130\u0307")
	f.Fuzz(func(t *testing.T, s string) {
		name, err := ParseName(s)
		if err != nil {
			return
		}
		if strings.ContainsAny(s, "/\\\x00") || s == "" || s == "." || s == ".." {
			t.Fatalf("%q is accepted", s)
		}
		shipped, ok := ShippedVariant(name)
		if slices.Contains(Templates(), s) && shipped != s {
			t.Fatalf("%q is shipped but a variant of %q", s, shipped)
		}
		for _, other := range []string{strings.ToUpper(s), strings.ToLower(s), strings.ToUpperSpecial(unicode.TurkishCase, s)} {
			if got, _ := ShippedVariant(Name{other}); ok && got != shipped {
				t.Fatalf("%q is a variant of %q, but %q of %q", s, shipped, other, got)
			}
		}
	})
}

func TestShippedVariant(t *testing.T) {
	tests := []struct{ name, want string }{
		{"web", "web"},
		{"Web", "web"},
		{"WEB", "web"},
		{"HEADLESS", "headless"},
		{"headle\u00df", "headless"},       // sharp s, full folding
		{"HEADLE\u1e9e", "headless"},       // capital sharp s
		{"\u017fdk", "sdk"},                // long s
		{"headle\u017f\u017f", "headless"}, // two of them
		{"sd\u212a", "sdk"},                // Kelvin sign
		{"SDK-M\u0130N\u0130MAL", "sdk-minimal"},
		{"SDK-MI\u0307NIMAL", "sdk-minimal"},
		{"sdk-m\u0131n\u0131mal", "sdk-minimal"}, // dotless i
		{"sdk-mi\u0307nimal", "sdk-minimal"},
		{"\uff37\uff25\uff22", "web"}, // full width
		{"\U0001d430eb", "web"},       // mathematical bold
		{"w\u200beb", "web"},          // invisible
		{"acp\ufe0f", "acp"},
		{"\u24d0cp", "acp"}, // circled a
		{"default", ""},
		{"w\u00e9b", ""},
		{"web2", ""},
		{"\u0432\u0435\u0431", ""}, // Cyrillic
		{"webb", ""},
		{"sdk_minimal", ""},
	}
	for _, test := range tests {
		got, ok := ShippedVariant(Name{test.name})
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%q: got %q, %v; want %q", test.name, got, ok, test.want)
		}
	}
}

func TestIsDesktop(t *testing.T) {
	for _, name := range []string{"desktop", "Desktop", "DESKTOP", "de\u017f\u212atop", "\uff24esktop"} {
		if !IsDesktop(Name{name}) {
			t.Errorf("%q is not recognised", name)
		}
	}
	for _, name := range []string{"desktop2", "desk-top", "web"} {
		if IsDesktop(Name{name}) {
			t.Errorf("%q is taken for desktop", name)
		}
	}
}

func TestCheckTarget(t *testing.T) {
	for name, want := range map[string]string{
		"web":     `profile "web" is shipped and cannot be a custom profile target; omit --from-default-profile to use it`,
		"Web":     `profile "Web" differs only in case from the shipped profile "web" and cannot be a custom profile target`,
		"Desktop": `profile "Desktop" is managed exclusively by the Electron application`,
		"rescue":  "",
		"default": "",
	} {
		got := ""
		if err := CheckTarget(Name{name}); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func BenchmarkShippedVariant(b *testing.B) {
	for b.Loop() {
		ShippedVariant(Name{"My Profile"})
	}
}
