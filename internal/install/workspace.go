package install

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// WorkspaceName is the file of a profile that holds pnpm's settings.
const WorkspaceName = "pnpm-workspace.yaml"

// Approval is what a profile says of the scripts of a package.
type Approval struct {
	Package string // as it is written: a name, with a version or an address
	Allowed bool
	// Placeholder is a text that stands where a decision belongs, "" if there is
	// one.
	Placeholder string
	line        int
}

// ReadApprovals reads which packages may run scripts, from the text of a
// pnpm-workspace.yaml: allowBuilds, onlyBuiltDependencies and
// ignoredBuiltDependencies.
func ReadApprovals(text []byte) ([]Approval, error) {
	root, err := workspaceRoot(text)
	if err != nil {
		return nil, err
	}
	var approvals []Approval
	if builds := valueOf(root, "allowBuilds"); builds != nil && builds.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(builds.Content); i += 2 {
			key, value := builds.Content[i], builds.Content[i+1]
			a := Approval{Package: key.Value, Allowed: value.Value == "true", line: key.Line}
			if value.Tag != "!!bool" {
				a.Placeholder = value.Value
				if value.Kind != yaml.ScalarNode || a.Placeholder == "" {
					a.Placeholder = "no decision"
				}
			}
			approvals = append(approvals, a)
		}
	}
	for key, allowed := range map[string]bool{"onlyBuiltDependencies": true, "ignoredBuiltDependencies": false} {
		if list := valueOf(root, key); list != nil && list.Kind == yaml.SequenceNode {
			for _, item := range list.Content {
				approvals = append(approvals, Approval{Package: item.Value, Allowed: allowed, line: item.Line})
			}
		}
	}
	slices.SortFunc(approvals, func(a, b Approval) int { return a.line - b.line })
	return approvals, nil
}

// WithoutPlaceholders is the text of a pnpm-workspace.yaml without the entries
// of allowBuilds that hold no decision, and otherwise byte for byte as it was.
// It is an error where these do not stand on lines of their own.
func WithoutPlaceholders(text []byte) ([]byte, error) {
	before, err := ReadApprovals(text)
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	goes := map[int]bool{}
	var want []Approval
	for _, a := range before {
		if a.Placeholder == "" {
			want = append(want, a)
		} else {
			goes[a.line] = true
		}
	}
	if len(goes) == 0 {
		return text, nil
	}
	root, err := workspaceRoot(text)
	if err != nil {
		return nil, err
	}
	if builds := valueOf(root, "allowBuilds"); len(builds.Content) == 2*len(goes) {
		for i := 0; i < len(root.Content); i += 2 {
			if root.Content[i].Value == "allowBuilds" {
				goes[root.Content[i].Line] = true // nothing is left in it
			}
		}
	}
	var kept [][]byte
	for i, line := range lines {
		if !goes[i+1] {
			kept = append(kept, line)
		}
	}
	edited := bytes.Join(kept, nil)
	after, err := ReadApprovals(edited)
	same := func(a, b Approval) bool {
		return a.Package == b.Package && a.Allowed == b.Allowed && b.Placeholder == ""
	}
	if err != nil || !slices.EqualFunc(want, after, same) {
		return nil, errors.New("the entries of allowBuilds do not stand on lines of their own")
	}
	return edited, nil
}

func workspaceRoot(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode}, nil
	}
	if root := document.Content[0]; root.Kind == yaml.MappingNode {
		return root, nil
	}
	return nil, fmt.Errorf("line %d: it must hold a mapping", document.Content[0].Line)
}

// valueOf is the value of a key, nil where there is none.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
