package install

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dsh/internal/fault"
)

func TestAutoPeers(t *testing.T) {
	for name, c := range map[string]struct {
		shelf  shelf
		wishes []Wish
		want   []string
		warns  string // what one warning says
	}{
		"a peer of the profile's dependency": {
			shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": {"q@*"}, "q@1.0.0": nil},
			wish("a@*"), []string{"a@1.0.0", "p@1.0.0", "q@1.0.0"}, "",
		},
		"one version for all": {
			shelf{"a@1.0.0": {"peer p@>=1"}, "b@1.0.0": {"peer p@^1 || ^2"}, "x@1.0.0": {"c@*"}, "c@1.0.0": {"peer p@<2.5"}, "p@1.0.0": nil, "p@2.0.0": nil, "p@2.7.0": nil, "p@3.0.0": nil},
			wish("a@*", "b@*", "x@*"), []string{"a@1.0.0", "b@1.0.0", "c@1.0.0", "p@2.0.0", "x@1.0.0"}, "",
		},
		"what somebody depends on is a peer as well": {
			shelf{"a@1.0.0": {"peer p@^1"}, "b@1.0.0": {"p@^1.0.0"}, "p@1.0.0": nil, "p@1.9.0": nil},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b@1.0.0", "p@1.9.0"}, "",
		},
		"a peer that is there and does not fit stays": {
			shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@*", "p@^2"), []string{"a@1.0.0", "p@2.0.0"}, "p@2.0.0 is not the peer that is asked for by a@1.0.0 (^1)",
		},
		"a peer takes the place of what only came up": {
			shelf{"a@1.0.0": {"peer p@^1"}, "b@1.0.0": {"p@^2"}, "p@1.0.0": nil, "p@1.2.0": nil, "p@2.0.0": nil},
			wish("a@*", "b@*"), []string{"a@1.0.0", "b > p@2.0.0", "b@1.0.0", "p@1.2.0"}, "",
		},
		"the same one level down": {
			shelf{"x@1.0.0": {"a@*", "p@^2"}, "a@1.0.0": {"peer p@^1"}, "p@1.2.0": nil, "p@2.0.0": {"q@*"}, "q@1.0.0": nil},
			wish("x@*"), []string{"a@1.0.0", "p@1.2.0", "q@1.0.0", "x > p@2.0.0", "x@1.0.0"}, "",
		},
		"a version that is right for dependency and peer": {
			shelf{"a@1.0.0": {"p@^1.9.0"}, "b@1.0.0": {"peer p@<1.10.0"}, "c@1.0.0": {"peer p@^1.3"}, "p@1.9.0": nil, "p@1.9.1": nil, "p@1.10.0": nil},
			wish("a@*", "b@*", "c@*"), []string{"a@1.0.0", "b@1.0.0", "c@1.0.0", "p@1.9.1"}, "",
		},
		"a peer that would take from another what it has": {
			shelf{"a@1.0.0": {"peer p@^1"}, "b@1.0.0": {"p@^2"}, "c@1.0.0": {"peer p@^2"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@*", "b@*", "c@*"), []string{"a@1.0.0", "b@1.0.0", "c@1.0.0", "p@2.0.0"}, "p@2.0.0 is not the peer that is asked for by a@1.0.0 (^1)",
		},
		"a peer of an optional dependency in the place of another": {
			shelf{"a@1.0.0": {"?o@*", "p@^2"}, "o@1.0.0": {"peer p@^1"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@*"), []string{"?o@1.0.0", "?p@1.0.0", "a > p@2.0.0", "a@1.0.0"}, "",
		},
		"peers of peers": {
			shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": {"peer q@*"}, "q@1.0.0": nil},
			wish("a@*"), []string{"a@1.0.0", "p@1.0.0", "q@1.0.0"}, "",
		},
		"a version whose peers suit": {
			shelf{"a@1.0.0": {"peer re@^1", "peer re-dom@>=1"}, "re@1.0.0": nil, "re@2.0.0": nil, "re-dom@1.0.0": {"peer re@^1"}, "re-dom@2.0.0": {"peer re@^2"}, "re-dom@2.1.0": {"peer re@^2"}},
			wish("a@*"), []string{"a@1.0.0", "re-dom@1.0.0", "re@1.0.0"}, "",
		},
		"a version whose peers suit nobody's": {
			shelf{"a@1.0.0": {"peer re@^1", "peer re-dom@>=2"}, "re@1.0.0": nil, "re@2.0.0": nil, "re-dom@1.0.0": {"peer re@^1"}, "re-dom@2.0.0": {"peer re@^2"}, "re-dom@2.1.0": {"peer re@^2"}},
			wish("a@*"), []string{"a@1.0.0", "re-dom@2.1.0", "re@1.0.0"}, "re@1.0.0 is not the peer that is asked for by re-dom@2.1.0 (^2)",
		},
		"peers of each other": {
			shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": {"peer a@*"}},
			wish("a@*"), []string{"a@1.0.0", "p@1.0.0"}, "",
		},
		"no version for all": {
			shelf{"a@1.0.0": {"peer p@^1"}, "x@1.0.0": {"b@*"}, "b@1.0.0": {"peer p@^2"}, "p@1.0.0": nil, "p@2.0.0": nil},
			wish("a@*", "x@*"), []string{"a@1.0.0", "b@1.0.0", "x@1.0.0"},
			"the peer p is not installed, for no version of it is right for all who ask:\n\tthe profile → a@1.0.0 → p@^1\n\tthe profile → x@1.0.0 → b@1.0.0 → p@^2",
		},
		"a peer that is not to be had": {
			shelf{"a@1.0.0": {"peer gone@^1"}},
			wish("a@*"), []string{"a@1.0.0"}, "the peer gone is not installed; asked for by a@1.0.0 (^1)",
		},
		"a peer of an optional dependency is optional": {
			shelf{"a@1.0.0": {"?o@*"}, "o@1.0.0": {"peer p@*"}, "p@1.0.0": nil},
			wish("a@*"), []string{"?o@1.0.0", "?p@1.0.0", "a@1.0.0"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := Settings{AutoPeers: true}
			root, err := resolveWith(t, c.shelf, nil, settings, c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, places(root, c.wishes)); diff != "" {
				t.Error(diff)
			}
			lock := lockOf(root, c.wishes)
			if problems := strings.Join(newPeerProblems(nil, lock), "\n"); problems != c.warns {
				t.Errorf("got %q", problems)
			}
			again, err := resolveWith(t, c.shelf, lock, settings, c.wishes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(lock.Bytes()), string(lockOf(again, c.wishes).Bytes())); diff != "" {
				t.Errorf("with its own lockfile: %s", diff)
			}
			if err := lock.MadeFor(Settings{}, nil); fault.ClassOf(err) != fault.Package {
				t.Errorf("for a profile that installs no peers: %v", err)
			}
		})
	}
}

// optionalPeer is a registry whose a has a peer that it can do without.
type optionalPeer struct{ shelf }

func (s optionalPeer) find(ctx context.Context, spec Spec) (*Package, error) {
	pkg, err := s.shelf.find(ctx, spec)
	if err == nil && pkg.Name == "a" {
		pkg.OptionalPeers = []string{"p"}
	}
	return pkg, err
}

func TestOptionalPeersAreNotInstalled(t *testing.T) {
	s := optionalPeer{shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil}}
	root, err := resolveWith(t, s, nil, Settings{AutoPeers: true}, wish("a@*"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0"}, places(root, wish("a@*"))); diff != "" {
		t.Error(diff)
	}
}

func TestLockedPeersStay(t *testing.T) {
	s := shelf{"a@1.0.0": {"peer p@^1"}, "p@1.0.0": nil}
	settings, wishes := Settings{AutoPeers: true}, wish("a@*")
	root, err := resolveWith(t, s, nil, settings, wishes)
	if err != nil {
		t.Fatal(err)
	}
	s["p@1.5.0"], s["b@1.0.0"] = nil, []string{"peer p@^1"}
	wishes = wish("a@*", "b@*")
	if root, err = resolveWith(t, s, lockOf(root, wish("a@*")), settings, wishes); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a@1.0.0", "b@1.0.0", "p@1.0.0"}, places(root, wishes)); diff != "" {
		t.Error(diff)
	}
}

func TestPeersOfTheHarnessAreInstalledWithIt(t *testing.T) {
	s := shelf{"@deepseek-ai/dsh@1.0.0": {"peer @deepseek-ai/dsh-fs@*"}, "@deepseek-ai/dsh-fs@1.0.0": nil}
	wishes := wish("@deepseek-ai/dsh@*")
	for policy, want := range map[HostPolicy][]string{
		WarnHosts:  {"@deepseek-ai/dsh@1.0.0"},
		AllowHosts: {"@deepseek-ai/dsh-fs@1.0.0", "@deepseek-ai/dsh@1.0.0"},
	} {
		root, err := resolveWith(t, s, nil, Settings{AutoPeers: true, Hosts: policy}, wishes)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, places(root, wishes)); diff != "" {
			t.Errorf("%s: %s", policy, diff)
		}
	}
}
