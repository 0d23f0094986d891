package configschema

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Schema is the JSON Schema of a plugin's config, or a part of one; no part (nil)
// allows everything. It may be used from several goroutines.
type Schema struct {
	never      bool // it is `false`
	opaque     bool // it has a keyword that is not understood
	keywords   int
	types      []string
	choices    [][]string // of JSON; a value must be in all of them
	pattern    *regexp.Regexp
	unique     bool
	required   []string
	properties map[string]*Schema
	patterns   map[*regexp.Regexp]*Schema // patternProperties
	defs       map[string]*Schema
	limits     map[string]float64   // by keyword
	part       map[string]*Schema   // by keyword
	parts      map[string][]*Schema // by keyword; allOf with the target of $ref
}

// Compile reads a schema of JSON Schema 2020-12. name is shown in errors: the
// name of the plugin. A keyword that is not understood (contains, propertyNames,
// dependentRequired, unevaluatedProperties and whatever is not in 2020-12) is
// ignored. It is never a problem: also a not, oneOf or if around it is undecided.
// Errors are a keyword that holds something of the wrong sort, a pattern that Go
// cannot read, and a $ref to anything but # and #/$defs/NAME.
func Compile(name string, text []byte) (*Schema, error) {
	var doc any
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("reading the config schema of %s: %w", name, err)
	}
	r := reader{refs: map[*Schema]string{}}
	root := r.schema(doc, "")
	targets := map[string]*Schema{"#": root}
	for key, s := range root.defs {
		targets["#/$defs/"+key] = s
	}
	for s, ref := range r.refs {
		s.parts["allOf"] = append(s.parts["allOf"], targets[ref])
		if targets[ref] == nil {
			r.wrong = append(r.wrong, fmt.Sprintf("the $ref %q leads nowhere: it can be # or #/$defs/NAME", ref))
		}
	}
	if r.wrong != nil {
		return nil, fmt.Errorf("reading the config schema of %s: %s", name, slices.Min(r.wrong))
	}
	return root, nil
}

// reader makes schemas of a JSON document.
type reader struct {
	refs  map[*Schema]string
	wrong []string // what is malformed, with its place
}

// schema reads a schema; at is its place in the document.
func (r *reader) schema(v any, at string) *Schema {
	if allowed, ok := v.(bool); ok {
		return &Schema{never: !allowed}
	}
	m := as[map[string]any](r, v, at)
	s := &Schema{keywords: len(m), limits: map[string]float64{}, part: map[string]*Schema{}, parts: map[string][]*Schema{}}
	for keyword, v := range m {
		r.keyword(s, keyword, v, at+"/"+keyword)
	}
	return s
}

func (r *reader) keyword(s *Schema, keyword string, v any, at string) {
	switch keyword {
	case "additionalProperties", "items", "not", "if", "then", "else":
		s.part[keyword] = r.schema(v, at)
	case "prefixItems", "allOf", "anyOf", "oneOf":
		s.parts[keyword] = list(r, v, at, r.schema)
	case "properties":
		s.properties = r.named(v, at)
	case "patternProperties":
		s.patterns = map[*regexp.Regexp]*Schema{}
		for pattern, part := range r.named(v, at) {
			s.patterns[r.pattern(pattern, at)] = part
		}
	case "$defs":
		s.defs = r.named(v, at)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		s.limits[keyword] = as[float64](r, v, at)
		if keyword == "multipleOf" && s.limits[keyword] <= 0 {
			r.malformed(at, "it must be more than 0")
		}
	case "type":
		if _, one := v.(string); one {
			s.types = []string{r.typeOf(v, at)}
		} else {
			s.types = list(r, v, at, r.typeOf)
		}
	case "enum":
		s.choices = append(s.choices, list(r, v, at, func(v any, _ string) string { return canonical(v) }))
	case "const":
		s.choices = append(s.choices, []string{canonical(v)})
	case "required":
		s.required = list(r, v, at, r.text)
	case "uniqueItems":
		s.unique = as[bool](r, v, at)
	case "pattern":
		s.pattern = r.pattern(v, at)
	case "$ref":
		r.refs[s] = r.text(v, at)
	case "$schema":
		if dialect := "https://json-schema.org/draft/2020-12/schema"; v != dialect {
			r.malformed(at, "it can only be %s", dialect)
		}
	case "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format":
	default:
		s.opaque = true
	}
}

func (r *reader) named(v any, at string) map[string]*Schema {
	named := map[string]*Schema{}
	for key, v := range as[map[string]any](r, v, at) {
		named[key] = r.schema(v, at+"/"+key)
	}
	return named
}

func (r *reader) text(v any, at string) string { return as[string](r, v, at) }

func (r *reader) pattern(v any, at string) *regexp.Regexp {
	re, err := regexp.Compile(r.text(v, at))
	if err != nil {
		r.malformed(at, "%v", err)
	}
	return re
}

func (r *reader) typeOf(v any, at string) string {
	t := r.text(v, at)
	if typeWords[t] == "" {
		r.malformed(at, "it must be a type: array, boolean, integer, null, number, object or string")
	}
	return t
}

func list[T any](r *reader, v any, at string, read func(v any, at string) T) []T {
	var list []T
	for i, v := range as[[]any](r, v, at) {
		list = append(list, read(v, at+"/"+strconv.Itoa(i)))
	}
	if list == nil && !strings.HasSuffix(at, "/required") {
		r.malformed(at, "it must not be empty")
	}
	return list
}

// as is what a keyword holds, which must be of a type.
func as[T any](r *reader, v any, at string) T {
	t, ok := v.(T)
	if !ok {
		r.malformed(at, "it must be of type %s, and is of type %s", typeName(t), typeName(v))
	}
	return t
}

func (r *reader) malformed(at, format string, args ...any) {
	r.wrong = append(r.wrong, "at "+cmp.Or(at, "/")+": "+fmt.Sprintf(format, args...))
}

var typeNames = map[reflect.Kind]string{
	reflect.Invalid: "null", reflect.Bool: "boolean", reflect.Float64: "number", reflect.String: "string",
	reflect.Slice: "array", reflect.Map: "object",
}

// typeName is what JSON Schema calls the type of a value.
func typeName(v any) string { return typeNames[reflect.ValueOf(v).Kind()] }

// canonical is the JSON of a value, the same for equal ones, or "" if it has
// none: if there is an expression in it, or a number that is not finite.
func canonical(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
