package action

import (
	"fmt"
	"slices"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
	"dsh/internal/profile"
)

// set lays the values of --set over the tree, in order.
func (c *Composed) set(env Env, sets []string, userHome string) error {
	if len(sets) == 0 {
		return nil
	}
	layer := compose.Layer{Label: "--set", Kind: compose.SetLayer}
	src := compose.Source{File: "--set", Dir: env.Dir, Kind: compose.SetLayer, UserHome: userHome}
	below := c.Stack.Layers
	written := map[string][][]string{} // paths by row
	for i, text := range sets {
		place, value, err := compose.CutAssignment(text)
		if err != nil {
			return err
		}
		patch, err := c.assignment(src, place, value, written)
		if err != nil { // it does not repeat the value, which may be a secret
			return fault.WithClass(fault.Composition, fmt.Errorf("--set %s: %w", place, err))
		}
		layer.Patches = append(layer.Patches, compose.Patch{Map: patch, Source: &src, Entry: i})
		c.Stack.Layers = append(below[:len(below):len(below)], layer)
		c.Tree = compose.Apply(c.Stack.Layers, c.Rules)
	}
	return nil
}

// assignment is the patch for one ROW.KEY=VALUE over the tree as it is. written
// is what earlier ones wrote.
func (c *Composed) assignment(src compose.Source, place, value string, written map[string][][]string) (*compose.Map, error) {
	target, err := findTarget(c.Tree, c.Profile.Name, place)
	if err != nil {
		return nil, err
	}
	v, err := compose.ParseValue(src, []byte(value))
	if err != nil {
		return nil, err
	}
	id, _ := target.Row.Get("id")
	patch := &compose.Map{}
	patch.Set("id", id)
	switch {
	case target.RowKey != "":
		old, _ := target.Row.Get(target.RowKey)
		changed, _, err := compose.Restate(old, target.Path, v, false)
		if err != nil {
			return nil, err
		}
		patch.Set(target.RowKey, changed)
	case len(target.Path) == 0:
		return nil, fault.WithHint(fmt.Errorf("%s is a whole row", target.ID), "name a key of its config: --set %s.KEY=VALUE", target.ID)
	default:
		config, _ := target.Row.Get("config")
		changed, copied, err := compose.Restate(config, target.Path, v, false)
		if err != nil {
			return nil, err
		}
		patch.Set("config", changed)
		copied = slices.DeleteFunc(copied, func(path []string) bool {
			return slices.ContainsFunc(written[target.ID], func(own []string) bool {
				return len(own) <= len(path) && slices.Equal(own, path[:len(own)])
			})
		})
		written[target.ID] = append(written[target.ID], target.Path)
		if len(copied) > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("--set %s restates the rest of the config of %s as it is: %s", place, target.ID, keyList(copied)))
		}
	}
	return patch, nil
}

// findTarget is the place that text names, in a row that is there.
func findTarget(tree *compose.Tree, name profile.Name, text string) (compose.Target, error) {
	target, err := compose.ParseTarget(text, tree.FindText)
	if err != nil {
		return target, err
	}
	if target.Row == nil {
		err := fault.Errorf(fault.Composition, "there is no row %q", target.ID)
		if meant := compose.Closest(target.ID, tree.IDs()); meant != "" {
			return target, fault.WithHint(err, "did you mean %s?", meant)
		}
		return target, fault.WithHint(err, "dsh config explain --profile %s lists the rows", fault.ShellWord(name.String()))
	}
	return target, nil
}

// keyList is paths of keys for people.
func keyList(paths [][]string) string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = compose.PathText(path)
	}
	return strings.Join(texts, ", ")
}
