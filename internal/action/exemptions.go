package action

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// Exemption is one bundle in one version, which one version of the harness
// loads though its peers say otherwise.
type Exemption struct {
	Package string `json:"package"`
	Version string `json:"version"`
	Harness string `json:"dshVersion"`
}

// String is what the exemption is about, in words.
func (e Exemption) String() string { return fmt.Sprintf("%s for DSH %s", e.key(), e.Harness) }

func (e Exemption) key() string { return e.Package + "@" + e.Version }

// ParseExemption reads "name@version" and a version of the harness, both exact.
func ParseExemption(pkg, harness string) (Exemption, error) {
	at := strings.LastIndexByte(pkg, '@')
	if at <= 0 {
		return Exemption{}, fault.Errorf(fault.Other, "%q names no exact version of a package, as in name@1.0.0", pkg)
	}
	e := Exemption{Package: pkg[:at], Version: pkg[at+1:], Harness: harness}
	if !install.ValidName(e.Package) {
		return Exemption{}, fault.Errorf(fault.Other, "%q is no package name", e.Package)
	}
	for _, version := range []string{e.Version, e.Harness} {
		if v, err := npmrange.ParseVersion(version); err != nil || v.String() != version {
			return Exemption{}, fault.Errorf(fault.Other, "%q is no exact version, as in 1.0.0", version)
		}
	}
	return e, nil
}

// Exemptions are the exemptions of a profile. It changes nothing; a profile
// that would be made from a template has none.
func Exemptions(ctx context.Context, env Env, name profile.Name) (stack.Exemptions, []string, error) {
	return reading(ctx, env, name, func(v staging.View) (stack.Exemptions, error) {
		p, err := profile.ReadFrom(v.Path, env.Home, name)
		if missing, ok := errors.AsType[*profile.MissingError](err); ok && !missing.Left {
			if _, err := profile.LookupTemplate(name.String()); err == nil {
				return stack.Exemptions{}, nil
			}
		}
		if err != nil {
			return nil, err
		}
		exemptions, _, err := stack.ReadExemptions(filepath.Dir(v.Path(filepath.Join(p.Dir, stack.ExemptionsFile))))
		return exemptions, repairable(err)
	})
}

// ExemptionChange is what became of one exemption.
type ExemptionChange struct {
	Profile string `json:"profile"`
	Exemption
	Changed  bool     `json:"changed"` // it was not so before
	Warnings []string `json:"-"`
}

// AllowVersion exempts a bundle from the peer check of one harness.
func AllowVersion(ctx context.Context, env Env, name profile.Name, e Exemption) (*ExemptionChange, error) {
	return changeExemptions(ctx, env, name, e, func(all stack.Exemptions) {
		if !all.Allows(e.Package, e.Version, e.Harness) {
			all[e.key()] = append(all[e.key()], e.Harness)
		}
	})
}

// RevokeVersion takes an exemption back.
func RevokeVersion(ctx context.Context, env Env, name profile.Name, e Exemption) (*ExemptionChange, error) {
	return changeExemptions(ctx, env, name, e, func(all stack.Exemptions) {
		left := slices.DeleteFunc(all[e.key()], func(harness string) bool { return harness == e.Harness })
		if all[e.key()] = left; len(left) == 0 {
			delete(all, e.key())
		}
	})
}

func changeExemptions(ctx context.Context, env Env, name profile.Name, e Exemption, edit func(stack.Exemptions)) (change *ExemptionChange, err error) {
	// What is wrong is said before anything is touched.
	if _, err := profile.Read(env.Home, name); err != nil {
		return nil, err
	}
	if _, _, err := stack.ReadExemptions(env.Home.ProfileDir(name)); err != nil {
		return nil, repairable(err)
	}
	tx, err := staging.Begin(ctx, env.Home.Place(name), env.options())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	all, before, err := stack.ReadExemptions(env.Home.ProfileDir(name))
	if err != nil {
		return nil, repairable(err)
	}
	old, err := exemptionsText(all)
	if err != nil {
		return nil, err
	}
	edit(all)
	text, err := exemptionsText(all)
	if err != nil {
		return nil, err
	}
	change = &ExemptionChange{Profile: name.String(), Exemption: e, Changed: !bytes.Equal(old, text)}
	if change.Changed {
		if err := errors.Join(tx.Expect(stack.ExemptionsFile, before), tx.WriteFile(stack.ExemptionsFile, text, 0o644), tx.Commit()); err != nil {
			return nil, err
		}
	}
	change.Warnings = tx.Warnings()
	return change, nil
}

func exemptionsText(all stack.Exemptions) ([]byte, error) {
	text, err := json.MarshalIndent(all, "", "  ")
	return append(text, '\n'), err
}

// repairable says what to do with a file that holds no exemptions.
func repairable(err error) error {
	if err == nil {
		return nil
	}
	return fault.WithHint(err, "mend or remove the file; until then nothing is exempted, and starts go on")
}
