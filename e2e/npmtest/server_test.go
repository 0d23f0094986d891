package npmtest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serve starts a registry that holds the given archives, by file name without extension.
func serve(t *testing.T, archives map[string]string) *Server {
	t.Helper()
	s, err := New(writeArchives(t, archives))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func writeArchives(t *testing.T, archives map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for base, text := range archives {
		path := filepath.Join(dir, base+".txtar")
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// pkg is an archive that has the given comment and just a manifest.
func pkg(comment, name, version string, more ...string) string {
	manifest := `{"name":"` + name + `","version":"` + version + `"` + strings.Join(append([]string{""}, more...), ",") + `}`
	return comment + "\n-- package.json --\n" + manifest + "\n"
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func get(t *testing.T, url string, header ...string) response {
	t.Helper()
	r, err := tryGet(t, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tryGet(t *testing.T, url string, header ...string) (response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, body}, err
}

type document struct {
	Name     string            `json:"name"`
	Tags     map[string]string `json:"dist-tags"`
	Time     map[string]string `json:"time"`
	Modified string            `json:"modified"`
	Versions map[string]struct {
		Name, Version, Deprecated string
		Dependencies              map[string]string
		HasInstallScript          bool
		Dsh                       map[string]any
		Dist                      struct{ Integrity, Shasum, Tarball string }
	}
}

func decode(t *testing.T, data []byte) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return d
}

func TestPackument(t *testing.T) {
	s := serve(t, map[string]string{
		"@acme+hello_1.0.0":    pkg("# prose\n\ndeprecated: use 2", "@acme/hello", "1.0.0", `"dsh":{"bundle":{"patch":"x"}}`, `"scripts":{"postinstall":"x"}`),
		"@acme+hello_2.0.0":    pkg("time: 2025-05-05T01:02:03Z", "@acme/hello", "2.0.0", `"dependencies":{"is-odd":"^3"}`),
		"@acme+hello_10.0.0":   pkg("tag: stable", "@acme/hello", "10.0.0"),
		"@acme+hello_11.0.0-a": pkg("tag: next beta", "@acme/hello", "11.0.0-a"),
	})
	wantTags := map[string]string{"latest": "10.0.0", "stable": "10.0.0", "next": "11.0.0-a", "beta": "11.0.0-a"}

	for _, path := range []string{"/@acme/hello", "/@acme%2fhello", "/@acme%2Fhello"} {
		d := decode(t, get(t, s.URL()+path).body)
		if diff := cmp.Diff(wantTags, d.Tags); diff != "" {
			t.Errorf("%s: tags (-want +got)\n%s", path, diff)
		}
		if diff := cmp.Diff(map[string]string{
			"created": "2024-01-01T00:00:00.000Z", "1.0.0": "2024-01-01T00:00:00.000Z", "2.0.0": "2025-05-05T01:02:03.000Z",
			"10.0.0": "2025-05-06T01:02:03.000Z", "11.0.0-a": "2025-05-07T01:02:03.000Z", "modified": "2025-05-07T01:02:03.000Z",
		}, d.Time); diff != "" {
			t.Errorf("%s: time (-want +got)\n%s", path, diff)
		}
		if v := d.Versions["1.0.0"]; v.Deprecated != "use 2" || !v.HasInstallScript || v.Dsh == nil || v.Dist.Tarball != s.URL()+"/@acme/hello/-/hello-1.0.0.tgz" {
			t.Errorf("%s: version 1.0.0 is %+v", path, v)
		}
	}

	short := get(t, s.URL()+"/@acme/hello", "Accept", abbreviatedType+"; q=1.0, application/json; q=0.8")
	d := decode(t, short.body)
	if v := d.Versions["1.0.0"]; v.Dsh != nil || v.Deprecated != "use 2" || !v.HasInstallScript || v.Dist.Integrity == "" {
		t.Errorf("abbreviated version 1.0.0 is %+v", v)
	}
	if got := d.Versions["2.0.0"].Dependencies["is-odd"]; got != "^3" {
		t.Errorf("abbreviated dependencies: is-odd is %q", got)
	}
	if d.Time != nil || d.Modified != "2025-05-07T01:02:03.000Z" || short.header.Get("Content-Type") != abbreviatedType {
		t.Errorf("abbreviated: time %v, modified %s, type %s", d.Time, d.Modified, short.header.Get("Content-Type"))
	}

	var tags map[string]string
	if err := json.Unmarshal(get(t, s.URL()+"/-/package/@acme%2fhello/dist-tags").body, &tags); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantTags, tags); diff != "" {
		t.Errorf("dist-tags (-want +got)\n%s", diff)
	}
}

func TestVersionDocument(t *testing.T) {
	s := serve(t, map[string]string{"a_1.0.0": pkg("", "a", "1.0.0"), "a_2.0.0-rc.1": pkg("tag: next", "a", "2.0.0-rc.1")})
	for path, want := range map[string]string{"/a/1.0.0": "1.0.0", "/a/latest": "1.0.0", "/a/next": "2.0.0-rc.1"} {
		var got struct{ Version string }
		if err := json.Unmarshal(get(t, s.URL()+path).body, &got); err != nil || got.Version != want {
			t.Errorf("%s: version %q, error %v, want %s", path, got.Version, err, want)
		}
	}
	for _, path := range []string{"/b", "/a/3.0.0", "/a/-/a-3.0.0.tgz", "/files/b_1.0.0.tgz", "/-/package/b/dist-tags", "/"} {
		if got := get(t, s.URL()+path).status; got != http.StatusNotFound {
			t.Errorf("%s: status %d, want 404", path, got)
		}
	}
}

func TestLatestOfPrereleasesOnly(t *testing.T) {
	s := serve(t, map[string]string{"a_1.0.0-rc.9": pkg("", "a", "1.0.0-rc.9"), "a_1.0.0-rc.10": pkg("", "a", "1.0.0-rc.10")})
	if got := decode(t, get(t, s.URL()+"/a").body).Tags["latest"]; got != "1.0.0-rc.10" {
		t.Errorf("latest is %s", got)
	}
}

// entries lists a tarball as "mode type name -> link = content".
func entries(t *testing.T, data []byte) []string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		line := string(h.Typeflag) + " " + h.FileInfo().Mode().Perm().String() + " " + h.Name
		if h.Linkname != "" {
			line += " -> " + h.Linkname
		}
		list = append(list, line)
	}
}

func TestTarball(t *testing.T) {
	archive := pkg("", "a", "1.0.0") + "-- bin/run.js --\n#!/usr/bin/env node\n-- lib/x.js --\nx\n"
	s := serve(t, map[string]string{
		"a_1.0.0":        archive,
		"files/c_1.0.0":  pkg("prefix: other", "c", "1.0.0"),
		"wrong_1.0.0":    pkg("integrity: wrong", "wrong", "1.0.0"),
		"corrupt_1.0.0":  pkg("corrupt", "corrupt", "1.0.0"),
		"shasum_1.0.0":   pkg("shasum-only", "shasum", "1.0.0"),
		"files/ab_1.0.0": pkg("", "ab", "1.0.0"),
	})
	data := get(t, s.URL()+"/a/-/a-1.0.0.tgz").body
	if diff := cmp.Diff([]string{"0 -rw-r--r-- package/package.json", "0 -rwxr-xr-x package/bin/run.js", "0 -rw-r--r-- package/lib/x.js"}, entries(t, data)); diff != "" {
		t.Errorf("entries (-want +got)\n%s", diff)
	}
	again := serve(t, map[string]string{"a_1.0.0": archive})
	if !bytes.Equal(data, get(t, again.URL()+"/a/-/a-1.0.0.tgz").body) {
		t.Error("the same archive gave other bytes")
	}
	if !bytes.Equal(data, get(t, s.URL()+"/redirect/files/a_1.0.0.tgz").body) {
		t.Error("/files gives other bytes than the package's own address")
	}
	if diff := cmp.Diff([]string{"0 -rw-r--r-- other/package.json"}, entries(t, get(t, s.URL()+"/files/c_1.0.0.tgz").body)); diff != "" {
		t.Errorf("entries of c (-want +got)\n%s", diff)
	}

	for name, wantMatch := range map[string]bool{"a": true, "corrupt": true, "wrong": false} {
		dist := decode(t, get(t, s.URL()+"/"+name).body).Versions["1.0.0"].Dist
		body := get(t, dist.Tarball).body
		sum := sha512.Sum512(body)
		if match := dist.Integrity == "sha512-"+base64.StdEncoding.EncodeToString(sum[:]); match != wantMatch {
			t.Errorf("%s: the integrity matches: %v, want %v", name, match, wantMatch)
		}
	}
	if dist := decode(t, get(t, s.URL()+"/shasum").body).Versions["1.0.0"].Dist; dist.Integrity != "" || len(dist.Shasum) != 40 {
		t.Errorf("shasum-only: %+v", dist)
	}
	if z, err := gzip.NewReader(bytes.NewReader(get(t, s.URL()+"/corrupt/-/corrupt-1.0.0.tgz").body)); err == nil {
		if _, err := io.ReadAll(z); err == nil {
			t.Error("the corrupt tarball can be unpacked")
		}
	}
}

func TestEvil(t *testing.T) {
	want := map[string][]string{
		EvilEscape:        {"0 -rw-r--r-- package/../../escape.txt"},
		EvilBackslash:     {`0 -rw-r--r-- package/..\..\escape.txt`},
		EvilAbsolute:      {"0 -rw-r--r-- /npmtest-absolute.txt"},
		EvilSymlink:       {"2 -rwxrwxrwx package/link -> ../../outside", "0 -rw-r--r-- package/link/planted.txt"},
		EvilHardlink:      {"1 -rw-r--r-- package/hard -> ../../../package.json"},
		EvilDevice:        {"3 -rw-rw-rw- package/null"},
		EvilCaseCollision: {"0 -rw-r--r-- package/Collide.txt", "0 -rw-r--r-- package/collide.txt"},
		EvilHuge:          {"0 -rw-r--r-- package/huge.bin"},
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(evilKinds)), slices.Sorted(maps.Keys(want))); diff != "" {
		t.Fatalf("kinds (-known +tested)\n%s", diff)
	}
	for kind, lines := range want {
		s := serve(t, map[string]string{"a_1.0.0": pkg("evil: "+kind, "a", "1.0.0")})
		data := get(t, s.URL()+"/a/-/a-1.0.0.tgz").body
		if len(data) > 8<<20 {
			t.Errorf("%s: the tarball has %d bytes", kind, len(data))
		}
		if kind == EvilHuge {
			checkHuge(t, data)
			continue
		}
		if diff := cmp.Diff(append([]string{"0 -rw-r--r-- package/package.json"}, lines...), entries(t, data)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", kind, diff)
		}
	}
}

