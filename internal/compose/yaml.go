package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"gopkg.in/yaml.v3"
)

const (
	// maxDepth is how deep nodes may nest, as in js-yaml.
	maxDepth = 100
	// maxAliased is how many bytes the aliases of one text may stand for.
	maxAliased = 16 << 20
	// exprKey is the key under which the reference loader keeps the text of an
	// expression. A mapping of just this key is an expression.
	exprKey = "__jsExpr"
)

// problem is why a text is refused, without the name of its file.
type problem struct {
	line, column int
	text, remedy string
}

func (p *problem) Error() string { return p.text }

// document is what a text holds.
type document struct {
	value Value
	// line and column of the value, and of each item where it is a list.
	at    [2]int
	items [][2]int
}

// decode reads a text of the dialect: js-yaml's JSON schema and `!!js`. The
// error is a *problem.
func decode(text []byte) (document, error) { return decodeFor(nil, text) }

// decodeFor reads a text in which `!path` stands for the paths of src. Without
// a source there are none.
func decodeFor(src *Source, text []byte) (document, error) {
	if p := unreadable(text); p != nil {
		return document{}, p
	}
	prepared, replaced := prepare(text, false)
	root, err := parseYAML(prepared)
	if err != nil {
		prepared, replaced = prepare(text, true)
		root, err = parseYAML(prepared)
	}
	if err != nil {
		return document{}, diagnose([]byte(restore(string(prepared))), err)
	}
	if root == nil {
		return document{}, nil
	}
	adoptItems(root, nil)
	d := decoder{src: src, text: prepared, replaced: replaced, cursor: cursor{text: prepared}}
	v, err := d.value(root, 1)
	if err != nil {
		return document{}, err
	}
	doc := document{value: v, at: [2]int{root.Line, root.Column}}
	if root.Kind == yaml.SequenceNode {
		for _, n := range root.Content {
			doc.items = append(doc.items, [2]int{n.Line, n.Column})
		}
	}
	return doc, nil
}

// errSecondDocument is that a text goes on behind its first document.
var errSecondDocument = errors.New("expected a single document in the stream, but found more")

// parseYAML is the root node of the only document in text, nil if there is
// none. yaml.v3 panics on some texts instead of refusing them.
func parseYAML(text []byte) (root *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			root, err = nil, fmt.Errorf("it cannot be read: %v", r)
		}
	}()
	var first, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&first); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := dec.Decode(&second); err == nil {
		return nil, errSecondDocument
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(first.Content) == 0 {
		return nil, nil
	}
	return first.Content[0], nil
}

// items is what follows an item of a block sequence.
type items struct {
	rest  []*yaml.Node // of the same sequence
	outer *items       // when that is over; nil if the text goes on with something else
}

// next takes the item that is written next, nil if none is.
func (s *items) next() *yaml.Node {
	for ; s != nil; s = s.outer {
		if len(s.rest) > 0 {
			item := s.rest[0]
			s.rest = s.rest[1:]
			return item
		}
	}
	return nil
}

// adoptItems reads block sequences as js-yaml does: where one ends with an
// item that is empty, the next line still belongs to it if it begins with a
// dash, however little that is indented. after is how the text goes on behind
// n.
func adoptItems(n *yaml.Node, after *items) {
	switch {
	case n.Style&yaml.FlowStyle != 0:
	case n.Kind == yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			if i+1 < len(n.Content) {
				adoptItems(n.Content[i], nil)
			} else {
				adoptItems(n.Content[i], after)
			}
		}
	case n.Kind == yaml.SequenceNode:
		follow := &items{rest: n.Content, outer: after}
		n.Content = n.Content[:0]
		for {
			last := len(n.Content) - 1
			if len(follow.rest) == 0 && (last < 0 || !isEmpty(n.Content[last])) {
				return
			}
			item := follow.next()
			if item == nil {
				return
			}
			n.Content = append(n.Content, item)
			adoptItems(item, follow)
		}
	}
}

