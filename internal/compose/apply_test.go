package compose

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type composeCase struct {
	Name   string
	Layers []struct {
		Label, YAML string
	}
	Entries  json.RawMessage
	Dump     string
	Warnings []string
	Error    *struct {
		Layer *int
		Kind  string
	}
}

// warningLines is what the reference launcher prints for warnings.
func warningLines(tree *Tree) []string {
	lines := []string{}
	for _, w := range tree.Warnings {
		lines = append(lines, "dsh: "+w.String())
	}
	return lines
}

// errorKind is the kind under which compose.jsonl files an error.
func errorKind(err error) string {
	if _, ok := errors.AsType[*SyntaxError](err); ok {
		return "parse"
	}
	shape, ok := errors.AsType[*ShapeError](err)
	switch {
	case !ok:
		return fmt.Sprint(err)
	case shape.Fault == NotAList:
		return "not-a-list"
	case shape.Fault == NotAMapping:
		return "entry-not-a-mapping"
	default:
		return "compose"
	}
}

func TestApplyAsReference(t *testing.T) {
	jsonLines(t, "compose.jsonl", func(_ int, c composeCase) {
		var layers []Layer
		for i, l := range c.Layers {
			patches, err := ParsePatches(Source{File: l.Label, Dir: "/bundle", Kind: PatchLayer}, []byte(l.YAML))
			if err == nil {
				layers = append(layers, Layer{Label: l.Label, Patches: patches})
				continue
			}
			if c.Error == nil || c.Error.Kind != errorKind(err) || c.Error.Layer != nil && *c.Error.Layer != i {
				t.Errorf("%s: layer %d: %v", c.Name, i, err)
			}
			return
		}
		if c.Error != nil {
			t.Errorf("%s: composes, the reference fails: %s", c.Name, c.Error.Kind)
			return
		}
		tree := Apply(layers, nil)
		if diff := cmp.Diff(c.Dump, string(tree.Dump())); diff != "" {
			t.Errorf("%s: dump (-want +got):\n%s", c.Name, diff)
		}
		if diff := cmp.Diff(append([]string{}, c.Warnings...), warningLines(tree)); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", c.Name, diff)
		}
		entries := &List{}
		for _, row := range tree.Rows {
			entries.Items = append(entries.Items, row.value)
		}
		var want, got any
		if err := json.Unmarshal(c.Entries, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(appendJSON(nil, entries, 1<<30), &got); err != nil {
			t.Errorf("%s: %v", c.Name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: entries (-want +got):\n%s", c.Name, diff)
		}
	})
}

type realBundles struct {
	Bundles []struct {
		Name, Patch string
	}
	Singles []struct {
		Bundle, Dump string
		Warnings     []string
	}
	Stacks []struct {
		Bundles  []string
		Dump     string
		Warnings []string
	}
}

func readRealBundles(t testing.TB) realBundles {
	t.Helper()
	data, err := os.ReadFile("testdata/real-bundles.json")
	if err != nil {
		t.Fatal(err)
	}
	var real realBundles
	if err := json.Unmarshal(data, &real); err != nil {
		t.Fatal(err)
	}
	return real
}

func TestApplyRealBundles(t *testing.T) {
	real := readRealBundles(t)
	layers := map[string]Layer{}
	for _, b := range real.Bundles {
		patches, err := ParsePatches(Source{File: b.Name, Dir: "/bundle"}, []byte(b.Patch))
		if err != nil {
			t.Fatal(err)
		}
		layers[b.Name] = Layer{Label: b.Name, Patches: patches}
	}
	check := func(what, dump string, warnings []string, bundles ...string) {
		var stack []Layer
		for _, name := range bundles {
			stack = append(stack, layers[name])
		}
		tree := Apply(stack, nil)
		if diff := cmp.Diff(dump, string(tree.Dump())); diff != "" {
			t.Errorf("%s: dump (-want +got):\n%s", what, diff)
		}
		if diff := cmp.Diff(append([]string{}, warnings...), warningLines(tree)); diff != "" {
			t.Errorf("%s: warnings (-want +got):\n%s", what, diff)
		}
	}
	for _, s := range real.Singles {
		check(s.Bundle, s.Dump, s.Warnings, s.Bundle)
	}
	for i, s := range real.Stacks {
		check(fmt.Sprintf("stack %d", i), s.Dump, s.Warnings, s.Bundles...)
	}
}