// checkHuge reads the headers and the first bytes: reading everything takes seconds.
func checkHuge(t *testing.T, data []byte) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if h.Name != "package/huge.bin" {
			continue
		}
		if h.Size != HugeSize {
			t.Errorf("huge.bin has %d bytes", h.Size)
		}
		if n, err := io.CopyN(io.Discard, r, 40<<20); err != nil {
			t.Errorf("after %d bytes: %v", n, err)
		}
		return
	}
}

func TestMisbehaviour(t *testing.T) {
	s := serve(t, map[string]string{
		"always_1.0.0": pkg("status: 500", "always", "1.0.0"),
		"twice_1.0.0":  pkg("status: 503 2", "twice", "1.0.0"),
		"drop_1.0.0":   pkg("drop-after: 10 1", "drop", "1.0.0"),
		"doc_1.0.0":    pkg("packument-status: 502", "doc", "1.0.0"),
		"hang_1.0.0":   pkg("hang", "hang", "1.0.0"),
	})
	tarball := func(name string) string { return s.URL() + "/" + name + "/-/" + name + "-1.0.0.tgz" }
	var got []int
	for _, url := range []string{tarball("always"), tarball("always"), tarball("always"), tarball("twice"), tarball("twice"), tarball("twice"), s.URL() + "/doc", s.URL() + "/doc/1.0.0"} {
		got = append(got, get(t, url).status)
	}
	if diff := cmp.Diff([]int{500, 500, 500, 503, 503, 200, 502, 502}, got); diff != "" {
		t.Errorf("statuses (-want +got)\n%s", diff)
	}
	r, err := tryGet(t, tarball("drop"))
	if err == nil || len(r.body) != 10 {
		t.Errorf("drop: %d bytes, error %v", len(r.body), err)
	}
	if r := get(t, tarball("drop")); r.status != 200 {
		t.Errorf("drop, second request: %d", r.status)
	}

	hung := make(chan error)
	go func() {
		resp, err := http.Get(tarball("hang"))
		if err == nil {
			resp.Body.Close()
		}
		hung <- err
	}()
	for s.Requests()["/hang/-/hang-1.0.0.tgz"] == 0 {
		get(t, s.URL()+"/-/ping")
	}
	s.Close()
	if err := <-hung; err == nil {
		t.Error("the hanging request was answered")
	}
}

