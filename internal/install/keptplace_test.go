package install

import (
	"strings"
	"testing"

	"dsh/internal/install/store"
)

func TestKeptPlaceOfNames(t *testing.T) {
	id, err := store.ParseIntegrity("sha512-q83v" + strings.Repeat("A", 82) + "==")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"left":        "archives/left-1.0.0-rc.1-abcdef00.tgz",
		"@acme/stack": "archives/@acme+stack-1.0.0-rc.1-abcdef00.tgz",
	} {
		if got := KeptPlace(name, "1.0.0-rc.1", id); got != want {
			t.Errorf("%s is kept at %s, want %s", name, got, want)
		}
	}
}
