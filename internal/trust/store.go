package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
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

// whole refuses a record of the file that means nothing.
func (r Record) whole() error {
	if r.Dir == "" || r.Seal == "" {
		return errors.New(`a project lacks its "dir" or its "seal"`)
	}
	return nil
}

// Store is the record of trusted directories, kept in one file.
type Store struct{ record record[Record] }

// Open is the store in a file, which need not exist: then nothing is trusted.
// Nothing is read yet.
func Open(file string) *Store {
	return &Store{record[Record]{
		file: file, what: "the trusted directories", none: "no directory trusted",
		list:  func(d *document) *[]Record { return &d.Projects },
		whole: Record.whole,
		order: byDir,
	}}
}

// Recorded is what was recorded when a project was trusted; ok is false if it
// never was. It tells, without the seal of what a stranger's patch names being
// made, that there is nothing to compare a seal with.
func (s *Store) Recorded(p Project) (r Record, ok bool, err error) {
	records, err := s.record.read()
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
	records, err := s.record.read()
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
		err = s.record.update(ctx, "dsh trust", func(records []Record) []Record {
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
	records, err := s.record.read()
	if err != nil || !slices.ContainsFunc(records, meant) {
		return false, err
	}
	revoked := false
	err = s.record.update(ctx, "dsh trust --revoke", func(records []Record) []Record {
		left := slices.DeleteFunc(slices.Clone(records), meant)
		revoked = len(left) < len(records)
		return left
	})
	return revoked, err
}

// List is every record, sorted by directory.
func (s *Store) List() ([]Record, error) { return s.record.read() }

func byDir(a, b Record) int { return strings.Compare(a.Dir, b.Dir) }
