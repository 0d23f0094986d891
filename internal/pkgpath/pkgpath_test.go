package pkgpath

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	missing, escapes, portable := new(*MissingDotError), new(*EscapesError), new(*NotPortableError)
	for _, tt := range []struct {
		text, resolved string
		err            any
	}{
		{"./", ".", nil},
		{"./.", ".", nil},
		{"./bin/x", "bin/x", nil},
		{"./bin//x/", "bin/x", nil},
		{"./bin/../x", "x", nil},
		{"./bin/..", ".", nil},
		{"./a b/ü", "a b/ü", nil},
		{"./...", "...", nil},
		{"./..a/b..", "..a/b..", nil},
		{"./${PLUGIN_ROOT}", "${PLUGIN_ROOT}", nil},
		{"./ab:c", "ab:c", nil},
		{"./1:", "1:", nil},
		{"", "", missing},
		{".", "", missing},
		{"x", "", missing},
		{"/x", "", missing},
		{"../x", "", missing},
		{"C:/x", "", missing},
		{`.\x`, "", missing},
		{"./..", "", escapes},
		{"./../x", "", escapes},
		{"./a/../..", "", escapes},
		{"./a/../../a", "", escapes}, // ends inside, but leaves on the way
		{"./a//../..", "", escapes},
		{`./..\..\x`, "", portable},
		{`./a\b`, "", portable},
		{"./C:", "", portable},
		{"./c:x", "", portable},
		{"./a/Z:/b", "", portable},
		{"./a\x00b", "", portable},
	} {
		p, err := Parse(tt.text)
		if tt.err != nil {
			if err == nil || !errors.As(err, tt.err) {
				t.Errorf("%q: got %q, %v", tt.text, p, err)
			}
			continue
		}
		if err != nil || p.String() != tt.text || p.Resolve() != tt.resolved {
			t.Errorf("%q: got %q, which resolves to %q, %v", tt.text, p, p.Resolve(), err)
		}
	}
}

func TestChild(t *testing.T) {
	for _, name := range []string{"SKILL.md", "...", `a\b`, " ", "C:", "ü"} {
		p, err := Skills().Child(name)
		if err != nil || p.String() != "skills/"+name || p.Base() != name {
			t.Errorf("%q: got %q, %v", name, p, err)
		}
		if top, err := Root().Child(name); err != nil || top.String() != name {
			t.Errorf("%q of the root: got %q, %v", name, top, err)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00"} {
		if p, err := Skills().Child(name); err == nil {
			t.Errorf("%q: got %q", name, p)
		} else if _, ok := errors.AsType[*NotEntryError](err); !ok {
			t.Errorf("%q: %v", name, err)
		}
	}
	if Root().String() != "." || Root().Base() != "." || (RelativePath{}).String() != "./" {
		t.Error("the root has another name")
	}
}

func TestNative(t *testing.T) {
	sep := string(filepath.Separator)
	relative := func(text string) Path {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, tt := range []struct {
		path Path
		want string
	}{
		{Root(), "."}, {MCP(), "mcp.json"}, {relative("./"), "."}, {relative("./a//./b/"), "a" + sep + "b"},
		{relative("./a/../b"), "a" + sep + ".." + sep + "b"}, // a may be a link
	} {
		if got, err := tt.path.Native(); err != nil || got != tt.want {
			t.Errorf("%s: got %q, %v", tt.path, got, err)
		}
	}
}

// component draws parts of paths that meet each other often.
var component = rapid.SampledFrom([]string{"", ".", "..", "a", "b", "in", "up", "out", "self", "c:", `x\y`})

// TestParseKeepsTheText holds parsing against its definition: the root plus the
// path, cleaned, is below the root at every component.
func TestParseKeepsTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(component, 0, 8).Draw(t, "parts")
		text := "./" + strings.Join(parts, "/")
		p, err := Parse(text)
		inside := true
		for i := range parts {
			at := path.Join("/r/o/o/t", strings.Join(parts[:i+1], "/"))
			inside = inside && (at == "/r/o/o/t" || strings.HasPrefix(at, "/r/o/o/t/"))
		}
		portable := !strings.ContainsAny(text, `\:`)
		if (err == nil) != (inside && portable) {
			t.Fatalf("%q: inside %v, portable %v, and %v", text, inside, portable, err)
		}
		if err != nil {
			return
		}
		if p.String() != text {
			t.Fatalf("%q became %q", text, p)
		}
		again, err := Parse("./" + p.Resolve())
		if err != nil || again.Resolve() != p.Resolve() {
			t.Fatalf("%q resolves to %q, which is %q, %v", text, p.Resolve(), again.Resolve(), err)
		}
	})
}

// TestAsTheFileSystem holds Resolve and Native against a real directory with
// links: without links on the way both lead to one file, and with links Native
// does what the file system does.
func TestAsTheFileSystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	for _, d := range []string{"a/b/a", "b/a/b"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.FromSlash(d)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"in": "a/b", "up": "..", "out": dir, "self": "self", "a/in": "../b/a", "a/b/up": "../.."} {
		if err := os.Symlink(filepath.FromSlash(target), filepath.Join(root, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	differ := 0
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{".", "..", "a", "b", "in", "up", "out", "self"}), 1, 6).Draw(t, "parts")
		p, err := Parse("./" + strings.Join(parts, "/"))
		if err != nil {
			return
		}
		native, err := p.Native()
		if err != nil {
			t.Fatal(err)
		}
		written := root + string(filepath.Separator) + filepath.FromSlash(strings.TrimPrefix(p.String(), "./"))
		want, wantErr := os.Stat(written)
		got, gotErr := os.Stat(root + string(filepath.Separator) + native)
		if (wantErr == nil) != (gotErr == nil) || wantErr == nil && !os.SameFile(want, got) {
			t.Fatalf("%s: the native %q leads elsewhere: %v, %v", p, native, wantErr, gotErr)
		}
		if wantErr != nil {
			return
		}
		lexical, err := os.Stat(filepath.Join(root, filepath.FromSlash(p.Resolve())))
		if err != nil || !os.SameFile(lexical, want) {
			if !strings.Contains(p.String(), "in/") && !strings.Contains(p.String(), "up/") && !strings.Contains(p.String(), "out/") {
				t.Fatalf("%s has no link on its way and resolves to %q", p, p.Resolve())
			}
			differ++
		}
	})
	if differ == 0 {
		t.Error("no path was drawn on which a link matters")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"./", "./a/../b", "./..", `./..\x`, "./C:", "x", "./a\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := Parse(s)
		if err != nil {
			return
		}
		if p.String() != s || !strings.HasPrefix(s, "./") {
			t.Fatalf("%q became %q", s, p)
		}
		if r := p.Resolve(); r == ".." || strings.HasPrefix(r, "../") || path.IsAbs(r) {
			t.Fatalf("%q resolves to %q", s, r)
		}
		native, err := p.Native()
		if err == nil && !filepath.IsLocal(filepath.Clean(native)) {
			t.Fatalf("%q is %q here", s, native)
		}
	})
}
