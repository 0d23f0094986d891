package configschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"dsh/internal/compose"
)

// fit is whether a value fits a schema; of two that both count, the greater.
type fit int8

const (
	yes    fit = iota
	unsure     // an expression, or a rule that is not understood, decides
	no
)

// verdict is what a schema says of a value.
type verdict struct {
	fit   fit
	found []finding       // what is wrong whatever expressions give
	known map[string]bool // keys that a rule is about; only where that matters
}

// checking is one check of a config.
type checking struct {
	*Schema
	steps, depth int
	over         bool // there were too many of them
}

// rules is one schema that is applied to one value.
type rules struct {
	*checking
	schema   map[string]any
	value    compose.Value
	path     []string
	followed []string // the $refs that lead here from a schema for the same value
	verdict
}

// spend says whether steps may be taken.
func (c *checking) spend(steps int) bool {
	c.steps += steps
	c.over = c.over || c.steps > maxSteps || c.depth > maxNesting
	return !c.over
}

// check applies a schema to a value.
func (c *checking) check(schema any, v compose.Value, path, followed []string) verdict {
	c.depth++
	defer func() { c.depth-- }()
	m, _ := schema.(map[string]any)
	r := rules{checking: c, schema: m, value: v, path: path, followed: followed}
	_, expression := v.(compose.Expr)
	f, isNumber := v.(float64)
	switch {
	case schema == true:
	case schema == false:
		r.wrong("cannot be given")
	case !c.spend(1) || expression:
		r.fit = unsure
	case isNumber && !finite(f):
		r.wrong("must be a finite number")
	default:
		r.all()
	}
	return r.verdict
}

func (r *rules) all() {
	if r.ref(); r.draft < 2019 && r.schema["$ref"] != nil || !r.kind() {
		return
	}
	switch v := r.value.(type) {
	case float64:
		r.number(v)
	case string:
		r.text(v)
	case *compose.List:
		r.list(v.Items)
	case *compose.Map:
		r.mapping(v)
	}
	r.forms()
	for _, keyword := range [...]string{"$dynamicRef", "$recursiveRef", "unevaluatedItems"} {
		if _, ok := r.schema[keyword]; ok {
			r.opaque()
		}
	}
	if sub, ok := r.schema["unevaluatedProperties"]; ok {
		r.rest(sub)
	}
}

// wrong says that the value breaks a rule.
func (r *rules) wrong(format string, args ...any) {
	r.report(no, finding{words: subject(r.path) + " " + fmt.Sprintf(format, args...), Problem: Problem{Kind: WrongValue}})
}

func (r *rules) report(f fit, found finding) {
	found.Path = r.path
	r.fit, r.found = max(r.fit, f), append(r.found, found)
}

// rule says whether the value keeps a rule, and what to say if not.
func (r *rules) rule(keep fit, format string, args ...any) {
	if keep == no {
		r.wrong(format, args...)
	}
	r.fit = max(r.fit, keep)
}

func when(keep bool) fit {
	if keep {
		return yes
	}
	return no
}

// opaque says that there is a rule that is not understood.
func (r *rules) opaque() {
	r.fit = max(r.fit, unsure)
	if m, ok := r.value.(*compose.Map); ok {
		for key := range m.All() {
			r.knows(key)
		}
	}
}

func (r *rules) knows(key string) {
	if !r.leftover {
		return
	}
	if r.known == nil {
		r.known = map[string]bool{}
	}
	r.known[key] = true
}

// here applies a part of the schema to the same value.
func (r *rules) here(sub any) verdict { return r.check(sub, r.value, r.path, r.followed) }

// also takes over what a part says.
func (r *rules) also(v verdict) {
	r.fit, r.found = max(r.fit, v.fit), append(r.found, v.found...)
	r.learn(v)
}

// learn takes over which keys a part is about, if it may apply.
func (r *rules) learn(v verdict) {
	if v.fit == no {
		return
	}
	for key := range v.known {
		r.knows(key)
		r.fit = max(r.fit, v.fit)
	}
}

