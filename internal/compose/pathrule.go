package compose

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// NewPathRule finds the values that the JSON Schema of a config marks with
// "format": "path". It is nil if there are none. References inside the schema
// are followed, also in circles. A text that the schema lists by name (const,
// enum) is no path, nor is a URL where the schema takes URLs as well.
func NewPathRule(schema []byte) (*PathRule, error) {
	var doc any
	if err := json.Unmarshal(schema, &doc); err != nil { // some ten times as quick as reading it as YAML
		return nil, fmt.Errorf("reading a config schema: %w", err)
	}
	root := fromJSON(doc)
	p := pathReader{root: root, numbers: make(map[*Map]int), rules: make(map[string]*PathRule)}
	r := p.rule(root)
	if len(p.made) > maxPathRules {
		return nil, errors.New("reading a config schema: its references are too entangled")
	}
	if !p.useful()[r] {
		return nil, nil
	}
	return r, nil
}

// fromJSON is a value that encoding/json has read, its keys in order.
func fromJSON(v any) Value {
	switch v := v.(type) {
	case []any:
		list := &List{Items: make([]Value, len(v))}
		for i, item := range v {
			list.Items[i] = fromJSON(item)
		}
		return list
	case map[string]any:
		pairs := make([]pair, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			pairs = append(pairs, pair{key, fromJSON(v[key])})
		}
		return newMap(pairs)
	default:
		return v
	}
}

// maxPathRules is how many rules a schema may have. Each stands for a set of
// schemas that one value has to fit.
const maxPathRules = 2000

// pathReader collects the rules of a schema.
type pathReader struct {
	root    Value
	numbers map[*Map]int         // of schemas, as they were met
	rules   map[string]*PathRule // by the numbers of the schemas
	made    []*PathRule
}

// rule is the rule for a value that all or some of schemas describe.
func (p *pathReader) rule(schemas ...Value) *PathRule {
	set := p.closure(schemas)
	if len(set) == 0 || len(p.made) > maxPathRules {
		return nil
	}
	var id []byte
	for _, s := range set {
		id = append(strconv.AppendInt(id, int64(p.numbers[s]), 36), ' ')
	}
	if r, ok := p.rules[string(id)]; ok {
		return r
	}
	r := &PathRule{}
	p.rules[string(id)] = r
	p.made = append(p.made, r)
	r.scalar(set)
	p.mapping(r, set)
	p.list(r, set)
	return r
}

// closure is the schemas that apply, or may apply, to a value that schemas
// apply to, in the order of their numbers.
func (p *pathReader) closure(schemas []Value) []*Map {
	var set []*Map
	in := make(map[*Map]bool)
	for len(schemas) > 0 {
		s, _ := schemas[0].(*Map)
		schemas = schemas[1:]
		if s == nil || in[s] {
			continue
		}
		in[s] = true
		set = append(set, s)
		if _, ok := p.numbers[s]; !ok {
			p.numbers[s] = len(p.numbers)
		}
		for key, v := range s.All() {
			switch key {
			case "allOf", "anyOf", "oneOf":
				schemas = append(schemas, itemsOf(v)...)
			case "then", "else":
				schemas = append(schemas, v)
			case "dependentSchemas":
				for _, v := range mapOf(v).All() {
					schemas = append(schemas, v)
				}
			case "$ref":
				schemas = append(schemas, p.reference(v))
			}
		}
	}
	slices.SortFunc(set, func(a, b *Map) int { return cmp.Compare(p.numbers[a], p.numbers[b]) })
	return set
}

// pointerEscapes are those of a JSON pointer.
var pointerEscapes = strings.NewReplacer("~1", "/", "~0", "~")

// reference is what a reference within the schema names, nil for any other.
func (p *pathReader) reference(ref Value) Value {
	text, _ := ref.(string)
	pointer, ok := strings.CutPrefix(text, "#")
	if !ok {
		return nil
	}
	if plain, err := url.PathUnescape(pointer); err == nil {
		pointer = plain
	}
	there := p.root
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			if step != "" {
				return nil // the name of an anchor
			}
			continue
		}
		switch v := there.(type) {
		case *Map:
			there, _ = v.Get(pointerEscapes.Replace(step))
		case *List:
			n, ok := arrayIndex(step)
			if !ok || n >= uint64(len(v.Items)) {
				return nil
			}
			there = v.Items[n]
		default:
			return nil
		}
	}
	return there
}

