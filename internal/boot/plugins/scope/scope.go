// Package scope is the row that says which files tools may touch: everything
// in its allowed places, and nothing in its denied ones.
//
// It confines no process. Tools ask before they open a file, and what they ask
// about is the file that a path leads to now: who can make links in an allowed
// place at that moment can lead a tool elsewhere, so tools open files without
// following links (os.Root) where that matters.
package scope

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dsh/internal/boot/host"
	"dsh/internal/fault"
)

// Service is the name under which the *Scope is provided.
const Service = "scope"

// Name is the plugin's.
const Name = "dsh:scope"

// Access is what is done with a file.
type Access string

// The kinds of access.
const (
	Read  Access = "read"
	Write Access = "write"
)

// Config is the configuration of the row. Targets are absolute paths.
type Config struct {
	Allow []Allowed `json:"allow"`
	Deny  []Denied  `json:"deny"`
}

// Allowed is a file or folder that may be touched, with everything in it.
type Allowed struct {
	Target string `json:"target"`
	Access Access `json:"access"` // "" is Read; Write includes Read
}

// Denied is a file or folder that may not be touched, with everything in it.
type Denied struct {
	Target string `json:"target"`
}

// Plugin provides the Scope.
var Plugin = host.Plugin{Provides: []string{Service}, Start: func(_ context.Context, r *host.Row) error {
	var config Config
	if err := r.Decode(&config); err != nil {
		return err
	}
	s, err := New(config)
	if err != nil {
		return err
	}
	r.Provide(Service, s)
	return nil
}}

// Scope answers whether a file may be touched. It never changes and may be
// used from several goroutines.
type Scope struct{ config Config }

// New checks a configuration.
func New(config Config) (*Scope, error) {
	check := func(key string, i int, target string) error {
		if target == "" {
			return fault.Errorf(fault.Composition, "%s[%d]: target is missing", key, i)
		}
		if !filepath.IsAbs(target) {
			return fault.Errorf(fault.Composition, "%s[%d]: target %q is not absolute", key, i, target)
		}
		return nil
	}
	for i, a := range config.Allow {
		if err := check("allow", i, a.Target); err != nil {
			return nil, err
		}
		if a.Access != "" && a.Access != Read && a.Access != Write {
			return nil, fault.Errorf(fault.Composition, "allow[%d]: access %q is neither read nor write", i, a.Access)
		}
	}
	for i, d := range config.Deny {
		if err := check("deny", i, d.Target); err != nil {
			return nil, err
		}
	}
	return &Scope{config}, nil
}

// DeniedError is a file that may not be touched.
type DeniedError struct {
	Path   string // as it was asked for
	Access Access
	By     string // the denied place that it is in, "" where it is in no allowed one
}

func (e *DeniedError) Error() string {
	if e.By != "" {
		return fmt.Sprintf("%s %s: the scope denies %s", e.Access, e.Path, e.By)
	}
	return fmt.Sprintf("%s %s: the scope does not allow it", e.Access, e.Path)
}

// Class is fault.Policy.
func (e *DeniedError) Class() fault.Class { return fault.Policy }

// Check says whether the file that path leads to may be touched: nil, a
// *DeniedError, or why it cannot be told. path is absolute; what it names need
// not be there. A denied place wins over an allowed one, and denies what leads
// into it, what leads out of it, and hard links of a denied file.
func (s *Scope) Check(path string, access Access) error {
	if !filepath.IsAbs(path) {
		return fault.Errorf(fault.Other, "%s %s: the path is not absolute", access, path)
	}
	// Behind a link ".." is another folder for the system than for a text, so
	// that nobody could say which file is meant.
	if slices.Contains(strings.FieldsFunc(path, func(c rune) bool { return c < 0x80 && os.IsPathSeparator(uint8(c)) }), "..") {
		return fault.Errorf(fault.Policy, "%s %s: the path has .. in it", access, path)
	}
	written := filepath.Clean(path)
	real, err := resolve(written)
	if err != nil {
		return fault.Errorf(fault.Policy, "%s %s: %w", access, path, err)
	}
	for _, d := range s.config.Deny {
		target := filepath.Clean(d.Target)
		end, err := resolve(target)
		if err != nil {
			return fault.Errorf(fault.Policy, "%s %s: find the denied %s: %w", access, path, d.Target, err)
		}
		if within(fold(written), fold(target)) || within(fold(real), fold(end)) || sameFile(real, end) {
			return &DeniedError{path, access, d.Target}
		}
	}
	for _, a := range s.config.Allow {
		if access != Read && a.Access != Write {
			continue
		}
		// A place that cannot be found allows nothing.
		if end, err := resolve(filepath.Clean(a.Target)); err == nil && within(real, end) {
			return nil
		}
	}
	return &DeniedError{path, access, ""}
}

// sameFile says whether path, or a folder that it is in, is the file or folder
// target by another name.
func sameFile(path, target string) bool {
	wanted, err := os.Stat(target)
	if err != nil {
		return false
	}
	for {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, wanted) {
			return true
		}
		parent := filepath.Dir(path)
		if parent == path {
			return false
		}
		path = parent
	}
}

// maxLinks is how many links a path may lead through.
const maxLinks = 64

// resolve is path without links, as far as it exists. A link to what does not
// exist is followed as well, for a file written there comes into being where
// the link points.
func resolve(path string) (string, error) {
	for range maxLinks {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		// The longest part that exists, and the first that does not.
		rest := ""
		parent := path
		for errors.Is(err, fs.ErrNotExist) {
			next := filepath.Dir(parent)
			if next == parent {
				return path, nil
			}
			rest = filepath.Join(filepath.Base(parent), rest)
			parent = next
			real, err = filepath.EvalSymlinks(parent)
		}
		if err != nil {
			return "", err
		}
		first, behind, _ := strings.Cut(rest, string(filepath.Separator))
		link, err := os.Readlink(filepath.Join(real, first))
		if err != nil {
			return filepath.Join(real, rest), nil
		}
		if strings.Contains(link, "..") {
			return "", fmt.Errorf("the link %s leads to nothing", filepath.Join(real, first))
		}
		if !filepath.IsAbs(link) {
			link = filepath.Join(real, link)
		}
		path = filepath.Join(link, behind)
	}
	return "", errors.New("too many links")
}

// within says whether path is dir or something in it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && (rest == "" || os.IsPathSeparator(rest[0]) || os.IsPathSeparator(dir[len(dir)-1]))
}

// fold is a path in which case does not count where it may not count for the
// system.
func fold(path string) string {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		return strings.ToLower(path)
	}
	return path
}
