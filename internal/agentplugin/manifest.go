package agentplugin

import (
	"fmt"
	"regexp"
	"strings"

	"dsh/internal/pkgpath"
)

// Version is a version of the specification.
type Version string

// The versions that are known.
const (
	V1_0_0 Version = "1.0.0"
	V1_1_0 Version = "1.1.0" // a draft, see [Options]
)

const schemas = "https://agent-plugins.org/schemas/"

// PluginSchema is the identifier of the schema of manifests.
func (v Version) PluginSchema() string { return schemas + string(v) + "/plugin.schema.json" }

// MCPSchema is the identifier of the schema of mcp.json.
func (v Version) MCPSchema() string { return schemas + string(v) + "/mcp.schema.json" }

// Name is a plugin's name, section 5.5.
type Name struct{ text string }

var (
	nameCharacters = regexp.MustCompile(`^[a-z0-9.-]*$`)
	nameEdges      = regexp.MustCompile(`^[a-z0-9](.*[a-z0-9])?$`)
)

// ParseName reads a name: 1 to 64 of a-z, 0-9, - and ., a letter or digit at both
// ends, and no -- or .. in it.
func ParseName(text string) (Name, error) {
	fail := func(why string) (Name, error) { return Name{}, fmt.Errorf("the name %q %s", text, why) }
	switch {
	case text == "":
		return fail("is empty")
	case !nameCharacters.MatchString(text):
		return fail("has other characters than a-z, 0-9, - and .")
	case len(text) > 64:
		return fail(fmt.Sprintf("has %d characters, and 64 are the most", len(text)))
	case !nameEdges.MatchString(text):
		return fail("does not begin and end with a letter or digit")
	case strings.Contains(text, "--"):
		return fail("has two hyphens in a row")
	case strings.Contains(text, ".."):
		return fail("has two periods in a row")
	}
	return Name{text}, nil
}

func (n Name) String() string { return n.text }

// Manifest is a plugin.json. What is left out in it is empty.
type Manifest struct {
	Spec        Version // that it targets
	Name        Name
	Version     string
	Description string
	Author      Author
	Homepage    string
	Repository  string
	License     string
	Keywords    []string
	Extensions  []string // namespaces that have data
	// Of the draft 1.1.0. Icon is an image that nobody has vouched for.
	DisplayName string
	Icon        *pkgpath.RelativePath
}

// Author is who made a plugin.
type Author struct{ Name, Email, URL string }

// parseManifest reads a manifest. ok is false where something in it rejects the
// plugin.
func parseManifest(text []byte, o Options, found *diagnostics) (m Manifest, ok bool) {
	const place = "plugin.json"
	v, marked, err := parseJSON(text)
	if marked {
		found.add(ByteOrderMark, place, "there is a byte order mark at its beginning, which JSON has not")
	}
	switch {
	case err != nil:
		found.add(ManifestNotJSON, place, "it is not JSON: %v", err)
	case v.kind != objectKind:
		found.add(ManifestNotAnObject, place, "it is %s, and has to be an object", v.kind)
	case v.hasHalfPair():
		found.add(ManifestNotJSON, place, "a string in it has half of a surrogate pair, so that it is no Unicode text")
	default:
		p := &manifestParser{options: o, found: found, m: Manifest{}}
		p.parse(v)
		return p.m, !p.failed
	}
	return Manifest{}, false
}

type manifestParser struct {
	options Options
	found   *diagnostics
	m       Manifest
	failed  bool
}

// fail is about a field, "" for the manifest.
func (p *manifestParser) fail(rule Rule, field, format string, args ...any) {
	p.note(rule, field, format, args...)
	p.failed = true
}

func (p *manifestParser) note(rule Rule, field, format string, args ...any) {
	place := "plugin.json"
	if field != "" {
		place += "#" + field
	}
	p.found.add(rule, place, format, args...)
}

func (p *manifestParser) parse(v value) {
	if !p.schema(v) { // nothing is known of other versions' fields
		return
	}
	p.repeats(v)
	if _, named := v.get("name"); !named {
		p.fail(NameMissing, "name", `there is no "name"%s`, otherCase(v, "name"))
	}
	members, _ := v.object()
	for _, m := range members {
		p.field(m)
	}
}

// schema decides on the version.
func (p *manifestParser) schema(v value) bool {
	id, ok := v.get("$schema")
	switch {
	case !ok:
		p.fail(SchemaMissing, "$schema", `there is no "$schema"%s; for version 1.0.0 it is %q`, otherCase(v, "$schema"), V1_0_0.PluginSchema())
	case id.kind != stringKind:
		p.fail(SchemaUnsupported, "$schema", "it is %s, and has to be %q", id.kind, V1_0_0.PluginSchema())
	case id.text == V1_0_0.PluginSchema():
		p.m.Spec = V1_0_0
	case id.text == V1_1_0.PluginSchema() && p.options.Draft:
		p.m.Spec = V1_1_0
	case id.text == V1_1_0.PluginSchema():
		p.fail(SchemaUnsupported, "$schema", "version 1.1.0 is a draft; take %q", V1_0_0.PluginSchema())
	default:
		p.fail(SchemaUnsupported, "$schema", "%q is no version that is known here; take %q", id.text, V1_0_0.PluginSchema())
	}
	return !p.failed
}

