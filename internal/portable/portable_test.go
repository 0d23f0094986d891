package portable

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

func TestFold(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{"package.json", "Package.JSON", true},
		{"package.json", "package.j\u017fon", true}, // long s
		{"kelvin", "\u212aelvin", true},
		{"stra\u00dfe", "STRASSE", true},
		{"caf\u00e9", "cafe\u0301", true},
		{"I", "\u0131", true},
		{"i", "\u0130", true},
		{"ab", "a\u200db", true},
		{"\u2460", "1", false}, // only compatible
		{"a\uff0fb", "a/b", false},
		{"a", "b", false},
		{"a.", "a", false},
	} {
		if got := Fold(tt.a) == Fold(tt.b); got != tt.same {
			t.Errorf("%q and %q are one: %v", tt.a, tt.b, got)
		}
	}
}

func TestUnfit(t *testing.T) {
	want := map[string]string{
		"a": "", "A b.c": "", "é": "", "🎉": "", "com": "", "com10": "", "console": "", ".env": "", "...a": "", "nul-1": "",
		"a\xff": "it is not UTF-8", "a:b": "Windows takes no ':' in a name", `a\b`: `Windows takes no '\\' in a name`,
		"a\x1bb": "it holds the control character U+001B", "a\u2028": "not every system takes the character U+2028", "a\ue000": "not every system takes the character U+E000",
		"a.": "Windows drops the dot at its end", "...": "Windows drops the dot at its end", "a ": "Windows drops the space at its end",
		"\u200b": "it holds nothing that can be seen",
		"con":    "CON is a device on Windows", "Nul.txt": "NUL is a device on Windows", "clock$": "CLOCK$ is a device on Windows", "COM¹.a": "COM1 is a device on Windows",
		"lpt0": "LPT0 is a device on Windows", "aux  .b": "AUX is a device on Windows", "conin$": "CONIN$ is a device on Windows",
	}
	got := map[string]string{}
	for name := range want {
		got[name] = Unfit(name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"a", "\u017f", "e\u0301", "\u0130\u0307", "a\u200d\u0301"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !utf8.ValidString(name) {
			return
		}
		folded := Fold(name)
		for _, same := range []string{folded, strings.ToLower(name), norm.NFD.String(name), norm.NFC.String(name)} {
			if got := Fold(same); got != folded {
				t.Errorf("%q folds to %q, and %q, which some system takes for it, to %q", name, folded, same, got)
			}
		}
	})
}
