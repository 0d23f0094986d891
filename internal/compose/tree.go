package compose

import (
	"bytes"
	"fmt"
	"iter"
	"strings"
)

// Tree is what layers compose to.
type Tree struct {
	Rows     []Row
	LeftOut  []Row // rows at the top that are too large to be written out
	Warnings []Warning
	Layers   []Layer // what was composed
	Steps    []Step  // what each patch did, in order
	index    map[Value]*Map
}

// Row is a row of the tree and where it comes from.
type Row struct {
	Entry     *Map     // nil for a row that is no mapping
	Origin    string   // label of the layer that inserted it
	PatchedBy []string // labels of the later layers that changed it or a row in it, in order
	value     Value
}

// Warning is a patch that was skipped.
type Warning struct {
	Layer string // label of the layer
	Text  string
}

// String is the warning as the reference launcher shows it.
func (w Warning) String() string { return fmt.Sprintf("[%s] %s", w.Layer, w.Text) }

// ID is the id of the row, nil if it has none.
func (r Row) ID() Value {
	id, _ := r.Entry.Get("id")
	return id
}

// Name is the name of the row's plugin, "" if it is missing or no text.
func (r Row) Name() string {
	name, _ := r.Entry.Get("name")
	text, _ := name.(string)
	return text
}

// Config is the row's configuration, nil if it has none.
func (r Row) Config() Value {
	config, _ := r.Entry.Get("config")
	return config
}

// Disabled says whether the row is switched off. Where an expression decides
// that when the row is mounted, it is returned as well.
func (r Row) Disabled() (bool, *Expr) {
	disabled, _ := r.Entry.Get("disabled")
	if expr, ok := disabled.(Expr); ok {
		return false, &expr
	}
	return Truthy(disabled), nil
}

// Children is the rows inside the row, which has them when `group` is set and
// its config is a list. Their origin is that of the row.
func (r Row) Children() []Row {
	group, _ := r.Entry.Get("group")
	list, ok := r.Config().(*List)
	if !ok || !Truthy(group) {
		return nil
	}
	return r.rows(list)
}

// Mounted is the rows that are mounted inside the row: its [Row.Children], and
// the config of the plugin cordis:group also where nothing marks its row as a
// group.
func (r Row) Mounted() []Row {
	list, ok := childRows(r.Entry)
	if !ok {
		return nil
	}
	return r.rows(list)
}

func (r Row) rows(list *List) []Row {
	rows := make([]Row, len(list.Items))
	for i, item := range list.Items {
		entry, _ := item.(*Map)
		rows[i] = Row{entry, r.Origin, r.PatchedBy, item}
	}
	return rows
}

// All goes through all rows, each before the rows inside it.
func (t *Tree) All() iter.Seq[Row] {
	return func(yield func(Row) bool) { eachRow(t.Rows, Row.Children, yield) }
}

// Mounted goes through all rows that are mounted, each before those inside it.
func (t *Tree) Mounted() iter.Seq[Row] {
	return func(yield func(Row) bool) { eachRow(t.Rows, Row.Mounted, yield) }
}

// Enabled goes through the rows that run, each before those inside it. off
// answers the expression of a row's `disabled`. What is disabled is off, and so
// is all that is in it; but a row with a truthy `group` runs all the same,
// unless what it is in does not, and only hands its `disabled` on.
func (t *Tree) Enabled(off func(Row, Expr) bool) iter.Seq[Row] {
	return func(yield func(Row) bool) { enabledRows(t.Rows, false, off, yield) }
}

// enabledRows goes through rows; disabled says that some group around them is.
func enabledRows(rows []Row, disabled bool, off func(Row, Expr) bool, yield func(Row) bool) bool {
	for _, row := range rows {
		group, _ := row.Entry.Get("group")
		own, expr := row.Disabled()
		own = own || expr != nil && off(row, *expr)
		if (disabled || own) && !Truthy(group) {
			continue
		}
		if !yield(row) || !enabledRows(row.Mounted(), disabled || own, off, yield) {
			return false
		}
	}
	return true
}

func eachRow(rows []Row, inside func(Row) []Row, yield func(Row) bool) bool {
	for _, row := range rows {
		if !yield(row) || !eachRow(inside(row), inside, yield) {
			return false
		}
	}
	return true
}

