package store

import (
	"context"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"

	"dsh/internal/fault"
)

// AddFolder copies a package folder into the store. What a package never
// ships (.git, node_modules, .DS_Store) stays out, and a symlink in the folder
// is refused, because what it points to is not part of the package.
//
// The hash covers paths, executable bits and contents, folder by folder in
// order of name.
func (s *Store) AddFolder(ctx context.Context, dir string) (Entry, error) {
	return s.build(func(dst *os.Root) (Integrity, []File, error) {
		src, err := os.OpenRoot(dir)
		if err != nil {
			return Integrity{}, nil, err
		}
		defer src.Close()
		sum := sha512.New()
		var files []File
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
				return dst.Mkdir(name, 0o755)
			case d.Type()&fs.ModeSymlink != 0:
				return &UnsafeEntryError{name, "is a symbolic link; a copied package folder holds files only"}
			case !d.Type().IsRegular():
				return &UnsafeEntryError{name, "is neither a file nor a directory"}
			case len(files) >= maxFiles:
				return fault.Errorf(fault.Policy, "%s holds more than %d files", dir, maxFiles)
			}
			file, err := copyFile(src, dst, name, sum)
			files = append(files, file)
			return err
		})
		sort.Slice(files, func(i, j int) bool { return files[i].Path < files[j].Path })
		return Integrity{[sha512.Size]byte(sum.Sum(nil))}, files, err
	})
}

func copyFile(src, dst *os.Root, name string, sum hash.Hash) (File, error) {
	in, err := src.Open(name)
	if err != nil {
		return File{}, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return File{}, err
	}
	executable := info.Mode()&0o111 != 0
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode(executable))
	if err != nil {
		return File{}, err
	}
	// Lengths go before what they measure, so that no two trees hash alike.
	content := sha512.New()
	size, err := io.Copy(io.MultiWriter(out, content), in)
	if err = errors.Join(err, out.Close()); err != nil {
		return File{}, fmt.Errorf("copy %s: %w", name, err)
	}
	head := binary.BigEndian.AppendUint64(nil, uint64(len(name)))
	head = append(head, name...)
	if executable {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	sum.Write(head)
	sum.Write(content.Sum(nil))
	return File{Path: name, Size: size, Executable: executable}, nil
}
