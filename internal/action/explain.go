package action

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dsh/internal/check"
	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Explanation is where one row, or one key of it, has its value from.
type Explanation struct {
	Profile string       `json:"profile"`
	Target  string       `json:"target"`
	Key     string       `json:"key,omitempty"` // that was asked for, as in config.env.KEY
	Layers  []LayerName  `json:"layers"`        // lowest first
	Rows    []RowHistory `json:"rows"`          // all rows with the id
	// Skipped are the patches that wanted the row and did not get it.
	Skipped  []SkippedPatch `json:"skipped"`
	Warnings []string       `json:"-"`
}

// RowHistory is what happened to one row, as far as it was asked for.
type RowHistory struct {
	RowSummary
	// Removed is the patch that took the row out of the tree with the config of
	// its group; null for a row that is there.
	Removed *Where     `json:"removed"`
	Writes  []KeyWrite `json:"writes"` // in order
	Inserts []RowsPut  `json:"inserts,omitempty"`
	Final   []KeyValue `json:"final"`
	// Near is a key that is there and may have been meant, where nothing is at
	// the path that was asked for.
	Near        string           `json:"near,omitempty"`
	Expressions []ExpressionInfo `json:"expressions"`
}

// KeyWrite is a key that a layer wrote.
type KeyWrite struct {
	Where
	Inserted bool   `json:"inserted"` // with the row
	Key      string `json:"key"`      // as in config.env.KEY
	Value    Shown  `json:"value"`
	// Absent says that the layer wrote what holds the key, and left it out.
	Absent bool      `json:"absent"`
	Same   bool      `json:"same"` // as the value below
	Lost   []LostKey `json:"lost,omitempty"`
	// Rows are the rows that a group got, in place of a value.
	Rows []string `json:"rows,omitempty"`
}

// LostKey is a key of the layers below that the replacement of a whole value
// threw away.
type LostKey struct {
	Key   string `json:"key"`
	Value Shown  `json:"value"`
	From  Where  `json:"from"`
	// Again says that it is there in the end, since a later layer wrote it.
	Again bool `json:"again"`
}

// RowsPut is rows that a layer put into a group.
type RowsPut struct {
	Where
	Rows []string `json:"rows"`
}

// KeyValue is a key in the end, and the layer that wrote it last.
type KeyValue struct {
	Key   string   `json:"key"`
	Value Shown    `json:"value"`
	From  *Where   `json:"from"` // null where no layer gives a value
	Rows  []string `json:"rows,omitempty"`
}

// SkippedPatch is a patch that matched nothing.
type SkippedPatch struct {
	Where
	Why string `json:"why"`
}

// Explain says where a row, or what is at ROW.KEY or ROW:KEY, has its value
// from.
func Explain(ctx context.Context, env Env, layers Layers, text string, showSecrets bool) (*Explanation, error) {
	c, err := look(ctx, env, layers, true)
	if err != nil {
		return nil, err
	}
	h := newHistory(c.Tree)
	places := h.places()
	target, err := compose.ParseTarget(text, places.find)
	if err != nil {
		return nil, err
	}
	e := &explainer{history: h, env: env, shown: shown{showSecrets}}
	skipped := h.skipped(target.ID)
	if target.Row == nil {
		return nil, c.unknownRow(target.ID, places.ids(), skipped)
	}
	if target.RowKey != "" {
		e.path = append([]string{target.RowKey}, target.Path...)
	} else if len(target.Path) > 0 {
		e.path = append([]string{"config"}, target.Path...)
	}
	x := &Explanation{
		Profile: layers.Name.String(), Target: target.String(), Key: compose.PathText(e.path), Layers: layerNames(c),
		Skipped: skipped, Warnings: slices.Concat(c.Warnings, c.leftOut()),
	}
	for _, p := range places.of(target) {
		if p.path == "" && !fits(p.row.Entry, new(int)) {
			return nil, fault.Errorf(fault.Composition, "row %s is not in the tree: written out with all of its aliases it is too large", target.ID)
		}
		x.Rows = append(x.Rows, e.row(p.row, p.path))
	}
	return x, nil
}

