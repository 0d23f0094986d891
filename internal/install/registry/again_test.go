package registry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dsh/internal/fault"
)

// versions is a document with versions, each of them sound.
func versions(latest string, all ...string) string {
	var list []string
	for _, v := range all {
		list = append(list, fmt.Sprintf("%q:{%s}", v, soundDist))
	}
	return fmt.Sprintf(`{"dist-tags":{"latest":%q},"versions":{%s}}`, latest, strings.Join(list, ","))
}

// found is what one command finds of x, one after the other.
func found(t *testing.T, f *fake, opts Options, wanted ...string) (got string, err error) {
	t.Helper()
	var list []string
	err = get(t, f, opts, func(c *Client) error {
		for _, w := range wanted {
			choice, err := c.Find(context.Background(), "x", w, PickOptions{})
			if err != nil {
				return err
			}
			list = append(list, choice.Version)
		}
		return nil
	})
	return strings.Join(list, " "), err
}

// What a kept document does not have is asked for once, and others get what
// they would get without that, in every order.
func TestAsksAgain(t *testing.T) {
	for _, tt := range []struct {
		mode          CacheMode
		first, second string // documents
		wanted        string
		want, asked   string
	}{
		{UseCache, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.0.0", "1.0.0", ""},
		{UseCache, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.1.0", "1.1.0", "/x"},
		{UseCache, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.1.0 ^1.0.0 ~1.1.0", "1.1.0 1.0.0 1.1.0", "/x"},
		{UseCache, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.0.0 ^1.1.0", "1.0.0 1.1.0", "/x"},
		{PreferOffline, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.1.0", "1.1.0", "/x"},
		{UseCache, versions("1.0.0", "1.0.0"), versions("1.0.0", "1.0.0"), "^1.1.0", "", "/x"},
		{Offline, versions("1.0.0", "1.0.0"), versions("1.1.0", "1.1.0", "1.0.0"), "^1.1.0", "", ""},
		// A registry that is well again.
		{UseCache, `{"versions":null}`, versions("1.0.0", "1.0.0"), "", "1.0.0", "/x"},
		{UseCache, `{"versions":{"1.0.0":null}}`, versions("1.0.0", "1.0.0"), "", "1.0.0", "/x"},
		{UseCache, `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{}}}`, versions("1.0.0", "1.0.0"), "latest", "1.0.0", "/x"},
		{UseCache, `{"versions":{"1.0.0":{"dist":{"integrity":"sha512-AAAA"}}}}`, versions("1.0.0", "1.0.0"), "", "1.0.0", "/x"},
		{UseCache, `{"versions":{"1.0.0":{"dist":{"integrity":"` + soundHash + `","tarball":"file:///etc/passwd"}}}}`, versions("1.0.0", "1.0.0"), "", "1.0.0", "/x"},
	} {
		now := tt.first
		f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, now, []string{"ETag", "same"} }}
		dir := t.TempDir()
		if err := get(t, f, Options{CacheDir: dir}, func(c *Client) error {
			_, err := c.Packument(t.Context(), "x")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		f.take()
		now = tt.second
		got, err := found(t, f, Options{CacheDir: dir, Mode: tt.mode}, strings.Split(tt.wanted, " ")...)
		none, ok := errors.AsType[*NoMatchError](err)
		if got != tt.want || ok != (tt.want == "") || ok && none.Kept != (tt.mode == Offline) || ok && (none.Hint() != "") != none.Kept {
			t.Errorf("%s in mode %d, after %s: %s, %v; want %s", tt.wanted, tt.mode, tt.first, got, err, tt.want)
		}
		if asked := f.take(); asked != tt.asked {
			t.Errorf("%s in mode %d, after %s: asked %q, want %q", tt.wanted, tt.mode, tt.first, asked, tt.asked)
		}
		if tt.asked == "" {
			continue
		}
		// What was asked for again is kept.
		if got, err := found(t, f, Options{CacheDir: dir, Mode: Offline}, strings.Split(tt.wanted, " ")[0]); err == nil && !strings.Contains(tt.want, got) || (err == nil) != (tt.want != "") {
			t.Errorf("%s afterwards: %s, %v", tt.wanted, got, err)
		}
	}
}

// An exact version that a kept document does not have, or has without a hash.
func TestAsksAgainForOneVersion(t *testing.T) {
	single := false
	now := `{"name":"x","version":"1.0.0"}`
	all := versions("1.0.0", "1.0.0")
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		switch {
		case r.URL.Path == "/x":
			return 200, all, nil
		case single:
			return 200, now, nil
		}
		return 404, "", nil
	}}
	dir := t.TempDir()
	for _, step := range []struct {
		do                  func()
		wanted, want, asked string
	}{
		{func() {}, "2.0.0", "", "/x/2.0.0, /x"},
		{func() {}, "2.0.0", "", "/x/2.0.0, /x"},
		{func() { all = versions("2.0.0", "1.0.0", "2.0.0") }, "2.0.0", "2.0.0", "/x/2.0.0, /x"},
		{func() {}, "2.0.0", "2.0.0", ""},
		{func() { _ = os.Remove(filepath.Join(dir, "p-x")); single = true; dir = t.TempDir() }, "1.0.0", "1.0.0", "/x/1.0.0"},
		{func() { now = `{"name":"x","version":"1.0.0",` + soundDist + `}` }, "1.0.0", "1.0.0", "/x/1.0.0"},
		{func() {}, "1.0.0", "1.0.0", ""},
	} {
		step.do()
		got, err := found(t, f, Options{CacheDir: dir}, step.wanted)
		if _, none := errors.AsType[*NoMatchError](err); got != step.want || none != (step.want == "") {
			t.Errorf("%s: %s, %v; want %s", step.wanted, got, err, step.want)
		}
		if asked := f.take(); asked != step.asked {
			t.Errorf("%s: asked %q, want %q", step.wanted, asked, step.asked)
		}
	}
	err := get(t, f, Options{CacheDir: dir}, func(c *Client) error { c.Forget("x", "1.0.0"); return nil })
	if _, again := found(t, f, Options{CacheDir: dir}, "1.0.0"); err != nil || again != nil || f.take() != "/x/1.0.0" {
		t.Errorf("what was forgotten is not asked for: %v, %v", err, again)
	}
}

// The C library of a version is known whatever was asked before, and whether
// the registry abbreviates.
func TestLibc(t *testing.T) {
	member := func(libc string) string { return `"os":["linux"],"cpu":["x64"],` + libc + soundDist }
	for name, tt := range map[string]struct {
		alone, whole string // what the manifests add, "" where nothing is served
		want         string
	}{
		"served alone":     {`"libc":["musl"],`, `"libc":["musl"],`, "[musl]"},
		"in the whole":     {"", `"libc":["musl"],`, "[musl]"},
		"of no library":    {`"libc":[],`, `"libc":[],`, "[]"},
		"nothing but this": {"", "", "[]"},
	} {
		f := &fake{answer: func(r *http.Request) (int, string, []string) {
			short := strings.Contains(r.Header.Get("Accept"), "install-v1")
			switch {
			case r.URL.Path == "/x/1.0.0" && tt.alone != "":
				return 200, `{"name":"x","version":"1.0.0",` + member(tt.alone) + `}`, nil
			case r.URL.Path != "/x":
				return 404, "", nil
			case short:
				return 200, `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{` + member("") + `}}}`, nil
			case tt.whole == "":
				return 404, "", nil
			}
			return 200, `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{` + member(tt.whole) + `}}}`, nil
		}}
		for _, order := range [][]string{{"^1"}, {"1.0.0"}, {"^1", "1.0.0"}, {"1.0.0", "^1"}, {"packument", "1.0.0"}} {
			dir := t.TempDir()
			for _, mode := range []CacheMode{UseCache, UseCache, Fresh, Offline} {
				err := get(t, f, Options{CacheDir: dir, Mode: mode}, func(c *Client) error {
					for _, wanted := range order {
						if wanted == "packument" {
							if _, err := c.Packument(t.Context(), "x"); err != nil {
								return err
							}
							continue
						}
						choice, err := c.Find(t.Context(), "x", wanted, PickOptions{})
						if err != nil {
							return err
						}
						if got := fmt.Sprint(choice.Libc); got != tt.want {
							return fmt.Errorf("libc %s of %s", got, wanted)
						}
					}
					return nil
				})
				if err != nil {
					t.Errorf("%s, %q in mode %d: %v", name, order, mode, err)
				}
			}
		}
	}
}

// Whoever asks first, and whichever answer comes first.
func TestLibcTogether(t *testing.T) {
	const manifest = `"os":["linux"],` + soundDist
	for _, slow := range []string{"", "/x", "/x/1.0.0"} {
		for _, order := range [][]string{{"^1", "1.0.0"}, {"1.0.0", "^1"}} {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(r *http.Request) (int, string, []string) {
					if r.URL.Path == slow {
						time.Sleep(time.Second)
					}
					if r.URL.Path == "/x" {
						return 200, `{"versions":{"1.0.0":{` + manifest + `}}}`, nil
					}
					return 200, `{"name":"x","version":"1.0.0","libc":["musl"],` + manifest + `}`, nil
				}}
				err := get(t, f, Options{CacheDir: t.TempDir()}, func(c *Client) error {
					var group sync.WaitGroup
					for i, wanted := range order {
						group.Go(func() {
							time.Sleep(time.Duration(i) * 700 * time.Millisecond)
							if choice, err := c.Find(context.Background(), "x", wanted, PickOptions{}); err != nil || !slices.Equal(choice.Libc, []string{"musl"}) {
								t.Errorf("%s, %s slow: %+v, %v", wanted, slow, choice.Manifest, err)
							}
						})
					}
					group.Wait()
					return nil
				})
				if err != nil {
					t.Error(err)
				}
				if asked := f.take(); strings.Count(asked, "/x") != 2 || strings.Count(asked, "/1.0.0") != 1 {
					t.Errorf("asked %s", asked)
				}
			})
		}
	}
}