// inside applies a part of the schema to what the value holds at a key.
func (r *rules) inside(sub any, v compose.Value, key string) {
	found := r.check(sub, v, append(slices.Clip(r.path), key), nil)
	r.fit, r.found = max(r.fit, found.fit), append(r.found, found.found...)
}

// kind checks what a value is; if that is wrong, nothing else matters.
func (r *rules) kind() bool {
	types := list(r.schema["type"])
	if one, ok := r.schema["type"].(string); ok {
		types = []any{one}
	}
	if types != nil && !slices.ContainsFunc(types, r.isType) {
		f := finding{Problem: Problem{Kind: WrongType}, got: typeName(r.value)}
		for _, t := range types {
			f.types = append(f.types, t.(string))
		}
		r.report(no, f)
		return false
	}
	if want, ok := r.schema["const"]; ok && !r.isOneOf([]any{want}) {
		return false
	}
	want, ok := r.schema["enum"].([]any)
	return !ok || r.isOneOf(want)
}

func (r *rules) isType(t any) bool {
	f, _ := r.value.(float64)
	return t == typeName(r.value) || t == "integer" && typeName(r.value) == "number" && f == math.Trunc(f)
}

func (r *rules) isOneOf(choices []any) bool {
	best := no
	for _, choice := range choices {
		best = min(best, r.same(r.value, choice))
	}
	if best == no {
		r.report(no, finding{Problem: Problem{Kind: WrongValue}, choices: choices})
	}
	r.fit = max(r.fit, best)
	return best != no
}

func (r *rules) ref() {
	ref, ok := r.schema["$ref"].(string)
	if !ok {
		return
	}
	target, known := r.refs[ref]
	if !known || slices.Contains(r.followed, ref) { // a circle says nothing
		r.opaque()
		return
	}
	r.also(r.check(target, r.value, r.path, append(slices.Clip(r.followed), ref)))
}

func (r *rules) number(f float64) {
	for _, rule := range [...]struct {
		keyword, words string
		keeps          func(order int) bool
	}{
		{"minimum", "must be at least %s", func(order int) bool { return order >= 0 }},
		{"maximum", "must be at most %s", func(order int) bool { return order <= 0 }},
		{"exclusiveMinimum", "must be more than %s", func(order int) bool { return order > 0 }},
		{"exclusiveMaximum", "must be less than %s", func(order int) bool { return order < 0 }},
	} {
		if limit, ok := r.schema[rule.keyword].(json.Number); ok {
			r.rule(when(rule.keeps(rat(f).Cmp(rat(limit)))), rule.words, number(limit))
		}
	}
	if factor, ok := r.schema["multipleOf"]; ok {
		r.rule(when(new(big.Rat).Quo(rat(f), rat(factor)).IsInt()), "must be a multiple of %s", number(factor))
	}
}

func (r *rules) text(text string) {
	length := utf8.RuneCountInString(text)
	r.count(length, length, "Length", "character")
	if pattern, ok := r.schema["pattern"].(string); ok {
		r.rule(r.matches(pattern, text), "must match %s", pattern)
	}
	if format, ok := r.schema["format"].(string); ok && r.draft <= 7 {
		keep := unsure
		if format == "uri" {
			address, err := url.Parse(text)
			keep = when(err == nil && address.IsAbs())
		}
		r.rule(keep, "must be of the format %s", format)
	}
}

// count checks a size of which only bounds may be known.
func (r *rules) count(low, high int, size, what string) {
	if limit, ok := r.schema["min"+size]; ok {
		words := "must have at least " + count(limit, what)
		if number(limit) == "1" {
			words = "must not be empty"
		}
		r.rule(atLeast(low, high, limit), "%s", words)
	}
	if limit, ok := r.schema["max"+size]; ok {
		r.rule(atMost(low, high, limit), "must have at most %s", count(limit, what))
	}
}

// atLeast says whether what is between low and high reaches a limit.
func atLeast(low, high int, limit any) fit {
	want, _ := rat(limit).Float64()
	switch {
	case float64(high) < want:
		return no
	case float64(low) < want:
		return unsure
	default:
		return yes
	}
}

