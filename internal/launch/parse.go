package launch

import (
	"errors"
	"slices"
	"strings"

	"dsh/internal/fault"
)

// Parse reads argv without the program's name. getenv is asked for DSH_PROFILE
// and DSH_INSTALLATION, where a blank value counts as unset. An error is a
// *[UsageError], or what chosen returned.
//
// Mistakes are reported in the reference's order: what an option itself
// refuses, in the order of argv; then --version and help go before the rest; a
// missing, empty or reserved profile; an empty --patch, or a second one from
// standard input; an empty --from-default-profile; more than one dump; app
// arguments of a dump; --patch, then --set, of --dump-default-config.
func Parse(args []string, getenv func(string) string, chosen Choice) (Command, error) {
	p := parser{getenv: getenv, chosen: chosen}
	cmd, err := p.parse(args)
	if err != nil {
		return nil, withGlobal(err, p.global())
	}
	return cmd, nil
}

// parser is what the launcher options have said so far.
type parser struct {
	getenv        func(string) string
	chosen        Choice
	own           bool // one of our commands comes
	version       bool
	profile       once
	template      string
	templateGiven bool
	patches       []string
	sets          []string
	dumps         [3]bool // by DumpKind
	globals       globals
}

func (p *parser) parse(args []string) (Command, error) {
	rest, bare, err := p.scan(args)
	switch {
	case err != nil:
		return nil, err
	case p.own:
		return Own{Global: p.global(), Args: rest, globals: p.globals, sets: p.sets, implied: p.implied}, nil
	case p.version:
		return Version{}, nil
	case !p.profile.given && asksHelp(rest):
		return Help{}, nil
	}
	launch, err := p.launch(bare, rest)
	if err != nil {
		return nil, err
	}
	return p.bootOrDump(launch, args, rest)
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
func (p *parser) launch(bare bool, rest []string) (Launch, error) {
	l := Launch{Profile: p.profile.value, FromDefault: p.template, Patches: p.patches, Sets: p.sets, Global: p.global()}
	switch {
	case p.profile.given:
	case p.templateGiven:
		// Never $DSH_PROFILE: replacing a profile that nobody named on this
		// command line would lose it by surprise.
		l.Profile, l.Implied = DefaultProfile, true
	case slices.Contains(p.dumps[:], true):
		t := p.implied()
		if t.err != nil {
			return Launch{}, t.err
		}
		l.Profile, l.Implied = t.profile, true
	default:
		err := usagef("--profile <name> is required")
		if len(p.patches) > 0 && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
			err.Extra = []string{"the name of a profile comes before its options: dsh " + fault.ShellWord(rest[0]) + " …"}
		}
		if bare {
			err.Extra = []string{
				"  dsh web                     boot the shipped web profile",
			}
			if t := p.implied(); t.err == nil {
				err.Extra = append(err.Extra, "  dsh plugin add <package>    add a package to the profile "+quoteJSON(t.profile))
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

// bootOrDump decides between the two. args is the end of argv, the app's.
func (p *parser) bootOrDump(l Launch, argv, args []string) (Command, error) {
	if err := checkPatches(l.Patches); err != nil {
		return nil, err
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
		return nil, appArguments(argv, args)
	case kinds[0] == DefaultConfig && len(l.Patches) > 0:
		return nil, usagef("--dump-default-config prints the bundle layers and takes no --patch")
	case kinds[0] == DefaultConfig && len(l.Sets) > 0:
		return nil, usagef("--dump-default-config prints the bundle layers and takes no --set")
	}
	return Dump{Launch: l, Kind: kinds[0]}, nil
}

// appArguments refuses args, the end of argv, on the command line of a dump.
// An option of ours among them was meant for dsh, so that it says where it goes.
func appArguments(argv, args []string) *UsageError {
	quoted := make([]string, len(args))
	for i, arg := range args {
		quoted[i] = quoteJSON(arg)
	}
	err := usagef("config dumps take no app arguments, got %s", strings.Join(quoted, " "))
	front, rest := cutOurs(args)
	if len(front) == 0 {
		return err
	}
	name, _, _ := strings.Cut(front[0], "=")
	hint := name + " goes before the profile's name"
	if line := reordered(front, argv[:len(argv)-len(args)], rest); line != "" {
		hint += ": " + line
	}
	err.Extra = []string{hint}
	return err
}

// Misplaced is the option of our own that begins the app's arguments, "" if none
// does. It was probably meant for dsh, and belongs before the profile's name.
func Misplaced(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if o, _, _ := findOption(args[0]); o != nil && o.ours {
		return o.long
	}
	return ""
}

// cutOurs takes the options of our own, with their values, out of args.
func cutOurs(args []string) (ours, rest []string) {
	for len(args) > 0 {
		n := 1
		o, _, inline := findOption(args[0])
		if o == nil || !o.ours {
			rest = append(rest, args[0])
		} else {
			if o.value != "" && !inline {
				n = min(2, len(args))
			}
			ours = append(ours, args[:n]...)
		}
		args = args[n:]
	}
	return ours, rest
}

// reordered is the command line with front before the launcher's words and rest
// behind them, "" where that line is no dump either or needs quotes, which every
// shell writes in its own way.
func reordered(front, launcher, rest []string) string {
	if len(rest) == 0 && len(launcher) > 0 && launcher[len(launcher)-1] == "--" {
		launcher = launcher[:len(launcher)-1]
	}
	words := slices.Concat(front, launcher, rest)
	nothing := func() (string, error) { return "", nil }
	cmd, err := Parse(words, func(string) string { return "" }, nothing)
	if _, ok := cmd.(Dump); err != nil || !ok {
		return ""
	}
	line := fault.ShellWords(append([]string{"dsh"}, words...)...)
	if line != "dsh "+strings.Join(words, " ") {
		return ""
	}
	return line
}

// target is the profile to act on, and what named it.
type target struct {
	profile string
	source  Source
	err     error // the choice cannot be read, and profile is ""
}

// implied is the profile of a command line that names none.
func (p *parser) implied() target {
	if name := p.getenv(profileVariable); strings.TrimSpace(name) != "" {
		return target{profile: name, source: FromEnvironment}
	}
	switch name, err := p.chosen(); {
	case err != nil:
		return target{source: FromChoice, err: err}
	case name != "":
		return target{profile: name, source: FromChoice}
	}
	return target{profile: DefaultProfile, source: FromNothing}
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
