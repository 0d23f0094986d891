package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestClassOf(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Class
		code int
	}{
		"plain":                {errors.New("x"), Other, 1},
		"classed":              {Errorf(Network, "x"), Network, 4},
		"wrapped":              {fmt.Errorf("doing: %w", Errorf(Package, "x")), Package, 3},
		"the outermost counts": {WithClass(Policy, Errorf(Package, "x")), Policy, 5},
		"hints change nothing": {WithHint(Errorf(Composition, "x"), "y"), Composition, 2},
		"permission":           {&fs.PathError{Err: syscall.EACCES}, Environment, 6},
		"full disk":            {fmt.Errorf("write: %w", syscall.ENOSPC), Environment, 6},
		"cancelled":            {fmt.Errorf("get: %w", context.Canceled), Interrupted, 130},
		"terminated":           {Errorf(Terminated, "x"), Terminated, 143},
		"missing program":      {Errorf(MissingProgram, "x"), MissingProgram, 127},
		"joined":               {errors.Join(errors.New("x"), Errorf(Policy, "y")), Policy, 5},
	} {
		if got := ClassOf(c.err); got != c.want || got.ExitCode() != c.code {
			t.Errorf("%s: class %v, exit code %d", name, got, got.ExitCode())
		}
	}
	if WithClass(Policy, nil) != nil || WithHint(nil, "x") != nil {
		t.Error("nil does not stay nil")
	}
}

func TestHint(t *testing.T) {
	err := WithHint(fmt.Errorf("outer: %w", WithHint(errors.New("x"), "inner")), "do %s", "this")
	if got := Hint(err); got != "do this" {
		t.Errorf("got %q", got)
	}
	if got := Hint(errors.New("x")); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{
		"plain-1.0_x": "plain-1.0_x", "@acme/x@^1": "'@acme/x@^1'", "@acme/x": "@acme/x", "": "''", "a b": "'a b'",
		"$(x)": "'$(x)'", "o'brien": `'o'\''brien'`, "~/x": "'~/x'", "日本": "'日本'", "a\nb": "'a\nb'",
	} {
		if got := ShellWord(s); got != want {
			t.Errorf("%q: got %s", s, got)
		}
	}
}
