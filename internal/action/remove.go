package action

import (
	"context"
	"slices"

	"dsh/internal/install"
)

// Remove takes packages out of a profile. Names that it does not depend on are
// only told of, unless strict makes them an error.
func Remove(ctx context.Context, env Env, opts PluginOptions, names []string, strict bool) (*Report, error) {
	report, err := remove(ctx, env, opts, names, strict)
	if err != nil || opts.DryRun {
		return report, err
	}
	for _, name := range names {
		left, err := env.leftData(opts.Name, name, opts.Purge)
		if err != nil {
			return nil, err
		}
		if left != nil {
			report.Data = append(report.Data, *left)
		}
	}
	return report, nil
}

func remove(ctx context.Context, env Env, opts PluginOptions, names []string, strict bool) (*Report, error) {
	there, absent := names, []string(nil)
	if !strict {
		p, err := env.opened(ctx, opts.Name)
		if err != nil {
			return nil, err
		}
		depends := func(name string) bool { _, _, ok := p.Manifest.Dependency(name); return ok }
		there = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !depends(name) })
		absent = slices.DeleteFunc(slices.Clone(names), depends)
		if len(there) == 0 {
			return &Report{Profile: opts.Name.String(), Dir: p.Dir, Changes: []install.Change{}, Absent: absent, Warnings: p.Warnings}, nil
		}
	}
	report, err := change(ctx, env, opts, false, func(j *install.Job) (*install.Result, error) { return j.Remove(ctx, there) })
	if err == nil {
		report.Absent = absent
	}
	return report, err
}
