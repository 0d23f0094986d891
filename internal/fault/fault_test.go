package fault

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"runtime"
	"strings"
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
		"$(x)": "'$(x)'", "o'brien": `'o'\''brien'`, "~/x": "'~/x'", "日本": "'日本'", "a\nb": `$'a\012b'`,
		"esc\x1b[31m": `$'esc\033[31m'`, "o'b\\\t": `$'o\'b\\\011'`, "\u009b2J": `$'\302\2332J'`, "a\u202eb日": `$'a\342\200\256b日'`, "\xff1": `$'\3771'`,
		"�\x01": `$'\357\277\275\001'`,
	} {
		if got := ShellWord(s); got != want {
			t.Errorf("%q: got %s", s, got)
		}
	}
}

// FuzzShellWord lets a shell read what was written for it.
func FuzzShellWord(f *testing.F) {
	bash, err := exec.LookPath("bash")
	if err != nil || runtime.GOOS == "windows" {
		f.Skip("there is no shell to ask")
	}
	for _, s := range []string{"", "plain", "a b", "o'b", "\x1b[31m'\\n", "\u202e1\xff2", "�3\n", "$(x)`x`!"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, "\x00") {
			t.Skip("no argument holds it")
		}
		word := ShellWord(s)
		if strings.ContainsFunc(word, unseen) {
			t.Errorf("%q shows as %q", s, word)
		}
		got, err := exec.Command(bash, "-c", "printf %s "+word).Output()
		if err != nil || string(got) != s {
			t.Errorf("%q became %s, which is %q, %v", s, word, got, err)
		}
	})
}
