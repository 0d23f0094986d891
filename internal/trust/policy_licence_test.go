package trust

import (
	"strings"
	"testing"
)

func TestDeclaredLicence(t *testing.T) {
	for text, want := range map[string]string{
		`{"license": "MIT"}`:                                        "MIT",
		`{"license": " MIT "}`:                                      "MIT",
		`{"licence": "MIT"}`:                                        "MIT",
		`{"license": {"type": "ISC", "url": "https://x"}}`:          "ISC",
		`{"license": {"name": "ISC"}}`:                              "ISC",
		`{"licenses": [{"type": "MIT"}, {"type": "Apache-2.0"}]}`:   "(MIT OR Apache-2.0)",
		`{"licenses": ["MIT"]}`:                                     "MIT",
		`{"license": ["MIT", "ISC"]}`:                               "(MIT OR ISC)",
		`{"licenses": "MIT"}`:                                       "MIT",
		`{"license": "", "licenses": [{"type": "MIT"}]}`:            "MIT",
		`{"license": "GPL-3.0-only", "licenses": [{"type":"MIT"}]}`: "GPL-3.0-only",
		`{"license": "SEE LICENSE IN LICENSE.md"}`:                  "SEE LICENSE IN LICENSE.md",
		`{"license": [["MIT"], null, 3, {}]}`:                       "",
		`{"license": 3}`:                                            "",
		`{"license": null}`:                                         "",
		`{}`:                                                        "",
		`[]`:                                                        "",
		`no json`:                                                   "",
	} {
		if got := DeclaredLicence([]byte(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestCheckLicence(t *testing.T) {
	p := policy(t, "licences: [MIT, apache-2.0, LGPL-2.1-only, GPL-3.0-only WITH GCC-exception-3.1, 'Public Domain', EPL-1.0+]\nexempt: {licences: [odd@1.0.0]}")
	const no, noExpression = "its licence is ", "which is no SPDX expression"
	for text, want := range map[string]string{
		"MIT": "", "mit": "", "(MIT)": "", "((MIT))": "", "Apache-2.0": "",
		"MIT OR GPL-3.0-only": "", "GPL-3.0-only OR MIT": "", "MIT or GPL-3.0-only": "",
		"MIT AND Apache-2.0":                     "",
		"MIT AND GPL-3.0-only":                   no,
		"GPL-3.0-only AND MIT OR MIT":            "", // AND binds more tightly
		"MIT OR MIT AND GPL-3.0-only":            "",
		"(MIT OR GPL-3.0-only) AND GPL-3.0-only": no,
		"(MIT OR GPL-3.0-only) AND Apache-2.0":   "",
		"GPL-3.0-only":                           no,
		"GPL-3.0-only WITH GCC-exception-3.1":    "",
		"GPL-3.0-only WITH other-exception":      no,
		"GPL-3.0 WITH GCC-exception-3.1":         "",
		"MIT WITH some-exception":                "",
		"Apache-2.0+":                            "",
		"LGPL-2.1":                               "",
		"LGPL-2.1+":                              "",
		"LGPL-2.1-or-later":                      "",
		"LGPL-2.0-or-later":                      no,
		"EPL-1.0":                                no,
		"EPL-1.0+":                               "",
		"Public Domain":                          "",
		"UNLICENSED":                             "which allows nobody to use it",
		"":                                       "it names no licence",
		"SEE LICENSE IN LICENSE":                 noExpression,
		"MIT License":                            noExpression,
		"MIT/X11":                                noExpression,
		"MIT,ISC":                                noExpression,
		"(MIT":                                   noExpression,
		"MIT)":                                   noExpression,
		"()":                                     noExpression,
		"MIT AND":                                noExpression,
		"AND MIT":                                noExpression,
		"MIT OR OR MIT":                          noExpression,
		"MIT WITH":                               noExpression,
		"MIT WITH AND":                           noExpression,
		"MIT WITH x WITH y":                      noExpression,
		"MIT + OR ISC":                           noExpression,
		"MIT++":                                  noExpression,
		"+":                                      noExpression,
		"MIT And Apache-2.0":                     noExpression,
		"(MIT OR ISC) WITH x":                    noExpression,
		"LicenseRef-own":                         no,
		"DocumentRef-spdx-1.0:LicenseRef-own":    no,
		"LicenseRef-own:LicenseRef-own":          noExpression,
		"MIT WITH DocumentRef-a:LicenseRef-b":    noExpression,
		"LicenseRef-own OR MIT":                  "",
		strings.Repeat("(", 200) + strings.Repeat(")", 200): noExpression,
		strings.Repeat("MIT OR ", 1000) + "MIT":             noExpression,
	} {
		got := p.CheckLicence("a", "1.0.0", []byte(`{"license": "`+text+`"}`))
		if (got == nil) != (want == "") || got != nil && (!strings.Contains(got.Why, want) || len(got.Why) > 200) {
			t.Errorf("%.60q: %v", text, got)
		}
	}
	if got := p.CheckLicence("odd", "1.0.0", nil); got != nil {
		t.Errorf("exempt: %v", got)
	}
	if got := p.CheckLicence("odd", "1.0.1", nil); got == nil {
		t.Error("another version is exempt")
	}
	if got := policy(t, "licences: [UNLICENSED]").CheckLicence("a", "1.0.0", []byte(`{"license": "UNLICENSED"}`)); got != nil {
		t.Errorf("listed: %v", got)
	}
	if got := policy(t, "scopes: ['@a']").CheckLicence("a", "1.0.0", nil); got != nil {
		t.Errorf("without the rule: %v", got)
	}
}

func TestLicenceString(t *testing.T) {
	for text, want := range map[string]string{
		"MIT": "MIT", "( MIT  or ISC )": "MIT OR ISC", "(MIT OR ISC) AND X+": "(MIT OR ISC) AND X+", "A AND (B AND C)": "A AND B AND C",
		"A with b OR C": "A WITH b OR C",
	} {
		l, err := ParseLicence(text)
		if err != nil || l.text(or) != want {
			t.Errorf("%q: %v, %v", text, l, err)
		}
	}
}

func FuzzParseLicence(f *testing.F) {
	for _, text := range []string{"MIT", "(MIT OR ISC) AND X+", "A WITH b", "DocumentRef-a:LicenseRef-b", "((", "a or b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLicence(text)
		if err != nil {
			return
		}
		// What is read prints to what reads the same.
		again, err := ParseLicence(l.text(or))
		if err != nil || again.text(or) != l.text(or) {
			t.Errorf("%q prints as %q, which reads as %v, %v", text, l.text(or), again, err)
		}
		if l.metBy(func(string) bool { return false }) || !l.metBy(func(string) bool { return true }) {
			t.Errorf("%q is met by nothing, or not by everything", text)
		}
	})
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("scopes: ['@a']\nlimits: {unpacked: 3MiB}\nexempt: {hosts: [a]}")
	f.Add("minimumAge: 3d\nlicences: &a [MIT]\nhosts: *a")
	f.Add("? ? a\n: - b")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolicy("f", []byte(text))
		if (p == nil) == (err == nil) {
			t.Errorf("%v, %v", p, err)
		}
		if err == nil {
			p.Check(Subject{Name: "@a/b", Source: FromGit, Address: text, Direct: true})
		}
	})
}

// text writes the expression with the parentheses that it needs.
func (l *Licence) text(outer licenceOp) string {
	switch l.op {
	case and:
		return l.left.text(and) + " AND " + l.right.text(and)
	case or:
		text := l.left.text(or) + " OR " + l.right.text(or)
		if outer == and {
			return "(" + text + ")"
		}
		return text
	}
	text := l.id
	if l.later {
		text += "+"
	}
	if l.exception != "" {
		text += " WITH " + l.exception
	}
	return text
}
