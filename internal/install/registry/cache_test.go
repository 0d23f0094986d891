package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// What a version has to have to be taken from a kept document.
const (
	soundHash = "sha512-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
	soundDist = `"dist":{"integrity":"` + soundHash + `"}`
)

// fake is a registry without a network. It notes what it is asked.
type fake struct {
	mu     sync.Mutex
	asked  []string
	answer func(r *http.Request) (status int, body string, headers []string)
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body, headers := f.answer(r)
	note := r.URL.Path
	if etag := r.Header.Get("If-None-Match"); etag != "" {
		note += " unless " + etag
	}
	if since := r.Header.Get("If-Modified-Since"); since != "" {
		note += " since " + since
	}
	f.mu.Lock()
	f.asked = append(f.asked, note)
	f.mu.Unlock()
	resp := answer(status, strings.NewReader(body), headers...)
	resp.Request = r
	return resp, nil
}

// take is what was asked since the last time.
func (f *fake) take() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked := strings.Join(f.asked, ", ")
	f.asked = nil
	return asked
}

// get runs one client, as one command does.
func get(t *testing.T, f *fake, opts Options, do func(c *Client) error) error {
	t.Helper()
	opts.Transport = f
	c, err := New(mustLoad(t, nil, "fetch-retries=0"), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return do(c)
}

func packument(name string) func(c *Client) error {
	return func(c *Client) error {
		p, err := c.Packument(context.Background(), name)
		if err == nil && (p.Name != name || p.Tags["latest"] != "1.0.0") {
			return fmt.Errorf("packument %+v", p)
		}
		return err
	}
}

func TestCacheAge(t *testing.T) {
	for name, tt := range map[string]struct {
		headers []string
		after   time.Duration
		mode    CacheMode
		want    string
	}{
		"young":                         {nil, 4 * time.Minute, UseCache, ""},
		"old":                           {nil, 6 * time.Minute, UseCache, "/x"},
		"old with an etag":              {[]string{"ETag", `W/"1"`}, 6 * time.Minute, UseCache, `/x unless W/"1"`},
		"old with a date":               {[]string{"Last-Modified", "Mon, 30 Nov 2026 12:00:00 GMT"}, 6 * time.Minute, UseCache, "/x since Mon, 30 Nov 2026 12:00:00 GMT"},
		"old and allowed":               {[]string{"Cache-Control", "public, max-age=3600"}, 59 * time.Minute, UseCache, ""},
		"older than allowed":            {[]string{"Cache-Control", "max-age=3600"}, 61 * time.Minute, UseCache, "/x"},
		"on its way for long":           {[]string{"Cache-Control", "max-age=3600", "Age", "3000"}, 11 * time.Minute, UseCache, "/x"},
		"allowed for ever":              {[]string{"Cache-Control", "max-age=99999999"}, 25 * time.Hour, UseCache, "/x"},
		"an age that is none":           {[]string{"Cache-Control", "max-age=-1, max-age"}, 6 * time.Minute, UseCache, "/x"},
		"not to be kept":                {[]string{"Cache-Control", "no-store"}, time.Second, UseCache, "/x"},
		"asked although young":          {[]string{"ETag", "1"}, time.Second, Fresh, "/x unless 1"},
		"old, and nobody wants to know": {nil, 1000 * time.Hour, PreferOffline, ""},
		"old, and nobody may ask":       {nil, 1000 * time.Hour, Offline, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, tt.headers }}
				dir := t.TempDir()
				if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil {
					t.Fatal(err)
				}
				f.take()
				time.Sleep(tt.after)
				if err := get(t, f, Options{CacheDir: dir, Mode: tt.mode}, packument("x")); err != nil {
					t.Fatal(err)
				}
				if asked := f.take(); asked != tt.want {
					t.Errorf("asked %q, want %q", asked, tt.want)
				}
			})
		})
	}
}

