package patchedit

import (
	"bytes"
	"errors"
)

// A document is the places of everything in a text. Its reader follows the
// steps of js-yaml's loader, so that it sees the nodes that js-yaml sees, but
// it only finds places: compose says what a text means, and whether it is
// right at all.
type document struct {
	root     *node
	comments []span // in order
	start    int    // behind the byte-order mark, the directives and `---`
	end      int    // of the document: where `...` stands, else the end of the text
}

// span is a part of the text.
type span struct{ start, end int }

type kind uint8

const (
	emptyNode kind = iota // nothing but properties
	scalarNode
	aliasNode
	sequenceNode
	mappingNode
)

// node is a value, or a key.
type node struct {
	kind    kind
	flow    bool // a collection in brackets, or a single pair in a list in brackets
	pair    bool // a single pair in a list in brackets, as in [a: 1]
	start   int  // of its properties, else of its content
	body    int  // of its content
	props   int  // end of its properties; start if it has none
	end     int
	column  int // of the entries of a block collection
	anchor  string
	named   bool // an alias names the anchor
	entries []entry
}

// entry is an item of a sequence, or a key and value of a mapping.
type entry struct {
	start int   // of the dash, question mark, key, or item in brackets
	mark  int   // the dash of an item, the colon behind a key; -1 if there is none
	comma int   // behind it, in brackets; -1 if there is none
	key   *node // nil for an item, or a key that is not there
	value *node // nil where nothing is written
	end   int
}

// errPlaces is that the reader got lost.
var errPlaces = errors.New("its syntax is too unusual to be edited")

// context is where a node stands, in the terms of YAML's grammar.
type context uint8

const (
	blockIn context = iota
	blockOut
	flowIn
	flowOut
)

// reader is the state of reading. A copy of place can be gone back to.
type reader struct {
	text []byte
	place
	comments []span
	depth    int
}

type place struct {
	pos       int
	line      int
	lineStart int
	indent    int // spaces at the start of the line
}

// maxDepth is deeper than compose lets nodes nest.
const maxDepth = 500

// read finds the places of everything in text.
func read(text []byte) (doc document, err error) {
	defer func() {
		if lost := recover(); lost != nil {
			if lost != errPlaces {
				panic(lost)
			}
			err = errPlaces
		}
	}()
	r := &reader{text: text}
	if bytes.HasPrefix(text, bom) {
		r.pos, r.lineStart = len(bom), len(bom)
	}
	doc.start = r.pos
	for {
		r.skip(true)
		if r.indent > 0 || r.peek(0) != '%' {
			break
		}
		r.pos = lineEnd(text, r.pos)
		doc.start = r.pos
	}
	if r.indent == 0 && r.atMarker('-') {
		r.pos += 3
		doc.start = r.pos
		r.skip(true)
	}
	doc.root = r.node(r.indent-1, blockOut, false, true)
	r.skip(true)
	doc.end = r.pos
	if r.pos < len(text) && !r.atMarker('.') {
		return document{}, errPlaces
	}
	doc.comments = r.comments
	names := map[string]*node{}
	doc.root.nameAnchors(text, names)
	return doc, nil
}

// nameAnchors finds the anchors that aliases name.
func (n *node) nameAnchors(text []byte, names map[string]*node) {
	if n == nil {
		return
	}
	if n.anchor != "" {
		names[n.anchor] = n
	}
	if n.kind == aliasNode {
		if named := names[string(text[n.body+1:n.end])]; named != nil {
			named.named = true
		}
	}
	for _, e := range n.entries {
		e.key.nameAnchors(text, names)
		e.value.nameAnchors(text, names)
	}
}

func (r *reader) lost() { panic(errPlaces) }

// peek is the byte n ahead, 0 at the end of the text.
func (r *reader) peek(n int) byte {
	if i := r.pos + n; i >= 0 && i < len(r.text) {
		return r.text[i]
	}
	return 0
}

func isBlankByte(c byte) bool { return c == ' ' || c == '\t' }
func isBreak(c byte) bool     { return c == '\n' || c == '\r' }
func isFlowSign(c byte) bool  { return bytes.IndexByte([]byte(",[]{}"), c) >= 0 }

// isWhite also says yes to the end of the text.
func isWhite(c byte) bool { return isBlankByte(c) || isBreak(c) || c == 0 }

func (r *reader) atEnd() bool { return r.pos >= len(r.text) }
func (r *reader) column() int { return r.pos - r.lineStart }
func (r *reader) rewind(p place) {
	r.place = p
	for len(r.comments) > 0 && r.comments[len(r.comments)-1].start >= p.pos {
		r.comments = r.comments[:len(r.comments)-1]
	}
}

