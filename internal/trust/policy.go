package trust

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"dsh/internal/fault"
)

// PolicyName is the file in the home that holds the rules of a team.
const PolicyName = "policy.yaml"

// Rule is one rule of a policy, by its key in the file.
type Rule string

// The rules.
const (
	RegistriesRule Rule = "registries"
	SourcesRule    Rule = "sources"
	HostsRule      Rule = "hosts"
	ScopesRule     Rule = "scopes"
	LicencesRule   Rule = "licences"
	MinimumAgeRule Rule = "minimumAge"
	SignaturesRule Rule = "signatures"
	MalwareRule    Rule = "malware"
)

// rules is all of them, those that can have exemptions.
var rules = []Rule{RegistriesRule, SourcesRule, HostsRule, ScopesRule, LicencesRule, MinimumAgeRule, SignaturesRule, MalwareRule}

// Source is where the content of a package comes from, as a policy names it.
type Source string

// The sources.
const (
	FromRegistry Source = "registry"
	FromGit      Source = "git"
	FromURL      Source = "url"
	FromArchive  Source = "archive" // a file on this machine
	FromFolder   Source = "folder"  // a folder on this machine, copied
	FromLink     Source = "link"    // a folder on this machine, linked
)

var sources = []Source{FromRegistry, FromGit, FromURL, FromArchive, FromFolder, FromLink}

// Signatures says what becomes of the signatures that registries make over
// packages.
type Signatures string

// What becomes of them.
const (
	SignaturesChecked  Signatures = "checked"  // a wrong one refuses; the default
	SignaturesRequired Signatures = "required" // one that is missing or cannot be checked refuses as well
	SignaturesIgnored  Signatures = "ignored"  // nobody looks at them
)

// unscoped stands in the list of scopes for packages without one.
const unscoped = "unscoped"

// Limits bound what one package may be. A zero field is no wish.
type Limits struct {
	Unpacked int64 `json:"unpacked,omitempty"` // bytes of its files
	Entries  int   `json:"entries,omitempty"`  // of its archive
	Ratio    int   `json:"ratio,omitempty"`    // bytes unpacked for each packed one
	Path     int   `json:"path,omitempty"`     // bytes of a name in its archive
}

// Policy is the rules that packages are held against. A nil Policy, or an empty
// list, restricts nothing.
type Policy struct {
	File       string        `json:"-"`
	Registries []string      `json:"registries,omitempty"` // addresses, each with a slash at its end
	Sources    []Source      `json:"sources,omitempty"`
	Hosts      []string      `json:"hosts,omitempty"`    // in lower case; *.x is any below x
	Scopes     []string      `json:"scopes,omitempty"`   // "@scope", or "unscoped"
	Licences   []string      `json:"licences,omitempty"` // SPDX identifiers, or texts that packages have in their place
	MinimumAge time.Duration `json:"-"`                  // in JSON it is as Age writes it
	Signatures Signatures    `json:"signatures"`
	// Malware is whether packages that are known to be malicious are let in with
	// a warning: "warn", or "refuse".
	Malware string              `json:"malware"`
	Limits  Limits              `json:"limits,omitzero"`
	Exempt  map[Rule][]Exempted `json:"exempt,omitempty"`

	lines map[Rule]int // of the keys in the file
}

// Age is MinimumAge as policies have it, "" where there is none.
func (p *Policy) Age() string {
	const day = 24 * time.Hour
	switch days, rest := p.MinimumAge/day, p.MinimumAge%day; {
	case p.MinimumAge == 0:
		return ""
	case rest == 0:
		return fmt.Sprintf("%dd", days)
	case days == 0:
		return fmt.Sprintf("%dm", rest/time.Minute)
	default:
		return fmt.Sprintf("%dd%dm", days, rest/time.Minute)
	}
}

// MarshalJSON writes the policy with the age as policies have it.
func (p *Policy) MarshalJSON() ([]byte, error) {
	type plain Policy
	return json.Marshal(struct {
		*plain
		Age string `json:"minimumAge,omitempty"`
	}{(*plain)(p), p.Age()})
}