// Dump is the tree as a YAML document, byte for byte as the reference
// launcher prints it: each run of rows of the same layers is headed by a
// comment that names these.
func (t *Tree) Dump() []byte {
	var e emitter
	var current, label []byte
	for i, row := range t.Rows {
		label = row.appendLabel(label[:0])
		if i == 0 || !bytes.Equal(label, current) {
			e.closeRun()
			current = append(current[:0], label...)
			e.out = append(e.out, "# == "...)
			e.out = append(e.out, label...)
		}
		e.out = append(e.out, "\n- "...)
		e.node(row.value, 1, true)
	}
	e.out = bytes.TrimRightFunc(e.out, isJSSpace)
	return append(e.out, '\n')
}

// closeRun ends a run of rows. The reference trims it, which also takes line
// breaks that belong to a scalar at its end.
func (e *emitter) closeRun() {
	if len(e.out) > 0 {
		e.out = append(bytes.TrimRightFunc(e.out, isJSSpace), '\n')
	}
}

// isJSSpace says whether JavaScript's trim removes c.
func isJSSpace(c rune) bool {
	return strings.ContainsRune("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff", c) ||
		c >= 0x2000 && c <= 0x200A
}

func (r Row) appendLabel(dst []byte) []byte {
	dst = append(dst, r.Origin...)
	for i, layer := range r.PatchedBy {
		if i == 0 {
			dst = append(dst, ", patched by "...)
		} else {
			dst = append(dst, ", "...)
		}
		dst = append(dst, layer...)
	}
	return dst
}

// maxTree is how many bytes a tree may take when it is written out. Only
// aliases, or groups nested in thousands of groups, make one so large.
const maxTree = 128 << 20

// tree is the result. Rows that cannot be written out are not part of it.
func (a *applier) tree() *Tree {
	t := &Tree{Rows: make([]Row, 0, len(a.root.Items)), Warnings: a.warnings}
	m := measure{}
	room := int64(maxTree)
	for i, item := range a.root.Items {
		o := a.origins[i]
		size := m.of(item).bytes
		row := Row{Origin: o.layer, PatchedBy: o.patchedBy, value: item}
		row.Entry, _ = item.(*Map)
		if size > room {
			t.Warnings = append(t.Warnings, Warning{o.layer, fmt.Sprintf(
				"entry %s left out: written out with all of its aliases it is too large", Show(row.ID()))})
			t.LeftOut = append(t.LeftOut, row)
			continue
		}
		room -= size
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Endless says whether v contains itself, or is larger than a tree may be when
// its aliases are written out. Layers can make such values. They cannot be
// cloned or written, and a tree leaves out rows that are so; but its steps have
// them, and they can be found by id.
func Endless(v Value) bool {
	if m, ok := v.(*Map); ok && m.Len() == 0 {
		return false
	}
	return (&measure{}).of(v).bytes > maxTree
}

// measure finds out how much text values take, without writing them.
type measure struct {
	known map[container]extent // of what aliases name
	depth int
}

// extent is a size in bytes, not counting indentation, and in lines.
type extent struct{ bytes, lines int64 }

// endless is the extent of what contains itself, or may well do so.
var endless = extent{maxTree + 1, 1}

// maxGroups is how deep values may nest in a tree.
const maxGroups = 10_000

func (m *measure) of(v Value) extent {
	switch v := v.(type) {
	case container:
		return m.container(v)
	case string:
		return extent{int64(len(v)) + 2, 1 + int64(strings.Count(v, "\n"))}
	case Expr:
		return extent{int64(len(v.Text)) + 8, 1 + int64(strings.Count(v.Text, "\n"))}
	default:
		return extent{8, 1}
	}
}

func (m *measure) container(c container) extent {
	shared := c.at().shared
	if known, ok := m.known[c]; ok && shared {
		return known
	}
	if shared {
		if m.known == nil {
			m.known = make(map[container]extent)
		}
		m.known[c] = endless // until it is known: what is inside must not hold it again
	}
	total := extent{3, 1}
	m.depth++
	switch c := c.(type) {
	case *List:
		for _, item := range c.Items {
			total = m.add(total, 2, item)
		}
	case *Map:
		for _, p := range c.pairs {
			total = m.add(total, len(p.key)+2, p.value)
		}
	}
	m.depth--
	if shared {
		m.known[c] = total
	}
	return total
}

// add is total with an entry of a list or mapping.
func (m *measure) add(total extent, head int, v Value) extent {
	if total.bytes > maxTree || m.depth > maxGroups {
		return endless
	}
	inner := m.of(v)
	total.lines += inner.lines
	total.bytes += int64(head) + inner.bytes + 2*inner.lines
	return total
}
