package e2e

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dsh/e2e/npmtest"
)

const (
	secret      = "s3cret-t0ken"
	mostMemory  = 256 << 20        // bytes that dsh may hold whatever a registry does
	mostTime    = 30 * time.Second // that it may take, with the time-outs and retries of these tests, on a machine with much to do
	mostWork    = 10 * time.Second // of the processor
	longMessage = 4000             // bytes of what it says
)

// hostileCase is one way in which a registry misbehaves.
type hostileCase struct {
	name  string
	on    func(path string) bool
	fault func(other string) npmtest.Fault // other is the address of another server
	want  []int                            // exit codes, one of them
	says  string                           // what the message holds besides host and package
	adds  string                           // what is added, if not victim
	plain bool                             // it is a fault of HTTP/1.1 only
	heavy bool                             // much goes over the wire: alone, and not for both protocols and both commands
}

func hostileCases() []hostileCase {
	document, archive := npmtest.DocumentsOf("victim"), npmtest.ArchivesOf("victim")
	always := func(f npmtest.Fault) func(string) npmtest.Fault { return func(string) npmtest.Fault { return f } }
	fresh := func(f func() npmtest.Fault) func(string) npmtest.Fault {
		return func(string) npmtest.Fault { return f() }
	}
	drop := func(times int32, ranges bool) func(string) npmtest.Fault {
		return fresh(func() npmtest.Fault { return npmtest.Drop(times, ranges) })
	}
	refuse := func(times int32, status int, header ...string) func(string) npmtest.Fault {
		return fresh(func() npmtest.Fault { return npmtest.Refuse(times, status, header...) })
	}
	say := func(kind, body string) func(string) npmtest.Fault { return always(npmtest.Say(kind, body)) }
	rewrite := func(from, to string) func(string) npmtest.Fault { return always(npmtest.Rewrite(from, to)) }
	const jsonType, forEver = "application/json", 1 << 30
	html := say("text/html", "<!doctype html><title>Log in to the hotel</title>")
	deep := strings.Repeat("[", 4<<20)
	letters := strings.Repeat("a", 64<<10)

	good, network, content, refused := []int{0}, []int{4}, []int{3}, []int{3, 4, 5}
	return []hostileCase{
		{name: "slow document", on: document, fault: always(npmtest.Drip(12, 150*time.Millisecond)), want: good},
		{name: "slow archive", on: archive, fault: always(npmtest.Drip(12, 150*time.Millisecond)), want: good},
		{name: "document never comes", on: document, fault: always(npmtest.Stall(false)), want: network, says: "no data for"},
		{name: "archive never comes", on: archive, fault: always(npmtest.Stall(false)), want: network, says: "no data for"},
		{name: "document stalls half-way", on: document, fault: always(npmtest.Stall(true)), want: network, says: "no data for"},
		{name: "archive stalls half-way", on: archive, fault: always(npmtest.Stall(true)), want: network, says: "no data for"},

		{name: "document drops once", on: document, fault: drop(1, false), want: good},
		{name: "document drops always", on: document, fault: drop(forEver, false), want: network},
		{name: "archive drops once, no ranges", on: archive, fault: drop(1, false), want: good},
		{name: "archive drops once, ranges", on: archive, fault: drop(1, true), want: good},
		{name: "archive drops always, no ranges", on: archive, fault: drop(forEver, false), want: network},

		{name: "document 500 once", on: document, fault: refuse(1, 500), want: good},
		{name: "archive 503 once", on: archive, fault: refuse(1, 503), want: good},
		{name: "document 500 for ever", on: document, fault: refuse(forEver, 500), want: network, says: "500"},
		{name: "archive 502 for ever", on: archive, fault: refuse(forEver, 502), want: network, says: "502"},
		{name: "document 429 for a second", on: document, fault: refuse(1, 429, "Retry-After", "1"), want: good},
		{name: "archive 429 for a second", on: archive, fault: refuse(1, 429, "Retry-After", "1"), want: good},
		{name: "document 429 for a year", on: document, fault: refuse(forEver, 429, "Retry-After", "31536000"), want: network, says: "429"},
		{name: "archive 429 for a year", on: archive, fault: refuse(forEver, 429, "Retry-After", "31536000"), want: network, says: "429"},
		{name: "document 429 until a far date", on: document, fault: refuse(forEver, 429, "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"), want: network, says: "429"},
		{name: "document 429 until nonsense", on: document, fault: refuse(forEver, 429, "Retry-After", "-5 soon"), want: network, says: "429"},
		{name: "document 403", on: document, fault: refuse(forEver, 403), want: content, says: "403"},
		{name: "archive 404", on: archive, fault: refuse(forEver, 404), want: content},
		{name: "document 204", on: document, fault: refuse(forEver, 204), want: network},
		{name: "archive 418", on: archive, fault: refuse(forEver, 418), want: network, says: "418"},
		{name: "document 304 out of nowhere", on: document, fault: refuse(forEver, 304), want: network},
		{name: "archive 304 out of nowhere", on: archive, fault: refuse(forEver, 304), want: network},
		{name: "archive 206 out of nowhere", on: archive, fault: refuse(forEver, 206, "Content-Range", "bytes 5-9/10"), want: refused},

		{name: "archive of another package", on: archive, fault: always(npmtest.InPlaceOf("/other/-/other-1.0.0.tgz")), want: content, says: "integrity"},
		{name: "document of another package", on: document, fault: always(npmtest.InPlaceOf("/other")), want: refused},
		{name: "document is HTML", on: document, fault: html, want: network, says: "text/html"},
		{name: "archive is HTML", on: archive, fault: html, want: content, says: "integrity"},
		{name: "archive is empty", on: archive, fault: say("application/octet-stream", ""), want: content},
		{name: "document is empty", on: document, fault: say(jsonType, ""), want: network},
		{name: "document is a list", on: document, fault: say(jsonType, `[1, 2]`), want: network},
		{name: "document is a number", on: document, fault: say(jsonType, `7`), want: network},
		{name: "document is null", on: document, fault: say(jsonType, `null`), want: refused},
		{name: "document is half", on: document, fault: say(jsonType, `{"name": "victim", "versions": {"1.0.0": {"na`), want: network},
		{name: "versions are a list", on: document, fault: rewrite(`"versions":{`, `"versions":[],"unknown":{`), want: refused},
		{name: "versions are null", on: document, fault: say(jsonType, `{"name": "victim", "versions": null, "dist-tags": null}`), want: refused},
		{name: "version is null", on: document, fault: say(jsonType, `{"name": "victim", "versions": {"1.0.0": null}, "dist-tags": {"latest": "1.0.0"}}`), want: refused},
		{name: "tags are text", on: document, fault: say(jsonType, `{"name": "victim", "versions": {}, "dist-tags": "latest"}`), want: refused},
		{name: "latest is nowhere", on: document, fault: say(jsonType, `{"name": "victim", "versions": {}, "dist-tags": {"latest": "1.0.0"}}`), want: refused},
		{name: "no dist", on: document, fault: rewrite(`"dist":{`, `"dust":{`), want: refused},
		{name: "archive's address is a file", on: document, fault: rewrite(`"tarball":"`, `"tarball":"file:///etc/passwd#`), want: refused},
		{name: "archive's address is no address", on: document, fault: rewrite(`"tarball":"`, `"tarball":"://`), want: refused},
		{name: "integrity is nonsense", on: document, fault: rewrite(`"integrity":"sha512-`, `"integrity":"sha512-?`), want: refused},
		{name: "document does not end in time", on: document, fault: always(npmtest.Follow("}")), want: network, heavy: true},

		{name: "truncated gzip of a document", on: document, fault: always(npmtest.CutGzip()), want: network},
		{name: "truncated gzip of an archive's transfer", on: archive, fault: always(npmtest.CutGzip()), want: content},
		{name: "truncated gzip of an archive as published", on: npmtest.DocumentsOf("none"), fault: refuse(0, 500), adds: "cut-victim", want: content},

		{name: "endless text in a document", on: document, fault: always(npmtest.Endless(jsonType, `{"name": "victim", "versions": {"1.0.0": {"x": "`, letters, false)), want: network, heavy: true},
		{name: "endless blanks before a document", on: document, fault: always(npmtest.Endless(jsonType, " ", strings.Repeat(" \n", 32<<10), false)), want: network, heavy: true},
		{name: "endless versions", on: document, fault: always(npmtest.Endless(jsonType, `{"name": "victim", "versions": {"0.0.1": {}`, strings.Repeat(`,"1.0.0":{"dist":{}}`, 3<<10), false)), want: network, heavy: true},
		{name: "endless depth", on: document, fault: always(npmtest.Endless(jsonType, `{"versions": {"1.0.0": `, strings.Repeat("[", 64<<10), false)), want: network, heavy: true},
		{name: "document that unpacks without end", on: document, fault: always(npmtest.Endless(jsonType, `{"versions": "`, strings.Repeat("a", 8<<20), true)), want: network, heavy: true},
		{name: "twelve endless documents at once", on: func(path string) bool { return strings.HasPrefix(path, "/many-victims-") }, adds: "many-victims",
			fault: always(npmtest.Endless(jsonType, `{"versions": {"1.0.0": {"x": "`, letters, false)), want: network, heavy: true},
		{name: "endless junk for an archive", on: archive, fault: always(npmtest.Endless("application/octet-stream", "x", letters, false)), want: refused, heavy: true},
		{name: "archive that is followed without end", on: archive, fault: always(npmtest.Follow(strings.Repeat("\x00", 1<<20))), want: refused, heavy: true},

		{name: "redirect to another host", on: document, fault: func(other string) npmtest.Fault { return npmtest.Redirect(other + "/") }, want: good, plain: true},
		{name: "archive redirected to another host", on: archive, fault: func(other string) npmtest.Fault { return npmtest.Redirect(other + "/") }, want: good, plain: true},
		{name: "redirect around", on: document, fault: always(npmtest.Redirect("/victim")), want: network, says: "redirect"},
		{name: "archive redirected around", on: archive, fault: always(npmtest.Redirect("/victim/-/victim-1.0.0.tgz")), want: network, says: "redirect"},
		{name: "redirect to a file", on: document, fault: always(npmtest.Redirect("file:///etc/passwd")), want: network},
		{name: "redirect to nowhere", on: document, fault: always(npmtest.Redirect("")), want: network},
		{name: "redirect to a closed port", on: archive, fault: always(npmtest.Redirect("https://127.0.0.1:1/")), want: network, says: "refused"},

		{name: "document longer than said", on: document, fault: always(npmtest.WrongLength(-20)), want: network, plain: true},
		{name: "archive longer than said", on: archive, fault: always(npmtest.WrongLength(-20)), want: content, plain: true},
		{name: "document shorter than said", on: document, fault: always(npmtest.WrongLength(20)), want: network},
		{name: "archive shorter than said", on: archive, fault: always(npmtest.WrongLength(20)), want: network},
		{name: "negative length", on: document, fault: always(npmtest.Raw("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}")), want: network, plain: true},
		{name: "huge length", on: document, fault: always(npmtest.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{}")), want: network, plain: true},
		{name: "archive of huge length", on: archive, fault: always(npmtest.Raw("HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775807\r\n\r\n{}")), want: refused, plain: true},
		{name: "no HTTP", on: document, fault: always(npmtest.Raw("220 mail.example ESMTP\r\n")), want: network, plain: true},
		{name: "broken chunks", on: archive, fault: always(npmtest.Raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc")), want: network, plain: true},
		{name: "huge headers", on: document, fault: refuse(forEver, 200, "X-Large", strings.Repeat("a", 4<<20)), want: network},

		{name: "deep document", on: document, fault: say(jsonType, `{"name": "victim", "versions": `+deep), want: network},
		{name: "deep unknown key", on: document, fault: say(jsonType, `{"name": "victim", "unknown": `+deep+strings.Repeat("]", len(deep))+`, "versions": {}}`), want: refused},
		{name: "deep dependencies", on: document, fault: rewrite(`"dist":{`, `"dependencies":`+strings.Repeat(`{"a":`, 200_000)+"1"+strings.Repeat("}", 200_000)+`,"dist":{`), want: []int{0, 3, 4, 5}},
	}
}

// hostileRegistry writes the packages that these tests install.
func hostileRegistry(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(base, comment, more string) {
		name, version, _ := strings.Cut(base, "_")
		r := rand.New(rand.NewPCG(uint64(len(name)), 1))
		var data strings.Builder
		for range 3000 {
			fmt.Fprintf(&data, "%016x\n", r.Uint64())
		}
		text := fmt.Sprintf("%s\n-- package.json --\n{\"name\": %q, \"version\": %q%s}\n-- index.js --\nmodule.exports = %q\n-- data.txt --\n%s", comment, name, version, more, name, data.String())
		if err := os.WriteFile(filepath.Join(dir, base+".txtar"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// A document with something in it, so that slow is not next to nothing.
	for _, name := range []string{"good", "victim", "other"} {
		write(name+"_1.0.0", "", fmt.Sprintf(`, "funding": %q`, strings.Repeat("long ", 4000)))
	}
	write("cut-victim_1.0.0", "truncated", "")
	dependencies := map[string]string{}
	for i := range 12 {
		name := fmt.Sprintf("many-victims-%d", i)
		dependencies[name] = "^1.0.0"
		write(name+"_1.0.0", "", "")
	}
	list, err := json.Marshal(dependencies)
	if err != nil {
		t.Fatal(err)
	}
	write("many-victims_1.0.0", "", `, "dependencies": `+string(list))
	return dir
}

// TestHostileRegistry installs from registries that misbehave, over HTTP/1.1 and HTTP/2: what is no lasting fault is overcome, all else is a
// short message with the host and the package, in bounded time and memory, the profile stays as it was, and once the registry is in
// order again the same command works.
func TestHostileRegistry(t *testing.T) {
	dir := hostileRegistry(t)
	for _, protocol := range []string{"http", "https"} {
		t.Run(protocol, func(t *testing.T) {
			for _, c := range hostileCases() {
				if (c.plain || c.heavy) && protocol == "https" {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					if !c.heavy {
						t.Parallel()
					}
					h := newHostile(t, dir, protocol == "https")
					h.prepare()
					h.add(c)
				})
				if c.on("/victim/-/victim-1.0.0.tgz") && !c.heavy {
					t.Run(c.name+", frozen", func(t *testing.T) {
						t.Parallel()
						h := newHostile(t, dir, protocol == "https")
						h.prepare()
						h.frozen(c)
					})
				}
			}
		})
	}
}

// TestRedirectGivesUpNoHTTPS lets a registry with https send its users to plain http.
func TestRedirectGivesUpNoHTTPS(t *testing.T) {
	dir := hostileRegistry(t)
	for what, on := range map[string]func(string) bool{"document": npmtest.DocumentsOf("victim"), "archive": npmtest.ArchivesOf("victim")} {
		t.Run(what, func(t *testing.T) {
			h := newHostile(t, dir, true)
			h.prepare()
			h.add(hostileCase{on: on, want: []int{4}, says: "http", fault: func(other string) npmtest.Fault { return npmtest.Redirect(other + "/") }})
			if asked := h.other.Requests(); len(asked) > 0 {
				t.Errorf("the other host was asked for %v", asked)
			}
		})
	}
}

// hostile is a user with a registry that can misbehave, and another server that watches for the user's token.
type hostile struct {
	*testing.T
	user
	registry, other *npmtest.Server
	host            string
}

func newHostile(t *testing.T, dir string, encrypted bool) *hostile {
	t.Helper()
	start := npmtest.New
	if encrypted {
		start = npmtest.NewTLS
	}
	registry, err := start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(registry.Close)
	other, err := npmtest.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	registry.RequireToken(secret)
	address, err := url.Parse(registry.URL())
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	npmrc := fmt.Sprintf("fetch-timeout=1500\nfetch-retries=1\nfetch-retry-mintimeout=10\nfetch-retry-maxtimeout=1500\n//%s/:_authToken=%s\n", address.Host, secret)
	if encrypted {
		npmrc += "cafile=" + filepath.Join(base, "registry.pem") + "\n"
		if err := os.WriteFile(filepath.Join(base, "registry.pem"), registry.Certificate(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(base, ".npmrc"), []byte(npmrc), 0o600); err != nil {
		t.Fatal(err)
	}
	return &hostile{T: t, user: user{filepath.Join(base, "home"), registry.URL()}, registry: registry, other: other, host: address.Host}
}

// dsh is the user's command, with the retries of .npmrc.
func (h *hostile) dsh(args ...string) *exec.Cmd {
	cmd := h.user.dsh(args...)
	cmd.Env = slices.DeleteFunc(cmd.Env, func(v string) bool { return strings.HasPrefix(v, "npm_config_fetch_retries=") })
	return cmd
}

func (h *hostile) prepare() {
	h.Helper()
	h.must(h.T, "plugin", "--profile", "demo", "add", "good")
}

// add adds a package while the registry misbehaves, and again when it does not.
func (h *hostile) add(c hostileCase) {
	h.Helper()
	adds := c.adds
	if adds == "" {
		adds = "victim"
	}
	h.suffer(c, adds, "plugin", "--profile", "demo", "add", adds)
	h.registry.Heal()
	if adds == "cut-victim" {
		adds = "victim"
	}
	h.must(h.T, "plugin", "--profile", "demo", "add", adds)
	h.whole(adds)
}

// frozen does the same with an install from a lockfile and an empty store.
func (h *hostile) frozen(c hostileCase) {
	h.Helper()
	h.must(h.T, "plugin", "--profile", "demo", "add", "victim")
	for _, gone := range []string{"store", "state", filepath.Join("profiles", "demo", "node_modules")} {
		h.gone(filepath.Join(h.home, gone))
	}
	install := []string{"plugin", "--profile", "demo", "install", "--frozen-lockfile"}
	h.suffer(c, "victim", install...)
	h.registry.Heal()
	h.must(h.T, install...)
	h.whole("victim")
}

func (h *hostile) gone(dir string) {
	h.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(path, 0o755)
		}
		return err
	})
	if err != nil {
		h.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		h.Fatal(err)
	}
}

// suffer runs a command while the registry misbehaves.
func (h *hostile) suffer(c hostileCase, adds string, args ...string) {
	h.Helper()
	h.registry.Spoil(c.on, c.fault(h.other.URL()))
	before := h.profile(h.T, "demo")
	cmd := h.dsh(args...)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	deadline := time.AfterFunc(mostTime+mostWork, func() { _ = cmd.Process.Kill() })
	peak, _ := runWatched(cmd) // the exit code tells
	deadline.Stop()
	code, took := cmd.ProcessState.ExitCode(), time.Since(began)

	if !slices.Contains(c.want, code) {
		h.Errorf("exit code %d, want one of %v\n%s%s", code, c.want, stdout.String(), stderr.String())
	}
	work := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if took > mostTime || work > mostWork {
		h.Errorf("it took %v, and %v of the processor", took, work)
	}
	if peak > mostMemory {
		h.Errorf("it held %d MiB", peak>>20)
	}
	if strings.Contains(stdout.String()+stderr.String(), secret) {
		h.Errorf("it prints the token:\n%s%s", stdout.String(), stderr.String())
	}
	if brought := h.other.Authorizations(); len(brought) > 0 {
		h.Errorf("the other server was given %q", brought)
	}
	if code == 0 {
		h.whole(adds)
		return
	}
	for _, want := range []string{h.host, "victim", c.says} {
		if !strings.Contains(stderr.String(), want) {
			h.Errorf("the message lacks %q:\n%.2000s", want, stderr.String())
		}
	}
	if stderr.Len() > longMessage {
		h.Errorf("the message has %d bytes: %.1000s", stderr.Len(), stderr.String())
	}
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "dsh: ") && !strings.HasPrefix(line, "\t") {
			h.Errorf("not a line of ours: %q", line)
		}
	}
	if diff := cmp.Diff(before, h.profile(h.T, "demo")); diff != "" {
		h.Errorf("the profile changed:\n%s", diff)
	}
	h.noLitter(h.T, "a failure")
}

// whole checks that a package is there and right, that nothing is left to do, and that no file holds the token.
func (h *hostile) whole(name string) {
	h.Helper()
	got := h.profile(h.T, "demo")
	if text := got["/node_modules/"+name+"/index.js"]; !strings.HasSuffix(text, fmt.Sprintf(" module.exports = %q\n", name)) {
		h.Errorf("%s is not there: index.js is %q", name, text)
	}
	h.must(h.T, "plugin", "--profile", "demo", "install", "--frozen-lockfile", "--offline")
	if diff := cmp.Diff(got, h.profile(h.T, "demo")); diff != "" {
		h.Errorf("an install from the lockfile finds work to do:\n%s", diff)
	}
	err := filepath.WalkDir(h.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			h.Errorf("%s holds the token", path)
		}
		return err
	})
	if err != nil {
		h.Error(err)
	}
}
