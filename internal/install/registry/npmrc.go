package registry

import (
	"encoding/json"
	"strings"
)

// setting is the value of one .npmrc key. A key written as "key[]" collects
// values; any other has the last one.
type setting struct {
	values  []string
	list    bool
	missing string // a variable that a value names and the environment lacks
}

func (s setting) last() string {
	if len(s.values) == 0 {
		return ""
	}
	return s.values[len(s.values)-1]
}

// parseNpmrc reads the ini dialect of npm and expands ${VARIABLES} in keys and
// values. Sections are for other tools: their keys are left out, as npm does.
func parseNpmrc(text string, getenv func(string) string) map[string]setting {
	settings := map[string]setting{}
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\r' || r == '\n' }) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == ';' || line[0] == '#' {
			continue
		}
		if line[0] == '[' && strings.IndexByte(line, ']') == len(line)-1 {
			break // nothing after the first section is at the top level
		}
		key, value, given := strings.Cut(line, "=")
		key = iniText(key)
		if key == "" {
			continue
		}
		if value = iniText(value); !given {
			value = "true"
		}
		key, _ = expand(key, getenv)
		value, missing := expand(value, getenv)

		name, list := strings.CutSuffix(key, "[]")
		if !list || name == "" {
			name, list = key, false
		}
		s := settings[name]
		if s.list = s.list || list; !s.list {
			s = setting{}
		}
		s.values = append(s.values, value)
		if missing != "" {
			s.missing = missing
		}
		settings[name] = s
	}
	return settings
}

// iniText is a key or value without its quotes, escapes and comment.
func iniText(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 1 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		quoted := s
		if s[0] == '\'' {
			s = s[1 : len(s)-1]
			quoted = s
		}
		var text string
		if json.Unmarshal([]byte(quoted), &text) == nil {
			return text
		}
		return s
	}
	if !strings.ContainsAny(s, `\;#`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == ';' || c == '#':
			return strings.TrimSpace(b.String())
		case c == '\\' && i+1 < len(s) && strings.IndexByte(`\;#`, s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// expand replaces ${NAME}, and ${NAME?} where the variable may be unset. A
// backslash before it keeps it as it is, and two are one backslash. What is
// not set stays as written and is reported.
func expand(s string, getenv func(string) string) (text, missing string) {
	if !strings.Contains(s, "${") {
		return s, ""
	}
	var b strings.Builder
	for {
		at := strings.Index(s, "${")
		if at < 0 {
			b.WriteString(s)
			return b.String(), missing
		}
		end := strings.IndexAny(s[at+2:], "${}?") + at + 2
		name, optional := "", false
		switch {
		case end < at+2: // no end at all
		case s[end] == '}':
			name = s[at+2 : end]
		case s[end] == '?' && strings.HasPrefix(s[end+1:], "}"):
			name, optional = s[at+2:end], true
			end++
		}
		if name == "" {
			b.WriteString(s[:at+2])
			s = s[at+2:]
			continue
		}
		slashes := at - len(strings.TrimRight(s[:at], `\`))
		b.WriteString(s[:at-slashes+slashes/2])
		value := getenv(name)
		switch {
		case slashes%2 == 1:
			b.WriteString(s[at : end+1])
		case value != "" || optional:
			b.WriteString(value)
		default:
			b.WriteString(s[at : end+1])
			missing = name
		}
		s = s[end+1:]
	}
}
