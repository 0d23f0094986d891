package agentplugin

import "strings"

// Anchors are the two directories of an installed plugin, absolute: PLUGIN_ROOT,
// free of links, and PLUGIN_DATA.
type Anchors struct{ Root, Data string }

const (
	rootMark = "${PLUGIN_ROOT}"
	dataMark = "${PLUGIN_DATA}"
)

// Template is a text of an author with the two placeholders of section 9.2.
// Everything else in it is literal.
type Template struct{ text string }

// ParseTemplate takes any text.
func ParseTemplate(text string) Template { return Template{text} }

// String is the text as it was written.
func (t Template) String() string { return t.text }

// IsLiteral is true of a text without placeholders.
func (t Template) IsLiteral() bool {
	return !strings.Contains(t.text, rootMark) && !strings.Contains(t.text, dataMark)
}

// Expand puts the directories in place of the placeholders, in one pass: what is
// put in is not looked at again.
func (t Template) Expand(a Anchors) string {
	return strings.NewReplacer(rootMark, a.Root, dataMark, a.Data).Replace(t.text)
}
