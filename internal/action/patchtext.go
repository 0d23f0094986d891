package action

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// PatchText is the user's patch file of a profile, word for word.
type PatchText struct {
	Text   string `json:"text"`
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
	// Revision names this very content. That of no file is NoRevision.
	Revision string `json:"revision"`
}

// NoRevision is the revision of a patch file that is not there.
const NoRevision = "none"

// MaxPatchText is how many bytes a text may have that is saved as a patch file.
const MaxPatchText = 1 << 20

func patchText(path string, text []byte) PatchText {
	p := PatchText{Text: string(text), Path: path, Exists: text != nil, Revision: NoRevision}
	if p.Exists {
		sum := sha256.Sum256(text)
		p.Revision = "sha256-" + hex.EncodeToString(sum[:])
	}
	return p
}

// ReadPatch reads the patch file of a profile. One that is not there is no
// error.
func ReadPatch(ctx context.Context, env Env, name profile.Name) (*PatchText, error) {
	p, _, err := reading(ctx, env, name, func(v staging.View) (*PatchText, error) {
		p, err := profile.ReadFrom(v.Path, env.Home, name)
		if err != nil {
			return nil, err
		}
		text, err := readFile(p.Where(p.PatchPath()))
		if err != nil {
			return nil, err
		}
		shown := patchText(p.PatchPath(), text)
		return &shown, nil
	})
	return p, err
}

// PatchCheck is what a profile would be with another text as its patch file.
type PatchCheck struct {
	Findings []PatchFinding `json:"findings"` // of the whole profile
	Blocks   bool           `json:"blocks"`   // saving the text would be refused
	// Changes are the rows that differ from those of now, nil where the text
	// cannot be read.
	Changes *PatchChanges `json:"changes"`
}

// PatchFinding is a finding of a profile with another patch file.
type PatchFinding struct {
	check.Finding
	// New says that the profile does not have it as it is now.
	New bool `json:"new"`
}

// PatchChanges is how rows differ.
type PatchChanges struct {
	Added   []DiffRow   `json:"added"`
	Removed []DiffRow   `json:"removed"`
	Changed []RowChange `json:"changed"`
}

// CheckPatch says what would be with text as the patch file of a profile. It
// changes nothing, and does not look at what rows name on the disk.
func CheckPatch(ctx context.Context, env Env, layers Layers, text string) (*PatchCheck, error) {
	type both struct{ before, after *Composed }
	composed, _, err := reading(ctx, env, layers.Name, func(v staging.View) (both, error) {
		p, err := profile.ReadFrom(v.Path, env.Home, layers.Name)
		if err != nil {
			return both{}, err
		}
		before, after, err := withPatch(env, p, layers, []byte(text))
		return both{before, after}, err
	})
	if err != nil {
		return nil, err
	}
	checked := &PatchCheck{Findings: newFindings(Findings(env, composed.before), Findings(env, composed.after))}
	checked.Blocks = slices.ContainsFunc(checked.Findings, func(f PatchFinding) bool { return f.New && forbids(f.Finding) })
	if !patchBroken(composed.after) {
		d := diffComposed("now", "then", composed.before, composed.after, false)
		checked.Changes = &PatchChanges{d.Added, d.Removed, d.Changed}
	}
	return checked, nil
}

// newFindings marks those of after that before does not have, as
// [addedProblems] tells them apart.
func newFindings(before, after []check.Finding) []PatchFinding {
	known := map[string]int{}
	for _, f := range before {
		known[f.Identity()]++
	}
	marked := make([]PatchFinding, len(after))
	for i, f := range after {
		id := f.Identity()
		marked[i] = PatchFinding{Finding: f, New: known[id] == 0}
		if known[id] > 0 {
			known[id]--
		}
	}
	return marked
}

// forbids says that a finding which is new keeps a text from being saved.
func forbids(f check.Finding) bool { return f.Blocks || f.Severity == check.Error }

// withPatch composes a profile as it is, and as if its patch file held text.
// Values of --set are left out: they are made against the rows that there are.
func withPatch(env Env, p *profile.Profile, layers Layers, text []byte) (before, after *Composed, err error) {
	layers.Sets = nil
	if before, err = composeProfile(env, p, layers, true); err != nil {
		return nil, nil, err
	}
	after, err = composeWith(env, p, layers, true, func(path string) ([]byte, error) {
		if path == p.PatchPath() {
			return text, nil
		}
		return profile.ReadFile(p.Where(path))
	})
	return before, after, err
}

func patchBroken(c *Composed) bool {
	return slices.ContainsFunc(c.Stack.Entries, func(e stack.Entry) bool { return e.Kind == compose.ProfileLayer && e.State == stack.Broken })
}

