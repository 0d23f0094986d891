package check

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"
)

// everyPatch goes through the patches: what is written in them, and what
// became of them.
func (c *checker) everyPatch() {
	for n := range c.t.Steps {
		step := &c.t.Steps[n]
		w := writing{c, step, map[compose.Value]bool{}, map[*compose.List]bool{}}
		understood := w.patch()
		w.value(step.Patch.Map, nil, id(step.Patch.Map))
		c.outcome(n, understood)
		c.overridden(step)
	}
}

// outcome says why a patch was skipped, or that it shows nowhere. understood
// is false where it was said already that the patch has another shape.
func (c *checker) outcome(n int, understood bool) {
	step := &c.t.Steps[n]
	target := id(step.Patch.Map)
	f := Finding{Severity: mistake(c.layer(step).Kind), Row: target, Subject: "skipped"}
	switch step.Outcome {
	case compose.NoID:
		if !understood {
			return
		}
		f.Code, f.Message = PatchWithoutID, "the patch has neither insert nor id, so it does nothing"
		f.Remedy = "write `- id: ROW` with the keys to change, or `- insert:` with a list of rows"
	case compose.NotFound:
		if c.alone {
			return
		}
		f.Code = TargetMissing
		c.missing(n, &f)
	case compose.NotAGroup:
		f.Code, f.Message = NotAGroup, fmt.Sprintf("nothing can be inserted into row %q, which is no group", target)
		f.Remedy = "leave out the id to insert the rows at the top, or give the row `group: true` where it is inserted"
	case compose.NameMismatch:
		row := c.t.Find(valueOf(step.Patch.Map, "id"))
		f.Code = NameMismatch
		f.Message = fmt.Sprintf("row %q is of plugin %s and the patch is for %s, so it is skipped", target, get(row, "name"), get(step.Patch.Map, "name"))
		f.Remedy = "leave out the name, which renames nothing"
	case compose.PathEscapes:
		f.Code, f.Severity = PathLeaves, Error
		f.Message = strings.TrimPrefix(step.Skipped, "patch: ") + ", so the patch is skipped"
		f.Remedy = "name a file inside the package"
	default:
		c.detached(n)
		return
	}
	c.add(step, nil, f)
}

// valueOf is the value of a key.
func valueOf(m *compose.Map, key string) compose.Value {
	v, _ := m.Get(key)
	return v
}

// missing words a finding about a patch whose row is not there.
func (c *checker) missing(n int, f *Finding) {
	step := &c.t.Steps[n]
	f.Subject = "missing"
	for _, row := range c.named(valueOf(step.Patch.Map, "id")) {
		at := c.rows[row]
		if at.n > n {
			f.Message = fmt.Sprintf("row %q is inserted later, by %s, so the patch is skipped", f.Row, c.where(at, row))
			f.Remedy, f.Related = c.moveBehind(step, at, row), c.related(at, row)
			return
		}
		if _, there := c.groups[row]; there {
			f.Message = fmt.Sprintf("patches do not find row %q, %s, so the patch is skipped", f.Row, c.hidden(row))
			f.Remedy, f.Related = "change the row where it is written: "+c.where(at, row), c.related(at, row)
			return
		}
	}
	if other := c.t.FindText(f.Row); other != nil {
		f.Message = fmt.Sprintf("the id %q is of another type than that of the row, so the patch is skipped", f.Row)
		f.Remedy = "write the id as the row has it: - id: " + yamlID(other)
		return
	}
	if bundle := c.opts.Disabled(f.Row); bundle != "" {
		f.Severity = Warning // in a file of the user's too: it waits for its row
		f.Message = fmt.Sprintf("row %q is of %s, which is switched off, so the patch is skipped", f.Row, bundle)
		f.Remedy = c.switchBundle("enable", bundle)
		return
	}
	f.Message = fmt.Sprintf("no layer inserts row %q, so the patch is skipped", f.Row)
	if meant := c.closest(f.Row, c.knownIDs()); meant != "" {
		f.Remedy = fmt.Sprintf("did you mean %s?", meant)
		return
	}
	f.Remedy = "delete the patch, or add the plugin that brings the row"
	if kind := c.layer(step).Kind; kind.User() && kind <= compose.ProjectLayer && usable(valueOf(step.Patch.Map, "id")) {
		unset := c.command(append([]string{"unset", compose.Target{ID: f.Row}.String()}, layerFlag(kind)...)...)
		f.Remedy = unset + " takes the patch out; or add the plugin that brings the row"
	}
}

// named is the rows that have an id.
func (c *checker) named(id compose.Value) []*compose.Map {
	if c.byID == nil {
		c.byID = map[compose.Value][]*compose.Map{}
		for _, row := range c.order {
			if id := valueOf(row, "id"); usable(id) {
				c.byID[id] = append(c.byID[id], row)
			}
		}
	}
	if !usable(id) {
		return nil
	}
	return c.byID[id]
}

