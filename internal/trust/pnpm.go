package trust

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"gopkg.in/yaml.v3"

	"dsh/internal/workspace"
)

// Verdict is what somebody said of a package's scripts. The zero Verdict is
// Undecided.
type Verdict uint8

// The verdicts.
const (
	Undecided Verdict = iota
	Allowed
	Denied
)

// String is the verdict in one word, as --json reports it.
func (v Verdict) String() string {
	switch v {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	default:
		return "undecided"
	}
}

// Built is a package whose scripts may be to run, as pnpm's rules know it.
type Built struct {
	Name, Version string
	// Source is where it comes from, "" for a registry: of git
	// "git+https://host/owner/repo.git#COMMIT" with "&path:/dir" for a folder in
	// it, else the address, or "file:" and a path.
	Source string
}

// PnpmRule is one thing that a profile's settings for pnpm say of scripts.
type PnpmRule struct {
	Package string // as it is written: a name, with a version or a source; "*" is every package
	Allowed bool
	// Placeholder is the text that stands where a decision belongs, "" if there is
	// one. pnpm refuses a file that holds one.
	Placeholder string
	Invalid     string // why the rule fits no package, "" if it may fit one
	Setting     string // its key: allowBuilds, onlyBuiltDependencies, …
	File        string // pnpm-workspace.yaml or package.json
	Line        int    // in File, 0 where nobody knows

	key pnpmKey
}

// The settings of pnpm that are about scripts.
const (
	allowBuilds       = "allowBuilds"
	onlyBuilt         = "onlyBuiltDependencies"
	neverBuilt        = "neverBuiltDependencies"
	ignoredBuilt      = "ignoredBuiltDependencies"
	dangerouslyAllows = "dangerouslyAllowAllBuilds"
)

// PnpmRules are the rules of a profile, those of pnpm-workspace.yaml in the order
// of its lines before those of package.json.
type PnpmRules []PnpmRule

// PnpmApprovals reads what a profile's pnpm-workspace.yaml and the field pnpm of
// its package.json say of scripts. Either text may be nil. Of a setting that
// stands in both, pnpm reads the one in pnpm-workspace.yaml alone. An error is
// about the YAML and names the line; a package.json that is none says nothing,
// for it has readers of its own.
func PnpmApprovals(settings, manifest []byte) (PnpmRules, error) {
	root, err := workspace.Root(settings)
	if err != nil {
		return nil, err
	}
	rules := rulesOf(root)
	var fields struct {
		Pnpm map[string]json.RawMessage `json:"pnpm"`
	}
	if json.Unmarshal(manifest, &fields) != nil {
		return rules, nil
	}
	for _, setting := range []string{allowBuilds, onlyBuilt, neverBuilt, ignoredBuilt, dangerouslyAllows} {
		text, ok := fields.Pnpm[setting]
		if !ok || workspace.Value(root, setting) != nil {
			continue
		}
		// JSON is YAML, so that one reader will do.
		part, err := workspace.Root(slices.Concat([]byte(`{"`+setting+`":`), text, []byte("}")))
		if err != nil {
			continue
		}
		for _, r := range rulesOf(part) {
			r.File, r.Line = "package.json", 0
			rules = append(rules, r)
		}
	}
	return rules, nil
}

func rulesOf(root *yaml.Node) PnpmRules {
	var rules PnpmRules
	add := func(setting string, at *yaml.Node, allowed bool, placeholder string) {
		r := PnpmRule{Package: at.Value, Allowed: allowed, Placeholder: placeholder, Setting: setting, File: workspace.Name, Line: at.Line}
		r.key, r.Invalid = parsePnpmKey(at.Value)
		rules = append(rules, r)
	}
	if builds := workspace.Value(root, allowBuilds); builds != nil && builds.Kind == yaml.MappingNode {
		first := map[string]int{} // by key, its place among the rules
		for i := 0; i+1 < len(builds.Content); i += 2 {
			key, value := builds.Content[i], builds.Content[i+1]
			placeholder := ""
			if value.Tag != "!!bool" {
				placeholder = value.Value
				if value.Kind != yaml.ScalarNode || placeholder == "" {
					placeholder = "no decision"
				}
			}
			add(allowBuilds, key, isTrue(value), placeholder)
			if before, ok := first[key.Value]; ok {
				twice := fmt.Sprintf("it stands there twice, in lines %d and %d, which pnpm refuses", rules[before].Line, key.Line)
				rules[before].Invalid, rules[len(rules)-1].Invalid = twice, twice
			} else {
				first[key.Value] = len(rules) - 1
			}
		}
	}
	for setting, allowed := range map[string]bool{onlyBuilt: true, neverBuilt: false, ignoredBuilt: false} {
		if list := workspace.Value(root, setting); list != nil && list.Kind == yaml.SequenceNode {
			for _, item := range list.Content {
				if item.Kind == yaml.ScalarNode && item.Value != "" {
					add(setting, item, allowed, "")
				}
			}
		}
	}
	if all := workspace.Value(root, dangerouslyAllows); isTrue(all) {
		rules = append(rules, PnpmRule{Package: "*", Allowed: true, Setting: dangerouslyAllows, File: workspace.Name, Line: all.Line})
	}
	slices.SortStableFunc(rules, func(a, b PnpmRule) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return strings.Compare(a.Setting, b.Setting)
	})
	return rules
}

