package profile

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// Edits are splices of the text: hujson says where a value begins and ends,
// and after each splice the text is read again. So an edit cannot reformat what
// it does not touch, and what the accessors say is what the file says.

// SetDependency writes name: spec into a section and takes name out of the
// other sections. A new name goes to its sorted place when the section is
// sorted, else to its end.
func (m *Manifest) SetDependency(kind DependencyKind, name, spec string) {
	for _, other := range dependencyKinds {
		if other != kind {
			m.removeFrom(other, name)
		}
	}
	m.ensureSection(kind)
	section, _ := find(m.root, string(kind))
	list := members(section)
	value := string(hujson.String(spec))
	if i := indexOf(list, name); i >= 0 {
		if literal(list[i].Value) != spec {
			m.replace(list[i].Value, value)
		}
		return
	}
	at := len(list)
	key := func(member hujson.ObjectMember) string { return literal(member.Name) }
	if slices.IsSortedFunc(list, func(a, b hujson.ObjectMember) int { return cmp.Compare(key(a), key(b)) }) {
		at = slices.IndexFunc(list, func(member hujson.ObjectMember) bool { return key(member) > name })
		if at < 0 {
			at = len(list)
		}
	}
	m.insert(section, at, name, value)
}

// RemoveDependency takes name out of every section and reports whether it was
// in one. An emptied devDependencies or optionalDependencies goes as well,
// unless the file has another section of that name, which would count then;
// dependencies stays, since a new profile has it. A package that is gone is not
// remembered as switched off.
func (m *Manifest) RemoveDependency(name string) bool {
	m.keepDisabled(func(disabled string) bool { return disabled != name })
	found := false
	for _, kind := range dependencyKinds {
		found = m.removeFrom(kind, name) || found
	}
	return found
}

// SetBundles makes names the list dsh.profile.bundles, and the sections that
// hold it where they are missing. A listed bundle is no longer switched off.
func (m *Manifest) SetBundles(names []string) {
	m.keepDisabled(func(name string) bool { return !slices.Contains(names, name) })
	if slices.Equal(names, m.bundles) {
		return
	}
	profile := m.ensureProfile()
	switch i := indexOf(members(profile), "bundles"); {
	case i < 0:
		m.insert(profile, 0, "bundles", "[]")
	case members(profile)[i].Value.Value.Kind() == 'n':
		m.replace(members(profile)[i].Value, "[]")
	}
	list, _ := find(m.profileSection(), "bundles")
	m.replace(list, m.stringList(list, names))
}

// profileSection is dsh.profile.
func (m *Manifest) profileSection() hujson.Value {
	dsh, _ := find(m.root, "dsh")
	profile, _ := find(dsh, "profile")
	return profile
}

// ensureProfile is dsh.profile, made where it is missing.
func (m *Manifest) ensureProfile() hujson.Value {
	m.ensureObject(m.root, len(members(m.root)), "dsh")
	dsh, _ := find(m.root, "dsh")
	m.ensureObject(dsh, len(members(dsh)), "profile")
	return m.profileSection()
}

func (m *Manifest) removeFrom(kind DependencyKind, name string) bool {
	found := false
	for {
		section, ok := find(m.root, string(kind))
		i := indexOf(members(section), name)
		if !ok || i < 0 {
			return found
		}
		found = true
		if len(members(section)) == 1 && kind != Dependencies && count(members(m.root), string(kind)) == 1 {
			m.remove(m.root, indexOf(members(m.root), string(kind)))
		} else {
			m.remove(section, i)
		}
	}
}

// ensureSection makes a dependency section after the ones that are there.
func (m *Manifest) ensureSection(kind DependencyKind) {
	at := -1
	for _, other := range dependencyKinds {
		at = max(at, indexOf(members(m.root), string(other)))
	}
	if at < 0 {
		at = len(members(m.root)) - 1
	}
	m.ensureObject(m.root, at+1, string(kind))
}

// ensureObject makes key an object in parent, at the given place when it is
// missing.
func (m *Manifest) ensureObject(parent hujson.Value, at int, key string) {
	switch i := indexOf(members(parent), key); {
	case i < 0:
		m.insert(parent, at, key, "{}")
	case members(parent)[i].Value.Value.Kind() == 'n':
		m.replace(members(parent)[i].Value, "{}")
	}
}

// insert puts key: value before the member at index at of object, or at its
// end, spaced like its neighbours.
func (m *Manifest) insert(object hujson.Value, at int, key, value string) {
	list := members(object)
	entry := string(hujson.String(key)) + m.colon(list) + value
	switch {
	case len(list) == 0:
		before, after := m.emptyPadding(object.StartOffset)
		m.splice(object.StartOffset, object.EndOffset, "{"+before+entry+after+"}")
	case at < len(list):
		next := list[at].Name.StartOffset
		m.splice(next, next, entry+","+m.separator(list, at))
	default:
		end := list[len(list)-1].Value.EndOffset
		m.splice(end, end, ","+m.separator(list, len(list)-1)+entry)
	}
}

// remove takes the member at index i out of object.
func (m *Manifest) remove(object hujson.Value, i int) {
	list := members(object)
	switch {
	case len(list) == 1:
		m.replace(object, "{}")
	case i < len(list)-1:
		m.splice(list[i].Name.StartOffset, list[i+1].Name.StartOffset, "")
	default:
		m.splice(list[i-1].Value.EndOffset, list[i].Value.EndOffset, "")
	}
}

