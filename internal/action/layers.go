package action

import (
	"context"
	"slices"
	"strconv"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/stack"
)

// LayerList is the stack of a profile as it would be composed.
type LayerList struct {
	Profile string      `json:"profile"`
	Dir     string      `json:"dir"`
	Rows    int         `json:"rows"` // in the tree, those in groups included
	Layers  []LayerInfo `json:"layers"`
	// Overridden are the rows that more than one layer wrote.
	Overridden []Overridden `json:"overridden"`
	// Conflicts are what layers do to each other that the order of layers does
	// not settle, or settles wrongly.
	Conflicts []check.Finding `json:"conflicts"`
	Warnings  []string        `json:"-"`
}

// LayerInfo is a layer, or what would be one, in its place.
type LayerInfo struct {
	Number  int      `json:"number,omitempty"` // from 1, the lowest; a bundle's is its place in the list, and one that is off has none
	Kind    string   `json:"kind"`
	Label   string   `json:"label"`
	Version string   `json:"version,omitempty"`
	Source  string   `json:"source"` // where it was found, "" if nowhere
	Files   []string `json:"files"`
	State   string   `json:"state"` // applied, broken, untrusted or disabled
	Reason  string   `json:"reason,omitempty"`
	Remedy  string   `json:"remedy,omitempty"` // a command or an edit
	// Inserts and Overrides are the rows that it brought in, those in groups
	// included, and the rows of layers below that it wrote to.
	Inserts   []string       `json:"inserts"`
	Overrides []string       `json:"overrides"`
	Skipped   []SkippedPatch `json:"skipped"`
}

// Overridden is a row and the numbers of the layers that wrote it, the one that
// wrote last behind the others.
type Overridden struct {
	Row    string `json:"row"`
	Path   string `json:"path"`
	Layers []int  `json:"layers"`
}

// ListLayers is the stack of a profile.
func ListLayers(ctx context.Context, env Env, layers Layers) (*LayerList, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	h := newHistory(c.Tree)
	list := &LayerList{
		Profile: layers.Name.String(), Dir: c.Profile.Dir, Overridden: []Overridden{}, Conflicts: []check.Finding{},
		Warnings: c.Warnings,
	}
	numbers := c.layerNumbers()
	infos := make([]*LayerInfo, len(c.Tree.Layers)) // of the layers that are applied
	list.Layers = make([]LayerInfo, len(c.Stack.Entries), len(c.Stack.Entries)+1)
	for i, e := range c.Stack.Entries {
		list.Layers[i] = layerInfo(env, c, e)
		list.Layers[i].Number = numbers.entries[i]
		if e.State == stack.Applied {
			infos[e.Layer] = &list.Layers[i]
		}
	}
	if n := len(infos); n > 0 && infos[n-1] == nil { // of --set, which is no entry
		layer := c.Tree.Layers[n-1]
		list.Layers = append(list.Layers, LayerInfo{
			Number: numbers.layers[n-1], Kind: layer.Kind.String(), Label: layer.Label, Source: "the command line", State: stack.Applied.String(),
			Files: []string{}, Inserts: []string{}, Overrides: []string{}, Skipped: []SkippedPatch{},
		})
		infos[n-1] = &list.Layers[len(list.Layers)-1]
	}
	h.fill(infos)
	list.overridden(h, numbers.layers, c.Tree.Rows, "")
	for _, f := range Findings(env, c) {
		if isConflict(f) {
			list.Conflicts = append(list.Conflicts, f)
		}
	}
	return list, nil
}

// isConflict says whether a finding is about two layers: rows that both insert,
// and patches that come before what they are for or show nowhere because of
// another.
func isConflict(f check.Finding) bool {
	switch f.Code {
	case check.BundleTwice, check.LayersOverlap:
		return true
	case check.DuplicateID, check.RepeatedID, check.PluginTwice, check.TargetMissing, check.DetachedRow:
		return slices.ContainsFunc(f.Related, func(r check.Related) bool { return r.Layer != f.Layer })
	default:
		return false
	}
}

// layerNumbers are the numbers of layers, from 1 for the lowest. What is listed
// and no layer has one as well, so that bundles have the numbers of their places
// in the list; what is switched off is not listed.
type layerNumbers struct {
	entries []int // of the stack's entries, 0 for none
	layers  []int // of the tree's layers
}