// A document that still holds is used, and young again.
func TestCacheNotModified(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(r *http.Request) (int, string, []string) {
			if r.Header.Get("If-None-Match") == "one" {
				return 304, "", []string{"Cache-Control", "max-age=600"}
			}
			return 200, packumentJSON, []string{"ETag", "one"}
		}}
		dir := t.TempDir()
		for _, step := range []struct {
			after time.Duration
			want  string
		}{{0, "/x"}, {6 * time.Minute, "/x unless one"}, {9 * time.Minute, ""}, {2 * time.Minute, "/x unless one"}} {
			time.Sleep(step.after)
			if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil {
				t.Fatal(err)
			}
			if asked := f.take(); asked != step.want {
				t.Errorf("asked %q, want %q", asked, step.want)
			}
		}
	})
	// Who did not ask whether something holds gets no answer by that.
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 304, "", nil }}
	err := get(t, f, Options{}, packument("x"))
	if err == nil || !strings.HasSuffix(err.Error(), "it answered HTTP 304") {
		t.Errorf("%v", err)
	}
}

func TestCacheModes(t *testing.T) {
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, nil }}
	dir := t.TempDir()
	err := get(t, f, Options{CacheDir: dir, Mode: Offline}, packument("x"))
	if fault.ClassOf(err) != fault.Network || !strings.Contains(err.Error(), "get the versions of x: nothing is kept of it, and --offline asks no registry") || fault.Hint(err) == "" {
		t.Errorf("offline: %v", err)
	}
	if err := get(t, f, Options{CacheDir: dir, ReadOnly: true}, packument("x")); err != nil {
		t.Fatal(err)
	}
	if left := files(t, dir); len(left) != 0 {
		t.Errorf("a dry run left %q", left)
	}
	if err := get(t, f, Options{CacheDir: dir, Mode: PreferOffline}, packument("x")); err != nil {
		t.Fatal(err)
	}
	if asked := f.take(); asked != "/x, /x" {
		t.Errorf("asked %q", asked)
	}
	if left := files(t, dir); len(left) != 1 || filepath.Base(left[0]) != "p-x" {
		t.Errorf("kept %q", left)
	}
	if err := get(t, f, Options{CacheDir: dir, ReadOnly: true}, packument("x")); err != nil || f.take() != "" {
		t.Errorf("a dry run does not use what is kept: %v", err)
	}
	// A directory that cannot be made keeps nothing, and hinders nobody.
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := get(t, f, Options{CacheDir: filepath.Join(file, "below")}, packument("x")); err != nil {
		t.Error(err)
	}
}

func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What one registry said is not what another says, nor of another package.
func TestCacheKeys(t *testing.T) {
	documents := []document{
		{registry: "https://a.example/", name: "x"},
		{registry: "https://b.example/", name: "x"},
		{registry: "https://a.example/npm/", name: "x"},
		{registry: "https://a.example/", name: "X"},
		{registry: "https://a.example/", name: "x", full: true},
		{registry: "https://a.example/", name: "x", version: "1.0.0"},
		{registry: "https://a.example/", name: "x", version: "1.0.0-A"},
		{registry: "https://a.example/", name: "x", version: "1.0.0-a"},
		{registry: "https://a.example/", name: "@s/x"},
		{registry: "https://a.example/", name: "s+x"},
		{registry: "https://a.example/", name: "s/x"},
		{registry: "https://a.example/", name: "!x"},
		{registry: "https://a.example/", name: "con"},
		{registry: "https://a.example/", name: "x@1.0.0"},
	}
	c := newCache(t.TempDir(), false)
	seen := map[string]document{}
	for _, d := range documents {
		p, err := ParsePackument(d.name, d.registry, packumentJSON)
		if err != nil {
			t.Fatal(err)
		}
		file := strings.ToLower(c.file(d))
		if other, taken := seen[file]; taken {
			t.Errorf("%+v and %+v are both kept in %s", d, other, file)
		}
		seen[file] = d
		k := &keptDocument{document: d, fetched: time.Now(), etag: d.registry + d.name, packument: p, data: compactOf(t, d)}
		c.save(k)
		// The file itself says what it is about.
		content := string(k.append(nil))
		for _, other := range documents {
			if (parseKept(other, content) != nil) != (other.registry == d.registry && other.name == d.name && other.version == d.version) {
				t.Errorf("the file of %+v read as %+v", d, other)
			}
		}
	}
	c.close()
	for _, d := range documents {
		k := c.load(d)
		if k == nil || k.etag != d.registry+d.name || k.packument.Registry != d.registry || k.packument.Name != d.name {
			t.Errorf("%+v: kept %+v", d, k)
		}
	}
	long := document{registry: "https://a.example/", name: strings.Repeat("x", 214)}
	c.save(&keptDocument{document: long})
	if c.load(long) != nil {
		t.Error("a name that is too long for a file")
	}
}