func (m *Manifest) replace(v hujson.Value, text string) {
	m.splice(v.StartOffset, v.EndOffset, text)
}

// splice never breaks a manifest: what is put in is a valid value, what is
// taken out leaves no equal key behind that had not counted before, and so
// every value that dsh reads is one that was read before or is new and valid.
func (m *Manifest) splice(start, end int, text string) {
	edited, err := ParseManifest(m.path, slices.Concat(m.text[:start], []byte(text), m.text[end:]))
	if err != nil {
		panic("profile: an edit broke the manifest: " + err.Error()) // cannot happen, see above
	}
	*m = *edited
}

// stringList spells names as an array, in the style of the array old.
func (m *Manifest) stringList(old hujson.Value, names []string) string {
	if len(names) == 0 {
		return "[]"
	}
	before, after := m.emptyPadding(old.StartOffset)
	separator := before
	if array, ok := old.Value.(*hujson.Array); ok && len(array.Elements) > 0 {
		before, after = m.lineBreak(array.Elements[0].BeforeExtra), m.lineBreak(array.AfterExtra)
		separator = before
		if len(array.Elements) > 1 {
			separator = m.lineBreak(array.Elements[1].BeforeExtra)
		}
	} else if !m.onLines() {
		before, after = "", ""
	}
	if separator == "" && m.colon(nil) != ":" {
		separator = " "
	}
	spelled := make([]string, len(names))
	for i, name := range names {
		spelled[i] = string(hujson.String(name))
	}
	return "[" + before + strings.Join(spelled, ","+separator) + after + "]"
}

// separator is the white space between a comma and the member at index i.
func (m *Manifest) separator(list []hujson.ObjectMember, i int) string {
	if i == 0 && len(list) > 1 {
		i = 1
	}
	s := m.lineBreak(list[i].Name.BeforeExtra)
	if s == "" && len(list) == 1 && m.colon(list) != ":" {
		return " "
	}
	return s
}

// emptyPadding is the white space inside the braces of an object at offset
// that gets its first member.
func (m *Manifest) emptyPadding(offset int) (before, after string) {
	if !m.onLines() {
		s := string(members(m.root)[0].Name.BeforeExtra)
		return s, s
	}
	outer := m.newline() + m.indentAt(offset)
	return outer + m.indentUnit(), outer
}

// colon is the text between key and value in list, or at the top of the file
// when list is empty.
func (m *Manifest) colon(list []hujson.ObjectMember) string {
	for _, candidates := range [][]hujson.ObjectMember{list, members(m.root)} {
		if n := len(candidates); n > 0 {
			last := candidates[n-1]
			between := string(m.text[last.Name.EndOffset:last.Value.StartOffset])
			if !strings.ContainsAny(between, "\r\n") {
				return between
			}
		}
	}
	return ": "
}

// onLines reports whether the file has a line for each member, as opposed to
// everything in one line. An empty object has no style yet and gets lines.
func (m *Manifest) onLines() bool {
	list := members(m.root)
	return len(list) == 0 || bytes.ContainsRune(list[0].Name.BeforeExtra, '\n')
}

// newline is the line end of the file.
func (m *Manifest) newline() string {
	if i := bytes.IndexByte(m.text, '\n'); i > 0 && m.text[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// lineBreak is the white space before a neighbour without its blank lines.
func (m *Manifest) lineBreak(space hujson.Extra) string {
	if i := bytes.LastIndexByte(space, '\n'); i >= 0 {
		return m.newline() + string(space[i+1:])
	}
	return string(space)
}

// indentAt is the indentation of the line that holds offset.
func (m *Manifest) indentAt(offset int) string {
	line := m.text[bytes.LastIndexByte(m.text[:offset], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// indentUnit is one level of indentation.
func (m *Manifest) indentUnit() string {
	if list := members(m.root); len(list) > 0 {
		space := list[0].Name.BeforeExtra
		if unit := string(space[bytes.LastIndexByte(space, '\n')+1:]); unit != "" {
			return unit
		}
	}
	return "  "
}

// PackageName is the name of the package that the manifest makes of the
// profile, "" where it has none.
func (m *Manifest) PackageName() string {
	value, _ := find(m.root, "name")
	if value.Value == nil || value.Value.Kind() != '"' {
		return ""
	}
	return literal(value)
}

// Rename gives a package that has the name which a new profile called from
// gets the one for to, and reports whether it had that name. Any other name is
// the user's and stays.
func (m *Manifest) Rename(from, to Name) bool {
	if m.PackageName() != packageName(from) {
		return false
	}
	value, _ := find(m.root, "name")
	m.replace(value, string(hujson.String(packageName(to))))
	return true
}

// packageName is the name in the manifest of a fresh profile.
func packageName(name Name) string { return "dsh-profile-" + name.text }

// RemoveFromPnpm takes settings out of the member "pnpm", and says whether there
// were any.
func (m *Manifest) RemoveFromPnpm(keys ...string) bool {
	found := false
	for _, key := range keys {
		for {
			i := indexOf(members(m.root), "pnpm")
			if i < 0 {
				break
			}
			section := members(m.root)[i].Value
			at := indexOf(members(section), key)
			if at < 0 {
				break
			}
			m.remove(section, at)
			found = true
		}
	}
	return found
}
