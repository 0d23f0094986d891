package unpack

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// must is a value that could be had.
func must[T any](value T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// thing is what a test archive is made of.
type thing struct {
	name, body, link string
	mode             int64
	kind             byte
}

var things = []thing{
	{name: "top/", kind: tar.TypeDir, mode: 0o755},
	{name: "top/package.json", body: `{"name":"x"}`},
	{name: "top/bin/run", body: strings.Repeat("#!/bin/sh\n", 5000), mode: 0o4755},
	{name: "top/lib/ünï.js", body: "u"},
	{name: "top/link", kind: tar.TypeSymlink, link: "lib/ünï.js"},
}

func tarOf(t testing.TB, list []thing) []byte {
	t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, x := range list {
		h := &tar.Header{Name: x.name, Typeflag: x.kind, Linkname: x.link, Mode: x.mode}
		if x.kind == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(x.body))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, x.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipOf(t testing.TB, list []thing) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := zip.NewWriter(&b)
	for _, x := range list {
		h := &zip.FileHeader{Name: x.name, Method: zip.Deflate}
		mode, body := uint32(x.mode), x.body
		if mode == 0 {
			mode = 0o644
		}
		switch x.kind {
		case tar.TypeDir:
			mode |= 0o040000
		case tar.TypeSymlink:
			mode |= 0o120000
			body = x.link
		default:
			mode |= 0o100000
		}
		h.CreatorVersion, h.ExternalAttrs = zipUnix<<8, mode<<16
		w, err := zw.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, body); err != nil {
			t.Fatal(err)
		}
	}
	if err := zw.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// compressed is data as some compressor writes it.
func compressed(t testing.TB, data []byte, make func(io.Writer) (io.WriteCloser, error)) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := make(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write(data)
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipped(t testing.TB, data []byte) []byte {
	return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil })
}

func xzipped(t testing.TB, data []byte) []byte {
	return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return xz.NewWriter(w) })
}

func zstandard(t testing.TB, data []byte) []byte {
	return compressed(t, data, func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) })
}

// listed is what a walk finds, as text.
func listed(archive []byte, limits Limits) (list []string, err error) {
	err = Walk(context.Background(), bytes.NewReader(archive), int64(len(archive)), limits, func(m Member, r io.Reader) error {
		body, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		list = append(list, fmt.Sprintf("%d %s %t %d->%s %q", m.Type, m.Name, m.Executable, m.Size, m.Link, body[:min(len(body), 12)]))
		return nil
	})
	return list, err
}

func TestWalk(t *testing.T) {
	plain := tarOf(t, things)
	want, err := listed(plain, Limits{})
	if err != nil || len(want) != len(things) {
		t.Fatalf("%q %v", want, err)
	}
	for format, archive := range map[string][]byte{
		TarGzip: gzipped(t, plain), TarXZ: xzipped(t, plain), TarZstd: zstandard(t, plain), Zip: zipOf(t, things), Tar: plain,
	} {
		if got := must(Format(bytes.NewReader(archive), int64(len(archive))))(t); got != format {
			t.Errorf("%s is taken for %s", format, got)
		}
		got, err := listed(archive, Limits{})
		if err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}
