package profile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

const webManifest = `{
  "name": "dsh-profile-web",
  "private": true,
  "dependencies": {},
  "dsh": {
    "profile": {
      "bundles": [
        "@deepseek-ai/dsh-base",
        "@deepseek-ai/dsh-web-app"
      ],
      "patchReload": "live"
    }
  }
}
`

func testHome(t *testing.T) Home { return Home{filepath.Join(t.TempDir(), "home")} }

func name(t *testing.T, s string) Name {
	t.Helper()
	n, err := ParseName(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// files is the content of every file below dir by slash-separated path.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(dir, path))
		found[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestInit(t *testing.T) {
	home, web := testHome(t), name(t, "web")
	tmpl, err := LookupTemplate("web")
	if err != nil {
		t.Fatal(err)
	}
	created, err := Init(home, web, tmpl)
	if err != nil || !created {
		t.Fatalf("created %v, error %v", created, err)
	}
	want := map[string]string{
		"package.json":        webManifest,
		"cordis.patch.yml":    emptyPatch,
		"pnpm-workspace.yaml": "packages:\n  - .\n\nnodeLinker: hoisted\nautoInstallPeers: false\n",
	}
	if diff := cmp.Diff(want, files(t, home.ProfileDir(web))); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{emptyPatch, emptyRoot} {
		lines := strings.Split(text, "\n")
		if len(lines) != 5 || lines[3] != "[]" || lines[4] != "" {
			t.Errorf("not three comment lines and []:\n%s", text)
		}
		for _, line := range lines[:3] {
			if !strings.HasPrefix(line, "# ") {
				t.Errorf("no comment: %q", line)
			}
		}
	}

	// What is there is never overwritten; what is missing is added.
	for file := range want {
		want[file] = "mine " + file
		write(t, filepath.Join(home.ProfileDir(web), file), want[file])
	}
	if err := os.Remove(filepath.Join(home.ProfileDir(web), "pnpm-workspace.yaml")); err != nil {
		t.Fatal(err)
	}
	want["pnpm-workspace.yaml"] = workspace
	created, err = Init(home, web, tmpl)
	if err != nil || created {
		t.Fatalf("created %v, error %v", created, err)
	}
	if diff := cmp.Diff(want, files(t, home.ProfileDir(web))); diff != "" {
		t.Errorf("the second time (-want +got):\n%s", diff)
	}
}

func TestWrite(t *testing.T) {
	tmpl, err := LookupTemplate("headless")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), ".rescue.staging-1")
	if err := Write(dir, name(t, "rescue"), tmpl); err != nil {
		t.Fatal(err)
	}
	got := files(t, dir)
	if len(got) != 3 || !strings.Contains(got["package.json"], `"name": "dsh-profile-rescue"`) || !strings.Contains(got["package.json"], `"patchReload": "startup"`) {
		t.Errorf("got %v", got)
	}
	for file := range got {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), "mine")
		err := Write(dir, name(t, "rescue"), tmpl)
		if err == nil || !strings.HasSuffix(err.Error(), filepath.Join(dir, file)+" already exists") {
			t.Errorf("into a directory with %s: %v", file, err)
		}
		if now := files(t, dir); now[file] != "mine" {
			t.Errorf("%s is now %q", file, now[file])
		}
	}
}

func TestOpenInitialises(t *testing.T) {
	for _, shipped := range Templates() {
		home := testHome(t)
		p, err := open(home, name(t, shipped), false, onDisk)
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := LookupTemplate(shipped)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tmpl.Bundles(), p.Manifest.Bundles()); diff != "" || !p.Created {
			t.Errorf("%s: created %v (-want +got):\n%s", shipped, p.Created, diff)
		}
		if p, err = open(home, name(t, shipped), false, onDisk); err != nil || p.Created {
			t.Errorf("%s, the second time: created %v, error %v", shipped, p.Created, err)
		}
	}
}

func TestOpenCompletesLeftDirectory(t *testing.T) {
	home, web := testHome(t), name(t, "web")
	write(t, filepath.Join(home.ProfileDir(web), "cordis.patch.yml"), "- id: mine\n")
	p, err := open(home, web, false, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, p.Dir); got["cordis.patch.yml"] != "- id: mine\n" || got["package.json"] != webManifest {
		t.Errorf("got %v", got)
	}
}

