package trust

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dsh/internal/fault"
)

func policy(t *testing.T, text string) *Policy {
	t.Helper()
	p, err := ParsePolicy("policy.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestParsePolicy(t *testing.T) {
	p := policy(t, `# of the team
registries: [https://registry.npmjs.org, "http://127.0.0.1:4873/npm/"]
sources: [registry, git]
hosts:
  - GitHub.com
  - "*.example.com"
scopes: ["@acme", unscoped]
licences: [MIT, GPL-2.0-only WITH Classpath-exception-2.0]
minimumAge: 1d12h
signatures: required
malware: warn
limits: { unpacked: 512MiB, entries: 1000, ratio: 50, path: 300 }
exempt:
  licences: [odd@1.0.0]
  minimumAge: ["@acme/*", fast]
`)
	want := &Policy{
		File: "policy.yaml", Registries: []string{"https://registry.npmjs.org/", "http://127.0.0.1:4873/npm/"},
		Sources: []Source{FromRegistry, FromGit}, Hosts: []string{"github.com", "*.example.com"}, Scopes: []string{"@acme", "unscoped"},
		Licences: []string{"MIT", "GPL-2.0-only WITH Classpath-exception-2.0"}, MinimumAge: 36 * time.Hour, Signatures: SignaturesRequired, Malware: "warn",
		Limits: Limits{Unpacked: 512 << 20, Entries: 1000, Ratio: 50, Path: 300},
		Exempt: map[Rule][]Exempted{LicencesRule: {{"odd", "1.0.0"}}, MinimumAgeRule: {{"@acme/*", ""}, {"fast", ""}}},
		lines: map[Rule]int{
			RegistriesRule: 2, SourcesRule: 3, HostsRule: 4, ScopesRule: 7, LicencesRule: 8, MinimumAgeRule: 9, SignaturesRule: 10, MalwareRule: 11, "limits": 12, "exempt": 13,
		},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("got  %+v\nwant %+v", p, want)
	}
	text, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(text), `"minimumAge":"1d720m"`) || !strings.Contains(string(text), `"exempt":{"licences":["odd@1.0.0"],"minimumAge":["@acme/*","fast"]}`) {
		t.Errorf("in JSON: %s, %v", text, err)
	}
	for _, empty := range []string{"", "# nothing\n", "\ufeff", "---\n"} {
		p := policy(t, empty)
		if p.Signed() != SignaturesChecked || !p.RefusesMalware() || len(p.Check(Subject{Name: "a", Source: FromLink, Direct: true})) > 0 {
			t.Errorf("%q restricts: %+v", empty, p)
		}
	}
}

func TestParsePolicyRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"licenses: [MIT]":                              `line 1: there is no rule "licenses"; there are limits, exempt, registries`,
		"scopes: ['@a']\nscopes: ['@b']":               `line 2: "scopes" is there twice`,
		"- a":                                          "line 1: the policy must be a mapping",
		"text":                                         "line 1: the policy must be a mapping",
		"scopes: '@a'":                                 "line 1: scopes must be a list",
		"scopes: []":                                   "line 1: scopes is empty",
		"scopes: [acme]":                               `"acme" is no scope`,
		"scopes: ['@a/b']":                             "is no scope",
		"scopes: [~]":                                  "an entry of scopes must be one value",
		"scopes: [['@a']]":                             "an entry of scopes must be one value",
		"\n\nsources: [npm]":                           `line 3: an entry of sources: "npm" is none of registry, git, url, archive, folder, link`,
		"registries: [registry.npmjs.org]":             "is no http or https address",
		"registries: ['https://u:p@h/']":               "has more in it",
		"registries: ['https://h/?a']":                 "has more in it",
		"hosts: ['https://github.com']":                "is no host name",
		"hosts: ['a*b']":                               "is no host name",
		"hosts: ['a:b']":                               "is no host name",
		"hosts: ['']":                                  "is no host name",
		"licences: [MIT OR ISC]":                       "are listed one by one",
		"licences: ['']":                               "is no licence",
		"minimumAge: 3":                                "is no age",
		"minimumAge: 3y":                               "is no age",
		"minimumAge: ''":                               "is no age",
		"minimumAge: -3d":                              "is no age",
		"minimumAge: 2000000000w":                      "is no age",
		"minimumAge: [3d]":                             "must be one value",
		"signatures: yes":                              "is none of required, checked, ignored",
		"malware: allow":                               "is none of refuse, warn",
		"limits: 3":                                    "limits must be a mapping",
		"limits: {files: 3}":                           `there is no limit "files"`,
		"limits: {unpacked: 0}":                        "is no size",
		"limits: {unpacked: 3TB}":                      "is no size",
		"limits: {unpacked: 9999999999GiB}":            "is no size",
		"limits: {entries: -1}":                        "is no number above 0",
		"limits: {ratio: 1.5}":                         "is no number above 0",
		"exempt: {licenses: [a]}":                      `exempt names a rule "licenses"`,
		"exempt: {licences: ['a@']}":                   "has no version",
		"exempt: {licences: ['a@^1']}":                 "is no package",
		"exempt: {licences: ['a b']}":                  "is no package",
		"exempt: {licences: []}":                       "exempt.licences is empty",
		"? [a]\n: b":                                   "must be one word",
		"a: b\n---\nc: d":                              "more than one document",
		"a: [":                                         "did not find expected",
		"\tscopes: ['@a']":                             "cannot start any token",
		"x: &a [MIT]\nlicences: *a":                    `there is no rule "x"`,
		"scopes: &a ['@a']\nlicences: *a":              "licences must be a list",
		"<<: {scopes: ['@a']}":                         `there is no rule "<<"`,
		"scopes: ['@a']\n...\nlicences: [MIT]":         "line 2: ",
		strings.Repeat("#", maxPolicy+1):               "longer than",
		"hosts: [github.com]\n  x: y":                  "yaml",
		"scopes: ['" + strings.Repeat("x", 5e3) + "']": "…",
	} {
		p, err := ParsePolicy("the/policy.yaml", []byte(text))
		if err == nil {
			t.Errorf("%q is read as %+v", text, p)
			continue
		}
		if want == "yaml" {
			want = "line " // whatever the library says
		}
		if !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "policy the/policy.yaml: ") || fault.ClassOf(err) != fault.Policy || len(err.Error()) > 600 {
			t.Errorf("%.50q: %v", text, err)
		}
	}
}

func TestReadPolicy(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, PolicyName)
	if p, err := ReadPolicy(file); p != nil || err != nil {
		t.Errorf("without a file: %v, %v", p, err)
	}
	if err := os.WriteFile(file, []byte("signatures: ignored"), 0o600); err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPolicy(file); err != nil || p.Signed() != SignaturesIgnored || p.File != file {
		t.Errorf("got %+v, %v", p, err)
	}
	if p, err := ReadPolicy(dir); err == nil {
		t.Errorf("a directory: %v", p)
	}
	// A shared policy that is out of reach must not be one that allows everything.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "gone"), link); err != nil {
		t.Fatal(err)
	}
	if p, err := ReadPolicy(link); err == nil {
		t.Errorf("a link to nothing: %v", p)
	}
}

