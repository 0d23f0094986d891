package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"dsh/internal/fault"
	"dsh/internal/portable"
)

func TestNamesOnWindows(t *testing.T) {
	for name, want := range map[string]bool{
		"a/b.js": true, "./a": true, ".a": true, "a b/c": true, "../a": true,
		"a.": false, "a ": false, "a.js:x": false, "...": false, "CON": false, "a/aux.js": false, "lib/nul": false, "com1.txt": false, "a*b": false, "a?": false,
	} {
		if windowsPath(name) != want {
			t.Errorf("%q: %t", name, !want)
		}
	}
}

func TestFoldIsPortable(t *testing.T) {
	for _, name := range []string{"", "a", "README.md", "I/i", "ABC-[]^_`{}", "\u0130", "Stra\u00dfe", "cafe\u0301"} {
		if fold(name) != portable.Fold(name) {
			t.Errorf("%q: %q", name, fold(name))
		}
	}
}

// Names are bounded, whatever few bytes they come in.
func TestManyNames(t *testing.T) {
	deep := strings.Repeat("a/", 480)
	for name, c := range map[string]struct {
		count int
		name  func(i int) string
		kind  Type
	}{
		"directories":    {500, func(i int) string { return fmt.Sprintf("p/%03d/%sx", i, deep) }, File},
		"empty ones":     {500, func(i int) string { return fmt.Sprintf("p/%03d/%sx/", i, deep) }, Dir},
		"long names":     {maxNames / 900, func(i int) string { return fmt.Sprintf("p/%06d-%s", i, strings.Repeat("n", 1000)) }, File},
		"many files":     {Default.Entries + 1, func(i int) string { return fmt.Sprintf("p/%d", i) }, File},
		"many links":     {Default.Entries + 1, func(i int) string { return fmt.Sprintf("p/%d", i) }, Link},
		"long links":     {maxNames / 400, func(i int) string { return fmt.Sprintf("p/%d", i) }, Link},
		"many elsewhere": {Default.Entries + 1, func(i int) string { return fmt.Sprintf("other/%d", i) }, File},
	} {
		var r Rules
		r.Reset(Options{Links: true, Inside: "p"})
		link := "x"
		if name == "long links" {
			link = strings.Repeat("./", 300) + "x"
		}
		var err error
		for i := 0; i < c.count && err == nil; i++ {
			_, _, err = r.Admit(Member{Name: c.name(i), Type: c.kind, Link: link})
		}
		if _, ok := errors.AsType[*LimitError](err); !ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestInside(t *testing.T) {
	var r Rules
	r.Reset(Options{Links: true, Strip: true, Inside: "packages/a"})
	for _, c := range []struct {
		member Member
		want   string
		fails  bool
	}{
		{Member{Name: "top/README"}, "", false},
		{Member{Name: "top/packages/a/x"}, "x", false},
		{Member{Name: "top/packages/ab/x"}, "", false},
		{Member{Name: "top/packages/a/lib/y"}, "lib/y", false},
		{Member{Name: "top/docs", Type: Link, Link: "/outside"}, "", false}, // it is not laid out
		{Member{Name: "top/packages/a/l", Type: Link, Link: "lib/y"}, "l", false},
		{Member{Name: "top/packages/a/m", Type: Link, Link: "../ab/x"}, "", true},
		{Member{Name: "top/packages/a/docs/../../z"}, "", true},
		{Member{Name: "top/big", Size: 1 << 60}, "", false}, // nor is this
		{Member{Name: "top/packages/a", Type: Dir}, "", false},
		{Member{Name: "top/packages/a"}, "", true},
	} {
		got, _, err := r.Admit(c.member)
		if got != c.want || (err != nil) != c.fails {
			t.Errorf("%v: %q, %v", c.member, got, err)
		}
	}
	if dirs := r.Dirs(); len(dirs) != 1 || dirs[0] != "lib" {
		t.Errorf("directories %q", dirs)
	}
	if err := r.Finish(); err != nil {
		t.Error(err)
	}
}

// The same rules serve the next archive, which knows nothing of the last.
func TestReset(t *testing.T) {
	var r Rules
	for range 3 {
		r.Reset(Options{Limits: Limits{Unpacked: 10}, Links: true})
		for _, m := range []Member{{Name: "a/b", Size: 6}, {Name: "a/l", Type: Link, Link: "b"}} {
			if _, again, err := r.Admit(m); again || err != nil {
				t.Errorf("%t %v", again, err)
			}
		}
		if err := r.Finish(); err != nil || len(r.Dirs()) != 1 {
			t.Error(err, r.Dirs())
		}
	}
}

// FuzzRules lays out what the rules let in, in a directory with something beside
// it, and looks whether all is where it should be.
func FuzzRules(f *testing.F) {
	f.Add("a\na/b\n@l a/b\nl/x")
	f.Add("@a b\n@b c\nd/../../x")
	f.Add("A\na\n\u00e9\ne\u0301\n@x ../..")
	f.Add("@d e/f\ne/f/g\n@h/i ../d\nC:x\n/y\n..")
	f.Add("d/x\n@a d/../d/x\n@b ./d//x")
	f.Add("@a .\n@b/c ..\n@q \nz\\y\n%dir/\ndir")
	f.Fuzz(func(t *testing.T, text string) {
		if runtime.GOOS == "windows" {
			t.Log("links are made elsewhere")
			return
		}
		around := t.TempDir()
		root := filepath.Join(around, "root")
		if err := errors.Join(os.Mkdir(root, 0o755), os.WriteFile(filepath.Join(around, "x"), nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		var r Rules
		r.Reset(Options{Limits: Limits{Entries: 100, Path: 100}, Links: true})
		links := map[string]string{}
		files := map[string]bool{}
		for line := range strings.SplitSeq(text, "\n") {
			m := Member{Name: line}
			if rest, ok := strings.CutPrefix(line, "@"); ok {
				m.Type = Link
				m.Name, m.Link, _ = strings.Cut(rest, " ")
			} else if rest, ok := strings.CutPrefix(line, "%"); ok {
				m.Type, m.Name = Dir, rest
			}
			name, again, err := r.Admit(m)
			if err != nil {
				if fault.ClassOf(err) != fault.Policy {
					t.Fatal(err)
				}
				continue
			}
			if name == "" || again {
				continue
			}
			if !fs.ValidPath(name) || !utf8.ValidString(name) {
				t.Fatalf("%q became %q", line, name)
			}
			if m.Type == Link {
				links[name] = m.Link
				continue
			}
			files[name] = true
			at := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			w, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL, 0o644)
			if err != nil {
				t.Fatal(err) // a name that was there
			}
			w.Close()
		}
		if r.Finish() != nil {
			return
		}
		for name, target := range links {
			at := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(target, at)); err != nil {
				t.Fatal(err)
			}
		}
		for name := range links {
			end, err := filepath.EvalSymlinks(filepath.Join(root, name))
			if errors.Is(err, fs.ErrNotExist) || err != nil && strings.Contains(err.Error(), "not a directory") {
				continue // it leads to nothing
			}
			if err != nil || !strings.HasPrefix(end, root+"/") {
				t.Fatalf("%q leads to %s, %v", name, end, err)
			}
		}
		if list, err := os.ReadDir(around); err != nil || len(list) != 2 {
			t.Fatalf("%v, %v", list, err)
		}
	})
}

// FuzzWalk reads archives of every format.
func FuzzWalk(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.*")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(tarOf(f, things))
	limits := Limits{Unpacked: 1 << 20, Entries: 1000}
	f.Fuzz(func(t *testing.T, data []byte) {
		total := int64(0)
		err := Walk(t.Context(), bytes.NewReader(data), int64(len(data)), limits, func(m Member, r io.Reader) error {
			n, err := io.Copy(io.Discard, r)
			if total += n; err == nil && m.Type == File && n != m.Size {
				t.Fatalf("%q has %d bytes, and not %d", m.Name, n, m.Size)
			}
			return err
		})
		if total > limits.fill().stream() {
			t.Fatalf("%d bytes", total)
		}
		if class := fault.ClassOf(err); err != nil && class != fault.Policy && class != fault.Package {
			t.Fatalf("class %v: %v", class, err)
		}
	})
}

// FuzzXZ holds the container against what the library reads of it.
func FuzzXZ(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.xz")
	if err != nil || len(seeds) == 0 {
		f.Fatal("no seeds", err)
	}
	for _, seed := range seeds {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := io.ReadAll(io.LimitReader(newXZ(bytes.NewReader(data), Limits{Unpacked: 1 << 20, Entries: 10, Ratio: 100, Path: 100}), 1<<20))
		if err != nil || len(got) == 1<<20 {
			return
		}
		want, err := libraryXZ(data)
		if err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, and %d of the library", len(got), len(want))
		}
	})
}
