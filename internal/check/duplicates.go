package check

import (
	"fmt"
	"path"
	"strings"

	"dsh/internal/compose"
)

// duplicates finds rows that have one id: side by side, where mounting stops,
// and in different groups.
func (c *checker) duplicates() {
	firsts := map[compose.Value]*compose.Map{}
	shared := map[[2]int]*overlap{}
	for _, list := range c.lists {
		here := map[compose.Value]*compose.Map{}
		for _, row := range list.rows {
			id, _ := row.Get("id")
			if !usable(id) {
				continue
			}
			if other, ok := here[id]; ok {
				c.duplicate(other, row, shared)
				continue
			}
			here[id] = row
			if other, ok := firsts[id]; ok {
				c.repeated(other, row)
			} else {
				firsts[id] = row
			}
		}
	}
	c.overlaps(shared)
}

// usable says whether patches can name an id.
func usable(id compose.Value) bool {
	switch id.(type) {
	case string, float64:
		return compose.Truthy(id)
	default:
		return false
	}
}

// duplicate is two rows side by side with one id.
func (c *checker) duplicate(a, b *compose.Map, shared map[[2]int]*overlap) {
	first, second := c.rows[a], c.rows[b]
	if first.step == nil || second.step == nil || c.sameBundle(first, second) {
		return
	}
	pair := [2]int{first.step.Layer, second.step.Layer}
	if shared[pair] == nil {
		shared[pair] = &overlap{row: b, at: second}
	}
	shared[pair].rows++
	f := Finding{Code: DuplicateID, Severity: Error, Row: id(b), Blocks: true, Subject: c.layer(first.step).Label, Related: c.related(first, a)}
	f.Message = fmt.Sprintf("row %s is inserted here and by %s, and a profile with both does not start", called(b), c.where(first, a))
	if c.alone {
		f.Message = fmt.Sprintf("row %s is inserted here and in %s, and a profile with both does not start", called(b), c.where(first, a))
	}
	f.Remedy = c.duplicateRemedy(first, second, a, b)
	c.addRow(second, b, f)
}

func (c *checker) duplicateRemedy(first, second origin, a, b *compose.Map) string {
	here, there := c.layer(second.step), c.layer(first.step)
	same := get(a, "name") == get(b, "name")
	override := fmt.Sprintf("override the row instead of inserting it again: - id: %s, with the keys to change", yamlID(b))
	own := fmt.Sprintf("give it an id of its own, as %s", compose.AppendFlow(nil, c.ownID(second, b)))
	switch {
	case first.step.Layer == second.step.Layer && same:
		return "delete one of the two; to change a row that is there, write - id: " + yamlID(b) + " with the keys to change"
	case first.step.Layer == second.step.Layer:
		return own
	case here.Kind.User() && same:
		return override
	case here.Kind.User():
		return own + ", or " + override
	}
	out := c.outOf(there.Label, here.Label)
	remedy := "take one of the two out: " + c.disable(out)
	switch {
	case out != here.Label:
		return remedy
	case same:
		return remedy + "; its author could override the row instead of inserting it"
	default:
		return remedy + "; its author could " + own
	}
}

// ownID is an id for a row that nobody else is likely to have: it begins with
// the last name of the bundle, or of the plugin of a row that the user inserts.
func (c *checker) ownID(at origin, row *compose.Map) string {
	from := get(row, "name")
	if layer := c.layer(at.step); layer.Kind == compose.BundleLayer {
		from = layer.Label
	} else if strings.ContainsAny(from, ":.") {
		from = "" // a path
	}
	if name := path.Base(from); from != "" && name != id(row) {
		return name + "/" + id(row)
	}
	return "my-" + id(row)
}

// sameBundle says whether two rows are of one bundle that is listed twice.
func (c *checker) sameBundle(first, second origin) bool {
	here, there := c.layer(first.step), c.layer(second.step)
	return first.step.Layer != second.step.Layer && here.Kind == compose.BundleLayer && there.Kind == compose.BundleLayer && here.Label == there.Label
}

// repeated is two rows in different groups with one id.
func (c *checker) repeated(a, b *compose.Map) {
	first, second := c.rows[a], c.rows[b]
	if first.step == nil || second.step == nil || c.sameBundle(first, second) {
		return
	}
	found := "neither of them"
	switch c.t.Find(valueOf(b, "id")) {
	case a:
		found = "only the other one"
	case b:
		found = "only this one"
	}
	c.addRow(second, b, Finding{
		Code: RepeatedID, Severity: Warning, Row: id(b), Subject: c.layer(first.step).Label, Related: c.related(first, a),
		Message: fmt.Sprintf("the id %s is also that of a row in another group, by %s; patches find %s", called(b), c.where(first, a), found),
		Remedy:  "give one of them another id",
	})
}

// overlap is what two layers have in common.
type overlap struct {
	rows int
	row  *compose.Map // the first of them, in the upper layer
	at   origin
}