func TestForLinux(t *testing.T) {
	for _, tt := range []struct {
		os, cpu string
		want    bool
	}{
		{"", "", false}, {"linux", "", true}, {"", "x64", true}, {"darwin", "x64", false}, {"!win32", "", true},
		{"!linux", "x64", false}, {"darwin linux", "", true}, {"any", "", true},
	} {
		m := &Manifest{}
		m.OS, m.CPU = strings.Fields(tt.os), strings.Fields(tt.cpu)
		if got := m.forLinux(); got != tt.want {
			t.Errorf("os %q, cpu %q: %v", tt.os, tt.cpu, got)
		}
	}
}

// That there is no such package is kept for those who may not ask.
func TestCacheGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		status := 404
		f := &fake{answer: func(*http.Request) (int, string, []string) { return status, packumentJSON, nil }}
		dir := t.TempDir()
		for _, step := range []struct {
			after  time.Duration
			mode   CacheMode
			status int
			asked  string
			gone   bool
			hint   bool
		}{
			{0, UseCache, 404, "/x", true, false},
			{0, UseCache, 404, "/x", true, false},
			{0, Offline, 200, "", true, true},
			{0, PreferOffline, 200, "", true, true},
			{25 * time.Hour, PreferOffline, 404, "/x", true, false},
			{1000 * time.Hour, Offline, 200, "", true, true},
			{0, UseCache, 200, "/x", false, false},
			{0, Offline, 404, "", false, false},
		} {
			time.Sleep(step.after)
			status = step.status
			err := get(t, f, Options{CacheDir: dir, Mode: step.mode}, packument("x"))
			if _, gone := errors.AsType[*NotFoundError](err); gone != step.gone || (fault.Hint(err) != "") != step.hint {
				t.Errorf("mode %d: %v (%s)", step.mode, err, fault.Hint(err))
			}
			if asked := f.take(); asked != step.asked {
				t.Errorf("mode %d: asked %q, want %q", step.mode, asked, step.asked)
			}
		}
	})
}

