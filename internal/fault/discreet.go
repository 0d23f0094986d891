package fault

import (
	"regexp"
	"strings"
	"sync"
)

// addresses are what may be secret in the addresses of a text: user and password,
// a password that no host follows, and the query.
var addresses = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)([^\s/?#"']*)@`),
		regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^\s/?#"'@:]+:[^\s/?#"'@:]*[^\s/?#"'@:0-9][^\s/?#"'@:]*()`),
		regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://[^\s?"'#]*)\?[^\s"'#]*()`),
	}
})

// Discreet is a message without what may be secret in the addresses that it names,
// wherever they come from: the user's own words, a file, another program. The user
// of an ssh address is part of its place.
func Discreet(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	for _, of := range addresses() {
		text = of.ReplaceAllStringFunc(text, func(found string) string {
			parts := of.FindStringSubmatch(found)
			if strings.HasSuffix(parts[1], "ssh://") && parts[2] != "" && !strings.Contains(parts[2], ":") {
				return found
			}
			return parts[1]
		})
	}
	return text
}
