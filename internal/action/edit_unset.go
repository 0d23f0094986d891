package action

import (
	"context"
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

// Unset takes out what a patch file says about ROW, ROW.KEY or ROW:KEY, so that
// the layers below count again. Since an override replaces a config whole, their
// value of a key stands in the place of the file's as a copied key. Where
// nothing is to be taken out nothing changes.
func Unset(ctx context.Context, env Env, opts EditOptions, place string) (*Edit, error) {
	return runEdit(ctx, env, opts, func(e *edit, text []byte) ([]byte, error) {
		stale, id, err := e.stale(text, place)
		if err != nil {
			return nil, err
		}
		if stale != nil {
			e.report.Target, e.report.Row = id, true
			return e.deletePatches(text, stale)
		}
		r, err := e.row(text, place)
		if err != nil {
			return e.unknown(text, err)
		}
		switch key := r.target.RowKey; {
		case key == "id" || key == "name" || key == "insert":
			_, err := r.setting().key()
			return nil, err
		case key == "" && len(r.target.Path) == 0:
			return r.unsetRow()
		case key != "":
			return e.finish(r, key, nil, func() ([]byte, error) {
				return r.withoutKey(key, func(compose.Value) bool { return true })
			})
		case isGroup(r.row):
			_, err := r.setting().key()
			return nil, err
		default:
			return e.finish(r, "config", nil, func() ([]byte, error) { return r.unsetKey(r.target.Path) })
		}
	})
}

// stale is the patches of the file for a row that no layer has or that is no
// longer in the tree, if place names such a row as a whole.
func (e *edit) stale(text []byte, place string) (entries []int, id string, err error) {
	patches, err := e.parse(text)
	if err != nil {
		return nil, "", err
	}
	tree := e.tree(patches, false)
	target, err := compose.ParseTarget(place, func(id string) *compose.Map {
		if row := tree.FindText(id); row != nil {
			return row
		}
		for _, patch := range patches {
			if overrides(patch, id) {
				return patch.Map
			}
		}
		return nil
	})
	if err != nil || target.Row == nil || target.RowKey != "" || len(target.Path) > 0 {
		return nil, "", err
	}
	if row := tree.FindText(target.ID); row != nil && inTree(tree, row) {
		return nil, "", nil
	}
	for _, patch := range patches {
		if overrides(patch, target.ID) {
			entries = append(entries, patch.Entry)
		}
	}
	return entries, target.String(), nil
}

// overrides says whether a patch is for a row with an id.
func overrides(patch compose.Patch, id string) bool {
	have, _ := patch.Map.Get("id")
	insert, _ := patch.Map.Get("insert")
	return have != nil && !compose.Truthy(insert) && compose.IDText(have) == id
}

// unknown is what becomes of unsetting a row that is not there: nothing.
func (e *edit) unknown(text []byte, err error) ([]byte, error) {
	if fault.ClassOf(err) != fault.Composition {
		return nil, err
	}
	hint := fault.Hint(err)
	if hint != "" {
		hint = "; " + hint
	}
	e.note("%v%s", err, hint)
	return text, nil
}

func (e *edit) deletePatches(text []byte, entries []int) (edited []byte, err error) {
	edited = text
	for _, entry := range slices.Backward(slices.Compact(slices.Sorted(slices.Values(entries)))) {
		if edited, err = patchedit.Delete(e.src, edited, patchedit.Path{strconv.Itoa(entry)}); err != nil {
			return nil, err
		}
	}
	return edited, nil
}

// unsetRow takes the overrides of the row out of the file.
func (r *rowText) unsetRow() ([]byte, error) {
	var entries []int
	for _, patch := range r.patches {
		if overrides(patch, r.target.ID) {
			entries = append(entries, patch.Entry)
		}
	}
	if len(entries) == 0 && r.inserted != nil {
		line, _, _ := compose.Position(r.text, r.inserted...)
		return nil, fault.WithHint(
			fault.Errorf(fault.Composition, "the row %s is inserted by this file, at %s:%d, and not overridden", r.target.ID, r.src.File, line),
			"delete it there by hand, or switch it off: %s", r.command("disable", compose.Target{ID: r.target.ID}.String()))
	}
	r.report.Row = true
	edited, err := r.deletePatches(r.text, entries)
	if err != nil {
		return nil, err
	}
	row, err := r.rowIn(edited, r.target)
	if err != nil {
		return nil, err
	}
	r.report.Before, r.report.After = &Shown{r.shown.value(r.row)}, &Shown{r.shown.value(row)}
	return edited, nil
}

// withoutKey is the text without a key of the row, in overrides and where the
// file inserts the row, if the value is one to go.
func (r *rowText) withoutKey(key string, goes func(compose.Value) bool) (edited []byte, err error) {
	edited = r.text
	for _, step := range slices.Backward(r.overrides) {
		v, ok := step.Patch.Map.Get(key)
		if !ok || !goes(v) {
			continue
		}
		if edited, err = r.deleteKey(edited, step, key); err != nil {
			return nil, err
		}
	}
	if r.inserted == nil {
		return edited, nil
	}
	v, ok := at(r.doc, below(r.inserted, key))
	if !ok || !goes(v) {
		return edited, nil
	}
	return patchedit.Delete(r.src, edited, below(r.inserted, key)) // its overrides stand behind it
}

// deleteKey takes a key out of an override, and the override where nothing is
// left that does anything.
func (r *rowText) deleteKey(text []byte, step *compose.Step, key string) ([]byte, error) {
	for other := range step.Patch.Map.All() {
		if other != key && other != "id" && other != "name" {
			return patchedit.Delete(r.src, text, below(stepPath(step), key))
		}
	}
	return patchedit.Delete(r.src, text, stepPath(step))
}

// unsetKey takes what the file says about a path in the config out.
func (r *rowText) unsetKey(path []string) ([]byte, error) {
	spot, step := r.says("config")
	if spot == nil {
		return r.text, nil
	}
	place := below(spot, "config")
	config, _ := at(r.doc, place)
	_, said := at(config, path)
	if step == nil {
		if !said {
			return r.text, nil
		}
		return patchedit.Delete(r.src, r.text, append(place, path...))
	}
	lower := replaced(step, "config")
	v, counts := at(lower, path)
	if !said && !counts {
		return r.text, nil
	}
	copied := patchedit.CopiedKeys(r.text, place)
	there, _ := at(config, path)
	if said && counts && compose.Equal(there, v) && allCopied(there, v, path, copied) {
		return r.text, nil // what the layers below say counts already
	}
	copied = uncopied(copied, path, config)
	changed, _, err := compose.Restate(config, path, v, !counts)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	if counts {
		copied = append(copied, path)
	} else {
		changed, copied = prune(changed, lower, path), unmoved(copied, config, path)
	}
	changed, copied, kept, err := following(changed, lower, path, copied)
	if err != nil {
		return nil, fault.WithClass(fault.Composition, err)
	}
	if allCopied(changed, lower, nil, copied) {
		return r.deleteKey(r.text, step, "config")
	}
	edited, err := patchedit.Set(r.src, r.text, place, changed)
	if err != nil {
		return nil, err
	}
	if counts || len(kept) < len(path) {
		r.copied = [][]string{kept}
	}
	return r.mark(edited, place, changed, copied)
}

// following is a config in which the lists and mappings on the way to a path are
// those of the layers below where nothing in them is the user's any more, with
// its copied keys. kept is the outermost of them, or the path itself.
func following(config, lower compose.Value, path []string, copied [][]string) (changed compose.Value, marks [][]string, kept []string, err error) {
	changed, kept = config, path
	for n := len(path) - 1; n > 0; n-- {
		whole, _ := at(changed, path[:n])
		below, has := at(lower, path[:n])
		if !has || !allCopied(whole, below, path[:n], copied) {
			break
		}
		if changed, _, err = compose.Restate(changed, path[:n], below, false); err != nil {
			return nil, nil, nil, err
		}
		kept = path[:n]
		copied = append(slices.DeleteFunc(copied, func(key []string) bool { return hasPrefix(key, kept) }), kept)
	}
	return changed, copied, kept, nil
}

// replaced is what an override found at a key of the row.
func replaced(step *compose.Step, key string) compose.Value {
	for _, change := range step.Changes {
		if change.Key == key {
			return change.Old
		}
	}
	return nil
}

// prune takes out the mappings and lists on the way to a path that are empty
// now and that the layers below do not have.
func prune(config, lower compose.Value, path []string) compose.Value {
	for n := len(path) - 1; n > 0; n-- {
		v, _ := at(config, path[:n])
		if _, below := at(lower, path[:n]); !isEmpty(v) || below {
			break
		}
		config, _, _ = compose.Restate(config, path[:n], nil, true) // what is there can be taken out
	}
	return config
}

func isList(v compose.Value) bool {
	_, ok := v.(*compose.List)
	return ok
}
