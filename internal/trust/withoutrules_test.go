package trust

import "testing"

func TestWithoutRules(t *testing.T) {
	tests := map[string]struct{ text, want, err string }{
		"none":           {"# mine\npackages: []\n", "# mine\npackages: []\n", ""},
		"empty":          {"", "", ""},
		"all of it":      {"allowBuilds:\n  a: true\n", "", ""},
		"between others": {"a: 1\nallowBuilds:\n  x: true\n  y: false\n# of b\nb: 2\r\n", "a: 1\nb: 2\r\n", ""},
		"several":        {"onlyBuiltDependencies:\n- a\npackages: [allowBuilds]\nallowBuilds: {a: true}\ndangerouslyAllowAllBuilds: true", "packages: [allowBuilds]\n", ""},
		"a value":        {"b: onlyBuiltDependencies\n", "b: onlyBuiltDependencies\n", ""},
		"flow":           {"{allowBuilds: {a: true}, b: 1}\n", "", "allowBuilds does not stand on lines of its own"},
		"an alias":       {"allowBuilds: &x\n  a: true\nb: *x\n", "", "allowBuilds does not stand on lines of its own"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := WithoutRules([]byte(test.text))
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Fatalf("the error is %v, want %q", err, test.err)
			}
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzWithoutRules(f *testing.F) {
	f.Add("allowBuilds:\n  a: true\nb: 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := WithoutRules([]byte(text))
		if err != nil {
			return
		}
		if rules, err := PnpmApprovals(got, nil); err != nil || len(rules) > 0 {
			t.Errorf("%q says %v, %v", got, rules, err)
		}
	})
}

func TestDenyBuilds(t *testing.T) {
	tests := map[string]struct{ text, want, err string }{
		"none":      {"a: 1\n", "a: 1\n", ""},
		"of others": {"allowBuilds:\n  b@git+x: true\n", "allowBuilds:\n  b@git+x: true\n", ""},
		"two": {
			"allowBuilds:\n  'a@git+x#1': true # mine\n  a: true\n  \"a@git+y#2\": true\n",
			"allowBuilds:\n  'a@git+x#1': false # mine\n  a: true\n  \"a@git+y#2\": false\n", "",
		},
		"said already": {"allowBuilds: {'a@git+x': false}\n", "allowBuilds: {'a@git+x': false}\n", ""},
		"an alias":     {"allowBuilds:\n  b: &y true\n  a@git+x: *y\n", "allowBuilds:\n  b: &y true\n  a@git+x: *y\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := DenyBuilds([]byte(test.text), "a@git+")
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Fatalf("the error is %v, want %q", err, test.err)
			}
			if string(got) != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
