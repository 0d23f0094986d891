package action

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/inspect"
	"dsh/internal/install"
	"dsh/internal/installation"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// CompatOptions say what to compare a profile's installation with.
type CompatOptions struct {
	Layers
	Target   string // a directory, or an exact version of the launcher
	Fetch    bool   // a version that is not kept is fetched
	Registry string // as in [PluginOptions]
	Events   install.Events
}

// CompatReport is what would change for a profile under another installation.
type CompatReport struct {
	Profile string `json:"profile"`
	From    string `json:"from"`
	To      string `json:"to"`
	// Problems are the mistakes that come, Solved those that go.
	Problems []check.Finding `json:"problems"`
	Solved   []check.Finding `json:"solved"`
	// Peers are the host peers that the other installation does not satisfy and
	// this one does. Those of bundles that it leaves out for them are among the
	// problems.
	Peers    []inspect.Unmet `json:"peers"`
	Added    []CompatRow     `json:"rowsAdded"`
	Removed  []CompatRow     `json:"rowsRemoved"`
	Fits     bool            `json:"fits"`
	Warnings []string        `json:"-"`
}

// CompatRow is a row that only one of two installations brings.
type CompatRow struct {
	ID     string `json:"id"`
	Plugin string `json:"plugin"`
	Layer  string `json:"layer"`
}

// CompatPart is the problems of one kind.
type CompatPart struct {
	Title    string
	Problems []check.Finding
}

// Parts are the problems by what they are about; only parts with any.
func (r *CompatReport) Parts() []CompatPart {
	var parts []CompatPart
	rest := r.Problems
	for _, kind := range []struct {
		title string
		codes []check.Code // none: all that are left
	}{
		{"ids that are taken", []check.Code{check.DuplicateID, check.RepeatedID}},
		{"overrides without a row", []check.Code{check.TargetMissing, check.NameMismatch, check.NotAGroup, check.DetachedRow}},
		{"bundles that are left out", []check.Code{check.BundleRefused, check.BundleMissing, check.BundleNoLayer, check.BundleBroken, check.FileMissing}},
		{"plugins that are not there", []check.Code{inspect.RowUnresolved, inspect.RowNoEntry}},
		{"other problems", nil},
	} {
		part := CompatPart{Title: kind.title}
		var others []check.Finding
		for _, f := range rest {
			if kind.codes == nil || slices.Contains(kind.codes, f.Code) {
				part.Problems = append(part.Problems, f)
			} else {
				others = append(others, f)
			}
		}
		if rest = others; part.Problems != nil {
			parts = append(parts, part)
		}
	}
	return parts
}

// Compat composes a profile with its installation and with another one, and
// tells the difference. Nothing of the profile is written.
func Compat(ctx context.Context, env Env, opts CompatOptions) (*CompatReport, error) {
	was, warnings, err := reading(ctx, env, opts.Name, func(v staging.View) (*Composed, error) {
		p, err := readOrTemplate(v, env.Home, opts.Name)
		if err != nil {
			return nil, err
		}
		return composeProfile(env, p, opts.Layers, true)
	})
	if err != nil {
		return nil, err
	}
	p, other := was.Profile, env
	var whole bool
	if other.Installation, whole, err = env.other(ctx, p, opts); err != nil {
		return nil, err
	}
	will, err := composeProfile(other, p, opts.Layers, true)
	if err != nil {
		return nil, err
	}
	report := &CompatReport{
		Profile: opts.Name.String(), From: env.Installation.Describe(), To: other.Installation.Describe(),
		Peers: newlyUnmet(p, env.Installation, will.Stack, other.Installation), Warnings: warnings,
	}
	report.Added, report.Removed = rowsApart(was.Tree, will.Tree), rowsApart(will.Tree, was.Tree)
	wrongBefore, wrongAfter := Findings(env, was), Findings(other, will)
	if whole {
		wrongBefore = append(wrongBefore, unresolved(ctx, env, was)...)
		wrongAfter = append(wrongAfter, unresolved(ctx, other, will)...)
	}
	report.Problems = problemsApart(wrongBefore, was, wrongAfter, will)
	report.Solved = problemsApart(wrongAfter, will, wrongBefore, was)
	report.Fits = len(report.Problems) == 0 &&
		!slices.ContainsFunc(report.Peers, func(u inspect.Unmet) bool { return !u.Exempt })
	return report, nil
}

