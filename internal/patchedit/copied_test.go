package patchedit

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCopiedKeys(t *testing.T) {
	keys := [][]string{{"host"}, {"a.b", "c"}}
	const note = `# copied from the layers below: host, "a.b".c`
	tests := []struct{ name, text, at, want string }{
		{"a block", "- id: a\n  config: # c\n    # about host\n    host: x\n", "0 config", "- id: a\n  config: # c\n    " + note + "\n    # about host\n    host: x\n"},
		{"a block with properties", "- config: !!map\n    &x\n    host: x\n", "0 config", "- config: !!map\n    &x\n    " + note + "\n    host: x\n"},
		{"Windows", "- config:\r\n    host: x\r\n", "0 config", "- config:\r\n    " + note + "\r\n    host: x\r\n"},
		{"behind a dash", "-   id: a\n    b: 1\n", "0", "- " + note + "\n    id: a\n    b: 1\n"},
		{"below a dash", "-\n  id: a\n", "0", "-\n  " + note + "\n  id: a\n"},
		{"brackets", "- config: {host: x}\n", "0 config", "- config: { " + note + "\n  host: x}\n"},
		{"lines in brackets", "- config: {\n    host: x\n  }\n", "0 config", "- config: {\n  " + note + "\n    host: x\n  }\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := SetCopiedKeys(testSource, []byte(test.text), at(test.at), keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(keys, CopiedKeys(got, at(test.at))); diff != "" {
				t.Errorf("read back: %s", diff)
			}
			again, err := SetCopiedKeys(testSource, got, at(test.at), keys)
			if diff := cmp.Diff(string(got), string(again)); diff != "" || err != nil {
				t.Errorf("the second time: %v\n%s", err, diff)
			}
			other, err := SetCopiedKeys(testSource, got, at(test.at), [][]string{{"z"}})
			if want := strings.Replace(test.want, note, notePrefix+"z", 1); string(other) != want || err != nil {
				t.Errorf("other keys: %v\n%s", err, cmp.Diff(want, string(other)))
			}
			none, err := SetCopiedKeys(testSource, other, at(test.at), nil)
			if diff := cmp.Diff(test.text, string(none)); diff != "" || err != nil {
				t.Errorf("without keys: %v\n%s", err, diff)
			}
		})
	}
}

func TestNoCopiedKeys(t *testing.T) {
	for _, text := range []string{
		"- config:\n    a: 1 # copied from the layers below: x\n",
		"- config:\n    a: 1\n    # copied from the layers below: x\n",
		"- config: # about it\n    # copied from elsewhere: x\n    a: 1\n",
		"- config:\n    # copied from the layers below: x, , y\n    a: 1\n",
		"- config: 1\n",
		"- a: [\n",
	} {
		if got := CopiedKeys([]byte(text), at("0 config")); got != nil {
			t.Errorf("%q: %q", text, got)
		}
		if got, err := SetCopiedKeys(testSource, []byte(text), at("0 nothing"), nil); err == nil && string(got) != text {
			t.Errorf("%q: became %q", text, got)
		}
	}
	_, err := SetCopiedKeys(testSource, []byte("- config: 1\n"), at("0 config"), [][]string{{"a"}})
	if refused, ok := errors.AsType[*UneditableError](err); !ok || refused.Reason != "config of the patch is no mapping" {
		t.Errorf("a note in a number: %v", err)
	}
}

func TestNoteGoesWithItsMapping(t *testing.T) {
	text := "- config:\n    # copied from the layers below: a\n    # about a\n    a: 1\n"
	got, err := Set(testSource, []byte(text), at("0 config"), 1.0)
	if want := "- config: 1\n    # about a\n"; string(got) != want || err != nil {
		t.Errorf("%v\n%s", err, cmp.Diff(want, string(got)))
	}
}

func TestKeysReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SliceOfN(rapid.String(), 1, 3), 1, 4).Draw(t, "keys")
		text := formatKeys(keys)
		if strings.ContainsAny(text, "\r\n\u0085\u2028\u2029") {
			t.Fatalf("%q takes more than a line", text)
		}
		got, ok := parseKeys(text)
		if !ok || !slices.EqualFunc(keys, got, slices.Equal) {
			t.Fatalf("%q became %s, which reads as %q", keys, text, got)
		}
	})
}

func FuzzParseKeys(f *testing.F) {
	for _, text := range []string{"", "a", `a."b.c", d`, `"`, `"\u00zz"`, "a..b", "a, ", `"a"b`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		keys, ok := parseKeys(text)
		if !ok {
			return
		}
		again, ok := parseKeys(formatKeys(keys))
		if !ok || !slices.EqualFunc(keys, again, slices.Equal) {
			t.Errorf("%q is %q, and then %q", text, keys, again)
		}
	})
}

func TestModeline(t *testing.T) {
	const line = "# yaml-language-server: $schema=./s.json"
	tests := []struct{ name, text, want string }{
		{"nothing", "", line + "\n"},
		{"patches", "- a: 1\n", line + "\n- a: 1\n"},
		{"Windows", "\ufeff# a\r\n[]\r\n", "\ufeff" + line + "\r\n# a\r\n[]\r\n"},
		{"a directive", "%YAML 1.2\n---\n- a: 1\n", line + "\n%YAML 1.2\n---\n- a: 1\n"},
		{"one is there", "# a\n\n---\n#  x\n\t# yaml-language-server: $schema=old  \n- a: 1\n", "# a\n\n---\n#  x\n\t" + line + "  \n- a: 1\n"},
		{"one is there without a line break", "# yaml-language-server: $schema=old", line},
		{"one is there below", "- a: 1\n# yaml-language-server: $schema=old\n", line + "\n- a: 1\n# yaml-language-server: $schema=old\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := Modeline([]byte(test.text), "./s.json")
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(string(got), string(Modeline(got, "./s.json"))); diff != "" {
				t.Errorf("the second time: %s", diff)
			}
		})
	}
}
