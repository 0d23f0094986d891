package patchedit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
)

// Path leads to a value: the place of a patch in the file, then keys and
// indices (decimal texts), as {"0", "config", "port"}.
type Path []string

// words is the path for people, who see the line of the place and not the
// number of the patch.
func (p Path) words() string {
	switch len(p) {
	case 0:
		return "the list"
	case 1:
		return "the patch"
	default:
		return compose.PathText(p[1:]) + " of the patch"
	}
}

// Set gives the value at a path, whose parent must exist, a value: it replaces
// what is there, adds a key at the end of the mapping, or, with an index one
// past the end, an item at the end of the list. Comments survive. A value that
// equals v is left as it is written. The error is an *UneditableError, what
// compose says about a text that is no layer (before or after the edit), or
// that there is no such parent.
func Set(src compose.Source, text []byte, at Path, v compose.Value) ([]byte, error) {
	old, err := parse(src, text)
	if err != nil {
		return nil, err
	}
	before := compose.Value(old)
	for _, step := range at {
		before, _ = childOf(before, step)
	}
	want := compose.Clone(old)
	if err := setValue(want, at, v); err != nil {
		return nil, missing(src, at, err)
	}
	return transform(src, text, change{old: old, want: want, at: at, yaml: byHand(at, v)}, func(e *editor) error {
		return e.set(at, before, v)
	})
}

// Delete takes the key or item at a path out, with the comment lines directly
// above it that are indented like it, but for the comment that the file begins
// with. Where nothing is there the text stays as it is. Where the parent
// becomes empty it is written {} or [], also the file as a whole. The errors
// are those of Set.
func Delete(src compose.Source, text []byte, at Path) ([]byte, error) {
	old, err := parse(src, text)
	if err != nil {
		return nil, err
	}
	want := compose.Clone(old)
	if !deleteValue(want, at) {
		return text, nil
	}
	return transform(src, text, change{old: old, want: want, at: at}, func(e *editor) error {
		return e.delete(at)
	})
}

// Append adds a patch at the end of the file. A file that is empty, or holds
// comments only, or an empty list, becomes a block list, and keeps its
// comments. The errors are those of Set.
func Append(src compose.Source, text []byte, patch compose.Value) ([]byte, error) {
	doc, err := read(text)
	if err == nil && doc.root == nil {
		old, err := compose.ParseValue(src, text)
		if err != nil {
			return nil, err
		}
		at := Path{"0"}
		return transform(src, text, change{old: old, want: &compose.List{Items: []compose.Value{patch}}, at: at, yaml: byHand(at, patch)},
			func(e *editor) error { return e.add(nil, "", patch) })
	}
	old, err := parse(src, text)
	if err != nil {
		return nil, err
	}
	return Set(src, text, Path{strconv.Itoa(len(old.Items))}, patch)
}

// parse is the list of patches in text as it is written. ParsePatches says
// whether it is right, but makes paths of rows absolute.
func parse(src compose.Source, text []byte) (*compose.List, error) {
	if _, err := compose.ParsePatches(src, text); err != nil {
		return nil, err
	}
	v, err := compose.ParseValue(src, text)
	if err != nil {
		return nil, err
	}
	return v.(*compose.List), nil
}

// missing is that nothing can be set at a path.
func missing(src compose.Source, at Path, err error) error {
	return fault.Errorf(fault.Other, "editing %s: setting %s: %w", src.File, at.words(), err)
}

// change is an edit as the values see it.
type change struct {
	old, want compose.Value
	at        Path
	yaml      string // what a person would have to write
}

// transform makes an edit and looks whether the text holds what it should. An
// edit that goes wrong is tried once more with care: a text of several lines
// that ends with blank ones goes on with what comes behind it.
func transform(src compose.Source, text []byte, c change, edit func(*editor) error) ([]byte, error) {
	if compose.Equal(c.old, c.want) {
		return text, nil
	}
	var reason error
	for _, careful := range [...]bool{false, true} {
		e := &editor{src: src, text: text, eol: lineBreak(text), careful: careful}
		if reason = edit(e); reason != nil {
			break
		}
		var got compose.Value
		if got, reason = compose.ParseValue(src, e.text); reason != nil || !compose.Equal(got, c.want) {
			if reason = errors.New("writing there would change something else"); isShared(src, text, c.at) {
				reason = &sharedError{"aliases name a value in " + c.at.words()}
			}
			continue
		}
		if _, err := compose.ParsePatches(src, e.text); err != nil {
			return nil, err
		}
		return e.text, nil
	}
	return nil, uneditable(src, text, c.at, reason, c.yaml)
}

