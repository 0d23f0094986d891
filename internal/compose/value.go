package compose

import (
	"iter"
	"math"
	"slices"
	"strconv"
)

// Value is a value of the YAML dialect, as JavaScript would hold it: nil,
// bool, float64, string, [Expr], *[List] or *[Map]. A text may name one list
// or mapping in several places (an anchor and its aliases); such places hold
// the same pointer.
type Value = any

// Expr is a `!!js` scalar. Composing never evaluates it.
type Expr struct {
	Text string
}

// List is a sequence.
type List struct {
	Items []Value
	node
}

// Map is a mapping with the key order of a JavaScript object: keys that are
// array indices come first, ascending, then the others as they were added.
// The methods that read also work on a nil *Map, which is empty.
type Map struct {
	pairs        []pair
	indices      int            // how many of pairs, at the front, have an array index as key
	lookup       map[string]int // key to its place in pairs; nil while pairs are few
	line, column int32
	node
}

type pair struct {
	key   string
	value Value
}

// searchable is the number of keys up to which looking through them is
// quicker than a lookup table.
const searchable = 12

// Len is the number of keys.
func (m *Map) Len() int {
	if m == nil {
		return 0
	}
	return len(m.pairs)
}

// Get is the value of key, and whether there is one.
func (m *Map) Get(key string) (Value, bool) {
	if i := m.find(key); i >= 0 {
		return m.pairs[i].value, true
	}
	return nil, false
}

// All goes through keys and values in order.
func (m *Map) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if m == nil {
			return
		}
		for _, p := range m.pairs {
			if !yield(p.key, p.value) {
				return
			}
		}
	}
}

// Set gives key a value. A new key takes its place in the order of the keys.
func (m *Map) Set(key string, v Value) {
	if i := m.find(key); i >= 0 {
		m.pairs[i].value = v
		return
	}
	at := len(m.pairs)
	if n, ok := arrayIndex(key); ok {
		at, _ = slices.BinarySearchFunc(m.pairs[:m.indices], n, func(p pair, n uint64) int {
			have, _ := arrayIndex(p.key)
			return int(int64(have) - int64(n))
		})
		m.indices++
	}
	m.pairs = slices.Insert(m.pairs, at, pair{key, v})
	switch {
	case len(m.pairs) <= searchable:
	case m.lookup != nil && at == len(m.pairs)-1:
		m.lookup[key] = at
	default:
		m.buildLookup()
	}
}

// Position is where the mapping was written, counted from 1; zero when no
// text holds it.
func (m *Map) Position() (line, column int) {
	if m == nil {
		return 0, 0
	}
	return int(m.line), int(m.column)
}

// newMap is a mapping of pairs, whose keys must differ.
func newMap(pairs []pair) *Map {
	m := &Map{pairs: pairs}
	for _, p := range pairs {
		if _, ok := arrayIndex(p.key); ok {
			m.indices++
		}
	}
	if m.indices > 0 {
		slices.SortStableFunc(pairs, func(a, b pair) int { return compareKeys(a.key, b.key) })
	}
	if len(pairs) > searchable {
		m.buildLookup()
	}
	return m
}

func (m *Map) find(key string) int {
	if m == nil {
		return -1
	}
	if m.lookup != nil {
		if i, ok := m.lookup[key]; ok {
			return i
		}
		return -1
	}
	for i := range m.pairs {
		if m.pairs[i].key == key {
			return i
		}
	}
	return -1
}

func (m *Map) buildLookup() {
	m.lookup = make(map[string]int, len(m.pairs))
	for i, p := range m.pairs {
		m.lookup[p.key] = i
	}
}

// compareKeys puts array indices first and in ascending order.
func compareKeys(a, b string) int {
	x, xIsIndex := arrayIndex(a)
	y, yIsIndex := arrayIndex(b)
	switch {
	case xIsIndex && yIsIndex:
		return int(int64(x) - int64(y))
	case xIsIndex:
		return -1
	case yIsIndex:
		return 1
	default:
		return 0
	}
}

// arrayIndex says whether key is an array index of ECMAScript: the shortest
// decimal form of an integer below 2^32-1.
func arrayIndex(key string) (uint64, bool) {
	if key == "" || key[0] < '0' || key[0] > '9' || len(key) > 10 || key[0] == '0' && len(key) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(key, 10, 64)
	return n, err == nil && n < math.MaxUint32
}

// Truthy is whether JavaScript takes v for true.
func Truthy(v Value) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && !math.IsNaN(v)
	case string:
		return v != ""
	default:
		return true
	}
}

// Equal says whether a and b have the same content: the same types, keys in the
// same order, the same numbers (every NaN is the same, 0 and -0 are not). Neither
// may be [Endless].
func Equal(a, b Value) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && (a == b && math.Signbit(a) == math.Signbit(b) || math.IsNaN(a) && math.IsNaN(b))
	case *List:
		b, ok := b.(*List)
		return ok && (a == b || slices.EqualFunc(a.Items, b.Items, Equal))
	case *Map:
		b, ok := b.(*Map)
		return ok && (a == b || a.Len() == b.Len() && slices.EqualFunc(a.entries(), b.entries(), func(a, b pair) bool {
			return a.key == b.key && Equal(a.value, b.value)
		}))
	default:
		return a == b
	}
}

func (m *Map) entries() []pair {
	if m == nil {
		return nil
	}
	return m.pairs
}

// Clone is a copy of v that shares nothing with it, aliases written out. v must
// not be [Endless].
func Clone(v Value) Value {
	switch v := v.(type) {
	case *List:
		c := &List{Items: make([]Value, len(v.Items))}
		for i, item := range v.Items {
			c.Items[i] = Clone(item)
		}
		return c
	case *Map:
		pairs := make([]pair, v.Len())
		for i, p := range v.entries() {
			pairs[i] = pair{p.key, Clone(p.value)}
		}
		c := newMap(pairs)
		c.line, c.column = v.line, v.column
		return c
	default:
		return v
	}
}

// Delete takes key out.
func (m *Map) Delete(key string) {
	i := m.find(key)
	if i < 0 {
		return
	}
	m.pairs = slices.Delete(m.pairs, i, i+1)
	if i < m.indices {
		m.indices--
	}
	if m.lookup = nil; len(m.pairs) > searchable {
		m.buildLookup()
	}
}
