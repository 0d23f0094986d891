package configschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is the JSON Schema of a plugin's config. It may be used from several
// goroutines.
type Schema struct {
	compiled *jsonschema.Schema
	doc      any
	// unreadable is the patterns that Go's regular expressions cannot express.
	// They match everything, so that nothing is wrong by them.
	unreadable map[string]bool
}

// address is what the schema's document is called inside the validator.
const address = "schema://config/"

// Compile reads a schema of JSON Schema 2020-12, or of an older draft where its
// $schema says so. A $ref that leaves the document is an error, as nothing is
// loaded. Formats are remarks and not checked, but in drafts up to 7, which take
// them for rules. A pattern that Go cannot read is not checked. name is shown in errors: the name of the plugin.
func Compile(name string, text []byte) (*Schema, error) {
	s := &Schema{unreadable: map[string]bool{}}
	fail := func(err error) error { return fmt.Errorf("reading the config schema of %s: %w", name, plain(err)) }
	var err error
	if s.doc, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
		return nil, fail(err)
	}
	if number := outsized(s.doc); number != "" {
		return nil, fail(fmt.Errorf("the number %.20s is out of bounds", number))
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.regexp)
	if err := c.AddResource(address, s.doc); err != nil {
		return nil, fail(err)
	}
	if s.compiled, err = c.Compile(address); err != nil {
		return nil, fail(err)
	}
	return s, nil
}

// outsized is a number of the document that no value can be compared to, and
// that the validator would write out digit by digit; "" if there is none.
func outsized(v any) string {
	switch v := v.(type) {
	case json.Number:
		digits, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		if f, err := v.Float64(); err != nil || f == 0 && strings.ContainsAny(digits, "123456789") {
			return v.String()
		}
	case []any:
		for _, item := range v {
			if number := outsized(item); number != "" {
				return number
			}
		}
	case map[string]any:
		for _, item := range v {
			if number := outsized(item); number != "" {
				return number
			}
		}
	}
	return ""
}

// noLoader refuses to load anything.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errOutside }

var errOutside = errors.New("it refers to something outside its document")

// regexp is the engine of patterns. Those of JavaScript may look ahead, which
// Go's do not.
func (s *Schema) regexp(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		s.unreadable[pattern] = true
		return anyText(pattern), nil
	}
	return re, nil
}

// anyText is a pattern that matches every text.
type anyText string

func (p anyText) String() string        { return string(p) }
func (anyText) MatchString(string) bool { return true }

// plain is an error of the compiler without the addresses that only it knows.
func plain(err error) error {
	if load := (*jsonschema.LoadURLError)(nil); errors.As(err, &load) {
		return fmt.Errorf("%w: %s", errOutside, strings.TrimPrefix(load.URL, address))
	}
	if invalid := (*jsonschema.SchemaValidationError)(nil); errors.As(err, &invalid) {
		if e := (*jsonschema.ValidationError)(nil); errors.As(invalid.Err, &e) {
			for len(e.Causes) > 0 {
				e = e.Causes[0]
			}
			return fmt.Errorf("it is no JSON Schema: at /%s: %s", strings.Join(e.InstanceLocation, "/"),
				e.ErrorKind.LocalizedString(message.NewPrinter(language.English)))
		}
	}
	return errors.New(strings.ReplaceAll(err.Error(), address, ""))
}

// pointer is the keys that lead from the root of the document to what an
// address of the validator names.
func pointer(schemaURL string) []string {
	_, fragment, _ := strings.Cut(schemaURL, "#")
	parts := strings.Split(fragment, "/")[1:]
	for i, part := range parts {
		if decoded, err := url.PathUnescape(part); err == nil {
			part = decoded
		}
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
	}
	return parts
}

// at is the part of the document that an address of the validator names, or
// nil.
func (s *Schema) at(schemaURL string) any { return follow(s.doc, pointer(schemaURL)) }

func follow(v any, path []string) any {
	for _, key := range path {
		switch node := v.(type) {
		case map[string]any:
			v = node[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			v = node[i]
		default:
			return nil
		}
	}
	return v
}

// keys is the keys that a schema describes, also by the schemas that it is
// made of, sorted.
func (s *Schema) keys(schema any) []string {
	known := map[string]bool{}
	s.addKeys(known, schema, 0)
	return slices.Sorted(maps.Keys(known))
}

func (s *Schema) addKeys(known map[string]bool, schema any, depth int) {
	node, ok := schema.(map[string]any)
	if !ok || depth > 8 {
		return
	}
	properties, _ := node["properties"].(map[string]any)
	for key, allowed := range properties {
		if allowed != false {
			known[key] = true
		}
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := node[keyword].([]any)
		for _, part := range list {
			s.addKeys(known, part, depth+1)
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		s.addKeys(known, node[keyword], depth+1)
	}
	if ref, ok := node["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		s.addKeys(known, s.at(ref), depth+1)
	}
}
