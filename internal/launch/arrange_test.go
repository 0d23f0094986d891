package launch

import (
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

// testCommands are commands as a program defines them; what each of them was
// given lands in ran.
func testCommands(ran *result) []*cli.Command {
	action := func(c *cli.Context) error {
		*ran = result{Command: c.Command.Name, Profile: c.String("profile"), Registry: c.String("registry"), Dev: c.Bool("save-dev"),
			Root: c.Bool("workspace-root"), Verbose: c.Bool("verbose"), Args: c.Args().Slice()}
		return nil
	}
	profile := func() cli.Flag { return &cli.StringFlag{Name: "profile"} }
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
		{Name: "config", Action: action, HideHelpCommand: true, Subcommands: []*cli.Command{
			{Name: "set", HideHelpCommand: true, Subcommands: []*cli.Command{verb("deep")}},
		}},
	}
}

// result is what a command sees of its command line.
type result struct {
	Command           string
	Profile, Registry string
	Dev, Root         bool
	Verbose           bool
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
		{[]string{"config", "set", "deep", "x", "--profile", "y", "-D"}, result{Command: "deep", Profile: "y", Dev: true, Args: []string{"x"}}},

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
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		var got result
		app := cli.NewApp()
		app.Commands = testCommands(&got)
		app.Writer, app.ErrWriter = io.Discard, io.Discard
		app.ExitErrHandler = func(*cli.Context, error) {}
		if err := app.Run(append([]string{"dsh"}, inv.Args...)); err != nil {
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
		{[]string{"config", "set", "deep"}, "mine", true},
		{[]string{"config", "set"}, "", false},
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
	own := mustParse(t, noEnv, "plugin", "add", "x").(Own)
	if inv, err := own.Arrange(testSyntax); err != nil || inv.Profile != "default" || !inv.Implied {
		t.Errorf("without $DSH_PROFILE: %+v, %v", inv, err)
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
		{[]string{"plugin", "dlx", "--json"}, Global{}, []string{"plugin", "--", "dlx", "--json"}},
	}
	for _, tt := range tests {
		inv, err := arrange(t, tt.args...)
		if err != nil {
			t.Errorf("%q: %v", tt.args, err)
			continue
		}
		if diff := cmp.Diff(Invocation{Global: tt.want, Profile: "mine", Implied: true, Args: tt.rest}, inv); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestArrangeErrors(t *testing.T) {
	const (
		onceY   = "error: option '--profile <name>' argument 'y' is invalid. select a profile only once"
		desktop = `error: profile "desktop" is managed exclusively by the Electron application`
		noVerb  = "error: plugin needs pnpm arguments to forward (e.g. add <package>)"
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
