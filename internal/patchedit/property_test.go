package patchedit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dsh/internal/compose"
)

// writer makes a patch file up, in a style of its own.
type writer struct {
	t          *rapid.T
	step, list int
	dash       int
	comments   int // one in so many lines; 0 is none
	aliases    bool
	anchors    []string
	n          int // for keys and comments that differ
}

func (w *writer) one(in int) bool { return in > 0 && rapid.IntRange(1, in).Draw(w.t, "") == 1 }

func (w *writer) pick(from ...string) string { return rapid.SampledFrom(from).Draw(w.t, "") }

// comment is comment lines and blank lines before a line in a column.
func (w *writer) comment(column int) string {
	var b strings.Builder
	for w.comments > 0 && w.one(w.comments) {
		switch rapid.IntRange(1, 5).Draw(w.t, "") {
		case 1:
			b.WriteString("\n")
		case 2:
			b.WriteString(w.pick("", " ", "     ", "\t") + w.note() + "\n")
		default:
			b.WriteString(spaces(column) + w.note() + "\n")
		}
	}
	return b.String()
}

func (w *writer) note() string {
	w.n++
	return fmt.Sprintf("#%scomment %d%s", w.pick(" ", "", "\t", " - a: "), w.n, w.pick("", " ", ": [", "\tx"))
}

// lineEnd is the end of a line.
func (w *writer) lineEnd() string {
	if w.one(w.comments) {
		return w.pick(" ", "   ", "\t") + w.note() + "\n"
	}
	return w.pick("", "", "", " ") + "\n"
}

func (w *writer) scalar(flow bool) string {
	if w.aliases && len(w.anchors) > 0 && w.one(4) {
		return "*" + w.pick(w.anchors...) + " "
	}
	anchor := ""
	if w.aliases && w.one(6) {
		w.n++
		anchor = fmt.Sprintf("&a%d ", w.n)
		w.anchors = append(w.anchors, fmt.Sprintf("a%d", w.n))
	}
	if flow {
		return anchor + w.pick("1", "x", "'it''s, # no'", `"a\"b"`, "true", "~", "a b", "!!js x.y", "!!js 'a ? b : c'", "http://x/y", "-1", "é")
	}
	return anchor + w.pick("1", "x", "'it''s # no'", `"a\"b"`, "true", "~", "two words", "!!js a ?? b", "!!js 'a ? b : c'", "http://x:1/y#z",
		"a, b", "-1", "!!str 1", "é ü", "[]", "{}", "!path ./x", "a]", "x: y"[:1])
}

// long is a scalar of several lines behind a mark in a column.
func (w *writer) long(column int) string {
	in := spaces(column + w.step)
	switch rapid.IntRange(1, 7).Draw(w.t, "") {
	case 1:
		return " |" + w.lineEnd() + in + "# no comment\n" + in + "  x\n\n" + in + "y\n"
	case 2:
		return " >-" + w.lineEnd() + in + "x\n" + in + "y\n" + w.pick("", "\n", "\n\n")
	case 3:
		return " |+" + w.lineEnd() + in + "x\n" + w.pick("", "\n", "\n\n")
	case 4:
		return " one\n" + in + "two\n\n" + in + "three" + w.lineEnd()
	case 5:
		return " 'a\n\n" + in + "# b'" + w.lineEnd()
	case 6:
		return " \"a \\\n" + in + "\\\" b\"" + w.lineEnd()
	default:
		return " !!js |-" + w.lineEnd() + in + "a ? b\n" + in + "  : c\n"
	}
}

func (w *writer) key() string {
	w.n++
	return fmt.Sprintf(w.pick("k%d", "'@s/k%d'", `"k\"%d"`, "k %d", "%d", "k-%d", "é%d"), w.n)
}

