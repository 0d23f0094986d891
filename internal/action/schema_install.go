package action

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"dsh/internal/compose"
	"dsh/internal/patchedit"
	"dsh/internal/profile"
	"dsh/internal/staging"
)

// schemaFile is the schema of a patch file, beside it.
const schemaFile = "cordis.patch.schema.json"

// InstalledSchema is a schema that stands beside a patch file which names it.
type InstalledSchema struct {
	Profile  string   `json:"profile"`
	File     string   `json:"file"`
	Schema   string   `json:"schema"`
	Changed  bool     `json:"changed"`
	Complete bool     `json:"complete"` // it knows the config of every row
	Warnings []string `json:"-"`
}

// Look composes a profile for a command that only looks at it.
func Look(ctx context.Context, env Env, layers Layers) (*Composed, error) {
	return look(ctx, env, layers, false)
}

// InstallSchema writes the schema of the profile's rows beside the patch file
// that opts names, which is the profile's or the home's, and the line into it
// by which editors find it.
func InstallSchema(ctx context.Context, env Env, opts EditOptions) (*InstalledSchema, error) {
	s := &InstalledSchema{Profile: opts.Name.String()}
	_, err := readOrNew(env.Home, opts.Name)
	if err != nil {
		return nil, err
	}
	e := &edit{env: env, opts: opts, report: &Edit{Warnings: recovered(ctx, env, opts.Name)}}
	if opts.Layer == compose.HomeLayer {
		err = e.locked(ctx, func(p *profile.Profile) error {
			text, edited, schema, err := e.schema(s, p, env.Home.PatchPath())
			if err != nil || !s.Changed {
				return err
			}
			// The file names what is there.
			if _, err := staging.WriteFileIfChanged(s.Schema, schema, 0o644); err != nil {
				return err
			}
			return env.inHomeHistory(ctx, func() error { return writeOver(s.File, text, edited) })
		})
	} else {
		err = e.inProfile(ctx, func(tx *staging.Tx, p *profile.Profile) error {
			text, edited, schema, err := e.schema(s, p, p.PatchPath())
			if err != nil || !s.Changed {
				return err
			}
			name := filepath.Base(s.File)
			e.report.Changed = true
			return errors.Join(tx.Expect(name, text), tx.WriteFile(name, edited, 0o644), tx.WriteFile(schemaFile, schema, 0o644))
		})
	}
	if err != nil {
		return nil, err
	}
	s.Warnings = e.report.Warnings
	return s, nil
}

// schema is a patch file as it is and with the line that names its schema, and
// the schema.
func (e *edit) schema(s *InstalledSchema, p *profile.Profile, file string) (text, edited, schema []byte, err error) {
	s.File, s.Schema = file, filepath.Join(filepath.Dir(file), schemaFile)
	if text, err = readFile(p.Where(file)); err != nil {
		return nil, nil, nil, err
	}
	c, err := composeProfile(e.env, p, Layers{Name: e.opts.Name}, true)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, text := range slices.Concat(c.Warnings, c.leftOut()) {
		e.warn("%s", text)
	}
	for _, skipped := range c.Stack.Skipped() {
		e.warn("%v", skipped)
	}
	document, err := Schema(e.env, c)
	if err != nil {
		return nil, nil, nil, err
	}
	s.Complete = document.Complete
	for _, d := range document.Diagnostics {
		e.warn("%s", d.String())
	}
	content := text
	if content == nil {
		content = []byte("[]\n")
	}
	edited = patchedit.Modeline(content, "./"+schemaFile)
	there, err := readFile(s.Schema)
	s.Changed = text == nil || !bytes.Equal(text, edited) || !bytes.Equal(there, document.Document)
	return text, edited, document.Document, err
}
