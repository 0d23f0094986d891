package install

import (
	"fmt"
	"testing"

	"dsh/internal/profile"
)

// TestWhyIsBounded asks about a package to which a billion chains lead: thirty
// floors of two packages each, of which both ask for both of the next floor.
func TestWhyIsBounded(t *testing.T) {
	const floors = 30
	lock := &Lock{Wanted: map[string]string{"p0a": "1.0.0"}, Nodes: map[string]Located{}}
	for i := range floors {
		next := map[string]string{fmt.Sprintf("p%da", i+1): "1.0.0", fmt.Sprintf("p%db", i+1): "1.0.0"}
		for _, side := range []string{"a", "b"} {
			name := fmt.Sprintf("p%d%s", i, side)
			lock.Nodes["node_modules/"+name] = Located{Package: &Package{Name: name, Version: "1.0.0", Dependencies: next}}
		}
	}
	last := fmt.Sprintf("p%da", floors)
	lock.Nodes["node_modules/"+last] = Located{Package: &Package{Name: last, Version: "1.0.0"}}
	m, err := profile.ParseManifest("package.json", []byte(`{"dependencies": {"p0a": "1.0.0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	copies := lock.Why(m, last, "")
	if len(copies) != 1 || len(copies[0].Chains) != maxChains || !copies[0].More {
		t.Fatalf("%d copies", len(copies))
	}
	for _, chain := range copies[0].Chains {
		if len(chain) != floors+1 || chain[0].Name != "p0a" || chain[floors].Name != last {
			t.Errorf("chain of %d steps", len(chain))
		}
	}
}
