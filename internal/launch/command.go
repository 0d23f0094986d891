package launch

import "slices"

// DefaultProfile is the profile that dumps and our own commands act on when
// neither the command line nor $DSH_PROFILE names one and the user chose none.
const DefaultProfile = "default"

// Choice is the profile that the user chose for command lines that name none;
// "" where there is no choice. It is asked only when it counts.
type Choice func() (name string, err error)

// Source is what named the profile of a command line.
type Source uint8

// The sources, the first one that names a profile counts.
const (
	NoSource        Source = iota // the command is about no profile
	FromCommandLine               // a name, or --profile
	FromEnvironment               // $DSH_PROFILE
	FromChoice                    // the user's choice
	FromNothing                   // none of them, and DefaultProfile it is
)

// The environment variables that Parse asks for.
const (
	profileVariable      = "DSH_PROFILE"
	installationVariable = "DSH_INSTALLATION"
)

// Command is what one command line asks for: Help, Version, Boot, Dump or Own.
type Command interface{ command() }

// Help asks for the launcher's help on stdout and exit code 0.
type Help struct{}

// Version asks for the version alone on stdout and exit code 0.
type Version struct{}

// Boot starts a profile.
type Boot struct {
	Launch
	// Args belong to the app, word for word.
	Args []string
}

// Dump prints the composed configuration of a profile instead of booting it.
type Dump struct {
	Launch
	Kind DumpKind
}

// Own is one of our commands, not yet in order: see [Own.Arrange].
type Own struct {
	Global Global
	// Args is the command line from the command's name on, as it was typed.
	Args    []string
	globals globals
	sets    []string      // the values of --set before Args
	implied func() target // the profile to act on where Args name none
}

func (Help) command()    {}
func (Version) command() {}
func (Boot) command()    {}
func (Dump) command()    {}
func (Own) command()     {}

// Launch is what boots and dumps have in common.
type Launch struct {
	// Profile is never empty and never a spelling of "desktop". Whether it can
	// be a directory's name is for the profile package to say.
	Profile string
	// Implied tells that the command line named no profile, and Profile is
	// $DSH_PROFILE, the user's choice or the default.
	Implied bool
	// FromDefault is the template of --from-default-profile, "" without it.
	FromDefault string
	// Patches are the paths of --patch in order, none of them empty. At most one
	// is "-", which is standard input.
	Patches []string
	// Sets are the values of --set in order, each with an "=" in it. What they
	// say is for the compose package to read.
	Sets   []string
	Global Global
}

// Global is what the options of our own say; they go with any command.
type Global struct {
	// Installation is the name of an installation of the harness, or a directory
	// that holds one, from --installation or else $DSH_INSTALLATION; "" where
	// they say nothing.
	Installation string
	// JSON asks for results and errors as one JSON document on stdout.
	JSON bool
}

// DumpKind says which dump is asked for.
type DumpKind uint8

// The dumps.
const (
	Config        DumpKind = iota // every layer
	DefaultConfig                 // the bundles' layers only; never with patches
	ConfigSchema                  // the JSON Schema of the configuration
)

// String is the launcher option that asks for the dump.
func (k DumpKind) String() string {
	switch k {
	case DefaultConfig:
		return "--dump-default-config"
	case ConfigSchema:
		return "--dump-config-schema"
	default:
		return "--dump-config"
	}
}

// IsCommand tells whether name, as the first word of a command line, is one of
// our commands and not the name of a profile. A profile that has such a name
// is booted with --profile. The list holds the names of later commands too, so
// that no profile stops booting when they come.
func IsCommand(name string) bool {
	return slices.Contains(commands, name)
}

var commands = []string{
	"plugin", "profile", "config", "store", "trust", "mcp", "skills", "agent-plugin", "catalog", "installation", "completion",
}
