package compose

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One reading of a text finds the same places as a reading for each of them,
// in mappings with few keys and with many.
func TestPlaces(t *testing.T) {
	var many strings.Builder
	for i := range 2 * manyKeys {
		fmt.Fprintf(&many, "  k%d: %d\n", i, i)
	}
	text := "- id: a\n  config: &c {x: 1, list: [0, {y: 2}]}\n- id: b\n  config: *c\n- id: c\n" + many.String()
	var places Places
	src := &Source{Text: []byte(text)}
	for path, want := range map[string]string{
		"":                  "1:1",
		"0/config/x":        "2:15",
		"0/config/list/1/y": "2:32",
		"1/config/x":        "2:15",
		"1/config/gone":     "4:3",
		"2/k0":              "6:3",
		"2/k63":             "69:3",
		"2/k64":             "5:3",
		"7":                 "1:1",
	} {
		keys := strings.Split(path, "/")
		line, column, ok := places.Find(src, keys...)
		if got := fmt.Sprintf("%d:%d", line, column); got != want || !ok {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
		otherLine, otherColumn, _ := Position([]byte(text), keys...)
		if diff := cmp.Diff([]int{line, column}, []int{otherLine, otherColumn}); diff != "" {
			t.Errorf("%s (-places +position)\n%s", path, diff)
		}
	}
	if _, _, ok := places.Find(&Source{Text: []byte("[")}); ok {
		t.Error("a text that cannot be read has a place")
	}
	if _, _, ok := places.Find(nil); ok {
		t.Error("no text has a place")
	}
}

func TestFindText(t *testing.T) {
	patches, err := ParsePatches(Source{}, []byte("- insert: [{id: 1, name: number}, {id: '2', name: text}, {id: true, name: yes}, {id: 1.5e3, name: big}]"))
	if err != nil {
		t.Fatal(err)
	}
	tree := Apply([]Layer{{Patches: patches}}, nil)
	for text, want := range map[string]string{
		"1": "number", "2": "text", "true": "yes", "1500": "big", "1.5e3": "", "01": "", "1.0": "", "false": "", "NaN": "", "null": "", "": "",
	} {
		if got := (Row{Entry: tree.FindText(text)}).Name(); got != want {
			t.Errorf("%q finds %q, want %q", text, got, want)
		}
	}
}

func TestMountedRows(t *testing.T) {
	patches, err := ParsePatches(Source{}, []byte(`[{insert: [
		{id: a, group: true, config: [{id: b}, 5]},
		{id: c, name: 'cordis:group', config: [{id: d, name: 'cordis:group', config: {}}, {id: e, config: [{id: f}]}]}]}]`))
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for row := range Apply([]Layer{{Patches: patches}}, nil).Mounted() {
		ids = append(ids, Show(row.ID()))
	}
	if diff := cmp.Diff([]string{`"a"`, `"b"`, "null", `"c"`, `"d"`, `"e"`}, ids); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