// What must not be kept takes what was kept before with it.
func TestCacheNoStore(t *testing.T) {
	var headers []string
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, headers }}
	dir := t.TempDir()
	for range 2 {
		if err := get(t, f, Options{CacheDir: dir, Mode: Fresh}, packument("x")); err != nil {
			t.Fatal(err)
		}
		headers = []string{"Cache-Control", "no-store"}
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("kept %q", left)
	}
}

// What one may read with a token is not for those without it.
func TestCacheAskers(t *testing.T) {
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, nil }}
	dir := t.TempDir()
	ask := func(npmrc string) string {
		c, err := New(mustLoad(t, nil, "fetch-retries=0", npmrc), Options{CacheDir: dir, Transport: f})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := packument("x")(c); err != nil {
			t.Fatal(err)
		}
		return f.take()
	}
	const mine, other = "//registry.npmjs.org/:_authToken=one", "//registry.npmjs.org/:_authToken=two"
	for i, step := range []struct{ npmrc, asked string }{{mine, "/x"}, {mine, ""}, {"", "/x"}, {other, "/x"}, {mine, ""}, {"", ""}} {
		if asked := ask(step.npmrc); asked != step.asked {
			t.Errorf("%d: asked %q, want %q", i, asked, step.asked)
		}
	}
	for _, file := range files(t, dir) {
		if text, err := os.ReadFile(file); err != nil || strings.Contains(file+string(text), "one") && strings.Contains(string(text), "Bearer") {
			t.Errorf("%s: %v, %q", file, err, text)
		}
	}
}

