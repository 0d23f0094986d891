package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/install/store"
)

func TestPackageOf(t *testing.T) {
	m, err := manifest.Parse([]byte(`{
		"name": "n",
		"dependencies": {"a": "", "../x": "1", "node_modules": "1", "@s/b": "^1"},
		"optionalDependencies": {"..": "1"},
		"peerDependencies": {"p": ""},
		"peerDependenciesMeta": {"p": {"optional": true}, "a/b/c": {"optional": true}},
		"bundleDependencies": ["a", "../x"],
		"os": [""], "cpu": "", "libc": ["", "musl"],
		"bin": {"..": "cli.js", "x": "cli.js"}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := &Package{
		Name: "n", Version: noVersion,
		Dependencies:  map[string]string{"a": "*", "@s/b": "^1"},
		Peers:         map[string]string{"p": "*"},
		OptionalPeers: []string{"p"},
		Bundled:       []string{"a"},
		Libc:          []string{"musl"},
		Bin:           map[string]string{"x": "cli.js"},
	}
	if diff := cmp.Diff(want, packageOf(m), cmp.AllowUnexported(store.Integrity{})); diff != "" {
		t.Errorf("package (-want +got):\n%s", diff)
	}
}

// oddText is a text that a publisher might write, or a hostile one would.
func oddText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{
			"", " ", "a", "b", "@s/n", "..", ".", "../x", "a/x", `b\x`, "c:x", "true", "1", "1.0", "^1", "*", "~", "#a", "- a", "a: b",
			"\x00", "\n", "\r", "\t", "\x7f", "\u0085", "\u2028", "\ufeff", "\xff", "a\xffb", `"`, `\`, "[", "]", ",", "ü", "💥",
		}),
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

// quoted is a JSON string of the very bytes of s, be they no UTF-8.
func quoted(s string) string {
	out := []byte{'"'}
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = fmt.Appendf(out, `\u%04x`, c)
		default:
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}

func oddValue() *rapid.Generator[string] {
	text := rapid.Map(oddText(), quoted)
	list := rapid.Map(rapid.SliceOfN(text, 0, 4), func(s []string) string { return "[" + strings.Join(s, ",") + "]" })
	value := rapid.OneOf(text, rapid.SampledFrom([]string{"null", "true", "false", "0", "1", `{"optional": true}`, `{"optional": 0}`}))
	object := rapid.Custom(func(t *rapid.T) string {
		var members []string
		for range rapid.IntRange(0, 5).Draw(t, "members") {
			members = append(members, text.Draw(t, "key")+":"+value.Draw(t, "value"))
		}
		return "{" + strings.Join(members, ",") + "}"
	})
	return rapid.OneOf(value, list, object)
}

// Every package that can be read from a package.json stands in the lockfile as
// it is.
func TestPackageInLockfile(t *testing.T) {
	id, err := store.ParseIntegrity("sha512-" + strings.Repeat("A", 85) + "Q==")
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		var members []string
		for _, key := range []string{
			"version", "dependencies", "optionalDependencies", "peerDependencies", "peerDependenciesMeta", "bundleDependencies",
			"bundledDependencies", "os", "cpu", "libc", "bin", "engines", "dsh",
		} {
			members = append(members, quoted(key)+":"+oddValue().Draw(t, key))
		}
		text := `{"name": "n",` + strings.Join(members, ",") + "}"
		m, err := manifest.Parse([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		pkg := packageOf(m)
		pkg.Integrity = id
		lock := &Lock{Wanted: map[string]string{"n": "*"}, Nodes: map[string]Located{"node_modules/n": {Package: pkg}}}
		again, err := ParseLock("lock", lock.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", text, err, lock.Bytes())
		}
		if diff := cmp.Diff(lock, again, cmp.AllowUnexported(store.Integrity{})); diff != "" {
			t.Fatalf("%s (-want +got):\n%s", text, diff)
		}
	})
}

func TestReadPackageJSON(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"syntax":    {"{\n\n\"name\": }", "n/package.json:3: "},
		"mark":      {"\xef\xbb\xbf{\n\"name\": }", "n/package.json:2: "},
		"no object": {"[]", "n/package.json must hold a JSON object"},
		"null":      {"null", "n/package.json must hold a JSON object"},
		"huge":      {`{"name": "` + strings.Repeat("a", manifest.MaxSize) + `"}`, "n/package.json is larger than 16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeText(t, filepath.Join(dir, "package.json"), c.text)
			_, err := readPackageJSON("n", dir)
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || fault.ClassOf(err) != fault.Package {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	dir := t.TempDir()
	if _, err := readPackageJSON("n", dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "package.json"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := readPackageJSON("n", dir); err == nil || err.Error() != "n/package.json is no file" {
		t.Errorf("a folder: %v", err)
	}
}

func writeText(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Bundled is what the content really brings along: a copied folder nothing, an
// archive what it holds.
func TestBundledContent(t *testing.T) {
	manifestText, err := json.Marshal(map[string]any{
		"name": "n", "version": "1.0.0", "dependencies": map[string]string{"in": "1", "out": "1"}, "bundleDependencies": []string{"in", "out"},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := map[string]string{"package.json": string(manifestText), "node_modules/in/package.json": "{}", "node_modules/out/readme": ""}
	var archive bytes.Buffer
	zw := gzip.NewWriter(&archive)
	tw := tar.NewWriter(zw)
	for _, name := range sortedKeys(files) {
		writeText(t, filepath.Join(dir, "folder", name), files[name])
		err = errors.Join(err, tw.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o644, Size: int64(len(files[name]))}))
		_, werr := tw.Write([]byte(files[name]))
		err = errors.Join(err, werr)
	}
	if err := errors.Join(err, tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(dir, "n.tgz"), archive.String())
	s := store.Open(filepath.Join(dir, "store"))
	defer s.Close()
	find, ctx, done := (&Job{Dir: dir, Store: s}).sources(context.Background())
	defer done()
	for _, c := range []struct {
		spec string
		want []string
	}{{"file:folder", nil}, {"file:n.tgz", []string{"in"}}, {"link:folder", nil}} {
		spec, err := ParseSpec(c.spec, dir)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := find.find(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, pkg.Bundled); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.spec, diff)
		}
	}
}