func TestOpenRefusesLostProfile(t *testing.T) {
	for _, called := range []string{"web", "custom"} {
		for _, trace := range append([]string{"history"}, traces...) {
			home, n := testHome(t), name(t, called)
			write := func(file string) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644)); err != nil {
					t.Fatal(err)
				}
			}
			write(filepath.Join(home.ProfileDir(n), "notes.txt"))
			switch path := filepath.Join(home.ProfileDir(n), trace); trace {
			case "history":
				write(filepath.Join(home.StateDir(n), "generations", "1.tar.gz"))
			case manifestFile:
				if err := os.Symlink("not there", path); err != nil {
					t.Skip(err)
				}
			default:
				write(path)
			}
			before, err := os.ReadDir(home.ProfileDir(n))
			if err != nil {
				t.Fatal(err)
			}
			for _, open := range []func(Home, Name) (*Profile, error){Read, OpenForReading, OpenOrCreateForReading} {
				_, err := open(home, n)
				if missing, ok := errors.AsType[*MissingError](err); !ok || !missing.Lost {
					t.Errorf("%s with %s: %v", called, trace, err)
				}
				if want := "dsh profile repair " + called; fault.Hint(err) != want {
					t.Errorf("%s with %s: hint %q, want %q", called, trace, fault.Hint(err), want)
				}
			}
			if after, err := os.ReadDir(home.ProfileDir(n)); err != nil || len(after) != len(before) {
				t.Errorf("%s with %s: something was made: %v, %v", called, trace, after, err)
			}
		}
	}
}

func TestOpenMissing(t *testing.T) {
	home := testHome(t)
	_, err := open(home, name(t, "custom"), false, onDisk)
	if want := `profile "custom" does not exist; create it with 'dsh plugin --profile custom add <package>'`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if _, err := os.Stat(home.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the home was made: %v", err)
	}

	dir := home.ProfileDir(name(t, "my custom"))
	write(t, filepath.Join(dir, "cordis.patch.yml"), "[]\n")
	_, err = open(home, name(t, "my custom"), false, onDisk)
	if want := `profile "my custom" has no package.json in ` + dir; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if got, want := fault.Hint(err), `dsh profile repair 'my custom'`; got != want {
		t.Errorf("hint %q, want %q", got, want)
	}
	if diff := cmp.Diff(map[string]string{"cordis.patch.yml": "[]\n"}, files(t, dir)); diff != "" {
		t.Errorf("something was written (-want +got):\n%s", diff)
	}
}

func TestOpenOrCreate(t *testing.T) {
	home := testHome(t)
	p, err := OpenOrCreateForReading(home, Default)
	if err != nil || !p.Created {
		t.Fatalf("created %v, error %v", p, err)
	}
	want := strings.Replace(webManifest, "profile-web", "profile-default", 1)
	want = strings.Replace(want, ",\n        \"@deepseek-ai/dsh-web-app\"", "", 1)
	want = strings.Replace(want, ",\n      \"patchReload\": \"live\"", "", 1)
	if diff := cmp.Diff(want, string(p.Manifest.Bytes())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if p, err = OpenOrCreateForReading(home, name(t, "web")); err != nil || string(p.Manifest.Bytes()) != webManifest {
		t.Errorf("web: %v", err)
	}
}

func TestOpenRenews(t *testing.T) {
	manifest := func(bundles string) string {
		return "{\"x\": 1.0, \"dsh\": {\"profile\": {\"bundles\": [" + bundles + "], \"patchReload\": \"live\"}}}"
	}
	const base, web, headless = `"@deepseek-ai/dsh-base", `, `"@deepseek-ai/dsh-web-app", `, `"@deepseek-ai/dsh-headless"`
	const retired = `"@deepseek-ai/dsh-experimental-schedule-bundle"`
	tests := []struct{ name, profile, before, after string }{
		{"old headless", "headless", base + web + headless, base + headless},
		{"another profile with that list", "mine", base + web + headless, base + web + headless},
		{"one more", "headless", base + web + headless + `, "x"`, base + web + headless + `, "x"`},
		{"another order", "headless", web + base + headless, web + base + headless},
		{"retired", "mine", `"a", ` + retired + `, "b", ` + retired, `"a", "b"`},
		{"retired alone", "mine", retired, ""},
		{"nothing to do", "headless", base + headless, base + headless},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			home, n := testHome(t), name(t, test.profile)
			path := filepath.Join(home.ProfileDir(n), "package.json")
			write(t, path, manifest(test.before))
			for _, open := range []func(Home, Name) (*Profile, error){OpenForReading, OpenOrCreateForReading} {
				p, err := open(home, n)
				if err != nil {
					t.Fatal(err)
				}
				want := manifest(test.after)
				if diff := cmp.Diff(want, string(p.Manifest.Bytes())); diff != "" {
					t.Errorf("in memory (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want, files(t, p.Dir)["package.json"]); diff != "" {
					t.Errorf("on disk (-want +got):\n%s", diff)
				}
				if len(p.Warnings) > 0 {
					t.Errorf("warnings %q", p.Warnings)
				}
			}
		})
	}
}

