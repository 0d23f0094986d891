package compose

// Patch is one entry of a layer. With an `insert` key it adds rows, else it
// overrides keys of the row whose id it names. Nothing else about it is
// checked: what matches no row is skipped when it is applied.
type Patch struct {
	Map          *Map
	Line, Column int // of the entry in its file, from 1; 0 for a patch that no file holds
}

// Layer is a list of patches with the label that provenance and warnings
// show: the name of a bundle, or the path of a file.
type Layer struct {
	Label   string
	Patches []Patch
}

// ParsePatches reads the text of a layer. Names of inserted rows that are
// paths become file URLs, relative ones against src.Dir. The error is a
// *SyntaxError or a *ShapeError.
func ParsePatches(src Source, text []byte) ([]Patch, error) {
	doc, err := decode(text)
	if err != nil {
		return nil, src.syntaxError(err)
	}
	list, ok := doc.value.(*List)
	if !ok {
		return nil, src.notAList(doc)
	}
	patches := make([]Patch, len(list.Items))
	rows := rowNames{dir: src.Dir}
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
		if insert, _ := m.Get("insert"); Truthy(insert) && !rows.resolve(insert) {
			return nil, fail(InsertNotRows, "write each row as an entry of its own: - insert: [{id: …, name: …}]")
		}
		patches[i] = Patch{m, doc.items[i][0], doc.items[i][1]}
	}
	return patches, nil
}

func (src Source) syntaxError(err error) error {
	p, ok := err.(*problem)
	if !ok {
		p = &problem{text: err.Error()}
	}
	return &SyntaxError{src.File, src.Kind, p.line, p.column, p.text, p.remedy}
}

func (src Source) notAList(doc document) error {
	e := &ShapeError{File: src.File, Kind: src.Kind, Fault: NotAList, Remedy: "an empty layer is written []"}
	if doc.value != nil {
		e.Line, e.Column = doc.at[0], doc.at[1]
		e.Remedy = "begin every patch with `- ` at the start of a line; " + e.Remedy
	}
	return e
}

// rowNames turns the names of inserted rows that are paths into file URLs.
type rowNames struct {
	dir  string
	seen map[*List]bool // lists that aliases name
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
		name, _ := row.Get("name")
		if path, ok := name.(string); ok {
			if url, ok := fileURL(r.dir, path); ok {
				row.Set("name", url)
			}
		}
		group, _ := row.Get("group")
		config, _ := row.Get("config")
		children, ok := config.(*List)
		if ok && (Truthy(group) || name == groupName) && !r.rows(children, indexed && Truthy(group)) {
			return false
		}
	}
	return true
}

// groupName is the plugin whose config is rows.
const groupName = "cordis:group"
