package configschema

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"unicode/utf8"

	"dsh/internal/compose"
)

// A config is walked with its aliases spelled out, which may make it endless,
// and a schema may lead from one $ref to several others again and again.
const (
	maxSteps = 500_000
	maxDepth = 1_000
	tooMuch  = "the config was not checked, as it or its plugin's schema takes too many steps"
)

// checking is one check of a config.
type checking struct {
	steps, depth int
}

// spend says whether steps may be taken.
func (c *checking) spend(steps int) bool {
	if c.steps += steps; c.depth > maxDepth {
		c.steps = math.MaxInt / 2
	}
	return c.steps <= maxSteps
}

// Check is what is wrong with a config by the schema, sorted by path and without
// duplicates. No config (nil) counts as an empty one. An expression may give
// anything, so no problem depends on what it gives; its key may still be unknown.
// Of several forms that do not fit, the problems are those of the one that fits
// best.
func (s *Schema) Check(config compose.Value) []Problem {
	c := &checking{}
	found := c.check(s, c.plain(cmp.Or(config, any(&compose.Map{}))), nil).found
	if !c.spend(0) {
		return []Problem{{Kind: WrongValue, Text: tooMuch}}
	}
	return problems(found)
}

// expression is a value that is not known: JSON has nothing for it.
var expression any = make(chan struct{})

// plain is a value of a config as encoding/json holds values.
func (c *checking) plain(v compose.Value) any {
	c.depth++
	defer func() { c.depth-- }()
	if !c.spend(1) {
		return nil
	}
	switch v := v.(type) {
	case compose.Expr:
		return expression
	case *compose.List:
		items := make([]any, len(v.Items))
		for i, item := range v.Items {
			items[i] = c.plain(item)
		}
		return items
	case *compose.Map:
		m := make(map[string]any, v.Len())
		for key, item := range v.All() {
			m[key] = c.plain(item)
		}
		return m
	case float64:
		if v == 0 {
			return 0.0 // also for -0, which equals it
		}
	}
	return v
}

// fit is whether a value fits a schema; of two that both count, the greater.
type fit int8

const (
	yes    fit = iota
	unsure     // an expression, or a keyword that is not understood, decides
	no
)

// verdict is what a schema says of a value.
type verdict struct {
	fit   fit
	found []finding // what is wrong whatever expressions give
}

func (v *verdict) also(other verdict) {
	v.fit, v.found = max(v.fit, other.fit), append(v.found, other.found...)
}

func (v *verdict) undecided() { v.also(verdict{fit: unsure}) }

// application is one schema that is applied to one value.
type application struct {
	*checking
	*Schema
	value any
	path  []string
	verdict
}

// check applies a schema to a value.
func (c *checking) check(s *Schema, v any, path []string) verdict {
	c.depth++
	defer func() { c.depth-- }()
	a := application{checking: c, Schema: s, value: v, path: path}
	switch f, _ := v.(float64); {
	case s == nil:
	case !c.spend(1) || v == expression:
		a.undecided()
	case s.never:
		a.wrong("cannot be given")
	case math.IsNaN(f) || math.IsInf(f, 0):
		a.wrong("must be a finite number")
	case a.kind():
		switch v := v.(type) {
		case float64:
			a.number(v)
		case string:
			a.text(v)
		case []any:
			a.list(v)
		case map[string]any:
			a.mapping(v)
		}
		a.forms()
	}
	return a.verdict
}

// here applies a part of the schema to the same value.
func (a *application) here(part *Schema) verdict { return a.check(part, a.value, a.path) }

// inside applies a part of the schema to what the value holds at a key.
func (a *application) inside(part *Schema, v any, key string) {
	if m, ok := a.value.(map[string]any); ok && part != nil && part.never {
		a.unknown(m, key)
		return
	}
	a.also(a.check(part, v, append(slices.Clip(a.path), key)))
}

func (a *application) report(fit fit, f finding) {
	f.Path = a.path
	a.also(verdict{fit, []finding{f}})
}

// wrong says that the value breaks a rule.
func (a *application) wrong(format string, args ...any) {
	a.report(no, finding{Problem: Problem{Kind: WrongValue, Text: subject(a.path) + " " + fmt.Sprintf(format, args...)}})
}

// kind checks what the value is; if that is wrong, nothing else matters.
func (a *application) kind() bool {
	f, isNumber := a.value.(float64)
	integer := isNumber && f == math.Trunc(f) && slices.Contains(a.types, "integer")
	if a.types != nil && !integer && !slices.Contains(a.types, typeName(a.value)) {
		a.report(no, wrongType(a.types, typeName(a.value)))
		return false
	}
	for _, choices := range a.choices {
		text := canonical(a.value)
		if text == "" || !a.spend(len(text)/64) {
			a.undecided()
		} else if !slices.Contains(choices, text) {
			a.report(no, finding{Problem: Problem{Kind: WrongValue}, want: choices})
			return false
		}
	}
	return true
}

