package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/urfave/cli/v2"
	"golang.org/x/text/width"

	"dsh/internal/action"
	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/ui"
)

// configShowVerbs show what is composed and where it comes from.
func (r *runner) configShowVerbs() []*cli.Command {
	return []*cli.Command{
		r.configVerb("explain", "show which layers wrote a row, or list all rows", "[ROW[.KEY]]", (*configRun).explain, layerFlags()...),
		r.configVerb("layers", "show the layers in order, and what each does", " ", (*configRun).listLayers, layerFlags()...),
		r.configVerb("dump", "print the composed rows, or one of them", "[ROW[.KEY]]", (*configRun).dumpConfig, append(layerFlags(),
			&cli.StringFlag{Name: "format", Usage: "yaml, or json with the layers of each row"})...),
		r.configVerb("diff", "compare two profiles, or one with its defaults", "[A [B]]", (*configRun).diff, showSecretsFlag(),
			&cli.BoolFlag{DisableDefaultText: true, Name: "exit-code", Usage: "exit with 1 if they differ"}),
	}
}

// target is the only argument, "" without one.
func (c *configRun) target() (string, error) {
	args := c.cli.Args()
	if args.Len() > 1 {
		return "", fault.Errorf(fault.Other, "config %s takes one ROW or ROW.KEY, and got %d words: %s",
			c.cli.Command.Name, args.Len(), fault.ShellWords(args.Slice()...))
	}
	return args.First(), nil
}

func (c *configRun) warn(warnings []string) {
	for _, w := range warnings {
		c.ui.Warn(w)
	}
}

func (c *configRun) explain() error {
	target, err := c.target()
	if err != nil {
		return err
	}
	if target == "" {
		list, err := action.ExplainRows(c.ctx, c.env, c.layers)
		if err != nil {
			return err
		}
		c.warn(list.Warnings)
		return c.ui.Result(list, func(w io.Writer) { printRows(w, list) })
	}
	x, err := action.Explain(c.ctx, c.env, c.layers, target, c.showSecrets())
	if err != nil {
		return err
	}
	c.warn(x.Warnings)
	return c.ui.Result(x, func(w io.Writer) {
		p := explanation{w, c.ui}
		for i, row := range x.Rows {
			if i > 0 {
				fmt.Fprintln(w)
			}
			p.row(x, row)
		}
		p.skipped(x)
		p.order(x)
	})
}

// layerName is a layer in a few words: the file of the profile, of the home and
// of the project needs no path to be known.
func layerName(kind, label string) string {
	switch kind {
	case compose.ProfileLayer.String(), compose.HomeLayer.String(), compose.ProjectLayer.String():
		return kind
	default:
		return ui.Clean(label)
	}
}

// layerTitle is a layer in a table that shows its file elsewhere.
func layerTitle(l action.LayerInfo) string {
	if l.Kind == compose.PatchLayer.String() {
		return ui.Clean(filepath.Base(l.Label))
	}
	return layerName(l.Kind, l.Label)
}

