package workspace

import (
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "# nothing\n": "", "a: 1\n": "", "- a\n": "line 1: it must hold a mapping", "a: [\n": "line ", "\n\njust text": "line 3: it must hold a mapping",
	} {
		root, err := Root([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || err == nil && root == nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEdits(t *testing.T) {
	text := []byte("# mine\r\nä: 1\r\nb:   'old' # why\r\n")
	root, err := Root(text)
	if err != nil {
		t.Fatal(err)
	}
	if Value(root, "c") != nil || Value(root, "b").Value != "old" {
		t.Errorf("%v", root)
	}
	if got := string(Append([]byte("a: 1"), "b: 2")); got != "a: 1\nb: 2\n" {
		t.Errorf("%q", got)
	}
	if got := string(Append([]byte("a: 1\r\n"), "b: 2")); got != "a: 1\r\nb: 2\r\n" {
		t.Errorf("%q", got)
	}
	edited := ReplaceScalar(text, Value(root, "b"), "new")
	if want := "# mine\r\nä: 1\r\nb:   new # why\r\n"; string(edited) != want {
		t.Errorf("%q", edited)
	}
	for _, c := range []struct {
		after string
		want  bool
	}{
		{string(edited), true}, {string(text), false}, {"b: new\n", false}, {"ä: 1\nb: new\nc: 1\n", false}, {"ä: 1\nb: [\n", false},
	} {
		if SaysInstead(text, []byte(c.after), "b", "new") != c.want {
			t.Errorf("%q: %v", c.after, !c.want)
		}
	}
}
