package store

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/staging"
)

// Limits bound what one archive or folder may hold. They are far above any real
// package and far below what would hurt a machine.
const (
	maxArchive  = 1 << 30  // bytes as downloaded
	maxUnpacked = 2 << 30  // bytes on disk
	maxRest     = 16 << 20 // bytes that may follow the files
	maxFiles    = 200_000  // and directories
	maxNames    = 32 << 20 // bytes of all their paths together
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
//
// An archive of usual size is read into memory whole, so that it is unpacked
// without waiting for the network. A reader with a method Len, as of package
// bytes, tells how much memory that takes.
func (s *Store) AddTarball(ctx context.Context, archive io.Reader, want Integrity) (Entry, error) {
	packed, whole, err := readArchive(ctx, archive)
	if err != nil {
		return Entry{}, err
	}
	defer packed.free()
	if !whole {
		// The memory is given back when what is in it has been read: the rest of a
		// large archive may take minutes.
		return s.addStream(ctx, io.MultiReader(bytes.NewReader(packed.data), drained(packed.free), archive), want)
	}
	u, err := takeUnpacker(ctx)
	if err != nil {
		return Entry{}, err
	}
	defer u.giveBack()
	// Content that is not the promised one is the better explanation of a broken
	// archive.
	got := Integrity{sha512.Sum512(packed.data)}
	if !want.IsZero() && got != want {
		return Entry{}, &MismatchError{Want: want, Got: got}
	}
	return s.build(func(dir *staging.Dir) (Integrity, listing, error) {
		files, err := u.unpack(ctx, packed.data, dir)
		return got, files, err
	})
}

// drained is an empty reader that calls a function.
type drained func()

func (d drained) Read([]byte) (int, error) {
	d()
	return 0, io.EOF
}

// addStream is AddTarball of what is not held in memory.
func (s *Store) addStream(ctx context.Context, archive io.Reader, want Integrity) (Entry, error) {
	return s.build(func(dir *staging.Dir) (Integrity, listing, error) {
		hash := sha512.New()
		limited := &limitReader{r: archive, left: maxArchive, what: "archive"}
		hashed := io.TeeReader(limited, hash)
		files, unpackErr := unpackStream(ctx, hashed, dir)
		// The hash covers what follows the last tar block too. Who sends on and on
		// is not listened to until the end.
		switch rest, err := io.CopyN(io.Discard, hashed, maxRest+1); {
		case rest > maxRest && unpackErr == nil:
			return Integrity{}, listing{}, fault.Errorf(fault.Package, "read archive: it goes on for more than %d bytes after its end", int64(maxRest))
		case rest > maxRest:
			return Integrity{}, listing{}, unpackErr
		case !errors.Is(err, io.EOF):
			return Integrity{}, listing{}, err
		}
		got := Integrity{[sha512.Size]byte(hash.Sum(nil))}
		if !want.IsZero() && got != want {
			return Integrity{}, listing{}, &MismatchError{Want: want, Got: got}
		}
		return got, files, unpackErr
	})
}

var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// unpackStream unpacks an archive as it comes.
func unpackStream(ctx context.Context, archive io.Reader, dir *staging.Dir) (listing, error) {
	zr := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(zr)
	if err := zr.Reset(archive); err != nil {
		return listing{}, fault.Errorf(fault.Package, "read archive: not a gzip file: %w", err)
	}
	w := streamWriter{dir: dir, sum: sha256.New()}
	w.rules.reset()
	tr := tar.NewReader(&limitReader{r: zr, left: maxUnpacked, what: "unpacked archive"})
	for {
		if err := ctx.Err(); err != nil {
			return listing{}, err
		}
		header, err := tr.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return listing{}, archiveError(err)
		}
		m := member{
			name: header.Name, link: header.Linkname, kind: header.Typeflag,
			executable: header.FileInfo().Mode()&0o111 != 0, size: header.Size,
		}
		if err := w.add(m, tr); err != nil {
			return listing{}, err
		}
	}
	if err := markPrograms(w.read, dir, w.files); err != nil {
		return listing{}, err
	}
	sort.Slice(w.files, func(i, j int) bool { return w.files[i].Path < w.files[j].Path })
	return newListing(w.files), nil
}

// archiveError gives what broke while reading an archive its class, unless a
// layer below (the network, a limit) already has.
func archiveError(err error) error {
	if _, ok := errors.AsType[fault.Classed](err); ok || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Errorf(fault.Package, "read archive: %w", err)
}

// rules is what is known of an archive while its members are let in.
type rules struct {
	files  int // and directories
	names  int // bytes of their paths
	size   int64
	folded map[string]string // case-folded path of every file -> as the archive has it
	dirs   map[string]bool   // every directory that holds one
}

func (r *rules) reset() {
	r.files, r.names, r.size = 0, 0, 0
	if r.folded == nil {
		r.folded, r.dirs = map[string]string{}, map[string]bool{}
	}
	clear(r.folded)
	clear(r.dirs)
}