// overlaps finds layers that have several rows in common.
func (c *checker) overlaps(shared map[[2]int]*overlap) {
	const several = 3
	for pair, common := range shared {
		if common.rows < several || pair[0] == pair[1] {
			continue
		}
		first, second := c.t.Layers[pair[0]], c.t.Layers[pair[1]]
		f := Finding{Code: LayersOverlap, Severity: Warning, Subject: first.Label}
		f.Message = fmt.Sprintf("%s and %s insert %d rows with the same ids", second.Label, first.Label, common.rows)
		if second.Kind.User() {
			f.Message += ", as if rows had been copied"
			f.Remedy = "override the rows that are there: only insert what no layer below inserts"
		} else {
			out := c.outOf(first.Label, second.Label)
			f.Message += ": they look like two applications, or like a collection and one of its parts"
			f.Remedy = fmt.Sprintf("give %s a profile of its own, and take it out here: %s", out, c.disable(out))
		}
		c.addRow(common.at, common.row, f)
	}
}

// outOf is the one of two bundles that can rather be spared: the later one,
// unless it comes with the harness and the other does not.
func (c *checker) outOf(first, second string) string {
	const harness = "@deepseek-ai/"
	if strings.HasPrefix(second, harness) && !strings.HasPrefix(first, harness) {
		return first
	}
	return second
}

// severalTimes are plugins that are made to be used in several rows.
var severalTimes = map[string]bool{
	"@deepseek-ai/dsh-mcp-client": true, "@deepseek-ai/dsh-skill-filesystem": true,
	compose.GroupPlugin: true, compose.IncludePlugin: true,
}

// pluginsTwice finds plugins that two bundles insert, under different ids.
func (c *checker) pluginsTwice() {
	type use struct {
		row *compose.Map
		at  origin
	}
	uses := map[string][]use{}
	var order []string
	for _, list := range c.lists {
		for _, row := range list.rows {
			at, name := c.rows[row], get(row, "name")
			if at.step == nil || c.layer(at.step).Kind != compose.BundleLayer || name == "" || severalTimes[name] || off(row) {
				continue
			}
			if uses[name] == nil {
				order = append(order, name)
			}
			uses[name] = append(uses[name], use{row, at})
		}
	}
	for _, name := range order {
		layers := map[int]use{}
		for _, u := range uses[name] {
			if _, again := layers[u.at.step.Layer]; again {
				layers = nil // one bundle uses it several times, so that this is what it is for
				break
			}
			layers[u.at.step.Layer] = u
		}
		if len(layers) < 2 {
			continue
		}
		a := uses[name][0]
		for _, b := range uses[name][1:] {
			if valueOf(a.row, "id") == valueOf(b.row, "id") && c.groups[a.row] == c.groups[b.row] || c.sameBundle(a.at, b.at) {
				continue // a duplicate id, which is said elsewhere
			}
			out := c.outOf(c.layer(a.at.step).Label, c.layer(b.at.step).Label)
			f := Finding{Code: PluginTwice, Severity: Warning, Row: id(b.row), Subject: name, Related: c.related(a.at, a.row)}
			f.Message = fmt.Sprintf("the plugin %s is also inserted by %s, as row %s, and would run twice", name, c.where(a.at, a.row), called(a.row))
			f.Remedy = "take one of the two bundles out: " + c.disable(out)
			if f.Row != "" {
				f.Remedy += "; or switch one row off: " + c.command("disable", f.Row)
			}
			c.addRow(b.at, b.row, f)
		}
	}
}

// off says whether a row is switched off, whatever the environment.
func off(row *compose.Map) bool {
	v := valueOf(row, "disabled")
	_, expr := v.(compose.Expr)
	return !expr && compose.Truthy(v)
}

// bundlesTwice finds bundles whose layer applies twice.
func (c *checker) bundlesTwice() {
	listed := map[string]bool{}
	said := map[string]bool{}
	for n, layer := range c.t.Layers {
		if layer.Kind != compose.BundleLayer {
			continue
		}
		if listed[layer.Label] && !said[layer.Label] {
			said[layer.Label] = true
			c.found = append(c.found, located{Finding{
				Code: BundleTwice, Severity: Error, Layer: layer.Label, Blocks: len(layer.Patches) > 0 && inserts(layer),
				Message: fmt.Sprintf("%s is listed twice, so that its layer applies twice", layer.Label),
				Remedy:  "take one mention out of dsh.profile.bundles in the profile's package.json",
			}, n})
		}
		listed[layer.Label] = true
	}
}

// inserts says whether a layer inserts rows.
func inserts(layer compose.Layer) bool {
	for _, patch := range layer.Patches {
		if compose.Truthy(valueOf(patch.Map, "insert")) {
			return true
		}
	}
	return false
}

// tooLarge finds rows that were left out for their size.
func (c *checker) tooLarge() {
	for _, row := range c.t.LeftOut {
		if at := c.rows[row.Entry]; at.step != nil {
			c.addRow(at, row.Entry, Finding{
				Code: RowTooLarge, Severity: Error, Row: id(row.Entry),
				Message: fmt.Sprintf("row %s is left out: written out with all of its aliases it is too large", called(row.Entry)),
				Remedy:  "write the row without aliases that repeat large values, and no group inside itself",
			})
		}
	}
}