// knownIDs is the ids that patches can name.
func (c *checker) knownIDs() []string {
	if c.ids == nil {
		c.ids = c.t.IDs()
	}
	return c.ids
}

// hidden says why patches do not find a row that is in the tree.
func (c *checker) hidden(row *compose.Map) string {
	group := c.groups[row]
	if v, _ := group.Get("group"); !compose.Truthy(v) {
		return fmt.Sprintf("because its group %s has no `group: true`", called(group))
	}
	return "because an override wrote it into the config of a group"
}

// moveBehind is how to get a patch behind the row that it is for.
func (c *checker) moveBehind(step *compose.Step, at origin, row *compose.Map) string {
	here, there := c.layer(step), c.layer(at.step)
	switch {
	case step.Layer == at.step.Layer:
		line, _ := row.Position()
		return fmt.Sprintf("move the patch behind line %d", line)
	case !here.Kind.User() && !there.Kind.User():
		return fmt.Sprintf("list %s behind %s in dsh.profile.bundles of the profile's package.json", here.Label, there.Label)
	default:
		return "move the patch to " + there.Label + ", behind the row"
	}
}

// detached finds patches to rows that an earlier replacement of a config took
// out of the tree.
func (c *checker) detached(n int) {
	step := &c.t.Steps[n]
	if step.Target == nil {
		return
	}
	if _, there := c.groups[step.Target]; there {
		return
	}
	by, ok := c.detachedBy()[step.Target]
	if !ok || by >= n {
		return
	}
	replacing := &c.t.Steps[by]
	c.add(step, nil, Finding{
		Code: DetachedRow, Severity: Warning, Row: id(step.Target), Subject: "detached",
		Related: c.related(origin{step: replacing}, replacing.Patch.Map),
		Message: fmt.Sprintf("row %s was in group %s, whose config %s replaced, so that this change shows nowhere",
			called(step.Target), called(replacing.Target), c.stepAt(replacing)),
		Remedy: "restate the row in the new config of the group, or delete the patch",
	})
}

// detachedBy is the rows that replacing the config of a group took out, each
// with the first step that did so.
func (c *checker) detachedBy() map[*compose.Map]int {
	if c.gone != nil {
		return c.gone
	}
	c.gone = map[*compose.Map]int{}
	var note func(list *compose.List, n int)
	note = func(list *compose.List, n int) {
		for _, item := range list.Items {
			row, ok := item.(*compose.Map)
			if !ok || row == nil {
				continue
			}
			if _, known := c.gone[row]; known {
				continue
			}
			c.gone[row] = n
			if list, ok := compose.RowsIn(row, valueOf(row, "config")); ok {
				note(list, n)
			}
		}
	}
	for n, step := range c.t.Steps {
		for _, change := range step.Changes {
			if list, ok := compose.RowsIn(step.Target, change.Old); ok && change.Key == "config" {
				note(list, n)
			}
		}
	}
	return c.gone
}

// stepAt is the layer of a step and its place, for messages.
func (c *checker) stepAt(step *compose.Step) string {
	return c.where(origin{step: step}, step.Patch.Map)
}

// writing goes through what is written in one patch.
type writing struct {
	*checker
	step *compose.Step
	seen map[compose.Value]bool // lists and mappings, which aliases may repeat
	rows map[*compose.List]bool // the same, of lists of rows
}

// rowKeys are the keys of rows that the loader knows.
var rowKeys = []string{"id", "name", "config", "disabled", "group", "inject", "intercept", "isolate"}

// patch looks at the shape of the patch. It is false for one of other tools.
func (w writing) patch() bool {
	m := w.step.Patch.Map
	insert, _ := m.Get("insert")
	if compose.Truthy(insert) {
		w.insert(m, insert)
		return true
	}
	understood := true
	for key, v := range m.All() {
		if slices.Contains(rowKeys, key) || key == "insert" {
			continue
		}
		if w.foreign(m, key, v) {
			understood = false
		} else if w.step.Outcome != compose.NoID {
			w.unknownKey(m, w.step.Target, key, nil)
		}
	}
	w.disabled(m, nil)
	if list, ok := compose.RowsIn(w.step.Target, valueOf(m, "config")); ok {
		w.list(list, []string{"config"})
	}
	return understood
}