func TestTokens(t *testing.T) {
	s := serve(t, map[string]string{"open_1.0.0": pkg("", "open", "1.0.0"), "private_1.0.0": pkg("token: secret", "private", "1.0.0")})
	status := func(path string, header ...string) int { return get(t, s.URL()+path, header...).status }
	paths := []string{"/open", "/private", "/private/1.0.0", "/private/-/private-1.0.0.tgz", "/files/private_1.0.0.tgz", "/-/package/private/dist-tags"}
	check := func(what string, want []int, header ...string) {
		t.Helper()
		var got []int
		for _, p := range paths {
			got = append(got, status(p, header...))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", what, diff)
		}
	}
	check("no token", []int{200, 401, 401, 401, 401, 401})
	check("right token", []int{200, 200, 200, 200, 200, 200}, "Authorization", "Bearer secret")
	check("wrong token", []int{200, 401, 401, 401, 401, 401}, "Authorization", "Bearer other")
	s.RequireToken("all")
	if got := status("/open"); got != 401 {
		t.Errorf("open without the registry's token: %d", got)
	}
	if got := status("/open", "Authorization", "Bearer all"); got != 200 {
		t.Errorf("open with the registry's token: %d", got)
	}
}

func TestETagsAndCounters(t *testing.T) {
	s := serve(t, map[string]string{"a_1.0.0": pkg("", "a", "1.0.0")})
	if tag := get(t, s.URL()+"/a").header.Get("ETag"); tag != "" {
		t.Errorf("ETag %s without being asked", tag)
	}
	s.UseETags(true)
	tag := get(t, s.URL()+"/a").header.Get("ETag")
	if r := get(t, s.URL()+"/a", "If-None-Match", tag); tag == "" || r.status != http.StatusNotModified || len(r.body) != 0 {
		t.Errorf("ETag %q: status %d with %d bytes", tag, r.status, len(r.body))
	}
	if r := get(t, s.URL()+"/a", "If-None-Match", `"other"`); r.status != 200 {
		t.Errorf("another ETag: status %d", r.status)
	}
	get(t, s.URL()+"/@x%2fy")
	if diff := cmp.Diff(map[string]int{"/a": 4, "/@x/y": 1}, s.Requests()); diff != "" {
		t.Errorf("requests (-want +got)\n%s", diff)
	}
	s.ResetRequests()
	if got := s.Requests(); len(got) != 0 {
		t.Errorf("after the reset: %v", got)
	}
}

