package npmrange

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type fixture struct {
	Range     string
	Valid     bool
	Versions  []string
	Satisfies []bool
	Max       *string
}

func fixtures(tb testing.TB) []fixture {
	tb.Helper()
	data, err := os.ReadFile("testdata/semver.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var out []fixture
	for line := range bytes.Lines(data) {
		var f fixture
		if err := json.Unmarshal(line, &f); err != nil {
			tb.Fatal(err)
		}
		out = append(out, f)
	}
	return out
}

func versions(tb testing.TB, texts ...string) []Version {
	tb.Helper()
	out := make([]Version, len(texts))
	for i, s := range texts {
		v, err := ParseVersion(s)
		if err != nil {
			tb.Fatal(err)
		}
		out[i] = v
	}
	return out
}

// The answers were recorded from node-semver.
func TestNodeSemver(t *testing.T) {
	all := fixtures(t)
	if len(all) != 3506 {
		t.Fatalf("%d cases, want 3506", len(all))
	}
	for _, f := range all {
		r, err := ParseRange(f.Range)
		if (err == nil) != f.Valid {
			t.Errorf("%q: valid is %v, want %v (%v)", f.Range, err == nil, f.Valid, err)
			continue
		}
		if !f.Valid {
			continue
		}
		vs := versions(t, f.Versions...)
		got := make([]bool, len(vs))
		for i, v := range vs {
			got[i] = r.Satisfies(v)
		}
		if diff := cmp.Diff(f.Satisfies, got); diff != "" {
			t.Errorf("%q with %q (-want +got):\n%s", f.Range, f.Versions, diff)
		}
		best, ok := r.Max(vs)
		if ok != (f.Max != nil) || ok && best != versions(t, *f.Max)[0] {
			t.Errorf("%q: max of %q is %v, %v", f.Range, f.Versions, best, ok)
		}
	}
}

func TestSatisfies(t *testing.T) {
	const (
		strict = 1 << iota
		loose
		prerelease
	)
	for _, tt := range []struct {
		r, v string
		want int // modes in which r admits v
	}{
		{"", "1.0.0", strict | loose | prerelease},
		{"||", "1.0.0", strict | loose | prerelease},
		{"1.x ||", "5.0.0", strict | loose | prerelease},
		{"^x", "1.2.3", strict | loose | prerelease},
		{">*", "1.0.0", 0},
		{"1.0.0 - x", "1.9.7", strict | loose | prerelease},
		{"^1.2.3-beta.2", "1.2.3-beta.4", strict | loose | prerelease},
		{"^1.2.3-beta.2", "1.2.4-beta.2", prerelease},
		{"<2.0.0-rc.1", "1.5.0-alpha", prerelease},
		{"^1.1.1-beta || *", "1.1.1-rc.1", prerelease},
		{"~0.0.0", "5.0.0", 0},
		{"~>= 1.2.3", "1.2.9", strict | loose | prerelease},
		{"01.02.03", "1.2.3", loose},
		{">=1, <2", "1.5.0", loose},
		{"1.2.3beta", "1.2.3-beta", loose},
		{"1.2.34.5", "1.2.3-4.5", loose},
		{"=>1.0.0", "2.0.0", 0},
		{"2.x", "2.0.0-beta", prerelease},
		{"2", "3.0.0-beta", 0},
		{"^2", "2.0.0-beta", prerelease},
		{"~2.1", "2.1.0-beta", prerelease},
		{"^2.0.0", "2.0.0-beta", 0},
		{">1", "2.0.0-beta", prerelease},
		{"<2", "2.0.0-beta", 0},
		{"<=2", "3.0.0-beta", 0},
		{"<=2", "2.9.0-beta", prerelease},
		{"*", "1.0.0-beta", prerelease},
		{">=0.0.0", "0.0.0-beta", 0},
		{"=0.0.0-1 ~>0.x", "0.0.0-1", strict | loose | prerelease},
		{"=0.0.0-1 ^v0.0.0", "0.0.0-1", strict | loose},
		{"=0.0.0-1 >=0.0.0", "0.0.0-1", strict | loose},
		{">=0.0.0", "0.0.1-beta", prerelease},
		{"1.0.0 - 2.0.0", "1.0.0-beta", prerelease},
		{"1.0.0 - 2.0.0", "2.0.0-beta", prerelease},
		{"1.0.0 - 2.0.0", "2.0.1-beta", 0},
		{"\t>=1.0.0\n <\u00a02.0.0", "1.5.0", strict | loose | prerelease},
		{"1.2.3+build", "1.2.3+other", strict | loose | prerelease},
	} {
		v := versions(t, tt.v)[0]
		got := 0
		if r, err := ParseRange(tt.r); err == nil {
			if r.Satisfies(v) {
				got |= strict
			}
			if r.SatisfiesPrerelease(v) {
				got |= prerelease
			}
		}
		if r, err := ParseRangeLoose(tt.r); err == nil && r.Satisfies(v) {
			got |= loose
		}
		if got != tt.want {
			t.Errorf("%q with %q: admitted in modes %03b, want %03b", tt.r, tt.v, got, tt.want)
		}
	}
}

func TestParseRangeErrors(t *testing.T) {
	for _, s := range []string{"x.1.2", "1.x.5", "*.1", "latest", "!=1.2.3", ">=9007199254740992.0.0", "^9007199254740991", "1.2.3 -2", "^", "~>", ">="} {
		for name, parse := range map[string]func(string) (Range, error){"strict": ParseRange, "loose": ParseRangeLoose} {
			if s == "1.2.3 -2" && name == "loose" {
				continue // "-2" is left out
			}
			if r, err := parse(s); err == nil {
				t.Errorf("%s: %q is read as a range: %+v", name, s, r)
			}
		}
	}
}

func TestLimit(t *testing.T) {
	for s, want := range map[string]string{
		"^1.2.3": "2.0.0", "~1.2": "1.3.0", "1.2.3": "1.2.3", "<=1.2.3 || ^0.3": "1.2.3", ">=1 <3": "3.0.0", "<2.0.0-rc.1": "2.0.0",
		"1.0.0 - 2.1": "2.2.0", "^1 <1.5.0": "1.5.0", "*": "", ">=1": "", "^1 || >=3": "", "": "", "^1 || *": "", ">*": "0.0.0",
	} {
		r, err := ParseRangeLoose(s)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if major, minor, patch, ok := r.Limit(); ok {
			got = fmt.Sprintf("%d.%d.%d", major, minor, patch)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
	// None of the recorded answers is above the limit.
	for _, f := range fixtures(t) {
		r, err := ParseRange(f.Range)
		if err != nil {
			continue
		}
		major, minor, patch, ok := r.Limit()
		for i, v := range versions(t, f.Versions...) {
			if f.Satisfies[i] && (ok && v.numbers.compare(core{major, minor, patch}) > 0 || v.Prerelease() && !r.NamesPrerelease()) {
				t.Errorf("%q admits %v, which Limit or NamesPrerelease exclude", f.Range, v)
			}
		}
	}
}

func TestZeroRange(t *testing.T) {
	var r Range
	if v := versions(t, "1.0.0")[0]; r.Satisfies(v) || r.SatisfiesPrerelease(v) {
		t.Error("the zero range admits a version")
	}
}

// A registry can send anything: reading must stay linear in what it sends.
func TestParseRangeLong(t *testing.T) {
	for _, part := range []string{"v", "=", "= ", "1", "x", ".", "~", "~ ", "^ ", "+", "+a.", "1.", "|", "||", " - ", "1 ", "*", "<", ">= ", "\u00a0"} {
		s := strings.Repeat(part, 1<<17)
		start := time.Now()
		_, _ = ParseRange(s)
		_, _ = ParseRangeLoose("^1.2.3 " + s)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%d times %q took %v", 1<<17, part, took)
		}
	}
}

func FuzzParseRange(f *testing.F) {
	for _, c := range fixtures(f)[:200] {
		f.Add(c.Range, c.Versions[0])
	}
	f.Fuzz(func(t *testing.T, text, version string) {
		strict, err := ParseRange(text)
		relaxed, looseErr := ParseRangeLoose(text)
		if err == nil && looseErr != nil {
			t.Fatalf("%q is a strict range and no loose one: %v", text, looseErr)
		}
		v, vErr := ParseVersion(version)
		if err != nil || vErr != nil {
			return
		}
		if strict.Satisfies(v) != relaxed.Satisfies(v) {
			t.Errorf("%q with %v: strict and loose differ", text, v)
		}
		if major, minor, patch, ok := strict.Limit(); ok && strict.Satisfies(v) && v.numbers.compare(core{major, minor, patch}) > 0 {
			t.Errorf("%q admits %v, which is above its limit %d.%d.%d", text, v, major, minor, patch)
		}
		if v.Prerelease() && strict.Satisfies(v) && !strict.NamesPrerelease() {
			t.Errorf("%q admits %v and names no prerelease", text, v)
		}
		if strict.Satisfies(v) && !v.Prerelease() && !strict.SatisfiesPrerelease(v) {
			t.Errorf("%q with %v: admitted, but not where prereleases count", text, v)
		}
		exact, err := ParseRange(v.String())
		if err != nil || !exact.Satisfies(v) {
			t.Errorf("%v does not satisfy itself: %v", v, err)
		}
	})
}

func BenchmarkParseRange(b *testing.B) {
	for _, s := range []string{"^1.2.3", ">=1.2.3 <2.0.0", "^1.2.3-beta.1", "^14 || ^16 || >=18"} {
		b.Run(s, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseRangeLoose(s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkSatisfies(b *testing.B) {
	r, err := ParseRangeLoose("^14 || ^16 || >=18")
	if err != nil {
		b.Fatal(err)
	}
	v := versions(b, "18.2.0")[0]
	b.ReportAllocs()
	for b.Loop() {
		if !r.Satisfies(v) {
			b.Fatal("not admitted")
		}
	}
}