// atMarker says whether `---` or `...` stands here, as a line of its own.
func (r *reader) atMarker(c byte) bool {
	return r.pos == r.lineStart && r.peek(0) == c && r.peek(1) == c && r.peek(2) == c && isWhite(r.peek(3))
}

func (r *reader) newline() {
	if r.peek(0) == '\r' && r.peek(1) == '\n' {
		r.pos++
	}
	r.pos++
	r.line++
	r.lineStart = r.pos
	r.indent = 0
}

// skip goes over white space, and comments where there may be some. It says
// whether it came to another line.
func (r *reader) skip(comments bool) bool {
	from := r.line
	for {
		for isBlankByte(r.peek(0)) {
			r.pos++
		}
		if comments && r.peek(0) == '#' {
			end := lineEnd(r.text, r.pos)
			r.comments = append(r.comments, span{r.pos, end})
			r.pos = end
		}
		if !isBreak(r.peek(0)) {
			return r.line > from
		}
		r.newline()
		for r.peek(0) == ' ' {
			r.pos++
			r.indent++
		}
	}
}

// node reads a node, nil if there is none. parent is the indentation of what
// holds it; seek says that it may begin on a later line, compact that a
// collection may begin on the line of what holds it.
func (r *reader) node(parent int, ctx context, seek, compact bool) *node {
	if r.depth++; r.depth > maxDepth {
		r.lost()
	}
	defer func() { r.depth-- }()

	inBlock := ctx == blockOut || ctx == blockIn
	collections := inBlock
	newLine := false
	status := 1 // 1 deeper than parent, 0 as deep, -1 less deep
	relate := func() {
		newLine = true
		status = max(-1, min(1, r.indent-parent))
	}
	if seek && r.skip(true) {
		relate()
	}
	n := &node{start: r.pos, props: r.pos}
	properties := false
	var sameLine *place // where properties begin that may be those of a key
	for status == 1 && (r.peek(0) == '!' || r.peek(0) == '&') {
		at := r.place
		if sameLine == nil || sameLine.line != r.line {
			sameLine = &at
		}
		properties = true
		r.property(n)
		if r.skip(true) {
			relate()
			collections = inBlock
		} else {
			collections = false
		}
	}
	if properties && !collections && inBlock && (newLine || compact) {
		if m := r.keyWithProperties(parent, sameLine, n); m != nil {
			return m
		}
	}
	collections = collections && (newLine || compact)
	flowIndent := parent + 1
	if ctx == flowIn || ctx == flowOut {
		flowIndent = parent
	}
	n.body = r.pos
	found := false
	switch {
	case status == 1:
		found = collections && (r.sequence(n, r.column()) || r.mapping(n, r.column(), flowIndent)) ||
			r.brackets(n, flowIndent) ||
			inBlock && r.blockScalar(n, flowIndent) ||
			r.quoted(n) || r.alias(n) || r.plain(n, flowIndent, ctx == flowIn)
	case status == 0 && ctx == blockOut:
		found = collections && r.sequence(n, r.column())
	}
	switch {
	case found:
		if !properties {
			n.start, n.props = n.body, n.body
		}
		return n
	case properties:
		n.body, n.end = n.props, n.props
		return n
	default:
		return nil
	}
}

// keyWithProperties reads a mapping whose first key has the properties that
// begin at a place, nil if there is none. outer keeps what belongs to the
// mapping: properties on an earlier line.
func (r *reader) keyWithProperties(parent int, at *place, outer *node) *node {
	here := r.place
	r.rewind(*at)
	n := &node{start: at.pos, props: at.pos, body: at.pos}
	if r.mapping(n, r.column(), parent+1) {
		if outer.start < at.pos {
			n.start, n.props, n.anchor = outer.start, outer.start, outer.anchor
		}
		return n
	}
	r.rewind(here)
	return nil
}

// property reads a tag or an anchor.
func (r *reader) property(n *node) {
	start := r.pos
	if r.peek(0) == '!' && r.peek(1) == '<' {
		for !isWhite(r.peek(0)) {
			r.pos++
		}
	}
	for !isWhite(r.peek(0)) && !isFlowSign(r.peek(0)) {
		r.pos++
	}
	if r.text[start] == '&' {
		n.anchor = string(r.text[start+1 : r.pos])
	}
	n.props = r.pos
}

func (r *reader) alias(n *node) bool {
	if r.peek(0) != '*' {
		return false
	}
	for !isWhite(r.peek(0)) && !isFlowSign(r.peek(0)) {
		r.pos++
	}
	n.kind, n.end = aliasNode, r.pos
	return true
}

