package check

import (
	"fmt"
	"strings"
	"testing"

	"dsh/internal/compose"
)

// TestLargeInput finds what it should in inputs for which anything that looks at
// all of a text, or at all rows, for each patch takes minutes.
func TestLargeInput(t *testing.T) {
	const rows = 4_000
	lines := func(line string) string {
		var b strings.Builder
		for i := range rows {
			b.WriteString(strings.ReplaceAll(line, "%d", fmt.Sprint(i)))
		}
		return b.String()
	}
	base := "- insert:\n" + lines("    - {id: r%d, name: p, config: {a: 1, b: 2}}\n")
	for name, test := range map[string]struct {
		kind    compose.Kind
		patches string
		code    Code
	}{
		"overrides of a project":    {compose.ProjectLayer, lines("- {id: r%d, config: {a: 1}}\n"), KeysDropped},
		"copied keys":               {compose.ProfileLayer, lines("- id: r%d\n  config:\n    # copied from the layers below: b\n    a: 2\n    b: 3\n"), CopiedKeyChanged},
		"rows that are not there":   {compose.ProfileLayer, lines("- {id: n%d, disabled: true}\n"), TargetMissing},
		"keys that nobody knows":    {compose.ProfileLayer, lines("- {id: r%d, what: true}\n"), UnknownKey},
		"rows of one insert":        {compose.ProfileLayer, "- insert:\n" + lines("    - {id: r%d, name: p}\n"), DuplicateID},
		"many keys of one override": {compose.ProfileLayer, "- id: r1\n" + lines("  k%d: !!js '('\n"), ExpressionSyntax},
	} {
		t.Run(name, func(t *testing.T) {
			layers := []compose.Layer{{Label: "base", Kind: compose.BundleLayer}, {Label: "own", Kind: test.kind}}
			for i, text := range []string{base, test.patches} {
				var err error
				layers[i].Patches, err = compose.ParsePatches(compose.Source{File: layers[i].Label, Dir: "/p", Kind: layers[i].Kind}, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
			}
			rules := func(string) *compose.PathRule { return nil }
			found := map[Code]int{}
			last := 0
			for _, f := range Tree(compose.Apply(layers, rules), Options{Rules: rules}) {
				found[f.Code]++
				if f.Code == test.code {
					last = f.Line
				}
			}
			if found[test.code] != rows {
				t.Errorf("%d findings %s, want %d: %v", found[test.code], test.code, rows, found)
			}
			if last < rows {
				t.Errorf("the last finding is in line %d", last)
			}
		})
	}
}
