package store

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
)

// Limits bound what one archive or folder may hold. They are far above any real
// package and far below what would hurt a machine.
const (
	maxArchive  = 1 << 30 // bytes as downloaded
	maxUnpacked = 2 << 30 // bytes on disk
	maxFiles    = 200_000
	maxPath     = 1024
)

// MismatchError says that content is not what its hash promised.
type MismatchError struct {
	Want, Got Integrity
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("content does not match its integrity\n\twanted: %s\n\tgot:    %s", e.Want, e.Got)
}

// Class implements fault.Classed.
func (e *MismatchError) Class() fault.Class { return fault.Package }

// UnsafeEntryError says that an archive holds something that no package may.
type UnsafeEntryError struct {
	Entry, Reason string
}

func (e *UnsafeEntryError) Error() string {
	return fmt.Sprintf("archive entry %q %s", e.Entry, e.Reason)
}

// Class implements fault.Classed.
func (e *UnsafeEntryError) Class() fault.Class { return fault.Policy }

// AddTarball unpacks a gzipped tar archive into the store while hashing it,
// and keeps it only when the hash is want; a zero want takes the content as
// it is (the first fetch of something that nobody has pinned).
//
// Archives hold files and directories only: links, devices, absolute paths,
// paths with "..", two files that differ only in case and repeated files that
// differ are refused. The first path element is dropped whatever it is called,
// as npm does, and permission bits are reduced to "executable or not".
func (s *Store) AddTarball(ctx context.Context, archive io.Reader, want Integrity) (Entry, error) {
	return s.build(func(root *os.Root) (Integrity, []File, error) {
		hash := sha512.New()
		limited := &limitReader{r: archive, left: maxArchive, what: "archive"}
		hashed := io.TeeReader(limited, hash)
		files, unpackErr := unpack(ctx, hashed, root)
		// The hash covers what follows the last tar block too. Content that is
		// not the promised one is the better explanation of a broken archive.
		_, drainErr := io.Copy(io.Discard, hashed)
		if drainErr != nil {
			return Integrity{}, nil, drainErr
		}
		got := Integrity{[sha512.Size]byte(hash.Sum(nil))}
		if !want.IsZero() && got != want {
			return Integrity{}, nil, &MismatchError{Want: want, Got: got}
		}
		return got, files, unpackErr
	})
}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

func unpack(ctx context.Context, archive io.Reader, root *os.Root) ([]File, error) {
	zr := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(zr)
	if err := zr.Reset(archive); err != nil {
		return nil, fault.Errorf(fault.Package, "read archive: not a gzip file: %w", err)
	}
	u := unpacker{root: root, sum: sha256.New(), names: map[string]string{}, dirs: map[string]bool{}}
	tr := tar.NewReader(&limitReader{r: zr, left: maxUnpacked, what: "unpacked archive"})
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, archiveError(err)
		}
		if err := u.entry(header, tr); err != nil {
			return nil, err
		}
	}
	if err := markPrograms(root, u.files); err != nil {
		return nil, err
	}
	sort.Slice(u.files, func(i, j int) bool { return u.files[i].Path < u.files[j].Path })
	return u.files, nil
}

