package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"dsh/internal/fault"
)

// maxPolicy bounds a policy file, in bytes.
const maxPolicy = 1 << 20

// ReadPolicy reads a policy file; nil is that there is none. What it does not
// know, or does not understand, is an error of class Policy with its line: a rule
// that is misspelt must not be one that nobody keeps.
func ReadPolicy(file string) (*Policy, error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		if _, lost := os.Lstat(file); lost == nil {
			return nil, fmt.Errorf("read policy: %s is a link to a file that is not there", file)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxPolicy+1))
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return ParsePolicy(file, text)
}

// ParsePolicy reads the text of a policy file.
func ParsePolicy(file string, text []byte) (*Policy, error) {
	wrong := func(err error) error {
		return fault.WithHint(fault.Errorf(fault.Policy, "policy %s: %w", file, err), "no package is changed while the policy cannot be read; docs/security.md has its keys")
	}
	if len(text) > maxPolicy {
		return nil, wrong(fmt.Errorf("it is longer than %d bytes", maxPolicy))
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	p := &Policy{File: file, Signatures: SignaturesChecked, Malware: "refuse", Exempt: map[Rule][]Exempted{}, lines: map[Rule]int{}}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var root yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return p, nil
	} else if err != nil {
		return nil, wrong(plainYAML(err))
	}
	if err := decoder.Decode(new(yaml.Node)); err == nil {
		return nil, wrong(errors.New("it holds more than one document"))
	} else if !errors.Is(err, io.EOF) {
		return nil, wrong(plainYAML(err))
	}
	if err := p.read(root.Content[0]); err != nil {
		return nil, wrong(err)
	}
	return p, nil
}

// plainYAML is an error of the YAML library without its name.
func plainYAML(err error) error {
	return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
}

func at(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
}

// members calls read for each member of a mapping, in order.
func members(n *yaml.Node, what string, read func(key string, k, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return at(n, "%s must be a mapping", what)
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			return at(k, "a key of %s must be one word", what)
		}
		if seen[k.Value] {
			return at(k, "%q is there twice", k.Value)
		}
		seen[k.Value] = true
		if err := read(k.Value, k, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *Policy) read(root *yaml.Node) error {
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil // comments alone
	}
	known := []string{"limits", "exempt"}
	for _, r := range rules {
		known = append(known, string(r))
	}
	return members(root, "the policy", func(key string, k, value *yaml.Node) error {
		if !slices.Contains(known, key) {
			return at(k, "there is no rule %q; there are %s", bounded(key), strings.Join(known, ", "))
		}
		p.lines[Rule(key)] = k.Line
		switch key {
		case "exempt":
			return p.readExempt(value)
		case "limits":
			return p.readLimits(value)
		}
		switch Rule(key) {
		case RegistriesRule:
			return list(value, key, &p.Registries, registryOf)
		case SourcesRule:
			return list(value, key, &p.Sources, func(text string) (Source, error) { return oneOf(text, sources...) })
		case HostsRule:
			return list(value, key, &p.Hosts, hostOf)
		case ScopesRule:
			return list(value, key, &p.Scopes, scopeOf)
		case LicencesRule:
			return list(value, key, &p.Licences, licenceOf)
		case MinimumAgeRule:
			return scalar(value, key, &p.MinimumAge, parseAge)
		case SignaturesRule:
			return scalar(value, key, &p.Signatures, func(text string) (Signatures, error) {
				return oneOf(text, SignaturesRequired, SignaturesChecked, SignaturesIgnored)
			})
		default: // malware
			return scalar(value, key, &p.Malware, func(text string) (string, error) { return oneOf(text, "refuse", "warn") })
		}
	})
}

func (p *Policy) readLimits(n *yaml.Node) error {
	return members(n, "limits", func(key string, k, value *yaml.Node) error {
		name := "limits." + key
		switch key {
		case "unpacked":
			return scalar(value, name, &p.Limits.Unpacked, parseSize)
		case "entries":
			return scalar(value, name, &p.Limits.Entries, parseCount)
		case "ratio":
			return scalar(value, name, &p.Limits.Ratio, parseCount)
		case "path":
			return scalar(value, name, &p.Limits.Path, parseCount)
		}
		return at(k, "there is no limit %q; there are unpacked, entries, ratio and path", bounded(key))
	})
}

func (p *Policy) readExempt(n *yaml.Node) error {
	return members(n, "exempt", func(key string, k, value *yaml.Node) error {
		rule := Rule(key)
		if !slices.Contains(rules, rule) {
			return at(k, "exempt names a rule %q that there is not", bounded(key))
		}
		var exempted []Exempted
		err := list(value, "exempt."+key, &exempted, exemptedOf)
		p.Exempt[rule] = exempted
		return err
	})
}

