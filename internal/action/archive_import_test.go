package action

import (
	"bytes"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/archive"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/staging"
)

// archived writes an archive of a profile x with these files into a file.
func archived(t *testing.T, dir string, files map[string]string) string {
	t.Helper()
	var contents []archive.Content
	for name, text := range files {
		m := archive.Member{Path: archive.FilePath(name)}
		if strings.HasPrefix(name, "packages/") {
			sum := sha512.Sum512([]byte(text))
			m = archive.Member{Path: name, Integrity: "sha512-" + base64.StdEncoding.EncodeToString(sum[:])}
		}
		contents = append(contents, archive.Content{Member: m, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }})
	}
	var b bytes.Buffer
	if err := archive.Write(&b, archive.Header{Profile: "x"}, contents); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "x.tar.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// hash is an integrity that no content has.
var hash = "sha512-" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{1}, sha512.Size))

func lockText(wanted, node string) string {
	return fmt.Sprintf("lockfileVersion: \"1\"\ndependencies:\n  a: %q\npackages:\n  node_modules/a:\n    version: 1.0.0\n%s", wanted, node)
}

func manifestText(spec string) string { return fmt.Sprintf(`{"dependencies": {"a": %q}}`, spec) }

// TestOpenArchiveRefuses holds what whole, well-formed archives say against what
// they may say.
func TestOpenArchiveRefuses(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		class fault.Class
		says  string
	}{
		{"no manifest", map[string]string{"x": ""}, fault.Package, "holds no package.json"},
		{"a broken manifest", map[string]string{"package.json": "{"}, fault.Package, "package.json:1:2"},
		{"no lockfile", map[string]string{"package.json": manifestText("1.0.0")}, fault.Package, "holds no dsh-lock.yaml"},
		{"a broken lockfile", map[string]string{"package.json": "{}", "dsh-lock.yaml": "x"}, fault.Package, "line 1"},
		{"a lockfile for other versions", map[string]string{"package.json": manifestText("2.0.0"), "dsh-lock.yaml": lockText("1.0.0", "    integrity: \""+hash+"\"\n")},
			fault.Package, "package.json asks for a 2.0.0, and dsh-lock.yaml was made for 1.0.0"},
		{"a lockfile that says what it does not hold", map[string]string{"package.json": manifestText("2.0.0"), "dsh-lock.yaml": lockText("2.0.0", "    integrity: \""+hash+"\"\n")},
			fault.Package, "dsh-lock.yaml holds a@1.0.0 for it"},
		{"a lockfile for more", map[string]string{"package.json": "{}", "dsh-lock.yaml": lockText("1.0.0", "    integrity: \""+hash+"\"\n")},
			fault.Package, "depends on a, and package.json does not"},
		{"a lockfile that lacks a package", map[string]string{"package.json": manifestText("1.0.0"), "dsh-lock.yaml": lockText("1.0.0", "    integrity: \""+hash+"\"\n    dependencies:\n      b: 1.0.0\n")},
			fault.Package, "a@1.0.0, which needs b"},
		{"an absolute link", map[string]string{"package.json": manifestText("link:/etc"), "dsh-lock.yaml": lockText("link:/etc", "    link: /etc\n")},
			fault.Policy, "a path on its sender's machine"},
		{"a link to the user's home", map[string]string{"package.json": manifestText("link:~/x"), "dsh-lock.yaml": lockText("link:~/x", "    link: \"~/x\"\n")},
			fault.Policy, "a path on its sender's machine"},
		{"a link upwards", map[string]string{"package.json": manifestText("link:../x"), "dsh-lock.yaml": lockText("link:../x", "    link: \"../x\"\n")},
			fault.Policy, "a path on its sender's machine"},
		{"a link that comes back to where this is checked", map[string]string{"package.json": manifestText("link:../profile/x"), "dsh-lock.yaml": lockText("link:../profile/x", "    link: x\n"), "x/package.json": "{}"},
			fault.Policy, "a path on its sender's machine"},
		{"a folder upwards", map[string]string{"package.json": manifestText("file:x/../../y"), "dsh-lock.yaml": lockText("file:x/../../y", "    folder: \"../y\"\n    integrity: \""+hash+"\"\n")},
			fault.Policy, "a path on its sender's machine"},
		{"a bare path", map[string]string{"package.json": manifestText("../x"), "dsh-lock.yaml": lockText("../x", "    link: \"../x\"\n")},
			fault.Policy, "a path on its sender's machine"},
		{"a lockfile that links elsewhere below", map[string]string{"package.json": manifestText("1.0.0"), "dsh-lock.yaml": lockText("1.0.0", "    integrity: \""+hash+"\"\n  node_modules/b:\n    version: 1.0.0\n    link: \"../../x\"\n")},
			fault.Policy, "which is not inside the profile"},
		{"a lockfile that links to the root", map[string]string{"package.json": manifestText("1.0.0"), "dsh-lock.yaml": lockText("1.0.0", "    integrity: \""+hash+"\"\n  node_modules/b:\n    version: 1.0.0\n    link: /etc\n")},
			fault.Policy, "which is not inside the profile"},
		{"a link to nothing", map[string]string{"package.json": manifestText("link:./x"), "dsh-lock.yaml": lockText("link:./x", "    link: x\n")},
			fault.Package, "which the archive does not hold"},
		{"another spelling of the layer", map[string]string{"package.json": "{}", "Cordis.patch.yml": "[]"},
			fault.Policy, `"Cordis.patch.yml", which some systems take for cordis.patch.yml`},
		{"another letter in the manifest", map[string]string{"package.j\u017fon": "{}"},
			fault.Policy, "which some systems take for package.json"},
		{"another spelling of the registries", map[string]string{"package.json": "{}", "a/.NPMRC": "_auth=x"},
			fault.Policy, `"a/.NPMRC", which some systems take for .npmrc`},
		{"a git repository", map[string]string{"package.json": manifestText("git+ssh://host/x"), "dsh-lock.yaml": lockText("git+ssh://host/x", "    integrity: \""+hash+"\"\n")},
			fault.Package, "git"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env, _ := world(t)
			a, err := OpenArchive(context.Background(), env, archived(t, t.TempDir(), tt.files), ImportOptions{})
			if err == nil || a != nil {
				t.Fatal("it was accepted")
			}
			if fault.ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("class %v, %q; want class %v and %q", fault.ClassOf(err), err, tt.class, tt.says)
			}
			if left, _ := os.ReadDir(env.Home.Dir()); len(left) > 0 {
				t.Errorf("something was made: %v", left)
			}
		})
	}
}