func TestReload(t *testing.T) {
	s := serve(t, map[string]string{"a_1.0.0": pkg("", "a", "1.0.0")})
	if err := os.WriteFile(filepath.Join(s.dir, "a_1.1.0.txtar"), []byte(pkg("", "a", "1.1.0")), 0o666); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s.URL()+"/a/1.1.0").status; got != 404 {
		t.Errorf("before: %d", got)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := get(t, s.URL()+"/a/1.1.0").status; got != 200 {
		t.Errorf("after: %d", got)
	}
}

func TestUnpack(t *testing.T) {
	dir := writeArchives(t, map[string]string{"a_1.0.0": pkg("evil: device", "a", "1.0.0") + "-- lib/x.js --\nx\n"})
	out := filepath.Join(t.TempDir(), "new", "a")
	if err := Unpack(filepath.Join(dir, "a_1.0.0.txtar"), out); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(out, "lib", "x.js"))
	if err != nil || string(got) != "x\n" {
		t.Errorf("lib/x.js is %q, error %v", got, err)
	}
	if err := Unpack(filepath.Join(dir, "absent.txtar"), out); err == nil {
		t.Error("an absent archive is no error")
	}
}

func TestBadArchives(t *testing.T) {
	for _, c := range []struct{ base, text, want string }{
		{"noversion", pkg("", "noversion", "1.0.0"), "not NAME_VERSION.txtar"},
		{"@acme-a_1.0.0", pkg("", "@acme-a", "1.0.0"), "no plus sign"},
		{"a_1.0.0", "-- x --\n", "no package.json"},
		{"a_1.0.0", "-- package.json --\n{\n", "package.json: unexpected EOF"},
		{"a_1.0.0", pkg("", "b", "1.0.0"), `name is "b", but the file name says "a"`},
		{"a_1.0.0", pkg("", "a", "1.0.1"), `version is "1.0.1"`},
		{"a_1.0.0", pkg("tags: x", "a", "1.0.0"), `directive "tags: x": is unknown`},
		{"a_1.0.0", pkg("A sentence", "a", "1.0.0"), "is unknown or has no value"},
		{"a_1.0.0", pkg("corrupt: yes", "a", "1.0.0"), "takes no value"},
		{"a_1.0.0", pkg("evil: twin", "a", "1.0.0"), "the kinds are ../escape"},
		{"a_1.0.0", pkg("time: yesterday", "a", "1.0.0"), "cannot parse"},
		{"a_1.0.0", pkg("status: many", "a", "1.0.0"), "invalid syntax"},
		{"a_1.0.0", pkg("integrity: right", "a", "1.0.0"), "the only value is wrong"},
	} {
		_, err := New(writeArchives(t, map[string]string{c.base: c.text}))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q\ngot error %v\nwant one with %q", c.base, c.text, err, c.want)
		}
	}
	two := map[string]string{"a_1.0.0": pkg("tag: x", "a", "1.0.0"), "a_2.0.0": pkg("tag: x", "a", "2.0.0")}
	if _, err := New(writeArchives(t, two)); err == nil || !strings.Contains(err.Error(), "both ask for the tag x") {
		t.Errorf("two versions with one tag: %v", err)
	}
	if _, err := New(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent directory is no error")
	}
}

