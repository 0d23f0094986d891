package configschema

import (
	"errors"
	"fmt"
	"math"

	"dsh/internal/compose"
)

// A config is walked with its aliases spelled out, which may make it endless.
const (
	maxDepth  = 200
	maxValues = 1_000_000
)

var (
	errDeep = fmt.Errorf("the config is nested more than %d levels deep", maxDepth)
	errBig  = fmt.Errorf("the config holds more than %d values", maxValues)
	errKind = errors.New("the config holds a value that no layer can write")
)

// unknown is the value of an expression, and notFinite a number that JSON does
// not have. The validator says where it meets them and goes no further there.
type (
	unknown   struct{}
	notFinite struct{}
)

// converter makes values of JSON.
type converter struct {
	without     bool // expressions are left out of mappings
	values      int
	expressions bool // there was one
}

func (c *converter) convert(v compose.Value, depth int) (any, error) {
	if c.values++; c.values > maxValues {
		return nil, errBig
	}
	if depth > maxDepth {
		return nil, errDeep
	}
	switch v := v.(type) {
	case nil, bool, string:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return notFinite{}, nil
		}
		return v, nil
	case compose.Expr:
		c.expressions = true
		return unknown{}, nil
	case *compose.List:
		return c.list(v, depth)
	case *compose.Map:
		return c.mapping(v, depth)
	default:
		return nil, errKind
	}
}

func (c *converter) list(v *compose.List, depth int) (any, error) {
	items := []any{}
	for _, item := range v.Items {
		converted, err := c.convert(item, depth+1)
		if err != nil {
			return nil, err
		}
		items = append(items, converted)
	}
	return items, nil
}

func (c *converter) mapping(v *compose.Map, depth int) (any, error) {
	m := map[string]any{}
	for key, value := range v.All() {
		converted, err := c.convert(value, depth+1)
		if err != nil {
			return nil, err
		}
		if _, is := converted.(unknown); is && c.without {
			continue
		}
		m[key] = converted
	}
	return m, nil
}