// other is the installation to compare with. whole says that it has all
// packages of the harness, and not only bundles.
func (e Env) other(ctx context.Context, p *profile.Profile, opts CompatOptions) (inst installation.Installation, whole bool, err error) {
	if c, err := e.openChosen(opts.Target, false); err == nil && !c.Embedded() {
		return c.Installation, true, nil // one of the home
	}
	if version, err := npmrange.ParseVersion(opts.Target); err == nil && version.String() == opts.Target {
		inst, err = e.keptBundles(ctx, p, version, opts)
		return inst, false, err
	}
	dir := opts.Target
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(e.Dir, dir)
	}
	if _, err := os.Stat(dir); err != nil && filepath.Base(opts.Target) == opts.Target {
		return nil, false, fault.Errorf(fault.Other, "%q is neither a directory nor an exact version such as 0.1.7", opts.Target)
	}
	inst, err = installation.OpenDir(dir)
	return inst, true, err
}

// problemsApart are the warnings and errors of after that before does not have.
func problemsApart(before []check.Finding, was *Composed, after []check.Finding, will *Composed) []check.Finding {
	known := map[string]int{}
	for _, f := range before {
		known[identityIn(was.Stack, f)]++
	}
	apart := []check.Finding{}
	for _, f := range after {
		if id := identityIn(will.Stack, f); known[id] > 0 {
			known[id]--
		} else if f.Severity > check.Info {
			apart = append(apart, f)
		}
	}
	return apart
}

// identityIn is the identity of a finding, the same for all installations that
// its bundle may come from.
func identityIn(s *stack.Stack, f check.Finding) string {
	if slices.ContainsFunc(s.Entries, func(e stack.Entry) bool { return e.InBox && e.Label == f.Layer }) {
		f.File = ""
	}
	return f.Identity()
}

// unresolved are the rows whose plugins are not there.
func unresolved(ctx context.Context, env Env, c *Composed) []check.Finding {
	return slices.DeleteFunc(inspected(ctx, env, c, false), func(f check.Finding) bool {
		return f.Code != inspect.RowUnresolved && f.Code != inspect.RowNoEntry
	})
}

// newlyUnmet are the host peers that one installation satisfies and the other,
// of which the stack is, does not.
func newlyUnmet(p *profile.Profile, from installation.Installation, s *stack.Stack, to installation.Installation) []inspect.Unmet {
	before := inspect.UnmetPeers(p, from)
	unmet := []inspect.Unmet{}
	for _, u := range inspect.UnmetPeers(p, to) {
		known := slices.ContainsFunc(before, func(b inspect.Unmet) bool { return b.Package == u.Package && b.Peer == u.Peer })
		refused := slices.ContainsFunc(s.Entries, func(e stack.Entry) bool {
			refused, ok := e.Err.(*stack.PeersError)
			return ok && refused.Name == u.Package
		})
		if !known && !refused {
			unmet = append(unmet, u)
		}
	}
	return unmet
}

// rowsApart are the rows of now that the same layer does not have in before.
func rowsApart(before, now *compose.Tree) []CompatRow {
	type key struct{ id, layer string }
	known := map[key]bool{}
	for row := range before.All() {
		known[key{compose.IDText(row.ID()), row.Origin}] = true
	}
	rows := []CompatRow{}
	for row := range now.All() {
		k := key{compose.IDText(row.ID()), row.Origin}
		if row.ID() != nil && !known[k] {
			known[k] = true
			rows = append(rows, CompatRow{k.id, row.Name(), k.layer})
		}
	}
	slices.SortFunc(rows, func(a, b CompatRow) int { return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.ID, b.ID)) })
	return rows
}

// String is the row in one line.
func (r CompatRow) String() string { return fmt.Sprintf("%s (%s) of %s", r.ID, r.Plugin, r.Layer) }
