package compose

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// A relative path belongs to the file that it is written in. Every path of a
// patch becomes absolute when the patch is applied, before anything of it is
// in the tree, and no path is looked at again after that: what an override
// brings from one file is never joined with the directory of another.

// PathRules finds the places of paths in the config of a plugin, nil for a
// plugin that has none or of which nothing is known.
type PathRules func(plugin string) *PathRule

// PathRule is where paths stand in a value. The zero value has none.
type PathRule struct {
	path  bool                 // the value itself is a path
	keys  map[string]*PathRule // by key of a mapping
	other *PathRule            // any other key
	items *PathRule            // any item of a list
}

// NewPathRule finds the values that the JSON Schema of a config marks with
// "format": "path". It is nil if there are none. References inside the schema
// are followed, unless they lead in a circle.
func NewPathRule(schema []byte) (*PathRule, error) {
	doc, err := decode(schema) // JSON is YAML
	if err != nil {
		return nil, fmt.Errorf("reading a config schema: %w", err)
	}
	root, _ := doc.value.(*Map)
	r := &PathRule{}
	pathReader{root: root, open: map[*Map]bool{}}.read(root, r)
	if r.empty() {
		return nil, nil
	}
	return r, nil
}

// pathReader collects the path rules of a schema.
type pathReader struct {
	root *Map
	open map[*Map]bool // schemas that are being read
}

// read adds what the schema s says to r.
func (p pathReader) read(s Value, r *PathRule) {
	m, ok := s.(*Map)
	if !ok || p.open[m] {
		return
	}
	p.open[m] = true
	defer delete(p.open, m)
	for key, v := range m.All() {
		switch key {
		case "format":
			r.path = r.path || v == "path"
		case "properties":
			if props, ok := v.(*Map); ok {
				for name, s := range props.All() {
					p.read(s, r.key(name))
				}
			}
		case "additionalProperties":
			r.other = p.below(v, r.other)
		case "items":
			r.items = p.below(v, r.items)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			list, ok := v.(*List)
			if !ok {
				continue
			}
			for _, s := range list.Items {
				if key == "prefixItems" {
					r.items = p.below(s, r.items)
				} else {
					p.read(s, r)
				}
			}
		case "then", "else":
			p.read(v, r)
		case "$ref":
			ref, _ := v.(string)
			if name, ok := strings.CutPrefix(ref, definitions); ok {
				defs, _ := p.root.Get("$defs")
				defsMap, _ := defs.(*Map)
				target, _ := defsMap.Get(name)
				p.read(target, r)
			}
		}
	}
}

// below is rule with what s says, nil if both say nothing.
func (p pathReader) below(s Value, rule *PathRule) *PathRule {
	if rule == nil {
		rule = &PathRule{}
	}
	p.read(s, rule)
	if rule.empty() {
		return nil
	}
	return rule
}

func (r *PathRule) key(name string) *PathRule {
	if r.keys == nil {
		r.keys = make(map[string]*PathRule)
	}
	if r.keys[name] == nil {
		r.keys[name] = &PathRule{}
	}
	return r.keys[name]
}

// empty says that there are no paths, and drops keys below which there are
// none.
func (r *PathRule) empty() bool {
	for name, rule := range r.keys {
		if rule.empty() {
			delete(r.keys, name)
		}
	}
	return !r.path && len(r.keys) == 0 && r.other == nil && r.items == nil
}

// at is the rule for the value of a key.
func (r *PathRule) at(key string) *PathRule {
	if rule, ok := r.keys[key]; ok {
		return rule
	}
	return r.other
}

// resolver makes the paths of one patch absolute. The patch is a copy that is
// not yet in the tree.
type resolver struct {
	src    *Source
	rules  PathRules
	born   int32
	escape string // the first path that leaves the package
	seen   map[*List]bool
	copies map[ruled]container
}

// ruled is a value that aliases name, under the rule of one of its places.
type ruled struct {
	rule *PathRule
	node container
}

// rows makes the paths in the configs of rows, and of rows inside them,
// absolute.
func (r *resolver) rows(list *List) {
	if list.shared {
		if r.seen[list] {
			return
		}
		if r.seen == nil {
			r.seen = make(map[*List]bool)
		}
		r.seen[list] = true
	}
	for _, item := range list.Items {
		row, ok := item.(*Map)
		if !ok {
			continue
		}
		if children, ok := childRows(row); ok {
			r.rows(children)
		} else if config, ok := row.Get("config"); ok {
			if now := r.config(row, config); now != config {
				row.Set("config", now)
			}
		}
	}
}

// config is config with its paths absolute, for the row that it is to be the
// config of.
func (r *resolver) config(row *Map, config Value) Value {
	name, _ := row.Get("name")
	plugin, _ := name.(string)
	group, _ := row.Get("group")
	if list, ok := config.(*List); ok && (Truthy(group) || plugin == groupName) {
		r.rows(list)
		return config
	}
	if rule := r.rules(plugin); rule != nil {
		return r.value(rule, config)
	}
	return config
}

