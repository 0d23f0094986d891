package trust

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// State is what the record says of a project. The zero State is Unknown.
type State uint8

// The states of a project.
const (
	Unknown State = iota // the directory was never trusted
	Changed              // the directory is trusted, with other content than it has now
	Trusted              // the directory is trusted as it is
)

// String is the state in one word, as --json reports it.
func (s State) String() string {
	switch s {
	case Changed:
		return "changed"
	case Trusted:
		return "trusted"
	default:
		return "unknown"
	}
}

// Record is that the user trusts a directory.
type Record struct {
	Dir   string    `json:"dir"` // as Project.Dir
	Seal  Seal      `json:"seal"`
	Files []string  `json:"files,omitempty"` // the paths that the seal covers beside the patch
	Since time.Time `json:"since"`
}

// covers says whether the record is for the directory whose real path is dir.
// On a filesystem that does not tell upper from lower case, one directory has
// several real paths. A path that has since become a link is not the directory
// that was trusted.
func (r Record) covers(dir string) bool {
	if r.Dir == dir {
		return true
	}
	if !filepath.IsAbs(r.Dir) {
		return false // a file shared with another system
	}
	if real, err := filepath.EvalSymlinks(r.Dir); err != nil || real != r.Dir {
		return false
	}
	ours, err := os.Stat(r.Dir)
	if err != nil {
		return false
	}
	theirs, err := os.Stat(dir)
	return err == nil && os.SameFile(ours, theirs)
}

// check refuses a record that could not be found again.
func (r Record) check() error {
	switch {
	case !filepath.IsAbs(r.Dir):
		return errors.New("the path is not absolute")
	case !utf8.ValidString(r.Dir):
		return errors.New("the path is not UTF-8, which the record cannot hold")
	case r.Seal == "":
		return errors.New("there is no seal")
	}
	return nil
}

// Store is the record of trusted directories, kept in one file.
type Store struct{ file string }

// Open is the store in a file, which need not exist: then nothing is trusted.
// Nothing is read yet.
func Open(file string) *Store { return &Store{file} }

// Recorded is what was recorded when a project was trusted; ok is false if it
// never was. It tells, without the seal of what a stranger's patch names being
// made, that there is nothing to compare a seal with.
func (s *Store) Recorded(p Project) (r Record, ok bool, err error) {
	records, err := s.read()
	if err != nil {
		return Record{}, false, err
	}
	for _, r := range records {
		if r.covers(p.Dir) {
			return r, true, nil
		}
	}
	return Record{}, false, nil
}

// State says whether a project with this seal is trusted. The empty seal is
// never.
func (s *Store) State(p Project, seal Seal) (State, error) {
	records, err := s.read()
	if err != nil {
		return Unknown, err
	}
	state := Unknown
	for _, r := range records {
		if !r.covers(p.Dir) {
			continue
		}
		if r.Seal == seal {
			return Trusted, nil
		}
		state = Changed
	}
	return state, nil
}

// Grant records trust in a directory, in place of what was recorded of it. It
// waits until ctx ends for others that write the store.
func (s *Store) Grant(ctx context.Context, r Record) error {
	err := r.check()
	if err == nil {
		err = s.update(ctx, "dsh trust", func(records []Record) []Record {
			others := slices.DeleteFunc(records, func(old Record) bool { return old.covers(r.Dir) })
			return append(others, r)
		})
	}
	if err != nil {
		return fmt.Errorf("trusting %s: %w", r.Dir, err)
	}
	return nil
}

// Revoke takes the trust in a directory back, and says whether there was any.
// The directory may be gone, and may be named by a link. It waits until ctx
// ends for others that write the store.
func (s *Store) Revoke(ctx context.Context, dir string) (bool, error) {
	revoked, err := s.revoke(ctx, dir)
	if err != nil {
		return false, fmt.Errorf("revoking trust in %s: %w", dir, err)
	}
	return revoked, nil
}

func (s *Store) revoke(ctx context.Context, dir string) (bool, error) {
	clean, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	real, err := realPath(dir)
	if err != nil {
		return false, err
	}
	meant := func(r Record) bool { return r.Dir == dir || r.Dir == clean || r.covers(real) }
	records, err := s.read()
	if err != nil || !slices.ContainsFunc(records, meant) {
		return false, err
	}
	revoked := false
	err = s.update(ctx, "dsh trust --revoke", func(records []Record) []Record {
		left := slices.DeleteFunc(slices.Clone(records), meant)
		revoked = len(left) < len(records)
		return left
	})
	return revoked, err
}

// List is every record, sorted by directory.
func (s *Store) List() ([]Record, error) { return s.read() }

// update rewrites the file under its lock.
func (s *Store) update(ctx context.Context, command string, edit func([]Record) []Record) (err error) {
	lock, err := staging.Acquire(ctx, s.file+".lock", command, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	records, err := s.read()
	if err != nil {
		return err
	}
	records = edit(records)
	slices.SortFunc(records, byDir)
	return s.write(records)
}

func (s *Store) read() ([]Record, error) {
	data, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the trusted directories: %w", err)
	}
	records, err := parse(data)
	if err != nil {
		err = fault.Errorf(fault.Policy, "reading the trusted directories: %s: %w", s.file, err)
		return nil, fault.WithHint(err, "to start over, with no directory trusted: %s", fault.ShellWords("rm", s.file))
	}
	return records, nil
}

func (s *Store) write(records []Record) error {
	data, err := format(records)
	if err != nil {
		return err
	}
	// An existing file keeps its permissions, and nobody else may add trust.
	if info, err := os.Stat(s.file); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := staging.OS.Chmod(s.file, info.Mode().Perm()&0o700); err != nil {
			return err
		}
	}
	return staging.WriteFile(s.file, data, 0o600)
}

// version is the format of the file. It grows when a dsh that knows only this
// one would lose or misread something.
const version = 1

type document struct {
	Version  int      `json:"version"`
	Projects []Record `json:"projects"`
}

// parse reads the file's text; the records are sorted by directory.
func parse(data []byte) ([]Record, error) {
	var head struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, located(data, err)
	}
	switch {
	case head.Version == nil:
		return nil, errors.New(`it has no "version"`)
	case *head.Version > version:
		return nil, fmt.Errorf("it is written in format %d by a newer dsh, and this one reads format %d", *head.Version, version)
	case *head.Version < version:
		return nil, fmt.Errorf("there is no format %d", *head.Version)
	}
	var doc document
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, located(data, err)
	}
	for _, r := range doc.Projects {
		if r.Dir == "" || r.Seal == "" {
			return nil, errors.New(`a project lacks its "dir" or its "seal"`)
		}
	}
	slices.SortFunc(doc.Projects, byDir)
	return doc.Projects, nil
}

func format(records []Record) ([]byte, error) {
	if records == nil {
		records = []Record{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(document{version, records})
	return b.Bytes(), err
}

// located says in which line the text is wrong, where the decoder knows it.
func located(data []byte, err error) error {
	var offset int64
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = e.Offset
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
	} else {
		return err
	}
	return fmt.Errorf("line %d: %w", bytes.Count(data[:offset], []byte("\n"))+1, err)
}

func byDir(a, b Record) int { return strings.Compare(a.Dir, b.Dir) }
