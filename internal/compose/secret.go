package compose

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"dsh/internal/compose/jsexpr"
)

const (
	mask     = "***" // stands for a secret
	tooLarge = "(too large to be written out)"
)

// Redact is a copy of v without its secrets, aliases written out: *** stands
// for the texts and numbers under keys that are named like secrets (see
// [IsSecretKey]) and for values beside such a name, and within texts for the user in a URL, for what follows
// Bearer, and for the values of options, variables and headers that are named
// so. Of expressions under such keys the literals are replaced. Of what is
// [Endless] nothing is shown.
func Redact(v Value) Value { return RedactAt(v) }

// RedactAt is [Redact] of a value that stands under keys, the innermost last.
func RedactAt(v Value, keys ...string) Value {
	if Endless(v) {
		return tooLarge
	}
	where := open
	for _, key := range keys {
		where = where.below(key)
	}
	return redact(v, where)
}

// exposure is what is known about the place of a value.
type exposure uint8

const (
	open    exposure = iota // nothing speaks of a secret
	counted                 // texts are secret, and numbers count
	guarded                 // texts and long numbers are secret
	secret                  // everything is secret
)

// longNumber is the least number that may be a secret where secrets are texts
// as a rule.
const longNumber = 100_000

// below is the exposure of the value of a key.
func (e exposure) below(key string) exposure {
	switch {
	case e != open:
		return secret
	case !IsSecretKey(key):
		return open
	case isNumericSecret(key):
		return secret
	case slices.Contains(keyWords(key), "tokens"):
		return counted
	default:
		return guarded
	}
}

// named is the exposure of the value beside a name, as in
// {name: API_TOKEN, value: …}.
func (e exposure) named(m *Map) exposure {
	for key, v := range m.All() {
		name, _ := v.(string)
		switch strings.ToLower(key) {
		case "name", "key", "header", "variable":
			if at := e.below(name); at != open {
				return at
			}
		}
	}
	return open
}

// inside is the exposure of what a list holds.
func (e exposure) inside() exposure {
	if e != open {
		return secret
	}
	return open
}

func redact(v Value, where exposure) Value {
	switch v := v.(type) {
	case string:
		if where != open && v != "" {
			return mask
		}
		return redactText(v)
	case float64:
		if where == secret || where == guarded && math.Abs(v) >= longNumber {
			return mask
		}
		return v
	case Expr:
		if where != open {
			return Expr{jsexpr.MaskLiterals(v.Text)}
		}
		return Expr{redactPlain(v.Text)}
	case *Map:
		pairs := make([]pair, v.Len())
		named := where.named(v)
		for i, p := range v.entries() {
			at := where.below(p.key)
			if strings.EqualFold(p.key, "value") {
				at = max(at, named)
			}
			pairs[i] = pair{p.key, redact(p.value, at)}
		}
		m := newMap(pairs)
		if v != nil {
			m.line, m.column = v.line, v.column
		}
		return m
	case *List:
		return redactList(v, where.inside())
	default:
		return v
	}
}

// redactList also looks for options whose value is the next item.
func redactList(list *List, where exposure) *List {
	c := &List{Items: make([]Value, len(list.Items))}
	for i, item := range list.Items {
		at := where
		if i > 0 && isSecretOption(list.Items[i-1]) {
			if text, ok := item.(string); !ok || !strings.HasPrefix(text, "--") {
				at = secret
			}
		}
		c.Items[i] = redact(item, at)
	}
	return c
}

// isSecretOption says whether v is a text like --token.
func isSecretOption(v Value) bool {
	text, _ := v.(string)
	name := strings.TrimLeft(text, "-")
	return name != text && !strings.ContainsAny(name, " =\t\n") && IsSecretKey(name)
}

var (
	urlUser = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/?#\s"'<>]+@`)
	bearer  = regexp.MustCompile(`(?i)\b(bearer\s+)[^\s"',;]+`)
	// query is a URL up to the end of its query, and keyOfQuery what stands in it
	// under a name that is that of a secret there alone.
	query      = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>?#]*\?[^\s"'<>#]*`)
	keyOfQuery = regexp.MustCompile(`(?i)([?&;](?:key|sig|signature|code|session)=)[^&;]+`)
	// assigned is an option, environment variable or part of a query.
	assigned = regexp.MustCompile(`([A-Za-z_][\w.-]*)(=)("[^"]*"|'[^']*'|[^\s&;#"']+)`)
	// optionValue is an option with its value behind a space.
	optionValue = regexp.MustCompile(`(--?[A-Za-z][\w.-]*)(\s+)("[^"]*"|'[^']*'|[^\s"'-]\S*)`)
	// headerValue is a text that is a header of HTTP.
	headerValue = regexp.MustCompile(`^([A-Za-z][\w-]*)(\s*:\s*)(\S.*)`)
)

