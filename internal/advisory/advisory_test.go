package advisory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// one is the only advisory of a document about package x with these ranges and
// versions.
func one(t *testing.T, affected string) Advisory {
	t.Helper()
	text := `{"id":"GHSA-aaaa-bbbb-cccc","affected":[{"package":{"ecosystem":"npm","name":"x"},` + affected + `}]}`
	list, err := ParseOSV([]byte(text), "osv")
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %v", text, list, err)
	}
	return list[0]
}

func TestAffects(t *testing.T) {
	ranges := func(events string) string {
		return `"ranges":[{"type":"SEMVER","events":[` + events + `]}]`
	}
	for _, test := range []struct {
		affected string
		yes, no  string
		fixed    string // of the first of yes
	}{
		{ranges(`{"introduced":"0"},{"fixed":"4.17.21"}`), "4.17.20 0.0.0 0.0.0-alpha 4.17.21-rc.1", "4.17.21 4.17.21+y 5.0.0", "4.17.21"},
		{ranges(`{"introduced":"1.0.0"},{"fixed":"1.2.0"},{"introduced":"2.0.0-0"},{"fixed":"2.1.0"}`), "1.1.9 1.0.0 2.0.0-rc.1 2.0.9", "0.9.0 1.0.0-rc.1 1.2.0 1.9.0 2.1.0", "1.2.0"},
		// The order of events in the document does not count.
		{ranges(`{"fixed":"2.1.0"},{"introduced":"2.0.0"},{"fixed":"1.2.0"},{"introduced":"0"}`), "2.0.0 1.0.0", "1.2.0 2.1.0", "2.1.0"},
		{ranges(`{"introduced":"1.0.0"},{"last_affected":"1.4.2"}`), "1.4.2 1.0.0", "1.4.3 0.9.9 1.4.3-0", ""},
		{ranges(`{"introduced":"0"}`), "9.9.9 0.0.1", "", ""},
		{ranges(`{"introduced":"0"},{"limit":"2.0.0"}`), "1.9.9", "2.0.0 3.0.0", ""},
		{ranges(`{"introduced":"0"},{"limit":"*"}`), "1.9.9 7.0.0", "", ""},
		{ranges(`{"introduced":"1.0.0"},{"fixed":"1.0.0"}`), "", "1.0.0 0.9.0", ""},
		{ranges(`{"introduced":"1.2"},{"fixed":"2"}`), "1.2.0 1.9.9", "1.1.9 2.0.0", "2.0.0"},
		{`"versions":["1.0.0","1.0.0-sp"]`, "1.0.0 1.0.0-sp", "1.0.1", ""},
		{ranges(`{"introduced":"3.0.0"}`) + `,"versions":["1.0.0"]`, "1.0.0 3.1.0", "2.0.0", ""},
		{`"ranges":[{"type":"GIT","repo":"https://example.org","events":[{"introduced":"0"}]}],"versions":["1.0.0"]`, "1.0.0", "1.0.1", ""},
		{`"ranges":[{"type":"ECOSYSTEM","events":[{"introduced":"0"},{"fixed":"1.0.1"}]}]`, "1.0.0", "1.0.1", "1.0.1"},
	} {
		a := one(t, test.affected)
		for v := range strings.FieldsSeq(test.yes) {
			if !a.Affects(v) {
				t.Errorf("%s: %s is not affected", test.affected, v)
			}
		}
		for v := range strings.FieldsSeq(test.no) {
			if a.Affects(v) {
				t.Errorf("%s: %s is affected", test.affected, v)
			}
		}
		if yes, _, _ := strings.Cut(test.yes, " "); a.Fixed(yes) != test.fixed {
			t.Errorf("%s: %s is mended in %q, want %q", test.affected, yes, a.Fixed(yes), test.fixed)
		}
	}
}

func TestAffectsByNpmRange(t *testing.T) {
	list, err := ParseBulk([]byte(`{"x":[{"id":7,"url":"https://github.com/advisories/GHSA-aaaa-bbbb-cccc","title":"A\tbad\n thing","severity":"high",
		"vulnerable_versions":">=1.0.0 <1.2.3 || >=2.0.0 <=2.5.0"}],"y":[{"id":8,"url":"","severity":"odd","vulnerable_versions":"*"}],"other":[{"id":9}]}`), []string{"x", "y"}, "registry")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range list {
		got = append(got, fmt.Sprint(a.Package, " ", a.ID, " ", a.Severity, " ", a.Summary))
	}
	if diff := cmp.Diff([]string{"x GHSA-aaaa-bbbb-cccc high A bad thing", "y npm:8 unrated "}, got); diff != "" {
		t.Error(diff)
	}
	for v, want := range map[string]bool{"1.0.0": true, "1.2.3-rc.1": true, "1.2.3": false, "2.5.0": true, "2.5.1": false} {
		if list[0].Affects(v) != want {
			t.Errorf("%s: %t", v, !want)
		}
	}
	if fixed := list[0].Fixed("1.1.0"); fixed != "1.2.3" {
		t.Errorf("mended in %q", fixed)
	}
	if fixed := list[0].Fixed("2.1.0"); fixed != "" {
		t.Errorf("mended in %q, though <= names no mended version", fixed)
	}
}

