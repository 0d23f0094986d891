package check

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
)

func TestLostKeys(t *testing.T) {
	for name, c := range map[string]struct {
		old, now string
		want     []string
	}{
		"the same":            {"{a: 1}", "{a: 1}", nil},
		"another value":       {"{a: 1}", "{a: 2, b: 3}", nil},
		"one":                 {"{a: 1, b: 2}", "{b: 2}", []string{"a"}},
		"below":               {"{env: {KEY: 1, DIR: 2}}", "{env: {CLI: 3}}", []string{"env.KEY", "env.DIR"}},
		"a whole mapping":     {"{env: {KEY: 1, DIR: 2}, x: 1}", "{x: 1}", []string{"env"}},
		"no mapping any more": {"{env: {KEY: 1, DIR: 2}}", "{env: 1}", []string{"env.KEY", "env.DIR"}},
		"an expression":       {"{a: 1}", "!!js x", []string{"a"}},
		"null":                {"{a: {b: 1}}", "null", []string{"a"}},
		"an emptied list":     {"{a: [{b: 1}, c]}", "{a: []}", []string{"a.0", "a.1"}},
		"a shorter list":      {"{a: [x, y, z]}", "{a: [z, x]}", []string{"a.1"}},
		"one of two the same": {"[x, x, 1]", "[1, x]", []string{"1"}},
		"other items":         {"{a: [x, y]}", "{a: [z, x, w]}", nil},
		"no list any more":    {"{a: [x, y]}", "{a: x}", nil},
		"a text is no number": {"[1, '1']", "[1]", []string{"1"}},
		"nothing before":      {"null", "{a: 1}", nil},
		"keys with dots":      {"{a: {'b.c': 1}}", "{a: {}}", []string{`a."b.c"`}},
	} {
		old, err1 := compose.ParseValue(compose.Source{}, []byte(c.old))
		now, err2 := compose.ParseValue(compose.Source{}, []byte(c.now))
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		var got []string
		for _, path := range LostKeys(old, now) {
			got = append(got, compose.PathText(path))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
