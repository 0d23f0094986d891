//go:build external

package external

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"dsh/e2e/npmtest"
)

// server is a running verdaccio.
type server struct {
	url   string
	token string // of a user who may read and publish @acme/private
}

const verdaccioConfig = `
storage: ./storage
uplinks: {}
auth:
  htpasswd:
    file: ./htpasswd
    max_users: 10
security:
  api:
    jwt: # else each request has its password checked, which takes long on purpose
      sign: {expiresIn: 1d}
packages:
  '@acme/private':
    access: $authenticated
    publish: $authenticated
  '**':
    access: $all
    publish: $all
log: {type: stdout, format: pretty, level: error}
`

// startVerdaccio starts the server with an empty storage and stops it when the test ends.
func startVerdaccio(t *testing.T) server {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "conf.yml"), verdaccioConfig)
	address := freeAddress(t)
	cmd := exec.Command(filepath.Join(programs.node, "node"), programs.verdaccio, "-c", "conf.yml", "-l", address)
	cmd.Dir = dir
	exited := start(t, cmd)
	s := server{url: "http://" + address}
	waitForServer(t, s.url+"/-/ping", exited)
	s.token = s.addUser(t)
	return s
}

// start starts a server and stops it when the test ends. The channel is closed when it ends by itself.
func start(t *testing.T, cmd *exec.Cmd) <-chan struct{} {
	t.Helper()
	var output lockedBuffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // it is killed, so it always ends with an error
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-exited
		if t.Failed() {
			t.Logf("%s said:\n%s", filepath.Base(cmd.Args[1]), output.String())
		}
	})
	return exited
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func waitForServer(t *testing.T, url string, exited <-chan struct{}) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := http.Get(url); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-exited:
			t.Fatal("the server ended before it answered")
		case <-deadline:
			t.Fatal("the server did not answer within a minute")
		case <-tick.C:
		}
	}
}

