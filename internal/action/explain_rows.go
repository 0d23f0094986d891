package action

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"dsh/internal/compose"
)

// RowList is the rows of a composed profile and the layers they come from.
type RowList struct {
	Profile  string       `json:"profile"`
	Layers   []LayerName  `json:"layers"` // lowest first
	Rows     []RowSummary `json:"rows"`
	Warnings []string     `json:"-"`
}

// LayerName is a layer in its place.
type LayerName struct {
	Number int    `json:"number"` // from 1, the lowest
	Kind   string `json:"kind"`
	Label  string `json:"label"`
}

// RowSummary is one row in short.
type RowSummary struct {
	ID     Shown  `json:"id"` // null for a row without one
	Path   string `json:"path"`
	Plugin string `json:"plugin"`
	// State is on, off, or decided at boot.
	State string `json:"state"`
	// Hidden says that patches do not find the row by its id.
	Hidden    bool         `json:"hidden"`
	From      *Where       `json:"from"` // null where a row is no mapping
	ChangedBy []Where      `json:"changedBy"`
	Children  []RowSummary `json:"children,omitempty"`
}

// ExplainRows lists the rows of a profile.
func ExplainRows(ctx context.Context, env Env, layers Layers) (*RowList, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	return &RowList{
		Profile:  layers.Name.String(),
		Layers:   layerNames(c),
		Rows:     newHistory(c.Tree).summaries(c.Tree.Rows, ""),
		Warnings: slices.Concat(c.Warnings, c.leftOut(), c.Notices),
	}, nil
}

func layerNames(c *Composed) []LayerName {
	numbers := c.layerNumbers().layers
	names := make([]LayerName, len(c.Tree.Layers))
	for i, layer := range c.Tree.Layers {
		names[i] = LayerName{numbers[i], layer.Kind.String(), layer.Label}
	}
	return names
}

func (h *history) summaries(rows []compose.Row, above string) []RowSummary {
	list := make([]RowSummary, len(rows))
	for i, row := range rows {
		list[i] = h.summary(row, above+"/"+strconv.Itoa(i))
	}
	return list
}

func (h *history) summary(row compose.Row, path string) RowSummary {
	s := RowSummary{
		ID: Shown{row.ID()}, Path: path, Plugin: row.Name(), State: h.state(row), ChangedBy: h.changers(row.Entry),
		Hidden:   compose.Truthy(row.ID()) && h.tree.Find(row.ID()) != row.Entry,
		Children: h.summaries(row.Children(), path+"/config"),
	}
	if where, ok := h.whereRow(row.Entry); ok {
		s.From = &where
	}
	return s
}

// The states of a row.
const (
	rowOn     = "on"
	rowOff    = "off"
	rowAtBoot = "decided at boot"
)

// state says whether a row will be mounted.
func (h *history) state(row compose.Row) string { return cmp.Or(h.states()[row.Entry], rowOff) }

// rowStates are the states of the rows that are not off whatever expressions
// say.
func rowStates(tree *compose.Tree) map[*compose.Map]string {
	states := map[*compose.Map]string{}
	for _, off := range []bool{false, true} {
		for row := range tree.Enabled(func(compose.Row, compose.Expr) bool { return off }) {
			states[row.Entry] = map[bool]string{false: rowAtBoot, true: rowOn}[off]
		}
	}
	return states
}

// places are the rows of a tree by id, those included that patches do not find.
type places struct {
	tree *compose.Tree
	byID map[string][]place
}

type place struct {
	row  compose.Row
	path string
}

func (h *history) places() places {
	p := places{h.tree, map[string][]place{}}
	p.add(h.tree.Rows, "")
	return p
}

func (p places) add(rows []compose.Row, above string) {
	for i, row := range rows {
		path := above + "/" + strconv.Itoa(i)
		if id := row.ID(); id != nil {
			text := compose.IDText(id)
			p.byID[text] = append(p.byID[text], place{row, path})
		}
		p.add(row.Children(), path+"/config")
	}
}

func (p places) find(id string) *compose.Map {
	if row := p.tree.FindText(id); row != nil {
		return row
	}
	if found := p.byID[id]; len(found) > 0 {
		return found[len(found)-1].row.Entry
	}
	return nil
}

// of is the rows that a target names, in the order of the tree. A row that is
// not in the tree any more has no path.
func (p places) of(target compose.Target) []place {
	found := p.byID[target.ID]
	if slices.ContainsFunc(found, func(p place) bool { return p.row.Entry == target.Row }) {
		return found
	}
	return append(slices.Clip(found), place{compose.Row{Entry: target.Row}, ""})
}

func (p places) ids() []string {
	ids := p.tree.IDs()
	for id := range p.byID {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// rowIDs are rows as people call them.
func rowIDs(rows []compose.Value) []string {
	names := make([]string, len(rows))
	for i, item := range rows {
		row, _ := item.(*compose.Map)
		names[i] = rowName(row)
	}
	return names
}

// rowName is the id of a row, or what stands for it where it has none.
func rowName(row *compose.Map) string {
	if id, _ := row.Get("id"); id != nil {
		return compose.IDText(id)
	}
	if name, _ := row.Get("name"); name != nil {
		return "(no id, " + compose.IDText(name) + ")"
	}
	return "(no id)"
}
