package action

import (
	"slices"
	"strconv"
	"sync"

	"dsh/internal/compose"
)

// Where is the place in a layer that something was written at.
type Where struct {
	Layer string `json:"layer"` // its label
	Kind  string `json:"kind"`
	// File is what messages call the text of the layer. Line and Column count
	// from 1, and are 0 where no text holds it.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// history is which patches brought the rows of a tree in and changed them.
type history struct {
	tree    *compose.Tree
	births  map[*compose.Map]birth
	touched map[*compose.Map][]int // steps that overrode the row or put rows into it
	texts   compose.Places
	removed map[*compose.Map]int           // the step that took it out with the config of its group
	states  func() map[*compose.Map]string // of rows that are not off
}

// birth is where a row came from: a step, and the keys that lead from its
// patch to the row.
type birth struct {
	step int
	path []string
}

func newHistory(tree *compose.Tree) *history {
	h := &history{
		tree:   tree,
		births: map[*compose.Map]birth{}, touched: map[*compose.Map][]int{}, removed: map[*compose.Map]int{},
		states: sync.OnceValue(func() map[*compose.Map]string { return rowStates(tree) }),
	}
	// Inserts may have put rows into groups of earlier patches, so that what is in
	// a group now need not have come with it.
	for i, step := range tree.Steps {
		for n, item := range step.Rows {
			if row, ok := item.(*compose.Map); ok && h.births[row].path == nil {
				h.births[row] = birth{i, []string{"insert", strconv.Itoa(n)}}
			}
		}
	}
	for i, step := range tree.Steps {
		if !step.Outcome.Applied() {
			continue
		}
		if step.Target != nil {
			h.touched[step.Target] = append(h.touched[step.Target], i)
		}
		for _, item := range step.Rows {
			if row, ok := item.(*compose.Map); ok && h.births[row].step == i {
				h.bornInside(row)
			}
		}
		for _, c := range step.Changes {
			if rows, ok := c.New.(*compose.List); ok && c.Key == "config" {
				h.born(i, []string{"config"}, rows.Items)
			}
			if rows, ok := c.Old.(*compose.List); ok && c.Key == "config" {
				h.gone(i, rows.Items)
			}
		}
	}
	return h
}

// born notes where rows came from. What may become a row counts as well: a
// list in a config is rows once its row is made a group.
func (h *history) born(step int, path []string, rows []compose.Value) {
	for i, item := range rows {
		row, ok := item.(*compose.Map)
		if _, known := h.births[row]; !ok || known {
			continue
		}
		h.births[row] = birth{step, append(slices.Clip(path), strconv.Itoa(i))}
		h.bornInside(row)
	}
}

// bornInside notes where the rows in a row came from: from where it came.
func (h *history) bornInside(row *compose.Map) {
	config, _ := row.Get("config")
	if list, ok := config.(*compose.List); ok {
		b := h.births[row]
		h.born(b.step, append(slices.Clip(b.path), "config"), list.Items)
	}
}

// gone notes which step took rows out.
func (h *history) gone(step int, rows []compose.Value) {
	for _, item := range rows {
		row, ok := item.(*compose.Map)
		if _, known := h.removed[row]; !ok || known {
			continue
		}
		h.removed[row] = step
		config, _ := row.Get("config")
		if list, ok := config.(*compose.List); ok {
			h.gone(step, list.Items)
		}
	}
}

// write is one key of a row that a patch wrote.
type write struct {
	step  int
	key   string
	path  []string // from the patch to the value
	value compose.Value
	old   compose.Value // what the key held before
	had   bool
}

// writes are the keys of a row that patches wrote, in order; those that the row
// came with are first.
func (h *history) writes(row *compose.Map) []write {
	var later []write
	first := map[string]write{} // the first change of each key
	for _, i := range h.touched[row] {
		for _, c := range h.tree.Steps[i].Changes {
			w := write{step: i, key: c.Key, path: []string{c.Key}, value: c.New, old: c.Old, had: c.Had}
			if _, known := first[c.Key]; !known {
				first[c.Key] = w
			}
			later = append(later, w)
		}
	}
	var all []write
	if b, ok := h.births[row]; ok {
		for key, v := range row.All() {
			if changed, ok := first[key]; ok {
				if !changed.had {
					continue
				}
				v = changed.old
			}
			all = append(all, write{step: b.step, key: key, path: append(slices.Clip(b.path), key), value: v})
		}
	}
	return append(all, later...)
}

// wrote is the last of writes to a key before the one at end.
func wrote(writes []write, key string, end int) (write, bool) {
	for _, w := range slices.Backward(writes[:end]) {
		if w.key == key {
			return w, true
		}
	}
	return write{}, false
}

// layer is the layer of a step, without a place in it.
func (h *history) layer(step int) Where {
	layer := h.tree.Layers[h.tree.Steps[step].Layer]
	where := Where{Layer: layer.Label, Kind: layer.Kind.String()}
	if src := h.tree.Steps[step].Patch.Source; src != nil {
		where.File = src.File
	}
	return where
}

// where is the place of the patch of a step, or of what is at the path in it.
func (h *history) where(step int, path ...string) Where {
	where := h.layer(step)
	patch := h.tree.Steps[step].Patch
	if patch.Line == 0 {
		return where
	}
	where.Line, where.Column = patch.Line, patch.Column
	if len(path) > 0 {
		full := append([]string{strconv.Itoa(patch.Entry)}, path...)
		if line, column, ok := h.texts.Find(patch.Source, full...); ok {
			where.Line, where.Column = line, column
		}
	}
	return where
}

// whereRow is where a row was written.
func (h *history) whereRow(row *compose.Map) (Where, bool) {
	b, ok := h.births[row]
	if !ok {
		return Where{}, false
	}
	where := h.layer(b.step)
	where.Line, where.Column = row.Position()
	return where, true
}

// changers are the layers that changed a row after it came, or put rows into
// it, each once and in order.
func (h *history) changers(row *compose.Map) []Where {
	changers := []Where{}
	seen := map[int]bool{}
	if b, ok := h.births[row]; ok {
		seen[h.tree.Steps[b.step].Layer] = true
	}
	for _, i := range h.touched[row] {
		if n := h.tree.Steps[i].Layer; !seen[n] && h.changed(i) {
			seen[n] = true
			changers = append(changers, h.where(i))
		}
	}
	return changers
}

// changed says whether a step made a difference to its target.
func (h *history) changed(step int) bool {
	s := h.tree.Steps[step]
	return s.Outcome == compose.Inserted && len(s.Rows) > 0 ||
		slices.ContainsFunc(s.Changes, func(c compose.Change) bool { return !c.Had || !compose.Equal(c.Old, c.New) })
}

// at is what is at a path in v.
func at(v compose.Value, path []string) (compose.Value, bool) {
	for _, key := range path {
		switch there := v.(type) {
		case *compose.Map:
			below, ok := there.Get(key)
			if !ok {
				return nil, false
			}
			v = below
		case *compose.List:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(there.Items) || strconv.Itoa(i) != key {
				return nil, false
			}
			v = there.Items[i]
		default:
			return nil, false
		}
	}
	return v, true
}
