package e2e

import (
	"archive/tar"
	"archive/zip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/ulikunitz/xz"
)

// pack FILE DIR [PREFIX] writes the files of a folder as an archive of the format
// that its name says, each with PREFIX/ in front. Links stay links.
func pack(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 && len(args) != 3 {
		ts.Fatalf("usage: pack FILE DIR [PREFIX]")
	}
	prefix := ""
	if len(args) == 3 {
		prefix = args[2] + "/"
	}
	file, dir := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(filepath.Dir(file), 0o755))
	out, err := os.Create(file)
	ts.Check(err)
	defer out.Close()
	add, finish, err := packer(out, file)
	ts.Check(err)
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var data []byte
		if info.Mode()&fs.ModeSymlink != 0 {
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			data = []byte(link)
		} else if data, err = os.ReadFile(path); err != nil {
			return err
		}
		return add(prefix+filepath.ToSlash(rel), info.Mode(), data)
	}))
	ts.Check(finish())
}

// packer writes members of an archive of the format that a name says.
func packer(out io.Writer, name string) (add func(name string, mode fs.FileMode, data []byte) error, finish func() error, err error) {
	if strings.HasSuffix(name, ".zip") {
		zw := zip.NewWriter(out)
		return func(name string, mode fs.FileMode, data []byte) error {
			h := &zip.FileHeader{Name: name, Method: zip.Deflate}
			h.SetMode(mode)
			w, err := zw.CreateHeader(h)
			if err == nil {
				_, err = w.Write(data)
			}
			return err
		}, zw.Close, nil
	}
	var compressed io.WriteCloser
	switch {
	case strings.HasSuffix(name, ".xz"):
		compressed, err = xz.NewWriter(out)
	case strings.HasSuffix(name, ".zst"):
		compressed, err = zstd.NewWriter(out)
	case strings.HasSuffix(name, ".tgz"):
		compressed = gzip.NewWriter(out)
	default:
		compressed = plain{out}
	}
	if err != nil {
		return nil, nil, err
	}
	tw := tar.NewWriter(compressed)
	add = func(name string, mode fs.FileMode, data []byte) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(mode.Perm()), Size: int64(len(data))}
		if mode&fs.ModeSymlink != 0 {
			h.Typeflag, h.Linkname, h.Size, data = tar.TypeSymlink, string(data), 0, nil
		}
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := tw.Write(data)
		return err
	}
	return add, func() error {
		if err := tw.Close(); err != nil {
			return err
		}
		return compressed.Close()
	}, nil
}

// plain is a tar archive that is not compressed.
type plain struct{ io.Writer }

func (plain) Close() error { return nil }