func (s server) addUser(t *testing.T) string {
	t.Helper()
	body := `{"name": "tester", "password": "correct-horse-battery"}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, s.url+"/-/user/org.couchdb.user:tester", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var user struct{ Token string }
	if err := json.Unmarshal(answer, &user); err != nil || user.Token == "" {
		t.Fatalf("adding a user: %s %s (%v)", resp.Status, answer, err)
	}
	return user.Token
}

// authLine is the line of an .npmrc that gives the token to the server.
func (s server) authLine() string {
	return strings.TrimPrefix(s.url, "http:") + "/:_authToken=" + s.token + "\n"
}

// user is a machine whose home directory has the given .npmrc.
func (s server) user(t *testing.T, npmrc string) *machine {
	t.Helper()
	m := newMachine(t)
	home := filepath.Join(filepath.Dir(m.home), "user")
	writeFile(t, filepath.Join(home, ".npmrc"), npmrc)
	m.env = append(m.env, "HOME="+home, "USERPROFILE="+home, "NPM_CONFIG_USERCONFIG="+filepath.Join(home, ".npmrc"))
	return m
}

// publish publishes package folders with npm: each group one after another, the groups side by side.
func (s server) publish(t *testing.T, groups [][]string) {
	t.Helper()
	m := s.user(t, "registry="+s.url+"/\n"+s.authLine())
	var g errgroup.Group
	g.SetLimit(3)
	for _, group := range groups {
		g.Go(func() error {
			for _, folder := range group {
				tag := "latest"
				if strings.Contains(filepath.Base(folder), "-rc.") && len(group) > 1 {
					tag = "next"
				}
				cmd := exec.Command("npm", "publish", "--ignore-scripts", "--tag", tag)
				cmd.Dir = folder
				cmd.Env = append(os.Environ(), m.env...)
				if out, err := cmd.CombinedOutput(); err != nil {
					return fmt.Errorf("npm publish in %s: %w\n%s", folder, err, out)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// fixtures unpacks the packages of e2e/testdata/registry that the tests use, in groups of one name.
func fixtures(t *testing.T) [][]string {
	t.Helper()
	root := t.TempDir()
	var groups [][]string
	for _, group := range [][]string{
		{"is-odd_3.0.0", "is-odd_3.0.1"},
		{"is-number_6.0.0", "is-number_7.0.0"},
		{"left_1.0.0", "left_1.2.0", "left_2.0.0"},
		{"@acme+hello_1.0.0", "@acme+hello_1.1.0"},
		{"@acme+late_1.0.0", "@acme+late_2.0.0"},
		{"@acme+leaver_1.0.0", "@acme+leaver_2.0.0"},
		{"@acme+pre_1.0.0", "@acme+pre_2.0.0-rc.1"},
		{"@acme+stack_1.0.0"}, {"@acme+wants-left-1_1.0.0"}, {"@acme+wants-left-2_1.0.0"},
		{"@acme+peers_1.0.0"}, {"@acme+optional_1.0.0"}, {"@acme+scripts_1.0.0"}, {"@acme+bins_1.0.0"}, {"@acme+missing-dependency_1.0.0"},
		{"@acme+private_1.0.0"},
	} {
		var folders []string
		for _, base := range group {
			folder := filepath.Join(root, base)
			if err := npmtest.Unpack(filepath.Join("..", "testdata", "registry", base+".txtar"), folder); err != nil {
				t.Fatal(err)
			}
			folders = append(folders, folder)
		}
		groups = append(groups, folders)
	}
	return groups
}

// realBundles writes the public bundles of testdata/bundles.json as packages and gives their names and folders.
func realBundles(t *testing.T) (bundles []string, groups [][]string) {
	t.Helper()
	var list []struct {
		Manifest map[string]json.RawMessage
		Patch    string
	}
	if err := json.Unmarshal([]byte(readFile(t, "testdata/bundles.json")), &list); err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for i, b := range list {
		var name string
		var declared struct{ Bundle struct{ Patch string } }
		if err := json.Unmarshal(b.Manifest["name"], &name); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b.Manifest["dsh"], &declared); err != nil {
			t.Fatal(err)
		}
		text, err := json.MarshalIndent(b.Manifest, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		folder := filepath.Join(root, fmt.Sprint(i))
		writeFile(t, filepath.Join(folder, "package.json"), string(text))
		writeFile(t, filepath.Join(folder, filepath.FromSlash(declared.Bundle.Patch)), b.Patch)
		bundles = append(bundles, name)
		groups = append(groups, []string{folder})
	}
	return bundles, groups
}

func TestVerdaccio(t *testing.T) {
	s := startVerdaccio(t)
	bundles, folders := realBundles(t)
	s.publish(t, append(folders, fixtures(t)...))

	t.Run("TenBundles", func(t *testing.T) { testTenBundles(t, s, bundles) })
	t.Run("Verbs", func(t *testing.T) { testVerbs(t, s) })
	t.Run("Updates", func(t *testing.T) { testUpdates(t, s) })
	t.Run("Trees", func(t *testing.T) { testTrees(t, s) })
	t.Run("Tags", func(t *testing.T) { testTags(t, s) })
	t.Run("Cache", func(t *testing.T) { testCache(t, s) })
	t.Run("Private", func(t *testing.T) { testPrivate(t, s) })
	t.Run("Basic", func(t *testing.T) { testBasic(t, s) })
	t.Run("Set", func(t *testing.T) { testSet(t, s) })
}

// testTenBundles adds ten public bundles in one command; the reference launcher composes the same tree from the profile.
func testTenBundles(t *testing.T, s server, bundles []string) {
	m := s.user(t, "registry="+s.url+"/\n")
	m.dsh(t, append([]string{"plugin", "--profile", "ten", "add"}, bundles...)...)
	got := m.manifest(t, "ten")
	if len(got.Dependencies) != 10 || len(got.Dsh.Profile.Bundles) != 11 {
		t.Fatalf("dependencies %v, bundles %q", got.Dependencies, got.Dsh.Profile.Bundles)
	}
	dump := m.dsh(t, "ten", "--dump-config")
	list := m.dsh(t, "plugin", "--profile", "ten", "list")
	for _, name := range bundles {
		if !strings.Contains(dump.stdout, "# == "+name+"\n") && !strings.Contains(dump.stdout, name+"\n# ") {
			t.Errorf("no row of the dump comes from %s", name)
		}
		wantWords(t, list, name)
	}

	ours := m.dsh(t, "--installation", programs.reference, "ten", "--dump-config")
	theirs := m.launcher(t, "--profile", "ten", "--dump-config")
	if diff := cmp.Diff(theirs.stdout, ours.stdout); diff != "" {
		t.Errorf("dump (-launcher +dsh)\n%s", diff)
	}

	m.dsh(t, append([]string{"plugin", "--profile", "ten", "remove"}, bundles...)...)
	m.wantManifest(t, "ten", map[string]string{}, base)
	if diff := cmp.Diff([]string{}, m.installed(t, "ten")); diff != "" {
		t.Errorf("packages after the removal (-want +got)\n%s", diff)
	}
}

func testVerbs(t *testing.T, s server) {
	m := s.user(t, "registry="+s.url+"/\n")
	plugin := func(args ...string) result {
		t.Helper()
		return m.dsh(t, append([]string{"plugin", "--profile", "p"}, args...)...)
	}
	wantWords(t, plugin("add", "@acme/hello@~1.1.0", "is-odd"), "@acme/hello", "1.1.0", "is-odd", "3.0.1")
	m.wantManifest(t, "p", map[string]string{"@acme/hello": "~1.1.0", "is-odd": "^3.0.1"}, base, "@acme/hello")
	all := []string{"@acme/hello @acme/hello@1.1.0", "is-number is-number@6.0.0", "is-odd is-odd@3.0.1"}
	if diff := cmp.Diff(all, m.installed(t, "p")); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
	dump := m.dsh(t, "p", "--dump-config")
	wantLines(t, dump, "# == @acme/hello", "    greeting: good morning")

	before := readFile(t, m.profile("p", "package.json"))
	wantWords(t, plugin("ls"), "@acme/hello", "1.1.0", "is-odd", "3.0.1")
	if err := os.RemoveAll(m.profile("p", "node_modules")); err != nil {
		t.Fatal(err)
	}
	plugin("install")
	if diff := cmp.Diff(all, m.installed(t, "p")); diff != "" {
		t.Errorf("packages after install (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(before, readFile(t, m.profile("p", "package.json"))); diff != "" {
		t.Errorf("list and install changed the manifest (-before +after)\n%s", diff)
	}
	if diff := cmp.Diff(dump.stdout, m.dsh(t, "p", "--dump-config").stdout); diff != "" {
		t.Errorf("dump after install (-before +after)\n%s", diff)
	}

	plugin("rm", "is-odd")
	m.wantManifest(t, "p", map[string]string{"@acme/hello": "~1.1.0"}, base, "@acme/hello")
	if diff := cmp.Diff(all[:1], m.installed(t, "p")); diff != "" {
		t.Errorf("packages after the removal (-want +got)\n%s", diff)
	}
	wantWords(t, plugin("remove", "nothing"), "nothing")
	absent := m.tryDsh(t, "plugin", "--profile", "p", "remove", "--strict", "nothing")
	if absent.code == 0 {
		t.Errorf("removing what is not there succeeds with --strict\n%s", absent)
	}
	wantWords(t, absent, "nothing")

	broken := m.tryDsh(t, "plugin", "--profile", "p", "add", "@acme/missing-dependency", "left")
	if broken.code != 3 {
		t.Errorf("a missing dependency: want exit 3\n%s", broken)
	}
	wantWords(t, broken, "@acme/not-published", "@acme/missing-dependency")
	m.wantManifest(t, "p", map[string]string{"@acme/hello": "~1.1.0"}, base, "@acme/hello")
	if diff := cmp.Diff(all[:1], m.installed(t, "p")); diff != "" {
		t.Errorf("packages after the failure (-want +got)\n%s", diff)
	}
}

// testUpdates looks at packages that gain and lose their declaration in a later version.
func testUpdates(t *testing.T, s server) {
	m := s.user(t, "registry="+s.url+"/\n")
	m.dsh(t, "plugin", "--profile", "p", "add", "@acme/hello@~1.0.0", "@acme/late@1", "@acme/leaver@1")
	m.wantManifest(t, "p", map[string]string{"@acme/hello": "~1.0.0", "@acme/late": "^1.0.0", "@acme/leaver": "^1.0.0"}, base, "@acme/hello", "@acme/leaver")
	before := readFile(t, m.profile("p", "package.json"))
	m.dsh(t, "plugin", "--profile", "p", "update")
	if diff := cmp.Diff(before, readFile(t, m.profile("p", "package.json"))); diff != "" {
		t.Errorf("an update within the ranges changed the manifest (-before +after)\n%s", diff)
	}
	m.dsh(t, "plugin", "--profile", "p", "update", "--latest")
	m.wantManifest(t, "p", map[string]string{"@acme/hello": "~1.1.0", "@acme/late": "^2.0.0", "@acme/leaver": "^2.0.0"}, base, "@acme/hello", "@acme/late")
	dump := m.dsh(t, "p", "--dump-config")
	wantLines(t, dump, "# == @acme/hello", "# == @acme/late", "    greeting: good morning")
	if strings.Contains(dump.stdout, "leaver") {
		t.Errorf("the layer of @acme/leaver is still there\n%s", dump)
	}
}

// testTrees looks at nested versions, peers, optional dependencies, scripts and programs.
func testTrees(t *testing.T, s server) {
	m := s.user(t, "registry="+s.url+"/\n")
	r := m.dsh(t, "plugin", "--profile", "p", "add", "@acme/stack", "@acme/peers", "@acme/optional", "@acme/scripts", "@acme/bins")
	wantWords(t, r, "left-out", "@acme/peers")
	if strings.Contains(r.stdout+r.stderr, "maybe") {
		t.Errorf("an optional peer is reported\n%s", r)
	}
	got := versions(m.installed(t, "p"))
	want := map[string]bool{
		"@acme/stack@1.0.0": true, "@acme/wants-left-1@1.0.0": true, "@acme/wants-left-2@1.0.0": true, "left@1.0.0": true, "left@1.2.0": true, "left@2.0.0": true,
		"@acme/peers@1.0.0": true, "@acme/optional@1.0.0": true, "@acme/scripts@1.0.0": true, "@acme/bins@1.0.0": true,
	}
	if !got["left@1.2.0"] {
		delete(want, "left@1.2.0") // left 1.0.0 satisfies everyone who asks for 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
	// What Node.js finds from inside each package is what counts.
	for from, major := range map[string]string{"@acme/stack": "1", "@acme/wants-left-1": "1", "@acme/wants-left-2": "2"} {
		script := `const r = require("module").createRequire(process.argv[1] + "/package.json"); console.log(r("left/package.json").version)`
		found := succeeded(t, m.run(t, m.cwd, filepath.Join(programs.node, "node"), "-e", script, m.profile("p", "node_modules", from)))
		if !strings.HasPrefix(found.stdout, major+".") {
			t.Errorf("%s finds left %s, want %s", from, found.stdout, major)
		}
	}
	if _, err := os.Stat(m.profile("p", "node_modules", "@acme", "scripts", "script-ran.txt")); err == nil {
		t.Error("a lifecycle script was run")
	}
	hello := succeeded(t, m.run(t, m.cwd, m.profile("p", "node_modules", ".bin", "acme-hello")))
	if hello.stdout != "hello from bins\n" {
		t.Errorf("%s", hello)
	}
}

func testTags(t *testing.T, s server) {
	m := s.user(t, "registry="+s.url+"/\n")
	m.dsh(t, "plugin", "--profile", "p", "add", "@acme/pre")
	m.wantManifest(t, "p", map[string]string{"@acme/pre": "^1.0.0"}, base)
	m.dsh(t, "plugin", "--profile", "p", "add", "@acme/pre@next", "odd@npm:is-odd@3.0.0", "--save-exact")
	if diff := cmp.Diff([]string{"@acme/pre @acme/pre@2.0.0-rc.1", "is-number is-number@6.0.0", "odd is-odd@3.0.0"}, m.installed(t, "p")); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
	m.wantManifest(t, "p", map[string]string{"@acme/pre": "2.0.0-rc.1", "odd": "npm:is-odd@3.0.0"}, base)
}

// testPrivate takes one scope from verdaccio, with a token, and everything else from another registry.
func testPrivate(t *testing.T, s server) {
	other, err := npmtest.New(filepath.Join("..", "testdata", "registry"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	scoped := "registry=" + other.URL() + "/\n@acme:registry=" + s.url + "/\n"

	for what, npmrc := range map[string]string{"no token": scoped, "wrong token": scoped + strings.Replace(s.authLine(), s.token, "not-the-token", 1)} {
		m := s.user(t, npmrc)
		r := m.tryDsh(t, "plugin", "--profile", "p", "add", "@acme/private")
		if r.code != 3 {
			t.Errorf("%s: want exit 3\n%s", what, r)
		}
		wantWords(t, r, "@acme/private", "_authToken")
		if strings.Contains(r.stdout+r.stderr, "not-the-token") {
			t.Errorf("%s: the token is in the output\n%s", what, r)
		}
	}

	m := s.user(t, scoped+strings.Replace(s.authLine(), s.token, "${VERDACCIO_TOKEN}", 1))
	m.env = append(m.env, "VERDACCIO_TOKEN="+s.token)
	m.dsh(t, "plugin", "--profile", "p", "add", "@acme/private", "is-odd")
	if diff := cmp.Diff([]string{"@acme/private @acme/private@1.0.0", "is-number is-number@6.0.0", "is-odd is-odd@3.0.1"}, m.installed(t, "p")); diff != "" {
		t.Errorf("packages (-want +got)\n%s", diff)
	}
	for path := range other.Requests() {
		if strings.Contains(path, "@acme") {
			t.Errorf("the other registry was asked for %s", path)
		}
	}
	if len(other.Requests()) == 0 {
		t.Error("the other registry was asked for nothing")
	}
	for _, sent := range other.Authorizations() {
		if sent != "" {
			t.Errorf("the other registry was sent %q", sent)
		}
	}
	for _, name := range []string{"package.json", "dsh-lock.yaml"} {
		if strings.Contains(readFile(t, m.profile("p", name)), s.token) {
			t.Errorf("the token is in %s", name)
		}
	}
}

// testBasic asks with user and password, in both forms that npm has for them.
func testBasic(t *testing.T, s server) {
	host := strings.TrimPrefix(s.url, "http:") + "/:"
	encoded := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	for what, c := range map[string]struct {
		npmrc string
		code  int
	}{
		"_auth":              {host + "_auth=" + encoded("tester:correct-horse-battery"), 0},
		"username":           {host + "username=tester\n" + host + "_password=" + encoded("correct-horse-battery"), 0},
		"the wrong password": {host + "_auth=" + encoded("tester:wrong-horse"), 3},
	} {
		m := s.user(t, "registry=http://127.0.0.1:1/\n@acme:registry="+s.url+"/\n"+c.npmrc+"\n")
		r := m.tryDsh(t, "plugin", "--profile", "p", "add", "@acme/private")
		if r.code != c.code || strings.Contains(r.stdout+r.stderr, "horse") {
			t.Errorf("%s: want exit %d, and no password in the output\n%s", what, c.code, r)
		}
		if c.code != 0 {
			wantWords(t, r, "does not accept", s.url)
		}
	}
}

// testSet packs a profile with a private package, and adds the set where there is neither a token nor a registry.
func testSet(t *testing.T, s server) {
	m := s.user(t, "registry="+s.url+"/\n"+s.authLine())
	m.dsh(t, "plugin", "--profile", "p", "add", "@acme/private", "is-odd", "@acme/hello")
	m.dsh(t, "plugin", "--profile", "p", "pack", "-o", "set.tgz")
	set := filepath.Join(m.cwd, "set.tgz")
	other := s.user(t, "registry=http://127.0.0.1:1/\n")
	other.dsh(t, "plugin", "--profile", "q", "add", set, "--offline")
	if diff := cmp.Diff(m.installed(t, "p"), other.installed(t, "q")); diff != "" {
		t.Errorf("packages (-packed +added)\n%s", diff)
	}
	archive := succeeded(t, m.run(t, m.cwd, "tar", "-xzOf", set))
	if strings.Contains(archive.stdout, s.token) {
		t.Error("the token is in the set")
	}
}

// lockedBuffer collects what a running program writes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
