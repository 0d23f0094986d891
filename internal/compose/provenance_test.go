package compose

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// A naive composer does what the reference launcher does: it applies the
// layers 1..k for every k, each time to fresh copies, and compares the JSON of
// each row with the one before.
type naive struct {
	root     *List
	index    map[Value]*Map
	warnings []string
	steps    int
}

// errEndless is that a tree contains itself, or is huge: the reference fails.
type errEndless struct{}

func naiveCompose(layers []Layer) (rows []string, warnings []string, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok = r.(errEndless); !ok {
				panic(r)
			}
			ok = false
		}
	}()
	var before []string
	labels := []string{}
	for k := range layers {
		n := &naive{root: &List{}, index: map[Value]*Map{}}
		for _, layer := range layers[:k+1] {
			copies := map[container]Value{}
			for _, patch := range layer.Patches {
				n.apply(naiveCopy(patch.Map, copies).(*Map))
			}
		}
		warnings = append(warnings, n.warnings[len(warnings):]...)
		var now []string
		for i, row := range n.root.Items {
			text := n.json(row, 0)
			now = append(now, text)
			switch label := layers[k].Label; {
			case i >= len(before):
				labels = append(labels, label)
			case text == before[i]:
			case strings.Contains(labels[i], ", patched by "):
				labels[i] += ", " + label
			default:
				labels[i] += ", patched by " + label
			}
		}
		before = now
	}
	for i, text := range before {
		rows = append(rows, labels[i]+" "+text)
	}
	return rows, warnings, true
}

// naiveCopy is structuredClone.
func naiveCopy(v Value, copies map[container]Value) Value {
	c, ok := v.(container)
	if !ok {
		return v
	}
	if done, ok := copies[c]; ok {
		return done
	}
	switch v := v.(type) {
	case *List:
		list := &List{}
		copies[c] = list
		for _, item := range v.Items {
			list.Items = append(list.Items, naiveCopy(item, copies))
		}
		return list
	case *Map:
		m := &Map{}
		copies[c] = m
		for key, item := range v.All() {
			m.Set(key, naiveCopy(item, copies))
		}
		return m
	}
	return nil
}

func (n *naive) warn(format string, args ...Value) {
	texts := make([]any, len(args))
	for i, arg := range args {
		texts[i] = n.json(arg, 0)
		if arg == (undefined{}) {
			texts[i] = "undefined"
		}
	}
	n.warnings = append(n.warnings, fmt.Sprintf(format, texts...))
}

type undefined struct{}

func (n *naive) apply(patch *Map) {
	get := func(m *Map, key string) Value {
		if v, ok := m.Get(key); ok {
			return v
		}
		return undefined{}
	}
	truthy := func(v Value) bool { return v != undefined{} && Truthy(v) }
	id, insert, name := get(patch, "id"), get(patch, "insert"), get(patch, "name")
	if truthy(insert) {
		var items []Value
		if list, ok := insert.(*List); ok {
			items = list.Items
		}
		if truthy(id) {
			target := n.index[id]
			if target == nil {
				n.warn("patch insert: entry %s not found", id)
				return
			}
			if !truthy(get(target, "group")) {
				n.warn("patch insert: entry %s is not a group", id)
				return
			}
			if _, ok := get(target, "config").(*List); !ok {
				target.Set("config", &List{})
			}
			list := get(target, "config").(*List)
			list.Items = append(list.Items, items...)
		} else {
			n.root.Items = append(n.root.Items, items...)
		}
		n.build(items, 0)
		return
	}
	if !truthy(id) {
		n.warn("patch: id is required for non-insert patches")
		return
	}
	target := n.index[id]
	if target == nil {
		n.warn("patch: entry %s not found", id)
		return
	}
	if have := get(target, "name"); truthy(name) && name != have {
		n.warn("patch: name mismatch for %s (expected %s, got %s), skipping", id, have, name)
		return
	}
	for key, v := range patch.All() {
		if key != "id" && key != "insert" && key != "name" {
			target.Set(key, v)
		}
	}
}

func (n *naive) build(items []Value, depth int) {
	n.step(depth)
	for _, item := range items {
		row, ok := item.(*Map)
		if !ok {
			continue
		}
		if id, _ := row.Get("id"); Truthy(id) {
			n.index[id] = row
		}
		group, _ := row.Get("group")
		config, _ := row.Get("config")
		if list, ok := config.(*List); ok && Truthy(group) {
			n.build(list.Items, depth+1)
		}
	}
}

func (n *naive) step(depth int) {
	if n.steps++; n.steps > 100_000 || depth > 100 {
		panic(errEndless{})
	}
}

func (n *naive) json(v Value, depth int) string {
	n.step(depth)
	switch v := v.(type) {
	case *List:
		var b strings.Builder
		for _, item := range v.Items {
			b.WriteString("," + n.json(item, depth+1))
		}
		return "[" + b.String() + "]"
	case *Map:
		var b strings.Builder
		for key, item := range v.All() {
			b.WriteString("," + key + ":" + n.json(item, depth+1))
		}
		return "{" + b.String() + "}"
	case undefined:
		return "undefined"
	default:
		return string(appendJSON(nil, v, 1<<20))
	}
}

// layerText writes a random layer in flow style. Few ids make patches meet.
type layerText struct {
	t       *rapid.T
	anchors []string
	aliases bool
}

func (l *layerText) pick(from ...string) string { return rapid.SampledFrom(from).Draw(l.t, "") }

func (l *layerText) one(in int) bool { return rapid.IntRange(1, in).Draw(l.t, "") == 1 }

