package compose

import "strings"

// Apply composes layers, in order, over an empty root. A patch that matches
// nothing is a warning and is skipped. The layers are not changed, and the
// tree shares nothing with them. Relative paths in configs become absolute,
// where rules, which may be nil, say that there are paths.
//
// This is the algorithm of the reference loader in all its corners. Rows are
// found by id, compared by type and value; of several rows with one id the
// one indexed last. The ids of inserted rows are indexed, those of rows that
// an override brings into a group are not; rows that an override removes from
// a group stay indexed, and changing them shows nowhere. Rows that a layer
// names by aliases are one row in several places.
func Apply(layers []Layer, rules PathRules) *Tree {
	patches, rows := sizes(layers)
	a := applier{
		rules:      rules,
		root:       &List{Items: make([]Value, 0, rows)},
		index:      make(map[Value]*Map, rows),
		steps:      make([]Step, 0, patches),
		provenance: newProvenance(),
	}
	for n, layer := range layers {
		a.begin(int32(n+1), layer.Label)
		for i := range layer.Patches {
			patch := &layer.Patches[i]
			a.step = Step{Layer: n, Patch: patch}
			a.patch(a.copyPatch(patch.Map))
			a.steps = append(a.steps, a.step)
		}
		a.end(layer.Label)
	}
	t := a.tree()
	t.Layers, t.Steps, t.index = layers, a.steps, a.index
	return t
}

// sizes is how many patches there are, and about how many rows they insert: to
// find room for these bit by bit takes a third of the time.
func sizes(layers []Layer) (patches, rows int) {
	for _, layer := range layers {
		patches += len(layer.Patches)
		for _, patch := range layer.Patches {
			insert, _ := patch.Map.Get("insert")
			rows += len(itemsOf(insert))
		}
	}
	return patches, rows
}

type applier struct {
	rules    PathRules
	root     *List
	index    map[Value]*Map
	warnings []Warning
	steps    []Step
	step     Step // of the current patch
	slabs    slabs
	copies   map[container]container // of what aliases of the current layer name
	provenance
}

func (a *applier) begin(layer int32, label string) {
	a.layer, a.label = layer, label
	a.copies = nil
}

// patch applies one patch, which belongs to the tree from now on.
func (a *applier) patch(patch *Map) {
	id, _ := patch.Get("id")
	if insert, _ := patch.Get("insert"); Truthy(insert) {
		a.insert(id, insert)
		return
	}
	if !Truthy(id) {
		a.skip(NoID, "patch: id is required for non-insert patches")
		return
	}
	target := a.find(id)
	if target == nil {
		a.skip(NotFound, "patch: entry ", id, " not found")
		return
	}
	name, _ := patch.Get("name")
	if have, named := target.Get("name"); Truthy(name) && !same(name, have) {
		if named {
			a.skip(NameMismatch, "patch: name mismatch for ", id, " (expected ", have, ", got ", name, "), skipping")
		} else {
			a.skip(NameMismatch, "patch: name mismatch for ", id, " (expected undefined, got ", name, "), skipping")
		}
		return
	}
	config, _ := patch.Get("config")
	if !a.paths(func(r *resolver) { config = r.config(target, config) }) {
		return
	}
	a.step.Outcome, a.step.Target = Overrode, target
	for key, v := range patch.All() {
		switch key {
		case "id", "insert", "name":
		case "config":
			a.override(target, key, config)
		case "__proto__":
			// In JavaScript this assignment changes the prototype, unless the
			// key is there already.
			if _, ok := target.Get(key); ok {
				a.override(target, key, v)
			}
		default:
			a.override(target, key, v)
		}
	}
}

// override gives a key of a row a value.
func (a *applier) override(target *Map, key string, v Value) {
	old, had := target.Get(key)
	a.step.Changes = append(a.step.Changes, Change{Key: key, Old: old, New: v, Had: had})
	a.set(target, key, v)
}