func compactOf(t testing.TB, d document) string {
	t.Helper()
	text := packumentJSON
	if d.version != "" {
		text = fmt.Sprintf(`{"version":%q}`, d.version)
	}
	src := source{r: strings.NewReader(text), left: 1 << 20, buf: takeWindow(-1)}
	data, err := compacted(d, &src)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A file that is not as it was written counts as absent.
func TestCacheDamage(t *testing.T) {
	d := document{registry: DefaultRegistry, name: "x"}
	p, err := ParsePackument(d.name, d.registry, packumentJSON)
	if err != nil {
		t.Fatal(err)
	}
	k := &keptDocument{document: d, fetched: time.Now(), etag: "e", packument: p, data: compactOf(t, d)}
	whole := k.append(nil)
	if parseKept(d, string(whole)) == nil {
		t.Fatal("the whole file is not read")
	}
	for i := range whole {
		if parseKept(d, string(whole[:i])) != nil {
			t.Errorf("the first %d bytes are read", i)
		}
		broken := slices.Clone(whole)
		broken[i] ^= 0x40
		if parseKept(d, string(broken)) != nil {
			t.Errorf("a file broken at %d is read", i)
		}
	}
	if parseKept(d, string(append(slices.Clone(whole), 0))) != nil {
		t.Error("a file with more in it is read")
	}
	f := &fake{answer: func(*http.Request) (int, string, []string) { return 200, packumentJSON, nil }}
	dir := t.TempDir()
	for range 2 {
		if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil || f.take() != "/x" {
			t.Errorf("a broken file is used: %v", err)
		}
		if err := get(t, f, Options{CacheDir: dir}, packument("x")); err != nil || f.take() != "" {
			t.Errorf("what came for a broken file is not kept: %v", err)
		}
		for _, file := range files(t, dir) {
			if err := os.WriteFile(file, whole[:100], 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Files of all sizes come back.
func TestCacheSizes(t *testing.T) {
	c := newCache(t.TempDir(), false)
	sizes := []int{0, 10, 65_000, 65_300, 65_536, 66_000, 300_000, 262_144, 5, 1 << 20, 1<<20 + 1, 3 << 20, 5, 700_000}
	for i, size := range sizes {
		d := document{registry: DefaultRegistry, name: fmt.Sprint("p", i)}
		text := fmt.Sprintf(`{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"deprecated":%q}}}`, strings.Repeat("x", size))
		p, err := ParsePackument(d.name, d.registry, text)
		if err != nil {
			t.Fatal(err)
		}
		src := source{r: strings.NewReader(text), left: 1 << 30, buf: takeWindow(int64(len(text)))}
		data, err := compacted(d, &src)
		if err != nil {
			t.Fatal(err)
		}
		c.save(&keptDocument{document: d, packument: p, data: data})
	}
	c.close()
	for i, size := range sizes {
		k := c.load(document{registry: DefaultRegistry, name: fmt.Sprint("p", i)})
		if k == nil {
			t.Errorf("%d bytes are lost", size)
			continue
		}
		if m, err := k.packument.Manifest("1.0.0"); err != nil || len(m.Deprecated) != size {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

func TestCacheVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: func(r *http.Request) (int, string, []string) {
			if strings.HasSuffix(r.URL.Path, "/1.0.0") {
				return 200, `{"name":"x","version":"1.0.0","deprecated":"alone",` + soundDist + `}`, nil
			}
			return 200, `{"versions":{"1.0.0":{"deprecated":"one of all",` + soundDist + `},"2.0.0":{}},"dist-tags":{"latest":"1.0.0"}}`, nil
		}}
		dir := t.TempDir()
		version := func(wanted string) func(c *Client) error {
			return func(c *Client) error {
				m, err := c.Find(context.Background(), "x", wanted, PickOptions{})
				if err == nil && m.Deprecated == "" {
					return errors.New("not deprecated")
				}
				return err
			}
		}
		for _, step := range []struct {
			after  time.Duration
			mode   CacheMode
			wanted string
			asked  string
		}{
			{0, UseCache, "1.0.0", "/x/1.0.0"},
			{time.Hour, UseCache, "1.0.0", ""}, // a version does not change
			{0, Fresh, "1.0.0", "/x/1.0.0"},
			{25 * time.Hour, UseCache, "1.0.0", "/x/1.0.0"},
			{1000 * time.Hour, Offline, "1.0.0", ""},
			{0, UseCache, "^1", "/x"},
			{time.Hour, UseCache, "1.0.0", ""}, // the document about all has it
			{time.Hour, UseCache, "^1", "/x"},
		} {
			time.Sleep(step.after)
			if err := get(t, f, Options{CacheDir: dir, Mode: step.mode}, version(step.wanted)); err != nil {
				t.Error(err)
			}
			if asked := f.take(); asked != step.asked {
				t.Errorf("%s in mode %d: asked %q, want %q", step.wanted, step.mode, asked, step.asked)
			}
		}
	})
}

// What was found in a kept document stays when its memory is used again.
func TestCacheLends(t *testing.T) {
	text := func(letter string) string {
		return strings.NewReplacer("INTEGRITY", soundHash, "A", letter).Replace(`{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"dependencies":{"A":"^A"},"bin":{"A":"A.js"},"os":["A"],
			"deprecated":"AAA","scripts":{"install":"A"},"dist":{"tarball":"https://A.example/A.tgz","integrity":"INTEGRITY","shasum":"A"}}}}`)
	}
	f := &fake{answer: func(r *http.Request) (int, string, []string) {
		return 200, text(strings.TrimPrefix(r.URL.Path, "/")), nil
	}}
	dir := t.TempDir()
	var want, got []string
	for _, found := range []*[]string{&want, &got} {
		err := get(t, f, Options{CacheDir: dir, Mode: PreferOffline}, func(c *Client) error {
			var manifests []*Manifest
			for _, name := range []string{"a", "b", "c", "d"} {
				m, err := c.Find(context.Background(), name, "^1", PickOptions{})
				if err != nil {
					return err
				}
				manifests = append(manifests, m.Manifest)
			}
			for _, m := range manifests {
				*found = append(*found, fmt.Sprintf("%+v", *m))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if asked := f.take(); len(f.asked) != 0 || strings.Count(asked, "/") != 4 {
		t.Errorf("asked %s", asked)
	}
	if !slices.Equal(want, got) || !strings.Contains(want[3], "d.example") || !strings.Contains(want[0], "OS:[a]") {
		t.Errorf("found\n%q, want\n%q", got, want)
	}
	err := get(t, f, Options{CacheDir: dir, Mode: Offline}, func(c *Client) error {
		_, err := c.Find(context.Background(), "a", "^7", PickOptions{})
		return err
	})
	if none, ok := errors.AsType[*NoMatchError](err); !ok || !slices.Equal(none.Newest, []string{"1.0.0"}) {
		t.Errorf("%v", err)
	}
}

// One version is described whole, also where the abbreviated document is there.
func TestDescribed(t *testing.T) {
	for name, single := range map[string]int{"served alone": 200, "not served": 404} {
		f := &fake{answer: func(r *http.Request) (int, string, []string) {
			const whole = `{"name":"x","version":"1.0.0","dsh":{"bundle":{}},"scripts":{"postinstall":"y"}}`
			switch {
			case r.URL.Path == "/x/1.0.0":
				return single, whole, nil
			case strings.Contains(r.Header.Get("Accept"), "install-v1"):
				return 200, `{"versions":{"1.0.0":{"hasInstallScript":true}}}`, nil
			}
			return 200, `{"versions":{"1.0.0":` + whole + `}}`, nil
		}}
		dir := t.TempDir()
		for range 2 {
			err := get(t, f, Options{CacheDir: dir}, func(c *Client) error {
				if m, err := c.Find(context.Background(), "x", "^1", PickOptions{}); err != nil || m.Layer || !slices.Equal(m.Scripts, []string{"install"}) {
					return fmt.Errorf("found %+v, %w", m, err)
				}
				m, err := c.Described(context.Background(), "x", "1.0.0")
				if err != nil || !m.Layer || !slices.Equal(m.Scripts, []string{"postinstall"}) {
					return fmt.Errorf("described %+v, %w", m, err)
				}
				return nil
			})
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// The abbreviated document does not say when versions were published, and need
// not where all of it is old enough.
func TestBefore(t *testing.T) {
	const short = `{"modified":"2026-03-01T00:00:00.000Z","dist-tags":{"latest":"1.2.0"},"versions":{"1.0.0":{},"1.1.0":{},"1.2.0":{}}}`
	const long = `{"dist-tags":{"latest":"1.2.0"},"versions":{"1.0.0":{},"1.1.0":{},"1.2.0":{}},
		"time":{"created":"2026-01-01T00:00:00.000Z","1.0.0":"2026-01-01T00:00:00.000Z","1.1.0":"2026-01-31T23:59:59.999Z","1.2.0":"2026-03-01T00:00:00.000Z"}}`
	for _, tt := range []struct {
		before, wanted, exempt, picked, skipped, asked string
	}{
		{"2026-04-01", "^1", "", "1.2.0", "", "/x"},
		{"2026-02-01", "^1", "", "1.1.0", "1.2.0", "/x, /x full"},
		{"2026-02-01", "latest", "", "1.1.0", "1.2.0", "/x, /x full"},
		{"2026-01-31", "^1", "", "1.0.0", "1.2.0", "/x, /x full"},
		{"2026-02-01", "1.0.0", "", "1.0.0", "", "/x, /x full"},
		{"2026-02-01", "1.2.0", "", "", "", "/x, /x full"},
		{"2026-02-01", "^1", "1.2.0", "1.2.0", "", "/x, /x full"},
		{"2025-01-01", "^1", "", "", "", "/x, /x full"},
		{"", "^1", "", "1.2.0", "", "/x"},
	} {
		var asked []string
		f := &fake{answer: func(r *http.Request) (int, string, []string) {
			if strings.Contains(r.Header.Get("Accept"), "install-v1") {
				asked = append(asked, r.URL.Path)
				return 200, short, nil
			}
			asked = append(asked, r.URL.Path+" full")
			return 200, long, nil
		}}
		var opts PickOptions
		if tt.before != "" {
			opts.Before, _ = time.Parse(time.DateOnly, tt.before)
		}
		if tt.exempt != "" {
			opts.Exempt = func(version string, _ time.Time) bool { return version == tt.exempt }
		}
		var picked Choice
		err := get(t, f, Options{}, func(c *Client) (err error) {
			picked, err = c.Find(context.Background(), "x", tt.wanted, opts)
			return err
		})
		_, none := errors.AsType[*NoMatchError](err)
		if none != (tt.picked == "") || err != nil && !none {
			t.Errorf("%s before %s: %v", tt.wanted, tt.before, err)
			continue
		}
		if err == nil && (picked.Version != tt.picked || picked.Skipped != tt.skipped || picked.SkippedAt.IsZero() != (tt.skipped == "")) {
			t.Errorf("%s before %s: %s, passing over %q of %v; want %s, %q", tt.wanted, tt.before, picked.Version, picked.Skipped, picked.SkippedAt, tt.picked, tt.skipped)
		}
		if got := strings.Join(asked, ", "); got != tt.asked {
			t.Errorf("%s before %s: asked %s, want %s", tt.wanted, tt.before, got, tt.asked)
		}
	}
}

// Whatever is in a file, reading it ends, and well.
func FuzzParseKept(f *testing.F) {
	d := document{registry: DefaultRegistry, name: "x"}
	f.Add([]byte(compactOf(f, d)))
	src := source{r: strings.NewReader(large(20)), left: 1 << 30, buf: takeWindow(-1)}
	data, err := compacted(document{registry: DefaultRegistry, name: "big"}, &src)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(data))
	f.Fuzz(func(t *testing.T, data []byte) {
		k := &keptDocument{document: d, data: string(data)}
		k = parseKept(d, string(k.append(nil)))
		if k == nil {
			return
		}
		for _, spec := range []string{"", "latest", "^1", "1.0.0", "<2.0.0-rc.1"} {
			_, _ = Pick(k.packument, spec, PickOptions{NodeVersion: version(t, "24.21.0"), Before: time.Now()})
		}
		for _, v := range k.packument.highest(10) {
			_, _ = k.packument.Manifest(v)
		}
	})
}

func BenchmarkLoadKept(b *testing.B) {
	d := document{registry: DefaultRegistry, name: "big"}
	src := source{r: strings.NewReader(large(60)), left: 1 << 30, buf: takeWindow(-1)}
	data, err := compacted(d, &src)
	if err != nil {
		b.Fatal(err)
	}
	c := newCache(b.TempDir(), false)
	c.save(&keptDocument{document: d, fetched: time.Now(), data: data})
	c.close()
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		k := c.load(d)
		if k == nil {
			b.Fatal("not kept")
		}
		if _, err := Pick(k.packument, "^0.1.0", PickOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
