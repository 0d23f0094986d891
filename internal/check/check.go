package check

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/patchedit"
)

// Options say what is known beside the layers.
type Options struct {
	// Profile is the name of the profile, for commands; "" if there is none.
	Profile string
	// Schema is the JSON Schema of a plugin's config. known is false for plugins
	// of which nothing is known. Nil knows none.
	Schema func(plugin string) (schema []byte, known bool)
	// Rules are the path rules that the tree was composed with; nil has none.
	Rules compose.PathRules
	// Disabled is the switched-off bundle that has a row of the id, "" if none
	// has. Nil knows none.
	Disabled func(id string) (bundle string)
	// ShowSecrets shows values that look like secrets.
	ShowSecrets bool
}

// Tree finds what the layers of a composed tree show: in their texts, and in
// what became of their patches. Findings are sorted by layer, file and line.
func Tree(t *compose.Tree, opts Options) []Finding {
	c := newChecker(t, opts)
	c.everyPatch()
	c.bundlesTwice()
	c.duplicates()
	c.pluginsTwice()
	c.tooLarge()
	c.configs()
	c.relativePaths()
	return c.sorted()
}

// File finds what one patch file shows by itself, whatever stack it is for.
func File(src compose.Source, text []byte, opts Options) []Finding {
	patches, err := compose.ParsePatches(src, text)
	if err != nil {
		f := LayerError(src.Kind, "", err)
		f.File = src.File
		return []Finding{f}
	}
	layer := compose.Layer{Kind: src.Kind, Patches: patches}
	c := newChecker(compose.Apply([]compose.Layer{layer}, opts.Rules), opts)
	c.alone = true
	c.rowsOutside()
	c.everyPatch()
	c.duplicates()
	c.tooLarge()
	c.configs()
	return c.sorted()
}

// origin is where something in the tree was written.
type origin struct {
	n    int // of the step
	step *compose.Step
	path []string // below the patch
}

// siblings is a list of rows that are mounted side by side.
type siblings struct {
	group *compose.Map // whose config it is, nil for the top
	rows  []*compose.Map
}

type checker struct {
	t     *compose.Tree
	opts  Options
	alone bool // it is one file, and what stands below it is not known

	rows    map[*compose.Map]origin          // of rows that layers brought in
	order   []*compose.Map                   // these rows, as they came
	writers map[*compose.Map]origin          // of the config that a row has
	before  map[*compose.Step]origin         // of the config that a step replaced
	lists   []siblings                       // of the tree as it is
	groups  map[*compose.Map]*compose.Map    // of rows in the tree, nil for the top
	byID    map[compose.Value][]*compose.Map // of rows, once somebody asks
	ids     []string                         // that patches can name, likewise
	gone    map[*compose.Map]int             // rows that were taken out, likewise
	schemas map[string]*pluginSchema
	rowsOf  map[*compose.Step][]*compose.Map // rows that a step brought in, likewise
	places  compose.Places
	notes   map[*compose.Source]patchedit.Notes
	words   int // near words that may still be looked for
	found   []located
}

// located is a finding with what it is sorted by.
type located struct {
	Finding
	layer int
}

// maxWords bounds what many findings cost: each word is compared with all ids,
// and nobody reads thousands of findings.
const maxWords = 300

func newChecker(t *compose.Tree, opts Options) *checker {
	if opts.Schema == nil {
		opts.Schema = func(string) ([]byte, bool) { return nil, false }
	}
	if opts.Disabled == nil {
		opts.Disabled = func(string) string { return "" }
	}
	c := &checker{
		t: t, opts: opts, words: maxWords,
		rows: map[*compose.Map]origin{}, writers: map[*compose.Map]origin{}, before: map[*compose.Step]origin{}, groups: map[*compose.Map]*compose.Map{},
		schemas: map[string]*pluginSchema{}, notes: map[*compose.Source]patchedit.Notes{},
	}
	for i := range t.Steps {
		c.trace(i)
	}
	top := make([]compose.Value, len(t.Rows))
	for i, row := range t.Rows {
		top[i] = row.Entry
	}
	c.list(nil, top, map[*compose.List]bool{})
	return c
}

