package agentplugin

import (
	"fmt"
	"strings"

	"dsh/internal/fault"
)

// Effect is what came of something that is wrong.
type Effect uint8

const (
	Noted    Effect = iota // it is told of, and what it is in loads
	Skipped                // a skill, a server or a kind of component is left out
	Rejected               // there is no plugin
)

// String is the effect in one word.
func (e Effect) String() string { return [...]string{"noted", "skipped", "rejected"}[e] }

// MarshalText is String, for JSON.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Rule is a stable code of what is wrong.
type Rule string

// The rules.
const (
	ManifestMissing      Rule = "manifest-missing"
	ManifestNotAFile     Rule = "manifest-not-a-file"
	ManifestEscapes      Rule = "manifest-escapes"
	ManifestUnreadable   Rule = "manifest-unreadable"
	ManifestNotJSON      Rule = "manifest-not-json"
	ManifestNotAnObject  Rule = "manifest-not-an-object"
	SchemaMissing        Rule = "schema-missing"
	SchemaUnsupported    Rule = "schema-unsupported"
	NameMissing          Rule = "name-missing"
	NameInvalid          Rule = "name-invalid"
	FieldInvalid         Rule = "field-invalid"
	AuthorInvalid        Rule = "author-invalid"
	ExtensionNotAnObject Rule = "extension-not-an-object"
	MemberRepeated       Rule = "member-repeated"

	ComponentInvalid Rule = "component-invalid"
	MCPDisabled      Rule = "mcp-disabled"
	SkillSkipped     Rule = "skill-skipped"
	ServerSkipped    Rule = "server-skipped"

	UnknownField      Rule = "unknown-manifest-field"
	ExtensionsIgnored Rule = "extensions-ignored"
	ExtensionIgnored  Rule = "extension-ignored"
	IconIgnored       Rule = "icon-ignored"
	DuplicateMember   Rule = "duplicate-member"
	ByteOrderMark     Rule = "byte-order-mark"
	LocationUnread    Rule = "location-unread"
	SkillFieldUnknown Rule = "skill-field-unknown"
	SkillNameNotASCII Rule = "skill-name-not-ascii"
	CommandMissing    Rule = "command-missing"
	CommandHasSpaces  Rule = "command-has-spaces"
	CwdMissing        Rule = "cwd-missing"
	EnvReservedCase   Rule = "env-reserved-case"
)

// Rules is every rule with the section that it is from and its effect.
var rules = map[Rule]struct {
	section string
	effect  Effect
}{
	ManifestMissing:      {"4.1", Rejected},
	ManifestNotAFile:     {"5.1", Rejected},
	ManifestEscapes:      {"4.1", Rejected},
	ManifestUnreadable:   {"5.1", Rejected},
	ManifestNotJSON:      {"5.2", Rejected},
	ManifestNotAnObject:  {"5.2", Rejected},
	SchemaMissing:        {"5.3", Rejected},
	SchemaUnsupported:    {"5.2", Rejected},
	NameMissing:          {"5.3", Rejected},
	NameInvalid:          {"5.5", Rejected},
	FieldInvalid:         {"5.2", Rejected},
	AuthorInvalid:        {"5.4", Rejected},
	ExtensionNotAnObject: {"8.1", Rejected},
	MemberRepeated:       {"5.2", Rejected},

	ComponentInvalid: {"6.2", Skipped},
	MCPDisabled:      {"7.2.2", Skipped},
	SkillSkipped:     {"7.1", Skipped},
	ServerSkipped:    {"7.2.2", Skipped},

	UnknownField:      {"5.2", Noted},
	ExtensionsIgnored: {"8.1", Noted},
	ExtensionIgnored:  {"8.1", Noted},
	IconIgnored:       {"5.4", Noted},
	DuplicateMember:   {"5.2", Noted},
	ByteOrderMark:     {"5.2", Noted},
	LocationUnread:    {"6.1", Noted},
	SkillFieldUnknown: {"7.1", Noted},
	SkillNameNotASCII: {"7.1", Noted},
	CommandMissing:    {"7.2.1", Noted},
	CommandHasSpaces:  {"7.2.1", Noted},
	CwdMissing:        {"7.2.1", Noted},
	EnvReservedCase:   {"9.1", Noted},
}

// Section is the section of the specification that the rule is from.
func (r Rule) Section() string { return rules[r].section }

// Effect is what comes of a break of the rule.
func (r Rule) Effect() Effect { return rules[r].effect }

// Diagnostic is one thing that is wrong with a package. Its message has no values
// of headers and variables, and no addresses.
type Diagnostic struct {
	Code    Rule   `json:"code"`
	Section string `json:"section"`
	Effect  Effect `json:"effect"`
	Place   string `json:"place"` // a file, and behind a # what in it: mcp.json#server
	Message string `json:"message"`
}

func (d Diagnostic) String() string {
	return fmt.Sprintf("%s: %s [%s]", d.Place, d.Message, d.Code)
}

// diagnostics collects what is found.
type diagnostics []Diagnostic

func (d *diagnostics) add(rule Rule, place, format string, args ...any) {
	*d = append(*d, Diagnostic{rule, rule.Section(), rule.Effect(), place, fmt.Sprintf(format, args...)})
}

// rejection is the error for what rejects the plugin, nil if nothing does.
func (d diagnostics) rejection() error {
	var fatal []Diagnostic
	for _, one := range d {
		if one.Effect == Rejected {
			fatal = append(fatal, one)
		}
	}
	if fatal == nil {
		return nil
	}
	return &RejectedError{fatal}
}

// RejectedError says why a package is no plugin.
type RejectedError struct{ Diagnostics []Diagnostic }

func (e *RejectedError) Error() string {
	var texts []string
	for _, d := range e.Diagnostics {
		texts = append(texts, d.String())
	}
	if len(texts) == 1 {
		return "no Agent Plugin: " + texts[0]
	}
	return "no Agent Plugin:\n\t" + strings.Join(texts, "\n\t")
}

// Class is that of mis-published packages.
func (e *RejectedError) Class() fault.Class { return fault.Package }