// isEmpty says whether nothing at all is written for n.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style == 0 && n.Anchor == ""
}

// decoder turns nodes into values.
type decoder struct {
	src      *Source // nil for a text that is no layer
	text     []byte
	replaced bool // there may be stand-ins in text
	cursor   cursor
	size     int // bytes read so far, those that aliases stand for included
	aliased  int // of these, how many for aliases
	anchors  map[*yaml.Node]anchored
}

// anchored is a value that aliases may name, and the bytes it stands for.
type anchored struct {
	value Value
	size  int
}

func refuse(n *yaml.Node, remedy, format string, args ...any) error {
	return &problem{line: n.Line, column: n.Column, text: fmt.Sprintf(format, args...), remedy: remedy}
}

func (d *decoder) value(n *yaml.Node, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, refuse(n, "", "nested deeper than %d levels", maxDepth)
	}
	if err := d.misread(n); err != nil {
		return nil, err
	}
	if n.Kind == yaml.AliasNode {
		return d.alias(n)
	}
	start := d.size
	v, err := d.content(n, depth)
	if err != nil {
		return nil, err
	}
	if n.Anchor != "" {
		if d.anchors == nil {
			d.anchors = make(map[*yaml.Node]anchored)
		}
		d.anchors[n] = anchored{v, d.size - start}
	}
	return v, nil
}

func (d *decoder) alias(n *yaml.Node) (Value, error) {
	a, ok := d.anchors[n.Alias]
	if !ok {
		return nil, refuse(n, "write the value out", "alias *%s stands inside the value that it names", n.Value)
	}
	d.size += a.size
	if d.aliased += a.size; d.aliased > maxAliased {
		return nil, refuse(n, "write the values out, or use fewer aliases",
			"aliases stand for more than %d MiB", maxAliased>>20)
	}
	switch v := a.value.(type) {
	case *Map:
		v.shared = true
	case *List:
		v.shared = true
	}
	return a.value, nil
}

func (d *decoder) content(n *yaml.Node, depth int) (Value, error) {
	d.size += len(n.Value) + 4
	switch n.Kind {
	case yaml.SequenceNode:
		if n.Tag != "!!seq" {
			return nil, d.unknownTag(n)
		}
		return d.list(n, depth)
	case yaml.MappingNode:
		if n.Tag != "!!map" {
			return nil, d.unknownTag(n)
		}
		return d.mapping(n, depth)
	default:
		return d.scalar(n)
	}
}

func (d *decoder) list(n *yaml.Node, depth int) (Value, error) {
	list := &List{Items: make([]Value, len(n.Content))}
	for i, c := range n.Content {
		v, err := d.value(c, depth+1)
		if err != nil {
			return nil, err
		}
		list.Items[i] = v
	}
	return list, nil
}

func (d *decoder) mapping(n *yaml.Node, depth int) (Value, error) {
	pairs := make([]pair, 0, len(n.Content)/2)
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := d.key(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		if duplicateKey(pairs, seen, key) {
			return nil, refuse(n.Content[i], "keep one of the two", "duplicated mapping key %s", quoteForMessage(key))
		}
		v, err := d.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair{key, v})
	}
	if len(pairs) == 1 && pairs[0].key == exprKey {
		if text, ok := pairs[0].value.(string); ok {
			return Expr{text}, nil
		}
	}
	m := newMap(pairs)
	m.line, m.column = int32(n.Line), int32(n.Column)
	return m, nil
}

// duplicateKey looks key up among pairs; seen is filled only where looking
// through the pairs would be slow.
func duplicateKey(pairs []pair, seen map[string]bool, key string) bool {
	if len(pairs) < searchable {
		for _, p := range pairs {
			if p.key == key {
				return true
			}
		}
		return false
	}
	if len(seen) == 0 {
		for _, p := range pairs {
			seen[p.key] = true
		}
	}
	if seen[key] {
		return true
	}
	seen[key] = true
	return false
}