// archiveError gives what broke while reading an archive its class, unless a
// layer below (the network, a limit) already has.
func archiveError(err error) error {
	if _, ok := errors.AsType[fault.Classed](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Errorf(fault.Package, "read archive: %w", err)
}

// unpacker writes the entries of one archive.
type unpacker struct {
	root  *os.Root
	sum   hash.Hash // of the file that is being unpacked
	files []File
	size  int64
	names map[string]string // case-folded path -> path as the archive has it
	dirs  map[string]bool
}

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink, tar.TypeLink:
		return &UnsafeEntryError{header.Name, fmt.Sprintf("is a link to %q; packages hold files only", header.Linkname)}
	default:
		return &UnsafeEntryError{header.Name, "is neither a file nor a directory"}
	}
	name, err := entryPath(header.Name)
	if err != nil || name == "" || header.Typeflag == tar.TypeDir {
		return err // directories appear with the files in them
	}
	if len(u.files) >= maxFiles {
		return fault.Errorf(fault.Policy, "archive holds more than %d files", maxFiles)
	}
	// The header tells the size beforehand, so that nothing of a huge file is
	// written; what is read is bounded again below the tar reader.
	if u.size += header.Size; u.size > maxUnpacked {
		return fault.Errorf(fault.Policy, "archive unpacks to more than %d bytes", int64(maxUnpacked))
	}
	folded := strings.ToLower(name)
	if earlier, ok := u.names[folded]; ok {
		if earlier != name {
			return &UnsafeEntryError{header.Name, fmt.Sprintf("differs from %q only in case", earlier)}
		}
		return u.repeated(header, name, content)
	}
	u.names[folded] = name
	if dir, _, ok := cutLast(name); ok && !u.dirs[dir] {
		if err := u.root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		u.dirs[dir] = true
	}
	executable := header.FileInfo().Mode()&0o111 != 0
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode(executable))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	u.sum.Reset()
	size, err := io.Copy(io.MultiWriter(f, u.sum), content)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		// Writing fails with a path error; anything else came from the archive.
		if _, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		return archiveError(err)
	}
	u.files = append(u.files, File{Path: name, Size: size, Executable: executable, Hash: Hash(u.sum.Sum(nil))})
	return nil
}

// repeated accepts a file that stands in the archive twice with one content.
func (u *unpacker) repeated(header *tar.Header, name string, content io.Reader) error {
	differs := &UnsafeEntryError{header.Name, "stands in the archive twice with different contents"}
	first, err := u.root.Open(name)
	if err != nil {
		return err
	}
	defer first.Close()
	info, err := first.Stat()
	if err != nil {
		return err
	}
	if info.Size() != header.Size {
		return differs
	}
	var here, there [32 << 10]byte
	for left := header.Size; left > 0; {
		n := min(left, int64(len(here)))
		if _, err := io.ReadFull(content, there[:n]); err != nil {
			return archiveError(err)
		}
		if _, err := io.ReadFull(first, here[:n]); err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		if here != there {
			return differs
		}
		left -= n
	}
	return nil
}

// fileMode is how files stand in the store: never writable, since profiles
// hold hard links to them.
func fileMode(executable bool) fs.FileMode {
	if executable {
		return 0o555
	}
	return 0o444
}

// entryPath turns an entry's name into a path below the package's root,
// "" for the root itself.
func entryPath(raw string) (string, error) {
	unsafe := func(reason string) (string, error) { return "", &UnsafeEntryError{raw, reason} }
	if len(raw) > maxPath {
		return unsafe("has a name that is too long")
	}
	if path.IsAbs(raw) {
		return unsafe("is an absolute path")
	}
	for _, r := range raw {
		if r < ' ' || r == 0x7f {
			return unsafe("has a control character in its name")
		}
		if r == '\\' {
			return unsafe("has a backslash in its name")
		}
	}
	var parts []string
	for part := range strings.SplitSeq(raw, "/") {
		switch part {
		case "", ".":
		case "..":
			return unsafe("leaves the package's folder")
		default:
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 {
		return "", nil
	}
	return strings.Join(parts[1:], "/"), nil
}

// markPrograms makes the programs that package.json names executable, which
// publishers on systems without permission bits cannot do.
func markPrograms(root *os.Root, files []File) error {
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == "package.json" })
	if i < 0 || files[i].Size > manifest.MaxSize {
		return nil // the caller reads the manifest and says what is wrong with it
	}
	text, err := root.ReadFile("package.json")
	if err != nil {
		return err
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil
	}
	programs := map[string]bool{}
	for _, file := range m.Bin {
		programs[file] = true
	}
	for i := range files {
		f := &files[i]
		if !f.Executable && programs[f.Path] {
			if err := root.Chmod(f.Path, fileMode(true)); err != nil {
				return err
			}
			f.Executable = true
		}
	}
	return nil
}

// limitReader fails, and does not end, once more than its limit is read.
type limitReader struct {
	r    io.Reader
	left int64
	what string
}

func (l *limitReader) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n, errTooLarge(l.what)
	}
	return n, err
}

func errTooLarge(what string) error {
	return fault.Errorf(fault.Policy, "%s is larger than this program allows", what)
}
