package action

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"dsh/internal/compose"
)

// RowTree is the rows of a composed profile with all of their keys.
type RowTree struct {
	Profile  string      `json:"profile"`
	Layers   []LayerName `json:"layers"` // lowest first
	Rows     []RowDetail `json:"rows"`
	Warnings []string    `json:"-"`
}

// RowDetail is one row with its keys.
type RowDetail struct {
	RowSummary
	// Keys are the smallest values of the row's config and of its other keys, but
	// for its id, its name and the rows of a group. Secrets are not shown.
	Keys     []KeyValue  `json:"keys"`
	Children []RowDetail `json:"children,omitempty"`
}

// maxTreeKeys is how many keys a whole [RowTree] has at most. Nobody reads
// more, and programs ask for one row.
const maxTreeKeys = 20_000

// DetailRows lists the rows of a profile with where each of their keys has its
// value from.
func DetailRows(ctx context.Context, env Env, layers Layers) (*RowTree, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	d := &detailer{explainer: explainer{history: newHistory(c.Tree), env: env}, left: maxTreeKeys}
	list := &RowTree{
		Profile: layers.Name.String(), Layers: layerNames(c), Rows: d.rows(c.Tree.Rows, ""),
		Warnings: slices.Concat(c.Warnings, c.leftOut(), c.Notices),
	}
	if d.left < 0 {
		list.Warnings = append(list.Warnings, fmt.Sprintf("the rows have more than %d keys; those of the later rows are left out", maxTreeKeys))
	}
	return list, nil
}

type detailer struct {
	explainer
	left int // keys that may still be listed
}

func (d *detailer) rows(rows []compose.Row, above string) []RowDetail {
	list := make([]RowDetail, len(rows))
	for i, row := range rows {
		path := above + "/" + strconv.Itoa(i)
		list[i] = RowDetail{RowSummary: d.summary(row, path), Keys: d.keys(row), Children: d.rows(row.Children(), path+"/config")}
		list[i].RowSummary.Children = nil
	}
	return list
}

func (d *detailer) keys(row compose.Row) []KeyValue {
	keys := []KeyValue{}
	all := d.writes(row.Entry)
	group := row.Children() != nil
	for key, v := range row.Entry.All() {
		if key == "id" || key == "name" || key == "config" && group {
			continue
		}
		d.leaves(d.value(v, key), []string{key}, func(path []string, v compose.Value) {
			keys = append(keys, KeyValue{Key: compose.PathText(path), Value: Shown{v}, From: d.winner(all, key, path[1:])})
		})
	}
	return keys
}

// leaves goes through the smallest values in v.
func (d *detailer) leaves(v compose.Value, path []string, found func([]string, compose.Value)) {
	if d.left < 0 {
		return
	}
	switch v := v.(type) {
	case *compose.Map:
		if v.Len() > 0 {
			for key, item := range v.All() {
				d.leaves(item, append(slices.Clip(path), key), found)
			}
			return
		}
	case *compose.List:
		if len(v.Items) > 0 {
			for i, item := range v.Items {
				d.leaves(item, append(slices.Clip(path), strconv.Itoa(i)), found)
			}
			return
		}
	}
	if d.left--; d.left >= 0 {
		found(path, v)
	}
}

// LayerChanges is what one layer did to those below it.
type LayerChanges struct {
	Profile  string         `json:"profile"`
	Layer    LayerName      `json:"layer"`
	Inserted []InsertedRow  `json:"inserted"` // those in groups included
	Writes   []LayerWrite   `json:"writes"`
	Skipped  []SkippedPatch `json:"skipped"`
	Warnings []string       `json:"-"`
}

// InsertedRow is a row that a layer brought in.
type InsertedRow struct {
	Row    string `json:"row"`
	Plugin string `json:"plugin"`
	Where
}

// LayerWrite is one of the smallest keys that a patch changed in a row that was
// there.
type LayerWrite struct {
	Row       string `json:"row"`
	Key       string `json:"key"` // as in config.env.KEY
	Before    Shown  `json:"before"`
	After     Shown  `json:"after"`
	HadBefore bool   `json:"hadBefore"`
	HasAfter  bool   `json:"hasAfter"`
	Where
}

// ListChanges says what the layer with a number did, nil where there is none
// that applies.
func ListChanges(ctx context.Context, env Env, layers Layers, number int) (*LayerChanges, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	names := layerNames(c)
	n := slices.IndexFunc(names, func(l LayerName) bool { return l.Number == number })
	if n < 0 {
		return nil, nil
	}
	h := newHistory(c.Tree)
	list := &LayerChanges{
		Profile: layers.Name.String(), Layer: names[n], Inserted: []InsertedRow{}, Writes: []LayerWrite{}, Skipped: []SkippedPatch{},
		Warnings: slices.Concat(c.Warnings, c.leftOut()),
	}
	for i, step := range c.Tree.Steps {
		switch {
		case step.Layer != n:
		case !step.Outcome.Applied():
			list.Skipped = append(list.Skipped, SkippedPatch{h.where(i), step.Skipped})
		case step.Outcome == compose.Inserted:
			list.inserted(h.layer(i), asInserted(step))
		default:
			list.written(h, i)
		}
	}
	return list, nil
}

func (l *LayerChanges) inserted(layer Where, rows []compose.Value) {
	for _, item := range rows {
		entry, _ := item.(*compose.Map)
		row := compose.Row{Entry: entry}
		where := layer
		where.Line, where.Column = entry.Position()
		l.Inserted = append(l.Inserted, InsertedRow{rowName(entry), row.Name(), where})
		for _, child := range row.Children() {
			l.inserted(layer, []compose.Value{child.Entry})
		}
	}
}

// written lists what a step changed.
func (l *LayerChanges) written(h *history, n int) {
	step := h.tree.Steps[n]
	masked := shown{}
	for _, c := range step.Changes {
		sides := diffSides{a: c.Old, b: c.New, shownA: masked.value(c.Old, c.Key), shownB: masked.value(c.New, c.Key), hasA: c.Had, hasB: true}
		sides.each([]string{c.Key}, func(path []string, k KeyChange) {
			if len(l.Writes) == maxTreeKeys {
				return
			}
			w := LayerWrite{Row: rowName(step.Target), Key: k.Key, Where: h.where(n, path...)}
			if k.Old != nil {
				w.Before, w.HadBefore = *k.Old, true
			}
			if k.New != nil {
				w.After, w.HasAfter = *k.New, true
			}
			l.Writes = append(l.Writes, w)
		})
	}
}