// unknownRow is that no layer inserts a row: what was left out, which patches
// wanted the row, and what may have been meant.
func (c *Composed) unknownRow(id string, ids []string, skipped []SkippedPatch) error {
	var b strings.Builder
	fmt.Fprintf(&b, "there is no row %q", id)
	bundle := c.disabledBundle(id)
	if bundle != "" {
		fmt.Fprintf(&b, ": it is of %s, which is switched off", bundle)
	}
	for _, s := range skipped {
		fmt.Fprintf(&b, "\n  the %s patch at %s wanted it", s.Kind, s.Place())
	}
	for _, w := range slices.Concat(c.Warnings, c.leftOut()) {
		fmt.Fprintf(&b, "\n  %s", w)
	}
	err := fault.Errorf(fault.Composition, "%s", b.String())
	if bundle != "" {
		return fault.WithHint(err, "%s", c.configCommand("enable", bundle))
	}
	if name := c.bundleCalled(id); name != "" {
		return fault.WithHint(err, "%s is a bundle, and %s tells what it does", name, c.configCommand("layers"))
	}
	if meant := compose.Closest(id, ids); meant != "" {
		return fault.WithHint(err, "did you mean %s?", meant)
	}
	return fault.WithHint(err, "%s lists the rows", c.configCommand("explain"))
}

// bundleCalled is the bundle of the profile that a word names, whatever its
// case.
func (c *Composed) bundleCalled(word string) string {
	for _, name := range bundleNames(c.Profile.Manifest) {
		if strings.EqualFold(name, word) {
			return name
		}
	}
	return ""
}

// Place is file:line:column, as far as it is known.
func (w Where) Place() string {
	place := w.File
	if w.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", place, w.Line, w.Column)
	}
	return place
}

// skipped is the patches for a row that were skipped.
func (h *history) skipped(id string) []SkippedPatch {
	skipped := []SkippedPatch{}
	for i, step := range h.tree.Steps {
		wanted, _ := step.Patch.Map.Get("id")
		if !step.Outcome.Applied() && wanted != nil && compose.IDText(wanted) == id {
			skipped = append(skipped, SkippedPatch{h.where(i), step.Skipped})
		}
	}
	return skipped
}

// explainer explains rows.
type explainer struct {
	*history
	env Env
	shown
	path []string // what is asked for, from the row down; nil is all
}

func (e *explainer) row(row compose.Row, path string) RowHistory {
	r := RowHistory{RowSummary: e.summary(row, path), Writes: []KeyWrite{}, Final: []KeyValue{}, Expressions: []ExpressionInfo{}}
	if step, ok := e.removed[row.Entry]; ok && path == "" {
		where := e.where(step, "config")
		r.Removed = &where
	}
	group, _ := row.Entry.Get("group")
	all := e.writes(row.Entry)
	for i, w := range all {
		if !e.asksFor(w.key) {
			continue
		}
		below, had := wrote(all, w.key, i)
		r.Writes = append(r.Writes, e.write(row.Entry, w, below, had, compose.Truthy(group)))
	}
	if !slices.ContainsFunc(r.Writes, func(k KeyWrite) bool { return !k.Absent }) {
		r.Writes = []KeyWrite{} // nobody ever wrote it
	}
	if len(e.path) == 0 {
		for _, i := range e.touched[row.Entry] {
			if step := e.tree.Steps[i]; step.Outcome == compose.Inserted {
				r.Inserts = append(r.Inserts, RowsPut{e.where(i), rowIDs(asInserted(step))})
			}
		}
	}
	e.final(row, all, &r)
	return r
}

// asksFor says whether a key of the row is to be explained. The id is the row's
// name, and no layer can change it.
func (e *explainer) asksFor(key string) bool {
	if len(e.path) > 0 {
		return key == e.path[0]
	}
	return key != "id"
}

// write is one write as it is shown.
func (e *explainer) write(row *compose.Map, w, below write, had, group bool) KeyWrite {
	k := KeyWrite{Where: e.where(w.step, w.path...), Inserted: e.tree.Steps[w.step].Outcome == compose.Inserted, Key: w.key}
	if rows, ok := e.asWritten(w).(*compose.List); ok && group && w.key == "config" && len(e.path) <= 1 {
		k.Rows = rowIDs(rows.Items)
		return k
	}
	rest := e.path[min(1, len(e.path)):]
	k.Key = compose.PathText(append([]string{w.key}, rest...))
	value, there := at(w.value, rest)
	old, hadKey := at(below.value, rest)
	if k.Absent = !there; there {
		k.Where = e.where(w.step, append(slices.Clip(w.path), rest...)...)
		k.Value.V, _ = at(e.value(w.value, w.key), rest)
	}
	k.Same = had && there == hadKey && compose.Equal(value, old)
	if had && hadKey {
		k.Lost = e.lost(row, w, below, rest, old, value, there)
	}
	return k
}

