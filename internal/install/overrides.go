package install

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
	"dsh/internal/npmrange"
	"dsh/internal/profile"
	"dsh/internal/workspace"
)

// Overrides are rules of a profile for what packages get in place of what they
// ask for. The zero value has none.
//
// A selector names a dependency, "b" or "b@^1", for everybody; "a>b" for the
// dependencies of a alone, as pnpm has it; "a>>b" for everything below a, as
// npm has it. Where several rules fit, the innermost counts, and of these one
// with a range before one without.
type Overrides struct {
	values map[string]string // by selector, what the lockfile holds
	top    *override         // holds the rules that are for everybody
	direct []*override       // "a>b", by selector
	nested bool              // there are rules for what stands below a package
}

// removed is the value of a rule that takes a dependency away.
const removed = "-"

// override is one rule.
type override struct {
	name, wanted string                 // the dependency, and which ranges for it
	value        string                 // what is asked for instead; "" the same, [removed] nothing
	up           *override              // the rule that this one stands in
	below        map[string][]*override // rules for what is reached over the dependency, by name
	asker        selector               // of a rule for one package's dependencies
}

// selector is a package, or those of its versions that are in a range.
type selector struct{ name, wanted string }

// IsEmpty reports whether there are no rules.
func (o Overrides) IsEmpty() bool { return len(o.values) == 0 }

// MarshalJSON writes the rules by their selectors.
func (o Overrides) MarshalJSON() ([]byte, error) { return json.Marshal(o.values) }

// newOverrides reads rules by their selectors.
func newOverrides(values map[string]string) (Overrides, error) {
	o := Overrides{}
	if len(values) == 0 {
		return o, nil
	}
	o.values, o.top = values, &override{}
	for _, text := range sortedKeys(values) {
		if err := o.add(text, values[text]); err != nil {
			return Overrides{}, fault.Errorf(fault.Package, "override %q: %w", text, err)
		}
	}
	return o, nil
}

func (o *Overrides) add(text, value string) error {
	if i := directParent(text); i > 0 && !strings.Contains(text, ">>") {
		asker, err := parseSelector(text[:i])
		if err != nil {
			return err
		}
		s, err := parseSelector(text[i+1:])
		o.direct = append(o.direct, &override{name: s.name, wanted: s.wanted, value: value, asker: asker})
		return err
	}
	rule := o.top
	for part := range strings.SplitSeq(text, ">>") {
		s, err := parseSelector(part)
		if err != nil {
			return err
		}
		o.nested = o.nested || rule != o.top
		rule = rule.child(s)
	}
	rule.value = value
	return nil
}

// child is the rule for a selector in r, made where it is missing.
func (r *override) child(s selector) *override {
	at, found := slices.BinarySearchFunc(r.below[s.name], s.wanted, func(have *override, wanted string) int {
		if (have.wanted == "") != (wanted == "") {
			return strings.Compare(wanted, have.wanted) // what has a range comes first
		}
		return strings.Compare(have.wanted, wanted)
	})
	if found {
		return r.below[s.name][at]
	}
	if r.below == nil {
		r.below = map[string][]*override{}
	}
	made := &override{name: s.name, wanted: s.wanted, up: r}
	r.below[s.name] = slices.Insert(r.below[s.name], at, made)
	return made
}

// directParent is where ">" parts a package from a dependency of it; a range
// may hold one as well.
func directParent(text string) int {
	for i := 1; i+1 < len(text); i++ {
		if text[i] == '>' && !strings.ContainsRune(" |@><", rune(text[i-1])) && text[i+1] != '=' {
			return i
		}
	}
	return -1
}

func parseSelector(text string) (selector, error) {
	name, wanted, ok := splitName(strings.TrimSpace(text))
	if !ok {
		return selector{}, fmt.Errorf("%q is no package name", text)
	}
	wanted = strings.TrimPrefix(wanted, "npm:")
	if isAny(wanted) {
		wanted = ""
	}
	if wanted != "" && !isRange(wanted) {
		return selector{}, fmt.Errorf("%q is no version range", wanted)
	}
	return selector{name, wanted}, nil
}