// paths makes the paths of the current patch absolute. If one leaves the
// package that the patch is from, the patch is skipped.
func (a *applier) paths(resolve func(*resolver)) bool {
	if a.rules == nil || a.step.Patch.Source == nil {
		return true
	}
	r := resolver{src: a.step.Patch.Source, rules: a.rules, born: a.layer}
	resolve(&r)
	if r.escape == "" {
		return true
	}
	a.skip(PathEscapes, "patch: path ", r.escape, " leaves the package")
	return false
}

func (a *applier) insert(id, insert Value) {
	list, target := a.root, (*Map)(nil)
	rows := insertedRows(insert)
	if Truthy(id) {
		target = a.find(id)
		if target == nil {
			a.skip(NotFound, "patch insert: entry ", id, " not found")
			return
		}
		if group, _ := target.Get("group"); !Truthy(group) {
			a.skip(NotAGroup, "patch insert: entry ", id, " is not a group")
			return
		}
	}
	if !a.paths(func(r *resolver) { r.inserted(target, rows) }) {
		return
	}
	if target != nil {
		config, _ := target.Get("config")
		if list, _ = config.(*List); list == nil {
			list = &List{node: node{born: a.layer}}
			a.set(target, "config", list)
		}
	}
	a.append(list, rows)
	a.indexRows(rows)
	a.step.Outcome, a.step.Target, a.step.Rows = Inserted, target, rows
}

// insertedRows is what an insert adds. Of a text the reference inserts every
// character.
func insertedRows(insert Value) []Value {
	switch insert := insert.(type) {
	case *List:
		return insert.Items
	case string:
		var rows []Value
		for _, char := range insert {
			rows = append(rows, string(char))
		}
		return rows
	default:
		return nil
	}
}

// find is the row with the given id, or nil. An expression or a collection as
// an id is only ever equal to itself.
func (a *applier) find(id Value) *Map {
	if _, ok := id.(Expr); ok {
		return nil
	}
	return a.index[id]
}

// same is === of JavaScript, for values of which at most aliases are the same
// object.
func same(a, b Value) bool {
	if _, ok := a.(Expr); ok {
		return false
	}
	return a == b
}

// indexRows makes rows and the rows of groups among them findable.
func (a *applier) indexRows(rows []Value) {
	// Of rows with the same id the last one counts, also where aliases show
	// a row many times. So go backwards, and see each of these only once.
	w := indexWalk{}
	w.rows(rows)
	for i := len(w.found) - 1; i >= 0; i-- {
		row := w.found[i]
		if id, _ := row.Get("id"); Truthy(id) {
			if _, ok := id.(Expr); !ok {
				a.index[id] = row
			}
		}
	}
}

type indexWalk struct {
	found []*Map // last row first, groups behind their rows
	seenWalk
}

func (w *indexWalk) rows(rows []Value) {
	for i := len(rows) - 1; i >= 0; i-- {
		row, ok := rows[i].(*Map)
		if !ok || w.again(row) {
			continue
		}
		group, _ := row.Get("group")
		config, _ := row.Get("config")
		if list, ok := config.(*List); ok && Truthy(group) && !w.again(list) {
			w.rows(list.Items)
		}
		w.found = append(w.found, row)
	}
}

// seenWalk is a way through values that passes what aliases name only once.
type seenWalk struct {
	seen map[container]bool
}

func (w *seenWalk) again(c container) bool {
	if !c.at().shared {
		return false
	}
	if w.seen[c] {
		return true
	}
	if w.seen == nil {
		w.seen = make(map[container]bool)
	}
	w.seen[c] = true
	return false
}

// copyPatch copies a patch for the tree. What aliases of the layer name is
// copied once.
func (a *applier) copyPatch(patch *Map) *Map {
	if patch.Len() == 0 {
		return nil
	}
	if patch.shared {
		// It may be applied again, or be a row as well.
		m := a.copy(patch, link{}).(*Map)
		for key, v := range m.All() {
			share(v)
			if list, ok := v.(*List); ok && key == "insert" {
				shareItems(list)
			}
		}
		return m
	}
	m := a.newCopy(patch)
	for i, p := range patch.pairs {
		v := p.value
		if list, ok := v.(*List); ok && p.key == "insert" {
			v = a.copyInsert(list)
		} else {
			v = a.copy(v, link{})
		}
		m.pairs[i] = pair{p.key, v}
	}
	return m
}