// otherCase says whether a member has the name in another case.
func otherCase(v value, name string) string {
	for _, m := range v.members {
		if m.name != name && strings.EqualFold(m.name, name) {
			return fmt.Sprintf(", and %q is another name", m.name)
		}
	}
	return ""
}

func (p *manifestParser) repeats(v value) {
	for _, name := range v.repeats() {
		if p.options.StrictMembers {
			p.fail(MemberRepeated, name, "it is there more than once")
		} else {
			p.note(DuplicateMember, name, "it is there more than once, and the last counts")
		}
	}
}

func (p *manifestParser) field(f member) {
	texts := map[string]*string{
		"version": &p.m.Version, "description": &p.m.Description, "homepage": &p.m.Homepage, "repository": &p.m.Repository, "license": &p.m.License,
	}
	if to, ok := texts[f.name]; ok {
		p.string(FieldInvalid, f.name, f.value, to)
		return
	}
	switch f.name {
	case "$schema":
	case "name":
		p.name(f.value)
	case "author":
		p.author(f.value)
	case "keywords":
		p.keywords(f.value)
	case "extensions":
		p.extensions(f.value)
	default:
		if f.name == "presentation" && p.m.Spec == V1_1_0 {
			p.presentation(f.value)
			return
		}
		p.note(UnknownField, f.name, "the specification has no field %q; it is ignored", f.name)
	}
}

func (p *manifestParser) string(rule Rule, field string, v value, to *string) {
	if v.kind != stringKind {
		p.fail(rule, field, "it is %s, and has to be a string", v.kind)
		return
	}
	*to = v.text
}

func (p *manifestParser) name(v value) {
	if v.kind != stringKind {
		p.fail(NameInvalid, "name", "it is %s, and has to be a string", v.kind)
		return
	}
	name, err := ParseName(v.text)
	if err != nil {
		p.fail(NameInvalid, "name", "%v", err)
	}
	p.m.Name = name
}

func (p *manifestParser) author(v value) {
	if v.kind != objectKind {
		p.fail(AuthorInvalid, "author", "it is %s, and has to be an object", v.kind)
		return
	}
	fields := map[string]*string{"name": &p.m.Author.Name, "email": &p.m.Author.Email, "url": &p.m.Author.URL}
	members, _ := v.object()
	for _, m := range members {
		if to, ok := fields[m.name]; ok {
			p.string(AuthorInvalid, "author."+m.name, m.value, to)
		} else {
			p.fail(AuthorInvalid, "author."+m.name, "an author has name, email and url, and no %q", m.name)
		}
	}
}

func (p *manifestParser) keywords(v value) {
	if v.kind != arrayKind {
		p.fail(FieldInvalid, "keywords", "it is %s, and has to be an array of strings", v.kind)
		return
	}
	for i, e := range v.elements {
		var word string
		p.string(FieldInvalid, fmt.Sprintf("keywords.%d", i), e, &word)
		p.m.Keywords = append(p.m.Keywords, word)
	}
}

func (p *manifestParser) extensions(v value) {
	if v.kind != objectKind {
		p.note(ExtensionsIgnored, "extensions", "it is %s, and has to be an object; it is ignored", v.kind)
		return
	}
	members, _ := v.object()
	for _, m := range members {
		switch {
		case m.value.kind == objectKind:
			p.m.Extensions = append(p.m.Extensions, m.name)
		case p.options.LenientExtensions:
			p.note(ExtensionIgnored, "extensions."+m.name, "it is %s, and has to be an object; it is ignored", m.value.kind)
		default:
			p.fail(ExtensionNotAnObject, "extensions."+m.name, "it is %s, and has to be an object", m.value.kind)
		}
	}
}

// presentation is of the draft 1.1.0.
func (p *manifestParser) presentation(v value) {
	if v.kind != objectKind {
		p.fail(FieldInvalid, "presentation", "it is %s, and has to be an object", v.kind)
		return
	}
	members, _ := v.object()
	for _, m := range members {
		field := "presentation." + m.name
		switch m.name {
		case "displayName":
			p.string(FieldInvalid, field, m.value, &p.m.DisplayName)
		case "icon":
			var text string
			p.string(FieldInvalid, field, m.value, &text)
			if m.value.kind != stringKind {
				continue
			}
			icon, err := pkgpath.Parse(text)
			if err != nil {
				p.note(IconIgnored, field, "%v; it is ignored", err)
				continue
			}
			p.m.Icon = &icon
		default:
			p.fail(FieldInvalid, field, "presentation has displayName and icon, and no %q", m.name)
		}
	}
}
