package patchedit

import (
	"fmt"
	"slices"
	"strconv"

	"dsh/internal/compose"
)

// The edits once more, on values: what the text must hold afterwards.

// childOf is the value of a key or index of v.
func childOf(v compose.Value, step string) (compose.Value, error) {
	switch v := v.(type) {
	case *compose.Map:
		if child, ok := v.Get(step); ok {
			return child, nil
		}
	case *compose.List:
		if i, ok := index(step, len(v.Items)); ok {
			return v.Items[i], nil
		}
	default:
		return nil, fmt.Errorf("there is no mapping or list that could have %s", formatKey(step))
	}
	return nil, fmt.Errorf("there is no %s", formatKey(step))
}

// index is the place in a list of n items that a step names.
func index(step string, n int) (int, bool) {
	i, err := strconv.Atoi(step)
	return i, err == nil && strconv.Itoa(i) == step && 0 <= i && i < n
}

// parentOf is the collection that holds what a path leads to.
func parentOf(root compose.Value, at Path) (compose.Value, error) {
	if len(at) == 0 {
		return nil, fmt.Errorf("the path is empty")
	}
	v := root
	for _, step := range at[:len(at)-1] {
		child, err := childOf(v, step)
		if err != nil {
			return nil, err
		}
		v = child
	}
	return v, nil
}

// setValue changes what is in root as Set does in a text.
func setValue(root compose.Value, at Path, v compose.Value) error {
	parent, err := parentOf(root, at)
	if err != nil {
		return err
	}
	last := at[len(at)-1]
	switch parent := parent.(type) {
	case *compose.Map:
		parent.Set(last, v)
		return nil
	case *compose.List:
		i, ok := index(last, len(parent.Items)+1)
		if !ok {
			return fmt.Errorf("the list has %d items, and no place %s", len(parent.Items), formatKey(last))
		}
		if i == len(parent.Items) {
			parent.Items = append(parent.Items, v)
		} else {
			parent.Items[i] = v
		}
		return nil
	default:
		return fmt.Errorf("there is no mapping or list that could have %s", formatKey(last))
	}
}

// deleteValue changes what is in root as Delete does in a text. It is false
// where nothing is there.
func deleteValue(root compose.Value, at Path) bool {
	parent, err := parentOf(root, at)
	if err != nil {
		return false
	}
	last := at[len(at)-1]
	if _, err := childOf(parent, last); err != nil {
		return false
	}
	switch parent := parent.(type) {
	case *compose.Map:
		parent.Delete(last)
	case *compose.List:
		i, _ := index(last, len(parent.Items))
		parent.Items = slices.Delete(parent.Items, i, i+1)
	}
	return true
}

// step is an edit of one entry.
type step struct {
	key        string
	old, value compose.Value
	drop       bool
}

// mergeMaps is the edits that turn old into v.
func mergeMaps(old, v *compose.Map) (steps []step, ok bool) {
	kept := 0
	for key := range old.All() {
		if _, ok := v.Get(key); ok {
			kept++
		} else {
			steps = append(steps, step{key: key, drop: true})
		}
	}
	if kept == 0 {
		return nil, false
	}
	for key, value := range v.All() {
		if have, ok := old.Get(key); !ok || !compose.Equal(have, value) {
			steps = append(steps, step{key: key, old: have, value: value})
		}
	}
	merged := compose.Clone(old).(*compose.Map)
	for _, s := range steps {
		if s.drop {
			merged.Delete(s.key)
		} else {
			merged.Set(s.key, s.value)
		}
	}
	return steps, compose.Equal(merged, v)
}

// mergeLists leaves what is the same at both ends.
func mergeLists(old, v []compose.Value) (steps []step, ok bool) {
	if len(old) == 0 || len(v) == 0 {
		return nil, false
	}
	front := 0
	for front < len(old) && front < len(v) && compose.Equal(old[front], v[front]) {
		front++
	}
	back := 0
	for back < len(old)-front && back < len(v)-front && compose.Equal(old[len(old)-1-back], v[len(v)-1-back]) {
		back++
	}
	if len(v) > len(old) && back > 0 {
		return nil, false // an item between others
	}
	for i := len(old) - back - 1; i >= len(v)-back; i-- {
		steps = append(steps, step{key: strconv.Itoa(i), drop: true})
	}
	for i := front; i < len(v)-back; i++ {
		s := step{key: strconv.Itoa(i), value: v[i]}
		if i < len(old) {
			s.old = old[i]
		}
		steps = append(steps, s)
	}
	return steps, true
}
