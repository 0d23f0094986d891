package install

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/registry"
	"dsh/internal/install/store"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// packedTop is the folder in which the files of a packed tree stand.
const packedTop = "package/"

// OriginalTree is the files of a package from a git repository, as an archive in a
// temporary directory of a store. have, which may be nil, is another store that
// may have them; else they are fetched. [AddPackedTree] reads it, and checks the
// tree itself, so that the archive's own bytes do not count.
func OriginalTree(ctx context.Context, client *registry.Client, packages, have *store.Store, pkg *Package) (file string, err error) {
	if pkg.Origin.Kind != Git {
		return "", fault.Errorf(fault.Package, "%s comes from no git repository", pkg.describe())
	}
	var entry store.Entry
	ok := false
	if have != nil {
		entry, ok = have.Get(pkg.Integrity)
	}
	if !ok || entry.Check() != nil {
		j := &Job{Registry: client, Store: packages}
		find, ctx, done := j.sources(ctx)
		defer done()
		if entry, err = find.fromLocked(ctx, pkg.Origin, pkg.Integrity); err != nil {
			return "", within(pkg.describe(), err)
		}
	}
	dir, err := packages.TempDir()
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "tree.tgz")
	out, err := staging.OS.Create(file, 0o644)
	if err != nil {
		return "", err
	}
	return file, within(pkg.describe(), errors.Join(packTree(ctx, out, entry), out.Close()))
}

// packTree writes the files and links of an entry as a gzipped tar archive.
func packTree(ctx context.Context, w io.Writer, entry store.Entry) error {
	zw := gzip.NewWriter(w)
	tw := tar.NewWriter(zw)
	for _, f := range entry.Files() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := packFile(tw, entry, f); err != nil {
			return fmt.Errorf("pack %s: %w", f.Path, err)
		}
	}
	return errors.Join(tw.Close(), zw.Close())
}

func packFile(tw *tar.Writer, entry store.Entry, f store.File) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: packedTop + f.Path, Size: f.Size, Mode: 0o644}
	switch {
	case f.Link != "":
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, f.Link, 0
	case f.Executable:
		h.Mode = 0o755
	}
	if err := tw.WriteHeader(h); err != nil || f.Link != "" {
		return err
	}
	in, err := os.Open(filepath.Join(entry.Dir(), filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(tw, in)
	return err
}

// AddPackedTree brings the tree that an archive of [OriginalTree] holds into a
// store. Another tree than want is a [*store.MismatchError].
func AddPackedTree(ctx context.Context, packages *store.Store, r io.Reader, want store.Integrity) error {
	entry, err := packages.AddTree(ctx, packages.Limits, func(add func(unpack.Member, io.Reader) error) error {
		return unpack.WalkGzip(ctx, r, packages.Limits, func(m unpack.Member, content io.Reader) error {
			if m.Type == unpack.Meta || m.Type == unpack.Dir {
				return nil
			}
			name, ok := strings.CutPrefix(m.Name, packedTop)
			if !ok {
				return fmt.Errorf("%q is not below %s", m.Name, packedTop)
			}
			m.Name = name
			return add(m, content)
		})
	})
	if err == nil && entry.Integrity != want {
		err = &store.MismatchError{Want: want, Got: entry.Integrity}
	}
	return err
}
