package configschema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Schema is the JSON Schema of a plugin's config. It may be used from several
// goroutines.
type Schema struct {
	doc      any
	draft    int            // its number up to 7, then its year
	refs     map[string]any // what the $refs of the document lead to
	leftover bool           // a schema has a rule for the keys that no other rule is about
	patterns sync.Map       // *regexp.Regexp by pattern, nil if Go cannot read it
}

// Compile reads a schema of JSON Schema 2020-12, or of an older draft where its
// $schema says so. A $ref that leads nowhere or out of the document is an error,
// as nothing is loaded. What is not checked: $dynamicRef, $recursiveRef,
// unevaluatedItems, a $ref by pointer where a part of the document has an $id of
// its own, patterns that Go cannot read, and formats; drafts up to 7 take those
// for rules, and there uri is checked. Rules of newer drafts also count in older
// ones. name is shown in errors: the name of the plugin.
func Compile(name string, text []byte) (*Schema, error) {
	s := &Schema{}
	if err := s.read(text); err != nil {
		return nil, fmt.Errorf("reading the config schema of %s: %w", name, err)
	}
	return s, nil
}

func (s *Schema) read(text []byte) (err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&s.doc); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("invalid character after top-level value")
	}
	if number := outsized(s.doc); number != "" {
		return fmt.Errorf("the number %.20s is out of bounds", number)
	}
	if s.draft, err = draft(s.doc); err != nil {
		return err
	}
	s.refs = map[string]any{"": s.doc}
	r := reader{Schema: s, seen: map[string]bool{}}
	if err := r.schema(s.doc, ""); err != nil {
		return err
	}
	for i := 0; i < len(r.links) && !r.bundle; i++ {
		if err := r.resolve(r.links[i]); err != nil {
			return err
		}
	}
	return nil
}

// outsized is a number of the document that no value can be compared to, and
// whose digits are too many to count with; "" if there is none.
func outsized(v any) string {
	found := ""
	switch v := v.(type) {
	case json.Number:
		digits, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if f, err := v.Float64(); err != nil || f == 0 && strings.ContainsAny(digits, "123456789") {
			return v.String()
		}
	case []any:
		for _, item := range v {
			found = cmp.Or(found, outsized(item))
		}
	case map[string]any:
		for _, item := range v {
			found = cmp.Or(found, outsized(item))
		}
	}
	return found
}

func draft(doc any) (int, error) {
	m, _ := doc.(map[string]any)
	dialect, named := m["$schema"].(string)
	if !named {
		return 2020, nil
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(dialect, "#"), "://")
	switch name {
	case "json-schema.org/draft-04/schema":
		return 4, nil
	case "json-schema.org/draft-06/schema":
		return 6, nil
	case "json-schema.org/draft-07/schema":
		return 7, nil
	case "json-schema.org/draft/2019-09/schema":
		return 2019, nil
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema":
		return 2020, nil
	}
	return 0, outside(dialect)
}

func outside(address string) error {
	return fmt.Errorf("it refers to something outside its document: %s", address)
}

// reader looks whether the document of a schema is well-formed, so that a check
// need not. Places are JSON pointers.
type reader struct {
	*Schema
	seen   map[string]bool
	links  []string // the $refs
	bundle bool     // a part of the document has an $id of its own
}

