package store

import (
	"cmp"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"os"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// AddArchive unpacks an archive file of any format that [unpack.Format] knows, and
// keeps it only when the hash of the file is want; a zero want takes the content
// as it is. The part of the archive that is the package, and whether it may have
// links, opts say; limits that are zero are those of the store.
func (s *Store) AddArchive(ctx context.Context, file string, opts unpack.Options, want Integrity) (Entry, error) {
	in, err := os.Open(file)
	if err != nil {
		return Entry{}, err
	}
	defer in.Close()
	before, err := in.Stat()
	if err != nil {
		return Entry{}, err
	}
	if !before.Mode().IsRegular() {
		return Entry{}, fault.Errorf(fault.Package, "%s is no file", file)
	}
	if before.Size() > maxArchive {
		return Entry{}, errTooLarge("archive")
	}
	sum := sha512.New()
	if _, err := io.Copy(sum, &cancelled{ctx, io.NewSectionReader(in, 0, before.Size())}); err != nil {
		return Entry{}, err
	}
	got := Integrity{[sha512.Size]byte(sum.Sum(nil))}
	if !want.IsZero() && got != want {
		return Entry{}, &MismatchError{Want: want, Got: got}
	}
	opts.Limits = cmp.Or(opts.Limits, s.Limits)
	return s.build(func(dir *staging.Dir) (Integrity, listing, error) {
		w := newWriter(dir, opts)
		if err := unpack.Walk(ctx, in, before.Size(), opts.Limits, w.add); err != nil {
			return Integrity{}, listing{}, err
		}
		switch {
		case len(w.files) == 0 && opts.Inside != "":
			return Integrity{}, listing{}, fault.Errorf(fault.Package, "the archive has no folder %q with files in it", opts.Inside)
		case len(w.files) == 0:
			return Integrity{}, listing{}, fault.Errorf(fault.Package, "the archive holds no files")
		}
		list, err := w.finish()
		// The hash is of what was unpacked only if nobody has written meanwhile.
		if after, statErr := in.Stat(); err == nil && (statErr != nil || after.Size() != before.Size() || !after.ModTime().Equal(before.ModTime())) {
			err = errors.Join(fmt.Errorf("%s was changed while it was read", file), statErr)
		}
		return got, list, err
	})
}

// cancelled is a reader that ends with its context.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c *cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}
