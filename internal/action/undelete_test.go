package action

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeptDirs(t *testing.T) {
	state := t.TempDir()
	for _, dir := range []string{"replaced-2", "replaced-10", "replaced-1", "replaced-02", "replaced-x", "replaced--1", "generations"} {
		if err := os.Mkdir(filepath.Join(state, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(state, "replaced-3"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, dir := range keptDirs(state) {
		got = append(got, filepath.Base(dir))
	}
	if diff := cmp.Diff([]string{"replaced-10", "replaced-2", "replaced-1"}, got); diff != "" {
		t.Error(diff)
	}
	if got := keptDirs(filepath.Join(state, "nothing")); len(got) > 0 {
		t.Errorf("where nothing is: %v", got)
	}
}
