// Package action is one function for each thing that dsh does: it joins the
// packages that know profiles, layers, packages and transactions, and returns
// data.
//
// It prints nothing and parses no command line.
package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// Env is where a command runs.
type Env struct {
	Home         profile.Home
	Dir          string // the working directory
	Getenv       func(string) string
	Installation installation.Installation
	// Option is what --installation or $DSH_INSTALLATION says, which counts more
	// than what the user chose; "" is nothing.
	Option  string
	Args    []string             // what the user ran, for others who wait for our lock
	Doing   string               // in place of Args, what is done that is no command
	Waiting func(staging.Holder) // somebody else has the profile locked
	Wait    time.Duration        // how long a change waits for that lock; 0 waits for ever
	// Running says that the profile runs: reading it makes and writes nothing, and
	// one that is not there any more stays so.
	Running bool
}

// recovered finishes or takes back what a dead process left of a change, so
// that a reader sees the old state or the new one. Where that is not possible
// the reader sees what there is, and is told.
func recovered(ctx context.Context, env Env, name profile.Name) (warnings []string) {
	// A change that is being made takes some renames; a reader does not wait
	// longer than that.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := staging.Recover(ctx, env.Home.Place(name))
	if _, held := errors.AsType[*staging.HeldError](err); err != nil && !held {
		return []string{fmt.Sprintf("an earlier change of profile %s is unfinished: %v", name, err)}
	}
	return nil
}

func (e Env) options() staging.Options {
	if e.Doing != "" {
		return staging.Options{Command: e.Doing, Waiting: e.Waiting, Wait: e.Wait}
	}
	words := []string{"dsh"}
	for i, arg := range withoutValues(e.Args) {
		switch {
		case strings.Contains(arg, "://"):
			arg = e.shownArgument(arg)
		case i > 0 && e.Args[i-1] == "--registry" && strings.Contains(arg, "@"), strings.HasPrefix(arg, "--registry=") && strings.Contains(arg, "@"):
			arg = "…" // an address without its beginning
		}
		words = append(words, arg)
	}
	return staging.Options{Command: fault.ShellWords(words...), Waiting: e.Waiting, Wait: e.Wait}
}

// shownArgument is an argument with an address in it, without what may be secret
// there. What stands behind # names a commit of a repository; in other addresses
// nobody needs it.
func (e Env) shownArgument(arg string) string {
	shown := install.ShownSpec(arg)
	if spec, err := install.ParseSpec(arg, e.Dir); err != nil || spec.Kind == install.URL {
		shown, _, _ = strings.Cut(shown, "#")
	}
	return shown
}

// withoutValues is a command line without the values of `config set` and --set,
// which may be secret: it is kept with the lock, and shown to those who wait.
func withoutValues(args []string) []string {
	var shown []string
	assign, place := false, 0 // the next word is an assignment; words of `config set` so far
	options := true           // words that begin with -- may still be options of it
	for i, arg := range args {
		target, _, _ := strings.Cut(arg, "=")
		switch rest, isSet := strings.CutPrefix(arg, "--set="); {
		case place > 0 && options && arg == "--":
			options = false
			shown = append(shown, arg)
		case place == 2 && !options:
			shown = append(shown, "…")
		case isSet:
			target, _, _ = strings.Cut(rest, "=")
			shown = append(shown, "--set="+target+"=…")
		case assign:
			shown = append(shown, target+"=…")
		case i > 0 && args[i-1] == "--profile":
			shown = append(shown, arg)
		case place == 2 && !strings.HasPrefix(arg, "--"):
			shown = append(shown, "…")
		default:
			shown = append(shown, arg)
			switch {
			case arg == "set" && slices.Contains(args[:i], "config"):
				place = 1
			case place == 1 && !(options && strings.HasPrefix(arg, "-")):
				place = 2
			}
		}
		assign = arg == "--set"
	}
	return shown
}

// Replaced says what making a profile anew did.
type Replaced struct {
	Kept     string // where the previous profile went, when it had content
	Warnings []string
}

// inUse reports whether a profile has dependencies, or a patch that is not
// empty. What cannot be read counts.
func inUse(dir string) bool {
	file := filepath.Join(dir, "package.json")
	text, err := profile.ReadFile(file)
	if err == nil {
		m, err := profile.ParseManifest(file, text)
		if err != nil {
			return true
		}
		for _, kind := range []profile.DependencyKind{profile.Dependencies, profile.DevDependencies, profile.OptionalDependencies} {
			if len(m.Dependencies(kind)) > 0 {
				return true
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	file = filepath.Join(dir, "cordis.patch.yml")
	text, err = profile.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if err != nil {
		return true
	}
	patches, err := compose.ParsePatches(compose.Source{File: file, Dir: dir}, text)
	return err != nil || len(patches) > 0
}

// inUseError refuses to replace the default profile because nobody named it.
type inUseError struct{ name, template string }

func (e *inUseError) Error() string {
	return fmt.Sprintf("profile %q has dependencies or a patch of yours, and was not named; nothing was changed", e.name)
}

func (e *inUseError) Hint() string {
	return fmt.Sprintf("to replace it write its name out: dsh --profile %s --from-default-profile %s", fault.ShellWord(e.name), fault.ShellWord(e.template))
}

func (e *inUseError) Class() fault.Class { return fault.Other }
