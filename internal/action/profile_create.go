package action

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"dsh/internal/fault"
	"dsh/internal/install"
	"dsh/internal/profile"
)

// CreateOptions say what a new profile is made of.
type CreateOptions struct {
	PluginOptions
	// Template is the shipped template to start from; "" is the one of the
	// profile's name, or else the base bundle alone.
	Template string
	// Bundles, if any, are the layers instead: names of in-box bundles, and
	// packages to install, as `dsh plugin add` takes them.
	Bundles []string
}

// Made is a profile that was made.
type Made struct {
	Profile string `json:"profile"`
	Dir     string `json:"dir"`
	From    string `json:"from,omitempty"` // the profile that it is a copy of
	// Bundles are its layers in order.
	Bundles []string           `json:"bundles"`
	Changes []install.Change   `json:"changes"`
	Tree    install.TreeChange `json:"packages"`
	Builds
	// References are places that name the directory of the profile that was
	// copied.
	References []Reference `json:"references"`
	// Notes are what a person may want to know though nothing is wrong.
	Notes    []string `json:"notes"`
	Warnings []string `json:"-"`
}

// newName parses the name of a profile to be made. Profiles that give their
// name up for it are not in the way.
func (env Env) newName(text string, leaving ...profile.Name) (profile.Name, error) {
	names, err := env.Home.Profiles()
	if err != nil {
		return profile.Name{}, err
	}
	names = slices.DeleteFunc(names, func(n profile.Name) bool { return slices.Contains(leaving, n) })
	name, err := profile.ParseNewName(text, names)
	if taken, ok := errors.AsType[*profile.TakenError](err); ok {
		return name, cmp.Or(env.Home.CheckLink(taken.By), existing(taken))
	}
	return name, err
}

// existing says what can be done about a profile that is in the way.
func existing(err *profile.TakenError) error {
	name := fault.ShellWord(err.By.String())
	return fault.WithHint(err, "choose another name, or take it out of the way first: dsh profile rename %s NEW-NAME", name)
}

// Create makes a profile without starting it, with all its packages or not at
// all. A profile that would not start is refused, unless opts.Force is set.
func Create(ctx context.Context, env Env, opts CreateOptions) (made *Made, err error) {
	if opts.Name, err = env.newName(opts.Name.String()); err != nil {
		return nil, err
	}
	plan, err := env.planCreation(opts)
	if err != nil {
		return nil, err
	}
	tx, p, err := env.begin(ctx, opts.Name, func(dir string) error { return profile.Write(dir, opts.Name, plan.template) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	if !p.Created {
		return nil, existing(&profile.TakenError{Name: opts.Name, By: opts.Name}) // somebody was faster
	}
	made = &Made{Profile: opts.Name.String(), Dir: p.Dir, Changes: []install.Change{}, References: []Reference{}, Notes: []string{}}
	after, was, will := *p, findPackage(nil), findPackage(nil)
	if len(plan.packages) > 0 {
		var result *install.Result
		err := env.withJob(opts.PluginOptions, tx, p, func(j *install.Job) (err error) {
			result, err = j.Add(ctx, plan.packages, install.AddOptions{})
			return err
		})
		if err != nil {
			return nil, err
		}
		if err := plan.order(result); err != nil {
			return nil, err
		}
		if err := tx.WriteFile("package.json", result.Manifest.Bytes(), 0o644); err != nil {
			return nil, err
		}
		after.Manifest, made.Changes, made.Tree, made.Builds = result.Manifest, result.Changes, result.Tree, buildsOf(result)
		was, will = lockedPackages(p.Dir, result), stagedPackages(p.Dir, result)
		made.Warnings = append(made.Warnings, result.Warnings...)
	}
	empty, err := unmade(env.Home, opts.Name, profile.TemplateOf(nil))
	if err != nil {
		return nil, err
	}
	problems, err := verify(env, empty, &after, was, will, opts.Force)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return nil, err
	}
	made.Bundles = append([]string{}, after.Manifest.Bundles()...)
	made.Warnings = slices.Concat(made.Warnings, problems, tx.Warnings())
	return made, nil
}

// creation is what a new profile starts from.
type creation struct {
	template profile.Template // with the in-box bundles
	packages []install.Spec
	inBox    []string // for each bundle that was asked for its name, or "" for the next package
}

func (env Env) planCreation(opts CreateOptions) (*creation, error) {
	plan := &creation{template: profile.ForName(opts.Name)}
	switch {
	case opts.Template != "" && len(opts.Bundles) > 0:
		return nil, fault.Errorf(fault.Other, "a template and bundles exclude each other: the bundles of a template are its own")
	case opts.Template != "":
		tmpl, err := profile.LookupTemplate(opts.Template)
		if err != nil {
			return nil, err
		}
		plan.template = tmpl
	case len(opts.Bundles) > 0:
		var listed []string
		for _, text := range opts.Bundles {
			_, inBox, err := env.Installation.Bundle(text)
			if err != nil {
				return nil, err
			}
			if inBox {
				if slices.Contains(listed, text) {
					return nil, fault.Errorf(fault.Other, "bundle %s is named twice", text)
				}
				listed, plan.inBox = append(listed, text), append(plan.inBox, text)
				continue
			}
			spec, err := install.ParseSpec(text, env.Dir)
			if err != nil {
				return nil, err
			}
			plan.packages, plan.inBox = append(plan.packages, spec), append(plan.inBox, "")
		}
		plan.template = profile.TemplateOf(listed)
	}
	if len(opts.Bundles) > 0 {
		return plan, nil // what a shipped name promises is looked at when their names are known
	}
	return plan, profile.CheckShipped(opts.Name, plan.template.Bundles())
}

// order puts the bundles into the order in which they were asked for. A package
// among them that is no bundle is an error.
func (c *creation) order(result *install.Result) error {
	changes := result.Changes // in the order of the packages
	var list []string
	for _, name := range c.inBox {
		if name == "" {
			change := changes[0]
			changes = changes[1:]
			if change.Layer != install.LayerAdded && change.Layer != install.LayerKept {
				return fault.WithHint(fault.Errorf(fault.Package, "%s declares no dsh.bundle, so that it cannot be a layer", change.Name),
					"leave it out, and add it afterwards with dsh plugin add")
			}
			name = change.Name
		}
		list = append(list, name)
	}
	result.Manifest.SetBundles(list)
	return nil
}

// packageFile is the manifest of a profile.
func packageFile(dir string) string { return filepath.Join(dir, "package.json") }
