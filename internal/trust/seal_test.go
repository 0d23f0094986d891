package trust

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"dsh/internal/fault"
)

// seal seals files below root, by their paths with slashes.
func seal(t *testing.T, root, patch string, files ...string) Seal {
	t.Helper()
	for i, file := range files {
		files[i] = filepath.Join(root, filepath.FromSlash(file))
	}
	got, err := SealOf([]byte(patch), files)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Every edit of what trust covers gives another seal.
func TestSealChanges(t *testing.T) {
	start := []string{"f", "text", "empty", "", "d/a", "one", "d/b", "two", "d/sub/c", "three", "d/l", "-> a", "l", "-> f", "ld", "-> d", "dangling", "-> gone"}
	named := []string{"f", "empty", "d", "l", "ld", "dangling", "none", "f/below"}
	remove := func(path string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.RemoveAll(filepath.Join(root, filepath.FromSlash(path))); err != nil {
				t.Fatal(err)
			}
		}
	}
	write := func(entries ...string) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			for i := 0; i < len(entries); i += 2 {
				remove(entries[i])(t, root)
				put(t, root, entries[i], entries[i+1])
			}
		}
	}
	mode := func(path string) func(*testing.T, string) {
		return func(t *testing.T, root string) { chmod(t, filepath.Join(root, filepath.FromSlash(path)), 0o755) }
	}
	tests := map[string]func(t *testing.T, root string){
		"a file's content":             write("f", "Text"),
		"a file's length":              write("f", "text\n"),
		"a file goes":                  remove("f"),
		"an empty file goes":           remove("empty"),
		"a file becomes a directory":   write("empty/", ""),
		"a missing file appears":       write("none", ""),
		"a missing directory appears":  write("none/", ""),
		"what a file link points at":   write("l", "-> empty"),
		"what a folder link points at": write("ld", "-> d/sub"),
		"a link gets its target":       write("gone", ""),
		"content in a directory":       write("d/a", "ONE"),
		"content deep in a directory":  write("d/sub/c", "THREE"),
		"a name in a directory":        func(t *testing.T, root string) { remove("d/b")(t, root); write("d/b2", "two")(t, root) },
		"two contents change places":   write("d/a", "two", "d/b", "one"),
		"a file more":                  write("d/z", ""),
		"an empty directory more":      write("d/z/", ""),
		"a file less":                  remove("d/sub/c"),
		"a directory less":             remove("d/sub"),
		"a file moves to below":        func(t *testing.T, root string) { remove("d/b")(t, root); write("d/sub/b", "two")(t, root) },
		"the target of a link inside":  write("d/l", "-> b"),
		"a link inside becomes a file": write("d/l", "a"),
		"a link inside leads out":      func(t *testing.T, root string) { write("d/out", "-> ../f")(t, root) },
		"a file inside becomes a link": write("d/b", "-> a"),
		"the named file is executable": mode("f"),
		"a file inside is executable":  mode("d/sub/c"),
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			if strings.HasSuffix(name, "executable") && runtime.GOOS == "windows" {
				t.Skip("no executable bits")
			}
			root := world(t, start...)
			before := seal(t, root, "[]", slices.Clone(named)...)
			if again := seal(t, root, "[]", slices.Clone(named)...); again != before {
				t.Fatalf("not the same seal twice: %s, %s", before, again)
			}
			edit(t, root)
			if after := seal(t, root, "[]", slices.Clone(named)...); after == before {
				t.Error("the seal is the same")
			}
		})
	}
}

func TestSealStays(t *testing.T) {
	root := world(t, "f", "text", "g", "", "d/l", "-> ../f", "d/dir", "-> ../e", "e/x", "", "d/self", "-> .", "d/gone", "-> gone")
	before := seal(t, root, "[]", "g", "d")
	for what, files := range map[string][]string{
		"the order":      {"d", "g"},
		"what is double": {"g", "d", "d", "g"},
	} {
		if got := seal(t, root, "[]", files...); got != before {
			t.Errorf("%s counts", what)
		}
	}
	put(t, root, "e/y", "in a directory that a link in the directory points at")
	chmod(t, filepath.Join(root, "d"), 0o700)
	chmod(t, filepath.Join(root, "g"), 0o600)
	if got := seal(t, root, "[]", "g", "d"); got != before {
		t.Error("what the seal does not cover counts")
	}
	if err := os.Remove(filepath.Join(root, "g")); err != nil {
		t.Fatal(err)
	}
	put(t, root, "g", "")
	if got := seal(t, root, "[]", "g", "d"); got != before {
		t.Error("that a file was written anew counts")
	}
	files := []string{filepath.Join(root, "g"), filepath.Join(root, "d")}
	given := slices.Clone(files)
	if _, err := SealOf(nil, files); err != nil || !slices.Equal(files, given) {
		t.Errorf("the caller's list is now %v, %v", files, err)
	}
}

