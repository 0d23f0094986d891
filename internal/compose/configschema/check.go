package configschema

import (
	"cmp"
	"slices"
	"strconv"

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

// Check is what is wrong with a config by the schema, sorted by path and without
// duplicates. No config (nil) counts as an empty one. What an expression gives
// is not known, so nothing is wrong at an expression or by what it might be:
// of several forms that are allowed, one that fits but for expressions fits. A
// key whose value is an expression may still be unknown. Of several forms that
// do not fit, the problems are those of the one that fits best.
func (s *Schema) Check(config compose.Value) []Problem {
	if config == nil {
		config = &compose.Map{}
	}
	if err := measure(config); err != nil {
		return []Problem{{Kind: WrongValue, Text: err.Error()}}
	}
	c := checking{Schema: s}
	found := c.check(s.doc, config, nil, nil).found
	if c.over {
		return []Problem{{Kind: WrongValue, Text: errLong.Error()}}
	}
	return problems(found)
}

// finding is a problem before it is put into words.
type finding struct {
	Problem
	words   string   // what is to be said, unless types or choices say it
	types   []string // that the value may have, as JSON Schema calls them
	got     string   // its type
	choices []any    // that the value may be
}

// problems puts findings into words and in order.
func problems(found []finding) []Problem {
	list := make([]Problem, 0, len(found))
	for _, f := range found {
		f.Text = f.text()
		if len(f.Path) == 0 {
			f.Path = nil
		}
		list = append(list, f.Problem)
	}
	slices.SortStableFunc(list, compareProblems)
	return slices.CompactFunc(list, func(a, b Problem) bool { return compareProblems(a, b) == 0 })
}

func compareProblems(a, b Problem) int {
	return cmp.Or(slices.CompareFunc(a.Path, b.Path, compareKeys), cmp.Compare(a.Key, b.Key),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Text, b.Text))
}

// compareKeys puts indices in the order of numbers.
func compareKeys(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a, b))
	}
	return cmp.Compare(a, b)
}

// How far a form is from fitting.
const (
	fits      = iota // something in it is wrong
	otherForm        // a key that tells the forms apart says that it is another
	otherKind        // the value itself is of another type, or another value
)

// best is the findings of the form that fits best.
func best(branches [][]finding, at []string) []finding {
	best, bestMisfit := 0, 0
	for i, found := range branches {
		m := misfit(found, at)
		if i == 0 || m < bestMisfit || m == bestMisfit && len(found) < len(branches[best]) {
			best, bestMisfit = i, m
		}
	}
	switch found := branches[best]; bestMisfit {
	case otherKind:
		return mergeKinds(branches, at)
	case otherForm:
		return mergeForms(found, branches)
	default:
		return found
	}
}

func misfit(found []finding, at []string) int {
	worst := fits
	for _, f := range found {
		switch {
		case f.types == nil && f.choices == nil:
		case slices.Equal(f.Path, at):
			return otherKind
		case len(f.choices) == 1 && len(f.Path) == len(at)+1:
			worst = otherForm
		}
	}
	return worst
}

// mergeKinds is one finding about a value that is of none of the types, and none
// of the values, that any of the forms wants.
func mergeKinds(branches [][]finding, at []string) []finding {
	merged := finding{Problem: Problem{Path: at, Kind: WrongType}}
	for _, found := range branches {
		for _, f := range found {
			if slices.Equal(f.Path, at) {
				merged.add(f)
			}
		}
	}
	if merged.types == nil {
		merged.Kind = WrongValue
	}
	return []finding{merged}
}

// mergeForms is the findings of one form, with the keys that tell forms apart
// as all forms want them.
func mergeForms(found []finding, branches [][]finding) []finding {
	merged := slices.Clone(found)
	for i := range merged {
		if len(merged[i].choices) != 1 {
			continue
		}
		merged[i].choices = nil
		for _, others := range branches {
			for _, other := range others {
				if len(other.choices) > 0 && slices.Equal(other.Path, merged[i].Path) {
					merged[i].add(other)
				}
			}
		}
	}
	return merged
}

// add lets a finding allow what another allows.
func (f *finding) add(other finding) {
	f.got = cmp.Or(f.got, other.got)
	for _, t := range other.types {
		if !slices.Contains(f.types, t) {
			f.types = append(f.types, t)
		}
	}
	for _, choice := range other.choices {
		if !slices.ContainsFunc(f.choices, func(have any) bool { return show(have) == show(choice) }) {
			f.choices = append(f.choices, choice)
		}
	}
}
