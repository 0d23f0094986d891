package ui

import (
	"bytes"
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

func pair() (u *UI, out, errs *bytes.Buffer) {
	out, errs = &bytes.Buffer{}, &bytes.Buffer{}
	return New(out, errs, func(string) string { return "" }), out, errs
}

func TestFail(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"plain":    {fmt.Errorf("dsh: doing: cause"), "dsh: doing: cause\n"},
		"hint":     {fault.WithHint(fmt.Errorf("x"), "dsh y"), "dsh: x\ndsh: hint: dsh y\n"},
		"lines":    {fmt.Errorf("one\n\ttwo"), "dsh: one\n\ttwo\n"},
		"controls": {fmt.Errorf("a\x1b[2Jb\rc"), "dsh: a\\u001b[2Jb\\u000dc\n"},
	} {
		u, out, errs := pair()
		u.Fail(c.err)
		if diff := cmp.Diff(c.want, errs.String()); diff != "" || out.Len() != 0 {
			t.Errorf("%s: %s%s", name, out, diff)
		}
	}
}

// TestClean: nothing that a package says moves the cursor, turns the direction of
// writing, breaks a line or hides.
func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                        "plain",
		"a\tb\nc":                      "a\tb\nc",
		"日本 é \u200d\u200c �":          "日本 é \u200d\u200c �",
		"a\x1b[2K\rb\x07\x00\x7f":      `a\u001b[2K\u000db\u0007\u0000\u007f`,
		"a\u009b2Jb":                   `a\u009b2Jb`,
		"a\x9b2Jb":                     `a\x9b2Jb`,
		"rm \u202eko\u202c":            `rm \u202eko\u202c`,
		"\u2066a\u2067b\u2068\u2069":   `\u2066a\u2067b\u2068\u2069`,
		"\u202aa\u202bb\u202d":         `\u202aa\u202bb\u202d`,
		"\u200ea\u200fb\u061c":         `\u200ea\u200fb\u061c`,
		"a\u2028b\u2029c":              `a\u2028b\u2029c`,
		"a\u200bb\ufeffc\u00add\u2060": `a\u200bb\ufeffc\u00add\u2060`,
		"":                             "",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q is shown as %q, not %q", text, got, want)
		}
	}
}

func TestJSON(t *testing.T) {
	u, out, errs := pair()
	u.JSON = true
	u.Warn("careful")
	u.Say("news")
	u.Fail(fault.WithHint(fault.Errorf(fault.Package, "a <b>"), "dsh y"))
	want := `{
  "error": {
    "class": "package",
    "hint": "dsh y",
    "message": "a <b>"
  },
  "ok": false,
  "warnings": [
    "careful"
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" || errs.Len() != 0 {
		t.Errorf("%s%s", errs, diff)
	}
	u, out, _ = pair()
	u.JSON = true
	if err := u.Result([]string{"x"}, nil); err != nil {
		t.Fatal(err)
	}
	want = "{\n  \"ok\": true,\n  \"result\": [\n    \"x\"\n  ],\n  \"warnings\": []\n}\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestText(t *testing.T) {
	u, out, errs := pair()
	u.Warn("careful")
	u.Notice("[x] patch: skipped")
	if err := u.Result(nil, func(w io.Writer) { fmt.Fprintln(w, "done") }); err != nil {
		t.Fatal(err)
	}
	u.FailUsage("error: no", []string{"  more"})
	if out.String() != "done\n" || errs.String() != "dsh: warning: careful\ndsh: [x] patch: skipped\nerror: no\n  more\n" {
		t.Errorf("out %q, err %q", out, errs)
	}
	p := u.Progress(func() string { return "busy" })
	p.Stop()
	p.Stop()
	if errs.Len() > 200 {
		t.Error("progress was written to what is no terminal")
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 bytes", 999: "999 bytes", 1200: "1 kB", 3_210_000: "3.2 MB", 4e9: "4.0 GB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