// admit says where a file of an archive goes, "" where it goes nowhere, and
// whether the same file was there before.
func (r *rules) admit(m member) (name string, again bool, err error) {
	switch m.kind {
	case tar.TypeReg, tar.TypeDir:
	case tar.TypeXGlobalHeader:
		return "", false, nil
	case tar.TypeSymlink, tar.TypeLink:
		return "", false, &UnsafeEntryError{m.name, fmt.Sprintf("is a link to %q; packages hold files only", m.link)}
	default:
		return "", false, &UnsafeEntryError{m.name, "is neither a file nor a directory"}
	}
	name, err = entryPath(m.name)
	if err != nil || name == "" || m.kind == tar.TypeDir {
		return "", false, err // directories appear with the files in them
	}
	if err := r.count(name); err != nil {
		return "", false, err
	}
	// The header tells the size beforehand, so that nothing of a huge file is
	// written; what is read is bounded again below the tar reader.
	if r.size += m.size; r.size > maxUnpacked {
		return "", false, fault.Errorf(fault.Policy, "archive unpacks to more than %d bytes", int64(maxUnpacked))
	}
	folded := strings.ToLower(name)
	if earlier, ok := r.folded[folded]; ok {
		if earlier != name {
			return "", false, &UnsafeEntryError{m.name, fmt.Sprintf("differs from %q only in case", earlier)}
		}
		return name, true, nil
	}
	if err := r.enter(m.name, name); err != nil {
		return "", false, err
	}
	r.folded[folded] = name
	return name, false, nil
}

// enter notes the directories of a file. A name is that of a file or of a
// directory.
func (r *rules) enter(raw, name string) error {
	if r.dirs[name] {
		return &UnsafeEntryError{raw, "is a file and a directory"}
	}
	for dir, _, ok := cutLast(name); ok && !r.dirs[dir]; dir, _, ok = cutLast(dir) {
		if file, ok := r.folded[strings.ToLower(dir)]; ok {
			return &UnsafeEntryError{raw, fmt.Sprintf("is below %q, which is a file", file)}
		}
		if err := r.count(dir); err != nil {
			return err
		}
		r.dirs[dir] = true
	}
	return nil
}

// count bounds what the names of an archive take, on the disk and in memory.
func (r *rules) count(path string) error {
	r.files++
	r.names += len(path)
	switch {
	case r.files > maxFiles:
		return fault.Errorf(fault.Policy, "it holds more than %d files and directories", maxFiles)
	case r.names > maxNames:
		return fault.Errorf(fault.Policy, "its names are longer than %d bytes together", maxNames)
	}
	return nil
}

// errTwice refuses a file that is repeated with another content.
func errTwice(m member) error {
	return &UnsafeEntryError{m.name, "stands in the archive twice with different contents"}
}

// streamWriter writes the members of one archive as they come.
type streamWriter struct {
	dir   *staging.Dir
	rules rules
	sum   hash.Hash // of the file that is being unpacked
	made  map[string]bool
	files []File
}

func (w *streamWriter) add(m member, content io.Reader) error {
	name, again, err := w.rules.admit(m)
	if err != nil || name == "" {
		return err
	}
	if again {
		return w.repeated(m, name, content)
	}
	if err := w.makeDirs(name); err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	f, err := w.dir.Create(name, fileMode(m.executable))
	if err != nil {
		return fmt.Errorf("unpack %s: %w", name, err)
	}
	w.sum.Reset()
	size, err := io.Copy(io.MultiWriter(f, w.sum), content)
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
	w.files = append(w.files, File{Path: name, Size: size, Executable: m.executable, Hash: Hash(w.sum.Sum(nil))})
	return nil
}

// makeDirs makes the directories of a file.
func (w *streamWriter) makeDirs(name string) error {
	dir, _, ok := cutLast(name)
	if !ok || w.made[dir] {
		return nil
	}
	if err := w.makeDirs(dir); err != nil {
		return err
	}
	if w.made == nil {
		w.made = map[string]bool{}
	}
	w.made[dir] = true
	return w.dir.Mkdir(dir)
}

// repeated accepts a file that stands in the archive twice with one content.
func (w *streamWriter) repeated(m member, name string, content io.Reader) error {
	i := slices.IndexFunc(w.files, func(f File) bool { return f.Path == name })
	if w.files[i].Size != m.size {
		return errTwice(m)
	}
	w.sum.Reset()
	if _, err := io.Copy(w.sum, content); err != nil {
		return archiveError(err)
	}
	if Hash(w.sum.Sum(nil)) != w.files[i].Hash {
		return errTwice(m)
	}
	return nil
}

func (w *streamWriter) read(name string) ([]byte, error) {
	f, err := w.dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
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
			if runtime.GOOS == "windows" && !windowsName(part) {
				return unsafe("has a name that means something else on Windows")
			}
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 {
		return "", nil
	}
	return strings.Join(parts[1:], "/"), nil
}

// windowsName reports whether a name is that of a file of its own on Windows: no
// device, no stream of another file, and not another's with dots or blanks
// behind it.
func windowsName(name string) bool {
	return !strings.Contains(name, ":") && strings.TrimRight(name, ". ") == name && filepath.IsLocal(name)
}

// markPrograms makes the programs that package.json names executable, which
// publishers on systems without permission bits cannot do.
func markPrograms(read func(name string) ([]byte, error), dir *staging.Dir, files []File) error {
	i := slices.IndexFunc(files, func(f File) bool { return f.Path == packageFile })
	if i < 0 || files[i].Size > manifest.MaxSize {
		return nil // the caller reads the manifest and says what is wrong with it
	}
	text, err := read(packageFile)
	if err != nil {
		return err
	}
	programs := programsOf(text)
	for i := range files {
		f := &files[i]
		if !f.Executable && programs[f.Path] {
			if err := dir.Chmod(f.Path, fileMode(true)); err != nil {
				return err
			}
			f.Executable = true
		}
	}
	return nil
}

const packageFile = "package.json"

// programsOf is the files that a package.json names as programs.
func programsOf(text []byte) map[string]bool {
	if !bytes.Contains(text, []byte(`"bin"`)) && !bytes.Contains(text, []byte(`\u`)) {
		return nil // as most packages; the name may be written with escapes
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil
	}
	programs := map[string]bool{}
	for _, file := range m.Bin {
		programs[file] = true
	}
	return programs
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