// isShared says whether aliases name something in the value at a path.
func isShared(src compose.Source, text []byte, at Path) bool {
	e := &editor{src: src, text: text}
	s, err := e.find(at)
	return err == nil && len(at) > 0 && !s.isNew() && holdsNamed(s.entry().value)
}

func holdsNamed(n *node) bool {
	if n == nil || n.named {
		return n != nil
	}
	return slices.ContainsFunc(n.entries, func(e entry) bool { return holdsNamed(e.key) || holdsNamed(e.value) })
}

// editor is a text that is changed step by step.
type editor struct {
	src  compose.Source
	text []byte
	eol  string
	// careful is to write texts of several lines in quotes, and to take blank
	// lines away with what stands above them.
	careful bool
	doc     document
}

func (e *editor) read() error {
	doc, err := read(e.text)
	e.doc = doc
	return err
}

// spot is a place in the text.
type spot struct {
	holders []*node // from the root to the collection that has the entry
	index   int     // of the entry in it; the number of its entries for a new one
}

func (s spot) holder() *node { return s.holders[len(s.holders)-1] }
func (s spot) entry() *entry { return &s.holder().entries[s.index] }
func (s spot) isNew() bool   { return s.index == len(s.holder().entries) }

// find looks for a path, whose last step may be new.
func (e *editor) find(at Path) (spot, error) {
	if err := e.read(); err != nil {
		return spot{}, err
	}
	return e.spotAt(at)
}

// spotAt is find in a text that was read.
func (e *editor) spotAt(at Path) (spot, error) {
	s := spot{}
	n := e.doc.root
	for i, step := range at {
		switch {
		case n == nil || n.kind != mappingNode && n.kind != sequenceNode:
			if n != nil && n.kind == aliasNode {
				return spot{}, &sharedError{at[:i].words() + " is an alias"}
			}
			return spot{}, errors.New(at[:i].words() + " is no mapping or list")
		case n.named:
			return spot{}, &sharedError{"aliases name " + at[:i].words()}
		}
		s.holders = append(s.holders, n)
		s.index = e.member(n, step)
		if i < len(at)-1 {
			if s.isNew() {
				return spot{}, errors.New("there is no " + at[:i+1].words())
			}
			n = s.entry().value
		}
	}
	if !s.isNew() {
		if value := s.entry().value; value != nil && value.named {
			return spot{}, &sharedError{"aliases name " + at.words()}
		}
	}
	return s, nil
}

// member is which entry of n a key or index is, or the number of entries.
func (e *editor) member(n *node, step string) int {
	if n.kind == sequenceNode {
		if i, ok := index(step, len(n.entries)); ok {
			return i
		}
		return len(n.entries)
	}
	for i := range n.entries {
		if name, ok := e.keyName(n.entries[i].key); ok && name == step {
			return i
		}
	}
	return len(n.entries)
}

// maxImplicitKey is how many bytes a key may surely have before its colon.
const maxImplicitKey = 1024

// isPlainName says whether a key surely means its own text, which most keys do:
// to read each with all that YAML has takes long in large files.
func isPlainName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if letter := c|0x20 >= 'a' && c|0x20 <= 'z'; !letter && (i == 0 || c != '_' && c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	switch strings.ToLower(text) {
	case "", "true", "false", "null":
		return false
	}
	return true
}

// keyName is a key as compose reads it, if it can be read alone.
func (e *editor) keyName(key *node) (name string, ok bool) {
	if key == nil {
		return "null", true
	}
	text := string(e.text[key.start:key.end])
	if isPlainName(text) {
		return text, true
	}
	if len(text) > maxImplicitKey || strings.ContainsAny(text, "\r\n") {
		text = "? " + text + "\n: 0"
	} else {
		text += ": 0"
	}
	v, _ := compose.ParseValue(e.src, []byte(text))
	m, _ := v.(*compose.Map)
	for name := range m.All() {
		return name, true
	}
	return "", false // an alias
}