// trace notes where the rows that a step brought in, and their configs, were
// written. Rows that a later step brought in anew are noted again then.
func (c *checker) trace(n int) {
	step := &c.t.Steps[n]
	t := tracer{c, origin{n: n, step: step}, map[*compose.List]bool{}}
	if step.Outcome == compose.Inserted {
		t.rows(step.Rows, []string{"insert"})
		return
	}
	for _, change := range step.Changes {
		if change.Key != "config" {
			continue
		}
		if change.Had {
			c.before[step] = c.writers[step.Target]
		}
		c.writers[step.Target] = t.at([]string{"config"})
		if list, ok := compose.RowsIn(step.Target, change.New); ok {
			t.seen[list] = true
			t.rows(list.Items, []string{"config"})
		}
	}
}

// tracer notes what one step brought in.
type tracer struct {
	*checker
	origin origin
	seen   map[*compose.List]bool
}

func (t tracer) at(path []string) origin { return origin{t.origin.n, t.origin.step, path} }

func (t tracer) rows(rows []compose.Value, path []string) {
	for i, item := range rows {
		row, ok := item.(*compose.Map)
		if !ok || row == nil {
			continue
		}
		at := below(path, strconv.Itoa(i))
		if _, known := t.checker.rows[row]; !known {
			t.order = append(t.order, row)
		}
		t.checker.rows[row] = t.at(at)
		config, ok := row.Get("config")
		if !ok {
			continue
		}
		t.writers[row] = t.at(below(at, "config"))
		if list, ok := compose.RowsIn(row, config); ok && !t.seen[list] {
			t.seen[list] = true
			t.rows(list.Items, below(at, "config"))
		}
	}
}

// list notes the lists of rows of the tree.
func (c *checker) list(group *compose.Map, items []compose.Value, seen map[*compose.List]bool) {
	s := siblings{group: group}
	for _, item := range items {
		if row, ok := item.(*compose.Map); ok && row != nil {
			s.rows = append(s.rows, row)
			c.groups[row] = group
		}
	}
	c.lists = append(c.lists, s)
	for _, row := range s.rows {
		config, _ := row.Get("config")
		if list, ok := compose.RowsIn(row, config); ok && !seen[list] {
			seen[list] = true
			c.list(row, list.Items, seen)
		}
	}
}

// get is a key of a row that holds a text, else "".
func get(row *compose.Map, key string) string {
	v, _ := row.Get(key)
	text, _ := v.(string)
	return text
}

// id is the id of a row as people write it, "" for one without.
func id(row *compose.Map) string {
	if v, _ := row.Get("id"); compose.Truthy(v) {
		return compose.IDText(v)
	}
	return ""
}

// called is what messages call a row.
func called(row *compose.Map) string {
	if id := id(row); id != "" {
		return strconv.Quote(id)
	}
	if name := get(row, "name"); name != "" {
		return "of " + name
	}
	return "without id"
}

func below(path []string, keys ...string) []string {
	return append(path[:len(path):len(path)], keys...)
}

// layer is the layer of a step.
func (c *checker) layer(step *compose.Step) compose.Layer { return c.t.Layers[step.Layer] }

// mistake is how bad something is that does not do what it says: worse where
// the user wrote it, for a bundle's author is somebody else.
func mistake(kind compose.Kind) Severity {
	if kind.User() {
		return Error
	}
	return Warning
}

// add adds a finding that is about a step, at a place below its patch.
func (c *checker) add(step *compose.Step, path []string, f Finding) {
	f.Line, f.Column = step.Patch.Line, step.Patch.Column
	if src := step.Patch.Source; src != nil {
		f.File = src.File
		if len(path) > 0 && len(src.Text) > 0 {
			if line, column, ok := c.places.Find(src, below([]string{strconv.Itoa(step.Patch.Entry)}, path...)...); ok {
				f.Line, f.Column = line, column
			}
		}
	}
	c.put(step, f)
}