// list reads a list of texts, which must not be empty: an empty one could mean
// that everything is allowed, or nothing.
func list[T comparable](n *yaml.Node, key string, into *[]T, parse func(text string) (T, error)) error {
	if n.Kind != yaml.SequenceNode {
		return at(n, "%s must be a list", key)
	}
	if len(n.Content) == 0 {
		return at(n, "%s is empty; without the key everything is allowed", key)
	}
	for _, item := range n.Content {
		var value T
		if err := scalar(item, "an entry of "+key, &value, parse); err != nil {
			return err
		}
		*into = append(*into, value)
	}
	return nil
}

func scalar[T any](n *yaml.Node, key string, into *T, parse func(text string) (T, error)) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return at(n, "%s must be one value", key)
	}
	value, err := parse(n.Value)
	if err != nil && strings.Contains(n.Value, "@") && strings.Contains(n.Value, ":") {
		return at(n, "%s: it %v", key, err) // an address with a password in it, maybe
	}
	if err != nil {
		return at(n, "%s: %q %v", key, bounded(n.Value), err)
	}
	*into = value
	return nil
}

func oneOf[T ~string](text string, values ...T) (T, error) {
	if !slices.Contains(values, T(text)) {
		words := make([]string, len(values))
		for i, v := range values {
			words[i] = string(v)
		}
		return "", fmt.Errorf("is none of %s", strings.Join(words, ", "))
	}
	return T(text), nil
}

func registryOf(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return "", errors.New("is no http or https address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("has more in it than a registry's address")
	}
	return strings.TrimRight(text, "/") + "/", nil
}

func hostOf(text string) (string, error) {
	host := strings.ToLower(strings.TrimPrefix(text, "*."))
	name, port, _ := strings.Cut(host, ":")
	if _, err := strconv.ParseUint(port, 10, 16); err != nil && strings.Contains(host, ":") {
		return "", errors.New("is no host name")
	}
	if name == "" || strings.ContainsAny(name, "/@*? \t\\") {
		return "", errors.New("is no host name")
	}
	return strings.ToLower(text), nil
}

func scopeOf(text string) (string, error) {
	if text != unscoped && (len(text) < 2 || text[0] != '@' || strings.ContainsAny(text[1:], "@/ *")) {
		return "", errors.New(`is no scope, which is written as "@scope", nor the word unscoped`)
	}
	return text, nil
}

func licenceOf(text string) (string, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return "", errors.New("is no licence")
	}
	if e, err := ParseLicence(text); err == nil && e.op != leaf {
		return "", errors.New("joins licences, which are listed one by one")
	}
	return text, nil
}

func exemptedOf(text string) (Exempted, error) {
	name, version := text, ""
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		name, version = text[:i], text[i+1:]
		if version == "" {
			return Exempted{}, errors.New("has no version behind its @")
		}
	}
	if name == "" || strings.ContainsAny(name, " \t?[]\\") || strings.ContainsAny(version, " \t*^~|<>=") {
		return Exempted{}, errors.New("is no package: name, name@version, or a name in which * stands for anything")
	}
	return Exempted{name, version}, nil
}

// parseAge reads a duration with its units: 3d, 12h, 90m, 2w, 1d12h.
func parseAge(text string) (time.Duration, error) {
	units := map[byte]time.Duration{'w': 7 * 24 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute}
	bad := errors.New("is no age, which is written as 3d, 12h, 90m or 2w")
	if text == "0" {
		return 0, nil
	}
	var age time.Duration
	for rest := text; rest != ""; {
		i := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
		if i <= 0 {
			return 0, bad
		}
		n, err := strconv.ParseUint(rest[:i], 10, 31)
		unit := units[rest[i]]
		if err != nil || unit == 0 || n > uint64((math.MaxInt64-age)/unit) {
			return 0, bad
		}
		age += time.Duration(n) * unit
		rest = rest[i+1:]
	}
	if text == "" {
		return 0, bad
	}
	return age, nil
}

// parseSize reads a number of bytes with its unit: 512MiB, 1GiB, 64KiB, 100MB.
func parseSize(text string) (int64, error) {
	units := map[string]int64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9}
	digits := strings.TrimRightFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	n, err := strconv.ParseInt(digits, 10, 64)
	unit := units[strings.TrimSpace(text[len(digits):])]
	if err != nil || n <= 0 || unit == 0 || n > math.MaxInt64/unit {
		return 0, errors.New("is no size, which is written as 512MiB, 1GiB or a number of bytes")
	}
	return n * unit, nil
}

func parseCount(text string) (int, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0, errors.New("is no number above 0")
	}
	return int(n), nil
}