// brackets is a collection in brackets, perhaps over several lines.
func (w *writer) brackets(column, depth int) string {
	open, closing := "[", "]"
	mapping := w.one(2)
	if mapping {
		open, closing = "{", "}"
	}
	lines := w.one(3)
	gap := w.pick("", " ")
	var b strings.Builder
	b.WriteString(open)
	count := rapid.IntRange(0, 3).Draw(w.t, "")
	for i := range count {
		if lines {
			b.WriteString(w.lineEnd() + w.comment(column+w.step) + spaces(column+w.step))
		} else {
			b.WriteString(gap)
		}
		if mapping {
			b.WriteString(w.key() + w.pick(": ", ":  ", " : "))
		}
		if depth > 0 && w.one(3) {
			b.WriteString(w.brackets(column+w.step, depth-1))
		} else {
			b.WriteString(w.scalar(true))
		}
		if i < count-1 || w.one(5) {
			b.WriteString(",")
			if !lines {
				b.WriteString(" ")
			}
		}
	}
	if lines {
		b.WriteString(w.lineEnd() + spaces(column+w.step))
	} else {
		b.WriteString(gap)
	}
	return b.String() + closing
}

// value is what follows a mark of a collection in a column, to the end of the
// line or further.
func (w *writer) value(column, depth int, inSequence bool) string {
	choice := rapid.IntRange(0, 9).Draw(w.t, "")
	switch {
	case choice == 0 && !inSequence:
		return w.lineEnd()
	case choice == 1:
		return w.long(column)
	case choice == 2:
		return " " + w.brackets(column, 2) + w.lineEnd()
	case choice < 6 || depth == 0:
		return w.pick(" ", "  ") + w.scalar(false) + w.lineEnd()
	case inSequence && w.one(4):
		inner := column + w.step
		return w.lineEnd() + w.mapping(inner, depth-1, false)
	case inSequence && choice == 6:
		return spaces(w.dash-1) + w.sequence(column+w.dash, depth-1, true)
	case inSequence:
		return spaces(w.dash-1) + w.mapping(column+w.dash, depth-1, true)
	case choice == 6:
		return w.lineEnd() + w.sequence(column+w.list, depth-1, false)
	default:
		return w.lineEnd() + w.mapping(column+w.step, depth-1, false)
	}
}

func (w *writer) sequence(column, depth int, compact bool) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 3).Draw(w.t, "") {
		if i > 0 || !compact {
			b.WriteString(w.comment(column) + spaces(column))
		}
		b.WriteString("-" + w.value(column, depth, true))
	}
	return b.String()
}

func (w *writer) mapping(column, depth int, compact bool) string {
	var b strings.Builder
	for i := range rapid.IntRange(1, 4).Draw(w.t, "") {
		if i > 0 || !compact {
			b.WriteString(w.comment(column) + spaces(column))
		}
		key := w.key()
		if w.one(15) {
			b.WriteString("? " + key + "\n" + spaces(column) + ":" + w.value(column, depth, false))
		} else {
			b.WriteString(key + ":" + w.value(column, depth, false))
		}
	}
	return b.String()
}

// drawText is a patch file.
func drawText(t *rapid.T, aliases bool) []byte {
	w := &writer{t: t, aliases: aliases, dash: 2}
	w.step = rapid.SampledFrom([]int{2, 2, 3, 4}).Draw(t, "step")
	w.list = rapid.SampledFrom([]int{0, w.step}).Draw(t, "list")
	w.comments = rapid.SampledFrom([]int{0, 3, 6}).Draw(t, "comments")
	text := w.pick("", "", "---\n", "%YAML 1.2\n---\n", "# head\n", "# head\n\n")
	for range rapid.IntRange(1, 4).Draw(t, "patches") {
		text += w.comment(0)
		if w.one(8) {
			text += "- {" + w.key() + ": " + w.brackets(0, 2) + "}" + w.lineEnd()
		} else {
			text += "- " + w.mapping(2, 3, true)
		}
	}
	text += w.comment(0)
	if w.one(5) {
		text += w.pick("...\n", "...\n# behind\n")
	} else if w.one(4) {
		text = strings.TrimSuffix(text, "\n")
	}
	if w.one(4) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(w.pick("", "", "", "\ufeff") + text)
}

