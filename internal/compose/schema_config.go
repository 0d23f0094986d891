package compose

import (
	"errors"
	"strings"
)

// configSchema is the schema of a plugin's config, made fit for layers: every
// value in the config may be an expression instead.
type configSchema struct {
	schema   Value
	draft    string   // "" where the schema names none
	optional bool     // no config is as good as an empty one
	dropped  []string // keywords that are left out
	defs     *Map     // the schema's own definitions
	base     string   // where it stands in the document
}

// readConfigSchema reads a schema that will be the definition base.
func readConfigSchema(text []byte, base string) (*configSchema, error) {
	doc, err := decode(text) // JSON is YAML
	if err != nil {
		return nil, err
	}
	c := &configSchema{base: base}
	switch root := doc.value.(type) {
	case bool:
		c.schema, c.optional = root, root
	case *Map:
		named, _ := root.Get("$schema")
		c.draft, _ = named.(string)
		defs, _ := root.Get("$defs")
		c.defs, _ = defs.(*Map)
		c.optional = acceptsEmpty(root)
		c.schema = c.rules(root)
	default:
		return nil, errors.New("it is neither an object nor a boolean")
	}
	return c, nil
}

// acceptsEmpty says whether nothing in a schema asks for a key.
func acceptsEmpty(m *Map) bool {
	for _, key := range [...]string{"required", "minProperties", "anyOf", "oneOf", "allOf", "$ref", "enum", "const"} {
		if _, ok := m.Get(key); ok {
			return false
		}
	}
	return true
}

// rules is a schema in which the values inside what it describes may be
// expressions. It accepts at least what s does.
func (c *configSchema) rules(s Value) Value {
	m, ok := s.(*Map)
	if !ok {
		return s
	}
	var pairs []pair
	for key, v := range m.All() {
		switch key {
		case "$schema", "$id":
			continue
		case "properties", "patternProperties":
			v = each(v, c.value)
		case "additionalProperties", "items":
			v = c.value(v)
		case "prefixItems":
			v = each(v, c.value)
		case "$defs", "allOf", "anyOf":
			v = each(v, c.rules)
		case "oneOf":
			// An expression may fit several branches.
			if _, ok := m.Get("anyOf"); ok {
				c.drop(key)
				continue
			}
			key, v = "anyOf", each(v, c.rules)
		case "$ref":
			target, ok := c.target(v)
			if !ok {
				c.drop(key)
				continue
			}
			v = target
		case "not":
			// What fits an expression does not matter here; a reference does.
			if refers(v) {
				c.drop(key)
				continue
			}
		case "if", "then", "else", "contains", "minContains", "maxContains", "dependentSchemas",
			"unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$anchor", "$dynamicAnchor":
			c.drop(key)
			continue
		}
		pairs = append(pairs, pair{key, v})
	}
	return newMap(pairs)
}

// value is the schema of a value that may be an expression.
func (c *configSchema) value(s Value) Value {
	if _, ok := s.(*Map); !ok {
		return s
	}
	return object("anyOf", list(c.rules(s), reference("loaderExpression")))
}

// target is where a reference inside the schema leads in the document.
func (c *configSchema) target(ref Value) (string, bool) {
	text, _ := ref.(string)
	if text == "#" {
		return c.base, true
	}
	name, ok := strings.CutPrefix(text, definitions)
	if _, known := c.defs.Get(name); !ok || !known {
		return "", false
	}
	return c.base + "/$defs/" + name, true
}

func (c *configSchema) drop(keyword string) {
	for _, dropped := range c.dropped {
		if dropped == keyword {
			return
		}
	}
	c.dropped = append(c.dropped, keyword)
}

// each is v with f applied to what it holds.
func each(v Value, f func(Value) Value) Value {
	switch v := v.(type) {
	case *Map:
		pairs := make([]pair, 0, v.Len())
		for key, item := range v.All() {
			pairs = append(pairs, pair{key, f(item)})
		}
		return newMap(pairs)
	case *List:
		items := make([]Value, len(v.Items))
		for i, item := range v.Items {
			items[i] = f(item)
		}
		return list(items...)
	default:
		return v
	}
}

// refers says whether a schema holds references.
func refers(v Value) bool {
	found := false
	each(v, func(item Value) Value {
		found = found || refers(item)
		return item
	})
	if m, ok := v.(*Map); ok {
		if _, ok := m.Get("$ref"); ok {
			return true
		}
	}
	return found
}
