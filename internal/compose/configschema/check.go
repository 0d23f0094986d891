package configschema

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"

	"dsh/internal/compose"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
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
	var c converter
	v, err := c.convert(config, 0)
	if err != nil {
		return []Problem{{Kind: WrongValue, Text: err.Error()}}
	}
	found := s.findings(v)
	if c.expressions && len(found) > 0 {
		// An expression may also give undefined, which is as if its key were not
		// there. Only what is wrong either way is wrong.
		absent := converter{without: true}
		if v, err := absent.convert(config, 0); err == nil {
			found = inBoth(found, s.findings(v))
		}
	}
	return problems(found)
}

// inBoth is the findings that are also in others, and all unknown keys.
func inBoth(found, others []finding) []finding {
	also := map[string]bool{}
	for _, f := range others {
		also[f.rule()] = true
	}
	return slices.DeleteFunc(found, func(f finding) bool { return f.Kind != UnknownKey && !also[f.rule()] })
}

// finding is a problem before it is put into words.
type finding struct {
	Problem
	words   string   // what is to be said, unless types or choices say it
	types   []string // that the value may have, as JSON Schema calls them
	got     string   // its type
	choices []any    // that the value may be
}

// rule tells findings about different rules apart.
func (f finding) rule() string {
	return strings.Join(f.Path, "\x00") + "\x01" + f.Key + "\x01" + strconv.Itoa(int(f.Kind))
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

// checking is one run of the validator.
type checking struct {
	*Schema
	config any
}

func (s *Schema) findings(config any) []finding {
	var e *jsonschema.ValidationError
	if !errors.As(s.compiled.Validate(config), &e) {
		return nil
	}
	return checking{s, config}.collect(e)
}

// collect makes findings of the validator's tree of errors.
func (c checking) collect(e *jsonschema.ValidationError) []finding {
	if c.byUnreadablePattern(e) {
		return nil
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		var all []finding
		for _, cause := range e.Causes {
			all = append(all, c.collect(cause)...)
		}
		return all
	case *kind.AnyOf:
		return c.best(e)
	case *kind.OneOf:
		if k.Subschemas == nil {
			return c.best(e)
		}
	case *kind.Contains, *kind.MinContains:
		if _, cured := c.branches(e); cured {
			return nil
		}
	case *kind.InvalidJsonValue:
		if _, is := k.Value.(unknown); is {
			return nil
		}
	case *kind.RefCycle: // the schema's fault, and no rule
		return nil
	}
	return c.leaf(e)
}

// byUnreadablePattern says whether an error is about a key that only seems to
// match a pattern.
func (c checking) byUnreadablePattern(e *jsonschema.ValidationError) bool {
	if len(c.unreadable) == 0 {
		return false
	}
	parts := pointer(e.SchemaURL)
	for i := 1; i < len(parts); i++ {
		if parts[i-1] == "patternProperties" && c.unreadable[parts[i]] {
			return true
		}
	}
	return false
}

// branches is the findings of each of several forms; cured says that an
// expression can make one fit.
func (c checking) branches(e *jsonschema.ValidationError) (branches [][]finding, cured bool) {
	for _, cause := range e.Causes {
		found := c.collect(cause)
		if len(found) == 0 {
			return nil, true
		}
		branches = append(branches, found)
	}
	return branches, false
}

// How far a form is from fitting.
const (
	fits      = iota // something in it is wrong
	otherForm        // a key that tells the forms apart says that it is another
	otherKind        // the value itself is of another type, or another value
)

// best is the findings of the form that fits best.
func (c checking) best(e *jsonschema.ValidationError) []finding {
	branches, cured := c.branches(e)
	if cured || len(branches) == 0 {
		return nil
	}
	best, bestMisfit := 0, 0
	for i, found := range branches {
		m := misfit(found, e.InstanceLocation)
		if i == 0 || m < bestMisfit || m == bestMisfit && len(found) < len(branches[best]) {
			best, bestMisfit = i, m
		}
	}
	switch found := branches[best]; bestMisfit {
	case otherKind:
		return mergeKinds(branches, e.InstanceLocation)
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
