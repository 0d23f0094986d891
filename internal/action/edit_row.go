package action

import (
	"context"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

// Set gives what place names, ROW.KEY or ROW:KEY, a value in a patch file. The
// value is YAML. Where the file says nothing about the row's config yet, the
// composed config is restated with the one change.
func Set(ctx context.Context, env Env, opts EditOptions, place, value string) (*Edit, error) {
	return runEdit(ctx, env, opts, func(e *edit, text []byte) ([]byte, error) {
		r, err := e.row(text, place)
		if err != nil {
			return nil, err
		}
		key, err := r.setting().key()
		if err != nil {
			return nil, err
		}
		v, err := r.setting().value(e.src, value)
		if err != nil {
			return nil, err
		}
		return e.finish(r, key, v, func() ([]byte, error) {
			edited, err := r.set(key, r.target.Path, v)
			if err != nil {
				return nil, err
			}
			if idle, err := r.isIdle(edited, key); idle || err != nil {
				r.copied = nil
				return text, err
			}
			return r.keepTag(edited, key, value, v)
		})
	})
}

// disableRow switches a row off.
func disableRow(e *edit, text []byte, id string) ([]byte, error) {
	r, err := e.switched(text, id)
	if err != nil {
		return nil, err
	}
	if group, _ := r.row.Get("group"); compose.Truthy(group) {
		err := fault.Errorf(fault.Composition, "%s is a group, and a group is never off", r.target.ID)
		if row := firstRowIn(r.tree, r.row); row != "" {
			return nil, fault.WithHint(err, "switch off the rows in it: %s", r.command("disable", row))
		}
		return nil, err
	}
	return r.switchTo(true, func() ([]byte, error) {
		if isOff(r.row) {
			return text, nil
		}
		spot, _ := r.says("disabled")
		if there, _ := at(r.doc, below(spot, "disabled")); isExpr(there) {
			// It is needed again when the row is switched on.
			return r.override("disabled", nil, true)
		}
		return r.set("disabled", nil, true)
	})
}

// enableRow switches a row on: what the file says against it is taken out, and
// only where a layer below switches the row off it says more.
func enableRow(e *edit, text []byte, id string) ([]byte, error) {
	r, err := e.switched(text, id)
	if err != nil {
		return nil, err
	}
	if group, _ := r.row.Get("group"); compose.Truthy(group) {
		e.note("%s is a group, and a group is never off", r.target.ID)
		return e.finish(r, "disabled", nil, func() ([]byte, error) { return text, nil })
	}
	return r.switchTo(false, func() ([]byte, error) {
		without, err := r.withoutKey("disabled", func(v compose.Value) bool { return compose.Truthy(v) && !isExpr(v) })
		if err != nil {
			return nil, err
		}
		below, err := e.rowIn(without, r.target)
		if err != nil {
			return nil, err
		}
		if isOff(below) {
			return r.set("disabled", nil, false)
		}
		if disabled, _ := below.Get("disabled"); !isOff(below) && compose.Truthy(disabled) {
			e.note("whether %s is on is decided at boot by %s; to switch it on whatever that says: %s", r.target.ID,
				compose.AppendFlow(nil, disabled), e.command("set", compose.Target{ID: r.target.ID, RowKey: "disabled"}.String(), "false"))
		}
		return without, nil
	})
}

// switchTo makes an edit that switches the row off or on, and says how that is
// done in the layer that has the last word, if this one does not count.
func (r *rowText) switchTo(off bool, change func() ([]byte, error)) ([]byte, error) {
	edited, err := r.finish(r, "disabled", off, change)
	if err != nil || r.report.Overridden == "" {
		return edited, err
	}
	if now := r.report.Composed; now != nil && !isExpr(now.V) && compose.Truthy(now.V) == off {
		return edited, nil
	}
	if r.winner == compose.HomeLayer || r.winner == compose.ProjectLayer {
		there, verb := *r.edit, "enable"
		if there.opts.Layer = r.winner; off {
			verb = "disable"
		}
		r.note("to %s it there: %s", verb, there.command(verb, compose.Target{ID: r.target.ID}.String()))
	}
	return edited, nil
}

func isExpr(v compose.Value) bool {
	_, ok := v.(compose.Expr)
	return ok
}

// isOff says whether a row is off for certain.
func isOff(row *compose.Map) bool {
	off, expr := compose.Row{Entry: row}.Disabled()
	return off && expr == nil
}

// switched is the row that a command switches.
func (e *edit) switched(text []byte, id string) (*rowText, error) {
	r, err := e.row(text, id)
	if err != nil {
		return nil, err
	}
	if len(r.target.Path) > 0 || r.target.RowKey != "" {
		return nil, fault.WithHint(fault.Errorf(fault.Other, "%s is not a whole row", r.target), "name the row alone: %s", fault.ShellWord(compose.Target{ID: r.target.ID}.String()))
	}
	return r, nil
}

// setting is the writing of a value at the target.
func (r *rowText) setting() setting {
	return setting{
		target: r.target, tree: r.tree, rows: "write the rows into " + r.src.File,
		write: func(place, value string) string { return r.command("set", place, value) },
	}
}

// set is the text with v at a path in a key of the row.
func (r *rowText) set(key string, path []string, v compose.Value) ([]byte, error) {
	if spot, _ := r.says(key); spot != nil {
		return r.setIn(spot, key, path, v)
	}
	return r.override(key, path, v)
}

// override is the text with a key of the row in an override, where the last one
// of the file does not hold it: the key is restated with v at a path.
func (r *rowText) override(key string, path []string, v compose.Value) ([]byte, error) {
	old, _ := r.row.Get(key)
	changed, copied, err := compose.Restate(old, path, v, false)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	spot, edited := patchedit.Path{strconv.Itoa(len(r.patches))}, []byte(nil)
	if last := r.lastOverride(); last != nil && !has(last.Patch.Map, key) {
		spot = stepPath(last)
		edited, err = patchedit.Set(r.src, r.text, below(spot, key), changed)
	} else {
		patch := &compose.Map{}
		id, _ := r.row.Get("id")
		patch.Set("id", id)
		patch.Set(key, changed)
		edited, err = patchedit.Append(r.src, r.text, patch)
	}
	if err != nil || len(copied) == 0 {
		return edited, err
	}
	r.copied = copied
	return r.mark(edited, below(spot, key), changed, copied)
}

func has(m *compose.Map, key string) bool {
	_, ok := m.Get(key)
	return ok
}

// setIn changes a key in the mapping at a place of the file.
func (r *rowText) setIn(spot patchedit.Path, key string, path []string, v compose.Value) ([]byte, error) {
	place := below(spot, key)
	raw, _ := at(r.doc, place)
	changed, _, err := compose.Restate(raw, path, v, false)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	edited, err := patchedit.Set(r.src, r.text, place, changed)
	if err != nil || key != "config" {
		return edited, err
	}
	copied := patchedit.CopiedKeys(r.text, place)
	if copied == nil {
		return edited, nil
	}
	return r.mark(edited, place, changed, uncopied(copied, path, raw))
}

// keepTag is an edited text with the value as it was typed where that is one
// `!path` scalar, which else would be written as the path of this machine.
func (r *rowText) keepTag(edited []byte, key, typed string, v compose.Value) ([]byte, error) {
	typed = strings.TrimSpace(typed)
	if _, isText := v.(string); !isText || !strings.HasPrefix(typed, "!path ") {
		return edited, nil
	}
	const stand = "dsh-path-stands-here"
	if strings.Contains(string(r.text), stand) {
		return edited, nil
	}
	copied := r.copied
	held, err := r.set(key, r.target.Path, stand)
	if r.copied = copied; err != nil {
		return edited, nil
	}
	tagged := []byte(strings.Replace(string(held), stand, typed, 1))
	want, err := compose.ParseValue(r.src, edited)
	if err != nil {
		return nil, err
	}
	if got, err := compose.ParseValue(r.src, tagged); err != nil || !compose.Equal(got, want) {
		return edited, nil // it cannot stand there as it is typed
	}
	r.note("%s means %s", typed, v)
	return tagged, nil
}

// isIdle says whether an edit leaves what is composed for a key of the row as it
// is, and which keys are copied.
func (r *rowText) isIdle(edited []byte, key string) (bool, error) {
	row, err := r.rowIn(edited, r.target)
	if err != nil {
		return false, err
	}
	before, had := r.row.Get(key)
	after, has := row.Get(key)
	return had == has && compose.Equal(before, after) && !r.unmarks(edited, key), nil
}