// What a killed process left goes with the next use, also where that writes nothing.
func TestCacheSweeps(t *testing.T) {
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, nil }}
	dir := t.TempDir()
	if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(files(t, dir)[0]), ".dsh-tmp-aaaaaaaaaaaa", "new")
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(left, "1"), filepath.Join(filepath.Dir(left), "lock")} {
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("left %q", left)
	}
}

// The message says which version is too new, from when it is not, and what to do.
func TestTooYoung(t *testing.T) {
	const text = `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{}},"time":{"1.0.0":"2099-01-01T12:30:00.000Z"}}`
	p, err := ParsePackument("x", DefaultRegistry, text)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		wanted     string
		age        time.Duration
		want, hint string
	}{
		{"^1", 24 * time.Hour, `no version of "x" matches "^1" and is older than 2026-12-01 in the registry https://registry.npmjs.org/
	too new: 1.0.0, published 2099-01-01 12:30 UTC, to be taken from 2099-01-02 12:30 UTC
	newest: 1.0.0
	tags:   latest 1.0.0`, "to take it now, add --min-release-age 0, or name x in minimumReleaseAgeExclude of pnpm-workspace.yaml"},
		{"", 0, `no version of "x" is older than 2026-12-01 in the registry https://registry.npmjs.org/
	too new: 1.0.0, published 2099-01-01 12:30 UTC
	newest: 1.0.0
	tags:   latest 1.0.0`, "a later date with --before takes it"},
		{"^2", 0, `no version of "x" matches "^2" and is older than 2026-12-01 in the registry https://registry.npmjs.org/
	newest: 1.0.0
	tags:   latest 1.0.0`, ""},
	} {
		_, err := p.pick(tt.wanted, PickOptions{Before: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), Age: tt.age})
		if err == nil || err.Error() != tt.want || fault.Hint(err) != tt.hint {
			t.Errorf("%q: %v\nhint: %s", tt.wanted, err, fault.Hint(err))
		}
	}
}

// A scope of which only the environment knows.
func TestEnvironmentScopes(t *testing.T) {
	t.Setenv("npm_config_@acme:registry", "https://acme.example/npm")
	t.Setenv("NPM_CONFIG_@Other:registry", "https://other.example")
	t.Setenv("npm_config_//acme.example/npm/:_authToken", "token")
	read := func(string) ([]byte, error) { return []byte("@acme:registry=https://file.example/"), nil }
	config, err := LoadConfig(read, os.Getenv, "/npmrc")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"@acme/x": "https://acme.example/npm/", "@other/x": "https://other.example/", "x": DefaultRegistry, "@none/x": DefaultRegistry} {
		if got := config.RegistryFor(name); got != want {
			t.Errorf("%s is asked for at %s, want %s", name, got, want)
		}
	}
	if config.asker("https://acme.example/npm/") != "Bearer token" || config.asker("https://other.example/") != "" {
		t.Error("the token is not that of its registry")
	}
	t.Setenv("npm_config_@acme:registry", "nonsense")
	if _, err := LoadConfig(read, os.Getenv, "/npmrc"); err == nil || !strings.Contains(err.Error(), "npm_config_@acme:registry") {
		t.Errorf("an address that is none: %v", err)
	}
}

// A proxy that accepts and never says whether it connects.
func TestSilentProxy(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tries := make(chan net.Conn, 10)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				close(tries)
				return
			}
			tries <- conn
		}
	}()
	proxy := "http://" + listener.Addr().String()
	c := newClient(t, mustLoad(t, nil, "registry=https://registry.example/", "https-proxy="+proxy,
		"fetch-timeout=200", "fetch-retries=1", "fetch-retry-mintimeout=1"), Options{})
	start := time.Now()
	_, err = c.Packument(t.Context(), "x")
	want := "get the versions of x from registry.example: no data for 0.2 s (through the proxy " + proxy + ")"
	if err == nil || err.Error() != want || fault.ClassOf(err) != fault.Network {
		t.Errorf("%v", err)
	}
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	listener.Close()
	n := 0
	for conn := range tries {
		conn.Close()
		n++
	}
	if n != 2 {
		t.Errorf("it was tried %d times", n)
	}
}