// What is written one after another must not be mistaken for something else
// that gives the same bytes.
func TestSealIsUnambiguous(t *testing.T) {
	root := world(t, "a", "x", "ab", "x", "b", "", "missing-content", "missing",
		"d1/ab", "c", "d2/a", "bc", "d3/a/b", "", "d4/a", "", "d4/b", "", "d5/a/", "", "d5/b", "", "d6/a", "-> b", "d7/a", "b")
	seen := map[Seal]string{}
	add := func(what string, got Seal) {
		t.Helper()
		if other, taken := seen[got]; taken {
			t.Errorf("%s has the seal of %s", what, other)
		}
		seen[got] = what
	}
	add("nothing", seal(t, root, ""))
	add("a space", seal(t, root, " "))
	add("file a", seal(t, root, "", "a"))
	add("file ab", seal(t, root, "", "ab"))
	add("files a, ab", seal(t, root, "", "a", "ab"))
	add("files a, b", seal(t, root, "", "a", "b"))
	add("file a in the patch", seal(t, root, filepath.Join(root, "a")+"x"))
	add("a file without content", seal(t, root, "", "b"))
	add("the word missing", seal(t, root, "", "missing-content"))
	for _, dir := range []string{"d1", "d2", "d3", "d4", "d5", "d6", "d7"} {
		at := filepath.Join(root, "at") // one path for every content
		if err := os.Rename(filepath.Join(root, dir), at); err != nil {
			t.Fatal(err)
		}
		add("directory "+dir, seal(t, root, "", "at"))
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
	}
	for _, lists := range [][2][]string{
		{{"ab", "c"}, {"a", "bc"}},
		{{"a", ""}, {"a"}},
		{{"", "a"}, {"a"}},
		{{}, {""}},
		{{sumOf("a")}, {"a"}},
	} {
		if sumOf(lists[0]...) == sumOf(lists[1]...) {
			t.Errorf("%q and %q are hashed alike", lists[0], lists[1])
		}
	}
}

// Names that no file can have are missing files, and no reason to fail.
func TestSealImpossibleNames(t *testing.T) {
	root := world(t, "f", "")
	for what, name := range map[string]string{
		"below a file": "f/x",
		"a zero byte":  "a\x00b",
		"too long":     strings.Repeat("x", 70000),
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		got, err := SealOf(nil, []string{path})
		if want := Seal("sha256:" + hex.EncodeToString([]byte(sumOf("project layer", "", path, sumOf("missing"))))); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", what, got, err, want)
		}
	}
}

func TestSealRefuses(t *testing.T) {
	if got, err := SealOf(nil, []string{"x/y.js"}); got != "" || err == nil || err.Error() != "sealing x/y.js: the path is not absolute" {
		t.Errorf("a relative path: %q, %v", got, err)
	}
	loop := filepath.Join(world(t, "l", "-> l"), "l")
	if got, err := SealOf(nil, []string{loop}); got != "" || err == nil || !strings.HasPrefix(err.Error(), "sealing "+loop+": stat "+loop+": ") {
		t.Errorf("a link to itself: %q, %v", got, err)
	}
}

func TestSealUnreadable(t *testing.T) {
	for _, locked := range []string{"f", "d", "d/sub", "d/a"} {
		t.Run(locked, func(t *testing.T) {
			needsPermissions(t)
			root := world(t, "f", "", "d/a", "", "d/sub/c", "")
			at := filepath.Join(root, filepath.FromSlash(locked))
			chmod(t, at, 0)
			got, err := SealOf(nil, []string{filepath.Join(root, "f"), filepath.Join(root, "d")})
			if got != "" || fault.ClassOf(err) != fault.Environment || !strings.Contains(err.Error(), at+": ") {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A file larger than what is read at once, and the whole of it counts.
func TestSealLargeFile(t *testing.T) {
	root := world(t, "f", strings.Repeat("0123456789abcdef", 1<<16))
	before := seal(t, root, "", "f")
	f, err := os.OpenFile(filepath.Join(root, "f"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, werr := f.WriteAt([]byte("!"), 1<<20-1)
	if err := f.Close(); err != nil || werr != nil {
		t.Fatal(err, werr)
	}
	if seal(t, root, "", "f") == before {
		t.Error("the last byte does not count")
	}
}
