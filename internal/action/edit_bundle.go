package action

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// SwitchOptions say what is switched on or off, and how.
type SwitchOptions struct {
	EditOptions
	On bool
	// Bundle takes the name for a bundle's where a row has it as its id too.
	Bundle bool
	// Force enables a bundle though the profile does not compose with it.
	Force bool
}

// Switch switches a row on or off in a patch file, or takes the whole layer of a
// bundle out of the profile's list, with its place remembered, and puts it back.
// A name means the row of this id if there is one.
func Switch(ctx context.Context, env Env, opts SwitchOptions, name string) (*Edit, error) {
	bundle, err := isBundle(env, opts, name)
	if err != nil {
		return nil, err
	}
	if bundle {
		return switchBundle(ctx, env, opts, name)
	}
	if opts.Force {
		return nil, fault.Errorf(fault.Other, "--force goes with bundles: a row is never refused")
	}
	if opts.On {
		return runEdit(ctx, env, opts.EditOptions, func(e *edit, text []byte) ([]byte, error) { return enableRow(e, text, name) })
	}
	return runEdit(ctx, env, opts.EditOptions, func(e *edit, text []byte) ([]byte, error) { return disableRow(e, text, name) })
}

// isBundle says whether a name means a bundle of the profile.
func isBundle(env Env, opts SwitchOptions, name string) (bool, error) {
	p, err := readOrNew(env.Home, opts.Name)
	if err != nil {
		return false, err
	}
	names := bundleNames(p.Manifest)
	listed := slices.Contains(names, name)
	if opts.Bundle {
		if opts.Layer != compose.ProfileLayer {
			return false, fault.Errorf(fault.Other, "--%s goes with rows: the bundles are those of the profile", opts.Layer)
		}
		return true, bundleOf(p, name)
	}
	if opts.Layer != compose.ProfileLayer {
		return false, nil
	}
	c, err := composeProfile(env, p, Layers{Name: opts.Name}, true)
	if err != nil {
		return false, err
	}
	isRow := c.Tree.FindText(name) != nil
	if meant := compose.Closest(name, names); meant != "" && !listed && !isRow && compose.Closest(name, c.Tree.IDs()) == "" {
		return false, fault.WithHint(fault.Errorf(fault.Composition, "there is no row and no bundle %q", name), "did you mean %s?", meant)
	}
	return listed && !isRow, nil
}

// bundleOf says that a profile has no bundle of the name, if so.
func bundleOf(p *profile.Profile, name string) error {
	names := bundleNames(p.Manifest)
	if slices.Contains(names, name) {
		return nil
	}
	err := fault.Errorf(fault.Composition, "profile %s has no bundle %s", p.Name, name)
	if meant := compose.Closest(name, names); meant != "" {
		return fault.WithHint(err, "did you mean %s?", meant)
	}
	return fault.WithHint(err, "dsh config layers --profile %s lists the bundles", fault.ShellWord(p.Name.String()))
}

func bundleNames(m *profile.Manifest) []string {
	var names []string
	for _, b := range m.BundlePlaces() {
		names = append(names, b.Name)
	}
	return names
}

func switchBundle(ctx context.Context, env Env, opts SwitchOptions, name string) (*Edit, error) {
	e := &edit{env: env, opts: opts.EditOptions, report: &Edit{
		Profile: opts.Name.String(), Layer: compose.ProfileLayer.String(), Target: name, Bundle: true,
		Copied: []string{}, Notes: []string{}, Warnings: recovered(ctx, env, opts.Name),
	}}
	err := e.inProfile(ctx, func(tx *staging.Tx, p *profile.Profile) error {
		e.report.File = p.Manifest.Path()
		// As it stands on disk, for the manifest leaves a byte-order mark out.
		was, err := profile.ReadFile(p.Where(e.report.File))
		text := was
		if errors.Is(err, fs.ErrNotExist) {
			text, err = p.Manifest.Bytes(), nil // it comes with the transaction
		}
		if err != nil {
			return err
		}
		before := *p
		if before.Manifest, err = profile.ParseManifest(e.report.File, text); err != nil {
			return err
		}
		if opts.On {
			e.report.Changed = p.Manifest.EnableBundle(name)
		} else if e.report.Changed, err = e.takeOut(&before, p); err != nil {
			return err
		}
		if !e.report.Changed {
			return bundleOf(p, name)
		}
		// Less of a profile is never refused: it may be what mends it.
		warnings, err := verify(env, &before, p, nil, nil, opts.Force || !opts.On)
		if err != nil {
			return err
		}
		warnings = append(warnings, addedOnDisk(onDisk(ctx, env, &before, true), onDisk(ctx, env, p, true))...)
		e.report.Warnings = append(e.report.Warnings, warnings...)
		if err := e.noteLayer(&before, p); err != nil {
			return err
		}
		file := filepath.Base(e.report.File)
		return errors.Join(tx.Expect(file, was), tx.WriteFile(file, p.Manifest.Bytes(), 0o644))
	})
	if err != nil {
		return nil, err
	}
	return e.report, nil
}

// takeOut switches the bundle off. One that nothing brings is forgotten, for it
// could not be switched on again. It reports whether that changed anything.
func (e *edit) takeOut(before, p *profile.Profile) (changed bool, err error) {
	name := e.report.Target
	changed = p.Manifest.DisableBundle(name)
	if _, _, wanted := p.Manifest.Dependency(name); wanted || !slices.Contains(bundleNames(p.Manifest), name) {
		return changed, nil
	}
	c, err := composeProfile(e.env, before, Layers{Name: e.opts.Name, BundlesOnly: true}, true)
	if err != nil {
		return false, err
	}
	for _, entry := range c.Stack.Entries {
		if missing, ok := errors.AsType[*stack.MissingError](entry.Err); ok && entry.Label == name && missing.Link == "" {
			p.Manifest.RemoveDependency(name) // and with it the place
			e.note("%s is neither installed nor a dependency, so that its place is not remembered", name)
			return true, nil
		}
	}
	return changed, nil
}

// noteLayer says what the layer that is switched on or off holds.
func (e *edit) noteLayer(before, after *profile.Profile) error {
	with, what := before, "out of the profile go"
	if place := slices.Index(after.Manifest.Bundles(), e.report.Target); place >= 0 {
		with, what = after, fmt.Sprintf("at place %d of %d, it brings", place+1, len(after.Manifest.Bundles()))
	}
	c, err := composeProfile(e.env, with, Layers{Name: e.opts.Name, BundlesOnly: true}, true)
	if err != nil {
		return err
	}
	rows, overrides := layerSize(c.Tree, e.report.Target)
	e.note("%s %s and %s", what, counted(rows, "row"), counted(overrides, "override"))
	return nil
}

// layerSize is how many rows a layer inserts, those in groups included, and how
// many overrides it has.
func layerSize(tree *compose.Tree, label string) (rows, overrides int) {
	for _, step := range tree.Steps {
		if tree.Layers[step.Layer].Label != label {
			continue
		}
		switch step.Outcome {
		case compose.Inserted:
			rows += len(allRows(asInserted(step)))
		case compose.Overrode:
			overrides++
		}
	}
	return rows, overrides
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