// atMost says whether what is between low and high stays within a limit.
func atMost(low, high int, limit any) fit {
	most, _ := rat(limit).Float64()
	return atLeast(-high, -low, -most)
}

func (r *rules) list(items []compose.Value) {
	r.count(len(items), len(items), "Items", "item")
	if r.schema["uniqueItems"] == true {
		r.rule(r.unique(items), "must not hold an item twice")
	}
	first := list(r.schema["prefixItems"])
	rest, more := r.schema["items"]
	if before, ok := rest.([]any); ok { // in drafts before 2020-12
		first = before
		rest, more = r.schema["additionalItems"]
	}
	for i, item := range items {
		sub := rest
		switch {
		case i < len(first):
			sub = first[i]
		case !more:
			sub = true
		}
		if sub == false {
			r.wrong("has more items than it can have")
			break
		}
		r.inside(sub, item, strconv.Itoa(i))
	}
	if sub, ok := r.schema["contains"]; ok {
		r.contains(sub, items)
	}
}

func (r *rules) unique(items []compose.Value) fit {
	unique, seen := yes, map[string]bool{}
	for _, item := range items {
		text, known := r.appendCanonical(nil, item)
		switch {
		case !known:
			unique = unsure
		case seen[string(text)]:
			return no
		}
		seen[string(text)] = true
	}
	return unique
}

func (r *rules) contains(sub any, items []compose.Value) {
	low, high := 0, 0
	for i, item := range items {
		switch r.check(sub, item, append(slices.Clip(r.path), strconv.Itoa(i)), nil).fit {
		case yes:
			low, high = low+1, high+1
		case unsure:
			high++
		}
	}
	least, ok := r.schema["minContains"]
	if !ok {
		least = 1
	}
	r.rule(atLeast(low, high, least), "lacks an item that it must have")
	if most, ok := r.schema["maxContains"]; ok {
		r.rule(atMost(low, high, most), "has too many items of one sort")
	}
}

func (r *rules) mapping(m *compose.Map) {
	sure := 0 // an expression may give undefined, which is as if its key were not there
	for _, v := range m.All() {
		if !isExpr(v) {
			sure++
		}
	}
	r.count(sure, m.Len(), "Properties", "key")
	r.required(m, list(r.schema["required"]), true, "")
	for key, v := range m.All() {
		r.property(m, key, v)
	}
	r.dependents(m, "dependentRequired")
	r.dependents(m, "dependentSchemas")
	r.dependents(m, "dependencies")
}

func isExpr(v compose.Value) bool {
	_, is := v.(compose.Expr)
	return is
}

// required checks that keys are there. sure says that they are asked for, and
// because what for.
func (r *rules) required(m *compose.Map, keys []any, sure bool, because string) {
	for _, k := range keys {
		key := k.(string)
		switch v, ok := m.Get(key); {
		case isExpr(v) || !ok && !sure:
			r.fit = max(r.fit, unsure)
		case !ok:
			r.report(no, finding{Problem: Problem{Key: key, Kind: MissingKey}, words: fmt.Sprintf("%q is missing%s%s", key, in(r.path), because)})
		}
	}
}

// dependents applies what is asked for where a key is there.
func (r *rules) dependents(m *compose.Map, keyword string) {
	needs, _ := r.schema[keyword].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(needs)) {
		v, ok := m.Get(key)
		keys, isList := needs[key].([]any)
		switch {
		case !ok:
		case isList:
			r.required(m, keys, !isExpr(v), fmt.Sprintf(", which %q needs", key))
		case isExpr(v):
			r.perhaps(needs[key])
		default:
			r.also(r.here(needs[key]))
		}
	}
}

