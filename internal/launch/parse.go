package launch

import (
	"errors"
	"slices"
	"strings"
)

// Parse reads argv without the program's name. getenv is asked for DSH_PROFILE
// and DSH_INSTALLATION, where a blank value counts as unset. An error is always
// a *[UsageError].
//
// Mistakes are reported in the reference's order: what an option itself
// refuses, in the order of argv; then --version and help go before the rest; a
// missing, empty or reserved profile; an empty --patch; an empty
// --from-default-profile; more than one dump; app arguments of a dump; patches
// of --dump-default-config.
func Parse(args []string, getenv func(string) string) (Command, error) {
	p := parser{getenv: getenv}
	cmd, err := p.parse(args)
	if err != nil {
		return nil, withGlobal(err, p.global())
	}
	return cmd, nil
}

// parser is what the launcher options have said so far.
type parser struct {
	getenv        func(string) string
	own           bool // one of our commands comes
	version       bool
	profile       once
	template      string
	templateGiven bool
	patches       []string
	dumps         [3]bool // by DumpKind
	globals       globals
}

func (p *parser) parse(args []string) (Command, error) {
	rest, bare, err := p.scan(args)
	switch {
	case err != nil:
		return nil, err
	case p.own:
		return Own{Global: p.global(), Args: rest, globals: p.globals, implied: p.impliedProfile()}, nil
	case p.version:
		return Version{}, nil
	case !p.profile.given && asksHelp(rest):
		return Help{}, nil
	}
	launch, err := p.launch(bare)
	if err != nil {
		return nil, err
	}
	return p.bootOrDump(launch, rest)
}

// scan reads the launcher options and returns the words behind them: the app's
// arguments or, when it sets p.own, one of our commands. bare tells that there
// was nothing but options of our own.
func (p *parser) scan(args []string) (rest []string, bare bool, err error) {
	// A profile's name or a command can stand only where nothing but options of
	// our own came before it: "--patch a.yml tui" does not select tui.
	first := true
	for rest = args; len(rest) > 0; {
		word := rest[0]
		if first && !strings.HasPrefix(word, "-") {
			if IsCommand(word) {
				p.own = true
				return rest, false, nil
			}
			p.profile = once{value: word, given: true}
			first = false
			rest = rest[1:]
			continue
		}
		if word == "--" {
			return rest[1:], false, nil
		}
		o, value, inline := findOption(word)
		if o == nil || o.ours && p.profile.given {
			return rest, false, nil
		}
		first = first && o.ours
		if rest, err = p.takeOption(o, value, inline, rest); err != nil {
			return nil, false, err
		}
	}
	return rest, first, nil
}

func asksHelp(args []string) bool {
	return slices.Contains(args, "-h") || slices.Contains(args, "--help")
}

// launch decides on the profile.
func (p *parser) launch(bare bool) (Launch, error) {
	l := Launch{Profile: p.profile.value, FromDefault: p.template, Patches: p.patches, Global: p.global()}
	switch {
	case p.profile.given:
	case p.templateGiven:
		// Never $DSH_PROFILE: replacing a profile that nobody named on this
		// command line would lose it by surprise.
		l.Profile, l.Implied = DefaultProfile, true
	case slices.Contains(p.dumps[:], true):
		l.Profile, l.Implied = p.impliedProfile(), true
	default:
		err := usagef("--profile <name> is required")
		if bare {
			err.Extra = []string{
				"  dsh web                     boot the shipped web profile",
				"  dsh plugin add <package>    add a package to the profile " + quoteJSON(p.impliedProfile()),
			}
		}
		return Launch{}, err
	}
	return l, checkProfile(l.Profile)
}

// checkProfile refuses the names that no command line may select.
func checkProfile(name string) error {
	if name == "" {
		return usagef("--profile needs a name")
	}
	// No character folds to more than one letter of this word, so EqualFold,
	// which folds one by one, finds every spelling a file system might alias.
	if strings.EqualFold(name, "desktop") {
		return usagef(`profile "desktop" is managed exclusively by the Electron application`)
	}
	return nil
}

func (p *parser) bootOrDump(l Launch, args []string) (Command, error) {
	if slices.Contains(l.Patches, "") {
		return nil, usagef("--patch needs a path")
	}
	if p.templateGiven && l.FromDefault == "" {
		return nil, usagef("--from-default-profile needs a name")
	}
	var kinds []DumpKind
	for kind, given := range p.dumps {
		if given {
			kinds = append(kinds, DumpKind(kind))
		}
	}
	switch {
	case len(kinds) == 0:
		return Boot{Launch: l, Args: args}, nil
	case len(kinds) > 1:
		return nil, usagef("--dump-config, --dump-default-config, and --dump-config-schema are mutually exclusive")
	case len(args) > 0:
		quoted := make([]string, len(args))
		for i, arg := range args {
			quoted[i] = quoteJSON(arg)
		}
		return nil, usagef("config dumps take no app arguments, got %s", strings.Join(quoted, " "))
	case kinds[0] == DefaultConfig && len(l.Patches) > 0:
		return nil, usagef("--dump-default-config prints the bundle layers and takes no --patch")
	}
	return Dump{Launch: l, Kind: kinds[0]}, nil
}

// impliedProfile is the profile of a command line that names none.
func (p *parser) impliedProfile() string {
	if name := p.getenv(profileVariable); strings.TrimSpace(name) != "" {
		return name
	}
	return DefaultProfile
}

// global is what our own options say, with the environment behind them.
func (p *parser) global() Global {
	var fromEnv Global
	if dir := p.getenv(installationVariable); strings.TrimSpace(dir) != "" {
		fromEnv.Installation = dir
	}
	return p.globals.over(fromEnv)
}

func withGlobal(err error, g Global) error {
	if usage, ok := errors.AsType[*UsageError](err); ok {
		usage.Global = g
	}
	return err
}
