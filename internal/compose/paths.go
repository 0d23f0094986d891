package compose

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
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

// PathRule is where paths stand in a value.
type PathRule struct {
	path     bool                 // the value itself is a path,
	words    map[string]bool      // unless it is one of these,
	urls     bool                 // or a URL
	keys     map[string]*PathRule // by key of a mapping
	patterns []keyPattern         // by the first that a key matches
	other    *PathRule            // any other key
	first    []*PathRule          // by place in a list
	items    *PathRule            // any further item
}

type keyPattern struct {
	key  *regexp.Regexp
	rule *PathRule
}

// isPath says whether the text at the place of the rule is a path.
func (r *PathRule) isPath(text string) bool {
	return r.path && !r.words[text] && !(r.urls && strings.Contains(text, "://"))
}

// at is the rule for the value of a key, nil if there are no paths in it.
func (r *PathRule) at(key string) *PathRule {
	if rule, ok := r.keys[key]; ok {
		return rule
	}
	for _, p := range r.patterns {
		if p.key.MatchString(key) {
			return p.rule
		}
	}
	return r.other
}

func (r *PathRule) hasKeys() bool {
	return len(r.keys) > 0 || len(r.patterns) > 0 || r.other != nil
}

func (r *PathRule) hasItems() bool { return len(r.first) > 0 || r.items != nil }

// item is the rule for an item of a list, nil if there are no paths in it.
func (r *PathRule) item(i int) *PathRule {
	if i < len(r.first) {
		return r.first[i]
	}
	return r.items
}

// resolver makes the paths of one patch absolute. The patch is a copy that is
// not yet in the tree.
type resolver struct {
	src    *Source
	rules  PathRules
	born   int32
	escape string // the first path that leaves the package
	walk   seenWalk
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
	if r.walk.again(list) {
		return
	}
	for _, item := range list.Items {
		row, ok := item.(*Map)
		if !ok || r.walk.again(row) {
			continue
		}
		if config, ok := row.Get("config"); ok {
			if now := r.config(row, config); now != config {
				row.Set("config", now)
				if c, ok := now.(container); ok {
					c.at().hang(link{parent: row})
				}
			}
		}
	}
}

// inserted makes the paths in rows absolute, which are to go into the group
// target, or on top if that is nil. Should target be no group one day, what it
// holds is its config.
func (r *resolver) inserted(target *Map, rows []Value) {
	r.rows(&List{Items: rows})
	if target == nil {
		return
	}
	rule := r.rule(target)
	if rule == nil {
		return
	}
	config, _ := target.Get("config")
	there := len(itemsOf(config))
	for i, row := range rows {
		if below := rule.item(there + i); below != nil {
			rows[i] = r.value(below, row, false)
		}
	}
}

// rule is the rule for the config of a row, nil if there are no paths in it.
func (r *resolver) rule(row *Map) *PathRule {
	name, _ := row.Get("name")
	plugin, _ := name.(string)
	return r.rules(plugin)
}

// config is config with its paths absolute, for the row that it is to be the
// config of. What is inside a list may be rows: if not now, then when a layer
// above makes a group of the row.
func (r *resolver) config(row *Map, config Value) Value {
	if list, ok := config.(*List); ok {
		r.rows(list)
	}
	if rule := r.rule(row); rule != nil {
		return r.value(rule, config, false)
	}
	return config
}

// value is v with its paths absolute. What aliases name is copied and not
// changed: at its other places it may be no path, or be a group that gets more
// rows. copying says that v is in something of that kind.
func (r *resolver) value(rule *PathRule, v Value, copying bool) Value {
	switch v := v.(type) {
	case string:
		if !rule.isPath(v) {
			return v
		}
		if r.src.escapes(v) && r.escape == "" {
			r.escape = v
		}
		return r.src.Path(v)
	case *Map:
		if !copying && !rule.hasKeys() {
			return v
		}
		if !copying && !v.shared {
			for i, p := range v.pairs {
				v.pairs[i].value = r.below(rule.at(p.key), p.value, v, false)
			}
			return v
		}
		m := newMap(slices.Clone(v.pairs))
		if done := r.copied(rule, v, m); done != nil {
			return done
		}
		m.line, m.column, m.born = v.line, v.column, r.born
		for i, p := range m.pairs {
			m.pairs[i].value = r.below(rule.at(p.key), p.value, m, true)
		}
		return m
	case *List:
		if !copying && !rule.hasItems() {
			return v
		}
		if !copying && !v.shared {
			for i, item := range v.Items {
				v.Items[i] = r.below(rule.item(i), item, v, false)
			}
			return v
		}
		l := &List{Items: slices.Clone(v.Items), node: node{born: r.born}}
		if done := r.copied(rule, v, l); done != nil {
			return done
		}
		for i, item := range l.Items {
			l.Items[i] = r.below(rule.item(i), item, l, true)
		}
		return l
	default:
		return v
	}
}

// below is v, which is in parent, with its paths absolute.
func (r *resolver) below(rule *PathRule, v Value, parent container, copying bool) Value {
	now := v
	if rule != nil {
		now = r.value(rule, v, copying)
	}
	c, ok := now.(container)
	if !ok || now == v && !copying {
		return now
	}
	if now == v { // in the original as well as in the copy
		c.at().shared = true
	}
	c.at().hang(link{parent: parent})
	return now
}

