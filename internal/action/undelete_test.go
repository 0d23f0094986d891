package action

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/staging"
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

// A file that does not come back is named where it can be had.
func TestTooLargeNamesWhatIsKept(t *testing.T) {
	env, name := world(t)
	state := env.Home.StateDir(name)
	for _, file := range []string{"replaced-1/old.bin", "replaced-2/old.bin", "replaced-1/sub/other.bin", "replaced-2/there.bin"} {
		path := filepath.Join(state, filepath.FromSlash(file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		put(t, path, "x")
	}
	if err := os.MkdirAll(env.Home.ProfileDir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(env.Home.ProfileDir(name), "there.bin"), "x")
	g := &staging.Generation{ID: 4}
	for _, path := range []string{"there.bin", "old.bin", "sub/other.bin", "nowhere.bin"} {
		g.TooLarge = append(g.TooLarge, staging.Skipped{Path: path, Why: "it is large"})
	}
	const why = "generation 4 does not hold it, because it is large"
	want := []string{
		"there.bin was left alone: " + why,
		"old.bin does not come back: " + why + "; one of an earlier time is " + filepath.Join(state, "replaced-2", "old.bin"),
		"sub/other.bin does not come back: " + why + "; one of an earlier time is " + filepath.Join(state, "replaced-1", "sub", "other.bin"),
		"nowhere.bin does not come back: " + why,
	}
	if diff := cmp.Diff(want, profileSubject(env, name).tooLarge(g, nil)); diff != "" {
		t.Error(diff)
	}
}
