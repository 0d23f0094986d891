package unpack

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the usual programs make of one folder is read as that folder. The archives
// in testdata are of GNU tar, bzip2, xz and zstd in several settings, also one
// after the other, of Info-ZIP, of git archive, of Python's zipfile with and
// without a file to go back in, and of Java's jar.
func TestArchivesOfOthers(t *testing.T) {
	want := []string{
		fmt.Sprintf("bin/run x %q", strings.Repeat("#!/bin/sh\n", 300)), `lib/ünï.js - "u"`, "link -> lib/ünï.js", `package.json - "{\"name\":\"x\"}"`,
	}
	files, err := filepath.Glob("testdata/*.*")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d archives, %v", len(files), err)
	}
	for _, file := range files {
		archive, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = Walk(t.Context(), bytes.NewReader(archive), int64(len(archive)), Limits{}, func(m Member, r io.Reader) error {
			_, name, _ := strings.Cut(m.Name, "top/")
			body, err := io.ReadAll(r)
			switch {
			case m.Type == Link:
				got = append(got, name+" -> "+m.Link)
			case m.Type == File && m.Executable:
				got = append(got, fmt.Sprintf("%s x %q", name, body))
			case m.Type == File:
				got = append(got, fmt.Sprintf("%s - %q", name, body))
			}
			return err
		})
		slices.Sort(got)
		want := want
		if path.Base(file) == "jar.zip" { // which knows no links, and no permissions
			want = []string{strings.Replace(want[0], " x ", " - ", 1), want[1], want[3]}
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", file, err, diff)
		}
		if path.Ext(file) != ".zip" {
			continue
		}
		for size := range archive {
			if _, err := listed(archive[:size], Limits{}); err == nil {
				t.Errorf("%s: the first %d of %d bytes are an archive", file, size, len(archive))
			}
		}
	}
}

// Every byte of what is compressed counts.
func TestDamagedXZ(t *testing.T) {
	for _, name := range []string{"check-crc32.tar.xz", "check-crc64.tar.xz", "check-sha256.tar.xz", "blocks.tar.xz", "streams.tar.xz"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		read := func(data []byte) ([]byte, error) { return io.ReadAll(newXZ(bytes.NewReader(data), Default)) }
		want, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		passed := 0
		for i := range data {
			changed := bytes.Clone(data)
			changed[i] ^= 0x10
			got, err := read(changed)
			if err != nil {
				continue
			}
			passed++ // the index and the footer, whose sums are not needed
			if !bytes.Equal(got, want) {
				t.Errorf("%s: byte %d may be another one", name, i)
			}
		}
		if passed > len(data)/3 {
			t.Errorf("%s: %d of %d bytes may be others", name, passed, len(data))
		}
		for i := range data {
			if got, err := read(data[:i]); err == nil && !bytes.Equal(got, want) && name != "streams.tar.xz" {
				t.Errorf("%s: the first %d of %d bytes are whole", name, i, len(data))
			}
		}
	}
}
