package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"dsh/internal/compose"
	"dsh/internal/compose/configschema"
	"dsh/internal/patchedit"
)

// pluginSchema is what is known of the config of a plugin.
type pluginSchema struct {
	schema *configschema.Schema // nil: nothing
	keys   []string             // that the schema names at the top
}

// schema is what is known of the config of a plugin. A schema that cannot be
// read says nothing.
func (c *checker) schema(plugin string) *pluginSchema {
	if s, ok := c.schemas[plugin]; ok {
		return s
	}
	s := &pluginSchema{}
	c.schemas[plugin] = s
	text, known := c.opts.Schema(plugin)
	if !known || len(text) == 0 {
		return s
	}
	s.schema, _ = configschema.Compile(plugin, text)
	var top struct {
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(text, &top) == nil {
		s.keys = slices.Sorted(maps.Keys(top.Properties))
	}
	return s
}

// configs holds the configs of the rows as they are against the schemas of
// their plugins.
func (c *checker) configs() {
	for _, list := range c.lists {
		for _, row := range list.rows {
			config, has := row.Get("config")
			if _, ok := compose.RowsIn(row, config); ok {
				continue
			}
			writer := c.rows[row]
			if has {
				writer = c.writers[row]
			}
			if writer.step != nil {
				c.config(writer, row, get(row, "name"), config, has)
			}
		}
	}
}

// config holds one config against the schema of a plugin. has says that the
// config was written, so that places in it can be shown.
func (c *checker) config(writer origin, row *compose.Map, plugin string, config compose.Value, has bool) {
	schema := c.schema(plugin).schema
	if schema == nil {
		return
	}
	for _, p := range schema.Check(config) {
		f := Finding{Code: ConfigInvalid, Severity: mistake(c.layer(writer.step).Kind), Row: id(row), Subject: p.Text}
		if off(row) {
			f.Severity = Info // nothing reads it
		}
		f.Message = fmt.Sprintf("config of row %s: %s", called(row), p.Text)
		path := below(writer.path, p.Path...)
		switch p.Kind {
		case configschema.UnknownKey:
			path = below(path, p.Key)
			f.Remedy = fmt.Sprintf("delete or rename the key; the plugin is %s", plugin)
		case configschema.MissingKey:
			f.Remedy = fmt.Sprintf("add %s", compose.PathText(below(p.Path, p.Key)))
			if layer := c.droppedBy(writer, row, below(p.Path, p.Key)); layer != "" {
				f.Message += fmt.Sprintf("; %s has it, and this config replaces that one whole", layer)
				f.Remedy = fmt.Sprintf("restate %s, for an override does not merge", compose.PathText(below(p.Path, p.Key)))
			}
		default:
			f.Remedy = fmt.Sprintf("write what %s takes", plugin)
		}
		if !has {
			c.addRow(writer, row, f)
		} else {
			c.add(writer.step, path, f)
		}
	}
}

// droppedBy is the layer whose config had a key that the step of writer left
// out, "" if there is none.
func (c *checker) droppedBy(writer origin, row *compose.Map, path []string) string {
	for _, change := range writer.step.Changes {
		if change.Key != "config" || !hasPath(change.Old, path) {
			continue
		}
		if before := c.before[writer.step]; before.step != nil {
			return c.configAt(before, row)
		}
	}
	return ""
}

// configAt is the layer and the place that wrote the config of a row.
func (c *checker) configAt(writer origin, row *compose.Map) string {
	if writer.step.Outcome == compose.Inserted {
		return c.where(writer, row)
	}
	return c.stepAt(writer.step)
}

// valueAt is the value at a path, and whether there is one.
func valueAt(v compose.Value, path []string) (compose.Value, bool) {
	for _, key := range path {
		switch there := v.(type) {
		case *compose.Map:
			next, ok := there.Get(key)
			if !ok {
				return nil, false
			}
			v = next
		case *compose.List:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(there.Items) {
				return nil, false
			}
			v = there.Items[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func hasPath(v compose.Value, path []string) bool {
	_, ok := valueAt(v, path)
	return ok
}

// overridden looks at what a step made of a config.
func (c *checker) overridden(step *compose.Step) {
	kind := c.layer(step).Kind
	if kind == compose.ProjectLayer {
		c.dshFolder(step)
	}
	for _, change := range step.Changes {
		if change.Key != "config" || !change.Had || !bounded(change.Old) || !bounded(change.New) {
			continue
		}
		if kind.User() {
			c.copied(step, change)
		}
		before := c.before[step]
		if before.step == nil || kind == compose.SetLayer {
			continue
		}
		if kind.User() || before.step.Layer == step.Layer {
			c.dropped(step, step.Target, before, change)
		}
	}
}

// dropped says which keys an override of a row left out: of the layers below,
// which may be meant, or of a patch in its own layer, which hardly is.
func (c *checker) dropped(step *compose.Step, row *compose.Map, before origin, change compose.Change) {
	f := Finding{Code: KeysDropped, Severity: Info, Row: id(row), Subject: "config", Related: c.related(before, row)}
	if before.step.Outcome != compose.Inserted {
		f.Related = c.related(before, before.step.Patch.Map)
	}
	if old, ok := compose.RowsIn(row, change.Old); ok {
		lost := lostRows(old, change.New)
		if len(lost) == 0 {
			return
		}
		f.Message = fmt.Sprintf("this replaces the rows of group %s whole, and these of %s are gone: %s", called(row), c.configAt(before, row), names(lost))
		f.Remedy = "restate them, or add rows with `- id: " + yamlID(row) + "` and insert"
		c.add(step, []string{"config"}, f)
		return
	}
	copied := c.copiedKeys(step)
	var lost []string
	for _, path := range LostKeys(change.Old, change.New) {
		if !slices.ContainsFunc(copied, func(key []string) bool { return startsWith(path, key) }) { // said by copied
			lost = append(lost, compose.PathText(path))
		}
	}
	if len(lost) == 0 {
		return
	}
	f.Message = fmt.Sprintf("this replaces the config of row %s whole, and these keys of %s are gone: %s", called(row), c.configAt(before, row), names(lost))
	f.Remedy = "restate them, or write single keys with " + c.command(append([]string{"set", compose.Target{ID: id(row)}.String() + ".KEY", "VALUE"}, layerFlag(c.layer(step).Kind)...)...)
	if before.step.Layer == step.Layer {
		f.Severity, f.Subject = Warning, "config of this layer"
		f.Remedy = "write one patch for the row, with all keys"
	}
	c.add(step, []string{"config"}, f)
}

// maxNodes and maxDepth are how much of a value is looked through, its aliases
// written out. A group that is inserted into itself has no end.
const (
	maxNodes = 100_000
	maxDepth = 500
)

// bounded says whether a value is small enough to be looked through.
func bounded(v compose.Value) bool {
	nodes := 0
	var within func(v compose.Value, depth int) bool
	within = func(v compose.Value, depth int) bool {
		if nodes++; nodes > maxNodes || depth > maxDepth {
			return false
		}
		switch v := v.(type) {
		case *compose.List:
			for _, item := range v.Items {
				if !within(item, depth+1) {
					return false
				}
			}
		case *compose.Map:
			for _, item := range v.All() {
				if !within(item, depth+1) {
					return false
				}
			}
		}
		return true
	}
	return within(v, 0)
}

// layerFlag is the flag of `dsh config set` that means a layer.
func layerFlag(kind compose.Kind) []string {
	switch kind {
	case compose.HomeLayer:
		return []string{"--home"}
	case compose.ProjectLayer:
		return []string{"--project"}
	default:
		return nil
	}
}

// LostKeys is the paths of what stands in old and not in a value that replaces
// it, each as short as possible. A list loses items only to a shorter one.
func LostKeys(old, now compose.Value) [][]string { return lostKeys(nil, old, now) }

func lostKeys(at []string, old, now compose.Value) [][]string {
	var lost [][]string
	switch was := old.(type) {
	case *compose.Map:
		is, _ := now.(*compose.Map)
		for key, v := range was.All() {
			path := below(at, key)
			if next, ok := is.Get(key); ok {
				lost = append(lost, lostKeys(path, v, next)...)
			} else {
				lost = append(lost, path)
			}
		}
	case *compose.List:
		is, ok := now.(*compose.List)
		if !ok || len(is.Items) >= len(was.Items) {
			return nil
		}
		left := map[string]int{}
		for _, item := range is.Items {
			left[compose.Show(item)]++
		}
		for i, item := range was.Items {
			if text := compose.Show(item); left[text] > 0 {
				left[text]--
			} else {
				lost = append(lost, below(at, strconv.Itoa(i)))
			}
		}
	}
	return lost
}

func startsWith(path, prefix []string) bool {
	return len(path) >= len(prefix) && slices.Equal(path[:len(prefix)], prefix)
}

// lostRows is the rows of old that now has no row of the same id for.
func lostRows(old *compose.List, now compose.Value) []string {
	there := map[string]bool{}
	if list, ok := now.(*compose.List); ok {
		for _, item := range list.Items {
			if row, ok := item.(*compose.Map); ok {
				there[called(row)] = true
			}
		}
	}
	var lost []string
	for _, item := range old.Items {
		if row, ok := item.(*compose.Map); ok && !there[called(row)] {
			lost = append(lost, called(row))
		}
	}
	return lost
}

// copied finds keys that an override copied from the layers below, as a
// comment in it says, and that have another value there by now.
func (c *checker) copied(step *compose.Step, change compose.Change) {
	for _, key := range c.copiedKeys(step) {
		here, ok := valueAt(change.New, key)
		if !ok {
			continue // somebody took it out
		}
		there, has := valueAt(change.Old, key)
		if !has {
			there = gone
		}
		for _, d := range differences(key, here, there) {
			c.copiedKey(step, key, d)
		}
	}
}

// copiedKey is a finding about one place in what was copied at a key.
func (c *checker) copiedKey(step *compose.Step, key []string, d difference) {
	text := func(path []string) string { return compose.Target{ID: id(step.Target), Path: path}.String() }
	f := Finding{Code: CopiedKeyChanged, Severity: Warning, Row: id(step.Target), Subject: text(d.path)}
	unset := d.path
	switch {
	case d.there == gone:
		f.Message = fmt.Sprintf("%s was copied from the layers below, and they no longer have it", text(d.path))
	case d.here == gone:
		unset = key
		f.Message = fmt.Sprintf("%s was copied from the layers below, and they have %s there by now", text(key), compose.PathText(d.path))
	default:
		f.Message = fmt.Sprintf("%s is %s, copied from the layers below, which have %s there now",
			text(d.path), c.shown(d.here, d.path...), c.shown(d.there, d.path...))
	}
	f.Remedy = "to take what is there: " + c.command(append([]string{"unset", text(unset)}, layerFlag(c.layer(step).Kind)...)...)
	c.add(step, below([]string{"config"}, d.path...), f)
}

// difference is a place where two values differ; gone stands for none.
type difference struct {
	path        []string
	here, there compose.Value
}

// gone is a value that is not there.
var gone = new(struct{ compose.Value })

// differences is the places where two values differ, as deep as possible.
func differences(path []string, here, there compose.Value) []difference {
	a, isMap := here.(*compose.Map)
	b, both := there.(*compose.Map)
	if !isMap || !both {
		if compose.Equal(here, there) {
			return nil
		}
		return []difference{{path, here, there}}
	}
	var found []difference
	for key, v := range a.All() {
		if other, ok := b.Get(key); ok {
			found = append(found, differences(below(path, key), v, other)...)
		} else {
			found = append(found, difference{below(path, key), v, gone})
		}
	}
	for key, v := range b.All() {
		if _, ok := a.Get(key); !ok {
			found = append(found, difference{below(path, key), gone, v})
		}
	}
	return found
}

// copiedKeys is the keys of the config that a step writes which were copied
// from the layers below, as a comment in it says.
func (c *checker) copiedKeys(step *compose.Step) [][]string {
	src := step.Patch.Source
	if src == nil {
		return nil
	}
	notes, ok := c.notes[src]
	if !ok {
		notes = patchedit.ReadNotes(src.Text)
		c.notes[src] = notes
	}
	return notes.CopiedKeys(patchedit.Path{strconv.Itoa(step.Patch.Entry), "config"})
}

// dshFolder finds paths of a project's layer that mean the folder which the
// layer is in.
func (c *checker) dshFolder(step *compose.Step) {
	src := step.Patch.Source
	if src == nil || c.opts.Rules == nil {
		return
	}
	find := func(row *compose.Map, config compose.Value, at []string) {
		if !bounded(config) {
			return
		}
		for _, path := range compose.Paths(c.opts.Rules(get(row, "name")), config) {
			if filepath.Clean(path.Path) != filepath.Clean(src.Dir) {
				continue
			}
			c.add(step, below(at, path.Keys...), Finding{
				Code: PathIsDshFolder, Severity: Info, Row: id(row), Subject: compose.PathText(path.Keys),
				Message: fmt.Sprintf("the path means %s, the folder of this file", src.Dir),
				Remedy:  "write .. for the project's own directory",
			})
		}
	}
	for _, change := range step.Changes {
		if change.Key == "config" {
			find(step.Target, change.New, []string{"config"})
		}
	}
	for _, row := range c.broughtBy(step) {
		if config, ok := row.Get("config"); ok && c.writers[row].step == step {
			find(row, config, below(c.rows[row].path, "config"))
		}
	}
}

// broughtBy is the rows that a step brought in.
func (c *checker) broughtBy(step *compose.Step) []*compose.Map {
	if c.rowsOf == nil {
		c.rowsOf = map[*compose.Step][]*compose.Map{}
		for _, row := range c.order {
			by := c.rows[row].step
			c.rowsOf[by] = append(c.rowsOf[by], row)
		}
	}
	return c.rowsOf[step]
}

// relativePaths holds the tree to the promise that every path in it is
// absolute.
func (c *checker) relativePaths() {
	if c.opts.Rules == nil {
		return
	}
	for _, p := range c.t.RelativePaths(c.opts.Rules) {
		at, ok := c.writers[p.Row]
		if !ok {
			continue
		}
		c.add(at.step, below(at.path, p.Keys...), Finding{
			Code: RelativePath, Severity: Error, Row: id(p.Row), Subject: p.Path,
			Message: fmt.Sprintf("the path %s in the config of row %s is not absolute after composing", c.shown(p.Path), called(p.Row)),
			Remedy:  "write it as an absolute path",
		})
	}
}

// rowsOutside finds what a file inserts into groups that it does not insert
// itself: rows that are in no tree of the file alone.
func (c *checker) rowsOutside() {
	groups := map[compose.Value]int{}
	configs := map[compose.Value]origin{} // that patches wrote, by the id of the row
	for n := range c.t.Steps {
		step := &c.t.Steps[n]
		m := step.Patch.Map
		if step.Outcome != compose.NotFound {
			continue
		}
		list, ok := valueOf(m, "insert").(*compose.List)
		if !ok {
			c.overriddenAgain(configs, origin{n, step, []string{"config"}})
			if name := get(m, "name"); name != "" && has(m, "config") {
				c.config(origin{n, step, []string{"config"}}, m, name, valueOf(m, "config"), true)
			}
			continue
		}
		tracer{c, origin{n: n, step: step}, map[*compose.List]bool{}}.rows(list.Items, []string{"insert"})
		before := len(c.lists)
		c.list(nil, list.Items, map[*compose.List]bool{})
		group := valueOf(m, "id")
		if !usable(group) {
			continue
		}
		if at, ok := groups[group]; ok {
			c.lists[at].rows = append(c.lists[at].rows, c.lists[before].rows...)
			c.lists[before].rows = nil
		} else {
			groups[group] = before
		}
	}
}

// overriddenAgain looks at a patch for a row that is not in the file, and at an
// earlier one for the same row.
func (c *checker) overriddenAgain(configs map[compose.Value]origin, at origin) {
	m := at.step.Patch.Map
	row := valueOf(m, "id")
	config, ok := m.Get("config")
	if !ok || !usable(row) || !bounded(config) {
		return
	}
	if before, again := configs[row]; again {
		old := valueOf(before.step.Patch.Map, "config")
		c.dropped(at.step, m, before, compose.Change{Key: "config", Old: old, New: config, Had: true})
	}
	configs[row] = at
}
