package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dsh/internal/fault"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
)

func TestWrittenForm(t *testing.T) {
	for text, want := range map[string]string{
		"https://h.test/p.zip":                       "https://h.test/p.zip",
		"x@https://h.test/p.zip//a/b c":              "https://h.test/p.zip//a/b%20c",
		"https://u:secret@h.test/p.zip//a":           "https://***@h.test/p.zip//a",
		"https://h.test/p.zip//a?token=secret":       "https://h.test/p.zip//a?***",
		"https://h.test/p.zip?token=secret#part":     "https://h.test/p.zip?***#part",
		"S3::https://b.test/k.zip//x?version=secret": "s3::https://b.test/k.zip//x?***",
		"./p.zip//a":  "file:/cwd/p.zip//a",
		"x@../p.tar":  "file:/p.tar",
		"/abs/p.tbz2": "file:/abs/p.tbz2",
	} {
		spec, err := ParseSpec(text, "/cwd")
		if err != nil {
			t.Fatal(err)
		}
		form := WrittenForm(spec)
		if filepath.Separator == '/' && form != want || strings.Contains(form, "secret") {
			t.Errorf("%s is written as %s, want %s", text, form, want)
		}
		again, err := ParseSpec(form, "/elsewhere")
		if err != nil || again.Kind != spec.Kind || again.Inside != spec.Inside || !strings.Contains(form, secretMark) && again.Place != spec.Place {
			t.Errorf("%s is read as %+v, %v", form, again, err)
		}
	}
}

func TestKeptAt(t *testing.T) {
	for wanted, want := range map[string]string{
		"file:archives/a-1.0.0-01234567.tgz":   "archives/a-1.0.0-01234567.tgz",
		"file:./archives/a-1.0.0-01234567.tgz": "archives/a-1.0.0-01234567.tgz",
		"file:archives/sub/a.tgz":              "",
		"file:archives/a.zip":                  "",
		"file:../archives/a.tgz":               "",
		"file:archives":                        "",
		"link:archives/a.tgz":                  "",
		"^1.0.0":                               "",
		"github:o/r":                           "",
	} {
		if got := keptAt(wanted, "/profile"); got != want {
			t.Errorf("%s is kept at %q, want %q", wanted, got, want)
		}
	}
}

// zipped is a zip archive with empty files, but for each package.json.
func zipped(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	for _, name := range names {
		w, err := zw.Create(name)
		if err == nil && strings.HasSuffix(name, "package.json") {
			_, err = w.Write([]byte(`{"name": "p", "version": "1.0.0"}`))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestFindRoot(t *testing.T) {
	for _, c := range []struct {
		names  string
		inside string
		want   string // or the error
	}{
		{"package.json a", "", ""},
		{"top/package.json top/a", "", "top"},
		{"./top/package.json top/a", "", "top"},
		{"package.json package/package.json", "", ""},
		{"a/x b/x", "", ""},
		{"a/x/package.json a/y/package.json", "", "a"},
		{"top/p/package.json top/q", "p", "top/p"},
		{"top/p/package.json top/q", "top/p", "top/p"},
		{"p/p/x p/y", "p", "p"},
		{"p/package.json q/package.json", "p", "p"},
		{"p/package.json q/package.json", "q/r", "there is no folder q/r in it; packages in it are p, q"},
		{"top/p/package.json top/package.json", "q", "there is no folder q in it; packages in it are p"},
		{"top/a", "q", "there is no folder q in it, and no folder that is a package"},
		{"top/a", "a", "there is no folder a in it, and no folder that is a package"}, // a file
	} {
		data := zipped(t, strings.Fields(c.names)...)
		got, err := findRoot(t.Context(), bytes.NewReader(data), int64(len(data)), unpack.Limits{}, c.inside)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q in %s is %q, want %q", c.inside, c.names, got, c.want)
		}
	}
}

// The archive that is made of a content is the same whenever it is made, of
// whatever it came from.
func TestRepackIsTheSame(t *testing.T) {
	dir := t.TempDir()
	pack := func(name string, data []byte) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	names := []string{"top/lib/x.js", "top/package.json", "top/a"}
	first := pack("first", zipped(t, names...))
	var plain bytes.Buffer
	tw := tar.NewWriter(&plain)
	for _, h := range []tar.Header{
		{Name: "package.json", Size: 33, Mode: 0o644}, {Name: "a", Mode: 0o600}, {Name: "lib/x.js", Typeflag: tar.TypeSymlink, Linkname: "../a"},
	} {
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			if _, err := tw.Write([]byte(`{"name": "p", "version": "1.0.0"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	second := pack("second", plain.Bytes())
	var made [][]byte
	for _, file := range []string{first, second} {
		packages := store.Open(filepath.Join(dir, filepath.Base(file)+"-store"))
		defer packages.Close()
		entry, packed, err := repack(t.Context(), packages, file, "", store.Integrity{})
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(packed)
		if err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		err = Remake(t.Context(), &again, entry, unpack.Limits{})
		if err != nil || !bytes.Equal(again.Bytes(), data) {
			t.Errorf("made anew from the store it is another one: %v", err)
		}
		made = append(made, data)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("the same files make different archives")
	}
}

// What is wrong anywhere in an archive refuses it, also beside the folder that
// is asked for, and many links to one file are no way around the limits.
func TestRepackRefuses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.zip")
	packages := store.Open(filepath.Join(dir, "store"))
	defer packages.Close()
	for want, names := range map[string][]string{
		"../evil": {"p/package.json", "../evil"},
		"q/A":     {"p/package.json", "q/a", "q/A"},
	} {
		if err := os.WriteFile(file, zipped(t, names...), 0o644); err != nil {
			t.Fatal(err)
		}
		_, _, err := repack(t.Context(), packages, file, "p", store.Integrity{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.ClassOf(err) != fault.Policy {
			t.Errorf("%q: %v", names, err)
		}
	}
	var bomb bytes.Buffer
	tw := tar.NewWriter(&bomb)
	add := func(h tar.Header, data string) {
		h.Size = int64(len(data))
		if err := tw.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	add(tar.Header{Name: "package.json", Mode: 0o644}, `{"name": "p", "version": "1.0.0"}`)
	add(tar.Header{Name: "big", Mode: 0o644}, strings.Repeat("x", 1<<16))
	for i := range 20 {
		add(tar.Header{Name: "link" + string(rune('a'+i)), Typeflag: tar.TypeSymlink, Linkname: "big"}, "")
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bomb.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	packages.Limits = unpack.Limits{Unpacked: 1 << 20}
	if _, _, err := repack(t.Context(), packages, file, "", store.Integrity{}); err == nil || !strings.Contains(err.Error(), "copies in the place of its links") {
		t.Errorf("many links: %v", err)
	}
}

func TestLockSourcesRefused(t *testing.T) {
	id := `"` + someIntegrity(t, "Q").String() + `"`
	for want, text := range map[string]string{
		"has to say from where":     "sources:\n  a:\n    from: b\ndependencies:\n",
		`"a" stands here twice`:     "sources:\n  a:\n    from: b\n    integrity: " + id + "\n  a:\n    from: c\n",
		`unknown key "x"`:           "sources:\n  a:\n    x: b\n",
		`"../a" is no package name`: "sources:\n  \"../a\":\n    from: b\n",
		"is not a base64 SHA-512":   "sources:\n  a:\n    integrity: \"sha512-x\"\n",
	} {
		if _, err := ParseLock(LockName, []byte("lockfileVersion: \""+lockVersion+"\"\n"+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
