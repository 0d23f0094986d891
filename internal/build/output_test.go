package build

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestLogIsBounded(t *testing.T) {
	var log bytes.Buffer
	q := request(t, `echo first; head -c 20000000 /dev/zero | tr '\0' x; echo; echo last`)
	q.Log = &log
	r, err := Run(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if len(text) > MaxLog+100 || !strings.Contains(text[:100], "first\n") || !strings.HasSuffix(text, "x\nlast\n") || !strings.Contains(text, " bytes left out …\n") {
		t.Errorf("%d bytes, from %q to %q", len(text), text[:100], text[len(text)-100:])
	}
	if len(r.Output) > tailBytes || !strings.HasSuffix(r.Output, "\nlast") {
		t.Errorf("%d bytes of output", len(r.Output))
	}
}

func TestOutput(t *testing.T) {
	for _, size := range []int{0, 1, half - 1, half, half + 1, 2*half - 1, 2 * half, 2*half + 1, 3*half + 7} {
		for _, piece := range []int{1 << 20, half + 3, 777_777, 5 * half} {
			all := make([]byte, size)
			for i := range all {
				all[i] = byte('a' + i*7%26)
			}
			var log bytes.Buffer
			o := newOutput(&log)
			for rest := all; len(rest) > 0; {
				n, err := o.Write(rest[:min(piece, len(rest))])
				if err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if err := o.close(); err != nil {
				t.Fatal(err)
			}
			want := string(all)
			if size > 2*half {
				want = string(all[:half]) + fmt.Sprintf("\n… %d bytes left out …\n", size-2*half) + string(all[size-half:])
			}
			if log.String() != want {
				t.Errorf("%d bytes in pieces of %d: a log of %d bytes, not %d", size, piece, log.Len(), len(want))
			}
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestLogFails(t *testing.T) {
	q := request(t, "echo x > made")
	q.Log = fullDisk{}
	if r, err := Run(t.Context(), q); err == nil || !strings.Contains(err.Error(), "writing the log: disk full") || r == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTail(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "",
		"a\nb\n":                           "a\nb",
		"a\r\nb\r\n":                       "a\nb",
		"10 %\r50 %\r100 %\ndone":          "100 %\ndone",
		"\x1b[31mred\x1b[0m":               "red",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\": "x",
		"\x1b[2J\x1b[1;1H\x07gone\x00":     "gone",
		"a\u202eb\u200bc\x9b31md":          "abc31md",
		"日本 �\xff\tx":                      "日本 �\tx",
		"\x1b":                             "",
		"\x1b[12":                          "",
		strings.Repeat("line\n", 100):      strings.TrimSpace(strings.Repeat("line\n", tailLines)),
	} {
		o := newOutput(nil)
		if _, err := o.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := o.tail(); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}

func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"node-gyp rebuild || exit 0": "node-gyp rebuild || exit 0",
		`echo "a\n" 'b'`:             `echo "a\n" 'b'`,
		"日本 é":                       "日本 é",
		"a\nb":                       `"a\nb"`,
		"safe\x1b[2K\revil":          `"safe\x1b[2K\revil"`,
		"a\u202eb":                   `"a\u202eb"`,
		"a\u200bb":                   `"a\u200bb"`,
		"a\xffb":                     `"a\xffb"`,
		"a\u00a0b":                   `"a\u00a0b"`,
		"":                           "",
	} {
		if got := Shown(text); got != want {
			t.Errorf("%q is shown as %s, not %s", text, got, want)
		}
	}
}

func FuzzShown(f *testing.F) {
	f.Add("a\x1b[0m\n\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		o := newOutput(nil)
		if _, err := o.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{Shown(text), strings.NewReplacer("\n", "", "\t", "").Replace(o.tail())} {
			if !utf8.ValidString(shown) || strings.ContainsFunc(shown, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	})
}