// SaveOptions say how a patch file is saved.
type SaveOptions struct {
	// Layers are what the profile is composed of, to see what the text does.
	Layers Layers
	// Revision is that of the text which was edited: where the file is another by
	// now, it stays as it is.
	Revision string
	// Force saves a text with errors.
	Force bool
}

// SavedPatch says what saving a patch file did.
type SavedPatch struct {
	Revision   string          `json:"revision"`
	Changed    bool            `json:"changed"`
	Generation int             `json:"generation"` // that is there now, 0 for none
	Findings   []check.Finding `json:"findings"`   // that are new
	Warnings   []string        `json:"-"`
}

// ConflictError is that a patch file is not what it was when somebody began to
// edit it. Nothing was changed.
type ConflictError struct {
	Now PatchText
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s was changed meanwhile; nothing was saved", e.Now.Path)
}

// Class is Other.
func (e *ConflictError) Class() fault.Class { return fault.Other }

// Hint is what to do about it.
func (e *ConflictError) Hint() string {
	return "look at what is there now, and put what you want to keep into it"
}

// PatchRefusedError is a text that would bring errors into a profile. Nothing was
// saved.
type PatchRefusedError struct {
	Path     string
	Findings []check.Finding // the errors that the file of now does not have
}

func (e *PatchRefusedError) Error() string {
	return fmt.Sprintf("%s was not saved: with this text the profile has %s more", e.Path, counted(len(e.Findings), "error"))
}

// Class is Composition.
func (e *PatchRefusedError) Class() fault.Class { return fault.Composition }

// Hint is the remedy of the first finding that has one.
func (e *PatchRefusedError) Hint() string {
	for _, f := range e.Findings {
		if f.Remedy != "" {
			return f.Remedy
		}
	}
	return ""
}

// SavePatch makes text the patch file of a profile, in a transaction as all
// edits, so that it can be rolled back. A text with errors that the file of now
// does not have is a [PatchRefusedError].
func SavePatch(ctx context.Context, env Env, opts SaveOptions, text string) (saved *SavedPatch, err error) {
	switch {
	case len(text) > MaxPatchText:
		return nil, fault.Errorf(fault.Composition, "a patch file has at most %d KiB, and this text has %d", MaxPatchText>>10, len(text)>>10)
	case !utf8.ValidString(text):
		return nil, fault.Errorf(fault.Composition, "the text is not UTF-8")
	}
	if _, err := env.opened(ctx, opts.Layers.Name); err != nil {
		return nil, err
	}
	tx, p, err := env.begin(ctx, opts.Layers.Name, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	was, err := readFile(p.Where(p.PatchPath()))
	if err != nil {
		return nil, err
	}
	if now := patchText(p.PatchPath(), was); now.Revision != opts.Revision {
		return nil, &ConflictError{now}
	}
	saved = &SavedPatch{Findings: []check.Finding{}}
	saved.Revision = patchText(p.PatchPath(), []byte(text)).Revision
	if saved.Revision != opts.Revision {
		if err := env.stagePatch(tx, p, opts, was, text, saved); err != nil {
			return nil, err
		}
		err := errors.Join(ctx.Err(), tx.Commit())
		if _, edited := errors.AsType[*staging.ChangedError](err); edited {
			if now, readErr := readFile(p.PatchPath()); readErr == nil {
				return nil, &ConflictError{patchText(p.PatchPath(), now)}
			}
		}
		if err != nil {
			return nil, diskFull(err)
		}
		saved.Changed = true
	}
	if newest, _ := env.Home.Place(opts.Layers.Name).History().Newest(); newest != nil {
		saved.Generation = newest.ID
	}
	saved.Warnings = append(saved.Warnings, tx.Warnings()...)
	return saved, nil
}

// stagePatch stages a new text of the patch file, and looks at what it does.
func (env Env) stagePatch(tx *staging.Tx, p *profile.Profile, opts SaveOptions, was []byte, text string, saved *SavedPatch) error {
	before, after, err := withPatch(env, p, opts.Layers, []byte(text))
	if err != nil {
		return err
	}
	var errs []check.Finding
	for _, f := range newFindings(Findings(env, before), Findings(env, after)) {
		if f.New {
			saved.Findings = append(saved.Findings, f.Finding)
		}
		if f.New && forbids(f.Finding) {
			errs = append(errs, f.Finding)
		}
	}
	if len(errs) > 0 && !opts.Force {
		return &PatchRefusedError{p.PatchPath(), errs}
	}
	return errors.Join(tx.Expect(profilePatch, was), tx.WriteFile(profilePatch, []byte(text), 0o644))
}