func (a *application) number(f float64) {
	limit := func(keyword, words string, keeps func(limit float64) bool) {
		if limit, ok := a.limits[keyword]; ok && !keeps(limit) {
			a.wrong("must be %s %s", words, canonical(limit))
		}
	}
	limit("minimum", "at least", func(limit float64) bool { return f >= limit })
	limit("maximum", "at most", func(limit float64) bool { return f <= limit })
	limit("exclusiveMinimum", "more than", func(limit float64) bool { return f > limit })
	limit("exclusiveMaximum", "less than", func(limit float64) bool { return f < limit })
	limit("multipleOf", "a multiple of", func(limit float64) bool {
		// As they are written: 0.3 is a multiple of 0.1.
		n, _ := new(big.Rat).SetString(canonical(f))
		factor, _ := new(big.Rat).SetString(canonical(limit))
		return n.Quo(n, factor).IsInt()
	})
}

func (a *application) text(text string) {
	length := utf8.RuneCountInString(text)
	a.size("Length", "characters", length, length)
	if a.pattern != nil && !a.pattern.MatchString(text) {
		a.wrong("must match %s", a.pattern)
	}
}

// size checks how much of something there is: from low to high.
func (a *application) size(keyword, what string, low, high int) {
	least := a.limits["min"+keyword]
	most, limited := a.limits["max"+keyword]
	switch low, high := float64(low), float64(high); {
	case high < least && least == 1:
		a.wrong("must not be empty")
	case high < least:
		a.wrong("must have %s or more %s", canonical(least), what)
	case limited && low > most:
		a.wrong("must have %s or fewer %s", canonical(most), what)
	case low < least || limited && high > most:
		a.undecided()
	}
}

func (a *application) list(items []any) {
	a.size("Items", "items", len(items), len(items))
	first, seen := a.parts["prefixItems"], map[string]bool{}
	for i, item := range items {
		part := a.part["items"]
		if i < len(first) {
			part = first[i]
		}
		a.inside(part, item, strconv.Itoa(i))
		if !a.unique {
			continue
		}
		text := canonical(item)
		if text == "" || !a.spend(len(text)/64) {
			a.undecided()
		} else if seen[text] {
			a.wrong("must not hold an item twice")
		}
		seen[text] = true
	}
}

func (a *application) mapping(m map[string]any) {
	sure := 0 // an expression may give undefined, which is as if its key were not there
	for key, v := range m {
		if v != expression {
			sure++
		}
		part, described := a.properties[key]
		if described {
			a.inside(part, v, key)
		}
		for re, part := range a.patterns {
			if a.spend(1) && re.MatchString(key) {
				described = true
				a.inside(part, v, key)
			}
		}
		if !described {
			a.inside(a.part["additionalProperties"], v, key)
		}
	}
	a.size("Properties", "keys", sure, len(m))
	for _, key := range a.required {
		if v, ok := m[key]; v == expression {
			a.undecided()
		} else if !ok {
			a.report(no, finding{Problem: Problem{Key: key, Kind: MissingKey, Text: fmt.Sprintf("%q is missing%s", key, in(a.path))}})
		}
	}
}

// unknown says that a key cannot be there.
func (a *application) unknown(m map[string]any, key string) {
	var free []string
	for _, known := range slices.Sorted(maps.Keys(a.properties)) {
		if _, taken := m[known]; a.spend(1) && !taken && !a.properties[known].never {
			free = append(free, known)
		}
	}
	f := finding{Problem: Problem{Key: key, Kind: UnknownKey, Text: fmt.Sprintf("unknown key %q%s", key, in(a.path))}}
	if meant := compose.Closest(key, free); meant != "" {
		f.Text += fmt.Sprintf("; did you mean %q?", meant)
	}
	if m[key] == expression {
		a.report(unsure, f)
	} else {
		a.report(no, f)
	}
}

// forms applies the parts of the schema that are about the same value.
func (a *application) forms() {
	if a.opaque {
		a.undecided()
	}
	for _, part := range a.parts["allOf"] {
		a.also(a.here(part))
	}
	a.choice(a.parts["anyOf"], len(a.parts["anyOf"]))
	a.choice(a.parts["oneOf"], 1)
	if not := a.part["not"]; not != nil {
		switch is := a.here(not).fit; {
		case is == unsure:
			a.undecided()
		case is == yes && not.keywords == 1 && len(not.required) > 1:
			a.report(no, finding{Problem: Problem{Kind: WrongValue, Text: join(not.required, "and") + " cannot be set together" + in(a.path)}})
		case is == yes:
			a.wrong("has a value that it cannot have")
		}
	}
	if condition := a.part["if"]; condition != nil {
		switch a.here(condition).fit {
		case yes:
			a.also(a.here(a.part["then"]))
		case unsure:
			a.undecided()
		case no:
			a.also(a.here(a.part["else"]))
		}
	}
}

// choice applies forms of which one must fit, and no more than most may.
func (a *application) choice(forms []*Schema, most int) {
	if len(forms) == 0 {
		return
	}
	var misfits [][]finding
	var count [no + 1]int // of forms, by how they fit
	for _, form := range forms {
		v := a.here(form)
		count[v.fit]++
		if len(v.found) > 0 {
			misfits = append(misfits, v.found)
		}
	}
	if count[yes] > most {
		a.wrong("fits more than one of the forms that it can have, and may fit only one")
	}
	if count[yes] == 0 || count[yes]+count[unsure] > most {
		a.undecided()
	}
	if count[no] == len(forms) {
		a.fit = no
	}
	if len(misfits) == len(forms) {
		a.found = append(a.found, best(misfits, a.path)...)
	}
}