func TestParseOSV(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string // package, id, aliases, severity, malicious
		err  string
	}{
		"several packages and ecosystems": {`{"id":"CVE-2020-1","aliases":["GHSA-b","GHSA-a"],"summary":"s","database_specific":{"severity":"MODERATE"},"affected":[
			{"package":{"ecosystem":"npm","name":"@a/b"},"versions":["1.0.0"]},
			{"package":{"ecosystem":"PyPI","name":"x"},"versions":["1.0.0"]},
			{"package":{"ecosystem":"npm","name":"c"},"versions":["1.0.0"],"database_specific":{"severity":"HIGH"}}]}`,
			[]string{"@a/b GHSA-a [CVE-2020-1 GHSA-b] moderate false", "c GHSA-a [CVE-2020-1 GHSA-b] high false"}, ""},
		"malicious":       {`{"id":"MAL-2024-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"}]}]}]}`, []string{"x MAL-2024-1 [] critical true"}, ""},
		"vector":          {`{"id":"CVE-1","severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`, []string{"x CVE-1 [] critical false"}, ""},
		"other scale":     {`{"id":"CVE-1","severity":[{"type":"CVSS_V4","score":"CVSS:4.0/AV:N"}],"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`, []string{"x CVE-1 [] unrated false"}, ""},
		"odd own fields":  {`{"id":"CVE-1","database_specific":[1,2],"affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"],"ecosystem_specific":"text"}]}`, []string{"x CVE-1 [] unrated false"}, ""},
		"withdrawn":       {`{"id":"CVE-1","withdrawn":"2024-01-01T00:00:00Z","affected":[{"package":{"ecosystem":"npm","name":"x"},"versions":["1.0.0"]}]}`, nil, ""},
		"no versions":     {`{"id":"CVE-1","affected":[{"package":{"ecosystem":"npm","name":"x"}}]}`, nil, ""},
		"no JSON":         {`<html>`, nil, "invalid character"},
		"no id":           {`{}`, nil, "is no id"},
		"id with a slash": {`{"id":"../x"}`, nil, "is no id"},
		"odd event":       {`{"id":"CVE-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0","fixed":"1.0.0"}]}]}]}`, nil, "not one of"},
		"odd version":     {`{"id":"CVE-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"ranges":[{"type":"SEMVER","events":[{"introduced":"first"}]}]}]}`, nil, "is no version"},
	} {
		list, err := ParseOSV([]byte(test.text), "osv")
		var got []string
		for _, a := range list {
			got = append(got, fmt.Sprintf("%s %s %v %s %t", a.Package, a.ID, a.Aliases, a.Severity, a.Malicious()))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCVSS holds the base score against vectors whose scores the specification's
// examples give.
func TestCVSS(t *testing.T) {
	for vector, want := range map[string]float64{
		"CVSS:3.1/AV:N/AC:L/PR:N/UI:R/S:C/C:L/I:L/A:N":     6.1,
		"CVSS:3.0/AV:N/AC:L/PR:L/UI:N/S:C/C:L/I:L/A:N":     6.4,
		"CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N":     3.1,
		"CVSS:3.1/AV:L/AC:L/PR:N/UI:R/S:U/C:H/I:H/A:H":     7.8,
		"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:N/A:N":     7.5,
		"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:C/C:H/I:H/A:H":     10,
		"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:N":     0,
		"CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H/E:P": 9.8,
		"CVSS:3.1/AV:A/AC:L/PR:N/UI:N/S:C/C:H/I:N/A:H":     9.3,
	} {
		if got, ok := cvss3(vector); !ok || got != want {
			t.Errorf("%s: %v, want %v", vector, got, want)
		}
	}
	for _, vector := range []string{"", "CVSS:3.1", "CVSS:4.0/AV:N", "CVSS:3.1/AV:X/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"} {
		if got, ok := cvss3(vector); ok {
			t.Errorf("%q has the score %v", vector, got)
		}
	}
}

func TestMerge(t *testing.T) {
	osv := one(t, `"versions":["1.0.0"]`)
	osv.Aliases, osv.Severity = []string{"CVE-2020-1"}, Moderate
	registry := Advisory{ID: "npm:1", Package: "x", Summary: "from npm", Severity: High, Sources: []string{"registry"}, affected: []affected{{Npm: "<1.5.0"}}}
	bridge := Advisory{ID: "npm:1", Aliases: []string{"CVE-2020-1"}, Package: "x", Sources: []string{"copy"}}
	other := Advisory{ID: "CVE-2020-1", Package: "y", Sources: []string{"osv"}}
	merged := Merge([]Advisory{registry, other, osv, bridge})
	if len(merged) != 2 {
		t.Fatalf("%d advisories: %v", len(merged), merged)
	}
	got := merged[0]
	if got.ID != "GHSA-aaaa-bbbb-cccc" || strings.Join(got.Aliases, " ") != "CVE-2020-1 npm:1" || got.Severity != High || got.Summary != "from npm" {
		t.Errorf("%+v", got)
	}
	if !got.Affects("1.0.0") || !got.Affects("1.4.0") || got.Affects("1.5.0") {
		t.Error("the versions of both count")
	}
	if got.Fixed("1.0.0") != "1.5.0" {
		t.Errorf("mended in %q", got.Fixed("1.0.0"))
	}
	if merged[1].Package != "y" {
		t.Error("an id in common makes no advisory about another package the same")
	}
}

func TestLevels(t *testing.T) {
	for word, want := range map[string]Severity{"low": Low, "moderate": Moderate, "high": High, "critical": Critical} {
		if got, err := ParseLevel(word); err != nil || got != want {
			t.Errorf("%s: %v, %v", word, got, err)
		}
	}
	if _, err := ParseLevel("unrated"); err == nil {
		t.Error("unrated is no level")
	}
	if !Unrated.Reaches(Critical) || High.Reaches(Critical) || !High.Reaches(Moderate) {
		t.Error("reaches")
	}
}

// FuzzParseOSV checks that whatever a server sends is read or refused, and that
// what is read can be asked and is the same after it was kept.
func FuzzParseOSV(f *testing.F) {
	f.Add([]byte(`{"id":"MAL-1","affected":[{"package":{"ecosystem":"npm","name":"x"},"ranges":[{"type":"SEMVER","events":[{"introduced":"0"},{"fixed":"1.0.0"}]}],"versions":["1.0.0"]}]}`), "1.0.0")
	f.Add([]byte(`{"id":"a","aliases":["b"],"severity":[{"type":"CVSS_V3","score":"CVSS:3.1/AV:N"}],"affected":[{"package":{"ecosystem":"npm","name":"é"},"ranges":[{"type":"SEMVER","events":[{"introduced":"1"},{"limit":"*"}]}]}]}`), "v1")
	f.Fuzz(func(t *testing.T, text []byte, version string) {
		list, err := ParseOSV(text, "osv")
		if err != nil {
			return
		}
		for _, a := range list {
			line, err := a.line()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(line, "\n") != 1 || !json.Valid([]byte(line[strings.IndexByte(line, '\t')+1:])) {
				t.Fatalf("kept as %q", line)
			}
			back, err := parseLine([]byte(strings.TrimSuffix(line, "\n")))
			if err != nil || back.ID != a.ID || back.Affects(version) != a.Affects(version) || back.Fixed(version) != a.Fixed(version) {
				t.Fatalf("%q: %+v, %+v, %v", line, a, back, err)
			}
			if fixed := a.Fixed(version); fixed != "" && a.Affects(fixed) {
				t.Fatalf("%s is named as mended and is affected", fixed)
			}
		}
	})
}

func FuzzParseBulk(f *testing.F) {
	f.Add([]byte(`{"x":[{"id":7,"url":"https://github.com/advisories/GHSA-a","title":"t","severity":"high","vulnerable_versions":">=1.0.0 <1.2.3"}]}`), "1.0.0")
	f.Fuzz(func(t *testing.T, text []byte, version string) {
		list, err := ParseBulk(text, []string{"x"}, "registry")
		if err != nil {
			return
		}
		for _, a := range Merge(list) {
			if fixed := a.Fixed(version); a.Package != "x" || a.ID == "" || fixed != "" && a.Affects(fixed) {
				t.Fatalf("%+v", a)
			}
		}
	})
}
