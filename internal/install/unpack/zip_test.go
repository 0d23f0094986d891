package unpack

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"
)

// libraryXZ is the text of an xz file by the library, which is not asked where
// that would take much memory.
func libraryXZ(data []byte) ([]byte, error) {
	r, err := xz.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(r, 1<<20))
}

// byLibrary is what archive/zip finds, name by name.
func byLibrary(data []byte) (list []string, err error) {
	zr, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && len(data) > 0 && zr == nil {
		return nil, err
	}
	for _, f := range zr.File {
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		body, err := io.ReadAll(io.LimitReader(r, 1<<21))
		if err != nil {
			return nil, err
		}
		list = append(list, f.Name+" "+string(body))
	}
	return list, nil
}

// byUs is the same by our walk.
func byUs(data []byte) (list []string, err error) {
	err = walkZip(context.Background(), bytes.NewReader(data), int64(len(data)), Default, func(m Member, r io.Reader) error {
		body, err := io.ReadAll(r)
		if m.Type == Link {
			body = []byte(m.Link)
		}
		list = append(list, m.Name+" "+string(body))
		return err
	})
	return list, err
}

// FuzzZip holds our reading of zips against that of archive/zip: what we take,
// that takes as the same.
func FuzzZip(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*.zip")
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
	f.Add(zipOf(f, things))
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := byUs(data)
		if err != nil || len(strings.Join(got, "")) > 1<<20 {
			return
		}
		want, err := byLibrary(data)
		if err != nil {
			t.Fatalf("archive/zip says %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