// drawValue is a value that is hard to write.
func drawValue(t *rapid.T, depth int) compose.Value {
	choice := rapid.IntRange(0, 9).Draw(t, "")
	switch {
	case choice < 2 && depth > 0:
		list := &compose.List{}
		for range rapid.IntRange(0, 3).Draw(t, "") {
			list.Items = append(list.Items, drawValue(t, depth-1))
		}
		return list
	case choice < 5 && depth > 0:
		return drawMap(t, depth)
	case choice == 5:
		return compose.Expr{Text: rapid.SampledFrom([]string{"a", "a ? b : c", "x\n+ y", "'q'", "ctx.a ?? 'b # c'"}).Draw(t, "")}
	case choice == 6:
		return rapid.SampledFrom([]compose.Value{nil, true, 1.0, -0.5, 1e21}).Draw(t, "")
	default:
		return rapid.SampledFrom([]string{"", "x", "@s/x", "a: b", "a #b", " x", "x ", "x\n", "x\ny", "\n", "x\n\n", " x\ny\n", "# x\ny\n", "'", "\"", "true", "1", "~",
			"é", "- a", "\t", "a\tb\nc", "\u2028", "[", "{a}", "a,b", strings.Repeat("long words ", 12), strings.Repeat("long ", 20) + "\n\n  in\n", "*a", "&a", "!x", "%", "---", "...", "---\n...\n"}).Draw(t, "")
	}
}

func drawMap(t *rapid.T, depth int) *compose.Map {
	m := &compose.Map{}
	for range rapid.IntRange(0, 3).Draw(t, "") {
		m.Set(rapid.SampledFrom([]string{"a", "@s/x", "1", "k 1", "a: b", "null", "#", "é", "k\n", "?", "- x"}).Draw(t, ""), drawValue(t, depth-1))
	}
	return m
}

// drawPath is a path to something in v, or to where something may be added.
func drawPath(t *rapid.T, v compose.Value) Path {
	var path Path
	for {
		switch here := v.(type) {
		case *compose.List:
			i := rapid.IntRange(0, len(here.Items)).Draw(t, "")
			path = append(path, strconv.Itoa(i))
			if i == len(here.Items) {
				return path
			}
			v = here.Items[i]
		case *compose.Map:
			var keys []string
			for key := range here.All() {
				keys = append(keys, key)
			}
			key := rapid.SampledFrom(append(keys, "new", "@s/new", "7")).Draw(t, "")
			path = append(path, key)
			next, ok := here.Get(key)
			if !ok {
				return path
			}
			v = next
		default:
			return path
		}
		if len(path) > 1 && rapid.IntRange(1, 4).Draw(t, "") == 1 {
			return path
		}
	}
}

// failer is a test, or a check of rapid.
type failer interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// checkOutside looks whether the lines of old before and behind those from
// start to end, bytes of old, are the first and the last ones of got.
func checkOutside(t failer, old, got []byte, start, end int) {
	t.Helper()
	before := old[:lineStart(old, start)]
	behind := old[nextLine(old, end):]
	if !bytes.HasPrefix(got, before) || !bytes.HasSuffix(got, behind) || len(got) < len(before)+len(behind) {
		t.Fatalf("other lines changed: from\n%s\nto\n%s\nbefore %q behind %q", old, got, before, behind)
	}
}

// checkFrame looks whether what is not of a line is as it was.
func checkFrame(t failer, old, got []byte) {
	t.Helper()
	if bytes.HasPrefix(old, bom) != bytes.HasPrefix(got, bom) {
		t.Fatalf("the byte-order mark: from\n%s\nto\n%s", old, got)
	}
	if bytes.HasSuffix(old, []byte("\n")) != bytes.HasSuffix(got, []byte("\n")) {
		t.Fatalf("the last line break: from\n%q\nto\n%q", old, got)
	}
	bare := func(text []byte) bool { return strings.Contains(strings.ReplaceAll(string(text), "\r\n", ""), "\n") }
	if bytes.Contains(old, []byte("\r\n")) && !bare(old) && bare(got) {
		t.Fatalf("line breaks: from\n%q\nto\n%q", old, got)
	}
}

