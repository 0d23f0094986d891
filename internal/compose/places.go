package compose

import (
	"strconv"

	"gopkg.in/yaml.v3"
)

// Places finds where values stand in the texts of layers. It reads each text
// once, however often it is asked. The zero value is ready; it is for one
// goroutine.
type Places struct {
	texts map[*Source]*text
}

// text is a text that was read; root is nil where that failed.
type text struct {
	root *yaml.Node
	keys map[*yaml.Node]map[string]int // of mappings with many, once they are asked for
}

// Find is what [Position] is, in the text of a source.
func (p *Places) Find(src *Source, path ...string) (line, column int, ok bool) {
	if src == nil {
		return 0, 0, false
	}
	t := p.texts[src]
	if t == nil {
		t = readText(src.Text)
		if p.texts == nil {
			p.texts = map[*Source]*text{}
		}
		p.texts[src] = t
	}
	return t.position(path)
}

// Position is where the value at path stands in the text of a layer, or its
// key where it is in a mapping: path is the place of a patch and then keys and
// indices (as decimal texts). Where the path ends too early, it is the last
// place that is there; ok is false for a text that cannot be read.
func Position(text []byte, path ...string) (line, column int, ok bool) {
	return readText(text).position(path)
}

func readText(layer []byte) *text {
	prepared, _ := prepare(layer, false)
	root, err := parseYAML(prepared)
	if err != nil {
		prepared, _ = prepare(layer, true)
		if root, err = parseYAML(prepared); err != nil {
			root = nil
		}
	}
	return &text{root: root, keys: map[*yaml.Node]map[string]int{}}
}

func (t *text) position(path []string) (line, column int, ok bool) {
	node := t.root
	if node == nil {
		return 0, 0, false
	}
	line, column = node.Line, node.Column
	for _, step := range path {
		key, value := t.member(node, step)
		if value == nil {
			break
		}
		line, column, node = key.Line, key.Column, value
	}
	return line, column, true
}

// manyKeys is from how many keys on a mapping is searched by a table.
const manyKeys = 32

// member is the value of a key or index of n, and the node that stands for it.
func (t *text) member(n *yaml.Node, step string) (key, value *yaml.Node) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	switch {
	case n.Kind == yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	case n.Kind == yaml.MappingNode && len(n.Content) < 2*manyKeys:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if restore(n.Content[i].Value) == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case n.Kind == yaml.MappingNode:
		if i, ok := t.table(n)[step]; ok {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// table is where in the content of a mapping each key is.
func (t *text) table(n *yaml.Node) map[string]int {
	keys := t.keys[n]
	if keys == nil {
		keys = make(map[string]int, len(n.Content)/2)
		for i := len(n.Content) - 2; i >= 0; i -= 2 { // the first of a name counts
			keys[restore(n.Content[i].Value)] = i
		}
		t.keys[n] = keys
	}
	return keys
}