// TestSharedRegistry holds the packages that the program's own tests use to the format.
func TestSharedRegistry(t *testing.T) {
	s, err := New("../testdata/registry")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for path, want := range map[string]map[string]string{
		"/is-number":  {"latest": "7.0.0"},
		"/@acme/pre":  {"latest": "1.0.0", "next": "2.0.0-rc.1"},
		"/@acme/old":  {"latest": "1.0.0"},
		"/@acme/late": {"latest": "2.0.0"},
	} {
		if diff := cmp.Diff(want, decode(t, get(t, s.URL()+path).body).Tags); diff != "" {
			t.Errorf("%s: tags (-want +got)\n%s", path, diff)
		}
	}
	for name, releases := range s.content.packages {
		for _, r := range releases {
			if r.directives.evil == EvilHuge {
				continue
			}
			if data := r.build().data; !r.directives.corrupt && len(entries(t, data)) != len(r.files)+evilEntries(r.directives.evil) {
				t.Errorf("%s@%s: the tarball has the entries %q", name, r.version, entries(t, data))
			}
		}
	}
}

func evilEntries(kind string) int {
	switch kind {
	case "":
		return 0
	case EvilSymlink, EvilCaseCollision:
		return 2
	default:
		return 1
	}
}

func TestSign(t *testing.T) {
	archives := map[string]string{}
	for _, kind := range signatureKinds {
		archives[kind+"_1.0.0"] = pkg("signature: "+kind, kind, "1.0.0")
	}
	s := serve(t, archives)
	if r := get(t, s.URL()+"/-/npm/v1/keys"); r.status != http.StatusNotFound || bytes.Contains(get(t, s.URL()+"/good").body, []byte("signatures")) {
		t.Error("it signs without being told to")
	}
	s.Sign(true)
	var ring struct {
		Keys []struct {
			KeyID, Key string
			Expires    *time.Time
		}
	}
	if err := json.Unmarshal(get(t, s.URL()+"/-/npm/v1/keys").body, &ring); err != nil {
		t.Fatal(err)
	}
	verify := func(kind string) string {
		body := get(t, s.URL()+"/"+kind, "Accept", abbreviatedType).body
		if !bytes.Equal(body, get(t, s.URL()+"/"+kind, "Accept", abbreviatedType).body) {
			t.Errorf("%s: the document is another each time", kind)
		}
		var d struct {
			Versions map[string]struct {
				Dist struct {
					Integrity  string
					Signatures []struct{ KeyID, Sig string }
				}
			}
		}
		if err := json.Unmarshal(body, &d); err != nil {
			t.Fatal(err)
		}
		dist := d.Versions["1.0.0"].Dist
		if len(dist.Signatures) == 0 {
			return "none"
		}
		for _, key := range ring.Keys {
			if key.KeyID != dist.Signatures[0].KeyID {
				continue
			}
			der, err := base64.StdEncoding.DecodeString(key.Key)
			if err != nil {
				t.Fatal(err)
			}
			public, err := x509.ParsePKIXPublicKey(der)
			if err != nil {
				t.Fatal(err)
			}
			sig, err := base64.StdEncoding.DecodeString(dist.Signatures[0].Sig)
			if err != nil {
				t.Fatal(err)
			}
			hash := sha256.Sum256([]byte(kind + "@1.0.0:" + dist.Integrity))
			switch {
			case !ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), hash[:], sig):
				return "wrong"
			case key.Expires != nil:
				return "expired"
			}
			return "right"
		}
		return "unknown"
	}
	for kind, want := range map[string]string{
		SignatureGood: "right", SignatureNone: "none", SignatureBad: "wrong", SignatureReplaced: "wrong", SignatureExpired: "expired", SignatureUnknown: "unknown",
	} {
		if got := verify(kind); got != want {
			t.Errorf("%s: it is %s", kind, got)
		}
	}
	if _, err := New(writeArchives(t, map[string]string{"a_1.0.0": pkg("signature: odd", "a", "1.0.0")})); err == nil {
		t.Error("a signature of no kind is let through")
	}
}