// copyInsert copies the list of rows that a patch inserts. Unless aliases name
// it, the list is not part of the tree, only what it holds.
func (a *applier) copyInsert(list *List) *List {
	if !list.shared {
		return a.copyList(list, false)
	}
	c := a.copy(list, link{}).(*List)
	shareItems(c)
	return c
}

func shareItems(list *List) {
	for _, item := range list.Items {
		share(item)
	}
}

// share notes that v hangs in several places, as if aliases named it.
func share(v Value) {
	if c, ok := v.(container); ok {
		c.at().shared = true
	}
}

// copy copies v for the place that by describes.
func (a *applier) copy(v Value, by link) Value {
	switch v := v.(type) {
	case *Map:
		done, ok := a.copied(v)
		if !ok {
			m := a.newCopy(v)
			for i, p := range v.pairs {
				m.pairs[i] = pair{p.key, a.copy(p.value, link{parent: m})}
			}
			done = m
		}
		done.at().hang(by)
		return done
	case *List:
		done, ok := a.copied(v)
		if !ok {
			done = a.copyList(v, true)
		}
		done.at().hang(by)
		return done
	default:
		return v
	}
}

// copyList copies a list. linked says that what it holds hangs in the copy.
func (a *applier) copyList(list *List, linked bool) *List {
	c := one(&a.slabs.lists)
	*c = List{Items: some(&a.slabs.items, len(list.Items)), node: node{born: a.layer, shared: list.shared}}
	a.remember(list, c)
	by := link{}
	if linked {
		by.parent = c
	}
	for i, item := range list.Items {
		c.Items[i] = a.copy(item, by)
	}
	return c
}

// slabs is memory for copies. A tree has many small mappings and lists that live
// as long as it does; to make them in rows of a hundred spares the garbage
// collector most of its work, which would otherwise grow faster than the tree.
type slabs struct {
	maps  []Map
	lists []List
	pairs []pair
	items []Value
}

// slab is how many values are made at once.
const slab = 128

// one is the next value of a slab.
func one[T any](s *[]T) *T { return &some(s, 1)[0] }

// some is the next n values of a slab. What is appended to them goes elsewhere.
func some[T any](s *[]T, n int) []T {
	if n > slab/4 {
		return make([]T, n)
	}
	if len(*s) < n {
		*s = make([]T, slab)
	}
	values := (*s)[:n:n]
	*s = (*s)[n:]
	return values
}

// newCopy is a copy of m whose values are still missing.
func (a *applier) newCopy(m *Map) *Map {
	c := one(&a.slabs.maps)
	*c = Map{
		pairs: some(&a.slabs.pairs, len(m.pairs)), indices: m.indices, line: m.line, column: m.column,
		node: node{born: a.layer, shared: m.shared},
	}
	a.remember(m, c)
	if m.lookup != nil {
		copy(c.pairs, m.pairs)
		c.buildLookup()
	}
	return c
}

func (a *applier) copied(c container) (container, bool) {
	if !c.at().shared {
		return nil, false
	}
	done, ok := a.copies[c]
	return done, ok
}

func (a *applier) remember(original, c container) {
	if !original.at().shared {
		return
	}
	if a.copies == nil {
		a.copies = make(map[container]container)
	}
	a.copies[original] = c
}

// skip skips the current patch, with a warning of parts: texts at even places,
// and between them values that are shown as JSON.
func (a *applier) skip(why Outcome, parts ...Value) {
	var text strings.Builder
	for i, part := range parts {
		if i%2 == 0 {
			text.WriteString(part.(string))
		} else {
			text.WriteString(Show(part))
		}
	}
	a.step.Outcome, a.step.Skipped = why, text.String()
	a.warnings = append(a.warnings, Warning{Layer: a.label, Text: text.String()})
}
