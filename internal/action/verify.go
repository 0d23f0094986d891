package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/install/registry"
	"dsh/internal/installation"
	"dsh/internal/profile"
	"dsh/internal/stack"
)

// RefusedError is a change after which a profile would not start, though it
// did, or might have, before. Nothing was changed.
type RefusedError struct {
	Profile  string
	Findings []check.Finding // what the change would add
	Forced   string          // the command that goes on all the same
}

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "profile %s would not start after this; nothing was changed", e.Profile)
	for _, f := range e.Findings {
		b.WriteString("\n  ")
		if place := f.Place(); place != "" {
			b.WriteString(place + ": ")
		}
		b.WriteString(f.Message)
	}
	return b.String()
}

// Class is Composition.
func (e *RefusedError) Class() fault.Class { return fault.Composition }

// Hint is what helps, and the way to do it all the same.
func (e *RefusedError) Hint() string {
	forced := "to go on all the same: " + e.Forced
	for _, f := range e.Findings {
		switch {
		case f.Code == check.DuplicateID:
		case f.Remedy != "":
			return f.Remedy + "; " + forced
		default:
			return forced
		}
	}
	return "take one of the two out first, or use a profile of its own; " + forced
}

// named calls packages by where they come from and not by where they would
// stand, for there what is told of is not to be seen, or another version is.
func (e *RefusedError) named(result *install.Result) {
	for _, change := range result.Changes {
		s, ok := result.Staged(change.Name)
		if !ok || s.Files == s.Dir {
			continue
		}
		as := change.Name + "@" + change.Version
		if filepath.IsAbs(change.From) {
			as = change.From
		}
		sep := string(filepath.Separator)
		for i := range e.Findings {
			f := &e.Findings[i]
			f.File = strings.Replace(f.File, s.Dir+sep, as+sep, 1)
			f.Message = strings.ReplaceAll(f.Message, s.Dir+sep, as+sep)
		}
	}
}

// verify composes a profile as it is and as a change would leave it. What the
// change adds and stops the profile from composing or mounting is an error,
// unless force goes on; what else it adds are warnings. Only what a start of
// the profile anywhere reads is looked at: no project and no overlays. What
// plugins find on the disk never refuses a change, and is looked at on the real
// disk when the change is made, see [addedOnDisk].
//
// was and will say where packages are before and after; nil is where they are
// now.
func verify(env Env, before, after *profile.Profile, was, will findPackage, force bool) (warnings []string, err error) {
	old, err := problems(env, before, was)
	if err != nil {
		return nil, err
	}
	all, err := problems(env, after, will)
	if err != nil {
		return nil, err
	}
	blocking, other := addedProblems(old, all)
	if len(blocking) > 0 && !force {
		return nil, &RefusedError{Profile: after.Name.String(), Findings: blocking, Forced: env.forced()}
	}
	for _, f := range slices.Concat(blocking, other) {
		if f.Severity > check.Info {
			warnings = append(warnings, warningOf(f))
		}
	}
	return warnings, nil
}

// onDisk is what rows of a profile name that is not on the disk and, unless only
// rows count, which packages of the harness are on it. A profile that cannot be
// composed has none of either.
func onDisk(ctx context.Context, env Env, p *profile.Profile, rowsOnly bool) []check.Finding {
	c, err := withoutProject(env, p, nil)
	if err != nil {
		return nil
	}
	return sortByStack(c.Stack, inspected(ctx, env, c, rowsOnly))
}

// addedOnDisk is warnings about what after has and before has not.
func addedOnDisk(before, after []check.Finding) (warnings []string) {
	_, added := addedProblems(before, after)
	for _, f := range added {
		if f.Severity > check.Info {
			warnings = append(warnings, warningOf(f))
		}
	}
	return warnings
}

type findPackage func(name string) (installation.Package, bool, error)

// problems is what is wrong with the layers of a profile.
func problems(env Env, p *profile.Profile, find findPackage) ([]check.Finding, error) {
	c, err := withoutProject(env, p, find)
	if err != nil {
		return nil, err
	}
	return Findings(env, c), nil
}

// withoutProject composes what every start of a profile reads, wherever it is.
func withoutProject(env Env, p *profile.Profile, find findPackage) (*Composed, error) {
	c := &Composed{Profile: p, Rules: pathRules(env.Installation)}
	return c, c.open(stack.Options{
		Home: env.Home, Profile: p, Installation: env.Installation,
		UserHome: env.userHome(), Find: find, Lenient: true,
	})
}

// addedProblems is the findings of after that before does not have, in two
// parts: those that stop composing or mounting, and the rest. A mistake that is
// made once more counts as added.
func addedProblems(before, after []check.Finding) (blocking, other []check.Finding) {
	known := map[string]int{}
	for _, f := range before {
		known[f.Identity()]++
	}
	for _, f := range after {
		id := f.Identity()
		if known[id] > 0 {
			known[id]--
			continue
		}
		if f.Blocks {
			blocking = append(blocking, f)
		} else {
			other = append(other, f)
		}
	}
	return blocking, other
}

// warningOf is a finding in one line.
func warningOf(f check.Finding) string {
	text := f.Message
	if place := f.Place(); place != "" {
		text = place + ": " + text
	}
	if f.Remedy != "" {
		text += "; " + f.Remedy
	}
	return text
}

// forced is the command of this run with --force, where it can be shown and
// taken as it is.
func (e Env) forced() string {
	for _, arg := range e.Args {
		if arg == "--" || strings.Contains(arg, "://") && registry.ShownAddress(arg) != arg {
			return "add --force to the command"
		}
	}
	return e.options().Command + " --force"
}

// lockedPackages finds the packages of a profile as they are, and those that
// have gone from node_modules as its lockfile says they were: who lays them out
// again adds nothing.
func lockedPackages(dir string, result *install.Result) findPackage {
	staged := stagedPackages(dir, result)
	return func(name string) (installation.Package, bool, error) {
		pkg, ok, err := installation.Find(dir, name)
		if err == nil && !ok && result.Kept(name) {
			return staged(name)
		}
		return pkg, ok, err
	}
}

// stagedPackages finds the packages of a profile as a job will leave them.
// What is said of a package names the place where it will stand.
func stagedPackages(dir string, result *install.Result) findPackage {
	return func(name string) (installation.Package, bool, error) {
		s, ok := result.Staged(name)
		if !ok {
			return installation.Find(filepath.Dir(dir), name)
		}
		pkg, err := installation.OpenPackage(s.Files)
		if errors.Is(err, fs.ErrNotExist) {
			return installation.Find(filepath.Dir(dir), name)
		}
		if err == nil && s.Dir != s.Files {
			pkg.Dir = s.Dir
		}
		return pkg, err == nil, err
	}
}