func (r *reader) schema(v any, at string) error {
	if _, is := v.(bool); is || r.seen[at] {
		return nil
	}
	r.seen[at] = true
	m, err := as[map[string]any](v, at, "boolean or object")
	if err != nil {
		return err
	}
	if _, named := m["$id"].(string); named && at != "" {
		r.bundle = true
	}
	for _, keyword := range slices.Sorted(maps.Keys(m)) {
		if err := r.keyword(m, keyword, inside(at, keyword)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) keyword(m map[string]any, keyword, at string) (err error) {
	v := m[keyword]
	switch keyword {
	case "$ref":
		var ref string
		ref, err = as[string](v, at, "string")
		r.links = append(r.links, ref)
	case "$id":
		if name, ok := v.(string); ok && name != "" {
			r.refs[strings.TrimSuffix(name, "#")] = m
		}
	case "$anchor", "$dynamicAnchor":
		if name, ok := v.(string); ok {
			r.refs["#"+name] = m
		}
	case "type":
		if list, is := v.([]any); is {
			return each(list, at, isType)
		}
		if _, is := v.(string); !is {
			return malformed(at, "got %s, want string or array", typeName(v))
		}
		return isType(v, at)
	case "enum":
		_, err = as[[]any](v, at, "array")
	case "required":
		return areTexts(v, at)
	case "exclusiveMinimum", "exclusiveMaximum":
		if _, is := v.(bool); is && r.draft == 4 {
			return nil
		}
		_, err = as[json.Number](v, at, "number")
	case "minimum", "maximum":
		_, err = as[json.Number](v, at, "number")
	case "multipleOf":
		if _, err = as[json.Number](v, at, "number"); err == nil && rat(v).Sign() <= 0 {
			return malformed(at, "must be more than 0")
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		if _, err = as[json.Number](v, at, "number"); err == nil && (!rat(v).IsInt() || rat(v).Sign() < 0) {
			return malformed(at, "must be a whole number from 0")
		}
	case "uniqueItems":
		_, err = as[bool](v, at, "boolean")
	case "pattern":
		_, err = as[string](v, at, "string")
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		if _, err = as[map[string]any](v, at, "object"); err == nil {
			return each(v, at, r.schema)
		}
	case "dependentRequired", "dependencies":
		if _, err = as[map[string]any](v, at, "object"); err == nil {
			return each(v, at, func(item any, at string) error {
				if _, is := item.([]any); is || keyword == "dependentRequired" {
					return areTexts(item, at)
				}
				return r.schema(item, at)
			})
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if list, e := as[[]any](v, at, "array"); e != nil || len(list) == 0 {
			return cmp.Or(e, malformed(at, "must not be empty"))
		}
		return each(v, at, r.schema)
	case "items":
		if _, is := v.([]any); is && r.draft < 2020 {
			return each(v, at, r.schema)
		}
		return r.schema(v, at)
	case "unevaluatedProperties":
		r.leftover = true
		return r.schema(v, at)
	case "additionalProperties", "propertyNames", "additionalItems", "contains", "not", "if", "then", "else":
		return r.schema(v, at)
	}
	return err
}

// resolve finds what a $ref leads to.
func (r *reader) resolve(ref string) error {
	if _, known := r.refs[ref]; known {
		return nil
	}
	at, fragment, _ := strings.Cut(ref, "#")
	target, known := r.refs[at]
	if !known {
		return outside(at)
	}
	lost := fmt.Errorf("json-pointer in %q not found", ref)
	pointer, err := url.PathUnescape(fragment)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return lost
	}
	for _, key := range strings.Split(pointer, "/")[1:] {
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		var there bool
		switch node := target.(type) {
		case map[string]any:
			target, there = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if there = err == nil && i >= 0 && i < len(node); there {
				target = node[i]
			}
		}
		if !there {
			return lost
		}
		at = inside(at, key)
	}
	r.refs[ref] = target
	return r.schema(target, at)
}

func malformed(at, format string, args ...any) error {
	return fmt.Errorf("it is no JSON Schema: at %s: %s", cmp.Or(at, "/"), fmt.Sprintf(format, args...))
}

// inside is the place of a key in what is at a place.
func inside(at, key string) string {
	return at + "/" + strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

func as[T any](v any, at, want string) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, malformed(at, "got %s, want %s", typeName(v), want)
	}
	return t, nil
}

// each does f to what a list or mapping holds.
func each(v any, at string, f func(v any, at string) error) error {
	m, _ := v.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := f(m[key], inside(at, key)); err != nil {
			return err
		}
	}
	list, _ := v.([]any)
	for i, item := range list {
		if err := f(item, inside(at, strconv.Itoa(i))); err != nil {
			return err
		}
	}
	return nil
}

func areTexts(v any, at string) error {
	if _, err := as[[]any](v, at, "array"); err != nil {
		return err
	}
	return each(v, at, func(item any, at string) error {
		_, err := as[string](item, at, "string")
		return err
	})
}

func isType(v any, at string) error {
	switch v {
	case "array", "boolean", "integer", "null", "number", "object", "string":
		return nil
	}
	return malformed(at, "value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'")
}

// matches says whether a text matches a pattern. Patterns of JavaScript may look
// ahead, which Go's cannot.
func (s *Schema) matches(pattern, text string) fit {
	known, ok := s.patterns.Load(pattern)
	if !ok {
		re, _ := regexp.Compile(pattern)
		known, _ = s.patterns.LoadOrStore(pattern, re)
	}
	re := known.(*regexp.Regexp)
	switch {
	case re == nil:
		return unsure
	case re.MatchString(text):
		return yes
	default:
		return no
	}
}

// keys is the keys that a schema describes, also by the schemas that it is made
// of, sorted.
func (s *Schema) keys(schema any) []string {
	known, followed := map[string]bool{}, map[string]bool{}
	var add func(schema any)
	add = func(schema any) {
		node, ok := schema.(map[string]any)
		if !ok {
			return
		}
		properties, _ := node["properties"].(map[string]any)
		for key, allowed := range properties {
			if allowed != false {
				known[key] = true
			}
		}
		for _, keyword := range [...]string{"allOf", "anyOf", "oneOf"} {
			for _, part := range list(node[keyword]) {
				add(part)
			}
		}
		for _, keyword := range [...]string{"if", "then", "else"} {
			add(node[keyword])
		}
		if ref, ok := node["$ref"].(string); ok && !followed[ref] {
			followed[ref] = true
			add(s.refs[ref])
		}
	}
	add(schema)
	return slices.Sorted(maps.Keys(known))
}
