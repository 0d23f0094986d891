package store

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// slowWalk lists an archive by package archive/tar.
func slowWalk(archive []byte) (members []member, err error) {
	tr := tar.NewReader(bytes.NewReader(archive))
	for {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return members, nil
		}
		if err != nil {
			return nil, err
		}
		m := member{name: h.Name, link: h.Linkname, kind: h.Typeflag, executable: h.FileInfo().Mode()&0o111 != 0, size: h.Size}
		if m.data, err = io.ReadAll(tr); err != nil {
			return nil, err
		}
		members = append(members, m)
	}
}

// same compares what matters: of what is no file neither size nor permissions
// count.
func sameMembers(a, b []member) string {
	clean := func(list []member) (out []member) {
		for _, m := range list {
			if m.kind != tar.TypeReg {
				m = member{name: m.name, link: m.link, kind: m.kind}
			}
			if m.kind == tar.TypeXGlobalHeader {
				m = member{kind: m.kind}
			}
			if len(m.data) == 0 {
				m.data = nil
			}
			out = append(out, m)
		}
		return out
	}
	return cmp.Diff(clean(a), clean(b), cmp.AllowUnexported(member{}))
}

// tarOf is an archive with one file after headers.
func tarOf(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var buf bytes.Buffer
	tw := tar.NewWriter(&buf)
	for _, h := range headers {
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// setSum gives the header at the beginning of an archive its right checksum.
func setSum(archive []byte) {
	sum := 8 * int(' ')
	for i, c := range archive[:tarBlock] {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(archive[148:156], fmt.Sprintf("%06o\x00 ", sum))
}

// setSums does so for every header.
func setSums(archive []byte) {
	for len(archive) >= tarBlock && !bytes.Equal(archive[:tarBlock], zeroBlock[:]) {
		setSum(archive)
		size, ok := octal(archive[124:136])
		next := tarBlock + (size+tarBlock-1)&^(tarBlock-1)
		if !ok || next > int64(len(archive)) {
			return
		}
		archive = archive[next:]
	}
}

// archives are the kinds of archives that packages come in, and others.
func archives(t testing.TB) map[string][]byte {
	long := "package/" + strings.Repeat("long/", 60) + "name"
	plain := tarOf(t, &tar.Header{Name: "package/a", Mode: 0o755, Size: 700}, &tar.Header{Name: "package/b", Mode: 0o644, Size: 512}, &tar.Header{Name: "package/c", Mode: 0o600})
	old := bytes.Clone(plain)
	copy(old[257:265], make([]byte, 8)) // no magic
	old[156] = 0
	setSum(old)
	return map[string][]byte{
		"nothing":   nil,
		"plain":     plain,
		"old":       old,
		"no end":    plain[:len(plain)-1024],
		"half end":  plain[:len(plain)-512],
		"prefix":    tarOf(t, &tar.Header{Name: "package/" + strings.Repeat("p/", 60) + "x", Mode: 0o644, Size: 3, Format: tar.FormatUSTAR}),
		"pax":       tarOf(t, &tar.Header{Name: long, Mode: 0o644, Size: 5, Format: tar.FormatPAX, PAXRecords: map[string]string{"NODETAR.depth": "3", "comment": "x"}}, &tar.Header{Name: "package/z", Size: 1}),
		"gnu":       tarOf(t, &tar.Header{Name: long, Mode: 0o644, Size: 5, Format: tar.FormatGNU}, &tar.Header{Name: "package/z", Size: 1}),
		"gnu link":  tarOf(t, &tar.Header{Name: long, Linkname: long, Typeflag: tar.TypeSymlink, Format: tar.FormatGNU}),
		"pax link":  tarOf(t, &tar.Header{Name: "package/l", Linkname: long, Typeflag: tar.TypeLink, Format: tar.FormatPAX}),
		"directory": tarOf(t, &tar.Header{Name: "package/", Typeflag: tar.TypeDir, Mode: 0o755}, &tar.Header{Name: "package/a", Size: 1}),
		"global":    tarOf(t, &tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "abc"}}, &tar.Header{Name: "package/a", Size: 1}),
	}
}

func TestWalkTar(t *testing.T) {
	for name, archive := range archives(t) {
		got, ok := walkTar(archive, nil)
		want, err := slowWalk(archive)
		if !ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
			continue
		}
		if diff := sameMembers(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// What is rare or wrong is left to archive/tar.
func TestWalkTarLeaves(t *testing.T) {
	plain := archives(t)["plain"]
	change := func(at int, with string) []byte {
		changed := bytes.Clone(plain)
		copy(changed[at:], with)
		return changed
	}
	for name, archive := range map[string][]byte{
		"cut in a header":     plain[:100],
		"cut in a file":       plain[:600],
		"a wrong checksum":    change(0, "q"),
		"one block of zeros":  append(append(bytes.Clone(plain[:1536]), make([]byte, 512)...), plain[:1536]...),
		"a device":            tarOf(t, &tar.Header{Name: "package/d", Typeflag: tar.TypeChar}),
		"a size beyond octal": tarOf(t, &tar.Header{Name: "package/a", Uid: 1 << 40, Format: tar.FormatGNU}),
		"sparse": func() []byte {
			h := &tar.Header{Name: "package/a", Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": "sparse.majorxx=1"}}
			return bytes.Replace(tarOf(t, h), []byte("comment=sparse.majorxx=1"), []byte("GNU.sparse.majorxxxxxx=1"), 1)
		}(),
	} {
		if _, ok := walkTar(archive, nil); ok {
			t.Errorf("%s: is taken for plain", name)
		}
	}
}

// Whatever byte of an archive is another one, what the walk lists is what
// archive/tar lists.
func TestWalkTarOfChanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	bytesOften := []byte("\x00\xff 0179=.-/xLKgustar\n\x80")
	all := archives(t)
	walked := 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for range 200 {
			changed := bytes.Clone(all[name])
			if len(changed) == 0 {
				break
			}
			for range 1 + rnd.IntN(3) {
				changed[rnd.IntN(len(changed))] = bytesOften[rnd.IntN(len(bytesOften))]
			}
			setSums(changed)
			got, ok := walkTar(changed, nil)
			if !ok {
				continue
			}
			walked++
			want, err := slowWalk(changed)
			if err != nil {
				t.Fatalf("%s: archive/tar says %v of %q", name, err, changed)
			}
			if diff := sameMembers(want, got); diff != "" {
				t.Fatalf("%s: %s", name, diff)
			}
		}
	}
	if walked < 500 {
		t.Errorf("only %d archives were walked", walked)
	}
}

// FuzzWalkTar holds the walk against archive/tar: what it lists, that lists too.
func FuzzWalkTar(f *testing.F) {
	for _, archive := range archives(f) {
		f.Add(archive)
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		archive = bytes.Clone(archive)
		setSums(archive)
		got, ok := walkTar(archive, nil)
		if !ok {
			return
		}
		want, err := slowWalk(archive)
		if err != nil {
			t.Fatalf("archive/tar says %v", err)
		}
		if diff := sameMembers(want, got); diff != "" {
			t.Error(diff)
		}
	})
}