func (r *reader) sequence(n *node, indent int) bool {
	found := false
	for r.peek(0) == '-' && isWhite(r.peek(1)) && !r.atEnd() {
		found = true
		e := entry{start: r.pos, mark: r.pos, comma: -1, end: r.pos + 1}
		r.pos++
		if r.skip(true) && r.indent <= indent {
			n.entries = append(n.entries, e)
			continue // also with a dash that is indented less
		}
		line := r.line
		if e.value = r.node(indent, blockIn, false, true); e.value != nil {
			e.end = e.value.end
		}
		n.entries = append(n.entries, e)
		r.skip(true)
		if (r.line == line || r.indent > indent) && !r.atEnd() {
			r.lost()
		}
		if r.indent < indent {
			break
		}
	}
	if found {
		n.kind, n.column = sequenceNode, indent
		n.end = n.entries[len(n.entries)-1].end
	}
	return found
}

func (r *reader) mapping(n *node, indent, flowIndent int) bool {
	begin := r.place
	var entries []entry
	var open *entry // a `? key` whose value has not come yet
	add := func(e entry) { entries = append(entries, e) }
	for !r.atEnd() {
		line := r.line
		c := r.peek(0)
		value, compact := true, false
		var e entry
		switch {
		case (c == '?' || c == ':') && isWhite(r.peek(1)):
			compact = true
			if c == '?' {
				if open != nil {
					add(*open)
				}
				open = &entry{start: r.pos, mark: -1, comma: -1, end: r.pos + 1}
				value = false
			} else {
				if open == nil {
					r.lost()
				}
				e, open = *open, nil
				e.mark, e.end = r.pos, r.pos+1
			}
			r.pos++
		default:
			e = entry{start: r.pos, comma: -1}
			e.key = r.node(flowIndent, flowOut, false, true)
			if e.key == nil {
				goto done
			}
			if r.line == line {
				for isBlankByte(r.peek(0)) {
					r.pos++
				}
			}
			if r.line != line || r.peek(0) != ':' || !isWhite(r.peek(1)) {
				if len(entries) > 0 || open != nil {
					r.lost()
				}
				r.rewind(begin)
				return false
			}
			if open != nil {
				add(*open)
				open = nil
			}
			e.mark, e.end = r.pos, r.pos+1
			r.pos++
		}
		if r.line == line || r.indent > indent {
			v := r.node(indent, blockOut, true, compact)
			if value {
				if e.value = v; v != nil {
					e.end = v.end
				}
			} else if open.key = v; v != nil {
				open.end = v.end
			}
			r.skip(true)
		}
		if value {
			add(e)
		}
		if (r.line == line || r.indent > indent) && !r.atEnd() {
			r.lost()
		}
		if r.indent < indent {
			break
		}
	}
done:
	if open != nil {
		add(*open)
	}
	if len(entries) == 0 {
		r.rewind(begin)
		return false
	}
	n.kind, n.column, n.entries = mappingNode, indent, entries
	n.end = entries[len(entries)-1].end
	return true
}

// brackets reads a collection in brackets.
func (r *reader) brackets(n *node, indent int) bool {
	closing := byte(']')
	switch r.peek(0) {
	case '[':
		n.kind = sequenceNode
	case '{':
		n.kind, closing = mappingNode, '}'
	default:
		return false
	}
	n.flow = true
	r.pos++
	for {
		r.skip(true)
		if r.peek(0) == closing {
			r.pos++
			n.end = r.pos
			return true
		}
		e := r.bracketEntry(n.kind == mappingNode, indent)
		r.skip(true)
		if r.peek(0) == ',' {
			e.comma = r.pos
			r.pos++
		} else if r.peek(0) != closing {
			r.lost()
		}
		n.entries = append(n.entries, e)
	}
}

func (r *reader) bracketEntry(inMapping bool, indent int) entry {
	e := entry{start: r.pos, mark: -1, comma: -1, end: r.pos}
	explicit := r.peek(0) == '?' && isWhite(r.peek(1))
	if explicit {
		r.pos++
		e.end = r.pos
		r.skip(true)
	}
	line := r.line
	first := r.node(indent, flowIn, false, true)
	if first != nil {
		e.end = first.end
	}
	r.skip(true)
	if !explicit && r.line != line || r.peek(0) != ':' {
		switch {
		case inMapping || explicit:
			e.key = first
		default:
			e.value = first
		}
		if first == nil && !explicit {
			r.lost()
		}
	} else {
		e.key, e.mark, e.end = first, r.pos, r.pos+1
		r.pos++
		r.skip(true)
		if e.value = r.node(indent, flowIn, false, true); e.value != nil {
			e.end = e.value.end
		}
	}
	if inMapping || e.mark < 0 && !explicit {
		return e
	}
	pair := &node{kind: mappingNode, flow: true, pair: true, start: e.start, props: e.start, body: e.start, end: e.end, entries: []entry{e}}
	return entry{start: e.start, mark: -1, comma: -1, value: pair, end: e.end}
}