func isTrue(value *yaml.Node) bool {
	var said bool
	return value != nil && value.Tag == "!!bool" && value.Decode(&said) == nil && said
}

// Verdict is what the rules say of a package, and the rule that decided. A rule
// that denies wins over one that allows. A name allows what comes from a
// registry alone: anybody can give a repository's package any name, so that a
// package with a source is allowed by its source only, as pnpm 10 and 11 have it.
// What neverBuiltDependencies does not name is undecided, though pnpm would build
// it.
func (rules PnpmRules) Verdict(b Built) (Verdict, PnpmRule) {
	verdict, by := Undecided, PnpmRule{}
	for _, r := range rules {
		switch {
		case r.Placeholder != "" || r.Invalid != "":
		case !r.Allowed && r.key.names(b):
			return Denied, r
		case r.Allowed && verdict == Undecided && (r.Setting == dangerouslyAllows || r.key.allows(b)):
			verdict, by = Allowed, r
		}
	}
	return verdict, by
}

// pnpmKey is what a rule fits: a name, some versions of it, or a source.
type pnpmKey struct {
	name     string
	versions []string // none: all
	source   source
}

// parsePnpmKey reads a key as pnpm does; invalid says why no package fits it.
func parsePnpmKey(text string) (k pnpmKey, invalid string) {
	text = withoutPeers(text)
	name, rest := text, ""
	if i := strings.Index(text[min(1, len(text)):], "@") + 1; i > 0 {
		name, rest = text[:i], text[i+1:]
	}
	switch {
	case strings.Contains(name, ":"): // a source without a name, as pnpm 8 wrote them
		return pnpmKey{source: parseSource(text)}, ""
	case rest == "" && strings.Contains(name, "/") && !strings.HasPrefix(name, "@"):
		return pnpmKey{source: parseSource(text)}, ""
	case strings.Contains(name, "*"):
		return pnpmKey{}, "pnpm knows no patterns here"
	case name == text:
		return pnpmKey{name: name}, ""
	case !strings.Contains(rest, "||") && strings.ContainsAny(rest, ":/#"):
		return pnpmKey{name: name, source: parseSource(rest)}, ""
	}
	k.name = name
	for version := range strings.SplitSeq(rest, "||") {
		v, err := semver.StrictNewVersion(strings.TrimLeft(strings.TrimSpace(version), "v="))
		if err != nil {
			return pnpmKey{}, fmt.Sprintf("%q is no exact version", strings.TrimSpace(version))
		}
		k.versions = append(k.versions, withoutBuild(v.String()))
	}
	return k, ""
}

// withoutPeers is a key without the peers in brackets that a lockfile has behind it.
func withoutPeers(text string) string {
	if i := strings.Index(text, "("); i > 0 && strings.HasSuffix(text, ")") {
		return text[:i]
	}
	return text
}

// withoutBuild is a version without its build metadata, in which no two differ.
func withoutBuild(version string) string {
	version, _, _ = strings.Cut(version, "+")
	return version
}

// names says whether the key is for the package, by whatever it says of it: what
// is denied is so wherever it comes from.
func (k pnpmKey) names(b Built) bool {
	if k.source.text != "" {
		return (k.name == "" || k.name == b.Name) && k.source.covers(parseSource(b.Source))
	}
	return k.name == b.Name && (k.versions == nil || slices.Contains(k.versions, withoutBuild(b.Version)))
}

func (k pnpmKey) allows(b Built) bool { return k.names(b) && (b.Source == "") == (k.source.text == "") }