// disabled looks at what switches a row off.
func (w writing) disabled(m *compose.Map, path []string) {
	v, _ := m.Get("disabled")
	switch v := v.(type) {
	case nil, bool, compose.Expr:
		return
	case string:
		if _, _, expression := meantAsExpression(v); expression {
			return // said elsewhere
		}
	}
	state := "false, so that the row is on"
	if compose.Truthy(v) {
		state = "true, so that the row is off"
	}
	w.add(w.step, below(path, "disabled"), Finding{
		Code: DisabledValue, Severity: Warning, Row: id(m),
		Message: fmt.Sprintf("disabled is %s, which is read as %s", kind(v), state),
		Remedy:  "write true, false, or an expression behind !!js",
	})
}

func (w writing) insert(m *compose.Map, insert compose.Value) {
	var ignored []string
	for key := range m.All() {
		if key != "id" && key != "insert" {
			ignored = append(ignored, key)
		}
	}
	if len(ignored) > 0 {
		w.add(w.step, []string{ignored[0]}, Finding{
			Code: KeysIgnored, Severity: Warning, Row: id(m),
			Message: fmt.Sprintf("a patch that inserts ignores its other keys: %s", names(ignored)),
			Remedy:  "put what is meant for a row into that row, and what overrides one into a patch of its own",
		})
	}
	if list, ok := insert.(*compose.List); ok {
		w.list(list, []string{"insert"})
		return
	}
	w.notMapping([]string{"insert"}, insert)
}

// list looks at rows.
func (w writing) list(list *compose.List, path []string) {
	if w.rows[list] {
		return
	}
	w.rows[list] = true
	for i, item := range list.Items {
		at := below(path, strconv.Itoa(i))
		row, ok := item.(*compose.Map)
		if !ok {
			w.notMapping(at, item)
			continue
		}
		w.row(row, at)
		if list, ok := compose.RowsIn(row, valueOf(row, "config")); ok {
			w.list(list, below(at, "config"))
		}
	}
}

func (w writing) notMapping(path []string, item compose.Value) {
	w.add(w.step, path, Finding{
		Code: RowNotMapping, Severity: Error, Blocks: w.step.Outcome.Applied(),
		Message: "a row must be a mapping with the name of a plugin, and this is " + kind(item),
		Remedy:  "write - id: … with name: … below it",
	})
}

// kind is what sort of value v is, for people.
func kind(v compose.Value) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case string:
		return "a text"
	case compose.Expr:
		return "an expression"
	case *compose.List:
		return "a list"
	default:
		return "a mapping"
	}
}

// row looks at one row that is inserted.
func (w writing) row(row *compose.Map, path []string) {
	name, named := row.Get("name")
	if text, ok := name.(string); !ok || text == "" {
		f := Finding{Code: RowWithoutName, Severity: Error, Row: id(row), Blocks: w.step.Outcome.Applied(), Subject: "name"}
		f.Message = fmt.Sprintf("row %s names no plugin, and a profile with it does not start", called(row))
		f.Remedy = "add name: with the plugin's package"
		if named && name != nil && !ok {
			f.Message = fmt.Sprintf("the name of row %s is %s, and must be the text that names a plugin", called(row), kind(name))
			path = below(path, "name")
		}
		w.add(w.step, path, f)
	}
	w.id(row, path)
	w.disabled(row, path)
	for key := range row.All() {
		switch {
		case slices.Contains(rowKeys, key):
		case key == "insert":
			w.add(w.step, below(path, key), Finding{
				Code: UnknownKey, Severity: Warning, Row: id(row),
				Message: "insert does nothing inside a row",
				Remedy:  "rows inside a group are its config; insert is a key of patches",
			})
		default:
			w.unknownKey(row, row, key, path)
		}
	}
}

// id looks at the id of a row.
func (w writing) id(row *compose.Map, path []string) {
	v, ok := row.Get("id")
	if !ok {
		return
	}
	problem := ""
	switch v := v.(type) {
	case string:
		if v == "" {
			problem = "is empty"
		}
	case float64:
		if !compose.Truthy(v) {
			problem = "is 0, which counts as none"
		}
	case nil:
		problem = "is empty"
	default:
		problem = "is " + kind(v)
	}
	if problem != "" {
		w.add(w.step, below(path, "id"), Finding{
			Code: UnusableID, Severity: Warning, Row: get(row, "name"),
			Message: fmt.Sprintf("the id of a row %s, so that patches cannot name the row", problem),
			Remedy:  "give the row an id that is a text, or none",
		})
	}
}

// What other tools' patches call what our language does otherwise.
var (
	insertWords = []string{"insert", "inserts", "add", "adds", "append", "prepend", "push", "create", "rows", "entries"}
	setWords    = []string{"set", "update", "patch", "merge", "replace", "override", "overrides", "modify", "change", "edit", "assign"}
	removeWords = []string{"remove", "removes", "delete", "deletes", "drop", "unset"}
	moveWords   = []string{"before", "after", "move", "order", "position", "index"}
)