// table prints lines of cells, the cells of a column below each other.
func table(w io.Writer, lines [][]string) {
	var widths []int
	for _, cells := range lines {
		for i, cell := range cells[:max(len(cells)-1, 0)] { // nothing stands behind the last one
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], columns(cell))
		}
	}
	for _, cells := range lines {
		var b strings.Builder
		for i, cell := range cells {
			b.WriteString(cell)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-columns(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// columns is how wide a terminal shows a text.
func columns(text string) int {
	n := 0
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

func printRows(w io.Writer, list *action.RowList) {
	lines := [][]string{{"ROW", "PLUGIN", "STATE", "FROM", "CHANGED BY"}}
	for _, row := range list.Rows {
		lines = append(lines, rowLines(row, "")...)
	}
	table(w, lines)
}

// rowLines are the cells of a row and of the rows inside it.
func rowLines(row action.RowSummary, indent string) [][]string {
	from := ""
	if row.From != nil {
		from = layerName(row.From.Kind, row.From.Layer)
	}
	var changers []string
	for _, where := range row.ChangedBy {
		changers = append(changers, layerName(where.Kind, where.Layer))
	}
	state := row.State
	if row.Hidden {
		state += ", hidden from patches"
	}
	lines := [][]string{{indent + rowLabel(row), ui.Clean(row.Plugin), state, from, strings.Join(changers, ", ")}}
	for _, child := range row.Children {
		lines = append(lines, rowLines(child, indent+"  ")...)
	}
	return lines
}

// rowLabel is the id of a row, or its place where it has none.
func rowLabel(row action.RowSummary) string {
	if row.ID.V == nil {
		return "(no id, at " + row.Path + ")"
	}
	return ui.Clean(compose.IDText(row.ID.V))
}

// explanation prints what is known of a row.
type explanation struct {
	w  io.Writer
	ui *ui.UI
}

func (p explanation) row(x *action.Explanation, row action.RowHistory) {
	fmt.Fprintf(p.w, "%s of %s in profile %s: %s\n", p.ui.Bold("row "+rowLabel(row.RowSummary)), ui.Clean(row.Plugin), x.Profile, row.State)
	p.found(row, len(x.Rows))
	last := ""
	for _, k := range row.Writes {
		head := layerName(k.Kind, k.Layer)
		if name := kindName(k.Kind); name != head {
			head += " (" + name + ")"
		}
		if k.Inserted {
			head += " inserts the row"
		}
		if head != last {
			fmt.Fprintf(p.w, "\n%s:\n", p.ui.Bold(head))
			last = head
		}
		p.write(k)
	}
	for _, put := range row.Inserts {
		fmt.Fprintf(p.w, "\n%s puts rows into it: %s  %s\n", p.ui.Bold(layerName(put.Kind, put.Layer)), ui.Clean(strings.Join(put.Rows, ", ")), p.comment(put.Place()))
	}
	p.end(x, row)
	p.expressions(row.Expressions)
}

// found says which of several rows it is, and why patches do not find it.
func (p explanation) found(row action.RowHistory, rows int) {
	switch {
	case row.Removed != nil:
		fmt.Fprintf(p.w, "  it is not in the tree: %s replaced the config of its group, %s\n", layerName(row.Removed.Kind, row.Removed.Layer), ui.Clean(row.Removed.Place()))
		fmt.Fprintln(p.w, "  patches still find it, and change nothing that shows")
	case row.Hidden && rows > 1:
		fmt.Fprintf(p.w, "  it is one of %d rows with this id, at %s; patches find the last one that was inserted\n", rows, row.Path)
	case row.Hidden:
		fmt.Fprintln(p.w, "  patches do not find it: it was not inserted, but came with the config of its group")
	case rows > 1:
		fmt.Fprintf(p.w, "  it is the one of %d rows with this id that patches find, at %s\n", rows, row.Path)
	}
}

// end says what all layers come to.
func (p explanation) end(x *action.Explanation, row action.RowHistory) {
	fmt.Fprintf(p.w, "\n%s\n", p.ui.Bold("in the end:"))
	for _, kv := range row.Final {
		from := "no layer"
		if kv.From != nil {
			from = "from " + layerName(kv.From.Kind, kv.From.Layer)
		}
		p.value(kv.Key, kv.Value, kv.Rows, from)
	}
	switch {
	case len(row.Final) > 0:
	case strings.HasPrefix(x.Key, "config."):
		fmt.Fprintln(p.w, "  not set, so that the plugin's default counts")
	default:
		fmt.Fprintln(p.w, "  not set")
	}
	if row.Near != "" {
		fmt.Fprintf(p.w, "  did you mean %s?\n", ui.Clean(row.Near))
	}
}

func (p explanation) comment(text string) string { return p.ui.Dim("# " + ui.Clean(text)) }

// value prints a key and its value as YAML, with a comment on the first line.
func (p explanation) value(key string, v action.Shown, rows []string, comment string) {
	if rows != nil {
		fmt.Fprintf(p.w, "  %s: rows %s  %s\n", key, ui.Clean(strings.Join(rows, ", ")), p.comment(comment))
		return
	}
	m := &compose.Map{}
	m.Set(key, v.V)
	first, rest, more := strings.Cut(string(compose.AppendYAML(nil, m, 1)), "\n")
	if text, ok := v.V.(string); ok && more && !strings.Contains(text, "\n") { // a long line is easier to read whole
		first, more = key+": "+string(compose.AppendFlow(nil, text)), false
	}
	fmt.Fprintf(p.w, "  %s  %s\n", ui.Clean(first), p.comment(comment))
	if more {
		fmt.Fprintln(p.w, ui.Clean(rest))
	}
}

func (p explanation) write(k action.KeyWrite) {
	place := k.Place()
	if k.Same {
		place += ", the same as below"
	}
	if k.Absent {
		fmt.Fprintf(p.w, "  %s: (left out)  %s\n", ui.Clean(k.Key), p.comment(place))
	} else {
		p.value(k.Key, k.Value, k.Rows, place)
	}
	for _, lost := range k.Lost {
		again := ""
		if lost.Again {
			again = "; a later layer writes it again"
		}
		fmt.Fprintf(p.w, "    %s %s (%s, %s)%s\n", p.ui.Yellow("thrown away:"), ui.Clean(lost.Key),
			layerName(lost.From.Kind, lost.From.Layer), ui.Clean(lost.From.Place()), again)
	}
}

func (p explanation) expressions(list []action.ExpressionInfo) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintf(p.w, "\n%s\n", p.ui.Bold("expressions, evaluated at boot and not now:"))
	for _, e := range list {
		fmt.Fprintf(p.w, "  %s: %s\n", ui.Clean(e.Key), ui.Clean(e.Text))
		for _, use := range e.Env {
			set := "not set here"
			if use.Set {
				set = "set"
			}
			fmt.Fprintf(p.w, "    reads the variable %s: %s\n", ui.Clean(use.Name), set)
		}
		if len(e.Services) > 0 {
			fmt.Fprintf(p.w, "    reads %s\n", ui.Clean(strings.Join(e.Services, ", ")))
		}
		if e.Problem != "" {
			fmt.Fprintf(p.w, "    %s %s\n", p.ui.Red("problem:"), ui.Clean(e.Problem))
		}
	}
	if slices.ContainsFunc(list, func(e action.ExpressionInfo) bool { return len(e.Env) > 0 }) {
		fmt.Fprintln(p.w, "  .env files are read at boot, too")
	}
}

func (p explanation) skipped(x *action.Explanation) {
	if len(x.Skipped) == 0 {
		return
	}
	fmt.Fprintf(p.w, "\n%s\n", p.ui.Bold("skipped patches that wanted it:"))
	for _, s := range x.Skipped {
		fmt.Fprintf(p.w, "  %s: %s\n", ui.Clean(s.Place()), ui.Clean(s.Why))
	}
}

// kindName is a kind of layer as it is called on the command line.
func kindName(kind string) string {
	if kind == compose.PatchLayer.String() || kind == compose.SetLayer.String() {
		return "--" + kind
	}
	return kind
}

// order prints the order of layers, with the one that has the last word about
// what was asked for in brackets.
func (p explanation) order(x *action.Explanation) {
	wins := ""
	for _, row := range x.Rows {
		if n := len(row.Writes); n > 0 {
			wins = row.Writes[n-1].Kind
		}
	}
	var names []string
	for kind := compose.BundleLayer; kind <= compose.SetLayer; kind++ {
		name := kindName(kind.String())
		if kind == compose.BundleLayer {
			name = "bundles"
		}
		if kind.String() == wins {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	fmt.Fprintf(p.w, "\norder of layers, the last one wins: %s\n", strings.Join(names, " → "))
}

func (c *configRun) listLayers() error {
	if c.cli.Args().Present() {
		return fault.Errorf(fault.Other, "config layers takes no words; it shows all layers")
	}
	list, err := action.ListLayers(c.ctx, c.env, c.layers)
	if err != nil {
		return err
	}
	c.warn(list.Warnings)
	return c.ui.Result(list, func(w io.Writer) { c.printLayers(w, list) })
}

func (c *configRun) printLayers(w io.Writer, list *action.LayerList) {
	fmt.Fprintf(w, "profile %s (%s): %s, the last layer wins\n", list.Profile, ui.Clean(list.Dir), counted(list.Rows, "row"))
	lines := [][]string{{"#", "KIND", "LAYER", "VERSION", "STATE", "INSERTS", "OVERRIDES", "SKIPPED", "SOURCE"}}
	for _, l := range list.Layers {
		line := []string{"-", l.Kind, layerTitle(l), ui.Clean(l.Version), l.State, "", "", "", ui.Clean(l.Source)}
		if l.Number > 0 {
			line[0] = strconv.Itoa(l.Number)
		}
		if l.State == "applied" {
			line[5], line[6], line[7] = strconv.Itoa(len(l.Inserts)), strconv.Itoa(len(l.Overrides)), strconv.Itoa(len(l.Skipped))
		}
		lines = append(lines, line)
	}
	table(w, lines)
	for _, l := range list.Layers {
		if l.Reason != "" || l.Remedy != "" {
			fmt.Fprintf(w, "\n%s is %s", painted(c.ui, l.State, layerTitle(l)), l.State)
			if l.Reason != "" {
				fmt.Fprintf(w, ": %s", ui.Clean(l.Reason))
			}
			fmt.Fprintln(w)
			if l.Remedy != "" {
				fmt.Fprintf(w, "  hint: %s\n", ui.Clean(l.Remedy))
			}
		}
	}
	for _, l := range list.Layers {
		for i, s := range l.Skipped {
			if i == 0 {
				fmt.Fprintf(w, "\nskipped patches of %s:\n", layerTitle(l))
			}
			fmt.Fprintf(w, "  %s: %s\n", ui.Clean(s.Place()), ui.Clean(s.Why))
		}
	}
	c.printOverridden(w, list)
	if len(list.Conflicts) > 0 {
		fmt.Fprintln(w, "\nconflicts between layers:")
	}
	for _, f := range list.Conflicts {
		c.finding(w, f)
	}
}

// painted is a name in the colour of a state.
func painted(u *ui.UI, state, name string) string {
	if state == "disabled" {
		return u.Dim(name)
	}
	return u.Red(name)
}

func (c *configRun) printOverridden(w io.Writer, list *action.LayerList) {
	if len(list.Overridden) == 0 {
		return
	}
	names := map[int]string{}
	for _, l := range list.Layers {
		names[l.Number] = fmt.Sprintf("%d %s", l.Number, layerTitle(l))
	}
	fmt.Fprintln(w, "\noverridden rows, and the layers that wrote them:")
	var lines [][]string
	for _, o := range list.Overridden {
		var layers []string
		for _, n := range o.Layers {
			layers = append(layers, names[n])
		}
		lines = append(lines, []string{"  " + ui.Clean(o.Row), strings.Join(layers, " → ")})
	}
	table(w, lines)
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func (c *configRun) dumpConfig() error {
	target, err := c.target()
	if err != nil {
		return err
	}
	format := c.cli.String("format")
	if c.cli.IsSet("format") && format != "yaml" && format != "json" {
		return fault.Errorf(fault.Other, "--format is yaml or json, and not %q", format)
	}
	d, err := action.DumpConfig(c.ctx, c.env, c.layers, target, c.showSecrets())
	if err != nil {
		return err
	}
	c.warn(d.Warnings)
	for _, note := range d.Notes {
		c.ui.Say("%s", note)
	}
	for _, notice := range d.Notices {
		c.ui.Notice(notice)
	}
	if c.ui.JSON && format == "yaml" {
		return c.ui.Result(map[string]any{"profile": d.Profile, "config": string(d.YAML), "notes": d.Notes}, nil)
	}
	if c.ui.JSON || format != "json" {
		return c.ui.Result(d, func(w io.Writer) { w.Write(d.YAML) })
	}
	enc := json.NewEncoder(c.ui.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

func (c *configRun) diff() error {
	a, b, err := c.diffSides()
	if err != nil {
		return err
	}
	d, err := action.Diff(c.ctx, c.env, a, b, c.showSecrets())
	if err != nil {
		return err
	}
	c.warn(d.Warnings)
	if err := c.ui.Result(d, func(w io.Writer) { c.printDiff(w, d) }); err != nil {
		return err
	}
	if d.Differ && c.cli.Bool("exit-code") {
		return &saidError{fault.Other}
	}
	return nil
}

// diffSides is what to compare: A and B, or one profile with its defaults.
func (c *configRun) diffSides() (a, b action.DiffSide, err error) {
	args := c.cli.Args().Slice()
	if len(args) > 2 || len(args) > 0 && !c.invocation.Implied {
		return a, b, fault.WithHint(fault.Errorf(fault.Other, "config diff compares two profiles, or one with its defaults"),
			"dsh config diff A [B], where A and B are names of profiles or paths of their directories")
	}
	b = action.DiffSide{Name: c.layers.Name}
	if len(args) > 0 {
		if b, err = action.ParseDiffSide(args[len(args)-1], c.env.Dir); err != nil {
			return a, b, err
		}
	}
	if a = b; len(args) == 2 {
		a, err = action.ParseDiffSide(args[0], c.env.Dir)
		return a, b, err
	}
	a.Defaults = true
	return a, b, nil
}

func (c *configRun) printDiff(w io.Writer, d *action.ConfigDiff) {
	fmt.Fprintf(w, "from %s to %s\n", ui.Clean(d.A), ui.Clean(d.B))
	if !d.Differ {
		fmt.Fprintln(w, "no differences")
		return
	}
	printRowsApart(w, d)
}

// printRowsApart prints the bundles and rows that differ.
func printRowsApart(w io.Writer, d *action.ConfigDiff) {
	var bundles []string
	for _, name := range d.Bundles.Added {
		bundles = append(bundles, "+ "+name)
	}
	for _, name := range d.Bundles.Removed {
		bundles = append(bundles, "- "+name)
	}
	if d.Bundles.Reordered {
		bundles = append(bundles, "in another order")
	}
	if len(bundles) > 0 {
		fmt.Fprintf(w, "bundles: %s\n", ui.Clean(strings.Join(bundles, ", ")))
	}
	for _, row := range d.Added {
		fmt.Fprintf(w, "+ %s of %s, from %s\n", ui.Clean(row.Row), ui.Clean(row.Plugin), ui.Clean(row.Layer))
	}
	for _, row := range d.Removed {
		fmt.Fprintf(w, "- %s of %s, from %s\n", ui.Clean(row.Row), ui.Clean(row.Plugin), ui.Clean(row.Layer))
	}
	for _, row := range d.Changed {
		fmt.Fprintf(w, "~ %s\n", ui.Clean(row.Row))
		for _, k := range row.Keys {
			fmt.Fprintf(w, "    %s: %s → %s\n", ui.Clean(k.Key), inLine(k.Old), inLine(k.New))
		}
	}
}

// inLine is a value in one line.
func inLine(v *action.Shown) string {
	if v == nil {
		return "(not there)"
	}
	return ui.Clean(string(compose.AppendFlow(nil, v.V)))
}
