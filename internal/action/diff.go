package action

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
)

// ConfigDiff is what composing B gives that composing A does not.
type ConfigDiff struct {
	A       string      `json:"a"`
	B       string      `json:"b"`
	Bundles BundleDiff  `json:"bundles"`
	Added   []DiffRow   `json:"added"`
	Removed []DiffRow   `json:"removed"`
	Changed []RowChange `json:"changed"`
	// Differ says that anything of this is there.
	Differ   bool     `json:"differ"`
	Warnings []string `json:"-"`
}

// BundleDiff is how the lists of bundles differ.
type BundleDiff struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Reordered says that the bundles of both stand in another order.
	Reordered bool `json:"reordered"`
}

// DiffRow is a row that only one side has.
type DiffRow struct {
	Row    string `json:"row"` // its id behind those of the groups it is in, or its place
	Plugin string `json:"plugin"`
	Layer  string `json:"layer"` // that brought it in
}

// RowChange is a row that both sides have and that differs.
type RowChange struct {
	Row  string      `json:"row"`
	Keys []KeyChange `json:"keys"`
}

// KeyChange is a key that differs.
type KeyChange struct {
	Key string `json:"key"`           // as in config.env.KEY
	Old *Shown `json:"old,omitempty"` // nil: A has no such key
	New *Shown `json:"new,omitempty"` // nil: B has no such key
}

// DiffSide is one side of a comparison.
type DiffSide struct {
	Name profile.Name
	// Dir is the directory of a profile that stands somewhere else than in the
	// home; "" is the one called Name.
	Dir string
	// Defaults takes the bundles alone, without any patch of the user.
	Defaults bool
}