// checkComments looks whether all comments of old are in got.
func checkComments(t failer, old, got []byte) {
	t.Helper()
	before, err := read(old)
	if err != nil {
		t.Fatal(err)
	}
	after, err := read(got)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, c := range after.comments {
		left = append(left, string(got[c.start:c.end]))
	}
	for _, c := range before.comments {
		i := slices.Index(left, string(old[c.start:c.end]))
		if i < 0 {
			t.Fatalf("comment %q is lost: from\n%s\nto\n%s", old[c.start:c.end], old, got)
		}
		left = slices.Delete(left, i, i+1)
	}
}

// tally counts edits, and those that were refused.
type tally struct{ edits, refused, unread int }

// accept says whether an edit was made; a refusal is counted.
func (c *tally) accept(t failer, text []byte, path Path, err error) bool {
	c.edits++
	if err == nil {
		return true
	}
	if _, ok := errors.AsType[*UneditableError](err); ok {
		c.refused++
		return false
	}
	if _, ok := errors.AsType[*compose.ShapeError](err); !ok {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	return false
}

func checkSet(t failer, c *tally, text []byte, path Path, v compose.Value) {
	want, err := compose.ParseValue(testSource, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want = compose.Clone(want)
	if err := setValue(want, path, v); err != nil {
		t.Fatal(err)
	}
	got, err := Set(testSource, text, path, v)
	if !c.accept(t, text, path, err) {
		return
	}
	have, err := compose.ParseValue(testSource, got)
	if err != nil || !compose.Equal(have, want) {
		t.Fatalf("set %s: %v: from\n%s\nto\n%s", path, err, text, got)
	}
	again, err := Set(testSource, got, path, v)
	if err != nil || !bytes.Equal(got, again) {
		t.Fatalf("set %s again: %v: from\n%s\nto\n%s", path, err, got, again)
	}
	if bytes.Equal(text, got) {
		return
	}
	checkComments(t, text, got)
	checkFrame(t, text, got)
	e := &editor{src: testSource, text: text}
	s, err := e.find(path)
	if err != nil {
		t.Fatal(err)
	}
	switch n := s.holder(); {
	case s.isNew() && len(s.holders) == 1 && !n.flow:
		checkOutside(t, text, got, n.end, e.doc.end)
	case s.isNew() && n.flow:
		checkOutside(t, text, got, n.start, n.end)
	case s.isNew():
		checkOutside(t, text, got, n.end, n.end)
	default:
		checkOutside(t, text, got, s.entry().start, s.entry().end)
	}
}

func checkDelete(t failer, c *tally, text []byte, path Path) {
	want, err := compose.ParseValue(testSource, text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	want = compose.Clone(want)
	there := deleteValue(want, path)
	got, err := Delete(testSource, text, path)
	if !c.accept(t, text, path, err) {
		return
	}
	have, err := compose.ParseValue(testSource, got)
	if err != nil || !compose.Equal(have, want) {
		t.Fatalf("delete %s: %v: from\n%s\nto\n%s", path, err, text, got)
	}
	if !there {
		if !bytes.Equal(text, got) {
			t.Fatalf("delete nothing at %s: from\n%s\nto\n%s", path, text, got)
		}
		return
	}
	e := &editor{src: testSource, text: text}
	s, err := e.find(path)
	if err != nil {
		t.Fatal(err)
	}
	n, en := s.holder(), s.entry()
	start, end := e.above(en.start, len(s.holders) == 1 && s.index == 0), en.end
	switch {
	case n.flow || len(n.entries) == 1:
		start = min(start, e.opening(s.holders))
		end = max(end, n.end)
	case s.index == 0:
		end = n.entries[1].start
	}
	for next := nextLine(text, end); bytes.Contains(text, []byte("|+")) && next < len(text) && isBlank(text[next:lineEnd(text, next)]); {
		end = next // a text that stands above must not get the blank lines
		next = nextLine(text, next)
	}
	if lineEnd(text, end) == len(text) && start > 0 {
		start = len(bytes.TrimRight(text[:start], "\r\n")) // the line break before goes
	}
	checkOutside(t, text, got, start, end)
	for _, c := range e.doc.comments {
		if lineStart(text, c.start) >= start && c.start < lineEnd(text, end) {
			continue
		}
		if !bytes.Contains(got, text[c.start:c.end]) {
			t.Fatalf("delete %s: comment %q is lost: from\n%s\nto\n%s", path, text[c.start:c.end], text, got)
		}
	}
	checkFrame(t, text, got)
}

func TestRandomEdits(t *testing.T) {
	for _, aliases := range []bool{false, true} {
		t.Run(fmt.Sprintf("aliases=%v", aliases), func(t *testing.T) {
			c := &tally{}
			rapid.Check(t, func(t *rapid.T) {
				text := drawText(t, aliases)
				v, err := compose.ParseValue(testSource, text)
				if err != nil {
					c.unread++
					t.Skip(err) // the parser below compose refuses some comments and aliases
				}
				path := drawPath(t, v)
				switch {
				case rapid.IntRange(1, 3).Draw(t, "") == 1:
					checkDelete(t, c, text, path)
				case len(path) == 1:
					checkSet(t, c, text, path, drawMap(t, 2))
				default:
					checkSet(t, c, text, path, drawValue(t, 2))
				}
			})
			t.Logf("%d edits, %d refused, %d texts that cannot be read", c.edits, c.refused, c.unread)
			if c.unread*2 > c.edits {
				t.Errorf("only %d texts can be read, and %d cannot", c.edits, c.unread)
			}
			if !aliases && c.refused*50 > c.edits {
				t.Errorf("%d of %d edits refused", c.refused, c.edits)
			}
		})
	}
}

// paths is the paths to everything in v.
func paths(v compose.Value, at Path) []Path {
	var all []Path
	below := func(step string, v compose.Value) {
		path := append(at[:len(at):len(at)], step)
		all = append(append(all, path), paths(v, path)...)
	}
	switch v := v.(type) {
	case *compose.List:
		for i, item := range v.Items {
			below(strconv.Itoa(i), item)
		}
	case *compose.Map:
		for key, value := range v.All() {
			below(key, value)
		}
	}
	return all
}

// editEverywhere tries edits of places in a text that holds patches.
func editEverywhere(t *testing.T, c *tally, text []byte) {
	t.Helper()
	v, err := compose.ParseValue(testSource, text)
	if err != nil {
		t.Fatal(err)
	}
	nested := value(t, "{a: 1, b: [x, {y: z}]}")
	values := []compose.Value{true, "@s/x", "x\n y\n", nested, value(t, "[]")}
	all := paths(v, nil)
	for i, path := range all {
		if i%(len(all)/30+1) != 0 {
			continue // enough of a long file
		}
		checkDelete(t, c, text, path)
		if len(path) == 1 {
			checkSet(t, c, text, path, nested)
		} else {
			checkSet(t, c, text, path, values[i%len(values)])
		}
		here := compose.Value(v)
		for _, step := range path {
			here, _ = childOf(here, step)
		}
		switch here := here.(type) {
		case *compose.Map:
			checkSet(t, c, text, append(path, "@s/new"), 1.0)
			checkSet(t, c, text, append(path, "new"), nested)
		case *compose.List:
			checkSet(t, c, text, append(path, strconv.Itoa(len(here.Items))), nested)
		}
	}
	checkSet(t, c, text, Path{strconv.Itoa(len(v.(*compose.List).Items))}, nested)
}

func TestEditsOfBundles(t *testing.T) {
	c := &tally{}
	for i, b := range readBundles(t) {
		if i%8 == 0 {
			b.Patch = strings.ReplaceAll(b.Patch, "\n", "\r\n")
		}
		editEverywhere(t, c, []byte(b.Patch))
	}
	t.Logf("%d edits, %d refused", c.edits, c.refused)
	if c.refused > 0 {
		t.Errorf("%d of %d edits refused", c.refused, c.edits)
	}
}

// TestEditsOfDialect edits what is odd in the dialect, as the config of a row.
func TestEditsOfDialect(t *testing.T) {
	c := &tally{}
	for i, doc := range append(oddTexts[:len(oddTexts):len(oddTexts)], readDialect(t)...) {
		if i > len(oddTexts) && i%3 != 0 {
			continue
		}
		for _, text := range []string{
			"# head\n- id: a\n  config: " + doc + "\n  # tail\n  x: 1\n",
			"- id: a\n  config:\n    " + strings.ReplaceAll(doc, "\n", "\n    ") + "\n  # tail\n  x: 1\n",
			"- {id: a, config: " + doc + ", x: 1}\n",
			doc,
		} {
			if _, err := compose.ParsePatches(testSource, []byte(text)); err != nil {
				c.unread++
				continue
			}
			editEverywhere(t, c, []byte(text))
		}
	}
	t.Logf("%d edits, %d refused, %d texts that are no layer", c.edits, c.refused, c.unread)
	if c.refused*100 > c.edits {
		t.Errorf("%d of %d edits refused", c.refused, c.edits)
	}
}

func TestRandomAppends(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &writer{t: t, comments: 2, step: 2}
		text := w.pick("", "", "---\n", "%YAML 1.1\n---\n") + w.comment(0) + w.comment(2) +
			w.pick("", "[]"+w.lineEnd(), "["+w.lineEnd()+w.comment(2)+"]"+w.lineEnd(), " []\n", "- a: 1"+w.lineEnd(), "- [x]"+w.lineEnd()) +
			w.comment(0) + w.pick("", "...\n", "...\n# behind\n")
		if w.one(3) {
			text = strings.TrimSuffix(text, "\n")
		}
		if w.one(3) {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		text = w.pick("", "\ufeff") + text
		old, err := compose.ParseValue(testSource, []byte(text))
		if err != nil {
			t.Skip(err)
		}
		want := &compose.List{}
		if list, ok := old.(*compose.List); ok {
			want.Items = slices.Clone(list.Items)
		}
		patch := drawMap(t, 2)
		want.Items = append(want.Items, patch)
		got, err := Append(testSource, []byte(text), patch)
		if _, ok := errors.AsType[*compose.ShapeError](err); ok {
			t.Skip(err)
		}
		if err != nil {
			t.Fatalf("%v\n%q", err, text)
		}
		have, err := compose.ParseValue(testSource, got)
		if err != nil || !compose.Equal(have, want) {
			t.Fatalf("%v: from\n%s\nto\n%s", err, text, got)
		}
		checkComments(t, []byte(text), got)
		if !isBlank(bytes.TrimPrefix([]byte(text), bom)) {
			checkFrame(t, []byte(text), got)
		}
	})
}

// FuzzEdit edits any text at any place: nothing may panic, and what is written
// is what was asked for.
func FuzzEdit(f *testing.F) {
	for _, text := range oddTexts {
		f.Add([]byte(text), "0 a", "{b: |-\n x\n y}")
		f.Add([]byte(text), "0 a 0", "x")
	}
	f.Add([]byte(template), "0", "{id: a}")
	f.Fuzz(func(t *testing.T, text []byte, path, yaml string) {
		v, err := compose.ParseValue(compose.Source{}, []byte(yaml))
		if err != nil {
			return
		}
		if old, err := compose.ParsePatches(testSource, text); err == nil && len(old) > 0 && len(at(path)) > 0 {
			c := &tally{}
			checkDelete(t, c, text, at(path))
			want, err := compose.ParseValue(testSource, text)
			if err == nil && setValue(compose.Clone(want), at(path), v) == nil {
				checkSet(t, c, text, at(path), v)
			}
		}
		if got, err := Append(testSource, text, v); err == nil {
			if _, err := compose.ParsePatches(testSource, got); err != nil {
				t.Errorf("%v: from\n%s\nto\n%s", err, text, got)
			}
		}
	})
}
