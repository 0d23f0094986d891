package store

import (
	"cmp"
	"context"
	"crypto/sha512"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install/unpack"
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
		w := newWriter(dst, unpack.Options{Limits: s.Limits})
		w.tree = sha512.New()
		err := eachIn(ctx, dir, func(name string) bool {
			return name == ".git" || name == "node_modules" || name == ".DS_Store"
		}, w.add)
		if err != nil {
			return Integrity{}, listing{}, err
		}
		list, err := w.finish()
		return w.treeSum(), list, err
	})
}

// AddBuilt stores a folder under an id that is not its hash: the result of
// building the package that the id stands for. Everything in it is taken. A link
// that leads to another one leads to the end of the chain then; one that leads
// nowhere, or outside of the folder, is left out, as programs that build native
// code make such for themselves. Limits that are zero are those of the store.
func (s *Store) AddBuilt(ctx context.Context, id Integrity, dir string, limits unpack.Limits) (Entry, error) {
	if id.IsZero() {
		return Entry{}, errNoEntry
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Entry{}, err
	}
	return s.build(func(dst *staging.Dir) (Integrity, listing, error) {
		w := newWriter(dst, unpack.Options{Limits: cmp.Or(limits, s.Limits), Links: true})
		err := eachIn(ctx, real, func(string) bool { return false }, func(m unpack.Member, content io.Reader) error {
			if m.Type == unpack.Link {
				var leads bool
				if m.Link, leads = flat(real, m.Name); !leads {
					return nil
				}
			}
			return w.add(m, content)
		})
		if err != nil {
			return Integrity{}, listing{}, err
		}
		list, err := w.finish()
		return id, list, err
	})
}

// flat is where a link in a folder leads in the end, relative to the directory
// that it is in. It reports false where that is nowhere, outside, or around it.
func flat(dir, name string) (target string, ok bool) {
	at := filepath.Join(dir, filepath.FromSlash(name))
	end, err := filepath.EvalSymlinks(at)
	if err != nil {
		return "", false
	}
	inside, err := filepath.Rel(dir, end)
	if err != nil || inside == "." || !filepath.IsLocal(inside) || strings.HasPrefix(at, end+string(filepath.Separator)) {
		return "", false
	}
	target, err = filepath.Rel(filepath.Dir(at), end)
	return filepath.ToSlash(target), err == nil
}

// eachIn calls add with all that is in a folder, but for what leaveOut says by
// its name.
func eachIn(ctx context.Context, dir string, leaveOut func(base string) bool, add func(unpack.Member, io.Reader) error) error {
	src, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer src.Close()
	return fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err = errors.Join(err, ctx.Err()); err != nil || name == "." {
			return err
		}
		if leaveOut(d.Name()) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		m := unpack.Member{Name: name}
		switch {
		case d.IsDir():
			m.Type = unpack.Dir
		case d.Type()&fs.ModeSymlink != 0:
			m.Type = unpack.Link
			if m.Link, err = src.Readlink(filepath.FromSlash(name)); err != nil {
				return err
			}
			m.Link = filepath.ToSlash(m.Link)
		case !d.Type().IsRegular():
			m.Type = unpack.Other
		default:
			return addFile(src, m, add)
		}
		return add(m, nil)
	})
}

func addFile(src *os.Root, m unpack.Member, add func(unpack.Member, io.Reader) error) error {
	in, err := src.Open(filepath.FromSlash(m.Name))
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	m.Executable, m.Size = info.Mode()&0o111 != 0, info.Size()
	return add(m, in)
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
