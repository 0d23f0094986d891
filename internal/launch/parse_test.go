package launch

import (
	"errors"
	"strings"
	"testing"

	"dsh/internal/fault"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/text/cases"
)

// same compares commands; whether an empty list is nil says nothing.
var same = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(Own{}, globals{}, once{}), cmpopts.IgnoreFields(Own{}, "implied")}

func noEnv(string) string { return "" }

// chose is a user's choice, "" for none.
func chose(name string) Choice { return func() (string, error) { return name, nil } }

// parse is Parse for a user who chose nothing.
func parse(args []string, getenv func(string) string) (Command, error) {
	return Parse(args, getenv, chose(""))
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func mustParse(t *testing.T, getenv func(string) string, args ...string) Command {
	t.Helper()
	cmd, err := parse(args, getenv)
	if err != nil {
		t.Fatalf("Parse(%q): %v", args, err)
	}
	return cmd
}

func boot(profile string, args ...string) Boot {
	return Boot{Launch: Launch{Profile: profile}, Args: args}
}

func TestParseBoot(t *testing.T) {
	tests := []struct {
		args []string
		want Command
	}{
		{[]string{"--profile", "x"}, boot("x")},
		{[]string{"--profile=x"}, boot("x")},
		{[]string{"--profile=a=b"}, boot("a=b")},
		{[]string{"x"}, boot("x")},
		{[]string{"--profile", "--patch"}, boot("--patch")},

		// The first unknown word starts the app's arguments.
		{[]string{"--profile", "tui", "--patch", "a.yml", "--resume", "b", "--patch", "late.yml"},
			Boot{Launch: Launch{Profile: "tui", Patches: []string{"a.yml"}}, Args: []string{"--resume", "b", "--patch", "late.yml"}}},
		{[]string{"x", "task", "--profile", "y"}, boot("x", "task", "--profile", "y")},
		{[]string{"x", "--profile-like"}, boot("x", "--profile-like")},
		{[]string{"x", "--dump-config=1"}, boot("x", "--dump-config=1")},
		{[]string{"x", "-"}, boot("x", "-")},
		{[]string{"x", "", "y"}, boot("x", "", "y")},

		// One "--" is taken away at that place.
		{[]string{"custom", "--", "--help"}, boot("custom", "--help")},
		{[]string{"custom", "--", "--", "task"}, boot("custom", "--", "task")},
		{[]string{"custom", "task", "--", "x"}, boot("custom", "task", "--", "x")},
		{[]string{"custom", "--"}, boot("custom")},

		// A shorthand may be followed by launcher options.
		{[]string{"web", "--from-default-profile", "web"}, Boot{Launch: Launch{Profile: "web", FromDefault: "web"}}},
		{[]string{"web", "--from-default-profile=web"}, Boot{Launch: Launch{Profile: "web", FromDefault: "web"}}},
		{[]string{"web", "--from-default-profile=a", "--from-default-profile=b"}, Boot{Launch: Launch{Profile: "web", FromDefault: "b"}}},
		{[]string{"web", "--patch=a", "--patch", "b"}, Boot{Launch: Launch{Profile: "web", Patches: []string{"a", "b"}}}},
		{[]string{"--patch", "a", "--profile", "web"}, Boot{Launch: Launch{Profile: "web", Patches: []string{"a"}}}},
		{[]string{"--patch", "--profile", "--profile", "web"}, Boot{Launch: Launch{Profile: "web", Patches: []string{"--profile"}}}},

		// "plugin" and the other commands are commands as the first word only.
		{[]string{"--profile", "x", "plugin", "add", "y"}, boot("x", "plugin", "add", "y")},
		{[]string{"--profile", "plugin"}, boot("plugin")},
		{[]string{"--profile", "store", "ls"}, boot("store", "ls")},
		{[]string{"headless", "web"}, boot("headless", "web")},
		{[]string{"headless", "plugin"}, boot("headless", "plugin")},

		// Help and version behind the profile.
		{[]string{"--profile", "web", "-h"}, boot("web", "-h")},
		{[]string{"web", "--help"}, boot("web", "--help")},
		{[]string{"custom", "task", "--version"}, boot("custom", "task", "--version")},
		{[]string{"custom", "--", "-V"}, boot("custom", "-V")},

		// No other profile but the template's target.
		{[]string{"--from-default-profile", "web"}, Boot{Launch: Launch{Profile: "default", Implied: true, FromDefault: "web"}}},
		{[]string{"--from-default-profile=web", "--port", "80"},
			Boot{Launch: Launch{Profile: "default", Implied: true, FromDefault: "web"}, Args: []string{"--port", "80"}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, mustParse(t, noEnv, tt.args...), same); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestParseShorthandIsProfile(t *testing.T) {
	tails := [][]string{
		{},
		{"some", "words"},
		{"--help"},
		{"-h"},
		{"web"},
		{"--patch", "a.yml", "--patch=b.yml"},
		{"--from-default-profile", "web", "--help"},
		{"--dump-config"},
		{"--dump-default-config"},
		{"--dump-config-schema"},
		{"task", "--patch", "late.yml"},
		{"--", "--help"},
		{"--", "--", "task"},
		{"plugin"},
		{"--", "plugin"},
	}
	for _, name := range []string{"web", "headless", "sdk", "sdk-minimal", "acp", "tui", "custom", "run", "help"} {
		for _, tail := range tails {
			short := mustParse(t, noEnv, append([]string{name}, tail...)...)
			long := mustParse(t, noEnv, append([]string{"--profile", name}, tail...)...)
			if diff := cmp.Diff(long, short, same); diff != "" {
				t.Errorf("%s %q (-long +short):\n%s", name, tail, diff)
			}
			if l, ok := launchOf(short); !ok || l.Profile != name || l.Implied {
				t.Errorf("%s %q: %#v", name, tail, short)
			}
		}
	}
}

func launchOf(cmd Command) (Launch, bool) {
	switch cmd := cmd.(type) {
	case Boot:
		return cmd.Launch, true
	case Dump:
		return cmd.Launch, true
	}
	return Launch{}, false
}

func TestParseHelpAndVersion(t *testing.T) {
	tests := []struct {
		args []string
		want Command
	}{
		{[]string{"--help"}, Help{}},
		{[]string{"-h"}, Help{}},
		{[]string{"--bogus", "-h"}, Help{}},
		{[]string{"--", "--help"}, Help{}},
		{[]string{"--dump-config", "--help"}, Help{}},
		{[]string{"--from-default-profile", "web", "--help"}, Help{}},
		{[]string{"--installation", "d", "--json", "-h"}, Help{}},
		{[]string{"--help", "--version"}, Help{}},
		{[]string{"--patch", "--help", "--profile", "x"}, Boot{Launch: Launch{Profile: "x", Patches: []string{"--help"}}}},

		{[]string{"--version"}, Version{}},
		{[]string{"-V"}, Version{}},
		{[]string{"-Vx"}, Version{}},
		{[]string{"custom", "--version"}, Version{}},
		{[]string{"custom", "-V", "task"}, Version{}},
		{[]string{"desktop", "--version"}, Version{}},
		{[]string{"", "--version"}, Version{}},
		{[]string{"--version", "--help"}, Version{}},
		{[]string{"--version", "plugin"}, Version{}},
		{[]string{"--dump-config", "--dump-config-schema", "-V"}, Version{}},
		{[]string{"--json", "--version"}, Version{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, mustParse(t, noEnv, tt.args...), same); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestParseDump(t *testing.T) {
	x := Launch{Profile: "x"}
	tests := []struct {
		args []string
		want Dump
	}{
		{[]string{"x", "--dump-config"}, Dump{x, Config}},
		{[]string{"x", "--dump-default-config"}, Dump{x, DefaultConfig}},
		{[]string{"x", "--dump-config-schema"}, Dump{x, ConfigSchema}},
		{[]string{"--dump-config", "--profile", "x"}, Dump{x, Config}},
		{[]string{"--dump-config", "--profile", "x", "--dump-config", "--"}, Dump{x, Config}},
		{[]string{"x", "--patch", "a", "--dump-config"}, Dump{Launch{Profile: "x", Patches: []string{"a"}}, Config}},
		{[]string{"x", "--patch", "a", "--dump-config-schema", "--patch=b"}, Dump{Launch{Profile: "x", Patches: []string{"a", "b"}}, ConfigSchema}},
		{[]string{"x", "--from-default-profile", "web", "--dump-default-config"}, Dump{Launch{Profile: "x", FromDefault: "web"}, DefaultConfig}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(Command(tt.want), mustParse(t, noEnv, tt.args...), same); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestParseImpliedProfile(t *testing.T) {
	tests := []struct {
		name   string
		getenv func(string) string
		args   []string
		want   Launch
	}{
		{"nothing set", noEnv, []string{"--dump-config"}, Launch{Profile: "default", Implied: true}},
		{"from the environment", env("DSH_PROFILE", "mine"), []string{"--dump-config"}, Launch{Profile: "mine", Implied: true}},
		{"blank is unset", env("DSH_PROFILE", " \t"), []string{"--dump-config-schema"}, Launch{Profile: "default", Implied: true}},
		{"a name wins", env("DSH_PROFILE", "mine"), []string{"x", "--dump-config"}, Launch{Profile: "x"}},
		{"the environment's own command name", env("DSH_PROFILE", "plugin"), []string{"--dump-config"}, Launch{Profile: "plugin", Implied: true}},
		{"a template never goes to $DSH_PROFILE", env("DSH_PROFILE", "mine"), []string{"--from-default-profile", "web"},
			Launch{Profile: "default", Implied: true, FromDefault: "web"}},
		{"nor when it is dumped", env("DSH_PROFILE", "mine"), []string{"--dump-config", "--from-default-profile=web"},
			Launch{Profile: "default", Implied: true, FromDefault: "web"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, _ := launchOf(mustParse(t, tt.getenv, tt.args...))
			if diff := cmp.Diff(tt.want, got, same); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseChosenProfile(t *testing.T) {
	refuses := errors.New("cannot be read")
	broken := func() (string, error) { return "", refuses }
	unasked := func() (string, error) { t.Error("the choice was asked for"); return "", nil }
	dump := []string{"--dump-config"}
	for _, tt := range []struct {
		name   string
		getenv func(string) string
		chosen Choice
		args   []string
		want   Launch
		err    error
	}{
		{"chosen", noEnv, chose("work"), dump, Launch{Profile: "work", Implied: true}, nil},
		{"nothing chosen", noEnv, chose(""), dump, Launch{Profile: "default", Implied: true}, nil},
		{"the environment wins", env("DSH_PROFILE", "mine"), unasked, dump, Launch{Profile: "mine", Implied: true}, nil},
		{"a name wins", noEnv, unasked, []string{"x", "--dump-config"}, Launch{Profile: "x"}, nil},
		{"so does --profile", noEnv, unasked, []string{"--profile=x"}, Launch{Profile: "x"}, nil},
		{"a template never goes to it", noEnv, unasked, []string{"--from-default-profile", "web"}, Launch{Profile: "default", Implied: true, FromDefault: "web"}, nil},
		{"help needs none", noEnv, unasked, []string{"--help"}, Launch{}, nil},
		{"nor does the version", noEnv, unasked, []string{"-V"}, Launch{}, nil},
		{"it cannot be read", noEnv, broken, dump, Launch{}, refuses},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, err := Parse(tt.args, tt.getenv, tt.chosen)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			got, _ := launchOf(cmd)
			if diff := cmp.Diff(tt.want, got, same); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for chosen, want := range map[string]string{"work": `profile "work"`, "": `profile "default"`} {
		_, err := Parse(nil, noEnv, chose(chosen))
		usage, ok := errors.AsType[*UsageError](err)
		if !ok || !strings.HasSuffix(strings.Join(usage.Extra, "\n"), want) {
			t.Errorf("without a word: %v", err)
		}
	}
	_, err := Parse(nil, noEnv, broken)
	if usage, ok := errors.AsType[*UsageError](err); !ok || len(usage.Extra) != 1 {
		t.Errorf("without a word and with a broken choice: %v", err)
	}
}

func TestParseOwnOptions(t *testing.T) {
	d := Global{Installation: "d"}
	tests := []struct {
		args []string
		want Command
	}{
		{[]string{"--installation", "d", "web", "--dump-config"}, Dump{Launch{Profile: "web", Global: d}, Config}},
		{[]string{"--installation=d", "web"}, Boot{Launch: Launch{Profile: "web", Global: d}}},
		{[]string{"--json", "--installation=d", "--profile", "web"}, Boot{Launch: Launch{Profile: "web", Global: Global{"d", true}}}},
		{[]string{"--json", "--json", "web"}, Boot{Launch: Launch{Profile: "web", Global: Global{JSON: true}}}},
		{[]string{"--patch", "a", "--installation", "d", "--profile", "web"},
			Boot{Launch: Launch{Profile: "web", Patches: []string{"a"}, Global: d}}},
		{[]string{"--dump-config", "--installation", "d"}, Dump{Launch{Profile: "default", Implied: true, Global: d}, Config}},

		{[]string{"--set", "a.b=1", "web"}, Boot{Launch: Launch{Profile: "web", Sets: []string{"a.b=1"}}}},
		{[]string{"--set=a.b=x=y", "--json", "--set", "c=", "--profile", "web", "t"},
			Boot{Launch: Launch{Profile: "web", Sets: []string{"a.b=x=y", "c="}, Global: Global{JSON: true}}, Args: []string{"t"}}},
		{[]string{"--set", "--json=1", "web"}, Boot{Launch: Launch{Profile: "web", Sets: []string{"--json=1"}}}},
		{[]string{"--patch", "-", "--set", "a.b=2", "--profile", "web", "--patch=a"},
			Boot{Launch: Launch{Profile: "web", Patches: []string{"-", "a"}, Sets: []string{"a.b=2"}}}},
		{[]string{"--set", "a.b=1", "web", "--dump-config"}, Dump{Launch{Profile: "web", Sets: []string{"a.b=1"}}, Config}},
		{[]string{"--dump-config-schema", "--set", "a.b=1"}, Dump{Launch{Profile: "default", Implied: true, Sets: []string{"a.b=1"}}, ConfigSchema}},
		{[]string{"--set", "a.b=1", "--from-default-profile", "web"}, Boot{Launch: Launch{Profile: "default", Implied: true, FromDefault: "web", Sets: []string{"a.b=1"}}}},
		{[]string{"--set", "a.b=1", "--help"}, Help{}},
		{[]string{"--set", "a.b=1", "--version"}, Version{}},

		// Behind the profile's name they are the app's.
		{[]string{"web", "--set", "a.b=1"}, boot("web", "--set", "a.b=1")},
		{[]string{"web", "--set"}, boot("web", "--set")},
		{[]string{"web", "--sets", "a.b=1"}, boot("web", "--sets", "a.b=1")},
		{[]string{"web", "--installation", "d"}, boot("web", "--installation", "d")},
		{[]string{"web", "--installation=d"}, boot("web", "--installation=d")},
		{[]string{"--profile", "web", "--json"}, boot("web", "--json")},
		{[]string{"--profile", "web", "--json=1"}, boot("web", "--json=1")},
		{[]string{"web", "--patch", "a", "--json"}, Boot{Launch: Launch{Profile: "web", Patches: []string{"a"}}, Args: []string{"--json"}}},
		{[]string{"--json", "web", "--json", "plugin"},
			Boot{Launch: Launch{Profile: "web", Global: Global{JSON: true}}, Args: []string{"--json", "plugin"}}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, mustParse(t, noEnv, tt.args...), same); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestParseInstallationFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		value string
		args  []string
		want  string
	}{
		{"/from/env", []string{"web"}, "/from/env"},
		{"/from/env", []string{"--installation", "d", "web"}, "d"},
		{"  ", []string{"web"}, ""},
	} {
		l, _ := launchOf(mustParse(t, env("DSH_INSTALLATION", tt.value), tt.args...))
		if l.Global.Installation != tt.want {
			t.Errorf("%q with %q: installation %q, want %q", tt.args, tt.value, l.Global.Installation, tt.want)
		}
	}
}

func TestParseOwnCommands(t *testing.T) {
	for _, name := range []string{"plugin", "profile", "config", "store", "trust", "mcp", "skills", "agent-plugin", "catalog", "installation", "completion"} {
		if !IsCommand(name) {
			t.Errorf("%s is no command", name)
		}
		for _, args := range [][]string{{name}, {name, "--profile", "x", "--", "y"}, {name, "-h"}, {name, "--version"}} {
			got := mustParse(t, noEnv, args...)
			if diff := cmp.Diff(Command(Own{Args: args}), got, same); diff != "" {
				t.Errorf("Parse(%q) (-want +got):\n%s", args, diff)
			}
			withOptions := mustParse(t, noEnv, append([]string{"--json", "--set", "a=1", "--installation=d"}, args...)...).(Own)
			if diff := cmp.Diff([]string{"a=1"}, withOptions.sets); diff != "" {
				t.Errorf("--set before %s (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(Global{"d", true}, withOptions.Global); diff != "" {
				t.Errorf("options before %s (-want +got):\n%s", name, diff)
			}
			if diff := cmp.Diff(args, withOptions.Args); diff != "" {
				t.Errorf("options before %s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff(Command(boot(name, "y")), mustParse(t, noEnv, "--profile", name, "y"), same); diff != "" {
			t.Errorf("--profile %s (-want +got):\n%s", name, diff)
		}
	}
	for _, name := range []string{"Plugin", "plugins", "run", "help", "web", ""} {
		if IsCommand(name) {
			t.Errorf("%q is a command", name)
		}
	}
}

func TestParseErrors(t *testing.T) {
	const (
		required  = "error: --profile <name> is required"
		needsName = "error: --profile needs a name"
		desktop   = `error: profile "desktop" is managed exclusively by the Electron application`
		exclusive = "error: --dump-config, --dump-default-config, and --dump-config-schema are mutually exclusive"
		noPatch   = "error: --dump-default-config prints the bundle layers and takes no --patch"
		noSet     = "error: --dump-default-config prints the bundle layers and takes no --set"
		needsSet  = "error: --set needs ROW.KEY=VALUE"
		twice     = "error: --patch - can be given only once"
		onceX     = "error: option '--profile <name>' argument 'x' is invalid. select a profile only once"
	)
	tests := []struct {
		args []string
		want string
	}{
		// No profile. Options and words that the launcher lost stay unknown.
		{[]string{}, required},
		{[]string{"--"}, required},
		{[]string{"--bogus"}, required},
		{[]string{"--bogus", "x"}, required},
		{[]string{"--config", "x"}, required},
		{[]string{"-p", "x"}, required},
		{[]string{"-"}, required},
		{[]string{"--patch", "a.yml", "tui"}, required},
		{[]string{"--patch=a.yml", "tui"}, required},
		{[]string{"--patch", "a.yml", "plugin", "add", "x"}, required},
		{[]string{"--", "tui"}, required},
		{[]string{"--patch="}, required},
		{[]string{"--dump-config=1"}, required},
		{[]string{"--json"}, required},
		{[]string{"--installation", "d", "--patch", "a", "tui"}, required},
		{[]string{"--installation", "d", "--", "tui"}, required},

		{[]string{"--profile", ""}, needsName},
		{[]string{"--profile="}, needsName},
		{[]string{""}, needsName},
		{[]string{"", "--dump-config", "--dump-config-schema", "x"}, needsName},
		{[]string{"--json", ""}, needsName},
		{[]string{"--profile", "", "--help"}, needsName},

		{[]string{"--profile", "x", "--profile", "y"}, "error: option '--profile <name>' argument 'y' is invalid. select a profile only once"},
		{[]string{"--profile=x", "--profile=x"}, onceX},
		{[]string{"x", "--profile", "x"}, onceX},
		{[]string{"x", "--profile=x"}, onceX},
		{[]string{"x", "--profile="}, "error: option '--profile <name>' argument '' is invalid. select a profile only once"},
		{[]string{"--profile=", "--profile=x"}, onceX},
		{[]string{"--json", "x", "--profile=x"}, onceX},

		{[]string{"--profile"}, "error: option '--profile <name>' argument missing"},
		{[]string{"x", "--patch"}, "error: option '--patch <path>' argument missing"},
		{[]string{"--patch"}, "error: option '--patch <path>' argument missing"},
		{[]string{"x", "--from-default-profile"}, "error: option '--from-default-profile <name>' argument missing"},
		{[]string{"x", "--profile"}, "error: option '--profile <name>' argument missing"},

		{[]string{"desktop"}, desktop},
		{[]string{"Desktop"}, desktop},
		{[]string{"--profile", "DESKTOP"}, desktop},
		{[]string{"--profile=desktops"}, ""},
		{[]string{"--profile=de\u017fktop"}, desktop}, // long s
		{[]string{"--profile=des\u212Atop"}, desktop}, // Kelvin sign
		{[]string{"desktop", "--dump-config"}, desktop},
		{[]string{"desktop", "--patch=", "x"}, desktop},

		{[]string{"x", "--patch="}, "error: --patch needs a path"},
		{[]string{"x", "--patch", ""}, "error: --patch needs a path"},
		{[]string{"x", "--patch=a", "--patch=", "--from-default-profile="}, "error: --patch needs a path"},
		{[]string{"x", "--from-default-profile="}, "error: --from-default-profile needs a name"},
		{[]string{"x", "--from-default-profile", ""}, "error: --from-default-profile needs a name"},
		{[]string{"--from-default-profile="}, "error: --from-default-profile needs a name"},
		{[]string{"x", "--from-default-profile=", "--dump-config", "--dump-config-schema"}, "error: --from-default-profile needs a name"},

		{[]string{"x", "--dump-config", "--dump-config-schema", "task"}, exclusive},
		{[]string{"--dump-config", "--dump-default-config"}, exclusive},

		{[]string{"x", "--dump-config", "a", "b"}, `error: config dumps take no app arguments, got "a" "b"`},
		{[]string{"x", "--dump-config-schema", "--", "--dump-config"}, `error: config dumps take no app arguments, got "--dump-config"`},
		{[]string{"x", "--dump-default-config", "--patch=a", "t"}, `error: config dumps take no app arguments, got "t"`},
		{[]string{"--dump-config", "web"}, `error: config dumps take no app arguments, got "web"`},
		{[]string{"x", "--dump-config", `a"\b`, "\x01\b\f\n\r\t\x7f", "<&>\u2028ü\U0001F600", "", "\xff"},
			`error: config dumps take no app arguments, got "a\"\\b" "\u0001\b\f\n\r\t` + "\x7f\" \"<&>\u2028ü\U0001F600\" \"\" \"\uFFFD\""},

		{[]string{"x", "--patch=-", "--patch", "-"}, twice},
		{[]string{"--patch=-", "--profile=x", "--patch=a", "--patch=-", "--from-default-profile="}, twice},
		{[]string{"x", "--patch=-", "--patch=-", "--patch="}, "error: --patch needs a path"},
		{[]string{"--patch=-", "--patch=-"}, required},
		{[]string{"x", "--patch=-", "--patch=-", "--dump-default-config", "task"}, twice},
		{[]string{"x", "--patch=./-", "--patch=-", "--dump-config", "t"}, `error: config dumps take no app arguments, got "t"`},

		{[]string{"--set=a.b=1", "x", "--dump-default-config"}, noSet},
		{[]string{"--dump-default-config", "--set", "a.b=1"}, noSet},
		{[]string{"--set=a.b=1", "x", "--dump-default-config", "--patch=a"}, noPatch},
		{[]string{"--set=a.b=1", "x", "--dump-default-config", "t"}, `error: config dumps take no app arguments, got "t"`},
		{[]string{"x", "--dump-default-config", "--patch=a"}, noPatch},
		{[]string{"x", "--patch", "a", "--dump-default-config"}, noPatch},

		// Mistakes of options come in the order of argv and before all else.
		{[]string{"--version", "--profile"}, "error: option '--profile <name>' argument missing"},
		{[]string{"x", "--profile=x", "--patch"}, onceX},
		{[]string{"desktop", "--profile=x"}, onceX},
		{[]string{"--help", "--profile"}, ""}, // behind the boundary there are no options

		{[]string{"--installation"}, "error: option '--installation <dir>' argument missing"},
		{[]string{"--installation=", "x"}, "error: --installation needs a directory"},
		{[]string{"--installation", "a", "--installation=b", "x"}, "error: option '--installation <dir>' argument 'b' is invalid. select an installation only once"},
		{[]string{"--set"}, "error: option '--set <row.key=value>' argument missing"},
		{[]string{"--set=", "x"}, needsSet},
		{[]string{"--set", "", "x"}, needsSet},
		{[]string{"--set", "a.b", "x"}, needsSet},
		{[]string{"--set", "x", "--set=a.b=1"}, needsSet},
		{[]string{"--set", "a.b", "--profile"}, needsSet},
		{[]string{"--set", "web", "--version"}, needsSet},
		{[]string{"--set", "a.b", "plugin", "add", "x"}, needsSet},
		{[]string{"--set", "a.b=1"}, required},
		{[]string{"--set", "a.b=1", "--patch", "a", "tui"}, required},
		{[]string{"--json=true", "x"}, `error: option '--json' takes no value, got "true"`},
	}
	for _, tt := range tests {
		cmd, err := parse(tt.args, noEnv)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("Parse(%q):\n got %s\nwant %s", tt.args, got, tt.want)
		}
		if err != nil && (cmd != nil || fault.ClassOf(err) != fault.Other) {
			t.Errorf("Parse(%q): command %v, class %v", tt.args, cmd, fault.ClassOf(err))
		}
	}
}

func TestParseEveryPairAndTripleOfDumpsIsRefused(t *testing.T) {
	dumps := []string{"--dump-config", "--dump-default-config", "--dump-config-schema"}
	var combinations [][]string
	for _, a := range dumps {
		for _, b := range dumps {
			if a == b {
				continue
			}
			combinations = append(combinations, []string{a, b})
			for _, c := range dumps {
				if c != a && c != b {
					combinations = append(combinations, []string{a, b, c})
				}
			}
		}
	}
	if len(combinations) != 12 {
		t.Fatalf("%d combinations", len(combinations))
	}
	for _, flags := range combinations {
		_, err := parse(append([]string{"x"}, flags...), noEnv)
		if err == nil || !strings.HasSuffix(err.Error(), "are mutually exclusive") {
			t.Errorf("%q: %v", flags, err)
		}
	}
}

func TestParseDesktopFromEnvironment(t *testing.T) {
	_, err := parse([]string{"--dump-config"}, env("DSH_PROFILE", "DeskTop"))
	if err == nil || !strings.Contains(err.Error(), "Electron") {
		t.Errorf("error %v", err)
	}
	mustParse(t, env("DSH_PROFILE", "desktop"), "x")
}

// EqualFold folds one character to one; no character may fold to several
// letters of the reserved word, or that would not be enough.
func TestDesktopFoldsCharacterByCharacter(t *testing.T) {
	fold := cases.Fold()
	for r := rune(0); r <= 0x10FFFF; r++ {
		folded := fold.String(string(r))
		if !strings.Contains("desktop", folded) || folded == "" {
			continue
		}
		if len(folded) != 1 || !strings.EqualFold(string(r), folded) {
			t.Errorf("%U folds to %q", r, folded)
		}
	}
}

func TestParseBareSaysHowToBegin(t *testing.T) {
	tests := []struct {
		args   []string
		getenv func(string) string
		want   []string
	}{
		{nil, noEnv, []string{"  dsh web                     boot the shipped web profile", `  dsh plugin add <package>    add a package to the profile "default"`}},
		{[]string{"--json"}, env("DSH_PROFILE", "mine"), []string{"  dsh web                     boot the shipped web profile", `  dsh plugin add <package>    add a package to the profile "mine"`}},
		{[]string{"--bogus"}, noEnv, nil},
		{[]string{"--patch", "a"}, noEnv, nil},
		{[]string{"--"}, noEnv, nil},
	}
	for _, tt := range tests {
		_, err := parse(tt.args, tt.getenv)
		usage, ok := errors.AsType[*UsageError](err)
		if !ok {
			t.Errorf("Parse(%q): %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, usage.Extra); diff != "" {
			t.Errorf("Parse(%q) (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestParseDumpSaysWhereOwnOptionsGo(t *testing.T) {
	const goes = " goes before the profile's name"
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"web", "--dump-config", "--set", "a.b=1"}, "--set" + goes + ": dsh --set a.b=1 web --dump-config"},
		{[]string{"web", "--dump-config", "--set=a.b=1"}, "--set" + goes + ": dsh --set=a.b=1 web --dump-config"},
		{[]string{"--profile", "web", "--dump-config", "--json"}, "--json" + goes + ": dsh --json --profile web --dump-config"},
		{[]string{"--set", "a=1", "web", "--dump-config", "--installation", "d", "--set", "b=2"},
			"--installation" + goes + ": dsh --installation d --set b=2 --set a=1 web --dump-config"},
		// What is then no app argument any more is the launcher's again.
		{[]string{"web", "--dump-config", "--json", "--patch", "a.yml"}, "--json" + goes + ": dsh --json web --dump-config --patch a.yml"},
		{[]string{"web", "--dump-config", "--", "--json"}, "--json" + goes + ": dsh --json web --dump-config"},

		// No line where it would not work either, or needs quotes.
		{[]string{"web", "--dump-config", "--json", "task"}, "--json" + goes},
		{[]string{"web", "--dump-config", "task", "--json"}, "--json" + goes},
		{[]string{"web", "--dump-config", "--", "--json", "--patch", "a.yml"}, "--json" + goes},
		{[]string{"web", "--dump-config", "--set"}, "--set" + goes},
		{[]string{"web", "--dump-config", "--set", "a.b"}, "--set" + goes},
		{[]string{"web", "--dump-config", "--json=1"}, "--json" + goes},
		{[]string{"web", "--dump-default-config", "--set", "a.b=1"}, "--set" + goes},
		{[]string{"web", "--dump-config", "--json", "--dump-config-schema"}, "--json" + goes},
		{[]string{"--installation", "d", "web", "--dump-config", "--installation", "e"}, "--installation" + goes},
		{[]string{"web", "--dump-config", "--set", "a.b=[1, 2]"}, "--set" + goes},
		{[]string{"my web", "--dump-config", "--json"}, "--json" + goes},

		{[]string{"web", "--dump-config", "task"}, ""},
		{[]string{"web", "--dump-config", "--", "--patch", "a.yml"}, ""},
		{[]string{"--set", "a=1", "web", "--dump-config", "a=1"}, ""},
	}
	for _, tt := range tests {
		_, err := parse(tt.args, noEnv)
		if err == nil || !strings.HasPrefix(err.Error(), "error: config dumps take no app arguments, got ") {
			t.Errorf("Parse(%q): error %v", tt.args, err)
		}
		hint := fault.Hint(err)
		if hint != tt.want {
			t.Errorf("Parse(%q): hint\n got %s\nwant %s", tt.args, hint, tt.want)
		}
		if _, line, ok := strings.Cut(hint, ": dsh "); ok {
			if dump, ok := mustParse(t, noEnv, strings.Fields(line)...).(Dump); !ok {
				t.Errorf("%s is no dump but %#v", line, dump)
			}
		}
	}
}

func TestParseErrorKeepsOwnOptions(t *testing.T) {
	_, err := parse([]string{"--json", "--installation=d", "--profile"}, noEnv)
	usage, ok := errors.AsType[*UsageError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	if diff := cmp.Diff(Global{"d", true}, usage.Global); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMisplaced(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"task", "--set", "a.b=1"}, ""},
		{[]string{"--resume"}, ""},
		{[]string{"--patch", "p.yml"}, ""},
		{[]string{"--set", "a.b=1"}, "--set"},
		{[]string{"--set=a.b=1"}, "--set"},
		{[]string{"--json"}, "--json"},
	} {
		if got := Misplaced(tt.args); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
		}
	}
}