// foreign finds a key that makes a patch in other tools and nothing in ours.
func (w writing) foreign(m *compose.Map, key string, v compose.Value) bool {
	word := strings.ToLower(strings.Trim(key, "~+-$!? "))
	f := Finding{Code: UnknownShape, Severity: mistake(w.layer(w.step).Kind), Row: id(m)}
	switch {
	case slices.Contains(insertWords, word), key != "inject" && compose.Closest(key, []string{"insert"}) != "":
		f.Message = fmt.Sprintf("patches know no key %q, so nothing is inserted", key)
		f.Remedy = "did you mean insert? write `- insert:` with a list of rows below it"
	case slices.Contains(setWords, word):
		f.Message = fmt.Sprintf("patches know no key %q, so nothing is changed", key)
		f.Remedy = w.override(m, key, v)
	case slices.Contains(removeWords, word):
		f.Message = fmt.Sprintf("patches know no key %q, and rows cannot be taken out", key)
		f.Remedy = "switch the row off: " + string(compose.AppendFlow([]byte("- "), disabledPatch(m, v)))
	case slices.Contains(moveWords, word):
		f.Message = fmt.Sprintf("patches know no key %q, and rows cannot be moved", key)
		f.Remedy = "delete the key: the order of rows means nothing, rows wait for the services they need"
	default:
		return false
	}
	if f.Row == "" {
		if inner, ok := v.(*compose.Map); ok {
			f.Row = id(inner)
		}
	}
	f.Subject = key
	w.add(w.step, []string{key}, f)
	return true
}

// override is how to write what a foreign key wanted to set.
func (w writing) override(m *compose.Map, key string, v compose.Value) string {
	const how = "write `- id: ROW` with the keys to change beside it"
	inner, ok := v.(*compose.Map)
	if !ok || !bounded(m) {
		return how
	}
	patch := &compose.Map{}
	for _, from := range []*compose.Map{m, inner} {
		for k, v := range from.All() {
			if k != key {
				patch.Set(k, v)
			}
		}
	}
	if id(patch) == "" {
		return how
	}
	text := string(compose.AppendFlow(nil, patch))
	if hidden := string(compose.AppendFlow(nil, compose.Redact(patch))); len(text) > 100 || hidden != text {
		return fmt.Sprintf("write the keys beside the id: - id: %s", yamlID(patch))
	}
	return "write the keys beside the id: - " + text
}

// disabledPatch is the patch that switches off the row which m or v names.
func disabledPatch(m *compose.Map, v compose.Value) *compose.Map {
	row := valueOf(m, "id")
	switch v := v.(type) {
	case string:
		row = v
	case *compose.Map:
		if id, ok := v.Get("id"); ok {
			row = id
		}
	}
	if text, ok := row.(string); !ok || text == "" {
		row = "ROW"
	}
	patch := &compose.Map{}
	patch.Set("id", row)
	patch.Set("disabled", true)
	return patch
}

// unknownKey finds a key that the loader keeps and does not know. row is what
// the key is for, nil if that is not there.
func (w writing) unknownKey(m, row *compose.Map, key string, path []string) {
	f := Finding{Code: UnknownKey, Severity: Warning, Row: id(m), Subject: key}
	f.Message = fmt.Sprintf("rows know no key %q, so it does nothing", key)
	plugin := get(row, "name")
	if plugin == "" {
		plugin = get(m, "name")
	}
	switch {
	case strings.HasPrefix(key, "x-"):
		return
	case key == "enabled" || key == "enable" || key == "active":
		f.Remedy = "write disabled: true to switch the row off, and disabled: false to switch it on"
	case slices.Contains(w.schema(plugin).keys, key) || has(valueOf(row, "config"), key):
		f.Message = fmt.Sprintf("%s is a key of the config of %s, and does nothing beside it", key, plugin)
		f.Remedy = "write it below config:"
		if f.Row != "" && path == nil && !w.alone {
			set := w.command("set", compose.Target{ID: f.Row, Path: []string{key}}.String(), "VALUE")
			f.Remedy = "write it below config:, with everything there that should stay; or use " + set
		}
	default:
		if meant := compose.Closest(key, rowKeys); meant != "" {
			f.Remedy = fmt.Sprintf("did you mean %s?", meant)
		} else {
			f.Severity, f.Message = Info, fmt.Sprintf("rows know no key %q; the loader keeps it and does nothing with it", key)
		}
	}
	w.add(w.step, below(path, key), f)
}

// has says whether a value is a mapping with a key.
func has(v compose.Value, key string) bool {
	m, ok := v.(*compose.Map)
	if !ok {
		return false
	}
	_, ok = m.Get(key)
	return ok
}