// set gives what is at a path a new value, and leaves what is in both.
func (e *editor) set(at Path, old, v compose.Value) error {
	s, err := e.find(at)
	if err != nil {
		return err
	}
	if s.isNew() {
		return e.add(s.holders, at[len(at)-1], v)
	}
	steps, ok := e.merge(s.entry().value, old, v)
	if !ok {
		return e.replace(s, v)
	}
	for _, step := range steps {
		path := append(at[:len(at):len(at)], step.key)
		if step.drop {
			err = e.drop(path)
		} else {
			err = e.set(path, step.old, step.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// merge is the edits of entries that turn the collection n, whose value is
// old, into v. It is false where little would stay, where another order is
// asked for, and where comments in brackets are in the way.
func (e *editor) merge(n *node, old, v compose.Value) (steps []step, ok bool) {
	if n == nil || n.pair {
		return nil, false
	}
	switch n.kind {
	case mappingNode:
		old, _ := old.(*compose.Map)
		if v, isMap := v.(*compose.Map); isMap {
			steps, ok = mergeMaps(old, v)
		}
	case sequenceNode:
		old, _ := old.(*compose.List)
		if v, isList := v.(*compose.List); isList && old != nil {
			steps, ok = mergeLists(old.Items, v.Items)
		}
	}
	drops := slices.ContainsFunc(steps, func(s step) bool { return s.drop })
	if drops && n.flow && len(e.commentsIn(n.start, n.end)) > 0 {
		return nil, false
	}
	return steps, ok
}

func (e *editor) apply(s ...splice) { e.text = splices(s).apply(e.text) }

// commentOnLine is the comment behind a place on its line, nil if there is
// something else or nothing.
func (e *editor) commentOnLine(at int) *span {
	end := lineEnd(e.text, at)
	for i := range e.doc.comments {
		c := &e.doc.comments[i]
		if at <= c.start && c.start < end && isBlank(e.text[at:c.start]) {
			return c
		}
	}
	return nil
}

func (e *editor) comment(c span) string { return string(e.text[c.start:c.end]) }

func (e *editor) commentsIn(start, end int) []span {
	comments := e.doc.comments
	from := sort.Search(len(comments), func(i int) bool { return comments[i].start >= start })
	to := from + sort.Search(len(comments)-from, func(i int) bool { return comments[from+i].start >= end })
	return comments[from:to:to]
}

// replace writes another value in the place of one that is there.
func (e *editor) replace(s spot, v compose.Value) error {
	entry := s.entry()
	if !s.holder().flow {
		if entry.mark < 0 {
			return fmt.Errorf("a key behind a question mark has no value")
		}
		e.replaceLines(s.holders, entry, v)
		return nil
	}
	text := string(compose.AppendFlow(nil, v))
	switch value := entry.value; {
	case value != nil:
		for _, c := range e.commentsIn(value.start, value.end) {
			text += " " + e.comment(c) + e.eol + e.indentation(value.start) + "  "
		}
		if value.start == entry.mark+1 && value.body != value.start { // only a quoted key may touch its value
			text = " " + text
		}
		e.apply(splice{value.start, value.end, text})
	case entry.mark >= 0:
		e.apply(splice{entry.mark + 1, entry.mark + 1, " " + text})
	default:
		e.apply(splice{entry.end, entry.end, ": " + text})
	}
	return nil
}

// indentation is the white space that the line of a place begins with.
func (e *editor) indentation(at int) string {
	line := e.text[lineStart(e.text, at):at]
	return spaces(len(line) - len(bytes.TrimLeft(line, " ")))
}

// replaceLines writes a value behind the mark of an entry of a block: the
// comment on the line stays there, and comments inside what was there stand
// above what comes.
func (e *editor) replaceLines(holders []*node, en *entry, v compose.Value) {
	n := holders[len(holders)-1]
	old := en.mark + 1
	if en.value != nil {
		old = en.value.end
	}
	end := lineEnd(e.text, old)
	comments := e.commentsIn(en.mark, end)
	line := lineEnd(e.text, en.mark)
	scalar := en.value == nil || en.value.kind != mappingNode && en.value.kind != sequenceNode
	beside := "" // the comment on the line
	if len(comments) > 0 && (comments[0].start < line || scalar && comments[len(comments)-1].start >= old) {
		at := 0
		if comments[0].start >= line {
			at = len(comments) - 1
		}
		c := comments[at]
		blank := c.start - len(bytes.TrimRight(e.text[:c.start], " \t"))
		beside = string(e.text[c.start-blank : c.end])
		comments = append(comments[:at:at], comments[at+1:]...)
	}
	st := e.style(holders)
	head, tail := st.value(n, v, len(comments) > 0)
	block := tail != "" && !isFilled(v)
	column := n.column + st.step
	if block { // more indented, comments would be lines of the text
		column = n.column
	}
	above := ""
	for _, c := range comments {
		if !isFilled(v) && isNote(e.comment(c)) {
			continue
		}
		above += e.eol + spaces(column) + e.comment(c)
	}
	out := head + beside
	if block {
		out += tail + above
	} else {
		out += above + tail
	}
	e.apply(splice{en.mark + 1, end, out})
}

// byHand is the YAML that Set writes at a path.
func byHand(at Path, v compose.Value) string {
	if len(at) == 0 {
		return ""
	}
	st := style{eol: "\n", step: 2, list: 2, dash: 2}
	key := at[len(at)-1]
	if _, err := strconv.Atoi(key); err == nil {
		return st.item(v, 0)
	}
	return st.pair(key, v, 0)
}
