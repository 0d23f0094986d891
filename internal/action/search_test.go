package action

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/install"
)

// TestJoined: what is one plugin is one result, and what only has its name is not.
func TestJoined(t *testing.T) {
	found := func(source, pkg, repository string) Found {
		r, err := install.ParseRepository(repository)
		if err != nil {
			r = install.Repository{}
		}
		return Found{Name: source + "'s " + pkg, Source: source, Spec: pkg, key: packageKey(pkg), Repository: r.String(), repository: r, registry: source == registrySource}
	}
	none := found("a", "", "")
	none.key = ""
	for _, tt := range []struct {
		what  string
		found []Found
		want  []string // name, also, notes
	}{
		{"one of each", []Found{found("registry", "x", "o/x"), found("a", "x", "O/X"), found("b", "x", "")}, []string{"a's x|registry,b|"}},
		{"no repository anywhere", []Found{found("b", "x", ""), found("registry", "x", ""), found("a", "x", "")}, []string{"registry's x|b,a|"}},
		{"no registry", []Found{found("a", "x", ""), found("b", "x", "")}, []string{"a's x|b|"}},
		{"a name that was taken", []Found{found("registry", "x", "m/x"), found("a", "x", "o/x"), found("b", "x", "")}, []string{
			"a's x||the package that the registry has says that it is of m/x", "registry's x|b|a says that this package is of o/x",
		}},
		{"a stub", []Found{found("registry", "x", ""), found("a", "x", "o/x")}, []string{
			"a's x||the package that the registry has does not say of which repository it is", "registry's x||a says that this package is of o/x",
		}},
		{"two of one name in a catalogue", []Found{found("a", "x", "o/x"), found("a", "x", "o/y")}, []string{
			"a's x||a says that this package is of o/y", "a's x||a says that this package is of o/x",
		}},
		{"twice in a catalogue", []Found{found("a", "x", "o/x"), found("a", "x", "o/x")}, []string{"a's x||"}},
		{"others", []Found{found("a", "x", "o/x"), found("a", "y", "o/x"), none, none}, []string{"a's x||", "a's y||", "a's ||", "a's ||"}},
	} {
		var got []string
		for _, f := range joined(tt.found) {
			got = append(got, f.Name+"|"+strings.Join(f.Also, ",")+"|"+strings.Join(f.Notes, ","))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.what, diff)
		}
	}
}