// addRow adds a finding that is about a row.
func (c *checker) addRow(at origin, row *compose.Map, f Finding) {
	f.File, f.Line, f.Column = c.place(at, row)
	c.put(at.step, f)
}

func (c *checker) put(step *compose.Step, f Finding) {
	f.Layer = c.layer(step).Label
	c.found = append(c.found, located{f, step.Layer})
}

// place is where a row was written.
func (c *checker) place(at origin, row *compose.Map) (file string, line, column int) {
	if at.step == nil {
		return "", 0, 0
	}
	if src := at.step.Patch.Source; src != nil {
		file = src.File
	}
	line, column = row.Position()
	return file, line, column
}

// related is the place where a row was written, for programs.
func (c *checker) related(at origin, row *compose.Map) []Related {
	if at.step == nil {
		return nil
	}
	r := Related{}
	if !c.alone {
		r.Layer = c.layer(at.step).Label
	}
	r.File, r.Line, r.Column = c.place(at, row)
	return []Related{r}
}

// where is a layer and a place in it, for messages.
func (c *checker) where(at origin, row *compose.Map) string {
	if at.step == nil {
		return "another layer"
	}
	f := Finding{}
	f.File, f.Line, _ = c.place(at, row)
	label := c.layer(at.step).Label
	switch {
	case f.File == "" || c.alone && f.Line == 0:
		return label
	case c.alone:
		return "line " + strconv.Itoa(f.Line)
	case label == f.File:
		return f.Place()
	default:
		return fmt.Sprintf("%s (%s)", label, f.Place())
	}
}

func (c *checker) sorted() []Finding {
	slices.SortStableFunc(c.found, func(a, b located) int {
		return cmp.Or(
			cmp.Compare(a.layer, b.layer), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message),
		)
	})
	findings := make([]Finding, len(c.found))
	for i, f := range c.found {
		findings[i] = f.Finding
	}
	return findings
}

// closest is the one of words that was probably meant, "" if none, or if many
// were looked for: it is for remedies alone.
func (c *checker) closest(word string, words []string) string {
	if c.words--; c.words < 0 {
		return ""
	}
	return compose.Closest(word, words)
}

// command is a `dsh config` command for the profile.
func (c *checker) command(words ...string) string {
	words = append([]string{"dsh", "config"}, words...)
	if c.opts.Profile != "" {
		words = append(words, "--profile", c.opts.Profile)
	}
	return fault.ShellWords(words...)
}

// disable is the command that takes a bundle out.
func (c *checker) disable(bundle string) string { return c.switchBundle("disable", bundle) }

func (c *checker) switchBundle(verb, bundle string) string {
	words := []string{verb, bundle}
	if c.t.FindText(bundle) != nil {
		words = append(words, "--bundle") // a row has this name too
	}
	return c.command(words...)
}

// yamlID is an id as it is written in a patch.
func yamlID(row *compose.Map) string {
	v, _ := row.Get("id")
	return string(compose.AppendFlow(nil, v))
}

// shown is a value for a message.
func (c *checker) shown(v compose.Value, keys ...string) string {
	if !c.opts.ShowSecrets {
		v = compose.RedactAt(v, keys...)
	}
	return short(compose.Show(v))
}

// short is a text that fits a message.
func short(text string) string {
	const most = 60
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// names is a list of words for a sentence, not too long.
func names(words []string) string {
	const most = 8
	if len(words) > most {
		return strings.Join(words[:most], ", ") + fmt.Sprintf(" and %d more", len(words)-most)
	}
	if len(words) > 1 {
		return strings.Join(words[:len(words)-1], ", ") + " and " + words[len(words)-1]
	}
	return strings.Join(words, "")
}
