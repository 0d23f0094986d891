package install

import (
	"testing"

	"dsh/internal/profile"
)

// A peer that the profile installs, for nobody else brings it, is in the tree
// below who asks for it.
func TestTreeShowsInstalledPeers(t *testing.T) {
	m, err := profile.ParseManifest("package.json", []byte(`{"dependencies": {"ui": "1.0.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	lock := &Lock{AutoPeers: true, Wanted: map[string]string{"ui": "1.0.0"}, Nodes: map[string]Located{
		"node_modules/ui": {Package: &Package{Name: "ui", Version: "1.0.0", Peers: map[string]string{"rd": "^1", "r": "^1"}}},
		"node_modules/rd": {Package: &Package{Name: "rd", Version: "1.1.0", Peers: map[string]string{"r": "^1"}}},
		"node_modules/r":  {Package: &Package{Name: "r", Version: "1.2.0"}},
	}}
	branches, _ := Tree(t.TempDir(), m, lock, -1)
	var got []string
	var walk func(indent string, list []*Branch)
	walk = func(indent string, list []*Branch) {
		for _, b := range list {
			got = append(got, indent+b.Name+" "+b.Version)
			walk(indent+" ", b.Dependencies)
		}
	}
	walk("", branches)
	want := []string{"ui 1.0.0", " r 1.2.0", " rd 1.1.0", "  r 1.2.0"}
	if len(got) != len(want) {
		t.Fatalf("the tree is %q and not %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("the tree is %q and not %q", got, want)
		}
	}
}
