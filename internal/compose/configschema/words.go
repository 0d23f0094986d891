package configschema

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"
)

// text is the sentence of a finding.
func (f finding) text() string {
	var want []string
	for _, t := range f.types {
		if t == "integer" && slices.Contains(f.types, "number") {
			continue
		}
		want = append(want, typeWord(t))
	}
	if f.choices != nil {
		want = append(want, choiceWords(f.choices))
	}
	switch {
	case want == nil:
		return f.words
	case f.types == nil || f.got == "":
		return fmt.Sprintf("%s must be %s", subject(f.Path), or(want))
	default:
		return fmt.Sprintf("%s must be %s, and is %s", subject(f.Path), or(want), f.gotWord())
	}
}

func (f finding) gotWord() string {
	if f.got == "number" && slices.Contains(f.types, "integer") {
		return "a number with a fraction"
	}
	return typeWord(f.got)
}

func typeWord(t string) string {
	switch t {
	case "string":
		return "a text"
	case "number":
		return "a number"
	case "integer":
		return "a whole number"
	case "boolean":
		return "true or false"
	case "array":
		return "a list"
	case "object":
		return "a mapping"
	default:
		return "null"
	}
}

// choiceWords is the values that are allowed.
func choiceWords(choices []any) string {
	words := make([]string, len(choices))
	for i, choice := range choices {
		words[i] = show(choice)
	}
	if len(words) == 1 {
		return words[0]
	}
	return "one of " + strings.Join(words, ", ")
}

func or(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// show is a value of the schema.
func show(v any) string {
	if s, ok := v.(string); ok {
		return strconv.Quote(s)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return "a value" // cannot happen: it came from JSON
	}
	return string(text)
}

// subject is what a sentence about a value begins with.
func subject(path []string) string {
	if len(path) == 0 {
		return "the config"
	}
	return compose.PathText(path)
}

// in is where a key is unknown or missing, behind the key.
func in(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return " in " + compose.PathText(path)
}

// number is a number of the schema.
func number(n any) string {
	f, _ := rat(n).Float64()
	if math.Abs(f) >= 1e21 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// count is a number of things.
func count(n any, what string) string {
	if number(n) == "1" {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}

// notWords is what to say about a value that fits a schema that it must not fit.
func notWords(not any, path []string) string {
	schema, _ := not.(map[string]any)
	required := list(schema["required"])
	if len(schema) != 1 || len(required) == 0 {
		return subject(path) + " has a value that it cannot have"
	}
	keys := make([]string, len(required))
	for i, key := range required {
		keys[i] = show(key)
	}
	last := len(keys) - 1
	if last == 0 {
		return keys[0] + " cannot be set" + in(path)
	}
	return strings.Join(keys[:last], ", ") + " and " + keys[last] + " cannot be set together" + in(path)
}