// TestImportChecksContents gives packages other contents than the lockfile has.
func TestImportChecksContents(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"an archive": {"package.json": manifestText("file:./a.tgz"), "a.tgz": "no gzip", "dsh-lock.yaml": lockText("file:./a.tgz", "    archive: a.tgz\n    integrity: \""+hash+"\"\n")},
		"a folder":   {"package.json": manifestText("file:./a"), "a/package.json": `{"name": "a"}`, "dsh-lock.yaml": lockText("file:./a", "    folder: a\n    integrity: \""+hash+"\"\n")},
	} {
		t.Run(name, func(t *testing.T) {
			env, _ := world(t)
			ctx := context.Background()
			a, err := OpenArchive(ctx, env, archived(t, t.TempDir(), files), ImportOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			_, err = Import(ctx, env, a, ImportOptions{Offline: true})
			if err == nil || !strings.Contains(err.Error(), "content does not match its integrity") {
				t.Errorf("it was imported, or failed for something else: %v", err)
			}
			profiles, err := os.ReadDir(env.Home.ProfilesDir())
			if err != nil || len(profiles) > 0 {
				t.Errorf("something was made: %v, %v", profiles, err)
			}
		})
	}
}

// A package that an archive brings under another package's hash never reaches
// the store, where every profile would take it for that one.
func TestArchiveCannotPoisonTheStore(t *testing.T) {
	env, _ := world(t)
	var b bytes.Buffer
	open := func(text string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(text)), nil }
	}
	err := archive.Write(&b, archive.Header{Profile: "x"}, []archive.Content{
		{Member: archive.Member{Path: archive.FilePath("package.json")}, Open: open("{}")},
		{Member: archive.Member{Path: archive.PackagePath("a-1.0.0.tgz"), Integrity: hash}, Open: open("evil")},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.tar.gz")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = OpenArchive(context.Background(), env, file, ImportOptions{})
	if err == nil || !strings.Contains(err.Error(), "packages/a-1.0.0.tgz: it is not the package of its integrity") {
		t.Errorf("it was accepted, or failed for something else: %v", err)
	}
}

func TestImportFromAnAddress(t *testing.T) {
	file := archived(t, t.TempDir(), map[string]string{"package.json": `{"name": "dsh-profile-x"}`, "cordis.patch.yml": "[]\n"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/x.tar.gz" {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, file)
	}))
	defer server.Close()
	env, _ := world(t)
	ctx := context.Background()
	a, err := OpenArchive(ctx, env, server.URL+"/x.tar.gz", ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Whoever prunes holds all profiles while he waits for the store; the import
	// must not hold that while it waits for its profile.
	soon, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := PruneStore(soon, env, PruneOptions{}); err != nil {
		t.Errorf("the store cannot be pruned before the profile is made: %v", err)
	}
	done, err := Import(ctx, env, a, ImportOptions{Name: "y"})
	if err := errors.Join(err, a.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(done.Dir, "package.json"))
	if diff := cmp.Diff(`{"name": "dsh-profile-y"}`, string(text)); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	left, err := filepath.Glob(filepath.Join(env.Home.StoreDir(), ".dsh-tmp-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("the download is still there: %v, %v", left, err)
	}
	for address, want := range map[string]string{"/x.tar.gz": "dsh profile import --name NAME " + server.URL + "/x.tar.gz", "/x.tar.gz?key=s3cret": "the same command with --name NAME"} {
		a, err := OpenArchive(ctx, env, server.URL+address, ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = a.CheckName(env, ImportOptions{Name: "y"})
		if diff := cmp.Diff(want, fault.Hint(err)); diff != "" {
			t.Error(diff)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := OpenArchive(ctx, env, server.URL+"/y.tar.gz", ImportOptions{}); fault.ClassOf(err) != fault.Package {
		t.Errorf("an address with nothing there: %v", err)
	}
	if _, err := OpenArchive(ctx, env, server.URL+"/x.tar.gz", ImportOptions{Offline: true}); fault.ClassOf(err) != fault.Network {
		t.Errorf("offline: %v", err)
	}
}

// Only what would be left out can be wished for.
func TestImportIncludes(t *testing.T) {
	env, _ := world(t)
	ctx := context.Background()
	file := archived(t, t.TempDir(), map[string]string{"package.json": "{}", ".npmrc": "_auth=x\n", "a/.npmrc": "_auth=x\n", ".env": "A=b\n"})
	for include, want := range map[string]string{"": "", ".npmrc": ".npmrc", "a/.npmrc": "a/.npmrc", "nothing": "refused", ".env": "refused", "b/.npmrc": "refused", "./.npmrc": "refused"} {
		opts := ImportOptions{}
		if include != "" {
			opts.Include = []string{include}
		}
		a, err := OpenArchive(ctx, env, file, opts)
		if want == "refused" {
			if fault.ClassOf(err) != fault.Other || !strings.Contains(err.Error(), "--include "+include+": it holds no .npmrc of that name") {
				t.Errorf("--include %s: %v", include, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{".npmrc", "a/.npmrc"} {
			if text, _ := a.text(name); (len(text) > 0) != (name == want) {
				t.Errorf("--include %q: %s is %q", include, name, text)
			}
		}
	}
}

func TestRegistriesOnly(t *testing.T) {
	for line, kept := range map[string]bool{
		"registry=https://r.example.com/":              true,
		" registry = http://r.example.com/npm/ ":       true,
		"@scope:registry=https://r.example.com/":       true,
		"registry=https://r.example.com/${NPM_TOKEN}/": false,
		"registry=https://user:pass@r.example.com/":    false,
		"registry=https://r.example.com/?token=x":      false,
		"registry=file:///etc/passwd":                  false,
		"registry":                                     false,
		"@scope:registry[]=https://r.example.com/":     false,
		"//r.example.com/:_authToken=x":                false,
		"//r.example.com/:_authToken=${NPM_TOKEN}":     false,
		"//evil/:registry=https://r.example.com/":      false,
		"_auth=x":                        false,
		"strict-ssl=false":               false,
		"proxy=http://evil.example.com/": false,
		"cafile=/tmp/x":                  false,
		"registry=https://a.example.com/\rstrict-ssl=0": false,
	} {
		text, left := registriesOnly([]byte(line+"\n"), refusedOfOwn)
		if got := len(text) > 0 && len(left) == 0; got != kept {
			t.Errorf("%q is kept: %v", line, got)
		}
		if got := refusedOfOthers(strings.TrimSpace(line)) == ""; got != (kept && !strings.Contains(line, "http:")) {
			t.Errorf("%q of somebody else is kept: %v", line, got)
		}
	}
}

func TestSettingsIn(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{
		{"package.json", `{"scripts": {"preinstall": "x", "test": "y"}}`, "has scripts that npm and pnpm run when they install: preinstall"},
		{"package.json", `{"scripts": {"test": "y"}}`, ""},
		{".npmrc", "# c\nregistry=https://r.example.com/\n//r.example.com/:_authToken=s3cret\n", "sets registry=https://r.example.com/, //r.example.com/:_authToken"},
		{".npmrc", "\n", ""},
		{".env", "A=s3cret\nexport NODE_OPTIONS='--require x'\nK=\"s3\ncret=\"\n", "sets A, NODE_OPTIONS, K"},
		{"sub/.ENV", "A=s3cret", "sets A"},
		{".env.local", "A=s3cret", "sets A"},
		{".env.example", "A=", ""},
		{".pnpmfile.cjs", "", "is code that pnpm runs"},
		{".yarnrc.yml", "", "can name code that yarn runs"},
		{"pnpm-workspace.yaml", "allowBuilds: {a: true, b: false}\n", "lets pnpm run scripts of a"},
		{"pnpm-workspace.yaml", "onlyBuiltDependencies: [a, b]\n", "lets pnpm run scripts of a, b"},
		{"pnpm-workspace.yaml", "packages: []\n", ""},
		{"pnpm-workspace.yaml", "a: [", "cannot be read, so that nobody knows what pnpm would run by it"},
		{"readme.md", "A=b", ""},
	} {
		want := []PlanSetting{}
		if tt.want != "" {
			want = append(want, PlanSetting{tt.file, tt.want})
		}
		if diff := cmp.Diff(want, settingsIn([]staging.SavedFile{{Path: tt.file, Data: []byte(tt.text)}})); diff != "" {
			t.Errorf("%s %q\n%s", tt.file, tt.text, diff)
		}
	}
}

func TestIsSecretFile(t *testing.T) {
	for name, want := range map[string]bool{
		".env": true, ".env.local": true, ".ENV": true, ".env.production": true, ".npmrc": true, ".netrc": true, "server.pem": true, "id.key": true,
		".env.example": false, ".env.sample": false, "env": false, "keys.md": false, "package.json": false, ".environment": false,
	} {
		if got := isSecretFile(name); got != want {
			t.Errorf("%s is secret: %v", name, got)
		}
	}
}

func TestSecretPlaces(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"- {id: a, config: {apiKey: x, region: y}}", []string{"a.apiKey"}},
		{"- insert: [{id: a, name: p, config: {list: [{token: x}, {token: y}]}}]", []string{"a.list.token", "a.list.token"}},
		{"- insert: [{id: g, name: 'cordis:group', group: true, config: [{id: b, name: p, config: {password: x}}]}]", []string{"b.password"}},
		{"- {id: a, config: {args: ['--token', x]}}", []string{"a.args.1"}},
		{"- {id: a, config: {url: 'https://u:p@host/'}}", []string{"a.url"}},
		{"- {id: a, config: {apiKey: !!js process.env.KEY}}", nil},
		{"- {id: a, config: {apiKey: ''}}", nil},
		{"- {id: a, config: {apiKeyEnv: KEY}}", nil},
	} {
		patches, err := compose.ParsePatches(compose.Source{File: "p.yml", Dir: anyDir}, []byte(tt.text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, secretPlaces(patches[0].Map)); diff != "" {
			t.Errorf("%s\n%s", tt.text, diff)
		}
	}
}

func TestPlaceIn(t *testing.T) {
	for _, tt := range []struct{ line, dir, want string }{
		{"name: /home/u/x.js # mine", "/home/u", "/home/u/x.js"},
		{`"file:/home/u"`, "/home/u", "/home/u"},
		{"/home/user", "/home/u", ""},
		{"nothing", "/home/u", ""},
		{"a/b", "/", ""},
	} {
		if got := placeIn(tt.line, tt.dir); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.line, got, tt.want)
		}
	}
}

// An existing profile is never touched by an import, not even when it comes up
// while the archive is read.
func TestImportIsTooLate(t *testing.T) {
	env, _ := world(t)
	ctx := context.Background()
	a, err := OpenArchive(ctx, env, archived(t, t.TempDir(), map[string]string{"package.json": "{}"}), ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(env.Home.ProfilesDir(), "x")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(ctx, env, a, ImportOptions{}); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("%v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "package.json" {
		t.Errorf("%v, %v", entries, err)
	}
	if _, err := os.Stat(env.Home.StoreDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store was made: %v", err)
	}
}
