package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// TestSettingValue reads values as they are typed.
func TestSettingValue(t *testing.T) {
	row := &compose.Map{}
	row.Set("id", "a")
	src := compose.Source{Dir: "/p", Kind: compose.ProjectLayer}
	for _, c := range []struct {
		key, text string
		want      compose.Value // of what is taken
		hint      string        // of what is refused
	}{
		{"", "5", 5.0, ""}, {"", "null", nil, ""}, {"", "~", nil, ""}, {"", `""`, "", ""}, {"", "'#fff'", "#fff", ""},
		{"", "a#b", "a#b", ""}, {"", "#", nil, `SET a.k '"#"'`}, {"", "#fff", nil, `SET a.k '"#fff"'`}, {"", " # x", nil, `SET a.k '" # x"'`},
		{"", "", nil, `for an empty text: SET a.k '""'`}, {"", " \t\n", nil, `for an empty text: SET a.k '""'`},
		{"", "# a\n# b\n", nil, `SET a.k '"# a\n# b\n"'`},
		{"", "issue #12", nil, `SET a.k '"issue #12"'`}, {"", "issue\t#12", nil, `SET a.k '"issue\t#12"'`}, {"", `"issue #12"`, "issue #12", ""},
		{"", "!!js a #b", nil, `SET a.k '!!js "a #b"'`}, {"", "!!js 'a #b'", compose.Expr{Text: "a #b"}, ""}, {"", "!path x #b", nil, `SET a.k '!path "x #b"'`},
		{"", "5 # five", 5.0, ""}, {"", "|\n  a #b\n", "a #b\n", ""},
		{"disabled", "true", true, ""}, {"disabled", "false", false, ""}, {"disabled", "!!js x", compose.Expr{Text: "x"}, ""},
		{"disabled", "no", nil, "SET a:disabled false"}, {"disabled", "off", nil, "SET a:disabled false"}, {"disabled", `"false"`, nil, "SET a:disabled false"},
		{"disabled", "0", nil, "SET a:disabled false"}, {"disabled", `""`, nil, "SET a:disabled false"}, {"disabled", "null", nil, "SET a:disabled false"},
		{"disabled", "[]", nil, "SET a:disabled false"}, {"disabled", "yes", nil, "SET a:disabled false"}, {"inject", "no", "no", ""},
	} {
		s := setting{
			target: compose.Target{ID: "a", Row: row, RowKey: c.key},
			write:  func(place, value string) string { return fault.ShellWords("SET", place, value) },
		}
		if c.key == "" {
			s.target.Path = []string{"k"}
		}
		v, err := s.value(src, c.text)
		if diff := cmp.Diff(c.want, v); diff != "" {
			t.Errorf("%s %q: %s", c.key, c.text, diff)
		}
		if (c.hint == "") != (err == nil) || err != nil && (!strings.HasSuffix(fault.Hint(err), c.hint) || fault.ClassOf(err) != fault.Composition) {
			t.Errorf("%s %q: got %v, hint %q, want %q", c.key, c.text, err, fault.Hint(err), c.hint)
		}
		if c.hint == "" || c.key != "" {
			continue
		}
		// What is hinted at is taken.
		words := strings.SplitN(fault.Hint(err), "SET a.k ", 2)
		typed := strings.TrimSuffix(strings.TrimPrefix(words[1], "'"), "'")
		if v, err := s.value(src, typed); err != nil || v == nil {
			t.Errorf("%q, as hinted: %v, %v", typed, v, err)
		}
	}
}
