package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dsh/internal/install/manifest"
)

// one is a manifest that stands in a packument.
func one(name, version, registry, text string) (*Manifest, error) {
	p, err := ParsePackument(name, registry, fmt.Sprintf(`{"versions":{%q:%s}}`, version, text))
	if err != nil {
		return nil, err
	}
	return p.Manifest(version)
}

func TestManifest(t *testing.T) {
	const text = `{
		"name": "ignored", "version": "1.0.0-claimed",
		"dependencies": {"a": "^1", "b\u002dc": "*", "odd": 5, "gone": null},
		"bin": "./cli.js",
		"deprecated": "use \"z\"", "Deprecated": "no",
		"dist": {"tarball": "http://r.example/@s/n/-/n-1.0.0.tgz", "integrity": "sha512-x", "shasum": "ab", "unpackedSize": 12, "signatures": [{"a":"]}\\\""}]}
	}`
	want := &Manifest{
		Manifest: manifest.Manifest{
			Name: "@s/n", Version: "1.0.0",
			Dependencies: map[string]string{"a": "^1", "b-c": "*"},
			Bin:          map[string]string{"n": "cli.js"},
		},
		Deprecated:   `use "z"`,
		Dist:         Dist{Tarball: "https://r.example/@s/n/-/n-1.0.0.tgz", Integrity: "sha512-x", Signatures: []Signature{{}}},
		UnpackedSize: 12,
	}
	got, err := one("@s/n", "1.0.0", "https://r.example/", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Dist{})); diff != "" {
		t.Errorf("manifest (-want +got):\n%s", diff)
	}
}

func TestManifestOddTypes(t *testing.T) {
	odd := []string{`null`, `true`, `false`, `0`, `-1.5e9`, `""`, `"s"`, `[]`, `{}`, `[[{"a":[1]}], "x"]`, `{"a": {"b": []}}`}
	for _, field := range []string{"deprecated", "dist", "version"} {
		for _, value := range odd {
			text := fmt.Sprintf(`{%q: %s, "dependencies": {"after": "1"}}`, field, value)
			m, err := one("n", "1.0.0", DefaultRegistry, text)
			if err != nil {
				t.Errorf("%s: %v", text, err)
			} else if m.Dependencies["after"] != "1" {
				t.Errorf("%s: what follows is lost: %+v", text, m)
			}
		}
	}
	for _, text := range odd {
		m, err := one("n", "1.0.0", DefaultRegistry, text)
		if err != nil || m.Name != "n" || m.Version != "1.0.0" || m.Dist.Tarball == "" {
			t.Errorf("the manifest %s: %+v, %v", text, m, err)
		}
	}
}

func TestTarballAddress(t *testing.T) {
	for _, tt := range []struct{ registry, address, want string }{
		{"https://registry.npmjs.org/", "https://registry.npmjs.org/@s/n/-/n-1.0.0.tgz", "https://registry.npmjs.org/@s/n/-/n-1.0.0.tgz"},
		{"https://mirror.example/npm/", "https://registry.npmjs.org/@s/n/-/n-1.0.0.tgz", "https://mirror.example/npm/@s/n/-/n-1.0.0.tgz"},
		{"https://mirror.example/npm/", "http://registry.npmjs.org/@s/n/-/n-1.0.0.tgz", "https://mirror.example/npm/@s/n/-/n-1.0.0.tgz"},
		{"http://localhost:4873/", "https://cdn.example/n.tgz?sig=1", "https://cdn.example/n.tgz?sig=1"},
		{"http://localhost:4873/", "", "http://localhost:4873/@s/n/-/n-1.0.0.tgz"},
		{"https://r.example/npm/", "n-1.0.0.tgz", "https://r.example/npm/n-1.0.0.tgz"},
	} {
		if got := tarballAddress(tt.registry, "@s/n", "1.0.0", tt.address); got != tt.want {
			t.Errorf("%s at %s: %s, want %s", tt.address, tt.registry, got, tt.want)
		}
	}
}

func TestParsePackument(t *testing.T) {
	p, err := ParsePackument("n", DefaultRegistry, "\ufeff"+` {
		"versions": {"0.0.1": {}},
		"readme": "\"}]{",
		"dist-tags": {"latest": "1.0.0", "odd": 1},
		"versions": {"1.0.0": {"deprecated": "a"}, "v1.10.0": {}, "1.2.0": {}, "1.0.0": {"deprecated": "b"}, "x": 1},
		"time": {"1.0.0": "2026-01-10T00:00:00.000Z", "created": 5, "1.2.0": "soon"}
	} `)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"v1.10.0", "1.2.0", "1.0.0"}, p.Versions()); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"latest": "1.0.0"}, p.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if m, err := p.Manifest("1.0.0"); err != nil || m.Deprecated != "b" {
		t.Errorf("of two members the last counts: %+v, %v", m, err)
	}
	if m, err := p.Manifest("7.0.0"); m != nil || err != nil {
		t.Errorf("a version that is not there: %+v, %v", m, err)
	}
	if at := p.Published("1.0.0"); at != time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC) {
		t.Errorf("published: %v", at)
	}
	for _, version := range []string{"1.2.0", "v1.10.0", "created", "9.9.9"} {
		if at := p.Published(version); !at.IsZero() {
			t.Errorf("%s was published %v", version, at)
		}
	}
}