// anchor gives text an anchor now and then.
func (l *layerText) anchor(text string) string {
	if !l.aliases || !l.one(4) {
		return text
	}
	name := fmt.Sprintf("n%d", len(l.anchors))
	l.anchors = append(l.anchors, name)
	return "&" + name + " " + text
}

// alias is an alias now and then, else "".
func (l *layerText) alias() string {
	if len(l.anchors) == 0 || !l.one(6) {
		return ""
	}
	return "*" + l.pick(l.anchors...) + " "
}

func (l *layerText) scalar() string {
	return l.pick("1", "x", "''", "null", "true", "false", ".nan", ".inf", "-0.0", "!!js a")
}

func (l *layerText) list(of func(int) string, depth int) string {
	var items []string
	for range rapid.IntRange(0, 3).Draw(l.t, "") {
		items = append(items, of(depth))
	}
	return l.anchor("[" + strings.Join(items, ", ") + "]")
}

func (l *layerText) value(depth int) string {
	if alias := l.alias(); alias != "" {
		return alias
	}
	switch {
	case depth == 0 || l.one(2):
		return l.scalar()
	case l.one(2):
		return l.list(l.value, depth-1)
	default:
		return l.anchor("{k: " + l.value(depth-1) + ", 1: " + l.value(depth-1) + "}")
	}
}

func (l *layerText) row(depth int) string {
	if alias := l.alias(); alias != "" {
		return alias
	}
	keys := []string{"id: " + l.pick("a", "b", "c", "d", "1", "'1'", "0", "''")}
	if l.one(2) {
		keys = append(keys, "name: "+l.pick("p", "q"))
	}
	switch {
	case depth > 0 && l.one(2):
		keys = append(keys, "group: true", "config: "+l.rows(depth-1))
	case l.one(2):
		keys = append(keys, "config: "+l.value(2))
	}
	return l.anchor("{" + strings.Join(keys, ", ") + "}")
}

func (l *layerText) rows(depth int) string {
	if alias := l.alias(); alias != "" && l.one(4) {
		return alias
	}
	return l.list(l.row, depth)
}

func (l *layerText) patch() string {
	if alias := l.alias(); alias != "" && l.one(2) {
		return alias
	}
	id := "id: " + l.pick("a", "b", "c", "d", "1", "'1'", "0", "''")
	switch {
	case l.one(3):
		return l.anchor("{insert: " + l.rows(3) + "}")
	case l.one(3):
		return l.anchor("{" + id + ", insert: " + l.rows(2) + "}")
	}
	keys := []string{id}
	if l.one(6) {
		keys = append(keys, "name: "+l.pick("p", "q"))
	}
	if l.one(2) {
		keys = append(keys, "config: "+l.pick(l.rows(2), l.value(2)))
	}
	if l.one(3) {
		keys = append(keys, "disabled: "+l.scalar())
	}
	if l.one(4) {
		keys = append(keys, "group: "+l.pick("true", "false"))
	}
	if l.one(5) {
		keys = append(keys, l.pick("0: ", "2: ", "z: ")+l.scalar())
	}
	return l.anchor("{" + strings.Join(keys, ", ") + "}")
}

func drawLayers(t *rapid.T, aliases bool) []Layer {
	var layers []Layer
	for i := range rapid.IntRange(1, 5).Draw(t, "layers") {
		l := layerText{t: t, aliases: aliases}
		text := "["
		for range rapid.IntRange(0, 5).Draw(t, "patches") {
			text += l.patch() + ", "
		}
		patches, err := ParsePatches(Source{File: "layer", Dir: "/b"}, []byte(text+"]"))
		if err != nil {
			continue // an alias where rows must be
		}
		layers = append(layers, Layer{Label: fmt.Sprintf("L%d", i), Patches: patches})
	}
	return layers
}

func TestProvenanceAsNaive(t *testing.T) {
	for _, aliases := range []bool{false, true} {
		t.Run(fmt.Sprintf("aliases=%v", aliases), rapid.MakeCheck(func(t *rapid.T) {
			layers := drawLayers(t, aliases)
			wantRows, wantWarnings, ok := naiveCompose(layers)
			tree := Apply(layers, nil)
			if !ok {
				tree.Dump() // must come to an end
				return
			}
			var rows, warnings []string
			n := &naive{}
			for _, row := range tree.Rows {
				rows = append(rows, string(row.appendLabel(nil))+" "+n.json(row.value, 0))
			}
			for _, w := range tree.Warnings {
				warnings = append(warnings, w.Text)
			}
			if diff := cmp.Diff(wantRows, rows); diff != "" {
				t.Fatalf("rows (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(wantWarnings, warnings); diff != "" {
				t.Fatalf("warnings (-want +got):\n%s", diff)
			}
		}))
	}
}

func TestApplyLeavesLayersAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := drawLayers(t, true)
		var before []string
		for _, layer := range layers {
			for _, patch := range layer.Patches {
				before = append(before, string(appendJSON(nil, patch.Map, 1<<16)))
			}
		}
		first := Apply(layers, nil).Dump()
		if again := Apply(layers, nil).Dump(); !bytes.Equal(first, again) {
			t.Fatalf("applied again:\n%s", cmp.Diff(string(first), string(again)))
		}
		var after []string
		for _, layer := range layers {
			for _, patch := range layer.Patches {
				after = append(after, string(appendJSON(nil, patch.Map, 1<<16)))
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatalf("layers changed (-before +after):\n%s", diff)
		}
	})
}
