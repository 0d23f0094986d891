package trust

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"

	"dsh/internal/workspace"
)

// PnpmSettings are the settings of pnpm that are about scripts, as they stand in
// pnpm-workspace.yaml and under "pnpm" in package.json.
func PnpmSettings() []string {
	return []string{allowBuilds, onlyBuilt, neverBuilt, ignoredBuilt, dangerouslyAllows}
}

// WithoutRules is the text of a pnpm-workspace.yaml without all that it says of
// scripts, and otherwise byte for byte as it was. It is an error where that does
// not stand on lines of its own.
func WithoutRules(text []byte) ([]byte, error) {
	for {
		root, err := workspace.Root(text)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(root.Content, func(n *yaml.Node) bool { return slices.Contains(PnpmSettings(), n.Value) })
		for i >= 0 && i%2 == 1 { // a value
			next := slices.IndexFunc(root.Content[i+1:], func(n *yaml.Node) bool { return slices.Contains(PnpmSettings(), n.Value) })
			if next < 0 {
				i = -1
				break
			}
			i += 1 + next
		}
		if i < 0 {
			return text, nil
		}
		lines := bytes.SplitAfter(text, []byte("\n"))
		end := len(lines)
		if i+2 < len(root.Content) {
			end = root.Content[i+2].Line - 1
		}
		edited := slices.Concat(bytes.Join(lines[:root.Content[i].Line-1], nil), bytes.Join(lines[end:], nil))
		if !workspace.SaysInstead(text, edited, root.Content[i].Value, nil) || len(edited) >= len(text) {
			return nil, errors.New(root.Content[i].Value + " does not stand on lines of its own")
		}
		text = edited
	}
}

// DenyBuilds is the text of a pnpm-workspace.yaml in which the keys of allowBuilds
// that begin with prefix and say true say false, and otherwise byte for byte as it
// was. It is an error where that cannot be written.
func DenyBuilds(text []byte, prefix string) ([]byte, error) {
	root, err := workspace.Root(text)
	if err != nil {
		return nil, err
	}
	builds := workspace.Value(root, allowBuilds)
	if builds == nil || builds.Kind != yaml.MappingNode {
		return text, nil
	}
	said := map[string]any{}
	if builds.Decode(&said) != nil {
		return nil, errors.New(allowBuilds + " cannot be read")
	}
	edited, changed := text, false
	for i := 0; i+1 < len(builds.Content); i += 2 {
		key, value := builds.Content[i], builds.Content[i+1]
		if strings.HasPrefix(key.Value, prefix) && isTrue(value) {
			edited, changed = workspace.ReplaceScalar(edited, value, "false"), true
			said[key.Value] = false
		}
	}
	if changed && !workspace.SaysInstead(text, edited, allowBuilds, said) {
		return nil, errors.New(allowBuilds + " is not written so that one line could be changed; write false for what begins with " + prefix)
	}
	return edited, nil
}
