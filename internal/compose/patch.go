package compose

import "bytes"

// ParsePatches reads the text of a layer, or of one of its files. Names of
// inserted rows that are paths become file URLs, relative ones against src.Dir.
// The error is a *SyntaxError, a *ShapeError or a *EscapeError.
func ParsePatches(src Source, text []byte) ([]Patch, error) {
	src.Text = text
	doc, err := decodeFor(&src, text)
	if err != nil {
		return nil, src.syntaxError(err)
	}
	list, ok := doc.value.(*List)
	if !ok {
		return nil, src.notAList(doc)
	}
	patches := make([]Patch, len(list.Items))
	rows := rowNames{src: &src}
	for i, item := range list.Items {
		fail := func(f ShapeFault, remedy string) error {
			return &ShapeError{File: src.File, Kind: src.Kind, Fault: f, Entry: i + 1,
				Line: doc.items[i][0], Column: doc.items[i][1], Remedy: remedy}
		}
		var m *Map
		switch item := item.(type) {
		case *Map:
			m = item
		case Expr: // to the reference an expression is a mapping, if one without an id
			m = newMap([]pair{{exprKey, item.Text}})
		default:
			return nil, fail(NotAMapping, "write `- id: …` with the keys to override, or `- insert:` with rows")
		}
		insert, _ := m.Get("insert")
		if Truthy(insert) && !rows.resolve(insert) {
			return nil, fail(InsertNotRows, "write each row as an entry of its own: - insert: [{id: …, name: …}]")
		}
		if rows.escape != nil {
			return nil, rows.escape
		}
		patches[i] = Patch{Map: m, Source: &src, Entry: i, Line: doc.items[i][0], Column: doc.items[i][1]}
	}
	return patches, nil
}

// ParseValue reads one value, as it may stand in a layer. The error is a
// *SyntaxError.
func ParseValue(src Source, text []byte) (Value, error) {
	src.Text = text
	doc, err := decodeFor(&src, text)
	if err != nil {
		return nil, src.syntaxError(err)
	}
	return doc.value, nil
}

func (src *Source) syntaxError(err error) error {
	p, ok := err.(*problem)
	if !ok {
		p = &problem{text: err.Error()}
	}
	line := lineOf(src.Text, p.line)
	return &SyntaxError{src.File, src.Kind, p.line, p.column, withoutSecrets(p.text, line), withoutSecrets(p.remedy, line)}
}

// lineOf is a line of a text, counted from 1.
func lineOf(text []byte, line int) string {
	for range line - 1 {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	text, _, _ = bytes.Cut(text, []byte("\n"))
	return string(text)
}

func (src *Source) notAList(doc document) error {
	e := &ShapeError{File: src.File, Kind: src.Kind, Fault: NotAList, Remedy: "an empty layer is written []"}
	if doc.value != nil {
		e.Line, e.Column = doc.at[0], doc.at[1]
		e.Remedy = "begin every patch with `- ` at the start of a line; " + e.Remedy
	}
	return e
}

// rowNames turns the names of inserted rows that are paths into file URLs.
type rowNames struct {
	src    *Source
	seen   map[*List]bool // lists that aliases name
	escape *EscapeError   // the first name that leaves the package
}

// resolve goes through what a patch inserts. It is false where that is no
// list of rows. A text counts as one: the reference inserts its characters.
func (r *rowNames) resolve(insert Value) bool {
	switch insert := insert.(type) {
	case *List:
		return r.rows(insert, true)
	case string:
		return true
	default:
		return false
	}
}

// rows goes through a list of rows. indexed says that their ids are looked at,
// which nothing but a value can have: the reference stops at a null.
func (r *rowNames) rows(list *List, indexed bool) bool {
	if list.shared {
		if r.seen[list] {
			return true
		}
		if r.seen == nil {
			r.seen = make(map[*List]bool)
		}
		r.seen[list] = true
	}
	for _, item := range list.Items {
		if item == nil && indexed {
			return false
		}
		row, ok := item.(*Map)
		if !ok {
			continue
		}
		r.name(row)
		group, _ := row.Get("group")
		children, ok := childRows(row)
		if ok && !r.rows(children, indexed && Truthy(group)) {
			return false
		}
	}
	return true
}

func (r *rowNames) name(row *Map) {
	value, _ := row.Get("name")
	name, ok := value.(string)
	if !ok {
		return
	}
	url, ok := fileURL(r.src.Dir, name)
	if !ok {
		return
	}
	if r.src.escapes(name) && r.escape == nil {
		r.escape = &EscapeError{File: r.src.File, Line: int(row.line), Column: int(row.column), Path: name}
	}
	row.Set("name", url)
}

// The plugins that hold rows and do nothing themselves.
const (
	GroupPlugin   = "cordis:group"   // its config is rows
	IncludePlugin = "cordis:include" // its config names a file of rows
)

// RowsIn is the rows that a config of a row holds, if there may be any.
func RowsIn(row *Map, config Value) (*List, bool) {
	name, _ := row.Get("name")
	group, _ := row.Get("group")
	list, ok := config.(*List)
	return list, ok && (Truthy(group) || name == GroupPlugin)
}

func childRows(row *Map) (*List, bool) {
	config, _ := row.Get("config")
	return RowsIn(row, config)
}