// copied is the copy of v for a rule, nil if c is to be the first one. What
// aliases name is copied once, also if it is in itself.
func (r *resolver) copied(rule *PathRule, v, c container) container {
	if !v.at().shared {
		return nil
	}
	done, ok := r.copies[ruled{rule, v}]
	if ok {
		done.at().shared = true
		return done
	}
	if r.copies == nil {
		r.copies = make(map[ruled]container)
	}
	r.copies[ruled{rule, v}] = c
	return nil
}

// Path is the absolute form of a path that the text of src holds: ~ is the
// user's home, a relative path starts at src.Dir, and an absolute one or a
// file URL stays as it is written. The empty path is none. Whose paths they
// are, the form of src.Dir tells; those of Windows that lack a drive get that
// of src.Dir.
func (src *Source) Path(name string) string {
	absolute, _ := src.resolve(name)
	return absolute
}

// resolve also says whether the path is relative to src.Dir.
func (src *Source) resolve(name string) (absolute string, relative bool) {
	windows := isWindows(src.Dir)
	slashed := name
	if windows {
		slashed = strings.ReplaceAll(name, `\`, "/")
	}
	switch {
	case name == "" || isAbsolute(slashed, windows):
		return name, false
	case (slashed == "~" || strings.HasPrefix(slashed, "~/")) && src.UserHome != "":
		return joinPath(src.UserHome, slashed[1:]), false
	case windows && slashed[0] == '/':
		return joinPath(volume(src.Dir), slashed), false
	case windows && len(slashed) > 1 && slashed[1] == ':' && isLetter(slashed[0]):
		if drive := slashed[:2]; !strings.EqualFold(drive, volume(src.Dir)) {
			return joinPath(drive, "/"+slashed[2:]), false
		}
		slashed = slashed[2:]
	}
	return joinPath(src.Dir, "/"+slashed), true
}

func isWindows(dir string) bool { return isDrive(dir) || strings.HasPrefix(dir, `\\`) }

// isAbsolute says whether a path stays as it is.
func isAbsolute(slashed string, windows bool) bool {
	switch {
	case strings.HasPrefix(slashed, "file:/"):
		return true
	case windows:
		return isDrive(slashed) || strings.HasPrefix(slashed, "//")
	default:
		return strings.HasPrefix(slashed, "/")
	}
}

// joinPath is dir with the slashed path rest behind it, in the form of dir.
func joinPath(dir, rest string) string {
	if !isWindows(dir + `\`) {
		return path.Clean(dir + rest)
	}
	drive := volume(dir + `\`)
	joined := path.Clean("/" + strings.ReplaceAll(dir[min(len(drive), len(dir)):], `\`, "/") + rest)
	return drive + strings.ReplaceAll(joined, "/", `\`)
}

// escapes says whether name is a relative path that leaves src.Root.
func (src *Source) escapes(name string) bool {
	if src.Root == "" || !strings.Contains(name, "..") {
		return false
	}
	absolute, relative := src.resolve(name)
	return relative && !inside(joinPath(src.Root, ""), absolute)
}

// inside says whether the cleaned path name is dir or in it.
func inside(dir, name string) bool {
	separator := `/`
	if isWindows(dir) {
		separator = `\`
	}
	rest, ok := strings.CutPrefix(name, strings.TrimSuffix(dir, separator))
	return ok && (rest == "" || rest[:1] == separator)
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
	Row *Map
	PathAt
}

// RelativePaths looks for paths that are not absolute, under the rules that
// the tree was composed with.
func (t *Tree) RelativePaths(rules PathRules) []RelativePath {
	var found []RelativePath
	for row := range t.Mounted() {
		if len(row.Mounted()) > 0 {
			continue
		}
		if rule := rules(row.Name()); rule != nil {
			for _, at := range Paths(rule, row.Config()) {
				if at.Path != "" && !isAbsolute(at.Path, false) && !isAbsolute(strings.ReplaceAll(at.Path, `\`, "/"), true) {
					found = append(found, RelativePath{row.Entry, at})
				}
			}
		}
	}
	return found
}

// PathAt is a path of the file system and the keys that lead to it in a config.
type PathAt struct {
	Keys []string
	Path string
}

// Paths are the values in the config of a row that are paths of the file
// system, under the plugin's rule.
func Paths(rule *PathRule, config Value) []PathAt {
	if rule == nil {
		return nil
	}
	return appendPaths(nil, rule, config, nil)
}

func appendPaths(found []PathAt, rule *PathRule, v Value, keys []string) []PathAt {
	switch v := v.(type) {
	case string:
		if rule.isPath(v) {
			found = append(found, PathAt{slices.Clone(keys), v})
		}
	case *Map:
		for key, item := range v.All() {
			if below := rule.at(key); below != nil {
				found = appendPaths(found, below, item, append(keys, key))
			}
		}
	case *List:
		for i, item := range v.Items {
			if below := rule.item(i); below != nil {
				found = appendPaths(found, below, item, append(keys, strconv.Itoa(i)))
			}
		}
	}
	return found
}
