package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a lockfile says of programs may have been edited.
func TestProgramsOfALockfile(t *testing.T) {
	pkg := &Package{Name: "n", Bin: map[string]string{
		"good": "lib/cli.js", "..": "x", ".": "x", "a/b": "x", `a\b`: "x", "c:d": "x", "nul\x00": "x", "ask?": "x",
		"up": "../x", "root": "/x", "dot": "./x", "self": ".", "back": `a\x`, "quote": `a"x`, "percent": "%x", "line": "a\nx",
	}}
	bins := map[string]map[string]program{}
	(&tree{lock: &Lock{}}).addBins(bins, "node_modules/n", pkg)
	got := map[string]string{}
	for name, p := range bins["node_modules"] {
		got[name] = p.target
	}
	if diff := cmp.Diff(map[string]string{"good": "../n/lib/cli.js"}, got); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
}
