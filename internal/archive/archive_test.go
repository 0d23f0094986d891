package archive

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
)

func text(path, s string) Content {
	return Content{Member{Path: path}, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(s)), nil }}
}

func sample() (Header, []Content) {
	program := text(FilePath("bin/run.sh"), "#!/bin/sh\n")
	program.Executable = true
	pkg := text(PackagePath("my-plugin-1.0.0.tgz"), "an archive")
	pkg.Integrity = "sha512-x"
	return Header{Profile: "x", Version: "1.0.0", Sources: []Source{{"local", "sources/local", "link"}}, LeftOut: []LeftOut{{".env", "secrets"}}},
		[]Content{pkg, text(FilePath("package.json"), "{}\n"), program}
}

func written(t testing.TB, h Header, contents []Content) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, h, contents); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRoundTrip(t *testing.T) {
	h, contents := sample()
	data := written(t, h, contents)
	if !bytes.Equal(data, written(t, h, contents)) {
		t.Error("the same content gives other bytes")
	}
	got := map[string]string{}
	read, err := Read(bytes.NewReader(data), func(h *Header, m Member, r io.Reader) error {
		if len(h.Members) != 3 {
			t.Errorf("%d members are listed", len(h.Members))
		}
		content, err := io.ReadAll(r)
		key := m.Path
		if m.Executable {
			key += " executable"
		}
		got[key] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"profile/package.json": "{}\n", "profile/bin/run.sh executable": "#!/bin/sh\n", "packages/my-plugin-1.0.0.tgz": "an archive",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	read.Members = nil
	h.Format = Format
	if diff := cmp.Diff(&h, read); diff != "" {
		t.Error(diff)
	}
}

// What is read needs not be read to the end by the visitor.
func TestVisitorMayLookAway(t *testing.T) {
	h, contents := sample()
	if _, err := Read(bytes.NewReader(written(t, h, contents)), func(*Header, Member, io.Reader) error { return nil }); err != nil {
		t.Error(err)
	}
	stop := errors.New("enough")
	_, err := Read(bytes.NewReader(written(t, h, contents)), func(*Header, Member, io.Reader) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the visitor's error became %v", err)
	}
}

// raw makes an archive of tar entries as they are.
func raw(t testing.TB, entries ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		content := []byte(e.Linkname)
		if e.Typeflag == tar.TypeReg {
			e.Linkname, e.Size = "", int64(len(content))
		}
		if err := tw.WriteHeader(e); err != nil {
			t.Fatal(err)
		}
		if e.Typeflag == tar.TypeReg {
			if _, err := tw.Write(content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// file is an entry whose content is given as its link's target.
func file(name, content string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, Linkname: content, Mode: 0o644}
}

const (
	emptySum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	oneSum   = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" // of "1"
)

func list(t testing.TB, members ...Member) *tar.Header {
	t.Helper()
	data, err := json.Marshal(Header{Format: Format, Profile: "x", Members: members})
	if err != nil {
		t.Fatal(err)
	}
	return file(headerName, string(data))
}

func one(path string) Member { return Member{Path: path, Size: 1, SHA256: oneSum} }

func TestHostileArchives(t *testing.T) {
	good := "profile/package.json"
	pkg := func(path string, size int64, integrity string) Member {
		return Member{Path: path, Size: size, SHA256: oneSum, Integrity: integrity}
	}
	h, contents := sample()
	whole := written(t, h, contents)
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 1 // in gzip's own sum
	for _, tt := range []struct {
		name  string
		data  []byte
		class fault.Class
		says  string
	}{
		{"nothing", nil, fault.Package, "no archive of a profile"},
		{"no gzip", []byte("PK\x03\x04"), fault.Package, "no archive of a profile"},
		{"another archive", raw(t, file("package/package.json", "{}")), fault.Package, "no archive of a profile"},
		{"an empty one", raw(t), fault.Package, "no archive of a profile"},
		{"the list is a link", raw(t, &tar.Header{Typeflag: tar.TypeSymlink, Name: headerName, Linkname: "/etc/passwd"}), fault.Package, "no archive of a profile"},
		{"cut off", whole[:len(whole)-40], fault.Package, "cut off"},
		{"damaged", damaged, fault.Package, "damaged"},
		{"something behind it", append(bytes.Clone(whole), "more"...), fault.Package, "damaged"},
		{"no JSON", raw(t, file(headerName, "{")), fault.Package, "cannot be read"},
		{"a later format", raw(t, file(headerName, `{"format": 2, "dsh": "9.0.0", "members": {}}`)), fault.Package, "it has format 2, written by dsh 9.0.0, and this dsh reads format 1"},
		{"no format", raw(t, file(headerName, `{}`)), fault.Package, "format 0"},
		{"a file that is not listed", raw(t, list(t), file(good, "1")), fault.Package, `"profile/package.json", which its list does not have`},
		{"a file that is not there", raw(t, list(t, one(good))), fault.Package, "lacks"},
		{"another file", raw(t, list(t, one(good)), file("profile/x", "1")), fault.Package, `"profile/x" where its list has`},
		{"another size", raw(t, list(t, one(good)), file(good, "12")), fault.Package, "2 bytes and its list says 1"},
		{"another content", raw(t, list(t, one(good)), file(good, "2")), fault.Package, "is not what its list says"},
		{"twice", raw(t, list(t, one(good), one(good)), file(good, "1"), file(good, "1")), fault.Package, "not in order"},
		{"only case differs", raw(t, list(t, one("profile/A"), one("profile/a"))), fault.Policy, "cannot tell apart"},
		{"a file as a folder", raw(t, list(t, one("profile/A"), one("profile/a/b"))), fault.Policy, "cannot be a folder"},
		{"a folder as a file", raw(t, list(t, one("profile/A/b"), one("profile/a"))), fault.Policy, "cannot tell apart"},
		{"a link", raw(t, list(t, one(good)), &tar.Header{Typeflag: tar.TypeSymlink, Name: good, Linkname: "/etc/passwd"}), fault.Policy, `is a link to "/etc/passwd"`},
		{"a hard link", raw(t, list(t, one(good)), &tar.Header{Typeflag: tar.TypeLink, Name: good, Linkname: "x"}), fault.Policy, "is a link"},
		{"a device", raw(t, list(t, one(good)), &tar.Header{Typeflag: tar.TypeChar, Name: good}), fault.Policy, "is no file"},
		{"a directory", raw(t, list(t, one(good)), &tar.Header{Typeflag: tar.TypeDir, Name: good}), fault.Policy, "is no file"},
		{"out of the profile", raw(t, list(t, one("profile/../x"))), fault.Policy, "no plain path"},
		{"out by a dot", raw(t, list(t, one("profile/./x"))), fault.Policy, "no plain path"},
		{"absolute", raw(t, list(t, one("/etc/passwd"))), fault.Policy, "none of a profile's archive"},
		{"absolute inside", raw(t, list(t, one("profile//etc/passwd"))), fault.Policy, "is absolute"},
		{"a backslash", raw(t, list(t, one(`profile/..\x`))), fault.Policy, "cannot be on every system"},
		{"a drive", raw(t, list(t, one(`profile/c:x`))), fault.Policy, "cannot be on every system"},
		{"a control character", raw(t, list(t, one("profile/a\x1bb"))), fault.Policy, "cannot be on every system"},
		{"the modules", raw(t, list(t, one("profile/node_modules/x/index.js"))), fault.Policy, "of its own"},
		{"the modules inside", raw(t, list(t, one("profile/a/Node_Modules/x"))), fault.Policy, "of its own"},
		{"a repository's hooks", raw(t, list(t, one("profile/.git/hooks/pre-commit"))), fault.Policy, "of its own"},
		{"the root", raw(t, list(t, one("profile/cordis.yml"))), fault.Policy, "of its own"},
		{"a device of Windows", raw(t, list(t, one("profile/nul.txt"))), fault.Policy, "a device on Windows"},
		{"a dot at the end", raw(t, list(t, one("profile/a./x"))), fault.Policy, "drops the dot"},
		{"a clock of Windows", raw(t, list(t, one("profile/clock$"))), fault.Policy, "a device on Windows"},
		{"the modules by another letter", raw(t, list(t, one("profile/node_module\u017f/x"))), fault.Policy, "of its own"},
		{"only the kind of a letter differs", raw(t, list(t, one(good), one("profile/package.j\u017fon"))), fault.Policy, "cannot tell apart"},
		{"only the encoding differs", raw(t, list(t, one("profile/e\u0301"), one("profile/\u00e9"))), fault.Policy, "cannot tell apart"},
		{"only the encoding of a folder differs", raw(t, list(t, one("profile/e\u0301/a"), one("profile/\u00e9"))), fault.Policy, "cannot tell apart"},
		{"a package below", raw(t, list(t, pkg("packages/a/b.tgz", 1, "x"))), fault.Policy, "none of a profile's archive"},
		{"a package up", raw(t, list(t, pkg("packages/..", 1, "x"))), fault.Policy, "none of a profile's archive"},
		{"a package without its hash", raw(t, list(t, one("packages/a.tgz"))), fault.Package, "no integrity"},
		{"a file with a package's hash", raw(t, list(t, pkg(good, 1, "x"))), fault.Package, "is no package"},
		{"no hash", raw(t, list(t, Member{Path: good, Size: 1})), fault.Package, "no SHA-256"},
		{"a hash that is too long", raw(t, list(t, Member{Path: good, Size: 1, SHA256: oneSum + "00"})), fault.Package, "no SHA-256"},
		{"a negative size", raw(t, list(t, Member{Path: good, Size: -1, SHA256: emptySum})), fault.Policy, "larger"},
		{"a large file", raw(t, list(t, Member{Path: good, Size: maxFile + 1, SHA256: oneSum})), fault.Policy, "larger"},
		{"many large files", raw(t, list(t,
			Member{Path: "profile/1", Size: maxFile, SHA256: oneSum}, Member{Path: "profile/2", Size: maxFile, SHA256: oneSum},
			Member{Path: "profile/3", Size: maxFile, SHA256: oneSum}, Member{Path: "profile/4", Size: maxFile, SHA256: oneSum}, one("profile/5"))), fault.Policy, "larger"},
		{"a large package", raw(t, list(t, pkg("packages/a.tgz", maxPackage+1, "x"))), fault.Policy, "larger"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := Read(bytes.NewReader(tt.data), func(_ *Header, m Member, r io.Reader) error {
				_, err := io.Copy(io.Discard, r)
				return err
			})
			if err == nil || h != nil {
				t.Fatalf("it was read: %+v", h)
			}
			if fault.ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("class %v, %q; want class %v and %q", fault.ClassOf(err), err, tt.class, tt.says)
			}
		})
	}
}

func TestWriteRefusesWhatReadWould(t *testing.T) {
	changing := text(FilePath("a"), "")
	reads := 0
	changing.Open = func() (io.ReadCloser, error) {
		reads++
		return io.NopCloser(strings.NewReader(strings.Repeat("x", reads))), nil
	}
	gone := text(FilePath("a"), "")
	gone.Open = func() (io.ReadCloser, error) { return nil, errors.New("it is gone") }
	for _, tt := range []struct {
		content Content
		says    string
	}{
		{text(FilePath("../a"), ""), "no plain path"},
		{text("a", ""), "none of a profile's archive"},
		{changing, "changed while it was read"},
		{gone, "it is gone"},
	} {
		var b bytes.Buffer
		if err := Write(&b, Header{}, []Content{tt.content}); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.content.Path, err, tt.says)
		}
	}
}

