package install

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"dsh/internal/fault"
	"dsh/internal/profile"
)

// plugins is a registry with plugins that bring packages of the harness.
func plugins() shelf {
	return shelf{
		"p@1.0.0":                        {"m@*", "@deepseek-ai/schemastery@*"},
		"m@1.0.0":                        {"@deepseek-ai/dsh-tools@^0.1.0"},
		"q@1.0.0":                        {"@deepseek-ai/dsh-tools@^0.1.0", "cordis@^4"},
		"@deepseek-ai/dsh-tools@0.1.0":   {"@deepseek-ai/dsh-llm@*"},
		"@deepseek-ai/dsh-llm@0.1.0":     nil,
		"@deepseek-ai/schemastery@3.0.0": nil,
		"cordis@4.0.1":                   nil,
		"provided@1.0.0":                 nil,
		"r@1.0.0":                        {"?provided@*", "z@*"},
		"z@1.0.0":                        nil,
	}
}

func commandOf(words ...string) string { return strings.Join(words, " ") }

func testManifest(t testing.TB, text string) *profile.Manifest {
	t.Helper()
	m, err := profile.ParseManifest("package.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestHostReport(t *testing.T) {
	wishes := wish("p@*", "q@*")
	root, err := resolveShelf(t, plugins(), nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	lock, m := lockOf(root, wishes), testManifest(t, `{}`)
	copies, warnings := hostReport(nil, lock, m, WarnHosts, nil, commandOf)
	wantCopies := []HostCopy{
		{Package: "@deepseek-ai/dsh-tools", Version: "0.1.0", Chain: []string{"p@1.0.0", "m@1.0.0", "@deepseek-ai/dsh-tools@0.1.0"}},
		{Package: "@deepseek-ai/dsh-llm", Version: "0.1.0", Chain: []string{"p@1.0.0", "m@1.0.0", "@deepseek-ai/dsh-tools@0.1.0", "@deepseek-ai/dsh-llm@0.1.0"}},
		{Package: "@deepseek-ai/dsh-tools", Version: "0.1.0", Chain: []string{"q@1.0.0", "@deepseek-ai/dsh-tools@0.1.0"}},
		{Package: "cordis", Version: "4.0.1", Chain: []string{"q@1.0.0", "cordis@4.0.1"}},
		{Package: "@deepseek-ai/dsh-llm", Version: "0.1.0", Chain: []string{"q@1.0.0", "@deepseek-ai/dsh-tools@0.1.0", "@deepseek-ai/dsh-llm@0.1.0"}},
	}
	if diff := cmp.Diff(wantCopies, copies, cmpopts.IgnoreUnexported(HostCopy{})); diff != "" {
		t.Error(diff)
	}
	if len(warnings) != 2 ||
		!strings.Contains(warnings[0], "p@1.0.0 brings a second copy of packages of the harness: @deepseek-ai/dsh-tools@0.1.0 (the profile → p@1.0.0 → m@1.0.0 → @deepseek-ai/dsh-tools@0.1.0)") ||
		!strings.Contains(warnings[1], "q@1.0.0 brings") || !strings.Contains(warnings[1], `"hostPackages": "omit"`) {
		t.Errorf("got %q", warnings)
	}
	if _, warnings := hostReport(lock, lock, m, WarnHosts, nil, commandOf); len(warnings) > 0 {
		t.Errorf("what was so is said again: %q", warnings)
	}
	if _, warnings := hostReport(nil, lock, m, AllowHosts, nil, commandOf); len(warnings) > 0 {
		t.Errorf("what is allowed is said: %q", warnings)
	}
}

func TestHostAsTheProfilesOwnDependency(t *testing.T) {
	wishes := wish("@deepseek-ai/dsh-tools@*", "@deepseek-ai/schemastery@*")
	root, err := resolveShelf(t, plugins(), nil, wishes)
	if err != nil {
		t.Fatal(err)
	}
	lock := lockOf(root, wishes)
	_, warnings := hostReport(nil, lock, testManifest(t, `{}`), WarnHosts, nil, commandOf)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "the profile depends on @deepseek-ai/dsh-tools@0.1.0, which belongs to the installation") ||
		!strings.Contains(warnings[0], "remove @deepseek-ai/dsh-tools takes it out") {
		t.Errorf("got %q", warnings)
	}
	// A bundle is there to be installed; what it brings is told of.
	_, warnings = hostReport(nil, lock, testManifest(t, `{"dsh": {"profile": {"bundles": ["@deepseek-ai/dsh-tools"]}}}`), WarnHosts, nil, commandOf)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "brings a second copy of a package of the harness: @deepseek-ai/dsh-llm@0.1.0") {
		t.Errorf("got %q", warnings)
	}
}

