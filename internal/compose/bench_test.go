package compose

import (
	"fmt"
	"strings"
	"testing"
)

// benchLayers is n layers of 100 rows: most insert, the others override rows
// of earlier layers, some of them in groups.
func benchLayers(b testing.TB, n int) (layers []Layer, bytes int) {
	b.Helper()
	for l := range n {
		var text strings.Builder
		text.WriteString("- insert:\n")
		for r := range 60 {
			fmt.Fprintf(&text, "    - id: row-%d-%d\n      name: '@scope/plugin-%d'\n      config:\n        url: https://example.com/%d\n        retries: %d\n        env: !!js process.env.KEY_%d\n", l, r, r, r, r, r)
		}
		fmt.Fprintf(&text, "    - id: group-%d\n      name: cordis:group\n      group: true\n      config:\n", l)
		for r := range 20 {
			fmt.Fprintf(&text, "        - {id: in-%d-%d, name: child, config: [1, two]}\n", l, r)
		}
		for r := range 10 {
			fmt.Fprintf(&text, "- id: row-%d-%d\n  config: {url: 'https://example.org', layer: %d}\n", l/2, r, l)
		}
		for r := range 8 {
			fmt.Fprintf(&text, "- id: in-%d-%d\n  disabled: true\n", l/3, r)
		}
		fmt.Fprintf(&text, "- id: group-0\n  insert: [{id: more-%d, name: child}]\n- {id: missing, x: 1}\n", l)
		patches, err := ParsePatches(Source{File: "layer", Dir: "/b"}, []byte(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		layers = append(layers, Layer{Label: fmt.Sprintf("@scope/bundle-%d", l), Patches: patches})
		bytes += text.Len()
	}
	return layers, bytes
}

// BenchmarkApply must cost the same for each row, however many layers there
// are: see ns/row.
func BenchmarkApply(b *testing.B) {
	rule, err := NewPathRule([]byte(`{"properties":{"url":{},"file":{"format":"path"},"files":{"items":{"format":"path"}}}}`))
	if err != nil {
		b.Fatal(err)
	}
	for _, rules := range []PathRules{nil, func(string) *PathRule { return rule }} {
		for _, n := range []int{10, 100, 1000} {
			layers, _ := benchLayers(b, n)
			b.Run(fmt.Sprintf("rules=%v/layers=%d", rules != nil, n), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Apply(layers, rules)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*100), "ns/row")
			})
		}
	}
}

func BenchmarkDump(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		layers, _ := benchLayers(b, n)
		tree := Apply(layers, nil)
		b.Run(fmt.Sprintf("layers=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(tree.Dump())))
			for b.Loop() {
				tree.Dump()
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	text := []byte(readRealBundles(b).Bundles[0].Patch)
	for _, bundle := range readRealBundles(b).Bundles {
		if len(bundle.Patch) > len(text) {
			text = []byte(bundle.Patch)
		}
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePatches(Source{File: "layer", Dir: "/b"}, text); err != nil {
			b.Fatal(err)
		}
	}
}