func TestOpenBroken(t *testing.T) {
	home, web := testHome(t), name(t, "web")
	path := filepath.Join(home.ProfileDir(web), "package.json")
	for _, test := range []struct{ text, want string }{
		{"[]", "profile manifest " + path + " must hold a JSON object"},
		{"{\n  \"a\": 1,\n}", "profile manifest " + path + `:2:9: a comma is not allowed before "}"`},
	} {
		write(t, path, test.text)
		// Of a file that no profile has nobody knows what mends it.
		for _, elsewhere := range []string{"package.json", path} {
			if _, err := ParseManifest(elsewhere, []byte(test.text)); err == nil || fault.Hint(err) != "" {
				t.Errorf("%v has a hint: %s", err, fault.Hint(err))
			}
		}
		for _, open := range []func(Home, Name) (*Profile, error){OpenForReading, OpenOrCreateForReading} {
			_, err := open(home, web)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if hint := fault.Hint(err); !strings.HasPrefix(hint, "dsh profile repair web ") {
				t.Errorf("hint %q", hint)
			}
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := open(home, web, false, onDisk); err == nil || !strings.HasPrefix(err.Error(), "failed to read profile manifest "+path+": ") {
		t.Errorf("a directory: %v", err)
	}
}

func TestOpenUnwritable(t *testing.T) {
	home := testHome(t)
	// A link to nowhere stands where a directory must be: that stops root too.
	if err := os.MkdirAll(home.Dir(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "gone", "gone"), home.ProfilesDir()); err != nil {
		t.Fatal(err)
	}
	if _, err := open(home, name(t, "web"), false, onDisk); err == nil || !strings.HasPrefix(err.Error(), `creating profile "web": `) {
		t.Errorf("Open: %v", err)
	}
	p, err := OpenForReading(home, name(t, "web"))
	if err != nil {
		t.Fatal(err)
	}
	if string(p.Manifest.Bytes()) != webManifest || p.Created || len(p.Warnings) != 1 {
		t.Errorf("created %v, warnings %q, manifest\n%s", p.Created, p.Warnings, p.Manifest.Bytes())
	}
}

func TestOpenCannotUpdate(t *testing.T) {
	home, headless := testHome(t), name(t, "headless")
	refused := onDisk
	refused.update = func(string, []byte) error { return fs.ErrPermission }
	old := `{"dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-base", "@deepseek-ai/dsh-web-app", "@deepseek-ai/dsh-headless"]}}}`
	write(t, filepath.Join(home.ProfileDir(headless), "package.json"), old)

	_, err := open(home, headless, false, refused)
	if err == nil || !strings.HasPrefix(err.Error(), `updating the bundle list of profile "headless": `) || fault.ClassOf(err) != fault.Environment {
		t.Errorf("Open: %v", err)
	}
	p, err := openForReading(home, headless, false, refused)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{BaseBundle, "@deepseek-ai/dsh-headless"}, p.Manifest.Bundles()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(p.Warnings) != 1 || !strings.HasSuffix(p.Warnings[0], "; going on without writing it") {
		t.Errorf("warnings %q", p.Warnings)
	}
	if diff := cmp.Diff(map[string]string{"package.json": old}, files(t, p.Dir)); diff != "" {
		t.Errorf("something was written (-want +got):\n%s", diff)
	}
}

func TestConcurrentOpen(t *testing.T) {
	home, web := testHome(t), name(t, "web")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 8 {
		wg.Go(func() {
			p, err := open(home, web, false, onDisk)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if p.Created {
				made++
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Errorf("%d of them made it", made)
	}
	if got := files(t, home.ProfileDir(web)); len(got) != 3 || got["package.json"] != webManifest {
		t.Errorf("got %v", got)
	}
}

func TestWriteRoot(t *testing.T) {
	home := testHome(t)
	p, err := open(home, name(t, "web"), false, onDisk)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteRoot(); err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(p.RootPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteRoot(); err != nil {
		t.Fatal(err)
	}
	if second, err := os.Stat(p.RootPath()); err != nil || !os.SameFile(first, second) {
		t.Errorf("the same bytes were written again (%v)", err)
	}
	write(t, p.RootPath(), "- id: accumulated\n")
	if err := p.WriteRoot(); err != nil || files(t, p.Dir)["cordis.yml"] != emptyRoot {
		t.Errorf("other bytes were left (%v)", err)
	}
	if err := os.RemoveAll(p.Dir); err != nil {
		t.Fatal(err)
	}
	if err := p.WriteRoot(); err == nil || !strings.Contains(err.Error(), `writing the root of profile "web": `) {
		t.Errorf("without a directory: %v", err)
	}
}
