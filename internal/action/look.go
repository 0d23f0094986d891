package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/profile"
	"dsh/internal/stack"
	"dsh/internal/staging"
)

// look composes a profile for a command that only looks at it: nothing is made
// and nothing is written, but what a dead process left is finished. lenient
// goes on without broken layers of the user, see [Composed.leftOut].
func look(ctx context.Context, env Env, layers Layers, lenient bool) (*Composed, error) {
	c, warnings, err := reading(ctx, env, layers.Name, func(v staging.View) (*Composed, error) {
		p, err := readOrTemplate(v, env.Home, layers.Name)
		if err != nil {
			return nil, err
		}
		return composeProfile(env, p, layers, lenient)
	})
	if err != nil {
		return nil, err
	}
	c.Warnings = slices.Concat(warnings, c.Warnings)
	return c, nil
}

// leftOut is warnings about broken layers of the user.
func (c *Composed) leftOut() []string {
	var warnings []string
	for _, e := range c.Stack.Entries {
		if e.State == stack.Broken && e.Kind.User() {
			warnings = append(warnings, fmt.Sprintf("left out: %v", e.Err))
		}
	}
	return warnings
}

// readOrTemplate reads a profile where v has its files. One that is missing and
// has the name of a template is what a start would make of it.
func readOrTemplate(v staging.View, home profile.Home, name profile.Name) (*profile.Profile, error) {
	p, err := profile.ReadFrom(v.Path, home, name)
	if missing, ok := errors.AsType[*profile.MissingError](err); !ok || missing.Lost {
		return p, err
	}
	tmpl, unknown := profile.LookupTemplate(name.String())
	if unknown != nil {
		return nil, err
	}
	return unmade(home, name, tmpl)
}

// unmade is a profile as a template would make it.
func unmade(home profile.Home, name profile.Name, tmpl profile.Template) (*profile.Profile, error) {
	text, err := json.Marshal(map[string]any{"dsh": map[string]any{"profile": map[string]any{"bundles": tmpl.Bundles()}}})
	if err != nil {
		return nil, err
	}
	p := &profile.Profile{Name: name, Dir: home.ProfileDir(name)}
	p.Manifest, err = profile.ParseManifest(filepath.Join(p.Dir, "package.json"), text)
	return p, err
}

// Shown is a value of a layer, redacted where that was asked for. Its JSON is
// what JSON.stringify gives, with {"__jsExpr": text} for an expression.
type Shown struct{ V compose.Value }

// MarshalJSON also writes numbers that JSON has no form for.
func (s Shown) MarshalJSON() ([]byte, error) {
	text, err := (&compose.List{Items: []compose.Value{s.V}}).MarshalJSON()
	return text[1 : len(text)-1], err
}

// shown says how values are shown.
type shown struct {
	secrets bool // as they are
}

// value is v, which stands under the keys of a row, as it may be shown.
func (s shown) value(v compose.Value, keys ...string) compose.Value {
	if s.secrets {
		return v
	}
	return compose.RedactAt(v, keys...)
}
