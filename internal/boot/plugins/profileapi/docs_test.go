package profileapi

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// TestDocumentation holds the examples of docs/web-api.md against answers: they
// have the same members of the same kinds.
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "web-api.md"))
	must(t, err)
	answers := map[string]any{
		// What has no answer in testdata, as the tests of it have it.
		"error": map[string]any{"error": map[string]any{"message": "", "hint": "", "class": ""}},
		"call":  map[string]any{"content": []any{}, "isError": false, "ms": 1.0},
	}
	seen := 0
	for _, example := range regexp.MustCompile("(?s)```json (\\w+)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		name := example[1]
		var shown any
		if err := json.Unmarshal([]byte(example[2]), &shown); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if answers[name] == nil {
			answer, err := os.ReadFile(filepath.Join("testdata", name+".json"))
			must(t, err)
			var v any
			must(t, json.Unmarshal(answer, &v))
			answers[name] = v
		}
		compareShapes(t, name, shown, answers[name])
		seen++
	}
	if seen < 15 {
		t.Errorf("only %d examples", seen)
	}
}

// compareShapes wants the members of shown in answer, and the other way round.
// Lists are as their first elements. What is empty or null in one of them says
// nothing.
func compareShapes(t *testing.T, at string, shown, answer any) {
	t.Helper()
	switch shown := shown.(type) {
	case map[string]any:
		answer, ok := answer.(map[string]any)
		if !ok || len(answer) == 0 || len(shown) == 0 {
			break
		}
		a, b := slices.Sorted(maps.Keys(shown)), slices.Sorted(maps.Keys(answer))
		if !slices.Equal(a, b) {
			t.Errorf("%s has %q in the page, and %q in the answer", at, a, b)
			return
		}
		for _, key := range a {
			compareShapes(t, at+"."+key, shown[key], answer[key])
		}
		return
	case []any:
		answer, ok := answer.([]any)
		if !ok {
			break
		}
		if len(shown) > 0 && len(answer) > 0 {
			compareShapes(t, at+"."+strconv.Itoa(0), shown[0], answer[0])
		}
		return
	}
	if kind(shown) != kind(answer) && shown != nil && answer != nil {
		t.Errorf("%s is %s in the page, and %s in the answer", at, kind(shown), kind(answer))
	}
}

func kind(v any) string {
	switch v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "text"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	default:
		return "null"
	}
}
