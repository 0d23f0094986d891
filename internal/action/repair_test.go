package action

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

func TestRepeatedDependencies(t *testing.T) {
	for text, want := range map[string][]string{
		`{}`:                                     nil,
		`{"dependencies": {"a": "1", "b": "1"}}`: nil,
		`{"dependencies": {"a": "1", "b": "1", "a": "2"}}`:                         {"a"},
		`{"dependencies": {"b": "1"}, "devDependencies": {"a": "b", "b": "a"}}`:    {"b"},
		"\ufeff" + `{"optionalDependencies": {"a": "1", "a": "1", "c": {"a": 1}}}`: {"a"},
		`{"dependencies": {"a": "a"}, "other": {"a": "1"}}`:                        nil,
		`{"dependencies": ["a", "a"]}`:                                             nil,
		`{"dependencies": `:                                                        nil,
	} {
		if diff := cmp.Diff(want, repeatedDependencies([]byte(text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

func TestAsJSON(t *testing.T) {
	for text, want := range map[string]string{
		"{\"a\": 1, // one\n}":                             "{\"a\": 1        \n}",
		"\ufeff{\"a\": [1,],}":                             "{\"a\": [1 ] }",
		"\xff\xfe{\x00\"\x00\xe4\x00\"\x00:\x001\x00}\x00": "{\"ä\":1}",
		"\xfe\xff\x00{\x00}":                               "{}",
		"{\"a\": ":                                         "",
		"":                                                 "",
	} {
		got, how := asJSON([]byte(text))
		if diff := cmp.Diff(want, string(got)); diff != "" || (how == "") != (want == "") {
			t.Errorf("%q: %s%s", text, diff, how)
		}
	}
}

func TestWithoutEmptyList(t *testing.T) {
	for text, want := range map[string]string{
		"# c\n[]\n- id: a\n":     "# c\n- id: a\n",
		"[]\r\n- id: a\r\n":      "- id: a\r\n",
		"- id: a\n  x:\n  []\n":  "- id: a\n  x:\n",
		"- id: a\n":              "",
		"[]\n- id: a\n[]\n":      "",
		"# only [] in a comment": "",
	} {
		if diff := cmp.Diff(want, string(withoutEmptyList([]byte(text)))); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func TestIsOwnBeside(t *testing.T) {
	for name, want := range map[string]bool{
		".x.staging-0123456789ab": true, ".x.backup-0123456789ab": true, ".x.backup-copied-0123456789ab": true,
		".y.staging-0123456789ab": false, ".x.staging-mine": false, "x.staging-0123456789ab": false, ".x": false,
	} {
		if isOwnBeside(name, "x") != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// broken is a profile with a patch file that cannot be read.
func broken(t *testing.T) (Env, RepairOptions, string) {
	t.Helper()
	none := func(string) string { return "" }
	home, err := profile.ResolveHome(t.TempDir(), none)
	if err != nil {
		t.Fatal(err)
	}
	name, err := profile.ParseName("x")
	if err != nil {
		t.Fatal(err)
	}
	if err := profile.Write(home.ProfileDir(name), name, profile.BaseTemplate()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home.ProfileDir(name), patchName)
	put(t, file, "- a: [\n")
	env := Env{Home: home, Dir: t.TempDir(), Getenv: none, Installation: installation.Embedded()}
	return env, RepairOptions{PluginOptions: PluginOptions{Name: name}}, file
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What was not shown is not mended.
func TestMendLeavesWhatWasNotShown(t *testing.T) {
	env, opts, file := broken(t)
	shown, err := Diagnose(context.Background(), env, opts)
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(filepath.Dir(file), mainFile)
	put(t, manifest, "{")
	_, err = Mend(context.Background(), env, opts, shown)
	if err == nil || fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), "was changed while its damages were shown") {
		t.Fatalf("%v", err)
	}
	for path, want := range map[string]string{file: "- a: [\n", manifest: "{"} {
		if text, err := os.ReadFile(path); string(text) != want {
			t.Errorf("%s holds %q, %v", path, text, err)
		}
	}
}

// What a person mended meanwhile stays as the person left it.
func TestMendLeavesWhatIsMended(t *testing.T) {
	env, opts, file := broken(t)
	shown, err := Diagnose(context.Background(), env, opts)
	if err != nil {
		t.Fatal(err)
	}
	put(t, file, "- id: mine\n  disabled: true\n")
	done, err := Mend(context.Background(), env, opts, shown)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(file); string(text) != "- id: mine\n  disabled: true\n" || done.Left != 0 {
		t.Errorf("%q, %v, %+v", text, err, done)
	}
}

// The copy of a broken file is for those who could read the file.
func TestMendKeepsBrokenFilesPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are not in the mode")
	}
	env, opts, patch := broken(t)
	manifest, settings := filepath.Join(filepath.Dir(patch), mainFile), filepath.Join(filepath.Dir(patch), install.WorkspaceName)
	put(t, manifest, "{")
	put(t, settings, "a: [")
	for file, mode := range map[string]os.FileMode{patch: 0o600, manifest: 0o640, settings: 0o644} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	shown, err := Diagnose(context.Background(), env, opts)
	if err != nil {
		t.Fatal(err)
	}
	done, err := Mend(context.Background(), env, opts, shown)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]os.FileMode{}
	for _, file := range append(done.Kept, patch, manifest, settings) {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		got[file] = info.Mode().Perm()
	}
	want := map[string]os.FileMode{
		patch: 0o600, manifest: 0o640, settings: 0o644,
		patch + ".broken-1": 0o600, manifest + ".broken-1": 0o640, settings + ".broken-1": 0o644,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a change left is found beside the directory, also where a link leads to
// it; what stands beside the link is not the profile's.
func TestMendFindsLeftovers(t *testing.T) {
	for name, linked := range map[string]bool{"a directory": false, "a link": true} {
		t.Run(name, func(t *testing.T) {
			env, opts, file := broken(t)
			dir := env.Home.ProfileDir(opts.Name)
			put(t, file, "[]\n")
			own, other := filepath.Join(filepath.Dir(dir), ".x.staging-0123456789ab"), filepath.Join(filepath.Dir(dir), ".real.staging-0123456789ab")
			if linked {
				real := filepath.Join(t.TempDir(), "real")
				if err := errors.Join(os.Rename(dir, real), os.Symlink(real, dir)); err != nil {
					t.Skip("no links here: ", err)
				}
				own, other = filepath.Join(filepath.Dir(real), ".real.staging-0123456789ab"), own
			}
			if err := errors.Join(os.Mkdir(own, 0o755), os.Mkdir(other, 0o755)); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(own, "lock"), "{}\n")
			own, err := filepath.EvalSymlinks(own)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := Diagnose(context.Background(), env, opts)
			if err != nil {
				t.Fatal(err)
			}
			done, err := Mend(context.Background(), env, opts, shown)
			if err != nil {
				t.Fatal(err)
			}
			var found, mended []string
			for _, d := range shown.Damages {
				if d.Code == Leftover {
					found = append(found, d.File)
				}
			}
			for _, d := range done.Damages {
				if d.Code == Leftover && d.Mended {
					mended = append(mended, d.File)
				}
			}
			if diff := cmp.Diff([][]string{{own}, {own}}, [][]string{found, mended}); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Lstat(other); err != nil {
				t.Error(err)
			}
		})
	}
}

// The home's patch is changed after the profile. Where that fails, it is told
// what was changed, and the row is still there to be switched off.
func TestMendTellsOfTheProfileWhenTheHomeFails(t *testing.T) {
	for name, fails := range map[string]bool{"it works": false, "it fails": true} {
		t.Run(name, func(t *testing.T) {
			env, opts, _ := broken(t)
			opts.Rows = true
			home := env.Home.PatchPath()
			put(t, home, "- insert: [{id: lost, name: my-plugin}]\n")
			shown := diagnosed(t, env, opts)
			if fails {
				if err := os.MkdirAll(env.Home.Path("state", editLock), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			done, err := Mend(context.Background(), env, opts, shown)
			if err != nil {
				t.Fatal(err)
			}
			told := slices.ContainsFunc(done.Warnings, func(w string) bool { return strings.Contains(w, "row lost of the home's patch was not switched off: ") })
			if !done.Changed || done.Saved == 0 || done.HomeChanged == fails || told != fails || (done.Left == 1) != fails {
				t.Errorf("%+v", done)
			}
			text, err := os.ReadFile(home)
			if err != nil || strings.Contains(string(text), "disabled: true") == fails {
				t.Errorf("the home's patch: %q, %v", text, err)
			}
		})
	}
}

func diagnosed(t *testing.T, env Env, opts RepairOptions) *Repair {
	t.Helper()
	shown, err := Diagnose(context.Background(), env, opts)
	if err != nil {
		t.Fatal(err)
	}
	return shown
}

// Damaged generations are told of, and a manifest is found without them.
func TestLastManifestBesideDamagedGenerations(t *testing.T) {
	for name, c := range map[string]struct {
		damaged int // of three generations, from the newest
		from    string
	}{
		"none": {0, "generation 3 of "}, "some": {2, "generation 1 of "}, "all": {3, "what a fresh profile has"},
	} {
		t.Run(name, func(t *testing.T) {
			env, name := lived(t)
			files, err := filepath.Glob(filepath.Join(env.Home.StateDir(name), "generations", "*.tar.gz"))
			if err != nil || len(files) != 3 {
				t.Fatal(files, err)
			}
			for _, file := range files[3-c.damaged:] {
				put(t, file, "no archive")
			}
			put(t, filepath.Join(env.Home.ProfileDir(name), mainFile), "{")

			_, told, err := safeProfile(env, name, staging.View{})
			if err != nil {
				t.Fatal(err)
			}
			shown := diagnosed(t, env, RepairOptions{PluginOptions: PluginOptions{Name: name}})
			of := func(list []string) bool {
				return strings.Contains(strings.Join(list, "\n"), "left out of the history: ")
			}
			if !strings.Contains(told[0], "for this once it is taken from "+c.from) || of(told) != (c.damaged > 0) {
				t.Errorf("safe: %q", told)
			}
			if len(shown.Damages) == 0 || !strings.HasPrefix(shown.Damages[0].Mend, "it becomes "+c.from) || of(shown.Warnings) != (c.damaged > 0) {
				t.Errorf("repair: %+v", shown)
			}
		})
	}
}

// A relative link leads on from the directory of the profile, also where a link
// leads to that.
func TestLostLinkOfLinkedProfile(t *testing.T) {
	env, opts, file := broken(t)
	dir, real := filepath.Dir(file), filepath.Join(t.TempDir(), "real")
	put(t, filepath.Join(dir, mainFile), `{"dependencies": {"my-plugin": "link:../my-plugin"}, "dsh": {"profile": {"bundles": []}}}`)
	if err := errors.Join(os.Rename(dir, real), os.Symlink(real, dir)); err != nil {
		t.Skip("no links here: ", err)
	}
	for _, there := range []bool{true, false} {
		change := func(path string) error { return os.Mkdir(path, 0o755) }
		if !there {
			change = os.Remove
		}
		if err := change(filepath.Join(filepath.Dir(real), "my-plugin")); err != nil {
			t.Fatal(err)
		}
		lost := slices.ContainsFunc(diagnosed(t, env, opts).Damages, func(d Damage) bool { return d.Code == LinkLost })
		if lost == there {
			t.Errorf("the folder is there: %v, the link is lost: %v", there, lost)
		}
	}
}