// apply is what a package gets in place of the dependency name@wanted: below a
// rule, nil for none, and from asker, nil for the profile. What is asked for
// through the dependency is below the rule inside.
func (o Overrides) apply(below *override, asker *Package, name, wanted string) (instead string, inside *override) {
	if o.top == nil {
		return wanted, nil
	}
	for _, rule := range o.direct {
		if rule.name == name && asker != nil && asker.Name == rule.asker.name &&
			(rule.asker.wanted == "" || satisfies(asker.Version, rule.asker.wanted)) && meets(rule.wanted, wanted) {
			return rule.value, below
		}
	}
	if below == nil {
		below = o.top
	}
	for at := below; at != nil; at = at.up {
		for _, rule := range at.below[name] {
			if meets(rule.wanted, wanted) {
				return rule.given(wanted), o.within(rule)
			}
		}
		if at.name == name && meets(at.wanted, wanted) {
			return at.given(wanted), o.within(at)
		}
	}
	return wanted, o.within(below)
}

func (r *override) given(wanted string) string {
	if r.value == "" {
		return wanted
	}
	return r.value
}

// within is the innermost rule around what is reached over r that says
// anything; nil says that it is those for everybody.
func (o Overrides) within(r *override) *override {
	for r != nil && len(r.below) == 0 {
		r = r.up
	}
	if r == o.top {
		return nil
	}
	return r
}

// meets reports whether a rule for some ranges is meant where a dependency is
// wanted. As in npm, it is where the ranges have anything in common, or where
// what is wanted is no range.
func meets(rule, wanted string) bool {
	if real, ok := strings.CutPrefix(wanted, "npm:"); ok {
		_, wanted, _ = splitName(real)
	}
	if rule == "" || rule == wanted || !isRange(wanted) {
		return true
	}
	a, errA := npmrange.ParseRangeLoose(rule)
	b, errB := npmrange.ParseRangeLoose(wanted)
	if errA != nil || errB != nil {
		return false
	}
	// What two sets of intervals have in common begins where one of them does.
	for _, text := range []string{rule, wanted} {
		for _, v := range beginnings(text) {
			if a.SatisfiesPrerelease(v) && b.SatisfiesPrerelease(v) {
				return true
			}
		}
	}
	return false
}

// beginnings are versions among which every interval of a range has its lowest.
func beginnings(text string) []npmrange.Version {
	var all []npmrange.Version
	add := func(numbers [3]uint64, rest string) {
		if v, err := npmrange.ParseVersion(fmt.Sprintf("%d.%d.%d%s", numbers[0], numbers[1], numbers[2], rest)); err == nil {
			all = append(all, v)
		}
	}
	add([3]uint64{}, "")
	add([3]uint64{}, "-0")
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" |<>=~^v,", r) }) {
		core, pre, _ := strings.Cut(part, "-")
		core, _, _ = strings.Cut(core, "+")
		pre, _, _ = strings.Cut(pre, "+")
		var n [3]uint64
		given := 0
		for i, digits := range strings.SplitN(core, ".", 3) {
			number, err := strconv.ParseUint(digits, 10, 53)
			if err != nil {
				break
			}
			n[i], given = number, i+1
		}
		if given == 0 {
			continue
		}
		add(n, "")
		add(n, "-0")
		if pre != "" {
			add(n, "-"+pre)
			add(n, "-"+pre+".0")
		}
		n[given-1]++
		add(n, "")
		add(n, "-0")
	}
	return all
}

// readOverrides collects the rules of a profile. Of two with the same selector
// the setting of the profile's own package manager counts: those of
// pnpm-workspace.yaml before pnpm.overrides, resolutions and npm's overrides.
func readOverrides(m *profile.Manifest, settings *yaml.Node) (Overrides, error) {
	var fields struct {
		Overrides, Resolutions json.RawMessage
		PNPM                   json.RawMessage
	}
	_ = json.Unmarshal(m.Bytes(), &fields) // the manifest was read before, and is an object
	var pnpm struct{ Overrides json.RawMessage }
	_ = json.Unmarshal(fields.PNPM, &pnpm) // of another type, it holds none

	all := map[string]string{}
	for _, source := range []struct {
		field string
		text  json.RawMessage
		read  func(any, map[string]string) error
	}{
		{"overrides", fields.Overrides, func(v any, into map[string]string) error { return npmOverrides("", v, into) }},
		{"resolutions", fields.Resolutions, resolutions},
		{"pnpm.overrides", pnpm.Overrides, flatOverrides},
	} {
		var value any
		if err := json.Unmarshal(source.text, &value); err != nil || value == nil {
			continue
		}
		read := map[string]string{}
		err := source.read(value, read)
		if err == nil {
			err = resolveReferences(m, read)
		}
		if err != nil {
			return Overrides{}, fault.Errorf(fault.Package, "%s: %s: %w", m.Path(), source.field, err)
		}
		maps.Copy(all, read)
	}
	if value := workspace.Value(settings, "overrides"); value != nil && value.Tag != "!!null" {
		read := map[string]string{}
		err := value.Decode(&read)
		if err != nil {
			err = fmt.Errorf("line %d: overrides must be a mapping of texts", value.Line)
		} else {
			err = resolveReferences(m, read)
		}
		if err != nil {
			return Overrides{}, fault.Errorf(fault.Package, "%s: %w", WorkspaceName, err)
		}
		maps.Copy(all, read)
	}
	return newOverrides(all)
}

