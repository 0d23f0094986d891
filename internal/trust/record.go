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

	"dsh/internal/fault"
	"dsh/internal/staging"
)

// record is a list of what the user gave their word for, kept in one file that
// nobody else may write.
type record[T any] struct {
	file  string
	list  func(*document) *[]T
	what  string           // the list in words
	none  string           // what holds without the file
	whole func(T) error    // refuses an element that lacks something
	order func(a, b T) int // of the elements
}

// update rewrites the file under its lock.
func (r record[T]) update(ctx context.Context, command string, edit func([]T) []T) (err error) {
	lock, err := staging.Acquire(ctx, r.file+".lock", command, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	list, err := r.read()
	if err != nil {
		return err
	}
	list = edit(list)
	slices.SortFunc(list, r.order)
	return r.write(list)
}

func (r record[T]) read() ([]T, error) {
	data, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.what, err)
	}
	list, err := r.parse(data)
	if err != nil {
		err = fault.Errorf(fault.Policy, "reading %s: %s: %w", r.what, r.file, err)
		return nil, fault.WithHint(err, "to start over, with %s: %s", r.none, fault.ShellWords("rm", r.file))
	}
	return list, nil
}

func (r record[T]) write(list []T) error {
	data, err := r.format(list)
	if err != nil {
		return err
	}
	// An existing file keeps its permissions, and nobody else may add to it.
	if info, err := os.Stat(r.file); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := staging.OS.Chmod(r.file, info.Mode().Perm()&0o700); err != nil {
			return err
		}
	}
	return staging.WriteFile(r.file, data, 0o600)
}

// version is the format of a record's file. It grows when a dsh that knows only
// this one would lose or misread something.
const version = 1

// document is what such a file holds, of which each has one list.
type document struct {
	Version   int        `json:"version"`
	Projects  []Record   `json:"projects,omitzero"`
	Approvals []Approval `json:"approvals,omitzero"`
}

// parse reads the file's text; the list is in order.
func (r record[T]) parse(data []byte) ([]T, error) {
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
	list := *r.list(&doc)
	for _, element := range list {
		if err := r.whole(element); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, r.order)
	return list, nil
}

func (r record[T]) format(list []T) ([]byte, error) {
	if list == nil {
		list = []T{}
	}
	doc := document{Version: version}
	*r.list(&doc) = list
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(doc)
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

// exposed says why others than the user may write a file, "" if they may not:
// who can write a directory can put another file in the place of what is in it.
func exposed(file string) string {
	for _, path := range []string{file, filepath.Dir(file)} {
		info, err := os.Stat(path)
		if err != nil {
			continue // where there is none nobody has written it
		}
		if by := othersMayWrite(info); by != "" {
			return path + " " + by
		}
	}
	return ""
}
