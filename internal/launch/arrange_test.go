package launch

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/urfave/cli/v2"
)

// testCommands are commands as a program defines them; what each of them was
// given lands in ran.
func testCommands(ran *result) []*cli.Command {
	action := func(c *cli.Context) error {
		*ran = result{Command: c.Command.Name, Profile: c.String("profile"), Registry: c.String("registry"), Dev: c.Bool("save-dev"),
			Root: c.Bool("workspace-root"), Verbose: c.Bool("verbose"), List: c.Bool("list"), Home: c.Bool("home"),
			Sets: c.StringSlice("set"), Patches: c.StringSlice("patch"), Args: c.Args().Slice()}
		return nil
	}
	profile := func() cli.Flag { return &cli.StringFlag{Name: "profile"} }
	home := func() cli.Flag { return &cli.BoolFlag{Name: "home", Aliases: []string{"H"}} }
	verb := func(name string, aliases ...string) *cli.Command {
		return &cli.Command{Name: name, Aliases: aliases, Action: action, HideHelpCommand: true, UseShortOptionHandling: true, Flags: []cli.Flag{
			profile(),
			&cli.StringFlag{Name: "registry", Aliases: []string{"r"}},
			&cli.BoolFlag{Name: "save-dev", Aliases: []string{"D"}},
			&cli.BoolFlag{Name: "workspace-root", Aliases: []string{"w"}},
		}}
	}
	return []*cli.Command{
		{Name: "plugin", Action: action, HideHelpCommand: true, Flags: []cli.Flag{profile(), &cli.BoolFlag{Name: "verbose"}},
			Subcommands: []*cli.Command{verb("add", "a"), verb("remove", "rm")}},
		{Name: "store", Action: action, HideHelpCommand: true},
		{Name: "profile", Action: action, HideHelpCommand: true, Subcommands: []*cli.Command{
			{Name: "copy", HideHelpCommand: true, Subcommands: []*cli.Command{verb("deep")}},
		}},
		{Name: "config", Action: action, HideHelpCommand: true, Flags: []cli.Flag{profile()}, Subcommands: []*cli.Command{
			{Name: "dump", Aliases: []string{"show"}, Action: action, HideHelpCommand: true, Flags: []cli.Flag{
				profile(), &cli.StringSliceFlag{Name: "set"}, &cli.StringSliceFlag{Name: "patch"}, &cli.BoolFlag{Name: "json"}}},
			{Name: "set", Action: action, HideHelpCommand: true, Flags: []cli.Flag{profile(), home()}},
			{Name: "unset", Aliases: []string{"rm"}, Action: action, HideHelpCommand: true, Flags: []cli.Flag{profile(), home()}},
		}},
		{Name: "trust", Action: action, HideHelpCommand: true, UseShortOptionHandling: true, Flags: []cli.Flag{
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}}, &cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}}}},
	}
}

// result is what a command sees of its command line.
type result struct {
	Command           string
	Profile, Registry string
	Dev, Root         bool
	Verbose           bool
	List, Home        bool
	Sets, Patches     []string
	Args              []string
}

// syntaxOf is how a program derives the syntax of its commands.
func syntaxOf(commands []*cli.Command) []Syntax {
	var list []Syntax
	for _, c := range commands {
		s := Syntax{Names: c.Names(), Summary: c.Usage, Verbs: syntaxOf(c.Subcommands)}
		for _, f := range c.Flags {
			value, ok := f.(cli.DocGenerationFlag)
			s.Flags = append(s.Flags, Flag{Names: f.Names(), Value: ok && value.TakesValue()})
		}
		list = append(list, s)
	}
	return list
}

// runCLI gives words in order to the commands.
func runCLI(args []string) (result, error) {
	var got result
	app := cli.NewApp()
	app.Commands = testCommands(&got)
	app.Writer, app.ErrWriter = io.Discard, io.Discard
	app.DisableSliceFlagSeparator = true
	app.ExitErrHandler = func(*cli.Context, error) {}
	err := app.Run(append([]string{"dsh"}, args...))
	return got, err
}