func TestOmitHosts(t *testing.T) {
	wishes := wish("p@*", "q@*", "r@*")
	omit := Settings{Hosts: OmitHosts}
	resolve := func(settings Settings, locked *Lock, provides provider) *Lock {
		r := &resolver{find: plugins(), dir: "/p", locked: locked, settings: settings, provides: provides, fresh: func(string) bool { return false }}
		root, err := r.resolve(t.Context(), wishes)
		if err != nil {
			t.Fatal(err)
		}
		return lockOf(root, wishes)
	}
	names := func(l *Lock) []string {
		var names []string
		for at := range l.Nodes {
			names = append(names, nameAt(at))
		}
		slices.Sort(names)
		return names
	}
	lock := resolve(omit, nil, nil)
	if diff := cmp.Diff([]string{"@deepseek-ai/schemastery", "m", "p", "provided", "q", "r", "z"}, names(lock)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"@deepseek-ai/dsh-tools", "cordis"}, lock.Omitted); diff != "" {
		t.Error(diff)
	}
	if err := lock.MadeFor(omit, nil); err != nil {
		t.Error(err)
	}
	if again := resolve(omit, lock, nil); string(again.Bytes()) != string(lock.Bytes()) {
		t.Errorf("with its own lockfile it becomes %s", again.Bytes())
	}
	if err := lock.MadeFor(Settings{Hosts: WarnHosts}, nil); fault.ClassOf(err) != fault.Package {
		t.Errorf("another policy: %v", err)
	}
	// What the installation does not have cannot be left to it.
	some := func(name string) (string, bool) { return "1.0.0", name == "cordis" || name == "provided" }
	lock = resolve(omit, lock, some)
	if diff := cmp.Diff([]string{"@deepseek-ai/dsh-llm", "@deepseek-ai/dsh-tools", "@deepseek-ai/schemastery", "m", "p", "q", "r", "z"}, names(lock)); diff != "" {
		t.Error(diff)
	}
	if err := lock.MadeFor(omit, some); err != nil {
		t.Error(err)
	}
	_, warnings := hostReport(nil, lock, testManifest(t, `{}`), OmitHosts, some, commandOf)
	if len(warnings) != 2 || !strings.Contains(warnings[0], "that the installation does not have, and that are installed all the same") {
		t.Errorf("got %q", warnings)
	}
	if err := lock.MadeFor(omit, nil); err == nil {
		t.Error("an installation that has more is no difference")
	}
	if with := resolve(Settings{Hosts: WarnHosts}, lock, some); len(with.Omitted) > 0 || len(with.Nodes) != 10 {
		t.Errorf("without the policy there are %q", names(with))
	}
}

func TestHostPeersAreMetByTheInstallation(t *testing.T) {
	s := shelf{"a@1.0.0": {"peer @deepseek-ai/dsh-tools@^9.0.0", "peer cordis@^9", "peer provided@^9"}, "@deepseek-ai/dsh-tools@9.0.0-rc.1": nil, "provided@9.0.0": nil}
	provides := func(name string) (string, bool) { return "1.0.0-rc.1", name == "provided" }
	wishes := wish("a@*")
	r := &resolver{find: s, dir: "/p", settings: Settings{AutoPeers: true, Hosts: WarnHosts}, provides: provides, fresh: func(string) bool { return false }}
	root, err := r.resolve(t.Context(), wishes)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
}

func TestImpossibleHostRange(t *testing.T) {
	for _, wishes := range [][]Wish{wish("@deepseek-ai/dsh-tools@>=0.2.0"), wish("x@*")} {
		s := plugins()
		s["x@1.0.0"] = []string{"@deepseek-ai/dsh-tools@>=0.2.0"}
		_, err := resolveShelf(t, s, nil, wishes)
		hint := fault.Hint(err)
		if err == nil || !strings.Contains(hint, "belongs to the installation") {
			t.Errorf("got %v, hint %q", err, hint)
		}
	}
}

func TestParseHostPolicy(t *testing.T) {
	for _, p := range []HostPolicy{WarnHosts, OmitHosts, AllowHosts} {
		if got, err := ParseHostPolicy(string(p)); got != p || err != nil {
			t.Errorf("%s: got %q, %v", p, got, err)
		}
	}
	if _, err := ParseHostPolicy("deny"); err == nil || !strings.Contains(err.Error(), "warn, omit and allow") {
		t.Errorf("got %v", err)
	}
}
