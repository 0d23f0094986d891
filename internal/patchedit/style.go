package patchedit

import (
	"strings"

	"dsh/internal/compose"
)

// style is how a file is written at some place: in columns, what a mapping is
// indented by in a mapping, a sequence in a mapping, and anything in a
// sequence.
type style struct {
	text             []byte
	eol              string
	step, list, dash int
	quoted           bool // texts of several lines in quotes
}

// unknown is a measure that nothing in a file tells.
const unknown = -1

// style looks at what stands beside a place, then at what holds it, then at
// the whole file; what is still unknown is as in the template.
func (e *editor) style(holders []*node) style {
	st := style{text: e.text, eol: e.eol, step: unknown, list: unknown, dash: unknown, quoted: e.careful}
	for i := len(holders) - 1; i >= 0; i-- {
		st.learn(holders[i])
	}
	st.learnAll(e.doc.root)
	if st.step == unknown {
		if st.step = st.list; st.step <= 0 {
			st.step = 2
		}
	}
	if st.list == unknown {
		st.list = st.step
	}
	if st.dash == unknown {
		st.dash = 2
	}
	return st
}

func (st *style) learnAll(n *node) {
	if n == nil {
		return
	}
	st.learn(n)
	for _, e := range n.entries {
		st.learnAll(e.value)
	}
}

// learn takes what is unknown from the entries of n.
func (st *style) learn(n *node) {
	if n.flow {
		return
	}
	for _, e := range n.entries {
		v := e.value
		if v == nil || v.flow || v.kind != mappingNode && v.kind != sequenceNode {
			if v != nil && n.kind == sequenceNode && st.dash == unknown && lineStart(st.text, v.start) <= e.start {
				st.dash = v.start - e.start // it stands behind the dash
			}
			continue
		}
		measure := &st.step
		switch {
		case n.kind == sequenceNode:
			measure = &st.dash
		case v.kind == sequenceNode:
			measure = &st.list
		}
		if *measure == unknown && v.column >= n.column {
			*measure = v.column - n.column
		}
	}
}

// isFilled says whether v takes lines of its own.
func isFilled(v compose.Value) bool {
	switch v := v.(type) {
	case *compose.List:
		return len(v.Items) > 0
	case *compose.Map:
		return v.Len() > 0
	default:
		return false
	}
}

// entry is an entry of the block collection n, its first line without
// indentation.
func (st style) entry(n *node, key string, v compose.Value) string {
	if n.kind == sequenceNode {
		return st.item(v, n.column)
	}
	return st.pair(key, v, n.column)
}

// flowEntry is an entry of n, which is in brackets.
func flowEntry(n *node, key string, v compose.Value) string {
	var out []byte
	if n.kind == mappingNode {
		out = append(compose.AppendFlow(out, key), ": "...)
	}
	return string(compose.AppendFlow(out, v))
}

// item is a dash in a column and v behind it.
func (st style) item(v compose.Value, column int) string {
	head, tail := st.inSequence(v, column, false)
	return "-" + head + tail
}

// pair is a key in a column and v behind it.
func (st style) pair(key string, v compose.Value, column int) string {
	m := &compose.Map{}
	m.Set(key, nil)
	text := strings.TrimSuffix(string(compose.AppendYAML(nil, m, 0)), " null")
	head, tail := st.inMapping(v, column)
	return strings.ReplaceAll(text, "\n", st.eol+spaces(column)) + head + tail
}

// value is what follows the mark of an entry of n: on its line, and on further
// lines. apart says that a collection must not begin on that line.
func (st style) value(n *node, v compose.Value, apart bool) (head, tail string) {
	if n.kind == sequenceNode {
		return st.inSequence(v, n.column, apart)
	}
	return st.inMapping(v, n.column)
}

func (st style) inMapping(v compose.Value, column int) (head, tail string) {
	if !isFilled(v) {
		return st.scalar(" ", v, column)
	}
	inner := column + st.step
	if _, ok := v.(*compose.List); ok {
		inner = column + st.list
	}
	return "", st.eol + spaces(inner) + st.collection(v, inner)
}

func (st style) inSequence(v compose.Value, column int, apart bool) (head, tail string) {
	if !isFilled(v) {
		return st.scalar(spaces(st.dash-1), v, column)
	}
	inner := column + st.dash
	text := st.collection(v, inner)
	if apart {
		return "", st.eol + spaces(inner) + text
	}
	first, rest, more := strings.Cut(text, st.eol)
	if more {
		rest = st.eol + rest
	}
	return spaces(st.dash-1) + first, rest
}

// collection is the entries of v in a column, the first without indentation.
func (st style) collection(v compose.Value, column int) string {
	var entries []string
	switch v := v.(type) {
	case *compose.List:
		for _, item := range v.Items {
			entries = append(entries, st.item(item, column))
		}
	case *compose.Map:
		for key, value := range v.All() {
			entries = append(entries, st.pair(key, value, column))
		}
	}
	return strings.Join(entries, st.eol+spaces(column))
}

// scalar is a value that is no collection, or an empty one, behind a gap. Its
// further lines are indented deeper than column.
func (st style) scalar(gap string, v compose.Value, column int) (head, tail string) {
	text := string(compose.AppendYAML(nil, v, 0))
	head, rest, lines := strings.Cut(text, "\n")
	if !lines {
		return gap + text, ""
	}
	// Blank lines behind a text that keeps them would belong to it.
	if st.quoted || strings.HasSuffix(head, "+") || st.step > 9 {
		return gap + string(compose.AppendFlow(nil, v)), ""
	}
	for _, sign := range []string{"|", ">"} {
		head = strings.Replace(head, sign+"2", sign+string(rune('0'+st.step)), 1)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(rest, "\n") {
		b.WriteString(st.eol)
		if line != "" {
			b.WriteString(spaces(column+st.step) + strings.TrimPrefix(line, "  "))
		}
	}
	return gap + head, b.String()
}
