package configschema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"

	"dsh/internal/compose"
)

// A config is walked with its aliases spelled out, which may make it endless,
// and a schema may lead from one $ref to several others again and again.
const (
	maxDepth   = 200
	maxValues  = 1_000_000
	maxSteps   = 500_000
	maxNesting = 20_000
)

var (
	errDeep = fmt.Errorf("the config is nested more than %d levels deep", maxDepth)
	errBig  = fmt.Errorf("the config holds more than %d values", maxValues)
	errKind = errors.New("the config holds a value that no layer can write")
	errLong = errors.New("the config was not checked, as its plugin's schema takes too many steps")
)

// measure says whether a config is too much to check.
func measure(config compose.Value) error {
	values := 0
	var walk func(v compose.Value, depth int) error
	walk = func(v compose.Value, depth int) error {
		if values++; values > maxValues {
			return errBig
		}
		if depth > maxDepth {
			return errDeep
		}
		switch v := v.(type) {
		case nil, bool, float64, string, compose.Expr:
		case *compose.List:
			for _, item := range v.Items {
				if err := walk(item, depth+1); err != nil {
					return err
				}
			}
		case *compose.Map:
			for _, item := range v.All() {
				if err := walk(item, depth+1); err != nil {
					return err
				}
			}
		default:
			return errKind
		}
		return nil
	}
	return walk(config, 0)
}

// typeName is what JSON Schema calls the type of a value of a config or of a
// schema, "" for an expression.
func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64, json.Number:
		return "number"
	case string:
		return "string"
	case *compose.List, []any:
		return "array"
	case *compose.Map, map[string]any:
		return "object"
	default:
		return ""
	}
}

// rat is a finite number as it is written.
func rat(v any) *big.Rat {
	r, _ := new(big.Rat).SetString(fmt.Sprint(v))
	return r
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// list is what a list of a schema holds.
func list(v any) []any {
	l, _ := v.([]any)
	return l
}

// same says whether a value of a config is a value of the schema.
func (c *checking) same(v compose.Value, want any) fit {
	if typeName(v) != typeName(want) {
		return no
	}
	a, known := c.appendCanonical(nil, v)
	b, _ := c.appendCanonical(nil, want)
	switch {
	case !known:
		return unsure
	case string(a) == string(b):
		return yes
	default:
		return no
	}
}

// appendCanonical writes a value so that equal ones, and no others, give the
// same text. known says that there is no expression and no NaN in it.
func (c *checking) appendCanonical(dst []byte, v any) (text []byte, known bool) {
	if !c.spend(1) {
		return dst, false
	}
	switch v := v.(type) {
	case nil, bool:
		return fmt.Append(dst, v), true
	case string:
		return strconv.AppendQuote(dst, v), true
	case json.Number:
		return append(dst, rat(v).RatString()...), true
	case float64:
		if !finite(v) {
			return dst, false
		}
		return append(dst, rat(v).RatString()...), true
	case []any:
		return c.appendList(dst, v)
	case *compose.List:
		return c.appendList(dst, v.Items)
	case map[string]any:
		return c.appendMap(dst, v)
	case *compose.Map:
		return c.appendMap(dst, maps.Collect(v.All()))
	default:
		return dst, false
	}
}

func (c *checking) appendList(dst []byte, items []any) (text []byte, known bool) {
	known = true
	dst = append(dst, '[')
	for i := 0; i < len(items) && known; i++ {
		dst, known = c.appendCanonical(dst, items[i])
		dst = append(dst, ',')
	}
	return append(dst, ']'), known
}

func (c *checking) appendMap(dst []byte, m map[string]any) (text []byte, known bool) {
	known = true
	dst = append(dst, '{')
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if dst, known = c.appendCanonical(append(strconv.AppendQuote(dst, key), ':'), m[key]); !known {
			return dst, false
		}
		dst = append(dst, ',')
	}
	return append(dst, '}'), known
}
