package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpread(t *testing.T) {
	for _, test := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{4, 1}, spread{2.5, 1, 4}},
		{[]float64{9, 1, 5}, spread{5, 1, 9}},
		{[]float64{8, 2, 100, 4}, spread{6, 2, 100}},
	} {
		given := append([]float64(nil), test.values...)
		if got := spreadIn(test.values); got != test.want {
			t.Errorf("%v: got %v, want %v", test.values, got, test.want)
		}
		if diff := cmp.Diff(given, test.values); diff != "" {
			t.Errorf("the numbers were moved (-before +after)\n%s", diff)
		}
	}
}

// TestQuotients divides within a pair only: a run that only one of both has, as of a slow manager, counts for nothing.
func TestQuotients(t *testing.T) {
	ours := []sample{{Run: 0, Wall: 2}, {Run: 1, Wall: 3}, {Run: 2, Wall: 100}}
	theirs := []sample{{Run: 1, Wall: 6}, {Run: 0, Wall: 1}}
	if diff := cmp.Diff([]float64{2, 0.5}, quotients(ours, theirs, wall)); diff != "" {
		t.Error(diff)
	}
	if got := quotients(nil, theirs, wall); got != nil {
		t.Errorf("got %v of nothing", got)
	}
}

func TestGoal(t *testing.T) {
	for _, test := range []struct {
		scenario     scenario
		manager      string
		ours, theirs float64
		want         string
	}{
		{cold, "bun", 1.29, 1, "yes"},
		{cold, "bun", 1.31, 1, "**no**"},
		{noop, "bun", 0.0299, 0.010, "yes"}, // 20 ms more is more than 1.3 times
		{noop, "bun", 0.0301, 0.010, "**no**"},
		{cold, "pnpm10", 1.9, 10, "yes"},
		{cold, "pnpm10", 2.1, 10, "**no**"},
		{warm, "pnpm10", 1.1, 10, "**no**"},
		{frozen, "pnpm10", 0.9, 10, "yes"},
		{frozen, "pnpm12", 100, 1, ""},
	} {
		if got := goal(test.scenario, test.manager, test.ours, test.theirs); got != test.want {
			t.Errorf("%s beside %s, %v to %v: got %q, want %q", test.scenario, test.manager, test.ours, test.theirs, got, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	r := report{
		Machine: machine{System: "linux/amd64", CPUs: 2, Filesystem: "tmpfs", Load: "0.10", Revision: "abc"},
		Start:   time.Date(2026, 12, 1, 4, 0, 0, 0, time.UTC),
		Samples: []sample{
			{"dsh", cold, "dsh", 0, 1.0, 0.5, 0.25, 120}, {"dsh", cold, "dsh", 1, 1.5, 0.7, 0.35, 300},
			{"dsh", cold, "bun", 0, 2.0, 0.1, 0.2, 100}, {"dsh", cold, "bun", 1, 1.0, 0.3, 0.4, 90},
			{"dsh", cold, "pnpm10", 0, 4.0, 4, 1, 500},
		},
		Failures: []failed{{"dsh", warm, "pnpm12", "no network"}},
		Trees: []tree{
			{"dsh", "dsh", 450, 29000, &verdict{450, 900, []finding{{"peer", "a wants b"}, {"dependency", "c wants d"}}}},
			{"dsh", "bun", 457, 31000, nil},
		},
	}
	want := `Revision abc on linux/amd64 with 2 cores, tmpfs, load 0.10 at the start, 2026-12-01 04:00 UTC.

| fixture | scenario | program | runs | median s (min–max) | user s | system s | peak MiB | dsh ÷ it (min–max) | CPU ÷ its | goal |
| --- | --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |
| dsh | cold | dsh | 2 | 1.250 (1.000–1.500) | 0.60 | 0.30 | 300 |  |  | **no**: 300 MiB |
| dsh | cold | bun | 2 | 1.500 (1.000–2.000) | 0.20 | 0.30 | 100 | 1.00 (0.50–1.50) | 2.00 | yes |
| dsh | cold | pnpm10 | 1 | 4.000 (4.000–4.000) | 4.00 | 1.00 | 500 | 0.25 (0.25–0.25) | 0.15 | **no** |

| fixture | program | packages | files | judged edges | dependencies not met | peers not met |
| --- | --- | --: | --: | --: | --: | --: |
| dsh | dsh | 450 | 29000 | 900 | 1 | 1 |
| dsh | bun | 457 | 31000 |  |  |  |

What the judge finds in dsh's tree of dsh:

- a wants b
- c wants d

pnpm12 failed in dsh, warm:

` + "```\nno network\n```\n"
	var got strings.Builder
	if err := r.markdown(&got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	if err := r.failure(); err == nil || err.Error() != "dsh, dsh: c wants d" {
		t.Errorf("got %v; a peer that is not met, and what happens to others, is no failure of dsh", err)
	}
	r.Failures = append(r.Failures, failed{"big", cold, "dsh", "killed"})
	if err := r.failure(); err == nil || !strings.Contains(err.Error(), "dsh, big, cold: killed") {
		t.Errorf("got %v", err)
	}

	file := filepath.Join(t.TempDir(), "samples.json")
	if err := r.json(file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, back); diff != "" {
		t.Errorf("JSON (-written +read)\n%s", diff)
	}
}

func TestChoose(t *testing.T) {
	name := func(s scenario) string { return string(s) }
	got, err := choose("scenario", "noop,cold", scenarios, name)
	if diff := cmp.Diff([]scenario{cold, noop}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	for _, names := range []string{"cold,lukewarm", ""} {
		if got, err := choose("scenario", names, scenarios, name); err == nil {
			t.Errorf("%q: got %v", names, got)
		}
	}
}

// TestClear looks at what is left for each scenario, both ways of removing.
func TestClear(t *testing.T) {
	for s, want := range map[scenario][]string{
		cold:   {"p/package.json"},
		warm:   {"c/x", "p/package.json"},
		frozen: {"c/x", "p/lock", "p/package.json"},
		noop:   {"c/x", "p/lock", "p/node_modules/x", "p/package.json"},
	} {
		for _, onDisk := range []bool{false, true} {
			dir := t.TempDir()
			at := &place{manager: manager{project: "p", lockfile: "lock", caches: []string{"c", "never-made"}}, dir: dir}
			if onDisk {
				at.trash = filepath.Join(t.TempDir(), "trash")
			}
			for _, file := range []string{"c/x", "p/lock", "p/node_modules/x", "p/package.json"} {
				path := filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second time there is nothing to remove
				if err := at.clear(s); err != nil {
					t.Fatal(err)
				}
			}
			var left []string
			for _, pattern := range []string{"*/*", "*/*/*"} {
				found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range found {
					if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
						rel, err := filepath.Rel(dir, path)
						if err != nil {
							t.Fatal(err)
						}
						left = append(left, filepath.ToSlash(rel))
					}
				}
			}
			slices.Sort(left)
			if diff := cmp.Diff(want, left); diff != "" {
				t.Errorf("%s (-want +got)\n%s", s, diff)
			}
		}
	}
}

func TestCount(t *testing.T) {
	root := t.TempDir()
	for _, file := range []string{
		"a/package.json", "a/lib/package.json", "a/index.js", "@s/b/package.json", "@s/b/node_modules/c/package.json",
		".bin/package.json", ".store/d@1/node_modules/d/package.json",
	} {
		path := filepath.Join(root, "node_modules", filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var got tree
	if err := got.count(filepath.Join(root, "node_modules")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tree{Packages: 4, Files: 7}, got); diff != "" {
		t.Error(diff)
	}
}

// TestEnvironment leaves nothing in that leads out of the directory.
func TestEnvironment(t *testing.T) {
	got := environment([]string{"PATH=/bin", "HOME=/root", "CI=true", "DSH_HOME=/x", "XDG_CACHE_HOME=/y", "SSL_CERT_FILE=/z", "TMPDIR=/t"}, "/work")
	want := []string{"PATH=/bin", "SSL_CERT_FILE=/z", "HOME=" + filepath.Join("/work", "home"), "TMPDIR=" + filepath.Join("/work", "tmp"), "NO_COLOR=1", "DO_NOT_TRACK=1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestManifests(t *testing.T) {
	fixtures, err := readFixtures()
	if err != nil {
		t.Fatal(err)
	}
	if len(fixtures) != 4 {
		t.Errorf("there are %d fixtures", len(fixtures))
	}
	for _, f := range fixtures {
		for _, m := range managers {
			files, err := m.files("/work", f)
			if err != nil {
				t.Fatal(err)
			}
			var manifest struct{ Dependencies map[string]string }
			if err := json.Unmarshal([]byte(files["package.json"]), &manifest); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(f.Dependencies, manifest.Dependencies); diff != "" {
				t.Errorf("%s of %s (-fixture +manifest)\n%s", f.Name, m.name, diff)
			}
		}
	}
}
