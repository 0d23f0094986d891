package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
)

// Index is what a catalogue holds.
type Index struct {
	Entries []Entry
	Skipped []Skipped // entries that cannot be read
	Updated string    // when its author made it, in the author's words; "" where that is not said
	Notes   []string  // what is to be known of the whole
}

// Skipped is an entry that cannot be read.
type Skipped struct {
	At   int    `json:"at"`   // the how manieth it is, from 1
	Name string `json:"name"` // "" where that cannot be read either
	Why  string `json:"why"`
}

// Parse reads a catalogue: JSON or YAML, a list of entries or an object around
// one, or one entry or several documents of one entry each. The error, of class
// Package, says why it is none.
func Parse(text []byte, from Origin) (*Index, error) {
	if len(text) > MaxBytes {
		return nil, fault.Errorf(fault.Package, "it is longer than %d bytes", MaxBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte(lost)) // what has it is skipped below
	}
	documents, err := decode(text)
	if err != nil {
		return nil, fault.WithClass(fault.Package, err)
	}
	index := &Index{}
	var found []any
	for _, document := range documents {
		list, ok := entriesIn(document, 0)
		if !ok {
			return nil, fault.Errorf(fault.Package, "it holds no list of plugins in a form that this dsh knows")
		}
		found = append(found, list...)
		if top, ok := document.(map[string]any); ok {
			index.about(top, len(list))
		}
	}
	if len(found) > maxEntries {
		index.Notes = append(index.Notes, fmt.Sprintf("it has %d entries, of which the first %d count", len(found), maxEntries))
		found = found[:maxEntries]
	}
	for i, value := range found {
		entry, why := from.read(value)
		if why != "" {
			name := ""
			if m, ok := value.(map[string]any); ok {
				name = Line(strings.ReplaceAll(fields(m).text(append(nameKeys, idKeys...)...), lost, ""), maxName)
			}
			index.Skipped = append(index.Skipped, Skipped{i + 1, name, why})
			continue
		}
		index.Entries = append(index.Entries, entry)
	}
	return index, nil
}

// about takes over what an index says of itself. n is how many entries are here.
func (x *Index) about(top fields, n int) {
	if updated := top.text("updated", "updatedAt", "generatedAt", "generated_at", "lastUpdated"); updated != "" && !broken(updated) {
		x.Updated = Line(updated, 40)
	}
	said := 0.0
	for _, key := range []string{"count", "total", "totalCount"} {
		switch v := top[key].(type) {
		case float64:
			said = max(said, v)
		case int:
			said = max(said, float64(v))
		}
	}
	if said > float64(n) {
		x.Notes = append(x.Notes, fmt.Sprintf("it says that there are %.0f entries, and %d are here: it may be one page of several", said, n))
	}
}

// decode reads the documents of a text.
func decode(text []byte) ([]any, error) {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	switch {
	case len(trimmed) == 0:
		return nil, errors.New("it is empty")
	case trimmed[0] == '<':
		return nil, fault.WithHint(errors.New("it is a page for browsers and no catalogue"), "the address has to be that of the JSON or YAML file itself")
	case trimmed[0] == '{' || trimmed[0] == '[':
		var document any
		if err := json.Unmarshal(text, &document); err != nil {
			return nil, fmt.Errorf("it cannot be read as JSON: %s", Line(err.Error(), maxName))
		}
		return []any{document}, nil
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var documents []any
	for {
		var document any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, fmt.Errorf("it cannot be read as YAML: %s", Line(plainYAML(err).Error(), maxName))
		}
		if document != nil {
			documents = append(documents, document)
		}
	}
}

// listKeys are where an object has its entries.
var listKeys = []string{"plugins", "entries", "items", "packages", "results", "list", "registry", "catalog", "data"}

// entriesIn finds the entries of a document.
func entriesIn(document any, depth int) ([]any, bool) {
	if list, ok := document.([]any); ok {
		return list, true
	}
	top, ok := document.(map[string]any)
	if !ok || depth > 2 {
		return nil, false
	}
	for _, key := range listKeys {
		var list []any
		found := false
		switch v := top[key].(type) {
		case []any:
			list, found = v, true
		case map[string]any:
			if list, found = named(v); !found {
				list, found = entriesIn(v, depth+1)
			}
		}
		if found {
			packs, _ := top["packs"].([]any)
			return append(slices.Clone(list), packs...), true
		}
	}
	if isEntry(top) {
		return []any{top}, true
	}
	return named(top)
}

// named are the entries of an object that has each under its id.
func named(object fields) ([]any, bool) {
	var list []any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		m, ok := object[key].(map[string]any)
		if !ok {
			return nil, false
		}
		if !fields(m).has("id") {
			m = maps.Clone(m)
			m["id"] = key
		}
		if !isEntry(m) {
			return nil, false
		}
		list = append(list, m)
	}
	return list, len(list) > 0
}