// scalar reads what schemas say of a text.
func (r *PathRule) scalar(set []*Map) {
	for _, s := range set {
		switch format, _ := s.Get("format"); format {
		case "path":
			r.path = true
		case "uri", "url", "iri":
			r.urls = true
		}
		constant, _ := s.Get("const")
		enum, _ := s.Get("enum")
		for _, v := range append([]Value{constant}, itemsOf(enum)...) {
			if word, ok := v.(string); ok {
				if r.words == nil {
					r.words = make(map[string]bool)
				}
				r.words[word] = true
			}
		}
	}
}

// mapping reads what schemas say of the keys of a mapping.
func (p *pathReader) mapping(r *PathRule, set []*Map) {
	var other []Value
	for _, s := range set {
		other = append(other, otherKeys(s)...)
	}
	for _, s := range set {
		for name := range mapOf(get(s, "properties")).All() {
			if _, ok := r.keys[name]; ok {
				continue
			}
			if r.keys == nil {
				r.keys = make(map[string]*PathRule)
			}
			r.keys[name] = p.rule(schemasOfKey(set, name)...)
		}
	}
	for _, s := range set {
		for pattern, below := range mapOf(get(s, "patternProperties")).All() {
			if key, err := regexp.Compile(pattern); err == nil {
				r.patterns = append(r.patterns, keyPattern{key, p.rule(below)})
			}
		}
	}
	r.other = p.rule(other...)
}

// schemasOfKey is what set says of a key that is among the properties of one
// of them.
func schemasOfKey(set []*Map, name string) []Value {
	var all []Value
	for _, s := range set {
		known := false
		if below, ok := mapOf(get(s, "properties")).Get(name); ok {
			all, known = append(all, below), true
		}
		for pattern, below := range mapOf(get(s, "patternProperties")).All() {
			if key, err := regexp.Compile(pattern); err == nil && key.MatchString(name) {
				all, known = append(all, below), true
			}
		}
		if !known {
			all = append(all, otherKeys(s)...)
		}
	}
	return all
}

func otherKeys(s *Map) []Value {
	return []Value{get(s, "additionalProperties"), get(s, "unevaluatedProperties")}
}

// list reads what schemas say of the items of a list.
func (p *pathReader) list(r *PathRule, set []*Map) {
	places := 0
	for _, s := range set {
		places = max(places, len(itemsOf(get(s, "prefixItems"))))
	}
	for i := range min(places, maxPathRules) {
		var here []Value
		for _, s := range set {
			if first := itemsOf(get(s, "prefixItems")); i < len(first) {
				here = append(here, first[i])
			} else {
				here = append(here, furtherItems(s)...)
			}
		}
		r.first = append(r.first, p.rule(here...))
	}
	var further []Value
	for _, s := range set {
		further = append(further, furtherItems(s)...)
	}
	r.items = p.rule(further...)
}

func furtherItems(s *Map) []Value { return []Value{get(s, "items"), get(s, "unevaluatedItems")} }

// useful is the rules below which there are paths. The others are taken out of
// them.
func (p *pathReader) useful() map[*PathRule]bool {
	useful := make(map[*PathRule]bool)
	for grown := true; grown; {
		grown = false
		for _, r := range slices.Backward(p.made) {
			if !useful[r] && (r.path || r.leadsTo(useful)) {
				useful[r], grown = true, true
			}
		}
	}
	keep := func(r *PathRule) *PathRule {
		if useful[r] {
			return r
		}
		return nil
	}
	for _, r := range p.made {
		for name, below := range r.keys {
			r.keys[name] = keep(below) // also nil is a rule: other does not hold for it
		}
		for i := range r.patterns {
			r.patterns[i].rule = keep(r.patterns[i].rule)
		}
		for i := range r.first {
			r.first[i] = keep(r.first[i])
		}
		r.other, r.items = keep(r.other), keep(r.items)
	}
	return useful
}

// leadsTo says whether one of the rules is directly below r.
func (r *PathRule) leadsTo(rules map[*PathRule]bool) bool {
	for _, below := range r.keys {
		if rules[below] {
			return true
		}
	}
	return rules[r.other] || rules[r.items] ||
		slices.ContainsFunc(r.first, func(r *PathRule) bool { return rules[r] }) ||
		slices.ContainsFunc(r.patterns, func(p keyPattern) bool { return rules[p.rule] })
}

func get(m *Map, key string) Value {
	v, _ := m.Get(key)
	return v
}

func mapOf(v Value) *Map {
	m, _ := v.(*Map)
	return m
}

func itemsOf(v Value) []Value {
	if list, ok := v.(*List); ok {
		return list.Items
	}
	return nil
}
