package trust

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Seal is the content that trust covers, as one hash. The empty Seal seals
// nothing and is never trusted.
type Seal string

// Contents is the hash of what stood at each of some paths when it was read.
type Contents map[string]string

// Read hashes what is at paths, which are absolute.
//
// A path is followed if it is a link, and that nothing is there, or can be,
// counts as well. A file counts with its content and whether it is executable, a
// directory with the names and all that is in it. Links in a directory count
// with the text of their target, and with the content of a file that they lead
// to; those to directories are not followed. Pipes, sockets and devices have no
// content to seal and count with their kind. It is an error if anything of this
// cannot be read.
func Read(paths []string) (Contents, error) {
	c := Contents{}
	for _, path := range paths {
		sum, err := sumNamed(path)
		if err != nil {
			return nil, fmt.Errorf("sealing %s: %w", path, err)
		}
		c[path] = sum
	}
	return c, nil
}

// Seal seals the text of a patch together with the contents of the files that it
// names. Pass the bytes that were parsed: what the file holds by now may be
// something else.
func (c Contents) Seal(patch []byte) Seal {
	fields := []string{"project layer", string(patch)}
	for _, path := range slices.Sorted(maps.Keys(c)) {
		fields = append(fields, path, c[path])
	}
	return Seal("sha256:" + hex.EncodeToString([]byte(sumOf(fields...))))
}

// SealOf is the seal of a patch and of the files that it names as they are now;
// see [Read].
func SealOf(patch []byte, files []string) (Seal, error) {
	c, err := Read(files)
	if err != nil {
		return "", err
	}
	return c.Seal(patch), nil
}

// sumOf hashes fields so that no two lists of fields are hashed alike: the
// length of each goes before it.
func sumOf(fields ...string) string {
	h := sha256.New()
	for _, field := range fields {
		_ = binary.Write(h, binary.BigEndian, uint64(len(field))) // a hash never fails
		_, _ = io.WriteString(h, field)
	}
	return string(h.Sum(nil))
}

func sumNamed(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return "", errors.New("the path is not absolute")
	}
	info, err := os.Stat(path)
	isErr := func(target error) bool { return errors.Is(err, target) }
	if isErr(fs.ErrNotExist) || slices.ContainsFunc(impossible, isErr) {
		return sumOf("missing"), nil
	}
	if err != nil {
		return "", err
	}
	return sum(path, info)
}

// sum hashes what is at path, of which info tells the kind.
func sum(path string, info fs.FileInfo) (string, error) {
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return sumFile(path, mode)
	case mode.IsDir():
		return sumDir(path)
	default:
		// A junction of Windows is a link too, and its mode does not say so.
		target, err := os.Readlink(path)
		if err == nil {
			content := ""
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				if content, err = sumFile(path, info.Mode()); err != nil {
					return "", err
				}
			}
			return sumOf("link", target, content), nil
		}
		if mode&fs.ModeSymlink != 0 {
			return "", err
		}
		return sumOf("special", mode.Type().String()), nil
	}
}

func sumFile(path string, mode fs.FileMode) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content := sha256.New()
	if _, err := io.Copy(content, f); err != nil {
		return "", err
	}
	kind := "file"
	if mode&0o111 != 0 {
		kind = "program"
	}
	return sumOf(kind, string(content.Sum(nil))), nil
}

func sumDir(path string) (string, error) {
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return "", err
	}
	fields := []string{"directory"}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return "", err
		}
		sum, err := sum(filepath.Join(path, entry.Name()), info)
		if err != nil {
			return "", err
		}
		fields = append(fields, entry.Name(), sum)
	}
	return sumOf(fields...), nil
}