// key is a key as JavaScript would name the property.
func (d *decoder) key(n *yaml.Node, depth int) (string, error) {
	v, err := d.value(n, depth)
	if err != nil {
		return "", err
	}
	if n.Tag == "!path" {
		return "", refuse(n, "use a text as the key", "a path cannot be a key")
	}
	switch v := v.(type) {
	case *Map:
		return "", refuse(n, "use a text as the key", "a mapping cannot be a key")
	case Expr:
		return "", refuse(n, expressionRemedy([]byte(restore(string(d.text))), n.Line, n.Column),
			"`: ` in an expression that is not quoted makes it a key")
	case *List:
		parts := make([]string, len(v.Items))
		for i, item := range v.Items {
			switch item.(type) {
			case *Map, *List, Expr:
				return "", refuse(n, "use a text as the key", "a list of more than scalars cannot be a key")
			case nil: // joined as nothing
			default:
				parts[i] = scalarText(item)
			}
		}
		return strings.Join(parts, ","), nil
	default:
		return scalarText(v), nil
	}
}

// scalarText is String(v) of JavaScript.
func scalarText(v Value) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "true"
		}
		return "false"
	case float64:
		return string(appendNumber(nil, v))
	default:
		return "null"
	}
}

func (d *decoder) scalar(n *yaml.Node) (Value, error) {
	text := n.Value
	if d.replaced {
		text = restore(text)
	}
	quoted := n.Style &^ yaml.TaggedStyle
	if n.Style&yaml.TaggedStyle == 0 {
		if quoted != 0 {
			return text, nil
		}
		return resolvePlain(text), nil
	}
	empty := text == "" && quoted == 0
	cannot := func() error { return refuse(n, "", "%s cannot be %s", quoteForMessage(text), n.Tag) }
	switch n.Tag {
	case "!!js":
		if empty {
			return nil, refuse(n, "write the expression behind `!!js`, or delete the tag", "`!!js` without an expression")
		}
		return Expr{text}, nil
	case "!path":
		return d.path(n, text)
	case "!!str":
		return text, nil
	case "!!null":
		if !empty && !isNull(text) {
			return nil, cannot()
		}
		return nil, nil
	case "!!bool":
		if b, ok := parseBool(text); ok {
			return b, nil
		}
		return nil, cannot()
	case "!!int":
		if f, ok := parseInteger(text); ok {
			return f, nil
		}
		return nil, cannot()
	case "!!float":
		if f, ok := parseFloat(text); ok {
			return f, nil
		}
		return nil, cannot()
	case "!!seq":
		if empty {
			return &List{}, nil
		}
	case "!!map":
		if empty {
			return newMap(nil), nil
		}
	}
	return nil, d.unknownTag(n)
}

// path is a scalar that is tagged as a path.
func (d *decoder) path(n *yaml.Node, text string) (Value, error) {
	switch {
	case d.src == nil || text == "":
		return nil, d.unknownTag(n)
	case !d.src.Kind.takesPaths():
		return nil, refuse(n, "write an absolute path without the tag",
			"`!path` can stand in a project's layer and in --patch files only: other launchers read this file too, and do not know it")
	default:
		return d.src.Path(text), nil
	}
}

func (d *decoder) unknownTag(n *yaml.Node) error {
	switch {
	case n.Tag == "!path" && d.src != nil:
		return refuse(n, "write one path behind `!path`, or delete the tag", "`!path` takes one text")
	case n.Tag == "!!js":
		return refuse(n, "write the expression as one quoted text: !!js '…'", "`!!js` takes one scalar")
	case strings.HasPrefix(n.Tag, "!!"):
		return refuse(n, "delete the tag; the only one beside YAML's own is `!!js`", "unknown tag %s", n.Tag)
	default:
		return refuse(n, "quote the value if the ! belongs to it", "unknown tag %s", n.Tag)
	}
}
