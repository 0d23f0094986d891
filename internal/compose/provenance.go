package compose

import (
	"math"
)

// The reference finds out which layers changed a row by applying the layers
// 1..k for every k and comparing the JSON of each row with the one before.
// Here all layers are applied once, and what a layer overwrites is noted down
// for as long as it lasts:
//
//   - Only what older layers brought in (born) can have changed. It never gets
//     new places in the tree from a later layer, so what is in the tree when
//     the layer ends was there, in the same places, when it began.
//   - So a row changed if something in it that is still there has a key whose
//     JSON differs from the one noted down, or is a list that grew.
//
// From there upwards the links lead to the rows concerned. The cost of a layer
// is that of its own patches and of the values they replace.
type provenance struct {
	layer     int32 // number of the current layer, from 1
	label     string
	origins   []origin              // of each row of the root
	overwrote []overwritten         // by the current layer, in order
	first     map[field]int         // place in overwrote of the first time
	grown     map[*List]int         // old length of the lists it made longer
	growing   []*List               // the same lists, in order
	compared  map[[2]container]bool // results for pairs of values that aliases name
}

type origin struct {
	layer     string
	patchedBy []string
	patched   int32 // the last layer in patchedBy
}

// field is one key of one mapping.
type field struct {
	in  *Map
	key string
}

type overwritten struct {
	field
	old Value
	had bool
}

func newProvenance() provenance {
	return provenance{first: make(map[field]int), grown: make(map[*List]int)}
}

// container is a *Map or a *List.
type container interface{ at() *node }

// node is where a container hangs in a tree that is being composed.
type node struct {
	up     link
	more   []link // further places, through aliases
	born   int32  // the layer that brought it in
	marked int32  // the last layer that changed something below
	shared bool   // aliases name it
}

func (n *node) at() *node { return n }

// link leads from a container to one that holds it. place is that of the row
// where the parent is the root.
type link struct {
	parent container
	place  int32
}

func (n *node) hang(by link) {
	switch {
	case by.parent == nil:
	case n.up.parent == nil:
		n.up = by
	default:
		n.more = append(n.more, by)
	}
}

// set gives a key of a row that is in the tree a value that is new to it.
func (p *provenance) set(m *Map, key string, v Value) {
	if m.born < p.layer {
		f := field{m, key}
		if _, ok := p.first[f]; !ok {
			old, had := m.Get(key)
			p.first[f] = len(p.overwrote)
			p.overwrote = append(p.overwrote, overwritten{f, old, had})
		}
	}
	m.Set(key, v)
	if c, ok := v.(container); ok {
		c.at().hang(link{parent: m})
	}
}

// append adds rows to a list that is in the tree.
func (p *provenance) append(list *List, rows []Value) {
	if list.born < p.layer && list.born > 0 {
		if _, ok := p.grown[list]; !ok {
			p.grown[list] = len(list.Items)
			p.growing = append(p.growing, list)
		}
	}
	for i, row := range rows {
		if c, ok := row.(container); ok {
			c.at().hang(link{parent: list, place: int32(len(list.Items) + i)})
		}
	}
	list.Items = append(list.Items, rows...)
}

// end closes the current layer: rows it appended are its own, rows that it
// changed get its label.
func (a *applier) end(label string) {
	p := &a.provenance
	for _, o := range p.overwrote {
		if now, _ := o.in.Get(o.key); !o.had || !p.sameJSON(o.old, now) {
			p.mark(o.in, a.root)
		}
	}
	for _, list := range p.growing {
		if len(list.Items) > p.grown[list] {
			p.mark(list, a.root)
		}
	}
	for len(p.origins) < len(a.root.Items) {
		p.origins = append(p.origins, origin{layer: label, patched: p.layer})
	}
	p.overwrote, p.growing = p.overwrote[:0], p.growing[:0]
	clear(p.first)
	clear(p.grown)
	clear(p.compared)
}

// mark gives every row of the root that holds c the label of the current
// layer.
func (p *provenance) mark(c container, root *List) {
	n := c.at()
	if n.marked == p.layer {
		return
	}
	n.marked = p.layer
	p.markParent(n.up, c, root)
	for _, by := range n.more {
		p.markParent(by, c, root)
	}
}

func (p *provenance) markParent(by link, c container, root *List) {
	switch parent := by.parent.(type) {
	case *List:
		if parent != root {
			p.mark(parent, root)
		} else if o := &p.origins[by.place]; o.patched != p.layer {
			o.patched = p.layer
			o.patchedBy = append(o.patchedBy, p.label)
		}
	case *Map:
		// The mapping may hold something else by now.
		for _, pair := range parent.pairs {
			if pair.value == Value(c) {
				p.mark(parent, root)
				return
			}
		}
	}
}

// sameJSON says whether JSON.stringify gives the same for old, as it was when
// the layer began, and for now.
func (p *provenance) sameJSON(old, now Value) bool {
	switch o := old.(type) {
	case float64:
		n, ok := now.(float64)
		if isFinite(o) {
			return ok && o == n
		}
		return now == nil || ok && !isFinite(n)
	case nil:
		n, ok := now.(float64)
		return now == nil || ok && !isFinite(n)
	case *List:
		n, ok := now.(*List)
		return ok && p.compare(o, n, func() bool { return p.sameItems(o, n) })
	case *Map:
		n, ok := now.(*Map)
		return ok && p.compare(o, n, func() bool { return p.samePairs(o, n) })
	default:
		return old == now
	}
}

func isFinite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// compare is the result of f, kept where aliases name both values.
func (p *provenance) compare(old, now container, f func() bool) bool {
	if !old.at().shared || !now.at().shared {
		return f()
	}
	both := [2]container{old, now}
	result, ok := p.compared[both]
	if !ok {
		if p.compared == nil {
			p.compared = make(map[[2]container]bool)
		}
		p.compared[both] = true // so that values which hold themselves come to an end
		result = f()
		p.compared[both] = result
	}
	return result
}

func (p *provenance) sameItems(old, now *List) bool {
	length, ok := p.grown[old]
	if !ok {
		length = len(old.Items)
	}
	if length != len(now.Items) {
		return false
	}
	for i, item := range old.Items[:length] {
		if !p.sameJSON(item, now.Items[i]) {
			return false
		}
	}
	return true
}

func (p *provenance) samePairs(old, now *Map) bool {
	i := 0
	for _, pair := range old.pairs {
		was := pair.value
		if at, ok := p.first[field{old, pair.key}]; ok {
			if !p.overwrote[at].had {
				continue
			}
			was = p.overwrote[at].old
		}
		if i == len(now.pairs) || now.pairs[i].key != pair.key || !p.sameJSON(was, now.pairs[i].value) {
			return false
		}
		i++
	}
	return i == len(now.pairs)
}