// source is where a package comes from that is of no registry. One commit of one
// repository is the same source however it is fetched.
type source struct {
	text   string // as written
	repo   string // host/owner/name; "" where the text names no repository
	commit string // 40 or 64 hexadecimal digits; "" is any
	path   string // of the folder in it, without slashes around it
}

func (s source) covers(other source) bool {
	switch {
	case s.text == "" || other.text == "":
		return false
	case s.text == other.text:
		return true
	case s.repo == "" || s.repo != other.repo:
		return false
	}
	// pnpm 11: a repository without a commit stands for all that is in it.
	return s.commit == "" && s.path == "" || s.commit == other.commit && s.path == other.path
}

func parseSource(text string) source {
	s := source{text: text}
	address, fragment, hasFragment := strings.Cut(text, "#")
	if rest, ok := strings.CutPrefix(address, "git+"); ok {
		s.repo = repoOf(rest)
		if !hasFragment {
			return s
		}
		commit, path, _ := strings.Cut(fragment, "&")
		return s.at(commit, path)
	}
	rest, ok := strings.CutPrefix(address, "https://")
	if !ok {
		return s
	}
	parts := strings.Split(rest, "/")
	switch host := strings.ToLower(parts[0]); {
	case host == "codeload.github.com" && len(parts) == 5 && parts[3] == "tar.gz":
		s.repo = repoOf("https://github.com/" + parts[1] + "/" + parts[2])
		return s.at(parts[4], fragment)
	case host == "bitbucket.org" && len(parts) == 5 && parts[3] == "get":
		s.repo = repoOf("https://bitbucket.org/" + parts[1] + "/" + parts[2])
		return s.at(strings.TrimSuffix(parts[4], ".tar.gz"), fragment)
	}
	if project, archive, ok := strings.Cut(rest, "/-/archive/"); ok {
		commit, _, _ := strings.Cut(archive, "/")
		s.repo = repoOf("https://" + project)
		return s.at(commit, fragment)
	}
	return s
}

// at is the source at a commit and, with "path:" before it, a folder. What is no
// whole commit may mean another one tomorrow, so that only the text as it is
// names it.
func (s source) at(commit, path string) source {
	if len(commit) != 40 && len(commit) != 64 || strings.Trim(commit, "0123456789abcdef") != "" {
		s.repo = ""
		return s
	}
	s.commit = commit
	s.path = strings.Trim(strings.TrimPrefix(path, "path:"), "/")
	return s
}

// repoOf is the repository that an address names. https and ssh lead to the same
// one; any other way of fetching does not show who sent it.
func repoOf(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	host, path, _ := strings.Cut(rest, "/")
	if scheme != "https" && scheme != "ssh" {
		return scheme + "://" + host + "/" + strings.TrimSuffix(path, ".git")
	}
	host = strings.ToLower(host[strings.LastIndex(host, "@")+1:])
	return host + "/" + strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// WithoutPlaceholders is the text of a pnpm-workspace.yaml without the entries
// of allowBuilds that hold no decision, and otherwise byte for byte as it was.
// It is an error where these do not stand on lines of their own.
func WithoutPlaceholders(text []byte) ([]byte, error) {
	root, err := workspace.Root(text)
	if err != nil {
		return nil, err
	}
	goes := map[int]bool{}
	var want PnpmRules
	for _, r := range rulesOf(root) {
		if r.Placeholder == "" {
			want = append(want, r)
		} else {
			goes[r.Line] = true
		}
	}
	if len(goes) == 0 {
		return text, nil
	}
	if builds := workspace.Value(root, allowBuilds); len(builds.Content) == 2*len(goes) {
		for i := 0; i < len(root.Content); i += 2 {
			if root.Content[i].Value == allowBuilds {
				goes[root.Content[i].Line] = true // nothing is left in it
			}
		}
	}
	var kept [][]byte
	for i, line := range bytes.SplitAfter(text, []byte("\n")) {
		if !goes[i+1] {
			kept = append(kept, line)
		}
	}
	edited := bytes.Join(kept, nil)
	after, err := PnpmApprovals(edited, nil)
	same := func(a, b PnpmRule) bool {
		return a.Package == b.Package && a.Allowed == b.Allowed && b.Placeholder == ""
	}
	if err != nil || !slices.EqualFunc(want, after, same) {
		return nil, errors.New("the entries of allowBuilds do not stand on lines of their own")
	}
	return edited, nil
}
