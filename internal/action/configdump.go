package action

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"unicode"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// ConfigDump is a composed profile, or a part of it.
type ConfigDump struct {
	Profile string `json:"profile"`
	Target  string `json:"target,omitempty"`
	// Rows are those asked for, all or one. Value is what stands at a key of
	// a row that was asked for instead.
	Rows  []DumpedRow `json:"rows,omitempty"`
	Value *Shown      `json:"value,omitempty"`
	// YAML is the same as text: all rows as --dump-config prints them, one row,
	// or a value.
	YAML []byte `json:"-"`
	// Notes, Notices and Warnings are as in [Composed].
	Notes    []string `json:"notes"`
	Notices  []string `json:"-"`
	Warnings []string `json:"-"`
}

// DumpedRow is a row and the layers it comes from.
type DumpedRow struct {
	Origin    string   `json:"origin"`
	PatchedBy []string `json:"patchedBy"`
	Row       Shown    `json:"row"`
}

// DumpConfig composes a profile and shows its rows, or what target names: ROW,
// ROW.KEY or ROW:KEY, "" for everything.
func DumpConfig(ctx context.Context, env Env, layers Layers, target string, showSecrets bool) (*ConfigDump, error) {
	c, err := look(ctx, env, layers, false)
	if err != nil {
		return nil, err
	}
	d := &ConfigDump{
		Profile: layers.Name.String(), Target: target, Rows: []DumpedRow{},
		Notes: append([]string{}, c.Notes...), Notices: c.Notices, Warnings: c.Warnings,
	}
	show := shown{showSecrets}
	if target != "" {
		return d, d.one(c, target, show)
	}
	for _, row := range c.Tree.Rows {
		d.Rows = append(d.Rows, DumpedRow{row.Origin, append([]string{}, row.PatchedBy...), Shown{show.value(rowValue(row))}})
	}
	if d.YAML = c.Tree.Dump(); !showSecrets {
		d.YAML = dumpRows(d.Rows)
	}
	return d, nil
}

// rowValue is a row as it is in the tree, which may be no mapping.
func rowValue(row compose.Row) compose.Value {
	if row.Entry != nil {
		return row.Entry
	}
	// A dump reads back as what was dumped.
	alone, err := compose.ParseValue(compose.Source{}, (&compose.Tree{Rows: []compose.Row{row}}).Dump())
	if list, ok := alone.(*compose.List); err == nil && ok && len(list.Items) == 1 {
		return list.Items[0]
	}
	return nil
}

// dumpRows writes rows as [compose.Tree.Dump] does.
func dumpRows(rows []DumpedRow) []byte {
	var out []byte
	current := ""
	for i, row := range rows {
		label := row.label()
		if i == 0 || label != current {
			if i > 0 {
				out = append(bytes.TrimRightFunc(out, unicode.IsSpace), '\n')
			}
			out = append(append(out, "# == "...), label...)
			current = label
		}
		out = append(out, "\n- "...)
		out = compose.AppendYAML(out, row.Row.V, 1)
	}
	return append(bytes.TrimRightFunc(out, unicode.IsSpace), '\n')
}

// nested says whether a row is in a group.
func (h *history) nested(row *compose.Map) bool {
	return !slices.ContainsFunc(h.tree.Rows, func(r compose.Row) bool { return r.Entry == row })
}

// origin is where a row in a group comes from: the tree knows only where the row
// at the top comes from.
func (h *history) origin(row *compose.Map) (label string, patchedBy []string) {
	if where, ok := h.whereRow(row); ok {
		label = where.Layer
	}
	for _, where := range h.changers(row) {
		patchedBy = append(patchedBy, where.Layer)
	}
	return label, patchedBy
}

// label is what heads a row in a dump.
func (r DumpedRow) label() string {
	if len(r.PatchedBy) == 0 {
		return r.Origin
	}
	return r.Origin + ", patched by " + strings.Join(r.PatchedBy, ", ")
}

// one makes the dump that of one row, or of what is at a key of it.
func (d *ConfigDump) one(c *Composed, text string, show shown) error {
	h := newHistory(c.Tree)
	places := h.places()
	target, err := compose.ParseTarget(text, places.find)
	if err != nil {
		return err
	}
	found := places.of(target)
	if target.Row == nil || found[len(found)-1].path == "" {
		return c.unknownRow(target.ID, places.ids(), h.skipped(target.ID))
	}
	// Of several rows with one id it is the one that patches find.
	i := slices.IndexFunc(found, func(p place) bool { return p.row.Entry == target.Row })
	row := found[i].row
	if h.nested(row.Entry) {
		row.Origin, row.PatchedBy = h.origin(row.Entry)
	}
	d.Target = target.String()
	path := target.Path
	key := "config"
	if target.RowKey != "" {
		key = target.RowKey
	} else if len(path) == 0 {
		dumped := DumpedRow{row.Origin, append([]string{}, row.PatchedBy...), Shown{show.value(row.Entry)}}
		d.Rows = []DumpedRow{dumped}
		d.YAML = append(append([]byte("# == "), dumped.label()...), '\n')
		d.YAML = append(compose.AppendYAML(d.YAML, dumped.Row.V, 0), '\n')
		return nil
	}
	full, ok := row.Entry.Get(key)
	if ok {
		_, ok = at(full, path)
	}
	if !ok {
		err := fault.Errorf(fault.Composition, "no layer gives row %s a %s", target.ID, compose.PathText(append([]string{key}, path...)))
		return fault.WithHint(err, "%s", c.configCommand("explain", target.String()))
	}
	v, _ := at(show.value(full, key), path)
	d.Rows, d.Value = nil, &Shown{v}
	d.YAML = append(compose.AppendYAML(nil, v, 0), '\n')
	return nil
}
