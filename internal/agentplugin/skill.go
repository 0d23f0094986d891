package agentplugin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"gopkg.in/yaml.v3"

	"dsh/internal/pkgpath"
)

// Skill is a skill by the rules of Agent Skills.
type Skill struct {
	Name          string
	Directory     pkgpath.PackagePath
	Description   string
	License       string
	Compatibility string
	Metadata      []Metadatum
	AllowedTools  string
	Body          string // the instructions below the frontmatter
}

// Metadatum is an entry of a skill's metadata.
type Metadatum struct{ Key, Value string }

// frontmatter cuts a SKILL.md in two. The fences are lines of three hyphens.
func frontmatter(text string) (yamlText, body string, err error) {
	first, rest, ok := strings.Cut(text, "\n")
	if !isFence(first) {
		if !ok && strings.Contains(text, "/") && !strings.ContainsAny(text, " \t") {
			return "", "", errors.New("it has no frontmatter; it is a path, as a link becomes where links were not checked out")
		}
		return "", "", errors.New("it does not begin with frontmatter between two lines ---")
	}
	if !ok {
		return "", "", errors.New("its frontmatter is not closed with a line ---")
	}
	for at := 0; at < len(rest); {
		line, _, ended := strings.Cut(rest[at:], "\n")
		next := at + len(line)
		if ended {
			next++
		}
		if isFence(line) {
			return rest[:at], rest[next:], nil
		}
		at = next
	}
	return "", "", errors.New("its frontmatter is not closed with a line ---")
}

func isFence(line string) bool { return strings.TrimRight(line, " \t\r") == "---" }

// skillParser reads one SKILL.md and collects all that is wrong with it.
type skillParser struct {
	problems []string
	unknown  []string // fields
	skill    Skill
}

func (p *skillParser) fail(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// parseSkill reads the SKILL.md in a directory of this name. marked says that a byte
// order mark was passed over.
func parseSkill(text []byte, directory string) (p *skillParser, marked bool) {
	p = &skillParser{}
	text, marked = bytes.CutPrefix(text, byteOrderMark)
	if !utf8.Valid(text) {
		p.fail("it is no UTF-8")
		return p, marked
	}
	head, body, err := frontmatter(string(text))
	if err != nil {
		p.fail("%v", err)
		return p, marked
	}
	p.skill.Body = body
	var document yaml.Node
	// The line of the fence is there for the numbers of lines.
	if err := yaml.Unmarshal([]byte("\n"+head), &document); err != nil {
		p.fail("its frontmatter is not YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
		return p, marked
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		p.fail("its frontmatter is no mapping")
		return p, marked
	}
	// What reads no alias need not count what they stand for.
	if hasAnchors(&document) {
		p.fail("its frontmatter has anchors or aliases, which Agent Skills does not allow")
		return p, marked
	}
	p.fields(document.Content[0], directory)
	return p, marked
}

func hasAnchors(n *yaml.Node) bool {
	return n.Kind == yaml.AliasNode || n.Anchor != "" || slices.ContainsFunc(n.Content, hasAnchors)
}

func (p *skillParser) fields(mapping *yaml.Node, directory string) {
	limits := map[string]struct {
		to       *string
		most     int // characters, 0 for no limit
		required bool
	}{
		"name":          {&p.skill.Name, 64, true},
		"description":   {&p.skill.Description, 1024, true},
		"license":       {&p.skill.License, 0, false},
		"compatibility": {&p.skill.Compatibility, 500, false},
		"allowed-tools": {&p.skill.AllowedTools, 0, false},
	}
	seen := map[string]bool{}
	for key, v := range pairs(mapping) {
		name, isText := scalar(key)
		if !isText {
			p.fail("line %d: a key of its frontmatter is no string", key.Line)
			continue
		}
		if seen[name] {
			p.fail("its frontmatter has %q twice", name)
			continue
		}
		seen[name] = true
		field, known := limits[name]
		switch {
		case name == "metadata":
			p.metadata(v)
		case !known:
			p.unknown = append(p.unknown, name)
		default:
			text, isText := scalar(v)
			if !isText {
				p.fail("%q is no string", name)
				continue
			}
			if count := utf8.RuneCountInString(text); field.most > 0 && count > field.most {
				p.fail("%q has %d characters, and %d are the most", name, count, field.most)
			}
			if strings.TrimSpace(text) == "" && (field.required || field.most > 0) {
				p.fail("%q is empty", name)
			}
			*field.to = text
		}
	}
	for _, name := range []string{"name", "description"} {
		if !seen[name] {
			p.fail("there is no %q", name)
		}
	}
	if seen["name"] && p.skill.Name != "" {
		p.name(directory)
	}
}

// name holds the name against the rules, and against the directory.
func (p *skillParser) name(directory string) {
	name := norm.NFKC.String(strings.TrimSpace(p.skill.Name))
	p.skill.Name = name
	switch {
	case strings.ToLower(name) != name:
		p.fail("the name %q has capital letters", name)
	case strings.ContainsFunc(name, func(r rune) bool { return r != '-' && !unicode.IsLetter(r) && !unicode.IsNumber(r) }):
		p.fail("the name %q has other characters than letters, digits and hyphens", name)
	case strings.HasPrefix(name, "-") || strings.HasSuffix(name, "-"):
		p.fail("the name %q begins or ends with a hyphen", name)
	case strings.Contains(name, "--"):
		p.fail("the name %q has two hyphens in a row", name)
	}
	if name != norm.NFKC.String(directory) {
		p.fail("its name is %q and its directory %q, which have to be equal", name, directory)
	}
}

func (p *skillParser) metadata(v *yaml.Node) {
	if v.Kind != yaml.MappingNode {
		p.fail(`"metadata" is no mapping of strings`)
		return
	}
	seen := map[string]bool{}
	for key, v := range pairs(v) {
		name, isName := scalar(key)
		text, isText := scalar(v)
		switch {
		case !isName || !isText:
			p.fail(`line %d: "metadata" has more than strings in it`, key.Line)
		case seen[name]:
			p.fail(`"metadata" has %q twice`, name)
		default:
			seen[name] = true
			p.skill.Metadata = append(p.skill.Metadata, Metadatum{name, text})
		}
	}
}

// pairs is the keys and values of a mapping.
func pairs(mapping *yaml.Node) func(yield func(key, v *yaml.Node) bool) {
	return func(yield func(key, v *yaml.Node) bool) {
		for i := 0; i+1 < len(mapping.Content); i += 2 {
			if !yield(mapping.Content[i], mapping.Content[i+1]) {
				return
			}
		}
	}
}

// scalar is the text of a scalar as it is written; of null it is empty.
func scalar(n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return "", false
	case n.ShortTag() == "!!null":
		return "", true
	}
	return n.Value, true
}
