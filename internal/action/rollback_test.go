package action

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// lived is a profile with a history: made from a template, its patch changed
// twice.
func lived(t *testing.T) (Env, profile.Name) {
	t.Helper()
	env, name := world(t)
	if _, err := replace(env, name, false); err != nil {
		t.Fatal(err)
	}
	set(t, env, name, "1")
	set(t, env, name, "2")
	return env, name
}

// set changes the profile's patch by a command.
func set(t *testing.T, env Env, name profile.Name, value string) {
	t.Helper()
	opts := EditOptions{Name: name, Layer: compose.ProfileLayer, Now: time.Unix(0, 0)}
	if _, err := Set(context.Background(), env, opts, "tools.x", value); err != nil {
		t.Fatal(err)
	}
}

// back goes back by number.
func back(t *testing.T, env Env, name profile.Name, changes int) *RolledBack {
	t.Helper()
	done, err := Rollback(context.Background(), env, RollbackOptions{PluginOptions: PluginOptions{Name: name, Offline: true}, Back: changes})
	if err != nil {
		t.Fatal(err)
	}
	return done
}

// byHand makes a file of the profile by hand.
func byHand(t *testing.T, env Env, name profile.Name, file string, data []byte, perm fs.FileMode) string {
	t.Helper()
	path := filepath.Join(env.Home.ProfileDir(name), filepath.FromSlash(file))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(path), os.WriteFile(path, data, perm)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRollbackGivesBackFilesOfAnyKind(t *testing.T) {
	env, name := lived(t)
	dir := env.Home.ProfileDir(name)
	script := byHand(t, env, name, "tools/with space/run 'it'.sh", []byte("#!/bin/sh\r\n"), 0o700)
	binary := byHand(t, env, name, "設定/データ.bin", []byte("\x00\xff"), 0o644)
	git := byHand(t, env, name, ".git/config", []byte("first"), 0o644)
	link := filepath.Join(dir, "link")
	if err := os.Symlink("tools", link); err != nil {
		t.Skip(err)
	}
	set(t, env, name, "3")
	if err := errors.Join(os.RemoveAll(filepath.Dir(script)), os.WriteFile(binary, nil, 0o644), os.Remove(link),
		os.WriteFile(link, []byte("a file now"), 0o644), os.WriteFile(git, []byte("second"), 0o644)); err != nil {
		t.Fatal(err)
	}
	byHand(t, env, name, "new/deep/file", []byte("x"), 0o644)
	done := back(t, env, name, 1)
	if len(done.Warnings) > 0 {
		t.Errorf("warnings: %q", done.Warnings)
	}
	for file, want := range map[string]string{script: "#!/bin/sh\r\n", binary: "\x00\xff", git: "second"} {
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	if target, err := os.Readlink(link); err != nil || target != "tools" {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	if info, err := os.Stat(script); err == nil && runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("the script has %v", info.Mode())
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the new directory is there: %v", err)
	}
}

func TestRollbackLeavesLargeFilesAlone(t *testing.T) {
	env, name := lived(t)
	file := byHand(t, env, name, "model.bin", bytes.Repeat([]byte("x"), 2<<20), 0o644)
	small := byHand(t, env, name, "grows.txt", []byte("small"), 0o644)
	set(t, env, name, "3")
	byHand(t, env, name, "grows.txt", bytes.Repeat([]byte("y"), 2<<20), 0o644)
	set(t, env, name, "4")
	done := back(t, env, name, 3)
	warned := strings.Join(done.Warnings, "\n")
	if !strings.Contains(warned, "model.bin was left alone: generation") || strings.Contains(warned, "grows.txt") {
		t.Errorf("warnings: %s", warned)
	}
	for file, size := range map[string]int64{file: 2 << 20, small: 2 << 20} {
		if info, err := os.Stat(file); err != nil || info.Size() != size {
			t.Errorf("%s: %v, %v", file, info, err)
		}
	}
	list, err := ListGenerations(context.Background(), env, name)
	if err != nil {
		t.Fatal(err)
	}
	var unkept []string
	for _, g := range list.Generations {
		unkept = append(unkept, g.Changes.filesOfKind(Unkept)...)
	}
	if !slices.Contains(unkept, "grows.txt") {
		t.Errorf("the history does not tell of grows.txt: %q", unkept)
	}
}

// filesOfKind is the paths of the files that differ in one way.
func (c *StateChange) filesOfKind(change string) (paths []string) {
	if c == nil {
		return nil
	}
	for _, f := range c.Files {
		if f.Change == change {
			paths = append(paths, f.Path)
		}
	}
	return paths
}

func TestRollbackWritesNothingWhereNothingDiffers(t *testing.T) {
	env, name := lived(t)
	list, err := ListGenerations(context.Background(), env, name)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Rollback(context.Background(), env, RollbackOptions{PluginOptions: PluginOptions{Name: name}, To: list.Current})
	if err != nil || done.Changed || done.Saved != 0 || done.From != list.Current {
		t.Errorf("%+v, %v", done, err)
	}
	after, err := ListGenerations(context.Background(), env, name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(list, after, cmp.AllowUnexported(DependencyInfo{})); diff != "" {
		t.Error(diff)
	}
	missing, err := profile.ParseName("nobody")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Rollback(context.Background(), env, RollbackOptions{PluginOptions: PluginOptions{Name: missing}, Back: 1})
	if _, ok := errors.AsType[*UnknownError](err); !ok {
		t.Errorf("a profile that never was: %v", err)
	}
	for _, dir := range []string{env.Home.StateDir(missing), env.Home.ProfileDir(missing)} {
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("asking made %s", dir)
		}
	}
}

func TestRollbackTakesSettingsFromTheGeneration(t *testing.T) {
	env, name := lived(t)
	byHand(t, env, name, "package.json", []byte(`{"dependencies":{},"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base"]}}}`), 0o644)
	byHand(t, env, name, ".npmrc", []byte("cafile=/nowhere/ca.pem\n"), 0o644)
	set(t, env, name, "3")
	byHand(t, env, name, "package.json", []byte(`{"optionalDependencies":{"nothing":"file:./nothing"},"dsh":{"profile":{"bundles":[]}}}`), 0o644)
	// The one that is there is broken, the one of then is not there.
	if done := back(t, env, name, 3); len(done.Warnings) > 0 {
		t.Errorf("warnings: %q", done.Warnings)
	}
}

func TestRollbackSaysWhatDoesNotCompose(t *testing.T) {
	env, name := lived(t)
	byHand(t, env, name, "cordis.patch.yml", []byte("- id: [\n"), 0o644)
	byHand(t, env, name, "mine", nil, 0o644)
	tx, err := staging.Begin(context.Background(), env.Home.Place(name), staging.Options{Command: "mends"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(tx.WriteFile("cordis.patch.yml", []byte("[]\n"), 0o644), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	done := back(t, env, name, 1)
	if !done.Changed || !slices.ContainsFunc(done.Warnings, func(w string) bool { return strings.Contains(w, "cordis.patch.yml") }) {
		t.Errorf("%+v", done)
	}
}

func TestUndeleteWithoutLockfile(t *testing.T) {
	env, name := lived(t)
	text := []byte(`{"dependencies":{"left":"1.0.0"},"dsh":{"profile":{"bundles":["@deepseek-ai/dsh-base"]}}}`)
	byHand(t, env, name, "package.json", text, 0o644)
	set(t, env, name, "3")
	if err := os.RemoveAll(env.Home.ProfileDir(name)); err != nil {
		t.Fatal(err)
	}
	done, err := Undelete(context.Background(), env, PluginOptions{Name: name, Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(done.Warnings) != 1 || !strings.Contains(done.Warnings[0], "dsh plugin --profile demo install") {
		t.Errorf("warnings: %q", done.Warnings)
	}
	if got, err := os.ReadFile(filepath.Join(env.Home.ProfileDir(name), "package.json")); err != nil || !bytes.Equal(got, text) {
		t.Errorf("package.json: %q, %v", got, err)
	}
	_, err = Undelete(context.Background(), env, PluginOptions{Name: name})
	if _, ok := errors.AsType[*ExistsError](err); !ok || fault.Hint(err) == "" {
		t.Errorf("a profile that is there: %v", err)
	}
}

// TestUndeleteTakesTheRemovedProfile lets an older profile of the name be kept as
// well: what comes back is the one that was removed.
func TestUndeleteTakesTheRemovedProfile(t *testing.T) {
	env, name := lived(t)
	large := bytes.Repeat([]byte("x"), 2<<20)
	byHand(t, env, name, "first.bin", large, 0o644)
	if _, err := replace(env, name, false); err != nil { // keeps the first
		t.Fatal(err)
	}
	set(t, env, name, "5")
	byHand(t, env, name, "second.bin", large, 0o644)
	for _, deleted := range []bool{false, true} {
		if deleted {
			if err := os.RemoveAll(env.Home.ProfileDir(name)); err != nil {
				t.Fatal(err)
			}
		} else if _, err := staging.RemoveDir(context.Background(), env.Home.Place(name), staging.Options{}); err != nil {
			t.Fatal(err)
		}
		done, err := Undelete(context.Background(), env, PluginOptions{Name: name, Offline: true})
		if err != nil {
			t.Fatal(err)
		}
		_, first := os.Stat(filepath.Join(env.Home.ProfileDir(name), "first.bin"))
		_, second := os.Stat(filepath.Join(env.Home.ProfileDir(name), "second.bin"))
		if first == nil || second != nil || !done.Removed || done.Kept == "" {
			t.Errorf("by hand %v: %+v, first %v, second %v", deleted, done, first, second)
		}
	}
}

func TestComposeGeneration(t *testing.T) {
	env, name := world(t)
	bundle := filepath.Join(env.Home.Dir(), "bundle")
	if err := os.Mkdir(bundle, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"package.json": `{"name":"bundle","version":"1.0.0","dsh":{"bundle":{"patch":"p.yml"}}}`,
		"p.yml":        "- insert: [{id: row, name: bundle, config: {a: 1}}]\n",
	} {
		if err := os.WriteFile(filepath.Join(bundle, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packages := store.Open(env.Home.StoreDir())
	entry, err := packages.AddFolder(context.Background(), bundle)
	if err != nil {
		t.Fatal(err)
	}
	integrity := entry.Integrity.String()
	if err := packages.Close(); err != nil {
		t.Fatal(err)
	}
	lock := "lockfileVersion: \"1\"\ndependencies:\n  bundle: \"file:./b\"\npackages:\n  node_modules/bundle:\n    version: 1.0.0\n    folder: \"./b\"\n    integrity: \"" + integrity + "\"\n"
	g := stateOf(4,
		"cordis.patch.yml", "- id: row\n  config: {a: 2}\n",
		"dsh-lock.yaml", lock,
		"package.json", `{"dependencies":{"bundle":"file:./b"},"dsh":{"profile":{"bundles":["bundle"]}}}`)
	// Nothing of it is on the disk.
	c, err := composeGeneration(env, name, g)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Notices)+len(c.Warnings) > 0 {
		t.Errorf("notices %q, warnings %q", c.Notices, c.Warnings)
	}
	if got := string(c.Tree.Dump()); !strings.Contains(got, "a: 2") {
		t.Errorf("it composes to\n%s", got)
	}
	if _, err := os.Lstat(env.Home.ProfileDir(name)); err == nil {
		t.Error("composing made the profile")
	}
	if err := os.RemoveAll(env.Home.StoreDir()); err != nil {
		t.Fatal(err)
	}
	c, err = composeGeneration(env, name, g)
	if err != nil || !slices.ContainsFunc(c.Notices, func(n string) bool { return strings.Contains(n, `skipping profile bundle "bundle"`) }) {
		t.Errorf("without the package: %v, %v", c, err)
	}
	for text, broken := range map[string]*staging.Generation{
		"generation 5 of profile demo has no package.json": stateOf(5, "a", ""),
		"package.json": stateOf(6, "package.json", "{"),
	} {
		if _, err := composeGeneration(env, name, broken); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
