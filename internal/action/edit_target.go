package action

import (
	"errors"
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

// rowText is what the text of the file says about a row.
type rowText struct {
	*edit
	text    []byte
	doc     *compose.List // the text as it is written
	patches []compose.Patch
	tree    *compose.Tree // up to the file
	target  compose.Target
	row     *compose.Map
	// inserted is where the file inserts the row; nil if a layer below does.
	inserted patchedit.Path
	// overrides are the steps of the file that override the row, in order.
	overrides []*compose.Step
	// copied are the keys of the config that the edit copies from the layers
	// below.
	copied [][]string
}

// row finds the row of a place and what the file says about it.
func (e *edit) row(text []byte, place string) (*rowText, error) {
	r := &rowText{edit: e, text: text}
	var err error
	if r.patches, err = e.parse(text); err != nil {
		return nil, err
	}
	r.doc = &compose.List{}
	if len(r.patches) > 0 {
		v, err := compose.ParseValue(e.src, text)
		if err != nil {
			return nil, err
		}
		r.doc, _ = v.(*compose.List)
	}
	r.tree = e.tree(r.patches, false)
	if r.target, err = e.composed.findTarget(r.tree, place); err != nil {
		return nil, e.notBelow(r, place, err)
	}
	r.row = r.target.Row
	if !inTree(r.tree, r.row) {
		return nil, fault.WithHint(fault.Errorf(fault.Composition, "the row %s is not there any more: the config of its group was replaced", r.target.ID),
			"dsh config explain %s shows by which layer", fault.ShellWord(compose.Target{ID: r.target.ID}.String()))
	}
	r.inserted = r.insertedAt()
	for i := range r.tree.Steps {
		step := &r.tree.Steps[i]
		if step.Layer == e.own() && step.Outcome == compose.Overrode && step.Target == r.row {
			r.overrides = append(r.overrides, step)
		}
	}
	e.report.Target = r.target.String()
	return r, nil
}

// notBelow says of a row that is not there up to the file, and err says so,
// whether a layer above the file has it.
func (e *edit) notBelow(r *rowText, place string, err error) error {
	if _, malformed := errors.AsType[*compose.TargetError](err); malformed {
		return err
	}
	all := e.tree(r.patches, true)
	target, allErr := e.composed.findTarget(all, place)
	if allErr != nil {
		return err
	}
	h := newHistory(all)
	where, ok := h.whereRow(target.Row)
	if !ok {
		return err
	}
	err = fault.Errorf(fault.Composition, "the row %s is inserted later, by the %s layer at %s, so that this file cannot change it", target.ID, where.Kind, where.Place())
	switch where.Kind {
	case compose.HomeLayer.String(), compose.ProjectLayer.String():
		return fault.WithHint(err, "change it there, with --%s", where.Kind)
	}
	return err
}

func inTree(tree *compose.Tree, row *compose.Map) bool {
	for r := range tree.All() {
		if r.Entry == row {
			return true
		}
	}
	return false
}

// rowIn is the row of a target with another text of the file.
func (e *edit) rowIn(text []byte, target compose.Target) (*compose.Map, error) {
	patches, err := e.parse(text)
	if err != nil {
		return nil, err
	}
	return e.tree(patches, false).FindText(target.ID), nil
}

// insertedAt is where in the file the row is inserted, nil if a layer below
// does that. Of several rows with one id patches find the one that was
// inserted last.
func (r *rowText) insertedAt() patchedit.Path {
	id, _ := r.row.Get("id")
	var spot patchedit.Path
	for _, step := range r.tree.Steps {
		if step.Outcome != compose.Inserted {
			continue
		}
		insert, _ := step.Patch.Map.Get("insert")
		w := rowWalk{id: id, seen: map[*compose.List]bool{}}
		if found := w.last(insert, patchedit.Path{strconv.Itoa(step.Patch.Entry), "insert"}); found != nil {
			if spot = nil; step.Layer == r.own() {
				spot = found
			}
		}
	}
	return spot
}

// rowWalk looks for a row among those that a patch inserts.
type rowWalk struct {
	id   compose.Value
	seen map[*compose.List]bool // what aliases show again holds the same rows
}

// last is the path of the last row with the id among inserted rows and the rows
// of groups among them.
func (w rowWalk) last(rows compose.Value, spot patchedit.Path) (found patchedit.Path) {
	list, ok := rows.(*compose.List)
	if !ok || w.seen[list] {
		return nil
	}
	w.seen[list] = true
	for i, item := range list.Items {
		row, ok := item.(*compose.Map)
		if !ok {
			continue
		}
		here := below(spot, strconv.Itoa(i))
		if have, _ := row.Get("id"); have == w.id {
			found = here
		}
		if group, _ := row.Get("group"); compose.Truthy(group) {
			config, _ := row.Get("config")
			if inside := w.last(config, below(here, "config")); inside != nil {
				found = inside
			}
		}
	}
	return found
}

// says is the mapping in the file that has the last say about a key of the
// row: an override that holds it, or the row as it is inserted; nil where the
// file says nothing. step is the override's.
func (r *rowText) says(key string) (spot patchedit.Path, step *compose.Step) {
	for _, step := range slices.Backward(r.overrides) {
		if _, ok := step.Patch.Map.Get(key); ok {
			return stepPath(step), step
		}
	}
	return r.inserted, nil
}

func stepPath(step *compose.Step) patchedit.Path {
	return patchedit.Path{strconv.Itoa(step.Patch.Entry)}
}

func below(spot patchedit.Path, steps ...string) patchedit.Path {
	return append(slices.Clip(spot), steps...)
}

func (r *rowText) lastOverride() *compose.Step {
	if len(r.overrides) == 0 {
		return nil
	}
	return r.overrides[len(r.overrides)-1]
}