func (c *Composed) layerNumbers() layerNumbers {
	n := layerNumbers{make([]int, len(c.Stack.Entries)), make([]int, len(c.Tree.Layers))}
	last := 0
	for i, e := range c.Stack.Entries {
		if e.State == stack.Disabled {
			continue
		}
		last++
		if n.entries[i] = last; e.State == stack.Applied {
			n.layers[e.Layer] = last
		}
	}
	if top := len(n.layers) - 1; top >= 0 && n.layers[top] == 0 {
		n.layers[top] = last + 1 // --set is no entry
	}
	return n
}

// layerInfo is what is known of an entry of the stack whatever it does.
func layerInfo(env Env, c *Composed, e stack.Entry) LayerInfo {
	info := LayerInfo{
		Kind: e.Kind.String(), Label: e.Label, Source: e.Label, Files: append([]string{}, e.Files...), State: e.State.String(),
		Inserts: []string{}, Overrides: []string{}, Skipped: []SkippedPatch{},
	}
	if e.Kind == compose.BundleLayer {
		info.Source = ""
		if e.Bundle != nil {
			info.Version, info.Source = e.Bundle.Version, e.Bundle.Dir
		}
		if e.InBox {
			info.Source = env.Installation.Describe()
		}
	}
	if e.Err != nil {
		info.Reason, info.Remedy = e.Err.Error(), fault.Hint(e.Err)
	}
	var f check.Finding
	switch {
	case e.Kind == compose.BundleLayer && e.State == stack.Broken:
		f = c.brokenBundle(e)
	case e.State == stack.Disabled:
		f = c.disabledFinding(e)
	default:
		return info
	}
	if info.Remedy = f.Remedy; e.Err != nil {
		info.Reason = f.Message
	}
	return info
}

// fill says what the layers did.
func (h *history) fill(infos []*LayerInfo) {
	for i, step := range h.tree.Steps {
		info := infos[step.Layer]
		switch {
		case !step.Outcome.Applied():
			info.Skipped = append(info.Skipped, SkippedPatch{h.where(i), step.Skipped})
		case step.Outcome == compose.Inserted:
			info.Inserts = append(info.Inserts, allRows(asInserted(step))...)
		case h.bornIn(step.Target) != step.Layer:
			if name := rowName(step.Target); !slices.Contains(info.Overrides, name) {
				info.Overrides = append(info.Overrides, name)
			}
		}
	}
}

// asInserted is the rows of an insert as its layer has them: in the tree, later
// layers may have put rows into groups among them.
func asInserted(step compose.Step) []compose.Value {
	insert, _ := step.Patch.Map.Get("insert")
	if list, ok := insert.(*compose.List); ok {
		return list.Items
	}
	return step.Rows
}

// bornIn is the index of the layer that brought a row in, -1 if none did.
func (h *history) bornIn(row *compose.Map) int {
	b, ok := h.births[row]
	if !ok {
		return -1
	}
	return h.tree.Steps[b.step].Layer
}

// allRows is the names of rows and of the rows inside them.
func allRows(rows []compose.Value) []string {
	var names []string
	for _, item := range rows {
		row, _ := item.(*compose.Map)
		names = append(names, rowName(row))
		for _, child := range (compose.Row{Entry: row}).Children() {
			names = append(names, allRows([]compose.Value{child.Entry})...)
		}
	}
	return names
}

// overridden collects the rows that several layers wrote, and counts all rows.
func (l *LayerList) overridden(h *history, numberOf []int, rows []compose.Row, above string) {
	for i, row := range rows {
		l.Rows++
		path := above + "/" + strconv.Itoa(i)
		var numbers []int
		if n := h.bornIn(row.Entry); n >= 0 {
			numbers = append(numbers, numberOf[n])
		}
		for _, s := range h.touched[row.Entry] {
			step := h.tree.Steps[s]
			if n := numberOf[step.Layer]; step.Outcome == compose.Overrode && !slices.Contains(numbers, n) {
				numbers = append(numbers, n)
			}
		}
		if len(numbers) > 1 {
			l.Overridden = append(l.Overridden, Overridden{rowName(row.Entry), path, numbers})
		}
		l.overridden(h, numberOf, row.Children(), path+"/config")
	}
}