func flatOverrides(value any, into map[string]string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("it must be an object")
	}
	for key, v := range object {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("%q must be a text", key)
		}
		into[key] = text
	}
	return nil
}

// resolutions reads the rules of yarn: "b", "**/b" for everybody, "a/b" for the
// dependencies of a, "a/**/b" for everything below it.
func resolutions(value any, into map[string]string) error {
	flat := map[string]string{}
	if err := flatOverrides(value, flat); err != nil {
		return err
	}
	for key, v := range flat {
		if strings.Contains(key, ">") {
			into[key] = v // pnpm's form
			continue
		}
		selector, anywhere := "", true
		rest := strings.TrimPrefix(key, "/")
		for rest != "" {
			part := rest
			if i := strings.IndexByte(rest, '/'); i >= 0 {
				if rest[0] == '@' {
					if j := strings.IndexByte(rest[i+1:], '/'); j >= 0 {
						i += 1 + j
					} else {
						i = len(rest)
					}
				}
				part = rest[:i]
			}
			rest = strings.TrimPrefix(rest[len(part):], "/")
			switch {
			case part == "**":
				anywhere = true
				continue
			case selector == "":
				selector = part
			case anywhere || strings.Contains(selector, ">"):
				selector += ">>" + part
			default:
				selector += ">" + part
			}
			anywhere = false
		}
		if strings.Count(selector, ">") > 1 {
			selector = strings.ReplaceAll(strings.ReplaceAll(selector, ">>", ">"), ">", ">>")
		}
		into[selector] = v
	}
	return nil
}

// npmOverrides reads the rules of npm, which nest.
func npmOverrides(in string, value any, into map[string]string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("it must be an object")
	}
	for key, v := range object {
		if key == "." {
			continue
		}
		switch v := v.(type) {
		case string:
			if anyVersion(v) != "*" { // which npm reads as no rule
				into[in+key] = v
			}
		case map[string]any:
			if own, ok := v["."].(string); ok && anyVersion(own) != "*" {
				into[in+key] = own
			} else if ok {
				// It only holds the rules below it.
			} else if _, wanted, _ := splitName(key); wanted != "" {
				into[in+key] = wanted // npm reads a range here as what is given, too
			}
			if err := npmOverrides(in+key+">>", v, into); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%q must be a text or an object", key)
		}
	}
	return nil
}

// resolveReferences puts the profile's own specs in the place of "$name", and
// finds values that nothing can be installed for.
func resolveReferences(m *profile.Manifest, values map[string]string) error {
	for _, key := range sortedKeys(values) {
		value := values[key]
		if name, ok := strings.CutPrefix(value, "$"); ok {
			spec, _, ok := m.Dependency(name)
			if !ok {
				return fmt.Errorf("%q is %q, and the profile does not depend on %s", key, value, name)
			}
			value = anyVersion(spec)
			values[key] = value
		}
		if value == "" {
			values[key] = "*"
			continue
		}
		if value == removed {
			continue
		}
		if _, err := ParseDependency("x", value, ""); err != nil {
			return fmt.Errorf("%q: %w", key, err)
		}
	}
	return nil
}

// overridden is the name of the dependency that a selector is for.
func overridden(selector string) string {
	last := selector[strings.LastIndex(selector, ">>")+1:]
	last = last[directParent(last)+1:]
	name, _, _ := splitName(strings.TrimPrefix(last, ">"))
	return strings.TrimSpace(name)
}

// differFrom is the names that rules of o and of a lockfile say different
// things of. What is locked for them is not kept.
func (o Overrides) differFrom(l *Lock) map[string]bool {
	var other map[string]string
	if l != nil {
		other = l.Overrides
	}
	names := map[string]bool{}
	for _, pair := range [][2]map[string]string{{o.values, other}, {other, o.values}} {
		for text, value := range pair[0] {
			if pair[1][text] != value {
				names[overridden(text)] = true
			}
		}
	}
	return names
}