// property applies the rules about one key.
func (r *rules) property(m *compose.Map, key string, v compose.Value) {
	patterns, _ := r.schema["patternProperties"].(map[string]any)
	if !r.spend(len(patterns)) {
		return
	}
	described := false
	properties, _ := r.schema["properties"].(map[string]any)
	if sub, ok := properties[key]; ok {
		described = true
		r.entry(sub, m, key, v)
	}
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		switch r.matches(pattern, key) {
		case yes:
			described = true
			r.entry(patterns[pattern], m, key, v)
		case unsure:
			described = true
			r.fit = max(r.fit, unsure)
			r.knows(key)
		}
	}
	if sub, ok := r.schema["additionalProperties"]; ok && !described {
		r.entry(sub, m, key, v)
	}
	names, ok := r.schema["propertyNames"]
	if !ok {
		return
	}
	switch r.check(names, key, r.path, nil).fit {
	case no:
		r.unknownKey(key, v, "")
	case unsure:
		r.fit = max(r.fit, unsure)
	}
}

// entry applies a part of the schema to the value of a key.
func (r *rules) entry(sub any, m *compose.Map, key string, v compose.Value) {
	r.knows(key)
	if sub != false {
		r.inside(sub, v, key)
		return
	}
	var free []string
	described := r.keys(r.schema)
	if !r.spend(1 + len(described)) {
		return
	}
	for _, known := range described {
		if _, taken := m.Get(known); !taken {
			free = append(free, known)
		}
	}
	r.unknownKey(key, v, compose.Closest(key, free))
}

// unknownKey says that a key cannot be there; meant is what it should be, if
// that is known.
func (r *rules) unknownKey(key string, v compose.Value, meant string) {
	words := fmt.Sprintf("unknown key %q%s", key, in(r.path))
	if meant != "" {
		words += fmt.Sprintf("; did you mean %q?", meant)
	}
	sure := no
	if isExpr(v) {
		sure = unsure
	}
	r.report(sure, finding{Problem: Problem{Key: key, Kind: UnknownKey}, words: words})
}

// rest applies a schema to the keys that no other rule is about.
func (r *rules) rest(sub any) {
	m, _ := r.value.(*compose.Map)
	for key, v := range m.All() {
		if !r.known[key] {
			r.entry(sub, m, key, v)
		}
	}
}

// forms applies the parts of the schema that are about the same value.
func (r *rules) forms() {
	if not, ok := r.schema["not"]; ok {
		switch r.here(not).fit {
		case yes:
			r.report(no, finding{Problem: Problem{Kind: WrongValue}, words: notWords(not, r.path)})
		case unsure:
			r.fit = max(r.fit, unsure)
		}
	}
	for _, sub := range list(r.schema["allOf"]) {
		r.also(r.here(sub))
	}
	r.choice("anyOf")
	r.choice("oneOf")
	condition, ok := r.schema["if"]
	if !ok {
		return
	}
	is := r.here(condition)
	r.learn(is)
	then, otherwise := r.schema["then"], r.schema["else"]
	switch {
	case is.fit == yes && then != nil:
		r.also(r.here(then))
	case is.fit == no && otherwise != nil:
		r.also(r.here(otherwise))
	case is.fit == unsure:
		for _, sub := range []any{then, otherwise} {
			if sub != nil {
				r.perhaps(sub)
			}
		}
	}
}

// perhaps applies a part of the schema of which it is not known whether it
// counts.
func (r *rules) perhaps(sub any) {
	v := r.here(sub)
	r.learn(v)
	r.fit = max(r.fit, min(v.fit, unsure))
}

// choice applies several forms of which any, or exactly one, must fit.
func (r *rules) choice(keyword string) {
	forms := list(r.schema[keyword])
	if len(forms) == 0 {
		return
	}
	var misfits [][]finding
	var count [no + 1]int // by how they fit
	for _, form := range forms {
		v := r.here(form)
		r.learn(v)
		count[v.fit]++
		if len(v.found) > 0 {
			misfits = append(misfits, v.found)
		}
	}
	switch one := keyword == "oneOf"; {
	case one && count[yes] > 1:
		r.wrong("fits more than one of the forms that it can have, and may fit only one")
	case count[unsure] > 0 && (one || count[yes] == 0):
		r.fit = max(r.fit, unsure)
	case count[yes] == 0:
		r.fit = no
	}
	if len(misfits) == len(forms) {
		r.found = append(r.found, best(misfits, r.path)...)
	}
}
