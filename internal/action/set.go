package action

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"
	"dsh/internal/fault"
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
	target, err := c.findTarget(c.Tree, place)
	if err != nil {
		return nil, err
	}
	s := setting{
		target: target, tree: c.Tree, rows: "write the rows into a patch file, and name it with --patch FILE",
		write: func(place, value string) string { return fault.ShellWords("--set", place+"="+value) },
	}
	key, err := s.key()
	if err != nil {
		return nil, err
	}
	v, err := s.value(src, value)
	if err != nil {
		return nil, err
	}
	old, _ := target.Row.Get(key)
	changed, copied, err := compose.Restate(old, target.Path, v, false)
	if err != nil {
		return nil, err
	}
	id, _ := target.Row.Get("id")
	patch := &compose.Map{}
	patch.Set("id", id)
	patch.Set(key, changed)
	if target.RowKey == "" {
		copied = slices.DeleteFunc(copied, func(path []string) bool {
			return slices.ContainsFunc(written[target.ID], func(own []string) bool { return hasPrefix(path, own) })
		})
		written[target.ID] = append(written[target.ID], target.Path)
	}
	if len(copied) > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("--set %s restates the rest of the config of %s as it is: %s", place, target.ID, keyList(copied)))
	}
	return patch, nil
}

// findTarget is the place that text names, in a row that is in the tree, which
// may be that of some of the layers.
func (c *Composed) findTarget(tree *compose.Tree, text string) (compose.Target, error) {
	target, err := compose.ParseTarget(text, tree.FindText)
	if err == nil && target.Row == nil {
		err = c.unknownRow(target.ID, tree.IDs(), nil)
	}
	return target, err
}

// setting is a value that is to be written at a place, into a file or over all
// layers.
type setting struct {
	target compose.Target // of a row that is there
	tree   *compose.Tree
	// write is the command that gives a place a value, and rows says where rows
	// are written.
	write func(place, value string) string
	rows  string
}

// settableKeys are the keys of a row that an override may set.
var settableKeys = []string{"config", "disabled", "group", "inject", "intercept", "isolate"}

// key is the key of the row that is to be set, or why it cannot be.
func (s setting) key() (string, error) {
	id := s.target.ID
	shown := compose.Target{ID: id}.String()
	switch key := s.target.RowKey; {
	case key == "" && len(s.target.Path) == 0:
		return "", fault.WithHint(fault.Errorf(fault.Other, "%s is a whole row", id),
			"name a key of its config, %s, or a key of the row, %s", fault.ShellWord(shown+".KEY"), fault.ShellWord(shown+":disabled"))
	case key == "" || key == "config":
		if !isGroup(s.target.Row) {
			return "config", nil
		}
		err := fault.Errorf(fault.Composition, "%s is a group, and its config is rows, which patches would not find any more if it were restated", id)
		if row := firstRowIn(s.tree, s.target.Row); row != "" {
			return "", fault.WithHint(err, "change a row in it by its own id: %s", s.write(row+".KEY", "VALUE"))
		}
		return "", err
	case key == "id":
		return "", fault.Errorf(fault.Composition, "%s:id cannot be set: an override finds its row by the id and never changes it", id)
	case key == "name":
		return "", fault.WithHint(fault.Errorf(fault.Composition, "%s:name cannot be set: in an override the name is a check, and no row becomes another plugin", id),
			"switch the row off, and insert one with the other plugin: %s", s.write(compose.Target{ID: id, RowKey: "disabled"}.String(), "true"))
	case key == "insert":
		return "", fault.WithHint(fault.Errorf(fault.Composition, "%s:insert cannot be set: insert adds rows and is no key of a row", id), "%s", s.rows)
	case !slices.Contains(settableKeys, key):
		err := fault.Errorf(fault.Composition, "rows have no key %s; they have %s", key, strings.Join(settableKeys, ", "))
		if meant := compose.Closest(key, settableKeys); meant != "" {
			return "", fault.WithHint(err, "did you mean %s:%s?", id, meant)
		}
		return "", fault.WithHint(err, "a key of the config is written behind a dot: %s", fault.ShellWord(compose.Target{ID: id, Path: []string{key}}.String()))
	default:
		return key, nil
	}
}

// value reads the value as it may stand in src. What would be lost, or would not
// mean what it says, is refused.
func (s setting) value(src compose.Source, text string) (compose.Value, error) {
	v, err := compose.ParseValue(src, []byte(text))
	if wrong, ok := errors.AsType[*compose.SyntaxError](err); ok {
		return nil, fault.WithHint(fault.Errorf(fault.Composition, "reading the value: %s", wrong.Problem), "%s", wrong.Remedy)
	}
	if err != nil {
		return nil, err
	}
	place := s.target.String()
	if strings.TrimSpace(text) == "" {
		return nil, fault.WithHint(fault.Errorf(fault.Composition, "the value of %s is empty", place),
			"for an empty text: %s", s.write(place, `""`))
	}
	if hasComment(src, text, v) {
		tag, rest := "", text
		if found := valueTag.FindString(text); found != "" {
			tag, rest = found, text[len(found):]
		}
		return nil, fault.WithHint(fault.Errorf(fault.Composition, "in the value of %s a # begins a comment, which would be lost", place),
			"quote it: %s", s.write(place, tag+strconv.Quote(rest)))
	}
	if s.target.RowKey == "disabled" {
		if _, isBool := v.(bool); !isBool && !isExpr(v) {
			return nil, fault.WithHint(fault.Errorf(fault.Composition, "%s takes true, false or an expression (!!js), and every text but an empty one would mean true", place),
				"to switch the row on: %s", s.write(place, "false"))
		}
	}
	return v, nil
}

// valueTag is the tag that a value may begin with.
var valueTag = regexp.MustCompile(`^\s*(!!js|!path)\s+`)

// hasComment says whether a text that is read as v holds a comment which may
// have been meant as a part of the value: it is all there is, or stands behind
// a text or an expression on one line.
func hasComment(src compose.Source, text string, v compose.Value) bool {
	_, isText := v.(string)
	if v != nil && (!isText && !isExpr(v) || strings.ContainsAny(text, "\r\n")) {
		return false
	}
	for i := range text {
		if text[i] != '#' || i > 0 && !strings.ContainsRune(" \t\r\n", rune(text[i-1])) {
			continue
		}
		if before, err := compose.ParseValue(src, []byte(text[:i])); err == nil && compose.Equal(before, v) {
			return true
		}
	}
	return false
}

// isGroup says whether the config of a row is rows.
func isGroup(row *compose.Map) bool {
	config, _ := row.Get("config")
	_, is := compose.RowsIn(row, config)
	return is
}

// firstRowIn is the first row in a group, or in the groups in it, that is no group
// and that patches find; "" if there is none.
func firstRowIn(tree *compose.Tree, group *compose.Map) string {
	for _, row := range (compose.Row{Entry: group}).Children() {
		if group, _ := row.Entry.Get("group"); isGroup(row.Entry) || compose.Truthy(group) {
			if inside := firstRowIn(tree, row.Entry); inside != "" {
				return inside
			}
			continue
		}
		if id := row.ID(); compose.Truthy(id) && tree.Find(id) == row.Entry {
			return compose.Target{ID: compose.IDText(id)}.String()
		}
	}
	return ""
}

// keyList is paths of keys for people.
func keyList(paths [][]string) string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i] = compose.PathText(path)
	}
	return strings.Join(texts, ", ")
}