func TestParsePackumentErrors(t *testing.T) {
	const whole = `{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"a":[1,{"b":"\"x"}],"c":null}},"time":{}}`
	for i := range len(whole) {
		if _, err := ParsePackument("n", DefaultRegistry, whole[:i]); err == nil {
			t.Errorf("%q is read", whole[:i])
		}
	}
	for _, text := range []string{"", "[]", `"x"`, "<html>", "null", whole + "}", whole + "{}", `{"a" 1}`, `{"a":1,}`, `{a:1}`, `{"a":}`, `{"\q":1}`, "{\x00}"} {
		if _, err := ParsePackument("n", DefaultRegistry, text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	p, err := ParsePackument("n", DefaultRegistry, `{"versions": {"1.0.0": {"bin": {"a" 1}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Pick(p, "1.0.0", PickOptions{})
	if err == nil || !strings.Contains(err.Error(), "get the versions of n from https://registry.npmjs.org/: the manifest of 1.0.0 cannot be read") {
		t.Errorf("a broken manifest: %v", err)
	}
}

// What encoding/json can read, the scanner reads alike.
func FuzzParsePackument(f *testing.F) {
	f.Add(`{"dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"bin":"x","os":["a"]}}}`)
	f.Add(`{"versions":{"1.0.0":{"dependencies":{"a":"\ud83d\ude00"},"deprecated":false}},"time":{"1.0.0":"2026-01-10T00:00:00.000Z"}}`)
	f.Add(`{"versions":{"1.0.0":{"a":[1,{"b":"\"x"}],"c":null}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePackument("n", DefaultRegistry, text)
		var want struct {
			Versions map[string]json.RawMessage `json:"versions"`
		}
		reads := json.Unmarshal([]byte(text), &want) == nil && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
		if err != nil {
			if reads {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		for _, spec := range []string{"", "latest", "^1", "1.0.0"} {
			_, _ = Pick(p, spec, PickOptions{NodeVersion: version(t, "24.21.0")})
		}
		if !reads {
			return
		}
		for version := range want.Versions {
			if m, err := p.Manifest(version); err != nil || m == nil {
				t.Errorf("%q: the manifest of %q: %v, %v", text, version, m, err)
			}
		}
	})
}

// large is a document with so many versions; with 3,500 it is of the size of
// typescript's, 10 MB.
func large(versions int) string {
	var b strings.Builder
	b.WriteString(`{"name":"big","dist-tags":{"latest":"34.99.0","next":"35.0.0-rc.1"},"versions":{`)
	for i := range versions {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"%d.%d.0":{"name":"big","version":"%d.%d.0","description":"A package","scripts":{"test":"node test","build":"tsc -p ."},`,
			i/100, i%100, i/100, i%100)
		b.WriteString(`"dependencies":{"a":"^1.2.3","b":"^2.0.0"},"devDependencies":{`)
		for j := range 60 {
			fmt.Fprintf(&b, `"@types/dependency-%d":"^%d.0.0",`, j, j)
		}
		b.WriteString(`"x":"1"},"engines":{"node":">=14.17"},"dist":{"tarball":"https://registry.npmjs.org/big/-/big-1.0.0.tgz",` +
			`"integrity":"sha512-W/88ZwWzqJqUuZNVQxGyPVXQ6bYkM5Bqv2TNUe0Lb7EOCzqUVbLEGaXaMWBAmmCD6fwTqmhg6bCAXU0bDDQoBg==",` +
			`"signatures":[{"keyid":"SHA256:jl3bwswu80PjjokCgh0o2w5c2U4LhQAE57gj9cz1kzA",` +
			`"sig":"MEUCIFTyWTKmXcuk/1ptIabm5tsdY+CAV8TU1ibmbFLrNYEAAiEAiXSwoOIChyNmLZVVbjFTeYIJFMPxsHDgXwOjKXrkDB4="}]},` +
			`"maintainers":[{"name":"somebody","email":"somebody@example.com"}],"_npmOperationalInternal":{"host":"s3://npm"}}`)
	}
	b.WriteString(`}}`)
	return b.String()
}

func BenchmarkParsePackument(b *testing.B) {
	text := large(3500)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePackument("big", DefaultRegistry, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPick(b *testing.B) {
	text := large(3500)
	for name, spec := range map[string]string{"latest": "*", "old": "^2.3.0"} {
		b.Run(name, func(b *testing.B) {
			p, err := ParsePackument("big", DefaultRegistry, text)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Pick(p, spec, PickOptions{NodeVersion: version(b, "24.21.0")}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