// ParseDiffSide reads what a person calls a profile: its name, or the path of
// its directory, which has a separator or is a "." or "..".
func ParseDiffSide(text, dir string) (DiffSide, error) {
	if text != "." && text != ".." && !strings.ContainsAny(text, `/\`) {
		name, err := profile.ParseName(text)
		return DiffSide{Name: name}, err
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	text = filepath.Clean(text)
	name, err := profile.ParseName(filepath.Base(text))
	return DiffSide{Name: name, Dir: text}, err
}

// String is the side as people call it.
func (s DiffSide) String() string {
	name := s.Name.String()
	if s.Dir != "" {
		name = s.Dir
	}
	if s.Defaults {
		return "the defaults of " + name
	}
	return name
}

// Diff composes two profiles and compares the rows. Rows are matched by id, in
// the same group; the order of rows means nothing.
func Diff(ctx context.Context, env Env, a, b DiffSide, showSecrets bool) (*ConfigDiff, error) {
	left, err := a.compose(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("composing %s: %w", a, err)
	}
	right, err := b.compose(ctx, env)
	if err != nil {
		return nil, fmt.Errorf("composing %s: %w", b, err)
	}
	return diffComposed(a.String(), b.String(), left, right, showSecrets), nil
}

// diffComposed compares what two profiles compose to.
func diffComposed(a, b string, left, right *Composed, showSecrets bool) *ConfigDiff {
	d := &ConfigDiff{A: a, B: b, Added: []DiffRow{}, Removed: []DiffRow{}, Changed: []RowChange{}}
	for _, text := range slices.Concat(left.Warnings, left.Notices, right.Warnings, right.Notices) {
		if !slices.Contains(d.Warnings, text) {
			d.Warnings = append(d.Warnings, text)
		}
	}
	d.Bundles = diffBundles(left.Profile.Manifest.Bundles(), right.Profile.Manifest.Bundles())
	w := differ{ConfigDiff: d, shown: shown{showSecrets}, left: newHistory(left.Tree), right: newHistory(right.Tree), leftDir: left.Profile.Dir, rightDir: right.Profile.Dir}
	w.rows(left.Tree.Rows, right.Tree.Rows, nil)
	d.Differ = len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Bundles.Added)+len(d.Bundles.Removed) > 0 || d.Bundles.Reordered
	return d
}

func (s DiffSide) compose(ctx context.Context, env Env) (*Composed, error) {
	layers := Layers{Name: s.Name, BundlesOnly: s.Defaults}
	if s.Dir == "" {
		return look(ctx, env, layers, false)
	}
	file := filepath.Join(s.Dir, "package.json")
	text, err := profile.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read profile manifest %w", err)
	}
	p := &profile.Profile{Name: s.Name, Dir: s.Dir}
	if p.Manifest, err = profile.ParseManifest(file, text); err != nil {
		return nil, fault.WithHint(err, "mend %s by hand", file)
	}
	return composeProfile(env, p, layers, false)
}

func diffBundles(a, b []string) BundleDiff {
	without := func(list, other []string) []string {
		return append([]string{}, slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(other, name) })...)
	}
	d := BundleDiff{Added: without(b, a), Removed: without(a, b)}
	d.Reordered = !slices.Equal(without(a, d.Removed), without(b, d.Added))
	return d
}

// differ compares the rows of two trees.
type differ struct {
	*ConfigDiff
	shown
	left, right       *history
	leftDir, rightDir string // of the profiles
}

// rowKey is what a row is matched by: its id, and which of the rows with that
// id it is; for a row without one it is its place among such rows.
type rowKey struct {
	id compose.Value
	n  int
}

// text is the key as people read it.
func (k rowKey) text() string {
	switch {
	case k.id == nil:
		return "(no id, number " + strconv.Itoa(k.n+1) + ")"
	case k.n > 0:
		return fmt.Sprintf("%s (number %d)", compose.IDText(k.id), k.n+1)
	default:
		return compose.IDText(k.id)
	}
}

func keyRows(rows []compose.Row) (keys []rowKey, byKey map[rowKey]compose.Row) {
	byKey = map[rowKey]compose.Row{}
	next := map[compose.Value]int{}
	for _, row := range rows {
		id := row.ID()
		switch id.(type) {
		case *compose.Map, *compose.List:
			id = compose.Show(id) // each is only equal to itself
		}
		if !compose.Truthy(id) {
			id = nil
		}
		key := rowKey{id, next[id]}
		next[id]++
		keys = append(keys, key)
		byKey[key] = row
	}
	return keys, byKey
}

func (d *differ) rows(a, b []compose.Row, groups []string) {
	keysA, rowsA := keyRows(a)
	keysB, rowsB := keyRows(b)
	for _, key := range keysA {
		path := append(slices.Clip(groups), key.text())
		if other, ok := rowsB[key]; ok {
			d.row(rowsA[key], other, path)
		} else {
			d.Removed = append(d.Removed, only(d.left, rowsA[key], path))
		}
	}
	for _, key := range keysB {
		if _, ok := rowsA[key]; !ok {
			d.Added = append(d.Added, only(d.right, rowsB[key], append(slices.Clip(groups), key.text())))
		}
	}
}

func only(h *history, row compose.Row, path []string) DiffRow {
	layer, _ := h.origin(row.Entry)
	return DiffRow{Row: strings.Join(path, " > "), Plugin: row.Name(), Layer: layer}
}

// row compares two rows, and the rows in them where both are groups.
func (d *differ) row(a, b compose.Row, path []string) {
	childrenA, childrenB := a.Children(), b.Children()
	groups := childrenA != nil && childrenB != nil
	change := RowChange{Row: strings.Join(path, " > ")}
	keys := diffSides{a: rowValue(a), b: rowValue(b), hasA: true, hasB: true}
	keys.shownA, keys.shownB = d.value(keys.a), d.value(keys.b)
	keys.each(nil, func(path []string, k KeyChange) {
		if !(groups && path[0] == "config") && !d.samePlace(k) {
			change.Keys = append(change.Keys, k)
		}
	})
	if len(change.Keys) > 0 {
		d.Changed = append(d.Changed, change)
	}
	if groups {
		d.rows(childrenA, childrenB, path)
	}
}

// samePlace says whether the plugins of a row are the same file of either profile.
func (d *differ) samePlace(k KeyChange) bool {
	if k.Key != "name" || k.Old == nil || k.New == nil || d.leftDir == d.rightDir {
		return false
	}
	a, inA := placeInside(d.leftDir, k.Old.V)
	b, inB := placeInside(d.rightDir, k.New.V)
	return inA && inB && a == b
}

// placeInside is the path in a profile of the plugin that a row names.
func placeInside(dir string, name compose.Value) (string, bool) {
	address, ok := name.(string)
	if !ok {
		return "", false
	}
	file, ok := compose.FilePath(address)
	if !ok {
		return "", false
	}
	inside, err := filepath.Rel(dir, file)
	return inside, err == nil && filepath.IsLocal(inside)
}

// diffSides is a place in both rows, as it is and as it may be shown.
type diffSides struct {
	a, b, shownA, shownB compose.Value
	hasA, hasB           bool
}

// below is the place of a key.
func (s diffSides) below(key string) diffSides {
	var under diffSides
	under.a, under.hasA = at(s.a, []string{key})
	under.b, under.hasB = at(s.b, []string{key})
	under.shownA, _ = at(s.shownA, []string{key})
	under.shownB, _ = at(s.shownB, []string{key})
	return under
}

// each goes through the smallest places that differ.
func (s diffSides) each(path []string, found func([]string, KeyChange)) {
	if s.hasA && s.hasB && compose.Equal(s.a, s.b) {
		return
	}
	if keys, ok := s.keys(); ok {
		for _, key := range keys {
			s.below(key).each(append(slices.Clip(path), key), found)
		}
		return
	}
	k := KeyChange{Key: compose.PathText(path)}
	if s.hasA {
		k.Old = &Shown{s.shownA}
	}
	if s.hasB {
		k.New = &Shown{s.shownB}
	}
	found(path, k)
}

// keys are the keys of both sides where both are mappings, or lists of one
// length.
func (s diffSides) keys() (keys []string, ok bool) {
	if !s.hasA || !s.hasB {
		return nil, false
	}
	if a, ok := s.a.(*compose.Map); ok {
		b, ok := s.b.(*compose.Map)
		if !ok {
			return nil, false
		}
		for key := range a.All() {
			keys = append(keys, key)
		}
		for key := range b.All() {
			if _, both := a.Get(key); !both {
				keys = append(keys, key)
			}
		}
		return keys, true
	}
	a, okA := s.a.(*compose.List)
	b, okB := s.b.(*compose.List)
	if !okA || !okB || len(a.Items) != len(b.Items) {
		return nil, false
	}
	for i := range a.Items {
		keys = append(keys, strconv.Itoa(i))
	}
	return keys, true
}
