package store

import (
	"bytes"
	"context"
	"crypto/sha512"
	"errors"
	"fmt"
	"io"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install/manifest"
	"dsh/internal/install/unpack"
	"dsh/internal/staging"
)

// What an archive may be as it comes. What it unpacks to the limits of the store
// say.
const (
	maxArchive = 1 << 30  // bytes as downloaded
	maxRest    = 16 << 20 // bytes that may follow the files
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
		files, err := u.unpack(ctx, packed.data, s.Limits, dir)
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
		files, unpackErr := unpackStream(ctx, hashed, s.Limits, dir)
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

// unpackStream unpacks an archive as it comes.
func unpackStream(ctx context.Context, archive io.Reader, limits unpack.Limits, dir *staging.Dir) (listing, error) {
	w := newWriter(dir, unpack.Options{Limits: limits, Strip: true})
	if err := unpack.WalkGzip(ctx, archive, limits, w.add); err != nil {
		return listing{}, err
	}
	return w.finish()
}

const (
	packageFile = "package.json"
	bindingFile = "binding.gyp" // what node-gyp builds native code by
)

// read is what a package.json tells that is kept beside the files: those that it
// names as programs, which package it is, and whether it has scripts. Most have none
// of what matters, and are not parsed.
func read(text []byte) (programs map[string]bool, known facts) {
	name, version := manifest.Identity(text)
	known.pkg = name + "@" + version
	programs, known.traits = readTraits(text)
	return programs, known
}

func readTraits(text []byte) (programs map[string]bool, known traits) {
	named := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return bytes.Contains(text, []byte(name)) })
	}
	escapes := named(`\u`) // any name may be written with them
	if !escapes && !named(`"bin"`, `install"`, `"prep`) {
		return nil, 0
	}
	m, err := manifest.Parse(text)
	if err != nil {
		return nil, 0
	}
	for _, file := range m.Bin {
		if programs == nil {
			programs = map[string]bool{}
		}
		programs[file] = true
	}
	for _, script := range m.Scripts {
		if script == "prepare" {
			known |= hasPrepare
		} else {
			known |= hasScripts
		}
	}
	if named(`"prepublish"`, `"prepack"`) { // which are read again by who runs them
		known |= hasPrepare
	}
	return programs, known
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
