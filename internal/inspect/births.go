package inspect

import (
	"slices"
	"strconv"

	"dsh/internal/check"
	"dsh/internal/compose"
)

// birth is where something of the tree was written: a step, and the keys that
// lead to it in the text of the step's patch.
type birth struct {
	step *compose.Step
	path []string
}

// births is where each row was written, and its config by the step that wrote
// it last.
func births(t *compose.Tree) map[*compose.Map]birth {
	b := map[*compose.Map]birth{}
	for i := range t.Steps {
		step := &t.Steps[i]
		at := strconv.Itoa(step.Patch.Entry)
		if step.Outcome == compose.Inserted {
			addRows(b, step, []string{at, "insert"}, step.Rows)
		}
		for _, c := range step.Changes {
			if c.Key == "config" {
				if list, ok := c.New.(*compose.List); ok {
					addRows(b, step, []string{at, "config"}, list.Items)
				}
			}
		}
	}
	return b
}

func addRows(b map[*compose.Map]birth, step *compose.Step, above []string, rows []compose.Value) {
	for i, v := range rows {
		row, ok := v.(*compose.Map)
		if !ok {
			continue
		}
		path := append(slices.Clip(above), strconv.Itoa(i))
		if old, known := b[row]; known && old.step == step {
			continue // aliases show it again, or it holds itself
		}
		b[row] = birth{step, path}
		config, _ := row.Get("config")
		if list, ok := config.(*compose.List); ok {
			addRows(b, step, append(slices.Clip(path), "config"), list.Items)
		}
	}
}

// configBirths is where the configs were written that overrides wrote, by the
// last of them.
func configBirths(t *compose.Tree) map[*compose.Map]birth {
	b := map[*compose.Map]birth{}
	for i := range t.Steps {
		step := &t.Steps[i]
		for _, c := range step.Changes {
			if c.Key == "config" {
				b[step.Target] = birth{step, []string{strconv.Itoa(step.Patch.Entry), "config"}}
			}
		}
	}
	return b
}

// configBirth is where the config of a row was written last.
func (i *inspection) configBirth(row *compose.Map) birth {
	if b, ok := i.configs[row]; ok {
		return b
	}
	born := i.births[row]
	if born.step == nil {
		return born
	}
	return birth{born.step, append(slices.Clip(born.path), "config")}
}

// place fills in where a finding is: the layer, and the value below the keys.
func (i *inspection) place(f *check.Finding, b birth, keys ...string) {
	if b.step == nil {
		return
	}
	f.Layer = i.Tree.Layers[b.step.Layer].Label
	if src := b.step.Patch.Source; src != nil {
		f.File = src.File
		f.Line, f.Column, _ = i.places.Find(src, append(slices.Clip(b.path), keys...)...)
	}
}

// kind is the kind of the layer that something was written in.
func (i *inspection) kind(b birth) compose.Kind {
	if b.step == nil {
		return compose.BundleLayer
	}
	return i.Tree.Layers[b.step.Layer].Kind
}
