package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
)

func version(tb testing.TB, s string) npmrange.Version {
	tb.Helper()
	v, err := npmrange.ParseVersion(s)
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

// The answers were recorded from npm-pick-manifest.
func TestPickManifest(t *testing.T) {
	data, err := os.ReadFile("testdata/pick.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for line := range bytes.Lines(data) {
		cases++
		var f struct {
			Packument                         json.RawMessage
			Spec, Node, Before, Picked, Error string
		}
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatal(err)
		}
		p, err := ParsePackument("p", DefaultRegistry, string(f.Packument))
		if err != nil {
			t.Fatal(err)
		}
		opts := PickOptions{NodeVersion: version(t, f.Node)}
		if f.Before != "" {
			if opts.Before, err = time.Parse(time.RFC3339, f.Before); err != nil {
				t.Fatal(err)
			}
		}
		var picked, code string
		if m, err := Pick(p, f.Spec, opts); err == nil {
			picked = m.Version
		} else if none, ok := errors.AsType[*NoMatchError](err); ok {
			code = none.Code
		} else {
			code = err.Error()
		}
		if picked != f.Picked || code != f.Error {
			t.Errorf("case %d, %q before %q: picked %q, error %q; want %q, %q", cases, f.Spec, f.Before, picked, code, f.Picked, f.Error)
		}
	}
	if cases != 500 {
		t.Errorf("%d cases, want 500", cases)
	}
}

func TestPickErrors(t *testing.T) {
	p, err := ParsePackument("p", "https://user:secret@r.example/", `{
		"dist-tags": {"next": "2.0.0-rc.1", "latest": "1.1.0", "gone": "9.9.9"},
		"versions": {"1.0.0": {}, "1.1.0": {}, "2.0.0-rc.1": {}, "odd": {}}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	want := "no version of \"p\" matches \"^3\" in the registry https://r.example/\n" +
		"\tnewest: 2.0.0-rc.1, 1.1.0, 1.0.0\n\ttags:   latest 1.1.0, gone 9.9.9, next 2.0.0-rc.1"
	for spec, want := range map[string]string{
		"^3":   want,
		"gone": strings.Replace(want, "^3", "gone", 1),
		"a b":  `"a b" of package p is no version, range or tag`,
	} {
		m, err := Pick(p, spec, PickOptions{})
		if err == nil {
			t.Errorf("%q: picked %s", spec, m.Version)
			continue
		}
		if diff := cmp.Diff(want, err.Error()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", spec, diff)
		}
		if class := fault.ClassOf(err); class != fault.Package {
			t.Errorf("%q: class %v", spec, class)
		}
	}
	empty, err := ParsePackument("p", DefaultRegistry, `{"name":"p","time":{"unpublished":{"name":"p"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Pick(empty, "*", PickOptions{}); err == nil || !strings.HasSuffix(err.Error(), "which has no version of it at all") {
		t.Errorf("an unpublished package: %v", err)
	}
}

// Registry documents hold these; npm takes them so.
func TestPickOddities(t *testing.T) {
	p, err := ParsePackument("p", DefaultRegistry, `{
		"dist-tags": {"latest": "1.0.0"},
		"versions": {
			"1.0.0": {"deprecated": "old"},
			"1.2.0": {"engines": ["node >= 99"]},
			"1.3.0": {"engines": {"node": "no range"}},
			"2.0.0": {"deprecated": false, "engines": "node 99"},
			"2.1.0": {"deprecated": true}
		}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	for spec, want := range map[string]string{"^1": "1.2.0", "*": "2.0.0", "": "2.0.0", "latest": "1.0.0", " ^1 ": "1.2.0", "v1.0.0": "1.0.0", ">=1.3 <2": "1.3.0"} {
		m, err := Pick(p, spec, PickOptions{NodeVersion: version(t, "24.21.0")})
		if err != nil || m.Version != want {
			t.Errorf("%q: %v, %v; want %s", spec, m, err, want)
		}
	}
}
