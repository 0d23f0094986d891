package npmrange

import "strings"

// rangeParser reduces alternatives to comparators.
type rangeParser struct {
	loose bool
	out   []comparator
	any   bool
}

// alternative adds the comparators of one side of a "||".
func (p *rangeParser) alternative(s string) error {
	first := len(p.out)
	s = stripBuild(s)
	if done, err := p.hyphen(s); err != nil {
		return err
	} else if !done {
		if err := p.comparators(joinOperators(s)); err != nil {
			return err
		}
	}
	if len(p.out) == first {
		return nil
	}
	p.out[len(p.out)-1].last = true
	bare := true
	for _, c := range p.out[first:] {
		bare = bare && c.any
	}
	p.any = p.any || bare
	return nil
}

// comparators adds what stands between the spaces of s. In loose mode what is
// no comparator is left out; a wildcard then still counts at either end of s,
// but not between others, as in node-semver.
func (p *rangeParser) comparators(s string) error {
	first := len(p.out)
	wildcard := false
	for start, end := true, false; !end; start = false {
		var text string
		var more bool
		text, s, more = strings.Cut(s, " ")
		end = !more
		any, err := p.comparator(text)
		if err != nil && (err != errGrammar || !p.loose) {
			return err
		}
		wildcard = wildcard || any && (start || end)
	}
	if len(p.out) == first && wildcard {
		p.out = append(p.out, anything)
	}
	return nil
}

// comparator adds one comparator, which may come to two, or to none where it is
// a wildcard that admits any version.
func (p *rangeParser) comparator(s string) (wildcard bool, err error) {
	if s == "" {
		return true, nil
	}
	switch s[0] {
	case '^':
		v, ok := scanPartial(s[1:], p.loose)
		if !ok {
			return false, errGrammar
		}
		v.prefix = "" // its bounds are written anew
		return p.caret(&v)
	case '~':
		v, ok := scanPartial(strings.TrimPrefix(s[1:], ">"), p.loose)
		if !ok {
			return false, errGrammar
		}
		v.prefix = ""
		return p.tilde(&v)
	}
	n := operatorLen(s)
	v, ok := scanPartial(s[n:], p.loose)
	if ok && v.wild() && !v.disordered() {
		return p.wildcard(operatorOf(s[:n]), n == 0, &v)
	}
	if !ok {
		// A star inside what is otherwise a comparator does not count.
		if s, ok = dropStar(s); !ok {
			return false, errGrammar
		}
		if s == "" {
			return true, nil
		}
		n = operatorLen(s)
		v, ok = scanPartial(s[n:], p.loose)
	}
	if !ok || v.wild() || !p.loose && v.prefix != "" && v.prefix != "v" {
		return false, errGrammar
	}
	return false, p.bound(operatorOf(s[:n]), &v, never)
}

func operatorOf(s string) operator {
	switch s {
	case "<":
		return opLess
	case "<=":
		return opLessEqual
	case ">":
		return opGreater
	case ">=":
		return opGreaterEqual
	default:
		return opEqual
	}
}

// dropStar removes the first star with the operator before it.
func dropStar(s string) (string, bool) {
	at := strings.IndexByte(s, '*')
	if at < 0 {
		return s, false
	}
	from := at
	if from > 0 && s[from-1] == '=' {
		from--
	}
	if from > 0 && (s[from-1] == '<' || s[from-1] == '>') {
		from--
	}
	return s[:from] + s[at+1:], true
}

// ^1.2.3 is >=1.2.3 <2.0.0-0, ^0.1 is >=0.1.0 <0.2.0-0, ^x is anything.
func (p *rangeParser) caret(v *partial) (wildcard bool, err error) {
	at := 0
	switch {
	case v.number[0] == "":
		return true, nil
	case v.number[0] == "0" && v.number[1] == "0" && v.number[2] != "":
		at = 2
	case v.number[0] == "0" && v.number[1] != "":
		at = 1
	}
	return false, p.between(v, at)
}

// ~1.2.3 and ~1.2 stay below 1.3.0-0, ~1 below 2.0.0-0, ~x is anything.
func (p *rangeParser) tilde(v *partial) (wildcard bool, err error) {
	switch {
	case v.number[0] == "":
		return true, nil
	case v.number[1] == "":
		return false, p.between(v, 0)
	}
	return false, p.between(v, 1)
}