var testSyntax = syntaxOf(testCommands(nil))

func arrange(t *testing.T, args ...string) (Invocation, error) {
	t.Helper()
	own, ok := mustParse(t, env("DSH_PROFILE", "mine"), args...).(Own)
	if !ok {
		t.Fatalf("%q is no command of ours", args)
	}
	return own.Arrange(testSyntax)
}

// The commands see through urfave/cli what the words meant.
func TestArrangeForCLI(t *testing.T) {
	tests := []struct {
		args []string
		want result
	}{
		{[]string{"plugin", "add", "x", "--profile", "y"}, result{Command: "add", Profile: "y", Args: []string{"x"}}},
		{[]string{"plugin", "--profile=x", "add", "y", "-D"}, result{Command: "add", Profile: "x", Dev: true, Args: []string{"y"}}},
		{[]string{"plugin", "--profile", "x", "add", "y"}, result{Command: "add", Profile: "x", Args: []string{"y"}}},
		{[]string{"plugin", "-profile", "x", "add", "y"}, result{Command: "add", Profile: "x", Args: []string{"y"}}},
		{[]string{"plugin", "--profile", "x", "add", "--save-dev", "y"}, result{Command: "add", Profile: "x", Dev: true, Args: []string{"y"}}},
		{[]string{"plugin", "add", "x", "y", "--registry", "http://r", "z"}, result{Command: "add", Registry: "http://r", Args: []string{"x", "y", "z"}}},
		{[]string{"plugin", "--registry", "add", "add", "x"}, result{Command: "add", Registry: "add", Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "--registry=-odd"}, result{Command: "add", Registry: "-odd", Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "--registry", "--save-dev"}, result{Command: "add", Registry: "--save-dev", Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "-r", "--"}, result{Command: "add", Registry: "--", Args: []string{"x"}}},
		{[]string{"plugin", "-w", "add", "x"}, result{Command: "add", Root: true, Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "-Dw"}, result{Command: "add", Dev: true, Root: true, Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "-Dr", "http://r"}, result{Command: "add", Dev: true, Registry: "http://r", Args: []string{"x"}}},
		{[]string{"plugin", "add", "x", "-D=false"}, result{Command: "add", Args: []string{"x"}}},
		{[]string{"plugin", "a", "x"}, result{Command: "add", Args: []string{"x"}}},
		{[]string{"plugin", "rm", "x", "--profile=y"}, result{Command: "remove", Profile: "y", Args: []string{"x"}}},

		// A flag of the command above goes there, wherever it stands.
		{[]string{"plugin", "add", "x", "--verbose", "-D"}, result{Command: "add", Dev: true, Verbose: true, Args: []string{"x"}}},
		{[]string{"profile", "copy", "deep", "x", "--profile", "y", "-D"}, result{Command: "deep", Profile: "y", Dev: true, Args: []string{"x"}}},

		// "--" ends the flags.
		{[]string{"plugin", "add", "--", "x", "-D"}, result{Command: "add", Args: []string{"x", "-D"}}},
		{[]string{"plugin", "add", "-D", "x", "--", "-y", "--", "z"}, result{Command: "add", Dev: true, Args: []string{"x", "-y", "--", "z"}}},
		{[]string{"plugin", "add", "--", "--"}, result{Command: "add", Args: []string{"--"}}},
		{[]string{"plugin", "add", "-", "-D"}, result{Command: "add", Dev: true, Args: []string{"-"}}},

		// Names of verbs, flags and of help are ordinary arguments.
		{[]string{"plugin", "add", "remove", "help", "profile", "h", ""}, result{Command: "add", Args: []string{"remove", "help", "profile", "h", ""}}},

		// From an unknown verb on everything stays as it is.
		{[]string{"plugin", "--profile", "x", "dlx", "foo", "--bar", "--profile", "y", "--", "-z"},
			result{Command: "plugin", Profile: "x", Args: []string{"dlx", "foo", "--bar", "--profile", "y", "--", "-z"}}},
		{[]string{"store", "x"}, result{Command: "store", Args: []string{"x"}}},
		{[]string{"plugin", "-5", "--bar"}, result{Command: "plugin", Args: []string{"-5", "--bar"}}},

		// A command with arguments and no verbs.
		{[]string{"trust"}, result{Command: "trust"}},
		{[]string{"trust", "set", "--list"}, result{Command: "trust", List: true, Args: []string{"set"}}},
		{[]string{"trust", "-l", "dir"}, result{Command: "trust", List: true, Args: []string{"dir"}}},
		{[]string{"trust", "dir", "-vl"}, result{Command: "trust", List: true, Verbose: true, Args: []string{"dir"}}},
		{[]string{"trust", "-v", "--", "-l"}, result{Command: "trust", Verbose: true, Args: []string{"-l"}}},
		{[]string{"trust", "dir", "--", "trust"}, result{Command: "trust", Args: []string{"dir", "trust"}}},

		// A command with verbs and none of them given.
		{[]string{"config"}, result{Command: "config"}},
		{[]string{"config", "--profile", "x"}, result{Command: "config", Profile: "x"}},
		{[]string{"config", "bogus", "--home"}, result{Command: "config", Args: []string{"bogus", "--home"}}},
		{[]string{"config", "--", "bogus", "--home"}, result{Command: "config", Args: []string{"bogus", "--home"}}},

		// Values of a --set may be anything with an "=".
		{[]string{"config", "dump", "--set", "a.b=1", "row", "--set=c.d=x=y"}, result{Command: "dump", Sets: []string{"a.b=1", "c.d=x=y"}, Args: []string{"row"}}},
		{[]string{"config", "--set", "a.b=[1, 2]", "show"}, result{Command: "dump", Sets: []string{"a.b=[1, 2]"}}},
		{[]string{"config", "dump", "-set", "--a=1", "--set", "-b=-1"}, result{Command: "dump", Sets: []string{"--a=1", "-b=-1"}}},
		{[]string{"--set", "a.b=1", "config", "dump"}, result{Command: "dump", Sets: []string{"a.b=1"}}},
		{[]string{"--set=a.b=1", "--json", "--set", "a.b=2", "config", "--set", "a.b=3", "dump", "row", "--set", "a.b=4"},
			result{Command: "dump", Sets: []string{"a.b=1", "a.b=2", "a.b=3", "a.b=4"}, Args: []string{"row"}}},
		{[]string{"config", "dump", "--", "--set"}, result{Command: "dump", Args: []string{"--set"}}},
		{[]string{"config", "dump", "--patch", "-", "row", "--patch=a.yml"}, result{Command: "dump", Patches: []string{"-", "a.yml"}, Args: []string{"row"}}},

		// A negative number is an argument, and a value like any other word.
		{[]string{"config", "set", "row.n", "-5"}, result{Command: "set", Args: []string{"row.n", "-5"}}},
		{[]string{"config", "set", "row.n", "-.5e-3", "--home"}, result{Command: "set", Home: true, Args: []string{"row.n", "-.5e-3"}}},
		{[]string{"config", "set", "-H", "row.n", "-.inf"}, result{Command: "set", Home: true, Args: []string{"row.n", "-.inf"}}},
		{[]string{"config", "set", "row.n", "--profile", "-5", "-0x1F"}, result{Command: "set", Profile: "-5", Args: []string{"row.n", "-0x1F"}}},
		{[]string{"config", "set", "row.n", "--", "-5", "--home"}, result{Command: "set", Args: []string{"row.n", "-5", "--home"}}},
		{[]string{"trust", "-1"}, result{Command: "trust", Args: []string{"-1"}}},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		got, err := runCLI(inv.Args)
		if err != nil {
			t.Errorf("%q became %q: %v", tt.args, inv.Args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got, same); diff != "" {
			t.Errorf("%q became %q (-want +got):\n%s", tt.args, inv.Args, diff)
		}
	}
}

func TestArrangeUnknownFlagsStayInFront(t *testing.T) {
	tests := []struct{ args, want []string }{
		{[]string{"plugin", "add", "x", "--bogus", "y"}, []string{"plugin", "add", "--bogus", "x", "y"}},
		{[]string{"plugin", "add", "x", "-Dq"}, []string{"plugin", "add", "-Dq", "x"}},
		{[]string{"plugin", "add", "x", "-rD"}, []string{"plugin", "add", "-rD", "x"}},
		{[]string{"plugin", "add", "x", "---D"}, []string{"plugin", "add", "---D", "x"}},
		{[]string{"plugin", "--bogus=1", "add", "x"}, []string{"plugin", "add", "--bogus=1", "x"}},
		{[]string{"store", "x", "--profile", "y"}, []string{"store", "--profile", "x", "y"}},
		{[]string{"catalog", "x", "--profile", "y"}, []string{"catalog", "x", "--profile", "y"}},
		{[]string{"trust", "x", "-lq"}, []string{"trust", "-lq", "x"}},
		{[]string{"config", "unset", "x", "-set", "a=1"}, []string{"config", "unset", "-set", "x", "a=1"}},
		{[]string{"config", "set", "row.n", "-inf"}, []string{"config", "set", "-inf", "row.n"}},
		{[]string{"config", "set", "row.n", "--5"}, []string{"config", "set", "--5", "row.n"}},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(tt.want, inv.Args); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestArrangeProfile(t *testing.T) {
	tests := []struct {
		args    []string
		profile string
		implied bool
	}{
		{[]string{"plugin", "add", "x"}, "mine", true},
		{[]string{"plugin", "list"}, "mine", true},
		{[]string{"plugin", "add", "x", "--profile=y"}, "y", false},
		{[]string{"plugin", "--profile", "mine", "add", "x"}, "mine", false},
		{[]string{"plugin", "add", "--", "--profile=y"}, "mine", true},
		{[]string{"store", "ls"}, "", false},
		{[]string{"profile", "copy", "deep"}, "mine", true},
		{[]string{"profile", "copy"}, "", false},
		{[]string{"config"}, "mine", true},
		{[]string{"config", "--profile=y", "set", "row.n", "-5"}, "y", false},
		{[]string{"trust", "y"}, "", false},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if inv.Profile != tt.profile || inv.Implied != tt.implied {
			t.Errorf("%q: profile %q, implied %v", tt.args, inv.Profile, inv.Implied)
		}
	}
}

func TestArrangeSource(t *testing.T) {
	refuses := errors.New("cannot be read")
	broken := func() (string, error) { return "", refuses }
	unasked := func() (string, error) { t.Error("the choice was asked for"); return "", nil }
	add := []string{"plugin", "add", "x"}
	for _, tt := range []struct {
		args   []string
		getenv func(string) string
		chosen Choice
		want   Invocation
	}{
		{add, noEnv, chose(""), Invocation{Profile: "default", Source: FromNothing, Implied: true}},
		{add, noEnv, chose("work"), Invocation{Profile: "work", Source: FromChoice, Implied: true}},
		{add, env("DSH_PROFILE", "mine"), unasked, Invocation{Profile: "mine", Source: FromEnvironment, Implied: true}},
		{append(add, "--profile", "y"), noEnv, unasked, Invocation{Profile: "y", Source: FromCommandLine}},
		{append(add, "--help"), noEnv, unasked, Invocation{}},
		{[]string{"store", "ls"}, noEnv, unasked, Invocation{}},
		{add, noEnv, broken, Invocation{Source: FromChoice, Implied: true, Problem: refuses}},
	} {
		cmd, err := Parse(tt.args, tt.getenv, tt.chosen)
		if err != nil {
			t.Fatal(err)
		}
		got, err := cmd.(Own).Arrange(testSyntax)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreFields(Invocation{}, "Args"), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
	cmd, err := Parse(add, noEnv, chose("DeskTop"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cmd.(Own).Arrange(testSyntax); err == nil || !strings.Contains(err.Error(), "Electron") {
		t.Errorf("desktop was chosen: %v", err)
	}
}

func TestArrangeGlobalOptionsAnywhere(t *testing.T) {
	tests := []struct {
		args []string
		want Global
		rest []string
	}{
		{[]string{"--json", "plugin", "add", "x"}, Global{JSON: true}, []string{"plugin", "add", "x"}},
		{[]string{"plugin", "add", "x", "--json"}, Global{JSON: true}, []string{"plugin", "add", "x"}},
		{[]string{"--json", "plugin", "--installation", "d", "add", "x"}, Global{"d", true}, []string{"plugin", "add", "x"}},
		{[]string{"plugin", "add", "x", "--installation=d", "-D"}, Global{Installation: "d"}, []string{"plugin", "add", "-D", "x"}},
		{[]string{"plugin", "add", "--", "--json"}, Global{}, []string{"plugin", "add", "--", "--json"}},
		{[]string{"plugin", "dlx", "--json"}, Global{JSON: true}, []string{"plugin", "--", "dlx", "--json"}},
		{[]string{"plugin", "dlx", "--", "--json"}, Global{}, []string{"plugin", "--", "dlx", "--", "--json"}},

		// One that the verb declares is the verb's.
		{[]string{"config", "dump", "--json"}, Global{}, []string{"config", "dump", "--json"}},
		{[]string{"--json", "config", "--json", "dump"}, Global{JSON: true}, []string{"config", "dump", "--json"}},
		{[]string{"config", "--json", "unset", "x"}, Global{JSON: true}, []string{"config", "unset", "x"}},
		{[]string{"config", "unset", "x", "--json"}, Global{JSON: true}, []string{"config", "unset", "x"}},
		{[]string{"--set", "a=1", "--installation=d", "config", "dump"}, Global{Installation: "d"}, []string{"config", "dump", "--set", "a=1"}},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(Invocation{Global: tt.want, Profile: "mine", Source: FromEnvironment, Implied: true, Args: tt.rest}, inv); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestArrangeErrors(t *testing.T) {
	const (
		onceY    = "error: option '--profile <name>' argument 'y' is invalid. select a profile only once"
		desktop  = `error: profile "desktop" is managed exclusively by the Electron application`
		needsSet = "error: --set needs ROW.KEY=VALUE"
		noVerb   = "error: plugin needs pnpm arguments to forward (e.g. add <package>)"
	)
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"plugin"}, noVerb},
		{[]string{"plugin", "--profile", "x"}, noVerb},
		{[]string{"plugin", "--profile=x", "--"}, noVerb},
		{[]string{"plugin", "-w"}, noVerb},
		{[]string{"plugin", "--profile", "x", "--profile", "y", "add", "z"}, onceY},
		{[]string{"plugin", "--profile=y", "add", "z", "--profile=y"}, onceY},
		{[]string{"plugin", "add", "z", "--profile=x", "-profile", "y"}, onceY},
		{[]string{"plugin", "--profile", "", "add", "z"}, "error: --profile needs a name"},
		{[]string{"plugin", "--profile=", "add", "z"}, "error: --profile needs a name"},
		{[]string{"plugin", "add", "z", "--profile="}, "error: --profile needs a name"},
		{[]string{"plugin", "--profile="}, "error: --profile needs a name"},
		{[]string{"plugin", "--profile"}, "error: option '--profile <name>' argument missing"},
		{[]string{"plugin", "add", "z", "-profile"}, "error: option '--profile <name>' argument missing"},
		{[]string{"plugin", "add", "z", "-r"}, "error: option '-r <value>' argument missing"},
		{[]string{"plugin", "add", "z", "-Dr"}, "error: option '-Dr <value>' argument missing"},
		{[]string{"plugin", "--profile", "desktop", "add", "z"}, desktop},
		{[]string{"plugin", "add", "z", "--profile=DE\u017fKTOP"}, desktop},
		{[]string{"plugin", "--profile", "Desktop"}, desktop},
		{[]string{"plugin", "add", "--installation"}, "error: option '--installation <dir>' argument missing"},
		{[]string{"--installation=a", "plugin", "add", "--installation", "b"}, "error: option '--installation <dir>' argument 'b' is invalid. select an installation only once"},
		{[]string{"plugin", "add", "--json=no"}, `error: option '--json' takes no value, got "no"`},
		{[]string{"config", "--json=no", "unset"}, `error: option '--json' takes no value, got "no"`},

		// Who does not declare --set refuses it, wherever it stands.
		{[]string{"--set", "a.b=1", "plugin", "add", "x"}, "error: plugin add takes no --set"},
		{[]string{"plugin", "a", "x", "--set", "a.b=1"}, "error: plugin add takes no --set"},
		{[]string{"plugin", "--set=a.b=1", "dlx", "x"}, "error: plugin takes no --set"},
		{[]string{"plugin", "--set=a.b=1"}, "error: plugin takes no --set"},
		{[]string{"--set", "a.b=1", "trust", "x"}, "error: trust takes no --set"},
		{[]string{"--set", "a.b=1", "config"}, "error: config takes no --set"},
		{[]string{"config", "--set", "a.b=1", "rm", "x"}, "error: config unset takes no --set"},
		{[]string{"config", "set", "x", "--set", "a.b=1", "y"}, "error: config set takes no --set"},

		// The rules of the launcher's options hold for flags of the same name.
		{[]string{"config", "dump", "--set"}, "error: option '--set <row.key=value>' argument missing"},
		{[]string{"config", "dump", "--set="}, needsSet},
		{[]string{"config", "dump", "--set", "a.b"}, needsSet},
		{[]string{"config", "dump", "-set", "a.b"}, needsSet},
		{[]string{"plugin", "add", "x", "--set", "a.b"}, needsSet},
		{[]string{"config", "dump", "--patch"}, "error: option '--patch <path>' argument missing"},
		{[]string{"config", "dump", "--patch="}, "error: --patch needs a path"},
		{[]string{"config", "--patch", "-", "dump", "--patch=-"}, "error: --patch - can be given only once"},

		// Behind a "--" nothing is a verb.
		{[]string{"config", "--", "set", "x", "-5"}, `error: config needs its verb before the "--"`},
		{[]string{"profile", "copy", "--", "deep"}, `error: profile copy needs its verb before the "--"`},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%q: %q, error %v\nwant %s", tt.args, inv.Args, err, tt.want)
		}
	}
	own := mustParse(t, env("DSH_PROFILE", "desktop"), "plugin", "add", "x").(Own)
	if _, err := own.Arrange(testSyntax); err == nil || err.Error() != desktop {
		t.Errorf("$DSH_PROFILE=desktop: %v", err)
	}
}

// Help is for the command to print, whatever else the line says.
func TestArrangeLetsHelpThrough(t *testing.T) {
	for _, args := range [][]string{
		{"plugin", "--help"}, {"plugin", "-h"}, {"plugin", "--profile=", "-h"}, {"plugin", "--profile=desktop", "add", "--help"}, {"plugin", "add", "x", "-h"},
		{"--set", "a.b=1", "plugin", "add", "-h"}, {"config", "--help", "--", "set"}, {"config", "dump", "--patch=", "-h"}, {"trust", "-h"},
	} {
		inv, err := arrange(t, args...)
		if err != nil {
			t.Errorf("%q: %v", args, err)
		}
		if !slices.Contains(inv.Args, "-h") && !slices.Contains(inv.Args, "--help") {
			t.Errorf("%q became %q", args, inv.Args)
		}
	}
}