func TestCheck(t *testing.T) {
	const npm = "https://registry.npmjs.org/"
	for name, c := range map[string]struct {
		policy  string
		subject Subject
		want    Rule // "" for none
	}{
		"its registry":              {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{npm, npm + "a/-/a-1.tgz"}}, ""},
		"with its port":             {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://REGISTRY.npmjs.org:443/a"}}, ""},
		"another registry":          {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://other/"}}, RegistriesRule},
		"another archive":           {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{npm, "https://other/a.tgz"}}, RegistriesRule},
		"another scheme":            {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"http://registry.npmjs.org/"}}, RegistriesRule},
		"a longer name":             {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://registry.npmjs.org.evil.com/"}}, RegistriesRule},
		"a name in front":           {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://registry.npmjs.org@evil.com/"}}, RegistriesRule},
		"no address":                {"registries: [" + npm + "]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"://"}}, RegistriesRule},
		"below its path":            {"registries: [https://h/npm]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/npm/a"}}, ""},
		"its path itself":           {"registries: [https://h/npm/]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/npm"}}, ""},
		"beside its path":           {"registries: [https://h/npm]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/npm-evil/a"}}, RegistriesRule},
		"out of its path":           {"registries: [https://h/npm]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/npm/../evil/a"}}, RegistriesRule},
		"out of it, escaped":        {"registries: [https://h/npm]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/npm/%2e%2e/evil/a"}}, RegistriesRule},
		"into it, escaped":          {"registries: [https://h/npm]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{"https://h/evil/..%2fnpm/a"}}, RegistriesRule},
		"an address is no registry": {"registries: [" + npm + "]", Subject{Name: "a", Source: FromURL, Address: "https://other/a.tgz"}, ""},
		"its source":                {"sources: [registry]", Subject{Name: "a", Source: FromRegistry}, ""},
		"another source":            {"sources: [registry]", Subject{Name: "a", Source: FromGit}, SourcesRule},
		"its host":                  {"hosts: [github.com]", Subject{Name: "a", Source: FromGit, Address: "git+https://GitHub.com/o/r.git#abc"}, ""},
		"its host by ssh":           {"hosts: [github.com]", Subject{Name: "a", Source: FromGit, Address: "git@github.com:o/r.git"}, ""},
		"its host with a user":      {"hosts: [github.com]", Subject{Name: "a", Source: FromGit, Address: "git+ssh://git@github.com/o/r"}, ""},
		"its host in disguise":      {"hosts: [github.com]", Subject{Name: "a", Source: FromURL, Address: "https://github.com@evil.com/a.tgz"}, HostsRule},
		"its host with a dot":       {"hosts: [github.com]", Subject{Name: "a", Source: FromURL, Address: "https://github.com./a.tgz"}, ""},
		"below its host":            {"hosts: [github.com]", Subject{Name: "a", Source: FromURL, Address: "https://x.github.com/a.tgz"}, HostsRule},
		"any below":                 {"hosts: ['*.github.com']", Subject{Name: "a", Source: FromURL, Address: "https://x.github.com/a.tgz"}, ""},
		"any below is not it":       {"hosts: ['*.github.com']", Subject{Name: "a", Source: FromURL, Address: "https://github.com/a.tgz"}, HostsRule},
		"its port":                  {"hosts: ['h:8443']", Subject{Name: "a", Source: FromURL, Address: "https://h:8443/a.tgz"}, ""},
		"another port":              {"hosts: ['h:8443']", Subject{Name: "a", Source: FromURL, Address: "https://h/a.tgz"}, HostsRule},
		"this machine":              {"hosts: [github.com]", Subject{Name: "a", Source: FromGit, Address: "git+file:///x/r"}, HostsRule},
		"this machine, allowed":     {"hosts: [localhost]", Subject{Name: "a", Source: FromGit, Address: "git+file:///x/r"}, ""},
		"no host at all":            {"hosts: [github.com]", Subject{Name: "a", Source: FromGit, Address: "what"}, HostsRule},
		"a registry is no host":     {"hosts: [github.com]", Subject{Name: "a", Source: FromRegistry, Addresses: []string{npm}}, ""},
		"its scope":                 {"scopes: ['@a']", Subject{Name: "@a/b", Direct: true}, ""},
		"another scope":             {"scopes: ['@a']", Subject{Name: "@ab/b", Direct: true}, ScopesRule},
		"no scope":                  {"scopes: ['@a']", Subject{Name: "b", Direct: true}, ScopesRule},
		"no scope, allowed":         {"scopes: [unscoped]", Subject{Name: "b", Direct: true}, ""},
		"a package of a package":    {"scopes: ['@a']", Subject{Name: "b"}, ""},
		"exempt":                    {"scopes: ['@a']\nexempt: {scopes: [b]}", Subject{Name: "b", Version: "1.0.0", Direct: true}, ""},
		"exempt in one version":     {"scopes: ['@a']\nexempt: {scopes: [b@1.0.0]}", Subject{Name: "b", Version: "1.0.1", Direct: true}, ScopesRule},
		"exempt by a pattern":       {"scopes: ['@a']\nexempt: {scopes: ['@b/*']}", Subject{Name: "@b/c", Version: "1.0.1", Direct: true}, ""},
		"exempt from another rule":  {"scopes: ['@a']\nexempt: {sources: [b]}", Subject{Name: "b", Version: "1.0.1", Direct: true}, ScopesRule},
		"a pattern stays in scope":  {"sources: [git]\nexempt: {sources: ['*']}", Subject{Name: "@b/c", Source: FromURL}, SourcesRule},
	} {
		p := policy(t, c.policy)
		got := p.Check(c.subject)
		switch {
		case c.want == "" && len(got) > 0:
			t.Errorf("%s: %v", name, Violations(got))
		case c.want != "" && (len(got) != 1 || got[0].Rule != c.want || got[0].File != "policy.yaml" || got[0].Line != 1):
			t.Errorf("%s: got %v", name, got)
		}
	}
	if (*Policy)(nil).Check(Subject{Name: "a"}) != nil {
		t.Error("no policy refuses")
	}
	both := policy(t, "sources: [git]\nscopes: ['@a']").Check(Subject{Name: "b", Version: "1.0.0", Source: FromRegistry, Direct: true})
	err := Refusal(both)
	if len(both) != 2 || fault.ClassOf(err) != fault.Policy || err.Error() != "packages are refused by policy.yaml\n\tsources: b@1.0.0: it comes from a source of the kind registry\n\tscopes: b@1.0.0: it has no scope" {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(fault.Hint(err), `packages that are to be let through are named in the policy: exempt: { sources: ["b@1.0.0"], scopes: ["b@1.0.0"] }`) {
		t.Errorf("hint: %s", fault.Hint(err))
	}
	one, ok := errors.AsType[*ViolationError](err)
	if !ok || one.Error() != "b@1.0.0: it comes from a source of the kind registry; rule sources of policy.yaml, line 1" {
		t.Errorf("one: %v", one)
	}
	if Refusal(nil) != nil {
		t.Error("nothing is a refusal")
	}
}