// What is read is within the limits and inside the profile, whatever the bytes
// are, and can be written and read again.
func FuzzRead(f *testing.F) {
	h, contents := sample()
	f.Add(written(f, h, contents))
	f.Add(raw(f, list(f, one("profile/package.json")), file("profile/package.json", "1")))
	f.Add(raw(f, list(f, one("profile/../x")), file("profile/../x", "1")))
	f.Add(raw(f, file(headerName, `{"format": 2}`)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		checkRead(t, data)
		// Most mutations only break gzip; the same bytes as a list reach further.
		checkRead(t, raw(t, file(headerName, string(data)), file("profile/package.json", "1")))
	})
}

func checkRead(t *testing.T, data []byte) {
	var again []Content
	h, err := Read(bytes.NewReader(data), func(_ *Header, m Member, r io.Reader) error {
		content, err := io.ReadAll(r)
		if rel, ok := m.File(); ok {
			if CheckFile(rel) != nil {
				t.Errorf("%q was let through", rel)
			}
		} else if !m.IsPackage() {
			t.Errorf("%q was let through", m.Path)
		}
		if int64(len(content)) != m.Size {
			t.Errorf("%q has %d bytes and not %d", m.Path, len(content), m.Size)
		}
		again = append(again, Content{m, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }})
		return err
	})
	if err != nil {
		if class := fault.ClassOf(err); class != fault.Package && class != fault.Policy {
			t.Errorf("class %v: %v", class, err)
		}
		return
	}
	second, err := Read(bytes.NewReader(written(t, *h, again)), func(*Header, Member, io.Reader) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h.Members, second.Members); diff != "" && len(h.Members)+len(second.Members) > 0 {
		t.Error(diff)
	}
}