// value is v with its paths absolute. What aliases name is copied and not
// changed: at its other places it may be no path.
func (r *resolver) value(rule *PathRule, v Value) Value {
	switch v := v.(type) {
	case string:
		if !rule.path {
			return v
		}
		if r.src.escapes(v) && r.escape == "" {
			r.escape = v
		}
		return r.src.Path(v)
	case *Map:
		m, done := v, false
		if v.shared {
			if m, done = remembered(r, rule, v, func() *Map {
				return &Map{pairs: slices.Clone(v.pairs), indices: v.indices, lookup: v.lookup, line: v.line, column: v.column, node: node{born: r.born}}
			}); done {
				return m
			}
		}
		for i := range m.pairs {
			if below := rule.at(m.pairs[i].key); below != nil {
				m.pairs[i].value = r.value(below, m.pairs[i].value)
			}
		}
		return m
	case *List:
		l, done := v, false
		if v.shared {
			if l, done = remembered(r, rule, v, func() *List { return &List{Items: slices.Clone(v.Items), node: node{born: r.born}} }); done {
				return l
			}
		}
		if rule.items != nil {
			for i, item := range l.Items {
				l.Items[i] = r.value(rule.items, item)
			}
		}
		return l
	default:
		return v
	}
}

// remembered is the copy of v for a rule, and whether it was made before.
func remembered[C container](r *resolver, rule *PathRule, v C, clone func() C) (C, bool) {
	if done, ok := r.copies[ruled{rule, v}]; ok {
		return done.(C), true
	}
	c := clone()
	if r.copies == nil {
		r.copies = make(map[ruled]container)
	}
	r.copies[ruled{rule, v}] = c
	return c, false
}

// Path is the absolute form of a path that the text of src holds: ~ is the
// user's home, a relative path starts at src.Dir, and an absolute one or a
// file URL stays as it is written. The empty path is none.
func (src *Source) Path(name string) string {
	windows := isWindows(src.Dir)
	slashed := name
	if windows {
		slashed = strings.ReplaceAll(name, `\`, "/")
	}
	switch {
	case name == "" || isAbsolute(slashed, windows):
		return name
	case (slashed == "~" || strings.HasPrefix(slashed, "~/")) && src.UserHome != "":
		return joinPath(src.UserHome, slashed[1:], windows)
	default:
		return joinPath(src.Dir, "/"+slashed, windows)
	}
}

func isWindows(dir string) bool { return isDrive(dir) || strings.HasPrefix(dir, `\\`) }

// isAbsolute says whether a path stays as it is.
func isAbsolute(slashed string, windows bool) bool {
	return strings.HasPrefix(slashed, "/") || strings.HasPrefix(slashed, "file:") || windows && isDrive(slashed)
}

// joinPath is dir with the slashed path rest behind it, in the form of dir.
func joinPath(dir, rest string, windows bool) string {
	if !windows {
		return path.Clean(dir + rest)
	}
	share := ""
	if strings.HasPrefix(dir, `\\`) {
		share, dir = `\\`, dir[2:]
	} else {
		share, dir = dir[:2], dir[2:]
	}
	joined := path.Clean(strings.ReplaceAll(dir, `\`, "/") + rest)
	return share + strings.ReplaceAll(joined, "/", `\`)
}

// escapes says whether name is a relative path that leaves src.Root.
func (src *Source) escapes(name string) bool {
	if src.Root == "" {
		return false
	}
	windows := isWindows(src.Dir)
	if windows {
		name = strings.ReplaceAll(name, `\`, "/")
	}
	if isAbsolute(name, windows) || !strings.Contains(name, "..") {
		return false
	}
	return !inside(joinPath(src.Root, "", windows), joinPath(src.Dir, "/"+name, windows), windows)
}

// inside says whether the cleaned path name is dir or in it.
func inside(dir, name string, windows bool) bool {
	separator := byte('/')
	if windows {
		separator = '\\'
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, string(separator)))
	return ok && (rest == "" || rest[0] == separator)
}

// EscapeError is a relative path in a bundle's layer that leaves the package.
type EscapeError struct {
	File         string
	Line, Column int
	Path         string // as written
}

func (e *EscapeError) Error() string {
	return fmt.Sprintf("%s: path %s leaves the package", place(e.File, e.Line, e.Column), quoteForMessage(e.Path))
}

// Class is fault.Policy.
func (e *EscapeError) Class() fault.Class { return fault.Policy }

// RelativePath is a path in a composed tree that is not absolute. There is
// none in what [Apply] returns.
type RelativePath struct {
	Row  *Map
	Path string
}

// RelativePaths looks for paths that are not absolute, under the rules that
// the tree was composed with.
func (t *Tree) RelativePaths(rules PathRules) []RelativePath {
	var found []RelativePath
	for row := range t.All() {
		if len(row.Children()) > 0 {
			continue
		}
		if rule := rules(row.Name()); rule != nil {
			eachPath(rule, row.Config(), func(name string) {
				slashed := strings.ReplaceAll(name, `\`, "/")
				if name != "" && !isAbsolute(slashed, isDrive(name)) {
					found = append(found, RelativePath{row.Entry, name})
				}
			})
		}
	}
	return found
}

// Paths are the values in the config of a row that are paths of the file
// system, under the plugin's rule.
func Paths(rule *PathRule, config Value) []string {
	var found []string
	if rule != nil {
		eachPath(rule, config, func(name string) { found = append(found, name) })
	}
	return found
}

func eachPath(rule *PathRule, v Value, found func(string)) {
	switch v := v.(type) {
	case string:
		if rule.path {
			found(v)
		}
	case *Map:
		for key, item := range v.All() {
			if below := rule.at(key); below != nil {
				eachPath(below, item, found)
			}
		}
	case *List:
		if rule.items != nil {
			for _, item := range v.Items {
				eachPath(rule.items, item, found)
			}
		}
	}
}