// Exempted is a package to which a rule does not apply.
type Exempted struct {
	Name    string // * stands for anything but a slash
	Version string // "" for all
}

// MarshalText writes name@version.
func (e Exempted) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

func (e Exempted) String() string {
	if e.Version == "" {
		return e.Name
	}
	return e.Name + "@" + e.Version
}

func (e Exempted) covers(name, version string) bool {
	if e.Version != "" && e.Version != version {
		return false
	}
	matched, err := path.Match(e.Name, name) // * does not match a slash
	return err == nil && matched
}

// Subject is a package as the rules look at it.
type Subject struct {
	Name, Version string
	Source        Source
	Direct        bool // the profile itself depends on it
	// Addresses are where a package of a registry comes from: its registry, and
	// its archive where that is elsewhere.
	Addresses []string
	// Address is where a package of a git repository or an address comes from.
	Address string
	// Shown makes an address fit to be shown; nil shows it as it is.
	Shown func(address string) string
}

func (s Subject) describe() string {
	if s.Version == "" {
		return s.Name
	}
	return s.Name + "@" + s.Version
}

func (s Subject) shown(address string) string {
	if s.Shown == nil {
		return address
	}
	return s.Shown(address)
}

// Signed is what becomes of signatures. That of a nil Policy is the default.
func (p *Policy) Signed() Signatures {
	if p == nil {
		return SignaturesChecked
	}
	return p.Signatures
}

// LimitsLine is the line of the limits in the file.
func (p *Policy) LimitsLine() int { return p.lines["limits"] }

// RefusesMalware reports whether what is known to be malicious is refused.
func (p *Policy) RefusesMalware() bool { return p == nil || p.Malware != "warn" }

// IsExempt reports whether a rule does not apply to a package.
func (p *Policy) IsExempt(rule Rule, name, version string) bool {
	return p != nil && slices.ContainsFunc(p.Exempt[rule], func(e Exempted) bool { return e.covers(name, version) })
}

// ExemptVersions says to which versions of a package a rule does not apply: to
// all, or to some.
func (p *Policy) ExemptVersions(rule Rule, name string) (all bool, versions []string) {
	if p == nil {
		return false, nil
	}
	for _, e := range p.Exempt[rule] {
		switch {
		case !e.covers(name, e.Version):
		case e.Version == "":
			return true, nil
		default:
			versions = append(versions, e.Version)
		}
	}
	return false, versions
}

// ForBuilding is the policy for what a package needs while it is built: that is
// none of the profile's own, and does not come into it.
func (p *Policy) ForBuilding() *Policy {
	if p == nil {
		return nil
	}
	own := *p
	own.Scopes, own.Licences = nil, nil
	return &own
}

// Violation is that a package breaks a rule.
func (p *Policy) Violation(rule Rule, pkg, why string) *ViolationError {
	v := &ViolationError{Rule: rule, Package: pkg, Why: why}
	if p != nil {
		v.File, v.Line = p.File, p.lines[rule]
	}
	return v
}

// Check holds a package against the rules about where it comes from, which
// nothing has to be fetched for.
func (p *Policy) Check(s Subject) []*ViolationError {
	if p == nil {
		return nil
	}
	var broken []*ViolationError
	refuse := func(rule Rule, format string, args ...any) {
		if !p.IsExempt(rule, s.Name, s.Version) {
			broken = append(broken, p.Violation(rule, s.describe(), fmt.Sprintf(format, args...)))
		}
	}
	if len(p.Sources) > 0 && !slices.Contains(p.Sources, s.Source) {
		refuse(SourcesRule, "it comes from a source of the kind %s", s.Source)
	}
	if s.Source == FromRegistry && len(p.Registries) > 0 {
		for _, address := range s.Addresses {
			if !p.allowsRegistry(address) {
				refuse(RegistriesRule, "it comes from %s", s.shown(address))
				break
			}
		}
	}
	if (s.Source == FromGit || s.Source == FromURL) && len(p.Hosts) > 0 && !p.allowsHost(s.Address) {
		refuse(HostsRule, "it comes from %s", s.shown(s.Address))
	}
	if s.Direct && len(p.Scopes) > 0 && s.Name != "" {
		scope, _, scoped := strings.Cut(s.Name, "/")
		switch {
		case !scoped && !slices.Contains(p.Scopes, unscoped):
			refuse(ScopesRule, "it has no scope")
		case scoped && !slices.Contains(p.Scopes, scope):
			refuse(ScopesRule, "its scope is %s", scope)
		}
	}
	return broken
}

