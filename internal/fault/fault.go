// Package fault is the classes of failure that dsh tells apart, each with its
// exit code, and the hints that go with them.
//
// It is not where errors get their words: packages say what they were doing,
// and fault only carries the class and the one command that would help.
package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Class says whose problem a failure is. Its exit code is a promise to scripts.
type Class uint8

// The classes, in the order of docs/reference.md.
const (
	Other          Class = iota // usage, and whatever has no class: exit 1
	Composition                 // layers do not compose: exit 2
	Package                     // not found, no version, mis-published, wrong content: exit 3
	Network                     // a server could not be reached or misbehaved: exit 4
	Policy                      // refused for safety: a path that escapes, a link in an archive: exit 5
	Environment                 // permissions, disk full, a held lock: exit 6
	MissingProgram              // a program that dsh needs is not there: exit 127
	Interrupted                 // Ctrl-C: exit 130
	Terminated                  // SIGTERM: exit 143
)

// ExitCode is the process exit code of the class.
func (c Class) ExitCode() int {
	switch c {
	case Composition:
		return 2
	case Package:
		return 3
	case Network:
		return 4
	case Policy:
		return 5
	case Environment:
		return 6
	case MissingProgram:
		return 127
	case Interrupted:
		return 130
	case Terminated:
		return 143
	default:
		return 1
	}
}

// String is the class in one word, as --json reports it.
func (c Class) String() string {
	switch c {
	case Composition:
		return "composition"
	case Package:
		return "package"
	case Network:
		return "network"
	case Policy:
		return "policy"
	case Environment:
		return "environment"
	case MissingProgram:
		return "missing-program"
	case Interrupted:
		return "interrupted"
	case Terminated:
		return "terminated"
	default:
		return "error"
	}
}

// Classed is an error that knows its class. Typed errors implement it.
type Classed interface {
	error
	Class() Class
}

// Hinted is an error that knows the command which would help. The hint is a
// command line that can be pasted, or a sentence where no command exists.
type Hinted interface {
	error
	Hint() string
}

type classError struct {
	error
	class Class
}

func (e classError) Class() Class  { return e.class }
func (e classError) Unwrap() error { return e.error }

type hintError struct {
	error
	hint string
}

func (e hintError) Hint() string  { return e.hint }
func (e hintError) Unwrap() error { return e.error }

// Errorf is fmt.Errorf with a class.
func Errorf(c Class, format string, args ...any) error {
	return classError{fmt.Errorf(format, args...), c}
}

// WithClass gives err a class; nil stays nil.
func WithClass(c Class, err error) error {
	if err == nil {
		return nil
	}
	return classError{err, c}
}

// WithHint gives err a hint; nil stays nil.
func WithHint(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return hintError{err, fmt.Sprintf(format, args...)}
}

// Hint is the outermost hint of err, or "".
func Hint(err error) string {
	if h, ok := errors.AsType[Hinted](err); ok {
		return h.Hint()
	}
	return ""
}

// ClassOf is the outermost class of err. An error that nothing classed is an
// Environment failure when the operating system refused something that only
// the user can mend, Interrupted when a context was cancelled, else Other.
func ClassOf(err error) Class {
	if c, ok := errors.AsType[Classed](err); ok {
		return c.Class()
	}
	switch {
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, fs.ErrPermission):
		return Environment
	}
	if slices.ContainsFunc(environmentErrors, func(e error) bool { return errors.Is(err, e) }) {
		return Environment
	}
	return Other
}
