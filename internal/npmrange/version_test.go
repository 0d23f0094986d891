package npmrange

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	for _, tt := range []struct{ in, strict, loose string }{
		{"1.2.3", "1.2.3", "1.2.3"},
		{" v1.2.3-a.1+b ", "1.2.3-a.1", "1.2.3-a.1"},
		{"1.2.3+build", "1.2.3", "1.2.3"},
		{"\ufeff1.2.3\n", "1.2.3", "1.2.3"},
		{"9007199254740991.0.0", "9007199254740991.0.0", "9007199254740991.0.0"},
		{"=1.2.3", "", "1.2.3"},
		{"v =\t1.2.3", "", "1.2.3"},
		{"V1.2.3", "", ""},
		{"01.002.03", "", "1.2.3"},
		{"1.2.3beta", "", "1.2.3-beta"},
		{"1.2.3beta+x", "", "1.2.3-beta"},
		{"1.2.3-01.a", "", "1.2.3-1.a"},
		{"1.2.34.5", "", "1.2.3-4.5"},
		{"1.2.3-", "", "1.2.3--"},
		{"1.2.3.4", "", ""},
		{"1", "", ""},
		{"1.2", "", ""},
		{"1.2.x", "", ""},
		{"1.2.3-a..b", "", ""},
		{"1.2.3+", "", ""},
		{"1.2.3+a b", "", ""},
		{"9007199254740992.0.0", "", ""},
		{"99999999999999999999999.0.0", "", ""},
		{"1.2.3-" + strings.Repeat("a", 250), "1.2.3-" + strings.Repeat("a", 250), "1.2.3-" + strings.Repeat("a", 250)},
		{"1.2.3-" + strings.Repeat("a", 251), "", ""},
		{"", "", ""},
	} {
		for mode, parse := range map[string]func(string) (Version, error){"strict": ParseVersion, "loose": ParseVersionLoose} {
			want := tt.strict
			if mode == "loose" {
				want = tt.loose
			}
			v, err := parse(tt.in)
			if (err == nil) != (want != "") {
				t.Errorf("%s %q: error %v", mode, tt.in, err)
			} else if err == nil && v.String() != want {
				t.Errorf("%s %q is %v, want %s", mode, tt.in, v, want)
			}
		}
	}
}

func TestVersionOrder(t *testing.T) {
	want := []string{
		"0.0.0-0", "0.0.0", "0.1.0", "1.0.0-0", "1.0.0-2", "1.0.0-11", "1.0.0-a", "1.0.0-a.1", "1.0.0-a.b",
		"1.0.0-b", "1.0.0-rc.1", "1.0.0-rc.9", "1.0.0-rc.10", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0",
	}
	vs := versions(t, want...)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(vs), func(i, j int) { vs[i], vs[j] = vs[j], vs[i] })
	slices.SortFunc(vs, Version.Compare)
	var got []string
	for _, v := range vs {
		got = append(got, v.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if a, b := versions(t, "1.0.0+a")[0], versions(t, "1.0.0+b")[0]; a.Compare(b) != 0 || a.Less(b) {
		t.Error("build metadata counts")
	}
	var zero Version
	if zero.String() != "0.0.0" || zero.Compare(versions(t, "0.0.0")[0]) != 0 {
		t.Errorf("the zero version is %v", zero)
	}
}

// Our reading and order are those of Masterminds/semver.
func TestVersionsAsMasterminds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	parts := []string{"0", "1", "10", "01", "2", ".", ".", ".", ".", "-", "-", "+", "a", "rc", "-x", "x-1"}
	text := func() string {
		b := strings.Builder{}
		if random.IntN(3) > 0 {
			b.WriteString("1.0.0-")
		}
		for range 1 + random.IntN(7) {
			b.WriteString(parts[random.IntN(len(parts))])
		}
		return b.String()
	}
	var previous Version
	read := 0
	for range 200_000 {
		s := text()
		v, err := ParseVersion(s)
		want, wantErr := semver.StrictNewVersion(s)
		if wantErr == nil && max(want.Major(), want.Minor(), want.Patch()) > maxNumber {
			continue
		}
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%q: %v, want %v", s, err, wantErr)
		}
		if err != nil {
			continue
		}
		read++
		if other, err := semver.StrictNewVersion(previous.String()); err != nil || v.Compare(previous) != want.Compare(other) {
			t.Fatalf("%v and %v: %d", v, previous, v.Compare(previous))
		}
		previous = v
	}
	if read < 20_000 {
		t.Errorf("only %d versions", read)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, s := range []string{"1.2.3", "v1.2.3-a.1+b", "01.2.3beta", "1.2.34.5", "= 1.2.3-", "1.2.3--.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		strict, err := ParseVersion(s)
		loose, looseErr := ParseVersionLoose(s)
		if err == nil && (looseErr != nil || strict != loose) {
			t.Fatalf("%q is %v, but in loose mode %v, %v", s, strict, loose, looseErr)
		}
		if looseErr != nil {
			return
		}
		again, err := ParseVersion(loose.String())
		if err != nil || again.Compare(loose) != 0 {
			t.Errorf("%q is %v, which reads as %v, %v", s, loose, again, err)
		}
	})
}

func BenchmarkParseVersion(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseVersionLoose("1.22.333-rc.1"); err != nil {
			b.Fatal(err)
		}
	}
}