// allowsRegistry reports whether an address is below one of the registries. A
// path that servers may read in two ways has to be below it in both.
func (p *Policy) allowsRegistry(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	plain, escaped := path.Clean("/"+u.Path)+"/", u.EscapedPath()+"/"
	for _, registry := range p.Registries {
		r, err := url.Parse(registry)
		if err == nil && r.Scheme == u.Scheme && hostPort(r) == hostPort(u) &&
			strings.HasPrefix(plain, r.Path) && strings.HasPrefix(escaped, r.EscapedPath()) {
			return true
		}
	}
	return false
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// allowsHost reports whether the host of an address is listed, with its port
// where that is listed.
func (p *Policy) allowsHost(address string) bool {
	host, port := HostOf(address)
	return slices.ContainsFunc(p.Hosts, func(listed string) bool {
		if name, want, ok := strings.Cut(listed, ":"); ok {
			if want != port {
				return false
			}
			listed = name
		}
		if parent, ok := strings.CutPrefix(listed, "*"); ok {
			return strings.HasSuffix(host, parent) && host != parent
		}
		return host == listed
	})
}

// HostOf is the host of an address or git remote, in lower case, and its port,
// "" for the usual one. That of a repository on this machine is localhost.
func HostOf(address string) (host, port string) {
	address = strings.TrimPrefix(address, "git+")
	if u, err := url.Parse(address); err == nil && strings.Contains(address, "://") {
		if u.Scheme == "file" {
			return "localhost", ""
		}
		return strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	}
	// As ssh has it: user@host:path.
	if host, _, ok := strings.Cut(address, ":"); ok {
		return strings.ToLower(host[strings.LastIndexByte(host, '@')+1:]), ""
	}
	return "", ""
}

// CheckAge holds the time at which a version was published against the rule
// about age; the zero time is one that nobody knows. unknown says why.
func (p *Policy) CheckAge(name, version string, published, now time.Time, unknown string) *ViolationError {
	if p == nil || p.MinimumAge == 0 || p.IsExempt(MinimumAgeRule, name, version) {
		return nil
	}
	pkg := name + "@" + version
	if published.IsZero() {
		return p.Violation(MinimumAgeRule, pkg, unknown)
	}
	allowed := published.Add(p.MinimumAge)
	if !allowed.After(now) {
		return nil
	}
	return p.Violation(MinimumAgeRule, pkg, fmt.Sprintf("it was published at %s, and is allowed from %s on", stamp(published), stamp(allowed)))
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

// CheckLicence holds the licence that a package.json declares against the rule
// about licences.
func (p *Policy) CheckLicence(name, version string, packageJSON []byte) *ViolationError {
	if p == nil || len(p.Licences) == 0 || p.IsExempt(LicencesRule, name, version) {
		return nil
	}
	pkg := name
	if version != "" {
		pkg += "@" + version
	}
	if why := p.licenceRefused(DeclaredLicence(packageJSON)); why != "" {
		return p.Violation(LicencesRule, pkg, why)
	}
	return nil
}

// licenceRefused says why a licence is not allowed, "" where it is.
func (p *Policy) licenceRefused(declared string) string {
	listed := func(id string) bool {
		return slices.ContainsFunc(p.Licences, func(l string) bool { return strings.EqualFold(l, id) })
	}
	if declared == "" {
		return "it names no licence"
	}
	if listed(declared) {
		return ""
	}
	if declared == "UNLICENSED" {
		return "its licence is UNLICENSED, which allows nobody to use it"
	}
	expression, err := ParseLicence(declared)
	if err != nil {
		return fmt.Sprintf("its licence is %q, which is no SPDX expression", bounded(declared))
	}
	if expression.metBy(listed) {
		return ""
	}
	return "its licence is " + bounded(declared)
}

// bounded keeps a text of somebody else short.
func bounded(text string) string {
	if runes := []rune(text); len(runes) > 100 {
		return string(runes[:100]) + "…"
	}
	return text
}

// ViolationError says that a package breaks a rule.
type ViolationError struct {
	Rule    Rule   `json:"rule"`
	File    string `json:"file,omitempty"` // the policy; "" where nobody had to write the rule down
	Line    int    `json:"line,omitempty"`
	Package string `json:"package"`
	Why     string `json:"why"`
	// Chain is who brings it, from the profile's dependency down to it.
	Chain []string `json:"chain,omitempty"`
}

func (e *ViolationError) Error() string { return e.text() + e.rule() }

func (e *ViolationError) text() string {
	text := e.Package + ": " + e.Why
	if len(e.Chain) > 1 {
		text += " (the profile → " + strings.Join(e.Chain, " → ") + ")"
	}
	return text
}

func (e *ViolationError) rule() string {
	switch {
	case e.File == "":
		return ""
	case e.Line == 0:
		return fmt.Sprintf("; rule %s of %s", e.Rule, e.File)
	}
	return fmt.Sprintf("; rule %s of %s, line %d", e.Rule, e.File, e.Line)
}

// Class implements fault.Classed.
func (e *ViolationError) Class() fault.Class { return fault.Policy }

// Violations is all that a change, or a profile, breaks; it is not empty.
type Violations []*ViolationError

// Error names each with its rule, and the file once.
func (v Violations) Error() string {
	if len(v) == 1 {
		return v[0].Error()
	}
	var b strings.Builder
	b.WriteString("packages are refused")
	if i := slices.IndexFunc(v, func(e *ViolationError) bool { return e.File != "" }); i >= 0 {
		b.WriteString(" by " + v[i].File)
	}
	for _, e := range v {
		fmt.Fprintf(&b, "\n\t%s: %s", e.Rule, e.text())
	}
	return b.String()
}

// Class implements fault.Classed.
func (v Violations) Class() fault.Class { return fault.Policy }

// hinted is how many packages a hint names, so that it stays one to read.
const hinted = 20

// Hint says how the packages are let through, all in one.
func (v Violations) Hint() string {
	named := map[Rule][]string{}
	var order []Rule
	n, more := 0, ""
	for _, e := range v {
		quoted := strconv.Quote(e.Package)
		switch {
		case e.File == "" || slices.Contains(named[e.Rule], quoted):
			continue
		case n == hinted:
			more = " (and more)"
			continue
		case named[e.Rule] == nil:
			order = append(order, e.Rule)
		}
		named[e.Rule] = append(named[e.Rule], quoted)
		n++
	}
	if n == 0 {
		return ""
	}
	subject := "a package that is to be let through is"
	if n > 1 {
		subject = "packages that are to be let through are"
	}
	var exempt []string
	for _, rule := range order {
		exempt = append(exempt, fmt.Sprintf("%s: [%s]", rule, strings.Join(named[rule], ", ")))
	}
	return fmt.Sprintf("nothing was changed; %s named in the policy: exempt: { %s }%s", subject, strings.Join(exempt, ", "), more)
}

// Unwrap gives the single ones to errors.As.
func (v Violations) Unwrap() []error {
	list := make([]error, len(v))
	for i, e := range v {
		list[i] = e
	}
	return list
}

// Refusal is the error of some violations, nil of none.
func Refusal(v []*ViolationError) error {
	if len(v) == 0 {
		return nil
	}
	return Violations(v)
}