// TestHintLetsAllThrough: what the hint says to write is a policy by which nothing of
// the refusal is refused again.
func TestHintLetsAllThrough(t *testing.T) {
	text := "sources: [git]\nscopes: ['@a']\nlicences: [MIT]"
	subjects := []Subject{
		{Name: "b", Version: "1.0.0", Source: FromRegistry, Direct: true},
		{Name: "@b/c", Version: "2.0.0-rc.1", Source: FromRegistry, Direct: true},
		{Name: "b", Version: "1.0.1", Source: FromURL},
		{Name: "b", Version: "1.0.1", Source: FromURL}, // at a second place
	}
	broken := func(p *Policy) (all []*ViolationError) {
		for _, s := range subjects {
			all = append(all, p.Check(s)...)
			if v := p.CheckLicence(s.Name, s.Version, []byte(`{"license": "ISC"}`)); v != nil {
				all = append(all, v)
			}
		}
		return all
	}
	hint := fault.Hint(Refusal(broken(policy(t, text))))
	_, exempt, ok := strings.Cut(hint, "named in the policy: ")
	if !ok {
		t.Fatalf("hint: %s", hint)
	}
	if left := broken(policy(t, text+"\n"+exempt)); len(left) > 0 {
		t.Errorf("by %q there is still %v", exempt, Refusal(left))
	}

	many := make([]*ViolationError, 2*hinted)
	for i := range many {
		many[i] = &ViolationError{Rule: LicencesRule, File: "policy.yaml", Package: "p" + strconv.Itoa(i) + "@1.0.0"}
	}
	if hint := fault.Hint(Refusal(many)); strings.Count(hint, "@1.0.0") != hinted || !strings.HasSuffix(hint, "] } (and more)") {
		t.Errorf("hint for many: %s", hint)
	}
	if hint := fault.Hint(Refusal([]*ViolationError{{Rule: SignaturesRule, Package: "a@1.0.0"}})); hint != "" {
		t.Errorf("hint where no policy is: %s", hint)
	}
}

func TestCheckAge(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	p := policy(t, "minimumAge: 3d\nexempt: {minimumAge: [b, c@1.0.0]}")
	for name, c := range map[string]struct {
		name, version string
		published     time.Time
		want          string
	}{
		"old":             {"a", "1.0.0", now.Add(-100 * time.Hour), ""},
		"just old enough": {"a", "1.0.0", now.Add(-72 * time.Hour), ""},
		"young":           {"a", "1.0.0", now.Add(-71 * time.Hour), "a@1.0.0: it was published at 2026-03-01 13:00 UTC, and is allowed from 2026-03-04 13:00 UTC on"},
		"from the future": {"a", "1.0.0", now.Add(time.Hour), "a@1.0.0: it was published at 2026-03-04 13:00 UTC"},
		"unknown":         {"a", "1.0.0", time.Time{}, "a@1.0.0: nobody knows"},
		"exempt":          {"b", "1.0.0", now, ""},
		"exempt, once":    {"c", "1.0.0", time.Time{}, ""},
		"not exempt":      {"c", "1.0.1", now, "c@1.0.1: it was published"},
	} {
		got := p.CheckAge(c.name, c.version, c.published, now, "nobody knows")
		if (got == nil) != (c.want == "") || got != nil && !strings.HasPrefix(got.Error(), c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if all, _ := p.ExemptVersions(MinimumAgeRule, "b"); !all {
		t.Error("b is exempt in all versions")
	}
	if all, versions := p.ExemptVersions(MinimumAgeRule, "c"); all || !slices.Equal(versions, []string{"1.0.0"}) {
		t.Error("c is exempt in one version")
	}
}
