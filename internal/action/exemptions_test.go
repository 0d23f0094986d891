package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseExemption(t *testing.T) {
	for _, test := range []struct {
		pkg, harness string
		want         Exemption
	}{
		{"a@1.0.0", "0.1.7", Exemption{"a", "1.0.0", "0.1.7"}},
		{"@s/a@1.0.0-rc.1", "0.2.0-rc.1", Exemption{"@s/a", "1.0.0-rc.1", "0.2.0-rc.1"}},
	} {
		got, err := ParseExemption(test.pkg, test.harness)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got)\n%s", test.pkg, err, diff)
		}
	}
	for _, bad := range [][2]string{
		{"", "0.1.7"}, {"a", "0.1.7"}, {"@s/a", "0.1.7"}, {"@1.0.0", "0.1.7"}, {"a@", "0.1.7"}, {"a@1", "0.1.7"}, {"a@^1.0.0", "0.1.7"},
		{"a@v1.0.0", "0.1.7"}, {"a@1.0.0+b", "0.1.7"}, {"a@latest", "0.1.7"}, {"../a@1.0.0", "0.1.7"}, {"a@1.0.0", ""}, {"a@1.0.0", " 0.1.7"}, {"a@1.0.0", "0.1"},
	} {
		if got, err := ParseExemption(bad[0], bad[1]); err == nil {
			t.Errorf("%q for %q: %+v", bad[0], bad[1], got)
		}
	}
}

// FuzzParseExemption: what is accepted is written as it was, and names nothing
// but a package and two versions.
func FuzzParseExemption(f *testing.F) {
	f.Add("a@1.0.0", "0.1.7")
	f.Add("@s/a@1.0.0-rc.1", "0.2.0")
	f.Add("@@1.0.0", "=0.1.7")
	f.Fuzz(func(t *testing.T, pkg, harness string) {
		e, err := ParseExemption(pkg, harness)
		if err != nil {
			return
		}
		if e.key() != pkg || e.Harness != harness || strings.ContainsAny(pkg+harness, " \n\"\\") {
			t.Errorf("%q for %q is %+v", pkg, harness, e)
		}
	})
}
