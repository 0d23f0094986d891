package configschema

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// leaf makes findings of an error that is about one rule.
func (c checking) leaf(e *jsonschema.ValidationError) []finding {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return []finding{{Problem: Problem{Path: e.InstanceLocation, Kind: WrongType}, types: k.Want, got: k.Got}}
	case *kind.Enum:
		return []finding{{Problem: Problem{Path: e.InstanceLocation, Kind: WrongValue}, choices: k.Want}}
	case *kind.Const:
		return []finding{{Problem: Problem{Path: e.InstanceLocation, Kind: WrongValue}, choices: []any{k.Want}}}
	case *kind.Required:
		return missing(e, k.Missing, "")
	case *kind.DependentRequired:
		return missing(e, k.Missing, k.Prop)
	case *kind.Dependency:
		return missing(e, k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		var all []finding
		for _, key := range k.Properties {
			all = append(all, c.unknownKey(e.InstanceLocation, key, e.SchemaURL))
		}
		return all
	case *kind.FalseSchema:
		return []finding{c.forbidden(e)}
	case *kind.PropertyNames:
		return []finding{unknownKey(c.mappingWith(e.InstanceLocation, k.Property), k.Property, "")}
	}
	return []finding{{Problem: Problem{Path: e.InstanceLocation, Kind: WrongValue}, words: c.words(e)}}
}

func missing(e *jsonschema.ValidationError, keys []string, needs string) []finding {
	var all []finding
	for _, key := range keys {
		words := fmt.Sprintf("%q is missing%s", key, in(e.InstanceLocation))
		if needs != "" {
			words += fmt.Sprintf(", which %q needs", needs)
		}
		all = append(all, finding{Problem: Problem{Path: e.InstanceLocation, Key: key, Kind: MissingKey}, words: words})
	}
	return all
}

// forbidden is a finding about a value that cannot be there at all.
func (c checking) forbidden(e *jsonschema.ValidationError) finding {
	rule := pointer(e.SchemaURL)
	last := len(e.InstanceLocation) - 1
	if last < 0 || len(rule) == 0 {
		return finding{Problem: Problem{Path: e.InstanceLocation, Kind: WrongValue}, words: subject(e.InstanceLocation) + " cannot be given"}
	}
	path, key := e.InstanceLocation[:last], e.InstanceLocation[last]
	if _, list := follow(c.config, path).([]any); list {
		return finding{Problem: Problem{Path: path, Kind: WrongValue}, words: subject(path) + " has more items than it can have"}
	}
	above := strings.TrimSuffix(e.SchemaURL, "/"+rule[len(rule)-1])
	return c.unknownKey(path, key, above)
}

// unknownKey is a finding about a key that the schema at an address does not
// know.
func (c checking) unknownKey(path []string, key, schemaURL string) finding {
	mapping, _ := follow(c.config, path).(map[string]any)
	free := slices.DeleteFunc(c.keys(c.at(schemaURL)), func(known string) bool {
		_, taken := mapping[known]
		return taken
	})
	return unknownKey(path, key, compose.Closest(key, free))
}

func unknownKey(path []string, key, meant string) finding {
	words := fmt.Sprintf("unknown key %q%s", key, in(path))
	if meant != "" {
		words += fmt.Sprintf("; did you mean %q?", meant)
	}
	return finding{Problem: Problem{Path: path, Key: key, Kind: UnknownKey}, words: words}
}

// mappingWith is path, or where the mapping with the key really is: the
// validator overwrites the path of this one error while it goes on.
func (c checking) mappingWith(path []string, key string) []string {
	if m, ok := follow(c.config, path).(map[string]any); ok {
		if _, has := m[key]; has {
			return path
		}
	}
	var found [][]string
	find(c.config, nil, len(path), key, &found)
	if len(found) == 0 {
		return path
	}
	slices.SortFunc(found, func(a, b []string) int { return slices.CompareFunc(a, b, compareKeys) })
	return found[0]
}

func find(v any, path []string, depth int, key string, found *[][]string) {
	m, ok := v.(map[string]any)
	if depth == 0 {
		if _, has := m[key]; ok && has {
			*found = append(*found, slices.Clone(path))
		}
		return
	}
	for k, value := range m {
		find(value, append(path, k), depth-1, key, found)
	}
	if list, ok := v.([]any); ok {
		for i, item := range list {
			find(item, append(path, strconv.Itoa(i)), depth-1, key, found)
		}
	}
}

// words is what to say about a value that is of the right type.
func (c checking) words(e *jsonschema.ValidationError) string {
	must := func(format string, args ...any) string {
		return subject(e.InstanceLocation) + " must " + fmt.Sprintf(format, args...)
	}
	switch k := e.ErrorKind.(type) {
	case *kind.InvalidJsonValue:
		return must("be a finite number")
	case *kind.Minimum:
		return must("be at least %s", number(k.Want))
	case *kind.Maximum:
		return must("be at most %s", number(k.Want))
	case *kind.ExclusiveMinimum:
		return must("be more than %s", number(k.Want))
	case *kind.ExclusiveMaximum:
		return must("be less than %s", number(k.Want))
	case *kind.MultipleOf:
		return must("be a multiple of %s", number(k.Want))
	case *kind.MinLength:
		return must("%s", atLeast(k.Want, "character"))
	case *kind.MaxLength:
		return must("have at most %s", count(k.Want, "character"))
	case *kind.MinItems:
		return must("%s", atLeast(k.Want, "item"))
	case *kind.MaxItems:
		return must("have at most %s", count(k.Want, "item"))
	case *kind.MinProperties:
		return must("%s", atLeast(k.Want, "key"))
	case *kind.MaxProperties:
		return must("have at most %s", count(k.Want, "key"))
	case *kind.UniqueItems:
		return must("not hold an item twice")
	case *kind.Pattern:
		return must("match %s", k.Want)
	case *kind.Format:
		return must("be of the format %s", k.Want)
	case *kind.Contains, *kind.MinContains:
		return subject(e.InstanceLocation) + " lacks an item that it must have"
	case *kind.MaxContains:
		return subject(e.InstanceLocation) + " has too many items of one sort"
	case *kind.AdditionalItems:
		return subject(e.InstanceLocation) + " has more items than it can have"
	case *kind.OneOf:
		return subject(e.InstanceLocation) + " fits more than one of the forms that it can have, and may fit only one"
	case *kind.Not:
		return c.not(e)
	}
	return subject(e.InstanceLocation) + " does not fit the plugin's config schema"
}

// not is what to say about a value that fits what it must not fit.
func (c checking) not(e *jsonschema.ValidationError) string {
	schema, _ := c.at(e.SchemaURL).(map[string]any)
	not, _ := schema["not"].(map[string]any)
	required, _ := not["required"].([]any)
	if len(not) != 1 || len(required) == 0 {
		return subject(e.InstanceLocation) + " has a value that it cannot have"
	}
	keys := make([]string, len(required))
	for i, key := range required {
		keys[i] = show(key)
	}
	switch last := len(keys) - 1; last {
	case 0:
		return keys[0] + " cannot be set" + in(e.InstanceLocation)
	default:
		return strings.Join(keys[:last], ", ") + " and " + keys[last] + " cannot be set together" + in(e.InstanceLocation)
	}
}

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

func number(r *big.Rat) string {
	f, _ := r.Float64()
	if math.Abs(f) >= 1e21 {
		return strconv.FormatFloat(f, 'g', -1, 64)
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func atLeast(n int, what string) string {
	if n == 1 {
		return "not be empty"
	}
	return "have at least " + count(n, what)
}