// wildcard adds a version in which numbers are missing, after an operator.
func (p *rangeParser) wildcard(op operator, bare bool, v *partial) (wildcard bool, err error) {
	last := 1 // the last number that was written
	if v.number[1] == "" {
		last = 0
	}
	switch {
	case v.number[0] == "" && (op == opGreater || op == opLess):
		p.out = append(p.out, comparator{op: opLess, numbers: withAndWithout})
		return false, nil
	case v.number[0] == "":
		return true, nil
	case bare || op == opEqual:
		return false, p.between(v, last)
	}
	c, err := v.floor()
	if err != nil {
		return false, err
	}
	out := comparator{op: op, numbers: withPrereleases, core: c}
	switch op {
	case opGreater:
		out.op = opGreaterEqual
		out.core, err = c.next(last)
	case opLessEqual:
		out.op, out.numbers = opLess, withAndWithout
		out.core, err = c.next(last)
	case opLess:
		out.numbers = withAndWithout
	}
	out.any = op == opGreaterEqual && v.isZero()
	p.out = append(p.out, out)
	return false, err
}

// between adds >=v and < the next value of the number at index.
func (p *rangeParser) between(v *partial, index int) error {
	var err error
	if v.wild() {
		err = p.floorBound(v)
	} else {
		err = p.bound(opGreaterEqual, v, never)
	}
	if err != nil {
		return err
	}
	return p.below(v, index)
}

// floorBound adds >= v with its missing numbers as 0.
func (p *rangeParser) floorBound(v *partial) error {
	c, err := v.floor()
	p.out = append(p.out, comparator{op: opGreaterEqual, numbers: withPrereleases, core: c, any: v.isZero()})
	return err
}

// below adds < the next value of the number at index, and of its prereleases.
func (p *rangeParser) below(v *partial, index int) error {
	c, err := v.floor()
	if err != nil {
		return err
	}
	c, err = c.next(index)
	p.out = append(p.out, comparator{op: opLess, numbers: withAndWithout, core: c})
	return err
}

// bound adds a comparator with a version written in full.
func (p *rangeParser) bound(op operator, v *partial, numbers numbersOnly) error {
	c, err := v.floor()
	if err != nil {
		return err
	}
	out := comparator{op: op, numbers: numbers, core: c}
	out.any = op == opGreaterEqual && v.prefix == "" && v.pre == "" && v.isZero()
	if v.pre != "" {
		version, err := ParseVersion(v.canonical())
		if err != nil {
			return err
		}
		out.version, out.numbers = &version, never
	}
	p.out = append(p.out, out)
	return nil
}

// hyphen adds "1.2 - 3.4", if s is one.
func (p *rangeParser) hyphen(s string) (bool, error) {
	left, right, ok := strings.Cut(s, " - ")
	if !ok {
		return false, nil
	}
	from, ok1 := scanPartial(left, p.loose)
	to, ok2 := scanPartial(right, p.loose)
	if !ok1 || !ok2 {
		return false, nil
	}
	var err error
	first := len(p.out)
	switch {
	case from.number[0] == "":
	case from.wild():
		err = p.floorBound(&from)
	default:
		err = p.hyphenEnd(opGreaterEqual, &from)
	}
	if err != nil {
		return true, err
	}
	switch {
	case to.number[0] == "":
	case to.number[1] == "":
		err = p.below(&to, 0)
	case to.number[2] == "":
		err = p.below(&to, 1)
	default:
		err = p.hyphenEnd(opLessEqual, &to)
	}
	if err == nil && len(p.out) == first {
		p.out = append(p.out, anything)
	}
	return true, err
}

// hyphenEnd adds an end that was written in full. node-semver puts the operator
// before its text with the prefix, and reads that as a comparator: a space in
// the prefix then parts the two, and only the version is left of them.
func (p *rangeParser) hyphenEnd(op operator, v *partial) error {
	if op == opLessEqual && v.pre != "" {
		v.prefix = "" // here it is written anew
	}
	if !p.loose && v.prefix != "" && v.prefix != "v" {
		return errGrammar
	}
	if strings.Contains(v.prefix, " ") {
		op = opEqual
	}
	return p.bound(op, v, withPrereleases)
}

// floor is v with its missing numbers as 0.
func (p *partial) floor() (c core, err error) {
	for i, n := range [...]*uint64{&c.major, &c.minor, &c.patch} {
		if p.number[i] == "" {
			break
		}
		if *n, err = number(p.number[i]); err != nil {
			return core{}, err
		}
	}
	return c, nil
}

// isZero reports whether the numbers are zeros, each written as one digit:
// node-semver does not see that 00.0.0 is as low as a version gets.
func (p *partial) isZero() bool {
	for _, n := range p.number {
		if n == "" {
			break
		}
		if n != "0" {
			return false
		}
	}
	return p.number[0] != ""
}

// next is the lowest core in which the number at index is one higher.
func (c core) next(index int) (core, error) {
	switch index {
	case 0:
		c = core{c.major + 1, 0, 0}
	case 1:
		c = core{c.major, c.minor + 1, 0}
	default:
		c.patch++
	}
	if max(c.major, c.minor, c.patch) > maxNumber {
		return core{}, errNumber
	}
	return c, nil
}
