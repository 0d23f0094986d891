package portable

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold maps all names that some file system takes for one to one name: under any
// Unicode case folding, simple, full or Turkic, however letters with marks are
// encoded, and with invisible characters left out. What Windows drops at the end
// of a name stays; see [Unfit].
func Fold(name string) string {
	if isLowerASCII(name) {
		return name
	}
	// Turkic folding pairs I with dotless i and dotted I with i. Giving all four
	// one image makes every name equal that either folding holds equal.
	name = strings.NewReplacer("\u0130", "i", "\u0131", "i").Replace(norm.NFC.String(name))
	name = norm.NFC.String(cases.Fold().String(name))
	name = strings.ReplaceAll(name, "i\u0307", "i")
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return -1
		}
		return r
	}, name))
}

func isLowerASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || 'A' <= c && c <= 'Z' {
			return false
		}
	}
	return true
}

// isIgnorable is true of the invisible characters that some file systems leave
// out when they compare names.
func isIgnorable(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Unfit says why some system cannot hold a file of this name as it is, "" if all
// can. The name is not empty and no path.
func Unfit(name string) string {
	if !utf8.ValidString(name) {
		return "it is not UTF-8"
	}
	for _, r := range name {
		switch {
		case strings.ContainsRune(`<>:"|?*\`, r):
			return fmt.Sprintf("Windows takes no %q in a name", r)
		case unicode.IsControl(r):
			return fmt.Sprintf("it holds the control character %U", r)
		case !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs, unicode.Cf):
			return fmt.Sprintf("not every system takes the character %U", r)
		}
	}
	last, _ := utf8.DecodeLastRuneInString(name)
	switch {
	case last == '.':
		return "Windows drops the dot at its end"
	case unicode.IsSpace(last):
		return "Windows drops the space at its end"
	case strings.TrimSpace(Fold(name)) == "":
		return "it holds nothing that can be seen"
	}
	if device := reserved.FindString(norm.NFKC.String(Fold(name))); device != "" {
		return fmt.Sprintf("%s is a device on Windows", strings.ToUpper(strings.TrimRight(device, " .")))
	}
	return ""
}

// reserved are the names that Windows keeps for devices, whatever follows a dot
// behind them, in a compatible spelling, which makes digits of superscripts. See https://learn.microsoft.com/windows/win32/fileio/naming-a-file.
var reserved = regexp.MustCompile(`^(con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$|clock\$) *(\.|$)`)
