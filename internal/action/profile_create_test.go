package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/profile"
	"dsh/internal/staging"
)

// tree is what stands below dir, files with their content; locks, which stay
// behind on purpose, are left out.
func treeBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		found[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return found
}

// Of many who make one profile at once, by several commands, one does, and what
// it made is whole.
func TestCreateRace(t *testing.T) {
	for range 5 {
		env, _ := world(t)
		from := profileName(t, "from")
		if _, err := Create(context.Background(), env, CreateOptions{PluginOptions: PluginOptions{Name: from}, Template: "web"}); err != nil {
			t.Fatal(err)
		}
		name := profileName(t, "new")
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() {
				if i%2 == 0 {
					_, errs[i] = Create(context.Background(), env, CreateOptions{PluginOptions: PluginOptions{Name: name}, Template: "web"})
				} else {
					_, errs[i] = CopyProfile(context.Background(), env, PluginOptions{Name: name}, from)
				}
			})
		}
		wg.Wait()
		made := 0
		for _, err := range errs {
			if _, taken := errors.AsType[*profile.TakenError](err); err == nil {
				made++
			} else if _, lost := errors.AsType[*staging.LostRace](err); !taken && !lost {
				t.Errorf("the loser says: %v", err)
			}
		}
		if made != 1 {
			t.Errorf("%d made the profile", made)
		}
		got, want := treeBelow(t, env.Home.ProfileDir(name)), treeBelow(t, env.Home.ProfileDir(from))
		want["package.json"] = strings.Replace(want["package.json"], "dsh-profile-from", "dsh-profile-new", 1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("what was made (-want +got):\n%s", diff)
		}
		entries, err := os.ReadDir(env.Home.ProfilesDir())
		if err != nil || len(entries) != 2 {
			t.Errorf("left behind in profiles: %v, %v", entries, err)
		}
	}
}

func TestCreateAllOrNothing(t *testing.T) {
	env, _ := world(t)
	if err := os.MkdirAll(filepath.Join(env.Dir, "plain"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(env.Dir, "plain", "package.json"), []byte(`{"name": "plain", "version": "1.0.0"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	name := profileName(t, "new")
	for _, bundles := range [][]string{
		{"@deepseek-ai/dsh-base", "./plain"}, {"./nowhere"}, {"a b"}, {"@deepseek-ai/dsh-base", "@deepseek-ai/dsh-base"},
	} {
		opts := CreateOptions{PluginOptions: PluginOptions{Name: name, Offline: true}, Bundles: bundles}
		if made, err := Create(context.Background(), env, opts); err == nil {
			t.Errorf("%q made %+v", bundles, made)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if made, err := Create(ctx, env, CreateOptions{PluginOptions: PluginOptions{Name: name}}); err == nil {
			t.Errorf("interrupted, and made %+v", made)
		}
		if diff := cmp.Diff(map[string]string{}, treeBelow(t, env.Home.ProfilesDir())); diff != "" {
			t.Errorf("%q left behind (-want +got):\n%s", bundles, diff)
		}
		if diff := cmp.Diff(map[string]string{}, treeBelow(t, env.Home.StateDir(name))); diff != "" {
			t.Errorf("%q left a state behind (-want +got):\n%s", bundles, diff)
		}
	}
}

// Copying reads only.
func TestCopyLeavesTheOther(t *testing.T) {
	env, _ := world(t)
	from := profileName(t, "from")
	if _, err := Create(context.Background(), env, CreateOptions{PluginOptions: PluginOptions{Name: from}}); err != nil {
		t.Fatal(err)
	}
	dir := env.Home.ProfileDir(from)
	large := strings.Repeat("x", 2<<20)
	for name, text := range map[string]string{"large.bin": large, "sub/deep/note": "1", "node_modules/x/package.json": "{}", "cordis.yml": "[]\n", ".env": "A=1"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	before, state := treeBelow(t, dir), treeBelow(t, env.Home.StateDir(from))
	to := profileName(t, "to")
	made, err := CopyProfile(context.Background(), env, PluginOptions{Name: to}, from)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, treeBelow(t, dir)); diff != "" {
		t.Errorf("the other changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(state, treeBelow(t, env.Home.StateDir(from))); diff != "" {
		t.Errorf("the other's state changed (-want +got):\n%s", diff)
	}
	want := before
	delete(want, "cordis.yml")
	want["package.json"] = strings.Replace(want["package.json"], "dsh-profile-from", "dsh-profile-to", 1)
	if diff := cmp.Diff(want, treeBelow(t, made.Dir)); diff != "" {
		t.Errorf("the copy (-want +got):\n%s", diff)
	}
	info, err := os.Stat(filepath.Join(made.Dir, ".env"))
	if err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf(".env has the permissions %v, %v", info.Mode(), err)
	}
}

func FuzzParseStateSide(f *testing.F) {
	for _, seed := range []string{"a", "a@1", "@1", "a@b@2", "a@01", "a@99999999999999999999"} {
		f.Add(seed)
	}
	home, err := profile.ResolveHome(f.TempDir(), os.Getenv)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		side, err := ParseStateSide(Env{Home: home}, text)
		if err != nil {
			return
		}
		if again, err := ParseStateSide(Env{Home: home}, side.String()); err != nil || again != side {
			t.Errorf("%q is %v, and that is %v, %v", text, side, again, err)
		}
		if !strings.HasPrefix(text, side.Name.String()) || side.Generation < 0 {
			t.Errorf("%q is %+v", text, side)
		}
	})
}
