package action

import (
	"testing"

	"dsh/internal/install/registry"
)

// TestIsKnown checks which names may be told to the world.
func TestIsKnown(t *testing.T) {
	read := func(string) ([]byte, error) {
		return []byte("registry=https://mirror.example/npm/\n@acme:registry=https://acme.example/\n@npm:registry=https://registry.npmjs.org/\n"), nil
	}
	config, err := registry.LoadConfig(read, func(string) string { return "" }, "npmrc")
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.New(config, registry.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, want := range map[string]bool{"left": true, "@other/x": true, "@npm/x": true, "@acme/x": false} {
		if got := isKnown(client, name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