// redactText is text without the secrets that show by themselves.
func redactText(text string) string {
	for _, named := range [...]*regexp.Regexp{assigned, optionValue, headerValue} {
		text = named.ReplaceAllStringFunc(text, func(found string) string {
			part := named.FindStringSubmatch(found)
			if !IsSecretKey(part[1]) {
				return found
			}
			return part[1] + part[2] + mask
		})
	}
	return redactPlain(text)
}

// redactPlain looks for what needs no name.
func redactPlain(text string) string {
	text = query.ReplaceAllStringFunc(text, func(url string) string { return keyOfQuery.ReplaceAllString(url, "${1}"+mask) })
	return bearer.ReplaceAllString(urlUser.ReplaceAllString(text, "${1}"+mask+"@"), "${1}"+mask)
}

var (
	// secretEnds end the name of a secret, also where its words are written as
	// one. A plural s may follow.
	secretEnds = []string{
		"token", "secret", "password", "passwd", "passphrase", "passcode", "credential", "cookie",
		"apikey", "privatekey", "accesskey", "signingkey", "sessionkey", "encryptionkey", "masterkey", "authkey",
	}
	secretWords = []string{"pwd", "authorization", "bearer"}
	// aloneWords name a secret if nothing else stands in the key.
	aloneWords = []string{"auth", "pin"}
	// notSecretEnds are the last words of keys that say where or of what kind a
	// secret is, how long it is good for, or how many there are.
	notSecretEnds = []string{
		"env", "file", "path", "dir", "url", "uri", "endpoint", "name", "id", "type", "header", "var", "variable",
		"ttl", "timeout", "expiry", "seconds", "ms", "length", "policy", "mode", "method",
		"count", "limit", "budget", "ratio", "window",
	}
	// countWords before tokens count them.
	countWords = []string{
		"max", "min", "num", "total", "retain", "keep", "reserve", "reserved", "context", "input", "output", "prompt",
		"completion", "thinking", "reasoning", "summary", "budget", "limit", "target", "used", "cached", "estimated", "per",
	}
	numericSecrets = []string{"password", "passwd", "passcode", "pin", "secret", "token", "pass", "pwd"}
)

// IsSecretKey says whether what stands under a key of this name should not be
// shown, as under apiKey, GITHUB_TOKEN or client-secret. It is not where the
// name says where the secret is kept (apiKeyEnv, token_file), of what kind it
// is, or how many there are (maxTokens).
func IsSecretKey(key string) bool {
	words := keyWords(key)
	if len(words) == 0 || slices.Contains(notSecretEnds, words[len(words)-1]) {
		return false
	}
	if len(words) == 1 && slices.Contains(aloneWords, words[0]) || words[len(words)-1] == "pass" {
		return true
	}
	for i, word := range words {
		if word == "tokens" && slices.ContainsFunc(words[:i], func(w string) bool { return slices.Contains(countWords, w) }) {
			continue
		}
		if slices.Contains(secretWords, word) || endsSecret(word) || i > 0 && endsSecret(words[i-1]+word) {
			return true
		}
	}
	return false
}

func endsSecret(word string) bool {
	word = strings.TrimSuffix(word, "s")
	return slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) })
}

// isNumericSecret says whether a number under a secret key is secret. Under
// tokens it is a count.
func isNumericSecret(key string) bool {
	return slices.ContainsFunc(keyWords(key), func(word string) bool {
		return slices.ContainsFunc(numericSecrets, func(end string) bool { return strings.HasSuffix(word, end) })
	})
}

// keyWords is the words of a key in lower case: it is cut at dashes, dots,
// underscores and spaces, at digits, and where the case changes as in apiKey
// and APIKey. Digits are left out.
func keyWords(key string) []string {
	var words []string
	runes := []rune(key)
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(string(runes[start:end])))
		}
		start = end
	}
	for i, c := range runes {
		switch {
		case !unicode.IsLetter(c):
			cut(i)
			start = i + 1
		case i > start && unicode.IsUpper(c) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			cut(i)
		}
	}
	cut(len(runes))
	return words
}
