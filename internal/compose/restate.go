package compose

import (
	"fmt"
	"slices"
	"strings"
)

// PlaceError is a path into a config that cannot be followed.
type PlaceError struct {
	Path  []string // the whole path
	At    int      // how many of its keys lead to what stands in the way
	There string   // what that is, in words and without its value
}

func (e *PlaceError) Error() string {
	at := "the config"
	if e.At > 0 {
		at = PathText(e.Path[:e.At])
	}
	if e.At == len(e.Path) {
		return fmt.Sprintf("%s is %s", at, e.There)
	}
	return fmt.Sprintf("finding %s: %s is %s", PathText(e.Path), at, e.There)
}

// PathText is a path in a config as people write it in a [Target].
func PathText(path []string) string {
	var b strings.Builder
	for i, key := range path {
		if i > 0 {
			b.WriteByte('.')
		}
		writePart(&b, key)
	}
	return b.String()
}

// Restate is a config with the value at path set to v, or taken out (drop), and
// everything else as it was: an override replaces a config whole. copied are
// the paths of what was restated although nobody asked for it, each as short as
// possible; items of a list that move because one before them is taken out are
// not among them. Mappings that are missing on the way are made, before a key
// 0 a list. The index that is the length of a list appends to it. The result
// shares nothing with config and v. The error is a *PlaceError.
func Restate(config Value, path []string, v Value, drop bool) (changed Value, copied [][]string, err error) {
	if Endless(config) {
		return nil, nil, &PlaceError{path, 0, "too large to be written out"}
	}
	r := restater{path: path, v: Clone(v), drop: drop}
	changed, err = r.at(0, Clone(config))
	if err != nil {
		return nil, nil, err
	}
	return changed, r.copied, nil
}

type restater struct {
	path   []string
	v      Value
	drop   bool
	copied [][]string
}

// at changes what is at the first depth keys of the path.
func (r *restater) at(depth int, there Value) (Value, error) {
	if depth == len(r.path) {
		if r.drop {
			return nil, nil
		}
		return r.v, nil
	}
	key := r.path[depth]
	last := depth == len(r.path)-1
	if there == nil && !r.drop {
		if there = newMap(nil); key == "0" {
			there = &List{}
		}
	}
	switch there := there.(type) {
	case *Map:
		below, ok := there.Get(key)
		for other := range there.All() {
			r.copiedUnless(key, depth, other)
		}
		switch {
		case r.drop && last:
			there.Delete(key)
		case !r.drop || ok:
			now, err := r.at(depth+1, below)
			if err != nil {
				return nil, err
			}
			there.Set(key, now)
		}
		return there, nil
	case *List:
		return r.item(depth, there)
	case nil:
		return nil, nil // there is nothing to take out
	default:
		return nil, &PlaceError{r.path, depth, kindText(there)}
	}
}

// item changes an item of the list at the first depth keys of the path.
func (r *restater) item(depth int, list *List) (Value, error) {
	key := r.path[depth]
	n, ok := arrayIndex(key)
	room := uint64(len(list.Items))
	if !r.drop {
		room++
	}
	if !ok || n >= room {
		return nil, &PlaceError{r.path, depth, kindText(list)}
	}
	i := int(n)
	removed := r.drop && depth == len(r.path)-1
	for j := range list.Items {
		if !removed || j < i {
			r.copiedUnless(key, depth, string(appendNumber(nil, float64(j))))
		}
	}
	if removed {
		list.Items = slices.Delete(list.Items, i, i+1)
		return list, nil
	}
	if i == len(list.Items) {
		list.Items = append(list.Items, nil)
	}
	now, err := r.at(depth+1, list.Items[i])
	list.Items[i] = now
	return list, err
}

// copiedUnless notes a key beside the path, unless it is the path's own.
func (r *restater) copiedUnless(own string, depth int, key string) {
	if key != own {
		r.copied = append(r.copied, append(slices.Clone(r.path[:depth]), key))
	}
}

// kindText is what kind of value v is.
func kindText(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case float64:
		return "a number"
	case string:
		return "a text"
	case Expr:
		return "an expression"
	case *List:
		if len(v.Items) == 1 {
			return "a list of 1 item"
		}
		return fmt.Sprintf("a list of %d items", len(v.Items))
	default:
		return "a mapping"
	}
}
