package store

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// AddFolder copies a package folder into the store. What a package never
// ships (.git, node_modules, .DS_Store) stays out, and a symlink in the folder
// is refused, because what it points to is not part of the package. So is a
// folder that contains the store, whose copy would contain itself.
//
// The hash covers paths, executable bits and contents, folder by folder in
// order of name; that programs become executable in the store does not count.
func (s *Store) AddFolder(ctx context.Context, dir string) (Entry, error) {
	inside, err := s.isInside(dir)
	if err != nil {
		return Entry{}, err
	}
	if inside {
		return Entry{}, fault.Errorf(fault.Policy, "%s contains the package store %s, so it cannot be copied into it", dir, s.dir)
	}
	return s.build(func(dst *staging.Dir) (Integrity, listing, error) {
		src, err := os.OpenRoot(dir)
		if err != nil {
			return Integrity{}, listing{}, err
		}
		defer src.Close()
		c := folderCopy{src: src, dst: dst, sum: sha512.New(), left: maxUnpacked}
		err = fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
			if err = errors.Join(err, ctx.Err()); err != nil || name == "." {
				return err
			}
			if base := d.Name(); base == ".git" || base == "node_modules" || base == ".DS_Store" {
				if d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			switch {
			case strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
				return &UnsafeEntryError{name, "has a character in its name that other systems cannot hold"}
			case d.IsDir():
				if err := c.names.count(name); err != nil {
					return err
				}
				return dst.Mkdir(name)
			case d.Type()&fs.ModeSymlink != 0:
				return &UnsafeEntryError{name, "is a symbolic link; a copied package folder holds files only"}
			case !d.Type().IsRegular():
				return &UnsafeEntryError{name, "is neither a file nor a directory"}
			}
			if err := c.names.count(name); err != nil {
				return err
			}
			return c.file(name)
		})
		if err == nil {
			err = markPrograms(src.ReadFile, dst, c.files)
		}
		sort.Slice(c.files, func(i, j int) bool { return c.files[i].Path < c.files[j].Path })
		return Integrity{[sha512.Size]byte(c.sum.Sum(nil))}, newListing(c.files), err
	})
}

// isInside reports whether the store is, or would be made, in the directory or
// somewhere below it, whatever names and links lead there.
func (s *Store) isInside(dir string) (bool, error) {
	outer, err := os.Stat(dir)
	if err != nil {
		return false, err
	}
	at, err := filepath.Abs(s.dir)
	if err != nil {
		return false, err
	}
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = real
			break
		}
		if up := filepath.Dir(at); errors.Is(err, fs.ErrNotExist) && up != at {
			at = up // not made yet
			continue
		}
		return false, err
	}
	for {
		info, err := os.Stat(at)
		if err != nil {
			return false, err
		}
		up := filepath.Dir(at)
		if os.SameFile(info, outer) || up == at {
			return os.SameFile(info, outer), nil
		}
		at = up
	}
}

// folderCopy is the copying of one folder.
type folderCopy struct {
	src   *os.Root
	dst   *staging.Dir
	sum   hash.Hash
	left  int64 // bytes that may still be copied
	files []File
	names rules
}

func (c *folderCopy) file(name string) error {
	in, err := c.src.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	// What is too large by its size is not even begun; what is read is bounded
	// again, because files grow.
	if info.Size() > c.left {
		return errTooLarge("folder")
	}
	executable := info.Mode()&0o111 != 0
	out, err := c.dst.Create(name, fileMode(executable))
	if err != nil {
		return err
	}
	content, short := sha512.New(), sha256.New()
	size, err := io.Copy(io.MultiWriter(out, content, short), &limitReader{r: in, left: c.left, what: "folder"})
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("copy %s: %w", name, err)
	}
	c.left -= size
	// Lengths go before what they measure, so that no two trees hash alike.
	head := binary.BigEndian.AppendUint64(nil, uint64(len(name)))
	head = append(head, name...)
	if executable {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	c.sum.Write(head)
	c.sum.Write(content.Sum(nil))
	c.files = append(c.files, File{Path: name, Size: size, Executable: executable, Hash: Hash(short.Sum(nil))})
	return nil
}