// asWritten is the value of a write as the layer has it.
func (e *explainer) asWritten(w write) compose.Value {
	v, _ := at(e.tree.Steps[w.step].Patch.Map, w.path)
	return v
}

// lost is what a write threw away of the part of the value that is asked for.
func (e *explainer) lost(row *compose.Map, w, below write, rest []string, old, value compose.Value, there bool) []LostKey {
	paths := [][]string{rest}
	if there {
		paths = check.LostKeys(old, value)
		for i := range paths {
			paths[i] = slices.Concat(rest, paths[i])
		}
	}
	var lost []LostKey
	was := e.value(below.value, w.key)
	now, _ := row.Get(w.key)
	for _, path := range paths {
		v, _ := at(was, path)
		raw, _ := at(below.value, path)
		lost = append(lost, LostKey{
			Key: compose.PathText(append([]string{w.key}, path...)), Value: Shown{v},
			From: e.where(below.step, append(slices.Clip(below.path), path...)...), Again: thereAgain(now, path, raw),
		})
	}
	return lost
}

// thereAgain says whether a key is in a value, or an item in the list that it was in.
func thereAgain(now compose.Value, path []string, lost compose.Value) bool {
	if len(path) > 0 {
		holder, _ := at(now, path[:len(path)-1])
		if list, ok := holder.(*compose.List); ok {
			return slices.ContainsFunc(list.Items, func(item compose.Value) bool { return compose.Equal(item, lost) })
		}
	}
	_, ok := at(now, path)
	return ok
}

// final is what is there in the end.
func (e *explainer) final(row compose.Row, all []write, r *RowHistory) {
	children := row.Children()
	for key, v := range row.Entry.All() {
		if !e.asksFor(key) {
			continue
		}
		if key == "config" && len(children) > 0 && len(e.path) <= 1 {
			kv := KeyValue{Key: key}
			for _, child := range children {
				kv.Rows = append(kv.Rows, rowName(child.Entry))
			}
			kv.From = e.winner(all, key, nil)
			r.Final = append(r.Final, kv)
			continue
		}
		rest := e.path[min(1, len(e.path)):]
		if _, ok := at(v, rest); !ok {
			r.Near = near(v, key, rest)
			continue
		}
		value, _ := at(e.value(v, key), rest)
		r.Final = append(r.Final, KeyValue{
			Key: compose.PathText(append([]string{key}, rest...)), Value: Shown{value}, From: e.winner(all, key, rest),
		})
		e.expressions(v, append([]string{key}, rest...), rest, key, r)
	}
	if len(e.path) == 1 && len(r.Final) == 0 {
		r.Near = near(row.Entry, "", e.path)
		if meant := compose.Closest(e.path[0], loaderKeys); r.Near == "" {
			r.Near = meant
		}
	}
}

// loaderKeys are the keys of rows, besides id and name, that mean something.
var loaderKeys = []string{"config", "disabled", "group", "inject", "intercept", "isolate"}

// winner is where the value of a key was written last.
func (e *explainer) winner(all []write, key string, rest []string) *Where {
	w, ok := wrote(all, key, len(all))
	if !ok {
		return nil
	}
	where := e.where(w.step, append(slices.Clip(w.path), rest...)...)
	return &where
}

// near is a path that is there and may have been meant by one below key that is
// not.
func near(v compose.Value, key string, rest []string) string {
	path := []string{key}
	if key == "" {
		path = nil
	}
	for _, step := range rest {
		below, ok := at(v, []string{step})
		if !ok {
			m, _ := v.(*compose.Map)
			var keys []string
			for k := range m.All() {
				keys = append(keys, k)
			}
			if meant := compose.Closest(step, keys); meant != "" {
				return compose.PathText(append(path, meant))
			}
			return ""
		}
		v, path = below, append(path, step)
	}
	return ""
}

// maxShownNodes is how many values a row that is not in the tree may have. The
// tree has a limit of its own.
const maxShownNodes = 1_000_000

// fits says whether v, which may hold itself, can be written out. nodes is how
// many values there were before.
func fits(v compose.Value, nodes *int) bool {
	if *nodes++; *nodes > maxShownNodes {
		return false
	}
	switch v := v.(type) {
	case *compose.Map:
		for _, item := range v.All() {
			if !fits(item, nodes) {
				return false
			}
		}
	case *compose.List:
		for _, item := range v.Items {
			if !fits(item, nodes) {
				return false
			}
		}
	}
	return true
}
