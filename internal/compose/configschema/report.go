package configschema

import (
	"cmp"
	"slices"
	"strings"

	"dsh/internal/compose"
)

// ProblemKind is what sort of rule a config breaks.
type ProblemKind uint8

// The kinds of problems.
const (
	UnknownKey ProblemKind = iota // a mapping has a key that it cannot have
	MissingKey                    // a mapping lacks a key
	WrongType                     // a value is of another type
	WrongValue                    // everything else
)

// Problem is one thing that is wrong with a config.
type Problem struct {
	// Path is the keys and indices from the config down to the value that breaks
	// the rule; for UnknownKey and MissingKey to the mapping.
	Path []string
	Key  string // the unknown or missing key, else ""
	Kind ProblemKind
	// Text is one sentence for people. It shows keys, types and what the schema
	// allows, never a value of the config.
	Text string
}

// finding is a problem whose Text is still to be made if it is about what a value
// can be.
type finding struct {
	Problem
	want []string // the types and values that it can be, in words
	got  string   // its type in words, if that is wrong
}

// problems puts findings into words and in order.
func problems(found []finding) []Problem {
	list := make([]Problem, len(found))
	for i, f := range found {
		if f.want != nil {
			f.Text = subject(f.Path) + " must be " + join(f.want, "or")
		}
		if f.got != "" {
			f.Kind, f.Text = WrongType, f.Text+", and is "+f.got
		}
		list[i] = f.Problem
	}
	slices.SortFunc(list, compareProblems)
	return slices.CompactFunc(list, func(a, b Problem) bool { return compareProblems(a, b) == 0 })
}

func compareProblems(a, b Problem) int {
	return cmp.Or(slices.Compare(a.Path, b.Path), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
}

// best is the findings of the form that fits best. What they want of the value
// itself, or of the key that tells the forms apart, is what all forms want.
func best(forms [][]finding, at []string) []finding {
	merged := slices.Clone(slices.MinFunc(forms, func(a, b []finding) int {
		return cmp.Or(cmp.Compare(misfit(a, at), misfit(b, at)), cmp.Compare(len(a), len(b)))
	}))
	for i := range merged {
		if misfit(merged[i:i+1], at) == 0 {
			continue
		}
		f := &merged[i]
		f.want = nil
		for _, other := range slices.Concat(forms...) {
			if other.want != nil && slices.Equal(other.Path, f.Path) {
				f.want, f.got = append(f.want, other.want...), cmp.Or(f.got, other.got)
			}
		}
	}
	return merged
}

// misfit is how much findings say that a form for what is at a path is not meant:
// 2 if the value itself is another, 1 if a key that can only have one value has
// another.
func misfit(found []finding, at []string) (most int) {
	for _, f := range found {
		if f.want != nil && len(f.Path) == len(at) {
			return 2
		}
		if len(f.want) == 1 && f.got == "" && len(f.Path) == len(at)+1 {
			most = 1
		}
	}
	return most
}

// typeWords is what people call the types.
var typeWords = map[string]string{
	"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
	"array": "a list", "object": "a mapping", "null": "null",
}

func wrongType(types []string, got string) finding {
	f := finding{got: typeWords[got]}
	for _, t := range types {
		f.want = append(f.want, typeWords[t])
	}
	if got == "number" && slices.Contains(types, "integer") {
		f.got = "a number with a fraction"
	}
	return f
}

// join is a list of words, each once.
func join(all []string, last string) string {
	var words []string
	for _, word := range all {
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
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
