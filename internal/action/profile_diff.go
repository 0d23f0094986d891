package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// StateSide is one side of a comparison of profiles: a profile as it is, or one
// of its generations.
type StateSide struct {
	Name       profile.Name
	Generation int // 0 is the profile as it is
}

// ParseStateSide reads NAME or NAME@ID. A profile whose own name is the whole
// text goes first.
func ParseStateSide(env Env, text string) (StateSide, error) {
	whole, err := profile.ParseName(text)
	at := strings.LastIndexByte(text, '@')
	if at < 0 || err == nil && exists(env.Home.ProfileDir(whole)) {
		return StateSide{Name: whole}, err
	}
	name, err := profile.ParseName(text[:at])
	if err != nil {
		return StateSide{}, err
	}
	id, err := strconv.Atoi(text[at+1:])
	if err != nil || id < 1 {
		return StateSide{}, fault.WithHint(fault.Errorf(fault.Other, "%q is neither a profile nor a generation of one", text),
			"dsh profile history %s lists the generations; one is named as %s@ID", fault.ShellWord(name.String()), name)
	}
	return StateSide{name, id}, nil
}

// String is the side as people call it.
func (s StateSide) String() string {
	if s.Generation == 0 {
		return s.Name.String()
	}
	return fmt.Sprintf("%s@%d", s.Name, s.Generation)
}

// ProfileDiff is how the profile B differs from A.
type ProfileDiff struct {
	A string `json:"a"`
	B string `json:"b"`
	// Differ says that anything does.
	Differ bool         `json:"differ"`
	State  *StateChange `json:"state"`
	// Patch is a unified diff of the patch files, "" where they are equal or
	// may hold what is secret.
	Patch string `json:"patch"`
	// Config is how what they compose to differs; nil where one of them does not
	// compose.
	Config   *ConfigDiff `json:"config"`
	Warnings []string    `json:"-"`
}

// state is a side with what is in it.
type state struct {
	StateSide
	*staging.Generation
}

// DiffProfiles compares two profiles, or generations of them: what they depend
// on, their lockfiles, their files, and what they compose to without a project.
func DiffProfiles(ctx context.Context, env Env, a, b StateSide, showSecrets bool) (*ProfileDiff, error) {
	d := &ProfileDiff{}
	left, err := a.load(ctx, env, d)
	if err != nil {
		return nil, err
	}
	right, err := b.load(ctx, env, d)
	if err != nil {
		return nil, err
	}
	return d, d.compare(env, left, right, showSecrets)
}

// DiffLastChange compares a profile as it is with what it was before its last
// change, which may be an edit by hand.
func DiffLastChange(ctx context.Context, env Env, name profile.Name, showSecrets bool) (*ProfileDiff, error) {
	d := &ProfileDiff{}
	p, err := d.past(ctx, env, name)
	if err != nil {
		return nil, err
	}
	before, err := p.back(1)
	if err != nil {
		return nil, err
	}
	if p.now == nil {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "profile %s is removed", name), "%s brings it back", p.command("undelete"))
	}
	return d, d.compare(env, state{StateSide{name, before.ID}, before}, state{StateSide{Name: name}, p.now}, showSecrets)
}

// past is a profile as it is and its history.
func (d *ProfileDiff) past(ctx context.Context, env Env, name profile.Name) (*past, error) {
	p, err := profileSubject(env, name).settled(ctx)
	if _, missing := errors.AsType[*profile.MissingError](err); missing {
		return nil, cmp.Or(env.there(name), err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range p.warnings {
		if !slices.Contains(d.Warnings, w) {
			d.Warnings = append(d.Warnings, w)
		}
	}
	return p, nil
}

// load reads the files of a side.
func (s StateSide) load(ctx context.Context, env Env, d *ProfileDiff) (state, error) {
	p, err := d.past(ctx, env, s.Name)
	if err != nil {
		return state{}, err
	}
	if s.Generation != 0 {
		g, err := p.byID(s.Generation)
		return state{s, g}, err
	}
	if p.now == nil {
		return state{}, fault.WithHint(fault.Errorf(fault.Other, "profile %s is removed", s.Name), "%s brings it back", p.command("undelete"))
	}
	return state{s, p.now}, nil
}

// compare fills the report.
func (d *ProfileDiff) compare(env Env, a, b state, showSecrets bool) error {
	d.A, d.B, d.State = a.String(), b.String(), compareStates(a.Generation, b.called(a.Name))
	d.patch(a, b, showSecrets)
	left, errA := a.composed(env)
	right, errB := b.composed(env)
	for _, side := range []struct {
		state
		err error
	}{{a, errA}, {b, errB}} {
		if side.err != nil {
			d.Warnings = append(d.Warnings, fmt.Sprintf("%s does not compose: %v", side.StateSide, side.err))
		}
	}
	if errA == nil && errB == nil {
		d.Config = diffComposed(d.A, d.B, left, right, showSecrets)
		d.Warnings = append(d.Warnings, d.Config.Warnings...)
	}
	d.Differ = !d.State.Empty() || d.Config != nil && d.Config.Differ
	return nil
}

// called is the files of the side with the package name that they would have if
// the profile was called name, for that is no difference of two profiles.
func (s state) called(name profile.Name) *staging.Generation {
	renamed := *s.Generation
	renamed.Files = slices.Clone(renamed.Files)
	for i, f := range renamed.Files {
		if f.Path != "package.json" {
			continue
		}
		if m, err := profile.ParseManifest(f.Path, f.Data); err == nil && m.Rename(s.Name, name) {
			renamed.Files[i].Data = m.Bytes()
		}
	}
	return &renamed
}

// composed is what the side composes to.
func (s state) composed(env Env) (*Composed, error) {
	if s.StateSide.Generation != 0 {
		return composeGeneration(env, s.Name, s.Generation)
	}
	p, err := profile.Read(env.Home, s.Name)
	if err != nil {
		return nil, err
	}
	return withoutProject(env, p, nil)
}

// profilePatch is the user's layer of a profile.
const profilePatch = "cordis.patch.yml"

// patch compares the texts of the patch files.
func (d *ProfileDiff) patch(a, b state, showSecrets bool) {
	was, hadIt := a.File(profilePatch)
	is, hasIt := b.File(profilePatch)
	if string(was) == string(is) && hadIt == hasIt {
		return
	}
	if !showSecrets {
		for _, side := range []struct {
			state
			text []byte
		}{{a, was}, {b, is}} {
			if err := showable(side.text); err != nil {
				d.Warnings = append(d.Warnings, fmt.Sprintf("the texts of the patch files are not shown: %v of %s; --show-secrets shows them", err, side.StateSide))
				return
			}
		}
	}
	d.Patch = string(diff.Diff(d.A+"/"+profilePatch, was, d.B+"/"+profilePatch, is))
}

// showable says why the text of a patch file may hold what is secret.
func showable(text []byte) error {
	patches, err := compose.ParsePatches(compose.Source{File: profilePatch, Dir: "/", Kind: compose.ProfileLayer}, text)
	if shape, ok := errors.AsType[*compose.ShapeError](err); ok && shape.Fault == compose.NotAList && shape.Line == 0 {
		return nil // it holds nothing
	}
	if err != nil {
		return errors.New("nobody can tell what is secret in that")
	}
	for _, p := range patches {
		if !compose.Equal(compose.Redact(p.Map), p.Map) {
			return errors.New("there is a secret in that")
		}
	}
	return nil
}
